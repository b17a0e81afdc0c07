"""A sweep, and a distance in weight space, as sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from forgetmap.merge import GroupDrift, WeightDistance, WeightDrift
from forgetmap.results import Estimate
from forgetmap.sweep import (
    ALL_ITEMS,
    Barrier,
    PairResult,
    PointGroup,
    PointResult,
    SweepResult,
    listed_points,
    point_name,
    share_with_limits,
    signed_percent,
)
from forgetmap.text import Sheet, percent, shorten

WITHIN_BUDGET = {"surely": "yes", "perhaps": "perhaps", "no": "no", None: ""}
NAME_WIDTH = 48
MAX_TENSORS = 10
LEGEND = {
    "weight": "share of the tuned model: 0 is base, 1 is tuned",
    "forgotten": "right in base, wrong here, luck included; share of all items",
    "gains kept": "share of the tuned model's gains that are right here",
    "recovered": "share of the tuned model's losses that are right here",
    "benefit": "gains kept + recovered - 100%: 0 for each parent, and for mixing their answers",
    "in budget": "forgets at most the budget, as do all smaller weights; * on the Pareto front",
}
WEIGHTS_LEGEND = (
    "moved: L2 norm of the difference divided by the norm of the base. Effective rank: exp of "
    "the entropy of the singular values of the difference; ~ estimated, within 5%."
)


def title_of(result: SweepResult) -> str:
    """Return the title of the report."""
    tuned = result.pairs[0].name if len(result.pairs) == 1 else f"{len(result.pairs)} models"
    return f"Merging {PurePath(result.base).name or result.base} with {tuned}"


def overall_barriers(pair: PairResult) -> list[Barrier]:
    """Return the barriers of all items together."""
    return [barrier for barrier in pair.barriers if barrier.group == ALL_ITEMS]


def best_merge(pair: PairResult) -> str:
    """Return the headline of a pair."""
    if pair.best.point is None:
        return "No merge helps"
    point = pair.points[pair.best.point]
    if pair.best.sure != "sure":
        return f"No merge is certified to help; best estimate: {point_name(point)}"
    high = point.benefit_all.high
    vain = ", although mixing answers would be better" if high is not None and high < 0 else ""
    return f"Best merge: {point_name(point)}{vain}"


def scope_words(result: SweepResult) -> tuple[str, str]:
    """Return the scopes of forgetting and of gains, as text."""
    return (" outside the target", " in the target") if result.targets else ("", "")


def points_sheet(pair: PairResult) -> Sheet:
    """Return one row per point; common ends of paths are listed once."""
    heads = ("merge", "weight", "accuracy", "forgotten", "95% interval", "gained", "gains kept",
             "recovered", "benefit", "in budget")  # fmt: skip
    rows = [_point(pair, index) for index in listed_points(pair)]
    return Sheet(heads, rows, spare=("gained", "accuracy", "95% interval"))


def _point(pair: PairResult, index: int) -> tuple[str, ...]:
    point = pair.points[index]
    mark = "> " if index == pair.best.point else "  "
    name = point.reused or point.method
    front = "*" if point.on_front else " "
    return (
        mark + name,
        f"{point.weight:g}",
        percent(point.accuracy),
        percent(point.forgetting.value),
        limits_only(point.forgetting_all),
        percent(point.backward_transfer.value),
        percent(point.retained.value),
        percent(point.recovered.value),
        signed_percent(point.benefit.value),
        WITHIN_BUDGET[point.within] + front,
    )


def limits_only(estimate: Estimate) -> str:
    """Format the interval of an estimate."""
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def _signed_with_limits(estimate: Estimate) -> str:
    low, high = signed_percent(estimate.low), signed_percent(estimate.high)
    return f"{signed_percent(estimate.value)} ({low} to {high})"


def barrier_words(barrier: Barrier) -> str:
    """Describe whether a path falls below the line between its ends."""
    height = barrier.height
    if height.value is None or height.low is None or height.high is None:
        return f"{barrier.method}: no barrier can be determined: {height.reason}."
    by_loss = barrier.measure == "loss"
    write = nats if by_loss else signed_percent
    what, side, other = ("loss", "above", "below") if by_loss else ("accuracy", "below", "above")
    if height.value > 0:
        kind = "a barrier" if height.low > 0 else "no significant barrier"
        value = nats(height.value) if by_loss else percent(height.value)
        size = f"{value} ({write(height.low)} to {write(height.high)})"
        return (
            f"{barrier.method}: {kind}: at weight {barrier.weight:g}, {what} is {size} {side} the "
            "line between the ends."
        )
    kind = "no barrier" if height.high < 0 else "no visible barrier"
    size = f"{write(-height.value)} ({write(-height.high)} to {write(-height.low)})"
    return (
        f"{barrier.method}: {kind}: {what} stays {other} the line between the ends, by {size} "
        f"at its nearest, at weight {barrier.weight:g}."
    )


def nats(value: float | None) -> str:
    """Format a loss."""
    return "-" if value is None else f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")


def drift_words(drift: WeightDrift) -> str:
    """Describe the weight change in one sentence."""
    total = drift.total
    rank = "" if total.rank_share is None else (
        f"; the difference of a matrix uses on average {percent(total.rank_share, 0)} of its "
        "directions"
    )  # fmt: skip
    return f"Relative weight change {percent(total.relative)}, cosine {number(total.cosine)}{rank}."


def benefits_sheet(pairs: Sequence[PairResult]) -> Sheet:
    """Return the drift and the effect of merging of each pair."""
    heads = ("tuned model", "moved", "effective\nrank share", "best merge", "forgotten",
             "gains kept", "greatest benefit")  # fmt: skip
    rows = [_benefit(pair) for pair in pairs]
    return Sheet(heads, rows, spare=("effective\nrank share",))


def _benefit(pair: PairResult) -> tuple[str, ...]:
    best: PointResult | None = None if pair.best.point is None else pair.points[pair.best.point]
    total = None if pair.drift is None else pair.drift.total
    return (
        shorten(pair.name, NAME_WIDTH),
        percent(None if total is None else total.relative),
        percent(None if total is None else total.rank_share),
        "none" if best is None else f"{best.method} {best.weight:g}",
        "-" if best is None else share_with_limits(best.forgetting_all),
        "-" if best is None else share_with_limits(best.retained_all),
        _signed_with_limits(pair.greatest_benefit),
    )


def limits_sheet(pair: PairResult) -> Sheet:
    """Return every share with its intervals, single and simultaneous."""
    names = {
        "forgotten": "forgetting", "gained": "backward_transfer", "gains kept": "retained",
        "recovered": "recovered",
    }  # fmt: skip
    heads = ["merge"]
    for name in names:
        heads += [name, "alone", "at once"]
    rows = []
    for index in listed_points(pair):
        point = pair.points[index]
        cells = [point.reused or point_name(point)]
        for name in names.values():
            alone, together = getattr(point, name), getattr(point, f"{name}_all")
            cells += [percent(alone.value), limits_only(alone), limits_only(together)]
        rows.append(tuple(cells))
    return Sheet(tuple(heads), rows)


def parents_sheet(pair: PairResult) -> Sheet:
    """Return the comparison of every merge with both parents."""
    heads = ("merge", "lost from base", "gained on base", "lost from tuned", "gained on tuned",
             "benefit, at once", "over budget, at once", "below line, at once", "loss")  # fmt: skip
    rows = []
    for index in listed_points(pair):
        point = pair.points[index]
        apart = [
            _signed_with_limits(estimate)
            for estimate in (point.benefit_all, point.over_budget, point.below_line)
        ]
        rows.append(
            (
                point.reused or point_name(point),
                share_with_limits(point.forgetting), share_with_limits(point.backward_transfer),
                share_with_limits(point.lost_from_tuned),
                share_with_limits(point.gained_on_tuned), *apart,
                "-" if point.loss is None else f"{point.loss:.3f}",
            )
        )  # fmt: skip
    return Sheet(heads, rows)


def category_sheets(pair: PairResult) -> Iterable[Sheet]:
    """Return one sheet per category, named by its first heading."""
    names = [group.name for group in pair.points[0].groups]
    heads = (
        "items",
        "accuracy",
        "forgotten",
        "95% interval",
        "gained",
        "95% interval",
        "lost",
    )
    for index, name in enumerate(names):
        rows = []
        for number in listed_points(pair):
            point = pair.points[number]
            group = point.groups[index]
            rows.append(
                (
                    point.reused or point_name(point), f"{group.n:,}", percent(group.accuracy),
                    percent(group.forgetting.value), limits_only(group.forgetting),
                    percent(group.backward_transfer.value), limits_only(group.backward_transfer),
                    _lost(group),
                )
            )  # fmt: skip
        yield Sheet((name, *heads), rows)


def _lost(group: PointGroup) -> str:
    """Return the limits of what is lost."""
    if group.loss is None or group.loss.low is None or group.loss.high is None:
        return "-"
    return f"{percent(max(group.loss.low, 0.0))} to {percent(group.loss.high)}"


def barrier_sheet(pair: PairResult) -> Sheet:
    """Return how far each path falls below the line between its ends."""
    heads = ("items", "path", "of", "largest distance below the line", "limits", "at")
    rows = []
    for barrier in pair.barriers:
        height = barrier.height
        write = signed_percent if barrier.measure == "accuracy" else nats
        low, high = write(height.low), write(height.high)
        row = (
            barrier.group,
            barrier.method,
            barrier.measure,
            write(height.value),
            f"{low} to {high}",
        )
        rows.append((*row, f"{barrier.weight:g}"))
    return Sheet(heads, rows)


def groups_sheet(name: str, groups: Sequence[GroupDrift], *, strong: int = 0) -> Sheet:
    """Return a table of groups of tensors."""
    heads = (name, "tensors", "parameters", "moved", "cosine", "effective\nrank", "rank share")
    rows = [
        (
            shorten(group.name, NAME_WIDTH),
            f"{group.tensors:,}",
            f"{group.parameters:,}",
            *_numbers(group),
            _rank(group.effective_rank),
            percent(group.rank_share),
        )
        for group in groups
    ]
    return Sheet(heads, rows, strong=strong, spare=("parameters", "tensors"))


def _numbers(distance: WeightDistance) -> tuple[str, str]:
    return percent(distance.relative, 2), number(distance.cosine)


def number(value: float | None) -> str:
    """Format a cosine; values below 1 are never rounded to 1."""
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) < 0.99995 or value in (1.0, -1.0) else f"{value:.8f}"


def _rank(value: float | None, *, estimated: bool = False) -> str:
    return "-" if value is None else f"{'~' * estimated}{value:,.1f}"


def tensors_sheet(drift: WeightDrift) -> Sheet:
    """Return the tensors that changed most."""
    heads = ("moved most", "shape", "moved", "cosine", "effective\nrank", "of")
    rows = [
        (
            shorten(tensor.name, NAME_WIDTH),
            "x".join(map(str, tensor.shape)),
            *_numbers(tensor),
            _rank(tensor.effective_rank, estimated=tensor.estimated),
            str(min(tensor.shape)) if len(tensor.shape) > 1 else "-",
        )
        for tensor in drift.tensors[:MAX_TENSORS]
    ]
    return Sheet(heads, rows, spare=("shape", "of"))
