"""Names with control characters, long names, terminal widths, the mark of simulation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from command_line import (
    SCRIPT,
    SIMULATED,
    call,
    first_column,
    json_of,
    results,
    write,
)
from forgetmap.comparison import compare

HOSTILE = {
    "escape": "a\x1b[31mred\x1b]0;title\x07",
    "c1": "b\x9b31m",
    "newline": "c\nError: forged",
    "return": "d\rforged",
    "override": "e\u202eforged",
    "markup": "[bold red]f[/]",
    "emoji code": ":warning:",
    "backslash": "g\\",
    "separator": "h\u2028i",
}


def is_harmless(text: str) -> bool:
    return all(char == "\n" or unicodedata.category(char)[0] != "C" for char in text)


def hostile_rows(score: float) -> list[dict[str, Any]]:
    return [
        {
            "task": name, "item": name, "score": score, "category": name, "tags": name,
            "metric": "acc\x1b[0m", "question": name, "gold": name, "answer": name,
            "response": f"{name} {name}", "outcome": "correct" if score else "refused",
        }
        for name in HOSTILE.values()
    ]  # fmt: skip


def longest(lines: list[str]) -> int:
    """The length of the longest line, except commands, which are copied as one line."""
    return max(len(line) for line in lines if "`" not in line)


@pytest.fixture(scope="module", autouse=True)
def _compared_once() -> Iterator[None]:
    """What is tested here is what is printed: the same runs are compared once."""
    kept: dict[str, Any] = {}

    def once(*runs: str, progress: Any, **options: Any) -> Any:
        key = repr((runs, options))
        if key not in kept:
            kept[key] = compare(*runs, progress=progress, **options)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forgetmap.comparison.compare", once)
        yield


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    return (
        write(folder / "before\x1b[2J.jsonl", hostile_rows(1)),
        write(folder / "after[bold].jsonl", hostile_rows(0)),
    )


@pytest.fixture(scope="module")
def again(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model after, a second time."""
    return Path(copytree(demo / "after", tmp_path_factory.mktemp("copies") / "again"))


@pytest.mark.parametrize(
    "options",
    [[], ["--by", "task"], ["--by", "tag"], ["--show", "forgotten"], ["--json"]],
    ids=" ".join,
)
@pytest.mark.parametrize("columns", [60, 200])
def test_no_control_character_reaches_the_terminal(
    hostile: tuple[Path, Path], options: list[str], columns: int
) -> None:
    done = call("compare", *hostile, *options, columns=columns)
    assert done.code == 0
    assert is_harmless(done.out)
    assert "\nError: forged" not in done.out


@pytest.mark.parametrize("command", ["check", "show"])
def test_no_control_character_of_a_record_reaches_the_terminal(
    hostile: tuple[Path, Path], command: str
) -> None:
    for path in hostile:
        assert is_harmless(call("records", command, path).out)
        assert is_harmless(call("records", command, path, "--json").out)


def test_no_control_character_reaches_the_terminal_in_a_chain_or_fan_out(
    hostile: tuple[Path, Path], tmp_path: Path
) -> None:
    third = write(tmp_path / "third\x1b[2J.jsonl", hostile_rows(1))
    for options in ([], ["--chain"]):
        done = call("compare", *hostile, third, *options)
        assert done.code == 0
        assert is_harmless(done.out)


def test_no_control_character_reaches_the_terminal_in_an_error(
    hostile: tuple[Path, Path], tmp_path: Path
) -> None:
    other = write(tmp_path / "other\x1b[2J.jsonl", results([1], "x\x1b[31m", metric="m\x07"))
    for args in ([hostile[0], other], [other, other, "--metric", "\x1b"], [tmp_path / "\x1b"]):
        done = call("compare", *args, other)
        assert done.code == 2
        assert is_harmless(done.err)
        assert [line.split(": ")[0] for line in done.err.splitlines()] == ["Error", "Hint"]


def test_markup_and_emoji_codes_are_shown_as_they_are(hostile: tuple[Path, Path]) -> None:
    out = call("compare", *hostile, "--by", "task", "--show", "forgotten").out
    shown = first_column(out, "task")
    assert {"[bold red]f[/]", ":warning:", "g\\"} <= set(shown)
    assert ":warning: / :warning:" in out
    assert out.splitlines()[0].endswith(" -> after[bold]")


def test_a_terminal_that_knows_only_ascii_shows_substitutes(hostile: tuple[Path, Path]) -> None:
    done = subprocess.run(
        [SCRIPT, "compare", *hostile, "--show", "forgotten"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"a?[31mred" in done.stdout


FAMILY = "leaderboard_mmlu_professional_" + "very_" * 40


TASKS = [f"{FAMILY}{end}" for end in ("law", "medicine", "語学")]


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("names")
    rows = [row for task in TASKS for row in results([1, 0], task)]
    return [write(folder / name, rows) for name in ("a.jsonl", "b.jsonl")]


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_long_names_never_push_numbers_out_of_the_table(
    long_names: list[Path], columns: int
) -> None:
    lines = call("compare", *long_names, "--by", "task", columns=columns).out.splitlines()
    shown = [line for line in lines if line.startswith("leader")]
    assert all(re.search(r" 0\.0 to \d+\.\d%  cannot tell$", line) for line in shown)
    for task, line in zip(TASKS, shown, strict=True):
        name = re.split(r"\s{2,}", line)[0]
        head, tail = name.split("…")
        assert task.startswith(head)
        assert task.endswith(tail)
        assert tail.endswith(task.rpartition("_")[2])
    assert longest(lines) <= columns


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_chain_fits_too(demo: Path, again: Path, columns: int) -> None:
    runs = [demo / "before", demo / "after", again]
    lines = call("compare", *runs, "--chain", columns=columns).out.splitlines()
    stage = next(line for line in lines if "again " in line and "%" in line)
    assert len(re.findall(r"\d\.\d%", stage)) == 5
    assert longest(lines) <= columns


@pytest.mark.parametrize(
    ("columns", "heads"),
    [
        (60, ["before", "after", "lost", "verdict"]),
        (80, ["items", "before", "after", "forgotten", "lost", "verdict"]),
        (200, ["items", "before", "after", "change", "forgotten", "gained", "lost", "verdict"]),
    ],
)
def test_a_narrow_terminal_loses_columns_a_wide_one_gains_no_holes(
    demo: Path, columns: int, heads: list[str]
) -> None:
    out = call("compare", demo / "before", demo / "after", "--by", "category", columns=columns).out
    lines = out.splitlines()
    head = next(line for line in lines if line.startswith("category"))
    assert re.split(r"\s{2,}", head)[1:] == heads
    assert longest(lines) <= columns
    assert len(head) <= 100
    assert "…" not in out
    assert ("right before, wrong after, as a share" in out) == (columns > 80)


@pytest.mark.parametrize(
    ("after", "badge", "words"),
    [
        ([0] * 31 + [1] * 69, "LOST", "Lost at least "),
        ([0] + [1] * 99, "CANNOT TELL", "Cannot tell: between 0% and "),
    ],
)
def test_the_first_lines_are_badge_sentence_with_interval_and_counts(
    tmp_path: Path, after: list[int], badge: str, words: str
) -> None:
    paths = [
        write(tmp_path / name, results(scores, "t"))
        for name, scores in (("base.jsonl", [0] + [1] * 99), ("tuned.jsonl", after))
    ]
    lines = call("compare", *paths, columns=200).out.splitlines()
    assert lines[0] == f" {badge}  base -> tuned"
    assert lines[1].startswith(words)
    assert lines[1].endswith("(95%; margin 2%).")
    lost = 99 - sum(after)
    assert lines[2].startswith(f"{lost} forgotten, 0 gained of 100 items; accuracy 99.0% -> ")
    assert any(line.startswith("What next") for line in lines)


def test_no_share_below_zero_is_shown(tmp_path: Path) -> None:
    rows = results([0, *[1] * 49])
    paths = [write(tmp_path / name, rows) for name in ("a.jsonl", "b.jsonl")]
    out = call("compare", *paths, "--details").out
    assert json_of(*paths)["total"]["loss"]["low"] < 0
    lost = next(line for line in out.splitlines() if line.startswith("all items"))
    assert " 0.0 to " in lost


@pytest.mark.parametrize(
    "args",
    [
        ["compare", "{demo}/before", "{demo}/after"],
        ["compare", "{demo}/before", "{demo}/after", "{again}"],
        ["compare", "{demo}/before", "{demo}/after", "{again}", "--chain"],
        ["records", "show", "{demo}/before"],
        ["records", "check", "{demo}/before"],
    ],
    ids=" ".join,
)
def test_simulated_data_is_marked(demo: Path, again: Path, args: list[str]) -> None:
    named = (arg.format(demo=demo, again=again) for arg in args)
    assert SIMULATED in call(*named).out.splitlines()


def test_simulated_data_is_marked_for_programs(demo: Path) -> None:
    found = json_of(demo / "before", demo / "after")
    assert found["before"]["simulated"] is found["after"]["simulated"] is True
    assert json.loads(call("records", "check", demo / "before", "--json").out)["simulated"]


def test_measured_data_is_not_marked(pair: tuple[Path, Path]) -> None:
    assert "SIMULATED" not in call("compare", *pair).out
    assert "SIMULATED" not in call("records", "show", pair[0]).out
