"""Items of one task that share question, options and right answer: told apart by id, then by order.

Benchmarks contain such twins. Those whose id occurs on both sides are paired by id; the rest in
the order of their ids, which is counted and warned about.
"""

from __future__ import annotations

import narwhals as nw

from forgetmap.pairing.keys import Keys
from forgetmap.records import Frame, quote

Sides = tuple[Frame, Frame]
BUCKETS = 65_536


def looks_doubled(scores: Frame, keys: Keys, rows: int, *, repeats: bool) -> bool:
    """Whether joining could multiply rows beyond measure, because some key stands for very many.

    The embedded engine counts rows by a coarse hash of the key: one bucket far above the others
    gives a heavy key away at a tenth of the cost of grouping by the key itself.
    """
    by = keys.joined_on(repeats=repeats)
    keyed = keys.add_to(scores).select(*by)
    if not scores.implementation.is_duckdb() or rows < 16 * BUCKETS:
        most = keyed.group_by(*by).agg(n=nw.len()).select(nw.col("n").max()).collect().item()
        return bool(most > 1)
    bucket = f"hash({', '.join(map(quote, by))}) % {BUCKETS}"
    counted = nw.to_native(keyed).aggregate("count(*) AS n", bucket).aggregate("max(n)")
    expected = rows / BUCKETS
    return bool(counted.fetchall()[0][0] > 2 * (expected + 10 * expected**0.5))


def tell_apart(before: Frame, after: Frame, keys: Keys, *, repeats: bool) -> Sides:
    """Both sides with a column `tie` that is empty for all but twins.

    An item keeps its tie over all its repeats, also where its twin was not asked as often.
    """
    on = keys.joined_on(repeats=repeats)
    keyed = (keys.add_to(before), keys.add_to(after))
    sided = [frame.select("item", *on, side=nw.lit(side)) for side, frame in enumerate(keyed)]
    content = keys.joined_on(repeats=False)
    ties = _ties(nw.concat(sided), content, one=[*on, "side"])
    return _tied(keyed[0], ties, content), _tied(keyed[1], ties, content)


def _ties(results: Frame, content: list[str], one: list[str]) -> Frame:
    """The tie of every twin: its id where both sides have it, else its place on its side.

    Args:
        results: content, item and side of every result.
        content: the columns that twins share.
        one: the columns of which there would be one result each, if there were no twins.
    """
    doubled = results.group_by(*one).agg(n=nw.len()).filter(nw.col("n") > 1)
    twins = results.join(doubled.select(*content), on=content, how="semi")
    ids = twins.group_by(*content, "item").agg(
        first_side=nw.col("side").min(), last_side=nw.col("side").max()
    )
    # Shorter ids first, so that 9 comes before 10. Arrow has no order within a group, so the
    # places are counted through and start anew where the group does.
    group = [*content, "first_side", "last_side"]
    placed = ids.with_columns(id_length=nw.col("item").str.len_chars()).with_row_index(
        "place", order_by=[*group, "id_length", "item"]
    )
    position = nw.col("place") - nw.col("place").min().over(*group)
    tie = (
        nw.when(nw.col("first_side") != nw.col("last_side"))
        .then(nw.concat_str(nw.lit("id "), nw.col("item")))
        .otherwise(nw.concat_str(nw.lit("#"), position.cast(nw.String)))
    )
    return placed.select(*content, "item", tie=tie)


def _tied(frame: Frame, ties: Frame, content: list[str]) -> Frame:
    tied = frame.join(ties, on=[*content, "item"], how="left")
    names = [name for name in frame.collect_schema().names() if not name.startswith("key_")]
    return tied.select(*names, tie=nw.coalesce(nw.col("tie"), nw.lit("")))
