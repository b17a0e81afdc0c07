"""Proposed mappings for tables: which column is probably which field.

Names decide first, then types and ranges; notes name every guess.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forgetmap.errors import InputError, UnknownFormatError
from forgetmap.records import Run, check_run
from forgetmap.sources.column_maps import is_map
from forgetmap.sources.documents import find_row_lists, read_document
from forgetmap.sources.logs import recognise
from forgetmap.sources.matrix import TASK, line_of_value
from forgetmap.sources.models import score_columns, selector
from forgetmap.sources.paths import EVERY, value_at
from forgetmap.sources.profile import ColumnProfile, profile_columns
from forgetmap.sources.rows import csv_cells, first_rows
from forgetmap.sources.selection import is_remote, read_selection
from forgetmap.sources.sniff import TableFile, sniff
from forgetmap.sources.table import distinct_texts, prepare_table, read_table
from forgetmap.sources.table_map import ScoreRange, TableMap
from forgetmap.sources.unknown import explain_path, summary_error, unknown_document

ROWS_LOOKED_AT = 2_000
MAX_ID_LENGTH = 32
MAX_LISTS = 4
MAX_ENDS = (1, 2, 5, 10, 100)
"""Best scores of common scales."""
SHAPES = {"csv": "CSV", "jsonl": "JSON lines", "json": "a JSON list", "parquet": "Parquet"}
WORDS: Mapping[str, tuple[str, ...]] = {
    "score": (
        "score", "correct", "iscorrect", "acc", "accuracy", "exactmatch", "pass@1", "passat1",
        "passed", "pass", "success", "resolved", "isresolved", "solved", "reward", "em", "grade",
        "rating", "preference", "verdict", "judgment", "judgement", "graded", "gradedlist", "f1",
        "value",
    ),
    "item": (
        "item", "id", "itemid", "questionid", "sampleid", "docid", "promptid", "exampleid",
        "instanceid", "problemid", "taskid", "uniqueid", "uid", "uuid", "qid", "key", "index",
        "idx",
    ),
    "question": ("question", "problem", "instruction", "query"),
    "gold": ("gold", "groundtruth", "expectedanswer", "expected", "correctanswer", "reference"),
    "response": ("response", "completion", "output", "modeloutput", "generation", "prediction"),
    "task": ("task", "benchmark", "dataset", "taskname", "subject", "eval", "suite", "testname"),
    "category": ("category", "difficulty", "domain", "topic"),
    "repeat": ("repeat", "trial", "trialid", "epoch", "attempt", "iteration", "turn"),
}  # fmt: skip
"""Column names of each field, most likely first; lower case, without separators."""
MODEL_WORDS = ("model", "modelname", "modelid", "system", "generator", "agent")
_SEPARATORS = re.compile(r"[^a-z0-9@]+")
_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class MapProposal:
    """A proposed map for a table.

    Attributes:
        path: the table, or folder of tables.
        shape: kind of file, in words.
        rows: number of rows examined.
        columns: profiles of the columns.
        table_map: the proposed map.
        models: names to choose from after `#`, if the table has several models.
        notes: guesses, and decisions left to the user.
        run: the table, or its first model, read with the map; None if that fails.
        problem: why the table cannot be read with the map.
        origin: the URL of a remote table.
        log_format: format of the log, if the file is a log and needs no map.
        example: the file examined, if `path` is a folder.
    """

    path: Path
    shape: str
    rows: int
    columns: Sequence[ColumnProfile]
    table_map: TableMap
    models: Sequence[str] = ()
    notes: Sequence[str] = ()
    run: Run | None = None
    problem: str = ""
    origin: str = ""
    log_format: str = ""
    example: Path | None = None

    @property
    def sources(self) -> list[str]:
        """Command-line arguments for the table, or for the first two of its models."""
        table = self.origin or (self.example if self.example and self.models else self.path)
        return [selector(table, name) for name in self.models[:2]] or [shlex.quote(str(table))]


@dataclass(slots=True)
class _Draft:
    """An unfinished proposal."""

    shape: str
    rows: Sequence[Mapping[str, Any]]
    table_map: TableMap
    models: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def propose_map(source: str | Path, known: TableMap | None = None) -> MapProposal:
    """Examine a table and propose a map for it.

    Args:
        source: path or URL of a table or JSON document.
        known: map to complete; its entries are kept.
    """
    if not is_remote(source):
        return _propose(Path(source), known or TableMap())
    from forgetmap.sources.remote import fetch  # fsspec is large

    remote_copy = fetch(str(source))
    with remote_copy.errors_about_original():
        proposal = _propose(remote_copy.path, known or TableMap())
    problem = remote_copy.original_path(proposal.problem)
    return replace(proposal, origin=remote_copy.name, problem=problem)


def _propose(path: Path, known: TableMap) -> MapProposal:
    try:
        file = _first_table(path) if path.is_dir() else sniff(path)
        if file.headerless:
            draft = _matrix([cells for _, cells in csv_cells(file)])
        else:
            draft = _draft(file, known)
    except InputError as error:
        raise explain_path(path, error) from None
    profiles = profile_columns(draft.rows)
    proposal = MapProposal(
        path, draft.shape, len(draft.rows), profiles, draft.table_map, draft.models, draft.notes
    )
    if path.is_dir():
        proposal = replace(proposal, example=file.path)
    return _tried(file, _as_log(proposal))


def _first_table(folder: Path) -> TableFile:
    """Return the first table of a folder.

    Raises:
        UnknownFormatError: the folder contains no table.
    """
    for child in sorted(folder.iterdir()):
        if child.is_file() and not child.name.startswith((".", "_")) and not is_map(child):
            with suppress(InputError):
                return sniff(child)
    raise UnknownFormatError(
        "this folder contains no table, so there is nothing to map",
        file=str(folder),
        hint=f"`forgetmap records show {shlex.quote(str(folder))}` lists its contents.",
    )


def _as_log(proposal: MapProposal) -> MapProposal:
    """Add a note if the file is a log, which needs no map."""
    log = next(iter(recognise(proposal.path)), None)
    if log is None:
        return proposal
    form = log.format or log.adapter
    note = f"this is a log of {form}, which needs no mapping; with a mapping it is read as a table."
    return replace(proposal, log_format=form, notes=(note, *proposal.notes))


def _tried(file: TableFile, proposal: MapProposal) -> MapProposal:
    """Read the table with the proposed map, and add the run or the problem."""
    path, table_map = proposal.path, proposal.table_map
    name = path.name.split(".")[0]
    try:
        if proposal.models:
            run = read_selection(file, proposal.models[0], name=name, table_map=table_map)
        else:
            run = read_table([file], name=name, origin=str(path), table_map=table_map)
        check_run(run, unique=True)
    except InputError as error:
        leads_here = "records map" in error.hint
        problem = str(error).partition("\nHint: ")[0] if leads_here else str(error)
        return replace(proposal, problem=problem)
    return replace(proposal, run=run, notes=(*proposal.notes, *run.notices))


def _matrix(rows: Sequence[Sequence[Any]]) -> _Draft:
    height, width = len(rows), len(rows[0])
    shape = f"a matrix of {height:,} rows and {width:,} columns without header"
    kind, count = ("row", height) if width > height else ("col", width)
    note = (
        f"{'rows' if kind == 'row' else 'columns'} are treated as models, because there are "
        "fewer of them; #col1 is the first column, #row1 the first row."
    )
    models = [f"{kind}{number}" for number in range(1, count + 1)]
    return _Draft(shape, [], TableMap(), models, [note])


def _draft(file: TableFile, known: TableMap) -> _Draft:
    document = read_document(file) if file.single or file.kind == "json" else None
    if isinstance(document, list) and document and all(isinstance(r, list) for r in document):
        return _matrix(document)
    if not isinstance(document, dict) or known.rows is not None:
        return _of_rows(file, known, SHAPES[file.kind])
    summary = summary_error(file.path, document)
    if summary is not None:
        raise summary
    lines = [name for name, value in document.items() if line_of_value(value) is not None]
    lists = find_row_lists(document)
    drafts = [
        _of_rows(file, replace(known, rows=one.path), f"a JSON document, rows in {one.path}")
        for one in lists[:MAX_LISTS]
    ]
    if not drafts and len(lines) > 1 and len(lines) == len(document):
        return _Draft("a JSON document of scores by model", [], known, lines)
    if not drafts:
        raise unknown_document(file.path, document)
    paths = {one.path for one in lists if one.is_list}
    return max(drafts, key=lambda draft: _completeness(draft, paths))


def _completeness(draft: _Draft, lists: Collection[str]) -> tuple[bool, bool, bool, int]:
    """Return the sort key of a draft: has scores, has items, is a list, number of rows."""
    columns = draft.table_map.columns
    has_score = "score" in columns or bool(draft.models)
    has_item = "item" in columns or "question" in columns
    return has_score, has_item, draft.table_map.rows in lists, len(draft.rows)


def _of_rows(file: TableFile, known: TableMap, shape: str) -> _Draft:
    rows = first_rows(file, known.rows, ROWS_LOOKED_AT)
    profiles = {profile.path: profile for profile in profile_columns(rows)}
    draft = _Draft(shape, rows, known)
    model = known.model or _named(profiles, MODEL_WORDS, lambda one: one.kind == "text")
    columns = dict(known.columns)
    for name in WORDS:
        if name not in columns:
            chosen = _choose(name, profiles, rows, model, set(columns.values()))
            columns |= {} if chosen is None else {name: chosen}
    wide = score_columns(rows) if "score" not in known.columns else []
    if len(wide) > 1 and columns.get("score") not in rows[0]:
        columns.pop("score", None)
        draft.models = wide
    draft.table_map = replace(known, columns=_ordered(columns))
    _settle(file, draft, profiles, model)
    return draft


def _ordered(columns: Mapping[str, str]) -> dict[str, str]:
    ours = {name: columns[name] for name in WORDS if name in columns}
    return {**ours, **columns}


def _settle(
    file: TableFile, draft: _Draft, profiles: Mapping[str, ColumnProfile], model: str | None
) -> None:
    """Set task, range of scores and models, which hold for the whole table."""
    columns = draft.table_map.columns
    if "task" not in columns and draft.table_map.task is None:
        draft.table_map = replace(draft.table_map, task=TASK)
        draft.notes.append(f"no column contains task names: all rows belong to the task {TASK!r}.")
    score = profiles.get(columns.get("score", ""))
    if score is not None and draft.table_map.score_range is None:
        scale = _guess_range(score)
        if scale is not None:
            draft.table_map = replace(draft.table_map, score_range=scale)
            draft.notes.append(
                f"the range {scale} is guessed from scores of {score.low:g} to {score.high:g}; "
                "swap the ends if less is better."
            )
    if "score" not in columns and not draft.models:
        draft.notes.append("no column looks like a score: name it with --columns score=COLUMN.")
    if model is not None and not draft.models:
        names = _models(file, draft.table_map, model)
        if len(names) > 1:
            draft.models = names
            if model not in ("model", "model_name"):
                draft.table_map = replace(draft.table_map, model=model)


def _models(file: TableFile, table_map: TableMap, model: str) -> list[str]:
    try:
        flat = prepare_table(file, replace(table_map, model=model), (model, ""))
        return distinct_texts(flat, model)
    except InputError:
        return []


def _choose(
    name: str,
    profiles: Mapping[str, ColumnProfile],
    rows: Sequence[Mapping[str, Any]],
    model: str | None,
    used_columns: set[str],
) -> str | None:
    free = {
        path: one for path, one in profiles.items() if path not in used_columns and path != model
    }
    if name == "score":
        return _choose_score(free)
    if name == "item":
        return _choose_item(free, rows, model)
    texts = {"question", "gold", "response"}
    return _named(
        free,
        WORDS[name],
        lambda one: one.kind in {"text", "mixed"} if name in texts else one.kind != "list",
    )


def _choose_score(profiles: Mapping[str, ColumnProfile]) -> str | None:
    named = _named(profiles, WORDS["score"], lambda one: one.is_number)
    if named is not None:
        return named
    shares = [
        one.path
        for one in profiles.values()
        if one.is_number and one.low is not None and one.high is not None
        and one.low >= 0 and one.high <= 1
    ]  # fmt: skip
    return shares[0] if len(shares) == 1 else None


def _choose_item(
    profiles: Mapping[str, ColumnProfile], rows: Sequence[Mapping[str, Any]], model: str | None
) -> str | None:
    """Choose, among columns named like an id, the one with most distinct values per model."""
    named = [
        one
        for one in profiles.values()
        if _word(one.path) in WORDS["item"] and one.kind not in {"list", "empty"}
        and EVERY not in one.path
    ]  # fmt: skip
    if not named:
        # A column with a different value in every row identifies the rows.
        named = [
            one
            for one in profiles.values()
            if one.kind in {"whole number", "text"} and one.different == one.filled == len(rows)
            and len(one.examples[0]) < MAX_ID_LENGTH and _word(one.path) not in WORDS["question"]
        ]  # fmt: skip
        return named[0].path if named and len(rows) > 1 else None
    # A random id (UUID version 4) is that of a result, so no other run has it.
    named = [one for one in named if not all(map(_RANDOM_ID.fullmatch, one.examples))] or named
    order = WORDS["item"].index
    return min(named, key=lambda one: (-_told_apart(rows, one.path, model), order(_word(one.path)),
                                       one.path.count("."))).path  # fmt: skip


def _told_apart(rows: Sequence[Mapping[str, Any]], path: str, model: str | None) -> int:
    return len({(str(value_at(row, path)), str(row.get(model or ""))) for row in rows})


def _named(profiles: Mapping[str, ColumnProfile], words: Sequence[str], fits: Any) -> str | None:
    """Return the column with the most likely name, the least nested one first."""
    fitting = [one for one in profiles.values() if _word(one.path) in words and fits(one)]
    if not fitting:
        return None
    return min(
        fitting,
        key=lambda one: (EVERY in one.path, words.index(_word(one.path)), one.path.count(".")),
    ).path


def _word(path: str) -> str:
    """Return the last name of a path in lower case, without separators."""
    names = [part for part in path.split(".") if part != EVERY]
    return _SEPARATORS.sub("", names[-1].lower())


def _guess_range(score: ColumnProfile) -> ScoreRange | None:
    low, high = score.low, score.high
    if low is None or high is None or (low >= 0 and high <= 1):
        return None
    if low < 0:
        return ScoreRange(-max(-low, high), max(-low, high))
    best = next((float(end) for end in MAX_ENDS if high <= end), high)
    starts_at_1 = low >= 1 and best in {2.0, 5.0, 10.0}
    return ScoreRange(1.0 if starts_at_1 else 0.0, best)
