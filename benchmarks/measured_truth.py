"""Are verdicts right on real models, whose success rate on every item was measured?

    .venv/bin/python benchmarks/measured_truth.py --rates FOLDER
    .venv/bin/python benchmarks/measured_truth.py --rates FOLDER --write docs/truth.md

FOLDER has one CSV file per benchmark: model, item, count of sampled answers, correct ones. With the
rate p of one model and q of another, or of the same one, the loss mean max(p - q, 0) is known.
Answers are drawn from p and q, and the limits and verdicts of forgetmap.stats on them are compared
with the truth: every model against itself, and every ordered pair of models. The files are those of
Wang, Measuring all the noises of LLM evals (arXiv 2512.21326); they are no part of this project.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from forgetmap.stats.limits import ItemSample, PairedAnswers
from forgetmap.stats.verdicts import (
    LossLimits,
    Verdict,
    confirmed_bound,
    decide,
    measure_limits,
    offered_bounds,
)

Reals = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
RESULTS = Path(__file__).parent / "results" / "measured_truth.json"
SECTION = "\n## Real models with known rates\n"
ALPHA, MARGIN = 0.025, 0.02
FRESH = (1, 3)
VERDICTS = get_args(Verdict)
ALL = "all"
BANDS = {
    ".02 to .05": (0.02, 0.05), ".05 to .1": (0.05, 0.1), ".1 to .2": (0.1, 0.2),
    "above .2": (0.2, 1.0),
}  # fmt: skip
HELD = "above .03, accuracy not lower"


class Design(NamedTuple):
    """Answers per item and model, and fresh answers to flipped items."""

    answers: int
    fresh: int = 0
    later: bool = False
    """Flips are asked again only after an undecided comparison, at a quarter of the error."""

    @property
    def name(self) -> str:
        """How tables call it."""
        said = f"{self.answers} answer{'s' * (self.answers > 1)}"
        if self.fresh:
            said += f", {self.fresh} fresh"
        return said + (", asked later" if self.later else "")


DESIGNS = (
    *(Design(answers, fresh) for answers, fresh in product((1, 2, 3, 8), (0, *FRESH))),
    Design(1, 1, later=True),
    Design(1, 3, later=True),
)
SHOWN = (Design(1), Design(1, 1), Design(1, 3), Design(2), Design(3), Design(8))
"""Designs in the table of losses that were found."""
CONFIRMED = ("human_eval_plus", "cruxeval_output")
"""Files of the table of confirmation."""


class Rates(NamedTuple):
    """Success rates of the models of one benchmark: a row per model, a column per item."""

    name: str
    rates: Reals


class Options(NamedTuple):
    """How many data sets are drawn per model and per pair, and how."""

    nulls: int
    pairs: int
    seed: int
    resample: bool


def read_rates(path: Path) -> Rates:
    """Read one file; every model must have been asked every item."""
    found: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rate = int(row["correct"]) / int(row["count"])
            found.setdefault(row["model"], {})[row["item"]] = rate
    items = sorted(set(chain.from_iterable(found.values())))
    rates = np.array([[own[item] for item in items] for _, own in sorted(found.items())])
    return Rates(path.stem.removesuffix("_t0.7"), rates)


def kinds_of(right_before: Integers, right_after: Integers, answers: int) -> PairedAnswers:
    """Return the answers as kinds of items with their number, those that occur."""
    kind = right_before * (answers + 1) + right_after
    count = np.bincount(kind, minlength=(answers + 1) ** 2)
    occurs = np.flatnonzero(count)
    before, after = np.divmod(occurs, answers + 1)
    each: Reals = np.full(occurs.size, float(answers))
    sample = ItemSample(count[occurs].astype(float))
    return PairedAnswers(before.astype(float), each, after.astype(float), each, sample)


def confirm(
    first: Bools, p: Reals, q: Reals, fresh: int, random: np.random.Generator
) -> tuple[ItemSample, Reals]:
    """Ask the flipped items again; return all items and the change of their fresh answers."""
    right = random.binomial(fresh, p[first]) - random.binomial(fresh, q[first])
    count = np.bincount(right + fresh, minlength=2 * fresh + 1).astype(float)
    change = np.arange(-fresh, fresh + 1) / fresh
    count[fresh] += (~first).sum()  # items that were not asked score 0
    return ItemSample(count), change


def examine(p: Reals, q: Reals, random: np.random.Generator) -> Iterator[tuple[LossLimits, float]]:
    """Draw answers to all items; give the limits by every design and the share asked again."""
    drawn = {
        answers: _draw(p, q, answers, random)
        for answers in sorted({design.answers for design in DESIGNS})
    }
    for design in DESIGNS:
        answers, flipped, fresh = drawn[design.answers]
        alone = measure_limits(answers, offered_bounds(answers), ALPHA)
        settled = decide(alone, MARGIN) not in {"cannot_tell", "no_net_loss"}
        if not design.fresh or (design.later and settled):
            yield alone, 0.0
            continue
        again = confirmed_bound(*fresh[design.fresh], flipped, flipped)
        bounds = offered_bounds(answers, None, {"confirmed": again})
        limits = measure_limits(answers, bounds, ALPHA, asked_later=design.later)
        yield limits, flipped / p.size


def _draw(
    p: Reals, q: Reals, answers: int, random: np.random.Generator
) -> tuple[PairedAnswers, float, dict[int, tuple[ItemSample, Reals]]]:
    m, n = random.binomial(answers, p), random.binomial(answers, q)
    # The first answers, given how many of all were right.
    first = (random.random(p.size) < m / answers) & (random.random(p.size) >= n / answers)
    fresh = {number: confirm(first, p, q, number, random) for number in FRESH}
    return kinds_of(m, n, answers), float(first.sum()), fresh


def examine_model(rates: Rates, model: int, options: Options) -> Reals:
    """Examine a model against itself and against all others; one row per data set and design."""
    random = np.random.default_rng([options.seed, model, *rates.name.encode()])
    others = [other for other in range(len(rates.rates)) if other != model] * options.pairs
    rows = []
    for other in [model] * options.nulls + others:
        p, q = rates.rates[model], rates.rates[other]
        truth = float(np.maximum(p - q, 0.0).mean()), float((p - q).mean())
        if options.resample:
            places = random.integers(0, p.size, p.size)
            p, q = p[places], q[places]
        for number, (limits, asked) in enumerate(examine(p, q, random)):
            verdict = VERDICTS.index(decide(limits, MARGIN))
            seen = (limits.low, limits.high, verdict, asked)
            rows.append((number, other == model, *truth, *seen))
    return np.array(rows, float)


class Table:
    """Outcomes of one benchmark or of several, one entry per data set and design."""

    def __init__(self, rows: Reals) -> None:
        self.rows = rows
        self.design, self.same, self.loss, self.net = rows.T[:4]
        self.low, self.high, verdict, self.asked = rows.T[4:]
        self.verdict = np.array(VERDICTS)[verdict.astype(int)]

    def of(self, design: Design, *, same: bool) -> Table:
        """Return the data sets of a design."""
        return Table(self.rows[(self.design == DESIGNS.index(design)) & (self.same == same)])

    def where(self, chosen: Bools) -> Table:
        """Return some of the data sets."""
        return Table(self.rows[chosen])

    def share(self, happened: Bools) -> float | None:
        """Return how often something happened; None without data sets."""
        return float(happened.mean()) if happened.size else None

    @property
    def found(self) -> float | None:
        """Share in which a loss is claimed."""
        return self.share(self.low > 0)

    @property
    def mean_asked(self) -> float | None:
        """Mean share of the items that were asked again."""
        return float(self.asked.mean()) if self.asked.size else None

    def bands(self) -> dict[str, Table]:
        """Return the pairs by their true loss."""
        found = {
            name: self.where((self.loss > low) & (self.loss <= high))
            for name, (low, high) in BANDS.items()
        }
        return found | {HELD: self.where((self.loss > 0.03) & (self.net <= 0))}


def errors_of(table: Table, design: Design) -> dict[str, float | None]:
    """Return error rates: of the data sets in which the claim would be wrong."""
    null, pairs = table.of(design, same=True), table.of(design, same=False)
    lossy, lower = pairs.where(pairs.loss >= MARGIN), pairs.where(pairs.net >= MARGIN)
    return {
        "false lost": null.found,
        "L above": pairs.share(pairs.low > pairs.loss),
        "U below": pairs.share(pairs.high < pairs.loss),
        "false no_material_loss": lossy.share(lossy.high < MARGIN),
        "false no_net_loss": lower.share(lower.verdict == "no_net_loss"),
    }


def power_of(table: Table, design: Design) -> dict[str, dict[str, float | None]]:
    """Return what was found and asked, by true loss."""
    return {
        band: {
            "data sets": float(pairs.low.size),
            "found": pairs.found,
            "no_net_loss": pairs.share(pairs.verdict == "no_net_loss"),
            "items asked again": pairs.mean_asked,
        }
        for band, pairs in table.of(design, same=False).bands().items()
    }


def summarise(table: Table) -> dict[str, Any]:
    """Return all figures of a benchmark, or of all together."""
    return {
        design.name: {
            "errors": errors_of(table, design),
            "power": power_of(table, design),
            "same model": {verdict: null.share(null.verdict == verdict) for verdict in VERDICTS},
            "items asked again, same model": null.mean_asked,
            "data sets": [null.low.size, table.of(design, same=False).low.size],
        }
        for design in DESIGNS
        for null in [table.of(design, same=True)]
    }


# ---------------------------------------------------------------------------- the page


def _shown(value: float | None, digits: int = 2) -> str:
    if value is None:
        return "-"
    return f"{value:.{digits}f}".replace("0.", ".", 1) if value < 1 else f"{value:.{digits}f}"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def error_lines(files: dict[str, Any]) -> str:
    """Return the table of errors, by benchmark and design."""
    head = ["benchmark", "answers", *files[ALL][DESIGNS[0].name]["errors"]]
    return _lines(
        head,
        (
            [file, design.name, *(_shown(rate, 4) for rate in found["errors"].values())]
            for file, design in product(files, DESIGNS)
            for found in [files[file][design.name]]
        ),
    )


def power_lines(found: dict[str, Any]) -> str:
    """Return the table of losses that were found, by true loss."""
    single, confirmed = Design(1).name, Design(1, 1).name
    rows = []
    for band in (*BANDS, HELD):
        own = {name: design["power"][band] for name, design in found.items()}
        rows.append([
            band, f"{own[single]['data sets']:,.0f}",
            *(_shown(own[design.name]["found"]) for design in SHOWN),
            _shown(own[confirmed]["items asked again"]), _shown(own[single]["no_net_loss"]),
        ])  # fmt: skip
    names = [design.name for design in SHOWN]
    head = ["true loss", "pairs", *names, "items asked again", "`no_net_loss`, 1 answer"]
    return _lines(head, rows)


def confirmation_lines(files: dict[str, Any]) -> str:
    """Return false and found losses with confirmation, and what it asks."""
    rows = []
    for file in (name for name in CONFIRMED if name in files):
        for design in (each for each in DESIGNS if each.answers in {1, 3}):
            found = files[file][design.name]
            asked = found["power"][HELD]["items asked again"] or 0.0
            answers = 2 * (design.answers + design.fresh * asked)
            rows.append([
                file, design.name, _shown(found["errors"]["false lost"], 3),
                *(_shown(found["power"][band]["found"]) for band in (*BANDS, HELD)),
                _shown(asked), _shown(answers),
            ])  # fmt: skip
    head = ["benchmark", "answers", "false lost", *BANDS, HELD]
    return _lines([*head, "items asked again", "answers per item, both models"], rows)


def verdict_lines(files: dict[str, Any], sizes: dict[str, tuple[int, int]]) -> str:
    """Return what a model's second run is called."""
    rows = []
    for file, found in files.items():
        size = [f"{number:,}" for number in sizes.get(file, ())] or ["", ""]
        shares = found[Design(1).name]["same model"].values()
        rows.append([file, *size, *map(_shown, shares)])
    return _lines(["benchmark", "models", "items", *(f"`{each}`" for each in VERDICTS)], rows)


PAGE = """
Real models were asked every item of a benchmark many times at temperature 0.7: Wang, *Measuring
all the noises of LLM evals* ([arXiv 2512.21326](https://arxiv.org/abs/2512.21326)). With these
rates as the truth, answers are drawn for every model against itself ({nulls:,} data sets) and for
every ordered pair of models ({pairs:,}). The true loss is the mean of max(p - q, 0) over the items.
The margin is 2 %.

"1 answer, 3 fresh": one answer per item and model, and three fresh answers of each model to items
that went from right to wrong. "Asked later": only after an undecided comparison.

How often a claim is wrong, of the data sets in which it would be: a loss between two runs of one
model; the lower limit above the true loss; the upper limit below it; a loss within the margin
although it is larger; `no_net_loss` although accuracy fell by the margin or more.

{errors}

How often a loss is found, all benchmarks together. "Items asked again" is the share of the items
that confirmation asks.

{power}

Confirmation. The last two columns are for pairs with a loss above .03 whose accuracy is not lower.

{confirmation}

What the verdict says about two runs of one model, one answer each:

{verdicts}

To repeat this, run `.venv/bin/python benchmarks/measured_truth.py --rates FOLDER` with the files of
that source.
"""


def write_page(path: Path, result: dict[str, Any]) -> None:
    """Replace the section of a page, or add it."""
    files = result["benchmarks"]
    single = files[ALL][Design(1).name]["data sets"]
    section = PAGE.format(
        nulls=single[0], pairs=single[1],
        errors=error_lines(files), power=power_lines(files[ALL]),
        confirmation=confirmation_lines(files), verdicts=verdict_lines(files, result["sizes"]),
    )  # fmt: skip
    before, _, rest = path.read_text(encoding="utf-8").partition(SECTION)
    _, title, after = rest.partition("\n## ")
    path.write_text(before.rstrip("\n") + "\n" + SECTION + section + title + after, "utf-8")


def run(benchmarks: Sequence[Rates], options: Options) -> dict[str, Table]:
    """Examine all models of all benchmarks, in two processes."""
    tasks = [(rates, model) for rates in benchmarks for model in range(len(rates.rates))]
    parts: dict[str, list[Reals]] = {rates.name: [] for rates in benchmarks}
    with ProcessPoolExecutor(2) as pool:
        jobs = [(rates.name, pool.submit(examine_model, rates, model, options))
                for rates, model in tasks]  # fmt: skip
        for name, job in track(jobs, description="models"):
            parts[name].append(job.result())
    tables = {name: Table(np.concatenate(rows)) for name, rows in parts.items()}
    return tables | {ALL: Table(np.concatenate([table.rows for table in tables.values()]))}


def main() -> None:
    """Examine all files, print the tables and save the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--nulls", type=int, default=400, help="per model [default: 400]")
    parser.add_argument("--pairs", type=int, default=1, help="data sets a pair [default: 1]")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator [default: 0]")
    parser.add_argument("--only", default="", help="files with this in their name")
    parser.add_argument(
        "--resample", action="store_true",
        help="draw the items too: the truth is that of items like these",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=RESULTS, help="file for the figures")
    parser.add_argument("--write", type=Path, help="put the tables into this page: docs/truth.md")
    given = parser.parse_args()
    paths = sorted(path for path in given.rates.glob("*.csv") if given.only in path.name)
    if not paths:
        parser.error(f"no CSV file in {given.rates}")
    options = Options(given.nulls, given.pairs, given.seed, given.resample)
    benchmarks = [read_rates(path) for path in paths]
    tables = run(benchmarks, options)
    sizes = {rates.name: rates.rates.shape for rates in benchmarks}
    result: dict[str, Any] = {
        "source": "Wang, Measuring all the noises of LLM evals, arXiv 2512.21326",
        "margin": MARGIN,
        **options._asdict(),
        "sizes": sizes,
        "benchmarks": {name: summarise(table) for name, table in tables.items()},
    }
    short = json.loads(json.dumps(result), parse_float=lambda text: round(float(text), 5))
    given.out.write_text(json.dumps(short, indent=1) + "\n", encoding="utf-8")
    files = result["benchmarks"]
    for lines in (error_lines(files), power_lines(files[ALL]), confirmation_lines(files),
                  verdict_lines(files, result["sizes"])):  # fmt: skip
        print(lines, end="\n\n")
    if given.write:
        write_page(given.write, result)


if __name__ == "__main__":
    main()
