"""Findings as tested statements with intervals; an answer may be "cannot tell"."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from forgetmap.results import Estimate, Notice
from forgetmap.stats import Contrast
from forgetmap.study.declaration import LEVEL, MARGIN
from forgetmap.study.effects import (
    OF_THESE,
    as_estimate,
    as_share,
    difference,
    lineages,
    mean_effect,
    mean_of_these,
    size_trend,
)
from forgetmap.study.pair_table import TOTAL, Effect, Flags, StudyTable
from forgetmap.study.result import (
    Answer,
    FindingsResult,
    GroupEffect,
    NamedEstimate,
    StudyFinding,
)
from forgetmap.study.words import interval, points, signed_points
from forgetmap.text import counted, listed

ASSUMED = "the {} of {} of these {} are assumed, because no source of the study gives them."
STYLE = "{} of {} pairs change the prompt style: apparent forgetting may be due to the prompt."
FROM_BASE, FROM_INSTRUCT = " from base", " from instruct"
MIN_LINEAGES = 5
"""With fewer lineages, intervals are wide whatever the number of pairs."""


def find_effects(
    table: StudyTable, name: str, *, level: float = LEVEL, margin: float = MARGIN
) -> FindingsResult:
    """Return all findings over the pairs of a study.

    Args:
        table: values of all pairs.
        name: name of the study.
        level: confidence level of the intervals.
        margin: total forgetting above which it is called catastrophic.
    """
    everything = np.ones(len(table.facts), bool)
    makers: list[Callable[[StudyTable, float], StudyFinding | None]] = [
        larger_forget_less,
        little_data_forgets_less,
        start_matters,
        one_domain_forgets_more,
        style_matters,
    ]
    findings = [make(table, level) for make in makers]
    return FindingsResult(
        study=name,
        level=level,
        margin=margin,
        pairs=len(table.facts),
        lineages=lineages(table, everything),
        findings=[
            *(finding for finding in findings if finding is not None),
            *(not_catastrophic(table, group, level, margin) for group in table.groups),
        ],
        groups=group_effects(table, level),
        notices=list(_notices(table, everything)),
    )


def group_effects(table: StudyTable, level: float = LEVEL) -> list[GroupEffect]:
    """Return forgetting and backward transfer of every group in every category."""
    return [
        _group_effect(table, group, category, level)
        for group in table.groups
        for category in table.categories
    ]


def _group_effect(table: StudyTable, group: str, category: str, level: float) -> GroupEffect:
    rows = table.rows(group=group)
    rows &= ~np.isnan(table.values("forgetting", category))
    here: dict[Effect, Estimate] = {
        effect: as_share(mean_of_these(table, effect, rows, category, level), OF_THESE)
        for effect in ("forgetting", "backward_transfer")
    }
    return GroupEffect(
        group=group,
        category=category,
        pairs=int(rows.sum()),
        lineages=lineages(table, rows),
        forgetting=as_share(mean_effect(table, "forgetting", rows, category, level)),
        backward_transfer=as_share(mean_effect(table, "backward_transfer", rows, category, level)),
        forgetting_of_these=here["forgetting"],
        backward_transfer_of_these=here["backward_transfer"],
    )


def larger_forget_less(table: StudyTable, level: float = LEVEL) -> StudyFinding | None:
    """Test whether forgetting falls with size, within series of similar models."""
    trend = size_trend(table, "forgetting", TOTAL, level)
    if trend is None:
        return None
    contrast, rows = trend
    answer = sign_answer(contrast, below=True)
    ending = {
        "yes": "larger models forget less",
        "no": "larger models forget more",
        "cannot tell": "it is unclear whether larger models forget less",
    }[answer]
    return StudyFinding(
        id="size",
        claim="Larger models forget less.",
        answer=answer,
        sentence=f"Per doubling of size forgetting changes by {interval(contrast, signed_points)} "
        f"in {_series_count(table, rows)}: {ending}.{_uneven_series(table, rows)}",
        evidence=[named("change per doubling of size", contrast, table, rows)],
        confounds=list(_confounds(table, rows)),
    )


def little_data_forgets_less(table: StudyTable, level: float = LEVEL) -> StudyFinding | None:
    """Test whether training on little data forgets less than on much, within one stage."""
    rows = (table.rows(data="low"), table.rows(data="high"))
    return _compare(
        table, rows, level,
        id="data",
        claim="Training on little data forgets less than training on much data.",
        what="Less data",
        below=True,
        within=[fact.stage for fact in table.facts],
    )  # fmt: skip


def start_matters(table: StudyTable, level: float = LEVEL) -> StudyFinding | None:
    """Test whether training from an instruct model forgets less than from a base model.

    Stages named `... from base` and `... from instruct` are compared.
    """
    rows = (_ends(table, FROM_INSTRUCT), _ends(table, FROM_BASE))
    return _compare(
        table, rows, level,
        id="start",
        claim="Training from an instruct model forgets less than from a base model.",
        what="Starting from an instruct model",
        below=True,
        within=[
            fact.stage.removesuffix(FROM_INSTRUCT).removesuffix(FROM_BASE) for fact in table.facts
        ],
    )  # fmt: skip


def one_domain_forgets_more(table: StudyTable, level: float = LEVEL) -> StudyFinding | None:
    """Test whether training on one domain forgets more than on a mix, within stages."""
    one = np.asarray([fact.domains == 1 for fact in table.facts])
    mix = np.asarray([fact.domains > 1 for fact in table.facts])
    within = [fact.stage for fact in table.facts]
    finding = _compare(
        table, (one, mix), level,
        id="domains",
        claim="Training on one domain forgets more than training on a mix.",
        what="Training on one domain",
        below=False,
        within=within,
    )  # fmt: skip
    rows = difference(table, "forgetting", (one, mix), within=within, level=level)
    if finding is None or rows is None:
        return None
    confounds = [*assumed_facts(table, rows[1][0] | rows[1][1], "domains"), *finding.confounds]
    return finding.model_copy(update={"confounds": confounds})


def style_matters(table: StudyTable, level: float = LEVEL) -> StudyFinding | None:
    """Test whether pairs with different prompt styles seem to forget more."""
    rows = (table.rows(changed_style=True), table.rows(changed_style=False))
    finding = _compare(
        table, rows, level,
        id="style",
        claim="Pairs that change the prompt style appear to forget more.",
        what="A change of prompt style",
        below=False,
        within=None,
    )  # fmt: skip
    if finding is None:
        return None
    return finding.model_copy(update={"confounds": ["stages differ along with the prompt style."]})


def not_catastrophic(
    table: StudyTable, group: str, level: float = LEVEL, margin: float = MARGIN
) -> StudyFinding:
    """Test whether forgetting in a group is below the margin."""
    rows = table.rows(group=group)
    contrast = mean_effect(table, "forgetting", rows, TOTAL, level)
    above = [
        fact.label
        for fact, value, is_in in zip(table.facts, table.values("forgetting"), rows, strict=True)
        if is_in and value > margin
    ]
    answer = within_answer(contrast, 0.0, margin)
    beyond = f" Above it: {listed(above)}." if above else " No pair is above it."
    return StudyFinding(
        id=f"catastrophic:{group}",
        claim=f"Forgetting in {group} is not catastrophic (below {points(margin)}).",
        answer=answer,
        sentence=f"The mean of {counted(int(rows.sum()), 'pair')} is {interval(contrast)}.{beyond}",
        evidence=[named("mean forgetting", contrast, table, rows, is_share=True)],
        confounds=list(_confounds(table, rows)),
    )


def sign_answer(contrast: Contrast | None, *, below: bool) -> Answer:
    """Return whether a contrast is significantly below 0, or above it."""
    if contrast is None or np.isnan(contrast.error):
        return "cannot tell"
    if contrast.high < 0:
        return "yes" if below else "no"
    if contrast.low > 0:
        return "no" if below else "yes"
    return "cannot tell"


def within_answer(contrast: Contrast | None, lowest: float, highest: float) -> Answer:
    """Return whether a mean is certified to be between two values, or outside."""
    if contrast is None or np.isnan(contrast.error):
        return "cannot tell"
    if max(contrast.low, 0.0) >= lowest and contrast.high <= highest:
        return "yes"
    return "no" if contrast.high < lowest or contrast.low > highest else "cannot tell"


def named(
    name: str,
    contrast: Contrast | None,
    table: StudyTable,
    rows: Flags,
    *,
    is_share: bool = False,
) -> NamedEstimate:
    """Return a contrast as evidence of a finding."""
    return NamedEstimate(
        name=name,
        estimate=as_share(contrast) if is_share else as_estimate(contrast),
        pairs=int(rows.sum()),
        lineages=lineages(table, rows),
    )


def _compare(
    table: StudyTable,
    rows: tuple[Flags, Flags],
    level: float,
    *,
    id: str,  # noqa: A002  # the field of a finding
    claim: str,
    what: str,
    below: bool,
    within: list[str] | None,
) -> StudyFinding | None:
    result = difference(table, "forgetting", rows, within=within, level=level)
    if result is None:
        return None
    contrast, (first, second) = result
    both = first | second
    answer = sign_answer(contrast, below=below)
    ending = "" if answer != "cannot tell" else " It is unclear whether it is more or less."
    return StudyFinding(
        id=id,
        claim=claim,
        answer=answer,
        sentence=f"{what} changes forgetting by {interval(contrast, signed_points)}; "
        f"{counted(int(first.sum()), 'pair')} against {int(second.sum())}.{ending}",
        evidence=[named("difference of mean forgetting", contrast, table, both)],
        confounds=list(_confounds(table, both)),
    )


def assumed_facts(table: StudyTable, rows: Flags, name: str) -> Iterator[str]:
    """State for how many of these pairs a fact of a finding is assumed."""
    facts = [fact for fact, is_in in zip(table.facts, rows, strict=True) if is_in]
    count = sum(name in fact.assumed for fact in facts)
    if count:
        noun = name if name.endswith("s") else f"{name}s"
        yield ASSUMED.format(noun, count, counted(len(facts), "pair"))


def _ends(table: StudyTable, ending: str) -> Flags:
    return np.asarray([fact.stage.endswith(ending) for fact in table.facts])


def _series_count(table: StudyTable, rows: Flags) -> str:
    facts = [fact for fact, is_in in zip(table.facts, rows, strict=True) if is_in]
    series = len({(fact.series, fact.group) for fact in facts})
    return f"{counted(len(facts), 'pair')} of {series} series"


def _uneven_series(table: StudyTable, rows: Flags) -> str:
    """Describe series that neither rise nor fall monotonically, with their values."""
    series: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for fact, value, is_in in zip(table.facts, table.values("forgetting"), rows, strict=True):
        if is_in:
            key = (fact.series or "", fact.group)
            series.setdefault(key, []).append((fact.size or 0.0, float(value)))
    uneven = []
    names = [name for name, _ in series]
    for (name, group), entries in series.items():
        values = [value for _, value in sorted(entries)]
        steps = np.sign(np.diff(values))
        if steps.min() < 0 < steps.max():
            full = f"{name} in {group}" if names.count(name) > 1 else name
            uneven.append(f"{full} ({', '.join(f'{100 * value:.1f}' for value in values)})")
    return f" Not monotone, from small to large: {listed(uneven)}." if uneven else ""


def _confounds(table: StudyTable, rows: Flags) -> Iterator[str]:
    changed = int((rows & table.rows(changed_style=True)).sum())
    if changed:
        yield STYLE.format(changed, int(rows.sum()))
    number = lineages(table, rows)
    if number < MIN_LINEAGES:
        yield f"only {number} {'lineage' if number == 1 else 'lineages'} of models before."


def _notices(table: StudyTable, everything: Flags) -> Iterator[Notice]:
    if not table.covariance:
        yield Notice(
            "no_items",
            "the items are unknown: the intervals of means do not include the dependence of "
            "pairs through common items, so they are too narrow.",
        )
    if lineages(table, everything) < MIN_LINEAGES:
        yield Notice(
            "few_lineages",
            "few lineages: the intervals are wide, regardless of the number of pairs.",
        )
