"""A sweep, and a distance in weight space, as lines and tables."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.merge import GroupDrift, WeightDistance, WeightDrift
from forgetmap.results import Estimate
from forgetmap.sweep.analyse import ALL
from forgetmap.sweep.result import Barrier, PairResult, PointResult, SweepResult
from forgetmap.sweep.words import limits
from forgetmap.text import Blocks, Line, Sheet, percent, shorten

MOST_TENSORS = 10
WITHIN = {"surely": "yes", "perhaps": "perhaps", "no": "no", None: ""}
NAME_WIDTH = 48
LEGEND = {
    "weight": "share of the tuned model: 0 is base, 1 is tuned",
    "forgotten": "right in base, wrong here, luck included; share of all items",
    "gains kept": "of what the tuned model gained, the share right here",
    "recovered": "of what the tuned model forgot, the share right here",
    "benefit": "gains kept + recovered - 100%: 0 for each parent, and for mixing their answers",
    "in budget": "forgets at most the budget, for all merges at once; * on the Pareto front",
}


def tell_sweep(result: SweepResult) -> Blocks:
    """What may be concluded, the points, the paths, the weights."""
    blocks: Blocks = []
    for pair in result.pairs:
        blocks += [*_pair(result, pair), Line()]
    blocks += [Line(text, "faint", f"{name:<11}") for name, text in LEGEND.items()]
    blocks += [Line(), Line(result.rule, "faint")]
    if len(result.pairs) > 1:
        blocks += [Line(), benefits(result.pairs), Line(result.correlation.words)]
    return blocks


def _pair(result: SweepResult, pair: PairResult) -> Blocks:
    target = " outside the target" if result.targets else ""
    inside = " in the target" if result.targets else ""
    blocks: Blocks = [
        Line(pair.best.words, "strong"),
        Line(
            f"{pair.tuned} forgot {pair.lost:,} items of {result.base}{target} and gained "
            f"{pair.gained:,}{inside}; {pair.items:,} items in all."
        ),
        Line(),
        points_sheet(pair),
        Line(),
    ]
    blocks += [Line(barrier_words(each)) for each in pair.barriers if each.group == ALL]
    if pair.drift is not None:
        blocks.append(Line(drift_words(pair.drift)))
    return [*blocks, *(Line(text, "warning", "!") for text in pair.notices)]


def points_sheet(pair: PairResult) -> Sheet:
    """One row per point; ends that paths share stand once."""
    heads = ("merge", "weight", "accuracy", "forgotten", "95% limits", "gained", "gains kept",
             "recovered", "benefit", "in budget")  # fmt: skip
    rows = [_point(pair, place) for place in told(pair)]
    return Sheet(heads, rows, spare=("gained", "accuracy", "95% limits"))


def told(pair: PairResult) -> list[int]:
    """Places of the points, base first and tuned last, each parent once."""
    merges = [place for place, point in enumerate(pair.points) if point.reused is None]
    ends = {point.reused: place for place, point in enumerate(pair.points) if point.reused}
    return [*_known(ends.get("base")), *merges, *_known(ends.get("tuned"))]


def _known(place: int | None) -> list[int]:
    return [] if place is None else [place]


def _point(pair: PairResult, place: int) -> tuple[str, ...]:
    point = pair.points[place]
    mark = "> " if place == pair.best.point else "  "
    name = point.reused or point.method
    front = "*" if point.on_front else " "
    return (
        mark + name,
        f"{point.weight:g}",
        percent(point.accuracy),
        percent(point.forgetting.value),
        span(point.forgetting_all),
        percent(point.backward_transfer.value),
        percent(point.retained.value),
        percent(point.recovered.value),
        signed(point.benefit.value),
        WITHIN[point.within] + front,
    )


def span(each: Estimate) -> str:
    """Limits only."""
    if each.low is None or each.high is None:
        return "-"
    return f"{percent(each.low)} to {percent(each.high)}"


def signed(value: float | None) -> str:
    """A difference of shares in points."""
    if value is None:
        return "-"
    return f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}") + "%"


def barrier_words(barrier: Barrier) -> str:
    """Whether a path sinks below the line between its ends."""
    height = barrier.height
    if height.value is None or height.low is None or height.high is None:
        return f"{barrier.method}: no barrier can be told: {height.reason}."
    by_loss = barrier.measure == "loss"
    shown = nats if by_loss else signed
    what, side, other = ("loss", "above", "below") if by_loss else ("accuracy", "below", "above")
    if height.value > 0:
        kind = "a barrier" if height.low > 0 else "no sure barrier"
        size = f"{shown(height.value)} ({shown(height.low)} to {shown(height.high)})"
        return (
            f"{barrier.method}: {kind}: at {barrier.weight:g} {what} lies {size} {side} the line "
            "between the ends."
        )
    kind = "no barrier" if height.high < 0 else "no barrier seen"
    size = f"{shown(-height.value)} ({shown(-height.high)} to {shown(-height.low)})"
    return (
        f"{barrier.method}: {kind}: {what} stays {other} the line between the ends, by {size} "
        f"where it is nearest, at {barrier.weight:g}."
    )


def nats(value: float | None) -> str:
    """A loss."""
    return "-" if value is None else f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")


def drift_words(drift: WeightDrift) -> str:
    """How far the weights moved, in one sentence."""
    total = drift.total
    rank = "" if total.rank_share is None else (
        f"; the difference of a matrix has on average {percent(total.rank_share, 0)} of the "
        "directions it could have"
    )  # fmt: skip
    return (
        f"Weights moved by {percent(total.relative)} of their length, cosine {number(total.cosine)}"
        f"{rank}."
    )


def benefits(pairs: Sequence[PairResult]) -> Sheet:
    """Drift beside what merging did."""
    heads = ("tuned model", "moved", "effective\nrank share", "best merge", "forgotten",
             "gains kept", "greatest benefit")  # fmt: skip
    rows = [_benefit(pair) for pair in pairs]
    return Sheet(heads, rows, spare=("effective\nrank share",))


def _benefit(pair: PairResult) -> tuple[str, ...]:
    best: PointResult | None = None if pair.best.point is None else pair.points[pair.best.point]
    total = None if pair.drift is None else pair.drift.total
    most = pair.greatest_benefit
    return (
        shorten(pair.name, NAME_WIDTH),
        percent(None if total is None else total.relative),
        percent(None if total is None else total.rank_share),
        "none" if best is None else f"{best.method} {best.weight:g}",
        "-" if best is None else limits(best.forgetting_all),
        "-" if best is None else limits(best.retained_all),
        f"{signed(most.value)} ({signed(most.low)} to {signed(most.high)})",
    )


def tell_weights(drift: WeightDrift) -> Blocks:
    """A distance in weight space: all, kinds, layers, and the tensors that moved most."""
    blocks: Blocks = [
        Line(f"{drift.tuned} against {drift.base}: {drift_words(drift)}", "strong"),
        Line(),
        groups_sheet("", [drift.total, *drift.kinds], strong=1),
    ]
    if drift.layers:
        blocks += [Line(), groups_sheet("", drift.layers)]
    heads = ("moved most", "shape", "moved", "cosine", "effective\nrank", "of")
    rows = [
        (
            shorten(each.name, NAME_WIDTH),
            "x".join(map(str, each.shape)),
            *_numbers(each),
            _rank(each.effective_rank, estimated=each.estimated),
            str(min(each.shape)) if len(each.shape) > 1 else "-",
        )
        for each in drift.tensors[:MOST_TENSORS]
    ]
    blocks += [Line(), Sheet(heads, rows, spare=("shape", "of")), Line()]
    if drift.unchanged:
        blocks.append(Line(f"{drift.unchanged:,} tensors are the same, bit for bit."))
    blocks += [Line(text, "warning", "!") for text in drift.notices]
    return [*blocks, Line(WEIGHTS_LEGEND, "faint")]


WEIGHTS_LEGEND = (
    "moved: length (L2) of the difference over the length of the base. Effective rank: exp of the "
    "entropy of the difference's singular values, so as many directions as it really has; ~ "
    "estimated, within 5%."
)


def groups_sheet(name: str, groups: Sequence[GroupDrift], *, strong: int = 0) -> Sheet:
    """Groups of tensors."""
    heads = (name, "tensors", "parameters", "moved", "cosine", "effective\nrank", "rank share")
    rows = [
        (
            shorten(each.name, NAME_WIDTH),
            f"{each.tensors:,}",
            f"{each.parameters:,}",
            *_numbers(each),
            _rank(each.effective_rank),
            percent(each.rank_share),
        )
        for each in groups
    ]
    return Sheet(heads, rows, strong=strong, spare=("parameters", "tensors"))


def _numbers(each: WeightDistance) -> tuple[str, str]:
    return percent(each.relative, 2), number(each.cosine)


def number(value: float | None) -> str:
    """A cosine; never a false 1."""
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) < 0.99995 or value in (1.0, -1.0) else f"{value:.8f}"


def _rank(value: float | None, *, estimated: bool = False) -> str:
    return "-" if value is None else f"{'~' * estimated}{value:,.1f}"
