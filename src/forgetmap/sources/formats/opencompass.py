"""OpenCompass: a document per data set with the details of each example, and one of predictions.

    details until 0.4    {"type": "GEN", "0": {"prompt", "predictions", "references", "correct"}}
    details since 0.4.1  [{"example_abbr": "NAME_0", "pred": [...], "correct": [...]}], one element
                         of each list per replica

Only the totals are in percent. Examples of evaluators that do not tell whether an answer is right
have no score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from forgetmap.sources.adapter import Score
from forgetmap.sources.decode import number
from forgetmap.sources.fields import (
    as_count,
    as_json_text,
    as_list,
    as_mapping,
    as_objects,
    as_text,
)
from forgetmap.sources.files import LogFile, run_folder
from forgetmap.sources.formats.engine import (
    Companion,
    Format,
    LogReading,
    LogRow,
    last_stamp,
)

# In the order in which OpenCompass looks them up.
_FLAGS = ("correct", "is_correct", "cascade_correct")
_ANSWERS = ("predictions", "pred", "prediction")
_GOLDS = ("references", "answer", "answers", "refr", "ref", "gold")
_PROMPTS = ("prompt", "origin_prompt", "question")
_EXAMPLE = {*_FLAGS, *_ANSWERS, *_GOLDS, "origin_prediction"}

_RUNS = re.compile(r"\((\d{1,6}) runs average\)")
_ACCURACY = re.compile(r"accuracy(?: \(\d{1,6} runs average\))?")
_LABEL = "label: "
Example = tuple[str, int, int, Mapping[str, Any]]
"""Item, repeat, number among the predictions (-1: unknown) and content of an answer."""


def _number_of(name: str) -> int | None:
    """Return the number in `NAME_7` or `7`."""
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def _numbered_parts(content: object) -> list[dict[str, Any]]:
    return [as_mapping(value) for key, value in as_mapping(content).items() if key.isdigit()]


def _has_details(file: LogFile) -> bool:
    details = file.peek.first.get("details") if file.peek.shape == "object" else None
    if isinstance(details, list):
        return any("example_abbr" in as_mapping(example) for example in details)
    return any(not _EXAMPLE.isdisjoint(example) for example in _numbered_parts(details))


def _is_predicted(file: LogFile) -> bool:
    names = {name for example in _numbered_parts(file.peek.first) for name in example}
    return "prediction" in names or any(name.startswith(_LABEL) for name in names)


def _data_set(file: LogFile) -> str:
    return PurePosixPath(file.name).name.split(".")[0]


def _predicts(file: LogFile, other: LogFile) -> bool:
    """Whether a file has all or a part of the predictions of a data set, `NAME` or `NAME_2`."""
    folder, other_folder = PurePosixPath(file.name).parent, PurePosixPath(other.name).parent
    task, name = _data_set(file), _data_set(other)
    is_own = name == task or (_number_of(name) is not None and name.rpartition("_")[0] == task)
    return is_own and folder.name == other_folder.name and run_folder(file) == run_folder(other)


def _predictions(reading: LogReading) -> dict[int, dict[str, Any]]:
    """Return predictions by number, continued over the parts, each of which starts at 0."""
    task = _data_set(reading.file)
    files = reading.companions("predictions")
    files = [file for file in files if _data_set(file) == task] or sorted(
        files, key=lambda file: _number_of(_data_set(file)) or 0
    )
    predictions: dict[int, dict[str, Any]] = {}
    offset = 0
    for file in files:
        part = reading.whole(file).values
        by_index = {_number_of(key): as_mapping(value) for key, value in part.items()}
        numbers = [index for index in by_index if index is not None]
        if sorted(numbers) != list(range(len(part))):
            reading.problems.add(file.name, "predictions are missing: their numbers have gaps")
        predictions |= {offset + index: by_index[index] for index in numbers}
        offset += max(numbers, default=-1) + 1
    return predictions


def _rows(reading: LogReading) -> Iterator[LogRow]:
    """Yield the answers to each example, with their predictions."""
    result, predictions = reading.document, _predictions(reading)
    details = result["details"]
    examples = (
        _numbered(reading, details, result.values)
        if isinstance(details, dict)
        else _listed(reading, as_list(details), len(predictions))
    )
    for item, repeat, index, content in examples:
        predicted, origin = predictions.get(index, {}), content.get("origin_prediction")
        labels = _labels(as_mapping(origin)) or _labels(predicted)
        asked = (
            _first(content, _PROMPTS),
            predicted.get("origin_prompt"),
            as_mapping(origin).get("origin_prompt"),
            *(label.get("prompt") for label in labels.values()),
        )
        answer, gold = _plain(_first(content, _ANSWERS)), _plain(_first(content, _GOLDS))
        response = origin if isinstance(origin, str) else predicted.get("prediction")
        prompt = next(filter(None, asked), None)
        yield reading.row(content).adding(
            item=item,
            repeat=repeat,
            question=_question(prompt),
            prompt=prompt,
            gold=_plain(predicted.get("gold")) if gold is None else gold,
            answer=answer,
            choice=answer if labels else None,
            k=len(labels) or None,
            tokens_out=as_count(predicted.get("res_length")),
            response=None if labels else as_text(response),
        )


def _numbered(
    reading: LogReading, details: Mapping[str, Any], result: Mapping[str, Any]
) -> Iterator[Example]:
    """Yield the examples of numbered details, in which one replica follows the other."""
    runs = next((int(match[1]) for match in map(_RUNS.search, result) if match), 1)
    indexes = {name: _number_of(name) for name in details if name != "type"}
    last = max((index for index in indexes.values() if index is not None), default=0)
    size = -(-(last + 1) // max(1, runs))
    for name, index in indexes.items():
        content = details[name]
        if index is None or not isinstance(content, dict):
            reading.problems.add(reading.file.name, f"{name[:60]!r} is no example", field="details")
        else:
            yield str(index % size), index // size, index, content


def _listed(reading: LogReading, details: list[Any], predicted: int) -> Iterator[Example]:
    """Yield the examples of listed details, which have the replicas side by side.

    Each part of a data set numbers its examples from 0.
    """
    names = [as_text(as_mapping(example).get("example_abbr")) or "" for example in details]
    indexes = {name: _number_of(name) for name in names}
    known = [index for index in indexes.values() if index is not None]
    parts = {name.rpartition("_")[0] for name, index in indexes.items() if index is not None}
    # Predictions always start at the first example of the data set.
    starts = 0 in known and sum(index >= len(details) for index in known) <= 1
    for name, example in zip(names, details, strict=True):
        index = indexes[name]
        if index is None:
            message = "an example has no usable name"
            reading.problems.add(reading.file.name, message, field="example_abbr")
            continue
        answers = _unfolded(example)
        size, rest = divmod(predicted, max(len(answers), 1))
        if predicted and (rest or size != len(details)):
            message = f"{predicted} predictions do not match the examples of {name[:60]!r}"
            reading.problems.add(reading.file.name, message)
            size = 0
        is_placed = len(parts) == 1 and starts and index < size
        for repeat, content in enumerate(answers):
            place = repeat * size + index if is_placed else -1
            yield str(index) if len(parts) == 1 else name, repeat, place, content


def _unfolded(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Split an example whose fields are lists into one example per replica."""
    own = {name: value for name, value in example.items() if name != "example_abbr"}
    lists = {name: value for name, value in own.items() if isinstance(value, list)}
    flags = [lists[name] for name in _FLAGS if name in lists]
    count = len(flags[0]) if flags else max(map(len, lists.values()), default=1)
    return [
        {
            name: value[index] if name in lists else value
            for name, value in own.items()
            if name not in lists or index < len(value)
        }
        for index in range(count)
    ]


def _labels(prediction: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels compared by likelihood, if the answer was chosen, not generated."""
    return {
        name.removeprefix(_LABEL): label
        for name, label in prediction.items()
        if "PPL" in as_mapping(label)
    }


def _scores(row: LogRow) -> list[Score]:
    """Return whether the answer is right, and the score of the evaluator if there is one."""
    score = number(row.values.get("score"))
    right = Score("accuracy", number(_first(row.values, _FLAGS)))
    return [right] if score is None else [right, Score("score", score)]


def _first(example: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((example[name] for name in names if example.get(name) is not None), None)


def _plain(value: object) -> str | None:
    """Return a text; of several right answers the first."""
    if isinstance(value, list):
        return _plain(value[0]) if value else None
    return str(value) if isinstance(value, bool) else as_text(value)


def _question(prompt: object) -> str | None:
    """Return the last turn of the user in a chat; a plain prompt as it is."""
    if not isinstance(prompt, list):
        return as_text(prompt)
    turns = [t for t in as_objects(prompt) if str(t.get("role")).upper() in ("HUMAN", "USER")]
    if turns:
        return as_text(turns[-1].get("prompt", turns[-1].get("content")))
    return as_json_text(prompt)


def _state_accuracy(reading: LogReading) -> None:
    """Note the share of right answers, which most evaluators write in percent, others do not."""
    for name, stated in reading.document.values.items():
        if _ACCURACY.fullmatch(name):
            is_small = (number(stated) or 0) <= 1
            reading.state(name, stated, "accuracy", scale=100.0, may_be_percent=is_small)


OPENCOMPASS = Format(
    name="opencompass",
    title="OpenCompass details",
    fields=[("details",)],
    accepts=_has_details,
    beside={
        "predictions": Companion(fields=[()], accepts=_is_predicted, belongs=_predicts),
    },
    rows=_rows,
    preferred=["accuracy", "score"],
    model=lambda head: head.folders[-1] if head.folders[-2] == "results" else None,
    stamp=last_stamp,
    tasks=lambda head: _data_set(head.file),
    scores=_scores,
    totals=_state_accuracy,
)
