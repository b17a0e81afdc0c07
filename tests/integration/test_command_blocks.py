"""Every command and Python block of README and docs is run, in the order of its page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_blocks import ROOT, Block, Reader, blocks_of, make_reader, pages
from page_folder import add_models, any_model, make_folder
from scripted_server import scripted_server

pytestmark = [pytest.mark.needs_torch, pytest.mark.filterwarnings("ignore")]
BLOCKS = {page.relative_to(ROOT): blocks_of(page) for page in pages()}
QUICK = {page: found for page in BLOCKS if (found := [b for b in BLOCKS[page] if not b.mark])}
SLOW = {page: found for page in BLOCKS if (found := [b for b in BLOCKS[page] if b.mark == "slow"])}
LONG = {f"docs/{name}.md" for name in ("tasks", "report", "capabilities", "studies", "servers")}
"""Pages that take two thirds of the time of all: run in `make test-long`."""
MOST_NOT_RUN = 30
"""Blocks that need a hub, a GPU, a cluster or a long training: no more than so many."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages name."""
    folder = make_folder(tmp_path_factory.mktemp("pages") / "folder")
    add_models(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(out.glob("forgetmap-*.whl"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with scripted_server(any_model) as address:
        yield address


@pytest.fixture
def reader(source: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Somebody who has not read anything yet."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    return make_reader(source, tmp_path / "folder", server=server)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.as_posix() in LONG else ())
        for page in QUICK
    ],
    ids=str,
)
def test_every_block_of_a_page_runs(
    page: Path, reader: Reader, request: pytest.FixtureRequest
) -> None:
    if any("pip install" in block.code for block in QUICK[page]):
        reader.wheel = request.getfixturevalue("wheel")
    for block in QUICK[page]:
        reader.run(block)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=str)
def test_slow_blocks_run(page: Path, reader: Reader) -> None:
    from datasets import Dataset

    rows = {"prompt": ["the cat", "a dog"] * 8, "completion": [" sat"] * 16}
    reader.names["dataset"] = Dataset.from_dict(rows)
    for block in SLOW[page]:
        reader.run(block)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    marked = [block for blocks in BLOCKS.values() for block in blocks if block.mark]
    left = [block for block in marked if block.mark == "not run"]
    assert all(block.reason for block in marked)
    assert len(left) <= MOST_NOT_RUN, [block.place for block in left]
    assert sum(map(len, BLOCKS.values())) - len(left) >= 60


def test_a_block_that_fails_is_found(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    reader = make_reader(tmp_path / "empty", tmp_path / "folder")
    with pytest.raises(AssertionError, match="page:1: forgetmap compare a b"):
        reader.run(Block("page", 1, "sh", "forgetmap compare a b"))
