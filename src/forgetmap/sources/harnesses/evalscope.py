"""EvalScope: one line per reviewed answer, in the order the answers came.

    1.x    {"index", "target", "messages" or "input", "sample_score": {"score": {"value": {...}}}}
    0.x    the answer of the model as it came, with {"raw_input", "choices": [{"review": ...}]}

`index` is a place after shuffling and limiting: what makes an item the same is what was asked.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.datasets import as_item
from forgetmap.sources.decode import number, rows, small_document
from forgetmap.sources.fields import (
    as_count,
    as_json_text,
    as_list,
    as_mapping,
    as_objects,
    as_text,
    replace_surrogates,
)
from forgetmap.sources.files import LogFile, run_folder

REVIEWED, REVIEWED_0X = ("index", "sample_score"), ("choices", "raw_input", "review_id")
PREDICTED, PREDICTED_0X = ("index", "model_output"), ("choices", "raw_input", "answer_id")
REPORT = ("dataset_name", "model_name", "metrics")

# Statuses of a score that may be used; others mean that there is none, not that it is 0.
USABLE = ("success", "fallback", "degraded")
# Names of 0.x that mean the same as one of 1.x.
SAME_METRIC = {"AverageAccuracy": "acc", "WeightedAverageAccuracy": "acc", "Pass@1": "acc"}

# Words of the templates around a question. What is asked begins after the last beginning ...
BEGINNINGS = (
    re.compile(r"Answer the following multiple choice question[^\n]*\n\n(?:Question:\n)?"),
    re.compile("回答下面的[^\n]*\n\n问题\uff1a"),
    re.compile("^(?:ANSWER:|答案\uff1a)[^\n]*\n+", re.MULTILINE),
    re.compile(r"Solve the following (?:math )?problem step by step\.[^\n]*\n\n"),
    re.compile(r"Read the following function signature and docstring,[^\n]*\n"),
    re.compile(r"\AAnswer the question:\n\n"),
    re.compile(r"^question:\n", re.MULTILINE),
    re.compile(r"^# Your Task\n\n---\n", re.MULTILINE),
)
# ... and ends before one of these.
ENDINGS = (
    "\nPlease reason step by step",
    "\nRemember to put your answer",
    "\nThink step by step, then write a line",
    "\nOptions:",
    "\n选项\uff1a",
)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_USER = "**User**: \n"
_STAMP = re.compile(r"(?<!\d)\d{8}_\d{6}(?!\d)")


class EvalScope:
    """Reviews of EvalScope, with its predictions and reports where they lie beside them."""

    name = "evalscope"
    preferred: Sequence[str] = (
        "acc", "prompt_level_strict", "prompt_level_strict_acc", "pass@1", "mean_acc",
    )  # fmt: skip

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """One log per file of reviews."""
        reports = [file for file in files if file.peek.has(*REPORT)]
        predicted = [f for f in files if f.peek.has(*PREDICTED) or f.peek.has(*PREDICTED_0X)]
        reviewed = [f for f in files if f.peek.has(*REVIEWED) or f.peek.has(*REVIEWED_0X)]
        predicted = [file for file in predicted if file not in reviewed]
        return [_log(file, predicted, reports) for file in reviewed]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """One sample per review; in 0.x one per answer of a review."""
        file = log.files[0]
        if log.notes["is_0x"]:
            for line, row in rows(file, problems):
                yield from _samples_0x(row, log, line, problems, texts=texts)
            problems.totals += _totals(log)
            return
        failed = _failed(log, problems)
        answers: dict[tuple[str, str | None], list[tuple[int, Sample]]] = defaultdict(list)
        for line, row in rows(file, problems):
            sample = _sample(row, log, line, problems, texts=texts)
            if sample is not None:
                index = as_count(row.get("index"))
                if index is None:
                    problems.add(file.name, "the row has no usable index", line=line, field="index")
                if index in failed:
                    _fail(sample, failed[index])
                answers[sample.item, sample.question].append((index or 0, sample))
        for of_item in answers.values():
            yield from _numbered(of_item)
        problems.totals += _totals(log)


def _log(file: LogFile, predicted: Sequence[LogFile], reports: Sequence[LogFile]) -> Log:
    """The predictions of a file of reviews bear its name, in a folder beside of the same run."""
    inside = PurePosixPath(file.inside)
    is_0x = not file.peek.has(*REVIEWED)
    own = [
        other
        for other in predicted
        if PurePosixPath(other.inside).name == inside.name
        and PurePosixPath(other.inside).parent.name == inside.parent.name
        and run_folder(other) == run_folder(file)
    ]
    task = inside.name.split(".")[0]
    model = _model(file, own, reports)
    return Log(
        "evalscope",
        (file, *own, *[report for report in reports if _is_about(report, task)]),
        RunInfo(
            model=ModelInfo(name=model),
            harness=HarnessInfo(name="evalscope"),
            tasks={task: TaskInfo(main_metric=_main_metric(file.peek.first))},
        ),
        (task,),
        _stamp(file),
        format=f"EvalScope {'0.x' if is_0x else '1.x'} reviews",
        notes={"is_0x": is_0x},
    )


def _totals(log: Log) -> Iterator[StatedTotal]:
    """Means in the reports that belong to a file of reviews: those of its subset."""
    task = log.tasks[0]
    for file in log.files[1:]:
        report = small_document(file) if file.peek.has(*REPORT) else {}
        for metric in as_objects(report.get("metrics")):
            name = as_text(metric.get("name")) or ""
            own = SAME_METRIC.get(name) or (name.removeprefix("mean_") if "mean_" in name else None)
            for category in as_objects(metric.get("categories")):
                for subset in as_objects(category.get("subsets")):
                    mean = number(subset.get("score"))
                    is_own = task == f"{report.get('dataset_name')}_{subset.get('name')}"
                    if own and is_own and mean is not None:
                        yield StatedTotal(task, f"report.{name}", mean, "mean", own)


def _is_about(report: LogFile, task: str) -> bool:
    return task.startswith(str(report.peek.first.get("dataset_name")))


def _model(file: LogFile, predicted: Sequence[LogFile], reports: Sequence[LogFile]) -> str | None:
    """The model as answers, predictions or reports name it, else the folder of the reviews."""
    first = file.peek.first
    messages = map(as_mapping, as_list(first.get("messages")))
    names = [as_text(first.get("model")), *(as_text(m.get("model")) for m in messages)]
    names += [as_text(other.peek.first.get("model")) for other in predicted]
    of_reports = {as_text(report.peek.first.get("model_name")) for report in reports}
    names += list(of_reports) if len(of_reports) == 1 else []
    *_, kind, folder, _ = ("", "", *PurePosixPath(file.name).parts)
    names += [folder] if kind == "reviews" else []
    return next(filter(None, names), None)


def _main_metric(first: Mapping[str, Any]) -> str | None:
    """What EvalScope itself takes: the metric it names, else the first one."""
    score = as_mapping(as_mapping(first.get("sample_score")).get("score"))
    name = as_text(score.get("main_score_name"))
    return name or next(iter(as_mapping(score.get("value"))), None)


def _stamp(file: LogFile) -> str | None:
    stamps = _STAMP.findall(file.name)
    if stamps:
        return str(stamps[-1])
    seconds = as_count(file.peek.first.get("created"))
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d_%H%M%S}" if seconds else None


def _failed(log: Log, problems: Problems) -> dict[int | None, str]:
    """Which requests failed, by place; their empty answers were scored all the same."""
    errors: dict[int | None, str] = {}
    for file in log.files[1:]:
        if file.peek.has(*PREDICTED):
            for _, row in rows(file, problems):
                error = as_text(as_mapping(row.get("model_output")).get("error"))
                if error:
                    errors[as_count(row.get("index"))] = error
    return errors


def _numbered(answers: Sequence[tuple[int, Sample]]) -> Iterator[Sample]:
    """Answers to one item, repeats in the order of their places and not of their lines."""
    groups = sorted({group for group, _ in answers})
    for group, sample in answers:
        if sample.repeat is None:
            sample.repeat = groups.index(group)
        yield sample


def _item_id(row: Mapping[str, Any]) -> str | None:
    """The group of repeated answers, else the place."""
    score = as_mapping(row.get("sample_score"))
    ids = (score.get("group_id"), score.get("sample_id"), row.get("index"))
    return next(filter(None, map(as_text, ids)), None)


def _sample(
    row: Mapping[str, Any], log: Log, line: int, problems: Problems, *, texts: bool
) -> Sample | None:
    file, about = log.files[0], as_mapping(row.get("sample_score"))
    item, score = _item_id(row), as_mapping(about.get("score"))
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
    """Add what the conversation says; returns what was asked."""
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
        sample.response = _content(last) if answers else None
    return question


def _task(about: Mapping[str, Any], log: Log) -> str:
    """A collection holds items of many data sets and says of each where it is from."""
    collected = as_mapping(as_mapping(about.get("sample_metadata")).get("collection_info"))
    names = (as_text(collected.get("dataset_name")), as_text(collected.get("subset_name")))
    return "_".join(filter(None, names)) or log.tasks[0]


def _scores(score: Mapping[str, Any], log: Log, line: int, problems: Problems) -> list[Score]:
    """Every scalar; no value where the status says that there is none."""
    values, status = as_mapping(score.get("value")), as_text(score.get("status"))
    usable = status is None or status in USABLE
    main = as_text(score.get("main_score_name")) or log.info.tasks[log.tasks[0]].main_metric
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
    """What was asked first, and the answers at the end; before 1.5 the input is one text."""
    questions = [_content(message) for message in messages if message.get("role") == "user"]
    answers: list[Mapping[str, Any]] = []
    for message in reversed(messages):
        if message.get("role") != "assistant":
            break
        answers.insert(0, message)
    if questions:
        return questions[0], answers
    text = as_text(rendered)
    return (text.rpartition(_USER)[2] if text else None), answers


def _content(message: Mapping[str, Any]) -> str | None:
    """The text of a message, also if it is made of parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return as_text(content)
    parts = (as_mapping(part) for part in content)
    texts = (as_text(part.get("text", part.get("reasoning"))) for part in parts)
    return "\n".join(filter(None, texts)) or None


def _prompt(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The messages without their ids, which are drawn anew in every run."""
    return as_json_text([{name: m.get(name) for name in ("role", "content")} for m in messages])


def _add_item(sample: Sample, query: str | None, target: str | None) -> None:
    sample.gold = target or None
    if query is None:
        return
    question, options = _without_template(query)
    if options and target and set(target) <= {*LETTERS[: len(options)], ",", " "}:
        sample.question, sample.options, sample.choice = question, options, sample.answer
    else:
        sample.question = _within(query)


def _without_template(text: str) -> tuple[str, list[str]]:
    """The bare question and its options, `A) ...` and so on at the end."""
    start = text.rfind("\nA) ")
    if start < 0:
        return _within(text), []
    rest, options = text[start:], []
    for letter, following in pairwise(LETTERS):
        own = rest.removeprefix(f"\n{letter}) ")
        end = own.find(f"\n{following}) ")
        options.append((own if end < 0 else own[:end]).strip())
        if end < 0:
            break
        rest = own[end:]
    return _within(text[:start] + "\n"), options


def _within(text: str) -> str:
    """What is asked, without the words of the template around it."""
    start = max(
        (match.end() for pattern in BEGINNINGS for match in pattern.finditer(text)), default=0
    )
    ends = [end for end in (text.rfind(ending) for ending in ENDINGS) if end > start]
    return text[start : min(ends, default=len(text))].strip() or text.strip()


def _samples_0x(
    row: Mapping[str, Any], log: Log, line: int, problems: Problems, *, texts: bool
) -> Iterator[Sample]:
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
            response=_content(as_mapping(choice.get("message"))) if texts else None,
            prompt=_prompt_0x(row) if texts else None,
            file=file.name,
            line=line,
        )
        if not sample.scores:
            problems.add(file.name, "a review has no result", line=line, field="review")
        _add_item_0x(sample, raw)
        yield sample


def _digest(raw: Mapping[str, Any]) -> str:
    """Versions before 0.8 log no place; the row itself tells items apart."""
    return blake2b(json.dumps(raw, sort_keys=True).encode(), digest_size=8).hexdigest()


def _scores_0x(result: object, metrics: Sequence[object]) -> list[Score]:
    """A bare value under the first metric that is named, or several by name; lists are none."""
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
    """The row of the data set; some have their options under their letters."""
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
