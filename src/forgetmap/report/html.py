"""One HTML file that needs nothing else: no network, no server, and nothing in it can be run.

The page (report/page) is put together with the payload when the file is made. Items and their
texts stand in it as gzip in base64, which has no letter that HTML knows; scripts and styles are
named by their hashes in the Content-Security-Policy, so that a browser runs these and no others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from forgetmap.comparison import all_estimators
from forgetmap.records import writable
from forgetmap.report.figures import Figure, all_figures
from forgetmap.report.packing import as_json, packed
from forgetmap.report.payload import HEADLINE, Payload
from forgetmap.report.reportable import Reportable, payload_for

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_ENDS_SCRIPT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


def write_report(result: Reportable, path: str | Path) -> Path:
    """Write a report as one HTML file; it appears under its name only when it is whole.

    Args:
        result: what `compare` or `drift` returned, or what `make_payload` made of it.
        path: the file; an older one is replaced.

    Returns:
        The file.

    Raises:
        OutputError: it cannot be written.
    """
    return write_whole(report_html(payload_for(result)), Path(path))


def write_whole(page: str, path: Path) -> Path:
    """Write a page; it appears under its name only when it is whole."""
    content = page.encode("utf-8")
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            written = partial / path.name
            written.write_bytes(content)
            written.replace(path)
        finally:
            (partial / path.name).unlink(missing_ok=True)
            partial.rmdir()
    return path


def report_html(payload: Payload) -> str:
    """A report as the text of one HTML file."""
    style, script, vega = page_file("style.css"), script_of(), vega_bundle()
    parts = {
        "csp": policy([script, vega], style),
        "title": escape(payload.title),
        "style": style,
        "payload": packed(as_json(payload)),
        "figures": packed(figures_json(payload)),
        "script": script,
        "vega": vega,
    }
    return fill_page(parts)


def figures_json(payload: Payload) -> str:
    """All figures of a payload as the page takes them."""
    figures = [drawable(figure) for figure in all_figures(payload)]
    return json.dumps(figures, ensure_ascii=False, allow_nan=False)


def fill_page(parts: Mapping[str, str], package: str = "forgetmap.report") -> str:
    """The page of a package with each part in its place."""
    # In one pass: what is put in is never searched for places again.
    return _PLACE.sub(lambda place: parts[place[1]], page_file("index.html", package))


def policy(scripts: Sequence[str], style: str) -> str:
    """A Content-Security-Policy that allows these scripts and this style, and no connection."""
    allowed = " ".join(_hash(script) for script in scripts if script)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and vega-embed out of an installed package; empty where it is not there."""
    try:
        import vl_convert  # optional, 30 MB
    except ImportError:
        return ""
    # Its stub forgets that there need be no snippet.
    return _inline(vl_convert.javascript_bundle())  # type: ignore[call-arg]


def drawable(figure: Figure) -> dict[str, object]:
    """A figure as the page takes it: Vega-Lite is compiled here, so that no reader waits for it."""
    content = asdict(figure)
    if figure.spec is not None and "vega-lite" in figure.spec["$schema"] and vega_bundle():
        import vl_convert

        content["spec"] = vl_convert.vegalite_to_vega(figure.spec)
    return content


def script_of(*, started_by: str | None = None) -> str:
    """The page's code; another page that uses it says what starts that instead."""
    *names, start = module_names()
    last = page_file(start) if started_by is None else started_by
    parts = [estimator_script(), *(page_file(name) for name in names), last]
    return _inline("\n".join(parts))


def estimator_script() -> str:
    """What the page calls each estimator, from the table of estimators."""
    words = {HEADLINE: {"label": "the number to believe", "from_repeats": False}}
    for row in all_estimators():
        words[row.name] = {"label": row.label, "from_repeats": row.from_repeats}
    return f"const ESTIMATORS = {json.dumps(words)};"


def module_names() -> list[str]:
    """The files that the page's own code is joined of, in order."""
    lines = (line.strip() for line in page_file("modules.txt").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _inline(script: str) -> str:
    """A script that cannot end its element early; escaped, the letter means the same."""
    return _ENDS_SCRIPT.sub(r"\\x3c", script)


def page_file(name: str, package: str = "forgetmap.report") -> str:
    """A file of the page, with the ends of lines that browsers see."""
    text = (files(package) / "page" / name).read_text(encoding="utf-8")
    # Browsers do so before they hash.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
