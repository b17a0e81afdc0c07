"""Recipes: both dialects, their meaning, and errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from forgetmap.errors import FieldError, InputError, MissingInputError, UnreadableError
from forgetmap.merge.recipe.model import ModelPart, Recipe, short_name
from forgetmap.merge.recipe.read import read_recipe

pytestmark = pytest.mark.needs_torch

STUDY = Path(__file__).parents[2] / "fixtures" / "merge_recipes"

OURS = """\
method: dare_ties
base: org/base
models:
  - model: org/a
    parameters:
      weight: 0.5
      density: [0.2, 0.8]
  - model: org/b+some/adapter
    parameters:
      weight:
        - filter: self_attn
          value: 1
        - value: 0.25
parameters:
  density: 0.5
  lambda: 0.9
dtype: float32
out_dtype: bfloat16
seed: 3
vocabulary: smallest
tokenizer: org/a
chat_template: auto
"""

MERGEKIT_KEYS = """\
merge_method: dare_ties
base_model: org/base
models:
  - model: org/base
  - model: org/a
    parameters: {weight: 0.5, density: 0.2}
parameters:
  int8_mask: true
  normalize: false
dtype: torch.bfloat16
tokenizer: {source: union}
"""

SLICES = """\
merge_method: passthrough
slices:
  - sources:
      - model: org/a
        layer_range: [0, 3]
  - sources:
      - model: org/b
        layer_range: [1, 4]
        parameters:
          scale: [{filter: down_proj, value: 0.5}, {value: 1}]
tokenizer_source: model:org/b
"""


def read(folder: Path, text: str) -> Recipe:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return read_recipe(path)


def test_all_of_our_own_format(tmp_path: Path) -> None:
    recipe = read(tmp_path, OURS)
    first, second = recipe.models
    assert recipe.all_models == ("org/base", "org/a", "org/b+some/adapter")
    assert first.parameters["density"][0].value == (0.2, 0.8)
    assert [(rule.filter, rule.value) for rule in second.parameters["weight"]] == [
        ("self_attn", 1.0),
        (None, 0.25),
    ]
    assert (recipe.dtype, recipe.out_dtype, recipe.seed) == ("float32", "bfloat16", 3)
    assert (recipe.vocabulary, recipe.tokenizer) == ("smallest", "org/a")
    assert "keep_norm" not in recipe.parameters


def test_mergekit_is_read_in_its_own_words(tmp_path: Path) -> None:
    recipe = read(tmp_path, MERGEKIT_KEYS)
    assert (recipe.method, recipe.base, recipe.dtype) == ("dare_ties", "org/base", "bfloat16")
    assert set(recipe.parameters) == {"normalize", "keep_norm"}
    assert recipe.parameters["keep_norm"][0].value is True
    assert (recipe.tokenizer, recipe.vocabulary) == ("union", "union")


def test_slices(tmp_path: Path) -> None:
    recipe = read(tmp_path, SLICES)
    assert [each.layers for each in recipe.slices] == [3, 3]
    assert recipe.all_models == ("org/a", "org/b")
    assert recipe.tokenizer == "org/b"


@pytest.mark.parametrize("text", [OURS, MERGEKIT_KEYS, SLICES], ids=["ours", "theirs", "slices"])
def test_a_recipe_written_out_reads_the_same(tmp_path: Path, text: str) -> None:
    recipe = read(tmp_path, text)
    assert read(tmp_path, recipe.as_yaml()) == recipe


def test_the_twelve_recipes_of_the_study_are_read_unchanged() -> None:
    recipes = {path.stem: read_recipe(path) for path in STUDY.glob("*.yaml")}
    assert len(recipes) == 12
    for name, recipe in recipes.items():
        _, method, value = name.split("-")
        assert recipe.method == method
        if method == "linear":
            assert (recipe.dtype, recipe.parameters) == (None, {})
            (notice,) = recipe.notices
            assert "line 7" in notice
            assert "'normalize'" in notice
            assert "under 'parameters'" in notice
            weights = [part.parameters["weight"][0].value for part in recipe.models]
            assert weights == pytest.approx([float(value), 1 - float(value)])
        else:
            assert (recipe.dtype, recipe.notices) == ("bfloat16", ())
            assert recipe.parameters["t"][0].value == float(value)
            assert recipe.base == recipe.models[0].model


EVERYWHERE = """\
merge_method: linear
name: mine
slices:
  - sources:
      - {model: a, layer_range: [0, 1], note: x, parameters: {weight: [{value: 1, why: y}]}}
    residual_weight: 1
tokenizer: {source: union, padding: 8}
dtpye: float32
"""


def test_keys_that_mergekit_ignores_have_no_effect_and_a_notice_each(tmp_path: Path) -> None:
    recipe = read(tmp_path, EVERYWHERE)
    plain = read(tmp_path, recipe.as_yaml())
    assert plain.notices == ()
    assert recipe.with_notices(()) == plain
    found = {
        key: [notice for notice in recipe.notices if f"key '{key}'" in notice]
        for key in ("name", "note", "why", "residual_weight", "padding", "dtpye")
    }
    assert {key: len(notices) for key, notices in found.items()} == dict.fromkeys(found, 1)
    assert len(recipe.notices) == len(found)
    assert "line 5" in found["note"][0]
    assert "did you mean 'dtype'?" in found["dtpye"][0]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("modules: {}\n", "modules"),
        ("slices:\n- {sources: [{model: a, layer_range: [0, 1]}], base_model: b}\n",
         "slices.0.base_model"),
        ("tokenizer: {source: union, pad_to_multiple_of: 8}\n", "tokenizer.pad_to_multiple_of"),
    ],
)  # fmt: skip
def test_keys_that_mergekit_heeds_and_we_do_not_are_refused(
    tmp_path: Path, more: str, field: str
) -> None:
    start = "merge_method: linear\n" if more.startswith("slices") else LINEAR
    with pytest.raises(FieldError, match="not supported") as caught:
        read(tmp_path, start + more)
    assert caught.value.field == field


LINEAR = "merge_method: linear\nmodels:\n  - model: a\n    parameters: {weight: 1}\n"
OWN = LINEAR.replace("merge_method", "method")
UNEQUAL = """\
method: linear
slices:
- sources:
  - {model: a, layer_range: [0, 2]}
  - {model: b, layer_range: [0, 1]}
"""
WRONG = {
    "method": ("merge_method: linearr\nmodels: [{model: a}]\n", 1, "merge_method", "'linear'?"),
    "top key": (OWN + "dtpye: float32\n", 5, "dtpye", "'dtype'?"),
    "part key": ("method: linear\nmodels:\n- modelx: a\n", 3, "models.0.modelx", "'model'?"),
    "rule key": (
        LINEAR.replace("1}", "[{valuex: 3}]}"), 4, "models.0.parameters.weight.0.valuex",
        "'value'?",
    ),
    "parameter": (LINEAR.replace("weight", "weigh"), 4, "models.0.parameters.weigh", "'weight'?"),
    "text": (LINEAR.replace("1}", "much}"), 4, "models.0.parameters.weight.0.value", "docs/"),
    "nan": (LINEAR.replace("1}", ".nan}"), 4, "models.0.parameters.weight.0.value", "docs/"),
    "empty list": (LINEAR.replace("1}", "[]}"), 4, "models.0.parameters.weight.0.value", "docs/"),
    "flag": (LINEAR.replace("1}", "true}"), 4, "models.0.parameters.weight", "give a number"),
    "number": (LINEAR + "parameters: {normalize: 0.5}\n", 5, "parameters.normalize", "true or"),
    "level": (
        LINEAR.replace("weight", "normalize"), 4, "models.0.parameters.normalize", "whole recipe",
    ),
    "limit": (
        "method: slerp\nbase: a\nmodels: [{model: b}]\nparameters:\n  t: [0, 1.5]\n", 5,
        "parameters.t", "from 0 to 1",
    ),
    "base": ("method: slerp\nmodels: [{model: b}]\nparameters: {t: 0}\n", 1, "base", "set base"),
    "too many": (
        "method: slerp\nbase: a\nmodels: [{model: b}, {model: c}]\nparameters: {t: 0}\n", 3,
        "models", "change the list",
    ),
    "too few": ("method: model_stock\nbase: a\nmodels: [{model: b}]\n", 3, "models", "change the"),
    "dtype": (LINEAR + "dtype: int7\n", 5, "dtype", "docs/"),
    "both names": (LINEAR + "method: linear\n", 1, "merge_method", "remove one"),
    "twice": (LINEAR + "models: []\n", 5, "models", "remove one"),
    "no models": ("method: linear\n", 1, None, "docs/"),
    "no recipe": ("- linear\n", 1, None, "start with"),
    "empty": ("", 1, None, "start with"),
    "models": ("method: linear\nmodels: 3\n", 2, "models", "docs/"),
    "endless": ("method: &x [*x]\n", 1, None, "anchors"),
    "tokens": (LINEAR + "tokenizer: {tokens: {}}\n", 5, "tokenizer.tokens", "remove it"),
    "range": (
        "method: passthrough\nslices:\n- sources:\n  - {model: a, layer_range: [2, 2]}\n", 4,
        "slices.0.sources.0.layer_range", "docs/",
    ),
    "lengths": (UNEQUAL, 3, "slices.0", "docs/"),
    "slice base": (
        "method: slerp\nbase: c\nslices:\n- sources: [{model: a, layer_range: [0, 1]}]\n", 4,
        "slices.0.sources", "add it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(WRONG))
def test_a_bad_recipe_is_refused_with_file_line_and_field(tmp_path: Path, kind: str) -> None:
    text, line, field, hint = WRONG[kind]
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert isinstance(caught.value, FieldError)
    assert caught.value.file == str(tmp_path / "recipe.yaml")
    assert (caught.value.line, caught.value.field) == (line, field)
    assert hint in caught.value.hint


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError) as caught:
        read(tmp_path, "method: linear\nmodels: [\n")
    assert caught.value.line == 3
    (tmp_path / "recipe.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableError, match="UTF-8"):
        read_recipe(tmp_path / "recipe.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(MissingInputError) as caught:
            read_recipe(path)
        assert caught.value.file == str(path)


def test_a_recipe_cannot_be_changed() -> None:
    recipe = Recipe(method="linear", models=(ModelPart(model="a"),))
    with pytest.raises(ValidationError):
        recipe.seed = 4


@pytest.mark.parametrize(
    ("model", "short"),
    [("org/a", "a"), ("/data/runs/a/", "a"), ("/x/a+/y/b", "a+b"), ("a", "a")],
)
def test_short_names_stay_when_a_folder_moves(model: str, short: str) -> None:
    assert short_name(model) == short
