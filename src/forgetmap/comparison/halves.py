"""Halves of the items, by their content or id: never by their answers, and equal in every engine.

No hash is the same in all engines, so content hashes, which are our own, are divided by their
parity, and ids by one of their characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from xxhash import xxh3_64_intdigest

from forgetmap.comparison.clusters import NAMED
from forgetmap.comparison.labels import is_none
from forgetmap.pairing import Pairs
from forgetmap.records import Frame
from forgetmap.stats import Integers

EVEN = 0.2
"""Share of the most frequent character below which a position divides ids evenly enough."""
IDS_READ = 2_000
MAX_SUFFIX = 40


def half_columns(pairs: Pairs, suffix: int) -> dict[str, nw.Expr]:
    """Return columns that divide items into halves by their key: their content, else their id.

    Args:
        pairs: both sides.
        suffix: from `id_suffix`: which character of an id to use, counted from the end.
    """
    columns = {}
    if "key_question_hash" in pairs.item_columns:
        key = nw.col("key_question_hash")
        # pandas has no remainder of Arrow integers.
        if pairs.frame.implementation.is_pandas_like():
            columns["half_hash"] = character(key.cast(nw.String), 1).is_in(
                ["1", "3", "5", "7", "9"]
            )
        else:
            columns["half_hash"] = key % 2 != 0
    if "key_item" in pairs.item_columns:
        columns["half_text"] = character(nw.col("key_item"), suffix)
    return columns


def character(text: nw.Expr, suffix: int) -> nw.Expr:
    """Return one character of a text, counted from its end; hashes differ between engines."""
    return text.str.tail(suffix).str.head(1)


def id_suffix(scores: Frame, column: str = "item") -> int:
    """Return the position, from the end, of a character in which ids differ."""
    read = scores.select(nw.col(column).cast(nw.String)).head(IDS_READ).collect().to_arrow()
    texts = [text for text in read[column].to_pylist() if text]

    def largest(suffix: int) -> float:
        characters = Counter(text[-suffix] if len(text) >= suffix else "" for text in texts)
        return max(characters.values()) / len(texts)

    shares = {suffix: largest(suffix) for suffix in range(1, MAX_SUFFIX + 1)} if texts else {1: 0.0}
    # The first that is good enough, because engines return other rows first.
    enough = (suffix for suffix, share in shares.items() if share <= EVEN)
    return next(enough, min(shares, key=lambda suffix: shares[suffix]))


def halve(hashes: Sequence[Any], texts: Sequence[Any]) -> Integers:
    """Return 0 or 1 for each kind; distinct texts are sorted by their hash and alternate."""
    known = sorted({text for text in texts if not is_none(text)}, key=_text_order)
    of_text = {text: index % 2 for index, text in enumerate(known)}
    return np.array(
        [
            of_text.get(text, 0) ^ (0 if is_none(value) else int(bool(value)))
            for value, text in zip(hashes, texts, strict=True)
        ],
        np.int64,
    )


def _text_order(text: str) -> int:
    return int(xxh3_64_intdigest(text.encode()))


def half_text(pairs: Pairs, facts: Mapping[str, nw.Expr], suffix: int) -> nw.Expr:
    """Return a character of an item by which it is in a half, the same for a whole cluster."""
    own = [name for name in ("key_item", "item") if name in pairs.item_columns]
    text = character(nw.col(own[0]), suffix) if own else nw.lit("")
    if "digit" in facts:
        text = nw.coalesce(nw.col("digit"), text)
    if "cluster" in facts:
        name = nw.col("cluster")
        named = ~name.is_null() & name.str.starts_with(NAMED)
        text = nw.when(named).then(character(name, suffix)).otherwise(text)
    return text
