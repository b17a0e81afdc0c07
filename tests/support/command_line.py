"""Calls of the command line, in this process through `main` or as a separate process."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forgetmap.cli.main import main

SCRIPT = Path(sys.executable).parent / "forgetmap"
SIMULATED = "SIMULATED data, not a measured model."


@dataclass(frozen=True)
class Done:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


def call(*args: object, columns: int = 80) -> Done:
    """Run the command in this process, with its handling of errors."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["forgetmap", *map(str, args)])
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as stop:
            main()
    return Done(int(stop.value.code or 0), out.getvalue(), err.getvalue())


def process(*args: object, columns: int = 80) -> Done:
    """Run the installed command as a separate process."""
    done = subprocess.run(
        [SCRIPT, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": str(columns)},
    )
    return Done(done.returncode, done.stdout, done.stderr)


def json_of(*args: object) -> dict[str, Any]:
    """Return what `compare --json` prints; fail if it prints anything else."""
    done = call("compare", *args, "--json")
    assert (done.code, done.err) == (0, "")
    value = json.loads(done.out)
    assert isinstance(value, dict)
    return value


def first_column(out: str, head: str) -> list[str]:
    """Return the names in the table whose first column is called `head`."""
    lines = out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"{head} "))
    names = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        names.append(re.split(r"\s{2,}", line)[0])
    return names


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def results(scores: Sequence[float | None], task: str = "t", **same: Any) -> list[dict[str, Any]]:
    """Return rows of one task; `same` holds columns for every row."""
    return [
        {"task": task, "item": f"i{n}", "score": score, **same} for n, score in enumerate(scores)
    ]


def four_items(folder: Path) -> tuple[Path, Path]:
    """Write two runs with one item kept, one forgotten, one gained and one never right."""
    return (
        write(folder / "base.jsonl", results([1, 1, 0, 0])),
        write(folder / "tuned.jsonl", results([1, 0, 1, 0])),
    )


def simulated_runs(folder: Path) -> Path:
    """Write a folder with two simulated runs and a rerun of each."""
    assert call("simulate", "--out", folder / "demo", "--items", 40).code == 0
    return folder / "demo"
