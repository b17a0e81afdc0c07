"""The interactive page of the theory as one HTML file that needs nothing else."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files

from forgetmap.report.html import policy
from forgetmap.theory.limits import LIMITS

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page_html() -> str:
    """The page with its scripts and style inside, allowed by their hashes and nothing else."""
    names = [line for line in _file("modules.txt").splitlines() if line and line[0] != "#"]
    style, script = _file("style.css"), "\n".join(_file(name) for name in names)
    parts = {
        "csp": policy([script], style),
        "style": style,
        "script": script,
        "limits": "".join(f"<li>{escape(each)}</li>" for each in LIMITS),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _file("index.html"))


def _file(name: str) -> str:
    text = (files("forgetmap.theory") / "page" / name).read_text(encoding="utf-8")
    # Browsers do so before they hash.
    return text.replace("\r\n", "\n").replace("\r", "\n")
