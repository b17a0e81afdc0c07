"""The engine that reads declared formats: rows in a file, described by a `Format`.

    QUIZ = Format(
        name="quiz",
        title="Quiz results",
        fields=[("quiz_id", "points")],
        item="quiz_id",
        scores="points",
        gold="solution.text",
    )

A `Format` is an adapter (adapter.py). Its values are dotted paths of fields, lists of paths of
which the first with a value counts, functions of the row, or whole numbers. A field of the wrong
type is reported and counts as absent. Names with `@` are those that `rows` adds to a row; a value
that is not declared is taken from there: `@gold` is the gold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
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
from forgetmap.sources.fields import Fields, as_json_text, as_mapping, as_text, replace_surrogates
from forgetmap.sources.files import LogFile, nearest_file, nearest_files

Value = str | Sequence[str] | int | Callable[[Any], Any] | None
"""Where a value of a row or run is."""
Names = Sequence[tuple[str, ...]]
"""Alternatives, each with field names that must all be there."""
_STAMP = re.compile(r"(?<!\d)\d{8}_\d{6}(?!\d)")
_RUN_VALUES = (
    "run_id", "model", "revision", "version", "created", "stamp", "decoding", "seed", "step",
    "tasks", "main", "shots", "task_version", "metrics", "form", "harness",
)  # fmt: skip
_KINDS: Mapping[str, str] = {
    "repeat": "count", "question": "text", "options": "texts", "gold": "text",
    "gold_index": "count", "choice": "text", "answer": "text", "k": "count", "category": "text",
    "tags": "text", "cluster": "name", "tokens_in": "count", "tokens_out": "count",
    "finish_reason": "text", "logprob_answer": "number", "logprob_gold": "number",
    "prompt": "json_text", "response": "text", "material": "text", "error": "json_text",
}  # fmt: skip
"""Values of a sample, each with the type of its field (a method of `Fields`)."""
_TEXTS = ("prompt", "response", "material")


class LogRow(Fields):
    """A row of a log, or an object inside it; the same problem is reported once.

    Attributes:
        reading: the log that is read.
        reported: problems of this row, with their fields.
        added: names of the values that `rows` added.
    """

    reading: LogReading

    def __init__(
        self, values: Mapping[str, Any], file: LogFile, line: int | None, problems: Problems
    ) -> None:
        super().__init__(values, file, line, problems)
        self.reported: set[tuple[str, str | None]] = set()
        self.added: frozenset[str] = frozenset()

    def __getitem__(self, path: str) -> Any:
        """Return the value at a dotted path, of any type; None if there is none."""
        if path in self.values:
            return self.values[path]
        home, _, rest = path.partition(".")
        return self.within(as_mapping(self.values.get(home)))[rest] if rest else None

    def report_problem(self, message: str, field: str | None = None) -> None:
        """Report a problem, unless it was reported for another value of this row."""
        if (message, field) not in self.reported:
            self.reported.add((message, field))
            super().report_problem(message, field)

    def within(self, values: Mapping[str, Any]) -> LogRow:
        """Return an object inside this one."""
        row = LogRow(values, self.file, self.line, self._problems)
        row.reported, row.added = self.reported, self.added
        if hasattr(self, "reading"):
            row.reading = self.reading
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
        key: fields that name the item of a row, for companions about single items.
    """

    fields: Names
    accepts: Callable[[LogFile], bool] | None = None
    belongs: Callable[[LogFile, LogFile], bool] | None = None
    nearest: bool = False
    or_only: bool = False
    key: Sequence[str] = ()

    def knows(self, file: LogFile) -> bool:
        """Whether a file is one of these companions, by its content."""
        return _fits(file, self.fields, self.accepts)

    def of(
        self, file: LogFile, others: Sequence[LogFile], known: Sequence[LogFile]
    ) -> list[LogFile]:
        """Return those of these companions that belong to a file with rows."""
        if self.belongs is None:
            nearest = nearest_file(file, others, known)
            return [nearest] if nearest else []
        fitting = [other for other in others if self.belongs(file, other)]
        if self.nearest:
            return nearest_files(file, fitting, alone=len(known) == 1)[:1]
        is_only = self.or_only and len(known) == len(others) == 1
        return list(others) if is_only else fitting


@dataclass(frozen=True, kw_only=True)
class RowScore:
    """One score per row.

    Attributes:
        metric: name of the metric.
        value: the number; by default the field with the name of the metric.
        scorer: who scored; `default` if it has no value.
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
        apart: names the logs of a file that a row belongs to, if it has several.
        apart_is: what they are: models or tasks.
        preferred: metrics to compare if there is no main metric.
        hint: what to do if there are no results of single items.
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
        apart: Callable[[LogRow], Iterable[str | None]] | None = None,
        apart_is: Literal["model", "task"] = "model",
        preferred: Sequence[str] = (),
        hint: str = "",
        about: str | Callable[[Head], Mapping[str, Any]] = "",
        item: Value = "@item",
        task: Value = "@task",
        failure: Value = "@failure",
        finish: Callable[[LogRow, Sample], None] | None = None,
        totals: Callable[[LogReading], None] | None = None,
        **values: Value,
    ) -> None:
        unknown = values.keys() - _KINDS.keys() - set(_RUN_VALUES)
        if unknown:
            raise TypeError(f"a format has no {', '.join(sorted(unknown))}")
        self.name, self.title, self.fields, self.item = name, title, fields, item
        self.scores = RowScore(metric=scores) if isinstance(scores, str) else scores
        self.accepts, self.beside, self.rows = accepts, beside or {}, rows
        self.apart, self.apart_is = apart, apart_is
        self.preferred, self.hint, self.about, self.task = preferred, hint, about, task
        self.failure, self.finish, self.totals, self.values = failure, finish, totals, values
        self.columns = [(name, values[name]) for name in values if name in _KINDS]
        self.undeclared = frozenset(_KINDS.keys() - values.keys())

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return the logs among these files, recognised by their first rows."""
        known = [file for file in files if _fits(file, self.fields, self.accepts)]
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
        for row in reading.rows():
            if self.apart is None or log.notes["part"] in self.apart(row):
                sample = self._sample(row, texts=texts)
                if sample is not None:
                    reading.tasks.add(sample.task)
                    yield sample
        if self.totals is not None:
            self.totals(reading)

    def _logs(self, head: Head) -> Iterator[Log]:
        """Yield the logs in a file; with `apart`, there may be several."""
        files = (head.file, *(other for own in head.beside.values() for other in own))
        parts: Sequence[str | None] = [None]
        if self.apart is not None:
            every = LogReading(self, Log(self.name, files, notes={"part": None}), Problems()).rows()
            parts = list(dict.fromkeys(part for row in every for part in self.apart(row))) or parts
        tasks = head.declared("tasks") or ()
        names = tuple(map(replace_surrogates, (tasks,) if isinstance(tasks, str) else tasks))
        form = self.title + (head.declared("form") or "")
        for part in parts:
            model = part if self.apart_is == "model" else None
            if self.apart_is == "task":
                names = () if part is None else (replace_surrogates(part),)
            info = self._info(head, model, names, alone=len(parts) == 1)
            notes = {"part": part, "parts": len(parts)}
            stamp = head.declared("stamp") or info.created
            yield Log(self.name, files, info, names, stamp, format=form, notes=notes)

    def _info(self, head: Head, model: str | None, tasks: Sequence[str], *, alone: bool) -> RunInfo:
        """Return the metadata of a log."""
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
        item, task = row.find(self.item, "name"), row.find(self.task, "text")
        tasks = row.reading.log.tasks
        if not task and len(tasks) == 1 and (callable(self.task) or self.task == "@task"):
            (task,) = tasks
        if not item or not task:
            missing = self.task if item else self.item
            named = isinstance(missing, str) and missing[0] != "@"
            if not row.reported:
                row.report_problem(f"the row has no {missing if named else 'id and no question'}")
            return None
        scores = self.scores(row)
        sample = Sample(task, item, scores, repeat=None, file=row.file.name, line=row.line)
        columns = [*self.columns, *((n, f"@{n}") for n in row.added & self.undeclared)]
        for name, value in columns:
            if texts or name not in _TEXTS:
                setattr(sample, name, row.find(value, _KINDS[name]))
        failure = row.find(self.failure, "json_text")
        if failure is not None:
            sample.error = failure
            sample.scores = [Score(s.metric, None, s.scorer, Outcome.ERROR) for s in scores]
        if self.finish is not None:
            self.finish(row, sample)
        return sample


class Head(LogRow):
    """What is known about the logs in a file before they are read.

    Its fields are those of the metadata (`about`).

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
        if callable(form.about):
            self.values = form.about(self)
        elif form.about == "document":
            self.values = small_document(file)
        elif form.about:
            self.values = small_document(next(iter(beside[form.about]), None))
        else:
            self.values = file.peek.first

    def named(self, *patterns: str) -> dict[str, str]:
        """Return the groups of the first of these patterns that is in the path."""
        matches = (re.search(pattern, str(self.path)) for pattern in patterns)
        groups = next((match.groupdict() for match in matches if match), {})
        return {name: replace_surrogates(text) for name, text in groups.items() if text}

    def declared(self, name: str, kind: str = "text") -> Any:
        """Return a value that the format declares for a run."""
        value = self.form.values.get(name)
        is_constant = isinstance(value, str) and name in {"tasks", "main", "form", "harness"}
        return value if is_constant else self.find(value, kind)


class LogReading:
    """A log while it is read.

    Attributes:
        log: the log.
        file: the file with the rows.
        problems: receives unusable rows.
        tasks: tasks of the samples so far.
        seen: counts what a format must recognise when it comes again.
        own: what the functions of a format note for each other.
    """

    def __init__(self, form: Format, log: Log, problems: Problems) -> None:
        self.form, self.log, self.problems, self.file = form, log, problems, log.files[0]
        self.tasks: set[str] = set()
        self.seen: Counter[object] = Counter()
        self.own: dict[str, Any] = {}
        self._by_item: dict[str, dict[tuple[str | None, ...], LogRow]] = {}

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

    def by_item(self, name: str) -> Mapping[tuple[str | None, ...], LogRow]:
        """Return the rows of companions by the fields of their key; the last one counts."""
        if name not in self._by_item:
            keys = self.form.beside[name].key
            every = (row for file in self.companions(name) for row in self.lines(file))
            self._by_item[name] = {tuple(as_text(row[key]) for key in keys): row for row in every}
        return self._by_item[name]

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


def _fits(file: LogFile, fields: Names, accepts: Callable[[LogFile], bool] | None) -> bool:
    is_alike = any(file.peek.has(*names) for names in fields)
    return is_alike and (accepts is None or accepts(file))


def as_json(*paths: str) -> Callable[[LogRow], str | None]:
    """Declare the first non-empty of these fields, of any type, as text."""
    return lambda row: next(filter(None, (as_json_text(row[path]) for path in paths)), None)


def plain(*paths: str) -> Callable[[LogRow], str | None]:
    """Declare the first of these fields that is a text or a number; others are not reported."""
    return lambda row: row.plain(*paths)


def first_of(value: object) -> object:
    """Return the first element of a list, None for an empty one, and anything else as it is."""
    return (value[0] if value else None) if isinstance(value, list) else value


def numbers(values: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, float | None]:
    """Return the numbers and truth values of an object by their names; NaN is None."""
    left = set(without)
    return {
        replace_surrogates(name): number(value)
        for name, value in values.items()
        if isinstance(value, bool | int | float) and name not in left
    }


def scores_of(values: Mapping[str, float | None], scorer: str = "default") -> list[Score]:
    """Return a score per metric."""
    return [Score(name, value, scorer) for name, value in values.items()]


def digest(*parts: str | None, size: int = 8) -> str:
    """Return an id of some bytes for an item without one, from its texts."""
    text = "\n".join(map(str, parts))
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def last_stamp(head: Head) -> str | None:
    """Return the last time, such as `20260101_120000`, in the path of a file."""
    return next(reversed(_STAMP.findall(head.file.name)), None)
