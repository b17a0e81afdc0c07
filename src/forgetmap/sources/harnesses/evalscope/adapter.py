"""Adapter for logs of EvalScope: one line per reviewed answer, in the order of the answers.

    1.x    {"index", "target", "messages" or "input", "sample_score": {"score": {"value": {...}}}}
    0.x    the raw answer of the model with {"raw_input", "choices": [{"review": ...}]}

`index` is the position after shuffling and limiting, so items are identified by their question.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, StatedTotal
from forgetmap.sources.columns import SampleColumns
from forgetmap.sources.decode import (
    as_object,
    is_lines,
    number,
    rows,
    small_document,
)
from forgetmap.sources.fields import (
    as_count,
    as_list,
    as_mapping,
    as_objects,
    as_text,
)
from forgetmap.sources.files import LogFile, run_folder
from forgetmap.sources.harnesses.evalscope.legacy import SAME_METRIC, samples_0x
from forgetmap.sources.harnesses.evalscope.plain_rows import (
    COLUMNS,
    decode_review,
    has_repeats,
    plain_review,
)
from forgetmap.sources.harnesses.evalscope.reviews import number_repeats, placed_samples
from forgetmap.sources.typed_lines import (
    TypedLines,
)

REVIEWED, REVIEWED_0X = ("index", "sample_score"), ("choices", "raw_input", "review_id")
PREDICTED, PREDICTED_0X = ("index", "model_output"), ("choices", "raw_input", "answer_id")
REPORT = ("dataset_name", "model_name", "metrics")

_STAMP = re.compile(r"(?<!\d)\d{8}_\d{6}(?!\d)")


class EvalScope:
    """Reviews of EvalScope, with the predictions and reports of the same run if present."""

    name = "evalscope"
    preferred: Sequence[str] = (
        "acc", "prompt_level_strict", "prompt_level_strict_acc", "pass@1", "mean_acc",
    )  # fmt: skip

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file of reviews."""
        reports = [file for file in files if file.peek.has(*REPORT)]
        predicted = [f for f in files if f.peek.has(*PREDICTED) or f.peek.has(*PREDICTED_0X)]
        reviewed = [f for f in files if f.peek.has(*REVIEWED) or f.peek.has(*REVIEWED_0X)]
        predicted = [file for file in predicted if file not in reviewed]
        return [_log(file, predicted, reports) for file in reviewed]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per review; in 0.x one per answer of a review."""
        file = log.files[0]
        if log.notes["is_0x"]:
            for line, row in rows(file, problems):
                yield from samples_0x(row, log, line, problems, texts=texts)
            problems.totals += _totals(log)
            return
        failed = _failed(log, problems)
        answers: list[tuple[int, Sample]] = []
        for line, row in rows(file, problems):
            answers += placed_samples(row, log, line, problems, failed, texts=texts)
        by_item: dict[tuple[str, str | None], list[tuple[int, Sample]]] = defaultdict(list)
        for index, sample in answers:
            by_item[sample.item, sample.question].append((index, sample))
        for of_item in by_item.values():
            number_repeats(of_item)
        # In the order of the lines, as ranges of the file that were read apart are joined.
        yield from (sample for _, sample in answers)
        problems.totals += _totals(log)

    def read_columns(
        self, log: Log, problems: Problems, *, texts: bool
    ) -> Iterator[Sample | SampleColumns]:
        """Yield the same samples as `read`; common reviews as columns if there are no repeats."""
        file = log.files[0]
        is_usual = not log.notes["is_0x"] and is_lines(file)
        if not is_usual or has_repeats(raw for _, raw in file.lines()):
            yield from self.read(log, problems, texts=texts)
            return
        failed = _failed(log, problems)

        def careful(line: int, raw: bytes) -> Iterator[Sample]:
            row = as_object(raw, file, line, problems)
            if row is not None:
                answers = [*placed_samples(row, log, line, problems, failed, texts=texts)]
                number_repeats(answers)
                yield from (sample for _, sample in answers)

        plain = partial(plain_review, task=log.tasks[0], failed=failed, texts=texts)
        lines = TypedLines(file, decode_review, plain, COLUMNS[texts], careful, {})
        yield from lines.samples()
        problems.totals += _totals(log)

    def split_files(self, log: Log) -> Sequence[LogFile]:
        """Return the file of reviews, unless it has repeats or predictions, or is of 0.x."""
        file = log.files[0]
        if log.notes["is_0x"] or not is_lines(file) or has_repeats(file.head.split(b"\n")):
            return ()
        has_predictions = any(other.peek.has(*PREDICTED) for other in log.files[1:])
        return () if has_predictions else (file,)


def _log(file: LogFile, predicted: Sequence[LogFile], reports: Sequence[LogFile]) -> Log:
    """Return the log of a file of reviews; its predictions have the same name in the same run."""
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
    main = _main_metric(file.peek.first)
    return Log(
        "evalscope",
        (file, *own, *[report for report in reports if _is_about(report, file, task, model)]),
        RunInfo(
            model=ModelInfo(name=model),
            harness=HarnessInfo(name="evalscope"),
            tasks={task: TaskInfo(main_metric=main)},
        ),
        (task,),
        _stamp(file),
        format=f"EvalScope {'0.x' if is_0x else '1.x'} reviews",
        notes={"is_0x": is_0x, "main_metric": main},
    )


def _totals(log: Log) -> Iterator[StatedTotal]:
    """Yield the means that reports state for the subset of a file of reviews."""
    task = log.tasks[0]
    for file in log.files[1:]:
        report = small_document(file) if file.peek.has(*REPORT) else {}
        for metric in as_objects(report.get("metrics")):
            name = as_text(metric.get("name")) or ""
            own = SAME_METRIC.get(name) or (
                name.removeprefix("mean_") if name.startswith("mean_") else None
            )
            for category in as_objects(metric.get("categories")):
                for subset in as_objects(category.get("subsets")):
                    mean = number(subset.get("score"))
                    is_own = task == f"{report.get('dataset_name')}_{subset.get('name')}"
                    if own and is_own and mean is not None:
                        yield StatedTotal(task, f"report.{name}", mean, "mean", own)


def _is_about(report: LogFile, file: LogFile, task: str, model: str | None) -> bool:
    """Whether a report is about a task of a model, in the run of its file of reviews."""
    about = report.peek.first
    runs = {_run(report, "reports"), _run(file, "reviews")} - {None}
    return (
        task.startswith(str(about.get("dataset_name")))
        and about.get("model_name") in (model, PurePosixPath(file.name).parent.name)
        and len(runs) < 2
    )


def _run(file: LogFile, kind: str) -> PurePosixPath | None:
    """Return the folder RUN of `RUN/KIND/MODEL/FILE`; None for a file elsewhere."""
    is_placed = PurePosixPath(file.name).parent.parent.name == kind
    return run_folder(file) if is_placed else None


def _model(file: LogFile, predicted: Sequence[LogFile], reports: Sequence[LogFile]) -> str | None:
    """Return the model named in reviews, predictions or reports, else the folder's name."""
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
    """Return the main metric of EvalScope: the one that it names, else the first."""
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
    """Return the errors of failed requests by index; EvalScope scores their empty answers."""
    errors: dict[int | None, str] = {}  # never None, which is looked up for a review without index
    for file in log.files[1:]:
        if file.peek.has(*PREDICTED):
            for _, row in rows(file, problems):
                error = as_text(as_mapping(row.get("model_output")).get("error"))
                index = as_count(row.get("index"))
                if error and index is not None:
                    errors[index] = error
    return errors
