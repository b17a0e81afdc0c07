"""Every command in installations with few extras: it works or names the package to install.

Here the packages of the other extras are hidden; `make test-install` builds the real environments.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forgetmap._lazy import EXTRAS

ROOT = Path(__file__).parent.parent.parent
SUPPORT = ROOT / "tests" / "support"
ALWAYS = {"markdown_it"}
"""Comes with rich, which is part of the core."""
VISIBLE = {
    "core": set[str](),
    "server": {"aiohttp", "datasets", "httpx", "huggingface_hub", "math_verify", "pandas", "yaml"},
    "run": {package for package, extra in EXTRAS.items() if extra in {"run", "server"}}
    | {"math_verify", "pandas"},
    "drift": {package for package, extra in EXTRAS.items() if extra == "drift"} | {"httpx"},
    "serve": {"starlette", "uvicorn"},
}


@pytest.mark.parametrize(
    "kind",
    [
        "core",
        pytest.param("server", marks=pytest.mark.slow),
        pytest.param("run", marks=[pytest.mark.needs_torch, pytest.mark.slow]),
        "drift",
        "serve",
    ],
)
def test_every_command_works_or_says_what_to_install(kind: str, tmp_path: Path) -> None:
    hidden = set(EXTRAS) - VISIBLE[kind] - ALWAYS
    narrow = [] if kind == "core" else ["--extras-only"]
    done = subprocess.run(
        [sys.executable, SUPPORT / "walk_commands.py", tmp_path / "walk", kind, *narrow],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SUPPORT / "hidden_packages"), str(ROOT / "src")]),
            "HIDDEN_PACKAGES": " ".join(hidden),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "0 faults" in done.stdout


def test_the_walk_finds_a_command_that_breaks(tmp_path: Path) -> None:
    """Without numpy nothing works, and nothing says so."""
    done = subprocess.run(
        [sys.executable, SUPPORT / "walk_commands.py", tmp_path / "walk", "--extras-only"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SUPPORT / "hidden_packages"), str(ROOT / "src")]),
            "HIDDEN_PACKAGES": " ".join([*EXTRAS, "numpy"]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "a traceback" in done.stdout


def test_every_extra_is_one_of_the_package() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
