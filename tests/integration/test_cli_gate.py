"""`forgetmap gate` in a pipeline: reliable exit codes and complete files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import forgetmap as fm
from command_line import SCRIPT, call, process
from releases import BAD, CLOSE, GOOD, Cells, one_task, release


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run before, and three after."""
    folder = tmp_path_factory.mktemp("runs")
    for name, cells in (("good", GOOD), ("bad", BAD), ("close", CLOSE)):
        before, after = one_task(cells)
        fm.write_run(fm.open_run(before, name="main"), folder / "main", overwrite=True)
        fm.write_run(fm.open_run(after, name=name), folder / name)
    return folder


@pytest.mark.parametrize(
    ("after", "code", "status"),
    [("good", 0, "PASS"), ("bad", 1, "FAIL"), ("close", 3, "INCONCLUSIVE")],
)
def test_the_exit_code_is_the_decision(runs: Path, after: str, code: int, status: str) -> None:
    done = process("gate", runs / "main", runs / after)
    assert (done.code, done.out.split()[0], done.err) == (code, status, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["main"],
        ["main", "none"],
        ["main", "good", "--policy", "none.toml"],
        ["main", "good", "--margin", "2"],
        ["main", "good", "--accept", "all"],
        ["main", "good", "--confirm", "main", "bad"],
        ["main", "good", "--confirm", "bad"],
        ["main", "good", "--no-such-option"],
        ["main", "good", "--waivers", "none.toml"],
        ["baseline:main", "good"],
    ],
)
def test_bad_input_ends_in_2(
    runs: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    done = call("gate", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "Error" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("fault", "words"),
    [("RuntimeError('broken installation')", "broken"), ("KeyboardInterrupt", "Interrupted")],
)
def test_a_crash_and_an_interrupt_end_in_4(
    runs: Path, tmp_path: Path, fault: str, words: str
) -> None:
    (tmp_path / "narwhals.py").write_text(f"raise {fault}\n")
    done = subprocess.run(
        [SCRIPT, "gate", runs / "main", runs / "good"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert words in done.stderr


@pytest.mark.parametrize(
    ("after", "option"),
    [
        ("good", ()),
        ("bad", ("--json",)),
        pytest.param("bad", (), marks=pytest.mark.slow),
        pytest.param("good", ("--json",), marks=pytest.mark.slow),
    ],
)
def test_a_closed_pipe_is_no_decision(runs: Path, after: str, option: tuple[str, ...]) -> None:
    command = f"'{SCRIPT}' gate {runs / 'main'} {runs / after} {' '.join(option)}"
    done = subprocess.run(
        ["bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "4"


def test_head_sees_the_decision_and_a_full_disk_is_none(runs: Path) -> None:
    command = f"'{SCRIPT}' gate {runs / 'main'} {runs / 'bad'}"
    script = f"{command} | head -1; echo ${{PIPESTATUS[0]}}; {command} > /dev/full 2>&1; echo $?"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    first, piped, full = done.stdout.split("\n")[:3]
    assert (first.split()[0], piped, full) == ("FAIL", "1", "4")


def test_the_json_has_a_schema_and_the_hash_of_the_policy(runs: Path, tmp_path: Path) -> None:
    import jsonschema

    done = call("gate", runs / "main", runs / "bad", "--json")
    result = json.loads(done.out)
    schema = json.loads(Path("docs/schemas/gate.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(result, schema)
    assert result["status"] == "FAIL"
    policy = tmp_path / "policy.toml"
    policy.write_text("[[rule]]\nmargin = 0.3\n", encoding="utf-8")
    other = json.loads(call("gate", runs / "main", runs / "bad", "--json", "--policy", policy).out)
    assert (other["status"], other["policy"]["origin"]) == ("PASS", str(policy))
    assert len({result["policy"]["hash"], other["policy"]["hash"]}) == 2


def test_margin_is_that_of_the_default_policy_only(runs: Path, tmp_path: Path) -> None:
    assert call("gate", runs / "main", runs / "bad", "--margin", "0.2").code == 0
    policy = tmp_path / "policy.toml"
    policy.write_text("[[rule]]\n", encoding="utf-8")
    for option in (("--margin", "0.2"), ("--accept", "net")):
        done = call("gate", runs / "main", runs / "bad", *option, "--policy", policy)
        assert (done.code, "cannot be combined" in done.err) == (2, True)


@pytest.fixture(scope="module")
def exchange(runs: Path) -> Path:
    """A run that gained more than it forgot, and reruns of both on what flipped."""
    before, after = one_task(Cells(kept=1000, lost=200, gained=400, never=400))
    for name, table in (("before", before), ("after", after)):
        fm.write_run(fm.open_run(table, name=name), runs / f"exchange-{name}")
        flipped = table.slice(1000, 600)
        fm.write_run(fm.open_run(flipped, name=f"{name} again"), runs / f"again-{name}")
    return runs


def test_an_exchange_is_open_until_its_flips_are_asked_again(exchange: Path) -> None:
    pair = (exchange / "exchange-before", exchange / "exchange-after")
    done = call("gate", *pair, columns=400)
    assert done.code == 3
    step = "confirm the 200 flips: 400 answers, which can prove a loss of up to 8.3%"
    assert f"{step}; then decide with --confirm" in done.out
    assert call("gate", *pair, "--accept", "net").code == 0
    again = ("--confirm", exchange / "again-before", exchange / "again-after")
    for accept in ("items", "net"):
        done = call("gate", *pair, *again, "--accept", accept, "--json")
        (check,) = json.loads(done.out)["checks"]
        assert (done.code, check["loss"]["carried_by"]) == (1, "confirmed")


def test_a_lucky_checkpoint_must_be_better(tmp_path: Path) -> None:
    for name, table in zip(("a", "b"), one_task(Cells(kept=1377, lost=23, never=600)), strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    pair = (tmp_path / "a.parquet", tmp_path / "b.parquet")
    codes = [call("gate", *pair, *option).code for option in ((), ("--chosen-among", 20))]
    assert codes == [0, 3]


def test_a_suite_that_is_easy_says_so(tmp_path: Path) -> None:
    for name, table in zip(("a", "b"), one_task(Cells(kept=1400)), strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    pair = (tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert [call("gate", *pair, *option).code for option in ((), ("--not-selected",))] == [3, 0]


@pytest.mark.parametrize(
    ("typed", "options", "accept"),
    [("net\n", (), "net"), ("\n", (), "items"), (None, (), "items"), (None, ("net",), "net")],
)
def test_init_asks_what_may_pass(
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    typed: str | None,
    options: tuple[str, ...],
    accept: str,
) -> None:
    stdin = io.StringIO(typed or "")
    monkeypatch.setattr(stdin, "isatty", lambda: typed is not None)
    monkeypatch.setattr(sys, "stdin", stdin)
    chosen = [word for option in options for word in ("--accept", option)]
    done = call("gate", "init", runs / "main", runs / "good", *chosen)
    assert tomllib.loads(done.out)["accept"] == accept
    asked = "with as much gained as lost, it passes a loss of 4 % in 96 of 100 releases"
    assert (asked in done.err) == (typed is not None)
    assert asked in done.out


def test_from_an_empty_folder_to_a_history(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main, good, bad = (runs / name for name in ("main", "good", "bad"))
    assert call("gate", "init", main, good, "--out", "policy.toml").code == 0
    assert call("gate", "init", main, good, "--out", "policy.toml").code == 2  # it is there
    assert call("gate", "accept", main, "--as", "main").code == 0
    assert call("gate", "baseline:main", bad, "--policy", "policy.toml").code == 1
    waiver = "[[waiver]]\nrule='loss'\nowner='ada'\nreason='known'\nceiling=0.15\n"
    Path("waivers.toml").write_text(f"{waiver}expires=2026-12-01\n", encoding="utf-8")
    waived = ("gate", "baseline:main", bad, "--waivers", "waivers.toml")
    assert call(*waived, "--as-of", "2026-11-17").code == 0
    assert call(*waived, "--as-of", "2026-12-02").code == 1
    assert call("gate", "baseline:main", good).code == 0
    done = call("gate", "history")
    assert "4 decisions: 2 FAIL, 2 PASS" in done.out
    history = json.loads(call("gate", "history", "--json").out)
    assert [release["status"] for release in history["releases"]] == [
        "FAIL",
        "PASS",
        "FAIL",
        "PASS",
    ]


def test_rows_in_another_order_and_tables_give_the_same(tmp_path: Path) -> None:
    before, after = release({"a": BAD, "b": Cells(kept=900, lost=10, never=90)})
    pq.write_table(before, tmp_path / "before.parquet")
    pq.write_table(after.take(list(range(len(after)))[::-1]), tmp_path / "after.parquet")
    first = call("gate", tmp_path / "before.parquet", tmp_path / "after.parquet", "--json")
    second = fm.run_gate(before, after)
    assert json.loads(first.out)["checks"][0]["loss"]["low"] == second.checks[0].loss.low


def test_a_decision_is_recorded_in_the_usual_place_where_that_is_asked_for(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("gate", runs / "main", runs / "bad", "--record").code == 1
    assert "1 decision: 1 FAIL" in call("gate", "history").out


def test_a_name_is_no_command_of_the_runner(tmp_path: Path) -> None:
    before, after = release({"a ::warning::all is well ##[error]b": BAD})
    pq.write_table(before, tmp_path / "before.parquet")
    pq.write_table(after, tmp_path / "after.parquet")
    policy = tmp_path / "policy.toml"
    policy.write_text("[[rule]]\nscope = 'task'\n", encoding="utf-8")
    tables = (tmp_path / "before.parquet", tmp_path / "after.parquet", "--policy", policy)
    for columns in range(20, 100, 4):
        done = call("gate", *tables, "--explain", "--github", columns=columns)
        lines = [line.strip() for line in done.out.splitlines()]
        commands = [line for line in lines if line.startswith("::")]
        assert len(commands) == 2
        assert all(line.startswith("::error title=") for line in commands)
        assert not any("##[" in line for line in lines if line not in commands)


def test_what_a_gate_said_of_a_table_is_known_by_its_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, table in zip(("main", "candidate"), one_task(GOOD), strict=True):
        pq.write_table(table, f"{name}.parquet")
    assert call("gate", "accept", "main.parquet", "--as", "main").code == 0
    assert call("gate", "baseline:main", "candidate.parquet").code == 0
    pq.write_table(one_task(BAD)[1], "candidate.parquet")
    done = call("gate", "accept", "candidate.parquet", "--as", "main")
    assert "the last decision on a run of this name was PASS" in done.out
