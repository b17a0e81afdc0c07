"""OpenCompass: a document per data set with the details of each example, and one of predictions.

    details until 0.4    {"type": "GEN", "0": {"prompt", "predictions", "references", "correct"}}
    details since 0.4.1  [{"example_abbr": "NAME_0", "pred": [...], "correct": [...]}], one element
                         of each list per replica

Only the totals are in percent. Examples of evaluators that do not tell whether an answer is right
have no score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from forgetmap.errors import UnreadableError
from forgetmap.records import HarnessInfo, ModelInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import document, number
from forgetmap.sources.fields import (
    as_count,
    as_json_text,
    as_list,
    as_mapping,
    as_objects,
    as_text,
)
from forgetmap.sources.files import LogFile, run_folder

# In the order in which OpenCompass looks them up.
FLAGS = ("correct", "is_correct", "cascade_correct")
ANSWERS = ("predictions", "pred", "prediction")
GOLDS = ("references", "answer", "answers", "refr", "ref", "gold")
PROMPTS = ("prompt", "origin_prompt", "question")
EXAMPLE = {*FLAGS, *ANSWERS, *GOLDS, "origin_prediction"}

_STAMP = re.compile(r"(?<!\d)\d{8}_\d{6}(?!\d)")
_RUNS = re.compile(r"\((\d{1,6}) runs average\)")
_SHARD = re.compile(r"(?P<name>.*)_(?P<number>\d{1,6})")
_ACCURACY = re.compile(r"accuracy(?: \(\d{1,6} runs average\))?")
_LABEL = "label: "


class OpenCompass:
    """Results of OpenCompass with details, and predictions if they exist."""

    name = "opencompass"
    preferred: Sequence[str] = ("accuracy", "score")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per document of results with details."""
        predicted = [file for file in files if _is_predicted(file)]
        return [_log(file, predicted) for file in files if _is_result(file)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per example and replica."""
        file = log.files[0]
        result = _document(file, problems)
        predictions = _predictions(log.files[1:], problems)
        details = result.get("details")
        if isinstance(details, dict):
            examples = _numbered(details, _runs(result), file, problems)
        else:
            examples = _list_examples(as_list(details), len(predictions), file, problems)
        for example in examples:
            predicted = predictions.get(example.number, {})
            yield _sample(log, example, predicted, texts=texts)
        problems.totals += _totals(log.tasks[0], result)


@dataclass(frozen=True, slots=True)
class _Example:
    """An answer to an example.

    Attributes:
        number: number among the predictions; -1 if unknown.
    """

    item: str
    repeat: int
    number: int
    content: Mapping[str, Any]


def _is_result(file: LogFile) -> bool:
    details = file.peek.first.get("details") if file.peek.shape == "object" else None
    if isinstance(details, list):
        return any("example_abbr" in as_mapping(example) for example in details)
    numbered = [value for key, value in as_mapping(details).items() if key.isdigit()]
    return any(not EXAMPLE.isdisjoint(as_mapping(example)) for example in numbered)


def _is_predicted(file: LogFile) -> bool:
    numbered = [as_mapping(value) for key, value in file.peek.first.items() if key.isdigit()]
    names = {name for example in numbered for name in example}
    return "prediction" in names or any(name.startswith(_LABEL) for name in names)


def _log(file: LogFile, predicted: Sequence[LogFile]) -> Log:
    path = PurePosixPath(file.name)
    task, model = path.name.split(".")[0], path.parent.name
    neighbours = [other for other in predicted if run_folder(other) == run_folder(file)]
    own = sorted(
        (other for other in neighbours if _shard(other, task, model) is not None),
        key=lambda other: _shard(other, task, model) or 0,
    )
    unsplit = [other for other in own if _shard(other, task, model) == -1]
    stamps = _STAMP.findall(file.name)
    is_placed = path.parent.parent.name == "results"
    is_listed = isinstance(file.peek.first.get("details"), list)
    return Log(
        "opencompass",
        (file, *(unsplit or own)),
        RunInfo(
            model=ModelInfo(name=model if is_placed else None),
            harness=HarnessInfo(name="opencompass"),
            tasks={task: TaskInfo()},
        ),
        (task,),
        stamps[-1] if stamps else None,
        format=f"OpenCompass details, {'listed' if is_listed else 'numbered'}",
    )


def _totals(task: str, result: Mapping[str, Any]) -> Iterator[StatedTotal]:
    """Yield the share of right answers, which most evaluators write in percent, others do not."""
    for name in result:
        value = number(result[name]) if _ACCURACY.fullmatch(name) else None
        if value is not None:
            yield StatedTotal(
                task,
                name,
                value,
                "mean",
                "accuracy",
                scale=100.0,
                may_be_percent=value <= 1,
            )


def _shard(file: LogFile, task: str, model: str) -> int | None:
    """Return which part of the predictions of a task a file has; -1 for all, None for none."""
    path = PurePosixPath(file.name)
    name = path.name.split(".")[0]
    if path.parent.name != model:
        return None
    if name == task:
        return -1
    match = _SHARD.fullmatch(name)
    return int(match["number"]) if match and match["name"] == task else None


def _document(file: LogFile, problems: Problems) -> dict[str, Any]:
    try:
        return as_mapping(document(file))
    except UnreadableError as error:
        problems.add(file.name, error.message)
        return {}


def _runs(result: Mapping[str, Any]) -> int:
    """Return the number of replicas, from the names of the totals."""
    matches = (_RUNS.search(name) for name in result)
    return max(1, next((int(match[1]) for match in matches if match), 1))


def _numbered(
    details: Mapping[str, Any], runs: int, file: LogFile, problems: Problems
) -> Iterator[_Example]:
    """Yield the examples of numbered details, in which one replica follows the other."""
    indexes = {name: _number_of(name) for name in details if name != "type"}
    last = max((index for index in indexes.values() if index is not None), default=0)
    size = -(-(last + 1) // runs)
    for name, index in indexes.items():
        content = details[name]
        if index is None or not isinstance(content, dict):
            problems.add(file.name, f"{name[:60]!r} is no example", field="details")
        else:
            yield _Example(str(index % size), index // size, index, content)


def _list_examples(
    details: Sequence[Any], predicted: int, file: LogFile, problems: Problems
) -> Iterator[_Example]:
    """Yield the examples of listed details, which have the replicas side by side.

    Each part of a data set numbers its examples from 0.
    """
    names = [as_text(as_mapping(example).get("example_abbr")) or "" for example in details]
    indexes = {name: _number_of(name) for name in names}
    parts = {name.rpartition("_")[0] for name, index in indexes.items() if index is not None}
    is_whole = len(parts) == 1 and _is_whole(indexes.values(), len(details))
    for name, example in zip(names, details, strict=True):
        index = indexes[name]
        if index is None:
            problems.add(file.name, "an example has no usable name", field="example_abbr")
            continue
        answers = _unfolded(example)
        size, rest = divmod(predicted, max(len(answers), 1))
        if predicted and (rest or size != len(details)):
            problems.add(
                file.name, f"{predicted} predictions do not match the examples of {name[:60]!r}"
            )
            size = 0
        for repeat, content in enumerate(answers):
            known = repeat * size + index if is_whole and index < size else -1
            yield _Example(str(index) if len(parts) == 1 else name, repeat, known, content)


def _is_whole(indexes: Iterable[int | None], count: int) -> bool:
    """Whether examples start at the first one of the data set, as predictions always do."""
    known = [index for index in indexes if index is not None]
    beyond = sum(index >= count for index in known)
    return 0 in known and beyond <= 1


def _number_of(name: str) -> int | None:
    """Return the number in `NAME_7` or `7`."""
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def _unfolded(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Split an example whose fields are lists into one example per replica."""
    own = {name: value for name, value in example.items() if name != "example_abbr"}
    lengths = {len(value) for value in own.values() if isinstance(value, list)}
    flags = [own[name] for name in FLAGS if isinstance(own.get(name), list)]
    count = len(flags[0]) if flags else max(lengths, default=1)
    return [
        {
            name: value[index] if isinstance(value, list) and index < len(value) else value
            for name, value in own.items()
            if not isinstance(value, list) or index < len(value)
        }
        for index in range(count)
    ]


def _predictions(files: Sequence[LogFile], problems: Problems) -> dict[int, dict[str, Any]]:
    """Return predictions by number, continued over the parts, each of which starts at 0."""
    predictions: dict[int, dict[str, Any]] = {}
    offset = 0
    for file in files:
        part = _document(file, problems)
        by_index = {_number_of(key): as_mapping(value) for key, value in part.items()}
        numbers = [index for index in by_index if index is not None]
        if sorted(numbers) != list(range(len(part))):
            problems.add(file.name, "predictions are missing: their numbers have gaps")
        predictions |= {offset + index: by_index[index] for index in numbers}
        offset += max(numbers, default=-1) + 1
    return predictions


def _sample(log: Log, example: _Example, predicted: Mapping[str, Any], *, texts: bool) -> Sample:
    content = example.content
    origin = content.get("origin_prediction")
    labels = _labels(as_mapping(origin)) or _labels(predicted)
    prompt = (
        _first(content, PROMPTS) or predicted.get("origin_prompt") or _label_prompt(origin, labels)
    )
    answer, gold = _plain(_first(content, ANSWERS)), _plain(_first(content, GOLDS))
    response = origin if isinstance(origin, str) else predicted.get("prediction")
    return Sample(
        task=log.tasks[0],
        item=example.item,
        repeat=example.repeat,
        scores=_scores(content),
        question=_question(prompt),
        gold=_plain(predicted.get("gold")) if gold is None else gold,
        answer=answer,
        choice=answer if labels else None,
        k=len(labels) or None,
        tokens_out=as_count(predicted.get("res_length")),
        prompt=as_json_text(prompt) if texts else None,
        response=as_text(response) if texts and not labels else None,
        file=log.files[0].name,
    )


def _labels(prediction: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels compared by likelihood, if the answer was chosen, not generated."""
    return {
        name.removeprefix(_LABEL): label
        for name, label in prediction.items()
        if "PPL" in as_mapping(label)
    }


def _scores(example: Mapping[str, Any]) -> list[Score]:
    """Return whether the answer is right, and the score of the evaluator if there is one."""
    flag = next((number(example[name]) for name in FLAGS if example.get(name) is not None), None)
    scores = [Score("accuracy", flag)]
    if number(example.get("score")) is not None:
        scores.append(Score("score", number(example.get("score"))))
    return scores


def _first(example: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((example[name] for name in names if example.get(name) is not None), None)


def _plain(value: object) -> str | None:
    """Return a text; of several right answers the first."""
    if isinstance(value, list):
        return _plain(value[0]) if value else None
    if isinstance(value, bool):
        return str(value)
    return as_text(value)


def _label_prompt(origin: object, labels: Mapping[str, Any]) -> object:
    """Return the prompt of a comparison of labels: the common one, else that of the first."""
    prompt_of_all = as_mapping(origin).get("origin_prompt")
    return prompt_of_all or next(
        (as_mapping(label).get("prompt") for label in labels.values()), None
    )


def _question(prompt: object) -> str | None:
    """Return the last turn of the user in a chat; a plain prompt as it is."""
    if isinstance(prompt, list):
        turns = [t for t in as_objects(prompt) if str(t.get("role")).upper() in ("HUMAN", "USER")]
        if turns:
            return as_text(turns[-1].get("prompt", turns[-1].get("content")))
        return as_json_text(prompt)
    return as_text(prompt)
