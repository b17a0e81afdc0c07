"""All scorers that need a judge."""

from __future__ import annotations

from forgetmap.scoring.judging.conduct import unsafe_refusal
from forgetmap.scoring.judging.fallbacks import maths_judge, option_judge
from forgetmap.scoring.judging.grounding import coverage, faithfulness
from forgetmap.scoring.judging.quality import following, rating, reasoning

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
