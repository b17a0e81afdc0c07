"""Documentation that a machine can check."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from forgetmap import errors
from forgetmap.cli.main import COMMANDS
from forgetmap.errors import ForgetmapError

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "design").glob("*.md")]
)


def test_generated_pages_are_current() -> None:
    script = str(ROOT / "tools" / "generate_docs.py")
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_documented(command: str) -> None:
    assert f"forgetmap {command}" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


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
