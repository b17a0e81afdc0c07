"""`forgetmap plan`: numbers before a run, and advice after one; simulations have the power."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

import forgetmap as fm
from command_line import call, write
from forgetmap.comparison import ComparisonResult, PlanInput
from forgetmap.comparison.plan import AdviceResult, PlanResult, advise, make_plan
from forgetmap.errors import UsageError
from forgetmap.stats import drop_upper, flips_upper
from small_runs import table


def test_answers_are_items_times_repeats() -> None:
    for row in make_plan(PlanInput(loss=0.03), [1, 2, 3]).rows:
        assert row.items is not None
        assert row.answers == row.repeats * row.items


def test_what_makes_a_plan_cheaper() -> None:
    def items(repeats: int = 1, **wish: Any) -> int:
        (row,) = make_plan(PlanInput(**wish), [repeats]).rows
        assert row.items is not None
        return row.items

    assert items(loss=0.05) < items(loss=0.02)
    assert items(noise=0.0) < items(noise=0.015) < items(noise=0.08)
    assert items(level=0.9) < items(level=0.95)
    assert items(loss=0.05, gain=0.0) < items(loss=0.05, gain=0.02)
    assert items(repeats=2, gain=0.01) < items(repeats=1, gain=0.01)


def test_an_exchange_is_not_found_in_single_answers_and_is_in_repeats() -> None:
    single, twice = make_plan(PlanInput(loss=0.03, gain=0.03), [1, 2]).rows
    assert single.items is None
    assert twice.items is not None


def test_noise_of_the_margin_or_more_never_shows_that_nothing_was_lost() -> None:
    single, twice = make_plan(PlanInput(noise=0.02, margin=0.02), [1, 2]).rows
    assert single.items_no_loss is None
    assert single.items_no_net_loss is not None
    assert twice.items_no_loss is not None


def test_without_noise_so_many_items_show_it_always_and_fewer_never() -> None:
    (row,) = make_plan(PlanInput(noise=0.0), [1]).rows
    for items, limit in ((row.items_no_loss, flips_upper), (row.items_no_net_loss, drop_upper)):
        assert items is not None
        for size, shown in ((items, True), (math.floor(0.99 * items) - 1, False)):
            right = table([1.0] * size)
            answers = fm.compare(right, right).grounds.evidence.kinds.answers()
            assert (limit(answers, 0.025) < 0.02) == shown


@pytest.mark.parametrize(
    "wish",
    [
        PlanInput(loss=0), PlanInput(loss=1), PlanInput(loss=-0.1), PlanInput(loss=float("nan")),
        PlanInput(noise=-0.01), PlanInput(noise=0.3), PlanInput(gain=-0.1), PlanInput(gain=1.0),
        PlanInput(loss=0.5, gain=0.5, noise=0.1), PlanInput(margin=0), PlanInput(margin=1),
        PlanInput(level=0.5), PlanInput(level=1.0), PlanInput(level=float("nan")),
    ],
)  # fmt: skip
def test_wishes_that_cannot_be(wish: PlanInput) -> None:
    with pytest.raises(UsageError) as refused:
        make_plan(wish)
    assert refused.value.hint


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "0"), ("--loss", "2"), ("--loss", "nan"), ("--loss", "much"),
        ("--gain", "-1"), ("--rerun-noise", "0.3"), ("--margin", "0"), ("--margin", "1"),
        ("--level", "1"), ("--level", "0.5"), ("--repeats", "0"), ("a", "b", "c"),
        ("missing.json",),
    ],
)  # fmt: skip
def test_bad_values_on_the_command_line(options: tuple[str, ...]) -> None:
    done = call("plan", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert "Traceback" not in done.err


def test_the_command_prints_and_writes_the_plan() -> None:
    options = (
        "--loss",
        0.03,
        "--gain",
        0.01,
        "--rerun-noise",
        0.05,
        "--repeats",
        1,
        "--repeats",
        4,
    )
    done = call("plan", *options, "--json")
    assert (done.code, done.err) == (0, "")
    plan = make_plan(PlanInput(loss=0.03, gain=0.01, noise=0.05), [1, 4])
    assert PlanResult.from_json(done.out) == plan
    Draft202012Validator(TypeAdapter(PlanResult).json_schema()).validate(json.loads(done.out))
    lines = call("plan", *options, columns=120).out.splitlines()
    for row in plan.rows:
        (line,) = (line.split() for line in lines if line.startswith(f"{row.repeats} "))
        assert line[1:] == [
            "-" if number is None else f"{number:,}"
            for number in (row.items, row.answers, row.items_no_net_loss, row.items_no_loss)
        ]


# ---------------------------------------------------------------------------- after a run


def undecided(copies: int = 1) -> ComparisonResult:
    """A hundred items of which nothing can be said, so many times."""
    moves = (["11"] * 40 + ["10"] * 15 + ["01"] * 12 + ["00"] * 33) * copies
    sides = [table([float(move[side]) for move in moves]) for side in (0, 1)]
    return fm.compare(sides[0], sides[1]).result


def test_advice_after_a_run_that_could_not_tell() -> None:
    result = undecided()
    found = advise(result, by="task", loss=0.02)
    assert [group.name for group in found.open] == ["total"]  # its only task is the same
    assert found.decided == 0
    total = found.open[0]
    assert result.total.decides is not None
    assert total.items_needed == result.total.decides.items
    assert (total.items, total.detectable) == (100, result.total.detectable)
    assert total.items_needed is not None
    assert f"add about {total.items_needed - 100:,} items" in total.advice
    assert total.advice.startswith("confirm 15 flips")
    scale = ((result.total.detectable or 0) / 0.02) ** 2
    assert f"about {math.ceil(100 * scale):,} in total" in total.advice


def test_so_many_more_items_do_decide() -> None:
    """The same shares in as many items as advised: the verdict is no longer open."""
    needed = advise(undecided()).open[0].items_needed
    assert needed is not None
    assert undecided(copies=needed // 100 + 1).total.verdict == "lost"


@pytest.mark.parametrize("loss", ["0", "-0.1", "nan", "5"])
def test_an_impossible_loss_is_refused_after_a_run(loss: str, tmp_path: Path) -> None:
    done = call("plan", *pair(tmp_path, 3, 30), "--loss", loss)
    assert (done.code, done.out) == (2, "")


def pair(folder: Path, lost: int, items: int = 600) -> tuple[Path, Path]:
    """One item in ten was wrong before, and so many are wrong after."""
    rows = [
        [
            {"task": "t", "item": f"{n}", "score": float(n % 10 > 0 and (not side or n >= lost))}
            for n in range(items)
        ]
        for side in (0, 1)
    ]
    return write(folder / "a.jsonl", rows[0]), write(folder / "b.jsonl", rows[1])


def test_comparison_json_and_runs_give_the_same_advice(tmp_path: Path) -> None:
    before, after = pair(tmp_path, 12, 60)
    assert call("compare", before, after, "--out", tmp_path / "out").code == 0
    results = [
        call("plan", *source, "--json").out
        for source in ((before, after), (tmp_path / "out",), (tmp_path / "out/comparison.json",))
    ]
    assert results[0] == results[1] == results[2]
    Draft202012Validator(TypeAdapter(AdviceResult).json_schema()).validate(json.loads(results[0]))
    assert AdviceResult.from_json(results[0]).to_json().strip() == results[0].strip()


def test_comparison_json_comes_back_as_it_was(tmp_path: Path) -> None:
    before, after = pair(tmp_path, 12, 60)
    result = fm.compare(before, after).result
    assert ComparisonResult.from_json(result.to_json()) == result


@pytest.mark.parametrize("text", ["{}", "not json", "[1]"])
def test_a_file_that_is_no_comparison(text: str, tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    path.write_text(text, encoding="utf-8")
    done = call("plan", path)
    assert done.code == 2
    assert "is not a comparison of two runs" in done.err


@pytest.mark.parametrize(
    ("lost", "commands"),
    [(100, ["report", "export replay", "merge sweep"]), (0, ["gate"])],
)  # fmt: skip
def test_what_to_do_after_a_decision(lost: int, commands: list[str], tmp_path: Path) -> None:
    found = AdviceResult.from_json(call("plan", *pair(tmp_path, lost), "--json").out)
    assert (found.decided, found.open) == (1, [])
    for step, command in zip(found.next, commands, strict=True):
        assert f"(command: {command})" in step


def test_the_margin_of_a_plan_is_that_of_the_comparison(tmp_path: Path) -> None:
    runs = pair(tmp_path, 0)
    loose, strict = (
        json.loads(call("plan", *runs, "--margin", margin, "--json").out)
        for margin in (0.02, 0.001)
    )
    assert (len(loose["open"]), len(strict["open"])) == (0, 1)
    assert call("compare", *runs, "--out", tmp_path / "out").code == 0
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
