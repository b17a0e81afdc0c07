"""The documentation site: strict build, complete, and without external resources."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from notebook_page import notebook_page
from run_notebook import NOTEBOOK, execute
from site_pages import break_signature

ROOT = Path(__file__).parent.parent
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*?\ssrc=[\"']?([^\"'\s>]+)"
    r"|<link[^>]*?\shref=[\"']?([^\"'\s>]+)|url\([\"']?(?!data:|#)([^)\"']+)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_docs_is_on_the_site(site: Path) -> None:
    docs = ROOT / "docs"
    names = {str(page.relative_to(docs).with_suffix(".html")) for page in docs.rglob("*.md")}
    names |= {"index.html", "tutorial.html", "changelog.html", "contributing.html", "faq.html"}
    assert [name for name in names if not (site / name).exists()] == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Pages are read where there is no network, and tell nobody who reads them."""
    for file in [*site.rglob("*.html"), *site.rglob("*.css")]:
        loaded = ["".join(found) for found in LOADED.findall(file.read_text("utf-8"))]
        assert [each for each in loaded if re.match(r"(https?:)?//", each)] == [], file.name


def test_python_pages_come_from_docstrings(site: Path) -> None:
    page = (site / "api" / "gate.html").read_text("utf-8")
    assert 'id="forgetmap.gate.run_gate"' in page
    assert "Decide whether a model may be released" in page
    assert 'id="forgetmap.compare"' in (site / "api" / "index.html").read_text("utf-8")


def test_the_tutorial_shows_what_its_cells_printed(site: Path) -> None:
    page = (site / "tutorial.html").read_text("utf-8")
    assert page.count('class="cell-output"') >= 10
    assert "exit code: 1" in page


def test_the_tutorial_runs(tmp_path: Path) -> None:
    notebook = execute(tmp_path)
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert "exit code: 1" in printed
    assert "0.02 FAIL" in printed
    assert "0.2 PASS" in printed
    assert (tmp_path / "report.html").exists()


def test_outputs_of_the_tutorial_hold_no_path_of_a_machine() -> None:
    page = notebook_page(NOTEBOOK)
    assert not re.search(r"/(home|root|tmp|work|Users)/", page)


def test_a_long_signature_gets_a_line_for_each_parameter() -> None:
    code = "def xx(a: dict[str, int], *, b: str = 'x, y', c: int) -> None: pass"
    assert break_signature(code, 100) == f"{code}\n"
    assert break_signature(code, 30) == (
        "def xx(\n    a: dict[str, int],\n    *,\n    b: str = 'x, y',\n    c: int,\n"
        ") -> None: pass\n"
    )
