"""Tables of a study: every number in full precision, and LaTeX that compiles."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest

from forgetmap.report import write_study_tables
from forgetmap.study import StudyDetail, examine_study, published_detail, read_study
from study_runs import write_told_study


@pytest.fixture(scope="module")
def detail(tmp_path_factory: pytest.TempPathFactory) -> StudyDetail:
    folder = tmp_path_factory.mktemp("told")
    write_told_study(folder)
    return examine_study(read_study(folder / "study.toml"), folder=folder / "runs")


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_every_number_of_every_pair(detail: StudyDetail, tmp_path: Path) -> None:
    write_study_tables(detail, tmp_path)
    rows = read(tmp_path / "all.csv")
    assert len(rows) == 5 * 3
    first, pair = rows[0], detail.pairs[0]
    assert float(first["forgetting"]) == pytest.approx(pair.total.forgetting.value, abs=1e-12)
    assert float(first["printed_forgetting"]) == pytest.approx(
        pair.printed[0].forgetting, abs=1e-12
    )
    assert first["printed_forgetting_sd"] == ""
    assert len(read(tmp_path / "tasks.csv")) == 5 * 3
    names = {path.name for path in tmp_path.iterdir()}
    for stem in ("01-tuning", "02-reasoning-low-data", "03-reasoning-high-data", "04-merges"):
        assert {f"{stem}.tex", f"{stem}.csv", f"{stem}.md", f"{stem}-intervals.tex"} <= names


def test_published_tables_print_what_was_printed(tmp_path: Path) -> None:
    write_study_tables(published_detail(), tmp_path)
    text = (tmp_path / "01-domain-pretraining.md").read_text("utf-8")
    assert "8.0 ± 0.1 \\[71.8\\]" in text
    latex = (tmp_path / "01-domain-pretraining.tex").read_text("utf-8")
    assert r"8.0 $\pm$ 0.1 [71.8]" in latex


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(detail: StudyDetail, tmp_path: Path) -> None:
    """Needs Debian's texlive-latex-recommended."""
    hostile = detail.pairs[0].model_copy(
        update={"label": r"\undefined $x_1$ % # & ~ ^ { } 中文 -- `q' “z” <b>"}
    )
    changed = StudyDetail(detail.study, detail.result, [hostile, *detail.pairs[1:]], detail.merges)
    write_study_tables(changed, tmp_path)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
