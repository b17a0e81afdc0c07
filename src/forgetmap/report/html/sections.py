"""A page of sections with static text and tables; Vega draws the figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from forgetmap import __version__
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.registry import as_json
from forgetmap.report.html.parts import escaped
from forgetmap.report.html.shell import Page
from forgetmap.report.payloads.packing import packed

NO_SCRIPT = "Figures need JavaScript; every number is in the tables."


class Pictures(NamedTuple):
    """Figures at one position of a page.

    Attributes:
        figures: the figures.
        rows: the data set `rows`, column -> values, for figures that draw it.
    """

    figures: Sequence[Figure]
    rows: Mapping[str, Sequence[object]] | None = None


class SectionsPage:
    """Builds a page from top to bottom; figures are numbered as they are added."""

    def __init__(self) -> None:
        self._html: list[str] = []
        self._pictures: list[Pictures] = []

    def add(self, html: str) -> None:
        """Add text and tables as escaped HTML."""
        self._html.append(html)

    def place(self, pictures: Pictures) -> str:
        """Return HTML for the position of these figures."""
        self._pictures.append(pictures)
        number = len(self._pictures) - 1
        return (
            f'<div class="pictures" data-section="{number}" aria-label="Figures">'
            f"<noscript><p>{NO_SCRIPT}</p></noscript></div>"
        )

    def finish(self, title: str, name: str, result_json: str) -> Page:
        """Return the page.

        Args:
            title: title of the window, as plain text.
            name: name of the file behind `Everything as JSON`.
            result_json: content of that file.
        """
        footer = escaped(f"Made with forgetmap {__version__}. This file sends no data.")
        rows = json.dumps([part.rows for part in self._pictures], allow_nan=False)
        figures = ",".join(as_json(part.figures) for part in self._pictures)
        words = escaped(title)
        return Page(
            kind="sections",
            title=words,
            top=f'<p class="title">{words}</p><div class="bar" id="switches"></div>',
            main=f"""<div id="sections">
{"".join(self._html)}
<footer class="faint">{footer} <span id="take"></span></footer>
</div>""",
            payload=packed(f'{{"name":{json.dumps(name)},"result":{result_json},"rows":{rows}}}'),
            figures=packed(f"[{figures}]"),
        )
