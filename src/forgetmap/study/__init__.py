"""Many pairs of models, declared in one file, and what can be said about all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.study.bill import RunBill, bill_of, tell_bill
    from forgetmap.study.claims import published_findings
    from forgetmap.study.compare import compare_study, find_runs, study_gaps, study_status
    from forgetmap.study.declaration import Study, StudyMerge, StudyModel, StudyPair
    from forgetmap.study.findings import find_effects
    from forgetmap.study.merging import MergeChanges, merging_reduces
    from forgetmap.study.pair_table import PairFacts, StudyTable, pair_facts
    from forgetmap.study.place import Placement, place_pair, place_values, tell_placement
    from forgetmap.study.published import PublishedPair, published_pairs, published_table
    from forgetmap.study.read import parse_study, read_study
    from forgetmap.study.render import (
        tell_categories,
        tell_findings,
        tell_gaps,
        tell_published,
        tell_status,
        tell_study,
    )
    from forgetmap.study.result import (
        FindingsResult,
        PublishedFindings,
        StudyFinding,
        StudyResult,
        StudyStatus,
    )
    from forgetmap.study.run import PlannedRun, StudyRuns, plan_runs, run_study
    from forgetmap.study.summary import StudySummary, summarize_study, tell_summary
    from forgetmap.study.templates import TEMPLATES, study_template

__all__ = [
    "TEMPLATES",
    "FindingsResult",
    "MergeChanges",
    "PairFacts",
    "Placement",
    "PlannedRun",
    "PublishedFindings",
    "PublishedPair",
    "RunBill",
    "Study",
    "StudyFinding",
    "StudyMerge",
    "StudyModel",
    "StudyPair",
    "StudyResult",
    "StudyRuns",
    "StudyStatus",
    "StudySummary",
    "StudyTable",
    "bill_of",
    "compare_study",
    "find_effects",
    "find_runs",
    "merging_reduces",
    "pair_facts",
    "parse_study",
    "place_pair",
    "place_values",
    "plan_runs",
    "published_findings",
    "published_pairs",
    "published_table",
    "read_study",
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
]

__getattr__ = load_on_use(__name__, __file__)
