"""Claims of two papers, tested on their published values.

The papers give no numbers for "low", "moderate" and "large"; here forgetting or transfer is low
below 5 points, moderate up to 15 and large above.
"""

from __future__ import annotations

import numpy as np

from forgetmap.stats import Contrast, clustered_contrast
from forgetmap.study.declaration import LEVEL, MARGIN
from forgetmap.study.effects import as_estimate, difference, mean_effect
from forgetmap.study.findings import (
    STYLE,
    group_effects,
    larger_forget_less,
    little_data_forgets_less,
    named,
    not_catastrophic,
    one_domain_forgets_more,
    sign_answer,
    start_matters,
    style_matters,
    within_answer,
)
from forgetmap.study.merging import MergeChanges, merging_reduces
from forgetmap.study.pair_table import TOTAL, Effect, StudyTable
from forgetmap.study.published import (
    SEEDS,
    PublishedDrift,
    published_drift,
    published_pairs,
    published_source,
    published_table,
)
from forgetmap.study.result import (
    Answer,
    NamedEstimate,
    PaperFindings,
    PublishedFindings,
    StudyFinding,
)
from forgetmap.study.words import interval, points, signed_points
from forgetmap.text import listed, signed

LOW, MODERATE = 0.05, 0.15
PRETRAINING, TUNING = "domain pretraining", "instruction tuning"
REASONING = "reasoning from base"
LITTLE, MUCH = "reasoning from instruct, low data", "reasoning from instruct, high data"
PROMPT = (
    "all of these pairs use few-shot prompts before and zero-shot chat prompts after; on MMLU, "
    "base models answer without reasoning and tuned models with it."
)
FAILED_FORM = (
    "unreadable answers count as forgotten; the authors report this for OpenCodeReasoning and "
    "Qwen2.5-Math-Instruct."
)
MISLABELLED = (
    "the printed ceilings of the reference models of merges equal those of Qwen2.5-Coder-7B and "
    "its Instruct, not those of the named models."
)
FEW_TASKS = (
    "Culture consists of two tasks; in Knowledge, object counting asks for letters that only "
    "the few-shot prompt explains."
)
MMLU_ONLY = "merges of OpenThinker were scored on MMLU alone and are left out."
MORE_DRIFT = "Instruction tuning drifts more than DPO."
RECOVERY = "DPO reverses part of the drift of instruction tuning."
NO_ITEMS = (
    "the published numbers do not include item error, so the intervals of means are too narrow."
)


def published_findings(level: float = LEVEL) -> PublishedFindings:
    """Test the claims of the papers on their published values.

    Args:
        level: confidence level of the intervals.
    """
    table = published_table()
    return PublishedFindings(
        level=level,
        papers=[
            PaperFindings(
                paper="Harmon et al., Mapping Post-Training Forgetting",
                source=published_source(),
                findings=_post_forget(table, level),
                further=_further(table, level),
            ),
            PaperFindings(
                paper="Thede et al., CapTrack",
                source=published_drift().source,
                findings=_captrack(published_drift(), level),
                further=[],
            ),
        ],
        groups=group_effects(table, level),
    )


def _post_forget(table: StudyTable, level: float) -> list[StudyFinding]:
    trends = (larger_forget_less(table, level), _reasoning_transfers_more(table, level))
    return [
        _pretraining(table, level),
        _tuning(table, TUNING, level),
        _tuning(table, REASONING, level),
        _little_data(table, level),
        _much_data(table),
        _merging(level),
        *(finding for finding in trends if finding is not None),
    ]


def _further(table: StudyTable, level: float) -> list[StudyFinding]:
    """Return findings that the paper does not claim, but that its values allow to test."""
    findings = (
        little_data_forgets_less(table, level),
        start_matters(table, level),
        one_domain_forgets_more(table, level),
        style_matters(table, level),
    )
    return [
        _culture_and_knowledge(table, level),
        *(finding for finding in findings if finding is not None),
        *(not_catastrophic(table, group, level, MARGIN) for group in table.groups),
    ]


def _pretraining(table: StudyTable, level: float) -> StudyFinding:
    return _sizes_of_effects(
        table, PRETRAINING, level,
        id="pretraining",
        claim="Domain pretraining causes moderate forgetting and low to moderate transfer.",
        wanted=[
            ("forgetting", TOTAL, LOW, MODERATE),
            ("backward_transfer", TOTAL, 0.0, MODERATE),
        ],
        confounds=["four of the five pairs are one recipe (Coder) of one family.", NO_ITEMS],
    )  # fmt: skip


def _tuning(table: StudyTable, group: str, level: float) -> StudyFinding:
    confounds = [PROMPT, NO_ITEMS, *([FAILED_FORM] if group == REASONING else [])]
    return _sizes_of_effects(
        table, group, level,
        id=group.replace(" ", "-"),
        claim=f"{group.capitalize()} causes moderate to large transfer in maths and logic, and "
        "low to moderate forgetting.",
        wanted=[
            ("backward_transfer", "Math", LOW, 1.0),
            ("backward_transfer", "Logic", LOW, 1.0),
            ("forgetting", TOTAL, 0.0, MODERATE),
        ],
        confounds=confounds,
    )  # fmt: skip


def _little_data(table: StudyTable, level: float) -> StudyFinding:
    return _sizes_of_effects(
        table, LITTLE, level,
        id="little-data",
        claim="With little data, training from instruct models causes little forgetting and "
        "little transfer.",
        wanted=[("forgetting", TOTAL, 0.0, LOW), ("backward_transfer", TOTAL, 0.0, LOW)],
        confounds=["three of five pairs have the same model before (32B).", NO_ITEMS],
    )  # fmt: skip


def _reasoning_transfers_more(table: StudyTable, level: float) -> StudyFinding | None:
    rows = (table.rows(group=REASONING), table.rows(group=TUNING))
    result = difference(table, "backward_transfer", rows, level=level)
    if result is None:
        return None
    contrast, (first, second) = result
    return StudyFinding(
        id="reasoning-transfer",
        claim="Reasoning training from base causes more backward transfer than instruction tuning.",
        answer=sign_answer(contrast, below=False),
        sentence=f"The difference is {interval(contrast, signed_points)}; "
        f"{int(first.sum())} pairs against {int(second.sum())}.",
        evidence=[named("difference of mean transfer", contrast, table, first | second)],
        confounds=["the two stages share only some of their models before.", NO_ITEMS],
    )


def _sizes_of_effects(
    table: StudyTable,
    group: str,
    level: float,
    *,
    id: str,  # noqa: A002  # the field of a finding
    claim: str,
    wanted: list[tuple[Effect, str, float, float]],
    confounds: list[str],
) -> StudyFinding:
    """Test whether means of a group are within bounds: yes if all are, no if one is not."""
    rows = table.rows(group=group)
    evidence, answers, parts = [], [], []
    for effect, category, lowest, highest in wanted:
        contrast = mean_effect(table, effect, rows, category, level)
        name = f"{effect.replace('_', ' ')}, {category}"
        evidence.append(named(name, contrast, table, rows, is_share=True))
        answers.append(within_answer(contrast, lowest, highest))
        parts.append(f"{name}: {interval(contrast)}")
    return StudyFinding(
        id=id,
        claim=claim,
        answer=_all_of(answers),
        sentence=_sentence("; ".join(parts)),
        evidence=evidence,
        confounds=confounds,
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _all_of(answers: list[Answer]) -> Answer:
    if "no" in answers:
        return "no"
    return "cannot tell" if "cannot tell" in answers else "yes"


def _much_data(table: StudyTable) -> StudyFinding:
    rows = table.rows(group=MUCH)
    values = table.values("forgetting")[rows]
    labels = [fact.label for fact, is_in in zip(table.facts, rows, strict=True) if is_in]
    low = [label for label, value in zip(labels, values, strict=True) if value < LOW]
    large = [label for label, value in zip(labels, values, strict=True) if value > MODERATE]
    return StudyFinding(
        id="much-data",
        claim="With much data, training from instruct models has mixed effects.",
        answer="yes" if low and large else "cannot tell",
        sentence=f"Forgetting ranges from {points(values.min())} to {points(values.max())}: low "
        f"in {listed(low)}; large in {listed(large)}. Seeds alone vary by at most 1.5 points.",
        evidence=[],
        confounds=[
            "the largest value (Open Math 2) belongs to a base model with few-shot prompts before.",
            FAILED_FORM,
        ],
    )


def _merging(level: float) -> StudyFinding:
    """Return the finding for merges of Coder; others have other tasks than their models."""
    from scipy.special import stdtrit

    pairs = {(pair.before, pair.after): pair for pair in published_pairs()}
    later = pairs["Qwen2.5-7B", "Qwen2.5-Coder-7B"]
    merges = [
        pair
        for (before, after), pair in pairs.items()
        if before == later.before and after.startswith("coder-")
    ]
    changes = [pair.forgetting[TOTAL] - later.forgetting[TOTAL] for pair in merges]
    spread = [np.hypot(pair.forgetting_sd, later.forgetting_sd) for pair in merges]
    finding = merging_reduces(
        MergeChanges(
            labels=tuple(pair.label for pair in merges),
            lineages=(later.before,) * len(merges),
            changes=np.asarray(changes),
            errors=np.asarray(spread) / np.sqrt(SEEDS),
            reach=float(stdtrit(2 * (SEEDS - 1), (1 + level) / 2)),
        ),
        level,
    )
    # The paper claims the opposite: that merging is not reliable.
    opposite: dict[Answer, Answer] = {"yes": "no", "no": "yes", "cannot tell": "cannot tell"}
    return finding.model_copy(
        update={
            "claim": "Merging does not reliably mitigate forgetting.",
            "answer": opposite[finding.answer],
            "confounds": [*finding.confounds, MISLABELLED, MMLU_ONLY],
        }
    )


def _culture_and_knowledge(table: StudyTable, level: float) -> StudyFinding:
    """Compare the two categories with all others, over all pairs and those with equal prompts."""
    chosen = [table.categories.index(name) for name in ("Culture", "Knowledge")]
    others = [
        place
        for place, name in enumerate(table.categories)
        if place not in chosen and name != TOTAL
    ]
    gaps = np.nanmean(table.forgetting[:, chosen], axis=1)
    gaps = gaps - np.nanmean(table.forgetting[:, others], axis=1)
    alike = table.rows(changed_style=False)
    contrasts = []
    for rows in (np.ones(len(gaps), bool), alike, ~alike):
        clusters = [fact.lineage for fact, is_in in zip(table.facts, rows, strict=True) if is_in]
        ones = np.ones((len(clusters), 1))
        contrasts.append(clustered_contrast(gaps[rows], ones, [1.0], clusters, level=level))
    everything, same, changed = contrasts
    return StudyFinding(
        id="categories",
        claim="Culture and knowledge are forgotten more than the rest.",
        answer=sign_answer(everything, below=False),
        sentence=f"The gap to the other categories is {interval(everything, signed_points)}; "
        f"{interval(changed, signed_points)} where the prompt changes, "
        f"{interval(same, signed_points)} where it does not.",
        evidence=[
            named("gap to other categories, all pairs", everything, table, alike | ~alike),
            named("gap where the prompt changes", changed, table, ~alike),
            named("gap where it does not", same, table, alike),
        ],
        confounds=[FEW_TASKS, STYLE.format(int((~alike).sum()), len(gaps))],
    )


def _captrack(drift: PublishedDrift, level: float) -> list[StudyFinding]:
    ift, dpo, both = (
        np.abs(drift.models[f"Qwen3 80B {name}"]) for name in ("IFT", "DPO", "IFT+DPO")
    )
    one = "one model and one domain without items: nothing is known about other models."
    relative = "a mean of relative changes: metrics with low values before count most."
    family = "All released values belong to one family."
    size = "All released values belong to one size."
    return [
        _drift_gap("algorithms", MORE_DRIFT, ift - dpo, level, [one, relative]),
        _drift_gap("recovery", RECOVERY, ift - both, level, [one, relative]),
        _untold("drift-size", "Size does not protect from drift.", size),
        _untold("families", "Families drift differently.", family),
    ]  # fmt: skip


def _drift_gap(
    id: str,  # noqa: A002  # the field of a finding
    claim: str,
    gaps: np.ndarray[tuple[int], np.dtype[np.float64]],
    level: float,
    confounds: list[str],
) -> StudyFinding:
    """Return the mean difference of absolute drift over capabilities, in percent."""
    contrast: Contrast = clustered_contrast(
        gaps, np.ones((len(gaps), 1)), [1.0], range(len(gaps)), level=level
    )
    numbers = [signed(value, 1) for value in (contrast.value, contrast.low, contrast.high)]
    answer = sign_answer(contrast, below=False)
    return StudyFinding(
        id=id,
        claim=claim,
        answer=answer,
        sentence=f"Over {len(gaps)} capabilities of the one released model, mean absolute drift "
        f"differs by {numbers[0]} % ({numbers[1]} to {numbers[2]}).",
        evidence=[
            NamedEstimate(
                name="difference of mean absolute drift, percent",
                estimate=as_estimate(contrast, "Student's t over capabilities"),
                pairs=2,
                lineages=1,
            )
        ],
        confounds=confounds,
    )


def _untold(id: str, claim: str, why: str) -> StudyFinding:  # noqa: A002
    return StudyFinding(
        id=id, claim=claim, answer="cannot tell", sentence=why, evidence=[],
        confounds=[],
    )  # fmt: skip
