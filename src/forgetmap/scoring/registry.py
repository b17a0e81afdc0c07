"""The registry of scorers: built-in ones, and those of installed packages by entry point.

A package adds one by an entry point in the group `forgetmap.scorers` that names an object as
described in scorer.py; one of a known name is left out. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import Literal, cast

from forgetmap._lazy import check_installed
from forgetmap._plugins import Registry
from forgetmap.errors import FieldError
from forgetmap.scoring.grade import UNSCORED, grade_missing
from forgetmap.scoring.scorer import Fields, RuleScorer, Scorer, ScorerInput

Needs = Literal["rule", "judge", "sandbox"]
"""What it takes to use a scorer."""
_METHODS: dict[str, Needs] = {"score": "rule", "questions": "judge", "program": "sandbox"}
_RULES = {
    "option": "answers", "number": "answers", "maths": "answers", "yes_no": "answers",
    "alias": "aliases", "short_answer": "aliases", "retrieval": "retrieval",
    "json_schema": "json_schema", "calls": "calls", "citations": "citations",
    "constraints": "constraints", "style": "style", "refusal": "refusal",
    "unsafe_refusal": "refusal", "reasoning_steps": "reasoning_steps", "code": "code",
}  # fmt: skip
"""Name -> module of forgetmap.scoring.scorers, in which it has the same name."""
_JUDGES = {
    "faithfulness": "grounding", "coverage": "grounding", "reasoning": "quality",
    "following": "quality", "rating": "quality", "option_judge": "fallbacks",
    "maths_judge": "fallbacks",
}  # fmt: skip
"""The same of forgetmap.scoring.llm_judge."""


def _check_scorer(value: object) -> Scorer:
    complete = all(hasattr(value, part) for part in ("name", "version", "fields"))
    if not complete or not any(hasattr(value, method) for method in _METHODS):
        raise TypeError("it lacks name, version, fields or a scoring method (see docs/scorers.md)")
    return cast("Scorer", value)


SCORERS = Registry(
    "forgetmap.scorers",
    "scorer",
    dict(
        sorted(
            (name, f"forgetmap.scoring.{folder}.{module}:{name}")
            for folder, modules in (("scorers", _RULES), ("llm_judge", _JUDGES))
            for name, module in modules.items()
        )
    ),
    _check_scorer,
)
"""Ours, and those that packages add."""


def find_scorer(name: str) -> Scorer:
    """The scorer of this name.

    Raises:
        UsageError: there is none, or the package that adds it is broken.
    """
    return SCORERS.get(name)


def scorer_names() -> list[str]:
    """All scorers, in alphabetical order; nothing is loaded."""
    return SCORERS.names()


def load_scorer(name: str) -> Scorer:
    """The scorer of this name, ready to score.

    What a scorer is called and which fields it has is known without the packages that it scores
    with (`packages`, where it has them), so that results can be read where nothing is scored.

    Raises:
        UsageError: as `find_scorer`.
        MissingPackageError: a package is missing.
    """
    scorer = find_scorer(name)
    for package in getattr(scorer, "packages", ()):
        check_installed(package, f"The scorer {name!r}", extra="drift")
    return scorer


def needs_of(scorer: Scorer) -> Needs:
    """What it takes to use a scorer: nothing but the rule, a judge, or a sandbox."""
    return next(needs for method, needs in _METHODS.items() if hasattr(scorer, method))


def signature_of(scorer: Scorer) -> str:
    """How a scorer signs its records."""
    return f"{scorer.name}@{scorer.version}"


def score_sample(scorer: Scorer, sample: ScorerInput) -> Fields:
    """The values by rule; missing where a judge or a sandbox is needed.

    An item that cannot be used is an error of its own.
    """
    if needs_of(scorer) != "rule":
        return dict.fromkeys(scorer.fields, UNSCORED)
    try:
        return cast("RuleScorer", scorer).score(sample)
    except FieldError as error:
        return dict.fromkeys(scorer.fields, grade_missing(error.message))
