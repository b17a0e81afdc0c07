"""`forgetmap plan`: planned numbers suffice in simulations; advice after a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

import forgetmap as fm
from command_line import call, write
from forgetmap.comparison.choices import Wish
from forgetmap.comparison.plan import AdviceResult, PlanResult, advise, make_plan
from forgetmap.comparison.result import ComparisonResult, DecidesResult
from forgetmap.errors import UsageError

WISH = Wish(loss=0.03, accuracy=0.7)


@pytest.mark.parametrize(("k", "estimator"), [(2, "bracket"), (4, "matched"), (None, "raw")])
def test_every_kind_of_item_has_its_estimator(k: int | None, estimator: str) -> None:
    (row,) = make_plan(WISH, [float("inf") if k is None else k], []).rows
    assert (row.k, row.repeats, row.estimator, row.answers) == (k, 1, estimator, row.items)


def test_a_range_never_shows_that_nothing_was_lost() -> None:
    (row,) = make_plan(WISH, [2], []).rows
    assert row.items is not None
    assert row.items_no_loss is None


def test_answers_are_items_times_repeats() -> None:
    (row,) = make_plan(WISH, [], [3]).rows
    assert row.items is not None
    assert row.answers == 3 * row.items


def test_a_loss_within_the_noise_floor_is_never_found() -> None:
    (row,) = make_plan(Wish(loss=0.004), [float("inf")], []).rows
    assert row.items is None
    (row,) = make_plan(Wish(loss=0.004, noise_floor=0.0), [float("inf")], []).rows
    assert row.items is not None


def test_what_makes_a_plan_cheaper() -> None:
    def items(*, k: float = 4, **wish: Any) -> int:
        (row,) = make_plan(Wish(**wish), [k], []).rows
        assert row.items is not None
        return row.items

    assert items(loss=0.05) < items(loss=0.02)
    assert items(accuracy=0.9) < items(accuracy=0.6)
    assert items(k=10) < items(k=4) < items(k=2)
    assert items(noise_floor=0.0) < items(noise_floor=0.01)
    assert items(level=0.9) < items(level=0.95)
    by_repeats = [row.items for row in make_plan(Wish(), [], [2, 3, 5]).rows]
    assert by_repeats == sorted(by_repeats, key=lambda each: -(each or 0))


@pytest.mark.parametrize(
    "wish",
    [
        Wish(loss=0), Wish(loss=1), Wish(loss=-0.1), Wish(loss=float("nan")), Wish(accuracy=0),
        Wish(accuracy=1.1), Wish(sampled_noise=-0.01), Wish(sampled_noise=0.3),
        Wish(loss=0.7, accuracy=0.6), Wish(margin=0), Wish(margin=1), Wish(noise_floor=0.6),
        Wish(level=0.5), Wish(level=1.0), Wish(level=float("nan")),
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
        ("--accuracy", "0"), ("--accuracy", "0.01"), ("--noise-floor", "0.6"), ("--k", "1"),
        ("--margin", "0"), ("--margin", "1"), ("--level", "1"), ("--level", "0.5"),
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
    assert (found["noise_floor"], found["churn"]) == (0.005, 0.05)
    assert (found["margin"], found["level"]) == (0.02, 0.95)


def test_a_noise_floor_on_the_command_line_is_that_of_every_row() -> None:
    found = json.loads(call("plan", "--noise-floor", 0.01, "--json").out)
    assert found["noise_floor"] == found["churn"] == 0.01


def test_the_printed_plan_has_a_line_per_kind_of_item() -> None:
    done = call("plan", "--k", 2, "--k", "open", "--repeats", 2, columns=120)
    rows = make_plan(Wish(), [2, float("inf")], [2]).rows
    for row, kind in zip(rows, ("2 options", "open-ended", "any, sampled"), strict=True):
        (line,) = (line for line in done.out.splitlines() if line.startswith(kind))
        assert f"{row.items:,}" in line


def undecided(copies: int = 1, **columns: Any) -> ComparisonResult:
    """A hundred items with four options of which nothing can be said, so many times."""
    moves = ["11"] * 40 + ["10"] * 15 + ["01"] * 12 + ["00"] * 33
    tables = []
    for side in (0, 1):
        rows = [
            {"task": "t", "item": f"{copy} {place}", "score": float(move[side]), "k": 4, **columns}
            for copy in range(copies)
            for place, move in enumerate(moves)
        ]
        if "category" not in columns:
            for place, row in enumerate(rows):
                moved = side and place % 100 >= 80
                row["choice"] = "gold" if row["score"] else "x" if moved else "y"
        tables.append(rows)
    before, after = map(pa.Table.from_pylist, tables)
    return fm.compare(before, after).result


def test_advice_after_a_run_that_could_not_tell() -> None:
    result = undecided()
    found = advise(result, by="task", loss=0.02)
    assert [group.name for group in found.open] == ["total", "t"]
    assert (found.decided, found.next) == (0, [])
    total = found.open[0]
    assert result.total.decides is not None
    assert total.items_needed == result.total.decides.items
    assert total.items_needed is not None
    assert (
        f"about {total.items_needed - 100:,} more items of this kind would decide" in total.advice
    )
    assert result.total.detectable is not None
    scale = (result.total.detectable / 0.02) ** 2
    assert (
        f"a loss of 2% is detected with about {math.ceil(100 * scale):,} in total" in total.advice
    )


def test_so_many_more_items_do_decide() -> None:
    """The same shares in as many items as advised: the verdict is no longer open."""
    needed = advise(undecided()).open[0].items_needed
    assert needed is not None
    more = undecided(copies=needed // 100 + 1)
    assert more.total.verdict != "cannot_tell"


def test_a_bracket_is_not_narrowed_by_more_items() -> None:
    advice = advise(undecided(category="c"), loss=0.02).open[0].advice
    assert "record which option was chosen" in advice


def test_advice_for_sampled_answers() -> None:
    result = undecided()
    decides = DecidesResult(items=None, repeats=2)
    total = result.total.model_copy(update={"decides": decides})
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
    assert "is not a comparison of two runs" in done.err


def pair(folder: Path, lost: int, items: int = 600) -> tuple[Path, Path]:
    """Open-ended items, all right before and so many wrong after."""
    rows = [
        [{"task": "t", "item": f"{n}", "score": float(not side or n >= lost)} for n in range(items)]
        for side in (0, 1)
    ]
    return write(folder / "a.jsonl", rows[0]), write(folder / "b.jsonl", rows[1])


@pytest.mark.parametrize(
    ("lost", "steps"),
    [(100, ["replay set", "merge sweep", "gate"]), (0, ["gate", "probe"])],
)
def test_what_to_do_after_a_decision(lost: int, steps: list[str], tmp_path: Path) -> None:
    done = call("plan", *pair(tmp_path, lost), columns=400)
    assert done.code == 0
    assert done.out.startswith("All 2 groups decided.\n\nNext:\n")
    lines = [line for line in done.out.splitlines() if "->" in line]
    assert [line.removeprefix("  -> ").partition(":")[0] for line in lines] == steps


def test_the_margin_of_a_plan_is_that_of_the_comparison(tmp_path: Path) -> None:
    runs = pair(tmp_path, 0)
    loose, strict = (
        json.loads(call("plan", *runs, "--margin", margin, "--json").out)
        for margin in (0.02, 0.001)
    )
    assert (len(loose["open"]), len(strict["open"])) == (0, 2)
    assert "--margin 0.02` " in loose["next"][0]


def test_a_written_comparison_keeps_its_margin(tmp_path: Path) -> None:
    assert call("compare", *pair(tmp_path, 0), "--out", tmp_path / "out").code == 0
    done = call("plan", tmp_path / "out", "--margin", 0.01)
    assert (done.code, done.out) == (2, "")
    assert "--margin does not change the verdicts saved in" in done.err


def test_the_hint_of_a_refused_comparison_works_in_a_plan(tmp_path: Path) -> None:
    before, after = pair(tmp_path, 0)
    half = write(
        tmp_path / "half.jsonl", [json.loads(line) for line in after.read_text().splitlines()[:300]]
    )
    assert "--min-paired 0.5" in call("plan", before, half).err
    assert call("plan", before, half, "--min-paired", 0.5).code == 0
