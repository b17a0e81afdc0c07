"""SVG elements that escape all text and contain nothing executable."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from forgetmap.report.figures.look import FONT, TEXT
from forgetmap.text import printable

NAMESPACE = "http://www.w3.org/2000/svg"


def canvas(width: float, height: float, title: str) -> ET.Element:
    """Return an empty picture with a title."""
    root = ET.Element(
        "svg",
        {
            "xmlns": NAMESPACE,
            "width": f"{width:g}",
            "height": f"{height:g}",
            "viewBox": f"0 0 {width:g} {height:g}",
            "role": "img",
            "color": TEXT["light"],
            "font-family": FONT,
            "font-size": "12",
        },
    )
    tell(root, title)
    return root


def add(parent: ET.Element, name: str, **attributes: str | float) -> ET.Element:
    """Add an element; `stroke_width` is `stroke-width`."""
    properties = {
        key.replace("_", "-"): f"{value:.6g}" if isinstance(value, float | int) else value
        for key, value in attributes.items()
    }
    return ET.SubElement(parent, name, properties)


def write(parent: ET.Element, text: str, x: float, y: float, **attributes: str | float) -> None:
    """Add text in the colour of the surrounding page."""
    add(parent, "text", x=x, y=y, fill="currentColor", **attributes).text = printable(text)


def shortened(text: str, most: int) -> str:
    """Shorten a text in the middle: names of checkpoints differ at the end."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def tell(parent: ET.Element, text: str) -> None:
    """Add a tooltip, which screen readers read too."""
    ET.SubElement(parent, "title").text = printable(text)


def ribbon(
    start: tuple[float, float], end: tuple[float, float], top: tuple[float, float], thick: float
) -> str:
    """Return the path of a band from one column to another.

    Args:
        start: left edge: x, and y of its upper corner.
        end: right edge: x, and y of its upper corner.
        top: x of both bends.
        thick: height of the band.
    """
    (x0, y0), (x1, y1) = start, end
    bend0, bend1 = top
    return (
        f"M{x0:.2f} {y0:.2f}C{bend0:.2f} {y0:.2f} {bend1:.2f} {y1:.2f} {x1:.2f} {y1:.2f}"
        f"V{y1 + thick:.2f}C{bend1:.2f} {y1 + thick:.2f} {bend0:.2f} {y0 + thick:.2f} "
        f"{x0:.2f} {y0 + thick:.2f}Z"
    )


def as_text(root: ET.Element) -> str:
    """Return the picture as text."""
    return ET.tostring(root, encoding="unicode")
