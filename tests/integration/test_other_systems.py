"""Features that Windows lacks lead to a typed error only if they are needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys

for name in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[name] = None
for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "pread", "pwrite", "sched_getaffinity",
             "killpg", "fork"):
    delattr(os, name)

from click.testing import CliRunner
from forgetmap.cli.main import cli
from forgetmap.doctor import all_parts, examine
from forgetmap.errors import HarnessError
from forgetmap.harness_runs import require_locks

runner = CliRunner()
for args in (
    "simulate --out example --items 40 --tasks 2",
    "simulate --out example --items 40 --tasks 2 --overwrite",
    "compare example/before example/after",
    "report example/before example/after --out report.html",
    "gate example/before example/after --margin 0.9",
    "records convert example/before --out copy",
    "records check copy --deep",
):
    done = runner.invoke(cli, args.split())
    assert done.exit_code == 0, (args, done.output, done.exception)
harness = next(part for part in all_parts() if part.name == "lm-eval")
finding = examine(harness)
assert finding.state == "broken" and "WSL" in finding.todo, finding
try:
    require_locks()
except HarnessError as error:
    print(error)
"""


def test_without_what_windows_lacks(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "cannot run other harnesses" in done.stdout
