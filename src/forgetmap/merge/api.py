"""The public function `merge_models`: carry out a recipe and write a model folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from forgetmap._lazy import require
from forgetmap.errors import FieldError, OutputError
from forgetmap.merge.checkpoint import Checkpoint
from forgetmap.merge.engine import PIECE, MergeEngine, OnProgress, default_threads
from forgetmap.merge.output.atomic_folder import (
    discard_attempt,
    open_atomic_folder,
    refuse_to_replace,
)
from forgetmap.merge.output.layout import SHARD_BYTES, lay_out
from forgetmap.merge.output.sidecar_files import PreparedMerge, choose_template, write_sidecar_files
from forgetmap.merge.recipe.model import Recipe
from forgetmap.merge.recipe.read import read_recipe
from forgetmap.merge.tensor_file import TensorInfo
from forgetmap.merge.token_rows import share_vocabulary


def merge_models(
    recipe: str | Path | Recipe | Mapping[str, Any], out: str | Path, **writing: Any
) -> Path:
    """Merge models into a folder that transformers can load.

    Args:
        recipe: a YAML file (ours or mergekit's), a `Recipe`, or its fields as a dict.
        out: the folder to write; it appears only when it is complete.
        writing: `overwrite`, `shard_bytes`, `threads` and `on_progress`, as for `apply_recipe`.

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


def apply_recipe(
    recipe: Recipe,
    out: str | Path,
    *,
    shard_bytes: int = SHARD_BYTES,
    overwrite: bool = False,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> Path:
    """Merge models into a folder that transformers can load.

    The folder appears under its name only when it is complete and on the disk. If the merge is
    interrupted, even killed, the same call resumes it.

    Args:
        recipe: the recipe of the merge.
        out: the folder to write.
        shard_bytes: maximum size of a file of weights; a larger tensor has its own file.
        overwrite: replace an earlier merged model of this name, once the new one is complete.
        threads: number of tensors or pieces of tensors that are processed at once.
        on_progress: called several times a second.

    Raises:
        ModelError: a model cannot be found, or the models are incompatible.
        InputError: a file is missing or broken, a weight is NaN or infinite.
        OutputError: the path is taken, or the disk is full.
    """
    out = Path(out).expanduser().absolute()
    refuse_to_replace(out, overwrite=overwrite)
    models = {name: Checkpoint.open(name) for name in recipe.all_models}
    _refuse_inputs(out, models)
    merge = prepare(recipe, models, shard_bytes)
    with open_atomic_folder(
        out, merge.layout, _stamp(merge, models), overwrite=overwrite
    ) as folder:
        engine = MergeEngine(merge.jobs, merge.vocabulary.models, folder)
        try:
            engine.run(threads or default_threads(), on_progress or (lambda _: None))
        except FieldError:
            # Invalid weights stay invalid, so the partial result is useless.
            discard_attempt(out)
            raise
        folder.flush()
        write_sidecar_files(folder.path, out.name, merge)
        folder.publish()
    return out


def prepare(
    recipe: Recipe, models: Mapping[str, Checkpoint], shard_bytes: int = SHARD_BYTES
) -> PreparedMerge:
    """Check that models can be merged, and plan the output; no weight is read."""
    require("torch", "Merging")
    from forgetmap.merge.plan import ModelShape, plan_merge  # needs torch

    vocabulary = share_vocabulary(recipe, dict(models))
    shapes = {
        name: ModelShape(tensors=model.tensors, config=model.config)
        for name, model in vocabulary.models.items()
    }
    jobs = plan_merge(recipe, shapes)
    infos = {job.name: TensorInfo(job.shape, job.dtype) for job in jobs}
    return PreparedMerge(
        recipe, vocabulary, jobs, lay_out(infos, shard_bytes), choose_template(recipe, models)
    )


def _refuse_inputs(out: Path, models: Mapping[str, Checkpoint]) -> None:
    for name, model in models.items():
        folders = [model.folder, *([model.adapter.folder] if model.adapter else [])]
        if any(out.resolve() == folder.resolve() for folder in folders):
            raise OutputError(
                f"{out} is the folder of the input model {name}", hint="choose another --out."
            )


def _stamp(merge: PreparedMerge, models: Mapping[str, Checkpoint]) -> str:
    """Return a hash of everything that determines the bytes of the result."""
    # Including torch: another version may sum in another order.
    facts = [
        version("forgetmap"),
        version("torch"),
        merge.recipe.as_yaml(),
        PIECE,
        {name: model.stamp for name, model in models.items()},
        [shard.head.hex() for shard in merge.layout.shards],
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
