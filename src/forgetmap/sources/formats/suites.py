"""Suites: EvalScope and OpenCompass."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, takewhile
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Score
from forgetmap.sources.datasets import as_item
from forgetmap.sources.decode import number
from forgetmap.sources.fields import as_count, as_json_text, as_list, as_mapping, as_text
from forgetmap.sources.files import LogFile, run_folder
from forgetmap.sources.formats.engine import Companion, Format, Head, LogReading, LogRow
from forgetmap.sources.formats.values import (
    as_time,
    digest,
    is_beside,
    last_stamp,
    plain,
    stem,
)
from forgetmap.sources.messages import last_question, text_of

_USABLE = (None, "success", "fallback", "degraded")
"""Statuses of usable scores; others mean that there is no score, not that it is 0."""
_SAME_METRIC = {"AverageAccuracy": "acc", "WeightedAverageAccuracy": "acc", "Pass@1": "acc"}
"""Metrics of EvalScope 0.x with their names in 1.x."""
# Template texts around a question, which begins after the last match of this pattern ...
_BEGINNINGS = (
    r"Answer the following multiple choice question[^\n]*\n\n(?:Question:\n)?",
    "回答下面的[^\n]*\n\n问题\uff1a",
    r"ANSWER:[^\n]*\n+",
    "答案\uff1a[^\n]*\n+",
    r"Solve the following (?:math )?problem step by step\.[^\n]*\n\n",
    r"Read the following function signature and docstring,[^\n]*\n",
    r"\AAnswer the question:\n\n",
    r"question:\n",
    r"# Your Task\n\n---\n",
)
_BEGINNING = re.compile(f"^(?:{'|'.join(_BEGINNINGS)})", re.MULTILINE)
# ... and ends before one of these.
_ENDINGS = (
    "\nPlease reason step by step",
    "\nRemember to put your answer",
    "\nThink step by step, then write a line",
    "\nOptions:",
    "\n选项\uff1a",
)


def split_question(query: str, target: str | None) -> tuple[str, list[str]]:
    """Return question and options; no options if the target is not one of their letters."""
    start = query.rfind("\nA) ")
    options: list[str] = []
    rest = query[start + 4 :]
    for letter in ascii_uppercase[1:] if start >= 0 else "":
        option, mark, rest = rest.partition(f"\n{letter}) ")
        options.append(option.strip())
        if not mark:
            break
    letters = {*ascii_uppercase[: len(options)], ",", " "}
    is_listed = bool(options and target and letters.issuperset(target))
    text = query[:start] + "\n" if is_listed else query
    bare = text.strip()
    if "\n" in bare:  # templates add at least one line
        begin = max((match.end() for match in _BEGINNING.finditer(text)), default=0)
        ends = [end for end in map(text.rfind, _ENDINGS) if end > begin]
        bare = text[begin : min(ends, default=len(text))].strip() or bare
    return bare, options if is_listed else []


def _is_about(file: LogFile, report: LogFile) -> bool:
    """Whether a report is about a task, in the run of its file of reviews."""
    places = ((report, "reports"), (file, "reviews"))
    runs = {run_folder(one) for one, kind in places if kind in PurePosixPath(one.name).parts[-3:-2]}
    return len(runs) < 2 and stem(file).startswith(str(report.peek.first.get("dataset_name")))


def _reviewed_model(head: Head) -> str | None:
    """Return the model named in reviews, predictions or reports, else the folder's name."""
    names = [head.plain("model"), *(turn.plain("model") for turn in head.parts("messages"))]
    names += [as_text(other.peek.first.get("model")) for other in head.beside["predictions"]]
    of_reports = {as_text(one.peek.first.get("model_name")) for one in head.beside["reports"]}
    names += [*of_reports] if len(of_reports) == 1 else []
    return next(filter(None, names), None) or head.folder_in("reviews")


def _named_main(head: Head) -> str | None:
    """Return the main metric of EvalScope: the one that it names, else the first."""
    first = next(iter(as_mapping(head["sample_score.score.value"])), None)
    return head.plain("sample_score.score.main_score_name") or first


def _state_reported(reading: LogReading) -> None:
    """Note the means that reports state for the subset of a file of reviews."""
    models = (reading.log.info.model.name, PurePosixPath(reading.file.name).parent.name)
    for report in map(reading.whole, reading.companions("reports")):
        for metric in report.parts("metrics") if report["model_name"] in models else ():
            name = metric.plain("name") or ""
            own = _SAME_METRIC.get(name) or name.removeprefix("mean_")
            every = (category.parts("subsets") for category in metric.parts("categories"))
            for subset in chain.from_iterable(every):
                task = f"{report['dataset_name']}_{subset['name']}"
                if reading.log.tasks == (task,) and own != name:
                    reading.state(f"report.{name}", subset["score"], own)


def _reviews(reading: LogReading) -> Iterator[LogRow]:
    """Yield the reviews; those of one item are repeats in the order of their indexes, not lines."""
    # EvalScope scores the empty answers of failed requests.
    failed: dict[int | None, str | None] = {
        as_count(row["index"]): row.plain("model_output.error")
        for row in reading.every("predictions")
    }
    failed[None] = None
    every = [*filter(None, map(_prepared, reading.lines()))]
    indexes: dict[object, set[int]] = defaultdict(set)
    for row in every:
        indexes[row["@item"], row["@question"]].add(row["@index"] or 0)
    for row in every:
        planned = as_count(row["sample_score.generation_index"])
        order = sorted(indexes[row["@item"], row["@question"]]).index(row["@index"] or 0)
        repeat = order if planned is None else planned
        yield row.adding(repeat=repeat, failure=failed.get(row["@index"]))


def _prepared(row: LogRow) -> LogRow | None:
    """Return a review with its item and turns; None if it is not usable."""
    item = row.plain("sample_score.group_id", "sample_score.sample_id", "index")
    score, index, gold = row.part("sample_score.score"), row.count("index"), row.name("target")
    if item is None or not score.values:
        row.report_problem("the row has no index or no sample_score", "sample_score")
        return None
    messages = row.parts("messages")
    answers = [*takewhile(lambda message: message["role"] == "assistant", messages[::-1])]
    asked = [message["content"] for message in messages if message["role"] == "user"]
    rendered = (as_text(row["input"]) or "").rpartition("**User**: \n")[2]  # before 1.5, one text
    query = text_of(asked[0]) if asked else rendered or None
    question, options = (None, []) if query is None else split_question(query, gold)
    if query is None:
        row.report_problem("the row has no question", "messages")
    before = messages[: len(messages) - len(answers)]
    last = answers[0] if answers else row.within({})
    said, answer = (as_text(score[name]) for name in ("prediction", "extracted_prediction"))
    # The rest of the row is not kept until all reviews are known.
    return row.within({"sample_score": row.values["sample_score"]}).adding(
        item=item,
        index=index,
        question=question,
        options=options or None,
        gold=gold or None,
        # Without the ids of messages, which differ in every run.
        prompt=[{name: m[name] for name in ("role", "content")} for m in before] or query,
        answer=answer,
        choice=answer if options else None,
        tokens_in=as_count(last["perf_metrics.input_tokens"]),
        tokens_out=as_count(last["perf_metrics.output_tokens"]),
        response=text_of(last["content"]) if said is None else said,
    )


def _review_scores(row: LogRow) -> list[Score]:
    """Return every scalar score, without its value if the status is not usable."""
    score = row.part("sample_score.score")
    values, is_usable = as_mapping(score["value"]), score.plain("status") in _USABLE
    if not values:
        values = {score.plain("main_score_name") or _named_main(row.reading.head) or "acc": None}
    scores = []
    for name, value in values.items():
        real = number(value) if is_usable else None
        if real is None and is_usable and isinstance(value, str):
            row.report_problem(f"{name} is not a number", "value")
        if not isinstance(value, list | dict):
            scores.append(Score(name, real, outcome=None if is_usable else Outcome.ERROR))
    return scores


def _evalscope(*predicted: str, **values: Any) -> Format:
    """Declare one line per reviewed answer, with predictions and reports of the run."""

    def belongs(file: LogFile, other: LogFile) -> bool:
        names = {PurePosixPath(one.name).name for one in (file, other)}
        return is_beside(file, other) and len(names) == 1

    reported = ("dataset_name", "model_name", "metrics")
    return Format(
        beside={
            "predictions": Companion(fields=[predicted], belongs=belongs),
            "reports": Companion(fields=[reported], belongs=_is_about),
        },
        preferred=["acc", "prompt_level_strict", "prompt_level_strict_acc", "pass@1", "mean_acc"],
        harness="evalscope",
        model=_reviewed_model,
        stamp=lambda head: last_stamp(head) or as_time(head["created"], "%Y%m%d_%H%M%S"),
        tasks=lambda head: stem(head.file),
        main=_named_main,
        totals=_state_reported,
        **values,
    )


EVALSCOPE = _evalscope(
    *("index", "model_output"),
    name="evalscope",
    title="EvalScope 1.x reviews",
    fields=[("index", "sample_score")],
    rows=_reviews,
    # Collections mix data sets.
    task=lambda row: "_".join(
        row.plain(f"sample_score.sample_metadata.collection_info.{name}") or ""
        for name in ("dataset_name", "subset_name")
    ).strip("_"),
    scores=_review_scores,
    error=plain("sample_score.score.judge_summary.error"),
)
"""`{"index", "target", "messages" or "input", "sample_score": {"score": {"value": {...}}}}`; the
index is the position after shuffling and limiting, so items are identified by their question."""


def _choices(reading: LogReading) -> Iterator[LogRow]:
    """Yield the answers of each review of 0.x, which are repeats."""
    for row in reading.lines():
        raw, choices = as_mapping(row["raw_input"]), as_list(row["choices"])
        if not raw or not choices:
            row.report_problem("the row has no raw_input or no choices", "choices")
            continue
        index, item = as_count(row["index"]), as_item(raw)
        if item.options is None:  # some data sets store them by letter
            lettered = (as_text(raw.get(letter)) for letter in ascii_uppercase)
            options = [str(text) for text in takewhile(lambda text: text is not None, lettered)]
            if len(options) > 1:
                item.options = options
                item.question = row.plain("raw_input.question", "raw_input.input") or item.question
        for repeat, choice in enumerate(map(as_mapping, choices)):
            one = row.within(choice)
            answer = one.plain("review.pred")
            yield row.adding(
                # Versions before 0.8 log no index.
                item=digest(json.dumps(raw, sort_keys=True)) if index is None else str(index),
                repeat=repeat,
                result=one["review.result"],
                question=item.question,
                options=item.options,
                gold=(one.plain("review.gold") or item.gold) if item.has_gold else None,
                answer=answer,
                choice=answer if item.options else None,
                finish_reason=one.plain("finish_reason"),
                prompt=row.plain("origin_prompt.data.0", "origin_prompt.data"),
                response=text_of(one["message.content"]) or None,
            )


def _results(row: LogRow) -> list[Score]:
    """Return scores from a mapping, or from a number, which belongs to the first metric."""
    result = row["@result"]
    if isinstance(result, dict):
        values = {name: v for name, v in result.items() if not isinstance(v, list | dict)}
        return [Score(name, number(value)) for name, value in values.items()]
    if result is None or isinstance(result, list):
        row.report_problem("a review has no result", "review")
        return []
    metric = row.plain("reviewer_spec.metric.0", "reviewer_spec.metric") or "acc"
    return [Score(_SAME_METRIC.get(metric, metric), number(result))]


EVALSCOPE_0X = _evalscope(
    *("choices", "raw_input", "answer_id"),
    name="evalscope-0.x",
    title="EvalScope 0.x reviews",
    fields=[("choices", "raw_input", "review_id")],
    rows=_choices,
    scores=_results,
)
"""The raw answer of the model with `{"raw_input", "choices": [{"review": ...}]}`."""

# In the order in which OpenCompass looks them up.
_FLAGS = ("correct", "is_correct", "cascade_correct")
_ANSWERS = ("predictions", "pred", "prediction")
_GOLDS = ("references", "answer", "answers", "refr", "ref", "gold")
_PROMPTS = ("prompt", "origin_prompt", "question")
_EXAMPLE = {*_FLAGS, *_ANSWERS, *_GOLDS, "origin_prediction"}
_RUNS = re.compile(r"\((\d{1,6}) runs average\)")
_ACCURACY = re.compile(r"accuracy(?: \(\d{1,6} runs average\))?")
_LABEL = "label: "


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


def _predicts(file: LogFile, other: LogFile) -> bool:
    """Whether a file has all or a part of the predictions of a data set, `NAME` or `NAME_2`."""
    task, name = stem(file), stem(other)
    is_part = _number_of(name) is not None and name.rpartition("_")[0] == task
    return (name == task or is_part) and is_beside(file, other)


def _predictions(reading: LogReading) -> dict[int, dict[str, Any]]:
    """Return predictions by number, continued over the parts, each of which starts at 0."""
    parts = reading.companions("predictions")
    whole = [file for file in parts if stem(file) == stem(reading.file)]
    predictions: dict[int, dict[str, Any]] = {}
    offset = 0
    for file in whole or sorted(parts, key=lambda file: _number_of(stem(file)) or 0):
        content = reading.whole(file).values
        by_index = {_number_of(key): as_mapping(value) for key, value in content.items()}
        numbers = [index for index in by_index if index is not None]
        if sorted(numbers) != list(range(len(content))):
            reading.problems.add(file.name, "predictions are missing: their numbers have gaps")
        predictions |= {offset + index: by_index[index] for index in numbers}
        offset += max(numbers, default=-1) + 1
    return predictions


def _answered(reading: LogReading) -> Iterator[LogRow]:
    """Yield the answers to each example, with their predictions."""
    predictions, details = _predictions(reading), reading.document["details"]
    is_numbered = isinstance(details, dict)
    for row in _numbered(reading) if is_numbered else _listed(reading, len(predictions)):
        predicted, origin = predictions.get(row["@place"], {}), row["origin_prediction"]
        labels = _labels(as_mapping(origin)) or _labels(predicted)
        asked = (
            _first(row.values, _PROMPTS),
            predicted.get("origin_prompt"),
            as_mapping(origin).get("origin_prompt"),
            *(label.get("prompt") for label in labels),
        )
        answer, gold = (_plain(_first(row.values, names)) for names in (_ANSWERS, _GOLDS))
        response = origin if isinstance(origin, str) else predicted.get("prediction")
        prompt = next(filter(None, asked), None)
        yield row.adding(
            question=last_question(prompt) or as_json_text(prompt),
            prompt=prompt,
            gold=_plain(predicted.get("gold")) if gold is None else gold,
            answer=answer,
            choice=answer if labels else None,
            k=len(labels) or None,
            tokens_out=as_count(predicted.get("res_length")),
            response=None if labels else as_text(response),
        )


def _numbered(reading: LogReading) -> Iterator[LogRow]:
    """Yield the examples of numbered details, in which one replica follows the other."""
    details = reading.document["details"]
    runs = next((int(match[1]) for match in map(_RUNS.search, reading.document.values) if match), 1)
    indexes = {name: _number_of(name) for name in details if name != "type"}
    last = max((index for index in indexes.values() if index is not None), default=0)
    size = -(-(last + 1) // max(1, runs))
    for name, index in indexes.items():
        if index is None or not isinstance(details[name], dict):
            reading.problems.add(reading.file.name, f"{name[:60]!r} is no example", field="details")
        else:
            row = reading.row(details[name])
            yield row.adding(item=str(index % size), repeat=index // size, place=index)


def _listed(reading: LogReading, predicted: int) -> Iterator[LogRow]:
    """Yield the examples of listed details, which have the replicas side by side.

    Each part of a data set numbers its examples from 0.
    """
    details = [as_mapping(example) for example in as_list(reading.document["details"])]
    names = [as_text(example.get("example_abbr")) or "" for example in details]
    indexes = {name: _number_of(name) for name in names}
    known = [index for index in indexes.values() if index is not None]
    parts = {name.rpartition("_")[0] for name, index in indexes.items() if index is not None}
    # Predictions always start at the first example of the data set.
    starts = 0 in known and sum(index >= len(details) for index in known) <= 1
    for name, example in zip(names, details, strict=True):
        index, answers = indexes[name], _unfolded(example)
        if index is None:
            message = "an example has no usable name"
            reading.problems.add(reading.file.name, message, field="example_abbr")
            continue
        size, rest = divmod(predicted, max(len(answers), 1))
        if predicted and (rest or size != len(details)):
            message = f"{predicted} predictions do not match the examples of {name[:60]!r}"
            reading.problems.add(reading.file.name, message)
            size = 0
        is_placed = len(parts) == 1 and starts and index < size
        for repeat, content in enumerate(answers):
            place = repeat * size + index if is_placed else -1
            item = str(index) if len(parts) == 1 else name
            yield reading.row(content).adding(item=item, repeat=repeat, place=place)


def _unfolded(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Split an example whose fields are lists into one example per replica."""
    lists = {name: value for name, value in example.items() if isinstance(value, list)}
    flags = [len(lists[name]) for name in _FLAGS if name in lists]
    return [
        {
            name: value[index] if name in lists else value
            for name, value in example.items()
            if name not in lists or index < len(value)
        }
        for index in range(flags[0] if flags else max(map(len, lists.values()), default=1))
    ]


def _labels(prediction: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the labels compared by likelihood, if the answer was chosen, not generated."""
    return [label for label in prediction.values() if "PPL" in as_mapping(label)]


def _flagged(row: LogRow) -> list[Score]:
    """Return whether the answer is right, and the score of the evaluator if there is one."""
    score = number(row["score"])
    right = Score("accuracy", number(_first(row.values, _FLAGS)))
    return [right] if score is None else [right, Score("score", score)]


def _first(example: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((example[name] for name in names if example.get(name) is not None), None)


def _plain(value: object) -> str | None:
    """Return a text; of several right answers the first."""
    if isinstance(value, list):
        return _plain(value[0]) if value else None
    return str(value) if isinstance(value, bool) else as_text(value)


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
    rows=_answered,
    model=lambda head: head.folder_in("results"),
    stamp=last_stamp,
    tasks=lambda head: stem(head.file),
    scores=_flagged,
    totals=_state_accuracy,
)
"""A document per data set with the details of each example, and one of predictions:

    until 0.4    {"type": "GEN", "0": {"prompt", "predictions", "references", "correct"}}
    since 0.4.1  [{"example_abbr": "NAME_0", "pred": [...], "correct": [...]}], one element of each
                 list per replica

Only the totals are in percent. Examples of evaluators that do not tell whether an answer is right
have no score."""
