"""The page of a report, fed by the server instead of by what is in the file."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable

from forgetmap.explorer.drawing import bundle
from forgetmap.report.html import policy

OWN = ("source.js", "picker.js", "serve.js")
"""In the place of the part of a report that unpacks its own items."""
REPLACED = "start.js"


def page_html() -> tuple[str, str]:
    """The page, and the Content-Security-Policy that lets it run these scripts and no others."""
    report, own = files("forgetmap.report") / "page", files("forgetmap.explorer") / "page"
    listed = (line.strip() for line in _read(report / "modules.txt").splitlines())
    names = [name for name in listed if name and name[0] != "#" and name != REPLACED]
    parts = [*(_read(report / name) for name in names), *(_read(own / name) for name in OWN)]
    script, vega = "\n".join(parts), bundle()
    style = _read(report / "style.css") + _read(own / "serve.css")
    allowed = policy([script, vega], style).replace("connect-src 'none'", "connect-src 'self'")
    filled = {
        "csp": escape(allowed),
        "title": "forgetmap",
        "style": style,
        "payload": "",
        "figures": "",
        "script": script,
        "vega": vega,
    }
    page = _read(report / "index.html")
    head, *rest = page.split("{{")
    for part in rest:
        name, _, text = part.partition("}}")
        head += filled[name] + text
    return head, f"{allowed}; frame-ancestors 'none'"


def _read(file: Traversable) -> str:
    return file.read_text(encoding="utf-8").replace("\r\n", "\n")
