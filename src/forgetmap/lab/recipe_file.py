"""Recipe files in TOML: a start model, files of new and old examples, evaluation questions.

name = "mine"
start = "models/base"          # a folder beside this file, or a hub id
new = "new.jsonl"              # rows with `prompt` and `completion`; new-{seed}.jsonl is possible
pool = "pool.jsonl"            # old examples that a mitigation may see
near = "near.jsonl"            # a suite, or a file of items
far = "basics"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from forgetmap.errors import FieldError, InputError, MissingInputError, UsageError
from forgetmap.evaluation import Suite, Task, load_suite
from forgetmap.lab.recipe import LabRecipe, MeasuredQuestions, Row
from forgetmap.train import read_rows

SEED = "{seed}"
MEASURED_ROWS = 600
"""Maximum number of old questions to measure the KL on; the same ones each time."""
HINT = "see docs/lab.md for all keys, or create a recipe with `forgetmap lab init`."
Rate = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]


class RecipeFields(BaseModel):
    """Fields of a recipe file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Text
    start: Text
    new: Text
    pool: Text
    near: Text
    far: Text
    target: float = Field(default=0.95, gt=0, le=1)
    rates: tuple[Rate, ...] = Field(default=LabRecipe.rates, strict=False, min_length=1)
    low_rates: tuple[Rate, ...] = Field(default=LabRecipe.low_rates, strict=False)
    batch_size: Count = LabRecipe.batch_size
    max_steps: Count = LabRecipe.max_steps
    warm_up: int = Field(default=LabRecipe.warm_up, ge=0)
    question_template: str = "Question: {question}\nAnswer:"
    free_prompt: Text | None = None
    answer_mark: Text | None = None
    question_tokens: Count = LabRecipe.question_tokens
    hint_template: str = LabRecipe.hint_template
    max_tokens: Count = LabRecipe.max_tokens

    @field_validator("question_template", "hint_template")
    @classmethod
    def _has_places(cls, value: str, info: Any) -> str:
        places = {
            "question_template": ("{question}",),
            "hint_template": ("{prompt}", "{privileged_context}"),
        }[info.field_name]
        missing = [place for place in places if place not in value]
        if missing:
            raise ValueError(f"missing key {missing[0]}")
        return value


def read_recipe(path: str | Path) -> LabRecipe:
    """Read a recipe from a TOML file; files that it names are relative to its folder.

    Raises:
        InputError: a file is missing or cannot be used; the error names file, line and field.
    """
    file = _RecipeFile(Path(path))
    fields = file.fields
    near, far = (file.read_suite(name) for name in ("near", "far"))
    file.require_different_tasks(near, far)
    template = fields.question_template
    tasks = (*near.tasks, *far.tasks)
    old_rows = _old_rows(tasks, template)
    measured = MeasuredQuestions(
        (item.question for task in tasks for item in task.load()), template
    )
    before, after = template.split("{question}", 1)
    return LabRecipe(
        name=fields.name,
        start=file.start,
        new_rows=file.read_new(measured),
        pool=file.read_pool(measured),
        near=near,
        far=far,
        old_rows=_sample(old_rows, MEASURED_ROWS),
        target=fields.target,
        rates=tuple(sorted(set(fields.rates))),
        low_rates=tuple(sorted(set(fields.low_rates) - set(fields.rates))),
        batch_size=fields.batch_size,
        max_steps=fields.max_steps,
        warm_up=fields.warm_up,
        question_template=template,
        free_prompt=fields.free_prompt or before.rstrip() or "Question:",
        answer_mark=fields.answer_mark or after.rstrip() or "\n",
        question_tokens=fields.question_tokens,
        hint_template=fields.hint_template,
        max_tokens=fields.max_tokens,
    )


class _RecipeFile:
    """A recipe file with the lines of its keys, for errors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = self._read_text()
        self.fields = self._parse()

    def _read_text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise MissingInputError(
                "the file does not exist",
                file=str(self.path),
                hint="give a recipe.toml or `tiny`; create a recipe with `forgetmap lab init`.",
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"not a valid TOML file: {error}", file=str(self.path), hint=HINT
            ) from None

    def _parse(self) -> RecipeFields:
        try:
            content = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not valid TOML: {error}", file=str(self.path), hint=HINT) from None
        for key in content:
            if key not in RecipeFields.model_fields:
                raise self.fault("unknown key", key, hint=_suggest(key))
        try:
            return RecipeFields(**content)
        except ValidationError as error:
            first = error.errors()[0]
            message = _MESSAGES.get(first["type"], first["msg"].removeprefix("Value error, "))
            raise self.fault(message[:1].lower() + message[1:], str(first["loc"][0])) from None

    def fault(self, message: str, field: str, *, hint: str = HINT) -> FieldError:
        """Return an error that names this file and the line of a key."""
        match = re.search(rf"^[ \t]*\"?{re.escape(field)}\"?[ \t]*=", self.text, re.MULTILINE)
        line = self.text.count("\n", 0, match.start()) + 1 if match else None
        return FieldError(message, file=str(self.path), line=line, field=field, hint=hint)

    @property
    def start(self) -> str:
        beside = self.path.parent / self.fields.start
        return str(beside) if beside.is_dir() else self.fields.start

    def beside(self, field: str, name: str) -> Path:
        """Return the path of a file that the recipe names."""
        file = self.path.parent / name
        if not file.is_file():
            raise self.fault(
                f"there is no file {file}", field, hint="create it, or give another file."
            )
        return file

    def read_new(self, measured: MeasuredQuestions) -> partial[list[Row]]:
        """Return a reader of new examples by seed; those of the first two seeds are checked now."""
        name = self.fields.new
        for seed in (0, 1):
            self.beside("new", name.replace(SEED, str(seed)))
            _new_rows(str(self.path.parent / name), measured, seed)
        return partial(_new_rows, str(self.path.parent / name), measured)

    def read_pool(self, measured: MeasuredQuestions) -> list[Row]:
        """Read old examples; evaluation questions among them are an error."""
        return _unmeasured_rows(self.beside("pool", self.fields.pool), measured)

    def read_suite(self, field: str) -> Suite:
        """Load a suite with its items in memory, so that it can be sent to other processes."""
        name = getattr(self.fields, field)
        file = self.path.parent / name
        try:
            suite = load_suite(file if file.is_file() else name)
        except UsageError as error:
            raise self.fault(error.message, field, hint=error.hint) from None
        tasks = [replace(task, load=partial(tuple, tuple(task.load()))) for task in suite.tasks]
        return replace(suite, tasks=tuple(tasks))

    def require_different_tasks(self, near: Suite, far: Suite) -> None:
        """Check that no task is both near and far, as items are counted by task."""
        both = {task.name for task in near.tasks} & {task.name for task in far.tasks}
        if both:
            raise self.fault(
                f"the task {min(both)!r} is also in `near`",
                "far",
                hint="give tasks in `near` and `far` different names.",
            )


_MESSAGES = {
    "missing": "missing key",
    "tuple_type": "expected a list of numbers: [...]",
    "string_too_short": "it is empty",
    "too_short": "there is none",
}


def _suggest(key: str) -> str:
    near = get_close_matches(key, RecipeFields.model_fields, n=1)
    return f"did you mean {near[0]}? {HINT}" if near else HINT


def _answered_rows(file: Path) -> list[tuple[int, Row]]:
    """Read rows with the texts `prompt` and `completion`.

    Raises:
        InputError: a row lacks one of them.
    """
    rows: list[tuple[int, Row]] = []
    for place, row in read_rows(file):
        for field in ("prompt", "completion"):
            if not isinstance(row.get(field), str) or not row[field]:
                raise FieldError(
                    f"the row has no text in `{field}`",
                    file=str(file),
                    line=place.line,
                    field=field,
                    hint='write rows such as {"prompt": "Question: ...", "completion": " 4"}.',
                )
        rows.append((place.line, {"prompt": row["prompt"], "completion": row["completion"]}))
    return rows


def _new_rows(name: str, measured: MeasuredQuestions, seed: int) -> list[Row]:
    """Read new examples in the process that needs them, so that rows are not sent."""
    return _unmeasured_rows(Path(name.replace(SEED, str(seed))), measured)


def _unmeasured_rows(file: Path, measured: MeasuredQuestions) -> list[Row]:
    """Read rows with answers.

    Raises:
        FieldError: a row is an evaluation question.
    """
    rows = _answered_rows(file)
    for line, row in rows:
        if measured.has(row["prompt"]):
            raise FieldError(
                "this question is also an evaluation question of near or far",
                file=str(file),
                line=line,
                field="prompt",
                hint="remove it here, or from the evaluation questions.",
            )
    return [row for _, row in rows]


def _old_rows(tasks: Sequence[Task], template: str) -> list[Row]:
    return [
        {
            "prompt": template.replace("{question}", item.question),
            "completion": f" {item.gold}",
        }
        for task in tasks
        for item in task.load()
    ]


def _sample(rows: Sequence[Row], count: int) -> list[Row]:
    """Return a sample of rows in their order; the same ones each time."""

    def key(row: Mapping[str, Any]) -> bytes:
        return sha256(row["prompt"].encode()).digest()

    chosen = set(map(key, sorted(rows, key=key)[:count]))
    return [row for row in rows if key(row) in chosen]
