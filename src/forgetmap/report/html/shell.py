"""The shell of every page: one self-contained HTML file that runs no foreign code.

What is in report/page is put together when a file is made. Items and their texts stand in it as
gzip in base64, which has no letter that HTML knows; scripts and styles are named by their hashes
in the Content-Security-Policy, so that a browser runs these and no others.
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
from forgetmap.report.payloads.schema import HEADLINE

PageKind = Literal["report", "sweep", "sections", "study", "served", "theory"]
STYLE = "style.css"
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_ENDS_SCRIPT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


class Page(NamedTuple):
    """What a kind of report puts into the shell; all of it but `payload` and `figures` is HTML.

    Attributes:
        kind: which scripts it runs, see page/modules.txt.
        title: of the window.
        top: what stands in the header before scripts run.
        main: what stands in the middle before scripts run.
        payload: what the scripts show, packed.
        figures: what they draw, packed; empty where the page needs no Vega.
    """

    kind: PageKind
    title: str
    top: str = ""
    main: str = ""
    payload: str = ""
    figures: str = ""


def fill_shell(page: Page, vega: str = "", *, csp: str | None = None) -> str:
    """The text of the HTML file.

    Args:
        page: what is shown.
        vega: the script that draws figures.
        csp: the policy, where it is not that of a file.
    """
    style, script = page_file(STYLE), page_script(page.kind)
    slots = page._asdict() | {
        "csp": policy([script, vega], style) if csp is None else csp,
        "style": style,
        "script": script,
        "vega": vega,
    }
    # In one pass: what is put in is never searched for slots again.
    return _SLOT.sub(lambda slot: slots[slot[1]], page_file("index.html"))


def write_page(text: str, path: Path) -> Path:
    """Write a page; it appears under its name only when it is complete."""
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
    """A Content-Security-Policy that allows these scripts and this style, and no connection."""
    allowed = " ".join(_hash(script) for script in scripts if script)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def has_vega() -> bool:
    """Whether the package with Vega is installed: putting its scripts together takes seconds."""
    return find_spec("vl_convert") is not None


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and vega-embed out of an installed package; empty where it is not there."""
    if not has_vega():
        return ""
    return kept_bundle() or _make_bundle()


def kept_bundle() -> str | None:
    """What `vega_bundle` put together before, in this process or another; None if nobody did."""
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

    # Its stub forgets that there need be no snippet.
    script = vl_convert.javascript_bundle().encode("utf-8")  # type: ignore[call-arg]
    with suppress(OSError), whole_file(_bundle_path()) as path:  # only to save time
        path.write_bytes(hashlib.sha256(script).hexdigest().encode() + b"\n" + script)
    return _inline(script.decode("utf-8"))


def _bundle_path() -> Path:
    """In the cache; another version of the package has other scripts."""
    return cached_folder(f"vega-{version('vl-convert-python')}", "scripts") / "bundle.js"


def page_script(kind: PageKind) -> str:
    """The page's own code as one script."""
    words = [] if kind == "theory" else [estimator_script()]
    return _inline("\n".join([*words, *map(page_file, page_modules(kind))]))


def estimator_script() -> str:
    """What the page calls each estimator, from the table of estimators."""
    words = {HEADLINE: {"label": "adjusted for luck and noise", "from_repeats": False}}
    for row in all_estimators():
        words[row.name] = {"label": row.label, "from_repeats": row.from_repeats}
    return f"const ESTIMATORS = {json.dumps(words)};"


def page_modules(kind: PageKind) -> list[str]:
    """The files that the code of a page is joined of, in order, as page/modules.txt lists them."""
    lists: dict[str, list[str]] = {}
    for line in page_file("modules.txt").splitlines():
        if line.startswith("["):
            names = lists.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            names += lists[line.removeprefix("use ")] if line.startswith("use ") else [line]
    return lists[kind]


def page_file(name: str) -> str:
    """A file of the page, with the ends of lines that browsers see."""
    text = (files("forgetmap.report") / "page" / name).read_text(encoding="utf-8")
    # Browsers do so before they hash.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _inline(script: str) -> str:
    """A script that cannot end its element early; escaped, the letter means the same."""
    return _ENDS_SCRIPT.sub(r"\\x3c", script)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
