"""The shell of every page: one self-contained HTML file that runs no foreign code.

The files of report/page are assembled when a report is written. Items and their texts are embedded
as gzip in base64, which has no special characters of HTML; scripts and styles are listed by their
hashes in the Content-Security-Policy, so that a browser runs no others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from forgetmap._cache import cached_folder
from forgetmap._disk import whole_file
from forgetmap.comparison import all_estimators
from forgetmap.records import writable
from forgetmap.report.payloads.schema import FLIPS

PageKind = Literal["report", "sweep", "sections", "study", "served", "theory"]
STYLE = "style.css"
MORE_LABELS = {FLIPS: "as counted", "published": "chance adjustment as published in 2026"}
"""Labels of estimates in the menu of the page; those of other estimators are in their table."""
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_ENDS_SCRIPT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


class Page(NamedTuple):
    """Contents of a page; all fields except `payload` and `figures` are HTML.

    Attributes:
        kind: set of scripts, see page/modules.txt.
        title: title of the window.
        top: content of the header before scripts run.
        main: main content before scripts run.
        payload: packed data for the scripts.
        figures: packed figures; empty if the page needs no Vega.
    """

    kind: PageKind
    title: str
    top: str = ""
    main: str = ""
    payload: str = ""
    figures: str = ""


def fill_shell(page: Page, vega: str = "", *, csp: str | None = None) -> str:
    """Return the text of the HTML file.

    Args:
        page: contents of the page.
        vega: script that draws figures.
        csp: Content-Security-Policy; by default that of a file.
    """
    style, script = page_file(STYLE), page_script(page.kind)
    slots = page._asdict() | {
        "csp": policy([script, vega], style) if csp is None else csp,
        "style": style,
        "script": script,
        "vega": vega,
    }
    # In one pass, so that inserted texts are not searched for slots.
    return _SLOT.sub(lambda slot: slots[slot[1]], page_file("index.html"))


def write_page(text: str, path: Path) -> Path:
    """Write a page; the file appears only when it is complete."""
    content = text.encode("utf-8")
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            (partial / path.name).write_bytes(content)
            (partial / path.name).replace(path)
        finally:
            (partial / path.name).unlink(missing_ok=True)
            partial.rmdir()
    return path


def policy(scripts: Sequence[str], style: str) -> str:
    """Return a Content-Security-Policy with these scripts and this style, and no connections."""
    allowed = " ".join(_hash(script) for script in scripts if script)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def has_vega() -> bool:
    """Whether the package with Vega is installed; quick, unlike bundling its scripts."""
    return find_spec("vl_convert") is not None


@cache
def vega_bundle() -> str:
    """Return Vega, Vega-Lite and vega-embed from an installed package; empty if it is missing."""
    if not has_vega():
        return ""
    return kept_bundle() or _make_bundle()


def kept_bundle() -> str | None:
    """Return the bundle from the cache; None if there is none yet."""
    if not has_vega():
        return None
    try:
        content = _bundle_path().read_bytes()
    except OSError:
        return None
    digest, _, script = content.partition(b"\n")
    is_whole = digest == hashlib.sha256(script).hexdigest().encode()
    return _inline(script.decode("utf-8")) if is_whole else None


def _make_bundle() -> str:
    import vl_convert  # optional, 30 MB

    # Its type stub requires a snippet.
    script = vl_convert.javascript_bundle().encode("utf-8")  # type: ignore[call-arg]
    with suppress(OSError), whole_file(_bundle_path()) as path:  # only a cache
        path.write_bytes(hashlib.sha256(script).hexdigest().encode() + b"\n" + script)
    return _inline(script.decode("utf-8"))


def _bundle_path() -> Path:
    """Return its path in the cache; versions of the package have different scripts."""
    return cached_folder(f"vega-{version('vl-convert-python')}", "scripts") / "bundle.js"


def page_script(kind: PageKind) -> str:
    """Return the code of a page as one script."""
    words = [] if kind == "theory" else [estimator_script()]
    return _inline("\n".join([*words, *map(page_file, page_modules(kind))]))


def estimator_script() -> str:
    """Return the labels of estimators for the page, from the table of estimators."""
    labels = {row.name: row.label for row in all_estimators()} | MORE_LABELS
    return f"const ESTIMATORS = {json.dumps(labels)};"


def page_modules(kind: PageKind) -> list[str]:
    """Return the source files of a page in order, as listed in page/modules.txt."""
    lists: dict[str, list[str]] = {}
    for line in page_file("modules.txt").splitlines():
        if line.startswith("["):
            names = lists.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            names += lists[line.removeprefix("use ")] if line.startswith("use ") else [line]
    return lists[kind]


def page_file(name: str) -> str:
    """Return a file of the page, with line ends as browsers see them."""
    text = (files("forgetmap.report") / "page" / name).read_text(encoding="utf-8")
    # Browsers do this before they hash.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _inline(script: str) -> str:
    """Return a script that cannot end its element early: `<` is escaped."""
    return _ENDS_SCRIPT.sub(r"\\x3c", script)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
