"""The engine that reads declared formats: rows in a file, described by a `Format`.

Values of a format are dotted paths of fields, lists of paths of which the first with a value
counts, functions of the row, or whole numbers. A field of the wrong type is reported and counts as
absent. Names with `@` are those that `rows` adds to a row; a value that is not declared is taken
from there: `@gold` is the gold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal

from forgetmap.errors import UnreadableError
from forgetmap.records import (
    HarnessInfo,
    ModelInfo,
    Outcome,
    RunInfo,
    TaskInfo,
    TrainingInfo,
)
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import document, number, rows, small_document
from forgetmap.sources.fields import Fields, as_mapping, as_text, replace_surrogates
from forgetmap.sources.files import LogFile, nearest_files

Value = str | Sequence[str] | int | Callable[[Any], Any] | None
"""Where a value of a row or run is."""
Names = Sequence[tuple[str, ...]]
"""Alternatives, each with field names that must all be there."""
_RUN_VALUES = (
    "run_id", "model", "revision", "version", "created", "stamp", "decoding", "seed", "step",
    "tasks", "main", "shots", "task_version", "metrics", "form", "harness",
)  # fmt: skip
_OF_ROWS: dict[str, Value] = {"item": "@item", "task": "@task", "failure": "@failure"}
KINDS: Mapping[str, str] = {
    "repeat": "count", "question": "text", "options": "texts", "gold": "text",
    "gold_index": "count", "choice": "text", "answer": "text", "k": "count", "category": "text",
    "tags": "text", "cluster": "name", "tokens_in": "count", "tokens_out": "count",
    "finish_reason": "text", "logprob_answer": "number", "logprob_gold": "number",
    "prompt": "json_text", "response": "text", "material": "text", "error": "json_text",
}  # fmt: skip
"""Values of a sample, each with the type of its field (a method of `Fields`)."""


class LogRow(Fields):
    """A row of a log, or an object inside it; the same problem is reported once."""

    reading: LogReading

    def __init__(
        self, values: Mapping[str, Any], file: LogFile, line: int | None, problems: Problems
    ) -> None:
        super().__init__(values, file, line, problems)
        self.reported: set[tuple[str, str | None]] = set()
        self.added: frozenset[str] = frozenset()
        """Names of the values that `rows` added."""

    def __getitem__(self, path: str) -> Any:
        """Return the value at a dotted path (`choices.0.text`), of any type; None without one."""
        if path in self.values or "." not in path:
            return self.values.get(path)
        value: Any = self.values
        for name in path.split("."):
            if isinstance(value, list):
                value = value[int(name)] if name.isdecimal() and int(name) < len(value) else None
            else:
                value = as_mapping(value).get(name)
        return value

    def report_problem(self, message: str, field: str | None = None) -> None:
        """Report a problem, unless it was reported for another value of this row."""
        if (message, field) not in self.reported:
            self.reported.add((message, field))
            super().report_problem(message, field)

    def within(self, values: Mapping[str, Any]) -> LogRow:
        """Return an object inside this one."""
        row = LogRow.__new__(LogRow)
        vars(row).update(vars(self), values=values)
        return row

    def adding(self, **extra: Any) -> LogRow:
        """Return this row with further values under `@NAME`."""
        row = self.within({**self.values, **{f"@{name}": v for name, v in extra.items()}})
        row.added = self.added.union(extra)
        return row

    def part(self, name: str) -> LogRow:
        """Return a field that is itself an object, by its dotted path; empty if it is absent."""
        first, _, rest = name.partition(".")
        part: LogRow = super().part(first)  # type: ignore[assignment]  # made by `within`
        return part.part(rest) if rest else part

    def parts(self, name: str) -> list[LogRow]:  # type: ignore[override]
        """Return the objects in a field that is a list; other elements are ignored."""
        return super().parts(name)  # type: ignore[return-value]

    def plain(self, *paths: str) -> str | None:
        """Return the first of these values that is a text or number, as text."""
        return next(filter(None, (as_text(self[path]) for path in paths)), None)

    def any(self, *paths: str) -> Any:
        """Return the first of these values, of any type."""
        return next((value for path in paths if (value := self[path]) is not None), None)

    def find(self, value: Value, kind: str) -> Any:
        """Return a declared value, checked by the method `kind` of `Fields`."""
        if isinstance(value, str):
            home, dot, name = value.rpartition(".")
            return getattr(self.part(home) if dot else self, kind)(name)
        if callable(value):
            return value(self)
        if value is None or isinstance(value, int):
            return value
        found = (self.find(path, kind) for path in value)
        return next((one for one in found if one is not None), None)


@dataclass(frozen=True, kw_only=True)
class Companion:
    """Files that belong to a file with rows.

    Attributes:
        fields: field names of these files.
        accepts: whether a file with these fields is one of them.
        belongs: whether a file (second) belongs to a file with rows (first), by names or content;
            None for the only one in its folder, else in the nearest folder above.
        nearest: whether only the first one that belongs in the nearest folder counts.
        or_only: whether the only candidate belongs to the only file with rows in any case.
    """

    fields: Names
    accepts: Callable[[LogFile], bool] | None = None
    belongs: Callable[[LogFile, LogFile], bool] | None = None
    nearest: bool = False
    or_only: bool = False

    def knows(self, file: LogFile) -> bool:
        """Whether a file is one of these, by its content."""
        is_alike = any(file.peek.has(*names) for names in self.fields)
        return is_alike and (self.accepts is None or self.accepts(file))

    def of(
        self, file: LogFile, others: Sequence[LogFile], known: Sequence[LogFile]
    ) -> list[LogFile]:
        """Return those of these companions that belong to a file with rows."""
        if self.or_only and len(known) == len(others) == 1:
            return list(others)
        fitting = [other for other in others if not self.belongs or self.belongs(file, other)]
        if self.belongs and not self.nearest:
            return fitting
        near = nearest_files(file, fitting, alone=len(known) == 1)
        return near[:1] if self.nearest or len(near) == 1 else []


@dataclass(frozen=True, kw_only=True)
class RowScore:
    """One score per row.

    Attributes:
        metric: name of the metric.
        value: the number; by default the field with the name of the metric.
        scorer: who scored, if anyone is named.
        low: the worst value, which becomes 0.
        high: the best value, which becomes 1; None keeps numbers as they are.
        labels: values outside the scale that mean a score or an outcome.
    """

    metric: str
    value: Value = None
    scorer: Value = None
    low: float = 0.0
    high: float | None = None
    labels: Mapping[float, float | Outcome] = field(default_factory=dict)

    def __call__(self, row: LogRow) -> list[Score]:
        """Return the score of a row."""
        path = self.value or self.metric
        value, outcome = row.find(path, "number"), None
        if value in self.labels:
            label = self.labels[value]
            value, outcome = (None, label) if isinstance(label, Outcome) else (label, None)
        elif self.high is not None and value is not None:
            if self.low <= value <= self.high:
                value = (value - self.low) / (self.high - self.low)
            else:
                scale = f"from {self.low:g} to {self.high:g}"
                row.report_problem(f"expected {self.metric} {scale}, not {value:g}", str(path))
                value = None
        return [Score(self.metric, value, row.find(self.scorer, "text") or "default", outcome)]


class Format:
    """A log format, declared.

    Args:
        name: name of the adapter.
        title: display name.
        fields: field names that identify a file.
        item: id of a row.
        scores: the field with the score, a `RowScore`, or a function that returns scores.
        accepts: whether a file with these fields is one of them; None for all.
        beside: files that belong to a file with rows, by a name of their own.
        rows: yields the rows, if they are not simply the rows of the file.
        apart: fields that name the models, or `@task`, if a file has a log for each.
        preferred: metrics to compare if there is no main metric.
        about: metadata of the run: name of a companion, `document` for the file itself, or a
            function of the head; values of the run are fields of this object. By default, the
            fullest of the first rows.
        task: task of a row. A row without it is unusable if this is a path, and otherwise belongs
            to the task of the log.
        failure: error of a row whose scores count as missing.
        finish: changes a sample after all its values are set.
        totals: calls `LogReading.state` for each total that the log states.
        values: further values of samples (the fields of `Sample`) and of the run: `run_id`,
            `model`, `revision`, `version`, `created`, `stamp` (time in a sortable form), `seed`,
            `step`, `task_version`, `shots`; and functions of the head that return `decoding`,
            `metrics`, the `tasks` of the log, the `main` metric (with `:SCORER`), the `form` of the
            format or the `harness`; the last four can be texts.
    """

    def __init__(  # noqa: PLR0913  # all but a few are left out
        self,
        *,
        name: str,
        title: str,
        fields: Names,
        scores: str | Callable[[LogRow], list[Score]],
        accepts: Callable[[LogFile], bool] | None = None,
        beside: Mapping[str, Companion] | None = None,
        rows: Callable[[LogReading], Iterable[LogRow]] | None = None,
        apart: Sequence[str] = (),
        preferred: Sequence[str] = (),
        about: str | Callable[[Head], Mapping[str, Any]] = "",
        finish: Callable[[LogRow, Sample], None] | None = None,
        totals: Callable[[LogReading], None] | None = None,
        **values: Value,
    ) -> None:
        unknown = values.keys() - KINDS.keys() - _OF_ROWS.keys() - set(_RUN_VALUES)
        if unknown:
            raise TypeError(f"a format has no {', '.join(sorted(unknown))}")
        self.name, self.title, self.fields, self.rows = name, title, fields, rows
        self.own, self.beside = Companion(fields=fields, accepts=accepts), beside or {}
        self.scores = RowScore(metric=scores) if isinstance(scores, str) else scores
        self.apart, self.preferred, self.about = apart, preferred, about
        self.finish, self.totals, self.values = finish, totals, _OF_ROWS | values
        self.columns = [(name, values[name]) for name in values if name in KINDS]
        self.undeclared = frozenset(KINDS.keys() - values.keys())

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return the logs among these files, recognised by their first rows."""
        known = [file for file in files if self.own.knows(file)]
        if not known:
            return []
        others = [file for file in files if file not in known]
        beside = {name: [*filter(kind.knows, others)] for name, kind in self.beside.items()}
        logs: list[Log] = []
        for file in known:
            own = {name: kind.of(file, beside[name], known) for name, kind in self.beside.items()}
            logs += self._logs(Head(self, file, own, known))
        return logs

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield the samples of a log, one or more per row."""
        reading = LogReading(self, log, problems)
        part = log.notes["part"]
        for row in reading.rows():
            parts = self._parts(row)
            if part is not None and parts == [None]:
                row.report_problem("the row has no model")
            elif part in parts and (sample := self._sample(row, texts=texts)) is not None:
                reading.tasks.add(sample.task)
                yield sample
        if self.totals is not None:
            self.totals(reading)

    def _parts(self, row: LogRow) -> list[str | None]:
        """Return the names of the logs that a row belongs to; None if nothing names them."""
        return [*filter(None, map(row.plain, self.apart))] or [None]

    def _logs(self, head: Head) -> Iterator[Log]:
        """Yield the logs in a file; with `apart`, there may be several."""
        files = (head.file, *(other for own in head.beside.values() for other in own))
        log = Log(self.name, files, notes={"part": None})
        every = LogReading(self, log, Problems()).rows() if self.apart else ()
        named = dict.fromkeys(part for row in every for part in self._parts(row))
        parts: Sequence[str | None] = [*filter(None, named)] or [None]
        say = head.declared
        stated, form = say("tasks") or (), self.title + (say("form") or "")
        for part in parts:
            model, tasks = (None, part) if "@task" in self.apart and part else (part, stated)
            names = tuple(map(replace_surrogates, [tasks] if isinstance(tasks, str) else tasks))
            info = self._info(head, model, names, alone=len(parts) == 1)
            notes = {"part": part, "parts": len(parts)}
            stamp = say("stamp") or info.created
            yield Log(self.name, files, info, names, stamp, format=form, notes=notes)

    def _info(self, head: Head, model: str | None, tasks: Sequence[str], *, alone: bool) -> RunInfo:
        say = head.declared
        main, _, scorer = (say("main") or "").partition(":")
        task = TaskInfo(
            version=say("task_version"),
            n_shot=say("shots", "count"),
            main_metric=main or None,
            main_scorer=scorer or None,
        )
        seed, step = say("seed", "count"), say("step", "count")
        decoding = say("decoding") or {}
        return RunInfo(
            run_id=say("run_id") if alone else None,
            model=ModelInfo(name=model or say("model"), revision=say("revision")),
            harness=HarnessInfo(name=say("harness") or self.name, version=say("version")),
            decoding={replace_surrogates(name): value for name, value in decoding.items()},
            seeds=[] if seed is None else [seed],
            created=say("created"),
            training=None if step is None else TrainingInfo(step=step),
            tasks={} if task == TaskInfo() else dict.fromkeys(tasks, task),
            metrics=say("metrics") or {},
        )

    def _sample(self, row: LogRow, *, texts: bool) -> Sample | None:
        """Return the sample of a row; None, and a problem, if it has no id or no task."""
        places, tasks = self.values, row.reading.log.tasks
        item, task = row.find(places["item"], "name"), row.find(places["task"], "text")
        if not task and len(tasks) == 1 and (callable(places["task"]) or places["task"] == "@task"):
            (task,) = tasks
        if not item or not task:
            missing = places["task" if item else "item"]
            named = isinstance(missing, str) and missing[0] != "@"
            if not row.reported:
                row.report_problem(f"the row has no {missing if named else 'id and no question'}")
            return None
        scores = self.scores(row)
        sample = Sample(task, item, scores, repeat=None, file=row.file.name, line=row.line)
        columns = [*self.columns, *((n, f"@{n}") for n in row.added & self.undeclared)]
        for name, value in columns:
            if texts or name not in ("prompt", "response", "material"):
                setattr(sample, name, row.find(value, KINDS[name]))
        failure = row.find(places["failure"], "json_text")
        if failure is not None:
            sample.error = failure
            sample.scores = [Score(s.metric, None, s.scorer, Outcome.ERROR) for s in scores]
        if self.finish is not None:
            self.finish(row, sample)
        return sample


class Head(LogRow):
    """What is known about the logs in a file before they are read: the metadata (`about`).

    Attributes:
        path: path of the file below the input.
        folders: names of the folders of the file, the nearest one last.
        first: the fullest of the first rows.
        beside: companions by their names.
        known: all files of the format.
    """

    def __init__(
        self,
        form: Format,
        file: LogFile,
        beside: Mapping[str, Sequence[LogFile]],
        known: Sequence[LogFile] = (),
    ) -> None:
        super().__init__({}, file, None, Problems())
        self.form, self.beside, self.known = form, beside, known
        self.path = PurePosixPath(file.inside)
        self.folders = ("", "", *PurePosixPath(file.name).parts[:-1])
        self.first = self.within(file.peek.first)
        self.values = file.peek.first
        if callable(form.about):
            self.values = form.about(self)
        elif form.about:
            files = [file] if form.about == "document" else beside[form.about]
            self.values = small_document(next(iter(files), None))

    def named(self, *patterns: str) -> dict[str, str]:
        """Return the groups of the first of these patterns that is in the path."""
        matches = (re.search(pattern, str(self.path)) for pattern in patterns)
        groups = next((match.groupdict() for match in matches if match), {})
        return {name: replace_surrogates(text) for name, text in groups.items() if text}

    def folder_in(self, kind: str) -> str | None:
        """Return the folder of the file if it is in one of this name."""
        return self.folders[-1] if self.folders[-2] == kind else None

    def declared(self, name: str, kind: str = "text") -> Any:
        """Return a value that the format declares for a run."""
        value = self.form.values.get(name)
        is_constant = isinstance(value, str) and name in {"tasks", "main", "form", "harness"}
        return value if is_constant else self.find(value, kind)


class LogReading:
    """A log while it is read.

    Attributes:
        tasks: tasks of the samples so far.
        seen: counts what a format must recognise when it comes again.
        own: what the functions of a format note for each other.
    """

    def __init__(self, form: Format, log: Log, problems: Problems) -> None:
        self.form, self.log, self.problems, self.file = form, log, problems, log.files[0]
        self.tasks: set[str] = set()
        self.seen: Counter[object] = Counter()
        self.own: dict[str, Any] = {}

    def row(
        self, values: Mapping[str, Any], line: int | None = None, file: LogFile | None = None
    ) -> LogRow:
        """Return an object of this log as a row."""
        row = LogRow(values, file or self.file, line, self.problems)
        row.reading = self
        return row

    def rows(self) -> Iterable[LogRow]:
        """Return the rows of this log, and of others in its file."""
        return self.form.rows(self) if self.form.rows else self.lines()

    def lines(self, file: LogFile | None = None) -> Iterator[LogRow]:
        """Yield the objects of a file, by default of the one with the rows."""
        for line, values in rows(file or self.file, self.problems):
            yield self.row(values, line, file)

    @cached_property
    def document(self) -> LogRow:
        """The object in the file with the rows."""
        return self.whole(self.file)

    def whole(self, file: LogFile) -> LogRow:
        """Return the object in a file; empty, and a problem, if the file is damaged."""
        try:
            return self.row(as_mapping(document(file)), None, file)
        except UnreadableError as error:
            self.problems.add(file.name, error.message)
            return self.row({}, None, file)

    @cached_property
    def head(self) -> Head:
        """What was known when the log was recognised."""
        return Head(self.form, self.file, {n: self.companions(n) for n in self.form.beside})

    def companions(self, name: str) -> list[LogFile]:
        """Return the companions of a name."""
        return [file for file in self.log.files[1:] if self.form.beside[name].knows(file)]

    def every(self, name: str) -> Iterator[LogRow]:
        """Yield the rows of all companions of a name."""
        return (row for file in self.companions(name) for row in self.lines(file))

    def state(
        self,
        field: str,
        value: object,
        metric: str | None = None,
        kind: Literal["sum", "mean"] = "mean",
        **more: Any,
    ) -> None:
        """Note a total that the log states for its only task, if it is a number."""
        known = number(value)
        if known is not None and len(self.tasks) == 1:
            (task,) = self.tasks
            self.problems.totals.append(StatedTotal(task, field, known, kind, metric, **more))
