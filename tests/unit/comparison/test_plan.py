"""`forgetmap plan`: what it asks for is enough, by simulation; what it says after a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

import forgetmap as fm
from command_line import call, write
from forgetmap.comparison.choices import Wish
from forgetmap.comparison.plan import AdviceResult, PlanResult, advise, make_plan
from forgetmap.comparison.result import ComparisonResult
from forgetmap.errors import UsageError
from forgetmap.stats.repeats import excess_scores, permutation_moments
from forgetmap.stats.tests import change_p, luck_p
from simulated_cells import Shares, draw_cells

SETS = 4000
WISH = Wish(loss=0.03, accuracy=0.7, churn=0.05)


@pytest.mark.parametrize("k", [2, 3, 4, 10])
def test_a_greedy_plan_finds_the_loss_four_times_in_five(k: int) -> None:
    (row,) = make_plan(WISH, [k], []).rows
    assert row.items is not None
    known = (WISH.accuracy - 1 / k) * k / (k - 1)
    rng = np.random.default_rng(k)
    cells = draw_cells(rng, SETS, row.items, k, Shares(known, WISH.loss))
    both_wrong, chance = (cells.n00_D, 1 / k) if k == 2 else (cells.different_D, 1 / (k - 1))
    power = (luck_p(cells.n10_D, cells.n10_D + both_wrong, chance) <= 0.05).mean()
    assert 0.76 <= power <= 0.86
    assert row.estimator == ("bracket" if k == 2 else "matched")


def test_an_open_ended_plan_sees_one_loss_four_times_in_five() -> None:
    (row,) = make_plan(WISH, [float("inf")], []).rows
    assert row.items is not None
    assert 1 - (1 - WISH.loss) ** row.items >= 0.8 > 1 - (1 - WISH.loss) ** (row.items - 1)
    assert (row.k, row.estimator, row.answers) == (None, "raw", row.items)


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_a_plan_with_repeats_finds_the_loss_beyond_churn(repeats: int) -> None:
    """All churn on items that are right half of the time, as the plan assumes."""
    (row,) = make_plan(WISH, [], [repeats]).rows
    assert row.items is not None
    rng, found = np.random.default_rng(repeats), 0
    moments = permutation_moments(np.arange(2 * repeats + 1), repeats, repeats)
    for _ in range(600):
        coin = rng.random(row.items) < WISH.churn / 0.25
        before = np.where(coin, 0.5, 1.0)
        gone = ~coin & (rng.random(row.items) < WISH.loss / (1 - WISH.churn / 0.25))
        m_b, m_a = rng.binomial(repeats, before), rng.binomial(repeats, np.where(gone, 0, before))
        lost = excess_scores(m_b, repeats, m_a, repeats).lost.sum()
        variance, third = (each[m_b + m_a].sum() for each in moments)
        found += float(change_p(lost, variance, third)) <= 0.05
    assert 0.74 <= found / 600 <= 0.9
    assert row.answers == row.items * repeats


def test_what_makes_a_plan_cheaper() -> None:
    def items(*, k: float = 4, **wish: Any) -> int:
        (row,) = make_plan(Wish(**wish), [k], []).rows
        assert row.items is not None
        return row.items

    assert items(loss=0.05) < items(loss=0.02)
    assert items(accuracy=0.9) < items(accuracy=0.6)
    assert items(k=10) < items(k=4) < items(k=2)
    by_repeats = [row.items for row in make_plan(Wish(), [], [2, 3, 5]).rows]
    assert by_repeats == sorted(by_repeats, key=lambda each: -(each or 0))


@pytest.mark.parametrize(
    "wish",
    [
        Wish(loss=0), Wish(loss=1), Wish(loss=-0.1), Wish(loss=float("nan")), Wish(accuracy=0),
        Wish(accuracy=1.1), Wish(churn=-0.01), Wish(churn=0.3), Wish(loss=0.7, accuracy=0.6),
    ],
)  # fmt: skip
def test_wishes_that_cannot_be(wish: Wish) -> None:
    with pytest.raises(UsageError) as refused:
        make_plan(wish)
    assert refused.value.hint


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "0"), ("--loss", "2"), ("--loss", "nan"), ("--loss", "much"),
        ("--accuracy", "0"), ("--accuracy", "0.01"), ("--churn", "0.5"), ("--k", "1"),
        ("--k", "many"), ("--repeats", "1"), ("a", "b", "c"), ("missing.json",),
    ],
)  # fmt: skip
def test_bad_values_on_the_command_line(options: tuple[str, ...]) -> None:
    done = call("plan", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert "Traceback" not in done.err


def test_json_before_a_run_is_valid() -> None:
    done = call("plan", "--loss", 0.01, "--k", 4, "--k", "open", "--repeats", 3, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    Draft202012Validator(PlanResult.model_json_schema()).validate(found)
    assert [(row["k"], row["repeats"]) for row in found["rows"]] == [(4, 1), (None, 1), (None, 3)]
    assert found["loss"] == 0.01


def test_the_printed_plan_has_a_line_per_kind_of_item() -> None:
    done = call("plan", "--k", 2, "--k", "open", "--repeats", 2, columns=120)
    rows = make_plan(Wish(), [2, float("inf")], [2]).rows
    for row, kind in zip(rows, ("2 options", "open-ended", "any, sampled"), strict=True):
        (line,) = (line for line in done.out.splitlines() if line.startswith(kind))
        assert f"{row.items:,}" in line


def undecided(**columns: Any) -> ComparisonResult:
    """A hundred items with four options of which nothing can be said."""
    moves = ["11"] * 40 + ["10"] * 15 + ["01"] * 12 + ["00"] * 33
    tables = []
    for side in (0, 1):
        rows = [
            {"task": "t", "item": str(place), "score": float(move[side]), "k": 4, **columns}
            for place, move in enumerate(moves)
        ]
        if "category" not in columns:
            for place, row in enumerate(rows):
                moved = side and place >= 80
                row["choice"] = "gold" if row["score"] else "x" if moved else "y"
        tables.append(rows)
    before, after = map(pa.Table.from_pylist, tables)
    return fm.compare(before, after).result


def test_advice_after_a_run_that_could_not_tell() -> None:
    result = undecided()
    found = advise(result, by="task", loss=0.02)
    assert [each.name for each in found.open] == ["total", "t"]
    assert found.decided == 0
    total = found.open[0]
    assert total.items_needed is not None
    assert result.total.detectable is not None
    scale = (result.total.detectable / 0.02) ** 2
    assert total.items_needed == pytest.approx(100 * scale, abs=1)
    assert f"about {total.items_needed - 100:,} more items" in total.advice


def test_so_many_more_items_do_decide() -> None:
    """The same shares in as many items as advised: then the loss that was wished for is seen."""
    result = undecided()
    needed = advise(result, loss=0.05).open[0].items_needed
    assert needed is not None
    factor = needed // 100 + 1
    sides: list[list[dict[str, Any]]] = [[], []]
    moves = ["11"] * 40 + ["10"] * 15 + ["01"] * 12 + ["00"] * 33
    for copy in range(factor):
        for place, move in enumerate(moves):
            for side in (0, 1):
                wrong = "x" if side and place >= 80 else "y"
                choice = "gold" if move[side] == "1" else wrong
                sides[side].append(
                    {"task": "t", "item": f"{copy} {place}", "score": float(move[side]), "k": 4,
                     "choice": choice}
                )  # fmt: skip
    before, after = map(pa.Table.from_pylist, sides)
    more = fm.compare(before, after).result.total
    assert more.detectable is not None
    assert more.detectable <= 0.05


def test_a_bracket_is_not_narrowed_by_more_items() -> None:
    advice = advise(undecided(category="c"), loss=0.02).open[0].advice
    assert "record which option was chosen" in advice


def test_advice_for_sampled_answers() -> None:
    result = undecided()
    words = "cannot tell: noise and forgetting cannot be separated without repeats"
    headline = result.total.headline.model_copy(update={"words": words})
    total = result.total.model_copy(update={"headline": headline})
    found = advise(result.model_copy(update={"total": total}))
    assert "answer every item twice with each model (200 more answers" in found.open[0].advice


def four(folder: Path) -> tuple[Path, Path]:
    rows = [
        [{"task": "t", "item": f"{n}", "score": float(n % 3 > side), "k": 4} for n in range(30)]
        for side in (0, 1)
    ]
    return write(folder / "a.jsonl", rows[0]), write(folder / "b.jsonl", rows[1])


def test_comparison_json_and_runs_give_the_same_advice(tmp_path: Path) -> None:
    before, after = four(tmp_path)
    assert call("compare", before, after, "--out", tmp_path / "out").code == 0
    results = [
        call("plan", *source, "--json").out
        for source in ((before, after), (tmp_path / "out",), (tmp_path / "out/comparison.json",))
    ]
    assert results[0] == results[1] == results[2]
    found = json.loads(results[0])
    Draft202012Validator(AdviceResult.model_json_schema()).validate(found)
    assert AdviceResult.model_validate(found).to_json().strip() == results[0].strip()


def test_comparison_json_comes_back_as_it_was(tmp_path: Path) -> None:
    before, after = four(tmp_path)
    result = fm.compare(before, after).result
    assert ComparisonResult.model_validate_json(result.to_json()) == result


@pytest.mark.parametrize("text", ["{}", "not json", "[1]"])
def test_a_file_that_is_no_comparison(text: str, tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    path.write_text(text, encoding="utf-8")
    done = call("plan", path)
    assert done.code == 2
    assert "is no comparison of two runs" in done.err


def test_nothing_open(tmp_path: Path) -> None:
    rows = [{"task": "t", "item": f"{n}", "score": 1.0} for n in range(30)]
    path = write(tmp_path / "a.jsonl", rows)
    done = call("plan", path, path)
    assert (done.code, done.out) == (0, "Nothing is open: all 2 groups are decided.\n")
