"""Automatic checks of the documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from forgetmap import errors
from forgetmap.cli.main import COMMANDS
from forgetmap.errors import ForgetmapError
from forgetmap.train.reports import SHOWN
from generate_docs import NOTE, SCHEMAS
from page_links import faults_of, outside_links, pages

ROOT = Path(__file__).parent.parent


def test_generated_pages_are_current() -> None:
    script = str(ROOT / "tools" / "generate_docs.py")
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_page_about_watching_has_the_names_that_are_logged() -> None:
    text = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)/\.\.\.`", text, re.MULTILINE)
    assert sorted(named) == sorted(SHOWN)


def test_no_column_of_the_estimators_is_there_twice() -> None:
    text = (ROOT / "docs" / "estimators.md").read_text(encoding="utf-8")
    heads = [line.split("|") for line in text.splitlines() if line.startswith("| what happened")]
    assert [len(set(names) - {""}) for names in heads] == [len(names) - 2 for names in heads]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    assert list(faults_of(page)) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `--two`\n\n[a](#one---two) [b](page.md#three) [c](other.md)\n\n"
        "```text\n[d](nowhere.md)\n```\n\n`[e](nowhere.md)` [f](https://example.org/x)\n"
    )
    assert list(faults_of(page)) == [
        "page.md#three: page.md has no such heading",
        "other.md: there is no such file",
    ]


def test_links_outside_are_listed_with_their_pages() -> None:
    listed = outside_links()
    assert listed["https://arxiv.org/abs/2306.01708"] == ["docs/merge-methods.md"]
    assert all(target.startswith(("https://", "mailto:")) for target in listed)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_documented(command: str) -> None:
    page = ROOT / "docs" / "cli" / f"{command}.md"
    assert page.read_text("utf-8").startswith(f"{NOTE}# `forgetmap {command}`")
    assert f"](cli/{command}.md)" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_every_schema_is_on_the_page_of_schemas() -> None:
    files = {path.name.partition(".")[0] for path in (ROOT / "docs" / "schemas").glob("*.json")}
    assert files == set(SCHEMAS)


def test_every_error_is_in_the_tree_at_the_top_of_its_module() -> None:
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, ForgetmapError)
    ]
    assert all(re.search(rf"\b{name}\b", errors.__doc__ or "") for name in kinds)


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1200


def test_every_file_of_the_tree_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = re.search(r"```text\n(forgetmap/.*?)```", page, re.DOTALL)
    assert tree is not None
    for name in re.findall(r"^    (\S+)", tree.group(1), re.MULTILINE):
        assert (ROOT / name).exists() or (ROOT / "src" / "forgetmap" / name).exists(), name


def test_every_module_on_the_architecture_page_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "forgetmap"
    packages = "|".join(path.name for path in package.iterdir() if path.is_dir())
    names = re.findall(rf"`((?:{packages})[./][\w./]+)`", page)
    assert len(names) > 20
    for name in names:
        path = package / name if "/" in name else package / name.replace(".", "/")
        door = (path.parent / "__init__.py").read_text(encoding="utf-8") if "." in name else ""
        is_public = f'"{path.name}"' in door
        assert path.exists() or path.with_suffix(".py").exists() or is_public, name


def test_old_names_of_packages_are_gone() -> None:
    old = r"`(transitions|runner|drivers|explorer|sweeps|simulator|web)[./`]"
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if page.name != "CHANGELOG.md":
            assert not re.findall(old, page.read_text(encoding="utf-8")), page.name
