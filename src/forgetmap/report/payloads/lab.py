"""Results of the lab as sentences and tables: methods, repair, and merging under drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from forgetmap.lab import (
    LabDifference,
    LabResult,
    LabRun,
    MergeDriftResult,
    MergeLevel,
    MethodResult,
    RepairResult,
    RepairSummary,
)
from forgetmap.results import Estimate
from forgetmap.text import Sheet, listed, percent, share, signed

BASELINE = "sft"
Part = Literal["near", "far"]
PARTS: tuple[Part, ...] = ("near", "far")
BASELINES = ("best learning rate", "equal compute")
NEEDS = {"nothing": "no old data", "prompts": "old prompts", "examples": "old examples"}
REPAIRS = {"targeted": "targeted replay", "random": "random replay", "none": "new examples alone"}
LEGEND = {
    "needs": "old data the method needs: none, prompts without answers, or examples with answers",
    "new task": "share of the new examples known at the end",
    "lost": "share of the items known by the start model that are wrong after training",
    "near, far": "near: the relations of the new task with other subjects; far: other categories",
    "compute": "tokens through the model, a backward pass counts twice; plain fine-tuning is 1",
    "*": "on the Pareto front: no other method loses less with as little compute",
}
DIFFERENCE_LEGEND = (
    "Points: share lost by the method minus share lost by plain fine-tuning, by seed; below 0 "
    "the method forgets less."
)
KL_LEGEND = (
    "KL in nats per answer token. Bound: upper bound of the theory for the loss, "
    "sqrt(KL(model||start) / 2) on old questions. Peak: the largest share lost at any look."
)
REPAIR_LEGEND = {
    "recovered": "share of the forgotten items that are right again",
    "new task": "share of the new examples known after the repair, and its change",
}
MERGE_LEGEND = {
    "trained on": "share of the new examples used for training",
    "moved": "norm of the weight change divided by the norm of the start model",
    "undone": (
        "share of the loss undone by the best merge with 95% of the gain, on items that did not "
        "choose it"
    ),
    "at": "share of the trained model in that merge",
}


class KeyNumber(NamedTuple):
    """The key number of a page, with its description."""

    figure: str
    words: str


def lab_title(result: LabResult) -> str:
    """Return the title of the report."""
    return f"{len(result.methods)} training methods compared: {result.recipe}"


def repair_title(result: RepairResult) -> str:
    """Return the title of the report."""
    return f"Repair by replay: {result.recipe}"


def merge_drift_title(result: MergeDriftResult) -> str:
    """Return the title of the report."""
    return f"Merging under drift: {result.recipe}"


def plain_of(result: LabResult) -> MethodResult | None:
    """Return plain fine-tuning, if it is among the methods."""
    return next((method for method in result.methods if method.method == BASELINE), None)


def lab_number(result: LabResult) -> KeyNumber:
    """Return the loss of the best method, compared with plain fine-tuning."""
    best, plain = result.methods[0], plain_of(result)
    against = ""
    if plain is not None and plain is not best:
        against = f", compared with {share(plain.lost_near.value)} by {plain.title}"
    return KeyNumber(
        share(best.lost_near.value),
        f"of the known near items lost by {best.title}{_limits_words(best.lost_near)}{against}",
    )


def repair_number(result: RepairResult) -> KeyNumber:
    """Return the effect of targeting."""
    gain = result.targeted_less_random
    return KeyNumber(
        _points(gain.value),
        "points more recovered by targeted than by random replay, in the targeted domains"
        f"{_point_limits(gain)}",
    )


def merge_drift_number(result: MergeDriftResult) -> KeyNumber:
    """Return how much more is undone if drift is small."""
    return KeyNumber(
        share(result.small.value),
        f"of the loss undone with small drift{_limits_words(result.small)}; "
        f"{share(result.large.value)} with large drift{_limits_words(result.large)}",
    )


def _limits_words(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({share(estimate.low)} to {share(estimate.high)})"


def _point_limits(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({_points(estimate.low)} to {_points(estimate.high)})"


def _points(value: float | None) -> str:
    return "-" if value is None else signed(100 * value, 1)


def limits_of(estimate: Estimate) -> str:
    """Format the interval of a share."""
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{share(estimate.low)} to {share(estimate.high)}"


def methods_sheet(result: LabResult) -> Sheet:
    """Return one row per method at its best setting, least forgetting first."""
    heads = ("method", "needs", "new task", "lost near", "95% near", "lost far", "95% far",
             "compute", "reached target")  # fmt: skip
    rows = [
        (
            f"{method.title}{' *' if method.is_efficient else ''}",
            NEEDS.get(method.needs, method.needs),
            share(method.score.value),
            share(method.lost_near.value),
            limits_of(method.lost_near),
            share(method.lost_far.value),
            limits_of(method.lost_far),
            f"{method.compute:.2g}x",
            _came_there(method),
        )
        for method in result.methods
    ]
    return Sheet(heads, rows, spare=("reached target", "95% far", "95% near", "needs"))


def _came_there(method: MethodResult) -> str:
    diverged = f", {method.diverged} diverged" if method.diverged else ""
    return f"{method.reached} of {method.seeds}{diverged}"


def settings_sheet(result: LabResult) -> Sheet:
    """Return the settings that were chosen on the development seed."""
    heads = ("method", "learning rate", "strength", "steps", "runs tried")
    rows = [
        (
            method.title,
            f"{method.rate:g}",
            f"{method.strength_of} {method.strength:g}" if method.strength_of else "-",
            f"{method.steps:,.0f}",
            str(sum(run.method == method.method for run in result.runs)),
        )
        for method in result.methods
    ]
    return Sheet(heads, rows)


def differences_sheets(result: LabResult, *, ratios: bool = False) -> list[Sheet]:
    """Return the differences from both baselines, near and far; the first heading tells which.

    Args:
        result: the methods.
        ratios: also add the ratio of losses, for which a terminal has no room.
    """
    return [_differences_sheet(result, part, ratios=ratios) for part in PARTS]


def _differences_sheet(result: LabResult, part: str, *, ratios: bool) -> Sheet:
    heads = (f"{part} items, points", "best\nrate", "95% interval", "ratio", "equal\ncompute",
             "95% interval ", "ratio ")  # fmt: skip
    rows = []
    for method in result.methods:
        own = {row.baseline: row for row in method.differences if row.part == part}
        if own:
            best, equal = (_difference(own.get(name)) for name in BASELINES)
            rows.append((method.title, *best, *equal))
    sheet = Sheet(heads, rows)
    return sheet if ratios else _without(sheet, ("ratio", "ratio "))


def _without(sheet: Sheet, left_out: Sequence[str]) -> Sheet:
    places = [n for n, head in enumerate(sheet.heads) if head not in left_out]
    heads = tuple(sheet.heads[n] for n in places)
    return Sheet(heads, [tuple(row[n] for n in places) for row in sheet.rows])


def _difference(row: LabDifference | None) -> tuple[str, str, str]:
    if row is None:
        return ("-", "-", "-")
    estimate = row.difference
    ends = "-" if estimate.low is None else f"{_points(estimate.low)} to {_points(estimate.high)}"
    return _points(estimate.value), ends, "-" if row.ratio is None else f"{row.ratio:.2f}"


def lab_category_sheets(result: LabResult) -> Iterator[Sheet]:
    """Yield forgotten and gained shares by category; the first heading tells which."""
    names = [(row.part, row.category) for row in result.methods[0].categories]
    for direction, word in (("forgetting", "forgotten"), ("backward_transfer", "gained")):
        rows = []
        for index, (part, category) in enumerate(names):
            cells = [
                share(getattr(method.categories[index], direction).value)
                for method in result.methods
            ]
            rows.append((f"{category} ({part})", *cells))
        heads = (f"{word}, of all items", *(method.title for method in result.methods))
        yield Sheet(heads, rows, whole_heads=True)


def divergence_sheet(result: LabResult) -> Sheet:
    """Return KL in both directions on old and new, the bound of the theory, and the early peak."""
    heads = ("method", "old KL(start||model)", "old KL(model||start)", "new KL(start||model)",
             "new KL(model||start)", "bound", "lost near", "peak", "at step")  # fmt: skip
    rows = [
        (
            method.title,
            *(f"{value:.3g}" for value in (method.kl.old_forward, method.kl.old_reverse,
                                           method.kl.new_forward, method.kl.new_reverse)),
            share(method.bound), share(method.lost_near.value), share(method.peak),
            "-" if method.peak_step is None else f"{method.peak_step:.0f}",
        )
        for method in result.methods
    ]  # fmt: skip
    return Sheet(heads, rows)


def runs_sheet(result: LabResult) -> Sheet:
    """Return every training run."""
    heads = ("method", "strength", "learning rate", "seed", "new task", "lost near", "lost far",
             "steps", "compute", "reached target")  # fmt: skip
    return Sheet(heads, [_run(run) for run in result.runs])


def _run(run: LabRun) -> tuple[str, ...]:
    return (
        run.method, f"{run.strength:g}", f"{run.rate:g}", str(run.seed), share(run.score),
        share(run.lost("near")), share(run.lost("far")), f"{run.steps:,}", f"{run.compute:,}",
        "diverged" if run.diverged else "yes" if run.reached else "no",
    )  # fmt: skip


def lab_facts(result: LabResult) -> dict[str, str]:
    """Return the facts on controls and measurements."""
    tried = len(result.runs)
    return {
        "Same start": (
            f"All methods start from one model of {result.parameters:,} parameters, which knows "
            f"{share(result.start_score)} of the new examples."
        ),
        "Matched score": (
            f"Training stops when the model knows {percent(result.target, 0)} of the new "
            "examples, so that no method forgets less by learning less."
        ),
        "Settings": (
            "Learning rate and strength of every method were chosen on seed "
            f"{result.development_seed}, which is not reported; {tried:,} runs in total."
        ),
        "Seeds": (
            f"Numbers are means over {_seeds(result.seeds)}, with 95% t intervals over seeds; "
            "differences are computed by seed."
        ),
        "Items": (
            f"No method was trained on evaluation items. Near: {result.items_near:,} items with "
            f"the relations of the new task and other subjects; {result.known_near:,} known at "
            f"the start. Far: {result.items_far:,} items of other categories; "
            f"{result.known_far:,} known."
        ),
        "Baselines": (
            "Plain fine-tuning at its best learning rate, and at the best rate it can afford "
            "with the compute of the method."
        ),
    }


def _seeds(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seeds ({', '.join(map(str, seeds))})" if len(seeds) != 1 else "one seed"


def repair_sheet(result: RepairResult) -> Sheet:
    """Return one row per kind of replay."""
    heads = ("training data", "recovered, targeted", "95% targeted", "recovered, others",
             "95% others", "new task", "change")  # fmt: skip
    rows = [_repair(summary) for summary in result.summaries]
    return Sheet(heads, rows, spare=("95% others", "95% targeted"))


def _repair(summary: RepairSummary) -> tuple[str, ...]:
    return (
        REPAIRS.get(summary.kind, summary.kind),
        share(summary.recovered_targeted.value), limits_of(summary.recovered_targeted),
        share(summary.recovered_untouched.value), limits_of(summary.recovered_untouched),
        share(summary.score.value), _points(summary.score_change.value),
    )  # fmt: skip


def repair_runs_sheet(result: RepairResult) -> Sheet:
    """Return every seed of every kind."""
    heads = ("training data", "seed", "rows", "right again, targeted", "right again, others",
             "still lost, targeted", "still lost, others", "new task", "before")  # fmt: skip
    rows = [
        (
            REPAIRS.get(run.kind, run.kind), str(run.seed), f"{run.rows:,}",
            f"{run.recovered_targeted:,} of {run.forgotten_targeted:,}",
            f"{run.recovered_untouched:,} of {run.forgotten_untouched:,}",
            share(run.lost_targeted), share(run.lost_untouched), share(run.score),
            share(run.score_before),
        )
        for run in result.runs
    ]  # fmt: skip
    return Sheet(heads, rows)


def repair_sentences(result: RepairResult) -> list[str]:
    """Return sentences on the intervals."""
    return [
        (
            "Targeted minus random replay, recovered share: "
            f"{_points(result.targeted_less_random.value)} "
            f"points{_point_limits(result.targeted_less_random)} in the targeted domains, "
            f"{_points(result.untouched_difference.value)}"
            f"{_point_limits(result.untouched_difference)} in the others."
        ),
        (
            f"Training lost {share(result.lost_before.value)}{_limits_words(result.lost_before)} "
            f"of the known items; most in {listed(result.domains)}."
        ),
    ]


def repair_facts(result: RepairResult) -> dict[str, str]:
    """Return the facts on controls and measurements."""
    return {
        "Start": (
            "The model that forgot, for each seed; it is trained further, with its new examples "
            "included."
        ),
        "Same size": (
            "For every seed, targeted and random replay have the same number of rows, at most "
            f"{result.rows:,}, written by the model before it forgot; no row contains an "
            "evaluation item."
        ),
        "Domains": (
            "The targeted domains are those with the largest losses on a development seed, "
            "which is not reported."
        ),
        "Seeds": f"Numbers are means over {_seeds(result.seeds)}, with 95% t intervals over seeds.",
    }


def merge_drift_sheet(result: MergeDriftResult) -> Sheet:
    """Return every level and seed."""
    heads = ("trained on", "seed", "moved", "KL(model||start)", "lost", "new task", "undone",
             "at")  # fmt: skip
    rows = [_level(level) for level in result.levels]
    return Sheet(heads, rows, spare=("KL(model||start)",))


def _level(level: MergeLevel) -> tuple[str, ...]:
    return (
        percent(level.share, 0), str(level.seed), percent(level.distance),
        f"{level.kl_old_reverse:.3g}", share(level.lost), share(level.score),
        share(level.recovered), "-" if level.weight is None else f"{level.weight:g}",
    )  # fmt: skip


def merge_drift_sentences(result: MergeDriftResult) -> list[str]:
    """Return sentences on the intervals."""
    trend = result.trend
    ends = "" if trend.low is None or trend.high is None else (
        f" ({signed(trend.low)} to {signed(trend.high)})"
    )  # fmt: skip
    value = "unknown" if trend.value is None else signed(trend.value)
    return [
        (
            f"Small minus large drift: {_points(result.difference.value)} points of the loss "
            f"undone{_point_limits(result.difference)}, by seed."
        ),
        f"Rank correlation of drift and the share undone: {value}{ends}.",
    ]


def merge_drift_facts(result: MergeDriftResult) -> dict[str, str]:
    """Return the facts on controls and measurements."""
    levels = len({level.share for level in result.levels})
    return {
        "Drift": f"{levels} levels: with more new examples, the weights move further.",
        "Merges": (
            "Weights between the start and the trained model; the best merge undoes most while "
            "keeping 95% of what was learned. Half of the items choose it and the other half "
            "measure it, and vice versa."
        ),
        "Seeds": f"Numbers are means over {_seeds(result.seeds)}, with 95% intervals over seeds.",
    }
