"""At the end of a run, Inspect prints what the model forgot since an earlier log."""

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
import importlib, os, sys
import forgetmap.inspect_extension
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

items, base, tuned = 40, sys.argv[1], sys.argv[2]


@solver
def know(right):
    async def solve(state, generate):
        number = int(state.sample_id)
        answer = f"{number}" if number < right else "none"
        state.output = ModelOutput.from_content("mockllm/model", answer)
        return state

    return solve


samples = [Sample(id=f"{n}", input=f"Name number {n}.", target=f"{n}") for n in range(items)]
for right, folder in ((items - 1, base), (items // 2, tuned)):
    task = Task(
        dataset=samples, solver=know(right), scorer=match(location="exact"), name="numbers"
    )
    eval(task, model="mockllm/model", log_dir=folder, display="none")
    print("END OF RUN", file=sys.stderr)
    os.environ[sys.argv[3]] = base
    importlib.reload(forgetmap.inspect_extension)  # it looks for a baseline when it is loaded
"""


def evaluate(base: Path, tuned: Path) -> list[str]:
    """What Inspect prints in two runs, of which only the second has a baseline.

    In one process, as it takes Inspect seconds to start.
    """
    without = {name: value for name, value in os.environ.items() if name != BASELINE}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(base), str(tuned), BASELINE],
        capture_output=True, text=True, check=True, env=without,
    )  # fmt: skip
    return done.stderr.split("END OF RUN")


def test_the_verdict_follows_the_run(tmp_path: Path) -> None:
    base, tuned = tmp_path / "base", tmp_path / "tuned"
    first, second, _ = evaluate(base, tuned)
    assert "forgetmap" not in first
    assert "no longer knows at least" in second
    assert "19 forgotten, 0 gained of 40 items" in second
    assert "next:    read what was forgotten" in second
    assert f"forgetmap report {base} {tuned}" in second
    assert "inspect view --log-dir" in second


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
