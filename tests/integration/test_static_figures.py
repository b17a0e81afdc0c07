"""Figures as files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from drawings import CHAIN, MANY, PAIR, report
from forgetmap.errors import OutputError, UsageError
from forgetmap.report.choices import Format
from forgetmap.report.figures.look import GROUND, TEXT
from forgetmap.report.figures.registry import all_figures
from forgetmap.report.static import write_figures

STARTS: dict[Format, bytes] = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", STARTS)
def test_every_figure_becomes_a_file(tmp_path: Path, kind: Format) -> None:
    payload = report(CHAIN, chain=True)
    written = write_figures(payload, tmp_path / "new" / "figures", kind)
    assert [path.name for path in written] == [
        f"{each.name}.{kind}" for each in all_figures(payload)
    ]
    assert all(path.read_bytes().startswith(STARTS[kind]) for path in written)


def test_a_picture_is_about_as_wide_as_a_page(tmp_path: Path) -> None:
    for path in write_figures(report(MANY), tmp_path):
        width = float(ET.fromstring(path.read_text()).attrib["width"])
        assert 300 < width < 760, path.name


@pytest.mark.parametrize(("theme", "other"), [("light", "dark"), ("dark", "light")])
def test_words_have_the_colour_of_the_theme(tmp_path: Path, theme: str, other: str) -> None:
    payload = report(CHAIN, chain=True)
    for path in write_figures(payload, tmp_path, "svg", theme):  # type: ignore[arg-type]
        drawn = path.read_text()
        assert TEXT[theme] in drawn, path.name
        assert TEXT[other] not in drawn, path.name
        assert (f'height="100%" fill="{GROUND["dark"]}"' in drawn) == (theme == "dark")


def test_title_and_caption_are_in_the_picture_where_wanted(tmp_path: Path) -> None:
    payload = report(PAIR)
    figures = all_figures(payload)
    plain = write_figures(payload, tmp_path / "plain")
    told = write_figures(payload, tmp_path / "told", words=True)
    for figure, without, with_words in zip(figures, plain, told, strict=True):
        assert figure.title not in _written(without)
        assert figure.title in _written(with_words)
        assert figure.caption in _written(with_words)


def _written(path: Path) -> str:
    root = ET.fromstring(path.read_text())
    return re.sub(
        r"\s+", " ", " ".join(each.text or "" for each in root.iter() if each.tag.endswith("text"))
    )


def test_hostile_names_make_sound_files(tmp_path: Path) -> None:
    name = "</text><script>\x1b[1m & \x00"
    payload = report({name: {"10": 3, "11": 4}, "law": {"10": 1, "11": 4}})
    for path in write_figures(payload, tmp_path):
        root = ET.fromstring(path.read_text())
        assert not any(each.tag.endswith("script") for each in root.iter())
    assert "</text><script>\ufffd[1m & \ufffd" in _written(tmp_path / "categories.svg")


def test_without_vl_convert_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError) as caught:
        write_figures(report(PAIR), tmp_path)
    assert "pip install vl-convert-python" in caught.value.hint


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        write_figures(report(PAIR), tmp_path / "file" / "figures")
