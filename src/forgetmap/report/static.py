"""Figures as files for papers and slides, drawn without a browser."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal
from xml.etree import ElementTree as ET

from forgetmap.errors import OutputError, UsageError
from forgetmap.report.figures import Figure, all_figures, records_of
from forgetmap.report.figures.figure import Record, Spec
from forgetmap.report.figures.look import FONT, GROUND, TEXT, Theme
from forgetmap.report.figures.svg import NAMESPACE, add, write
from forgetmap.report.payload import Payload
from forgetmap.report.reportable import Reportable, payload_for
from forgetmap.text import printable

Format = Literal["svg", "png", "pdf"]
WIDTH = 580
"""About a page of text."""

PPI = 200
LINE = 17
MARGIN = 10
_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)"[^>]*? height="([\d.]+)"')


def write_figures(
    result: Reportable,
    folder: Path | str,
    format: Format = "svg",  # noqa: A002  # as in `--format`
    theme: Theme = "light",
    *,
    words: bool = False,
) -> list[Path]:
    """Write every figure of a report to a file of its own.

    Args:
        result: what `compare` returned, or what `make_payload` made of it.
        folder: where to; made where it is missing.
        format: `svg`, `png` or `pdf`.
        theme: `light` (transparent but for png, which cannot mix colours well) or `dark`.
        words: put title and caption into the picture.

    Returns:
        The files written.

    Raises:
        UsageError: vl-convert is not installed.
        OutputError: the folder cannot be written to.
    """
    folder = Path(folder)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in _pictures(payload_for(result), format, theme, words=words):
            path = folder / f"{name}.{format}"
            path.write_bytes(content)
            written.append(path)
    except OSError as error:
        raise OutputError(
            f"{folder}: figures cannot be written: {error.strerror or error}",
            hint="give a folder that can be written to.",
        ) from error
    return written


def _pictures(
    payload: Payload, kind: Format, theme: Theme, *, words: bool
) -> Iterator[tuple[str, bytes]]:
    records = records_of(payload)
    for figure in all_figures(payload):
        if figure.page == "overview":  # the others show what a reader opens
            yield figure.name, picture(figure, records, kind, theme, words=words)


def picture(
    figure: Figure, records: list[Record], kind: Format, theme: Theme, *, words: bool = False
) -> bytes:
    """One figure as the content of a file; for the arguments see `draw`."""
    convert = _converter()
    drawn = draw(figure, records, theme, words=words, ground=kind == "png" or theme == "dark")
    if kind == "svg":
        return drawn.encode()
    if kind == "png":
        return bytes(convert.svg_to_png(drawn, scale=PPI / 72, ppi=72))
    return bytes(convert.svg_to_pdf(drawn))


def draw(
    figure: Figure,
    records: list[Record],
    theme: Theme,
    *,
    words: bool = False,
    ground: bool = False,
) -> str:
    """One figure as SVG, as its switches stand at first.

    Args:
        figure: what to draw.
        records: the data set `rows`.
        theme: `light` or `dark`.
        words: with title and caption.
        ground: on the colour of the page; else transparent.
    """
    if figure.svg is not None:
        drawn = figure.svg.replace(f'color="{TEXT["light"]}"', f'color="{TEXT[theme]}"', 1)
    else:
        drawn = _draw_vega(figure.spec or {}, records, theme)
    return _framed(drawn, figure, theme, words=words, ground=ground)


def _draw_vega(spec: Spec, records: list[Record], theme: Theme) -> str:
    convert = _converter()
    lite = "/vega-lite/" in spec["$schema"]
    switches = "params" if lite else "signals"
    filled = spec | {
        switches: [
            each | {"value": theme == "dark"} if each["name"] == "dark" else each
            for each in spec[switches]
        ]
    }
    if not lite:
        filled["data"] = [
            each | ({"values": records} if each["name"] == "rows" else {}) for each in spec["data"]
        ]
        return str(convert.vega_to_svg(_sound(filled), allowed_base_urls=[]))
    if spec["width"] == "container":
        filled["width"] = WIDTH
    filled["datasets"] = {"rows": records}
    return str(convert.vegalite_to_svg(_sound(filled), allowed_base_urls=[]))


def _sound(value: Any) -> Any:
    """Without control characters: they make vl-convert end the whole process."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_sound(each) for each in value]
    return {key: _sound(each) for key, each in value.items()} if isinstance(value, dict) else value


def _framed(picture: str, figure: Figure, theme: Theme, *, words: bool, ground: bool) -> str:
    """The picture on its ground and with its words around it, where they are wanted."""
    if not words and not ground:
        return picture
    width, height = _size(picture)
    caption = wrap(figure.caption, int(width / 6.2)) if words else []
    head = LINE + MARGIN if words else 0
    root = ET.Element(
        "svg",
        {
            "xmlns": NAMESPACE,
            "width": f"{width + 2 * MARGIN:g}",
            "height": f"{height + head + LINE * len(caption) + 2 * MARGIN:g}",
            "color": TEXT[theme],
            "font-family": FONT,
            "font-size": "12",
        },
    )
    if ground:
        add(root, "rect", width="100%", height="100%", fill=GROUND[theme])
    if words:
        write(root, figure.title, MARGIN, MARGIN + 14, font_size=15, font_weight="600")
    for place, line in enumerate(caption):
        write(root, line, MARGIN, MARGIN + head + height + LINE * (place + 1) - 3)
    inner = picture.replace("<svg ", f'<svg x="{MARGIN}" y="{MARGIN + head}" ', 1)
    return ET.tostring(root, encoding="unicode").removesuffix("</svg>") + inner + "</svg>"


def _size(picture: str) -> tuple[float, float]:
    found = _SIZE.search(picture)
    assert found is not None  # noqa: S101  # every picture says its size
    return float(found[1]), float(found[2])


def _converter() -> Any:
    try:
        return importlib.import_module("vl_convert")
    except ModuleNotFoundError:
        raise UsageError(
            "drawing figures needs vl-convert, which is not installed",
            hint="install it: pip install vl-convert-python.",
        ) from None
