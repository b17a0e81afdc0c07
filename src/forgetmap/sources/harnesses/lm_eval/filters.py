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
    """Names of the filters of rows, which are looked up in the order of the rows.

    Args:
        rows: all rows of the task.
        names: names of its filters in order; empty if unknown.
    """

    def __init__(self, rows: Iterable[Row], names: Sequence[str]) -> None:
        looseness: dict[bytes, list[bool]] = defaultdict(list)
        restarts, last = 0, -1
        for row in rows:
            looseness[_identity(row)].append(not _is_strict(row))
            doc_id = row.get("doc_id")
            if isinstance(doc_id, int):
                restarts += doc_id < last
                last = doc_id
        count = _usual(map(len, looseness.values()), anew=restarts > 0)
        self._names = _names(names, count)
        self._orders: dict[bytes, list[int]] = {}
        if count == 2 and restarts > MAX_BLOCKS:  # strict and loose
            strict_last = bool(names) and "strict" not in names[0]
            self._orders = {key: _order(v, strict_last=strict_last) for key, v in looseness.items()}
        self._counts: dict[bytes, int] = defaultdict(int)

    def name(self, row: Row) -> str:
        """Return the filter of the next row of this document."""
        key = _identity(row)
        index = self._counts[key]
        self._counts[key] += 1
        order = self._orders.get(key, ())
        index = order[index] if index < len(order) else index
        # More rows than filters: gets the last name, so that it is reported as a duplicate.
        return self._names[min(index, len(self._names) - 1)]


def _usual(counts: Iterable[int], *, anew: bool) -> int:
    """Return the most common number of rows per document, so that single duplicates are ignored.

    Of equally common numbers, the larger one is taken only if ids restart, as they do per filter.
    """
    often = Counter(counts)
    return max(often, key=lambda count: (often[count], count if anew else -count), default=1)


def _names(names: Sequence[str], count: int) -> Sequence[str]:
    if len(names) >= count:
        return names[:count]
    return ["none"] if count == 1 else [f"filter-{k}" for k in range(1, count + 1)]


def _order(loose: Sequence[bool], *, strict_last: bool) -> list[int]:
    """Return the index of the filter of each row of a document."""
    if len(set(loose)) == 1:
        return list(range(len(loose)))
    return [int(is_loose != strict_last) for is_loose in loose]


def _is_strict(row: Row) -> bool:
    filtered, response = _first(row.get("filtered_resps")), _first(_first(row.get("resps")))
    if not isinstance(filtered, str):
        return False
    if filtered == INVALID:
        return True
    return isinstance(response, str) and any(
        f"{words}{filtered}" in response for words in ANNOUNCED
    )


def _first(value: object) -> object:
    return value[0] if isinstance(value, list) and value else None


def _identity(row: Row) -> bytes:
    """Return a key that the rows of one document share."""
    content = repr((row.get("doc_id"), row.get("doc"))).encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=16).digest()
