"""Project files: one version, workflows that parse, files for packaging."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

import forgetmap
from node_tools import lint_workflow

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_written_once_and_quoted_right() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert citation["version"] == forgetmap.__version__
    assert f'version: "{forgetmap.__version__}"' in recipe
    assert f"\n## {forgetmap.__version__} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_conda_recipe_needs_what_the_wheel_needs() -> None:
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = text.partition("  run:\n")[2].partition("\n\n")[0]
    names = {line.split()[1].removeprefix("python-") for line in run.splitlines()} - {"python"}
    wheel = {re.split(r"[<>=]", one)[0] for one in PROJECT["project"]["dependencies"]}
    assert names == wheel


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_no_faults(path: Path) -> None:
    assert not lint_workflow(path)


def test_other_files_of_the_forge_are_whole() -> None:
    for path in (ROOT / ".github").rglob("*.yml"):
        assert yaml.safe_load(path.read_text(encoding="utf-8")), path.name
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"):
        content = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= set(content), form.name


def test_the_image_copies_only_what_is_there() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
