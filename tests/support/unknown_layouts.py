"""Files of unknown layout with four items: right on both sides, only before, only after, never."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forgetmap as fm

RIGHT = {"before": (True, True, False, False), "after": (True, False, True, False)}
QUESTIONS = [f"What is {n} plus {n}?" for n in range(4)]
Rows = list[dict[str, Any]]


def rows(side: str, make: Callable[[int, bool], dict[str, Any]]) -> Rows:
    return [make(n, right) for n, right in enumerate(RIGHT[side])]


def write(folder: Path, side: str, content: object, ending: str = "json") -> Path:
    path = folder / f"{side}.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in content))  # type: ignore[attr-defined]
    elif ending in {"csv", "tsv"}:
        assert isinstance(content, list)
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(content[0]), delimiter="\t" if ending == "tsv" else ",")
        writer.writeheader()
        writer.writerows(content)
        path.write_text(text.getvalue(), newline="")
    else:
        path.write_text(json.dumps(content))
    return path


def cells(before: object, after: object, **options: Any) -> tuple[int, int, int, int]:
    total = fm.compare(before, after, **options).result.total
    return total.n11, total.n10, total.n01, total.n00
