"""Filter names for lm-eval 0.4.0 to 0.4.6, whose rows do not name their filter.

Rows are written filter by filter, so the k-th row of a document belongs to the k-th filter. If the
rows were reordered, a strict filter is recognised by what it extracts: nothing, or the text after
words such as "answer is".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

Row = Mapping[str, Any]
INVALID = "[invalid]"
"""Result of lm-eval's extraction if there is no match."""
ANNOUNCED = ("#### ", "answer is ")
MAX_BLOCKS = 64
"""Maximum number of times that ids restart in the order of the harness: filters x processes."""


class Filters:
    """Names of the filters of rows (`names` in order, if known), looked up in the order of rows."""

    def __init__(self, rows: Iterable[Row], names: Sequence[str]) -> None:
        are_loose: dict[bytes, list[bool]] = defaultdict(list)
        restarts, last = 0, -1
        for row in rows:
            are_loose[_identity(row)].append(not _is_strict(row))
            doc_id = row.get("doc_id")
            if isinstance(doc_id, int):
                restarts += doc_id < last
                last = doc_id
        # The most common number of rows per document, so that single duplicates are ignored. Of
        # equally common ones, the larger is taken only if ids restart, as they do per filter.
        often, sign = Counter(map(len, are_loose.values())), 1 if restarts else -1
        count = max(often, key=lambda count: (often[count], sign * count), default=1)
        numbered = ["none"] if count == 1 else [f"filter-{k}" for k in range(1, count + 1)]
        self._names = names[:count] if len(names) >= count else numbered
        self._places: dict[bytes, list[int]] = {}
        if count == 2 and restarts > MAX_BLOCKS:  # strict and loose
            is_strict_last = bool(names) and "strict" not in names[0]
            for key, loose in are_loose.items():
                if len(set(loose)) > 1:
                    self._places[key] = [int(each != is_strict_last) for each in loose]
        self._counts: dict[bytes, int] = defaultdict(int)

    def name(self, row: Row) -> str:
        """Return the filter of the next row of this document."""
        key = _identity(row)
        place, places = self._counts[key], self._places.get(key, ())
        self._counts[key] += 1
        place = places[place] if place < len(places) else place
        # More rows than filters: gets the last name, so that it is reported as a duplicate.
        return self._names[min(place, len(self._names) - 1)]


def _is_strict(row: Row) -> bool:
    filtered, response = _first(row.get("filtered_resps")), _first(_first(row.get("resps")))
    if not isinstance(filtered, str) or filtered == INVALID:
        return isinstance(filtered, str)
    said = response if isinstance(response, str) else ""
    return any(f"{words}{filtered}" in said for words in ANNOUNCED)


def _first(value: object) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _identity(row: Row) -> bytes:
    """Return a key that the rows of one document share."""
    content = repr((row.get("doc_id"), row.get("doc"))).encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=16).digest()
