"""The site of a study: complete, safe, with gaps shown and no dead link."""

from __future__ import annotations

import csv
import re
from html import unescape
from pathlib import Path

import pytest

from forgetmap.errors import OutputError, UsageError
from forgetmap.report import write_study
from forgetmap.report.html.study import site
from forgetmap.report.html.study.context import SiteContext
from forgetmap.report.html.study.names import name_pages
from forgetmap.report.html.study.start_page import start_page
from forgetmap.study import (
    PairDrift,
    StudyDetail,
    examine_study,
    published_detail,
    read_study,
)
from study_runs import HOSTILE, write_told_study


@pytest.fixture(scope="module")
def detail(tmp_path_factory: pytest.TempPathFactory) -> StudyDetail:
    folder = tmp_path_factory.mktemp("told")
    write_told_study(folder)
    return examine_study(read_study(folder / "study.toml"), folder=folder / "runs")


@pytest.fixture(scope="module")
def folder(detail: StudyDetail, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "_write_figures", lambda *_: None)  # drawing takes seconds
        return write_study(detail, tmp_path_factory.mktemp("out") / "site").parent


def pages(folder: Path) -> dict[str, str]:
    found = sorted(folder.rglob("*.html"))
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in found}


def test_there_is_a_page_for_each(folder: Path) -> None:
    kinds = [name.partition("/")[0] for name in pages(folder)]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "stages": 3, "pairs": 5, "categories": 2, "models": 6,
        "index.html": 1, "items.html": 1, "downloads.html": 1,
    }  # fmt: skip


def test_no_two_regions_of_a_page_have_the_same_name(folder: Path) -> None:
    for name, text in pages(folder).items():
        labels = re.findall(r'<(?:section|div class="scroll")[^>]* aria-label="([^"]*)"', text)
        assert sorted(labels) == sorted(set(labels)), name


def test_every_link_leads_to_a_file_of_the_folder(folder: Path) -> None:
    for name, text in pages(folder).items():
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            target = unescape(link).partition("#")[0]
            assert not re.match(r"[a-z]+:|//", target) or target == "data:,", link
            if target and target != "data:,":
                assert (folder / name).parent.joinpath(target).is_file(), (name, link)


def test_names_and_questions_are_text(folder: Path) -> None:
    for name, text in pages(folder).items():
        assert HOSTILE not in text, name
        assert "script-src 'self' file:" in text
        assert not re.search(r"<script>|<img", text)
    assert "&lt;img src=x onerror=alert(1)&gt;" in pages(folder)["items.html"]


def test_a_model_without_a_run_is_a_gap(folder: Path) -> None:
    texts = pages(folder)
    assert "no run of missing" in texts["index.html"]
    stage = next(text for name, text in texts.items() if "reasoning-high" in name)
    assert "no run of missing" in stage
    model = next(text for name, text in texts.items() if name.endswith("missing.html"))
    assert "It has no run. Missing because of that: missing." in model
    gaps = re.findall(r"<tr>(?:(?!</tr>).)*no run of missing.*?</tr>", stage)
    assert gaps
    assert not re.search(r">0(\.0)?%?<", gaps[0])


def test_all_items_are_in_files(detail: StudyDetail, folder: Path) -> None:
    files = sorted((folder / "items").iterdir())
    assert len(files) == 5
    with files[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    total = detail.pairs[0].total
    assert len(rows) == (total.forgotten or 0) + (total.gained or 0)
    # What a spreadsheet would run has a quote before it.
    assert {row["answer_after"] for row in rows if row["transition"] == "forgotten"} == {"'=cmd()"}


def test_texts_can_be_left_out_or_blackened(
    detail: StudyDetail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "_write_figures", lambda *_: None)
    write_study(detail, tmp_path / "bare", texts=False)
    write_study(detail, tmp_path / "black", redact=["What is"])
    for name in ("bare", "black"):
        for path in [*(tmp_path / name / "items").iterdir(), tmp_path / name / "items.html"]:
            assert "What is" not in path.read_text("utf-8")
    with pytest.raises(OutputError):
        write_study(detail, tmp_path / "bare")
    assert write_study(detail, tmp_path / "bare", overwrite=True).name == "index.html"
    with pytest.raises(UsageError):
        write_study(detail, tmp_path / "other", redact=["("])


def test_drift_of_capabilities_stands_on_the_start_page(detail: StudyDetail) -> None:
    finding = detail.result.findings.findings[0].model_copy(update={"claim": "DPO drifts less."})
    pair = detail.pairs[0]
    drift = [PairDrift(before=pair.before, after=pair.after, size=0.31)]
    findings = detail.result.findings.model_copy(update={"drift": [finding], "drift_sizes": drift})
    result = detail.result.model_copy(update={"findings": findings})
    told = StudyDetail(detail.study, result, detail.pairs, detail.merges)
    start = start_page(SiteContext(told, name_pages(told)), [])
    assert "DPO drifts less." in start
    assert 'data-value="0.31">0.31' in start


def test_published_values_have_a_site_without_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "_write_figures", lambda *_: None)
    monkeypatch.setattr(site, "pair_page", lambda *_: "")
    start = write_study(published_detail(), tmp_path / "site").read_text("utf-8")
    assert "8.3%" in start
    assert "CANNOT TELL" in start
    assert "items are not available" in start


def test_the_two_tables_of_pairs_of_a_model_are_saved_under_two_names(folder: Path) -> None:
    titles = {"Models made from it": "pairs-before", "Models it was made from": "pairs-after"}
    both = [page for page in pages(folder).values() if all(title in page for title in titles)]
    assert both
    for page in both:
        assert all(name in page for name in titles.values())
