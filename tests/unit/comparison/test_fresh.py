"""Flips that are asked again: what counts as a fresh answer, and what it proves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import forgetmap as fm
from command_line import write
from forgetmap.comparison import ComparisonResult
from forgetmap.errors import PairingError, UsageError
from forgetmap.records import read_run, write_run
from forgetmap.stats import ItemSample, ScoreBound

ITEMS = 1_200
KNOWN, LOST = 600, 90
Rates = np.ndarray[Any, np.dtype[np.float64]]
Row = dict[str, Any]


def base() -> Rates:
    return np.where(np.arange(ITEMS) < KNOWN, 0.9, 0.2)


def exchanged() -> Rates:
    """As many items lost as gained."""
    rates = base()
    rates[:LOST], rates[KNOWN : KNOWN + LOST] = 0.2, 0.9
    return rates


def answers(rates: Rates, seed: int, repeats: int = 1) -> list[Row]:
    """Sampled answers with texts of their own."""
    random = np.random.default_rng(seed)
    draws = random.random((ITEMS, repeats))
    return [
        {"task": f"t{item % 3}", "item": f"{item}", "repeat": repeat,
         "score": float(draws[item, repeat] < rates[item]), "response": f"{draws[item, repeat]}"}
        for item in range(ITEMS) for repeat in range(repeats)
    ]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """Both models, and both again."""
    rates = (base(), exchanged())
    return tuple(
        str(write(tmp_path / f"{name}.jsonl", answers(rates[side], seed)))
        for seed, (name, side) in enumerate([("b", 0), ("a", 1), ("b2", 0), ("a2", 1)])
    )


def compared(first: Sequence[Any], fresh: Sequence[Any], **options: Any) -> ComparisonResult:
    (before, after), (again, later) = first, fresh
    comparison: fm.Comparison = fm.compare(before, after, confirm=(again, later), **options)
    return comparison.result


def rows_of(path: str) -> list[Row]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_fresh_answers_prove_an_exchange(files: tuple[str, ...]) -> None:
    """The limit is that of the formula, over all items, at a quarter of the error."""
    before, after, *fresh = files
    alone = fm.compare(before, after).result.total
    assert alone.verdict in ("no_net_loss", "cannot_tell")
    total = compared((before, after), fresh).total
    first, again = [rows_of(path) for path in files[:2]], [rows_of(path) for path in files[2:]]
    flipped = [place for place in range(ITEMS)
               if first[0][place]["score"] > first[1][place]["score"]]  # fmt: skip
    change = np.zeros(ITEMS)
    change[flipped] = [again[0][at]["score"] - again[1][at]["score"] for at in flipped]
    low = ScoreBound(ItemSample(np.ones(ITEMS)), change).lower(0.025 / 4)
    assert total.loss.low == pytest.approx(low)
    assert (total.verdict, total.loss.carried_by) == ("lost", "confirmed")
    assert low > 0.01
    assert total.confirmed is not None
    assert (total.confirmed.flips, total.confirmed.asked) == (len(flipped), len(flipped))
    assert total.confirmed.held == pytest.approx(change.sum())
    assert total.gain.carried_by == "confirmed"


def test_planned_answers_share_the_error(files: tuple[str, ...]) -> None:
    """Two limits were planned, so each has half of the error; asked later it is a quarter."""
    before, after, *fresh = files
    later, planned = (
        compared((before, after), fresh, planned=planned).total.loss.low
        for planned in (False, True)
    )
    assert planned > later  # type: ignore[operator]  # both are numbers


def test_one_model_against_itself_is_not_lost(tmp_path: Path) -> None:
    """12 times, with an error of .03 at most."""
    lost = 0
    for seed in range(0, 48, 4):
        paths = [
            write(tmp_path / f"{seed + place}.jsonl", answers(base(), seed + place))
            for place in range(4)
        ]
        total = compared(paths[:2], paths[2:]).total
        assert total.forgotten > 100
        lost += total.verdict in ("lost", "small_loss")
    assert lost <= 1


def test_a_copy_does_not_count(files: tuple[str, ...], tmp_path: Path) -> None:
    """Of either model, whatever its other items say, and as one repeat of several."""
    before, after, *fresh = files
    first, flips = rows_of(before), {row["item"] for row in _flips(before, after)}
    partly = [row | ({} if row["item"] in flips else {"response": "x"}) for row in first]
    several = answers(base(), 9, repeats=3)
    repeated = [row | ({"response": first[int(row["item"])]["response"]} if row["repeat"] == 1
                       else {}) for row in several]  # fmt: skip
    for rows in (first, partly, repeated):
        copy = write(tmp_path / "copy.jsonl", rows)
        result = compared((before, after), (copy, fresh[1]))
        assert result.total.loss.carried_by != "confirmed"
        assert result.total.confirmed is not None
        assert result.total.confirmed.asked == 0
        assert [notice.code for notice in result.pairing.warnings[:1]] == ["copies"]
    own = write(tmp_path / "own.jsonl", several)
    total = compared((before, after), (own, fresh[1])).total
    assert total.loss.carried_by == "confirmed"


def _flips(before: str, after: str) -> list[Row]:
    pairs = zip(rows_of(before), rows_of(after), strict=True)
    return [first for first, second in pairs if first["score"] != second["score"]]


def test_weighed_options_are_copies_if_their_log_probabilities_are(tmp_path: Path) -> None:
    def weighed(rates: Rates, seed: int, shift: float = 0.0) -> Path:
        rows = [
            {"task": "t", "item": row["item"], "score": row["score"], "k": 4,
             "logprob_answer": -1.0 - shift, "logprob_gold": -2.0}
            for row in answers(rates, seed)
        ]  # fmt: skip
        return write(tmp_path / f"{seed}-{shift}.jsonl", rows)

    pair = weighed(base(), 0), weighed(exchanged(), 1)
    same = weighed(base(), 2), weighed(exchanged(), 3)
    other = weighed(base(), 2, 1e-6), weighed(exchanged(), 3, 1e-6)
    assert compared(pair, same).total.loss.carried_by != "confirmed"
    assert compared(pair, other).total.loss.carried_by == "confirmed"


def test_repeats_are_chosen_by_their_first_answer(tmp_path: Path) -> None:
    """Later answers neither choose an item nor count as fresh."""
    paths = [
        write(tmp_path / f"{seed}.jsonl", answers(rates, seed, repeats=3))
        for seed, rates in enumerate((base(), exchanged()))
    ]
    fresh = [
        write(tmp_path / f"{seed}-again.jsonl", answers(rates, seed + 5))
        for seed, rates in enumerate((base(), exchanged()))
    ]
    confirmed = compared(paths, fresh).total.confirmed
    assert confirmed is not None
    first = [[row for row in rows_of(str(path)) if row["repeat"] == 0] for path in paths]
    flips = sum(one["score"] > two["score"] for one, two in zip(*first, strict=True))
    assert confirmed.flips == flips


def test_a_part_is_weighed_as_the_whole(files: tuple[str, ...], tmp_path: Path) -> None:
    """Half of the flips asked, twice the weight; an answer that failed counts against the loss.

    It was asked: those that fail are not a random part of the flips.
    """
    before, after, *fresh = files
    flips = [row["item"] for row in _flips(before, after)]
    kept = set(flips[::2])
    part = [
        write(tmp_path / f"part{side}.jsonl",
              [row | ({"score": None} if row["item"] == flips[0] else {})
               for row in rows_of(path) if row["item"] in kept])
        for side, path in enumerate(fresh)
    ]  # fmt: skip
    total = compared((before, after), part).total
    assert total.confirmed is not None
    lost = {row["item"] for row in _flips(before, after) if row["score"] == 1}
    assert flips[0] in lost
    asked = len(lost & kept)
    assert (total.confirmed.flips, total.confirmed.asked) == (len(lost), asked)
    again = [{row["item"]: row["score"] for row in rows_of(path)} for path in fresh]
    change = np.zeros(ITEMS)
    for item in lost & kept - {flips[0]}:
        change[int(item)] = len(lost) / asked * (again[0][item] - again[1][item])
    change[int(flips[0])] = -len(lost) / asked  # wrong before, right after
    bound = ScoreBound(ItemSample(np.ones(ITEMS)), change, len(lost) / asked)
    assert total.loss.carried_by == "confirmed"
    assert total.loss.low == pytest.approx(bound.lower(0.025 / 4))


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("way", ["absent", "unscored"])
def test_missing_fresh_answers_do_not_make_a_loss(way: str, repeats: int, tmp_path: Path) -> None:
    """Nothing changed; half of the wrong fresh answers of BEFORE failed."""
    lost = 0
    for seed in range(0, 24, 6):
        runs = [answers(base(), seed + place) for place in range(2)]
        again, later = (answers(base(), seed + place, repeats) for place in (2, 3))
        random = np.random.default_rng(seed)
        failed = [not row["score"] and random.random() < 0.5 for row in again]
        if way == "absent":
            again = [row for row, gone in zip(again, failed, strict=True) if not gone]
        else:
            again = [row | ({"score": None} if gone else {})
                     for row, gone in zip(again, failed, strict=True)]  # fmt: skip
        paths = [
            write(tmp_path / f"{seed + place}.jsonl", rows)
            for place, rows in enumerate((*runs, again, later))
        ]
        result = compared(paths[:2], paths[2:])
        lost += result.total.verdict in ("lost", "small_loss")
        (said,) = [one for one in result.pairing.warnings if one.code == "fresh_missing"]
        assert " answers of fresh before are missing or failed" in said.message
    assert lost == 0


def test_a_rerun_without_questions_is_joined_by_its_ids(tmp_path: Path) -> None:
    """As in a table that somebody wrote by hand."""
    questions = [{"question": f"What is {item}?", "gold": f"{item}"} for item in range(ITEMS)]
    first = [
        write(tmp_path / f"{seed}.jsonl",
              [row | own for row, own in zip(answers(rates, seed), questions, strict=True)])
        for seed, rates in enumerate((base(), exchanged()))
    ]  # fmt: skip
    fresh = [
        write(tmp_path / f"fresh{seed}.jsonl", answers(rates, seed + 2))
        for seed, rates in enumerate((base(), exchanged()))
    ]
    total = compared(first, fresh).total
    assert total.confirmed is not None
    assert total.confirmed.asked == total.confirmed.flips > 100
    assert total.loss.carried_by == "confirmed"


def test_reruns_that_cannot_confirm_are_refused(files: tuple[str, ...], tmp_path: Path) -> None:
    before, after, *fresh = files
    other = write(tmp_path / "other.jsonl", [{"task": "u", "item": "x", "score": 1}])
    with pytest.raises(PairingError, match="none of the items"):
        fm.compare(before, after, confirm=(other, fresh[1]))
    with pytest.raises(UsageError, match="one of the compared runs"):
        fm.compare(before, after, confirm=(before, fresh[1]))
    with pytest.raises(UsageError, match="two models"):
        fm.compare(before, after, fresh[0], confirm=(fresh[0], fresh[1]))


def test_exchanged_and_cached_reruns_are_refused(files: tuple[str, ...], tmp_path: Path) -> None:
    folders = []
    for place, path in enumerate(files):
        run = fm.open_run(path)
        model = run.info.model.model_copy(update={"name": ("base", "tuned")[place % 2]})
        info = run.info.model_copy(update={"model": model, "cache": "answers.db"})
        folder = tmp_path / f"run{place}"
        write_run(replace(run, info=info), folder)
        folders.append(folder)
    before, after, again, later = folders
    with pytest.raises(UsageError, match="exchanged"):
        fm.compare(before, after, confirm=(later, again))
    with pytest.raises(UsageError, match="not fresh") as caught:
        fm.compare(before, after, confirm=(again, later))
    assert "without a cache" in caught.value.hint
    assert read_run(before).info.cache == "answers.db"


def test_a_rerun_in_another_way_is_said_to_be_one(files: tuple[str, ...], tmp_path: Path) -> None:
    folders = []
    for place, path in enumerate(files):
        run = fm.open_run(path)
        info = run.info.model_copy(update={"decoding": {"temperature": 0.7 if place else 0.2}})
        folder = tmp_path / f"run{place}"
        write_run(replace(run, info=info), folder)
        folders.append(folder)
    result = compared(folders[:2], folders[2:])
    said = [notice for notice in result.pairing.warnings if notice.code == "confirmed_differently"]
    assert len(said) == 1
    assert "decoding" in said[0].message


def test_reruns_with_every_first_result_are_copies_without_outputs() -> None:
    before, after = (
        [{"task": "t", "item": f"q{n}", "score": score} for n, score in enumerate(scores)]
        for scores in ([1.0] * 30 + [0.0] * 30, [0.0] * 15 + [1.0] * 30 + [0.0] * 15)
    )
    frames = [pa.Table.from_pylist(rows) for rows in (before, after)]
    copied = compared(frames, frames)
    assert copied.total.verdict == "cannot_tell"
    assert [notice.code for notice in copied.pairing.warnings].count("copies") == 2
    # Only the flips, all of which held: that is what was to be shown.
    flips = [pa.Table.from_pylist(rows[:15]) for rows in (before, after)]
    held = compared(frames, flips)
    assert held.total.loss.carried_by == "confirmed"
