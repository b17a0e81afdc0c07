"""Small tables and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

import forgetmap as fm
from forgetmap.records import RunInfo


def table(scores: Sequence[float | None], *, task: str = "t", **columns: Sequence[Any]) -> pa.Table:
    """Return a table of one task; items are numbered unless `item` is given."""
    given = {"task": [task] * len(scores), "item": [str(n) for n in range(len(scores))]}
    kinds = {"outcome": pa.string(), "category": pa.string(), "tags": pa.string()}
    extra = {name: pa.array(cells, kinds.get(name)) for name, cells in columns.items()}
    return pa.table({**given, "score": pa.array(scores, pa.float64()), **extra})


def run(results: pa.Table, name: str = "run", **info: Any) -> fm.Run:
    """Return a run of a table, with a manifest."""
    opened = fm.open_run(results, name=name)
    return replace(opened, info=RunInfo(**info))


def codes(comparison: fm.Comparison) -> list[str]:
    """Return the codes of all warnings, except that about few items, which all runs here have."""
    found = [notice.code for notice in comparison.result.pairing.warnings]
    return [code for code in found if code != "tiny"]


def message(comparison: fm.Comparison, code: str) -> str:
    """Return the message of the only warning with this code."""
    (found,) = (each for each in comparison.result.pairing.warnings if each.code == code)
    return found.message
