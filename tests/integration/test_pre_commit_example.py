"""The example of a pre-commit hook, run by pre-commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from run_folders import results, write

CONFIG = Path(__file__).parents[2] / "examples" / "pre-commit" / ".pre-commit-config.yaml"


@pytest.mark.parametrize(("wrong", "word"), [(0, "Passed"), (200, "Failed")])
def test_the_hook_refuses_a_commit_in_which_a_model_forgot(
    tmp_path: Path, wrong: int, word: str
) -> None:
    tools, repository = tmp_path / "tools", tmp_path / "repository"
    tools.mkdir()
    program = tools / "forgetmap"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forgetmap "$@"\n', "utf-8")
    program.chmod(0o755)
    for name, right in (("main", 900), ("candidate", 900 - wrong)):
        write(repository / "evals" / name, results([1.0] * right + [0.0] * (1000 - right)))
    shutil.copy(CONFIG, repository)
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, check=False
        )

    run("git", "init", "--quiet")
    run("git", "add", "--all")
    done = run(sys.executable, "-m", "pre_commit", "run")
    assert word in done.stdout, done.stdout + done.stderr
    assert done.returncode == (wrong > 0)
    assert ("lost at least" in done.stdout) == (wrong > 0)
