"""How often does a gate decide wrongly? Simulated releases whose true loss is known.

    .venv/bin/python benchmarks/gate.py                        1,000 releases a row
    .venv/bin/python benchmarks/gate.py --rows looks --releases 200
    .venv/bin/python benchmarks/gate.py --page docs/gate.md

Releases are drawn by benchmarks/worlds.py, which does not use forgetmap. FAIL is false if no
blocking rule lost more than its margin; PASS is false if one lost as much or more. Each must be at
most 5 % of the releases, over all looks if there are several.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from verdicts import show_progress, table, write_section
from worlds import Case, Columns, Rng, World, draw_case, draw_task, join_tasks, moody

from forgetmap.gate import GatePolicy, GateRule, make_default_policy, run_gate

MARGIN = 0.02
MOST = 0.05
ENOUGH = 0.95
SECTION = "\n## How often it is wrong\n"
ABOUT = """
1,000 simulated releases a row (`benchmarks/gate.py`; drawn by code that shares nothing with the
gate). FAIL is false where no blocking rule lost more than its margin, PASS where one lost as much
or more; over all looks where there are several. Where the true loss is exactly the margin, both are
false. Targets: at most .05, and INCONCLUSIVE in at least .95 where there are too few items.
"""


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
    """

    name: str
    policy: GatePolicy
    draw: Callable[[Rng], Case]
    losses: tuple[float, ...]
    is_small: bool = False
    looks: int = 1


def open_items(items: int, lost: float, **more: Any) -> Callable[[Rng], Case]:
    """Return a task of items that cannot be guessed."""
    return lambda rng: draw_case(rng, World(items=items, k=0, lost=lost, **more))


def choices(items: int, lost: float, **more: Any) -> Callable[[Rng], Case]:
    """Return a task of items with four options."""
    return lambda rng: draw_case(rng, World(items=items, k=4, lost=lost, **more))


def in_tasks(items: int, losses: Sequence[float]) -> Callable[[Rng], Case]:
    """Return several tasks, each with its own loss."""

    def draw(rng: Rng) -> Case:
        parts = [
            draw_task(rng, World(items=items, k=0, lost=lost), f"task {number:02}")
            for number, lost in enumerate(losses)
        ]
        return join_tasks(parts, World().truth())

    return draw


def make_policy(*rules: GateRule, **options: Any) -> GatePolicy:
    """Return a policy of these rules."""
    return GatePolicy(rule=rules, **options)


TOTAL = make_default_policy()
TASKS = make_policy(GateRule(scope="task", margin=MARGIN))
NET = make_policy(GateRule(quantity="net_change", margin=MARGIN))
ANSWERS = make_policy(GateRule(quantity="answering_loss", margin=MARGIN))
TWO = make_policy(GateRule(margin=MARGIN), GateRule(quantity="net_change", margin=MARGIN))
LOOKS = make_policy(GateRule(margin=MARGIN), looks=5)
ANY_LOOKS = make_policy(GateRule(margin=MARGIN), looks="any")


def _rows() -> Iterator[Release]:
    for lost in (0.0, 0.01, MARGIN, 0.03, 0.06):
        yield Release(
            f"default, 3,000 open items, loss {lost:g}",
            TOTAL,
            open_items(3_000, lost),
            (lost - MARGIN,),
        )
    yield Release(
        "default, noise flips .5 % one way, loss at the margin",
        TOTAL,
        open_items(3_000, MARGIN, flips=0.005),
        (0.0,),
    )
    yield Release(
        "default, clusters of 5, loss at the margin",
        TOTAL,
        open_items(3_000, MARGIN, cluster=5),
        (0.0,),
    )
    for lost in (0.0, MARGIN, 0.06):
        yield Release(
            f"default, 5,000 items of four options, loss {lost:g}",
            TOTAL,
            choices(5_000, lost),
            (lost - MARGIN,),
        )
    yield Release("default, 60 open items", TOTAL, open_items(60, 0.0), (-MARGIN,), is_small=True)
    yield Release(
        "default, 300 items of four options", TOTAL, choices(300, 0.0), (-MARGIN,), is_small=True
    )
    yield Release(
        "default, two repeats, noise only",
        TOTAL,
        lambda rng: moody(rng, 2_000, 2, 0.0),
        (-MARGIN,),
    )
    yield Release(
        "ten blocking tasks, each at the margin",
        TASKS,
        in_tasks(1_500, [MARGIN] * 10),
        (0.0,) * 10,
    )
    yield Release(
        "ten blocking tasks, one at the margin",
        TASKS,
        in_tasks(1_500, [MARGIN] + [0.0] * 9),
        (0.0,) + (-MARGIN,) * 9,
    )
    yield Release(
        "ten blocking tasks, one beyond it",
        TASKS,
        in_tasks(1_500, [0.06] + [0.0] * 9),
        (0.06 - MARGIN,) + (-MARGIN,) * 9,
    )
    yield Release(
        "net change at the margin (6 % lost, 4 % gained)",
        NET,
        open_items(3_000, 0.06, gained=0.04),
        (0.0,),
    )
    yield Release(
        "forgetting beyond, net change at the margin",
        TWO,
        open_items(3_000, 0.06, gained=0.04),
        (0.06 - MARGIN, 0.0),
    )
    yield Release(
        "answering loss at the margin",
        ANSWERS,
        choices(5_000, 0.0, known=0.5, unread=(2 * MARGIN, 0.0)),
        (0.0,),
    )
    for name, policy in (("planned", LOOKS), ("any number of", ANY_LOOKS)):
        for lost in (0.0, MARGIN, 0.03):
            yield Release(
                f"5 looks ({name} looks), 600 more open items each, loss {lost:g}",
                policy,
                open_items(3_000, lost),
                (lost - MARGIN,),
                looks=5,
            )


ROWS = tuple(_rows())


def gate_once(case: Case, policy: GatePolicy, look: int = 1) -> str:
    """Return the decision of the gate on one release."""
    return run_gate(table(case.before), table(case.after), policy=policy, look=look).status


def statuses(row: Release, rng: Rng) -> set[str]:
    """Return the decisions on a release; a look that decides is the last."""
    case = row.draw(rng)
    for look in range(1, row.looks + 1):
        status = gate_once(_first(case, look / row.looks), row.policy, look)
        if status != "INCONCLUSIVE":
            return {status}
    return {"INCONCLUSIVE"}


def _first(case: Case, share: float) -> Case:
    """Return the items that are available at an early look."""
    count = round(share * len(case.before["item"]))

    def cut(columns: Columns) -> Columns:
        return {name: values[:count] for name, values in columns.items()}

    return case if share == 1 else replace(case, before=cut(case.before), after=cut(case.after))


def run_job(job: tuple[int, int, int, int]) -> tuple[int, Counter[str]]:
    """Simulate some releases of one row."""
    number, start, count, seed = job
    counts: Counter[str] = Counter()
    for release in range(start, start + count):
        counts.update(statuses(ROWS[number], np.random.default_rng([seed, number, release])))
    return number, counts


def judge(row: Release, shares: dict[str, float]) -> tuple[float | None, float | None, bool]:
    """Return false FAIL and false PASS (None if right), and whether both are rare enough."""
    beyond = any(loss > 0 for loss in row.losses)
    at_least = any(loss >= 0 for loss in row.losses)
    false_fail = None if beyond else shares["FAIL"]
    false_pass = shares["PASS"] if at_least else None
    is_right = all(rate is None or rate <= MOST for rate in (false_fail, false_pass))
    return (
        false_fail,
        false_pass,
        is_right and (not row.is_small or shares["INCONCLUSIVE"] >= ENOUGH),
    )


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
        verdict = "ok" if is_right else "MISSED"
        lines.append(f"| {ROWS[number].name} | {' | '.join(cells)} | {verdict} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="", help="those with this in their name")
    parser.add_argument("--releases", type=int, default=1_000, help="a row [default: 1000]")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator [default: 0]")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="[default: one a core]"
    )
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    parser.add_argument("--page", type=Path, help="put the table into this page: docs/gate.md")
    options = parser.parse_args(arguments)
    numbers = [n for n, row in enumerate(ROWS) if options.rows in row.name]
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
            show_progress(done, len(jobs), time.monotonic() - began)
    report = make_report(counts)
    print(report)
    if options.json:
        options.json.write_text(json.dumps({ROWS[n].name: tally for n, tally in counts.items()}))
    if options.page:
        write_section(options.page, SECTION, report)
    return int("MISSED" in report)


if __name__ == "__main__":
    sys.exit(main())
