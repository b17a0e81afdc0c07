"""Simulated answers match the latent truth of the simulator."""

from __future__ import annotations

import re
from collections import Counter
from math import sqrt
from typing import Any

import numpy as np
import pytest

import forgetmap as fm
from forgetmap.errors import UsageError
from forgetmap.simulation import Habits, Simulation


def task(name: str = "t", **changes: Any) -> fm.SimulatedTask:
    return fm.SimulatedTask(name, **changes)


def rows(run: fm.Run) -> list[dict[str, Any]]:
    ordered = run.scores.sort("task", "item", "repeat").collect()
    return [dict(row) for row in ordered.rows(named=True)]


def classes(simulation: Simulation) -> dict[str, str]:
    return {row["item"]: row["class"] for row in simulation.truth.to_pylist()}


def of_class(simulation: Simulation, side: str, *wanted: str) -> list[dict[str, Any]]:
    """The results of one side on items of some latent classes."""
    known = classes(simulation)
    return [row for row in rows(getattr(simulation, side)) if known[row["item"]] in wanted]


def likely(n: int, share: float) -> tuple[float, float]:
    """Five standard deviations around the mean of a binomial: fails once in two million seeds."""
    spread = 5 * sqrt(n * share * (1 - share))
    return n * share - spread, n * share + spread


def test_the_same_seed_gives_the_same_data() -> None:
    first, again = (fm.simulate([task(items=50)], seed=7, repeats=2) for _ in range(2))
    assert rows(first.before) == rows(again.before)
    assert rows(first.after) == rows(again.after)
    assert first.truth.equals(again.truth)


def test_another_seed_gives_other_data() -> None:
    first, other = (fm.simulate([task(items=50)], seed=seed) for seed in (7, 8))
    assert rows(first.before) != rows(other.before)
    assert not first.truth.equals(other.truth)


def test_a_task_keeps_its_answers_when_another_is_added() -> None:
    alone = fm.simulate([task("a", items=20)])
    both = fm.simulate([task("a", items=20), task("b", items=20)])
    assert [row for row in rows(both.after) if row["task"] == "a"] == rows(alone.after)


@pytest.mark.parametrize(("known", "lost", "gained"), [(0.6, 0.1, 0.2), (1, 1, 0), (0, 0.5, 0.25)])
def test_shares_are_met_exactly(known: float, lost: float, gained: float) -> None:
    found = Counter(classes(fm.simulate([task(known=known, lost=lost, gained=gained)])).values())
    n_known = round(200 * known)
    assert found["lost"] == round(n_known * lost)
    assert found["kept"] == n_known - found["lost"]
    assert found["gained"] == round((200 - n_known) * gained)
    assert found.total() == 200


@pytest.mark.parametrize("k", [2, 4, None])
def test_known_items_are_always_right_at_full_mastery(k: int | None) -> None:
    simulation = fm.simulate([task(k=k)], repeats=2)
    assert {row["score"] for row in of_class(simulation, "before", "kept", "lost")} == {1.0}
    assert {row["score"] for row in of_class(simulation, "after", "kept", "gained")} == {1.0}


@pytest.mark.parametrize("k", [2, 4, 10, 26])
@pytest.mark.parametrize(("side", "unknown"), [("before", "gained"), ("after", "lost")])
def test_what_is_not_known_is_guessed_right_once_in_k(k: int, side: str, unknown: str) -> None:
    simulation = fm.simulate([task(k=k, items=1000, known=0.5, lost=0.5, gained=0.5)])
    guessed = of_class(simulation, side, unknown, "never")
    low, high = likely(len(guessed), 1 / k)
    assert low <= sum(row["score"] for row in guessed) <= high


def test_open_ended_items_are_never_guessed_right() -> None:
    simulation = fm.simulate([task(k=None, items=3000, known=0.2, lost=0.5)], repeats=2)
    for side, unknown in (("before", "gained"), ("after", "lost")):
        guessed = of_class(simulation, side, unknown, "never")
        assert len(guessed) > 4000
        assert {row["score"] for row in guessed} == {0.0}
    assert all(row.get("k") is None and row.get("choice") is None for row in rows(simulation.after))


def repeated_guesses(persistence: float) -> tuple[int, int]:
    """Equal choices before and after among never-known items, and how many there are."""
    habits = Habits(persistence=persistence)
    simulation = fm.simulate([task(items=1000, known=0.0, gained=0.0)], habits=habits)
    pairs = zip(rows(simulation.before), rows(simulation.after), strict=True)
    return sum(one["choice"] == other["choice"] for one, other in pairs), 1000


def test_full_persistence_repeats_every_guess() -> None:
    assert repeated_guesses(1.0) == (1000, 1000)


@pytest.mark.parametrize("persistence", [0.0, 0.5])
def test_persistence_is_the_share_of_guesses_not_redrawn(persistence: float) -> None:
    same, n = repeated_guesses(persistence)
    low, high = likely(n, persistence + (1 - persistence) / 4)
    assert low <= same <= high


def letters(run: fm.Run) -> Counter[str]:
    return Counter(row["choice"][-1] for row in rows(run))


def test_letter_bias_shows_in_the_chosen_letters() -> None:
    habits = Habits(letter_bias=(5, 1), moved_bias=(1, 1, 1, 5))
    simulation = fm.simulate([task(items=1000, known=0, gained=0)], habits=habits)
    for run, shares in ((simulation.before, (5, 1, 1, 1)), (simulation.after, (1, 1, 1, 5))):
        for letter, share in zip("abcd", shares, strict=True):
            low, high = likely(1000, share / 8)
            assert low <= letters(run)[letter] <= high


def test_without_bias_all_letters_are_as_frequent() -> None:
    simulation = fm.simulate([task(items=1000, known=0, gained=0)])
    low, high = likely(1000, 1 / 4)
    assert all(low <= letters(simulation.before)[letter] <= high for letter in "abcd")


def right_shares(mastery: float, spread: float) -> list[float]:
    """The share of right answers of each known item, out of 20."""
    habits = Habits(mastery=mastery, spread=spread)
    simulation = fm.simulate([task(k=None, items=400, known=1, lost=0)], habits=habits, repeats=20)
    right = Counter[str]()
    for row in rows(simulation.before):
        right[row["item"]] += row["score"]
    return [right[f"t/{n}"] / 20 for n in range(400)]


def variance(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values)


@pytest.mark.parametrize(("mastery", "spread"), [(0.7, 0.0), (0.7, 0.5), (0.9, 0.3), (0.5, 1.0)])
def test_mastery_is_the_mean_and_spread_the_variance_between_items(
    mastery: float, spread: float
) -> None:
    shares = right_shares(mastery, spread)
    most = mastery * (1 - mastery)
    # Between items: spread of the largest possible variance; within: binomial noise of 20 answers.
    expected = spread * most + (1 - spread) * most / 20
    assert sum(shares) / 400 == pytest.approx(mastery, abs=5 * sqrt(expected / 400))
    assert variance(shares) == pytest.approx(expected, rel=0.35)


def test_failures_appear_with_their_shares_and_only_on_lost_items() -> None:
    failures = {"no_answer": 0.2, "refused": 0.1, "truncated": 0.15, "degenerate": 0.05}
    simulation = fm.simulate([task(items=2000, known=1, lost=0.5)], failures=failures)
    lost = Counter(row["outcome"] for row in of_class(simulation, "after", "lost"))
    for name, share in failures.items():
        low, high = likely(1000, share)
        assert low <= lost[name] <= high
    others = of_class(simulation, "after", "kept", "gained", "never") + rows(simulation.before)
    assert {row["outcome"] for row in others} <= {"correct", "incorrect"}


def test_failures_score_zero_have_no_answer_and_may_take_all() -> None:
    failures = {"truncated": 0.7, "refused": 0.2, "no_answer": 0.1}
    simulation = fm.simulate([task(known=1, lost=1)], failures=failures)
    after = rows(simulation.after)
    assert {row["outcome"] for row in after} == set(failures)
    assert {(row["score"], row["answer"], row["choice"]) for row in after} == {(0.0, None, None)}


def test_repeats_are_numbered_and_answer_the_same_items() -> None:
    simulation = fm.simulate([task(items=5)], repeats=3)
    for run in (simulation.before, simulation.after):
        places = [(row["item"], row["repeat"]) for row in rows(run)]
        assert places == [(f"t/{item}", repeat) for item in range(5) for repeat in range(3)]


def test_every_item_has_its_k_its_category_and_its_gold_among_the_options() -> None:
    simulation = fm.simulate([task(k=3, items=20, category="knowledge")])
    assert simulation.before.texts is not None
    texts = simulation.before.texts.collect().rows(named=True)
    options = {row["item"]: row["options"] for row in texts}
    for row in rows(simulation.before):
        assert (row["k"], row["category"], len(options[row["item"]])) == (3, "knowledge", 3)
        assert {row["gold"], row["choice"]} <= {*options[row["item"]]}


def test_simulated_data_is_marked_everywhere() -> None:
    simulation = fm.simulate([task(items=3)], names=("one", "two"))
    assert simulation.before.info.simulated
    assert simulation.after.info.simulated
    assert simulation.after.info.parent == simulation.before.info.run_id == "one"
    assert simulation.before.texts is not None
    questions = simulation.before.texts.collect()["question"].to_list()
    assert all(question.startswith("[simulated]") for question in questions)


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_model_against_itself_flips_nothing(repeats: int) -> None:
    before = fm.simulate([task("a"), task("b", k=None)], repeats=repeats).before
    result = fm.compare(before, before).result
    assert (result.total.n10, result.total.n01) == (0, 0)
    assert result.total.n == 400 * repeats
    assert result.pairing.only_before == result.pairing.duplicates == 0


def test_what_is_lost_is_what_compare_finds() -> None:
    """Open-ended items are never guessed, so the raw counts are the truth."""
    simulation = fm.simulate([task(k=None, items=300, known=0.5, lost=0.2, gained=0.4)])
    comparison = fm.compare(simulation.before, simulation.after)
    for kind, latent in (("forgotten", "lost"), ("gained", "gained")):
        items = comparison.flip_frame(kind).collect()["item"].to_list()  # type: ignore[arg-type]
        assert set(items) == {i for i, c in classes(simulation).items() if c == latent}


def test_only_sampled_models_have_a_temperature() -> None:
    def temperature(**options: Any) -> object:
        return fm.simulate([task(items=2)], **options).before.info.decoding["temperature"]

    assert temperature() == 0
    assert temperature(repeats=2) == temperature(habits=Habits(mastery=0.9)) == 1


NONSENSE: dict[str, tuple[dict[str, Any], str]] = {
    "no task": ({"tasks": []}, "needs tasks"),
    "equal names": ({"tasks": [task("a"), task("a")]}, "unique names"),
    "no items": ({"tasks": [task(items=0)]}, "task 't' has 0 items"),
    "one option": ({"tasks": [task(k=1)]}, "k is 1"),
    "27 options": ({"tasks": [task(k=27)]}, "k is 27"),
    "known": ({"tasks": [task(known=1.1)]}, "known is 1.1"),
    "lost": ({"tasks": [task(lost=-0.1)]}, "lost is -0.1"),
    "gained": ({"tasks": [task(gained=float("nan"))]}, "gained is nan"),
    "persistence": ({"habits": Habits(persistence=2)}, "persistence is 2"),
    "mastery": ({"habits": Habits(mastery=-1)}, "mastery is -1"),
    "spread": ({"habits": Habits(spread=1.5)}, "spread is 1.5"),
    "bias": ({"habits": Habits(letter_bias=(1, 0))}, "the weight of a letter is 0"),
    "moved bias": ({"habits": Habits(moved_bias=(float("inf"),))}, "the weight of a letter is inf"),
    "repeats": ({"repeats": 0}, "repeats is 0"),
    "seed": ({"seed": -1}, "seed -1"),
    "failure": ({"failures": {"bored": 0.1}}, "no failure 'bored'"),
    "failures": ({"failures": {"refused": 0.6, "truncated": 0.6}}, "sum of all failures is 1.2"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused_by_name(name: str) -> None:
    given, said = NONSENSE[name]
    with pytest.raises(UsageError, match=re.escape(said)):
        fm.simulate(**{"tasks": [task()], **given})


def scores(run: fm.Run) -> np.ndarray:
    return np.array([row["score"] for row in rows(run)])


def test_reruns_are_fresh_answers_to_the_same_items() -> None:
    given: dict[str, Any] = {"seed": 4, "habits": Habits(persistence=0.5)}
    alone = fm.simulate([task(items=400)], **given)
    both = fm.simulate([task(items=400)], **given, reruns=True)
    assert alone.reruns is None
    assert both.reruns is not None
    for first, run, fresh in zip(
        (alone.before, alone.after), (both.before, both.after), both.reruns, strict=True
    ):
        assert rows(first) == rows(run)
        assert (fresh.info.model.name, fresh.info.stage) == (run.info.model.name, run.info.stage)
        assert fresh.name == f"{run.name}-rerun"
        assert 0 < (scores(run) != scores(fresh)).mean() < 0.2


def test_a_guess_that_changed_is_noise() -> None:
    """Of never-known items, as many flip between two runs of a model as between the two models."""
    habits = Habits(persistence=0.5)
    simulation = fm.simulate([task(items=20_000, known=0, gained=0)], habits=habits, reruns=True)
    assert simulation.reruns is not None
    before, after = scores(simulation.before), scores(simulation.after)
    fresh = [scores(run) for run in simulation.reruns]
    low, high = likely(20_000, 0.5 * 0.25 * 0.75)
    for first, then in ((before, after), (before, fresh[0]), (after, fresh[1]), (*fresh,)):
        assert low <= (first * (1 - then)).sum() <= high
    flipped = (before == 1) & (after == 0)
    held = (fresh[0] - fresh[1])[flipped]
    assert abs(held.mean()) < 5 * held.std() / np.sqrt(held.size)
    assert (simulation.loss, simulation.gain) == (0, 0)


def test_the_truth_is_the_probability_of_a_right_answer() -> None:
    habits = Habits(persistence=0.5, mastery=0.9)
    tasks = [task(items=20_000, k=4, known=0.6, lost=0.2, gained=0.3)]
    simulation = fm.simulate(tasks, habits=habits, reruns=True, failures={"truncated": 0.5})
    assert simulation.reruns is not None
    lost = 0.6 * 0.2 * (0.9 + 0.1 / 4 - 0.5 / 4)  # half of the lost items end in a fault
    assert simulation.loss == pytest.approx(lost, abs=0.003)
    # truth has the order of the items, rows() that of their names
    order = np.argsort(simulation.truth["item"].to_numpy(zero_copy_only=False))
    for run, name in zip(simulation.reruns, ("right_before", "right_after"), strict=True):
        truth = simulation.truth[name].to_numpy()[order]
        right = scores(run)
        for low, high in ((0.0, 0.5), (0.5, 1.01)):
            some = (truth >= low) & (truth < high)
            assert right[some].mean() == pytest.approx(truth[some].mean(), abs=0.02)
