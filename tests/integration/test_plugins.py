"""Installed packages add log formats, scorers, merge methods and more by entry point.

The plugins are those of examples/plugins; tests/support/use_plugins.py uses them all in one fresh
Python. Broken plugins are loaded in this process, by a fresh registry.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import use_plugins
from command_line import call
from forgetmap._plugins import Registry
from forgetmap.comparison import estimators as estimator_table
from forgetmap.errors import UsageError
from forgetmap.merge import registry as merge_registry
from forgetmap.report.figures import plugins as figure_plugins
from forgetmap.scoring import registry as scorer_registry
from forgetmap.sources import registry as adapter_registry
from plugin_packages import install_project, write_package

PLUGINS = Path(__file__).parents[2] / "examples" / "plugins"
ADAPTER = (PLUGINS / "log_format" / "quizmaster_logs.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What came of using each plugin."""
    folder = tmp_path_factory.mktemp("plugins")
    for name in use_plugins.USES:
        install_project(PLUGINS / name, folder / "installed")
    (folder / "work").mkdir()
    paths = [str(folder / "installed"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths).rstrip(os.pathsep),
        "FORGETMAP_CACHE": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, use_plugins.__file__, folder / "work"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def test_every_example_is_used_and_has_at_most_two_files() -> None:
    folders = sorted(path for path in PLUGINS.iterdir() if path.is_dir())
    assert [folder.name for folder in folders] == sorted(use_plugins.USES)
    for folder in folders:
        files = [path.name for path in folder.iterdir() if path.name != "__pycache__"]
        assert "pyproject.toml" in files
        assert len(files) == 2


def test_a_log_format(results: dict[str, dict[str, Any]]) -> None:
    assert results["log_format"] == {"n11": 1, "n10": 1, "n01": 0, "n00": 1}


def test_a_declared_format(results: dict[str, dict[str, Any]]) -> None:
    assert results["declared_format"] == {
        "model": "bee",
        "records": [
            ["riddles", f"r{n}", "stars", score] for n, score in enumerate([0.0, 0.75, 1.0, None])
        ],
        "problems": ["4: expected stars from 1 to 5, not 6"],
    }


def test_a_scorer(results: dict[str, dict[str, Any]]) -> None:
    assert results["scorer"] == {"metric": "brevity.chat", "before": 1.0, "after": 0.75}


def test_a_merge_method(results: dict[str, dict[str, Any]]) -> None:
    assert results["merge_method"] == {
        "last": "median",
        "says": "the median of the models, value by value",
        "weights": [3.0, 3.0],
    }


def test_a_backend(results: dict[str, dict[str, Any]]) -> None:
    assert results["backend"] == {"correct": 1.0, "incorrect": 0.0, "error": None}


def test_an_estimator(results: dict[str, dict[str, Any]]) -> None:
    found = results["estimator"]
    assert found["json"] == pytest.approx(2 / 4 - 3 / 4 * (1 - 2 / 4))
    assert found["macro"] == found["json"]
    assert found["frame"] == [found["json"]]
    assert re.search(r"^independence +12\.5%", found["terminal"], re.MULTILINE)
    assert found["payload"]
    assert found["page"]
    assert "| `independence` | F - a(1-b) |" in found["docs"]


def test_a_figure(results: dict[str, dict[str, Any]]) -> None:
    found = results["figure"]
    assert found["page"] == ["Accuracy by task", True, [0.75, 0.5]]
    assert found["picture"] == [True, True]
    assert [line for line in found["markdown"] if "before" in line or "after" in line] == [
        "| t | before | 0.75 |",
        "| t | after | 0.5 |",
    ]


@pytest.fixture
def broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Any, str, str, str], Registry[Any]]:
    """Puts a registry in the place of one, which sees a package with this source."""

    def install(module: Any, registry: str, source: str, point: str) -> Registry[Any]:
        fresh: Registry[Any] = replace(getattr(module, registry))
        name, _, attribute = point.partition(":")
        write_package(tmp_path, "broken_plugin", source, {f"{fresh.group}/{name}": attribute})
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
        monkeypatch.setattr(module, registry, fresh)
        return fresh

    return install


@pytest.mark.parametrize(
    ("source", "attribute", "message"),
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
    broken: Any, source: str, attribute: str, message: str, tmp_path: Path
) -> None:
    broken(adapter_registry, "ADAPTERS", source, f"quizmaster:{attribute}")
    log = tmp_path / "base.log"
    log.write_text("QUIZ peru right\n")
    done = call("compare", log, log, "--no-cache")
    assert (done.code, done.out) == (2, "")
    sentence = " ".join(done.err.split())
    assert sentence.startswith(f"Error: the adapter 'quizmaster' (broken_plugin:{attribute})")
    assert message in sentence
    assert "Hint: fix or uninstall the package that adds it." in sentence


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_package_anywhere\n", "No module named 'no_such_package_anywhere'"),
        ("def median(tensors): return tensors[0]\n", "is not a function with @merge_method"),
    ],
    ids=["import", "undecorated"],
)
def test_a_broken_merge_method_is_named(
    broken: Any, tmp_path: Path, source: str, message: str
) -> None:
    broken(merge_registry, "METHODS", source, "median:median")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("method: median\nmodels: [{model: a}, {model: b}, {model: c}]\n")
    done = call("merge", "apply", recipe, "--out", tmp_path / "out")
    sentence = " ".join(done.err.split())
    assert done.code == 2
    assert "the merge method 'median' (broken_plugin:median)" in sentence
    assert message in sentence


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("accuracy = 3\n", "is not a forgetmap.report.FigurePlugin"),
        (
            "import forgetmap.report as r\naccuracy = r.FigurePlugin('x', lambda p: p.no_such)\n",
            "the figure 'accuracy' cannot be drawn: .*no_such",
        ),
    ],
    ids=["kind", "exception"],
)
def test_a_broken_figure_is_named(broken: Any, tmp_path: Path, source: str, message: str) -> None:
    broken(figure_plugins, "FIGURES", source, "accuracy:accuracy")
    run = tmp_path / "run.csv"
    run.write_text("task,item,score\nt,a,1\nt,b,0\n")
    done = call("report", run, copy_of(run), "--out", tmp_path / "report.html")
    assert done.code == 2
    assert re.search(message, " ".join(done.err.split()))


def copy_of(run: Path) -> Path:
    """The same results in a file of their own: one file on both sides is refused."""
    other = run.with_stem("other")
    other.write_bytes(run.read_bytes())
    return other


ESTIMATOR = (PLUGINS / "estimator" / "yule_estimator.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "point", "message"),
    [
        ("import no_such_package_anywhere\n", "mine", "No module named 'no_such_package_anywhere'"),
        ("mine = 5\n", "mine", "it is not a forgetmap.comparison.Estimator"),
        (ESTIMATOR.replace('"independence"', '"latent"'), "latent", "an estimator named 'latent'"),
        (ESTIMATOR.replace('"independence"', '"n10"'), "n10", "'n10', which is already taken"),
    ],
    ids=["import", "type", "ours", "field"],
)
def test_a_broken_estimator_is_named(
    broken: Any, tmp_path: Path, source: str, point: str, message: str
) -> None:
    attribute = "mine" if point == "mine" else "independence"
    broken(estimator_table, "ADDED_ESTIMATORS", source, f"{point}:{attribute}")
    run = tmp_path / "run.jsonl"
    run.write_text('{"task": "t", "item": "a", "score": 1}\n')
    done = call("compare", run, copy_of(run))
    assert done.code == 2
    assert message in " ".join(done.err.split())


def test_a_broken_scorer_is_named(broken: Any) -> None:
    source = "class Brevity:\n    name, version = 'brevity', 1\nbrevity = Brevity()\n"
    scorers = broken(scorer_registry, "SCORERS", source, "brevity:brevity")
    with pytest.raises(UsageError, match=r"the scorer 'brevity' \(broken_plugin:brevity\) .*lacks"):
        scorers.get("brevity")
