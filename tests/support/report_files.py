"""Reading of a report from its file, as its page does."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def unpacked(html: str, name: str) -> Any:
    """Return the content of an element of the file."""
    found = re.search(rf'<script id="{name}"[^>]*>([A-Za-z0-9+/=]+)</script>', html)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def payload_in(html: str) -> dict[str, Any]:
    """Return the payload; its items are stored as rows, each text of an item once."""
    content = unpacked(html, "payload")
    payload: dict[str, Any] = content["payload"]
    for items, table in zip(payload["items"], content["items"], strict=True):
        rows = [[_said(row, cell) for cell in row] for row in table["rows"]]
        items["columns"] = {
            name: [row[place] for row in rows] for place, name in enumerate(table["names"])
        }
    return payload


def _said(row: list[Any], cell: Any) -> Any:
    """Return a cell; a list with a number refers to the same text in an earlier cell."""
    return row[cell[0]] if isinstance(cell, list) and cell and isinstance(cell[0], int) else cell
