"""A damaged journal: intact answers are kept, others are evaluated again and reported."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from forgetmap._disk import make_line
from forgetmap.errors import OutputError
from forgetmap.evaluation.journal import Answer, Journal

ANSWERS = [
    Answer("task", f"item {number}", 0, float(number % 2), "correct", response="words " * 5)
    for number in range(1_000)
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of a thousand answers."""
    journal = Journal(tmp_path / "journal", "run", Answer)
    for answer in ANSWERS:
        journal.add(answer)
    journal.close()
    return journal.path


def reopen(path: Path) -> Journal[Answer]:
    journal = Journal(path, "run", Answer)
    journal.close()
    return journal


def test_one_bad_byte_costs_one_answer(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[10] = lines[10].replace(b"words", b"w\xffrds", 1)
    damaged = b"".join(lines)
    path.write_bytes(damaged)
    journal = reopen(path)
    assert journal.damaged == 1
    assert len(journal.done) == 999
    assert ANSWERS[9].key not in journal.done
    assert path.with_name("journal.damaged-1").read_bytes() == damaged
    assert reopen(path).damaged == 0


def test_a_changed_digit_is_noticed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"score": 0.0', b'"score": 1.0', 1))
    journal = reopen(path)
    assert (journal.damaged, len(journal.done)) == (1, 999)


def test_a_last_line_that_was_cut_off_is_no_damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])
    journal = reopen(path)
    assert (journal.damaged, len(journal.done)) == (0, 999)
    assert not list(path.parent.glob("*.damaged-*"))


def test_a_damaged_first_line_loses_no_answer(path: Path) -> None:
    """The checksum of every line holds for this run only, so each tells where it belongs."""
    path.write_bytes(b"x" + path.read_bytes())
    journal = reopen(path)
    assert (journal.damaged, len(journal.done)) == (1, 1_000)
    with pytest.raises(OutputError, match="belongs to a run with another"):
        Journal(path, "another run", Answer)


@pytest.mark.parametrize(
    "content",
    [
        b'{"fingerprint": "run"}\n{"task": "t"}\n', b"[]\n", b"null\n" * 3, b"[" * 50_000 + b"\n",
        b"\x00" * 1_000 + b"\n",
    ],
)  # fmt: skip
def test_what_is_no_journal_is_a_typed_error_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal").write_bytes(content)
    with pytest.raises(OutputError, match="no line is complete"):
        Journal(tmp_path / "journal", "run", Answer)
    assert (tmp_path / "journal").read_bytes() == content


def test_lines_that_came_twice_or_in_another_order_are_the_same_answers(path: Path) -> None:
    head, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(head + b"".join([*reversed(lines), *lines[:5]]))
    journal = reopen(path)
    assert (journal.damaged, len(journal.done)) == (0, 1_000)
    path.write_bytes(head + bytes(5_000) + b"\n" + b"".join(lines) + bytes(5_000))
    journal = reopen(path)
    assert (journal.damaged, len(journal.done)) == (1, 1_000)


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "t", "colour": 1},
        {"task": ["t"], "item": {}, "repeat": 0, "score": 1.0, "outcome": "correct"},
    ],
)
def test_other_fields_are_a_typed_error(tmp_path: Path, fields: dict[str, Any]) -> None:
    lines = make_line({"fingerprint": "run"}), make_line(fields, "run")
    (tmp_path / "journal").write_bytes(b"".join(lines))
    with pytest.raises(OutputError, match="other fields"):
        Journal(tmp_path / "journal", "run", Answer)


def test_no_bit_that_flips_changes_an_answer(path: Path) -> None:
    whole = path.read_bytes()
    wanted = {answer.key: answer for answer in ANSWERS}
    draw = random.Random(1)
    for _ in range(50):
        content = bytearray(whole)
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        journal = reopen(path)
        assert 998 <= len(journal.done) <= 1_000
        assert journal.damaged or len(journal.done) == 999  # the end of the last line
        assert all(wanted[key] == answer for key, answer in journal.done.items())


def test_lines_can_be_read_by_people(path: Path) -> None:
    first, second = (json.loads(line) for line in path.read_text().splitlines()[:2])
    assert first["fingerprint"] == "run"
    assert second["item"] == "item 0"
