"""`forgetmap study` as users call it."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import call


def test_init_writes_a_study_that_check_counts(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    done = call("study", "init", "post-forget", "--out", file)
    assert done.code == 0
    assert f"forgetmap study check {file}" in done.out
    done = call("study", "check", file, columns=120)
    assert "36 models, 2 families, 31 pairs, 12 merges" in done.out
    summary = json.loads(call("study", "check", file, "--json").out)
    assert (summary["pairs"], summary["merges"]) == (31, 12)


def test_init_replaces_nothing_unless_asked(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text("mine")
    assert call("study", "init", "empty", "--out", file).code == 2
    assert file.read_text() == "mine"
    assert call("study", "init", "empty", "--out", file, "--overwrite").code == 0
    assert call("study", "init", "captrack").out.startswith("# The released models")


def test_a_faulty_study_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('name = "x"\n[[model]]\nid = "a"\nhub = "o/a"\nparent = "b"\n')
    done = call("study", "check", file)
    assert done.code == 2
    assert f"{file}, line 5, field 'model[1].parent': there is no model 'b'" in done.err
