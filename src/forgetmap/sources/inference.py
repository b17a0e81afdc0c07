"""What the columns of a table are, judged by their names and by what their values are.

The rows are in the collection with most of them that has scores. A score is a verdict (true, 1,
`pass`) or a share, chosen by its name; of several, one that agrees with a total that the file
states, and then one that differs between the two runs of a comparison: settings are equal on both
sides. Without a score, gold and answer are compared. The item is what tells rows apart and is on
both sides, an id before a question, never the order of the rows.

What is not clear is not guessed: the error has a complete command for each choice.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from forgetmap.errors import ColumnError, UnreadableError
from forgetmap.records import BY_NAME, SYNONYMS, Contradiction, Outcome, listed
from forgetmap.sources.cells import cell_of
from forgetmap.sources.decode import number
from forgetmap.sources.documents import TOP, RowList, as_rows, find_row_lists, read_document
from forgetmap.sources.models import several_lists
from forgetmap.sources.paths import EVERY, MAX_DEPTH, scalar_paths, value_at
from forgetmap.sources.rows import first_rows
from forgetmap.sources.sniff import TableFile, require_few_columns
from forgetmap.sources.table import column_names
from forgetmap.sources.table_map import ScoreRange, TableMap

ROWS_READ, ROWS_LOOKED_AT = 50_000, 200
MAX_LISTS = 40
MIN_OVERLAP = 0.8
"""Share of the items of the smaller side that the other side must have, too."""
MIN_NAMED = 30
"""Objects by name from which on they may be items although they hold nothing but numbers."""
MIN_FILLED = 0.5
"""Share of the values of the fullest candidate that a candidate must have."""
MAX_LABELS = 8
MAX_CHOICES = 4
MAX_SETTING_VALUES = 30
MAX_SETTINGS = 10
"""Columns that together tell rows apart."""
MAX_ID_LENGTH = 200
Kind = Literal["verdict", "share", "graded", "label", "text", "list", "nothing"]
VERDICTS: Mapping[str, float] = {
    "true": 1.0, "yes": 1.0, "pass": 1.0, "passed": 1.0, "correct": 1.0, "right": 1.0,
    "success": 1.0, "resolved": 1.0, "solved": 1.0,
    "false": 0.0, "no": 0.0, "fail": 0.0, "failed": 0.0, "incorrect": 0.0, "wrong": 0.0,
    "failure": 0.0, "unresolved": 0.0, "unsolved": 0.0,
}  # fmt: skip
"""Words for right and wrong."""
CERTAIN = frozenset({
    "correct", "passed", "pass", "resolved", "solved", "success", "successful", "acc", "accuracy",
    "match", "em", "right", "correctness", "iscorrect", "truefalse",
})  # fmt: skip
"""Words in names of scores that say whether an answer is right."""
LIKELY = frozenset({
    "score", "scores", "reward", "rewards", "grade", "graded", "rating", "f1", "verdict",
    "result", "outcome", "judge", "judgment", "judgement", "accs", "points", "preference",
    "normalized",
})  # fmt: skip
"""Words in names of other scores."""
WHOSE_LABEL = frozenset({"judge", "human", "eval", "grade", "annotator", "rater"})
NEVER = frozenset({
    "id", "ids", "idx", "index", "seed", "difficulty", "level", "temperature", "tokens", "token",
    "count", "num", "number", "length", "len", "time", "latency", "duration", "cost", "price",
    "year", "confidence", "prob", "probability", "logprob", "logprobs", "step", "steps", "turn",
    "turns", "epoch", "size", "rank", "position", "width", "height", "timestamp", "total", "ms",
    "repeat", "trial", "attempt", "depth", "version", "date", "reason", "justification",
    "explanation", "feedback", "error", "errors",
})  # fmt: skip
"""Words in names of settings and measurements."""
IDS_BY_NAME = frozenset(SYNONYMS["item"])
"""Names of ids that need no word about them."""
ITEM = (
    "item", "id", "itemid", "questionid", "sampleid", "docid", "promptid", "exampleid",
    "instanceid", "problemid", "taskid", "testid", "uniqueid", "uid", "uuid", "qid", "pid", "key",
    "idx", "index", "example",
)  # fmt: skip
QUESTION = ("question", "problem", "instruction", "query", "prompt", "input", "task")
TASK = ("task", "benchmark", "dataset", "taskname", "subject", "eval", "suite", "testname")
CATEGORY = ("category", "difficulty", "domain", "topic", "subject", "hardness")
REPEAT = (
    "repeat", "trial", "trialid", "epoch", "attempt", "iteration", "sampleindex", "sample",
    "completionid", "runid", "run", "seed",
)  # fmt: skip
RESPONSE = ("response", "modelresponse", "output", "modeloutput", "completion", "generation")
GOLD = frozenset({
    "gold", "golden", "target", "truth", "gt", "expected", "reference", "correct", "label",
})  # fmt: skip
ANSWER = frozenset({"pred", "predicted", "prediction", "extracted", "parsed", "picked", "chosen"})
STATED_RIGHT = frozenset({
    "correct", "numcorrect", "ncorrect", "correctcount", "totalcorrect", "numsolved", "solved",
    "passed", "resolvedinstances",
})  # fmt: skip
STATED_MEAN = frozenset({"acc", "accuracy", "score", "passrate", "pass@1", "successrate"})
STATED_ROWS = frozenset({
    "total", "count", "totalquestions", "numquestions", "nquestions", "numexamples", "nexamples",
    "numsamples", "nsamples", "totalsamples", "totalexamples",
})  # fmt: skip
WHOLE_FIELDS = frozenset(
    name for name, field_of in BY_NAME.items() if str(field_of.type) in {"int32", "int64"}
)
REAL_FIELDS = frozenset(
    name for name, field_of in BY_NAME.items() if str(field_of.type) == "double"
) - {"score"}
"""Fields with whole and with other numbers."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_RATING = re.compile(r"\[\[(-?\d+(?:\.\d+)?)\]\]")
_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class ComparedWith:
    """The command that a table is read for, so that errors can complete it.

    Attributes:
        sources: what was typed; empty if a single source is read.
        other: path of the other run, whose columns decide between candidates.
    """

    sources: tuple[str, ...] = ()
    other: Path | None = None


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


@dataclass(frozen=True)
class Collection:
    """Rows of a file, with their cells by path.

    Attributes:
        path: path of the rows in a document; None if the file is a table.
        rows: the first rows.
        stated: numbers beside the rows, by name.
        place: where the rows are in a document.
    """

    path: str | None
    rows: Sequence[Mapping[str, Any]]
    stated: Mapping[str, float] = field(default_factory=dict)
    place: RowList | None = None

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """Path -> value in each row; elements of lists are under `PATH.*`."""
        cells = [dict(scalar_paths(row, depth=MAX_DEPTH)) for row in self.rows]
        names = dict.fromkeys(name for row in cells for name in row)
        return {name: [row.get(name) for row in cells] for name in names}

    def values(self, spec: str) -> list[Any]:
        """Return the cells of a column, path or rule."""
        known = self.columns.get(spec)
        return known if known is not None else [cell_of(row, spec) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A column that may be the score.

    Attributes:
        spec: the column, path or rule.
        rank: 0 for a verdict with a name that says so; higher if less certain.
        scale: its scale, if it is not 0 to 1; the user has to confirm it.
        values: value in each row.
    """

    spec: str
    rank: int
    values: Sequence[Any]
    scale: ScoreRange | None = None


def words_of(path: str) -> list[str]:
    """Return the words in the last name of a path, in lower case."""
    names = [name for name in path.split(".") if name != EVERY] or [path]
    return [word.lower() for word in _PARTS.findall(names[-1])]


def word_of(path: str) -> str:
    """Return the last name of a path in lower case, without separators."""
    return "".join(words_of(path))


def collections(file: TableFile, rows: str | None) -> list[Collection]:
    """Return the collections of rows in a file, largest first."""
    if not file.single and file.kind != "json":
        return [Collection(None, first_rows(file, None, ROWS_READ))]
    document = read_document(file)
    if rows is not None:
        value = document if rows == TOP else value_at(document, rows)
        return [_collection(document, rows, as_rows(value) or [])]
    if isinstance(document, list):
        found = as_rows(document)
        return [] if found is None else [Collection(None, found[:ROWS_READ])]
    lists = sorted((one for one in find_row_lists(document) if one.count > 1), key=_by_rows)
    return [
        replace(_collection(document, one.path, _rows_at(document, one)), place=one)
        for one in lists[:MAX_LISTS]
    ]


def _by_rows(one: RowList) -> int:
    return -one.count


def _rows_at(document: Any, one: RowList) -> list[Any]:
    return as_rows(document if one.path == TOP else value_at(document, one.path)) or []


def _collection(document: Any, path: str, rows: list[Any]) -> Collection:
    parent = path.rpartition(".")[0]
    beside = [document, value_at(document, parent) if parent else None]
    stated = {
        name: float(value)
        for one in beside
        if isinstance(one, dict) and path != TOP
        for name, value in one.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    known = [row for row in rows[:ROWS_READ] if isinstance(row, dict)]
    return Collection(path, known, stated)


def is_plain(file: TableFile, known: TableMap) -> bool:
    """Whether a table names its fields itself, or the user did: nothing is inferred then."""
    named = set(known.columns)
    if file.packing and file.kind == "parquet":
        return True
    if not known.rows and not file.single:
        rows = first_rows(file, None, ROWS_LOOKED_AT) if file.marked else ()
        named |= {name for row in rows for name in row} or {*column_names(file)}
    has_item = not named.isdisjoint({"item", "question"}) or len(named & IDS_BY_NAME) == 1
    return "score" in named and has_item


def collections_of_model(
    file: TableFile, rows: str | None, only: tuple[str, str] | None
) -> list[Collection]:
    """Return the collections of a file with the rows of one model."""
    found = collections(file, rows)
    return [replace(one, rows=_rows_of_model(one, only)) for one in found] if only else found


def _rows_of_model(table: Collection, only: tuple[str, str]) -> list[Mapping[str, Any]]:
    return [row for row in table.rows if str(cell_of(row, only[0])) == only[1]]


def find_model(
    file: TableFile, model: str, known: TableMap, beside: ComparedWith | None = None
) -> tuple[TableMap, tuple[str, str] | None] | None:
    """Return where the results of a model are; None if that is not clear.

    They are a part of a document whose name has the model's in it, a column of scores or answers
    with such a name, or the rows with this value in a column of few values.
    """
    if (file.single or file.kind == "json") and known.rows is None:
        document = read_document(file)
        names = _named_like(model, document) if isinstance(document, dict) else []
        lists = find_row_lists(document) if len(names) == 1 else []
        paths = [one.path for one in lists if _is_below(one.path, names[0]) and one.count > 1]
        if paths:
            return replace(known, rows=paths[0]), None
    name, _, label = model.partition("=")
    for table in collections(file, known.rows):
        columns = _named_like(name, table.columns)
        whose = [path for path, values in table.columns.items() if _is_whose(values, model)]
        whose = [path for path in whose if path == known.model] or whose
        if len(whose) == 1 and name not in columns:
            return known, (whose[0], model)
        if len(columns) == 1 and "score" not in known.columns:
            score = f"{columns[0]}={label}"
            spec = score if label else _score_in(file, table, columns[0], known, beside)
            if spec is not None:
                return known.with_columns(score=spec), None
    return None


def _is_whose(values: Sequence[Any], model: str) -> bool:
    """Whether a column of few values names the model of each row."""
    if _has_lists(values) or model not in values:
        return False
    return len({*map(str, values)}) <= max(MAX_LABELS, len(values) // 5)


def _named_like(model: str, names: Iterable[str]) -> list[str]:
    """Return the name that is the model's, else those that have it as a whole word."""
    names = list(names)
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(model)}(?![A-Za-z0-9])")
    return [name for name in names if name == model] or [one for one in names if word.search(one)]


def _is_below(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _score_in(
    file: TableFile, table: Collection, column: str, known: TableMap, beside: ComparedWith | None
) -> str | None:
    """Return the score in a column of one model: a verdict, a share, or an answer to grade.

    Raises:
        ColumnError: the column has few values, of which it is not clear which one is right.
    """
    values = table.columns[column]
    kind = _kind(values)
    if kind in {"verdict", "share"} or (kind == "graded" and known.score_range is not None):
        word = _right_word(values)
        return column if word is None else f"{column}={word}"
    golds = [
        path for path in table.columns
        if GOLD.intersection(words_of(path)) or word_of(path) == "answer"
    ]  # fmt: skip
    if kind in {"text", "label"} and len(golds) == 1 and golds[0] != column:
        return f"{column}=={golds[0]}"
    labels = sorted({str(value) for value in values if value not in (None, "")})
    if kind in {"label", "graded"} and 1 < len(labels) <= MAX_LABELS and not _has_lists(values):
        typed = beside.sources if beside else ()
        commands = [
            "`" + shlex.join(
                ["forgetmap", "compare", *(f"{source}={label}" for source in typed)]
                if typed else ["forgetmap", "records", "show", f"{file.path}#{column}={label}"]
            ) + "`"
            for label in labels[:3]
        ]  # fmt: skip
        raise ColumnError(
            f"column {column!r} has the values {listed(labels)}, and which of them counts as right "
            "is not certain",
            file=str(file.path),
            field=column,
            hint=f"choose one: {', or '.join(commands)}.",
        )
    return None


def infer(
    file: TableFile,
    known: TableMap,
    beside: ComparedWith,
    others: Callable[[], Sequence[Collection]] = tuple,
    only: tuple[str, str] | None = None,
    *,
    guess: bool = False,
) -> Inferred | None:
    """Return how a table is read; None if it has no results that could be recognised.

    Args:
        file: the table.
        known: what is known already: it is kept.
        beside: the command that the table is read for.
        others: the collections of the other run.
        only: read only the rows with this value.
        guess: return the first of several candidates, and say so.

    Raises:
        ColumnError: several columns may be the score.
    """
    best: tuple[tuple[int, int], Collection, list[Candidate]] | None = None
    try:
        tables = collections(file, known.rows)
    except UnreadableError:
        return None  # reading the rows reports the line
    for one in tables:
        table = replace(one, rows=_rows_of_model(one, only)) if only else one
        require_few_columns(file.path, len(table.columns))
        found = _candidates(table, known) if table.rows and not _are_averages(table) else []
        if found:
            least = min(candidate.rank for candidate in found)
            key = (int(least >= _UNNAMED), -len(table.rows))
            if best is None or key < best[0]:
                best = (key, table, found)
    if best is None:
        return None
    _, table, found = best
    _refuse_twins(file, table, found, known)
    other = _same_columns(table, others())
    item = known.columns.get("item") or _item(table, other, known)
    guesses: tuple[str, ...] = ()
    try:
        score = _choose(file, table, other, item, found, known, beside)
    except ColumnError as error:
        if not guess:
            raise
        score, guesses = found[0], (f"{error.message}; {error.hint}",)
        known = replace(known, score_range=known.score_range or score.scale)
    has_item = item is not None or not known.columns.keys().isdisjoint({"item", "question"})
    if score is None or not has_item:
        return None
    return replace(_settled(table, other, item, score, known), guesses=guesses)


def items_by_name(known: TableMap, rows: Sequence[Mapping[str, Any]]) -> TableMap:
    """Return the map with the item of rows whose score is not known."""
    item = None if "item" in known.columns else _item(Collection(None, rows), None, known)
    return known if item is None else known.with_columns(item=item)


def _are_averages(table: Collection) -> bool:
    """Whether these are a few objects by name with nothing but numbers, such as one per task."""
    is_named = table.place is not None and not table.place.is_list
    return is_named and len(table.rows) < MIN_NAMED and all(
        _kind(values) in {"share", "graded"} for path, values in table.columns.items()
        if path not in {"item", "task"}
    )  # fmt: skip


def _refuse_twins(
    file: TableFile, table: Collection, found: Sequence[Candidate], known: TableMap
) -> None:
    """Refuse one of several lists that look alike, of which each may be a model."""
    if table.place is None or known.rows is not None or not found:
        return
    parent = table.place.path.rpartition(".")[0]
    lists = [
        one for one in find_row_lists(read_document(file))
        if one.is_list and one.names == table.place.names and one.path.rpartition(".")[0] == parent
    ]  # fmt: skip
    if len(lists) > 1 and table.place.is_list:
        raise several_lists(file.path, lists)


def _same_columns(table: Collection, others: Sequence[Collection]) -> Collection | None:
    """Return the collection of the other run that has most columns of this one."""
    shared = {len(one.columns.keys() & table.columns.keys()): one for one in reversed(others)}
    most = max(shared, default=0)
    return shared[most] if most else None


# ---- score ----


def _candidates(table: Collection, known: TableMap) -> list[Candidate]:
    """Return the columns that may be the score, most certain first."""
    if "score" in known.columns:
        spec = known.columns["score"]
        return [Candidate(spec, 0, table.values(spec), known.score_range)]
    used = set(known.columns.values()) | {known.model}
    found = [
        one
        for path, values in table.columns.items()
        if path not in used
        for one in _candidates_in(path, values)
    ]
    counted = _counted(table)
    if counted is not None:
        return [counted]
    most = max((_filled(one.values) for one in found), default=0)
    found = [one for one in found if _filled(one.values) >= MIN_FILLED * most]
    named = [one for one in found if one.rank < _UNNAMED]
    graded = None if named else _graded(table, used)
    found += [] if graded is None else [graded]
    return sorted(found, key=lambda one: one.rank)


def _filled(values: Sequence[Any]) -> int:
    return sum(value not in (None, "", ()) for value in values)


_ASKED, _GRADED, _UNNAMED = 3, 4, 5
"""Rank of candidates that the user has to confirm, of own grades, and of verdicts of any name."""


def _candidates_in(path: str, values: Sequence[Any]) -> Iterable[Candidate]:
    words = words_of(path)
    is_named = bool((CERTAIN | LIKELY).intersection(words))
    if not words or words[-1] in NEVER or (NEVER.intersection(words) and not is_named):
        return
    rank = _rank(words)
    kind = _kind(values)
    if kind == "list":
        yield from _in_lists(path, values)
    elif kind == "verdict":
        word = _right_word(values)
        spec = path if word is None else f"{path}={word}"
        yield Candidate(spec, _UNNAMED if rank is None else rank, values)
    elif rank is None:
        return
    elif kind == "share":
        yield Candidate(path, rank + 1, values)
    elif kind == "graded":
        numbers = [value for value in map(_number, values) if value is not None]
        if rank == 0 and 2 * sum(value in {0.0, 1.0} for value in numbers) >= len(numbers):
            yield Candidate(path, rank, values)  # with a fault that is refused with its line
            return
        if "label" in words and len({*numbers}) <= MAX_LABELS:
            yield from _labels(path, values)
        yield Candidate(path, _ASKED, values, _scale(min(numbers), max(numbers)))
    elif kind == "label" and rank:
        yield from _labels(path, values)


def _labels(path: str, values: Sequence[Any]) -> Iterable[Candidate]:
    """Yield a candidate for each value that may count as right."""
    for label in sorted({str(value).strip() for value in values if value not in (None, "")}):
        yield Candidate(f"{path}={label}", _ASKED, values)


def _rank(words: Sequence[str]) -> int | None:
    if CERTAIN.intersection(words) or {"true", "false"} <= {*words}:
        return 0
    if "label" in words:  # alone it is the right answer
        return 1 if WHOSE_LABEL.intersection(words) else None
    return 1 if LIKELY.intersection(words) else None


def _in_lists(path: str, lists: Sequence[Any]) -> Iterable[Candidate]:
    """Yield the elements of lists, each of which is one answer to the item."""
    elements = [one for value in lists if isinstance(value, list) for one in value]
    if not elements or not any(value for value in lists):
        return
    inner: dict[str, list[Any]] = {}
    for one in elements[:ROWS_READ]:
        for name, value in scalar_paths(one, depth=2):
            inner.setdefault(name, []).append(value)
    for name, values in inner.items():
        full = f"{path}.{EVERY}.{name}".rstrip(".")
        rank = 1 if name == "r" else _rank(words_of(full))
        is_score = _kind(values) in {"verdict", "share"} and _right_word(values) is None
        if rank is not None and is_score:
            texts = [tuple(map(str, one)) if isinstance(one, list) else () for one in lists]
            yield Candidate(full, rank + 1, texts)


def _kind(values: Sequence[Any]) -> Kind:
    known = [value for value in values if value not in (None, "")]
    if not known:
        return "nothing"
    if any(isinstance(value, list | dict) for value in known):
        return "list"
    texts = {str(value).strip().lower() for value in known}
    if texts <= VERDICTS.keys():
        return "verdict"
    numbers = [_number(value) for value in known]
    if None not in numbers:
        if {*numbers} <= {0.0, 1.0}:
            return "verdict"
        inside = all(0 <= value <= 1 for value in numbers if value is not None)
        return "share" if inside else "graded"
    return "label" if len(texts) <= MAX_LABELS and len(texts) < len(known) else "text"


def _number(value: Any) -> float | None:
    return None if isinstance(value, list | dict) else number(value)


def _right_word(values: Sequence[Any]) -> str | None:
    """Return the word for a right answer; None if the values are truth values or numbers."""
    texts = {str(value).strip() for value in values if value not in (None, "")}
    if all(text.lower() in {"true", "false"} or _number(text) is not None for text in texts):
        return None
    return next((text for text in sorted(texts) if VERDICTS.get(text.lower())), None)


def _scale(low: float, high: float) -> ScoreRange:
    if low < 0:
        return ScoreRange(-max(-low, high), max(-low, high))
    best = next((float(end) for end in (2, 5, 10, 100) if high <= end), high)
    return ScoreRange(1.0 if low >= 1 and best in {2.0, 5.0, 10.0} else 0.0, best)


def _counted(table: Collection) -> Candidate | None:
    """Return the rule for a number of right answers beside a number of answers."""
    names = {word_of(path): path for path in table.columns}
    right = next(
        (names[one] for one in ("correct", "ncorrect", "numcorrect") if one in names), None
    )
    count = next(
        (names[one] for one in ("count", "n", "total", "numsamples") if one in names), None
    )
    if right is None or count is None:
        return None
    pairs = [(_number(a), _number(b)) for a, b in
             zip(table.columns[right], table.columns[count], strict=True)]  # fmt: skip
    fits = all(
        a is not None and b is not None and 0 <= a <= b and a % 1 == 0 and b % 1 == 0
        for a, b in pairs
    )
    return (
        Candidate(f"{right}/{count}", 0, pairs)
        if fits and any((b or 0) > 1 for _, b in pairs)
        else None
    )


def _graded(table: Collection, used: Iterable[str | None]) -> Candidate | None:
    """Return the rule that compares answer and right answer, of which some must agree."""
    texts = {path: values for path, values in table.columns.items() if path not in {*used}}
    golds = [path for path in texts if GOLD.intersection(words_of(path))]
    answers = [path for path in texts if ANSWER.intersection(words_of(path))]
    if answers and not golds:
        golds = [path for path in texts if word_of(path) == "answer"]
    found = []
    for gold in golds:
        for answer in answers:
            if gold == answer:
                continue
            spec = f"{answer}=={gold}"
            values = [cell_of(row, spec) for row in table.rows]
            known = [value for value in values if value is not None]
            alike = [word for word in words_of(gold) if word in words_of(answer)]
            if any(known):
                length = sum(len(str(cell)) for cell in texts[gold])
                found.append((len(alike), -length, sum(known), Candidate(spec, _GRADED, values)))
    return max(found, key=lambda one: one[:3])[3] if found else None


def _choose(
    file: TableFile, table: Collection, other: Collection | None, item: str | None,
    found: list[Candidate], known: TableMap, beside: ComparedWith,
) -> Candidate | None:  # fmt: skip
    """Return the only candidate that is left; None if each may be a model; otherwise ask."""
    least = min(one.rank for one in found)
    left = [one for one in found if one.rank == least]
    left = _agreeing(left, table.stated) or left
    left = [one for one in left if len({*map(str, one.values)}) > 1] or left
    if least != _ASKED:
        left = _distinct(left)
    if len(left) > 1 and other is not None:
        left = [one for one in left if _differs(one, table, other, item)] or left
    left = _plainest(left)
    if _are_models(found, left):
        return None
    depth = left[0].spec.count(".")
    shallower = [one for one in found if one.rank == _ASKED and one.spec.count(".") < depth]
    left += _plainest(shallower) if shallower and least != _ASKED else []
    is_sure = least != _ASKED or (left[0].spec == known.columns.get("score"))
    if len(left) > 1 or not is_sure:
        raise _unclear(file, table, item, left, beside)
    return left[0]


def _are_models(found: Sequence[Candidate], left: Sequence[Candidate]) -> bool:
    """Whether columns without a telling name, or of one name in several objects, are of models."""
    rivals = [one for one in found if one.rank == left[0].rank]
    if left[0].rank >= _UNNAMED:
        return len(rivals) > 1
    leaf, depth = left[0].spec.rpartition(".")[2], left[0].spec.count(".")
    alike = [one for one in rivals if one.spec.rpartition(".")[2] == leaf]
    return depth > 0 and sum(one.spec.count(".") == depth for one in alike) > 1


def _agreeing(left: Sequence[Candidate], stated: Mapping[str, float]) -> list[Candidate]:
    """Return the candidates whose sum or mean the file states."""
    rights = {value for name, value in stated.items() if word_of(name) in STATED_RIGHT}
    means = {value for name, value in stated.items() if word_of(name) in STATED_MEAN}
    kept = []
    for one in left:
        values = [value for value in map(_as_share, one.values) if value is not None]
        mean = sum(values) / len(values) if values else None
        if mean is not None and (
            sum(values) in rights or any(_close(mean, value) for value in means)
        ):
            kept.append(one)
    return kept


def _as_share(value: Any) -> float | None:
    if isinstance(value, str) and value.strip().lower() in VERDICTS:
        return VERDICTS[value.strip().lower()]
    return None if isinstance(value, tuple) else _number(value)


def _close(mean: float, stated: float) -> bool:
    return any(abs(mean * scale - stated) <= 0.005 * scale for scale in (1.0, 100.0))


def _distinct(left: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates with different values; of equal ones, the first."""
    alike = {tuple(map(_normal, one.values)): one for one in reversed(left)}
    return [one for one in left if any(one is kept for kept in alike.values())]


def _normal(value: Any) -> str:
    share = _as_share(value)
    return str(value) if share is None else str(share)


def _plainest(left: list[Candidate]) -> list[Candidate]:
    """Return the least nested candidates: `correct` before `details.correct`."""
    depth = min(one.spec.count(".") for one in left)
    return [one for one in left if one.spec.count(".") == depth]


def _differs(one: Candidate, table: Collection, other: Collection, item: str | None) -> bool:
    """Whether a column has another value on the other side for some item."""
    theirs = other.values(_column(one.spec))
    if item is None:
        return [*map(str, one.values)] != [*map(str, theirs)]
    ours = zip(map(str, table.values(item)), table.values(_column(one.spec)), strict=True)
    known = dict(zip(map(str, other.values(item)), theirs, strict=True))
    return any(name in known and str(known[name]) != str(value) for name, value in ours)


def _unclear(
    file: TableFile, table: Collection, item: str | None, left: Sequence[Candidate],
    beside: ComparedWith,
) -> ColumnError:  # fmt: skip
    """Return the error that shows the candidates and a complete command for each."""
    shown = [f"{one.spec.partition('=')[0]} ({_examples(one.values)})" for one in _distinct(left)]
    commands = [f"`{_command(file, table, item, one, beside)}`" for one in left[:MAX_CHOICES]]
    what = listed(list(dict.fromkeys(shown)))
    single = len(dict.fromkeys(shown)) == 1
    question = "several columns may be the score"
    if single:
        unsure = "its scale" if left[0].scale else "which value counts as right"
        question = f"{unsure} is not certain"
    return ColumnError(
        f"{len(table.rows):,} rows, and {question}: {what}",
        file=str(file.path),
        field="score",
        hint=("type " if len(commands) == 1 else "choose one: ") + ", or ".join(commands) + ".",
    )


def _examples(values: Sequence[Any]) -> str:
    texts = dict.fromkeys(
        " ".join(str(value).split())[:20] for value in values if value not in (None, "", ())
    )
    numbers = [value for value in map(_as_share, values) if value is not None]
    if len(texts) > MAX_LABELS and numbers:
        return f"{min(numbers):g} to {max(numbers):g}"
    return ", ".join(sorted(texts)[:4])


def _command(
    file: TableFile, table: Collection, item: str | None, one: Candidate, beside: ComparedWith
) -> str:
    columns = [f"score={one.spec}", *([f"{_field_of(item, table)}={item}"] if item else [])]
    columns += [f"rows={table.path}"] if table.path not in (None, TOP) else []
    words = ["forgetmap", *(["compare", *beside.sources] if beside.sources else
                            ["records", "show", str(file.path)])]  # fmt: skip
    words += ["--columns", ",".join(columns)]
    words += ["--range", str(one.scale)] if one.scale is not None else []
    return shlex.join(words)


# ---- item ----


def _item(table: Collection, other: Collection | None, known: TableMap) -> str | None:
    """Return the column, or columns, that tell rows apart and are on both sides."""
    used = {column for name, column in known.columns.items() if name != "item"}
    names = [
        path
        for path, values in table.columns.items()
        if path not in used and path != known.model and not _has_lists(values)
        and sum(value not in (None, "") for value in values) == len(values)
    ]  # fmt: skip
    tasks = [path for path in names if word_of(path) in TASK and _are_few(table.columns[path])]

    def tells_apart(path: str) -> bool:
        """Whether a column, with the task if there is one, tells all rows apart."""
        of_task = table.columns[tasks[0]] if tasks else [""] * len(table.rows)
        return _is_unique([*zip(of_task, table.columns[path], strict=True)])

    if "item" in names:
        return "item"
    ids = sorted(
        (path for path in names if word_of(path) in ITEM),
        key=lambda path: (
            _are_random(table.columns[path]), path.count("."), ITEM.index(word_of(path))
        ),
    )  # fmt: skip
    texts = [path for path in names if word_of(path) in QUESTION and not path.count(".")]
    shared = [path for path in (*ids, *texts) if _overlaps(path, table, other)]
    # Numbers of rows are on both sides, too, but with other content.
    shared = [path for path in shared if _has_same_content(path, table, other)] or texts[:1]
    for path in shared:
        if tells_apart(path) and not (len(shared) > 1 and _are_random(table.columns[path])):
            return path
    rest = [
        path for path in names
        if words_of(path) and path not in shared and tells_apart(path)
        and not NEVER.intersection(words_of(path)) and _rank(words_of(path)) is None
        and other is not None and _overlaps(path, table, other)
        and max(map(len, map(str, table.columns[path]))) <= MAX_ID_LENGTH
        and not _are_measurements(table.columns[path])
    ]  # fmt: skip
    if rest and not shared:
        return rest[0]
    several = [path for path in shared if word_of(path) != "task"]
    several = [path for path in several if not _are_random(table.columns[path])] or several
    several = [path for path in several if not _is_constant(table.columns[path])]
    return _settings(several, names, table, other) if several else None


def _is_constant(values: Sequence[Any]) -> bool:
    return len({*map(str, values)}) < min(len(values), 2)


def _are_few(values: Sequence[Any]) -> bool:
    return 0 < len({*map(str, values)}) <= max(1, len(values) // 5)


def _has_same_content(path: str, table: Collection, other: Collection | None) -> bool:
    """Whether the rows of an id have the same question or right answer on both sides.

    An id whose rows have another content on the other side is the place of a row.
    """
    if other is None:
        return True
    about = [
        name for name, values in table.columns.items()
        if name != path and name in other.columns and _kind(values) == "text"
        and (word_of(name) in QUESTION or GOLD & {*words_of(name)} or word_of(name) == "answer")
    ]  # fmt: skip
    place = {str(value): row for row, value in enumerate(other.values(path))}
    pairs = [
        (row, place[str(value)]) for row, value in enumerate(table.values(path))
        if str(value) in place
    ]  # fmt: skip
    return not about or any(
        2 * sum(str(table.columns[name][a]) == str(other.columns[name][b]) for a, b in pairs)
        >= len(pairs)
        for name in about
    )


def _settings(
    shared: Sequence[str], names: Sequence[str], table: Collection, other: Collection | None
) -> str:
    """Return an id whose rows are answers to the same item, or the id with the settings asked.

    Rows of an id that differ in settings which both sides have are items of their own.
    """
    count = len(table.rows)
    first = max(shared, key=lambda path: len({*map(str, table.columns[path])}))
    if other is None or len(table.columns[first]) == len({*map(str, table.columns[first])}):
        return first
    repeats = [[path] for path in names if word_of(path) in REPEAT]
    if any(_combinations(table, [first, *one]) == count for one in repeats):
        return first
    sides = (table, other)
    settings = sorted(
        path for path in names
        if path != first and word_of(path) not in REPEAT and _rank(words_of(path)) is None
        and _is_setting(*({str(value) for value in one.values(path)} for one in sides))
    )  # fmt: skip
    chosen = [first, *settings[:MAX_SETTINGS]]
    full = "+".join(chosen)
    is_item = len(chosen) > 1 and any(
        _combinations(table, [*chosen, *one]) == count for one in ([], *repeats)
    )
    return full if is_item and _overlaps(full, table, other) else first


def _is_setting(ours: set[str], theirs: set[str]) -> bool:
    """Whether two columns have few values, several on some side, that one side shares wholly."""
    is_few = 1 < max(len(ours), len(theirs)) <= MAX_SETTING_VALUES
    return is_few and (ours <= theirs or theirs <= ours)


def _combinations(table: Collection, paths: Sequence[str]) -> int:
    return len(set(zip(*(map(str, table.columns[path]) for path in paths), strict=True)))


def _overlaps(spec: str, table: Collection, other: Collection | None) -> bool:
    if other is None:
        return True
    ours, theirs = ({str(value) for value in one.values(spec)} for one in (table, other))
    if theirs == {"None"}:
        return other.columns.keys().isdisjoint({spec})  # another layout, with its own names
    return len(ours & theirs) >= MIN_OVERLAP * min(len(ours), len(theirs))


def _is_unique(values: Sequence[Any]) -> bool:
    return len({*map(str, values)}) == len(values)


def _has_lists(values: Sequence[Any]) -> bool:
    return any(isinstance(value, list | dict) for value in values)


def _are_random(values: Sequence[Any]) -> bool:
    """Whether these are random ids (UUID version 4), which no other run has."""
    return all(_RANDOM_ID.fullmatch(str(value)) for value in values[:5])


def _are_measurements(values: Sequence[Any]) -> bool:
    return any((_number(value) or 0) % 1 for value in values)


# ---- the map ----


def _settled(
    table: Collection, other: Collection | None, item: str | None, score: Candidate, known: TableMap
) -> Inferred:
    columns = {"score": score.spec}
    if item is not None:
        columns[_field_of(item, table)] = item
    columns |= _further(table, other, columns, known)
    columns |= known.columns
    reworded = ""
    if other is not None and "item" in columns and "question" not in columns:
        asked = [
            path for path in table.columns if word_of(path) in QUESTION[:4] and "." not in path
        ]
        reworded = next((p for p in asked if _is_reworded(table, other, columns["item"], p)), "")
    left_out: tuple[str, ...] = ("question",) if reworded else ()
    if known.model is None and "model" in table.columns and _is_unique(table.values(item or "")):
        left_out += ("model",)  # every item was answered by one of them: these are one run
    odd = [path for path, values in table.columns.items() if _is_odd(path, values)]
    left_out += tuple(path for path in odd if path not in columns.values())
    if _column(score.spec) != score.spec:
        left_out += (_column(score.spec),)
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


def _column(spec: str) -> str:
    return spec.partition("=")[0]


def _is_odd(path: str, values: Sequence[Any]) -> bool:
    """Whether a column is named like one of our fields, but has other values."""
    known = [value for value in values if value not in (None, "")]
    if path == "outcome":
        return not {str(value) for value in known} <= {*Outcome}
    if path in WHOLE_FIELDS:
        return any((number := _number(value)) is None or number % 1 for value in known)
    return path in REAL_FIELDS and any(_number(value) is None for value in known)


def _field_of(item: str, table: Collection) -> str:
    """Return `question` for a text that is asked, which is paired by its content, else `item`."""
    texts = [str(value) for value in table.values(item)[:50]]
    is_asked = word_of(item) in QUESTION and any(" " in text.strip() for text in texts)
    return "question" if is_asked else "item"


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
        "task": (TASK, _are_few),
        "category": (CATEGORY, lambda values: len({*map(str, values)}) <= max(2, len(values) // 2)),
        "question": (QUESTION[:4], lambda values: all(isinstance(v, str) for v in values)),
        "response": (RESPONSE, lambda values: any(isinstance(v, str) for v in values)),
        "repeat": (REPEAT, lambda values: len({*map(str, values)}) <= 1_000),
    }
    further: dict[str, str] = {}
    for name, (words, fits) in fields.items():
        used = {*chosen.values(), *known.columns.values(), *further.values()}
        paths = [
            path for path, values in table.columns.items()
            if path not in used and not path.count(".") and word_of(path) in words
            and not _has_lists(values) and None not in values and "" not in values and fits(values)
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
    if "repeat" in further and _is_unique(
        table.values(chosen.get("item", chosen.get("question", "")))
    ):
        del further["repeat"]
    return further


def _contradictions(
    table: Collection, score: Candidate, known: TableMap
) -> Iterable[Contradiction]:
    """Yield the totals beside the rows that these do not have."""
    task = known.task or known.fallback_task or "all"
    values = [_as_share(value) for value in score.values]
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
