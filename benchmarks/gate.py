"""How often does a gate decide wrongly? Simulated releases whose true loss is known.

    .venv/bin/python benchmarks/gate.py                        2,000 releases a row
    .venv/bin/python benchmarks/gate.py --rows looks --releases 200
    .venv/bin/python benchmarks/gate.py --page docs/gate.md

Releases are drawn by benchmarks/worlds.py, which does not use forgetmap. FAIL is false if no
blocking rule lost more than its margin; PASS is false if one lost as much or more. Each must be at
most 3 % of the releases, over all looks if there are several.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from worlds import Array, Items, Rng, World, checkpoints, choices, draw, open_items, sampled

from forgetmap.gate import GatePolicy, GateRule, make_default_policy, run_gate

MARGIN = 0.02
MOST = 0.03
ENOUGH = 0.95
SECTION = "\n## How often it is wrong\n"
ABOUT = """
2,000 simulated releases a row (`benchmarks/gate.py`). FAIL is false where no blocking rule lost
more than its margin, PASS where one lost as much or more, over all looks; at a loss of exactly the
margin, both are. Targets: at most .03, and INCONCLUSIVE in at least .95 where there are too few
items. Sampled: rates as at T = 0.7, two runs of one model differ in 12 % of the items one way.
"""
TOTAL = make_default_policy()
NET = make_default_policy(accept="net")
RULE = GateRule(margin=MARGIN)
TASKS = GatePolicy(rule=(GateRule(scope="task", margin=MARGIN),))
DROP = GatePolicy(rule=(GateRule(quantity="net_change", margin=MARGIN),))
LOOKS = GatePolicy(rule=(RULE,), looks=5)
ANY_LOOKS = GatePolicy(rule=(RULE,), looks="any")
BEST_OF = 20
BEST = GatePolicy(rule=(RULE,), chosen_among=BEST_OF)


@dataclass(frozen=True, slots=True)
class Case:
    """Both runs of a release, and options of the gate."""

    before: pl.DataFrame
    after: pl.DataFrame
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Release:
    """One line of the table.

    Attributes:
        name: description of the simulation.
        policy: policy of the gate.
        draw: draws one release.
        losses: true loss of each blocking check minus its margin: above 0, FAIL is right.
        is_small: whether there are too few items to decide.
        looks: number of looks, with more items each time.
        is_known: whether it is only shown: what the policy is known not to see.
    """

    name: str
    policy: GatePolicy
    draw: Callable[[Rng], Case]
    losses: tuple[float, ...]
    is_small: bool = False
    looks: int = 1
    is_known: bool = False


def sheet(items: Items, runs: Sequence[Array]) -> pl.DataFrame:
    """Return the answers of some runs as a table that users have."""
    n = items.p.size
    columns = {
        "task": np.char.add("task ", np.char.zfill(items.task.astype(str), 2)),
        "item": np.arange(n).astype(str),
    }
    if items.cluster is not None:
        columns["cluster"] = np.char.add("passage ", items.cluster.astype(str))
    parts = [
        pl.DataFrame({**columns, "score": scores, "repeat": np.full(n, number)})
        for number, scores in enumerate(runs)
    ]
    return pl.concat(parts)


def releases(*worlds: World, repeats: int = 1, confirmed: bool = False) -> Callable[[Rng], Case]:
    """Return releases of these tasks; if confirmed, both models answer again what flipped."""

    def make(rng: Rng) -> Case:
        items = draw(rng, *worlds)
        before, after = (
            sheet(items, [items.answer(rng, rates) for _ in range(repeats)])
            for rates in (items.p, items.q)
        )
        if not confirmed:
            return Case(before, after)
        flipped = before["score"] != after["score"]
        again = tuple(
            sheet(items, [items.answer(rng, rates)]).filter(flipped) for rates in (items.p, items.q)
        )
        return Case(before, after, {"confirm": again})

    return make


def best_of(world: World, lost: float) -> Callable[[Rng], Case]:
    """Return the best of several checkpoints, chosen by the items on which it is judged."""

    def make(rng: Rng) -> Case:
        items = draw(rng, world)
        runs = [items.answer(rng, rates) for rates in checkpoints(rng, items, BEST_OF, lost)]
        best = max(runs, key=lambda scores: float(scores.sum()))
        return Case(sheet(items, [items.answer(rng, items.p)]), sheet(items, [best]))

    return make


def row(name: str, policy: GatePolicy, *worlds: World, **how: Any) -> Release:
    """Return a line about the loss of each task."""
    losses = tuple(world.loss - MARGIN for world in worlds)
    about = {key: how.pop(key) for key in ("is_small", "looks", "is_known") if key in how}
    return Release(name, policy, releases(*worlds, **how), losses, **about)


def exchanged(items: int, lost: float) -> World:
    """Return sampled answers, of which as many were gained as lost."""
    return sampled(items, lost / sampled(items, 1.0).loss, gained=True)


def fallen(items: int, lost: float) -> World:
    """Return sampled answers, of which a share was lost."""
    return sampled(items, lost / sampled(items, 1.0).loss)


def _same_model() -> Iterator[Release]:
    name = "same model sampled at T = 0.7"
    yield row(f"{name}, 1,000 items", TOTAL, sampled(1_000))
    yield row(f"{name}, 1,000 items, accept net", NET, sampled(1_000))
    yield row(f"{name}, 5,000 items, accept net", NET, sampled(5_000))
    yield row(f"{name}, 1,000 items, three repeats", TOTAL, sampled(1_000), repeats=3)
    yield row(f"{name}, 1,000 items, confirmed", TOTAL, sampled(1_000), confirmed=True)
    yield row("same model, greedy, flips .5 %", TOTAL, open_items(3_000, flips=0.005))


def _losses() -> Iterator[Release]:
    for lost in (0.01, MARGIN, 0.03, 0.04):
        yield row(f"3,000 open items, loss {lost:g}", TOTAL, open_items(3_000, lost))
    yield row("clusters of 5, loss at the margin", TOTAL, open_items(3_000, MARGIN, cluster=5))
    name = "sampled, loss 0.04"
    yield row(f"{name}, 1,000 items", TOTAL, fallen(1_000, 0.04))
    yield row(f"{name}, 3,000 items, accept net", NET, fallen(3_000, 0.04))
    yield row(f"{name}, 1,000 items, three repeats", TOTAL, fallen(1_000, 0.04), repeats=3)
    yield row("four options, guesses redrawn, loss 0.04", TOTAL, choices(5_000, 0.04))
    both = exchanged(1_000, 0.04)
    yield row(f"{name}, 4 % gained, 1,000 items", TOTAL, both)
    yield row(f"{name}, 4 % gained, 1,000 items, confirmed", TOTAL, both, confirmed=True)
    yield row(f"{name}, 4 % gained, 1,000 items, three repeats", TOTAL, both, repeats=3)
    unseen = open_items(3_000, 0.04, 0.04)
    yield row("3,000 open items, loss 0.04, 4 % gained, accept net", NET, unseen, is_known=True)


def _others() -> Iterator[Release]:
    yield row("60 open items", TOTAL, open_items(60), is_small=True)
    yield row("300 items sampled", TOTAL, sampled(300), is_small=True)
    for name, losses in (
        ("each at the margin", [MARGIN] * 10),
        ("one at the margin", [MARGIN, *[0.0] * 9]),
        ("one beyond it", [0.06, *[0.0] * 9]),
    ):
        tasks = [open_items(1_500, lost) for lost in losses]
        yield row(f"ten blocking tasks, {name}", TASKS, *tasks)
    net = releases(open_items(3_000, 0.06, 0.04))
    yield Release("accuracy drop at the margin (6 % lost, 4 % gained)", DROP, net, (0.0,))
    chosen = best_of(open_items(3_000), MARGIN)
    yield Release(f"best of {BEST_OF} checkpoints, each at the margin", BEST, chosen, (0.0,))
    looks = {"planned": LOOKS, "any number": ANY_LOOKS, "reruns": TOTAL}
    for name, policy in looks.items():
        at_margin = open_items(3_000, MARGIN)
        words = f"5 looks ({name}), 600 more open items each, loss at the margin"
        yield row(words, policy, at_margin, looks=5)


ROWS = (*_same_model(), *_losses(), *_others())


def status_of(release: Release, rng: Rng) -> str:
    """Return the decision on a release; a look that decides is the last."""
    case = release.draw(rng)
    status = "INCONCLUSIVE"
    for look in range(1, release.looks + 1):
        seen = round(len(case.before) * look / release.looks)
        sides = (case.before.head(seen), case.after.head(seen))
        status = run_gate(*sides, policy=release.policy, look=look, **case.options).status
        if status != "INCONCLUSIVE":
            break
    return status


def run_job(job: tuple[int, int, int, int]) -> tuple[int, Counter[str]]:
    """Simulate some releases of one row."""
    number, start, count, seed = job
    rngs = (np.random.default_rng([seed, number, each]) for each in range(start, start + count))
    return number, Counter(status_of(ROWS[number], rng) for rng in rngs)


def judge(release: Release, shares: dict[str, float]) -> tuple[float | None, float | None, bool]:
    """Return false FAIL and false PASS (None if right), and whether both are rare enough."""
    losses = np.round(release.losses, 9)
    false_fail = None if (losses > 0).any() else shares["FAIL"]
    false_pass = shares["PASS"] if (losses >= 0).any() else None
    is_right = all(rate is None or rate <= MOST for rate in (false_fail, false_pass))
    is_right &= not release.is_small or shares["INCONCLUSIVE"] >= ENOUGH
    return false_fail, false_pass, is_right or release.is_known


def make_report(counts: dict[int, Counter[str]]) -> str:
    """Return the table of all rows."""
    lines = [
        ABOUT,
        "| releases | PASS | FAIL | INCONCLUSIVE | false FAIL | false PASS | |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, tally in sorted(counts.items()):
        total = sum(tally.values())
        shares = {name: tally[name] / total for name in ("PASS", "FAIL", "INCONCLUSIVE")}
        *false, is_right = judge(ROWS[number], shares)
        cells = [f"{share:.3f}" for share in shares.values()]
        cells += ["" if rate is None else f"{rate:.3f}" for rate in false]
        verdict = "not seen" if ROWS[number].is_known else "ok" if is_right else "MISSED"
        lines.append(f"| {ROWS[number].name} | {' | '.join(cells)} | {verdict} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="", help="those with this in their name")
    parser.add_argument("--releases", type=int, default=2_000, help="a row [default: 2000]")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator [default: 0]")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="[default: one a core]"
    )
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    parser.add_argument("--page", type=Path, help="put the table into this page: docs/gate.md")
    options = parser.parse_args(arguments)
    numbers = [n for n, each in enumerate(ROWS) if options.rows in each.name]
    if not numbers:
        parser.error(f"no row has {options.rows!r} in its name")
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # on small tables, processes are better than threads
    jobs = [
        (number, start, min(50, options.releases - start), options.seed)
        for number in numbers
        for start in range(0, options.releases, 50)
    ]
    counts: dict[int, Counter[str]] = {number: Counter() for number in numbers}
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for done, (number, tally) in enumerate(pool.imap_unordered(run_job, jobs), 1):
            counts[number] += tally
            left = (time.monotonic() - began) / done * (len(jobs) - done)
            print(f"\r{done}/{len(jobs)}, {left:,.0f} s left ", end="", file=sys.stderr)
    report = make_report(counts)
    print(report)
    if options.json:
        options.json.write_text(json.dumps({ROWS[n].name: tally for n, tally in counts.items()}))
    if options.page:
        before, _, rest = options.page.read_text(encoding="utf-8").partition(SECTION)
        _, title, after = rest.partition("\n## ")
        text = f"{before.rstrip()}\n{SECTION}{report}\n{title}{after}"
        options.page.write_text(f"{text.rstrip()}\n", encoding="utf-8")
    return int("MISSED" in report)


if __name__ == "__main__":
    sys.exit(main())
