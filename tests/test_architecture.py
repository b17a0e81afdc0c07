"""House rules that a machine can check: layers, cycles, weight of imports, sizes."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "forgetmap"
LAYERS = [
    {"errors", "_lazy"},
    {"_plugins", "_http", "_cache", "stats"},
    {"records", "theory", "merge"},
    {"scoring"},
    {"sources", "evaluation", "simulation"},
    {"pairing"},
    {"comparison"},
    {"capabilities", "overlap"},
    {"report", "gate"},
    {"serve"},
    {"map", "harness_runs", "probe", "sweep"},
    {"doctor"},
    {"cli"},
]
HEAVY = {
    "numpy", "duckdb", "scipy", "pyarrow", "pandas", "polars", "narwhals", "torch", "pyspark",
    "pydantic", "rich",
}  # fmt: skip
LONGEST_FILE = 600
LONGEST_FUNCTION = 60


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def layer_of(package: str) -> int | None:
    return next((place for place, names in enumerate(LAYERS) if package in names), None)


def imported_packages(path: Path) -> Iterator[str]:
    """First-level packages of ours that a module imports, hidden imports included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "forgetmap" and len(parts) > 1:
                yield parts[1]


def imports_upwards(path: Path, package: str) -> list[str]:
    own = layer_of(package)
    wrong = []
    for other in imported_packages(path):
        place = layer_of(other)
        if other != package and (place is None or own is None or place >= own):
            wrong.append(other)
    return wrong


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_layers_import_only_from_below(path: Path) -> None:
    if path.parent == PACKAGE:
        return
    package = path.relative_to(PACKAGE).parts[0]
    assert layer_of(package) is not None, f"{package} has no layer"
    assert imports_upwards(path, package) == []


def test_the_layer_check_can_fail(tmp_path: Path) -> None:
    guilty = tmp_path / "guilty.py"
    guilty.write_text("def f():\n    from forgetmap.cli.main import cli\n    return cli\n")
    assert imports_upwards(guilty, "records") == ["cli"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            assert (node.end_lineno or 0) - first.lineno < LONGEST_FUNCTION, node.name


def loaded_by(code: str) -> set[str]:
    """First-level packages that are there once a fresh Python has run this."""
    script = f"{code}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["forgetmap", "forgetmap.errors", "forgetmap.cli.main"])
def test_starting_loads_nothing_heavy(name: str) -> None:
    assert HEAVY.isdisjoint(loaded_by(f"import {name}"))


def test_stats_uses_nothing_but_numpy_when_imported() -> None:
    names = [f"forgetmap.stats.{path.stem}" for path in (PACKAGE / "stats").glob("[a-z]*.py")]
    assert names
    assert (HEAVY - {"numpy"}).isdisjoint(loaded_by(f"import {', '.join(names)}"))


def test_theory_knows_nothing_of_the_rest() -> None:
    paths = sorted((PACKAGE / "theory").rglob("*.py"))
    assert paths
    for path in paths:
        assert set(imported_packages(path)) <= {"errors", "_lazy", "theory"}, path
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    loaded = loaded_by(f"import {', '.join(names)}".replace(".__init__", ""))
    assert (HEAVY - {"numpy", "scipy"}).isdisjoint(loaded)


def test_merge_knows_nothing_of_records() -> None:
    paths = sorted((PACKAGE / "merge").rglob("*.py"))
    assert paths
    for path in paths:
        assert set(imported_packages(path)) <= {"errors", "_lazy", "merge"}, path
