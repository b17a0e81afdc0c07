"""What the columns of a table are, judged by their names and by what their values are.

The rows are in the collection with most of them that has scores. A score is a verdict (true, 1,
`pass`) or a share, chosen by its name; of several, one that agrees with a total that the file
states, and then one that differs between the two runs of a comparison: settings are equal on both
sides. Without a score, gold and answer are compared. The item is what tells rows apart and is on
both sides, an id before a question, never the order of the rows.

What is not clear is not guessed: the error has a complete command for each choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forgetmap.errors import ColumnError, UnreadableError
from forgetmap.records import BY_NAME, Contradiction, Outcome, listed
from forgetmap.sources.cells import EVERY
from forgetmap.sources.column_words import (
    CATEGORY,
    QUESTION,
    REPEAT,
    RESPONSE,
    STATED_RIGHT,
    STATED_ROWS,
    TASK,
    as_share,
    has_lists,
    kind_of,
    word_of,
)
from forgetmap.sources.documents import ROWS_LOOKED_AT, Collection
from forgetmap.sources.item_choice import are_few, choose_item, is_unique
from forgetmap.sources.maps import ComparedWith, TableMap
from forgetmap.sources.rows import collections
from forgetmap.sources.score_choice import (
    ASKED,
    UNNAMED,
    Candidate,
    choose_score,
    column_of,
    command,
    differs,
    examples,
    field_of_item,
    score_candidates,
    score_columns,
)
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.unknown import nearest_formats, several_columns, several_lists

MIN_ITEMS = 20
"""Rows with shares from which on they are items, though they hold lists with verdicts."""
MIN_NAMED = 30
"""Objects by name from which on they may be items although they hold nothing but numbers."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """How a table is read.

    Attributes:
        table_map: fields and columns.
        said: what was found, in one line.
        contradictions: totals beside the rows that these do not have.
        guesses: what a user should confirm, if guesses are asked for.
    """

    table_map: TableMap
    said: str
    contradictions: tuple[Contradiction, ...] = ()
    guesses: tuple[str, ...] = ()


def infer(
    file: TableFile,
    known: TableMap,
    beside: ComparedWith,
    others: Callable[[], Sequence[Collection]] = tuple,
    only: tuple[str, str] | None = None,
    *,
    guess: bool = False,
    tables: Sequence[Collection] | None = None,
) -> Inferred | None:
    """Return how a table is read; None if it has no results that could be recognised.

    Args:
        file: the table.
        known: what is known already: it is kept.
        beside: the command that the table is read for.
        others: the collections of the other run.
        only: read only the rows with this value.
        guess: return the first of several candidates, and say so.
        tables: the collections, if they are not only those of the file.

    Raises:
        ColumnError: several columns may be the score.
    """
    try:
        found_tables = collections(file, known.rows) if tables is None else tables
    except UnreadableError:
        return None  # reading the rows reports the line
    tables = [one.of_model(only) for one in found_tables]
    theirs = others() if tables else ()
    best: tuple[tuple[bool, bool, int], Collection, list[Candidate], str | None] | None = None
    verdicts = {one.path or "" for one in tables if _has_verdict(one, known)}
    for table in tables:
        other = _same_columns(table, theirs)
        item = known.columns.get("item") or choose_item(table, other, known)
        found = score_candidates(table, known, other, item) if _are_rows(table) else []
        if found:
            is_second = _is_summary(table, tables, verdicts) or _is_detail(table, verdicts)
            key = (min(one.rank for one in found) >= UNNAMED, is_second, -len(table.rows))
            if best is None or key < best[0]:
                best = (key, table, found, item)
    if best is None:
        return None
    _, table, found, item = best
    other = _same_columns(table, theirs)
    if known.rows is None and len(table.twins) > 1 and table.is_list:
        if other is None or other.every != table.every or not _share_most(table, other):
            raise several_lists(file.path, table.twins)  # each may be a model
        # What both runs have are tasks.
        return infer(file, replace(known, rows=table.every), beside, others, only, guess=guess)
    guesses: tuple[str, ...] = ()
    try:
        score = choose_score(file, table, other, item, found, known, beside)
    except ColumnError as error:
        if not guess:
            raise
        score, guesses = found[0], (f"{error.message}; {error.hint}",)
        known = replace(known, score_range=known.score_range or score.scale)
    if score is None or not (item is not None or known.names_item) or _are_means(score, item):
        return None
    return replace(_settled(table, other, item, score, known), guesses=guesses)


def explain_unread(
    file: TableFile, known: TableMap, beside: ComparedWith,
    others: Callable[[], Sequence[Collection]] = tuple, only: tuple[str, str] | None = None,
) -> ColumnError | None:  # fmt: skip
    """Return the error for rows whose score or item is not found, with a command that is complete.

    None if there are no rows, or the user named the score.
    """
    tables = [one.of_model(only) for one in collections(file, known.rows)]
    table = max(tables, key=lambda one: len(one.rows), default=None)
    is_wrong = "score" in known.columns or not known.columns.keys() <= BY_NAME.keys()
    if table is None or not table.columns or is_wrong:
        return None  # reading the rows says why
    other = _same_columns(table, others())
    item = known.columns.get("item") or choose_item(table, other, known)
    found = score_candidates(table, known, other, item)
    wide = score_columns(table) if item is None or not beside.sources else []
    if len(wide) > 1:
        return several_columns(file.path, wide)
    shown = [f"{name} ({examples(values)})" for name, values in table.columns.items()]
    facts = f"{len(table.rows):,} rows with {listed(shown)}"
    score = found[0].spec if found else "COLUMN"
    if item is None:
        facts += "; no column tells the rows apart on both sides, and order never pairs them"
    if not found:
        facts += "; no column is known to be the score"
    elif item is not None:
        facts += f"; {score} is an average or the same everywhere"
    nearest = nearest_formats({name for row in table.rows[:ROWS_LOOKED_AT] for name in row})
    facts += f"; {nearest}" if nearest.startswith("nearest") else ""
    error = ColumnError(
        facts,
        file=str(file.path),
        field="score" if not found else "item",
        hint=f"name {'the score' if not found else 'what tells rows apart'}: "
        f"`{command(file, table, item or 'COLUMN', score, beside)}`.",
    )
    error.missing = tuple(
        name for name, is_known in (("score", found), ("item", item)) if not is_known
    )
    return error


def _has_verdict(table: Collection, known: TableMap) -> bool:
    """Whether rows have a verdict, not only shares, or repeats in lists."""
    found = score_candidates(table, known) if _are_rows(table) else []
    return any(
        one.rank < ASKED
        and (EVERY in one.spec or kind_of(one.values) == "verdict" or len(table.rows) >= MIN_ITEMS)
        for one in found
    )


def _is_summary(table: Collection, tables: Sequence[Collection], verdicts: set[str]) -> bool:
    """Whether rows hold lists with results of their own, and are without a verdict themselves."""
    start = f"{table.path}.{EVERY}." if table.path else f"{EVERY}."
    below = any(
        (one.path or "").startswith(start) and (one.path or "") in verdicts for one in tables
    )
    return below and (table.path or "") not in verdicts


def _is_detail(table: Collection, verdicts: set[str]) -> bool:
    """Whether these are lists inside rows that have a verdict: tests, steps or judges."""
    above, every, _ = (table.path or "").rpartition(f".{EVERY}.")
    if not every and (table.path or "").startswith(f"{EVERY}."):
        return "" in verdicts
    return bool(every) and above in verdicts


def _are_rows(table: Collection) -> bool:
    """Whether these are rows, not a few objects by name with nothing but numbers: averages."""
    is_few = not table.is_list and len(table.rows) < MIN_NAMED
    return bool(table.rows) and not (is_few and all(
        kind_of(values) in {"share", "graded"} for path, values in table.columns.items()
        if path not in {"item", "task"}
    ))  # fmt: skip


def _are_means(score: Candidate, item: str | None) -> bool:
    """Whether these are a share or number for each task: averages, not results."""
    is_task = item is not None and word_of(item) in TASK
    return is_task and "=" not in score.spec and kind_of(score.values) in {"share", "graded"}


def items_by_name(known: TableMap, rows: Sequence[Mapping[str, Any]]) -> TableMap:
    """Return the map with the item of rows whose score is not known."""
    item = None if "item" in known.columns else choose_item(Collection(None, rows), None, known)
    return known if item is None else known.with_columns(item=item)


def _share_most(table: Collection, other: Collection) -> bool:
    """Whether both runs have most of the lists that look alike."""
    shared = {*table.twins} & {*other.twins}
    return 2 * len(shared) > max(len(table.twins), len(other.twins))


def _same_columns(table: Collection, others: Sequence[Collection]) -> Collection | None:
    """Return the collection of the other run that has most columns of this one."""
    shared = {len(one.columns.keys() & table.columns.keys()): one for one in reversed(others)}
    most = max(shared, default=0)
    return shared[most] if most else None


def _settled(
    table: Collection, other: Collection | None, item: str | None, score: Candidate, known: TableMap
) -> Inferred:
    columns = {"score": score.spec}
    if item is not None:
        columns[field_of_item(item, table)] = item
    columns |= _further(table, other, columns, known)
    sides = [table] if other is None else [table, other]
    is_doubled = "question" in columns and not all(
        is_unique(one.values(columns["question"])) for one in sides
    )
    if "item" in known.columns or ("item" in columns and is_doubled):
        columns = {**columns, "question": known.columns.get("question", "")}
        columns = {name: column for name, column in columns.items() if column}  # the id pairs
    columns |= known.columns
    reworded = ""
    if other is not None and "item" in columns and "question" not in columns:
        asked = [
            path for path in table.columns if word_of(path) in QUESTION[:4] and "." not in path
        ]
        reworded = next((p for p in asked if _is_reworded(table, other, columns["item"], p)), "")
    left_out: tuple[str, ...] = ("question",) if reworded else ()
    if known.model is None and "model" in table.columns and is_unique(table.values(item or "")):
        left_out += ("model",)  # every item was answered by one of them: these are one run
    words = {str(value) for value in table.columns.get("outcome", ()) if value not in (None, "")}
    if not words <= {*Outcome} and "outcome" not in columns.values():
        left_out += ("outcome",)
    if other is not None and item in other.columns and "gold" not in columns:
        differing = [name for name in ("gold", "options") if name in other.columns
                     and name in table.columns and differs(name, table, other, item)]  # fmt: skip
        left_out += tuple(differing)  # what is written differently is no identity
    options = table.columns.get("options", [[]])
    if any(path.startswith("options.") for path in table.columns) or not all(
        isinstance(value, list | None) for value in options
    ):
        left_out += ("options",)
    if column_of(score.spec) not in columns.values():
        left_out += (column_of(score.spec),)
    table_map = replace(known, columns=columns, rows=table.path, left_out=left_out)
    said = f"score = {columns['score']}, item = {columns.get('item', columns.get('question'))}"
    if "==" in score.spec:
        answer, _, gold = score.spec.partition("==")
        said = f"no score: graded here, right where {answer} is {gold}; " + said.partition(", ")[2]
    said += f", {len(table.rows):,} rows."
    if reworded:
        said += f" Some of {reworded!r} are worded differently: paired by {columns['item']}."
    return Inferred(
        table_map,
        said,
        tuple(_contradictions(table, score, known)),
    )


def _is_reworded(table: Collection, other: Collection, item: str, question: str) -> bool:
    """Whether some questions of the same id, but not most of them, are worded differently."""
    theirs = dict(zip(map(str, other.values(item)), other.values(question), strict=True))
    ours = zip(map(str, table.values(item)), table.values(question), strict=True)
    shared = [
        str(theirs[name]).split() == str(text).split() for name, text in ours if name in theirs
    ]
    return bool(shared) and len(shared) // 2 < sum(shared) < len(shared)


def _further(
    table: Collection, other: Collection | None, chosen: Mapping[str, str], known: TableMap
) -> dict[str, str]:
    """Return columns of further fields by their names, where their values fit."""
    fields: dict[str, tuple[Sequence[str], Callable[[Sequence[Any]], bool]]] = {
        "task": (TASK, are_few),
        "category": (CATEGORY, lambda values: len({*map(str, values)}) <= max(2, len(values) // 2)),
        "question": (QUESTION[:4], lambda values: all(isinstance(v, str) for v in values)),
        "response": (RESPONSE, lambda values: any(isinstance(v, str) for v in values)),
        "scorer": (("scorer", "evaluator"), lambda values: len({*map(str, values)}) <= 20),
        "repeat": (REPEAT, lambda values: 1 < len({*map(str, values)}) <= 1_000),
    }
    further: dict[str, str] = {}
    for name, (words, fits) in fields.items():
        used = {*chosen.values(), *known.columns.values(), *further.values()}
        paths = [
            path for path, values in table.columns.items()
            if path not in used and not path.count(".") and word_of(path) in words
            and not has_lists(values) and None not in values and "" not in values and fits(values)
        ]  # fmt: skip
        if name in known.columns or name in chosen or not paths:
            continue
        if name == "repeat" and (EVERY in chosen["score"] or "/" in chosen["score"]):
            continue
        if name == "task" and known.task is not None:
            continue
        path = min(paths, key=lambda path: words.index(word_of(path)))
        item = chosen.get("item") if name == "question" else None
        if item is None or other is None or not _is_reworded(table, other, item, path):
            further[name] = path
    if "repeat" in further and is_unique(
        table.values(chosen.get("item", chosen.get("question", "")))
    ):
        del further["repeat"]
    return further


def _contradictions(
    table: Collection, score: Candidate, known: TableMap
) -> Iterable[Contradiction]:
    """Yield the totals beside the rows that these do not have."""
    task = known.task or known.fallback_task or "all"
    values = [as_share(value) for value in score.values]
    right = sum(value for value in values if value is not None)
    scored = [value for value in values if value is not None]
    for name, value in table.stated.items():
        word = word_of(name)
        if word in STATED_ROWS and value % 1 == 0 and len(table.rows) < value:
            yield Contradiction(
                "total_contradicted", task, name, value, len(table.rows),
                f"the file states {name} {value:,.0f}, but has {len(table.rows):,} results.",
                results=len(table.rows),
            )  # fmt: skip
        is_count = word in STATED_RIGHT and {*scored} <= {0.0, 1.0} and value % 1 == 0
        if is_count and len(scored) == len(values) and abs(right - value) > 0.01:
            yield Contradiction(
                "total_contradicted", task, name, value, right,
                f"the file states {name} {value:,.0f}, but these results give {right:,.0f}.",
                results=len(table.rows), is_own_grading="==" in score.spec,
            )  # fmt: skip
