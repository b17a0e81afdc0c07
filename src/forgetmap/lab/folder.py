"""The folder of a lab: one recipe, one writing process, and all finished runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from safetensors import SafetensorError

from forgetmap._disk import checksum_of, only_writer, whole_file
from forgetmap.errors import OutputError, UnreadableError
from forgetmap.evaluation import Suite, find_model
from forgetmap.lab.recipe import LabRecipe
from forgetmap.results import Value

RECIPE = "recipe.json"
EXAMPLES = "new_examples"
"""Field of the recipe description: hashes of the new examples by seed."""
LAB_VERSION = 2
"""Increased when the same recipe would train or measure differently."""
MODEL_FILES = (".safetensors", ".bin", ".json", ".model", ".txt", ".jinja")
"""Suffixes of weights, configs and tokenizer files."""
Result = TypeVar("Result", bound=Value)


def kept_result(file: Path, kind: type[Result], make: Callable[[], Result]) -> Result:
    """Return the result stored in a file; if there is none, compute and store it.

    Raises:
        UnreadableError: the file has another content.
        OutputError: it cannot be written.
    """
    if file.exists():
        return _read_result(file, kind)
    result = make()
    with as_output_error(file), whole_file(file) as partial:
        partial.write_text(result.to_json(), encoding="utf-8")
    return result


def _read_result(file: Path, kind: type[Result]) -> Result:
    try:
        return kind.model_validate_json(file.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        problem = f"{place}: {first['msg']}" if place else first["msg"]
    except (OSError, UnicodeDecodeError) as error:
        problem = str(error)
    raise UnreadableError(
        f"not a result of this version: {problem}",
        file=str(file),
        hint="remove the file to compute it again, or choose another --out.",
    )


@contextmanager
def as_output_error(path: Path) -> Iterator[None]:
    """Convert errors of the system while writing to OutputError.

    Raises:
        OutputError: writing failed: the disk is full, or there is no permission.
    """
    try:
        yield
    except OutputError:  # already explained
        raise
    except (OSError, SafetensorError) as error:
        raise OutputError(
            f"cannot write {path}: {getattr(error, 'strerror', None) or error}",
            hint="choose a writable folder on a disk with enough space; finished runs are kept.",
        ) from error


@contextmanager
def open_lab(recipe: LabRecipe, out: Path, seeds: Iterable[int]) -> Iterator[None]:
    """Lock a folder for runs of a recipe.

    Args:
        recipe: start model, data and settings.
        out: the folder.
        seeds: seeds to train; their new examples are read now, so that a missing file is an error
            before training.

    Raises:
        InputError: new examples of a seed are missing.
        ModelError: there is no start model.
        OutputError: another process uses the folder, it has runs of another recipe, or it is not
            writable.
    """
    find_model(recipe.start)  # fail now, not after minutes
    facts, examples = describe_recipe(recipe), describe_examples(recipe, seeds)
    with as_output_error(out):
        out.mkdir(parents=True, exist_ok=True)
    with only_writer(out / ".lock", of=out):
        _check_recipe(out / RECIPE, facts, examples)
        yield


def _check_recipe(file: Path, facts: dict[str, Any], examples: dict[str, str]) -> None:
    before = _read_facts(file) if file.exists() else {}
    if before and before.get("version") != LAB_VERSION:
        raise OutputError(
            f"{file.parent} contains runs of another version of forgetmap that are not comparable",
            hint="choose another --out.",
        )
    known = before.get(EXAMPLES, {})
    changed = [name for name in facts if before and before.get(name) != facts[name]]
    changed += [
        f"the new examples of seed {seed}"
        for seed, content in examples.items()
        if known.get(seed, content) != content
    ]
    if changed:
        raise OutputError(
            f"{file.parent} contains runs of another recipe: {', '.join(changed)} changed",
            hint="choose another --out; runs of different recipes cannot be compared.",
        )
    kept = facts | {EXAMPLES: known | examples}
    if kept != before:
        with as_output_error(file), whole_file(file) as partial:
            partial.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def _read_facts(file: Path) -> dict[str, Any]:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(facts, dict) and isinstance(facts.get(EXAMPLES, {}), dict):
            return facts
        problem = "different facts are expected"
    except (OSError, ValueError) as error:
        problem = str(error)
    raise UnreadableError(
        f"not a lab recipe: {problem}", file=str(file), hint="choose another --out."
    )


def describe_examples(recipe: LabRecipe, seeds: Iterable[int]) -> dict[str, str]:
    """Return a hash of the new examples of each seed."""
    return {str(seed): _hash(list(recipe.new_rows(seed))) for seed in seeds}


def describe_recipe(recipe: LabRecipe) -> dict[str, Any]:
    """Return all that may change a run of the same method, rate and seed; long parts as hashes.

    New examples are left out, because they depend on the seed, and learning rates, because runs of
    other rates have their own folders.
    """
    facts = {
        "version": LAB_VERSION,
        "recipe": recipe.name,
        "start": _hash_of_start(recipe.start),
        "pool": _hash(list(recipe.pool)),
        "near": _hash_of_suite(recipe.near),
        "far": _hash_of_suite(recipe.far),
        "old_rows": _hash(list(recipe.old_rows)),
        "settings": asdict(recipe.settings),
    }
    plain = (
        "target", "batch_size", "max_steps", "warm_up", "question_template", "free_prompt",
        "answer_mark", "question_tokens", "hint_template", "max_tokens",
    )  # fmt: skip
    return facts | {name: getattr(recipe, name) for name in plain}


def _hash_of_start(start: str) -> str:
    """Return a hash of weights, configs and tokenizer in a folder; for a hub model, its name."""
    folder = Path(start)
    if not folder.is_dir():
        return start
    files = sorted(file for file in folder.iterdir() if file.suffix in MODEL_FILES)
    return _hash([(file.name, checksum_of(file)) for file in files])


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
