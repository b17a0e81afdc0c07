"""A Jupyter notebook as a page of Markdown, outputs included."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ANSI = re.compile(r"\x1b\[[0-9;]*m")
LONGEST_OUTPUT = 60
"""Maximum number of lines of an output."""


def notebook_page(path: Path) -> str:
    """Return the cells of a notebook as Markdown."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"]).rstrip()
    if cell["cell_type"] == "markdown":
        yield source
        return
    if source.startswith("!"):
        yield f"```sh\n{re.sub(r'^!', '', source, flags=re.MULTILINE)}\n```"
    else:
        yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield f'<div class="cell-output" markdown="0">\n{_output(output)}\n</div>'


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _preformatted("".join(output["text"]))
    data = output["data"]
    if "image/svg+xml" in data:
        encoded = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f'<img alt="figure" src="data:image/svg+xml;base64,{encoded}">'
    if "image/png" in data:
        return (
            f'<img alt="figure" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
        )
    if "text/html" in data:
        return _without_blank_lines("".join(data["text/html"]))
    return _preformatted("".join(data["text/plain"]))


def _preformatted(text: str) -> str:
    lines = ANSI.sub("", text).rstrip().splitlines()
    if len(lines) > LONGEST_OUTPUT:
        lines = [*lines[:LONGEST_OUTPUT], "..."]
    escaped = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;")
    # A blank line would end the HTML block.
    return "<pre><code>" + escaped.replace("\n\n", "\n&#8203;\n") + "</code></pre>"


def _without_blank_lines(html: str) -> str:
    return re.sub(r"\n\s*\n", "\n", html)
