"""Notices for unreliable numbers."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.overlap.estimate import estimate_table
from forgetmap.overlap.samples import Floats, SampleTable, table_of_arrays

WORDS = 40


def distributions(seed: int, sharp: float, *, opposed: bool = False) -> tuple[Floats, Floats]:
    """Two distributions over 40 completions; opposed ones like least what the other likes most."""
    random = np.random.default_rng(seed)
    logits = random.normal(0, sharp, (2, WORDS))
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    both: Floats = chances / chances.sum(axis=1, keepdims=True)
    after = np.sort(both[0])[::-1][both[0].argsort().argsort()] if opposed else both[1]
    return both[0], after


def table(
    *,
    sharp: float,
    samples: int = 16,
    prompts: int = 12,
    heat: float = 1.0,
    seed: int = 0,
    opposed: bool = False,
) -> SampleTable:
    """Samples; with another heat than 1 the model after is sampled hotter than it is weighed."""
    random = np.random.default_rng(seed)
    columns: list[list[Floats]] = [[], [], [], []]
    for prompt in range(prompts):
        before, after = distributions(seed * 1000 + prompt, sharp, opposed=opposed)
        hot = after ** (1 / heat) / (after ** (1 / heat)).sum()
        for wrote, chances in ((1.0, before), (0.0, hot)):
            chosen = random.choice(WORDS, samples, p=chances)
            here = (np.full(samples, float(prompt)), np.full(samples, wrote))
            for column, values in zip(columns, (*here, before[chosen], after[chosen]), strict=True):
                column.append(values)
    place, side, p, q = map(np.concatenate, columns)
    return table_of_arrays(place, side > 0, np.log(p), np.log(q))


def kinds(given: SampleTable) -> set[str]:
    return {notice.kind for notice in estimate_table(given).notices}


def test_ordinary_samples_raise_no_doubt() -> None:
    assert kinds(table(sharp=0.7)) == {"sampled ratios"}


def test_models_that_hardly_meet_are_said_to() -> None:
    found = kinds(table(sharp=6.0, opposed=True))
    assert {"heavy weights", "few terms"} <= found


def test_samples_that_do_not_follow_their_log_probabilities_are_noticed() -> None:
    assert "out of balance" in kinds(table(sharp=2.0, heat=3.0, samples=64))


@pytest.mark.parametrize("seed", range(8))
def test_samples_that_do_are_not_accused(seed: int) -> None:
    assert "out of balance" not in kinds(table(sharp=2.0, samples=64, seed=seed))


def test_one_prompt_that_makes_up_the_spread_is_noticed() -> None:
    given = table(sharp=0.5, prompts=20)
    ratio = given.ratio.copy()
    ratio[(given.prompt_index == 3) & given.wrote_before] += 60
    before = np.full(ratio.size, -99.0)
    lopsided = table_of_arrays(given.prompt_index, given.wrote_before, before, before - ratio)
    assert "leaning" in kinds(lopsided)
    assert "leaning" not in kinds(given)


def test_few_prompts_say_nothing_about_others() -> None:
    assert "few prompts" in kinds(table(sharp=0.7, prompts=3))
