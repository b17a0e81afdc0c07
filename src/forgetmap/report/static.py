"""Figures as files for papers and slides, drawn without a browser."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from textwrap import wrap
from typing import Any, cast, get_args
from xml.etree import ElementTree as ET

from forgetmap.errors import UsageError
from forgetmap.records import writable
from forgetmap.report.choices import Format
from forgetmap.report.figures.figure import Figure, Record, Spec
from forgetmap.report.figures.look import FONT, GROUND, TEXT, Theme
from forgetmap.report.figures.registry import all_figures, records_of
from forgetmap.report.figures.svg import NAMESPACE, add, write
from forgetmap.report.payloads import Reportable, payload_for
from forgetmap.text import printable

WIDTH = 580
"""Width in pixels: about a page of text."""

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
    """Write every figure of a report to its own file.

    Args:
        result: a result of `compare`, or a payload of `make_payload`.
        folder: the folder to write to; created if missing.
        format: `svg`, `png` or `pdf`.
        theme: `light` (with a transparent background, except for png) or `dark`.
        words: include title and caption in the picture.

    Returns:
        The files written.

    Raises:
        UsageError: vl-convert is not installed.
        OutputError: the folder cannot be written.
    """
    folder, payload = Path(folder), payload_for(result)
    records = records_of(payload)
    return [
        write_figure(figure, folder / f"{figure.name}.{format}", records, theme=theme, words=words)
        for figure in all_figures(payload)
        if figure.page == "overview"  # the others show what a reader opens
    ]


def write_figure(
    figure: Figure,
    path: Path,
    records: list[Record] | None = None,
    *,
    theme: Theme = "light",
    words: bool = False,
    ground: bool = False,
) -> Path:
    """Write one figure; the suffix of the file determines the format.

    Args:
        figure: the figure.
        path: file to write; its folder is created if missing.
        records: the data set `rows`, for figures that draw it.
        theme: `light` or `dark`.
        words: include title and caption in the picture.
        ground: draw the background of the page; png and dark pictures always have it.

    Raises:
        UsageError: vl-convert is not installed, or the format is unknown.
        OutputError: the file cannot be written.
    """
    format_ = path.suffix.lstrip(".").lower()
    if format_ not in get_args(Format):
        raise UsageError(
            f"{path.name} is not a picture format", hint="use the extension .svg, .png or .pdf."
        )
    content = picture(
        figure, records or [], cast("Format", format_), theme, words=words, ground=ground
    )
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


def picture(
    figure: Figure,
    records: list[Record],
    format: Format,  # noqa: A002  # as in `write_figures`
    theme: Theme,
    *,
    words: bool = False,
    ground: bool = False,
) -> bytes:
    """Return one figure as the content of a file; arguments as for `write_figure`."""
    convert = _converter()
    ground = ground or format == "png" or theme == "dark"
    svg = draw(figure, records, theme, words=words, ground=ground)
    if format == "svg":
        return svg.encode()
    if format == "png":
        return bytes(convert.svg_to_png(svg, scale=PPI / 72, ppi=72))
    return bytes(convert.svg_to_pdf(svg))


def draw(
    figure: Figure,
    records: list[Record],
    theme: Theme,
    *,
    words: bool = False,
    ground: bool = False,
) -> str:
    """Return one figure as SVG, with the default state of its switches.

    Args:
        figure: the figure.
        records: the data set `rows`.
        theme: `light` or `dark`.
        words: include title and caption.
        ground: draw the background of the page; by default it is transparent.
    """
    if figure.svg is not None:
        image = figure.svg.replace(f'color="{TEXT["light"]}"', f'color="{TEXT[theme]}"', 1)
    else:
        image = _draw_vega(figure.spec or {}, records, theme)
    return _framed(image, figure, theme, words=words, ground=ground)


def _draw_vega(spec: Spec, records: list[Record], theme: Theme) -> str:
    convert = _converter()
    if _is_lite(spec):
        standalone = standalone_spec(spec, records, theme)
        return str(convert.vegalite_to_svg(standalone, allowed_base_urls=[]))
    filled = _with_theme(spec, "signals", theme)
    filled["data"] = [
        table | ({"values": records} if table["name"] == "rows" else {}) for table in spec["data"]
    ]
    return str(convert.vega_to_svg(_without_control_characters(filled), allowed_base_urls=[]))


def standalone_spec(spec: Spec, records: list[Record], theme: Theme = "light") -> Spec:
    """Return Vega-Lite with data and a fixed width, for other programs."""
    filled = _with_theme(spec, "params", theme)
    if spec.get("width") == "container":
        filled["width"] = WIDTH
    filled["datasets"] = {"rows": records}
    standalone: Spec = _without_control_characters(filled)
    return standalone


def _is_lite(spec: Spec) -> bool:
    return "/vega-lite/" in spec["$schema"]


def _with_theme(spec: Spec, switches: str, theme: Theme) -> Spec:
    """Set the switch `dark` of a spec."""
    values = [
        switch | {"value": theme == "dark"} if switch["name"] == "dark" else switch
        for switch in spec[switches]
    ]
    return spec | {switches: values}


def _without_control_characters(value: Any) -> Any:
    """Remove control characters, which make vl-convert end the whole process."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_without_control_characters(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_control_characters(item) for key, item in value.items()}
    return value


def _framed(picture: str, figure: Figure, theme: Theme, *, words: bool, ground: bool) -> str:
    """Add background, title and caption to a picture, if requested."""
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
    for index, line in enumerate(caption):
        write(root, line, MARGIN, MARGIN + head + height + LINE * (index + 1) - 3)
    inner = picture.replace("<svg ", f'<svg x="{MARGIN}" y="{MARGIN + head}" ', 1)
    return ET.tostring(root, encoding="unicode").removesuffix("</svg>") + inner + "</svg>"


def _size(picture: str) -> tuple[float, float]:
    size = _SIZE.search(picture)
    assert size is not None  # noqa: S101  # every picture states its size
    return float(size[1]), float(size[2])


def _converter() -> Any:
    try:
        return importlib.import_module("vl_convert")
    except ModuleNotFoundError:
        raise UsageError(
            "drawing figures needs vl-convert, which is not installed",
            hint="install it: pip install vl-convert-python.",
        ) from None
