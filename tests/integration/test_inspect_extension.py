"""Inspect prints what the model forgot against an earlier log when a run has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

from forgetmap.inspect_extension import BASELINE, ForgettingHooks, common_path, verdict_of

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import forgetmap.inspect_extension
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

items, right = 40, int(sys.argv[1])


@solver
def know():
    async def solve(state, generate):
        number = int(state.sample_id)
        answer = f"{number}" if number < right else "none"
        state.output = ModelOutput.from_content("mockllm/model", answer)
        return state

    return solve


samples = [Sample(id=f"{n}", input=f"Name number {n}.", target=f"{n}") for n in range(items)]
task = Task(dataset=samples, solver=know(), scorer=match(location="exact"), name="numbers")
eval(task, model="mockllm/model", log_dir=sys.argv[2], display="none")
"""


def evaluate(right: int, folder: Path, **environment: str) -> str:
    """What Inspect prints in a run whose model answers so many of 40 items right."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(right), str(folder)],
        capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stderr


def test_the_verdict_follows_the_run(tmp_path: Path) -> None:
    base = tmp_path / "base"
    assert "forgetmap" not in evaluate(40, base)
    printed = evaluate(20, tmp_path / "tuned", **{BASELINE: str(base)})
    assert "lost at least" in printed
    assert f"forgetmap report {base} {tmp_path / 'tuned'}" in printed
    assert "inspect view --log-dir" in printed


def test_a_baseline_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    text = verdict_of(str(tmp_path / "nothing"), [str(tmp_path / "log.eval")])
    assert text.startswith("forgetmap: ")
    assert "nothing" in text


def test_several_logs_are_their_folder() -> None:
    assert common_path(["file:///logs/a%20b/one.eval"]) == "/logs/a b/one.eval"
    assert common_path(["s3://b/logs/one.eval", "s3://b/logs/two.eval"]) == "s3://b/logs"


def test_inspect_loads_it_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module = import_module(project["entry-points"]["inspect_ai"]["forgetmap"])
    assert module.ForgettingHooks is ForgettingHooks
