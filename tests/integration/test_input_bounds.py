"""Input of unrealistic size, claimed or real, is refused before it costs anything."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import call
from forgetmap.errors import UnreadableError
from forgetmap.overlap.prompts import read_prompts
from forgetmap.records.manifest import read_manifest
from forgetmap.sources.adapter import Problems
from forgetmap.sources.decode import rows
from forgetmap.sources.files import find_files
from forgetmap.sources.open import open_run

MIN_DENSE_BYTES = 32 << 20
DIGITS = "9" * 5_000
"""More than Python turns into a number."""

DENSE: dict[str, Callable[[], bytes]] = {
    "csv": lambda: b"task,item,score\n" + _many(b"t,a,1\n"),
    "jsonl": lambda: b'{"task": "t", "item": "a", "score": 1}\n' + _many(b"\n"),
    "json": lambda: b'[{"task": "t", "item": "a", "score": 1}' + _many(b" ") + b"]",
    "parquet": lambda: b"PAR1" + _many(b"\0") + b"PAR1",
}


def _many(line: bytes) -> bytes:
    return line * (MIN_DENSE_BYTES // len(line) + 1000)


@pytest.mark.parametrize("kind", DENSE)
def test_a_gzipped_table_that_unpacks_to_too_much_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"dense.{kind}.gz"
    path.write_bytes(gzip.compress(DENSE[kind](), 9))
    assert path.stat().st_size < MIN_DENSE_BYTES / 500
    with pytest.raises(
        UnreadableError, match="it decompresses to more than 33,554,432 bytes"
    ) as caught:
        open_run(path)
    assert caught.value.file == str(path)
    assert "decompress or split it first" in caught.value.hint


def test_a_gzipped_table_of_results_is_read(tmp_path: Path) -> None:
    path = tmp_path / "results.csv.gz"
    lines = [f"t,item {number},{number % 2}" for number in range(1_000)]
    path.write_bytes(gzip.compress("\n".join(["task,item,score", *lines, ""]).encode()))
    assert call("records", "check", path).out.endswith("valid. 1,000 results of 1 task.\n")


def table_of(kind: str, field: str, value: str) -> str:
    """Three results, of which the second has this, unquoted, in a field."""
    cells = [{"task": '"t"', "item": f'"{number}"', "score": "1"} for number in range(3)]
    for cell in cells:
        cell.setdefault(field, "null")
    cells[1][field] = value
    if kind == "csv":
        known = [[cell[name].strip('"').replace("null", "") for name in cells[0]] for cell in cells]
        return "\n".join(map(",".join, [list(cells[0]), *known])) + "\n"
    objects = ["{" + ", ".join(f'"{k}": {v}' for k, v in cell.items()) + "}" for cell in cells]
    return "\n".join(objects) + "\n" if kind == "jsonl" else "[" + ",\n".join(objects) + "]"


@pytest.mark.parametrize("field", ["score", "options"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "json"])
def test_a_number_of_5000_digits_is_named_with_its_place(
    kind: str, field: str, tmp_path: Path
) -> None:
    path = tmp_path / f"digits.{kind}"
    path.write_text(table_of(kind, field, DIGITS))
    done = call("records", "check", path)
    line = 3 if kind == "csv" else 2
    assert done.code == 2
    assert done.err.startswith(f"Error: {path}, line {line}, field '{field}': ")
    assert len(done.err) < 500 + len(str(path))


@pytest.mark.parametrize("field", ["k", "gold_index"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "json"])
def test_a_number_of_5000_digits_in_an_optional_field_is_left_out(
    kind: str, field: str, tmp_path: Path
) -> None:
    path = tmp_path / f"digits.{kind}"
    path.write_text(table_of(kind, field, DIGITS))
    run = open_run(path)
    assert [(one.line, one.field) for one in run.problems] == [(3 if kind == "csv" else 2, field)]
    assert len(run.problems[0].message) < 200
    assert run.scores.collect()[field].to_list() == [None] * 3


@pytest.mark.parametrize("layout", ["lines", "array"])
def test_a_number_of_5000_digits_costs_a_log_no_other_row(layout: str, tmp_path: Path) -> None:
    objects = [f'{{"id": {number}, "value": {DIGITS}}}' for number in range(3)]
    objects.append('{"id": 3, "value": NaN}')
    path = tmp_path / "log.json"
    path.write_text("\n".join(objects) if layout == "lines" else f"[{', '.join(objects)}]")
    problems = Problems()
    (file,) = find_files(path)
    assert [row["id"] for _, row in rows(file, problems)] == [0, 1, 2, 3]


def test_a_number_of_5000_digits_in_other_files_is_a_typed_error(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(f'{{"schema_version": {DIGITS}}}')
    with pytest.raises(ValueError, match="Exceeds the limit") as caught:
        read_manifest(path)
    assert type(caught.value).__name__ == "ManifestError"
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"prompt": "a"}) + f'\n{{"prompt": {DIGITS}}}\n')
    with pytest.raises(UnreadableError):
        read_prompts(prompts)
    suite = tmp_path / "suite.jsonl"
    suite.write_text(f'{{"question": "a", "answer": {DIGITS}}}\n')
    done = call("run", "no-such-model", "--suite", suite, "--out", tmp_path / "out")
    assert (done.code, "Traceback" in done.err) == (2, False)
