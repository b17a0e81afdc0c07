"""The page of a report, fed by the server instead of by what is in the file."""

from __future__ import annotations

from html import escape

from forgetmap._workers import call_apart
from forgetmap.report import fill_page, module_names, page_file, policy, vega_bundle

OWN = ("source.js", "picker.js", "serve.js")
"""In the place of the part of a report that unpacks its own items."""
REPLACED = "start.js"


def page_html() -> tuple[str, str]:
    """The page, and the Content-Security-Policy that lets it run these scripts and no others."""
    shared = [page_file(name) for name in module_names() if name != REPLACED]
    script = "\n".join([*shared, *map(_own_file, OWN)])
    vega = call_apart(vega_bundle)  # keeps 150 MB for as long as its process lives
    style = page_file("style.css") + _own_file("serve.css")
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
    return fill_page(filled), f"{allowed}; frame-ancestors 'none'"


def _own_file(name: str) -> str:
    return page_file(name, "forgetmap.serve")
