"""Recipes from YAML: our format, or mergekit's unchanged.

    method: slerp
    base: org/base
    models: [{model: org/tuned}]
    parameters:
      t:
        - {filter: self_attn, value: [0.0, 0.5, 1.0]}   # over the layers, from first to last
        - {value: 0.3}                                  # all other tensors
    dtype: bfloat16

The value nearest to a tensor is used: in a part of a slice, in a slice, at a model, for all.

A file is in the format of mergekit if it has the key `merge_method`. mergekit ignores unknown keys
at every level: such a key has no effect here either, and the recipe has a notice about it. In our
format it is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from forgetmap._plugins import did_you_mean
from forgetmap.errors import FieldError
from forgetmap.merge.recipe.checks import MakeError, check_recipe
from forgetmap.merge.recipe.model import ModelPart, ParameterRule, Recipe, Slice
from forgetmap.merge.recipe.yaml_file import KeyPath, YamlFile, read_yaml

MERGEKIT_KEYS = {"merge_method": "method", "base_model": "base", "tokenizer_source": "tokenizer"}
"""Keys of mergekit with other names here."""
IGNORED_PARAMETERS = {"int8_mask"}
"""Parameters of mergekit that save memory and do not change the result."""
UNSUPPORTED_TOKENIZER = {"tokens", "pad_to_multiple_of"}
"""Tokenizer settings of mergekit that are not supported here."""
LIST_ITEMS: dict[str, type[BaseModel]] = {
    "models": ModelPart,
    "slices": Slice,
    "sources": ModelPart,
}
"""Type of the list items under a key."""
UNION_NAMES = {"bool", "float", "tuple[float, ...]"}
"""Path steps of pydantic into a union, which are in no file."""


def read_recipe(path: str | Path) -> Recipe:
    """Read and check a recipe.

    Raises:
        MissingInputError: there is no such file.
        UnreadableError: it is not YAML.
        FieldError: a key, method or parameter is unknown, or a value is wrong; names the line.
    """
    file = read_yaml(Path(path))

    def make_error(message: str, key_path: KeyPath, hint: str) -> FieldError:
        key_path = _key_path_in_file(key_path, file)
        field = ".".join(map(str, key_path)) or None
        return FieldError(message, file=file.file, line=file.line(key_path), field=field, hint=hint)

    if not isinstance(file.value, dict):
        raise make_error(
            "A recipe must be a mapping.", (), "start with a line such as 'method: linear'."
        )
    translated, ignored = _translate(file.value, make_error)
    try:
        recipe = Recipe.model_validate(translated)
    except ValidationError as error:
        if "merge_method" not in file.value:
            raise _first_fault(error, make_error) from error
        recipe, more = _validate_as_mergekit(translated, error, make_error)
        ignored += more
    method = check_recipe(recipe, make_error)
    parameters = {parameter.name for parameter in method.parameters}
    return recipe.with_notices(_notice(path, file, parameters) for path in ignored)


def _validate_as_mergekit(
    mapping: dict[str, Any], error: ValidationError, make_error: MakeError
) -> tuple[Recipe, list[KeyPath]]:
    """Return the recipe without keys that mergekit ignores, and their key paths.

    Args:
        mapping: the recipe with our keys; the ignored ones are deleted.
        error: the validation error, including these keys.
        make_error: builds an error that names the file.
    """
    faults = [fault for fault in error.errors() if _is_extra(fault)]
    paths = [_without_unions(fault["loc"]) for fault in faults]
    for path in paths:
        if path == ("modules",) or (path[0] == "slices" and path[2:] == ("base_model",)):
            raise make_error(
                f"mergekit's '{path[-1]}' is not supported here.",
                path,
                "remove it; use 'models' or 'slices' and one 'base_model'.",
            ) from error
        _delete(mapping, path)
    try:
        return Recipe.model_validate(mapping), paths
    except ValidationError as other:
        # A missing key may be misspelt in the file: then name that one.
        misspelt = any(did_you_mean(str(path[-1]), _keys_at(path[:-1])) for path in paths)
        raise _first_fault(error if misspelt else other, make_error) from error


def _delete(mapping: dict[str, Any], path: KeyPath) -> None:
    inner: Any = mapping
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]


def _notice(path: KeyPath, file: YamlFile, parameters: Collection[str]) -> str:
    """Return a notice about a key without effect, with its line and similar keys."""
    key = str(path[-1])
    if key in parameters:
        advice = "move it under 'parameters', if it is a parameter of the method."
    else:
        known = _keys_at(path[:-1])
        advice = f"{did_you_mean(key, known)}the keys are {', '.join(known)}."
    return (
        f"line {file.line(path)} of the recipe: the key '{key}' is unknown to mergekit and "
        f"ignored, here as well; {advice}"
    )


def _key_path_in_file(key_path: KeyPath, file: YamlFile) -> KeyPath:
    """Return a key path with the keys of the file, which may be mergekit's."""
    foreign = next((key for key, own in MERGEKIT_KEYS.items() if key_path[:1] == (own,)), None)
    return (
        (foreign, *key_path[1:]) if foreign is not None and (foreign,) in file.lines else key_path
    )


def _translate(
    mapping: Mapping[str, Any], make_error: MakeError
) -> tuple[dict[str, Any], list[KeyPath]]:
    """Translate the recipe to our keys, and return the tokenizer keys without effect."""
    for foreign, own in MERGEKIT_KEYS.items():
        if foreign in mapping and own in mapping:
            message = f"'{foreign}' and '{own}' have the same meaning."
            raise make_error(message, (foreign,), "remove one of them.")
    recipe = {MERGEKIT_KEYS.get(key, key): _drop_ignored(value) for key, value in mapping.items()}
    for key in ("dtype", "out_dtype"):
        if isinstance(recipe.get(key), str):
            recipe[key] = recipe[key].removeprefix("torch.")
    ignored = _translate_tokenizer(recipe, make_error, is_mergekit="merge_method" in mapping)
    if "merge_method" in mapping and str(recipe["method"]).startswith("dare_"):
        # mergekit scales to the old sum of magnitudes, the paper by 1 / density.
        recipe["parameters"] = {"keep_norm": True, **(recipe.get("parameters") or {})}
    return {key: value for key, value in recipe.items() if value is not None}, ignored


def _drop_ignored(value: Any) -> Any:
    """Remove the parameters that do not change the result."""
    if isinstance(value, list):
        return [_drop_ignored(item) for item in value]
    if isinstance(value, dict):
        return {
            key: _drop_ignored(item) for key, item in value.items() if key not in IGNORED_PARAMETERS
        }
    return value


def _translate_tokenizer(
    recipe: dict[str, Any], make_error: MakeError, *, is_mergekit: bool
) -> list[KeyPath]:
    """Translate `base`, `union` or `model:NAME` of mergekit, alone or as `source` in a mapping."""
    source = recipe.get("tokenizer")
    ignored: list[KeyPath] = []
    if isinstance(source, dict):
        others = [key for key in source if key != "source"]
        if is_mergekit:
            ignored = [("tokenizer", key) for key in others if key not in UNSUPPORTED_TOKENIZER]
            others = [key for key in others if key in UNSUPPORTED_TOKENIZER]
        if others:
            hint = "remove it; only 'source' is supported."
            raise make_error(
                f"'{others[0]}' of a tokenizer is not supported.", ("tokenizer", others[0]), hint
            )
        source = source.get("source")
    if isinstance(source, str):
        recipe["tokenizer"] = source.removeprefix("model:")
        if source in {"base", "union"}:
            recipe.setdefault("vocabulary", source)
    elif source is None:
        recipe.pop("tokenizer", None)
    return ignored


def _first_fault(error: ValidationError, make_error: MakeError) -> FieldError:
    """Return the first error of pydantic in our words; unknown keys before all else."""
    faults = sorted(error.errors(), key=lambda fault: not _is_extra(fault))
    key_path = _without_unions(faults[0]["loc"])
    if _is_extra(faults[0]):
        known = _keys_at(key_path[:-1])
        return make_error(
            f"Unknown key '{key_path[-1]}'.",
            key_path,
            f"{did_you_mean(str(key_path[-1]), known)}the keys are {', '.join(known)}.",
        )
    message = faults[0]["msg"].removeprefix("Value error, ")
    value = "" if faults[0]["type"] in {"missing", "value_error"} else f": {faults[0]['input']!r}"
    return make_error(
        f"{message}{value}.", key_path, "see docs/merge-methods.md for the keys of a recipe."
    )


def _is_extra(fault: Mapping[str, Any]) -> bool:
    return bool(fault["type"] == "extra_forbidden")


def _without_unions(path: KeyPath) -> KeyPath:
    return tuple(key for key in path if key not in UNION_NAMES)


def _keys_at(key_path: KeyPath) -> list[str]:
    """Return the keys of a mapping at this key path."""
    names = [key for key in key_path if isinstance(key, str)]
    if names[:1] == ["tokenizer"]:
        return ["source"]
    if "parameters" in names:
        return list(ParameterRule.model_fields)
    return list((LIST_ITEMS[names[-1]] if names else Recipe).model_fields)
