"""Which estimator makes the headline, and what a reader is told: one case per kind of data."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison.result import GroupResult, Headline
from forgetmap.errors import UsageError
from small_runs import run


def sides(
    n11: int, n10: int, n01: int, n00: int, *, k: int | None = None, **how: Any
) -> tuple[pa.Table, pa.Table]:
    """Two tables with these cells.

    `different` of n00 chose different wrong options, where any are recorded; `repeats` says how
    often each answer was given; `task` names the task.
    """
    different, repeats = how.get("different"), how.get("repeats", (1, 1))
    moves = ["11"] * n11 + ["10"] * n10 + ["01"] * n01 + ["00"] * n00
    tables = []
    for side in (0, 1):
        rows = []
        for place, move in enumerate(moves):
            row: dict[str, Any] = {
                "task": how.get("task", "t"),
                "item": str(place),
                "score": float(move[side]),
            }
            if "k" not in how.get("leave_out", ()):
                row["k"] = k
            if different is not None:
                moved = side and place >= len(moves) - different
                row["choice"] = "gold" if move[side] == "1" else "x" if moved else "y"
            rows += [row | {"repeat": repeat} for repeat in range(repeats[side])]
        tables.append(pa.Table.from_pylist(rows, schema=_schema(rows[0])))
    return tables[0], tables[1]


def _schema(row: dict[str, Any]) -> pa.Schema:
    kinds = {"score": pa.float64(), "k": pa.int64(), "repeat": pa.int64()}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in row])


def headline(*cells: int, **how: Any) -> Headline:
    return fm.compare(*sides(*cells, **how)).result.total.headline


@pytest.mark.parametrize(
    ("how", "estimator"),
    [
        ({"k": None}, "raw"),
        ({"k": 2}, "bracket"),
        ({"k": 2, "different": 0}, "bracket"),
        ({"k": 4}, "bracket"),
        ({"k": 3, "different": 10}, "matched"),
        ({"k": 4, "different": 10}, "matched"),
        ({"k": None, "different": 10}, "raw"),
        ({"k": 4, "repeats": (2, 2)}, "excess"),
        ({"k": 4, "different": 10, "repeats": (2, 3)}, "excess"),
        ({"k": None, "repeats": (2, 2)}, "excess"),
        ({"k": 4, "different": 10, "repeats": (2, 1)}, "excess_before"),
        ({"k": 4, "different": 10, "repeats": (1, 2)}, "matched"),
    ],
)
def test_the_data_choose_the_estimator(how: dict[str, Any], estimator: str) -> None:
    assert headline(60, 20, 10, 40, **how).estimator == estimator


def test_two_options_among_others_leave_a_bracket() -> None:
    pairs = [sides(60, 20, 10, 40, k=k, different=10, task=f"k={k}") for k in (2, 4)]
    before, after = (pa.concat_tables(side) for side in zip(*pairs, strict=True))
    result = fm.compare(before, after).result
    assert result.total.headline.estimator == "bracket"
    found = {task.name: task.headline.estimator for task in result.tasks}
    assert found == {"k=2": "bracket", "k=4": "matched"}


def test_the_numbers_of_a_headline_are_those_of_its_estimator() -> None:
    total = fm.compare(*sides(60, 20, 10, 40, k=4, different=10)).result.total
    assert total.headline.forgetting == total.matched.forgetting
    assert total.headline.backward_transfer == total.matched.backward_transfer
    assert total.matched.forgetting.value is not None
    known = 4 / 3 * (80 / 130 - 1 / 4)
    assert total.headline.of_known.value == pytest.approx(total.matched.forgetting.value / known)


def test_a_loss_in_words() -> None:
    found = headline(300, 80, 10, 60, k=4, different=20)
    assert found.verdict == "lost"
    lost, known = 4 / 3 * (80 - 20 / 2) / 450, 4 / 3 * (380 / 450 - 1 / 4)
    assert found.words.startswith(f"lost {lost:.1%} of all items: {lost / known:.1%} (")
    assert "of what it knew beyond guessing" in found.words


def test_tasks_that_lost_something_are_counted() -> None:
    parts = [
        sides(100, 50, 0, 20, k=4, different=5, task="worse"),
        sides(100, 5, 5, 60, k=4, different=40, task="same"),
        sides(100, 40, 0, 20, k=4, different=5, task="worse too"),
    ]
    before, after = (pa.concat_tables(side) for side in zip(*parts, strict=True))
    result = fm.compare(before, after).result
    assert "; 2 of 3 tasks at FDR 5%" in result.total.headline.words
    assert all("tasks at FDR" not in task.headline.words for task in result.tasks)
    assert result.headline == f"after: {result.total.headline.words}."


@pytest.mark.parametrize("how", [{"k": 4, "different": 0}, {"k": 2}, {"k": None}])
@pytest.mark.parametrize("repeats", [(1, 1), (2, 2)])
def test_an_identical_greedy_model_lost_nothing(
    how: dict[str, Any], repeats: tuple[int, int]
) -> None:
    found = headline(60, 0, 0, 40, **how, repeats=repeats)
    assert found.verdict == "none_lost"
    assert found.words.startswith("nothing was lost")


def test_how_much_may_be_lost_of_items_like_these_is_said() -> None:
    total = fm.compare(*sides(60, 0, 0, 40, k=4, different=0)).result.total
    assert total.forgetting.high is not None
    assert f"at most {total.forgetting.high:.1%} of items like these" in total.headline.words


def sampled(*cells: int, temperature: float = 0.7, **how: Any) -> GroupResult:
    before, after = sides(*cells, **how)
    runs = (
        run(before, "base", decoding={"temperature": 0.0}),
        run(after, "tuned", decoding={"temperature": temperature}),
    )
    return fm.compare(*runs, estimator=how.get("estimator", "auto")).result.total


def test_sampled_answers_without_repeats_tell_nothing() -> None:
    found = sampled(60, 20, 10, 40, k=4, different=10).headline
    assert found.verdict == "cannot_tell"
    assert found.words.startswith(
        "cannot tell: noise and forgetting cannot be separated without repeats"
    )
    assert "(260 in all)" in found.words


def test_sampled_answers_with_repeats_or_greedy_ones_tell() -> None:
    assert sampled(60, 40, 0, 20, k=4, repeats=(2, 2)).headline.verdict == "lost"
    assert sampled(60, 40, 0, 20, k=4, different=2, temperature=0).headline.verdict == "lost"


def test_too_few_items_in_words() -> None:
    total = fm.compare(*sides(40, 15, 12, 33, k=4, different=20)).result.total
    assert total.headline.verdict == "cannot_tell"
    assert total.detectable is not None
    expected = f"cannot tell: 100 items detect no loss below {total.detectable:.1%}"
    assert total.headline.words == expected


def test_items_that_hold_too_little_knowledge_to_lose() -> None:
    words = headline(7, 3, 0, 6, k=4, different=6).words
    assert words == "cannot tell: 16 items would not detect even the loss of all that was known"


def test_a_model_that_only_guessed_had_nothing_to_lose() -> None:
    words = headline(8, 18, 18, 56, k=4, different=37).words
    assert words == "cannot tell: it knew no more before than guessing would"


def test_a_bracket_that_contains_nothing_lost() -> None:
    found = headline(60, 12, 10, 40, k=2)
    assert found.verdict == "cannot_tell"
    assert "luck and loss cannot be separated here" in found.words
    assert found.forgetting.value is None
    assert found.forgetting.reason


def test_a_bracket_above_nothing_lost() -> None:
    found = headline(100, 60, 0, 10, k=2)
    low, high = 2 * 60 / 170 - 2 * 10 / 170, 2 * 60 / 170
    assert found.verdict == "lost"
    assert found.words.startswith(f"lost between {low:.1%} and {high:.1%} of all items")


def test_no_right_answer_before() -> None:
    assert headline(0, 0, 5, 20, k=4).words == "cannot tell: no answer was right before"


def test_raw_losses_are_plain_to_see() -> None:
    found = headline(90, 10, 0, 0)
    assert found.verdict == "lost"
    assert found.words.startswith("lost 10.0% of all items: 10.0% (")
    assert "of what it had right" in found.words


def test_raw_losses_say_so_if_nobody_recorded_how_many_options_there_are() -> None:
    said = "assumes no lucky guesses (no item says how many options it has)"
    assert said in headline(90, 10, 0, 0, leave_out=("k",)).words
    assert said not in headline(90, 10, 0, 0, k=4).words


@pytest.mark.parametrize(
    ("estimator", "how"),
    [
        ("matched", {"k": 2}),
        ("matched", {"k": 4}),
        ("excess", {"k": 4}),
        ("net", {"k": 4}),
        ("excess_before", {"k": 4}),
        ("net", {"k": 4, "repeats": (2, 2)}),
    ],
)
def test_an_estimator_that_cannot_be_had_says_why(estimator: Any, how: dict[str, Any]) -> None:
    total = fm.compare(*sides(60, 20, 10, 40, **how), estimator=estimator).result.total
    assert total.headline.estimator == estimator
    assert total.headline.verdict == "cannot_tell"
    assert total.headline.words.startswith(f"cannot tell: no {estimator} here: ")
    assert total.headline.forgetting.value is None
    assert total.headline.forgetting.reason


@pytest.mark.parametrize("estimator", ["raw", "latent", "upper", "published", "matched", "net"])
def test_an_estimator_that_is_asked_for_makes_the_headline(estimator: Any) -> None:
    both = sides(60, 20, 10, 40, k=4, different=10, repeats=(2, 2))
    total = fm.compare(*both, estimator=estimator).result.total
    assert total.headline.estimator == estimator
    expected = total.forgetting if estimator == "raw" else getattr(total, estimator).forgetting
    assert total.headline.forgetting == expected


def test_the_published_adjustment_never_concludes() -> None:
    total = fm.compare(*sides(60, 20, 10, 40, k=4), estimator="published").result.total
    a, b = 80 / 130, 70 / 130
    value = 20 / 130 - (1 - a) * (1 - b) / 3
    assert total.headline.verdict == "cannot_tell"
    assert f"says {value:.1%} of all items, without an interval" in total.headline.words


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(UsageError):
        fm.compare(*sides(1, 1, 1, 1), estimator="best")


def test_words_of_excess_name_the_scale_of_knowledge_too() -> None:
    both = sides(100, 60, 0, 40, k=4, different=0, repeats=(2, 2))
    total = fm.compare(*both).result.total
    assert total.headline.words.startswith(
        "lost at least 30.0% of all answers beyond the noise floor"
    )
    assert re.search(r"on the scale of knowledge 40\.0% \(", total.headline.words)
    assert total.excess.forgetting.value == pytest.approx(0.3)
    assert total.net.forgetting.value == pytest.approx(0.3 * 4 / 3)


def test_with_repeats_the_permutation_test_decides() -> None:
    """Four of twenty items go from always to never right: no churn does that."""
    total = fm.compare(*sides(16, 4, 0, 0, repeats=(2, 2))).result.total
    assert total.excess.forgetting.low is not None
    assert total.excess.forgetting.low < 0
    assert total.p_lost is not None
    assert total.p_lost < 0.001
    assert total.headline.verdict == "lost"
    assert "20.0% (0.0% to " in total.headline.words


def test_fewer_flips_than_luck_would_make_is_no_verdict() -> None:
    """The same greedy guesses on both sides, one item lost: `latent` lies far below 0."""
    found = fm.compare(*sides(100, 1, 0, 99, k=4), estimator="latent").result.total.headline
    assert found.verdict == "cannot_tell"
    assert "not as blind as assumed" in found.words


def test_a_loss_too_small_to_matter() -> None:
    """As many losses as luck makes, and at most a percent of what was known."""
    found = headline(40_000, 8, 0, 160, k=4, different=16)
    assert found.of_known.high is not None
    assert found.of_known.high < 0.01
    assert found.verdict == "none_lost"
    assert found.words.startswith("no loss found: at most ")
