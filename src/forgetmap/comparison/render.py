"""A result as text for the terminal and as HTML for notebooks.

The content and its order are decided once, as a list of lines and sheets; terminal and notebook
only differ in how they show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from forgetmap.comparison.estimators import find_estimator
from forgetmap.comparison.result import ComparisonResult, FanOutResult, GroupResult, StageResult
from forgetmap.comparison.rollups import MEASURES
from forgetmap.comparison.summary import (
    NO_COMMANDS,
    Commands,
    Summary,
    accuracy_change,
    list_steps,
    short_verdict,
    summarize,
)
from forgetmap.comparison.words import SIMULATED
from forgetmap.results import Notice
from forgetmap.text import (
    Blocks,
    Line,
    Sheet,
    blocks_to_html,
    blocks_to_text,
    counted,
    next_lines,
    percent,
    print_blocks,
    share,
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
    "change": accuracy_change,
    "forgotten": lambda group: percent(group.forgetting.value),
    "gained": lambda group: percent(group.backward_transfer.value),
    "lost": lambda group: _loss(group),  # noqa: PLW0108  # defined below
    "over margin": lambda group: percent(group.loss_exceeds_margin, digits=0),
    "verdict": short_verdict,
}
SPARE = ("over margin", "forgotten", "gained", "answers", "change", "items", "after", "before")
"""Columns to leave out in a narrow terminal, in this order."""
LEGEND_WIDTH, WIDTHS = 90, {"over margin": 115}
"""Narrower terminals show the table without its legend."""
LEGEND = {
    "change": "accuracy change, which is all that averages show",
    "forgotten": "right before, wrong after, as a share of all {noun}",
    "gained": "wrong before, right after, as a share of all {noun}",
    "lost": "forgetting without {without}, with its {level} interval",
    "over margin": "probability that more than {margin} is lost, shrunk towards all tasks",
}
CHAIN_HEADS = (
    "stage", "accuracy", "forgot", "gained", "since first:\nforgot", "gained", "newly\nforgot",
    "regained", "verdict",
)  # fmt: skip
CHAIN_LEGEND = (
    "forgot, gained: since the previous stage; newly forgot: never forgotten at an earlier "
    "stage; regained: forgotten at an earlier stage and right again; verdict: since the first "
    "stage."
)

ROLLED_UP_HEADS = ("forgotten", "gained", "most to\nlose", "most to\ngain", "before", "after")


AnyResult = ComparisonResult | FanOutResult


def as_text(result: AnyResult, *, by: str = "category", width: int | None = None) -> str:
    """Format a result as plain text for the width of the terminal, up to a maximum."""
    return blocks_to_text(tell_comparison(result, by), width)


def as_html(result: AnyResult) -> str:
    """Format a result as HTML for a notebook."""
    return blocks_to_html(tell_comparison(result, "category"))


def print_comparison(
    console: Console, result: AnyResult, *, by: str, commands: Commands = NO_COMMANDS
) -> None:
    """Print a comparison, a chain or a fan-out; for `commands` see `list_steps`."""
    print_blocks(console, tell_comparison(result, by, commands))


def _loss(group: GroupResult) -> str:
    """Format the headline loss with its interval."""
    estimate = group.headline.forgetting
    if estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    if estimate.high < 0:
        return "below 0%"
    interval = f"{share(estimate.low).removesuffix('%')} to {share(estimate.high)}"
    return interval if estimate.value is None else f"{share(estimate.value)} ({interval})"


def tell_comparison(result: AnyResult, by: str, commands: Commands = NO_COMMANDS) -> Blocks:
    """Return the lines and sheets of a result, in order."""
    if isinstance(result, FanOutResult):
        return _tell_fan_out(result, by, commands)
    if result.stages is not None:
        return _tell_chain(result, result.stages, by, commands)
    return [
        *_simulated([result]),
        *_tell_one(result, by, commands),
    ]


def _tell_one(
    result: ComparisonResult, by: str, commands: Commands, *, legend: bool = True
) -> Blocks:
    """Return the verdict and the number, the groups, next steps, and "How we know"."""
    summary = summarize(result)
    return [
        *_verdict(result, summary),
        Line(),
        *_groups(result, by),
        *(_legend(result, by) if legend else ()),
        *_rolled_up(result),
        *_ending(result, summary, commands, result.pairing.warnings),
    ]


def _verdict(result: ComparisonResult, summary: Summary) -> Blocks:
    names = f"{result.before.name} -> {result.after.name}"
    lines = (
        summary.number,
        summary.parts,
        summary.by_task,
        summary.note,
        summary.rests_on,
        summary.gained,
    )
    first, *rest = [line for line in lines if line]
    return [
        Line(names, "strong", summary.badge, summary.tone),
        Line(first, "strong"),
        *map(Line, rest),
    ]


def _tell_fan_out(result: FanOutResult, by: str, commands: Commands) -> Blocks:
    """Return all models after side by side, then each comparison."""
    comparisons = result.comparisons
    blocks: Blocks = [
        *_simulated(comparisons),
        Line(f"{len(comparisons)} models against {comparisons[0].before.name}", "strong"),
        Line(),
        _sheet("model", [(comparison.after.name, comparison.total) for comparison in comparisons]),
        *_legend(comparisons[0], "model"),
    ]
    for comparison in comparisons:
        blocks += [Line(), *_tell_one(comparison, by, commands, legend=False)]
    return blocks


def _tell_chain(
    result: ComparisonResult, stages: Sequence[StageResult], by: str, commands: Commands
) -> Blocks:
    """Return the stages, the histories of items, then the last compared with the first."""
    names = [result.before.name, *(stage.name for stage in stages)]
    followed, summary = stages[0].against_first, summarize(result)
    return [
        *_simulated([result]),
        Line(f"Chain: {' -> '.join(names)}", "strong"),
        Line(
            f"{counted(followed.items, 'item')} scored at every stage; the last compared with "
            "the first:"
        ),
        *_verdict(result, summary),
        Line(),
        _stage_sheet(result.before.name, stages),
        Line(),
        Line(CHAIN_LEGEND, "faint"),
        Line(),
        *_histories(result),
        Line(),
        *_groups(result, by),
        *_legend(result, by),
        *_ending(result, summary, commands, (), _stage_warnings(stages)),
    ]


def groups_by(result: ComparisonResult, by: str) -> tuple[str, Sequence[GroupResult]]:
    """Return the groups to show and their kind; tasks if there are no categories.

    Sorted by the probability that the loss exceeds the margin, if it is known, because the largest
    estimates are those of the smallest groups; then by loss.
    """
    if by == "category" and not result.categories:
        by = "task"
    groups = {"task": result.tasks, "category": result.categories, "tag": result.tags}[by]
    return by, sorted(groups, key=lambda group: (*(-part for part in _worst(group)), group.name))


def _worst(group: GroupResult) -> tuple[float, float]:
    """Return the sort key of a group; a range is sorted by its upper end."""
    estimate = group.headline.forgetting
    loss = estimate.value if estimate.value is not None else estimate.high or 0.0
    exceeds = group.loss_exceeds_margin
    return (0.0 if exceeds is None else exceeds, loss)


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
        blocks.append(Line(f"... and {len(groups) - MAX_ROWS:,} more, less likely to have lost."))
    return blocks


def _sheet(kind: str, rows: Sequence[tuple[str, GroupResult]], strong: int = 0) -> Sheet:
    columns = dict(COLUMNS)
    if all(group.n == group.items for _, group in rows):
        del columns["answers"]
    if all(group.loss_exceeds_margin is None for _, group in rows):
        del columns["over margin"]
    cells = [(name, *(cell(group) for cell in columns.values())) for name, group in rows]
    return Sheet((kind, *columns), cells, strong, tuple(name for name in SPARE if name in columns))


def _legend(result: ComparisonResult, by: str) -> Blocks:
    total = result.total
    words = {
        "noun": "items" if total.n == total.items else "answers",
        "without": find_estimator(total.headline.estimator).legend,
        "level": f"{100 * result.rule.level:g}%",
        "margin": f"{100 * total.margin:g}%",
    }
    lines = [
        Line(text.format(**words), "faint", f"{name:<11}", min_width=WIDTHS.get(name, LEGEND_WIDTH))
        for name, text in LEGEND.items()
        if name != "over margin" or _is_ranked(result, by)
    ]
    return [Line(min_width=LEGEND_WIDTH), *lines]


def _is_ranked(result: ComparisonResult, by: str) -> bool:
    return by != "model" and any(
        group.loss_exceeds_margin is not None for group in groups_by(result, by)[1]
    )


def _rolled_up(result: ComparisonResult) -> Blocks:
    """Return the published averages, if they were requested."""
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
    return [
        Line(),
        Sheet(tuple(heads), rows, spare=("after", "before")),
        *_consensus(result),
    ]


def _consensus(result: ComparisonResult) -> Blocks:
    """Return the consensus of seeds, beside the published averages."""
    if not result.consensus:
        return []
    heads = ("published consensus", "seeds", "forgotten", "gained", "disagree")
    rows = [
        (group.name, f"{group.seeds}", percent(group.forgetting), percent(group.backward_transfer),
         percent(group.dropped))
        for group in result.consensus
    ]  # fmt: skip
    return [Line(), Sheet(heads, rows)]


def _ending(
    result: ComparisonResult,
    summary: Summary,
    commands: Commands,
    warnings: Sequence[Notice],
    stage_warnings: Sequence[Line] = (),
) -> Blocks:
    """Return warnings, next steps, and the facts behind the verdict."""
    numbers = [f"{row.name} {row.forgetting}" for row in summary.estimators]
    facts = {"estimators": ", ".join(numbers)}
    facts |= {fact.label: fact.words for fact in summary.facts}
    return [
        Line(),
        *(Line(notice.message, "warning", "!") for notice in warnings),
        *stage_warnings,
        *next_lines(list_steps(result, commands), as_list=bool(commands)),
        Line(),
        Line("How we know", "strong"),
        *(Line(words, "faint", f"{label:<11}") for label, words in facts.items() if words),
    ]


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
        counts = (f"{stage.first_lost:,}", f"{stage.regained:,}")
        rows.append((stage.name, accuracy, *rates, *counts, short_verdict(stage.against_first)))
    return Sheet(CHAIN_HEADS, rows, spare=("regained", "newly\nforgot", "verdict"))


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


def _stage_warnings(stages: Sequence[StageResult]) -> list[Line]:
    """Return each warning once, with its stages unless all stages have it."""
    about: dict[str, list[str]] = {}
    for stage in stages:
        for notice in stage.pairing.warnings:
            about.setdefault(notice.message, []).append(stage.name)
    return [
        Line(text if len(names) == len(stages) else f"{', '.join(names)}: {text}", "warning", "!")
        for text, names in about.items()
    ]
