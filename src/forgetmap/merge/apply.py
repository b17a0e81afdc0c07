"""Carrying a recipe out: models in, a model folder out, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from forgetmap.errors import FieldError, OutputError
from forgetmap.merge.beside import Merge, chosen_template, write_beside
from forgetmap.merge.checkpoint import Checkpoint
from forgetmap.merge.layout import SHARD_BYTES, lay_out
from forgetmap.merge.stage import refuse_to_replace, staged, throw_away
from forgetmap.merge.tensor_file import TensorInfo
from forgetmap.merge.token_rows import one_vocabulary
from forgetmap.merge.work import PIECE, Crew, MergeStep, Report, workers

if TYPE_CHECKING:
    from forgetmap.merge.recipe import Recipe

__all__ = ["MergeStep", "Report", "apply_recipe", "prepare"]


def apply_recipe(
    recipe: Recipe,
    out: str | Path,
    *,
    shard_bytes: int = SHARD_BYTES,
    overwrite: bool = False,
    threads: int | None = None,
    report: Report | None = None,
) -> Path:
    """Merge models into a folder that transformers can load.

    The folder appears under its name only when it is whole and on the disk. If the merge is
    stopped, even killed, the same call goes on where it was.

    Args:
        recipe: what to merge, and how.
        out: the folder to write.
        shard_bytes: largest size of a file of weights; a larger tensor has one of its own.
        overwrite: replace an earlier merged model of this name, once the new one is whole.
        threads: how many tensors or pieces of tensors are worked on at once.
        report: told several times a second how far it is.

    Raises:
        ModelError: a model cannot be found, or the models do not fit each other.
        InputError: a file is missing or broken, a weight is NaN or infinite.
        OutputError: the place is taken, or the disk is full.
    """
    out = Path(out).expanduser().absolute()
    refuse_to_replace(out, overwrite=overwrite)
    models = {name: Checkpoint.open(name) for name in recipe.all_models}
    _refuse_inputs(out, models)
    merge = prepare(recipe, models, shard_bytes)
    with staged(out, merge.layout, _stamp(merge, models), overwrite=overwrite) as stage:
        crew = Crew(merge.jobs, merge.words.models, stage)
        try:
            crew.work(threads or workers(), report or (lambda _: None))
        except FieldError:
            throw_away(out)
            raise
        stage.whole()
        write_beside(stage.folder, out.name, merge)
        stage.take_place()
    return out


def prepare(
    recipe: Recipe, models: Mapping[str, Checkpoint], shard_bytes: int = SHARD_BYTES
) -> Merge:
    """Check that models can be merged, and decide where everything goes; no weight is read."""
    from forgetmap.merge.plan import ModelShape, plan_merge  # heavy

    words = one_vocabulary(recipe, dict(models))
    shapes = {
        name: ModelShape(tensors=model.tensors, config=model.config)
        for name, model in words.models.items()
    }
    jobs = plan_merge(recipe, shapes)
    infos = {job.name: TensorInfo(job.shape, job.dtype) for job in jobs}
    return Merge(recipe, words, jobs, lay_out(infos, shard_bytes), chosen_template(recipe, models))


def _refuse_inputs(out: Path, models: Mapping[str, Checkpoint]) -> None:
    for name, model in models.items():
        folders = [model.folder, *([model.adapter.folder] if model.adapter else [])]
        if any(out.resolve() == folder.resolve() for folder in folders):
            raise OutputError(
                f"{out} is the folder of {name}, which is merged", hint="choose another --out."
            )


def _stamp(merge: Merge, models: Mapping[str, Checkpoint]) -> str:
    """Everything that the bytes of the result depend on."""
    facts = [
        version("forgetmap"),
        version("torch"),
        merge.recipe.as_yaml(),
        PIECE,
        {name: model.stamp for name, model in models.items()},
        [shard.head.hex() for shard in merge.layout.shards],
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
