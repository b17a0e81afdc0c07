"""The built wheel works in an empty environment, without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_IN_CORE = {"torch", "transformers", "pandas", "polars", "pyspark", "statsmodels"}


def run(*command: str | Path, cwd: Path) -> str:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "COV"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, cwd=ROOT)
    return next(out.glob("forgetmap-*.whl"))


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        assert "forgetmap/py.typed" in archive.namelist()
    assert {name for name in tops if not name.endswith(".dist-info")} == {"forgetmap"}


@pytest.mark.slow
def test_command_works_from_the_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "env"
    run(sys.executable, "-m", "venv", home, cwd=tmp_path)
    constraints = ROOT / "constraints.txt"
    run(home / "bin" / "pip", "install", "-q", "-c", constraints, wheel, cwd=tmp_path)
    installed = json.loads(run(home / "bin" / "pip", "list", "--format", "json", cwd=tmp_path))
    assert NOT_IN_CORE.isdisjoint(package["name"].lower() for package in installed)
    command = home / "bin" / "forgetmap"
    run(command, "simulate", "--out", "demo", cwd=tmp_path)
    said = run(command, "compare", "demo/before", "demo/after", "--json", cwd=tmp_path)
    assert json.loads(said)["total"]["n"] == 9 * 300
