"""Conversion of an Inspect sample, or its summary, into a result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from string import ascii_uppercase
from typing import Any

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Log, Sample, Score
from forgetmap.sources.decode import number
from forgetmap.sources.fields import Fields, as_mapping, as_objects

VALUE = "value"
"""Name of the metric of a scorer that gives one value."""
GRADES = {
    "C": (1.0, Outcome.CORRECT),
    "I": (0.0, Outcome.INCORRECT),
    "P": (0.5, Outcome.PARTIAL),
    "N": (0.0, Outcome.NO_ANSWER),
}
WORDS = {"yes": 1.0, "no": 0.0}
REASONS = {
    "refusal": Outcome.REFUSED,
    "no_response": Outcome.NO_ANSWER,
    "invalid_response_format": Outcome.NO_ANSWER,
}
"""Reason of a score -> outcome."""
LENGTHS = ("token", "context")
"""Limits that truncate an answer."""
CATEGORIES = ("category", "subject")
MAX_ERROR_LENGTH = 10_000
CUT, SHORTENED = "...\n(content truncated)", "..."
"""Endings of truncated texts in summaries: above 5,120 characters, answers above 1,024."""
_ATTACHMENT = "attachment://"

Measure = tuple[str, str]
"""Metric and scorer."""


def as_sample(row: Fields, key: tuple[str, int], log: Log, *, texts: bool) -> Sample:
    """Convert a row; a row without scores gives a sample without scores."""
    item, epoch = key
    options = row.texts("choices") or None
    scored = _scored(row.values, log.notes["measures"])
    answer = _answer(scored, log.notes["measures"])
    gold, gold_index = _gold(row, options)
    sample = Sample(
        task=log.tasks[0],
        item=item,
        repeat=epoch - 1,
        scores=list(_scores(row, scored)),
        question=_question(row),
        options=options,
        gold=gold,
        gold_index=gold_index,
        answer=answer,
        choice=_chosen(answer, options),
        category=_category(row),
        error=_message(row.values.get("error")),
        file=row.file.name,
        line=row.line,
    )
    _count_tokens(sample, row, log.notes["model"])
    _invalidate(sample, row)
    if texts:
        _add_texts(sample, row)
    return sample


def is_cut(summary: Mapping[str, Any]) -> bool:
    """Whether a text of a summary is truncated, or has words in place of images."""
    question, target = summary.get("input"), summary.get("target")
    contents = [message.get("content") for message in as_objects(question)]
    for text in (question, *contents, *(target if isinstance(target, list) else [target])):
        if isinstance(text, str) and text.endswith(CUT):
            return True
    for score in _scored(summary).values():
        answer = score.get("answer")
        if isinstance(answer, str) and answer.endswith(SHORTENED):
            return True
    return any(isinstance(content, list) for content in contents)


def is_thinner(summary: Mapping[str, Any], sample: Mapping[str, Any]) -> bool:
    """Whether a summary lacks the options or answers of its sample, as those of old versions do."""
    if sample.get("choices") and not summary.get("choices"):
        return True
    scores = _scored(summary)
    return any(
        score.get("answer") and not scores.get(name, {}).get("answer")
        for name, score in _scored(sample).items()
    )


def _scores(row: Fields, scored: Mapping[str, dict[str, Any]]) -> Iterator[Score]:
    """Yield every value that is a single number; lists are skipped."""
    limit = row.values.get("limit")
    cut_short = (limit.get("type") if isinstance(limit, dict) else limit) in LENGTHS
    for scorer, score in scored.items():
        value = score.get("value")
        several = value if isinstance(value, dict) else {VALUE: value}
        for metric, part in several.items():
            grade, outcome = _graded(part)
            if isinstance(part, list | dict) or (several is value and _is_label(part, grade)):
                continue
            if _is_label(part, grade):
                row.report_problem(f"not a score: {part!r:.60}", f"scores.{scorer}")
            if not grade:
                outcome = REASONS.get(str(score.get("reason")), outcome)
                outcome = Outcome.TRUNCATED if cut_short and grade is not None else outcome
            yield Score(metric, grade, scorer, outcome)


def _is_label(value: object, grade: float | None) -> bool:
    """Whether a value is a word without a numeric value."""
    return isinstance(value, str) and grade is None and value.strip().lower() not in ("nan", "")


def _graded(value: object) -> tuple[float | None, Outcome | None]:
    if not isinstance(value, str):
        return number(value), None
    if value in GRADES:
        return GRADES[value]
    word = value.strip().lower()
    return WORDS[word] if word in WORDS else number(value), None


def _scored(
    values: Mapping[str, Any], measures: Sequence[Measure] = ()
) -> dict[str, dict[str, Any]]:
    """Return scorer -> score; the first versions had a single score without a name."""
    scores, single = values.get("scores"), values.get("score")
    if isinstance(scores, dict):
        return {name: score for name, score in scores.items() if isinstance(score, dict)}
    name = measures[0][1] if measures else "default"
    return {name: single} if isinstance(single, dict) else {}


def _question(row: Fields) -> str | None:
    """Return the input, or the last message of the user in it."""
    prompt = row.values.get("input")
    if isinstance(prompt, list):
        messages = as_objects(prompt)
        users = [message for message in messages if message.get("role") == "user"]
        prompt = (users or messages or [{}])[-1].get("content")
    text = _content(prompt, row)
    if text is None:
        row.report_problem(f"expected a text or messages, not {prompt!r:.60}", "input")
    elif text.endswith(CUT) or text.startswith(_ATTACHMENT):
        row.report_problem("the question is incomplete in this log", "input")
        return None
    return text


def _content(content: object, row: Fields, *, thoughts: bool = False) -> str | None:
    """Return the text of a message, which may be in parts or in an attachment."""
    if isinstance(content, str):
        return _resolved(content, row)
    if not isinstance(content, list):
        return None
    names = ("reasoning", "text") if thoughts else ("text",)
    texts = (part.get(part["type"]) for part in as_objects(content) if part.get("type") in names)
    return "\n".join(_resolved(text, row) for text in texts if isinstance(text, str))


def _resolved(text: str, row: Fields) -> str:
    kept = row.values.get("attachments")
    if not text.startswith(_ATTACHMENT) or not isinstance(kept, dict):
        return text
    attachment = kept.get(text.removeprefix(_ATTACHMENT))
    return attachment if isinstance(attachment, str) else text


def _gold(row: Fields, options: list[str] | None) -> tuple[str | None, int | None]:
    """Return the gold and its index: letters name options; of other targets the first counts."""
    target = row.values.get("target")
    targets = [target] if isinstance(target, str) else target
    if not isinstance(targets, list) or not all(isinstance(text, str) for text in targets):
        row.report_problem(f"expected a text, not {target!r:.60}", "target")
        return None, None
    indexes = _option_indexes(",".join(targets), options)
    if options and indexes:
        return _joined(indexes, options), indexes[0] if len(indexes) == 1 else None
    return next((text for text in targets if text.strip()), None), None


def _chosen(answer: str | None, options: list[str] | None) -> str | None:
    if not answer or not options:
        return None
    indexes = _option_indexes(answer, options)
    return _joined(indexes, options) if indexes else answer if answer in options else None


def _option_indexes(letters: str, options: list[str] | None) -> list[int]:
    """Return the indices of the options named by letters, as Inspect reads them; else none.

    Numbers follow Z: 1 is the 27th option.
    """
    if not options or (len(letters) > 1 and letters in options):
        return []
    if len(letters) == 1 and (index := ascii_uppercase.find(letters.upper())) >= 0:
        return [index] if index < len(options) else []
    tokens = letters.replace(",", " ").split()
    names = [name for token in tokens for name in ([token] if token.isdecimal() else token)]
    indexes = [
        25 + int(name[:9]) if name.isdecimal() else ascii_uppercase.find(name.upper())
        for name in names
    ]
    known = all(0 <= index < len(options) for index in indexes)
    words = any(
        len(token) > 1 and not token.isdecimal() and not token.isupper() for token in tokens
    )
    return sorted(set(indexes)) if known and not words else []


def _joined(indexes: Sequence[int], options: Sequence[str]) -> str:
    """Join several options in sorted order, so that shuffling changes nothing."""
    return "; ".join(sorted(options[index] for index in indexes))


def _answer(scored: Mapping[str, dict[str, Any]], measures: Sequence[Measure]) -> str | None:
    """Return the answer of the main scorer, else of the first scorer that has one."""
    main = scored.get(measures[0][1], {}) if measures else {}
    for score in (main, *scored.values()):
        answer = score.get("answer")
        if answer and isinstance(answer, str):
            return answer
    return None


def _category(row: Fields) -> str | None:
    metadata = as_mapping(row.values.get("metadata"))
    values = (metadata.get(name) for name in CATEGORIES)
    return next((value for value in values if isinstance(value, str)), None)


def _message(error: object) -> str | None:
    """Return the message of an error; in a summary the error is only the message."""
    message = error.get("message") if isinstance(error, dict) else error
    return None if error is None else str(message)[:MAX_ERROR_LENGTH]


def _count_tokens(sample: Sample, row: Fields, model: str | None) -> None:
    usage = row.part("model_usage")
    if model is not None and model in usage.values:
        used = usage.part(model)
        sample.tokens_in, sample.tokens_out = (
            used.count("input_tokens"),
            used.count("output_tokens"),
        )


def _invalidate(sample: Sample, row: Fields) -> None:
    """Remove the scores of a sample that was marked as invalid."""
    invalidation = row.values.get("invalidation")
    if invalidation is not None:
        reason = as_mapping(invalidation).get("reason")
        sample.error = f"invalidated: {reason or 'no reason given'!s}"
        for score in sample.scores:
            score.value, score.outcome = None, Outcome.UNSCORED


def _add_texts(sample: Sample, row: Fields) -> None:
    output = row.part("output")
    choice = next(iter(as_objects(output.values.get("choices"))), {})
    answer, completion = as_mapping(choice.get("message")), output.text("completion")
    content = _content(answer.get("content"), row, thoughts=True)
    sample.response = content or (_content(completion, row) if completion else content)
    reason = choice.get("stop_reason")
    sample.finish_reason = reason if isinstance(reason, str) else None
    messages = [
        {"role": str(message.get("role")), "content": _content(message.get("content"), row)}
        for message in _prompt_messages(as_objects(row.values.get("messages")))
    ]
    sample.prompt = json.dumps(messages, ensure_ascii=False) if messages else None


def _prompt_messages(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Iterate over the messages before the first one generated by the model."""
    return takewhile(
        lambda message: message.get("role") != "assistant" or message.get("source") == "input",
        messages,
    )
