"""Recipes from YAML: ours, or mergekit's as it is.

    method: slerp
    base: org/base
    models: [{model: org/tuned}]
    parameters:
      t:
        - {filter: self_attn, value: [0.0, 0.5, 1.0]}   # over the layers, from first to last
        - {value: 0.3}                                  # all other tensors
    dtype: bfloat16

A value that is set nearer to a tensor wins: in a part of a slice, in a slice, at a model, for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from forgetmap._plugins import did_you_mean
from forgetmap.errors import FieldError
from forgetmap.merge.recipe_checks import Complaint, check_recipe
from forgetmap.merge.recipe_model import Part, Recipe, Rule, Setting, Slice
from forgetmap.merge.yaml_lines import Place, Yaml, read_yaml

__all__ = ["Part", "Recipe", "Rule", "Setting", "Slice", "read_recipe"]

THEIRS = {"merge_method": "method", "base_model": "base", "tokenizer_source": "tokenizer"}
"""Keys of mergekit that we call otherwise."""
WITHOUT_EFFECT = {"int8_mask"}
"""Parameters of mergekit that save memory and leave the result as it is."""
LEVELS: dict[str, type[BaseModel]] = {"models": Part, "slices": Slice, "sources": Part}
"""What stands in the list under a key."""
UNION_NAMES = {"bool", "float", "tuple[float, ...]"}
"""Steps of pydantic into a union, which no file has."""


def read_recipe(path: str | Path) -> Recipe:
    """Read and check a recipe.

    Raises:
        MissingInputError: there is no such file.
        UnreadableError: it is not YAML.
        FieldError: a key, method or parameter is unknown, or a value is wrong; says on which line.
    """
    file = read_yaml(Path(path))

    def complaint(message: str, place: Place, hint: str) -> FieldError:
        place = _as_written(place, file)
        field = ".".join(map(str, place)) or None
        return FieldError(message, file=file.file, line=file.line(place), field=field, hint=hint)

    if not isinstance(file.value, dict):
        raise complaint("A recipe is a mapping.", (), "begin with a line such as 'method: linear'.")
    try:
        recipe = Recipe.model_validate(_translated(file.value, complaint))
    except ValidationError as error:
        raise _first_fault(error, complaint) from error
    check_recipe(recipe, complaint)
    return recipe


def _as_written(place: Place, file: Yaml) -> Place:
    """A place under the keys of the file."""
    theirs = next((key for key, ours in THEIRS.items() if place[:1] == (ours,)), None)
    return (theirs, *place[1:]) if theirs is not None and (theirs,) in file.lines else place


def _translated(given: Mapping[str, Any], complaint: Complaint) -> dict[str, Any]:
    """The recipe in our words."""
    for theirs, ours in THEIRS.items():
        if theirs in given and ours in given:
            message = f"'{theirs}' and '{ours}' mean the same."
            raise complaint(message, (theirs,), "leave one of them.")
    recipe = {THEIRS.get(key, key): _with_effect(value) for key, value in given.items()}
    for key in ("dtype", "out_dtype"):
        if isinstance(recipe.get(key), str):
            recipe[key] = recipe[key].removeprefix("torch.")
    _translate_tokenizer(recipe, complaint)
    if "merge_method" in given and str(recipe["method"]).startswith("dare_"):
        # mergekit enlarges what stays to the old sum of magnitudes, the paper by 1 / density.
        recipe["parameters"] = {"keep_norm": True, **(recipe.get("parameters") or {})}
    return {key: value for key, value in recipe.items() if value is not None}


def _with_effect(value: Any) -> Any:
    """Without the parameters that leave the result as it is."""
    if isinstance(value, list):
        return [_with_effect(each) for each in value]
    if isinstance(value, dict):
        left = {key: each for key, each in value.items() if key not in WITHOUT_EFFECT}
        return {key: _with_effect(each) for key, each in left.items()}
    return value


def _translate_tokenizer(recipe: dict[str, Any], complaint: Complaint) -> None:
    """mergekit: `base`, `union` or `model:NAME`, by itself or as `source` in a mapping."""
    source = recipe.get("tokenizer")
    if isinstance(source, dict):
        others = [key for key in source if key != "source"]
        if others:
            hint = "leave it out; only 'source' is understood here."
            raise complaint(
                f"'{others[0]}' of a tokenizer is not supported.", ("tokenizer", others[0]), hint
            )
        source = source.get("source")
    if isinstance(source, str):
        recipe["tokenizer"] = source.removeprefix("model:")
        if source in {"base", "union"}:
            recipe.setdefault("vocabulary", source)
    elif source is None:
        recipe.pop("tokenizer", None)


def _first_fault(error: ValidationError, complaint: Complaint) -> FieldError:
    """What pydantic found first, in our words; keys that are none of ours before all else."""
    faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    place = tuple(key for key in faults[0]["loc"] if key not in UNION_NAMES)
    if faults[0]["type"] == "extra_forbidden":
        known = _keys_at(place[:-1])
        return complaint(
            f"There is no key '{place[-1]}' here.",
            place,
            f"{did_you_mean(str(place[-1]), known)}the keys are {', '.join(known)}.",
        )
    said = faults[0]["msg"].removeprefix("Value error, ")
    wrong = "" if faults[0]["type"] in {"missing", "value_error"} else f": {faults[0]['input']!r}"
    return complaint(f"{said}{wrong}.", place, "see docs/merge-methods.md for what a recipe has.")


def _keys_at(place: Place) -> list[str]:
    """The keys a mapping at this place may have."""
    names = [key for key in place if isinstance(key, str)]
    if "parameters" in names:
        return list(Rule.model_fields)
    return list((LEVELS[names[-1]] if names else Recipe).model_fields)
