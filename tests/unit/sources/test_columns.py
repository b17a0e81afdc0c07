"""Columns of samples give the same hashes and records as single samples."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuzz_logs
from forgetmap.records import options_hash, text_hash, text_hashes
from forgetmap.sources.adapter import Problems
from forgetmap.sources.columns import SampleColumns, key_hashes, option_hashes
from forgetmap.sources.datasets import item_of, items_of
from forgetmap.sources.files import LogFile
from forgetmap.sources.gather import samples_of
from forgetmap.sources.logs import recognise
from forgetmap.sources.parts import PartOptions, whole
from fuzz_logs import logs_of, require_equal, result_of

STAMP = "2026-01-02T03-04-05.678901"
TEXTS = st.text(alphabet=st.sampled_from("ab ~\x7f\t\n\u00a0\u00bd\ufb01\U0001f600"), max_size=8)


@given(st.lists(st.none() | TEXTS, min_size=1, max_size=6))
def test_hashes_of_a_column_are_those_of_its_texts(texts: list[str | None]) -> None:
    column = text_hashes(texts)
    expected = [text_hash(text) if text and not text.isspace() else None for text in texts]
    pairs = zip(column.values.tolist(), column.known.tolist(), strict=True)
    assert [value if known else None for value, known in pairs] == expected


@given(st.lists(st.lists(TEXTS, min_size=3, max_size=5), min_size=1, max_size=5), st.integers(0, 2))
def test_hashes_of_options_are_those_of_each_set(options: list[list[str]], gold: int) -> None:
    every, right = option_hashes(options, [gold] * len(options))
    assert every.values.tolist() == [options_hash(of_row) for of_row in options]
    known = [text_hash(o[gold]) if o[gold] and not o[gold].isspace() else 0 for o in options]
    assert right.values.tolist() == known


def test_digests_become_numbers_at_once_only_if_all_are_digests() -> None:
    digests = ["0123456789abcdef" * 4, "f" * 64]
    hashes = key_hashes(digests)
    assert hashes is not None
    assert hashes.tolist() == [int(digest[:15], 16) for digest in digests]
    assert key_hashes(["ab" * 32, "no digest"]) is None
    assert key_hashes(["ab" * 32, "a " * 32]) is None


DOCS: list[list[dict[str, Any]]] = [
    [{"question": " a? ", "choices": ["x y z", "b"], "answer": 1, "subject": "s"}] * 2,
    [
        {"question": "a?", "choices": ["xyzzy", "b"], "answer": 5, "subject": None},
        {"question": "", "choices": ["A", "B"], "answer": 0, "subject": "s"},
        {"question": 7, "choices": "no list", "answer": "B", "subject": "s"},
    ],
    [{"question": "a?", "answer": "so #### 4"}, {"question": "b?", "answer": "so"}],
    [{"ctx": "a", "endings": ["long one", "two"], "label": "x"}] * 2,
    [{"article": "t", "problems": "[]"}, {"article": "t", "problems": "broken"}],
    [{}, {}],
]


@pytest.mark.parametrize("docs", DOCS)
def test_items_as_columns_are_the_items(docs: list[dict[str, Any]]) -> None:
    columns = items_of(docs)
    for row, item in enumerate(map(item_of, docs)):
        names = ("question", "options", "gold", "gold_index", "category")
        assert {name: getattr(columns, name)[row] for name in names} == {
            name: getattr(item, name) for name in names
        }
        assert columns.has_gold == item.has_gold


def _choice(number: int, **changes: Any) -> dict[str, Any]:
    """A row of multiple choice; by length and without, other options are the most likely."""
    choices = [f"option {number}", "a much longer option", "third  one"]
    logliks = [-1.0 - number % 3, -1.5, -3.0]
    row = {
        "doc_id": number,
        "doc": {"question": f"What is {number}?", "choices": choices, "gold": number % 3},
        "target": number % 3,
        "arguments": {
            f"gen_args_{place}": {"arg_0": f"What is {number}?", "arg_1": f" {choice}"}
            for place, choice in enumerate(choices)
        },
        "resps": [[[str(value), "False"]] for value in logliks],
        "filtered_resps": [[str(value), "False"] for value in logliks],
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "prompt_hash": f"{number:064x}",
        "acc": float(number % 3 == 0),
        "acc_norm": float(number % 2),
    }
    return {**row, **changes}


def _answer(number: int, scorer: str = "strict", **changes: Any) -> dict[str, Any]:
    return {
        "doc_id": number,
        "doc": {"question": f"{number} and 1?", "answer": f"so #### {number + 1}"},
        "target": str(number + 1),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {number} and 1?", "arg_1": {"until": []}}},
        "resps": [[f"it is {number}"]],
        "filtered_resps": [str(number) if number % 5 else "[invalid]"],
        "filter": scorer,
        "metrics": ["exact_match"],
        "prompt_hash": f"{number:064x}",
        "exact_match": 0.0,
        **changes,
    }


CHANGES: list[dict[str, Any]] = [
    {},
    {"doc_id": True},
    {"doc_id": 1.0},
    {"doc": None},
    {"doc": {}},
    {"filter": 3},
    {"metrics": ["acc"]},
    {"metrics": []},
    {"acc": None},
    {"acc": "1"},
    {"acc": True},
    {"acc": [1]},
    {"acc_norm": float("nan")},
    {"prompt_hash": "short"},
    {"prompt_hash": None},
    {"filtered_resps": []},
    {"filtered_resps": [["-1", "False"], ["-2", "True"]]},
    {"filtered_resps": [["-1", "False"], ["-2", "no"], ["-3", "True"]]},
    {"filtered_resps": [["x", "False"], ["-2", "True"], ["-3", "True"]]},
    {"filtered_resps": [["nan", "False"], ["-2", "True"], ["inf", "True"]]},
    {"scores_per_repeat": {"acc": [0.0, 1.0]}},
    {"doc": {"question": "\ud800 half", "choices": ["one two", "three"], "gold": 0}},
    {"doc": {"question": "x  y\n", "choices": ["one two", "\u00bd", "three"], "gold": 0}},
    {"doc": {"question": "labels", "choices": ["A", "B", "C"], "gold": 2}},
    {"doc": {"question": "none right", "choices": ["one two", "b", "c"]}},
    {"doc_id": 3},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_plain_and_unusual_rows_of_lm_eval_come_to_the_same_in_all_ways(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    choices = [_choice(number) for number in range(8)]
    choices[5] = _choice(5, **changes)
    answers = [_answer(n, scorer) for scorer in ("strict", "loose") for n in range(8)]
    mapped = {name: value for name, value in changes.items() if "acc" not in name}
    answers[11] = _answer(11, "loose", **mapped)
    log = tmp_path / "log"
    log.mkdir()
    for task, rows in (("chosen", choices), ("worked", answers)):
        lines = "\n".join(json.dumps(row) for row in rows)
        (log / f"samples_{task}_{STAMP}.jsonl").write_text(lines)
    require_equal(log, tmp_path)


def test_common_rows_take_columns_and_others_do_not(tmp_path: Path) -> None:
    path = tmp_path / f"samples_chosen_{STAMP}.jsonl"
    rows = [_choice(number) for number in range(6)]
    rows[3]["acc"] = None
    path.write_text("\n".join(json.dumps(row) for row in rows))
    part = whole(recognise(path), PartOptions(tmp_path, texts=False, scores=None))
    blocks = list(samples_of(part, Problems()))
    found = [len(block) if isinstance(block, SampleColumns) else block.item for block in blocks]
    assert found == [3, "3", "3", 2]  # whose metrics choose differently


FAST = ("lm-eval", "evalscope", "verifiers")


@pytest.mark.parametrize("folder", [log for name in FAST for log in logs_of(name)], ids=str)
def test_fixtures_come_to_the_same_in_all_ways(folder: Path, tmp_path: Path) -> None:
    require_equal(folder / "log", tmp_path)


def test_a_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.mkdir()
    rows = [json.dumps(_choice(number)) for number in range(4)]
    (log / f"samples_chosen_{STAMP}.jsonl").write_text("\n".join(rows))
    read_all = fuzz_logs.WAYS["columns"]

    def lose_one(*args: Any) -> None:
        read_all(*args)
        args[1].samples -= 1

    monkeypatch.setitem(fuzz_logs.WAYS, "columns", lose_one)
    with pytest.raises(AssertionError, match="columns: samples"):
        require_equal(log, tmp_path)


@pytest.mark.parametrize("doubled", [False, True])
def test_ranges_of_a_file_are_read_apart_unless_they_hold_the_same(
    tmp_path: Path, *, doubled: bool
) -> None:
    log = tmp_path / "log"
    log.mkdir()
    rows = [_choice(number % 30 if doubled else number) for number in range(40)]
    rows[35]["acc"] = "no number"
    (log / f"samples_chosen_{STAMP}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    logs = recognise(log)
    alone = result_of("rows", logs, tmp_path, texts=True)
    apart = result_of("ranges", logs, tmp_path, texts=True)
    assert apart == alone
    assert any("line 36" in problem for problem in alone["problems"][1])
    texts = list((tmp_path / "ranges").glob("texts-*.parquet"))
    assert len(texts) == (0 if doubled else fuzz_logs.RANGES)


def test_texts_that_another_range_has_are_dropped(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    rows = [_answer(n, scorer) for scorer in ("strict", "loose") for n in range(30)]
    (log / f"samples_worked_{STAMP}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    require_equal(log, tmp_path)
    assert len(result_of("ranges", recognise(log), tmp_path, texts=True)["texts"]) == 30


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("content", [b"", b"\n", b"a\nbb\n\nccc", b"\xef\xbb\xbfa\nb\n"])
def test_ranges_hold_every_line_once(
    tmp_path: Path, content: bytes, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forgetmap.sources.files.BLOCK_BYTES", size)
    path = tmp_path / "lines"
    path.write_bytes(content)
    file = LogFile(path, "lines", "lines")
    expected = list(file.lines())
    for parts in range(1, len(content) + 2):
        bounds = [*np.linspace(0, len(content), parts + 1).astype(int).tolist()]
        found = [
            (number + part.lines_before(), line)
            for start, end in pairwise(bounds)
            for part in [file.range(start, end)]
            for number, line in part.lines()
        ]
        assert found == expected


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_packed_lines_are_read_by_columns_as_they_stream(pack: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    rows = [_choice(number) for number in range(40)]
    rows[7]["acc"] = None
    rows[9]["doc"] = {"question": "labels", "choices": ["A", "B", "C"], "gold": 2}
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, pack) as stream:
        stream.write("\n".join(map(json.dumps, rows)).encode())
    (log / f"samples_chosen_{STAMP}.jsonl").write_bytes(packed.getvalue().to_pybytes())
    require_equal(log, tmp_path)
