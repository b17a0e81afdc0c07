"""A reference implementation of comparisons, row by row with plain dictionaries.

Simple and slow on purpose, and independent of the package: results of all dataframe libraries are
checked against it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Content = tuple[Any, ...]
FAILED = ("no_answer", "refused", "truncated", "degenerate")
KINDS = {
    "forgotten": (True, False),
    "gained": (False, True),
    "kept": (True, True),
    "never": (False, False),
}


@dataclass(frozen=True)
class Pair:
    """Two results of one item; None if a side has none."""

    task: str
    repeat: int
    identity: Content
    before: Row | None
    after: Row | None
    is_twin: bool

    @property
    def scores(self) -> tuple[float | None, float | None]:
        return tuple(row and row["score"] for row in (self.before, self.after))  # type: ignore[return-value]

    @property
    def is_whole(self) -> bool:
        return self.before is not None and self.after is not None

    @property
    def is_scored(self) -> bool:
        return self.is_whole and None not in self.scores

    def either(self, name: str) -> Any:
        values = [row.get(name) for row in (self.before, self.after) if row is not None]
        return next((value for value in values if value is not None), None)


@dataclass
class Counts:
    """Counts of a group, as in the result."""

    items: int = 0
    n: int = 0
    n00: int = 0
    n01: int = 0
    n10: int = 0
    n11: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Expected:
    """All counts of two runs."""

    pairs: list[Pair]
    rows_before: int
    rows_after: int
    correct_at: float

    @property
    def pairing(self) -> dict[str, float | None]:
        whole = [pair for pair in self.pairs if pair.is_whole]
        conflicts = len(self._conflicts())
        scored = [pair for pair in whole if pair.is_scored]
        items = len({(pair.task, pair.identity) for pair in scored})
        return {
            "rows_before": self.rows_before,
            "rows_after": self.rows_after,
            "paired": len(whole),
            "items": items,
            "only_before": self._lone("after") - conflicts,
            "only_after": self._lone("before") - conflicts,
            "duplicates": sum(pair.is_twin for pair in self.pairs),
            "conflicts": conflicts,
            "unscored": len(whole) - len(scored),
            "scored_before": self._covered("before", items),
            "scored_after": self._covered("after", items),
        }

    def _scored_on(self, side: str) -> set[tuple[str, Content]]:
        """Return the items with a scored answer on a side."""
        rows = ((pair, getattr(pair, side)) for pair in self.pairs)
        return {(pair.task, pair.identity) for pair, row in rows
                if row is not None and row["score"] is not None}  # fmt: skip

    def _lone(self, other: str) -> int:
        """Count answers without a counterpart, but for further ones to items that have some."""
        known = self._scored_on(other)
        return sum(getattr(pair, other) is None and (pair.task, pair.identity) not in known
                   for pair in self.pairs)  # fmt: skip

    def _covered(self, side: str, items: int) -> float | None:
        """Return the share of the scored items of a side that are in a scored pair."""
        known = len(self._scored_on(side))
        return items / known if known else None

    @property
    def total(self) -> Counts:
        return self.count(self.pairs)

    @property
    def tasks(self) -> dict[str, Counts]:
        return self._by(lambda pair: [pair.task])

    @property
    def categories(self) -> dict[str, Counts]:
        return self._by(lambda pair: [pair.either("category")])

    @property
    def tags(self) -> dict[str, Counts]:
        return self._by(
            lambda pair: {tag.strip() for tag in (pair.either("tags") or "").split(";")}
        )

    def flips(self, kind: str) -> set[tuple[Any, ...]]:
        """Return task, both ids and repeat of the pairs of one transition."""
        return {
            (pair.task, pair.before["item"], pair.after["item"], pair.repeat)
            for pair in self.pairs
            if pair.before and pair.after and pair.is_scored and self._moved(pair) == KINDS[kind]
        }

    def unpaired(self) -> Counter[tuple[Any, ...]]:
        """Count task, id, repeat and reason of all results that are in no cell."""
        conflicts = self._conflicts()
        found = Counter((*key, "same id, other content") for key in conflicts)
        for pair in self.pairs:
            row = pair.before or pair.after or {}
            key = (pair.task, row["item"], pair.repeat)
            if pair.is_whole and not pair.is_scored:
                found[*key, "unscored"] += 1
            elif not pair.is_whole and key not in conflicts:
                found[*key, "only before" if pair.before else "only after"] += 1
        return found

    def count(self, pairs: Iterable[Pair]) -> Counts:
        counts, items = Counts(), set()
        for pair in pairs:
            if not pair.is_scored:
                continue
            was, now = self._moved(pair)
            cell = f"n{int(was)}{int(now)}"
            setattr(counts, cell, getattr(counts, cell) + 1)
            counts.n += 1
            items.add((pair.task, pair.identity))
            if was and not now:
                counts.reasons[_reason(pair.after or {})] += 1
        counts.items = len(items)
        return counts

    def _moved(self, pair: Pair) -> tuple[bool, bool]:
        was, now = (score is not None and score >= self.correct_at for score in pair.scores)
        return was, now

    def _by(self, labels: Any) -> dict[str, Counts]:
        groups: dict[str, list[Pair]] = defaultdict(list)
        for pair in self.pairs:
            for label in labels(pair) if pair.is_whole else ():
                if label:
                    groups[label].append(pair)
        return {label: self.count(groups[label]) for label in sorted(groups)}

    def _conflicts(self) -> set[tuple[Any, ...]]:
        before, after = (
            {
                (pair.task, row["item"], pair.repeat)
                for pair in self.pairs
                for row in [getattr(pair, side)]
                if row is not None and not pair.is_whole
            }
            for side in ("before", "after")
        )
        return before & after


def expect(
    before: Sequence[Row], after: Sequence[Row], *, correct_at: float = 0.5, pair_by: str = "auto"
) -> Expected:
    """Return all counts of two runs of one metric."""
    were, are = _by_task(_numbered(before)), _by_task(_numbered(after))
    pairs = [
        pair
        for task in sorted(were.keys() | are.keys())
        for pair in _pair_task(task, were[task], are[task], pair_by)
    ]
    return Expected(pairs, len(before), len(after), correct_at)


def paths_through(runs: Sequence[Sequence[Row]]) -> dict[tuple[str, str], str]:
    """Return task and id of items scored in every run -> one digit per run, 1 for right."""
    scores = [{(row["task"], row["item"]): row["score"] for row in rows} for rows in runs]
    whole = [key for key in scores[0] if all(each.get(key) is not None for each in scores)]
    return {key: "".join(str(int(each[key] >= 0.5)) for each in scores) for key in whole}


def _numbered(rows: Sequence[Row]) -> list[Row]:
    """Number the repeats 0, 1, ... in the order of their labels."""
    labels = sorted({row.get("repeat", 0) for row in rows})
    return [row | {"repeat": labels.index(row.get("repeat", 0))} for row in rows]


def _by_task(rows: list[Row]) -> dict[str, list[Row]]:
    tasks: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        tasks[row["task"]].append(row)
    return tasks


def _pair_task(task: str, before: list[Row], after: list[Row], pair_by: str) -> list[Pair]:
    content = _content_of(before, after, pair_by)
    were, are = _placed(before, after, content), _placed(after, before, content)
    return [
        Pair(task, place[0], place[1:], were.get(place), are.get(place), is_twin=len(place) > 2)
        for place in were | are
    ]


def _content_of(before: list[Row], after: list[Row], pair_by: str) -> Callable[[Row], Content]:
    """Return a function for the key by which items of this task are paired."""
    questions = all(row.get("question") for row in (*before, *after))
    if pair_by == "id" or not (before and after and questions):
        return lambda row: (row["item"],)
    recorded = {
        name
        for name in ("gold", "options")
        if all(any(row.get(name) for row in rows) for rows in (before, after))
    }

    def content(row: Row) -> Content:
        gold = _gold(row) if "gold" in recorded else None
        options = row.get("options") if "options" in recorded else None
        return " ".join(row["question"].split()), gold, tuple(sorted(options or []))

    return content


def _placed(
    own: list[Row], other: list[Row], content: Callable[[Row], Content]
) -> dict[Content, Row]:
    """Return each row of one side by repeat, content and, for equal contents, id or order."""
    twins = {
        key
        for rows in (own, other)
        for (key, _), times in Counter((content(row), row["repeat"]) for row in rows).items()
        if times > 1
    }
    places: dict[Content, Row] = {}
    for row in own:
        key = content(row)
        here, there = ({r["item"] for r in rows if content(r) == key} for rows in (own, other))
        place: Content = (row["repeat"], key)
        if key in twins and row["item"] in there:
            place = (*place, "id", row["item"])
        elif key in twins:
            left = sorted(here - there, key=lambda item: (len(item), item))
            place = (*place, "place", left.index(row["item"]))
        assert place not in places, "two results claim to be the same"
        places[place] = row
    return places


def _gold(row: Row) -> str | None:
    """Return the right answer as text, also if it is written as a letter."""
    gold, options = row.get("gold"), row.get("options")
    if gold and options and gold not in options and len(gold) == 1:
        return str(options[ord(gold) - ord("A")])
    return gold


def _reason(after: Row) -> str:
    outcome = after.get("outcome")
    if outcome is None:
        return "unknown"
    return outcome if outcome in FAILED else "wrong"
