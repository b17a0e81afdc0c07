"""The registry of scorers: names, requirements, and metadata without the requirements."""

from __future__ import annotations

import sys

import pytest

from forgetmap.errors import MissingPackageError, UsageError
from forgetmap.scoring.registry import (
    find_scorer,
    load_scorer,
    needs_of,
    score_sample,
    scorer_names,
    signature_of,
)
from forgetmap.scoring.scorer import ScorerInput


def test_every_scorer_has_its_name_and_is_signed_with_it() -> None:
    assert scorer_names() == sorted(scorer_names())
    for name in scorer_names():
        scorer = find_scorer(name)
        assert scorer.name == name
        assert signature_of(scorer) == f"{name}@{scorer.version}"


def test_an_unknown_scorer_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="there is no scorer 'numbr'") as caught:
        find_scorer("numbr")
    assert caught.value.hint.startswith("did you mean 'number'? choose from alias, ")


@pytest.mark.parametrize(
    ("name", "package"),
    [("style", "emoji"), ("json_schema", "jsonschema"), ("constraints", "langdetect")],
)
def test_a_missing_package_is_named_where_something_is_scored(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    assert load_scorer(name) is find_scorer(name)
    monkeypatch.setitem(sys.modules, package, None)
    assert find_scorer(name).fields
    sentence = f"The scorer '{name}' needs the package {package}"
    with pytest.raises(MissingPackageError, match=sentence) as e:
        load_scorer(name)
    assert e.value.hint == 'install it: pip install "forgetmap[drift]".'


def test_what_needs_help_is_missing_by_rule() -> None:
    sample = ScorerInput("Answer: 4", gold="4")
    assert score_sample(find_scorer("number"), sample)["acc"].score == 1.0
    for name, needs in (("rating", "judge"), ("code", "sandbox")):
        scorer = find_scorer(name)
        assert needs_of(scorer) == needs
        assert {grade.score for grade in score_sample(scorer, sample).values()} == {None}
    unusable = score_sample(find_scorer("number"), ScorerInput("Answer: 4"))["acc"]
    assert unusable.score is None
    assert unusable.error
