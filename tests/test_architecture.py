"""Rules of the architecture: layers, public names, cycles, names, cost of imports, sizes.

The layers are in tools/architecture.py; tools/source_tree.py reads the source. Each check has a
control that shows that it can fail.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import source_tree
from architecture import LAYERS, ONLY, drawing, layer_of
from source_tree import SourceFile, Tree, read_tree

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "forgetmap"
HEAVY = {
    "numpy", "duckdb", "scipy", "pyarrow", "pandas", "polars", "narwhals", "torch", "pyspark",
    "pydantic", "rich",
}  # fmt: skip
LONGEST_FILE = 600
LONGEST_FUNCTION = 60


@pytest.fixture(scope="module")
def tree() -> Tree:
    return read_tree(PACKAGE)


def write_tree(folder: Path, files: dict[str, str]) -> Tree:
    """A small package called forgetmap."""
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / "forgetmap" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_tree(folder / "forgetmap")


def imports_against_layers(tree: Tree) -> Iterator[str]:
    for file in tree.values():
        own = layer_of(file.package)
        for other in source_tree.packages_used(file) if "." in file.module else ():
            layer = layer_of(other)
            if layer is None or own is None or layer >= own:
                yield f"{file.package} -> {other}"


def test_packages_import_only_from_layers_below(tree: Tree) -> None:
    assert set(imports_against_layers(tree)) == set()


@pytest.mark.parametrize(
    "text",
    [
        "from forgetmap.cli import main\n",
        "import forgetmap.cli.main\n",
        "def f():\n    from forgetmap.cli.main import cli\n    return cli\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from forgetmap.cli import x\n",
        "from ..cli.main import cli\n",
    ],
)
def test_the_layer_check_can_fail(tmp_path: Path, text: str) -> None:
    tree = write_tree(
        tmp_path, {"records/guilty.py": text, "cli/main.py": "", "cli/__init__.py": ""}
    )
    assert set(imports_against_layers(tree)) == {"records -> cli"}


def test_packages_of_one_layer_do_not_know_each_other(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"records/guilty.py": "from forgetmap.merge import x\n"})
    assert list(imports_against_layers(tree)) == ["records -> merge"]


def test_every_package_has_one_layer_and_every_layer_is_real(tree: Tree) -> None:
    packages = {file.package for file in tree.values() if "." in file.module}
    names = [name for layer in LAYERS for name in layer]
    assert len(names) == len(set(names))
    assert packages == set(names)


def test_the_architecture_page_has_the_drawing_of_the_layers() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert drawing() in page
    assert all(name in drawing() for layer in LAYERS for name in layer)


@pytest.mark.parametrize("package", sorted(ONLY))
def test_theory_and_merge_stand_alone(tree: Tree, package: str) -> None:
    files = [file for file in tree.values() if file.package == package]
    assert files
    for file in files:
        assert source_tree.packages_used(file) <= ONLY[package], file.module


def cycles(tree: Tree) -> list[str]:
    packages = source_tree.cycles(source_tree.package_edges(tree))
    modules = source_tree.cycles(source_tree.module_edges(tree))
    return [" <-> ".join(group).replace("forgetmap.", "") for group in [*packages, *modules]]


def test_nothing_imports_in_a_circle(tree: Tree) -> None:
    assert cycles(tree) == []


@pytest.mark.parametrize(
    "text",
    [
        "from forgetmap.records.a import x\n",
        "def f():\n    from forgetmap.records.a import x\n    return x\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import x\n",
        "from forgetmap.records import a\n",
        "from forgetmap.records import x\n",
        "import forgetmap.records.a\n",
    ],
)
def test_the_cycle_check_can_fail(tmp_path: Path, text: str) -> None:
    door = "if TYPE_CHECKING:\n    from forgetmap.records.a import x\n__all__ = ['x']\n"
    files = {
        "records/__init__.py": door,
        "records/a.py": "from forgetmap.records.b import y\nx = 1\n",
        "records/b.py": text,
    }
    assert cycles(write_tree(tmp_path, files)) == ["records.a <-> records.b"]


def test_a_cycle_of_packages_is_one_even_if_no_module_is_in_it(tmp_path: Path) -> None:
    files = {
        "a/one.py": "from forgetmap.b.one import x\n",
        "a/two.py": "",
        "b/one.py": "",
        "b/two.py": "from forgetmap.a.two import x\n",
    }
    assert cycles(write_tree(tmp_path, files)) == ["a <-> b"]


def test_a_door_that_lists_its_modules_is_no_cycle(tmp_path: Path) -> None:
    files = {
        "records/__init__.py": "if TYPE_CHECKING:\n    from forgetmap.records.a import x\n",
        "records/a.py": "from forgetmap.records.b import y\n",
        "records/b.py": "",
    }
    assert cycles(write_tree(tmp_path, files)) == []


def test_names_of_other_packages_come_through_their_doors(tree: Tree) -> None:
    assert source_tree.names_past_doors(tree) == []
    assert source_tree.string_imports(tree) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("from forgetmap.records.a import x\n", "takes forgetmap.records.a.x"),
        ("from forgetmap.records import hidden\n", "takes forgetmap.records.hidden"),
        ("from forgetmap.records import a\n", "takes forgetmap.records.a"),
        ("from ..records.a import x\n", "takes forgetmap.records.a.x"),
        ("import forgetmap.records.a\n", "takes forgetmap.records.a"),
        ("import forgetmap\n", "takes forgetmap"),
        ("from forgetmap import records\n", "takes forgetmap.records"),
        ("from .. import records\n", "takes forgetmap.records"),
        ("from forgetmap import compare\n", "takes forgetmap.compare"),
        ("from forgetmap.errors import _private\n", "takes forgetmap.errors._private"),
        ("import_module('forgetmap.records')\n", "names forgetmap.records"),
        ("importlib.import_module(f'forgetmap.records.{x}')\n", "names forgetmap.records"),
        ("TABLE = {'x': 'forgetmap.records.a:x'}\n", "names forgetmap.records.a"),
        ("CODE = 'import os; from forgetmap.records.a import x'\n", "names forgetmap.records.a"),
    ],
)
def test_the_door_check_can_fail(tmp_path: Path, text: str, fault: str) -> None:
    files = {
        "errors.py": "",
        "records/__init__.py": "if TYPE_CHECKING:\n    from .a import x\n__all__ = ['x']\n",
        "records/a.py": "x = hidden = 1\n",
        "pairing/guilty.py": text,
    }
    tree = write_tree(tmp_path, files)
    faults = [*source_tree.names_past_doors(tree), *source_tree.string_imports(tree)]
    assert faults == [f"forgetmap.pairing.guilty {fault}"]


@pytest.mark.parametrize(
    "text",
    [
        "from forgetmap.records import x\n",
        "from forgetmap import __version__\n",
        "from forgetmap.errors import UsageError\n",
        "from forgetmap.pairing.other import y\n",
        "import_module(f'forgetmap.pairing.{x}')\n",
        "GROUP = 'forgetmap.sources'\n",
        "CODE = 'from forgetmap.records import x'\n",
    ],
)
def test_the_door_check_lets_public_names_through(tmp_path: Path, text: str) -> None:
    files = {
        "errors.py": "",
        "records/__init__.py": "if TYPE_CHECKING:\n    from .a import x\n__all__ = ['x']\n",
        "records/a.py": "x = 1\n",
        "pairing/good.py": text,
        "pairing/other.py": "y = 1\n",
    }
    tree = write_tree(tmp_path, files)
    assert not [*source_tree.names_past_doors(tree), *source_tree.string_imports(tree)]


def test_every_class_has_a_name_of_its_own(tree: Tree) -> None:
    assert source_tree.repeated_classes(tree) == []


def test_the_check_of_class_names_can_fail(tmp_path: Path) -> None:
    files = {"a.py": "class Crew: ...\n", "b.py": "def f():\n    class Crew: ...\n"}
    assert source_tree.repeated_classes(write_tree(tmp_path, files)) == ["Crew"]


def test_every_public_name_is_documented(tree: Tree) -> None:
    assert source_tree.undocumented_names(tree) == []


@pytest.mark.parametrize(
    "text",
    ["def name(): ...\n", "class name: ...\n", "name = 1\n", "name: int = 1\n", "other = 1\n"],
)
def test_the_check_of_documentation_can_fail(tmp_path: Path, text: str) -> None:
    files = {
        "__init__.py": "if TYPE_CHECKING:\n    from .records import name\n__all__ = ['name']\n",
        "records/__init__.py": "if TYPE_CHECKING:\n    from .a import name\n__all__ = ['name']\n",
        "records/a.py": text,
    }
    assert source_tree.undocumented_names(write_tree(tmp_path, files))


@pytest.mark.parametrize(
    "text",
    [
        'def name():\n    """What it does."""\n',
        '@overload\ndef name(): ...\ndef name():\n    """What it does."""\n',
        'name = 1\n"""What it is."""\n',
        "# What it is.\nname = 1\n",
        "name = 1  # what it is\n",
    ],
)
def test_docstrings_strings_and_comments_document(tmp_path: Path, text: str) -> None:
    files = {
        "records/__init__.py": "if TYPE_CHECKING:\n    from .a import name\n__all__ = ['name']\n",
        "records/a.py": text,
    }
    assert source_tree.undocumented_names(write_tree(tmp_path, files)) == []


def test_doors_list_what_they_import(tree: Tree) -> None:
    assert source_tree.faulty_doors(tree) == []
    packages = {file.package for file in tree.values() if file.module.count(".") > 1}
    assert all(tree[f"forgetmap.{name}"].listed_names for name in packages)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("__all__ = [*NAMES]\n", "__all__ is no literal list"),
        ("__all__ = sorted(['x'])\n", "__all__ is no literal list"),
        ("__all__ = ['x']\n", "listed or imported, not both: x"),
        ("if TYPE_CHECKING:\n    from .a import y\n", "listed or imported, not both: y"),
        ("if TYPE_CHECKING:\n    from .a import a\n__all__ = ['a']\n", "a is also a module"),
    ],
)
def test_the_check_of_doors_can_fail(tmp_path: Path, text: str, fault: str) -> None:
    tree = write_tree(tmp_path, {"records/__init__.py": text, "records/a.py": ""})
    assert source_tree.faulty_doors(tree) == [f"forgetmap.records: {fault}"]


def too_long(file: SourceFile) -> Iterator[str]:
    if len(file.text.splitlines()) > LONGEST_FILE:
        yield file.module
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            if (node.end_lineno or 0) - first.lineno >= LONGEST_FUNCTION:
                yield f"{file.module}.{node.name}"


def test_files_and_functions_stay_short(tree: Tree) -> None:
    assert [name for file in tree.values() for name in too_long(file)] == []


def test_the_check_of_lengths_can_fail(tmp_path: Path) -> None:
    body = "    x = 1\n" * (LONGEST_FUNCTION + 1)
    text = f'def f():\n    """Says."""\n{body}' + "x = 1\n" * LONGEST_FILE
    tree = write_tree(tmp_path, {"guilty.py": text})
    assert list(too_long(tree["forgetmap.guilty"])) == ["forgetmap.guilty", "forgetmap.guilty.f"]


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


@pytest.mark.parametrize(
    ("package", "allowed"), [("stats", {"numpy"}), ("theory", {"numpy", "scipy"})]
)
def test_mathematics_needs_no_tables(tree: Tree, package: str, allowed: set[str]) -> None:
    names = [file.module for file in tree.values() if file.package == package]
    assert names
    assert (HEAVY - allowed).isdisjoint(loaded_by(f"import {', '.join(names)}"))
