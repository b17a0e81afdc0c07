"""A study is read strictly; inconsistent entries are refused with their line."""

from __future__ import annotations

import pytest

from forgetmap.errors import FieldError
from forgetmap.study import parse_study

TWO = """name = "small"
[[model]]
id = "base"
path = "models/base"
family = "f"
size = "1B"
[[model]]
id = "tuned"
hub = "org/tuned"
family = "f"
size = 1.5
stage = "tuning"
parent = "base"
"""


def refused(text: str) -> FieldError:
    with pytest.raises(FieldError) as caught:
        parse_study(text, "study.toml")
    assert caught.value.file == "study.toml"
    return caught.value


def test_a_parent_makes_a_pair_of_its_stage() -> None:
    study = parse_study(TWO, "study.toml")
    (pair,) = study.pairs
    assert (pair.before, pair.after, pair.label, pair.group) == ("base", "tuned", "tuned", "tuning")
    assert [model.billions for model in study.models] == [1.0, 1.5]


def test_a_named_pair_of_parent_and_child_replaces_it() -> None:
    named = '[[pair]]\nbefore = "base"\nafter = "tuned"\nlabel = "L"\ngroup = "G"\n'
    (pair,) = parse_study(TWO + named, "study.toml").pairs
    assert (pair.label, pair.group) == ("L", "G")


def test_pairs_by_parent_can_be_switched_off() -> None:
    text = "pairs_by_parent = false\n" + TWO
    assert "no pair" in refused(text).message
    named = '[[pair]]\nbefore = "tuned"\nafter = "base"\n'
    assert [pair.after for pair in parse_study(text + named, "x").pairs] == ["base"]


def test_the_scale_of_the_data_divides_a_stage() -> None:
    (pair,) = parse_study(f'{TWO}data = "low"\n', "x").pairs
    assert pair.group == "tuning, low data"


@pytest.mark.parametrize(
    ("size", "billions"), [('"135M"', 0.135), ("7", 7.0), ('"1.5T"', 1500.0), ('"unknown"', None)]
)
def test_sizes_are_billions(size: str, billions: float | None) -> None:
    study = parse_study(TWO.replace("1.5", size), "x")
    assert study.models[1].billions == pytest.approx(billions)


@pytest.mark.parametrize(
    ("text", "line", "field", "message"),
    [
        (TWO.replace('path = "models/base"', 'pth = "x"'), 4, "model[1].pth", "unknown field"),
        (TWO.replace('path = "models/base"\n', ""), 2, "model[1]", "it has no source"),
        (TWO + 'path = "here"\n', 7, "model[2]", "both path and hub"),
        (TWO.replace('"1B"', '"big"'), 6, "model[1].size", "is not a size"),
        (TWO.replace("1.5", "-1"), 11, "model[2].size", "greater than 0"),
        (TWO + 'data = "much"\n', 14, "model[2].data", "'low' or 'high'"),
        (TWO + "domains = 3\n", 14, "model[2].domains", "expected a list"),
        (TWO + 'style = "loud"\n', 14, "model[2].style", "'plain', 'chat'"),
        ("margin = 2\n" + TWO, 1, "margin", "less than 1"),
        ('origin = "me"\n' + TWO, 1, "origin", "unknown field"),
        (TWO + "[protocol]\nrepeats = 0\n", 15, "protocol.repeats", "greater than or equal"),
        ('name = "x"\n', 1, "model", "missing field"),
        ('name = "x"\nmodel = 3\n', 2, "model", "expected a list"),
        ('name = "x"\nmodel = [{id = 5}]\n', 2, "model[1].id", "valid string"),
        (f"protocol = 3\n{TWO}", 1, "protocol", "expected a table"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_used_is_refused(
    text: str, line: int, field: str, message: str
) -> None:
    error = refused(text)
    assert (error.line, error.field) == (line, field)
    assert message in error.message


def test_two_models_with_one_id() -> None:
    error = refused(TWO.replace('id = "tuned"', 'id = "base"').replace('parent = "base"\n', ""))
    assert (error.line, error.message) == (8, "two models have the id 'base'")
    merge = '[[merge]]\nid = "base"\nmethod = "linear"\nmodels = ["base", "tuned"]\nweight = 0.5\n'
    assert refused(TWO + merge).line == 15


def test_unknown_models_name_the_nearest() -> None:
    error = refused(TWO.replace('parent = "base"', 'parent = "bsae"'))
    assert (error.line, error.field) == (13, "model[2].parent")
    assert "did you mean 'base'" in error.hint
    assert refused(f'{TWO}[[pair]]\nbefore = "base"\nafter = "other"\n').line == 16
    merge = '[[merge]]\nid = "m"\nrecipe = "r.yaml"\nreferences = ["base", "nobody"]\n'
    assert refused(TWO + merge).line == 17


def test_parents_in_a_circle() -> None:
    third = '[[model]]\nid = "third"\npath = "x"\nparent = "tuned"\n'
    text = TWO.replace('path = "models/base"', 'path = "models/base"\nparent = "third"') + third
    error = refused(text)
    assert error.line == 5
    assert "base <- third <- tuned <- base" in error.message
    assert "cycle" in refused(TWO.replace('parent = "base"', 'parent = "tuned"')).message


def test_a_pair_twice_and_a_pair_of_one_model() -> None:
    pair = '[[pair]]\nbefore = "base"\nafter = "tuned"\n'
    assert refused(TWO + pair + pair).line == 18
    assert "with itself" in refused(TWO + pair.replace("tuned", "base")).message


def test_a_trend_with_a_missing_size() -> None:
    more = '[[model]]\nid = "{0}"\npath = "{0}"\nfamily = "f"\nstage = "tuning"\nparent = "base"\n'
    text = f"{TWO}{more.format('large')}size = 3\n{more.format('sizeless')}"
    error = refused(text)
    assert (error.line, error.field) == (21, "model[4]")
    assert "trend with size" in error.message
    study = parse_study(f'{text}size = "unknown"\n', "x")
    assert len(study.pairs) == 3
    assert len(parse_study(text.replace("size = 3\n", "size = 1.5\n"), "x").pairs) == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('models = ["base", "tuned"]\n', "it has no source"),
        ('recipe = "r.yaml"\n', "it has no reference"),
        ('recipe = "r.yaml"\nweight = 0.5\nmodels = ["base", "tuned"]\n', "keep only one"),
    ],
)
def test_a_merge_needs_one_recipe_and_references(fields: str, message: str) -> None:
    assert message in refused(f'{TWO}[[merge]]\nid = "m"\n{fields}').message


def test_a_merge_is_compared_with_its_models_or_references() -> None:
    merge = '[[merge]]\nid = "m"\nmethod = "linear"\nmodels = ["base", "tuned"]\nweight = 0.5\n'
    study = parse_study(TWO + merge, "x")
    assert [(pair.before, pair.after) for pair in study.merge_pairs] == [
        ("base", "m"),
        ("tuned", "m"),
    ]
    study = parse_study(f'{TWO}{merge}references = ["base"]\n', "x")
    assert [pair.before for pair in study.merge_pairs] == ["base"]
