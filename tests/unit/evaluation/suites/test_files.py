from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.errors import (
    ColumnError,
    DuplicateKeyError,
    EmptyInputError,
    FieldError,
    InputError,
    MissingInputError,
    UnknownFormatError,
    UnreadableError,
)
from forgetmap.evaluation.items import Item, Suite
from forgetmap.evaluation.suites.files import file_suite, hub_suite
from forgetmap.evaluation.suites.hub import HubData
from hub_copies import write_copies

GOOD = {"id": "a", "question": "Which is blue?", "options": ["sea", "coal", "snow"], "gold": "sea"}


def json_lines(folder: Path, *rows: Mapping[str, Any] | str) -> Path:
    path = folder / "items.jsonl"
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    )
    return path


def only_items(suite: Suite) -> list[Item]:
    (task,) = suite.tasks
    return list(task.load())


def refused(
    path: Path, column_map: Mapping[str, str] | None = None
) -> tuple[type[InputError], int | None, str | None, str]:
    with pytest.raises(InputError) as caught:
        file_suite(path, column_map=column_map)
    error = caught.value
    assert error.file == str(path)
    assert error.hint
    return type(error), error.line, error.field, error.message


def test_a_task_takes_the_name_of_the_file(tmp_path: Path) -> None:
    suite = file_suite(json_lines(tmp_path, GOOD))
    assert suite.name == suite.tasks[0].name == "items"
    assert suite.tasks[0].kind == "option"
    assert only_items(suite) == [Item("a", "Which is blue?", "sea", ("sea", "coal", "snow"))]


@pytest.mark.parametrize(
    ("gold", "of_second"), [("sea", "two"), ("A", "B"), ("(A)", "(B)"), (0, 1)]
)
def test_gold_by_text_letter_or_index(tmp_path: Path, gold: object, of_second: object) -> None:
    second = {"id": "b", "question": "Which is 2?", "options": ["one", "two"], "gold": of_second}
    items = only_items(file_suite(json_lines(tmp_path, GOOD | {"gold": gold}, second)))
    assert [item.gold for item in items] == ["sea", "two"]


def test_an_index_from_1_is_believed_only_if_said(tmp_path: Path) -> None:
    rows = [GOOD | {"id": str(place), "gold": place} for place in (1, 2, 3)]
    path = json_lines(tmp_path, *rows)
    assert refused(path)[:3] == (FieldError, 3, "gold")
    items = only_items(file_suite(path, column_map={"gold_as": "index1"}))
    assert [item.gold for item in items] == ["sea", "coal", "snow"]


def test_gold_that_can_mean_two_options_must_be_explained(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path, {"question": "Which is two?", "options": ["2", "0", "1"], "gold": 2}
    )
    kind, line, field, message = refused(path)
    assert (kind, line, field) == (FieldError, 1, "gold")
    assert "text or index" in message
    for way, meant in (("text", "2"), ("index", "1")):
        (item,) = only_items(file_suite(path, column_map={"gold_as": way}))
        assert item.gold == meant


def test_no_row_is_read_in_another_way_than_the_rest(tmp_path: Path) -> None:
    rows = [GOOD | {"id": str(number)} for number in range(3)]
    path = json_lines(tmp_path, *rows, GOOD | {"id": "x", "gold": "B"})
    assert refused(path)[:3] == (FieldError, 4, "gold")


def test_several_right_options(tmp_path: Path) -> None:
    (item,) = only_items(file_suite(json_lines(tmp_path, GOOD | {"gold": ["sea", "coal"]})))
    assert (item.gold, item.also_right) == ("sea", ("coal",))


def test_csv_with_a_column_per_option(tmp_path: Path) -> None:
    path = tmp_path / "quiz.csv"
    path.write_text(
        'nr,q,a,b,c,right,topic\n1,"Which is red,\nas a rule?",blood,coal,snow,A,colours\n'
        "2,Which is cold?,fire,ice,,B,colours\n"
    )
    names = {"id": "nr", "question": "q", "options": "a,b,c", "gold": "right", "category": "topic"}
    suite = file_suite(path, column_map=names)
    assert suite.tasks[0].category == "colours"
    red, cold = only_items(suite)
    assert (red.id, red.gold, red.options) == ("1", "blood", ("blood", "coal", "snow"))
    assert red.question == "Which is red,\nas a rule?"
    assert (cold.gold, cold.options) == ("ice", ("fire", "ice"))


def test_a_list_in_a_csv_cell(tmp_path: Path) -> None:
    path = tmp_path / "quiz.tsv"
    path.write_text('question\toptions\tgold\nWhich?\t"[""x"", ""y""]"\ty\n')
    (item,) = only_items(file_suite(path))
    assert (item.options, item.gold) == (("x", "y"), "y")


def test_parquet_with_labelled_options(tmp_path: Path) -> None:
    path = tmp_path / "quiz.parquet"
    choices = {"text": ["stone", "blue"], "label": ["1", "2"]}
    row = {"question": "A colour?", "choices": choices, "answerKey": "2", "task": "t"}
    pq.write_table(pa.Table.from_pylist([row]), path)
    suite = file_suite(
        path, column_map={"options": "choices", "gold": "answerKey", "gold_as": "letter"}
    )
    assert suite.tasks[0].name == "t"
    assert only_items(suite)[0].gold == "blue"


def test_tasks_and_kinds(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path,
        GOOD | {"task": "mc"},
        {"task": "sum", "question": "1 + 1?", "gold": 2},
        {"task": "word", "question": "Opposite of up?", "gold": ["down", "downwards"]},
        {"task": "sum", "question": "1000 + 1?", "gold": "1,001"},
    )
    tasks = {task.name: task for task in file_suite(path).tasks}
    assert {name: task.kind for name, task in tasks.items()} == {
        "mc": "option",
        "sum": "number",
        "word": "text",
    }
    assert [item.gold for item in tasks["sum"].load()] == ["2", "1,001"]
    assert tasks["word"].load()[0].also_right == ("downwards",)


def test_without_ids_the_content_names_an_item(tmp_path: Path) -> None:
    first, second = ({"question": f"{n} + 1?", "gold": n + 1} for n in (1, 2))
    forth = only_items(file_suite(json_lines(tmp_path, first, second)))
    back = only_items(file_suite(json_lines(tmp_path, second, first)))
    assert {item.id for item in forth} == {item.id for item in back}
    assert [item.id for item in forth] == [item.id for item in back[::-1]]


@pytest.mark.needs_torch
def test_a_data_set_on_the_hub(tmp_path: Path) -> None:
    suite = hub_suite(
        HubData("cais/mmlu", "test", "sociology"),
        column_map={"options": "choices", "gold": "answer", "task": "subject"},
        root=write_copies(tmp_path),
    )
    assert suite.tasks[0].name == "sociology"
    assert [item.gold for item in only_items(suite)] == ["one", "four"]


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        (GOOD | {"gold": None}, "gold", "no right answer"),
        (GOOD | {"gold": ""}, "gold", "no right answer"),
        ({"question": "Why?", "options": ["a", "b"]}, "gold", "no right answer"),
        (GOOD | {"question": " "}, "question", "no question"),
        (GOOD | {"options": ["sea"]}, "options", "only one option"),
        (GOOD | {"gold": "mud"}, "gold", "'mud' is not among the 3 options"),
        ({"id": "z", "question": "Open?", "gold": "x"}, "options", "mixes items"),
        (GOOD | {"id": "c", "category": "other"}, "category", "has two categories"),
    ],
)
def test_a_bad_item_is_named(
    tmp_path: Path, row: Mapping[str, Any], field: str, message: str
) -> None:
    good = [GOOD | {"id": "a1"}, GOOD | {"id": "a2"}]
    kind, line, found, said = refused(json_lines(tmp_path, *good, row))
    assert (kind, line, found) == (FieldError, 3, field)
    assert message in said


def test_two_items_with_one_id(tmp_path: Path) -> None:
    twin = GOOD | {"question": "Which is wet?"}
    kind, line, field, message = refused(json_lines(tmp_path, GOOD, twin))
    assert (kind, line, field) == (DuplicateKeyError, 2, "id")
    assert "'a'" in message
    assert "line 1" in message


def test_the_same_id_in_two_tasks_is_fine(tmp_path: Path) -> None:
    suite = file_suite(json_lines(tmp_path, GOOD | {"task": "x"}, GOOD | {"task": "y"}))
    assert [task.name for task in suite.tasks] == ["x", "y"]


def test_the_same_item_twice_without_ids(tmp_path: Path) -> None:
    row = {"question": "1 + 1?", "gold": "2"}
    assert refused(json_lines(tmp_path, row, row))[:3] == (DuplicateKeyError, 2, "question")


def test_a_missing_column(tmp_path: Path) -> None:
    path = json_lines(tmp_path, {"question": "Why?", "answer": "so"})
    kind, _, field, message = refused(path)
    assert (kind, field) == (ColumnError, "gold")
    assert "question, answer" in message


def test_a_map_to_nowhere_names_near_columns(tmp_path: Path) -> None:
    path = json_lines(tmp_path, {"question": "Why?", "answer": "so"})
    with pytest.raises(ColumnError, match="choose from: answer") as caught:
        file_suite(path, column_map={"gold": "anwser"})
    assert caught.value.field == "gold"
    with pytest.raises(ColumnError, match="choose from: question"):
        file_suite(path, column_map={"questoin": "answer"})
    with pytest.raises(ColumnError, match="choose from: index, index1"):
        file_suite(path, column_map={"gold": "answer", "gold_as": "indx"})


def test_broken_files(tmp_path: Path) -> None:
    cut = json_lines(tmp_path, GOOD, '{"question": "Wh')
    assert refused(cut)[:2] == (UnreadableError, 2)
    no_object = json_lines(tmp_path, GOOD, "7")
    assert refused(no_object)[:2] == (UnreadableError, 2)
    empty = json_lines(tmp_path)
    assert refused(empty)[0] is EmptyInputError
    short = tmp_path / "short.csv"
    short.write_text("question,gold\nWhy?,so\nHow?\n")
    assert refused(short)[:2] == (UnreadableError, 3)
    latin = tmp_path / "latin.csv"
    latin.write_bytes("question,gold\nWo?,über\n".encode("latin-1"))
    assert refused(latin)[0] is UnreadableError
    assert refused(tmp_path / "none.csv")[0] is MissingInputError
    (tmp_path / "items.docx").write_text("x")
    assert refused(tmp_path / "items.docx")[0] is UnknownFormatError


def test_a_json_list(tmp_path: Path) -> None:
    path = tmp_path / "items.json"
    path.write_text(json.dumps([GOOD]))
    assert only_items(file_suite(path))[0].gold == "sea"
    path.write_text(json.dumps(GOOD))
    assert refused(path)[0] is UnreadableError


def test_place_0_is_no_place_when_counting_from_1(tmp_path: Path) -> None:
    path = json_lines(tmp_path, GOOD | {"gold": 0})
    assert refused(path, {"gold_as": "index1"})[:3] == (FieldError, 1, "gold")
