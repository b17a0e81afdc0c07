"""The shell of the site: pages with a common style sheet and scripts beside them.

A browser that opens a local file runs scripts beside it, but neither modules nor scripts listed by
their hashes. So the policy allows files of the site and no inline scripts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap import __version__
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.registry import as_json
from forgetmap.report.html.parts import escaped
from forgetmap.report.html.sections import NO_SCRIPT, Pictures
from forgetmap.report.html.shell import page_file, page_script, vega_bundle
from forgetmap.report.html.study.cells import page_link
from forgetmap.report.html.study.names import DOWNLOADS, LOST, START
from forgetmap.report.payloads.packing import packed

ASSETS = "assets"
FOOTER = f"Made with forgetmap {__version__}. This folder sends no data."
STYLES = ("style.css", "study.css")
POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data: blob:; "
    "connect-src 'none'; base-uri 'none'; form-action 'none'"
)
MENU = {
    START: "Start",
    f"{START}#section=stages": "Stages",
    f"{START}#section=pairs": "Pairs",
    f"{START}#section=categories": "Categories",
    f"{START}#section=models": "Models",
    LOST: "Items",
    DOWNLOADS: "Downloads",
}


def write_assets(folder: Path) -> None:
    """Write style sheet and scripts."""
    target = folder / ASSETS
    target.mkdir(parents=True, exist_ok=True)
    style = "\n".join(map(page_file, STYLES))
    (target / "site.css").write_text(style, encoding="utf-8")
    # In its own scope, like a module.
    script = f'(() => {{\n"use strict";\n{page_script("study")}\n}})();\n'
    (target / "site.js").write_text(script, encoding="utf-8")
    (target / "vega.js").write_text(_as_classic(vega_bundle()), encoding="utf-8")


def _as_classic(module: str) -> str:
    return f'(() => {{\n"use strict";\n{module}\n}})();\n' if module else ""


class SitePage:
    """Builds a page of the site from top to bottom.

    Args:
        site: title of the site.
        title: title of the page.
        root: path from the page to the folder of the site: empty or `../`.
    """

    def __init__(self, site: str, title: str, root: str) -> None:
        self.root = root
        self._site, self._title = site, title
        self._html: list[str] = []
        self._pictures: list[Pictures] = []

    def add(self, html: str) -> None:
        """Add text and tables as escaped HTML."""
        self._html.append(html)

    def section(self, title: str, html: str, name: str = "") -> None:
        """Add a section with its title, unless it is empty."""
        if html:
            place = f' id="{escaped(name)}" tabindex="-1"' if name else ""
            words = escaped(title)
            self.add(f'<section{place} aria-label="{words}"><h2>{words}</h2>{html}</section>')

    def place(self, figures: Sequence[Figure | None]) -> str:
        """Return HTML for the position of these figures; empty if there are none."""
        drawn = [figure for figure in figures if figure is not None]
        if not drawn:
            return ""
        self._pictures.append(Pictures(drawn))
        return (
            f'<div class="pictures" data-section="{len(self._pictures) - 1}" aria-label="Figures">'
            f"<noscript><p>{NO_SCRIPT}</p></noscript></div>"
        )

    def html(self, items: Mapping[str, Any] | None = None) -> str:
        """Return the text of the file; with `items`, the page lists them."""
        figures = ",".join(as_json(part.figures) for part in self._pictures)
        content: dict[str, Any] = {"items": items, "rows": [{} for _ in self._pictures]}
        root = escaped(self.root)
        flips = '<section id="flips" aria-label="Items, one by one"></section>' if items else ""
        vega = f'<script defer src="{root}{ASSETS}/vega.js"></script>' if self._pictures else ""
        words = escaped(self._title)
        name = words if self._title == self._site else f"{words} · {escaped(self._site)}"
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{name}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}{ASSETS}/site.css">
</head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<header id="top"><p class="title">{page_link(START, escaped(self._site), self.root)}</p>
<nav class="menu" aria-label="Site">{self._menu()}</nav>
<div class="bar" id="switches"></div></header>
<main id="main" tabindex="-1">
<div id="overview"><div id="sections">
{"".join(self._html)}
</div>{flips}</div>
<article id="item" hidden aria-label="Item"></article>
<footer class="faint">{escaped(FOOTER)}</footer>
</main>
<div id="said" class="aside" role="status" aria-live="polite"></div>
<div id="tooltip" hidden></div>
<script id="payload" type="application/octet-stream">{packed(_json(content))}</script>
<script id="figures" type="application/octet-stream">{packed(f"[{figures}]")}</script>
<script defer src="{root}{ASSETS}/site.js"></script>
{vega}
</body>
</html>
"""

    def _menu(self) -> str:
        return "".join(page_link(href, escaped(text), self.root) for href, text in MENU.items())


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)
