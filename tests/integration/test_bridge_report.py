"""Forgetting against divergence in a report."""

from __future__ import annotations

import csv
from pathlib import Path

from click.testing import CliRunner

from forgetmap.cli.main import cli

MODELS = [
    ("sft", "sft-1", 0.14, 1.0),
    ("sft", "sft-2", 0.31, 1.9),
    ("rl", "rl-1", 0.02, 0.2),
    ("rl", "rl-2", 0.05, 0.4),
    ("replay", "replay-1", 0.08, 0.6),
    ("replay", "replay-2", 0.11, 0.9),
]


def write_inputs(folder: Path) -> list[str]:
    for name, scores in (("base", "1111100000"), ("tuned", "1110010000")):
        lines = [f"sums,{item},{score}" for item, score in enumerate(scores)]
        (folder / f"{name}.csv").write_text("\n".join(["task,item,score", *lines]) + "\n")
    with (folder / "models.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("method", "model", "forgetting", "kl_old"), *MODELS])
    return [str(folder / f"{name}.csv") for name in ("base", "tuned")]


def test_a_report_shows_predicted_against_measured_forgetting(tmp_path: Path) -> None:
    sources = write_inputs(tmp_path)
    out, table = tmp_path / "figures", str(tmp_path / "models.csv")
    given = ["report", *sources, "--bridge", table, "--format", "svg", "--out", str(out)]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 0, done.output
    drawn = (out / "predicted_against_measured.svg").read_text()
    assert all(method in drawn for method in ("sft", "rl", "replay"))
    assert (out / "forgetting_against_divergence.svg").is_file()
    page = tmp_path / "report.html"
    given = ["report", *sources, "--bridge", table, "--out", str(page)]
    assert CliRunner().invoke(cli, given).exit_code == 0
    assert page.stat().st_size > 0


def test_without_a_table_there_is_no_such_figure(tmp_path: Path) -> None:
    out = tmp_path / "figures"
    given = ["report", *write_inputs(tmp_path), "--format", "svg", "--out", str(out)]
    assert CliRunner().invoke(cli, given).exit_code == 0
    assert not (out / "predicted_against_measured.svg").exists()
