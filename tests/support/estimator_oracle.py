"""Random runs, and what is known of their items, answer by answer in plain Python.

Independent of the package: an answer is a row, an item a list of answers, and the score of an item
under an estimator is looked up pair by pair. The limits of the loss are those of `decide_oracle`.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from statistics import fmean
from typing import Any

import decide_oracle

Row = dict[str, Any]
TASKS = (
    "arc", "gsm8k", "piqa", "mmlu:law", "mmlu:art", "boolq|x", "a b", "Ünicode", "hellaswag",
)  # fmt: skip
FAILED = ("no_answer", "refused", "truncated", "degenerate", "misread")


@dataclass(frozen=True)
class Shape:
    """Properties of random runs.

    Attributes:
        repeats: answers per item, of both models or of each.
        clusters: some items share a passage, also over tasks.
        ks: numbers of options; None for open-ended items.
        items: items of each task.
        missing: share of the later answers that are not there.
        unscored: share of the answers without a score.
        content: number of items with the same question, over tasks; 0 for none recorded.
        tasks: number of tasks.
        silent: share of the wrong answers whose option is not recorded.
        lost: share of the items that the models after and later no longer know.
        gained: share that only they know.
        mute: share of the answers after that fail.
        apart: every other task gains what it would have lost.
    """

    repeats: int | tuple[int, int] = 1
    clusters: bool = False
    ks: tuple[int | None, ...] = (2, 3, 4, 5, None)
    items: int = 40
    missing: float = 0.0
    unscored: float = 0.0
    content: int = 0
    tasks: int = 3
    silent: float = 0.0
    lost: float = 0.0
    gained: float = 0.0
    mute: float = 0.0
    apart: bool = False


def random_run(seed: int, shape: Shape, side: str) -> list[Row]:
    """Return a random run; descriptions of an item are the same on all sides."""
    both = shape.repeats
    repeats = both if isinstance(both, int) else both[side == "after"]
    is_first = side in ("before", "again", "base")
    rows = []
    for number, (task, place) in enumerate(product(TASKS[: shape.tasks], range(shape.items))):
        described = _description(seed, shape, task, place, number)
        own = random.Random(f"{seed} {task} {place} {side}")
        dice = random.Random(f"{seed} {task} {place} mastery")
        mastery, fate = dice.choice([0.1, 0.5, 0.9]), dice.random()
        if fate < shape.lost + shape.gained:
            knew = (fate < shape.lost) != (shape.apart and TASKS.index(task) % 2 == 1)
            mastery = 0.95 if is_first == knew else 0.05
        if not is_first and own.random() < shape.mute:
            mastery = -1.0
        for repeat in range(repeats):
            row = described | {"repeat": repeat} | _answer(own, described["k"], mastery, shape)
            if repeat == 0 or own.random() >= shape.missing:
                rows.append(row)
    return rows


def _description(seed: int, shape: Shape, task: str, place: int, number: int) -> Row:
    group = place // 4 if shape.clusters else place
    dice = random.Random(f"{seed} {task} {group}")
    row: Row = {
        "task": task,
        "item": f"{place}",
        "category": dice.choice(["science", "maths", None]),
        "tags": dice.choice(["hard;long", "hard; easy", None]),
        "k": random.Random(f"{seed} {task} {place} item").choice(shape.ks),
    }
    if shape.clusters:
        several = TASKS.index(task) // 2
        row["cluster"] = f"passage {group} of {several}" if group % 3 else None
    place_of_gold = random.Random(f"{seed} {task} {place} gold")
    row["gold_index"] = None if row["k"] is None else place_of_gold.randrange(row["k"])
    if shape.content:
        # Equal questions are far apart, so that they are in different tasks.
        row["question"] = f"What is {number % (shape.tasks * shape.items // shape.content)}?"
    return row


def _answer(dice: random.Random, k: int | None, mastery: float, shape: Shape) -> Row:
    if dice.random() < shape.unscored:
        return {"score": None, "choice": None, "outcome": "error"}
    if dice.random() < mastery:
        return {"score": 1.0, "choice": "gold", "outcome": "correct"}
    if mastery < 0 or dice.random() < 0.2:
        return {"score": 0.0, "choice": None, "outcome": dice.choice(["no_answer", "refused"])}
    wrong = f"wrong {dice.randrange((k or 9) - 1)}"
    silent = dice.random() < shape.silent
    return {"score": 0.0, "choice": None if silent else wrong, "outcome": "incorrect"}


# ---------------------------------------------------------------------------- items


@dataclass(frozen=True)
class Item:
    """All scored answers to an item, and whether its first ones flipped.

    Attributes:
        row: task, id, labels, options and cluster.
        before: scored answers by their number.
        after: the same for the model after.
        fresh: scored answers when both models were asked again.
        earlier: scored answers at the stage before, in a chain.
    """

    row: Row
    before: dict[int, Row]
    after: dict[int, Row]
    fresh: tuple[tuple[Row, ...], tuple[Row, ...]] = ((), ())
    earlier: tuple[Row, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        return self.row["task"], self.row["item"]

    @property
    def k(self) -> float:
        return self.row["k"] or math.inf

    @property
    def pairs(self) -> list[tuple[Row, Row]]:
        """Pairs of answers of the same number."""
        return [(row, self.after[at]) for at, row in self.before.items() if at in self.after]

    @property
    def cluster(self) -> tuple[Any, ...] | None:
        """Its cluster, by name also over tasks, else its question; None if it is alone."""
        if self.row.get("cluster") is not None:
            return ("named", self.row["cluster"])
        return ("asks", self.row["question"]) if self.row.get("question") else None

    @property
    def flip(self) -> int:
        """1 if its first answers were right and wrong, -1 if the other way round, else 0."""
        if not (0 in self.before and 0 in self.after):
            return 0
        return int(is_right(self.before[0])) - int(is_right(self.after[0]))


def is_right(row: Row) -> bool:
    """Whether an answer counts as right."""
    return bool(row["score"] >= 0.5)


def items_of(before: Sequence[Row], after: Sequence[Row], *again: Row) -> list[Item]:
    """Return the items with a scored answer on both sides.

    Args:
        before: rows of the model before.
        after: rows of the model after.
        again: rows of a repeat of the model before.
    """
    sides: list[dict[tuple[str, str], dict[int, Row]]] = []
    for rows in (before, after, again):
        found: dict[tuple[str, str], dict[int, Row]] = defaultdict(dict)
        for row in rows:
            if row["score"] is not None:
                found[row["task"], row["item"]][row["repeat"]] = row
        sides.append(found)
    items = []
    for key in dict.fromkeys((row["task"], row["item"]) for row in before):
        own, other, noise = (side.get(key, {}) for side in sides)
        if own and other:
            answers = own | {100 + at: row for at, row in noise.items()}
            items.append(Item(next(iter(own.values())), answers, other))
    return items


def paired_items(before: Sequence[Row], after: Sequence[Row]) -> list[Item]:
    """Return items with one answer each, if both are scored."""
    return [item for item in items_of(before, after) if item.pairs]


def swapped(items: Iterable[Item]) -> list[Item]:
    """Exchange before and after."""
    return [
        replace(item, before=item.after, after=item.before, fresh=item.fresh[::-1])
        for item in items
    ]


def groups_of(items: Sequence[Item]) -> dict[str, dict[str, list[Item]]]:
    """Return level -> name -> items."""
    found: dict[str, dict[str, list[Item]]] = {
        level: defaultdict(list) for level in ("tasks", "categories", "tags")
    }
    for item in items:
        found["tasks"][item.row["task"]].append(item)
        if item.row["category"]:
            found["categories"][item.row["category"]].append(item)
        for tag in {tag.strip() for tag in (item.row["tags"] or "").split(";")} - {""}:
            found["tags"][tag].append(item)
    return {level: dict(sorted(names.items())) for level, names in found.items()}


def kind_of(row: Row) -> str:
    """Return how an answer ended: right, a wrong option, none found, or not recorded."""
    if is_right(row):
        return "right"
    if row["choice"] is not None:
        return "option"
    return "none" if row["outcome"] in FAILED else "unknown"


def tally(item: Item) -> tuple[int, ...]:
    """Count the answers of both sides by kind, and pairs of the same wrong option."""
    counts = [Counter(map(kind_of, side.values())) for side in (item.before, item.after)]
    same = sum(
        kind_of(b) == kind_of(a) == "option" and b["choice"] == a["choice"]
        for b, a in product(item.before.values(), item.after.values())
    )
    kinds = ("right", "option", "none", "unknown")
    return (*(side[kind] for side in counts for kind in kinds), same)


def shared_clusters(items: Sequence[Item]) -> list[tuple[Any, ...] | None]:
    """Return the cluster of each item; None for one that is alone in it."""
    sizes = Counter(item.cluster for item in items)
    return [item.cluster if sizes[item.cluster] > 1 else None for item in items]


def as_decided(
    items: Sequence[Item],
    *,
    halves: Mapping[tuple[str, str], int] | None = None,
    macro: bool = False,
    confirmed: bool = False,
    staged: bool = False,
) -> decide_oracle.Items:
    """Return the items for the oracle of the limits.

    Args:
        items: the items of a group.
        halves: task and id -> half.
        macro: tasks have the same weight.
        confirmed: flips were asked again.
        staged: there is a stage before.
    """
    clusters = shared_clusters(items)
    tasks = sorted({item.row["task"] for item in items})
    return decide_oracle.Items(
        m=[sum(map(is_right, item.before.values())) for item in items],
        r_b=[len(item.before) for item in items],
        n=[sum(map(is_right, item.after.values())) for item in items],
        r_a=[len(item.after) for item in items],
        clusters=clusters if any(clusters) else None,
        tasks=[tasks.index(item.row["task"]) for item in items],
        halves=[(halves or {}).get(item.key, 0) for item in items],
        macro=macro,
        flipped=[item.flip > 0 for item in items] if confirmed else None,
        confirmed=[_held(item) for item in items] if confirmed else None,
        earlier=[fmean(map(is_right, item.earlier)) for item in items] if staged else None,
    )


def _held(item: Item) -> float | None:
    """Return the fresh change of an item that was lost; None if it was not asked again.

    One that is in either rerun was asked; what is missing counts against the loss.
    """
    before, after = item.fresh
    if item.flip < 1 or not (before or after):
        return None
    x = fmean(map(is_right, before)) if before else 0.0
    return x - (fmean(map(is_right, after)) if after else 1.0)


# ---------------------------------------------------------------------------- estimators


def score(name: str, k: float, before: Row, after: Row) -> float:
    """Return the score of one pair of answers under one estimator, case by case."""
    was, now = is_right(before), is_right(after)
    if name == "drop":
        return float(was) - float(now)
    lost, gone = was and not now, kind_of(after) == "none"
    if name == "flips" or math.isinf(k):
        return float(lost)
    c = k / (k - 1)
    if lost:
        return 1.0 if gone else c
    if was or now or kind_of(before) == "none":
        return 0.0
    other = before["choice"] != after["choice"]
    lucky = {"latent": c**2 / k, "matched": c / (k - 2) if other and k > 2 else 0.0, "upper": 0.0}
    return -1 / (k - 1) if gone else -lucky[name]


def pair_mean(name: str, item: Item) -> float:
    """Return the mean score over all pairs of answers, one before and one after."""
    pairs = product(item.before.values(), item.after.values())
    return fmean(score(name, item.k, *pair) for pair in pairs)


def flips(first: Row, second: Row) -> float:
    """Return 1 if an answer is right and the next one wrong."""
    return float(is_right(first) and not is_right(second))


def _mean(of: Callable[[Row, Row], float], pairs: Iterable[tuple[Row, Row]]) -> float:
    return fmean(of(*pair) for pair in pairs)


def excess(item: Item) -> float:
    """Return flips between the models minus half of those within each; 0 without repeats."""
    before, after = list(item.before.values()), list(item.after.values())
    if min(len(before), len(after)) < 2:
        return 0.0
    within = [_mean(flips, permutations(side, 2)) for side in (before, after)]
    return _mean(flips, product(before, after)) - sum(within) / 2


def item_score(name: str, item: Item) -> float:
    """Return the score of an item under any estimator."""
    if name == "excess":
        return excess(item)
    if name == "leave_one_out":
        counts = [
            (sum(map(is_right, side.values())), len(side)) for side in (item.before, item.after)
        ]
        return decide_oracle.left_out(*counts[0], *counts[1])
    return pair_mean(name, item)


def noise_floor(items: Sequence[Item]) -> float | None:
    """Return how often two answers of one model flip one way, over the items with repeats."""
    found = []
    for item in items:
        sides = [list(side.values()) for side in (item.before, item.after)]
        shares = [_mean(flips, permutations(side, 2)) for side in sides if len(side) > 1]
        found += [fmean(shares)] if shares else []
    return fmean(found) if found else None


def published(items: Sequence[Item]) -> dict[str, float]:
    """Return the adjustment of 2026, with the mean luck 1/(k-1) of the items."""
    a, b = (
        fmean(fmean(map(is_right, getattr(item, side).values())) for item in items)
        for side in ("before", "after")
    )
    luck = fmean(1 / (item.k - 1) for item in items)
    lost = fmean(pair_mean("flips", item) for item in items)
    gained = fmean(pair_mean("flips", item) for item in swapped(items))
    taken = (1 - a) * (1 - b) * luck
    return {"forgetting": max(lost - taken, 0), "backward_transfer": max(gained - taken, 0)}
