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
from typing import Any, Self

from forgetmap.errors import UnreadableError
from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo, TrainingInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import document, number, rows, small_document
from forgetmap.sources.fields import Fields, as_list, as_mapping, as_text, replace_surrogates
from forgetmap.sources.files import LogFile, nearest_files

Value = str | Sequence[str] | int | Callable[[Any], Any] | None
"""Where a value of a row or run is."""
Names = Sequence[tuple[str, ...]]
"""Alternatives, each with field names that must all be there."""
Beside = Mapping[str, Sequence[LogFile]]
"""Companions by the names that a format gives them."""
_RUN_VALUES = (
    "run_id", "model", "revision", "version", "created", "stamp", "decoding", "seeds", "step",
    "tasks", "main", "shots", "task_version", "metrics", "form", "harness",
)  # fmt: skip
_OF_ROWS: dict[str, Value] = {"item": "@item", "task": "@task", "failure": "@failure"}
KINDS: Mapping[str, str] = {
    "repeat": "count", "question": "text", "options": "texts", "gold": "text",
    "gold_index": "count", "choice": "text", "answer": "text", "k": "count", "category": "text",
    "tags": "text", "cluster": "name", "seed": "count", "tokens_in": "count",
    "tokens_out": "count", "finish_reason": "text", "logprob_answer": "number",
    "logprob_gold": "number", "prompt": "json_text", "response": "text", "material": "text",
    "error": "json_text",
}  # fmt: skip
"""Values of a sample, each with the type of its field (a method of `Fields`)."""


class LogRow(Fields):
    """A row of a log, or an object inside it; `added` are the names of what `rows` added."""

    reading: LogReading
    added: frozenset[str] = frozenset()

    def __init__(
        self, values: Mapping[str, Any], file: LogFile, line: int | None, problems: Problems
    ) -> None:
        super().__init__(values, file, line, problems)
        self.reported: set[tuple[str, str | None]] = set()

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

    def adding(self, **extra: Any) -> Self:
        """Return this row with further values under `@NAME`."""
        row = self.within({**self.values, **{f"@{name}": v for name, v in extra.items()}})
        row.added = self.added.union(extra)
        return row

    def part(self, name: str) -> Self:
        """Return a field that is itself an object, by its dotted path; empty if it is absent."""
        first, _, rest = name.partition(".")
        part = super().part(first)
        return part.part(rest) if rest else part

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
        if isinstance(value, Sequence):
            found = (self.find(path, kind) for path in value)
            return next((one for one in found if one is not None), None)
        return value(self) if callable(value) else value


def any_file(_: LogFile) -> bool:
    """Accept every file that has the fields."""
    return True


@dataclass(frozen=True, kw_only=True)
class Companion:
    """Files that belong to a file with rows: those in its folder, else in the nearest one above."""

    fields: Names
    accepts: Callable[[LogFile], bool] = any_file
    """Whether a file with these fields is one of them."""
    belongs: Callable[[LogFile, LogFile], bool] | None = None
    """Whether a file (second) belongs to a file with rows (first), by names or content, wherever it
    is; by default a file counts that is the only one in its folder."""

    def knows(self, file: LogFile) -> bool:
        """Whether a file is one of these, by its content."""
        return any(file.peek.has(*names) for names in self.fields) and self.accepts(file)

    def of(self, file: LogFile, others: Sequence[LogFile], *, alone: bool) -> list[LogFile]:
        """Return those of these companions that belong to a file with rows."""
        if self.belongs is None:
            near = nearest_files(file, others, alone=alone)
            return near if len(near) == 1 else []
        fitting = [other for other in others if self.belongs(file, other)]
        return nearest_files(file, fitting, alone=True)


@dataclass(frozen=True, kw_only=True)
class RowScore:
    """One score per row."""

    metric: str
    value: Value = None
    """The number; by default the field with the name of the metric."""
    scorer: Value = None
    """Who scored, if anyone is named."""
    low: float = 0.0
    high: float | None = None
    """The best value, which becomes 1, as `low` becomes 0; None keeps numbers as they are."""
    labels: Mapping[float, float | None] = field(default_factory=dict)
    """Values outside the scale that mean one on it, or None, that scoring failed."""

    def __call__(self, row: LogRow) -> list[Score]:
        """Return the score of a row."""
        path = self.value or self.metric
        found = row.find(path, "number")
        value = self.labels.get(found, found)
        outcome = Outcome.ERROR if value is None and found is not None else None
        if self.high is not None and value is not None:
            if not self.low <= value <= self.high:
                scale = f"from {self.low:g} to {self.high:g}"
                row.report_problem(f"expected {self.metric} {scale}, not {value:g}", str(path))
            share = (value - self.low) / (self.high - self.low)
            value = share if 0 <= share <= 1 else None
        return [Score(self.metric, value, row.find(self.scorer, "text") or "default", outcome)]


class Format:
    """A log format, declared.

    Args:
        fields: field names that identify a file.
        scores: the field with the score, a `RowScore`, or a function that returns scores.
        beside: files that belong to a file with rows, by a name of their own.
        rows: yields the rows, if they are not simply the rows of the file.
        apart: fields that name the models, or `@task`, if a file has a log for each.
        about: metadata of the run: name of a companion, `document` for the file itself, or a
            function of the head; by default, the fullest of the first rows.
        finish: changes a sample after all its values are set.
        totals: calls `LogReading.state` for each total that the log states.
        values: values of a row: `item`, `task` (a row without it is unusable if this is a path, and
            else belongs to the task of the log), `failure` (an error due to which scores count as
            missing) and fields of `Sample`; values of the run in its metadata: `run_id`, `model`,
            `revision`, `version`, `created`, `stamp` (time in a sortable form), `seeds`, `step`,
            `task_version`, `shots`; functions of the head that return `decoding` or `metrics`; and
            such functions or texts for the `tasks` of the log, the `main` metric (with `:SCORER`),
            the `form` of the format and the `harness`.
    """

    def __init__(  # noqa: PLR0913  # all but a few are left out
        self,
        *,
        name: str,
        title: str,
        fields: Names,
        scores: str | Callable[[LogRow], list[Score]],
        accepts: Callable[[LogFile], bool] = any_file,
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
        self.name, self.title, self.fields = name, title, fields
        self.rows: Callable[[LogReading], Iterable[LogRow]] = rows or LogReading.lines
        self.own, self.beside = Companion(fields=fields, accepts=accepts), beside or {}
        self.scores = RowScore(metric=scores) if isinstance(scores, str) else scores
        self.apart, self.preferred, self.about = apart, preferred, about
        self.finish, self.totals, self.values = finish, totals, _OF_ROWS | values
        self.columns = [(name, values[name]) for name in values if name in KINDS]
        self.undeclared = frozenset(KINDS.keys() - values.keys())

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return the logs among these files, recognised by their first rows."""
        known = [file for file in files if self.own.knows(file)]
        others = [file for file in files if file not in known] if known else []
        kinds = [(name, kind, [*filter(kind.knows, others)]) for name, kind in self.beside.items()]
        logs: list[Log] = []
        for file in known:
            own = {name: kind.of(file, alike, alone=len(known) == 1) for name, kind, alike in kinds}
            logs += self._logs(Head(self, file, own, known))
        return logs

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield the samples of a log, one or more per row."""
        reading = LogReading(self, log, problems)
        part = log.notes["part"]
        for row in self.rows(reading):
            parts = self._parts(row)
            if part is not None and parts == [None]:
                row.report_problem("the row has no model")
            elif part in parts and (sample := self._sample(row, texts=texts)) is not None:
                reading.tasks.add(sample.task)
                yield sample
        if self.totals is not None:
            self.totals(reading)

    def _parts(self, row: LogRow) -> list[str | None]:
        return [*filter(None, map(row.plain, self.apart))] or [None]

    def _logs(self, head: Head) -> Iterator[Log]:
        files = (head.file, *(other for own in head.beside.values() for other in own))
        log = Log(self.name, files, notes={"part": None, "beside": head.beside})
        every = self.rows(LogReading(self, log, Problems())) if self.apart else ()
        named = dict.fromkeys(part for row in every for part in self._parts(row))
        parts: Sequence[str | None] = [*filter(None, named)] or [None]
        say = head.declared
        main, _, scorer = (say("main") or "").partition(":")
        metric = {"main_metric": main or None, "main_scorer": scorer or None}
        task = TaskInfo(version=say("task_version"), n_shot=say("shots", "count"), **metric)
        seed, step = say("seeds", "count"), say("step", "count")
        for part in parts:
            is_task = "@task" in self.apart and part is not None
            tasks: Any = part if is_task else say("tasks") or ()
            names = tuple(map(replace_surrogates, [tasks] if isinstance(tasks, str) else tasks))
            info = RunInfo(
                run_id=say("run_id") if len(parts) == 1 else None,
                model=ModelInfo(
                    name=(None if is_task else part) or say("model"), revision=say("revision")
                ),
                harness=HarnessInfo(name=say("harness") or self.name, version=say("version")),
                decoding=say("decoding") or {},
                seeds=[] if seed is None else [seed],
                created=say("created"),
                training=None if step is None else TrainingInfo(step=step),
                tasks={} if task == TaskInfo() else dict.fromkeys(names, task),
                metrics=say("metrics") or {},
            )
            notes = {**log.notes, "part": part, "parts": len(parts)}
            form, stamp = self.title + (say("form") or ""), say("stamp") or info.created
            yield Log(self.name, files, info, names, stamp, format=form, notes=notes)

    def _sample(self, row: LogRow, *, texts: bool) -> Sample | None:
        """Return the sample of a row; None, and a problem, if it has no id or no task."""
        places, tasks = self.values, row.reading.log.tasks
        item, task = row.find(places["item"], "name"), row.find(places["task"], "text")
        if not task and len(tasks) == 1 and (callable(places["task"]) or places["task"] == "@task"):
            (task,) = tasks
        if not item or not task:
            place = places["task" if item else "item"]
            field = place if isinstance(place, str) and place[0] != "@" else None
            if not row.reported:
                row.report_problem(f"the row has no {field or 'id and no question'}", field)
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

    `known` are all files of the format, `first` is the fullest of the first rows of this one.
    """

    def __init__(
        self, form: Format, file: LogFile, beside: Beside, known: Sequence[LogFile] = ()
    ) -> None:
        super().__init__({}, file, None, Problems())
        self.form, self.beside, self.known = form, beside, known
        self.path = PurePosixPath(replace_surrogates(file.inside))
        self.folders = ("", "", *PurePosixPath(replace_surrogates(file.name)).parts[:-1])
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
        return {name: text for name, text in groups.items() if text}

    def folder_in(self, kind: str) -> str | None:
        """Return the folder of the file if it is in one of this name."""
        return self.folders[-1] if self.folders[-2] == kind else None

    def declared(self, name: str, kind: str = "text") -> Any:
        """Return a value that the format declares for a run."""
        value = self.form.values.get(name)
        is_constant = isinstance(value, str) and name in {"tasks", "main", "form", "harness"}
        return value if is_constant else self.find(value, kind)


class LogReading:
    """A log while it is read."""

    def __init__(self, form: Format, log: Log, problems: Problems) -> None:
        self.form, self.log, self.problems, self.file = form, log, problems, log.files[0]
        self.beside: Beside = log.notes["beside"]
        self.tasks: set[str] = set()
        self.seen: Counter[object] = Counter()
        """Counts of what a format must recognise when it comes again."""
        self.own: dict[str, Any] = {}
        """What the functions of a format note for each other."""

    def row(
        self, values: Mapping[str, Any], line: int | None = None, file: LogFile | None = None
    ) -> LogRow:
        """Return an object of this log as a row."""
        row = LogRow(values, file or self.file, line, self.problems)
        row.reading = self
        return row

    def lines(self, file: LogFile | None = None) -> Iterator[LogRow]:
        """Yield the objects of a file, by default of the one with the rows."""
        for line, values in rows(file or self.file, self.problems):
            yield self.row(values, line, file)

    def inside(self, path: str) -> Iterator[LogRow]:
        """Yield the objects in a list of the document; other elements are problems."""
        for place, values in enumerate(as_list(self.document[path])):
            if isinstance(values, dict):
                yield self.row(values)
            else:
                self.document.report_problem("expected an object", f"{path}.{place}")

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
        return Head(self.form, self.file, self.beside)

    def every(self, name: str) -> Iterator[LogRow]:
        """Yield the rows of all companions of a name."""
        return (row for file in self.beside[name] for row in self.lines(file))

    def state(self, field: str, value: object, metric: str | None = None, **more: Any) -> None:
        """Note a total, by default a mean, that the log states for its only task, if a number."""
        known = number(value)
        if known is not None and len(self.tasks) == 1:
            total = {"metric": metric, "kind": "mean", **more}
            self.problems.totals.append(StatedTotal(min(self.tasks), field, known, **total))
