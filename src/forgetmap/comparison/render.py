"""A result as text for the terminal and as HTML for notebooks.

The content and its order are decided once, as a list of lines and sheets; terminal and notebook
only differ in how they show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forgetmap.comparison.phrases import (
    NO_COMMANDS,
    SIMULATED,
    Commands,
    accuracy_change,
    stages_sentence,
    step_texts,
    verdict_words,
)
from forgetmap.comparison.result import (
    AnyResult,
    ComparisonResult,
    FanOutResult,
    GroupResult,
    StageResult,
)
from forgetmap.comparison.rollups import MEASURES
from forgetmap.comparison.summary import Summary, summarize
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
    "verdict": lambda group: verdict_words(group, narrow=True),
}
SPARE = ("gained", "answers", "change", "forgotten", "items", "after", "before")
"""Columns to leave out in a narrow terminal, in this order."""
LEGEND_WIDTH = 90
"""Narrower terminals show the table without its legend."""
LEGEND = {
    "change": "accuracy change, which is all that averages show",
    "forgotten": "right before, wrong after, as a share of all {noun}: noise and luck included",
    "gained": "wrong before, right after, as a share of all {noun}",
    "lost": "what is proven: at least and at most, as a share of all items ({level})",
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


@dataclass(frozen=True, slots=True)
class View:
    """What to show of a result.

    Attributes:
        by: groups to show: `task`, `category` or `tag`; None for the first screen only.
        details: every warning, and "How we know".
        commands: complete commands by their short names, for the next steps.
        each: the same for each comparison of a fan-out, added to `commands`.
    """

    by: str | None = None
    details: bool = False
    commands: Commands = field(default_factory=lambda: NO_COMMANDS)
    each: Sequence[Commands] = ()


FIRST_SCREEN = View()


def as_text(result: AnyResult, view: View = FIRST_SCREEN, *, width: int | None = None) -> str:
    """Format a result as plain text for the width of the terminal, up to a maximum."""
    return blocks_to_text(tell_comparison(result, view), width)


def as_html(result: AnyResult) -> str:
    """Format a result as HTML for a notebook."""
    return blocks_to_html(tell_comparison(result, View(by="category")))


def print_comparison(console: Console, result: AnyResult, view: View = FIRST_SCREEN) -> None:
    """Print a comparison, a chain or a fan-out."""
    print_blocks(console, tell_comparison(result, view))


def _loss(group: GroupResult) -> str:
    """Format the limits of the loss."""
    low, high = group.loss.low, group.loss.high
    if low is None or high is None:
        return percent(None)
    return f"{share(low).removesuffix('%')} to {share(high)}"


def tell_comparison(result: AnyResult, view: View = FIRST_SCREEN) -> Blocks:
    """Return the lines and sheets of a result, in order."""
    if isinstance(result, FanOutResult):
        return _tell_fan_out(result, view)
    if result.stages is not None:
        return _tell_chain(result, result.stages, view)
    return [*_simulated([result]), *_tell_one(result, view)]


def _tell_one(result: ComparisonResult, view: View, *, legend: bool = True) -> Blocks:
    """Return the verdict, the groups, warnings, next steps, and "How we know"."""
    summary = summarize(result)
    return [
        *_verdict(result, summary),
        *_groups(result, view, legend=legend),
        *_rolled_up(result),
        *_ending(result, summary, view, result.pairing.warnings),
    ]


def _verdict(result: ComparisonResult, summary: Summary) -> Blocks:
    names = f"{result.before.name} -> {result.after.name}"
    lines = (
        summary.counts, summary.interval, summary.confirmed, summary.noise, summary.gained,
        summary.tasks,
    )  # fmt: skip
    return [
        Line(names, "strong", summary.badge, summary.tone),
        Line(summary.sentence, "strong"),
        *(Line(line) for line in lines if line),
    ]


def _tell_fan_out(result: FanOutResult, view: View) -> Blocks:
    """Return all models after side by side, then each comparison."""
    comparisons = result.comparisons
    blocks: Blocks = [
        *_simulated(comparisons),
        Line(f"{len(comparisons)} models against {comparisons[0].before.name}", "strong"),
        Line(),
        _sheet("model", [(comparison.after.name, comparison.total) for comparison in comparisons]),
        *_legend(comparisons[0]),
    ]
    each = view.each or [NO_COMMANDS] * len(comparisons)
    for comparison, commands in zip(comparisons, each, strict=True):
        own = replace(view, commands={**view.commands, **commands})
        blocks += [Line(), *_tell_one(comparison, own, legend=False)]
    return blocks


def _tell_chain(result: ComparisonResult, stages: Sequence[StageResult], view: View) -> Blocks:
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
        *([Line(shown)] if (shown := stages_sentence(stages)) else []),
        Line(CHAIN_LEGEND, "faint"),
        Line(),
        *_histories(result),
        *_groups(result, view),
        *_ending(result, summary, view, _stage_notices(stages)),
    ]


def groups_by(result: ComparisonResult, by: str) -> tuple[str, Sequence[GroupResult]]:
    """Return the groups to show and their kind; tasks if there are no categories.

    The largest proven losses come first, then the largest possible ones: the largest estimates are
    those of the smallest groups.
    """
    if by == "category" and not result.categories:
        by = "task"
    groups = {"task": result.tasks, "category": result.categories, "tag": result.tags}[by]
    return by, sorted(groups, key=_order)


def _order(group: GroupResult) -> tuple[float, float, str]:
    return (-max(group.loss.low or 0.0, 0.0), -(group.forgetting.value or 0.0), group.name)


def _simulated(results: Iterable[ComparisonResult]) -> Blocks:
    if any(result.before.simulated or result.after.simulated for result in results):
        return [Line(SIMULATED, "simulated")]
    return []


def _groups(result: ComparisonResult, view: View, *, legend: bool = True) -> Blocks:
    if view.by is None and not view.details:
        return []
    kind, groups = groups_by(result, view.by or "category")
    rows = [("all items", result.total)]
    if len(result.tasks) > 1:
        rows.append(("mean over tasks", result.total_macro))
    strong = len(rows)
    rows += [(group.name, group) for group in groups[:MAX_ROWS]]
    blocks: Blocks = [Line(), _sheet(kind, rows, strong)]
    if not groups:
        blocks.append(Line(f"No item has a {kind}."))
    if len(groups) > MAX_ROWS:
        blocks.append(Line(f"... and {len(groups) - MAX_ROWS:,} more, with smaller losses."))
    return [*blocks, *(_legend(result) if legend else ())]


def _sheet(kind: str, rows: Sequence[tuple[str, GroupResult]], strong: int = 0) -> Sheet:
    columns = dict(COLUMNS)
    if all(group.n == group.items for _, group in rows):
        del columns["answers"]
    cells = [(name, *(cell(group) for cell in columns.values())) for name, group in rows]
    return Sheet((kind, *columns), cells, strong, tuple(name for name in SPARE if name in columns))


def _legend(result: ComparisonResult) -> Blocks:
    total = result.total
    words = {
        "noun": "items" if total.n == total.items else "answers",
        "level": f"{100 * result.rule.level:g}%",
    }
    lines = [
        Line(text.format(**words), "faint", f"{name:<11}", min_width=LEGEND_WIDTH)
        for name, text in LEGEND.items()
    ]
    return [Line(min_width=LEGEND_WIDTH), *lines]


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
    result: ComparisonResult, summary: Summary, view: View, warnings: Sequence[Notice]
) -> Blocks:
    """Return warnings, next steps, and with `details` the facts behind the verdict."""
    shown = list(warnings) if view.details else list(warnings)[: len(summary.warnings)]
    if not view.details and result.stages is None:
        shown = summary.warnings
    hidden = len(warnings) - len(shown)
    blocks: Blocks = [Line(), *(Line(notice.message, "warning", "!") for notice in shown)]
    if hidden > 0:
        blocks.append(Line(f"{counted(hidden, 'more warning')} with --details.", "faint"))
    blocks += next_lines(step_texts(result, view.commands), as_list=bool(view.commands))
    if not view.details:
        return blocks
    facts = [(fact.label, fact.words) for fact in summary.facts]
    return [
        *blocks,
        Line(),
        Line("How we know", "strong"),
        *(Line(words, "faint", f"{label:<11}") for label, words in facts),
        *_appendix(summary),
    ]


def _appendix(summary: Summary) -> Blocks:
    """Return every estimate, so that none can be picked silently."""
    blocks: Blocks = []
    for role in dict.fromkeys(row.role for row in summary.estimators):
        blocks += [Line(), Line(f"Estimates: {role}", "strong")]
        for row in summary.estimators:
            if row.role == role:
                interval = f" ({row.interval})" if row.interval else ""
                words = f"{row.forgetting} forgotten{interval}, {row.gained} gained: {row.formula}"
                blocks.append(Line(words, "faint", f"{row.name:<14}"))
    return blocks


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
        counts = (f"{stage.first_forgotten:,}", f"{stage.regained:,}")
        verdict = verdict_words(stage.against_first)
        rows.append((stage.name, accuracy, *rates, *counts, verdict))
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


def _stage_notices(stages: Sequence[StageResult]) -> list[Notice]:
    """Return each warning once, with its stages unless all stages have it."""
    about: dict[Notice, list[str]] = {}
    for stage in stages:
        for notice in stage.pairing.warnings:
            about.setdefault(notice, []).append(stage.name)
    return [
        notice
        if len(names) == len(stages)
        else Notice(notice.code, f"{', '.join(names)}: {notice.message}")
        for notice, names in about.items()
    ]
