"""Recipes in TOML: parsing, and errors for invalid ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from forgetmap.errors import FieldError, InputError, MissingInputError
from forgetmap.lab.folder import describe_recipe, open_lab
from forgetmap.lab.recipe_file import read_recipe
from forgetmap.lab.starters import STARTERS, write_starter

pytestmark = pytest.mark.needs_torch

RECIPE = """\
name = "mine"
start = "models/start"

new = "new-{seed}.jsonl"
pool = "pool.jsonl"
near = "near.jsonl"
far = "far.jsonl"
"""
ITEM = '{"question": "Who is NAME?", "gold": "me"}\n'
ROW = '{"prompt": "Question: What is 2 + 2?\\nAnswer:", "completion": " 4"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipe.toml").write_text(RECIPE)
    for name in ("new-0", "new-1", "pool"):
        (tmp_path / f"{name}.jsonl").write_text(ROW.replace("2 + 2", name))
    for name in ("near", "far"):
        (tmp_path / f"{name}.jsonl").write_text(ITEM.replace("NAME", name))
    (tmp_path / "models" / "start").mkdir(parents=True)
    (tmp_path / "models" / "start" / "config.json").write_text("{}")
    return tmp_path


def test_a_recipe_names_files_beside_it_and_can_be_sent_to_other_processes(folder: Path) -> None:
    recipe = pickle.loads(pickle.dumps(read_recipe(folder / "recipe.toml")))
    assert recipe.start == str(folder / "models" / "start")
    assert recipe.new_rows(1)[0]["prompt"] == "Question: What is new-1?\nAnswer:"
    assert [task.name for task in (*recipe.near.tasks, *recipe.far.tasks)] == ["near", "far"]
    assert recipe.old_rows == [
        {"prompt": f"Question: Who is {name}?\nAnswer:", "completion": " me"}
        for name in ("near", "far")
    ]
    assert (recipe.free_prompt, recipe.answer_mark) == ("Question:", "\nAnswer:")
    assert recipe.target == 0.95


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("name", "named", 1, "named", "did you mean name?"),
        ('pool = "pool.jsonl"', "", None, "pool", "missing key"),
        ('far = "far.jsonl"', 'far = "far.jsonl"\ntarget = 1.5', 8, "target", "less than or equal"),
        ('name = "mine"', 'name = ""', 1, "name", "it is empty"),
        ('far = "far.jsonl"', 'far = "far.jsonl"\nrates = 0.1', 8, "rates", "list of numbers"),
        ('far = "far.jsonl"', 'far = "far.jsonl"\nrates = []', 8, "rates", "there is none"),
        ('far = "far.jsonl"', 'far = "far.jsonl"\nrates = [-1.0]', 8, "rates", "greater than 0"),
        ('far = "far.jsonl"', 'far = "far.jsonl"\nbatch_size = 0', 8, "batch_size", "greater than"),
        ('far = "far.jsonl"', 'far = "far.jsonl"\nmax_steps = "9"', 8, "max_steps", "valid int"),
        ('far = "far.jsonl"', 'far = "near.jsonl"', 7, "far", "'near' is also in `near`"),
        ('far = "far.jsonl"', 'far = "bascis"', 7, "far", "did you mean basics"),
        ('"new-{seed}.jsonl"', '"gone.jsonl"', 4, "new", "there is no file"),
        (
            'far = "far.jsonl"', 'far = "far.jsonl"\nhint_template = "{prompt}"', 8,
            "hint_template", "missing key {privileged_context}",
        ),
    ],
)  # fmt: skip
def test_a_bad_recipe_is_told_with_its_line(
    folder: Path, old: str, new: str, line: int | None, field: str, message: str
) -> None:
    assert old in RECIPE
    (folder / "recipe.toml").write_text(RECIPE.replace(old, new, 1))
    with pytest.raises(FieldError) as error:
        read_recipe(folder / "recipe.toml")
    assert (error.value.line, error.value.field) == (line, field)
    assert message in str(error.value)
    assert error.value.file == str(folder / "recipe.toml")


def test_what_is_no_recipe(folder: Path) -> None:
    with pytest.raises(MissingInputError, match="does not exist"):
        read_recipe(folder / "none.toml")
    (folder / "recipe.toml").write_text("name = \n")
    with pytest.raises(InputError, match="line 1"):
        read_recipe(folder / "recipe.toml")
    (folder / "recipe.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a valid TOML file"):
        read_recipe(folder / "recipe.toml")


def test_rows_without_answers_are_told_with_their_line(folder: Path) -> None:
    (folder / "pool.jsonl").write_text(ROW + '{"prompt": "What?"}\n')
    with pytest.raises(FieldError) as error:
        read_recipe(folder / "recipe.toml")
    assert (error.value.line, error.value.field) == (2, "completion")
    assert error.value.file == str(folder / "pool.jsonl")


@pytest.mark.parametrize("name", ["pool", "new-0", "new-1"])
@pytest.mark.parametrize(
    "prompt", ["Question: Who is far?\\nAnswer:", "Who is  far? ", "Q: who is far?"]
)
def test_a_measured_question_must_not_be_trained_on(folder: Path, name: str, prompt: str) -> None:
    row = f'{{"prompt": "{prompt}", "completion": " me"}}\n'
    (folder / f"{name}.jsonl").write_text(ROW + row)
    with pytest.raises(FieldError, match="also an evaluation question") as error:
        read_recipe(folder / "recipe.toml")
    assert (error.value.file, error.value.line) == (str(folder / f"{name}.jsonl"), 2)


@pytest.mark.parametrize("starter", [name for name in STARTERS if name != "gpu"])
def test_starters_are_recipes_that_can_be_read(starter: str, tmp_path: Path) -> None:
    files = write_starter(starter, tmp_path)
    assert all(file.is_file() for file in files)
    recipe = read_recipe(files[0])
    assert recipe.name == starter
    asked = {
        item.question for task in (*recipe.near.tasks, *recipe.far.tasks) for item in task.load()
    }
    assert not asked & {row["prompt"].split("\n")[0] for row in recipe.pool}
    near, far = ({task.category for task in suite.tasks} for suite in (recipe.near, recipe.far))
    assert not near & far
    assert recipe.new_rows(1) != recipe.new_rows(2)


def test_the_template_for_gpus_has_no_unknown_key(folder: Path, tmp_path: Path) -> None:
    (recipe,) = write_starter("gpu", tmp_path / "gpu")
    (folder / "recipe.toml").write_text(
        recipe.read_text().replace('"basics"', '"far.jsonl"').replace("new.jsonl", "new-0.jsonl")
    )
    assert read_recipe(folder / "recipe.toml").rates == (3e-6, 1e-5, 3e-5)


def test_a_folder_belongs_to_one_recipe(folder: Path) -> None:
    recipe = read_recipe(folder / "recipe.toml")
    with open_lab(recipe, folder / "lab", [0]):
        pass
    (folder / "far.jsonl").write_text('{"question": "Who is far?", "gold": "you"}\n')
    changed = read_recipe(folder / "recipe.toml")
    with (
        pytest.raises(OSError, match="another recipe: far, old_rows changed"),
        open_lab(changed, folder / "lab", [0]),
    ):
        pass
    with (
        pytest.raises(OSError, match="is already being written"),
        open_lab(recipe, folder / "lab", [0]),
        open_lab(recipe, folder / "lab", [0]),
    ):
        pass


def test_other_weights_are_another_recipe(folder: Path) -> None:
    recipe = read_recipe(folder / "recipe.toml")
    weights = folder / "models" / "start" / "model.safetensors"
    weights.write_bytes(b"one")
    before = describe_recipe(recipe)
    weights.write_bytes(b"two")
    after = describe_recipe(recipe)
    assert [name for name in before if before[name] != after[name]] == ["start"]
