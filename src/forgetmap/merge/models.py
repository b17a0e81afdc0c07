"""The verb: merge whatever models the user has, however the recipe is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forgetmap.merge.apply import apply_recipe
from forgetmap.merge.recipe import Recipe, read_recipe


def merge_models(
    recipe: str | Path | Recipe | Mapping[str, Any], out: str | Path, **writing: Any
) -> Path:
    """Merge models into a folder that transformers can load.

    Args:
        recipe: a YAML file (ours or mergekit's), a `Recipe`, or what one is made of.
        out: the folder to write; it appears only when it is whole.
        writing: `overwrite`, `shard_bytes`, `threads` and `report`, as for `apply_recipe`.

    Example:
        >>> import forgetmap as fm
        >>> fm.merge_models(
        ...     {"method": "slerp", "base": "models/base", "models": [{"model": "models/tuned"}],
        ...      "parameters": {"t": 0.3}},
        ...     "merged",
        ... )  # doctest: +SKIP
    """
    if isinstance(recipe, str | Path):
        recipe = read_recipe(recipe)
    elif not isinstance(recipe, Recipe):
        recipe = Recipe.model_validate(dict(recipe))
    return apply_recipe(recipe, out, **writing)
