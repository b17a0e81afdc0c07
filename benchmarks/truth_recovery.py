"""Do the estimators recover a known truth, do the intervals cover it, and what breaks them?

    .venv/bin/python benchmarks/truth_recovery.py                 10,000 data sets a setting
    .venv/bin/python benchmarks/truth_recovery.py --data-sets 1000

Writes docs/truth.md (its last sections are written by interval_coverage.py and verdicts.py and are
kept), docs/images/coverage.png and docs/images/broken.png.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.comparison.cells import Cells
from forgetmap.comparison.choice_counts import OptionCounts
from forgetmap.comparison.choices import MARGIN
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.group_results import group_result
from forgetmap.comparison.luck import luck_of, trust_tasks
from forgetmap.comparison.result import Headline
from forgetmap.comparison.side_counts import SideCounts
from forgetmap.comparison.verdict import Policy
from forgetmap.simulation.answers import Habits
from forgetmap.stats.intervals import agree_with_test, mean_interval, score_interval
from forgetmap.stats.mean_scores import (
    ScoreSums,
    latent_sums,
    matched_sums,
    raw_sums,
    upper_sums,
)
from forgetmap.stats.multiplicity import false_discovery
from forgetmap.stats.power import SIZE, detectable, repeats_detectable
from forgetmap.stats.repeats import (
    AnswerCounts,
    excess_scores,
    net_scores,
    permutation_moments,
)
from forgetmap.stats.results import Interval
from forgetmap.stats.tests import change_p, luck_p, mixed_luck_p

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from simulated_cells import (  # noqa: E402  # lives with the tests
    BatchCells,
    Shares,
    Traits,
    cell_probabilities,
    draw_cells,
    draw_choices,
)

ITEMS = (50, 100, 300, 1000)
LOST = (0.0, 0.01, 0.05, 0.2)
KNOWN = (0.2, 0.5, 0.9)
KINDS: dict[str, tuple[float, ...]] = {
    "2": (2,), "3": (3,), "4": (4,), "10": (10,), "mixed": (2, 4, 10, np.inf), "open": (np.inf,),
}  # fmt: skip
GAINED = 0.02
SCALE = 0.93, 0.97
ENOUGH_FLIPS = 15


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell of the grid with its results."""

    kind: str
    items: int
    lost: float
    known: float
    estimator: str
    coverage: float
    bias: float
    flips: float


def draw_parts(
    rng: np.random.Generator, data_sets: int, items: int, kind: str, shares: Shares
) -> list[tuple[float, int, BatchCells]]:
    """Draw cells for each k of a mix, with equal shares of items."""
    ks = KINDS[kind]
    sizes = [len(part) for part in np.array_split(np.arange(items), len(ks))]
    return [
        (k, size, draw_cells(rng, data_sets, size, k, shares))
        for k, size in zip(ks, sizes, strict=True)
    ]


def total(parts: list[ScoreSums]) -> ScoreSums:
    """Return the sum of several groups."""
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def in_line_with_test(interval: Interval, parts: list[tuple[float, int, BatchCells]]) -> Interval:
    """Return the latent interval as shown: extended to 0 if the test does not reject."""
    luck = [(k, c) for k, _, c in parts if not np.isinf(k)]
    if not luck:
        return interval
    if len(luck) == 1:
        k, c = luck[0]
        p = luck_p(c.n10_D, c.n10_D + c.n00_D, 1 / k)
    else:
        p = np.array(
            [
                mixed_luck_p(
                    [int(c.n10_D[d]) for _, c in luck],
                    [int(c.n10_D[d] + c.n00_D[d]) for _, c in luck],
                    [1 / k for k, _ in luck],
                )
                for d in range(len(luck[0][1].n10_D))
            ]
        )
    return agree_with_test(interval, p)


def grid(rng: np.random.Generator, data_sets: int) -> list[Setting]:
    """Return every setting in which the model holds: guesses are uniform and independent."""
    found = []
    for kind, items, lost, known in product(KINDS, ITEMS, LOST, KNOWN):
        shares = Shares(known, lost, GAINED)
        parts = draw_parts(rng, data_sets, items, kind, shares)
        flips = sum(size * cell_probabilities(k, shares)[1] for k, size, _ in parts)
        raw = total([raw_sums(size, c.n10_D) for _, size, c in parts])
        latent = score_interval(total([latent_sums(s, c.n10_D, c.n00_D, k) for k, s, c in parts]))
        intervals = {
            "latent": (latent, lost),
            "latent as shown": (in_line_with_test(latent, parts), lost),
            "raw": (score_interval(raw), flips / items),
        }
        if kind in ("3", "4", "10"):
            k, size, c = parts[0]
            matched = score_interval(matched_sums(size, c.n10_D, c.different_D, k))
            p = luck_p(c.n10_D, c.n10_D + c.different_D, 1 / (k - 1))
            intervals["matched"] = (matched, lost)
            intervals["matched as shown"] = (agree_with_test(matched, p), lost)
        for name, (interval, truth) in intervals.items():
            error = interval.value.std() / np.sqrt(data_sets)
            bias = (interval.value.mean() - truth) / error if error else 0.0
            covered = float(interval.contains(truth).mean())
            found.append(Setting(kind, items, lost, known, name, covered, float(bias), flips))
    return found


SCENARIOS: dict[str, dict[str, Any]] = {
    "uniform, redrawn": {},
    "same letter habit": {"habits": Habits(letter_bias=(0.55, 0.2, 0.15, 0.1))},
    "habit moves A to D": {
        "habits": Habits(letter_bias=(0.55, 0.2, 0.15, 0.1), moved_bias=(0.1, 0.15, 0.2, 0.55))
    },
    "always A, then always B": {
        "habits": Habits(letter_bias=(1, 0, 0, 0), moved_bias=(0, 1, 0, 0))
    },
    "half of guesses repeated": {"habits": Habits(persistence=0.5)},
    "all repeated (greedy)": {"habits": Habits(persistence=1.0)},
    "attractive wrong option": {"traits": Traits(attractive=0.5)},
    "two options eliminated": {"traits": Traits(eliminated=2)},
    "partial mastery (80 %)": {"habits": Habits(mastery=0.8)},
    "A right 4 in 10, habit for A": {
        "habits": Habits(letter_bias=(0.55, 0.15, 0.15, 0.15)),
        "traits": Traits(gold_bias=(0.4, 0.2, 0.2, 0.2)),
    },
}
LETTERS = {"A right 4 in 10, habit for A": (0.4, 0.2, 0.2, 0.2)}
SITUATIONS = ("options recorded", "options not recorded", "sampled, no repeats")


def broken(rng: np.random.Generator, data_sets: int) -> list[tuple[str, float, dict[str, float]]]:
    """Return the mean of each estimator if assumptions fail: 4 options, 60 % known, 1,000 items."""
    rows = []
    for lost, (name, wrong) in product((0.0, 0.05), SCENARIOS.items()):
        options = {"habits": Habits(), **wrong}
        cells = draw_choices(rng, data_sets, 1000, 4, Shares(0.6, lost, GAINED), **options)
        means = {
            "raw": raw_sums(1000, cells.n10_D).mean.mean(),
            "latent": latent_sums(1000, cells.n10_D, cells.n00_D, 4).mean.mean(),
            "matched": matched_sums(1000, cells.n10_D, cells.different_D, 4).mean.mean(),
            "upper": upper_sums(1000, cells.n10_D, 4).mean.mean(),
        }
        rows.append((name, lost, {key: float(value) for key, value in means.items()}))
    return rows


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims of the texts over many data sets.

    Attributes:
        lost: share that state a loss.
        too_much: share that state a minimum loss above the truth.
        too_little: share that state no loss, or a maximum loss below the truth.
        open: share without a conclusion.
    """

    lost: float
    too_much: float
    too_little: float
    open: float


def claims(rng: np.random.Generator, data_sets: int) -> list[tuple[str, float, str, Claims]]:
    """Return what is stated if assumptions fail: headline and text, as in `compare`."""
    rows = []
    for lost, (name, wrong) in product((0.0, 0.05), SCENARIOS.items()):
        options = {"habits": Habits(), **wrong}
        cells = draw_choices(rng, data_sets, 1000, 4, Shares(0.6, lost, GAINED), **options)
        for situation in SITUATIONS:
            found = [judged(cells, place, name, situation) for place in range(data_sets)]
            rows.append((name, lost, situation, _claims(found, lost)))
    return rows


def judged(cells: BatchCells, place: int, name: str, situation: str) -> Headline:
    """Return the headline of one data set, with the code of `compare`."""
    n11, n10, n01, n00, different = (
        int(each[place])
        for each in (cells.n11_D, cells.n10_D, cells.n01_D, cells.n00_D, cells.different_D)
    )
    n = n11 + n10 + n01 + n00
    recorded = situation != "options not recorded"
    counts = OptionCounts(
        n11, n10, n01, n00, different=different, unknown=0 if recorded else n10 + n01 + n00
    )
    letters = LETTERS.get(name, (0.25,) * 4)
    side = SideCounts(gold={(4.0, at): round(n * share) for at, share in enumerate(letters)})
    trust = trust_tasks({"simulated": side}, {})["simulated"]
    found = Evidence(
        Cells(paired=n, items=n, n11=n11, n10=n10, n01=n01, n00=n00, options={4.0: counts}),
        luck={luck_of(4.0, trust, knows_choices=recorded): {4.0: counts}},
        lopsided=trust.lopsided,
        before=side,
    )
    policy = Policy(sampled=situation == "sampled, no repeats")
    return group_result("simulated", found, policy).headline


def _claims(found: list[Headline], truth: float) -> Claims:
    lost = [each for each in found if each.verdict in ("lost", "small_loss")]
    none = [each for each in found if each.verdict == "no_material_loss"]
    low = [each.forgetting.low or 0.0 for each in lost]
    high = [each.forgetting.high or 0.0 for each in lost]
    missed = len(none) if truth > MARGIN else 0
    n = len(found)
    return Claims(
        lost=len(lost) / n,
        too_much=sum(value > truth for value in low) / n,
        too_little=(sum(value < truth for value in high) + missed) / n,
        open=sum(each.verdict == "cannot_tell" for each in found) / n,
    )


def net_of_the_same_model(rng: np.random.Generator, data_sets: int) -> dict[str, float]:
    """Return how often `net` contains 0 if the same model answers twice; 4 options."""
    covered = {}
    for name, mastery in (("60 % known, rest guessed", 1.0), ("60 % known at 80 %", 0.8)):
        for items, repeats in product((50, 300), (2, 4)):
            inside = 0
            for _ in range(data_sets // 100):
                knows = rng.random((100, items, 1)) < 0.6
                right = np.where(knows, mastery + (1 - mastery) / 4, 0.25)
                p = np.concatenate([right, *[(1 - right) / 3] * 3], axis=2)
                before, after = (rng.multinomial(repeats, p) for _ in range(2))
                scores = net_scores(
                    np.full(before.shape[:2], 4.0), _counts(before), _counts(after),
                    same=(before[..., 1:] * after[..., 1:]).sum(2),
                )  # fmt: skip
                found = mean_interval(items, scores.sum(1), (scores**2).sum(1), pseudo=4 / 3)
                inside += int(found.contains(0.0).sum())
            covered[f"{name}; {items} items, {repeats} repeats"] = inside / (data_sets // 100 * 100)
    return covered


def _counts(answers: Any) -> AnswerCounts:
    none = np.zeros(answers.shape[:2])
    wrong = answers[..., 1:]
    return AnswerCounts(answers[..., 0], wrong.sum(2), none, none, (wrong**2).sum(2))


def repeated_tests(rng: np.random.Generator, data_sets: int) -> list[tuple[str, float, float]]:
    """Return the size of the permutation test, and the power of the verdict at a planned loss."""
    rows = []
    for repeats, items, churn in product((2, 5), (100, 300, 1000), (0.02, 0.06, 0.15)):
        loss = float(repeats_detectable(items, repeats, churn=churn))
        rates = []
        for lost in (0.0, loss):
            flipping = rng.random((data_sets, items)) < churn / 0.25
            before = np.where(flipping, 0.5, 1.0)
            gone = ~flipping & (rng.random(before.shape) < lost / (1 - churn / 0.25))
            after = np.where(gone, 0.0, before)
            m_b, m_a = rng.binomial(repeats, before), rng.binomial(repeats, after)
            scores = excess_scores(m_b, repeats, m_a, repeats).lost
            variance, third = permutation_moments(np.arange(2 * repeats + 1), repeats, repeats)
            p = change_p(scores.sum(1), variance[m_b + m_a].sum(1), third[m_b + m_a].sum(1))
            limits = mean_interval(items, scores.sum(1), (scores**2).sum(1))
            rejected = (p <= SIZE) & (limits.low > 0) if lost else p <= 0.05
            rates.append(float(rejected.mean()))
        rows.append(
            (f"{repeats} repeats, {items} items, noise floor {churn:g}", rates[0], rates[1])
        )
    return rows


def same_model_sampled(rng: np.random.Generator, data_sets: int) -> dict[str, float]:
    """Return how often the excess interval contains 0 if the same model answers twice."""
    covered = {}
    mixes = {
        "60 % always right, 40 % guessed at 1 in 4": lambda n: np.where(
            rng.random(n) < 0.6, 1, 0.25
        ),
        "spread, beta(.4, .2)": lambda n: rng.beta(0.4, 0.2, size=n),
    }
    for (name, draw), items, repeats in product(mixes.items(), (50, 300), (2, 3, 5)):
        p = draw((data_sets, items))
        scores = excess_scores(rng.binomial(repeats, p), repeats, rng.binomial(repeats, p), repeats)
        found = mean_interval(items, scores.lost.sum(1), (scores.lost**2).sum(1))
        covered[f"{name}; {items} items, {repeats} repeats"] = float(found.contains(0.0).mean())
    return covered


def sizes_and_power(rng: np.random.Generator, data_sets: int) -> list[tuple[str, float, float]]:
    """Return the size of the test without a loss, and its power at the loss of `detectable`."""
    rows = []
    for k, items, known in product((2, 3, 4, 10), (50, 300, 1000), (0.4, 0.7)):
        cells = draw_cells(rng, data_sets, items, k, Shares(known, 0.0))
        size = (luck_p(cells.n10_D, cells.n10_D + cells.n00_D, 1 / k) <= 0.05).mean()
        c = k / (k - 1)
        loss = float(detectable(items, c=c, h=c**2 / k, share_e=(1 - known) / c**2))
        power = np.nan
        if loss <= known:
            cells = draw_cells(rng, data_sets, items, k, Shares(known, loss))
            power = (luck_p(cells.n10_D, cells.n10_D + cells.n00_D, 1 / k) <= SIZE).mean()
        rows.append((f"k = {k}, {items} items, {known:.0%} known", float(size), float(power)))
    return rows


def discoveries(rng: np.random.Generator, comparisons: int) -> dict[str, float]:
    """Return the false discovery rate over 100 tasks, some of which lost 10 % of their items."""
    rates = {}
    ks = (2, 4, 4, 5, 10)
    for losing in (0, 10, 50):
        p = np.empty((comparisons, 100))
        for task in range(100):
            k = ks[task % len(ks)]
            shares = Shares(0.6, 0.1 if task < losing else 0.0)
            cells = draw_cells(rng, comparisons, 150, k, shares)
            p[:, task] = luck_p(cells.n10_D, cells.n10_D + cells.n00_D, 1 / k)
        found = np.array([false_discovery(row) <= 0.05 for row in p])
        false = found[:, losing:].sum(1) / np.maximum(found.sum(1), 1)
        rates[f"{losing} of 100 tasks lost 10 % of their items"] = float(false.mean())
    return rates


def plot_coverage(settings: list[Setting], path: Path) -> None:
    """Draw the coverage of every setting against the expected number of flips."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
    for axis, name in zip(axes, ("latent", "matched", "raw"), strict=True):
        chosen = [each for each in settings if each.estimator == name]
        for kind in KINDS:
            points = [(each.flips, each.coverage) for each in chosen if each.kind == kind]
            if points:
                axis.plot(*zip(*points, strict=True), "o", ms=3.5, alpha=0.8, label=f"k = {kind}")
        axis.axhspan(*SCALE, color="tab:green", alpha=0.12)
        axis.axvline(ENOUGH_FLIPS, color="grey", lw=0.8, ls=":")
        axis.set(xscale="symlog", xlabel="expected flips", title=name, ylim=(0.9, 1.005))
    axes[0].set_ylabel("coverage of the 95 % interval")
    axes[2].legend(fontsize=8)
    figure.savefig(path, dpi=120)


def plot_broken(rows: list[tuple[str, float, dict[str, float]]], path: Path) -> None:
    """Draw each estimator if its assumptions fail."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
    names = list(SCENARIOS)
    for axis, lost in zip(axes, (0.0, 0.05), strict=True):
        means = {name: each for name, truth, each in rows if truth == lost}
        for place, name in enumerate(names):
            low, high = means[name]["latent"], means[name]["upper"]
            axis.plot([low, high], [place, place], color="tab:blue", lw=5, alpha=0.25)
            axis.plot(means[name]["raw"], place, "s", color="grey", ms=5)
            axis.plot(means[name]["matched"], place, "o", color="tab:orange", ms=6)
        axis.axvline(lost, color="black", lw=1)
        axis.set(title=f"truth: {lost:.0%} lost", xlabel="estimated share of items lost")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    marks = [
        plt.Line2D([], [], color="tab:blue", lw=5, alpha=0.25, label="range latent .. upper"),
        plt.Line2D([], [], color="tab:orange", marker="o", ls="", label="matched"),
        plt.Line2D([], [], color="grey", marker="s", ls="", label="raw"),
    ]
    axes[1].legend(handles=marks, fontsize=8)
    figure.savefig(path, dpi=120)


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    return plt


INTRO = """<!-- Generated by benchmarks/truth_recovery.py. -->
# Simulations with known truth

How often estimates, intervals and verdicts are right, in simulations where the loss is known:
{data_sets:,} simulated comparisons for each of 288 settings. The number of options k is 2, 3, 4,
10, mixed (2, 4, 10, open-ended) or open-ended; there are 50 to 1,000 items, of which 0, 1, 5 or
20 % are lost and 20, 50 or 90 % were known before. To repeat the simulations, run
`.venv/bin/python benchmarks/truth_recovery.py`.

## Assumptions hold

| estimator | lowest coverage | highest with 15+ flips expected | largest bias, standard errors |
|---|---|---|---|
{coverage}

"As shown": if the one-sided test does not reject at 2.5 %, the interval is extended to 0, so that
interval and test never contradict each other. If nothing was lost, it covers more than 95 %.

![Coverage of every setting](images/coverage.png)

## Assumptions fail

4 options, 60 % known, 1,000 items. The range is from `latent` to `upper`. Bold numbers differ from
the truth by more than 1 % of items.

| guesses | lost (truth) | raw | latent | matched | upper | range holds |
|---|---|---|---|---|---|---|
{broken}

![Where assumptions fail](images/broken.png)

No table of counts shows elimination or partial mastery. Repeats correct for partial mastery
(`excess`); for elimination, only open-ended questions help.

## Headlines under these assumptions

Headlines for the same data sets. "Too much": the lower bound of the stated loss is above the truth.
"Too little": no loss is stated although there is one, or the upper bound is below the truth. A 95 %
interval allows 2.5 % of each.

| guesses | lost (truth) | situation | states a loss | too much | too little | cannot tell |
|---|---|---|---|---|---|---|
{claims}

If options can be eliminated, `matched` and the range state losses that did not happen, from a
single run of a multiple-choice test. If a wrong option is attractive, `matched` states too
little. The answers do not show either case, so every such headline names its assumptions: that
the model guesses blindly if it does not know, that its letter preferences did not change, and, if
decoding is not recorded, that answers are greedy (otherwise partial mastery could look like a
loss). Unevenly distributed right answers are detected, and `matched` is refused. Sampled answers
without repeats never give a verdict.

## The same model sampled twice

Share of data sets in which the interval of `excess` contains 0:

| item probabilities | contains 0 |
|---|---|
{sampled}

The same for `net`, with 4 options:

| items | contains 0 |
|---|---|
{net}

## Size and power of the test

| setting | size at .05 | power at the detectable loss (target .80) |
|---|---|---|
{tests}

With repeats, by permutation, at the loss that `forgetmap plan` computes:

| setting | size at .05 | power (target .80) |
|---|---|---|
{repeated}

## False discoveries over 100 tasks, at 5 %

| setting | rate |
|---|---|
{discoveries}
"""


def coverage_row(name: str, settings: list[Setting]) -> str:
    """Return the extremes of one estimator over all settings."""
    chosen = [each for each in settings if each.estimator == name]
    many = [each.coverage for each in chosen if each.flips >= ENOUGH_FLIPS]
    lowest = min(each.coverage for each in chosen)
    bias = max(abs(each.bias) for each in chosen)
    return f"| {name} | {lowest:.3f} | {max(many):.3f} | {bias:.1f} in {len(chosen)} settings |"


def broken_row(name: str, lost: float, means: dict[str, float]) -> str:
    """Return one scenario, with errors in bold."""
    cells = " | ".join(
        f"**{value:.3f}**" if abs(value - lost) > 0.01 else f"{value:.3f}"
        for value in (means[key] for key in ("raw", "latent", "matched", "upper"))
    )
    holds = means["latent"] - 0.001 <= lost <= means["upper"] + 0.001
    return f"| {name} | {lost:.2f} | {cells} | {'yes' if holds else 'NO'} |"


def claims_row(name: str, lost: float, situation: str, found: Claims) -> str:
    """Return the claims, with false ones in bold."""
    wrong = [
        f"**{value:.3f}**" if value > 0.05 else f"{value:.3f}"
        for value in (found.too_much, found.too_little)
    ]
    said = f"{found.lost:.3f} | {wrong[0]} | {wrong[1]} | {found.open:.3f}"
    return f"| {name} | {lost:.2f} | {situation} | {said} |"


def test_row(name: str, size: float, power: float) -> str:
    """Return size and power of one setting."""
    return f"| {name} | {size:.3f} | {'not detectable' if np.isnan(power) else f'{power:.2f}'} |"


def sections_of_others(text: str) -> str:
    """Return the end of the page, which other benchmarks write."""
    starts = [
        text.find(title) for title in ("\n## Intervals\n", "\n## Verdicts\n") if title in text
    ]
    return text[min(starts) :] if starts else ""


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=10_000)
    data_sets = parser.parse_args().data_sets
    rng = np.random.default_rng(20261115)
    settings = grid(rng, data_sets)
    rows = broken(rng, max(data_sets // 20, 50))
    images = ROOT / "docs" / "images"
    images.mkdir(exist_ok=True)
    plot_coverage(settings, images / "coverage.png")
    plot_broken(rows, images / "broken.png")
    sampled = same_model_sampled(rng, data_sets)
    net = net_of_the_same_model(rng, max(data_sets, 100))
    tests = sizes_and_power(rng, data_sets)
    repeated = repeated_tests(rng, data_sets)
    told = claims(rng, max(data_sets // 20, 50))
    fdr = discoveries(rng, max(data_sets // 5, 100))
    names = ("raw", "latent", "matched", "latent as shown", "matched as shown")
    page = INTRO.format(
        data_sets=data_sets,
        coverage="\n".join(coverage_row(name, settings) for name in names),
        broken="\n".join(broken_row(*row) for row in rows),
        sampled="\n".join(f"| {name} | {value:.3f} |" for name, value in sampled.items()),
        net="\n".join(f"| {name} | {value:.3f} |" for name, value in net.items()),
        repeated="\n".join(test_row(*row) for row in repeated),
        claims="\n".join(claims_row(*row) for row in told),
        tests="\n".join(test_row(*row) for row in tests),
        discoveries="\n".join(f"| {name} | {value:.3f} |" for name, value in fdr.items()),
    )
    path = ROOT / "docs" / "truth.md"
    path.write_text(page + sections_of_others(path.read_text(encoding="utf-8")), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
