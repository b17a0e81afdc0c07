"""Scoring of answers: extraction, grades and outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.scoring.grade import (
        UNSCORED,
        AnswerKind,
        Grade,
        grade_answer,
        grade_failure,
        grade_missing,
        outcome_of,
    )
    from forgetmap.scoring.grading import grade_likelihoods, grade_response
    from forgetmap.scoring.llm_judge.judge import Judge, open_judge
    from forgetmap.scoring.registry import (
        SCORERS,
        Needs,
        find_scorer,
        load_scorer,
        needs_of,
        score_sample,
        scorer_names,
        signature_of,
    )
    from forgetmap.scoring.sandbox.run import require_sandbox, run_programs
    from forgetmap.scoring.scorer import (
        TAMPERING,
        CodeScorer,
        Fields,
        JudgeQuestion,
        JudgeScorer,
        Polarity,
        Program,
        ProgramResult,
        RuleScorer,
        Scale,
        Scorer,
        ScorerInput,
    )

__all__ = [
    "SCORERS",
    "TAMPERING",
    "UNSCORED",
    "AnswerKind",
    "CodeScorer",
    "Fields",
    "Grade",
    "Judge",
    "JudgeQuestion",
    "JudgeScorer",
    "Needs",
    "Polarity",
    "Program",
    "ProgramResult",
    "RuleScorer",
    "Scale",
    "Scorer",
    "ScorerInput",
    "find_scorer",
    "grade_answer",
    "grade_failure",
    "grade_likelihoods",
    "grade_missing",
    "grade_response",
    "load_scorer",
    "needs_of",
    "open_judge",
    "outcome_of",
    "require_sandbox",
    "run_programs",
    "score_sample",
    "scorer_names",
    "signature_of",
]

__getattr__ = load_on_use(__name__, __file__)
