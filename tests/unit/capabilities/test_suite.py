"""Suites of capabilities are looked up like any other suite."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from forgetmap.errors import UsageError
from forgetmap.evaluation.suites import catalogue
from forgetmap.evaluation.suites.catalogue import load_suite
from plugin_packages import use_entry_points

PROJECT = Path(__file__).parents[3]


def entries() -> dict[str, str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, str] = project["project"]["entry-points"][catalogue.SUITES.group]
    return found


def test_suites_are_found_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_entry_points(monkeypatch, catalogue, "SUITES", entries())
    assert load_suite("capabilities").name == "capabilities"
    assert len(load_suite("captrack", root=tmp_path).tasks) == 39
    assert {"basics", "captrack", "capabilities"} <= set(catalogue.SUITES.names())
    with pytest.raises(UsageError, match="did you mean capabilities"):
        load_suite("capability")
    chosen = load_suite("capabilities", only=["conversations*"], limit=3).tasks
    first, second = ([item.id for item in task.load()] for task in chosen)
    assert first == second
    assert len(first) == 3
