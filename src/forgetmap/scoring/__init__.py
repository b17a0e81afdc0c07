"""Answers: what was said, what it counts as, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.scoring.grade import grade_response
    from forgetmap.scoring.grades import UNSCORED, AnswerKind, Judged, failed, graded, undecided
    from forgetmap.scoring.likelihood import choose
    from forgetmap.scoring.llm_judge.port import Judge, open_judge
    from forgetmap.scoring.registry import Needs, find_scorer, needs_of, signed
    from forgetmap.scoring.sandbox.run import require_sandbox, run_programs
    from forgetmap.scoring.scorer import (
        Answered,
        Ask,
        CodeScorer,
        Fields,
        JudgeScorer,
        Polarity,
        Program,
        Ran,
        RuleScorer,
        Scale,
        Scorer,
    )
    from forgetmap.scoring.values import outcome_of, values_of

__all__ = [
    "UNSCORED",
    "AnswerKind",
    "Answered",
    "Ask",
    "CodeScorer",
    "Fields",
    "Judge",
    "JudgeScorer",
    "Judged",
    "Needs",
    "Polarity",
    "Program",
    "Ran",
    "RuleScorer",
    "Scale",
    "Scorer",
    "choose",
    "failed",
    "find_scorer",
    "grade_response",
    "graded",
    "needs_of",
    "open_judge",
    "outcome_of",
    "require_sandbox",
    "run_programs",
    "signed",
    "undecided",
    "values_of",
]

__getattr__ = load_on_use(__name__, __file__)
