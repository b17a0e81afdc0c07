"""EvalScope: one line per reviewed answer, in the order of the answers.

    1.x    {"index", "target", "messages" or "input", "sample_score": {"score": {"value": {...}}}}
    0.x    the raw answer of the model with {"raw_input", "choices": [{"review": ...}]}

`index` is the position after shuffling and limiting, so items are identified by their question.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Sample, Score
from forgetmap.sources.datasets import as_item
from forgetmap.sources.decode import number
from forgetmap.sources.fields import (
    as_count,
    as_list,
    as_mapping,
    as_text,
    replace_surrogates,
)
from forgetmap.sources.files import LogFile, run_folder
from forgetmap.sources.formats.engine import (
    Companion,
    Format,
    Head,
    LogReading,
    LogRow,
    digest,
    first_of,
    last_stamp,
    plain,
)

_USABLE = (None, "success", "fallback", "degraded")
"""Statuses of usable scores; others mean that there is no score, not that it is 0."""
_SAME_METRIC = {"AverageAccuracy": "acc", "WeightedAverageAccuracy": "acc", "Pass@1": "acc"}
"""Metrics of 0.x with their names in 1.x."""

# Template texts around a question, which begins after the last match of these patterns ...
_PATTERNS = {
    "Answer the following": r"Answer the following multiple choice question[^\n]*\n\n"
    r"(?:Question:\n)?",
    "回答下面的": "回答下面的[^\n]*\n\n问题\uff1a",
    "ANSWER:": r"^ANSWER:[^\n]*\n+",
    "答案\uff1a": "^答案\uff1a[^\n]*\n+",
    "Solve the following": r"Solve the following (?:math )?problem step by step\.[^\n]*\n\n",
    "Read the following": r"Read the following function signature and docstring,[^\n]*\n",
    "Answer the question:": r"\AAnswer the question:\n\n",
    "question:\n": r"^question:\n",
    "# Your Task\n": r"^# Your Task\n\n---\n",
}
BEGINNINGS = [(words, re.compile(text, re.MULTILINE)) for words, text in _PATTERNS.items()]
"""Patterns, each with words that every matching text contains."""
# ... and ends before one of these.
ENDINGS = (
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
    if options and target and letters.issuperset(target):
        return _within(query[:start] + "\n"), options
    return _within(query), []


def _within(text: str) -> str:
    """Return the question without the text of the template around it."""
    bare = text.strip()
    if "\n" not in bare:  # templates add at least one line
        return bare
    likely = [pattern for words, pattern in BEGINNINGS if words in text]
    start = max((match.end() for pattern in likely for match in pattern.finditer(text)), default=0)
    ends = [end for end in map(text.rfind, ENDINGS) if end > start]
    return text[start : min(ends, default=len(text))].strip() or bare


def _belongs(file: LogFile, other: LogFile) -> bool:
    """Whether predictions have the same name in the same run."""
    path, other_path = PurePosixPath(file.inside), PurePosixPath(other.inside)
    is_same = (path.name, path.parent.name) == (other_path.name, other_path.parent.name)
    return is_same and run_folder(file) == run_folder(other)


def _is_about(file: LogFile, report: LogFile) -> bool:
    """Whether a report is about a task, in the run of its file of reviews."""
    places = ((report, "reports"), (file, "reviews"))
    runs = {run_folder(one) for one, kind in places if kind in PurePosixPath(one.name).parts[-3:-2]}
    return len(runs) < 2 and _task(file).startswith(str(report.peek.first.get("dataset_name")))


def _task(file: LogFile) -> str:
    return PurePosixPath(file.inside).name.split(".")[0]


def _model(head: Head) -> str | None:
    """Return the model named in reviews, predictions or reports, else the folder's name."""
    names = [head.plain("model"), *(turn.plain("model") for turn in head.parts("messages"))]
    names += [as_text(other.peek.first.get("model")) for other in head.beside["predictions"]]
    of_reports = {as_text(one.peek.first.get("model_name")) for one in head.beside["reports"]}
    names += list(of_reports) if len(of_reports) == 1 else []
    names += [head.folders[-1]] if head.folders[-2] == "reviews" else []
    return next(filter(None, names), None)


def _main(head: Head) -> str | None:
    """Return the main metric of EvalScope: the one that it names, else the first."""
    first = next(iter(as_mapping(head["sample_score.score.value"])), None)
    return head.plain("sample_score.score.main_score_name") or first


def _stamp(head: Head) -> str | None:
    seconds = as_count(head["created"])
    dated = f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d_%H%M%S}" if seconds else None
    return last_stamp(head) or dated


def _state_means(reading: LogReading) -> None:
    """Note the means that reports state for the subset of a file of reviews."""
    (task,), model = reading.log.tasks, reading.log.info.model.name
    folder = PurePosixPath(reading.file.name).parent.name
    for file in reading.companions("reports"):
        report = reading.whole(file)
        subsets = (
            (metric.plain("name") or "", subset)
            for metric in report.parts("metrics")
            for category in metric.parts("categories")
            for subset in category.parts("subsets")
            if report["model_name"] in (model, folder)
        )
        for name, subset in subsets:
            bare = name.removeprefix("mean_") if name.startswith("mean_") else None
            own = _SAME_METRIC.get(name) or bare
            if own and task == f"{report['dataset_name']}_{subset['name']}":
                reading.state(f"report.{name}", subset["score"], own)


def _text(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message, also if its content is a list of parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return as_text(content)
    parts = (as_mapping(part) for part in content)
    texts = (as_text(part.get("text", part.get("reasoning"))) for part in parts)
    return "\n".join(filter(None, texts)) or None


def _reviews(reading: LogReading) -> Iterator[LogRow]:
    """Yield the reviews; those of one item are repeats in the order of their indexes, not lines."""
    failed: dict[int | None, str] = {}
    for file in reading.companions("predictions"):
        for row in reading.lines(file):
            # EvalScope scores the empty answers of failed requests.
            if error := row.plain("model_output.error"):
                failed[as_count(row["index"])] = error
    failed.pop(None, None)
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
    score, index = row.part("sample_score").part("score"), as_count(row["index"])
    if item is None or not score.values:
        row.report_problem("the row has no index or no sample_score", "sample_score")
        return None
    target = as_text(row["target"])
    messages = [as_mapping(message) for message in as_list(row["messages"])]
    answers = [*takewhile(lambda message: message.get("role") == "assistant", messages[::-1])]
    asked = [_text(message) for message in messages if message.get("role") == "user"]
    rendered = (as_text(row["input"]) or "").rpartition("**User**: \n")[2]  # before 1.5, one text
    query = asked[0] if asked else rendered or None
    question, options = (None, []) if query is None else split_question(query, target)
    if query is None:
        row.report_problem("the row has no question", "messages")
    if index is None:
        row.report_problem("the row has no usable index", "index")
    if target is None and row["target"] is not None:
        row.report_problem("the target is not a text", "target")
    before, last = messages[: len(messages) - len(answers)], answers[0] if answers else {}
    # Without the ids of messages, which differ in every run.
    turns = [{name: m.get(name) for name in ("role", "content")} for m in before]
    said = as_text(score["prediction"])
    answer, used = as_text(score["extracted_prediction"]), as_mapping(last.get("perf_metrics"))
    # The rest of the row is not kept until all reviews are known.
    return row.within({"sample_score": row.values["sample_score"]}).adding(
        item=item,
        index=index,
        question=question,
        options=options or None,
        gold=target or None,
        prompt=turns or query,
        answer=answer,
        choice=answer if options else None,
        tokens_in=as_count(used.get("input_tokens")),
        tokens_out=as_count(used.get("output_tokens")),
        response=_text(last) if said is None else said,
    )


def _scores(row: LogRow) -> list[Score]:
    """Return every scalar score, without its value if the status is not usable."""
    score = row.part("sample_score.score")
    values, is_usable = as_mapping(score["value"]), score.plain("status") in _USABLE
    if not values:
        values = {score.plain("main_score_name") or _main(row.reading.head) or "acc": None}
    scores = []
    for name, value in values.items():
        if isinstance(value, list | dict):
            continue
        real = number(value) if is_usable else None
        if real is None and is_usable and value is not None:
            row.report_problem(f"{name} is not a number", "value")
        outcome = None if is_usable else Outcome.ERROR
        scores.append(Score(replace_surrogates(name), real, outcome=outcome))
    return scores


def _error(row: LogRow) -> str | None:
    """Return the error of a judge, if there is no usable score."""
    score = row.part("sample_score.score")
    return None if score.plain("status") in _USABLE else score.plain("judge_summary.error")


def _data_set(row: LogRow) -> str | None:
    """Return the data set of an item of a collection, which mixes data sets."""
    about = row.part("sample_score").within(as_mapping(row["sample_score.sample_metadata"]))
    names = [about.plain(f"collection_info.{name}") for name in ("dataset_name", "subset_name")]
    return "_".join(filter(None, names)) or None


def _companions(predicted: tuple[str, ...]) -> dict[str, Companion]:
    report = ("dataset_name", "model_name", "metrics")
    return {
        "predictions": Companion(fields=[predicted], belongs=_belongs),
        "reports": Companion(fields=[report], belongs=_is_about),
    }


_RUN: dict[str, Any] = {
    "preferred": ["acc", "prompt_level_strict", "prompt_level_strict_acc", "pass@1", "mean_acc"],
    "harness": "evalscope",
    "model": _model,
    "stamp": _stamp,
    "tasks": lambda head: _task(head.file),
    "main": _main,
    "totals": _state_means,
}

EVALSCOPE = Format(
    name="evalscope",
    title="EvalScope 1.x reviews",
    fields=[("index", "sample_score")],
    beside=_companions(("index", "model_output")),
    rows=_reviews,
    task=_data_set,
    scores=_scores,
    error=_error,
    **_RUN,
)


def _choices(reading: LogReading) -> Iterator[LogRow]:
    """Yield the answers of each review of 0.x, which are repeats."""
    for row in reading.lines():
        raw, choices = as_mapping(row["raw_input"]), as_list(row["choices"])
        if not raw or not choices:
            row.report_problem("the row has no raw_input or no choices", "choices")
            continue
        index = as_count(row["index"])
        # Versions before 0.8 log no index.
        item = digest(json.dumps(raw, sort_keys=True)) if index is None else str(index)
        for repeat, choice in enumerate(map(as_mapping, choices)):
            yield row.adding(item=item, repeat=repeat, one=choice)


def _results(row: LogRow) -> list[Score]:
    """Return scores from a mapping, or from a number, which belongs to the first metric."""
    result = row["@one.review.result"]
    if isinstance(result, dict):
        values = {name: v for name, v in result.items() if not isinstance(v, list | dict)}
        return [Score(replace_surrogates(name), number(value)) for name, value in values.items()]
    if result is None or isinstance(result, list):
        row.report_problem("a review has no result", "review")
        return []
    metric = as_text(first_of(row["reviewer_spec.metric"])) or "acc"
    return [Score(_SAME_METRIC.get(metric, metric), number(result))]


def _set_item(row: LogRow, sample: Sample) -> None:
    """Set question, options and right answer; some data sets store options by letter."""
    raw = row["raw_input"]
    item = as_item(raw)
    sample.question, sample.options = item.question, item.options
    sample.gold = (row.plain("@one.review.gold") or item.gold) if item.has_gold else None
    lettered = takewhile(
        lambda text: text is not None, (as_text(raw.get(x)) for x in ascii_uppercase)
    )
    options = [option for option in lettered if option is not None]
    if sample.options is None and len(options) > 1:
        sample.question = as_text(raw.get("question", raw.get("input"))) or sample.question
        sample.options = options
    sample.choice = sample.answer if sample.options else None


EVALSCOPE_0X = Format(
    name="evalscope-0.x",
    title="EvalScope 0.x reviews",
    fields=[("choices", "raw_input", "review_id")],
    beside=_companions(("choices", "raw_input", "answer_id")),
    rows=_choices,
    scores=_results,
    answer=plain("@one.review.pred"),
    finish_reason=plain("@one.finish_reason"),
    prompt=lambda row: as_text(first_of(row["origin_prompt.data"])),
    response=lambda row: _text(as_mapping(row["@one.message"])),
    finish=_set_item,
    **_RUN,
)
