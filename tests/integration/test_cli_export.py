"""`forgetmap export` on the command line."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml  # type: ignore[import-untyped]

from command_line import Done, call, results, write
from forgetmap.cli.main import cli

POOL = [
    {"prompt": "Name a bird that lives by the sea.", "completion": "The penguin."},
    {"prompt": "WHICH large bird cannot fly - over the sea?", "completion": "penguin"},
]
SAME = {"question": "Which large bird cannot fly over the sea?", "gold": "penguin"}


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    base = write(tmp_path / "base.jsonl", results([1, 1], **SAME))
    return base, write(tmp_path / "tuned.jsonl", results([0, 0], **SAME))


def export(what: str, *args: object) -> Done:
    return call("export", what, *args, columns=100)


def test_replay_says_what_it_left_out(runs: tuple[Path, Path], tmp_path: Path) -> None:
    out, pool = tmp_path / "replay.jsonl", write(tmp_path / "pool.jsonl", POOL)
    done = export("replay", *runs, "--pool", pool, "--out", out)
    assert done.code == 0
    assert "Left out of 2 examples because of 2 evaluation items: 1 (1 identical)." in done.out
    assert done.out.endswith(f"Written to {out}: 1 training example, 0 of them evaluation items.\n")
    again = export("replay", *runs, "--pool", pool, "--out", out, "--overwrite", "--json")
    summary = json.loads(again.out)
    assert (summary["rows"], summary["measured"], summary["excluded"]["same"]) == (1, 0, 1)


def test_replay_with_measured_items_warns(runs: tuple[Path, Path], tmp_path: Path) -> None:
    done = export("replay", *runs, "--include-measured", "--out", tmp_path / "r.jsonl")
    assert done.code == 0
    assert "Warning: the replay set contains 2 items of the evaluation" in done.err


def test_a_bad_row_of_the_pool_is_named(runs: tuple[Path, Path], tmp_path: Path) -> None:
    pool = write(tmp_path / "pool.jsonl", [POOL[0], POOL[0] | {"completion": ""}])
    args = (*runs, "--pool", pool, "--out", tmp_path / "r.jsonl")
    done = export("replay", *args)
    assert done.code == 2
    assert f"{pool}, line 2, field 'completion': the training example has no text" in done.err
    assert "--skip-unusable" in done.err
    assert "1 without text" in export("replay", *args, "--skip-unusable").out


def test_nothing_that_is_read_is_written_over(runs: tuple[Path, Path], tmp_path: Path) -> None:
    pool = write(tmp_path / "pool.jsonl", POOL)
    for args in (("--out", pool), ("--out", tmp_path / "r.jsonl", "--excluded", pool)):
        done = export("replay", *runs, "--pool", pool, *args, "--overwrite")
        assert done.code == 2
        assert f"the output {pool} is an input of this command" in done.err
    for what in ("card", "hub"):
        assert export(what, *runs, "--out", runs[0]).code == 2
    assert len(pool.read_text().splitlines()) == len(POOL)


def test_card_shows_the_command_without_folders(runs: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "README.md"
    done = export("card", *runs, "--margin", "0.05", "--out", out)
    assert done.code == 0
    assert done.out.endswith(f"Written to {out} (made).\n")
    assert "`forgetmap compare base.jsonl tuned.jsonl --margin 0.05`" in out.read_text()
    assert export("card", *runs, "--out", out, "--json").out.count('"replaced"') == 1


def commands_of_the_page() -> list[str]:
    """Every `forgetmap export ...` on the page that can be typed as it is."""
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    found = re.findall(r"forgetmap export [^`\n]*(?:\\\n[^`\n]*)*", page)
    return [command for command in found if "--out" in command]


@pytest.mark.parametrize("line", commands_of_the_page())
def test_commands_on_the_page_parse(line: str) -> None:
    words = shlex.split(line.replace("\\\n", " "))[1:]
    command: click.Command = cli
    while isinstance(command, click.Group):
        _, inner, words = command.resolve_command(click.Context(command), words)
        assert inner is not None
        command = inner
    command.make_context("forgetmap", words)


def test_the_page_has_every_command() -> None:
    names = {line.split()[2] for line in commands_of_the_page()}
    assert names == {"replay", "card", "hub"}


def test_hub_says_how_to_load_it(runs: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "set"
    done = export("hub", *runs, "--out", out, "--texts")
    assert done.code == 0
    assert f'load_dataset("{out}")' in done.out
    assert "contains questions and answers" in done.err


def test_space_is_a_folder_that_the_hub_shows(runs: tuple[Path, Path], tmp_path: Path) -> None:
    done = export("space", *runs, "--out", tmp_path / "space")
    assert done.code == 0
    assert "--repo-type space" in done.out
    _, header, card = (tmp_path / "space" / "README.md").read_text("utf-8").split("---\n", 2)
    settings = yaml.safe_load(header)
    assert settings["sdk"] == "static"
    assert "forgot" in card
    page = (tmp_path / "space" / settings["app_file"]).read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert export("space", *runs, "--texts", "--overwrite", "--out", tmp_path / "space").code == 0
    assert len((tmp_path / "space" / settings["app_file"]).read_text("utf-8")) > len(page)
