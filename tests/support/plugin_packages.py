"""Installed packages with entry points for forgetmap, written without pip."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest


def write_package(folder: Path, package: str, source: str, points: Mapping[str, str]) -> Path:
    """Write a module and its metadata with entry points.

    Args:
        folder: folder to put on the path.
        package: name of the module.
        source: its code.
        points: `group/name` of an entry point -> the object in the module.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{package}.py").write_text(source, encoding="utf-8")
    groups: dict[str, dict[str, str]] = {}
    for point, attribute in points.items():
        group, _, name = point.partition("/")
        groups.setdefault(group, {})[name] = f"{package}:{attribute}"
    _write_metadata(folder, package, groups)
    return folder


def install_project(project: Path, folder: Path) -> None:
    """Install a project folder (`pyproject.toml` and one module) as pip would.

    A wheel of pure Python is a copy of the module and the metadata, so writing both needs no pip
    and no build tool, and is fast.
    """
    about = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (module,) = project.glob("*.py")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(module, folder)
    _write_metadata(folder, about["name"].replace("-", "_"), about["entry-points"])


def _write_metadata(folder: Path, package: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = []
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{name} = {home}" for name, home in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def use_entry_points(
    patch: pytest.MonkeyPatch, module: ModuleType, registry: str, points: Mapping[str, str]
) -> None:
    """Replace a registry of this module by one that has only these entry points.

    Args:
        patch: undoes the change at the end of the test.
        module: module with the registry.
        registry: name of the registry in the module.
        points: name -> `module:attribute`.
    """
    fresh = replace(getattr(module, registry))
    vars(fresh)["_plugins"] = {
        name: [EntryPoint(name, home, fresh.group)] for name, home in points.items()
    }
    patch.setattr(module, registry, fresh)
