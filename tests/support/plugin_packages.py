"""Packages that add something to forgetmap by entry point, as pip would have installed them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest


def write_package(folder: Path, package: str, source: str, points: Mapping[str, str]) -> Path:
    """One module, and the metadata by which Python finds what it adds.

    Args:
        folder: to put on the path.
        package: name of the module.
        source: its code.
        points: `group/name` of an entry point -> the object in the module.
    """
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / f"{package}.py").write_text(source, encoding="utf-8")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = []
    for point, attribute in points.items():
        group, _, name = point.partition("/")
        lines += [f"[{group}]", f"{name} = {package}:{attribute}"]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def use_entry_points(
    patch: pytest.MonkeyPatch, module: ModuleType, registry: str, points: Mapping[str, str]
) -> None:
    """A registry of this module that sees these entry points, and no others.

    Args:
        patch: undone at the end of the test.
        module: has the registry.
        registry: its name there.
        points: name -> `module:attribute`.
    """
    fresh = replace(getattr(module, registry))
    vars(fresh)["_plugins"] = {
        name: EntryPoint(name, home, fresh.group) for name, home in points.items()
    }
    patch.setattr(module, registry, fresh)
