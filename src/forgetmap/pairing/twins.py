"""Items of one task that share question, options and right answer: told apart by id, then by order.

Benchmarks contain such twins. Those whose id occurs on both sides are paired by id; the rest in
the order of their ids, which is counted and warned about.
"""

from __future__ import annotations

import narwhals as nw

from forgetmap.pairing.keys import Keys
from forgetmap.records.engine import quote
from forgetmap.records.run import Frame

Sides = tuple[Frame, Frame]
BUCKETS = 65_536


def looks_doubled(scores: Frame, keys: Keys, rows: int, *, repeats: bool) -> bool:
    """Whether joining could multiply rows beyond measure, because some key stands for very many.

    The embedded engine counts rows by a coarse hash of the key: one bucket far above the others
    gives a heavy key away at a tenth of the cost of grouping by the key itself.
    """
    by = ["task", *(f"key_{name}" for name in keys.columns), *(["repeat"] if repeats else [])]
    keyed = scores.with_columns(**keys.expressions()).select(*by)
    if not scores.implementation.is_duckdb() or rows < 16 * BUCKETS:
        most = keyed.group_by(*by).agg(n=nw.len()).select(nw.col("n").max()).collect().item()
        return bool(most > 1)
    bucket = f"hash({', '.join(map(quote, by))}) % {BUCKETS}"
    counted = nw.to_native(keyed).aggregate("count(*) AS n", bucket).aggregate("max(n)")
    expected = rows / BUCKETS
    return bool(counted.fetchall()[0][0] > 2 * (expected + 10 * expected**0.5))


def tell_apart(before: Frame, after: Frame, keys: Keys, *, repeats: bool) -> Sides:
    """Both sides with a column `tie` that is empty for all but twins."""
    content = ["task", *(f"key_{name}" for name in keys.columns), *(["repeat"] if repeats else [])]
    with_keys = [frame.with_columns(**keys.expressions()) for frame in (before, after)]
    twins = nw.concat([_shared(frame, content) for frame in with_keys]).unique()
    twins = twins.with_columns(is_twin=nw.lit(1))
    marked = [frame.join(twins, on=content, how="left") for frame in with_keys]
    known = [
        frame.filter(~nw.col("is_twin").is_null()).select(*content, "item") for frame in marked
    ]
    by_id = known[0].join(known[1], on=[*content, "item"], how="inner").unique()
    by_id = by_id.with_columns(has_id=nw.lit(1))
    return _tied(marked[0], by_id, content), _tied(marked[1], by_id, content)


def _shared(frame: Frame, content: list[str]) -> Frame:
    return frame.group_by(*content).agg(n=nw.len()).filter(nw.col("n") > 1).select(*content)


def _tied(frame: Frame, by_id: Frame, content: list[str]) -> Frame:
    joined = frame.join(by_id, on=[*content, "item"], how="left").with_columns(
        id_length=nw.col("item").str.len_chars(),
        is_left=nw.when(nw.col("has_id").is_null()).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    # Shorter ids first, so that 9 comes before 10.
    place = nw.col("is_left").cum_sum().over(*content, order_by=["id_length", "item"])
    tie = (
        nw.when(nw.col("is_twin").is_null()).then(nw.lit(""))
        .when(~nw.col("has_id").is_null()).then(nw.concat_str(nw.lit("id "), nw.col("item")))
        .otherwise(nw.concat_str(nw.lit("#"), place.cast(nw.String)))
    )  # fmt: skip
    tied = joined.with_columns(tie=tie)
    names = [name for name in frame.collect_schema().names() if name != "is_twin"]
    return tied.select(*(name for name in names if not name.startswith("key_")), "tie")
