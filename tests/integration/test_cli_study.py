"""`forgetmap study` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import call
from study_runs import write_study, write_told_study


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


def test_findings_of_the_papers_need_no_study() -> None:
    done = call("study", "findings", "--published", columns=120)
    assert done.code == 0
    assert "CANNOT TELL  Larger models forget less." in done.out
    shown = call("study", "findings", "--published", "--categories", columns=120).out
    assert "18.2 (16.2 to 20.2)" in shown.split("Liberal Arts")[2]
    result = json.loads(call("study", "findings", "--published", "--json").out)
    assert [len(paper["findings"]) for paper in result["papers"]] == [8, 4]


def test_place_counts_published_pairs(tmp_path: Path) -> None:
    assert call("simulate", "--out", tmp_path / "s", "--items", 20).code == 0
    runs = (tmp_path / "s" / "before", tmp_path / "s" / "after")
    done = call("study", "place", *runs, columns=120)
    assert done.code == 0
    assert "of 31" in done.out
    assert json.loads(call("study", "place", *runs, "--json").out)["values"][0]["of"] == 31


def test_compare_findings_and_status_of_runs(tmp_path: Path) -> None:
    file = write_study(tmp_path)
    runs = ("--runs", tmp_path / "runs")
    assert "12 of 12 models have runs, 6 of 6 pairs" in call("study", "status", file, *runs).out
    assert json.loads(call("study", "status", file, "--json").out)["ready"] == 0
    done = call("study", "compare", file, *runs, columns=120)
    assert "ant-4-it" in done.out
    assert "SUPPORTED  Larger models forget less." in done.out
    result = json.loads(call("study", "compare", file, *runs, "--json").out)
    findings = json.loads(call("study", "findings", file, *runs, "--json").out)
    assert (len(result["pairs"]), result["findings"]) == (6, findings)
    assert call("study", "compare", file).code == 2
    assert call("study", "findings").code == 2
    assert call("study", "findings", file, "--published").code == 2


def test_report_writes_a_site_with_tables(tmp_path: Path) -> None:
    file = write_told_study(tmp_path)
    out = tmp_path / "site"
    options = ("--runs", tmp_path / "runs", "--out", out)
    done = call("study", "report", file, *options, "--limit", 5)
    assert (done.code, done.out.strip()) == (0, f"Report: {out / 'index.html'}")
    assert (out / "tables" / "all.tex").is_file()
    assert (out / "figures" / "heat_forgetting.svg").is_file()
    assert json.loads((out / "study.json").read_text("utf-8"))["gaps"][0]["model"] == "missing"
    assert call("study", "report", file, *options).code == 2
    assert call("study", "report", "--out", tmp_path / "x").code == 2
    assert call("study", "report", file, "--out", tmp_path).code == 2
