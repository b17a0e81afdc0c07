from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forgetmap._disk import make_line
from forgetmap.errors import (
    ChecksumError,
    ColumnError,
    EmptyInputError,
    FieldError,
    ForgetmapError,
    MissingInputError,
    PairingError,
    UnreadableError,
)
from forgetmap.overlap.samples import CompletionSample, read_samples, table_of, table_of_arrays


def sample(**more: Any) -> CompletionSample:
    given: dict[str, Any] = {"prompt": "p", "side": "before", "number": 0}
    return CompletionSample(**given | {"before": [-1.0, -0.5], "after": [-2.0, -0.25]} | more)


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"before": [0.5, -1.0]}, FieldError, "above 0"),
        ({"after": [math.nan, -1.0]}, FieldError, "not a number"),
        ({"before": [-math.inf, -1.0]}, FieldError, "probability 0"),
        ({"after": [-1.0]}, PairingError, "2 tokens for the model before and 1"),
        ({"before": [], "after": []}, FieldError, "no log-probabilities"),
        ({"kl": [0.1, -0.5]}, FieldError, "-0.5"),
        ({"kl": [0.1, math.nan]}, FieldError, "nan"),
        ({"kl": [0.1, 0.1, 0.1]}, FieldError, "3 divergences for 2 tokens"),
        ({"side": "base"}, FieldError, "base"),
    ],
)
def test_what_cannot_be_log_probabilities_is_refused(
    more: dict[str, Any], error: type[ForgetmapError], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        sample(**more)
    assert caught.value.hint.endswith(".")


def test_rounding_above_zero_is_no_error() -> None:
    assert table_of([sample(before=[1e-6, -0.5])]).ratio[0] == pytest.approx(1.75, abs=1e-5)


def test_columns_are_sums_over_tokens() -> None:
    rows = [
        sample(kl=[0.1, 0.2]),
        sample(side="after", before=[-3.0, -1.0], ended=False, expert=-5.0),
        sample(prompt="a", number=2, group="old"),
    ]
    table = table_of(rows)
    assert table.prompts == ("a", "p")
    assert table.groups == ("old", None)
    assert table.prompt_index.tolist() == [0, 1, 1]
    assert table.wrote_before.tolist() == [True, False, True]
    assert table.ratio == pytest.approx([0.75, -1.75, 0.75])
    assert table.kl == pytest.approx([math.nan, math.nan, 0.3], nan_ok=True)
    assert table.expert == pytest.approx([math.nan, 1.0, math.nan], nan_ok=True)
    assert table.ended.tolist() == [True, False, True]
    assert [rows.tolist() for rows in table.rows_of("before")] == [[0], [2]]
    assert [rows.tolist() for rows in table.rows_of("after")] == [[], [1]]


def test_beginnings_are_cut_everywhere_alike() -> None:
    rows = [sample(kl=[0.1, 0.2]), sample(number=1, before=[-1.0], after=[-2.0])]
    table = table_of(rows, first=1)
    assert table.ratio == pytest.approx([1.0, 1.0])
    assert table.kl[0] == pytest.approx(0.1)
    assert table.ended.tolist() == [False, True]


@pytest.mark.parametrize(
    "other",
    [
        sample(number=1, before=[-1.0], after=[-1.0], ended=False),
        sample(number=1, before=[-1.0] * 3, after=[-1.0] * 3),
    ],
    ids=["cut elsewhere", "longer than the cut"],
)
def test_completions_cut_at_different_lengths_are_refused(other: CompletionSample) -> None:
    with pytest.raises(PairingError, match="cut at") as caught:
        table_of([sample(ended=False), other])
    assert "--first" in caught.value.hint
    assert table_of([sample(ended=False), other], first=1).ratio.size == 2


def test_arrays_of_other_tokens_are_refused() -> None:
    with pytest.raises(FieldError, match="different numbers of tokens"):
        table_of_arrays(
            [0, 0], [True, False], [-1, -2], [-2, -1], tokens_before=[2, 3], tokens_after=[2, 4]
        )
    with pytest.raises(FieldError, match="above 0"):
        table_of_arrays([0], [True], [1.0], [-2])
    with pytest.raises(FieldError, match="3 values for 2 completions"):
        table_of_arrays([0, 0], [True, False], [-1, -2], [-2, -1], kl=[0.0, 0.0, 0.1])
    with pytest.raises(EmptyInputError):
        table_of_arrays([], [], [], [])


def test_arrays_keep_what_they_say() -> None:
    table = table_of_arrays(
        ["b", "a", "b"], [1, 1, 0], [-1, -2, -3], [-2, -2, -1], group=["x", "y", "x"]
    )
    assert table.prompts == ("a", "b")
    assert table.groups == ("y", "x")
    assert table.ratio.tolist() == [1, 0, -2]
    only = table.of_prompts([1])
    assert only.prompts == ("b",)
    assert only.ratio.tolist() == [1, -2]
    assert only.prompt_index.tolist() == [0, 0]


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


GOOD = {"prompt": 7, "side": "before", "before": -1.5, "after": [-2.0]}


def test_samples_are_read_back(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", GOOD, GOOD, GOOD | {"side": "after"})
    found = read_samples(file)
    assert [each.key for each in found] == [
        ("7", "before", 0),
        ("7", "before", 1),
        ("7", "after", 0),
    ]
    assert np.asarray(found[0].before) == pytest.approx([-1.5])


def test_a_damaged_line_of_a_journal_is_named(tmp_path: Path) -> None:
    lines = [make_line({"fingerprint": "x"}), make_line(GOOD, "x"), make_line(GOOD, "x")]
    (tmp_path / "j").write_bytes(b"".join(lines))
    assert len(read_samples(tmp_path / "j")) == 2
    (tmp_path / "j").write_bytes(b"".join(lines).replace(b"-1.5", b"-1.4", 1))
    with pytest.raises(ChecksumError, match="was changed after it was written") as raised:
        read_samples(tmp_path / "j")
    assert raised.value.line == 2


@pytest.mark.parametrize(
    ("line", "error", "says"),
    [
        ({"prompt": "p"}, ColumnError, "side"),
        (GOOD | {"odd": 1}, ColumnError, "odd"),
        (GOOD | {"before": 2.0}, FieldError, "above 0"),
        (GOOD | {"before": [-1, -1]}, PairingError, "2 tokens"),
        ([1, 2], UnreadableError, "not a JSON object"),
    ],
)
def test_a_fault_names_its_line(
    tmp_path: Path, line: object, error: type[ForgetmapError], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        read_samples(written(tmp_path / "s.jsonl", GOOD, line))
    assert "line 2" in str(caught.value)


def test_files_that_hold_no_samples(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        read_samples(tmp_path / "none.jsonl")
    with pytest.raises(EmptyInputError):
        read_samples(written(tmp_path / "empty.jsonl"))
    twice = written(tmp_path / "twice.jsonl", GOOD | {"number": 3}, GOOD | {"number": 3})
    with pytest.raises(FieldError, match="occurs twice"):
        read_samples(twice)
    (tmp_path / "bad.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(UnreadableError, match="Invalid JSON"):
        read_samples(tmp_path / "bad.jsonl")
