"""Calls the command line as its users do: in this process through `main`, or as a real process."""

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
    """What a command left behind."""

    code: int
    out: str
    err: str


def call(*args: object, columns: int = 80) -> Done:
    """The command in this process, typed errors and exit code included."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["forgetmap", *map(str, args)])
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as stop:
            main()
    return Done(int(stop.value.code or 0), out.getvalue(), err.getvalue())


def process(*args: object, columns: int = 80) -> Done:
    """The installed command as a process of its own."""
    done = subprocess.run(
        [SCRIPT, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": str(columns)},
    )
    return Done(done.returncode, done.stdout, done.stderr)


def json_of(*args: object) -> dict[str, Any]:
    """What `compare --json` prints, and that it prints nothing else."""
    done = call("compare", *args, "--json")
    assert (done.code, done.err) == (0, "")
    value = json.loads(done.out)
    assert isinstance(value, dict)
    return value


def first_column(out: str, head: str) -> list[str]:
    """The names in the table whose first column is called `head`."""
    lines = out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"{head} "))
    names = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        names.append(re.split(r"\s{2,}", line)[0])
    return names


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A table of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def results(scores: Sequence[float | None], task: str = "t", **same: Any) -> list[dict[str, Any]]:
    """Rows of one task; every row has the columns in `same`."""
    return [
        {"task": task, "item": f"i{n}", "score": score, **same} for n, score in enumerate(scores)
    ]


def four_items(folder: Path) -> tuple[Path, Path]:
    """Two runs; one item is kept, one lost, one gained, one never right."""
    return (
        write(folder / "base.jsonl", results([1, 1, 0, 0])),
        write(folder / "tuned.jsonl", results([1, 0, 1, 0])),
    )


def simulated_runs(folder: Path) -> Path:
    """A folder with two simulated runs."""
    assert call("simulate", "--out", folder / "demo", "--items", 40).code == 0
    return folder / "demo"
