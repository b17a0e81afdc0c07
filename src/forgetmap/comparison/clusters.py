"""Clusters: items that are not independent, by their recorded cluster or their content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import narwhals as nw

from forgetmap.errors import PairingError
from forgetmap.pairing import SIDES, Pairs, Side, scored_pair, side_value
from forgetmap.records import CONTENT_HASHES


def has_cluster_names(pairs: Pairs) -> bool:
    """Return whether a side names clusters of items."""
    return any(f"cluster_{side}" in pairs.columns for side in SIDES)


def records_clusters(sides: Sequence[Side]) -> bool:
    """Return whether a side names a cluster: run folders have the column, often empty."""
    frames = [side.measured.scores for side in sides]
    return any(
        bool(frame.select((~nw.col("cluster").is_null()).any()).collect().item())
        for frame in frames
        if "cluster" in frame.collect_schema().names()
    )


def without_clusters(pairs: Pairs) -> Pairs:
    """Return pairs whose column of clusters is not looked at."""
    return replace(pairs, columns=pairs.columns - {f"cluster_{side}" for side in SIDES})


NAMED = "named "
"""Begins the text of a recorded cluster; it sorts after `content`."""


def cluster_text(pairs: Pairs, *, by_content: bool) -> nw.Expr:
    """Return the cluster of a pair: as recorded, else its content; null if it is alone.

    Of several answers to an item the largest text counts: that of a recorded cluster, also if only
    one side recorded it.
    """
    nothing = nw.lit(None, dtype=nw.String)
    content = nothing
    if by_content and (hashes := content_columns(pairs)):
        parts = [nw.coalesce(nw.col(name).cast(nw.String), nw.lit("")) for name in hashes]
        text = nw.concat_str(nw.lit("content"), *parts, separator="\x1f")
        content = nw.when(has_content(hashes[0])).then(text)
    if not has_cluster_names(pairs):
        return content
    name = side_value("cluster", pairs.columns).cast(nw.String)
    named = nw.concat_str(nw.lit(NAMED), name)
    return nw.when(name.is_null()).then(content).otherwise(named)


def content_columns(pairs: Pairs) -> list[str]:
    """Return the columns of the content of an item, its question first."""
    return [
        column
        for name in CONTENT_HASHES
        for column in (f"{name}_before", name)
        if column in pairs.columns
    ]


def has_content(column: str) -> nw.Expr:
    """Return whether the content of an item is recorded; keys without it are 0."""
    return ~nw.col(column).is_null() & (nw.col(column) != 0)


def refuse_split_items(pairs: Pairs) -> None:
    """Refuse items that are in two clusters: their intervals would mean nothing.

    Raises:
        PairingError: an item is in two clusters.
    """
    names = [f"cluster_{side}" for side in SIDES if f"cluster_{side}" in pairs.columns]
    item = ("task", *pairs.item_columns)
    both = nw.concat([
        pairs.frame.filter(scored_pair()).select(*item, cluster=nw.col(name)) for name in names
    ])  # fmt: skip
    ends = both.group_by(*item).agg(
        nw.col("cluster").min().alias("first"), nw.col("cluster").max().alias("last")
    )
    split = ends.filter(nw.col("first") != nw.col("last")).select("task", "first", "last")
    rows = split.head(1).collect().rows(named=True)
    if rows:
        row = rows[0]
        raise PairingError(
            f"an item of task {row['task']!r} is in two clusters, {row['first']!r} and "
            f"{row['last']!r}",
            hint="give all results of an item the same cluster, on both sides.",
        )
