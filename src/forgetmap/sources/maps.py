"""How a table is read: which column is which field, on which scale; and files that say so.

`base.csv.map.toml` belongs to `base.csv`; `forgetmap.toml` to the folder it lies in and to all
tables there that have no map of their own; any other file is named with --mapping:

    task = "arc"                 # name of the only task
    rows = "performances"        # the list of results in a JSON document
    model = "model"              # column with the model of each row, for TABLE#NAME
    range = [0, 100]             # worst and best score, if they are not 0 and 1

    [columns]
    item = "question_id"
    score = "scores.pass@1"      # a column, a path into one, or a rule (see cells.py)
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import narwhals as nw

from forgetmap.errors import ColumnError, FieldError, OutputError, UsageError
from forgetmap.records import BY_NAME, FileRow, MetricInfo, Run, listed
from forgetmap.sources.decode import number
from forgetmap.sources.sniff import readable_file

if TYPE_CHECKING:
    import duckdb

MARK = "#"
NAMES = ("task", "rows", "model")
"""Settings of a map that are names; `rows` and `model` are no fields, but may be in --columns."""
ENDING, OF_FOLDER = ".map.toml", "forgetmap.toml"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class ScoreRange(NamedTuple):
    """A scale of scores: its worst and its best value; the worst may be the larger one."""

    worst: float
    best: float

    def __str__(self) -> str:
        return f"{self.worst:g}:{self.best:g}"

    def holds(self, score: float) -> bool:
        """Whether a score lies on this scale."""
        return min(self) <= score <= max(self)

    def share(self, score: Any) -> Any:
        """Return the position of a score, or a column of them, between worst (0) and best (1)."""
        return (score - self.worst) / (self.best - self.worst)


def parse_range(text: str) -> ScoreRange:
    """Parse a scale: `1:10`, or `percent` for 0:100.

    Raises:
        UsageError: the text is not a scale.
    """
    worst, colon, best = ("0:100" if text.strip().lower() == "percent" else text).partition(":")
    try:
        ends = ScoreRange(float(worst), float(best)) if colon else None
    except ValueError:
        ends = None
    if ends is None or ends.worst == ends.best or not all(abs(end) < 1e300 for end in ends):
        raise UsageError(
            f"--range {text} is not a scale of two different numbers",
            hint="write the worst and the best score, such as --range 1:10 or --range 0:100.",
        )
    return ends


@dataclass(frozen=True, slots=True)
class TableMap:
    """How to read a table.

    Attributes:
        columns: canonical field -> column, path or rule.
        task: name of the only task.
        rows: path of the list of results in a JSON document; `.` is the document.
        model: column with the model of each row.
        score_range: scale of the scores, if it is not 0 to 1.
        fallback_task: name of the only task if the table has none.
        left_out: fields that are not read although the table has such columns.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    rows: str | None = None
    model: str | None = None
    score_range: ScoreRange | None = None
    fallback_task: str | None = None
    left_out: tuple[str, ...] = ()

    def merged(
        self, columns: Mapping[str, str], task: str | None, score_range: ScoreRange | None
    ) -> TableMap:
        """Return the map with these options, which take precedence."""
        fields = {name: col for name, col in columns.items() if name not in {"rows", "model"}}
        return TableMap(
            {**self.columns, **fields},
            # A column of task names replaces the single name for all rows.
            task or (None if "task" in fields else self.task),
            columns.get("rows") or self.rows,
            columns.get("model") or self.model,
            score_range or self.score_range,
        )

    def with_columns(self, **columns: str) -> TableMap:
        """Return the map with further columns."""
        return replace(self, columns={**self.columns, **columns})

    @property
    def names_columns(self) -> bool:
        """Whether the map names columns, so that the file must be a table, not a log."""
        return bool(self.columns or self.rows or self.model)

    @property
    def names_item(self) -> bool:
        """Whether the map names what tells rows apart."""
        return not self.columns.keys().isdisjoint({"item", "question"})


@dataclass(frozen=True, slots=True)
class ComparedWith:
    """The command that a table is read for: errors complete it, and the other run is evidence.

    Attributes:
        sources: what was typed; empty if a single source is read.
        other: path of the other run, whose columns decide between candidates.
    """

    sources: tuple[str, ...] = ()
    other: Path | None = None


# ---- files and models: TABLE#NAME ----


def is_remote(source: object) -> bool:
    """Whether this is a URL rather than a path."""
    return isinstance(source, str) and _SCHEME.match(source) is not None


def split_selection(source: str) -> tuple[Path, str | None]:
    """Split `TABLE#NAME` at its last `#`, unless a file has exactly this name."""
    path, mark, model = source.rpartition(MARK)
    if not mark or not model or Path(source).exists() or not Path(path).exists():
        return Path(source), None
    return Path(path), model


def selector(path: str | Path, name: str) -> str:
    """Return `TABLE#NAME`, quoted for the shell."""
    return shlex.quote(f"{path}{MARK}{name}")


# ---- mapping files ----


def map_file(source: str | Path) -> Path:
    """Return the path of the map of a table or folder; for a URL, a file in the current folder."""
    if is_remote(source):
        return Path(PurePosixPath(urlsplit(str(source)).path).name + ENDING)
    table = Path(source)
    return table / OF_FOLDER if table.is_dir() else table.with_name(table.name + ENDING)


def is_map(path: Path) -> bool:
    """Whether a file is a map, by its name."""
    return path.name == OF_FOLDER or path.name.endswith(ENDING)


def saved_map(table: Path, mapping: Path | None = None) -> tuple[TableMap, Path | None]:
    """Read `mapping`, else the map of the table or of its folder; return it with its path."""
    for path in (map_file(table), table.parent / OF_FOLDER) if mapping is None else (mapping,):
        if mapping is not None or path.is_file():
            return _read(path), path
    return TableMap(), None


def save_map(source: str | Path, table_map: TableMap, *, out: Path | None = None) -> Path:
    """Write a map next to its table, where it is found when the table is next opened.

    Args:
        source: file or folder of the table, or `TABLE#NAME`.
        table_map: the map.
        out: path to write to instead.
    """
    if out is None and is_remote(source):
        raise UsageError(
            "a mapping cannot be written next to a remote table",
            hint=f"`forgetmap records map {shlex.quote(str(source))}` writes one here; pass it "
            "with --mapping.",
        )
    path = out or map_file(split_selection(str(source))[0])
    try:
        path.write_text(map_text(table_map), encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"the mapping cannot be written to {path}: {error.strerror}",
            hint="copy the table to a writable folder, and try again.",
        ) from None
    return path


def map_text(table_map: TableMap) -> str:
    """Return a map as TOML."""

    def quoted(text: str) -> str:  # a TOML string has the syntax of a JSON string
        return json.dumps(text).replace("\x7f", "\\u007f")

    lines = ["# How forgetmap reads this table: field of forgetmap = column of the table."]
    settings = ((name, getattr(table_map, name)) for name in NAMES)
    lines += [f"{name} = {quoted(value)}" for name, value in settings if value is not None]
    if table_map.score_range is not None:
        lines.append(f"range = [{', '.join(f'{end:g}' for end in table_map.score_range)}]")
    columns = table_map.columns.items()
    lines += ["", "[columns]", *(f"{name} = {quoted(column)}" for name, column in columns)]
    return "\n".join(lines) + "\n"


def _read(path: Path) -> TableMap:
    try:
        with readable_file(path), path.open("rb") as stream:
            settings = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(path, f"this mapping is not valid TOML: {error}") from None
    columns, ends = settings.get("columns", {}), settings.get("range")
    if not isinstance(columns, dict):
        raise _wrong(path, "'columns' is not a table of fields and columns", "columns")
    for name, value in settings.items():
        if name not in {"columns", "range", *NAMES}:
            known = f"the settings are {', '.join(NAMES)}, range and [columns]"
            raise _wrong(path, f"unknown setting {name!r}; {known}", name)
        if name in NAMES and not isinstance(value, str):
            raise _wrong(path, f"{name!r} is {value!r:.40}, not a name", name)
    for name, column in columns.items():
        if name not in BY_NAME:
            raise _wrong(path, f"unknown field {name!r}", name)
        if not isinstance(column, str):
            raise _wrong(path, f"{name} = {column!r:.40} is not a column name", name)
    is_pair = isinstance(ends, list) and [type(end) in (int, float) for end in ends] == [True, True]
    if ends is not None and not (is_pair and ends[0] != ends[1]):
        raise _wrong(path, f"'range' is {ends!r:.40}, not two different numbers", "range")
    scale = None if ends is None else ScoreRange(*map(float, ends))
    task, rows, model = (settings.get(name) for name in NAMES)
    return TableMap(columns, task, rows, model, scale)


def _wrong(path: Path, message: str, field: str | None = None) -> ColumnError:
    return ColumnError(
        message,
        file=str(path),
        field=field,
        hint="correct the mapping, or delete it and use --columns.",
    )


# ---- scores on other scales than 0 to 1 ----


def rescaled(
    relation: duckdb.DuckDBPyRelation, scale: ScoreRange | None
) -> duckdb.DuckDBPyRelation:
    """Convert scores to shares of the scale; scores beyond the scale are then beyond 0 to 1."""
    if scale is None:
        return relation
    share = f"(score - ({scale.worst!r})) / ({scale.best - scale.worst!r})"
    return relation.project(f"* REPLACE ({share} AS score)")


def rescaled_rows(
    rows: Iterator[tuple[int, FileRow]], scale: ScoreRange | None
) -> Iterator[tuple[int, FileRow]]:
    """Convert the scores of raw rows to shares of the scale.

    Raises:
        FieldError: a score is outside the scale.
    """
    for line, row in rows:
        score = number(row.get("score")) if scale else None
        if scale is None or score is None:
            yield line, row
            continue
        if not scale.holds(score):
            raise FieldError(
                f"score is {score:g}, outside of --range {scale}",
                file=row.file,
                line=line,
                field="score",
                hint="give the worst and the best possible score, such as --range 0:100.",
            )
        yield line, FileRow({**row, "score": scale.share(score)}, file=row.file)


def rescale_frame(run: Run, scale: ScoreRange | None) -> Run:
    """Convert all scores of a run of a dataframe to shares of the scale."""
    if scale is None:
        return run
    scores = run.scores.with_columns(score=scale.share(nw.col("score")))
    return replace(run, scores=scores, rows=None)


def rescale_run(run: Run, scale: ScoreRange) -> Run:
    """Convert the metrics of a run that are not between 0 and 1 to shares of the scale.

    Raises:
        UsageError: there is no such metric, or one is outside the scale.
    """
    ends = {
        name: [end for end in (info.low, info.high) if end is not None]
        for name, info in run.info.metrics.items()
        if (info.low is not None and info.low < 0) or (info.high is not None and info.high > 1)
    }
    if not ends:
        raise UsageError(
            f"--range {scale} is not needed for {run.name}: its scores are between 0 and 1",
            hint="remove --range.",
        )
    for name, known in ends.items():
        if not all(map(scale.holds, known)):
            raise UsageError(
                f"{name} of {run.name} is {' to '.join(f'{end:g}' for end in known)}, outside of "
                f"--range {scale}",
                hint="give the worst and the best possible score.",
            )
    is_beyond, score = nw.col("metric").is_in(list(ends)), nw.col("score")
    rescaled_score = nw.when(is_beyond).then(scale.share(score)).otherwise(score)
    metrics = {**run.info.metrics, **dict.fromkeys(ends, MetricInfo())}
    return replace(
        run,
        scores=run.scores.with_columns(score=rescaled_score),
        info=run.info.model_copy(update={"metrics": metrics}),
        notices=(*run.notices, f"{listed(list(ends))}: {scale} is read as 0 to 1."),
    )
