"""Damaged tables and documents of any shape give typed errors in every command."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

import pytest

from forgetmap.errors import ForgetmapError
from forgetmap.records.validate import check_run
from forgetmap.sources.open import open_run
from forgetmap.sources.proposal import propose_map

MUTATIONS = 6
SHAPES = {
    "list in a document": json.dumps(
        {"performances": [{"model": "a", "question_id": n, "pass@1": n % 2} for n in range(4)]}
    ),
    "scores by name": json.dumps({"a": {"q1": 1, "q2": 0}, "b": {"q1": 0, "q2": 1}}, indent=1),
    "objects in rows": "".join(
        json.dumps({"id": n, "a": {"is_correct": True}, "trials": [{"r": 1}, {"r": 0}]}) + "\n"
        for n in range(4)
    ),
    "named matrix": "model,q1,q2\na,1,0\nb,0,1\n",
    "matrix": "1,0,1\n0,1,NA\n1,1,1\n",
    "lists of lists": json.dumps([[1, 0], [0, 1], [1, 1]]),
    "json in cells": 'id,s\nx,"{""x"": 1}"\ny,"{""x"": 0}"\n',
}
PARTS = (b"{", b"}", b"[", b",", b'"', b"null", b"NaN", b"1e999", b"\\ud800", b"\xff", b"\0", b"\n")


def damaged(data: bytes, rng: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        if rng.random() < 0.5:
            text[at:at] = rng.choice(PARTS)
        else:
            del text[at : at + rng.randint(1, 8)]
    return bytes(text)


def read(source: str, column_map: dict[str, str]) -> None:
    with suppress(ForgetmapError):
        check_run(open_run(source, column_map=column_map), unique=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_damage_gives_typed_errors(shape: str, tmp_path: Path) -> None:
    rng = random.Random(shape)
    path = tmp_path / "table"
    maps: list[dict[str, str]] = [{}, {"score": "trials.*.r"}, {"rows": "."}, {"score": "s.x"}]
    for number in range(MUTATIONS):
        path.write_bytes(damaged(SHAPES[shape].encode(), rng))
        for source in (str(path), f"{path}#a", f"{path}#col1"):
            read(source, maps[number % len(maps)])
        with suppress(ForgetmapError):
            propose_map(path)
