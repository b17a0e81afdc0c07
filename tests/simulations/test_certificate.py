"""The certificate of kept behaviour is valid even if a few prompts changed a lot.

Prompts are drawn from a large population of pairs of distributions over eight completions, whose
total variation distances are known exactly. For a share of them the model after never writes what
the model before wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from forgetmap.overlap import OverlapSettings, estimate_table, table_of_arrays
from forgetmap.overlap.certificate import certify
from forgetmap.overlap.samples import SampleTable

COMPLETIONS = 8
POPULATION = 4000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Population:
    """Probabilities of all completions of every prompt, under either model."""

    before: Floats
    after: Floats

    @property
    def distance(self) -> float:
        return float(np.abs(self.before - self.after).sum(axis=1).mean() / 2)


def population(disasters: float, step: float) -> Population:
    random = np.random.default_rng(1)
    logits = random.normal(size=(POPULATION, COMPLETIONS))
    moved = logits + step * random.normal(size=logits.shape)
    bad = int(disasters * POPULATION)
    logits[:bad, :4] -= 12
    moved[:bad, 4:] -= 12
    before, after = np.exp(logits), np.exp(moved)
    return Population(
        before / before.sum(axis=1, keepdims=True), after / after.sum(axis=1, keepdims=True)
    )


def draw(
    world: Population, prompts: int, samples: int, random: np.random.Generator, *, sides: int = 2
) -> SampleTable:
    """Completions of both models, or of the model before alone, of some prompts."""
    chosen = random.integers(0, POPULATION, prompts)
    parts = []
    for wrote_before, chances in ((True, world.before), (False, world.after))[:sides]:
        ends = chances[chosen].cumsum(axis=1)
        picks = (random.random((prompts, samples, 1)) > ends[:, None, :-1]).sum(axis=2)
        rows = np.repeat(np.arange(prompts), samples)
        pick = picks.ravel()
        parts.append(
            (
                rows,
                np.full(rows.size, wrote_before),
                np.log(world.before[chosen[rows], pick]),
                np.log(world.after[chosen[rows], pick]),
            )
        )
    return table_of_arrays(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def false_rate(world: Population, prompts: int, draws: int, *, sides: int = 2) -> float:
    """How often more is certified than is kept of the behaviour that lost most."""
    random = np.random.default_rng(2)
    false = 0
    for _ in range(draws):
        table = draw(world, prompts, 4, random, sides=sides)
        limit = certify(table, (0.9,), 0.95, "prompts like these").total_variation_limit
        false += limit < world.distance
    return false / draws


@pytest.mark.parametrize("disasters", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("prompts", [32, 100])
def test_rare_disasters_do_not_make_it_false(disasters: float, prompts: int) -> None:
    assert false_rate(population(disasters, 0.05), prompts, 150) <= 0.05


def test_of_one_model_alone() -> None:
    assert false_rate(population(0.02, 0.05), 100, 150, sides=1) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("disasters", [0.0, 0.01, 0.02, 0.05, 0.2])
@pytest.mark.parametrize("prompts", [8, 32, 100, 300])
@pytest.mark.parametrize("step", [0.02, 0.5])
@pytest.mark.parametrize("sides", [1, 2])
def test_it_holds_in_many_worlds(disasters: float, prompts: int, step: float, sides: int) -> None:
    assert false_rate(population(disasters, step), prompts, 1000, sides=sides) <= 0.05


def test_of_a_few_prompts_it_holds_for_those_prompts() -> None:
    world = population(0.0, 0.5)
    random = np.random.default_rng(3)
    pair = Population(world.before[:3], world.after[:3])
    false = 0
    for _ in range(200):
        tables = []
        for chances in (pair.before, pair.after):
            ends = chances.cumsum(axis=1)
            tables.append((random.random((3, 16, 1)) > ends[:, None, :-1]).sum(axis=2))
        rows = np.tile(np.repeat(np.arange(3), 16), 2)
        picks = np.concatenate([table.ravel() for table in tables])
        table = table_of_arrays(
            rows, np.arange(96) < 48, np.log(pair.before[rows, picks]),
            np.log(pair.after[rows, picks]),
        )  # fmt: skip
        limit = certify(table, (0.9,), 0.95, "these prompts").total_variation_limit
        false += limit < pair.distance
    assert false / 200 <= 0.05


def test_the_whole_estimate_has_the_same_certificate() -> None:
    world, random = population(0.02, 0.05), np.random.default_rng(4)
    for seed in range(4):
        table = draw(world, 100, 4, random)
        result = estimate_table(table, settings=OverlapSettings(seed=seed))
        certificate = result.groups[0].certificate
        assert certificate == certify(table, (0.5, 0.9), 0.95, "prompts like these")
