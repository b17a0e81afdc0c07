"""Which scorers there are: ours, and those that installed packages add by entry point.

A package adds one by an entry point in the group `forgetmap.scorers` that names an object as
described in scorer.py; one of a known name replaces ours. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import Literal, cast

from forgetmap._plugins import Registry
from forgetmap.scoring.scorer import Scorer

Needs = Literal["rule", "judge", "sandbox"]
_METHODS: dict[str, Needs] = {"score": "rule", "asks": "judge", "program": "sandbox"}
_BUILT_IN = {
    "option": "answers:option",
    "number": "answers:number",
    "maths": "answers:maths",
    "alias": "answers:alias",
    "short_answer": "answers:short_answer",
    "yes_no": "answers:yes_no",
    "retrieval": "answers:retrieval",
    "json_schema": "json_schema:json_schema",
    "calls": "calls:calls",
    "citations": "citations:citations",
    "constraints": "constraints:constraints",
    "style": "style:style",
    "refusal": "refusal:refusal",
    "reasoning_steps": "reasoning_steps:reasoning_steps",
    "faithfulness": "judges:faithfulness",
    "coverage": "judges:coverage",
    "reasoning": "judges:reasoning",
    "unsafe_refusal": "judges:unsafe_refusal",
    "following": "judges:following",
    "rating": "judges:rating",
    "option_judge": "judges:option_judge",
    "maths_judge": "judges:maths_judge",
    "code": "code:code",
}


def _check_scorer(value: object) -> Scorer:
    complete = all(hasattr(value, part) for part in ("name", "version", "fields"))
    if not complete or not any(hasattr(value, method) for method in _METHODS):
        raise TypeError("it lacks name, version, fields or a way to score (see docs/scorers.md)")
    return cast("Scorer", value)


SCORERS = Registry(
    "forgetmap.scorers",
    "scorer",
    {name: f"forgetmap.scoring.{home}" for name, home in sorted(_BUILT_IN.items())},
    _check_scorer,
    extra="drift",
)


def find_scorer(name: str) -> Scorer:
    """The scorer of this name.

    Raises:
        UsageError: there is none, it needs a package, or the one that adds it is broken.
    """
    return SCORERS.get(name)


def needs_of(scorer: Scorer) -> Needs:
    """What it takes to use a scorer: nothing but the rule, a judge, or a sandbox."""
    return next(needs for method, needs in _METHODS.items() if hasattr(scorer, method))


def signed(scorer: Scorer) -> str:
    """How a scorer signs its records."""
    return f"{scorer.name}@{scorer.version}"
