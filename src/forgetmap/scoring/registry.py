"""Which scorers there are: ours, and those that installed packages add by entry point.

A package adds one by an entry point in the group `forgetmap.scorers` that names an object as
described in scorer.py; one of a known name replaces ours. Nothing is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, cast

from forgetmap._plugins import loading
from forgetmap.errors import UsageError
from forgetmap.scoring.scorer import Scorer

GROUP = "forgetmap.scorers"
BUILT_IN = {
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
"""Name -> module of this package and object in it."""

Needs = Literal["rule", "judge", "sandbox"]
_METHODS: dict[str, Needs] = {"score": "rule", "asks": "judge", "program": "sandbox"}


def names() -> Sequence[str]:
    """All scorers, in alphabetical order."""
    return sorted({*BUILT_IN, *_added()})


@cache
def find_scorer(name: str) -> Scorer:
    """The scorer of this name.

    Raises:
        UsageError: there is none, it needs a package, or the one that adds it is broken.
    """
    added = _added().get(name)
    if added is not None:
        return _loaded(added)
    if name not in BUILT_IN:
        raise UsageError(f"there is no scorer {name!r}", hint=f"choose from {', '.join(names())}.")
    module, _, attribute = BUILT_IN[name].partition(":")
    try:
        found = import_module(f"forgetmap.scoring.{module}")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the scorer {name!r} needs the package {error.name!r}",
            hint='install it: pip install "forgetmap[drift]".',
        ) from error
    return cast("Scorer", getattr(found, attribute))


def needs_of(scorer: Scorer) -> Needs:
    """What it takes to use a scorer: nothing but the rule, a judge, or a sandbox."""
    return next(needs for method, needs in _METHODS.items() if hasattr(scorer, method))


def signed(scorer: Scorer) -> str:
    """How a scorer signs its records."""
    return f"{scorer.name}@{scorer.version}"


@cache
def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _loaded(point: EntryPoint) -> Scorer:
    with loading(point, "scorer"):
        made = point.load()
    complete = all(hasattr(made, part) for part in ("name", "version", "fields"))
    if not complete or not any(hasattr(made, method) for method in _METHODS):
        raise UsageError(
            f"the scorer {point.name!r} ({point.value}) lacks name, version, fields or a way to "
            "score",
            hint="see forgetmap/scoring/scorer.py for what a scorer has.",
        )
    return cast("Scorer", made)
