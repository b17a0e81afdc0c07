"""Bad input leads to a typed error with position and hint, and writes nothing."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from bad_tables import (
    FIRST_LINE,
    FORMATS,
    GOOD_LINE,
    HEADER,
    Bad,
    Format,
    Row,
    as_csv,
    as_parquet,
    damaged,
    folder_of,
    good_rows,
    gzipped,
    in_format,
    many_columns,
    nothing,
    refuse,
    tree,
)
from command_line import call, process
from forgetmap.errors import (
    ColumnError,
    DuplicateKeyError,
    EmptyInputError,
    FieldError,
    MissingInputError,
    TooFewPairedError,
    UnknownFormatError,
    UnreadableError,
)
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run


def with_fault(**cells: Any) -> list[Row]:
    """Six results of which the fourth has these cells."""
    rows = [row | dict.fromkeys(set(cells) - set(row)) for row in good_rows()]
    rows[3] |= cells
    return rows


FAULTY_CELLS: dict[str, dict[str, Any]] = {
    "a word for a score": {"score": "yes"},
    "NaN": {"score": float("nan")},
    "infinity": {"score": float("inf")},
    "minus infinity": {"score": float("-inf")},
    "percents": {"score": 73},
    "a negative score": {"score": -0.01},
    "just above one": {"score": 1.0000001},
    "no item": {"item": None},
    "an empty item": {"item": ""},
    "no task": {"task": None},
    "an empty task": {"task": ""},
    "an unknown outcome": {"outcome": "great"},
    "an error with a score": {"outcome": "error", "score": 1},
    "unscored with a score": {"outcome": "unscored", "score": 0},
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", FAULTY_CELLS)
def test_a_faulty_cell_is_named_with_line_and_field(
    name: str, kind: Format, tmp_path: Path
) -> None:
    cells = FAULTY_CELLS[name]
    content = in_format(with_fault(**cells), kind)
    refuse(
        Bad(name, content, FieldError, line=FIRST_LINE[kind] + 3, field=next(iter(cells))), tmp_path
    )


MISFITS: dict[str, dict[str, Any]] = {
    "k of 1": {"k": 1},
    "k of 0": {"k": 0},
    "a word for k": {"k": "abc"},
    "half an option": {"k": 2.5},
    "k not a number": {"k": float("nan")},
    "endless k": {"k": float("inf")},
    "k beyond 32 bits": {"k": 2**40},
    "a word for a seed": {"seed": "abc"},
    "tokens beyond 32 bits": {"tokens_in": 2**31},
    "a word for a log-probability": {"logprob_gold": "abc"},
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", MISFITS)
def test_an_optional_number_that_does_not_fit_is_left_out_and_named(
    name: str, kind: Format, tmp_path: Path
) -> None:
    cells = MISFITS[name]
    (tmp_path / "table").write_bytes(in_format(with_fault(**cells), kind))
    run = open_run(tmp_path / "table")
    (field,) = cells
    assert run.problem_count == 1
    assert (run.problems[0].line, run.problems[0].field) == (FIRST_LINE[kind] + 3, field)
    rows = run.scores.collect()
    assert len(rows) == len(good_rows())
    assert None in rows[field].to_list()
    strict = Reading(strict=True)
    with pytest.raises(FieldError) as caught:
        open_run(tmp_path / "table", reading=strict)
    assert (caught.value.line, caught.value.field) == (FIRST_LINE[kind] + 3, field)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("cell", ["abc", "5", '{"A": "yes"}', "['yes'", '"yes"'])
def test_options_must_be_a_list(cell: str, kind: Format, tmp_path: Path) -> None:
    rows = [row | {"question": f"q {row['item']}", "options": "['a', 'b']"} for row in good_rows()]
    rows[3]["options"] = cell
    bad = Bad("options", in_format(rows, kind), FieldError, FIRST_LINE[kind] + 3, "options")
    refuse(bad, tmp_path)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("column", ["task", "item", "score"])
def test_a_missing_column(column: str, kind: Format, tmp_path: Path) -> None:
    rows = [{name: cell for name, cell in row.items() if name != column} for row in good_rows()]
    refuse(
        Bad(column, in_format(rows, kind), ColumnError, field=column, says=["--columns"]), tmp_path
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_without_ids_every_row_needs_a_question(kind: Format, tmp_path: Path) -> None:
    rows = [{"task": "t", "question": cell, "score": 1} for cell in ("a", "b", None, "c")]
    bad = Bad("question", in_format(rows, kind), FieldError, FIRST_LINE[kind] + 2, "question")
    refuse(bad, tmp_path)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_doubled_key_is_named_where_it_stands_again(kind: Format, tmp_path: Path) -> None:
    """Rows of the same item that differ in repeat or metric are no doubles."""
    keys = [(0, "acc"), (1, "acc"), (0, "f1"), (1, "acc"), (2, "acc")]
    rows = [
        {"task": "t", "item": 7, "repeat": repeat, "metric": metric, "score": 1}
        for repeat, metric in keys
    ]
    path = tmp_path / "doubled"
    path.write_bytes(in_format(rows, kind))
    done = call("records", "check", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Error: {path}, line {FIRST_LINE[kind] + 3}, field 'item': 2 rows")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_row_that_occurs_twice(kind: Format, tmp_path: Path) -> None:
    rows = [*good_rows(), good_rows()[1]]
    content = in_format(rows, kind)
    refuse(
        Bad("doubled", content, DuplicateKeyError, line=FIRST_LINE[kind] + 6, field="item"),
        tmp_path,
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_zero_overlap(kind: Format, tmp_path: Path) -> None:
    good, other = tmp_path / "good", tmp_path / "other"
    good.write_bytes(as_csv(good_rows()))
    other.write_bytes(
        in_format([row | {"item": f"other {row['item']}"} for row in good_rows()], kind)
    )
    with pytest.raises(TooFewPairedError):
        fm.compare(good, other)
    before = tree(tmp_path)
    done = call("compare", good, other, "--out", tmp_path / "out")
    assert (done.code, done.out, tree(tmp_path)) == (2, "", before)
    assert "good and other have no item in common" in done.err
    assert "\nHint: " in done.err


TEXT_FILES = [
    Bad("nothing", b"", EmptyInputError),
    Bad("only white space", b" \n\n\t\n", EmptyInputError),
    Bad("only a byte order mark", b"\xef\xbb\xbf", EmptyInputError),
    Bad("only a header", HEADER, EmptyInputError),
    Bad("only a header, no line end", HEADER.strip(), EmptyInputError),
    Bad("an empty list", b"[]", EmptyInputError),
    Bad("empty objects", b"{}\n{}\n", EmptyInputError),
    Bad("prose", b"Once upon a time\nthere was a model.\n", UnknownFormatError, line=1),
    Bad("latin-1 in a row", HEADER + b"t,caf\xe9,1\n", UnreadableError, line=2),
    Bad("latin-1 in the header", b"task,item,score,caf\xe9\nt,1,1,1\n", UnreadableError, line=1),
    Bad(
        "latin-1 in a text", b"task,item,score,response\nt,1,1,a\nt,2,1,\xe9\n", UnreadableError, 3
    ),
    Bad(
        "latin-1 nobody reads", b"task,item,score,notes\nt,1,1,a\nt,2,1,\xe9\n", UnreadableError, 3
    ),
    Bad("latin-1 in JSON", GOOD_LINE + b'{"task": "caf\xe9"}\n', UnreadableError, line=2),
    Bad("half a character at the end", HEADER + "t,é,1\nt,é".encode()[:-1], UnreadableError, 3),
    Bad("UTF-16", (HEADER + b"t,1,1\n").decode().encode("utf-16"), UnreadableError, line=1),
    Bad("half an escape", GOOD_LINE + b'{"task": "\\ud800"}\n', FieldError, 2, "item"),
    Bad("a NUL byte", HEADER + b"t,1,1\nt,a\0b,1\n", UnreadableError, line=3),
    Bad("a tail of NUL bytes", HEADER + b"t,1,1\n" + b"\0" * 5000, UnreadableError, line=3),
    Bad("a NUL byte in JSON", GOOD_LINE * 2 + b'{"task": "a\0"}\n', UnreadableError, line=3),
    Bad("too few cells", HEADER + b"t,1,1\nt,2\nt,3,1\n", UnreadableError, line=3),
    Bad("too many cells", HEADER + b"t,1,1\nt,2,1,9\n", UnreadableError, line=3),
    Bad("an open quote", HEADER + b't,1,1\nt,"2,1\nt,3,1\nt,4,1\n', UnreadableError, line=3),
    Bad("an open quote in the header", b'task,item,"score\nt,1,1\n', UnreadableError, line=1),
    Bad("text behind a quote", HEADER + b't,1,1\nt,"2"x,1\n', UnreadableError, line=3),
    Bad("old Macintosh line ends", HEADER.replace(b"\n", b"\r") + b"t,1,1\r", UnreadableError, 1),
    Bad("a doubled column", b"task,item,score,score\nt,1,1,0\n", ColumnError, 1, "score"),
    Bad("a doubled column of others", b"task,item,score,x,x\nt,1,1,0,0\n", ColumnError, 1, "x"),
    Bad("a doubled name", GOOD_LINE + b'{"score": 1, "score": 0}\n', ColumnError, 2, "score"),
    Bad("a cut off last line", GOOD_LINE * 2 + b'{"task": "t", "it', UnreadableError, line=3),
    Bad("a last line without its end", GOOD_LINE + GOOD_LINE[:-2], UnreadableError, line=2),
    Bad("a late cut off line", GOOD_LINE * 1500 + b'{"task"', UnreadableError, line=1501),
    Bad("no JSON", GOOD_LINE + b'{"task": oops}\n' + GOOD_LINE, UnreadableError, line=2),
    Bad("a list as a line", GOOD_LINE + b'["t", 1, 1]\n', UnreadableError, line=2),
    Bad("a number as a line", GOOD_LINE * 1500 + b"5\n", UnreadableError, line=1501),
    Bad("null as a line", GOOD_LINE + b"null\n", UnreadableError, line=2),
    Bad("an item left out", GOOD_LINE + b'{"task": "t", "score": 1}\n', FieldError, 2, "item"),
    Bad(
        "a list for a score",
        GOOD_LINE + b'{"task":"t","item":1,"score":[1]}\n',
        FieldError,
        2,
        "score",
    ),
    Bad("nested too deeply", b'{"task": ' + b"[" * 10**5 + b"\n", UnreadableError, line=1),
    Bad("an endless list", b"[" * 10**5, UnreadableError),
    Bad(
        "an object of lists",
        b'{\n "results": [1]\n}\n',
        UnknownFormatError,
        says=["unknown format"],
    ),
    Bad("a list of numbers", b"[1,\n2]", UnreadableError, line=1),
    Bad("a list cut off", b'[{"task": "t"},\n {"task', UnreadableError, line=2),
    Bad(
        "a number late in a list", b"[" + GOOD_LINE + b"," + GOOD_LINE + b", 3]", UnreadableError, 3
    ),
    Bad("a gzip cut off", gzipped(HEADER + b"t,1,1\n" * 9999, without=20), UnreadableError),
    Bad("a gzip without its checksum", gzipped(GOOD_LINE * 9999, without=8), UnreadableError),
    Bad("the first two bytes of a gzip", b"\x1f\x8b", UnreadableError),
    Bad("a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", UnknownFormatError),
    Bad("a database", b"SQLite format 3\0" + b"\x10\0" * 50, UnknownFormatError),
    Bad("five megabytes of one word", b"x" * 5_000_000, UnknownFormatError, line=1),
    Bad("five megabytes of header", b"x" * 5_000_000 + b",y\n", UnknownFormatError, line=1),
    Bad(
        "a fault in a long line",
        HEADER + b"t," + b"x" * 5_000_000 + b",7\n",
        FieldError,
        2,
        "score",
    ),
    Bad(
        "a long JSON line",
        GOOD_LINE + b'{"task":"t","item":1,"score":7,"response":"%s"}\n' % (b"x" * 5_000_000),
        FieldError,
        2,
        "score",
    ),
]


@pytest.mark.parametrize("case", TEXT_FILES, ids=lambda case: case.name)
def test_a_bad_text_file(case: Bad, tmp_path: Path) -> None:
    refuse(case, tmp_path)


ROW, FAULT = b't,1,1,"a"\n', b"t,2,9,b\n"
WIDE = HEADER.replace(b"\n", b",response\n")
WHERE_LINES_ARE_HARD_TO_COUNT = [
    Bad("quoted line breaks", WIDE + b't,1,1,"a\nb\n\nc"\n' + FAULT, FieldError, 6, "score"),
    Bad("a byte order mark", b"\xef\xbb\xbf" + WIDE + ROW + FAULT, FieldError, 3, "score"),
    Bad("CRLF", (WIDE + ROW + FAULT).replace(b"\n", b"\r\n"), FieldError, 3, "score"),
    Bad(
        "CRLF around quoted LF",
        (WIDE + ROW).replace(b"\n", b"\r\n") + b't,3,1,"a\nb"\r\n' + FAULT.replace(b"\n", b"\r\n"),
        FieldError,
        5,
        "score",
    ),
    Bad("blank lines", WIDE + b"\n\n" + ROW + b"\n" + FAULT, FieldError, 6, "score"),
    Bad("a header of two lines", WIDE.replace(b"resp", b'"re\nsp"') + ROW, UnreadableError, 1),
    Bad(
        "a quoted header",
        WIDE.replace(b"response", b'"a\nb"') + ROW + FAULT,
        FieldError,
        4,
        "score",
    ),
    Bad("gzip", gzip.compress(WIDE + b't,1,1,"a\nb"\n' + FAULT), FieldError, 4, "score"),
    Bad("blank lines of JSON", b"\n\n" + GOOD_LINE + b"\n{}\n", FieldError, 5, "task"),
    Bad("JSON with a mark", b"\xef\xbb\xbf" + GOOD_LINE + b'{"score":9}\n', FieldError, 2, "score"),
    Bad("a list over lines", b"[\n" + GOOD_LINE + b",\n\n{}]", FieldError, 5, "task"),
    Bad("doubled quotes", WIDE + b't,1,1,"say ""x""\n"\n' + FAULT, FieldError, 4, "score"),
    Bad("semicolons", (WIDE + ROW + FAULT).replace(b",", b";"), FieldError, 3, "score"),
]


@pytest.mark.parametrize("case", WHERE_LINES_ARE_HARD_TO_COUNT, ids=lambda case: case.name)
def test_line_numbers_are_exact(case: Bad, tmp_path: Path) -> None:
    refuse(case, tmp_path)


def folder_with_link(target: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        folder_of(a__csv=HEADER + b"t,1,1\n")(path)
        (path / "b.csv").symlink_to(target)

    return write


PART = HEADER + b"t,1,1\n"
FOLDERS = [
    Bad("empty", folder_of(), UnknownFormatError),
    Bad("only hidden files", folder_of(__hidden=PART, _SUCCESS=b""), UnknownFormatError),
    Bad("pictures", folder_of(a__png=b"\x89PNG\r\n\0"), UnknownFormatError, says=["a.png"]),
    Bad("prose", folder_of(README__md=b"# Hello\n\nWorld\n"), UnknownFormatError),
    Bad(
        "a second part with a fault",
        folder_of(a__csv=PART, b__csv=HEADER + b"t,2,1\nt,3,9\n"),
        FieldError,
        3,
        "score",
        "b.csv",
    ),
    Bad(
        "a second part that is short",
        folder_of(a__csv=PART, b__csv=HEADER + b"t,2\n"),
        UnreadableError,
        2,
        file="b.csv",
    ),
    Bad(
        "a second part cut off",
        folder_of(a__csv=PART, b__jsonl=GOOD_LINE + b'{"ta'),
        UnreadableError,
        2,
        file="b.jsonl",
    ),
    Bad(
        "a second part that doubles",
        folder_of(a__csv=PART, b__csv=HEADER + b"t,2,1\nt,1,1\n"),
        DuplicateKeyError,
        3,
        "item",
        "b.csv",
    ),
    Bad("an empty part", folder_of(a__csv=PART, b__csv=b""), EmptyInputError, file="b.csv"),
    Bad(
        "a part without scores",
        folder_of(a__csv=PART, b__csv=b"task,item\nt,2\n"),
        ColumnError,
        field="score",
        file="b.csv",
    ),
    Bad(
        "a part without repeats",
        folder_of(a__csv=b"task,item,repeat,score\nt,1,0,1\n", b__csv=HEADER + b"t,2,1\n"),
        FieldError,
        2,
        "repeat",
        "b.csv",
    ),
    Bad(
        "a part of garbage",
        folder_of(a__csv=PART, b__csv=b"\0\0\0"),
        UnknownFormatError,
        file="b.csv",
    ),
    Bad(
        "a part of Parquet cut off",
        folder_of(a__csv=PART, b=b"PAR1\0\0\0"),
        UnreadableError,
        file="b",
    ),
    Bad("a part that is gone", folder_with_link("gone"), UnreadableError, file="b.csv"),
    Bad("a part that links to itself", folder_with_link("b.csv"), UnreadableError, file="b.csv"),
    Bad(
        "a run without scores",
        folder_of(manifest__json=b'{"schema_version": 1}'),
        UnreadableError,
        says=["scores.parquet"],
    ),
    Bad(
        "a run without manifest",
        folder_of(scores__parquet=as_parquet(good_rows()), texts__parquet=as_parquet(good_rows())),
        UnreadableError,
        says=["manifest.json"],
    ),
]


@pytest.mark.parametrize("case", FOLDERS, ids=lambda case: case.name)
def test_a_bad_folder(case: Bad, tmp_path: Path) -> None:
    refuse(case, tmp_path)


def test_more_files_than_a_table_is_split_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forgetmap.sources.open.MAX_FILES", 2)
    files = {f"{name}__csv": HEADER + f"t,{name},1\n".encode() for name in "abc"}
    refuse(Bad("files", folder_of(**files), UnknownFormatError, says=["3 files"]), tmp_path)


PLACES = {
    "nothing there": (nothing, MissingInputError),
    "a dangling link": (lambda path: path.symlink_to("nowhere"), MissingInputError),
    "a pipe": (os.mkfifo, UnknownFormatError),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_holds_no_file(name: str, tmp_path: Path) -> None:
    make, error = PLACES[name]
    refuse(Bad(name, make, error), tmp_path)


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    done = call("records", "check", tmp_path / ("a" * 300))
    assert (done.code, done.out) == (2, "")
    assert "\nHint: " in done.err


@pytest.mark.parametrize("option", ["score=nope", "scroe=points"])
def test_a_map_that_does_not_fit_the_table(option: str, tmp_path: Path) -> None:
    content = as_csv([row | {"points": row.pop("score")} for row in good_rows()])
    field, _, column = option.partition("=")
    path = Bad(option, content, ColumnError).write(tmp_path)
    with pytest.raises(ColumnError) as caught:
        open_run(path, column_map={field: column})
    assert (caught.value.file, caught.value.field) == (str(path), field)
    done = call("records", "check", path, "--columns", option)
    assert (done.code, done.out) == (2, "")
    assert f"{path}, field '{field}'" in done.err
    assert "\nHint: " in done.err


MILLION = 1_000_000
WIDE_FILES = {
    "csv": lambda: ",".join(many_columns(MILLION)).encode() + b"\n",
    "csv without line end": lambda: ",".join(many_columns(MILLION)).encode(),
    "gzipped csv": lambda: gzip.compress(",".join(many_columns(MILLION)).encode(), 1),
    "jsonl": lambda: json.dumps(dict.fromkeys(many_columns(MILLION), 1)).encode() + b"\n",
    "json": lambda: json.dumps([dict.fromkeys(many_columns(MILLION), 1)]).encode(),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "json" else ()) for name in WIDE_FILES],
)
def test_a_million_columns_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "wide"
    path.write_bytes(WIDE_FILES[name]())
    done = call("records", "check", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Error: {path}, line 1: the header has ")
    assert "columns or more\nHint: " in done.err


FOR_A_PROCESS = [
    Bad("nothing", b"", EmptyInputError),
    Bad("NaN", HEADER + b"t,1,nan\n", FieldError, 2, "score"),
    Bad("latin-1", HEADER + b"t,caf\xe9,1\n", UnreadableError, 2),
    Bad("a cut off line", GOOD_LINE + b'{"ta', UnreadableError, 2),
    Bad("a damaged page", damaged("score"), UnreadableError, field="score"),
    Bad("nowhere", nothing, MissingInputError),
]
PROCESSES = {"a cut off line", "a damaged page"}
"""Read by us, and by a library; the rest ends alike in this process, in a tenth of the time."""


@pytest.mark.parametrize("case", FOR_A_PROCESS, ids=lambda case: case.name)
def test_a_process_ends_with_two_lines_and_code_2(case: Bad, tmp_path: Path) -> None:
    path, good = case.write(tmp_path), tmp_path / "good.csv"
    good.write_bytes(as_csv(good_rows()))
    before = tree(tmp_path)
    start = process if case.name in PROCESSES else call
    done = start("compare", good, path, "--out", tmp_path / "out")
    assert (done.code, done.out, tree(tmp_path)) == (2, "", before)
    error, hint = done.err.splitlines()
    assert error.startswith(f"Error: {path}")
    assert hint.startswith("Hint: ")
