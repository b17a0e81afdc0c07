"""Reader for reviews of EvalScope 0.x: one sample for each answer of a review."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.datasets import as_item
from forgetmap.sources.decode import number
from forgetmap.sources.fields import as_count, as_list, as_mapping, as_text, replace_surrogates
from forgetmap.sources.harnesses.evalscope.reviews import message_text
from forgetmap.sources.harnesses.evalscope.templates import LETTERS

# Metrics of 0.x with their names in 1.x.
SAME_METRIC = {"AverageAccuracy": "acc", "WeightedAverageAccuracy": "acc", "Pass@1": "acc"}


def samples_0x(
    row: Mapping[str, Any], log: Log, line: int, problems: Problems, *, texts: bool
) -> Iterator[Sample]:
    """Yield the samples of a row."""
    file, choices = log.files[0], as_list(row.get("choices"))
    raw = as_mapping(row.get("raw_input"))
    if not raw or not choices:
        problems.add(
            file.name, "the row has no raw_input or no choices", line=line, field="choices"
        )
        return
    index = as_count(row.get("index"))
    item = str(index) if index is not None else _digest(raw)
    metrics = as_list(as_mapping(row.get("reviewer_spec")).get("metric"))
    for repeat, choice in enumerate(map(as_mapping, choices)):
        review = as_mapping(choice.get("review"))
        sample = Sample(
            task=log.tasks[0],
            item=item,
            repeat=repeat,
            scores=_scores_0x(review.get("result"), metrics),
            gold=as_text(review.get("gold")),
            answer=as_text(review.get("pred")),
            finish_reason=as_text(choice.get("finish_reason")),
            response=message_text(as_mapping(choice.get("message"))) if texts else None,
            prompt=_prompt_0x(row) if texts else None,
            file=file.name,
            line=line,
        )
        if not sample.scores:
            problems.add(file.name, "a review has no result", line=line, field="review")
        _add_item_0x(sample, raw)
        yield sample


def _digest(raw: Mapping[str, Any]) -> str:
    """Return a hash of the item, for versions before 0.8, which log no index."""
    return blake2b(json.dumps(raw, sort_keys=True).encode(), digest_size=8).hexdigest()


def _scores_0x(result: object, metrics: Sequence[object]) -> list[Score]:
    """Return scores from a mapping, or from a number, which belongs to the first metric."""
    if isinstance(result, dict):
        return [
            Score(replace_surrogates(name), number(value))
            for name, value in result.items()
            if not isinstance(value, list | dict)
        ]
    if result is None or isinstance(result, list):
        return []
    metric = as_text(metrics[0]) if metrics else None
    return [Score(SAME_METRIC.get(metric or "", metric or "acc"), number(result))]


def _add_item_0x(sample: Sample, raw: Mapping[str, Any]) -> None:
    """Set question, options and right answer; some data sets store options by letter."""
    item = as_item(raw)
    sample.question, sample.options = item.question, item.options
    sample.gold = (sample.gold or item.gold) if item.has_gold else None
    lettered = [as_text(raw.get(letter)) for letter in LETTERS]
    lettered = lettered[: lettered.index(None)] if None in lettered else lettered
    if sample.options is None and len(lettered) > 1:
        sample.question = as_text(raw.get("question", raw.get("input"))) or sample.question
        sample.options = [option for option in lettered if option is not None]
    if sample.options:
        sample.choice = sample.answer


def _prompt_0x(row: Mapping[str, Any]) -> str | None:
    data = as_list(as_mapping(row.get("origin_prompt")).get("data"))
    return as_text(data[0]) if data else None
