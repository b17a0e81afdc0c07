"""Prompts: questions, worked examples and instructions for the answer format."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from forgetmap.errors import UsageError
from forgetmap.evaluation.backends.base import Backend, Message
from forgetmap.evaluation.items import Item, Task
from forgetmap.evaluation.settings import ResolvedSettings
from forgetmap.evaluation.suites.lessons import format_lessons

ANSWER = "Answer:"
FORMS = {
    "option": "the letter of your choice",
    "text": "your answer",
    "number": "a number",
    "maths": "a number or expression",
}


def prompt_of(
    item: Item,
    task: Task,
    settings: ResolvedSettings,
    backend: Backend,
    before: Sequence[Message] = (),
) -> str:
    """Return the whole prompt of an item; `before` are the previous turns."""
    if settings.style == "chat":
        return backend.chat(messages_of(item, task, settings, before))
    if task.bare:
        return item.question
    if task.scorers:
        return "\n\n".join([*(turn.content for turn in before), request_text(item), ""])
    examples = [_worked(one, task, settings) for one in worked_examples(item, task, settings)]
    opening = [task.instruction] if task.instruction else []
    return "\n\n".join([*opening, *examples, _open_question(item, task, settings)])


def messages_of(
    item: Item, task: Task, settings: ResolvedSettings, before: Sequence[Message] = ()
) -> tuple[Message, ...]:
    """Return the turns of a chat up to the answer; empty if prompts are not chats."""
    if settings.style != "chat":
        return ()
    system = settings.system_prompt
    opening = () if system is None else (Message("system", system),)
    return (*opening, *before, Message("user", _request(item, task, settings)))


def worked_examples(item: Item, task: Task, settings: ResolvedSettings) -> Sequence[Item]:
    """Return format lessons with `same`, or examples of the task with `published`."""
    if not settings.shots:
        return ()
    if settings.style == "few-shot":
        if not task.examples:
            raise UsageError(
                f"the task {task.name!r} has no worked examples for few-shot prompts",
                hint="exclude it with --tasks, use --protocol same, or set --shots 0.",
            )
        return task.examples[: settings.shots]
    lessons = task.lessons or format_lessons(task.kind, options=len(item.options) or 4)
    return lessons[: settings.shots]


def continuations_of(item: Item, task: Task) -> tuple[str, ...]:
    """Return the possible continuations: texts of the options, or their letters if shown."""
    if task.hides_options:
        return tuple(f" {option}" for option in item.options)
    return tuple(f" {letter}" for letter in ascii_uppercase[: len(item.options)])


def request_text(item: Item) -> str:
    """Return the user turn of an item of a task with scorers."""
    return item.request or item.question


def full_response(response: str, settings: ResolvedSettings) -> str:
    """Return the text to grade: if the prompt ended with `Answer:`, that is prepended."""
    return f"{ANSWER}{response}" if _ends_open(settings) else response


def _ends_open(settings: ResolvedSettings) -> bool:
    return settings.style == "plain"


def _question(item: Item, task: Task) -> str:
    lines = [f"Question: {item.question}"]
    if item.options and not task.hides_options:
        if len(item.options) > len(ascii_uppercase):
            raise UsageError(
                f"item {item.id!r} of {task.name!r} has {len(item.options)} options",
                hint="remove the item, or reduce its options to 26.",
            )
        lines += [
            f"{x}) {option}" for x, option in zip(ascii_uppercase, item.options, strict=False)
        ]
    return "\n".join(lines)


def _worked(item: Item, task: Task, settings: ResolvedSettings) -> str:
    answer = item.gold
    if item.options and not task.hides_options:
        answer = ascii_uppercase[item.options.index(item.gold)]
    reasoning = f"\nReasoning: {item.reasoning}" if settings.reasons and item.reasoning else ""
    return f"{_question(item, task)}{reasoning}\n{ANSWER} {answer}"


def _open_question(item: Item, task: Task, settings: ResolvedSettings) -> str:
    reasons = settings.style == "few-shot" and any(example.reasoning for example in task.examples)
    return f"{_question(item, task)}\n{'Reasoning:' if reasons else ANSWER}"


def _request(item: Item, task: Task, settings: ResolvedSettings) -> str:
    """Return the user turn: instruction, answer format and question."""
    if task.scorers:
        return request_text(item)
    form = f'End with a line that is nothing but "{ANSWER} " and {FORMS[task.kind]}.'
    think = "Think step by step. " if settings.reasons else ""
    opening = f"{task.instruction}\n" if task.instruction else ""
    return f"{opening}{think}{form}\n\n{_question(item, task)}"
