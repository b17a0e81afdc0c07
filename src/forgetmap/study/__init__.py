"""Studies: many pairs of models, declared in one file, and findings over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.study.bill import BillRates, RunBill, bill_of, make_rates, tell_bill
    from forgetmap.study.budget import RunLimits
    from forgetmap.study.claims import published_findings
    from forgetmap.study.compare import compare_study, find_runs, study_gaps
    from forgetmap.study.declaration import Study, StudyMerge, StudyModel, StudyPair, write_size
    from forgetmap.study.detail import (
        CategoryChange,
        ModelAccuracy,
        PairDetail,
        PrintedValues,
        StudyDetail,
        TaskChange,
        examine_study,
        model_accuracies,
        published_detail,
    )
    from forgetmap.study.findings import find_effects
    from forgetmap.study.items import ItemReader, LostItem
    from forgetmap.study.ledger import RunUpdate, StudyRuns
    from forgetmap.study.merging import MergeChanges, merging_reduces
    from forgetmap.study.pair_table import TOTAL, Effect, PairFacts, StudyTable, pair_facts
    from forgetmap.study.place import Placement, place_pair, place_values, tell_placement
    from forgetmap.study.plan import PlannedRun, find_servers, plan_runs
    from forgetmap.study.published import PublishedPair, published_pairs, published_table
    from forgetmap.study.read import model_line, parse_study, read_study
    from forgetmap.study.render import (
        DRIFT_LEGEND,
        SUPPORT,
        TONES,
        tell_categories,
        tell_findings,
        tell_gaps,
        tell_published,
        tell_status,
        tell_study,
    )
    from forgetmap.study.result import (
        FindingsResult,
        GroupEffect,
        ModelStatus,
        PairDrift,
        PublishedFindings,
        StudyFinding,
        StudyGap,
        StudyResult,
        StudyStatus,
    )
    from forgetmap.study.run import run_study
    from forgetmap.study.run_files import RunEffort
    from forgetmap.study.speed import GPUS, Speed, choose_speed
    from forgetmap.study.status import run_command, study_status
    from forgetmap.study.summary import StudySummary, summarize_study, tell_summary
    from forgetmap.study.templates import TEMPLATES, study_template
    from forgetmap.study.words import estimate_cell, points

__all__ = [
    "DRIFT_LEGEND",
    "GPUS",
    "SUPPORT",
    "TEMPLATES",
    "TONES",
    "TOTAL",
    "BillRates",
    "CategoryChange",
    "Effect",
    "FindingsResult",
    "GroupEffect",
    "ItemReader",
    "LostItem",
    "MergeChanges",
    "ModelAccuracy",
    "ModelStatus",
    "PairDetail",
    "PairDrift",
    "PairFacts",
    "Placement",
    "PlannedRun",
    "PrintedValues",
    "PublishedFindings",
    "PublishedPair",
    "RunBill",
    "RunEffort",
    "RunLimits",
    "RunUpdate",
    "Speed",
    "Study",
    "StudyDetail",
    "StudyFinding",
    "StudyGap",
    "StudyMerge",
    "StudyModel",
    "StudyPair",
    "StudyResult",
    "StudyRuns",
    "StudyStatus",
    "StudySummary",
    "StudyTable",
    "TaskChange",
    "bill_of",
    "choose_speed",
    "compare_study",
    "estimate_cell",
    "examine_study",
    "find_effects",
    "find_runs",
    "find_servers",
    "make_rates",
    "merging_reduces",
    "model_accuracies",
    "model_line",
    "pair_facts",
    "parse_study",
    "place_pair",
    "place_values",
    "plan_runs",
    "points",
    "published_detail",
    "published_findings",
    "published_pairs",
    "published_table",
    "read_study",
    "run_command",
    "run_study",
    "study_gaps",
    "study_status",
    "study_template",
    "summarize_study",
    "tell_bill",
    "tell_categories",
    "tell_findings",
    "tell_gaps",
    "tell_placement",
    "tell_published",
    "tell_status",
    "tell_study",
    "tell_summary",
    "write_size",
]

__getattr__ = load_on_use(__name__, __file__)
