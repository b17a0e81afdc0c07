"""Conventions of the command line: completion, exit codes, pipes, quiet output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import (
    SCRIPT,
    call,
    process,
)

HEAVY = {"numpy", "duckdb", "scipy", "pyarrow", "pandas", "polars", "narwhals", "pydantic", "rich"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["completion", "bash"], []])
def test_asking_for_help_is_light(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    imported = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert HEAVY.isdisjoint(imported)


def complete_in_bash(line: str) -> list[str]:
    """What bash proposes for a command line, in a real bash that sourced our script."""
    script = f"""
        source <(forgetmap completion bash)
        COMP_WORDS=({line}) COMP_CWORD=$(( $(wc -w <<< '{line}') - 1 ))
        $(complete -p forgetmap | sed 's/.*-F \\([^ ]*\\).*/\\1/') forgetmap
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("forgetmap com", ["compare", "completion"]),
        ("forgetmap records s", ["show", "schema"]),
        ("forgetmap compare --cha", ["--chain"]),
        ("forgetmap compare --by t", ["task", "tag"]),
    ],
)
def test_bash_completes(line: str, proposed: list[str]) -> None:
    assert sorted(complete_in_bash(line)) == sorted(proposed)


def test_completing_a_command_name_is_light() -> None:
    code = """
import sys
from forgetmap.cli.main import cli
from click.shell_completion import ShellComplete
found = ShellComplete(cli, {}, "forgetmap", "X").get_completions([], "com")
print(*(item.value for item in found), *{name.split('.')[0] for name in sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["compare", "completion"]
    assert HEAVY.isdisjoint(done.stdout.split())


@pytest.mark.parametrize(
    ("shell", "marks"),
    [
        ("zsh", ["#compdef forgetmap", "_FORGETMAP_COMPLETE=zsh_complete"]),
        ("fish", ["complete --no-files --command forgetmap", "_FORGETMAP_COMPLETE=fish_complete"]),
    ],
)
def test_completion_scripts_of_other_shells(shell: str, marks: list[str]) -> None:
    script = call("completion", shell).out
    assert all(mark in script for mark in marks)


@pytest.mark.parametrize(
    "args",
    [
        ["compare", "nowhere", "nowhere"],
        ["compare", "{base}", "{base}", "--min-paired", "7"],
        ["compare", "{base}", "{base}", "--correct-at", "nan"],
        ["compare", "{base}", "{base}", "--metric", "other"],
        ["compare", "{base}", "{base}", "--columns", "itme=question"],
        ["compare", "{base}", "{base}", "--columns", "nonsense"],
        ["compare", "{base}", "{base}", "--chain"],
        ["compare", "{base}", "{base}", "--json", "--show", "kept"],
        ["compare", "{base}", "{base}", "--pair-by", "content"],
        ["compare", "{base}"],
        ["compare", "{base}", "{base}", "--limit", "0"],
        ["records", "check", "nowhere"],
        ["records", "schema", "nothing"],
        ["records", "convert", "{base}", "--out", "{base}"],
        ["simulate", "--out", "{base}"],
        ["simulate", "--out", "new", "--k", "1"],
        ["simulate", "--out", "new", "--k", "four"],
        ["simulate", "--out", "new", "--seed", "-1"],
        ["simulate", "--out", "new", "--lost", "1.5"],
        ["completion", "tcsh"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_every_misuse_is_exit_code_2_and_words_not_a_traceback(
    pair: tuple[Path, Path], args: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in pair}
    done = call(*(arg.format(base=pair[0]) for arg in args))
    assert (done.code, done.out) == (2, "")
    assert "Error: " in done.err
    assert re.search("Hint: |Try 'forgetmap", done.err)
    assert "Traceback" not in done.err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_typed_error_is_two_lines() -> None:
    assert re.fullmatch(
        r"Error: nowhere: the file or folder does not exist\nHint: .+\n",
        call("compare", "nowhere", "elsewhere").err,
    )


def test_exit_codes_of_the_real_command(demo: Path) -> None:
    """Progress is for terminals only."""
    done = process("compare", demo / "before", demo / "after")
    assert (done.code, done.err) == (0, "")
    failed = process("compare", demo / "before", "nowhere")
    assert (failed.code, failed.out) == (2, "")
    assert failed.err.startswith("Error: nowhere")


def test_python_runs_the_package_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "forgetmap", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("forgetmap, version")


@pytest.mark.parametrize(
    "args",
    [
        ["compare", "{demo}/before", "{demo}/after", "--by", "task", "--show", "forgotten"],
        ["compare", "{demo}/before", "{demo}/after", "{demo}/after/scores.parquet", "--chain"],
        ["compare", "{demo}/before", "{demo}/after", "--json"],
        ["records", "show", "{demo}/before"],
        ["records", "check", "{demo}/after", "--json"],
    ],
    ids=" ".join,
)
def test_nothing_but_the_result_is_printed(
    demo: Path, args: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor by libraries that write past Python; one of them as a process is tried above."""
    done = call(*(arg.format(demo=demo) for arg in args))
    assert (done.code, done.err) == (0, "")
    assert done.out.strip()
    assert capfd.readouterr() == ("", "")


SHOW = "compare {demo}/before {demo}/after --show kept --limit 5000"
JSON = "compare {demo}/before {demo}/after --json"
RECORDS = "records show {demo}/before --limit 300"
SCHEMA = "records schema comparison"


@pytest.mark.parametrize(
    ("args", "reader"),
    [
        (SHOW, "head -1"),
        (JSON, "true"),
        (RECORDS, "head -1"),
        (RECORDS, "true"),
        (SCHEMA, "head -1"),
        ("--help", "true"),
        pytest.param(SHOW, "true", marks=pytest.mark.slow),
        pytest.param(JSON, "head -1", marks=pytest.mark.slow),
        pytest.param(SCHEMA, "true", marks=pytest.mark.slow),
        pytest.param("--help", "head -1", marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_leaves_early_is_no_error(demo: Path, args: str, reader: str) -> None:
    line = f"{SCRIPT} {args.format(demo=demo)} | {reader}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == (1 if reader == "head -1" else 0)
