"""The interactive page of the theory, computed in the browser."""

from __future__ import annotations

import base64
from functools import cache
from html import escape
from pathlib import Path

import numpy as np

from forgetmap.errors import UsageError
from forgetmap.report.figures.theory import phase_figure
from forgetmap.report.html.shell import Page, fill_shell, write_page
from forgetmap.report.static import picture
from forgetmap.theory import LIMITS, PHASE_PARAMETERS, PHASE_VALUES, phase_diagram

TITLE = "Why post-training forgets: two modes"
PHASES_PER_SIDE, LAST_TIME = 30, 100.0


def write_theory_page(path: str | Path) -> Path:
    """Write the page as one HTML file, which appears only when it is complete."""
    return write_page(fill_shell(_theory_page()), Path(path))


def _theory_page() -> Page:
    limits = "".join(f"<li>{escape(limit)}</li>" for limit in LIMITS)
    return Page(
        "theory",
        title=TITLE,
        main=f"""<div id="theory">
<h1>{TITLE}</h1>
<p>A model writes old behaviour (left) and new behaviour (right). Training moves how often it writes
each, and what each looks like. Move the parameters and see what is left of the old.</p>
<form id="controls"></form>
<p id="outcome" role="status" aria-live="polite"></p>
<div id="plots"></div>
<h2>The target retains, not the direction of KL</h2>
<p>The same start, once with the forward and once with the reverse KL, toward new behaviour alone
and toward the true target.</p>
<div id="four"></div>
{_phases()}
<details><summary>Numbers</summary><table id="numbers"></table></details>
<details open><summary>Limits</summary><ul id="limits">{limits}</ul></details>
</div>""",
    )


@cache
def _phases() -> str:
    """Return phase diagrams as pictures; empty if they cannot be drawn."""
    images = []
    for parameter, values in PHASE_VALUES.items():
        separations = np.linspace(1, 8, PHASES_PER_SIDE)
        diagram = phase_diagram(parameter, separations, values[::2], LAST_TIME)
        try:
            content = picture(phase_figure(diagram), [], "png", "light", words=True)
        except UsageError:
            return ""
        source = base64.b64encode(content).decode("ascii")
        name = f"Old mass left by separation and {PHASE_PARAMETERS[parameter]}"
        images.append(f'<figure><img alt="{name}" src="data:image/png;base64,{source}"></figure>')
    start = (
        f"Start: half of the weight old, the new component 1 below its mode; time {LAST_TIME:g}."
    )
    return f'<h2>Phase diagrams</h2><p>{start}</p><div id="phases">{"".join(images)}</div>'
