"""Comparisons of runs: the change of each item, and sums over groups of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.comparison.api import (
        FanOut,
        Options,
        chain,
        compare,
        make_readings,
        make_rule,
        open_all,
    )
    from forgetmap.comparison.cells import CELL_NAMES, REASONS, Cells, reason_of
    from forgetmap.comparison.chains import Chain
    from forgetmap.comparison.choices import (
        CORRECT_AT,
        LEVEL,
        MARGIN,
        MIN_PAIRED,
        PLANNED_NOISE,
        REPEAT_COUNTS,
        STATED_ESTIMATORS,
        TASK_TABLES,
        Kind,
        PlanInput,
        Rollup,
    )
    from forgetmap.comparison.comparison import Comparison, measure_group_coverage
    from forgetmap.comparison.contradictions import first_contradiction
    from forgetmap.comparison.copies import distinct_repeats, without_copies
    from forgetmap.comparison.estimators import (
        ADDED_ESTIMATORS,
        Estimator,
        FromCounts,
        FromRepeats,
        all_estimators,
        estimator_names,
        estimator_table,
        find_estimator,
    )
    from forgetmap.comparison.evidence import Evidence
    from forgetmap.comparison.export import write_result
    from forgetmap.comparison.flips import (
        KINDS,
        SHARED_COLUMNS,
        SIDE_COLUMNS,
        select_flips,
        with_texts,
    )
    from forgetmap.comparison.frames import flat_table
    from forgetmap.comparison.fresh import MIN_FLIPS, asking_again, first_flips, provable_loss
    from forgetmap.comparison.judge import (
        Claim,
        VerdictSettings,
        judge_family,
        judge_group,
        judge_losses,
        judge_together,
    )
    from forgetmap.comparison.kinds import ItemAnswers, Kinds, item_kinds, kinds_of
    from forgetmap.comparison.labels import Label
    from forgetmap.comparison.phrases import (
        NO_COMMANDS,
        REASON_LABELS,
        SIMULATED,
        TONES,
        Commands,
        NextStep,
        badge,
        confirm_step,
        counts_sentence,
        drop_sentence,
        headline,
        interval,
        next_steps,
        sentence,
        step_texts,
        undecided_reason,
        verdict_words,
    )
    from forgetmap.comparison.pipeline import Extra, compare_sides, gather_grounds, judge_tasks
    from forgetmap.comparison.plan import AdviceResult, PlanResult, advise, make_plan
    from forgetmap.comparison.render import View, print_comparison, tell_comparison
    from forgetmap.comparison.reruns import refuse_other_model
    from forgetmap.comparison.result import (
        ComparisonResult,
        ConfirmedResult,
        DecidesResult,
        ExchangeResult,
        FanOutResult,
        GroupResult,
        LimitsResult,
        PairingResult,
        PathResult,
        Rule,
        RunResult,
        Undecided,
    )
    from forgetmap.comparison.rollups import SeedRow, roll_up
    from forgetmap.comparison.summary import Summary, summarize
    from forgetmap.comparison.task_tables import load_table, plain_name

__all__ = [
    "ADDED_ESTIMATORS",
    "CELL_NAMES",
    "CORRECT_AT",
    "KINDS",
    "LEVEL",
    "MARGIN",
    "MIN_FLIPS",
    "MIN_PAIRED",
    "NO_COMMANDS",
    "PLANNED_NOISE",
    "REASONS",
    "REASON_LABELS",
    "REPEAT_COUNTS",
    "SHARED_COLUMNS",
    "SIDE_COLUMNS",
    "SIMULATED",
    "STATED_ESTIMATORS",
    "TASK_TABLES",
    "TONES",
    "AdviceResult",
    "Cells",
    "Chain",
    "Claim",
    "Commands",
    "Comparison",
    "ComparisonResult",
    "ConfirmedResult",
    "DecidesResult",
    "Estimator",
    "Evidence",
    "ExchangeResult",
    "Extra",
    "FanOut",
    "FanOutResult",
    "FromCounts",
    "FromRepeats",
    "GroupResult",
    "ItemAnswers",
    "Kind",
    "Kinds",
    "Label",
    "LimitsResult",
    "NextStep",
    "Options",
    "PairingResult",
    "PathResult",
    "PlanInput",
    "PlanResult",
    "Rollup",
    "Rule",
    "RunResult",
    "SeedRow",
    "Summary",
    "Undecided",
    "VerdictSettings",
    "View",
    "advise",
    "all_estimators",
    "asking_again",
    "badge",
    "chain",
    "compare",
    "compare_sides",
    "confirm_step",
    "counts_sentence",
    "distinct_repeats",
    "drop_sentence",
    "estimator_names",
    "estimator_table",
    "find_estimator",
    "first_contradiction",
    "first_flips",
    "flat_table",
    "gather_grounds",
    "headline",
    "interval",
    "item_kinds",
    "judge_family",
    "judge_group",
    "judge_losses",
    "judge_tasks",
    "judge_together",
    "kinds_of",
    "load_table",
    "make_plan",
    "make_readings",
    "make_rule",
    "measure_group_coverage",
    "next_steps",
    "open_all",
    "plain_name",
    "print_comparison",
    "provable_loss",
    "reason_of",
    "refuse_other_model",
    "roll_up",
    "select_flips",
    "sentence",
    "step_texts",
    "summarize",
    "tell_comparison",
    "undecided_reason",
    "verdict_words",
    "with_texts",
    "without_copies",
    "write_result",
]

__getattr__ = load_on_use(__name__, __file__)
