"""Reader for reviews of EvalScope 1.x."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import number
from forgetmap.sources.fields import (
    as_count,
    as_json_text,
    as_list,
    as_mapping,
    as_text,
    replace_surrogates,
)
from forgetmap.sources.harnesses.evalscope.templates import split_question

# Statuses of usable scores; others mean that there is no score, not that it is 0.
USABLE = ("success", "fallback", "degraded")
_USER = "**User**: \n"


def number_repeats(answers: Sequence[tuple[int, Sample]]) -> None:
    """Number the answers to one item as repeats in the order of their indexes, not of lines."""
    indexes = sorted({index for index, _ in answers})
    for index, sample in answers:
        if sample.repeat is None:
            sample.repeat = indexes.index(index)


def item_id(row: Mapping[str, Any]) -> str | None:
    """Return the id of an item: that of the group of its repeats, else its own, else the index."""
    score = as_mapping(row.get("sample_score"))
    ids = (score.get("group_id"), score.get("sample_id"), row.get("index"))
    return next(filter(None, map(as_text, ids)), None)


def placed_samples(
    row: Mapping[str, Any],
    log: Log,
    line: int,
    problems: Problems,
    failed: Mapping[int | None, str],
    *,
    texts: bool,
) -> Iterator[tuple[int, Sample]]:
    """Yield the index and the sample of a review, if it is usable."""
    sample = _sample(row, log, line, problems, texts=texts)
    if sample is None:
        return
    index = as_count(row.get("index"))
    if index is None:
        name = log.files[0].name
        problems.add(name, "the row has no usable index", line=line, field="index")
    if index in failed:
        _fail(sample, failed[index])
    yield index or 0, sample


def _sample(
    row: Mapping[str, Any], log: Log, line: int, problems: Problems, *, texts: bool
) -> Sample | None:
    file, about = log.files[0], as_mapping(row.get("sample_score"))
    item, score = item_id(row), as_mapping(about.get("score"))
    if item is None or not score:
        problems.add(
            file.name, "the row has no index or no sample_score", line=line, field="sample_score"
        )
        return None
    sample = Sample(
        task=_task(about, log),
        item=item,
        repeat=as_count(about.get("generation_index")),
        scores=_scores(score, log, line, problems),
        answer=as_text(score.get("extracted_prediction")),
        file=file.name,
        line=line,
    )
    if any(value.outcome is Outcome.ERROR for value in sample.scores):
        sample.error = as_text(as_mapping(score.get("judge_summary")).get("error"))
    target = as_text(row.get("target"))
    if target is None and row.get("target") is not None:
        problems.add(file.name, "the target is not a text", line=line, field="target")
    if _add_turns(sample, row, target, texts=texts) is None:
        problems.add(file.name, "the row has no question", line=line, field="messages")
    prediction = as_text(score.get("prediction"))
    if texts and prediction is not None:
        sample.response = prediction
    return sample


def _add_turns(
    sample: Sample, row: Mapping[str, Any], target: str | None, *, texts: bool
) -> str | None:
    """Add question, tokens and texts of the conversation; return the question."""
    messages = [as_mapping(message) for message in as_list(row.get("messages"))]
    question, answers = _turns(messages, row.get("input"))
    _add_item(sample, question, target)
    last = answers[-1] if answers else {}
    used = as_mapping(last.get("perf_metrics"))
    sample.tokens_in = as_count(used.get("input_tokens"))
    sample.tokens_out = as_count(used.get("output_tokens"))
    if texts:
        before = messages[: len(messages) - len(answers)]
        sample.prompt = _prompt(before) if before else question
        sample.response = message_text(last) if answers else None
    return question


def _task(about: Mapping[str, Any], log: Log) -> str:
    """Return the data set of an item of a collection, which mixes data sets; else the task."""
    collected = as_mapping(as_mapping(about.get("sample_metadata")).get("collection_info"))
    names = (as_text(collected.get("dataset_name")), as_text(collected.get("subset_name")))
    return "_".join(filter(None, names)) or log.tasks[0]


def _scores(score: Mapping[str, Any], log: Log, line: int, problems: Problems) -> list[Score]:
    """Return every scalar score, without its value if the status is not usable."""
    values, status = as_mapping(score.get("value")), as_text(score.get("status"))
    usable = status is None or status in USABLE
    main = as_text(score.get("main_score_name")) or log.notes["main_metric"]
    scores = []
    for name, value in (values or {main or "acc": None}).items():
        if isinstance(value, list | dict):
            continue
        real = number(value) if usable else None
        if real is None and usable and value is not None:
            problems.add(log.files[0].name, f"{name} is not a number", line=line, field="value")
        scores.append(
            Score(replace_surrogates(name), real, outcome=None if usable else Outcome.ERROR)
        )
    return scores


def _fail(sample: Sample, error: str) -> None:
    sample.error = error
    for score in sample.scores:
        score.value, score.outcome = None, Outcome.ERROR


def _turns(
    messages: Sequence[Mapping[str, Any]], rendered: object
) -> tuple[str | None, Sequence[Mapping[str, Any]]]:
    """Return the first question and the answers at the end; before 1.5 the input is one text."""
    questions = [message_text(message) for message in messages if message.get("role") == "user"]
    count = count_last_answers([message.get("role") for message in messages])
    answers = messages[len(messages) - count :]
    if questions:
        return questions[0], answers
    text = as_text(rendered)
    return (text.rpartition(_USER)[2] if text else None), answers


def count_last_answers(roles: Sequence[object]) -> int:
    """Return how many messages at the end are answers."""
    count = 0
    while count < len(roles) and roles[-1 - count] == "assistant":
        count += 1
    return count


def message_text(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message, also if its content is a list of parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return as_text(content)
    parts = (as_mapping(part) for part in content)
    texts = (as_text(part.get("text", part.get("reasoning"))) for part in parts)
    return "\n".join(filter(None, texts)) or None


def _prompt(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the messages as JSON without their ids, which differ in every run."""
    return as_json_text([{name: m.get(name) for name in ("role", "content")} for m in messages])


def _add_item(sample: Sample, query: str | None, target: str | None) -> None:
    sample.gold = target or None
    if query is None:
        return
    sample.question, options = split_question(query, target)
    if options:
        sample.options, sample.choice = options, sample.answer
