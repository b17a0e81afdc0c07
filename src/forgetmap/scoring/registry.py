"""The registry of scorers: built-in ones, and those of installed packages by entry point.

A package adds one with an entry point in the group `forgetmap.scorers` that names an object as
described in scorer.py; one with the name of a built-in scorer is ignored. Nothing is imported
before it is used.
"""

from __future__ import annotations

from typing import Literal, cast

from forgetmap._lazy import check_installed
from forgetmap._plugins import Registry
from forgetmap.errors import FieldError
from forgetmap.scoring.grade import UNSCORED, grade_missing
from forgetmap.scoring.scorer import Fields, RuleScorer, Scorer, ScorerInput

Needs = Literal["rule", "judge", "sandbox"]
"""What a scorer needs: only its rule, a judge, or a sandbox."""
_METHODS: dict[str, Needs] = {"score": "rule", "questions": "judge", "program": "sandbox"}
_RULES = {
    "option": "answers", "number": "answers", "maths": "answers", "yes_no": "answers",
    "alias": "aliases", "short_answer": "aliases", "retrieval": "retrieval",
    "json_schema": "json_schema", "calls": "calls", "citations": "citations",
    "constraints": "constraints", "style": "style", "refusal": "refusal",
    "unsafe_refusal": "refusal", "reasoning_steps": "reasoning_steps", "code": "code",
}  # fmt: skip
"""Scorer -> module of forgetmap.scoring.scorers that defines it under this name."""
_JUDGES = {
    "faithfulness": "grounding", "coverage": "grounding", "reasoning": "quality",
    "following": "quality", "rating": "quality", "option_judge": "fallbacks",
    "maths_judge": "fallbacks",
}  # fmt: skip
"""Scorer -> module of forgetmap.scoring.llm_judge."""


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
"""Built-in scorers, and those of other packages."""


def find_scorer(name: str) -> Scorer:
    """Return the scorer of this name.

    Raises:
        UsageError: there is no such scorer, or the package that adds it is broken.
    """
    return SCORERS.get(name)


def scorer_names() -> list[str]:
    """Return the names of all scorers, sorted; nothing is loaded."""
    return SCORERS.names()


def load_scorer(name: str) -> Scorer:
    """Return the scorer of this name after checking that it can score.

    Name and fields of a scorer do not depend on the packages it scores with (`packages`), so that
    `find_scorer` is enough for reading results.

    Raises:
        UsageError: as `find_scorer`.
        MissingPackageError: a package is missing.
    """
    scorer = find_scorer(name)
    for package in getattr(scorer, "packages", ()):
        check_installed(package, f"The scorer {name!r}", extra="drift")
    return scorer


def needs_of(scorer: Scorer) -> Needs:
    """Return what a scorer needs: only its rule, a judge, or a sandbox."""
    return next(needs for method, needs in _METHODS.items() if hasattr(scorer, method))


def signature_of(scorer: Scorer) -> str:
    """Return `NAME@VERSION`, which identifies the scorer in records."""
    return f"{scorer.name}@{scorer.version}"


def score_sample(scorer: Scorer, sample: ScorerInput) -> Fields:
    """Score a sample by rule; unscored if the scorer needs a judge or a sandbox.

    The scores of an unusable item are missing, with the error.
    """
    if needs_of(scorer) != "rule":
        return dict.fromkeys(scorer.fields, UNSCORED)
    try:
        return cast("RuleScorer", scorer).score(sample)
    except FieldError as error:
        return dict.fromkeys(scorer.fields, grade_missing(error.message))
