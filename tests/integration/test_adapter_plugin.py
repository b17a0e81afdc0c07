"""Other packages add adapters by entry point: really built, installed and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import SCRIPT, Done

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "quizmaster-logs"
version = "1.0"

[project.entry-points."forgetmap.adapters"]
quizmaster = "quizmaster_logs:Quizmaster"
"""

ADAPTER = '''
from forgetmap.records.manifest import ModelInfo, RunInfo
from forgetmap.sources.adapter import Log, Sample, Score


class Quizmaster:
    """Lines such as `QUIZ capital-of-peru right`."""

    name = "quizmaster"
    preferred = ("points",)

    def sniff(self, files):
        info = RunInfo(model=ModelInfo(name="a contestant"))
        known = [file for file in files if file.head.startswith(b"QUIZ ")]
        return [Log("quizmaster", (file,), info, ("quiz",)) for file in known]

    def read(self, log, problems, *, texts):
        for file in log.files:
            for line, text in file.lines():
                words = text.decode().split()
                if len(words) != 3:
                    problems.add(file.name, "three words were expected", line=line)
                    continue
                points = Score("points", float(words[2] == "right"))
                yield Sample("quiz", words[1], [points], file=file.name, line=line)
'''


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built and installed: the folder to put on the path."""
    folder = tmp_path_factory.mktemp("plugin")
    project, target = folder / "project", folder / "installed"
    (project / "quizmaster_logs").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "quizmaster_logs" / "__init__.py").write_text(ADAPTER)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    flags = ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*pip, *flags, project], check=True, capture_output=True)
    return target


def damaged(installed: Path, copy: Path, source: str, named: str) -> Path:
    """A copy of the installed package with other code and another entry point."""
    shutil.copytree(installed, copy)
    (copy / "quizmaster_logs" / "__init__.py").write_text(source)
    (points,) = copy.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace(":Quizmaster", f":{named}"))
    return copy


def forgetmap(installed: Path, *args: object) -> Done:
    """The command in an environment that has the package."""
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [SCRIPT, *map(str, args)],
        env={**os.environ, "PYTHONPATH": path, "FORGETMAP_CACHE": str(installed.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    pair = tmp_path / "base.log", tmp_path / "tuned.log"
    pair[0].write_text("QUIZ peru right\nQUIZ oslo right\nQUIZ mars wrong\nQUIZ?\n")
    pair[1].write_text("QUIZ oslo wrong\nQUIZ peru right\nQUIZ mars wrong\n")
    return pair


def test_an_installed_adapter_is_used(installed: Path, logs: tuple[Path, Path]) -> None:
    done = forgetmap(installed, "compare", *logs, "--json")
    assert done.code == 0, done.err
    total = json.loads(done.out)["total"]
    assert [total[name] for name in ("n11", "n10", "n01", "n00")] == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("source", "named", "says"),
    [
        ("import no_such_package_anywhere\n", "Quizmaster", "no_such_package_anywhere"),
        (ADAPTER, "NoSuchClass", "NoSuchClass"),
        ("this is no Python\n", "Quizmaster", "invalid syntax"),
        ("raise ValueError('broken inside')\n", "Quizmaster", "broken inside"),
        ("class Quizmaster:\n    name = 'quizmaster'\n", "Quizmaster", "lacks name, preferred"),
        ("class Quizmaster:\n    def __init__(self, x): ...\n", "Quizmaster", "'x'"),
    ],
    ids=["import", "name", "syntax", "exception", "protocol", "constructor"],
)
def test_a_broken_adapter_is_named(
    source: str, named: str, says: str, installed: Path, tmp_path: Path, logs: tuple[Path, Path]
) -> None:
    done = forgetmap(damaged(installed, tmp_path / "copy", source, named), "compare", *logs)
    assert (done.code, done.out) == (2, "")
    message = " ".join(done.err.split())
    assert message.startswith(f"Error: the adapter 'quizmaster' (quizmaster_logs:{named})")
    assert says in message
    assert "Hint: " in message
    assert "Traceback" not in message
