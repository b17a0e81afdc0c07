"""All prompts of a run, created and checked before the first answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from forgetmap.errors import UsageError
from forgetmap.evaluation.backends.base import Backend, Decoding, Message
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.journal import Answer, Key
from forgetmap.evaluation.prompts import continuations_of, messages_of, prompt_of
from forgetmap.evaluation.settings import ResolvedSettings, Settings, resolve
from forgetmap.scoring import grade_response, load_scorer


@dataclass(frozen=True, slots=True)
class Job:
    """One prompt to be answered."""

    task: Task
    item: Item
    repeat: int
    prompt: str
    seed: int
    messages: tuple[Message, ...] = ()

    @property
    def key(self) -> Key:
        """Key of the answer: task, item and repeat."""
        return self.task.name, self.item.id, self.repeat

    def is_weighed(self, settings: ResolvedSettings) -> bool:
        """Whether its options are compared by log-likelihood."""
        return settings.by_likelihood and bool(self.item.options) and not self.task.scorers

    def decoding(self, settings: ResolvedSettings) -> Decoding:
        """Return the decoding of its answer."""
        return settings.free if self.task.scorers else settings.decoding


def make_jobs(suite: Suite, settings: ResolvedSettings, backend: Backend, salt: str) -> list[Job]:
    """Create one job per item and repeat, in the order of the suite.

    Args:
        suite: tasks and items.
        settings: settings of the run.
        backend: backend that formats chats and counts tokens.
        salt: separates the random numbers of this run from those of others: two models that share
            them would agree by chance.

    Raises:
        UsageError: there are no items, two have the same id, or one has no possible right answer.
    """
    jobs = []
    for task in suite.tasks:
        _check_scorers(task, suite)
        items = task.load()
        _check_ids(task, items)
        for item in items:
            _check(task, item)
            prompt = prompt_of(item, task, settings, backend)
            messages = messages_of(item, task, settings)
            for repeat in range(settings.repeats):
                seed = _seed(settings.seed + repeat, salt, task.name, item.id)
                jobs.append(Job(task, item, repeat, prompt, seed, messages))
    if not jobs:
        raise UsageError(
            f"the suite {suite.name!r} has no items", hint="choose other tasks with --tasks."
        )
    return jobs


def check_lengths(jobs: Sequence[Job], settings: ResolvedSettings, backend: Backend) -> list[int]:
    """Return the number of tokens of every prompt.

    Raises:
        UsageError: some prompts leave no room for an answer in the context. Backends that only
            estimate token counts report this for each request instead.
    """
    lengths = _prompt_lengths(jobs, backend)
    long = _too_long_jobs(jobs, lengths, settings, backend)
    if long:
        length, worst = max(long, key=lambda pair: pair[0])
        tasks = sorted({job.task.name for _, job in long})
        raise UsageError(
            f"{len(long):,} prompts exceed the context length of {backend.context:,} tokens, in "
            f"{', '.join(tasks[:3])}{' and others' if len(tasks) > 3 else ''}; item "
            f"{worst.item.id!r} has {length:,}",
            hint="skip these items with --skip-too-long, exclude the tasks with --tasks, or use "
            "fewer examples: --shots 0.",
        )
    return lengths


def fit_suite(
    suite: Suite,
    settings: Settings | Sequence[Settings] | None,
    backends: Iterable[Backend],
) -> Suite:
    """Return the suite without items that exceed the context length of one of the models.

    Args:
        suite: tasks and items.
        settings: settings of all models, or one per model.
        backends: the models; a generator may open one after the other. All get the same items, so
            that they can be compared.
    """
    too_long: dict[str, set[str]] = {}
    for index, backend in enumerate(backends):
        one = settings[index] if isinstance(settings, Sequence) else settings
        resolved = resolve(one or Settings(), backend)
        jobs = make_jobs(suite, resolved, backend, "")
        lengths = _prompt_lengths(jobs, backend)
        for _, job in _too_long_jobs(jobs, lengths, resolved, backend):
            too_long.setdefault(job.task.name, set()).add(job.item.id)
    return _leave_out(suite, too_long)


def _leave_out(suite: Suite, items: Mapping[str, set[str]]) -> Suite:
    """Return the suite without these items, by task; second turns are removed with the first."""
    tasks, left_out = [], {}
    for task in suite.tasks:
        ids = items.get(task.name, set()) | items.get(task.follows or "", set())
        kept = tuple(item for item in task.load() if item.id not in ids)
        if len(kept) < len(task.load()):
            left_out[task.name] = len(task.load()) - len(kept)
        tasks.append(replace(task, load=partial(tuple, kept)))
    return replace(suite, tasks=tuple(tasks), left_out=left_out)


def _prompt_lengths(jobs: Sequence[Job], backend: Backend) -> list[int]:
    texts = list(dict.fromkeys(job.prompt for job in jobs))
    lengths = dict(zip(texts, backend.count_tokens(texts), strict=True))
    return [lengths[job.prompt] for job in jobs]


def _too_long_jobs(
    jobs: Sequence[Job], lengths: Sequence[int], settings: ResolvedSettings, backend: Backend
) -> list[tuple[int, Job]]:
    """Return jobs that do not fit, with their lengths; none if lengths are only estimates."""
    if not getattr(backend, "counts_exactly", True):
        return []
    pairs = zip(lengths, jobs, strict=True)
    return [(size, job) for size, job in pairs if size + _least(job, settings) > backend.context]


def _least(job: Job, settings: ResolvedSettings) -> int:
    """Return the minimum number of tokens of an answer."""
    if job.is_weighed(settings):
        return max(len(text.split()) for text in continuations_of(job.item, job.task))
    return 1


def _check(task: Task, item: Item) -> None:
    """Refuse an item that cannot be graded."""
    if task.scorers:
        return
    try:
        grade_response(
            "", gold=item.gold, kind=task.kind, options=item.options, also_right=item.also_right
        )
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(
            f"item {item.id!r} of task {task.name!r} cannot be graded: {error}",
            hint="correct its right answer, or exclude the task with --tasks.",
        ) from error


def _check_scorers(task: Task, suite: Suite) -> None:
    """Check that all scorers and the task that this one continues exist."""
    for name in task.scorers:
        load_scorer(name)
    if task.follows is not None and all(other.name != task.follows for other in suite.tasks):
        raise UsageError(
            f"the task {task.name!r} continues the conversations of {task.follows!r}",
            hint=f"add {task.follows} to --tasks, or remove {task.name}.",
        )


def second_turn(
    job: Job, first: Answer | None, settings: ResolvedSettings, backend: Backend
) -> Job | None:
    """Return a second turn that follows the first; None if that has no answer."""
    if first is None or first.response is None:
        return None
    turns = job.item.material.get("turns") or [""]
    before = [Message("user", str(turns[0])), Message("assistant", first.response)]
    material = {**job.item.material, "first_response": first.response}
    return replace(
        job,
        prompt=prompt_of(job.item, job.task, settings, backend, before),
        messages=messages_of(job.item, job.task, settings, before),
        item=replace(job.item, material=material),
    )


def _check_ids(task: Task, items: Sequence[Item]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise UsageError(
                f"task {task.name!r} has two items {item.id!r}", hint="give each item a unique id."
            )
        seen.add(item.id)


def _seed(seed: int, *parts: str) -> int:
    text = "\x1f".join((str(seed), *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
