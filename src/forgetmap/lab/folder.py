"""The folder of a lab: one recipe, one process that writes; what is finished there is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forgetmap._disk import checksum_of, only_writer, whole_file
from forgetmap.errors import OutputError, UnreadableError
from forgetmap.evaluation import Suite, find_model
from forgetmap.lab.recipe import LabRecipe

RECIPE = "recipe.json"
LAB_VERSION = 1
"""Rises when the same recipe would train or measure otherwise than before."""
WEIGHTS = (".safetensors", ".bin")


@contextmanager
def open_lab(recipe: LabRecipe, out: Path) -> Iterator[None]:
    """Hold a folder while runs of a recipe are made in it.

    Raises:
        ModelError: there is no start model.
        OutputError: another process works there, it holds runs of another recipe, or nobody may
            write there.
    """
    find_model(recipe.start)  # an error now, not after minutes
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write {out}: {error.strerror or error}",
            hint="choose a folder you may write to.",
        ) from None
    with only_writer(out / ".lock", of=out):
        _check_recipe(out / RECIPE, describe_recipe(recipe))
        yield


def _check_recipe(file: Path, facts: dict[str, Any]) -> None:
    if not file.exists():
        with whole_file(file) as partial:
            partial.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableError(
            f"it is no recipe of a lab: {error}",
            file=str(file),
            hint="choose another --out.",
        ) from None
    changed = [name for name in facts if before.get(name) != facts[name]]
    if changed:
        raise OutputError(
            f"{file.parent} holds runs of another recipe: {', '.join(changed)} changed",
            hint="choose another --out; runs of two recipes cannot be compared.",
        )


def describe_recipe(recipe: LabRecipe) -> dict[str, Any]:
    """What makes two runs of the same method, rate and seed differ; long parts by their hash.

    Learning rates are left out: runs of another rate have folders of their own.
    """
    facts = {
        "version": LAB_VERSION,
        "recipe": recipe.name,
        "start": _hash_of_start(recipe.start),
        "new": _hash(list(recipe.new_rows(0))),
        "pool": _hash(list(recipe.pool)),
        "near": _hash_of_suite(recipe.near),
        "far": _hash_of_suite(recipe.far),
        "old_rows": _hash(list(recipe.old_rows)),
        "settings": asdict(recipe.settings),
    }
    plain = (
        "target", "batch_size", "max_steps", "warm_up", "free_prompt", "answer_mark",
        "question_tokens", "hint_template", "max_tokens",
    )  # fmt: skip
    return facts | {name: getattr(recipe, name) for name in plain}


def _hash_of_start(start: str) -> str:
    """Checksums of the weights in a folder; a model on the hub is its name."""
    folder = Path(start)
    if not folder.is_dir():
        return start
    weights = sorted(file for file in folder.iterdir() if file.suffix in WEIGHTS)
    return _hash([(file.name, checksum_of(file)) for file in weights])


def _hash_of_suite(suite: Suite) -> str:
    return _hash(
        [
            (task.name, task.version, item.id, item.question, item.gold, item.options)
            for task in suite.tasks
            for item in task.load()
        ]
    )


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
