"""The table of estimators: formulas of the share of forgotten items.

A row defines everything about an estimator: its needs, scale, assumptions, names and computation.
JSON and its schema, frames, the headline, terminal, report page and docs are made from this table,
so a new row appears in all of them. Packages add rows under the entry-point group
`forgetmap.estimators`.

The command line imports this module for the names, so computing libraries are imported on use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from forgetmap._plugins import Registry
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.comparison.evidence import Evidence, Need
    from forgetmap.results import Estimate, Estimates

AUTO = "auto"
"""Use the best estimator that the data allow; see `choose`."""
MIN_REPEATED = 0.9
"""Minimum share of repeated items for an estimator by repeats to stand for all items."""
BRACKET = "bracket"

Scale = Literal["knowledge", "answers"]


class OverTasks(Protocol):
    """Function that averages an estimator over tasks."""

    def __call__(
        self, name: str, evidence: Sequence[Evidence], tasks: Sequence[Estimates], total: Estimates
    ) -> Estimates:
        """Compute the mean from the evidence and estimates of each task, and those of all items."""
        ...


def plain_mean(
    name: str, evidence: Sequence[Evidence], tasks: Sequence[Estimates], total: Estimates
) -> Estimates:
    """Average over tasks, without an interval."""
    from forgetmap.comparison.from_counts import mean_of_estimates

    del name, evidence
    return mean_of_estimates(tasks, total)


def _fits_all(evidence: Evidence) -> bool:
    """Accept any data."""
    del evidence
    return True


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """A row of the table.

    Attributes:
        name: name in `--estimator`, JSON and frames.
        scale: share of what was known beyond guessing, or of answers.
        label: text in the menu of the page, and after "forgetting:".
        legend: what is removed, after "forgotten without".
        sentence: sentence about a loss, with {} for its share.
        meaning: definition, for the JSON schema and the docs.
        formula: for the docs.
        misleads: when it is misleading, for the docs.
        estimate: computes the estimates of a group from its evidence, in both directions or of
            forgetting only. Called only if `needs` are met.
        over_tasks: computes the mean over tasks.
        needs: requirements on the data.
        assumes: assumption, after "assumes", if any.
        rank: order in the choice of the headline; None if it is used only on request.
        fits: whether it may be the headline of these data, if it has a value.
        only_losses: it does not estimate gains.
        is_count: it is an observed count, so it is never negative and needs no test.
        is_range: it is a pair of bounds, not a number, and cannot be requested.
    """

    name: str
    scale: Scale
    label: str
    legend: str
    meaning: str
    formula: str
    misleads: str
    estimate: Callable[[Evidence], Estimates | Estimate]
    over_tasks: OverTasks = plain_mean
    sentence: str = "lost {} of all items"
    needs: tuple[Need, ...] = ("items",)
    assumes: str | None = None
    rank: int | None = None
    fits: Callable[[Evidence], bool] = _fits_all
    only_losses: bool = False
    is_count: bool = False
    is_range: bool = False

    @property
    def from_repeats(self) -> bool:
        """Whether it measures the noise floor and subtracts it."""
        return bool({"repeats", "repeats_before"} & set(self.needs))

    def lacks(self, evidence: Evidence) -> str | None:
        """Return why the data do not allow this estimator; None if they do."""
        return evidence.lacks(self.needs)


def _from_counts(name: str) -> Callable[[Evidence], Estimates]:
    def estimate(evidence: Evidence) -> Estimates:
        from forgetmap.comparison import from_counts

        return from_counts.estimate(name, evidence)

    return estimate


def _from_repeats(name: str) -> Callable[[Evidence], Estimates | Estimate]:
    def estimate(evidence: Evidence) -> Estimates | Estimate:
        from forgetmap.comparison import repeated

        assert evidence.items is not None  # noqa: S101  # repeats are what these need
        return repeated.estimate(
            name, evidence.items, level=evidence.level, clusters=evidence.item_clusters
        )

    return estimate


def _published(evidence: Evidence) -> Estimates:
    from forgetmap.comparison.from_counts import published_estimates

    return published_estimates(evidence)


def _bracket(evidence: Evidence) -> Estimates:
    from forgetmap.comparison.from_counts import estimate
    from forgetmap.results import outer_ends

    return outer_ends(estimate("low", evidence), estimate("high", evidence))


def _score_over_tasks(
    name: str, evidence: Sequence[Evidence], tasks: Sequence[Estimates], total: Estimates
) -> Estimates:
    from forgetmap.comparison.from_counts import over_tasks

    del tasks
    return total if total.forgetting.value is None else over_tasks(name, evidence)


def _matched_over_tasks(
    name: str, evidence: Sequence[Evidence], tasks: Sequence[Estimates], total: Estimates
) -> Estimates:
    """Average a matched estimate; missing if the choices of a task are unknown or not trusted."""
    from forgetmap.results import Estimates

    unknown = any(task.lacks(("possible_options", "choices", "balance")) for task in evidence)
    if total.forgetting.value is not None and unknown:
        return Estimates.missing(name, "some tasks do not have it")
    return _score_over_tasks(name, evidence, tasks, total)


def _repeats_over_tasks(
    name: str, evidence: Sequence[Evidence], tasks: Sequence[Estimates], total: Estimates
) -> Estimates:
    from forgetmap.comparison.repeated import RepeatedTask, over_tasks

    if not evidence:
        return total
    parts = [RepeatedTask(t.items, t.item_clusters) for t in evidence if t.items is not None]
    return over_tasks(name, parts, tasks, evidence[0].level, evidence[0].across)


BUILT_IN = (
    Estimator(
        name="raw",
        scale="answers",
        label="as counted, luck and noise included",
        legend="adjustment, as counted",
        meaning="Right before, wrong after, as counted.",
        formula="n10 / n",
        misleads="always a mixture of lost knowledge, lucky guesses before and noise",
        estimate=_from_counts("raw"),
        needs=(),
        over_tasks=_score_over_tasks,
        rank=3,
        fits=lambda evidence: all(math.isinf(k) for k in evidence.options),
        is_count=True,
    ),
    Estimator(
        name="published",
        # As a share of answers, strictly; the report divides it by the share known beyond luck.
        scale="knowledge",
        label="chance adjustment as published in 2026",
        legend="luck as published in 2026, for comparison",
        meaning="As published in 2026; for comparison only.",
        formula="max(F - C, 0), C = (1-a)(1-b)/(k-1)",
        misleads="nothing is lost: it still shows a loss (.062 for two options, half of the "
        "items known), because luck before and after is not independent",
        estimate=_published,
        needs=(),
    ),
    Estimator(
        name="latent",
        scale="knowledge",
        label="if all guesses were redrawn (lower end)",
        legend="lucky guesses, if all are redrawn",
        meaning="Lower end of the plausible range: all guesses redrawn.",
        formula="c P[1→w] - (c²/k) P[w→w] + P[1→0] - P[w→0]/(k-1)",
        misleads="guesses repeat (greedy): far too low; guessing habits change: too high. Never "
        "use it alone",
        estimate=_from_counts("latent"),
        needs=("items", "possible_options"),
        over_tasks=_score_over_tasks,
        assumes="blind guesses, all redrawn",
    ),
    Estimator(
        name="upper",
        scale="knowledge",
        label="if all guesses were repeated (upper end)",
        legend="lucky guesses, if all are repeated",
        meaning="Upper end of the plausible range: all guesses repeated.",
        formula="c P[1→w] + P[1→0] - P[w→0]/(k-1)",
        misleads="guesses are redrawn: then much too high",
        estimate=_from_counts("upper"),
        needs=("items", "possible_options"),
        over_tasks=_score_over_tasks,
    ),
    Estimator(
        name="matched",
        scale="knowledge",
        label="without luck, estimated from the wrong options",
        legend="lucky guesses, estimated from the wrong options",
        meaning="Luck estimated from which wrong options were chosen.",
        formula="c (P[1→w] - P[w→other w]/(k-2)) + P[1→0] - P[w→0]/(k-1)",
        misleads="a wrong option is especially attractive (low), options can be eliminated (high), "
        "positions of right answers unbalanced; not for k = 2",
        estimate=_from_counts("matched"),
        over_tasks=_matched_over_tasks,
        needs=(
            "items",
            "possible_options",
            "options",
            "third_option",
            "choices",
            "balance",
        ),
        assumes="blind guesses on unknown items",
        rank=4,
        fits=lambda evidence: 2 not in evidence.options,
    ),
    Estimator(
        name="excess",
        scale="answers",
        label="beyond the noise floor",
        legend="the noise floor, measured by repeats",
        sentence="lost at least {} of all answers beyond the noise floor",
        meaning="Change beyond the noise floor; needs repeats of both models.",
        formula="mean of ((p_b-p_a)² - noise + p_b - p_a)/2",
        misleads="changes are partial (then it is a lower bound); lucky guesses that repeat "
        "are not removed",
        estimate=_from_repeats("excess"),
        over_tasks=_repeats_over_tasks,
        needs=("repeats",),
        rank=1,
    ),
    Estimator(
        name="excess_before",
        scale="answers",
        label="beyond the noise floor of the model before",
        legend="the noise floor of the model before",
        sentence="lost {} of all answers beyond the noise floor of the model before",
        meaning="Forgetting beyond the noise floor of the model before.",
        formula="mean of p_b(1-p_a) - m(r-m)/(r(r-1))",
        misleads="the model becomes more certain of what it half knew (low)",
        assumes="that both models have the same noise floor",
        only_losses=True,
        estimate=_from_repeats("excess_before"),
        over_tasks=_repeats_over_tasks,
        needs=("repeats_before",),
        rank=2,
    ),
    Estimator(
        name="net",
        scale="knowledge",
        label="without luck and noise",
        legend="lucky guesses and the noise floor",
        sentence="lost {} of all items beyond the noise floor",
        meaning="`matched` between the models minus `matched` within each of them.",
        formula="`matched` between the models minus half of it within each",
        misleads="in none of the tested cases",
        estimate=_from_repeats("net"),
        over_tasks=_repeats_over_tasks,
        needs=("possible_options", "choices_of_repeats", "repeats"),
    ),
    Estimator(
        name=BRACKET,
        scale="knowledge",
        label="a plausible range",
        legend="lucky guesses, from all redrawn to all repeated",
        meaning="From `latent` to `upper`; `matched` for items with three or more options.",
        formula="from `latent` to `upper`; `matched` where possible",
        misleads="guessing habits change between the models, or options can be eliminated",
        estimate=_bracket,
        needs=("items", "possible_options"),
        assumes="the model guesses as it did before",
        rank=5,
        is_range=True,
    ),
)


BUILT_IN_NAMES = (AUTO, *(row.name for row in BUILT_IN if not row.is_range))
"""Values of `--estimator`, without estimators of other packages."""


def _check(plugin: object) -> Estimator:
    if not isinstance(plugin, Estimator):
        raise TypeError("it is not a forgetmap.comparison.Estimator")
    return plugin


ADDED_ESTIMATORS = Registry(
    group="forgetmap.estimators", kind="estimator", built_in={}, check=_check
)
"""Estimators of installed packages; the built-in ones are in the table."""


def all_estimators() -> tuple[Estimator, ...]:
    """Return every row: the built-in ones, then those of installed packages.

    Raises:
        UsageError: a package uses a built-in name, or adds one that cannot be loaded.
    """
    known = {row.name for row in BUILT_IN}
    for name in ADDED_ESTIMATORS.names():
        if name != ADDED_ESTIMATORS.get(name).name or name in known or not name.isidentifier():
            raise UsageError(
                f"an installed package adds an estimator named {name!r}, which is already taken "
                "or does not match its own name",
                hint="uninstall the package, or rename its estimator.",
            )
    return (*BUILT_IN, *ADDED_ESTIMATORS.all())


def number_estimators() -> tuple[Estimator, ...]:
    """Return the estimators that are numbers: each can be requested and has a field in results."""
    return tuple(row for row in all_estimators() if not row.is_range)


def estimator_names() -> list[str]:
    """Return the values of `--estimator`."""
    return [*BUILT_IN_NAMES, *ADDED_ESTIMATORS.names()]


def find_estimator(name: str) -> Estimator:
    """Return the row of this name.

    Raises:
        UsageError: there is none; a result may come from a machine with other packages.
    """
    # Built-in ones first: a broken package must not break a command that does not use it.
    row = next((row for row in BUILT_IN if row.name == name), None)
    row = row or next((row for row in all_estimators() if row.name == name), None)
    if row is None:
        raise UsageError(
            f"there is no estimator {name!r}", hint=f"choose from {', '.join(estimator_names())}."
        )
    return row


def check_estimator(name: str) -> None:
    """Refuse an estimator that cannot be requested.

    Raises:
        UsageError: there is no such estimator, or it is a range.
    """
    if name != AUTO and find_estimator(name).is_range:
        raise UsageError(
            f"--estimator {name} gives a range, not a number",
            hint=f"choose from {', '.join(estimator_names())}.",
        )


def choose(evidence: Evidence, has_value: Callable[[str], bool]) -> str:
    """Return the name of the best estimator that the data allow.

    An estimator by repeats ignores items without repeats, so most items must have them.
    """
    ranked = [row for row in all_estimators() if row.rank is not None]
    ranked.sort(key=lambda row: row.rank or 0)
    # A count has a value even if there is nothing to count.
    return next(
        row.name
        for row in ranked
        if (row.is_range or row.is_count or has_value(row.name))
        and row.fits(evidence)
        and (not row.from_repeats or has_repeats(evidence, row.name))
    )


def has_repeats(evidence: Evidence, estimator: str) -> bool:
    """Return whether most items have the repeats that an estimator needs."""
    return evidence.count_repeated(estimator) >= MIN_REPEATED * evidence.cells.items


def estimator_table() -> str:
    """Format all rows as a Markdown table, for the docs."""
    from forgetmap.comparison.evidence import NEEDS

    rows = [
        "| name | formula | scale | needs | assumes | misleads when |",
        "|---|---|---|---|---|---|",
    ]
    for row in all_estimators():
        needs = ", ".join(NEEDS[need].label for need in row.needs if need != "items")
        cells = (f"`{row.name}`", row.formula, row.scale, needs, row.assumes or "", row.misleads)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
