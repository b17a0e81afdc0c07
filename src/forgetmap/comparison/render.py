"""A result as text for the terminal and as HTML for notebooks.

What is said, and in which order, is decided once, as a list of lines and sheets; the terminal and
the notebook only differ in how they show these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from forgetmap.comparison.estimators import find_estimator, number_estimators
from forgetmap.comparison.result import ComparisonResult, FanOutResult, GroupResult, StageResult
from forgetmap.comparison.rollups import MEASURES
from forgetmap.comparison.words import (
    SIMULATED,
    metrics_sentence,
    pairing_sentence,
    reasons_sentence,
)
from forgetmap.stats import FDR
from forgetmap.text import (
    Blocks,
    Line,
    Sheet,
    blocks_to_html,
    blocks_to_text,
    counted,
    percent,
    print_blocks,
)

if TYPE_CHECKING:
    from rich.console import Console

MAX_ROWS = 40
MAX_PATHS = 16

COLUMNS: dict[str, Callable[[GroupResult], str]] = {
    "items": lambda group: f"{group.items:,}",
    "answers": lambda group: f"{group.n:,}",
    "before": lambda group: percent(group.acc_before),
    "after": lambda group: percent(group.acc_after),
    "change": lambda group: _accuracy_change(group),  # noqa: PLW0108  # defined below
    "forgotten": lambda group: percent(group.forgetting.value),
    "gained": lambda group: percent(group.backward_transfer.value),
    "adjusted": lambda group: _adjusted(group),  # noqa: PLW0108
}
LEGEND = {
    "change": "accuracy change: all that averages show",
    "forgotten": "right before, wrong after, as a share of all {noun}",
    "gained": "wrong before, right after, as a share of all {noun}",
    "adjusted": "forgetting without {without}; 95% interval; * at FDR 5%",
}
CHAIN_HEADS = (
    "stage", "accuracy", "lost", "gained", "since first:\nlost", "gained", "newly\nlost", "regained"
)  # fmt: skip
CHAIN_LEGEND = (
    "lost, gained: since the stage before; newly lost: never lost at an earlier stage; regained: "
    "lost at an earlier stage and right again."
)

ROLLED_UP_HEADS = ("forgotten", "gained", "most to\nlose", "most to\ngain", "before", "after")


AnyResult = ComparisonResult | FanOutResult


def as_text(result: AnyResult, *, by: str = "category", width: int | None = None) -> str:
    """A result as plain text, as wide as the terminal, but not endlessly."""
    return blocks_to_text(tell_comparison(result, by), width)


def as_html(result: AnyResult) -> str:
    """A result for a notebook."""
    return blocks_to_html(tell_comparison(result, "category"))


def print_comparison(console: Console, result: AnyResult, *, by: str) -> None:
    """Print a comparison, a chain or a fan-out."""
    print_blocks(console, tell_comparison(result, by))


def _accuracy_change(group: GroupResult) -> str:
    if group.acc_before is None or group.acc_after is None:
        return percent(None)
    # Rounded: floats would make a change of nothing.
    change = round(group.acc_after - group.acc_before, 9)
    return f"{'+' if change > 0 else ''}{percent(change)}"


def _adjusted(group: GroupResult) -> str:
    """Forgetting adjusted for luck and noise, its interval, a star where it survives many tasks."""
    estimate = group.headline.forgetting
    if estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    interval = f"{percent(estimate.low)} to {percent(estimate.high)}"
    star = "*" if group.q_lost is not None and group.q_lost <= FDR else " "
    value = estimate.value
    return (f"{percent(value)} ({interval})" if value is not None else interval) + star


def tell_comparison(result: AnyResult, by: str) -> Blocks:
    """What is said about a result, in order."""
    if isinstance(result, FanOutResult):
        return _tell_fan_out(result, by)
    if result.stages is not None:
        return _tell_chain(result, result.stages, by)
    return [
        *_simulated([result]),
        Line(result.headline, "strong"),
        Line(result.seen),
        Line(),
        *_groups(result, by),
        *_legend(result.total),
        *_rolled_up(result),
        *_ending(result),
    ]


def _tell_fan_out(result: FanOutResult, by: str) -> Blocks:
    """All models after side by side, then one by comparison."""
    comparisons = result.comparisons
    blocks: Blocks = [
        *_simulated(comparisons),
        Line(f"{len(comparisons)} models against {comparisons[0].before.name}", "strong"),
        Line(),
        _sheet("model", [(comparison.after.name, comparison.total) for comparison in comparisons]),
        *_legend(comparisons[0].total),
    ]
    for comparison in comparisons:
        blocks += [Line(), Line(comparison.headline, "strong"), Line(comparison.seen), Line()]
        blocks += [*_groups(comparison, by), *_rolled_up(comparison), *_ending(comparison)]
    return blocks


def _tell_chain(result: ComparisonResult, stages: Sequence[StageResult], by: str) -> Blocks:
    """The stages, how many items share each history, then the last against the first."""
    names = [result.before.name, *(stage.name for stage in stages)]
    followed = stages[0].against_first
    return [
        *_simulated([result]),
        Line(f"Chain: {' -> '.join(names)}", "strong"),
        Line(f"{counted(followed.items, 'item')} scored at every stage."),
        Line(),
        _stage_sheet(result.before.name, stages),
        Line(),
        Line(CHAIN_LEGEND, "faint"),
        Line(),
        *_histories(result),
        Line(),
        Line(result.headline, "strong"),
        Line(result.seen),
        Line(),
        *_groups(result, by),
        *_legend(result.total),
        Line(),
        Line(reasons_sentence(result.total)),
        *_stage_warnings(stages),
    ]


def groups_by(result: ComparisonResult, by: str) -> tuple[str, Sequence[GroupResult]]:
    """The groups to show, worst first, and what they are; tasks where nothing has a category."""
    if by == "category" and not result.categories:
        by = "task"
    groups = {"task": result.tasks, "category": result.categories, "tag": result.tags}[by]
    return by, sorted(groups, key=lambda group: (-_worst(group), group.name))


def _worst(group: GroupResult) -> float:
    """What groups are sorted by: adjusted forgetting, or the upper end of a range."""
    estimate = group.headline.forgetting
    return estimate.value if estimate.value is not None else estimate.high or 0.0


def _simulated(results: Iterable[ComparisonResult]) -> Blocks:
    if any(result.before.simulated or result.after.simulated for result in results):
        return [Line(SIMULATED, "simulated")]
    return []


def _groups(result: ComparisonResult, by: str) -> Blocks:
    kind, groups = groups_by(result, by)
    rows = [("all items", result.total)]
    if len(result.tasks) > 1:
        rows.append(("mean over tasks", result.total_macro))
    strong = len(rows)
    rows += [(group.name, group) for group in groups[:MAX_ROWS]]
    blocks: Blocks = [_sheet(kind, rows, strong)]
    if not groups:
        blocks.append(Line(f"No item has a {kind}."))
    if len(groups) > MAX_ROWS:
        blocks.append(Line(f"... and {len(groups) - MAX_ROWS:,} more, none of them worse."))
    return blocks


def _sheet(kind: str, rows: Sequence[tuple[str, GroupResult]], strong: int = 0) -> Sheet:
    has_repeats = any(group.n != group.items for _, group in rows)
    columns = {name: cell for name, cell in COLUMNS.items() if has_repeats or name != "answers"}
    cells = [(name, *(cell(group) for cell in columns.values())) for name, group in rows]
    spare = ("after", "before", *["answers"] * has_repeats, "change", "gained", "items")
    return Sheet((kind, *columns), cells, strong, spare)


def _legend(total: GroupResult) -> Blocks:
    noun = "items" if total.n == total.items else "answers"
    without = find_estimator(total.headline.estimator).legend
    lines = [
        Line(text.format(noun=noun, without=without), "faint", f"{name:<11}")
        for name, text in LEGEND.items()
    ]
    return [Line(), *lines, *_side_by_side(total)]


def _side_by_side(total: GroupResult) -> Blocks:
    """Every estimate of forgetting over all items, so that none can be picked in silence."""
    values = {row.name: total.estimates(row.name).forgetting.value for row in number_estimators()}
    numbers = [f"{name} {percent(value)}" for name, value in values.items() if value is not None]
    floor = total.noise_floor.value
    if floor is not None:
        numbers.append(f"noise floor {percent(floor)}")
    return [Line(", ".join(numbers), "faint", f"{'estimators':<11}")] if numbers else []


def _rolled_up(result: ComparisonResult) -> Blocks:
    """The published averages, where they were asked for."""
    if result.rolled_up is None:
        return []
    heads = ("published roll-up", *ROLLED_UP_HEADS)
    rows = []
    for group in result.rolled_up:
        cells = [percent(group.mean[name]) for name in MEASURES]
        spreads = [group.deviation[name] for name in MEASURES]
        texts = [
            cell if spread is None else f"{cell} ±{100 * spread:.1f}"
            for cell, spread in zip(cells, spreads, strict=True)
        ]
        rows.append((group.name, *texts))
    return [Line(), Sheet(tuple(heads), rows, spare=("after", "before"))]


def _ending(result: ComparisonResult) -> Blocks:
    warnings = [Line(notice.message, "warning", "!") for notice in result.pairing.warnings]
    sentences = (
        reasons_sentence(result.total),
        pairing_sentence(result.pairing),
        metrics_sentence(result.measures),
    )
    return [Line(), *(Line(sentence) for sentence in sentences if sentence), *warnings]


def _stage_sheet(first: str, stages: Sequence[StageResult]) -> Sheet:
    start = percent(stages[0].against_first.acc_before)
    rows = [(first, start, *["-"] * (len(CHAIN_HEADS) - 2))]
    for stage in stages:
        rates = [
            percent(estimate.value)
            for against in (stage.against_previous, stage.against_first)
            for estimate in (against.forgetting, against.backward_transfer)
        ]
        accuracy = percent(stage.against_first.acc_after)
        rows.append((stage.name, accuracy, *rates, f"{stage.first_lost:,}", f"{stage.regained:,}"))
    return Sheet(CHAIN_HEADS, rows, spare=("regained", "newly\nlost"))


def _histories(result: ComparisonResult) -> Blocks:
    paths = result.paths or []
    rows = [(f"{path.path}  {path.kind}", f"{path.n:,}") for path in paths[:MAX_PATHS]]
    noun = "items" if result.total.n == result.total.items else "answers"
    blocks: Blocks = [Sheet(("history (1 right, 0 wrong)", noun), rows)]
    rest = paths[MAX_PATHS:]
    if rest:
        n = sum(path.n for path in rest)
        blocks.append(Line(f"... and {len(rest):,} rarer histories of {n:,} {noun}."))
    return blocks


def _stage_warnings(stages: Sequence[StageResult]) -> Blocks:
    """Each warning once, with the stages it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for stage in stages:
        for notice in stage.pairing.warnings:
            about.setdefault(notice.message, []).append(stage.name)
    return [
        Line(text if len(names) == len(stages) else f"{', '.join(names)}: {text}", "warning", "!")
        for text, names in about.items()
    ]
