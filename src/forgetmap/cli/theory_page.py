"""The interactive page of the theory as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import re
from functools import cache
from html import escape
from importlib.resources import files

import numpy as np

from forgetmap.report import policy
from forgetmap.theory import KNOB_VALUES, KNOBS, LIMITS, phase_diagram, phase_figure

SIDE, UNTIL, PPI = 30, 100.0, 110
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page_html() -> str:
    """The page with its scripts and style inside, allowed by their hashes and nothing else."""
    names = [line for line in _file("modules.txt").splitlines() if line and line[0] != "#"]
    style, script = _file("style.css"), "\n".join(_file(name) for name in names)
    parts = {
        "csp": policy([script], style),
        "style": style,
        "script": script,
        "phases": _phases(),
        "limits": "".join(f"<li>{escape(each)}</li>" for each in LIMITS),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _file("index.html"))


@cache
def _phases() -> str:
    """Phase diagrams as pictures; none where they cannot be drawn."""
    try:
        import vl_convert  # optional, 30 MB
    except ModuleNotFoundError:
        return ""
    figures = []
    for knob, values in KNOB_VALUES.items():
        diagram = phase_diagram(knob, np.linspace(1, 8, SIDE), values[::2], UNTIL)
        picture = vl_convert.vegalite_to_png(phase_figure(diagram), ppi=PPI, allowed_base_urls=[])
        source = base64.b64encode(picture).decode("ascii")
        name = f"Old mass left by separation and {KNOBS[knob]}"
        figures.append(f'<figure><img alt="{name}" src="data:image/png;base64,{source}"></figure>')
    words = f"Start: half of the weight old, the new component 1 below its mode; time {UNTIL:g}."
    return f'<h2>Phase diagrams</h2><p>{words}</p><div id="phases">{"".join(figures)}</div>'


def _file(name: str) -> str:
    text = (files("forgetmap.theory") / "page" / name).read_text(encoding="utf-8")
    # Browsers do so before they hash.
    return text.replace("\r\n", "\n").replace("\r", "\n")
