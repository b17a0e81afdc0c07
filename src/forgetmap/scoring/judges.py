"""All scorers that need a judge."""

from __future__ import annotations

from forgetmap.scoring.llm_judge.conduct import unsafe_refusal
from forgetmap.scoring.llm_judge.fallbacks import maths_judge, option_judge
from forgetmap.scoring.llm_judge.grounding import coverage, faithfulness
from forgetmap.scoring.llm_judge.quality import following, rating, reasoning

__all__ = [
    "coverage",
    "faithfulness",
    "following",
    "maths_judge",
    "option_judge",
    "rating",
    "reasoning",
    "unsafe_refusal",
]
