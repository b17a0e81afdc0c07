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
        NOISE_FLOOR,
        OPTION_COUNTS,
        REPEAT_COUNTS,
        SAMPLED_NOISE,
        TASK_TABLES,
        Kind,
        Rollup,
        Wish,
    )
    from forgetmap.comparison.comparison import Comparison
    from forgetmap.comparison.contradictions import first_contradiction
    from forgetmap.comparison.estimators import (
        ADDED_ESTIMATORS,
        BUILT_IN_NAMES,
        Estimator,
        all_estimators,
        estimator_names,
        estimator_table,
        find_estimator,
        number_estimators,
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
    from forgetmap.comparison.judgement import (
        GroupKind,
        JudgedQuantity,
        Judgement,
        group_evidence,
        judge_family,
        judge_group,
        make_group_policy,
        measure_group_coverage,
    )
    from forgetmap.comparison.pipeline import compare_sides, pair_and_count
    from forgetmap.comparison.plan import (
        AdviceResult,
        PlanResult,
        advise,
        make_plan,
        next_steps,
    )
    from forgetmap.comparison.render import print_comparison, tell_comparison
    from forgetmap.comparison.repeated import ItemSums, sum_items
    from forgetmap.comparison.result import (
        ComparisonResult,
        DecidesResult,
        FanOutResult,
        GroupResult,
        PairingResult,
        PathResult,
        Rule,
        RunResult,
        Verdict,
    )
    from forgetmap.comparison.rollups import SeedRow, roll_up
    from forgetmap.comparison.summary import NO_COMMANDS, Commands, Summary, summarize
    from forgetmap.comparison.task_tables import load_table, plain_name
    from forgetmap.comparison.verdict import (
        BEYOND_NOISE,
        Policy,
        decide,
        decided_sentence,
        items_that_decide,
    )
    from forgetmap.comparison.words import REASON_LABELS, SIMULATED

__all__ = [
    "ADDED_ESTIMATORS",
    "BEYOND_NOISE",
    "BUILT_IN_NAMES",
    "CELL_NAMES",
    "CORRECT_AT",
    "KINDS",
    "LEVEL",
    "MARGIN",
    "MIN_PAIRED",
    "NOISE_FLOOR",
    "NO_COMMANDS",
    "OPTION_COUNTS",
    "REASONS",
    "REASON_LABELS",
    "REPEAT_COUNTS",
    "SAMPLED_NOISE",
    "SHARED_COLUMNS",
    "SIDE_COLUMNS",
    "SIMULATED",
    "TASK_TABLES",
    "AdviceResult",
    "Cells",
    "Chain",
    "Commands",
    "Comparison",
    "ComparisonResult",
    "DecidesResult",
    "Estimator",
    "Evidence",
    "FanOut",
    "FanOutResult",
    "GroupKind",
    "GroupResult",
    "ItemSums",
    "JudgedQuantity",
    "Judgement",
    "Kind",
    "Options",
    "PairingResult",
    "PathResult",
    "PlanResult",
    "Policy",
    "Rollup",
    "Rule",
    "RunResult",
    "SeedRow",
    "Summary",
    "Verdict",
    "Wish",
    "advise",
    "all_estimators",
    "chain",
    "compare",
    "compare_sides",
    "decide",
    "decided_sentence",
    "estimator_names",
    "estimator_table",
    "find_estimator",
    "first_contradiction",
    "flat_table",
    "group_evidence",
    "items_that_decide",
    "judge_family",
    "judge_group",
    "load_table",
    "make_group_policy",
    "make_plan",
    "make_readings",
    "make_rule",
    "measure_group_coverage",
    "next_steps",
    "number_estimators",
    "open_all",
    "pair_and_count",
    "plain_name",
    "print_comparison",
    "reason_of",
    "roll_up",
    "select_flips",
    "sum_items",
    "summarize",
    "tell_comparison",
    "with_texts",
    "write_result",
]

__getattr__ = load_on_use(__name__, __file__)
