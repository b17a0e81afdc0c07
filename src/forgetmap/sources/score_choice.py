"""Which column is the score, and the question to the user if that is not clear."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forgetmap.errors import ColumnError
from forgetmap.records import listed
from forgetmap.sources.cells import EVERY, cell_of, is_right, scalar_paths
from forgetmap.sources.column_words import (
    ANSWER,
    CERTAIN,
    GOLD,
    LIKELY,
    LOWER,
    MAX_LABELS,
    NEVER,
    QUESTION,
    STATED_MEAN,
    STATED_RIGHT,
    STATED_ROWS,
    all_words_of,
    as_number,
    as_share,
    has_lists,
    kind_of,
    name_rank,
    rank_of,
    right_word,
    word_of,
    words_of,
)
from forgetmap.sources.documents import ROWS_READ, TOP, Collection
from forgetmap.sources.maps import ComparedWith, ScoreRange, TableMap
from forgetmap.sources.sniff import TableFile

MAX_RATIO = 1.5
"""Most answers of an item by the least, up to which numbers of answers are repeats."""
MIN_FILLED = 0.5
"""Share of the values of the fullest candidate that a candidate must have."""
MAIN = frozenset({"overall", "final", "total", "main"})
"""Words in the name of the measure that sums up others."""
MIN_LABELLED = 2
"""Best value up to which a rating from 1 is one of two labels."""
MAX_COUNTED = 4
"""Whole numbers from 0 up to this are counts of what was right, not ratings of 0 to 5."""
MAX_CHOICES, MAX_RATINGS, MAX_COLUMNS, MAX_REPEATS = 4, 11, 200, 8
MIN_AGREEING, MIN_LABEL_SHARE, MIN_EQUAL = 0.1, 0.05, 0.9


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


def score_candidates(
    table: Collection, known: TableMap, other: Collection | None = None, item: str | None = None
) -> list[Candidate]:
    """Return the columns that may be the score, most certain first."""
    if "score" in known.columns:
        spec = known.columns["score"]
        values = table.values(spec)
        # A user who names a column of words for right and wrong means the right one.
        word = (
            right_word(values) if spec in table.columns and kind_of(values) == "verdict" else None
        )
        spec = spec if word is None else f"{spec}={word}"
        return [Candidate(spec, 0, values, known.score_range)] if _filled(values) else []
    used = set(known.columns.values()) | {known.model, item}
    names = {word_of(path): path for path in table.columns}
    found = [
        one
        for path, values in table.columns.items()
        if path not in used and not _is_average(path, values, names, table)
        for one in _candidates_in(path, values)
    ]
    counted = _counted(table)
    if counted is not None:
        return [counted]
    most = max((_filled(one.values) for one in found), default=0)
    found = [one for one in found if _filled(one.values) >= MIN_FILLED * most]
    # Steps that all succeed are no score beside one that tells answers apart.
    is_told = any(EVERY not in one.spec and one.rank < ASKED and _varies(one) for one in found)
    found = [one for one in found if not is_told or EVERY not in one.spec or _varies(one)]
    named = [one for one in found if one.rank < UNNAMED]
    if not named and other is not None:
        found = [one for one in found if _varies(one)]
    graded = None if named else _graded(table, used, other, item)
    found += [] if graded is None else [graded]
    return sorted(found, key=lambda one: one.rank)


def _is_average(
    path: str, values: Sequence[Any], names: Mapping[str, str], table: Collection
) -> bool:
    """Whether a share is one of as many answers as another column, or an error, says."""
    if kind_of(values) not in {"share", "verdict"}:
        return False
    if f"{word_of(path)}stderr" in names or "stderr" in words_of(path):
        return True
    counts = [names[word] for word in STATED_ROWS & names.keys()]
    shares = [(as_number(share), as_number(count)) for name in counts
              for share, count in zip(values, table.columns[name], strict=True)]  # fmt: skip
    return bool(shares) and kind_of(values) == "share" and all(
        count is not None and count > 1 and share is not None
        and abs(share * count - round(share * count)) < 0.01 * count
        for share, count in shares
    )  # fmt: skip


def _varies(one: Candidate) -> bool:
    return len({*map(_normal, one.values)}) > 1


def _filled(values: Sequence[Any]) -> int:
    return sum(value not in (None, "", ()) for value in values)


ASKED, GRADED, UNNAMED = 3, 4, 5
"""Rank of candidates that the user has to confirm, of own grades, and of verdicts of any name."""


def _candidates_in(path: str, values: Sequence[Any]) -> Iterable[Candidate]:
    words = words_of(path)
    is_named = bool((CERTAIN | LIKELY).intersection(words))
    if not words or words[-1] in NEVER or (NEVER.intersection(words) and not is_named):
        return
    rank = rank_of(path)
    kind = kind_of(values)
    is_lower = LOWER.intersection(words) and not CERTAIN.intersection(words)
    if is_lower and kind in {"verdict", "share", "graded"} and right_word(values) is None:
        yield from _lower_is_better(path, kind, values)
    elif kind == "list":
        yield from _in_lists(path, values)
    elif kind == "verdict":
        word = right_word(values)
        spec = path if word is None else f"{path}={word}"
        yield Candidate(spec, UNNAMED if rank is None else rank, values)
    elif rank is None:
        numbers = {number for value in values if (number := as_number(value)) is not None}
        if kind == "graded" and len(numbers) <= MAX_RATINGS and all(n % 1 == 0 for n in numbers):
            yield Candidate(path, UNNAMED + 1, values, _scale(min(numbers), max(numbers)))
    elif kind == "share":
        yield Candidate(path, rank + 1, values)
    elif kind == "graded":
        yield from _numbers(path, rank, values)
    elif kind == "label" and rank:
        yield from _labels(path, values)


def _numbers(path: str, rank: int, values: Sequence[Any]) -> Iterable[Candidate]:
    """Yield a score of another scale, for the user to confirm."""
    numbers = [value for value in map(as_number, values) if value is not None]
    if rank == 0 and 2 * sum(value in {0.0, 1.0} for value in numbers) >= len(numbers):
        yield Candidate(path, rank, values)  # a verdict with a fault, refused with its line
        return
    if "label" in words_of(path) and len({*numbers}) <= MAX_LABELS:
        yield from _labels(path, values)
    scale = _scale(min(numbers), max(numbers))
    yield Candidate(path, ASKED, values, scale)
    if scale.worst == 1.0 and scale.best > MIN_LABELLED:  # no answer was rated 0
        yield Candidate(path, ASKED, values, ScoreRange(0.0, scale.best))


def _lower_is_better(path: str, kind: str, values: Sequence[Any]) -> Iterable[Candidate]:
    """Yield a measure that is better if it is lower, for the user to confirm."""
    numbers = [value for value in map(as_number, values) if value is not None]
    if kind == "verdict":
        yield from (Candidate(f"{path}={value}", ASKED, values) for value in (0, 1))
    else:
        worst, best = _scale(min(numbers), max(numbers)) if kind == "graded" else (0.0, 1.0)
        yield Candidate(path, ASKED, values, ScoreRange(best, worst))


def _labels(path: str, values: Sequence[Any]) -> Iterable[Candidate]:
    """Yield a candidate for each value that may count as right."""
    for label in sorted({str(value).strip() for value in values if value not in (None, "")}):
        yield Candidate(f"{path}={label}", ASKED, values)


def _in_lists(path: str, lists: Sequence[Any]) -> Iterable[Candidate]:
    """Yield the elements of lists, each of which is one answer to the item."""
    filled = [value for value in lists if isinstance(value, list) and value]
    lengths = Counter(map(len, filled)).most_common(1)
    is_usual = bool(lengths) and lengths[0][1] >= MIN_EQUAL * len(filled)
    if not is_usual or lengths[0][0] > max(len(lists), MAX_REPEATS):
        return  # as many as there are tests or steps: repeats are equally many, and not so many
    elements = [one for value in filled for one in value]
    inner: dict[str, list[Any]] = {}
    for one in elements[:ROWS_READ]:
        for name, value in scalar_paths(one, depth=2):
            inner.setdefault(name, []).append(value)
    for name, values in inner.items():
        full = f"{path}.{EVERY}.{name}".rstrip(".")
        rank = 1 if name == "r" else name_rank(words_of(full))
        is_score = kind_of(values) in {"verdict", "share"} and right_word(values) is None
        if rank is not None and is_score:
            texts = [tuple(map(str, one)) if isinstance(one, list) else () for one in lists]
            yield Candidate(full, rank + 1, texts)


def _scale(low: float, high: float) -> ScoreRange:
    if low < 0:
        return ScoreRange(-max(-low, high), max(-low, high))
    ends = (2, 5, 10, 100) if low >= 1 or high > MAX_COUNTED else (high,)
    best = next((float(end) for end in ends if high <= end), high)
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
    pairs = [(as_number(a), as_number(b)) for a, b in
             zip(table.columns[right], table.columns[count], strict=True)]  # fmt: skip
    fits = all(
        a is not None and b is not None and 0 <= a <= b and a % 1 == 0 and b % 1 == 0
        for a, b in pairs
    )
    counts = [answers or 0 for _, answers in pairs]
    if not fits or max(counts) <= 1:
        return None
    # Numbers that differ much may be items of categories: averages, not repeats.
    rank = 0 if max(counts) <= MAX_RATIO * min(counts) else ASKED
    return Candidate(f"{right}/{count}", rank, pairs)


def _graded(
    table: Collection, used: Iterable[str | None], other: Collection | None, item: str | None
) -> Candidate | None:
    """Return the rule that compares answer and right answer, by their names or by what they are.

    Right answers are the same on both sides; answers are not, and agree with them more often than
    by chance. At least one of the two must be named like what it is.
    """
    texts = {
        path: values for path, values in table.columns.items()
        if path not in {*used}
        and (not has_lists(values) or all_words_of(path) & (ANSWER | GOLD))
    }  # fmt: skip
    golds = [path for path in texts if all_words_of(path) & GOLD or word_of(path) == "answer"]
    answers = [path for path in texts if ANSWER.intersection(words_of(path))]
    pairs = [(gold, answer) for gold in golds for answer in answers]
    if other is not None and item is not None and len(texts) <= MAX_COLUMNS:
        same = {
            path: not differs(path, table, other, item) for path in texts if path in other.columns
        }
        fixed = [path for path in texts if same.get(path) and len({*map(str, texts[path])}) > 1]
        if fixed:
            pairs = [pair for pair in pairs if pair[0] in fixed] or pairs
            moving = [path for path in texts if path not in fixed]
            pairs += [(gold, answer) for gold in fixed for answer in moving
                      if (gold in golds or answer in answers)
                      and not ANSWER & {*words_of(gold)}]  # fmt: skip
    found = []
    for gold, answer in dict.fromkeys(pairs):
        if gold == answer or kind_of(texts[gold]) == "nothing":
            continue
        spec = f"{answer}=={gold}"
        values = [cell_of(row, spec) for row in table.rows]
        known = [value for value in values if value is not None]
        alike = [word for word in words_of(gold) if word in words_of(answer)]
        names = (gold in golds) + (answer in answers)
        agreeing = sum(known) / max(len(known), 1)
        if any(known) and (names == 2 or agreeing >= MIN_AGREEING):
            length = sum(len(str(cell)) for cell in texts[gold])
            key = (names, len(alike), -length, sum(known))
            found.append((key, Candidate(spec, GRADED, values)))
    return max(found, key=lambda one: one[0])[1] if found else None


def never_right(table: Collection, spec: str) -> str:
    """Return the right label that no answer has, where answers have one that is never right."""
    answer, equals, gold = spec.partition("==")
    if not equals:
        return ""
    sides = [Counter(str(value).strip().casefold() for value in table.values(path)
                     if value not in (None, "")) for path in (gold, answer)]  # fmt: skip
    if not 1 < len(sides[0]) <= MAX_LABELS or len(sides[1]) > 2 * MAX_LABELS:
        return ""
    odd = [
        [label for label, count in ours.items()
         if label not in theirs and count >= MIN_LABEL_SHARE * ours.total()
         and not any(is_right(one, label) for one in theirs)]
        for ours, theirs in (sides, sides[::-1])
    ]  # fmt: skip
    right = {label for label in odd[1] if any(is_right(label, gold) for gold in sides[0])}
    wrong = [label for label in odd[1] if label not in right]
    return (
        f"{odd[0][0]!r} is never answered, {wrong[0]!r} is never right" if odd[0] and wrong else ""
    )


def choose_score(
    file: TableFile, table: Collection, other: Collection | None, item: str | None,
    found: list[Candidate], known: TableMap, beside: ComparedWith,
) -> Candidate | None:  # fmt: skip
    """Return the only candidate that is left; None if each may be a model; otherwise ask."""
    least = min(one.rank for one in found)
    left = [one for one in found if one.rank == least]
    left = _agreeing(left, table.stated) or left
    left = [one for one in left if len({*map(str, one.values)}) > 1] or left
    if least < ASKED or least >= UNNAMED:
        left = _distinct(left)
    if len(left) > 1 and other is not None:
        left = [one for one in left if differs(column_of(one.spec), table, other, item)] or left
    left = _plainest(left)
    if other is None and _are_models(found, left):
        return None
    is_named = "score" in known.columns or (known.score_range is not None and len(left) == 1)
    if least >= UNNAMED and not is_named:
        if item is None or len({*map(_normal, left[0].values)}) < 2:
            return None
        both = [replace(one, spec=f"{one.spec}={value}") for one in left for value in (1, 0)
                if one.scale is None and "=" not in one.spec]  # fmt: skip
        both += [one for one in left if one.scale is not None or "=" in one.spec]
        raise _unclear(file, table, item, both, beside)
    problem = never_right(table, left[0].spec) or (other and never_right(other, left[0].spec))
    if problem:
        raise ColumnError(
            f"no score, and {left[0].spec} cannot be graded: {problem}",
            file=str(file.path),
            field="score",
            hint="write answers and right answers alike, or add a column with the score.",
        )
    depth = left[0].spec.count(".")
    shallower = [one for one in found if one.rank == ASKED and one.spec.count(".") < depth]
    left += _plainest(shallower) if shallower and least != ASKED else []
    if len(left) > 1 or not (least != ASKED or is_named):
        raise _unclear(file, table, item, left, beside)
    return left[0]


def _are_models(found: Sequence[Candidate], left: Sequence[Candidate]) -> bool:
    """Whether columns without a telling name, or of one name in several objects, are of models."""
    rivals = [one for one in found if one.rank == left[0].rank]
    if left[0].rank >= UNNAMED:
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
        values = [value for value in map(as_share, one.values) if value is not None]
        mean = sum(values) / len(values) if values else None
        if mean is not None and (
            sum(values) in rights or any(_close(mean, value) for value in means)
        ):
            kept.append(one)
    return kept


def _close(mean: float, stated: float) -> bool:
    return any(abs(mean * scale - stated) <= 0.005 * scale for scale in (1.0, 100.0))


def _distinct(left: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates with different values; of equal ones, the first."""
    alike = {tuple(map(_normal, one.values)): one for one in reversed(left)}
    return [one for one in left if any(one is kept for kept in alike.values())]


def _normal(value: Any) -> str:
    share = as_share(value)
    return str(value) if share is None else str(share)


def _plainest(left: list[Candidate]) -> list[Candidate]:
    """Return the least nested candidates: `correct` before `details.correct`."""
    depth = min(one.spec.count(".") for one in left)
    return [one for one in left if one.spec.count(".") == depth]


def differs(path: str, table: Collection, other: Collection, item: str | None) -> bool:
    """Whether a column has another value on the other side for some item."""
    theirs = other.values(path)
    if item is None:
        return [*map(str, table.values(path))] != [*map(str, theirs)]
    ours = zip(map(str, table.values(item)), table.values(path), strict=True)
    known = dict(zip(map(str, other.values(item)), theirs, strict=True))
    return any(name in known and str(known[name]) != str(value) for name, value in ours)


def _unclear(
    file: TableFile, table: Collection, item: str | None, left: Sequence[Candidate],
    beside: ComparedWith,
) -> ColumnError:  # fmt: skip
    """Return the error that shows the candidates and a complete command for each."""
    left = sorted(left, key=lambda one: MAIN.isdisjoint(words_of(one.spec)))
    shown = [f"{one.spec.partition('=')[0]} ({examples(one.values)})" for one in _distinct(left)]
    commands = [
        f"`{command(file, table, item, one.spec, beside, one.scale)}`" for one in left[:MAX_CHOICES]
    ]
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


def examples(values: Sequence[Any]) -> str:
    """Return some of the values of a column, or their range."""
    texts = dict.fromkeys(
        " ".join(str(value).split())[:20] for value in values if value not in (None, "", ())
    )
    numbers = [value for value in map(as_share, values) if value is not None]
    if len(texts) > MAX_LABELS and numbers:
        return f"{min(numbers):g} to {max(numbers):g}"
    return ", ".join(sorted(texts)[:4])


def command(
    file: TableFile, table: Collection, item: str | None, score: str, beside: ComparedWith,
    scale: ScoreRange | None = None,
) -> str:  # fmt: skip
    """Return the command that reads a table with this score and item."""
    columns = [f"score={score}", *([f"{field_of_item(item, table)}={item}"] if item else [])]
    is_of_model = any("#" in source for source in beside.sources)  # which finds the rows
    columns += [f"rows={table.path}"] if table.path not in (None, TOP) and not is_of_model else []
    words = ["forgetmap", *(["compare", *beside.sources] if beside.sources else
                            ["records", "show", str(file.path)])]  # fmt: skip
    words += ["--columns", ",".join(columns)]
    words += ["--range", str(scale)] if scale is not None else []
    return shlex.join(words)


def score_columns(table: Collection) -> list[str]:
    """Return the columns with scores, or the objects that have one of the same name: the models."""
    scores = [
        path for path, values in table.columns.items()
        if kind_of(values) in {"verdict", "share"} and word_of(path) not in _OTHERS
        and not NEVER.intersection(words_of(path))
    ]  # fmt: skip
    inner: dict[str, list[str]] = {}
    for path in scores:
        parent, dot, leaf = path.rpartition(".")
        if dot:
            inner.setdefault(leaf, []).append(parent)
    by_leaf = max(inner.values(), key=len, default=[])
    top = [path for path in scores if "." not in path]
    return by_leaf if len(by_leaf) > max(1, len(top)) else top


_OTHERS = frozenset(
    {"task", "item", "repeat", "id", "index", "seed", "model", "model_name", "template", "system"}
)


def column_of(spec: str) -> str:
    """Return the column of a rule such as `judge_label=0`; a column itself."""
    return spec.partition("=")[0]


def field_of_item(item: str, table: Collection) -> str:
    """Return `question` for a text that is asked, which is paired by its content, else `item`."""
    texts = [str(value) for value in table.values(item)[:50]]
    is_asked = word_of(item) in QUESTION and any(" " in text.strip() for text in texts)
    return "question" if is_asked else "item"
