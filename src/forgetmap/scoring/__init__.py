"""Answers: what was said, what it counts as, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.scoring.grade import (
        UNSCORED,
        AnswerKind,
        Grade,
        failed,
        graded,
        outcome_of,
        undecided,
    )
    from forgetmap.scoring.grading import grade_likelihoods, grade_response
    from forgetmap.scoring.llm_judge.judge import Judge, open_judge
    from forgetmap.scoring.registry import (
        Needs,
        find_scorer,
        load_scorer,
        needs_of,
        scorer_names,
        signed,
        values_of,
    )
    from forgetmap.scoring.sandbox.run import require_sandbox, run_programs
    from forgetmap.scoring.scorer import (
        Answered,
        CodeScorer,
        Fields,
        JudgeQuestion,
        JudgeScorer,
        Polarity,
        Program,
        Ran,
        RuleScorer,
        Scale,
        Scorer,
    )

__all__ = [
    "UNSCORED",
    "AnswerKind",
    "Answered",
    "CodeScorer",
    "Fields",
    "Grade",
    "Judge",
    "JudgeQuestion",
    "JudgeScorer",
    "Needs",
    "Polarity",
    "Program",
    "Ran",
    "RuleScorer",
    "Scale",
    "Scorer",
    "failed",
    "find_scorer",
    "grade_likelihoods",
    "grade_response",
    "graded",
    "load_scorer",
    "needs_of",
    "open_judge",
    "outcome_of",
    "require_sandbox",
    "run_programs",
    "scorer_names",
    "signed",
    "undecided",
    "values_of",
]

__getattr__ = load_on_use(__name__, __file__)
