"""The folder of a lab: one recipe, stored results, and errors of reading and writing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors import SafetensorError

from forgetmap.errors import MissingInputError, OutputError, UnreadableError
from forgetmap.evaluation import Suite
from forgetmap.lab.folder import RECIPE, as_output_error, describe_recipe, kept_result, open_lab
from forgetmap.lab.recipe import LabRecipe, Row
from forgetmap.lab.result import LabCell, LabRun, MergeLevel, RepairRun

pytestmark = pytest.mark.needs_torch
EMPTY = Suite("empty", ())
CELL = LabCell(part="near", category="Law", items=5, known=4, forgotten=1, gained=0)


def test_a_result_is_made_once(tmp_path: Path) -> None:
    made = []

    def make() -> LabCell:
        made.append(CELL)
        return CELL

    for _ in range(2):
        assert kept_result(tmp_path / "deep" / "cell.json", LabCell, make) == CELL
    assert len(made) == 1


@pytest.mark.parametrize("kind", [LabRun, RepairRun, MergeLevel])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b'{"seed": 1', "Invalid JSON"), (b'{"seed": 1}', "Field required"), (b"\xff", "utf-8")],
)
def test_a_result_that_cannot_be_read_is_named(
    kind: type[LabRun | RepairRun | MergeLevel], content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(content)
    with pytest.raises(UnreadableError, match=message) as error:
        kept_result(file, kind, lambda: pytest.fail("made again"))
    assert error.value.file == str(file)
    assert "\n" not in error.value.message


def test_what_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        kept_result(tmp_path / "file" / "cell.json", LabCell, lambda: CELL)
    for fault in (OSError(28, "No space left on device"), SafetensorError("No space left")):
        with pytest.raises(OutputError, match="No space left"), as_output_error(tmp_path):
            raise fault


def recipe_of(start: Path, rows: dict[int, list[Row]]) -> LabRecipe:
    def new_rows(seed: int) -> list[Row]:
        if seed not in rows:
            raise MissingInputError("the file does not exist", file=f"{seed}", hint="write it.")
        return rows[seed]

    start.mkdir(exist_ok=True)
    (start / "config.json").write_text("{}")
    return LabRecipe("mine", str(start), new_rows, [], EMPTY, EMPTY, [])


def open_once(recipe: LabRecipe, out: Path, seeds: list[int]) -> None:
    with open_lab(recipe, out, seeds):
        pass


def test_new_examples_belong_to_the_recipe_seed_by_seed(tmp_path: Path) -> None:
    rows: dict[int, list[Row]] = {seed: [{"prompt": f"{seed}"}] for seed in range(4)}
    recipe, out = recipe_of(tmp_path / "start", rows), tmp_path / "lab"
    open_once(recipe, out, [0, 1, 2])
    open_once(recipe, out, [0, 1, 2, 3])
    rows[3] = [{"prompt": "other"}]
    open_once(recipe, out, [0, 1])
    with pytest.raises(OutputError, match="another recipe: the new examples of seed 3 changed"):
        open_once(recipe, out, [0, 3])


def test_missing_examples_are_said_before_anything_is_made(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path / "start", {0: [], 1: []})
    with pytest.raises(MissingInputError):
        open_once(recipe, tmp_path / "lab", [0, 1, 2])
    assert not (tmp_path / "lab").exists()


def test_a_changed_tokenizer_is_another_start(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path / "start", {0: []})
    before = describe_recipe(recipe)
    (tmp_path / "start" / "tokenizer.json").write_text("{}")
    after = describe_recipe(recipe)
    assert [name for name in before if before[name] != after[name]] == ["start"]


def test_runs_of_another_version_are_not_mixed_with_ours(tmp_path: Path) -> None:
    recipe, out = recipe_of(tmp_path / "start", {0: []}), tmp_path / "lab"
    open_once(recipe, out, [0])
    facts = json.loads((out / RECIPE).read_text())
    (out / RECIPE).write_text(json.dumps(facts | {"version": 1}))
    with pytest.raises(OutputError, match="another version of forgetmap"):
        open_once(recipe, out, [0])
    (out / RECIPE).write_text("[]")
    with pytest.raises(UnreadableError, match="not a lab recipe"):
        open_once(recipe, out, [0])
