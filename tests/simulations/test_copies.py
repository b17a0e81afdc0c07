"""Repeats of which some are copies: they must not turn the noise of a model into a loss."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import forgetmap as fm

ITEMS, SETS = 300, 100
REPEATS = 3


def tasks(
    random: np.random.Generator, chance: NDArray[np.float64], copied: int, *, text: bool
) -> pa.Table:
    """Answer every task `REPEATS` times; all repeats up to number `copied` equal the first.

    Outputs are texts, which differ whenever they are written anew, or else log-probabilities.
    """
    shape = (SETS, REPEATS, ITEMS)
    draws = random.random(shape)
    written = random.integers(0, 2**40, shape)
    for values in (draws, written):
        values[:, : copied + 1] = values[:, :1]
    right = draws < chance[:, None, :]
    output = {"logprob_answer": -np.log1p(written.ravel())}
    if text:
        output = {"response": [f"It follows that {number}." for number in written.ravel()]}  # type: ignore[dict-item]
    names = np.char.add("t", np.arange(SETS).astype(str))
    return pa.table({
        "task": np.repeat(names, REPEATS * ITEMS).tolist(),
        "item": np.tile(np.arange(ITEMS), SETS * REPEATS).astype(str).tolist(),
        "repeat": np.tile(np.repeat(np.arange(REPEATS), ITEMS), SETS),
        "score": right.ravel().astype(float),
        **output,
    })  # fmt: skip


@pytest.mark.parametrize("text", [True, False], ids=["texts", "log-probabilities"])
@pytest.mark.parametrize("copied", [1, 2])
def test_copies_among_repeats_prove_no_loss(copied: int, *, text: bool) -> None:
    """The same model on both sides: each data set is a task of one comparison."""
    random = np.random.default_rng(copied)
    # Every second item is answered by chance: then copies are wrong most often.
    half = random.random((SETS, ITEMS)) < 0.5
    chance = np.where(half, 0.5, np.where(random.random((SETS, ITEMS)) < 0.6, 0.98, 0.02))
    sides = [tasks(random, chance, copied, text=text) for _ in range(2)]
    result = fm.compare(sides[0], sides[1]).result
    assert len(result.tasks) == SETS
    assert sum(task.loss.p <= 0.025 for task in result.tasks if task.loss.p is not None) <= 5
    assert sum((task.loss.low or 0.0) > 0 for task in result.tasks) <= 5
    assert "copies" in [notice.code for notice in result.pairing.warnings]
    assert result.total.n == SETS * ITEMS * (REPEATS - copied)
