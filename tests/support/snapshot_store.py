"""Snapshot files in normalised JSON, and differences between two of them by path."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOTS = ROOT / "tests" / "snapshots"
DIGITS = 10
"""Number of significant digits that are kept."""
TOLERANCE = 1e-7
"""Relative tolerance, since solvers may stop earlier or later on another machine."""
ZERO = 1e-12
"""Smaller numbers are rounding errors, which depend on the machine."""
MAX_TEXT = 400
"""Maximum number of characters; longer texts, such as prompts, are replaced by a hash."""
WIDTH = 140
MAX_DIFFERENCES = 20
MAX_SHOWN = 200
UNSTABLE = {"made": "DATE", "version": "VERSION", "seconds": "SECONDS"}
"""Keys whose values differ from run to run, day to day or release to release."""
MAX_WORDS = 3
"""Texts of more words are sentences, which snapshots do not hold: five screens do."""
GROUP = {"n11", "n10", "n01", "n00", "loss", "gain", "verdict", "estimators"}
"""Keys of the result of a group, of which snapshots hold the numbers in a few lines."""


def normalise(value: Any, folder: Path) -> Any:
    """Replace the parts of a value that differ between runs of the same code.

    Args:
        value: plain JSON.
        folder: folder of its inputs; replaced with links resolved or not.
    """
    return _normalise(value, (str(folder.resolve()), str(folder)))


def only_numbers(value: Any) -> Any:
    """Return JSON without sentences, with the results of groups and columns of texts shortened."""
    if isinstance(value, dict) and value.keys() >= GROUP:
        return _group(value)
    if isinstance(value, dict):
        return {key: only_numbers(item) for key, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        # Texts of items; a change shows, and its place is in the case.
        text = json.dumps(value, ensure_ascii=False)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return value if len(text) < WIDTH else f"{len(value)} texts, sha256 {digest}"
    if isinstance(value, list):
        return [only_numbers(item) for item in value]
    return "TEXT" if isinstance(value, str) and len(value.split()) > MAX_WORDS else value


def _group(group: dict[str, Any]) -> Any:
    def ends(side: str) -> list[Any]:
        return [group[side][name] for name in ("low", "high", "carried_by", "p", "q")]

    estimates = {name: pair["forgetting"]["value"] for name, pair in group["estimators"].items()}
    return {
        "name": group["name"],
        "items": group["items"],
        "cells": [group[name] for name in ("n11", "n10", "n01", "n00")],
        "verdict": group["verdict"],
        "loss": ends("loss"),
        "gain": ends("gain"),
        "drop": [group["drop"][name] for name in ("value", "low", "high")],
        "estimates": {name: value for name, value in estimates.items() if value is not None},
        "rest": {
            name: group[name]
            for name in ("undecided", "clusters", "noise_floor", "coverage", "worst_case",
                         "detectable", "answer_changes", "decides", "exchange", "confirmed")
            if group[name] is not None
        },
    }  # fmt: skip


def _normalise(value: Any, places: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: UNSTABLE[key]
            if key in UNSTABLE and isinstance(item, str | float)
            else _normalise(item, places)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_normalise(item, places) for item in value]
    if isinstance(value, float):
        return _round(value)
    return _shorten(_hide(value, places)) if isinstance(value, str) else value


def _round(value: float) -> float:
    if abs(value) < ZERO:
        return 0.0
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def _hide(text: str, places: Sequence[str]) -> str:
    """Replace the folders of this machine in a text."""
    for place in places:
        text = text.replace(f"{place}/", "").replace(place, "FOLDER")
    return text.replace(str(ROOT), "ROOT")


def _shorten(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[:60]} ... ({len(text)} characters, sha256 {digest})"


def path_of(command: str, name: str) -> Path:
    """Return the file of a snapshot."""
    return SNAPSHOTS / command / f"{name}.json"


def as_text(value: Any, indent: str = "") -> str:
    """Format JSON sorted by key, on one line if it fits."""
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    deeper = f"{indent} "
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {as_text(value[key], deeper)}"
            for key in sorted(value)
        ]
    else:
        parts = _packed([as_text(item, deeper) for item in value], WIDTH - len(deeper))
    body = f",\n{deeper}".join(parts)
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}{body}\n{indent}{last}"


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Join short elements of a list into lines, so that numbers do not take a line each."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}, {part}" if lines else part
        if lines and len(joined) <= width and "\n" not in joined and part[0] not in "{[":
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def write(path: Path, value: Any) -> None:
    """Write a snapshot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{as_text(value)}\n", encoding="utf-8")


def read(path: Path) -> Any:
    """Read a snapshot."""
    return json.loads(path.read_text(encoding="utf-8"))


def difference(old: Any, new: Any) -> str:
    """Return the first differences, one per line: JSON path, old, new; empty if there are none."""
    lines = list(_differences(old, new, "$"))
    more = len(lines) - MAX_DIFFERENCES
    shown = lines[:MAX_DIFFERENCES]
    return "\n".join([*shown, f"... and {more} more differences"] if more > 0 else shown)


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences_at(old, new, key, f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: length {len(old)} -> {len(new)}"
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif not _same(old, new):
        yield f"{path}: {_show(old)} -> {_show(new)}"


def _differences_at(old: dict[str, Any], new: dict[str, Any], key: str, path: str) -> Iterator[str]:
    if key not in new:
        yield f"{path}: {_show(old[key])} -> (missing)"
    elif key not in old:
        yield f"{path}: (missing) -> {_show(new[key])}"
    else:
        yield from _differences(old[key], new[key], path)


def _same(old: Any, new: Any) -> bool:
    if type(old) is not type(new):
        return False
    if isinstance(old, float):
        both_nan = math.isnan(old) and math.isnan(new)
        return both_nan or math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=ZERO)
    return bool(old == new)


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."
