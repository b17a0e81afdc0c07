"""Verdicts of comparisons: every group equals the oracle of the limits, item by item."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import decide_oracle
import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow
from decide_oracle import Bounds, Items, Judged
from estimator_oracle import Item, Row, Shape
from estimator_runs import read_halves
from forgetmap.comparison import ComparisonResult, phrases
from forgetmap.results import Estimate
from judged_groups import (
    check_families,
    check_group,
    check_totals,
    judge_both,
    judge_items,
    swap_all,
)
from small_runs import codes, table

SEEDS = (1, 2)
SHAPES = {
    "single": Shape(lost=0.15),
    "single, gained": Shape(gained=0.3, lost=0.02),
    "single, many tasks": Shape(tasks=9, items=20, lost=0.15, gained=0.1),
    "losses and gains apart": Shape(tasks=9, items=20, lost=0.4, apart=True),
    "uneven repeats": Shape(repeats=(3, 2), items=12, missing=0.2, unscored=0.03, lost=0.2),
    "repeats, many tasks": Shape(repeats=2, items=12, tasks=9, lost=0.1, gained=0.1),
    "repeats after": Shape(repeats=(1, 3), items=20, lost=0.1),
    "clusters": Shape(clusters=True, tasks=9, items=12, lost=0.15),
    "clusters, repeats": Shape(repeats=(1, 2), clusters=True, items=16, lost=0.2),
    "shared content": Shape(content=3, tasks=9, items=12, lost=0.15),
    "mute": Shape(mute=0.3, items=60, ks=(2, 4)),
    "one task": Shape(tasks=1, items=30, lost=0.3),
}
NAMES = {"L1": "drop", "L2": "tasks", "L3": "repeats", "L4": "confirmed", "L5": "earlier_stage"}


@cache
def runs(name: str, seed: int) -> tuple[list[Row], list[Row]]:
    shape = SHAPES[name]
    before, after = (oracle.random_run(seed, shape, side) for side in ("before", "after"))
    return before, after


@cache
def compared(name: str, seed: int) -> tuple[ComparisonResult, list[Item], dict[Any, int]]:
    before, after = runs(name, seed)
    single = SHAPES[name].repeats == 1
    items = oracle.paired_items(before, after) if single else oracle.items_of(before, after)
    halves = read_halves(before, after) if SHAPES[name].tasks > 7 else {}
    return fm.compare(as_arrow(before), as_arrow(after)).result, items, halves


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SHAPES)
def test_totals_equal_the_oracle(name: str, seed: int) -> None:
    result, items, halves = compared(name, seed)
    check_totals(result, items, halves)
    for group, macro in ((result.total, False), (result.total_macro, True)):
        bounds = decide_oracle.offered(oracle.as_decided(items, halves=halves, macro=macro))
        a = 0.025 / len(bounds)
        carried = max(bounds, key=lambda each: bounds[each](a))
        assert group.loss.carried_by == NAMES[carried]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SHAPES)
def test_groups_are_families(name: str, seed: int) -> None:
    check_families(*compared(name, seed))


def test_every_verdict_and_every_bound_occurs() -> None:
    found = [
        group
        for name in SHAPES
        for seed in SEEDS
        for result in [compared(name, seed)[0]]
        for group in (result.total, result.total_macro, *result.tasks, *result.tags)
    ]
    assert {group.verdict for group in found} >= {"lost", "cannot_tell", "no_net_loss"}
    carried = {group.loss.carried_by for group in found if (group.loss.low or 0) > 0}
    assert carried == {"drop", "tasks", "repeats"}
    assert any((group.gain.low or 0) > 0 for group in found)


# ---------------------------------------------------------------------------- words


def knowledge(items: Sequence[Item], halves: dict[Any, int], a: float) -> bool:
    """Apply both guards to the items of a group."""
    before, after = (
        [
            sum(oracle.kind_of(row) == "none" for row in side.values()) / len(side)
            for item in items
            for side in [getattr(item, name)]
        ]
        for name in ("before", "after")
    )
    return decide_oracle.knows_less(
        oracle.as_decided(items, halves=halves), before, after, [item.k for item in items],
        [item.row["gold_index"] for item in items], a,
    )  # fmt: skip


WORDS = {
    "all at once": Shape(lost=0.3, ks=(4,), items=80),
    "open-ended": Shape(lost=0.3, ks=(None,), items=60),
    "several k": Shape(lost=0.3, ks=(2, 4, None), items=80),
    "mute": Shape(mute=0.5, ks=(2,), items=80),
    "mute, four options": Shape(mute=0.25, ks=(4, None), items=60),
    "clusters": Shape(lost=0.25, ks=(4,), clusters=True, items=60),
    "repeats": Shape(lost=0.3, ks=(4,), repeats=2, items=40),
}


@pytest.mark.parametrize("name", WORDS)
def test_knowledge_is_claimed_where_both_guards_hold(name: str) -> None:
    said = []
    for seed in range(6):
        before, after = (oracle.random_run(seed, WORDS[name], side) for side in ("before", "after"))
        result = fm.compare(as_arrow(before), as_arrow(after)).result
        items = oracle.items_of(before, after)
        m = 2 if WORDS[name].repeats == 2 else 1
        selected = [group for group in result.tasks if (group.loss.low or 0) > 0]
        part = len(selected) / len(result.tasks)
        own = oracle.groups_of(items)["tasks"]
        for group, found, a in [
            (result.total, items, 0.025 / m),
            *((group, own[group.name], 0.025 * part / m) for group in selected),
        ]:
            is_lost = (group.loss.low or 0) > 0
            by_drop = is_lost and group.loss.carried_by in ("drop", "tasks")
            expected = by_drop and knowledge(found, {}, a)
            assert group.is_knowledge == expected, (seed, group.name)
            said.append(expected)
            assert (group.unlucky == "guesses_count") == (is_lost and not by_drop)
    if name in ("open-ended", "several k", "all at once"):
        assert any(said)
    if name == "mute":
        assert not any(said)


def guessing_run(
    rng: random.Random,
    known: Sequence[bool],
    guesses: Sequence[str],
    golds: str,
    *,
    answers: int = 1,
    recorded: bool = True,
) -> list[pa.Table]:
    """Return answers of a model that gives every guess again, but for 1 % noise."""
    tables = []
    for repeat in range(answers):
        given = "".join(
            rng.choice("ABCD") if rng.random() < 0.01 else gold if knows else guess
            for knows, guess, gold in zip(known, guesses, golds, strict=True)
        )
        one = letters(given, golds).append_column("repeat", pa.array([repeat] * len(golds)))
        tables.append(one if recorded else one.drop_columns(["outcome"]))
    return tables


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("way", ["repeats", "confirmed", "earlier_stage"])
def test_guesses_that_changed_for_good_are_not_called_knowledge(way: str, recorded: bool) -> None:
    """A tenth of the known items is lost, and every guess is another one for good."""
    rng = random.Random(5)
    size = 2000
    golds = "".join(rng.choices("ABCD", k=size))
    known = [rng.random() < 0.5 for _ in range(size)]
    left = [knows and rng.random() > 0.1 for knows in known]
    truth = (sum(known) - sum(left)) / size
    models = [(each, rng.choices("ABCD", k=size)) for each in (known, left)]

    def asked(side: int, answers: int = 1) -> pa.Table:
        return pa.concat_tables(
            guessing_run(rng, *models[side], golds, answers=answers, recorded=recorded)
        )

    if way == "repeats":
        total = fm.compare(asked(0, 3), asked(1, 3)).result.total
    elif way == "confirmed":
        total = fm.compare(asked(0), asked(1), confirm=(asked(0), asked(1))).result.total
    else:
        stages = fm.compare(asked(0), asked(1), asked(1), chain=True).result.stages
        total = (stages or [])[-1].against_first
    assert total.loss.carried_by == way
    assert (total.loss.low or 0) > truth
    assert (total.is_knowledge, total.unlucky) == (False, "guesses_count")
    assert "no longer knows" not in phrases.sentence(total)
    assert "guesses that changed for good count here: " in phrases.sentence(total)


def letters(answers: str, golds: str, *, positions: bool = True) -> pa.Table:
    """Return a task of four options with these answers."""
    scores = [float(a == g) for a, g in zip(answers, golds, strict=True)]
    columns: dict[str, Any] = {
        "k": [4] * len(scores),
        "choice": list(answers),
        "outcome": ["correct" if score else "incorrect" for score in scores],
    }
    if positions:
        columns["gold"] = list(golds)
    return table(scores, **columns)


def test_a_habit_of_letters_that_moved_is_not_lost_knowledge() -> None:
    """Both models guess one letter; most right answers are at the letter of the first."""
    golds = "A" * 300 + "B" * 60 + "C" * 60 + "D" * 60
    before, after = "A" * 480, "B" * 480
    total = fm.compare(letters(before, golds), letters(after, golds)).result.total
    assert (total.verdict, total.is_knowledge, total.unlucky) == ("lost", False, "letters_moved")
    bare = [letters(side, golds, positions=False) for side in (before, after)]
    assert fm.compare(bare[0], bare[1]).result.total.is_knowledge


def test_one_position_that_is_not_recorded_does_not_open_the_guard() -> None:
    golds = "A" * 300 + "B" * 60 + "C" * 60 + "D" * 60
    sides = [letters(each * 480, golds) for each in "AB"]
    sides = [
        side.set_column(
            side.column_names.index("gold"), "gold", pa.array([None, *golds[1:]], pa.string())
        )
        for side in sides
    ]
    total = fm.compare(sides[0], sides[1]).result.total
    assert (total.is_knowledge, total.unlucky) == (False, "letters_moved")


def test_answers_that_are_no_longer_given_are_not_lost_knowledge() -> None:
    """A model that only guessed between two options no longer answers."""
    size = 400
    before = table([float(n % 2) for n in range(size)], k=[2] * size, choice=["x"] * size,
                   outcome=[("incorrect", "correct")[n % 2] for n in range(size)])  # fmt: skip
    nothing: Any = [None] * size
    after = table([0.0] * size, k=[2] * size, outcome=["refused"] * size,
                  choice=pa.array(nothing, pa.string()))  # fmt: skip
    total = fm.compare(before, after).result.total
    assert (total.verdict, total.is_knowledge, total.unlucky) == ("lost", False, "unanswered")
    assert total.unanswered == 1.0


@pytest.mark.parametrize("k", [4, None])
@pytest.mark.parametrize("way", ["apart", "silent"])
def test_a_loss_without_knowledge_says_why(way: str, k: int | None) -> None:
    """What some tasks lost others gained, so the whole drop is 0; or no outcome is recorded."""
    runs: list[list[pa.Table]] = [[], []]
    for task in range(10):
        before = [1.0] * 40 + [0.0] * 20
        fell, rose = [0.0] * 12 + before[12:], before[:-12] + [1.0] * 12
        after = rose if way == "apart" and task % 2 else fell
        for side, scores in zip(runs, (before, after), strict=True):
            outcomes = {"outcome": ["correct" if score else "incorrect" for score in scores]}
            side.append(
                table(scores, task=f"t{task}", k=pa.array([k] * 60, pa.int64()),
                      **(outcomes if way == "apart" else {}))
            )  # fmt: skip
    before_all, after_all = map(pa.concat_tables, runs)
    total = fm.compare(before_all, after_all).result.total
    assert (total.loss.low or 0) > 0
    reason = {"apart": ("tasks", "too_small"), "silent": ("drop", "not_recorded")}[way]
    found = (total.loss.carried_by, total.unlucky)
    assert found == (reason if k else (reason[0], None))
    assert not total.is_knowledge


# ---------------------------------------------------------------------------- stated, selected


def stated_noise(floor: float) -> Any:
    def more(items: Items) -> Bounds:
        flips = [x * (1 - y) for x, y in zip(items.x, items.y, strict=True)]
        n10 = decide_oracle.cells(items)[0] if items.plain else 0

        def bound(a: float) -> float:
            if items.plain:
                return decide_oracle.lower_flips(n10, items.size, a) - floor
            return decide_oracle.lower_t(items, flips, a) - floor

        return {"stated": bound}

    return more


@pytest.mark.parametrize("floor", [0.0, 0.03])
@pytest.mark.parametrize("name", ["single", "clusters", "repeats, many tasks"])
def test_a_stated_noise_floor_is_one_more_bound(name: str, floor: float) -> None:
    (before, after), (_, items, halves) = runs(name, 1), compared(name, 1)
    result = fm.compare(as_arrow(before), as_arrow(after), noise_floor=floor).result
    more = stated_noise(floor)
    check_group(result.total, *judge_both(items, halves, more=more))
    stated = result.total.loss.carried_by == "stated"
    assert (result.total.loss.assumes is not None) == stated
    assert stated or floor > 0


@pytest.mark.parametrize("estimator", ["latent", "upper", "matched"])
@pytest.mark.parametrize("name", ["four options", "four options, clusters"])
def test_a_stated_estimator_is_one_more_bound(name: str, estimator: str) -> None:
    shape = Shape(ks=(4,), lost=0.2, clusters=name.endswith("clusters"))
    before, after = (oracle.random_run(3, shape, side) for side in ("before", "after"))
    total = fm.compare(as_arrow(before), as_arrow(after), estimator=estimator).result.total
    items = oracle.paired_items(before, after)
    judged = []
    for own in (items, oracle.swapped(items)):
        scores = [oracle.item_score(estimator, item) for item in own]

        def more(group: Items, scores: list[float] = scores) -> Bounds:
            return {"stated": lambda a: decide_oracle.lower_t(group, scores, a, 4 / 3)}

        judged.append(judge_items({"t": own}, {}, more=more)["t"])
    check_group(total, judged[0], judged[1])


def test_an_estimator_that_the_data_do_not_allow_states_nothing() -> None:
    before, after = runs("single", 1)  # with two options among others
    assert SHAPES["single"].ks[0] == 2
    total = fm.compare(as_arrow(before), as_arrow(after), estimator="matched").result.total
    assert total == compared("single", 1)[0].total


def lists(lost: int, size: int = 120) -> tuple[pa.Table, pa.Table]:
    """All right before, so many wrong after."""
    return table([1.0] * size), table([float(n >= lost) for n in range(size)])


def test_a_run_that_is_right_in_everything_may_have_chosen_the_items() -> None:
    before, after = lists(40)
    total = fm.compare(before, after).result.total
    assert (total.verdict, total.undecided) == ("cannot_tell", "all_right")
    assert (total.loss.low, total.loss.high) == (None, None)
    assert fm.compare(before, after, selected=False).result.total.verdict == "lost"
    few = fm.compare(before.slice(0, 49), after.slice(0, 49)).result.total
    assert few.verdict == "lost"
    asked = fm.compare(table([*[1.0] * 119, 0.0]), after, selected=True).result.total
    assert asked.undecided == "selected"


def test_a_repeat_of_the_model_before_does_not_hide_that_the_first_answers_were_all_right() -> None:
    before, after = lists(40)
    again = table([float(n % 3 > 0) for n in range(120)])
    total = fm.compare(before, after, noise=again).result.total
    assert (total.verdict, total.undecided) == ("cannot_tell", "all_right")


def test_more_items_would_not_decide_what_was_exchanged() -> None:
    scores = [float(n % 2) for n in range(4000)]
    flipped = [1 - score if n < 400 else score for n, score in enumerate(scores)]
    total = fm.compare(table(scores), table(flipped)).result.total
    assert total.verdict == "no_net_loss"
    assert total.decides is not None
    assert (total.decides.items, total.decides.flips) == (None, 200)


def test_the_drop_among_answers_that_were_given() -> None:
    """Of 100 items 10 are no longer answered; of the others 5 of 45 right ones are wrong now."""
    before = [1.0] * 50 + [0.0] * 50
    after = [0.0] * 10 + [1.0] * 40 + [0.0] * 50
    outcomes = ["correct"] * 50 + ["incorrect"] * 50
    later = ["no_answer"] * 5 + ["incorrect"] * 5 + ["correct"] * 40
    later += ["no_answer"] * 5 + ["incorrect"] * 45
    total = fm.compare(table(before, outcome=outcomes), table(after, outcome=later)).result.total
    assert total.drop.value == pytest.approx(0.10)
    assert total.readable_drop == pytest.approx(5 / 90)
    said = phrases.readable_sentence(total)
    assert said.startswith("Where both models gave an answer, accuracy fell by 5.6 points; this is")
    unknown = fm.compare(table(before), table(after)).result.total
    assert unknown.readable_drop is None
    assert phrases.readable_sentence(unknown) == ""


def test_nothing_right_before_and_nothing_paired() -> None:
    wrong, right = table([0.0] * 60), table([1.0] * 60)
    total = fm.compare(wrong, right).result.total
    assert (total.verdict, total.undecided) == ("cannot_tell", "nothing_right")
    assert (total.loss.low, total.decides) == (None, None)
    assert (total.gain.low or 0) > 0.85
    nothing = table([None] * 60)
    total = fm.compare(wrong, nothing).result.total
    assert (total.verdict, total.undecided) == ("cannot_tell", "nothing_paired")
    assert total.forgetting == Estimate.missing("counted", "no scored pair")
    assert (total.acc_before, total.mcnemar_p, total.detectable) == (None, None, None)


@pytest.mark.parametrize("size", [1, 2])
def test_one_or_two_items_decide_nothing(size: int) -> None:
    total = fm.compare(table([1.0] * size), table([0.0] * size)).result.total
    assert total.verdict == "cannot_tell"
    assert total.loss.low is not None
    assert total.loss.low <= 0
    assert total.loss.high == pytest.approx(1.0, abs=0.05)
    assert (total.forgotten, total.forgetting.value) == (size, 1.0)


# ---------------------------------------------------------------------------- looks, choices


@pytest.mark.parametrize(
    ("options", "alpha", "high_alpha"),
    [
        ({"level": 0.9}, 0.05, 0.05),
        ({"look": 2}, 0.025 / 6, 0.025 / 6),
        ({"looks": 4}, 0.025 / 4, 0.025 / 4),
        ({"chosen_among": 20}, 0.025, 0.025 / 20),
        ({"margin": 0.3}, 0.025, 0.025),
    ],
)
@pytest.mark.parametrize("name", ["single", "clusters"])
def test_levels_looks_and_choices(
    name: str, options: dict[str, Any], alpha: float, high_alpha: float
) -> None:
    (before, after), (_, items, halves) = runs(name, 2), compared(name, 2)
    result = fm.compare(as_arrow(before), as_arrow(after), **options).result
    how = {"alpha": alpha, "high_alpha": high_alpha, "margin": options.get("margin", 0.02)}
    check_totals(result, items, halves, **how)
    check_families(result, items, halves, **how)


def test_models_of_a_fan_out_are_a_family() -> None:
    shapes = [Shape(lost=lost) for lost in (0.02, 0.3, 0.08)]
    before = oracle.random_run(5, Shape(), "before")
    afters = [oracle.random_run(5, shape, "after") for shape in shapes]
    fan = fm.compare(as_arrow(before), *map(as_arrow, afters))
    groups = {f"{n}": oracle.paired_items(before, after) for n, after in enumerate(afters)}
    losses, gains = judge_items(groups, {}), judge_items(swap_all(groups), {})
    for n, comparison in enumerate(fan):
        total = comparison.result.total
        check_group(total, losses[f"{n}"], gains[f"{n}"])
        assert total.family is not None
        assert (total.family.name, total.family.size) == ("models", 3)
        assert comparison.headline.startswith(f"{comparison.after.name}: ")


# ---------------------------------------------------------------------------- open verdicts


@pytest.mark.parametrize("name", ["single", "clusters", "repeats, many tasks"])
def test_an_open_verdict_says_what_would_decide(name: str) -> None:
    result, items, halves = compared(name, 2)
    own = oracle.groups_of(items)["tasks"]
    seen = 0
    for group in (result.total, *result.tasks):
        open_ = group.verdict in ("cannot_tell", "no_net_loss")
        assert (group.decides is not None) == (open_ and group.undecided != "nothing_right")
        if group.decides is None:
            continue
        among = items if group is result.total else own[group.name]
        given = oracle.as_decided(among, halves=halves)
        net = sum(given.d) / given.size
        v = sum(d * d for d in given.d) / given.size - net**2
        design = 1.0
        if given.clusters is not None:
            design = decide_oracle.clustered(given.d, decide_oracle.named_clusters(given))[0]
        a = 0.025 / len(decide_oracle.offered(given))
        needed = decide_oracle.items_needed(net, v, a, 0.02, design)
        assert group.decides.items == math.ceil(needed - 1e-6)
        # Answer number 1 of each model chooses what is asked again.
        first = [[side[0]["score"] for side in (item.before, item.after)] for item in among]
        held = [float(right == 1 and wrong == 0) for right, wrong in first]
        flips = round(sum(held))
        assert (group.decides.flips, group.decides.answers) == (flips, 2 * flips)
        provable = decide_oracle.lower_t(given, held, 0.025 / 4)
        assert (group.decides.provable or 0.0) == pytest.approx(max(provable, 0.0), abs=1e-9)
        seen += 1
    assert seen


def exchanged(lost: int, gained: int, size: int = 4000) -> fm.Comparison:
    scores = [float(n % 4 > 0) for n in range(size)]
    right, wrong = ([n for n in range(size) if scores[n] == s] for s in (1.0, 0.0))
    moved = {*right[:lost], *wrong[:gained]}
    later = [1 - score if n in moved else score for n, score in enumerate(scores)]
    return fm.compare(table(scores), table(later))


@pytest.mark.parametrize(
    ("lost", "gained", "large", "rose"),
    [(30, 30, False, False), (200, 210, True, False), (200, 400, True, True)],
)
def test_what_was_exchanged_while_accuracy_held(
    lost: int, gained: int, large: bool, rose: bool
) -> None:
    total = exchanged(lost, gained).result.total
    if not large:
        assert (total.verdict, total.exchange) == ("no_material_loss", None)
        return
    assert total.verdict == "no_net_loss"
    assert total.exchange is not None
    assert (total.exchange.is_large, total.exchange.rose_by > 0) == (large, rose)
    low = decide_oracle.lower_flips(lost, 4000)
    assert total.exchange.noise_needed == pytest.approx(low, abs=1e-9)


# ---------------------------------------------------------------------------- copies


def repeated(sides: Sequence[Sequence[float | None]], **columns: Any) -> pa.Table:
    """Return a table of repeats: the scores of each."""
    size = len(sides[0])
    return pa.table({
        "task": ["t"] * size * len(sides),
        "item": [f"{n}" for _ in sides for n in range(size)],
        "repeat": [at for at, _ in enumerate(sides) for _ in range(size)],
        "score": pa.array([score for side in sides for score in side], pa.float64()),
        **columns,
    })  # fmt: skip


def noisy(seed: int, size: int = 400) -> list[float]:
    """A model that answers every third item by a coin."""
    dice = random.Random(seed)
    return [float(n % 3 == 1 or (n % 3 == 2 and dice.random() < 0.5)) for n in range(size)]


@pytest.mark.parametrize("failed", [0, 1])
def test_repeats_that_are_copies_are_one_answer(failed: int) -> None:
    """Copies would call the noise of a model with itself a loss; an answer that failed is none."""
    first, second = noisy(1), noisy(2)
    copies: list[list[float | None]] = [[*first], [*first], [*first]]
    for n in range(failed):
        copies[1][n] = None
    after: list[list[float | None]] = [[*second]] * 3
    comparison = fm.compare(repeated(copies), repeated(after))
    assert comparison.result.total.verdict not in ("lost", "small_loss")
    assert comparison.grounds.evidence.kinds.given("before").max() == 1
    assert codes(comparison).count("copies") == 2


def test_a_noise_run_that_is_a_copy_is_not_a_second_answer() -> None:
    """Also where no outputs are recorded."""
    before, after = table(noisy(1)), table(noisy(2))
    comparison = fm.compare(before, after, noise=table(noisy(1)))
    assert comparison.result.total.verdict not in ("lost", "small_loss")
    assert comparison.result.total.loss == fm.compare(before, after).result.total.loss
    assert "copies" in codes(comparison)
    fresh = fm.compare(before, after, noise=table(noisy(3)))
    assert fresh.grounds.evidence.kinds.given("before").max() == 2


def written(outputs: Sequence[Sequence[str]], seed: int) -> pa.Table:
    """Return a table of repeats with raw texts; equal texts of an item have the same score."""
    scores = [
        [float(random.Random(f"{seed} {n} {text}").random() < 0.5) for n, text in enumerate(texts)]
        for texts in outputs
    ]
    return repeated(scores, response=[text for texts in outputs for text in texts])


def texts(name: str, size: int = 200) -> list[str]:
    return [f"{name}, as was asked in {n}" for n in range(size)]


def test_a_repeat_is_a_copy_of_any_earlier_one() -> None:
    """It does not multiply the flips, and the others keep their own texts."""
    outputs = [texts("one"), texts("two"), texts("one"), texts("four")]
    before, after = written(outputs, 1), written([texts(f"{n}") for n in range(3)], 2)
    comparison = fm.compare(before, after)
    pairing, total = comparison.result.pairing, comparison.result.total
    assert (total.n, total.items, pairing.only_before) == (600, 200, 0)
    (said,) = [notice.message for notice in pairing.warnings if notice.code == "copies"]
    assert said.startswith("before: the outputs of repeat 2 equal those of an earlier repeat")
    assert "setup repeats exactly" in said
    flips = comparison.flips("forgotten", texts=True).to_pylist()
    named = {row["repeat"]: row["response_before"].split(",")[0] for row in flips}
    assert named == {0: "one", 1: "two", 2: "four"}


def test_a_missing_output_does_not_hide_a_copy() -> None:
    first = texts("one")
    outputs = [first, [*first[:-1], None], texts("three")]
    table = written(outputs, 1)  # type: ignore[arg-type]
    assert (
        fm.compare(table, written([texts("x")], 2)).grounds.evidence.kinds.given("before").max()
        == 2
    )


def test_a_task_that_repeats_exactly_is_one_answer_beside_one_that_does_not() -> None:
    """Bare choices of a task are often equal without being copies."""

    def both(second: list[str]) -> pa.Table:
        sampled = written([texts("a"), texts("b")], 1)
        own = written([second, second], 2).set_column(0, "task", pa.array(["u"] * 400))
        return pa.concat_tables([sampled, own])

    def given(table: pa.Table) -> list[int]:
        parts = fm.compare(table, table.slice(0)).grounds.evidence.kinds.by("task")
        return [int(parts[name].given("before").max()) for name in ("t", "u")]

    assert given(both(texts("a"))) == [2, 1]
    assert given(both(["(A)", "(B)"] * 100)) == [2, 2]


def test_a_noise_run_that_copies_a_later_repeat_is_no_other_answer() -> None:
    before, after = written([texts("one"), texts("two")], 1), written([texts("x")], 2)
    comparison = fm.compare(before, after, noise=written([texts("two")], 1))
    assert comparison.grounds.evidence.kinds.given("before").max() == 2
    (said,) = [one.message for one in comparison.result.pairing.warnings if one.code == "copies"]
    assert "this setup repeats exactly" in said
    fresh = fm.compare(before, after, noise=written([texts("three"), texts("three")], 1))
    assert fresh.grounds.evidence.kinds.given("before").max() == 3


# ---------------------------------------------------------------------------- chains

STAGES = ("base", "sft", "rl")
CHAINS = {
    "single": Shape(lost=0.25, gained=0.25),
    "many tasks": Shape(tasks=9, items=16, lost=0.4, apart=True),
    "clusters": Shape(clusters=True, lost=0.2, items=24),
    "repeats": Shape(repeats=2, lost=0.1, gained=0.1, items=30),
    "shared content": Shape(content=3, tasks=9, items=12, lost=0.2),
    "content in some tasks": Shape(content=3, tasks=9, items=12, lost=0.2),
}


def chain_runs(name: str) -> list[list[Row]]:
    found = [oracle.random_run(7, CHAINS[name], side) for side in STAGES]
    if name == "content in some tasks":
        asks = oracle.TASKS[:4]
        found = [
            [row | {"question": row["question"] if row["task"] in asks else None} for row in rows]
            for rows in found
        ]
    return found


def followed(before: list[Row], after: list[Row], earlier: list[Row] | None = None) -> list[Item]:
    answers: dict[Any, list[Row]] = {}
    for row in earlier or []:
        answers.setdefault((row["task"], row["item"]), []).append(row)
    return [
        replace(item, earlier=tuple(answers.get(item.key, ())))
        for item in oracle.items_of(before, after)
    ]


@pytest.mark.parametrize("name", CHAINS)
def test_stages_are_judged_by_holm_with_the_stage_before(name: str) -> None:
    base, sft, rl = chain_runs(name)
    chain = fm.chain(*map(as_arrow, (base, sft, rl)))
    halves = read_halves(base, rl) if CHAINS[name].tasks > 7 else {}
    first, last = followed(base, sft), followed(base, rl, sft)
    judged: list[dict[str, Judged]] = []
    for own in ((first, last), (oracle.swapped(first), oracle.swapped(last))):
        parts = [oracle.as_decided(own[0], halves=halves),
                 oracle.as_decided(own[1], halves=halves, staged=True)]  # fmt: skip
        if judged:  # gains were wrong at first and right at the stage before
            parts[1] = replace(parts[1], earlier=[1 - z for z in parts[1].earlier or ()])
        judged.append(decide_oracle.judge(dict(zip("12", parts, strict=True)), holm_order=True))
    for at, stage in zip("12", chain.stages, strict=True):
        check_group(stage.against_first, judged[0][at], judged[1][at])
        assert stage.against_first.family is not None
        assert (stage.against_first.family.name, stage.against_first.family.size) == ("stages", 2)
    assert chain.result.total == replace(chain.stages[-1].against_first, name="total")
    previous = judge_both(followed(sft, rl), halves)
    check_group(chain.stages[-1].against_previous, *previous)


def test_the_stage_before_proves_an_exchange() -> None:
    """As much is gained as lost, so the drop cannot show it; gains are found in the same way."""
    total = fm.chain(*map(as_arrow, chain_runs("single"))).result.total
    assert (total.loss.carried_by, total.gain.carried_by) == ("earlier_stage", "earlier_stage")
    assert (total.loss.low or 0) > 0
    assert (total.gain.low or 0) > 0


def test_copies_are_one_answer_in_chains_as_well() -> None:
    first, second, third = (noisy(seed) for seed in (1, 2, 3))
    copies = [repeated([side, side, side]) for side in (first, second, third)]
    chain = fm.chain(*copies)
    single = fm.chain(*(repeated([side]) for side in (first, second, third)))
    for stage, alone in zip(chain.stages, single.stages, strict=True):
        assert stage.against_first.loss == alone.against_first.loss
        assert stage.against_previous.loss == alone.against_previous.loss
    again = fm.chain(*map(table, (first, second, third)), noise=table(first))
    assert again.result.total.loss == single.result.total.loss
