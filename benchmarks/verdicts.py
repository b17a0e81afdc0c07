"""Do verdicts hold? Worlds with a known loss, and how often what is said of them is false.

    .venv/bin/python benchmarks/verdicts.py                        all rows, 2,000 data sets each
    .venv/bin/python benchmarks/verdicts.py --rows clusters,gate --sets 200
    .venv/bin/python benchmarks/verdicts.py --write docs/truth.md

The worlds (benchmarks/worlds.py) share no code with the limits (forgetmap.stats). Truth is the loss
of the drawn items and that of the population they are from; the larger error rate counts:

    false lost     a loss is claimed where nothing was lost
    false within   "no material loss", or a small one, where the loss is the margin or more
    false held     "no net loss" where accuracy fell by the margin or more
    L above        "at least" is above the loss
    U below        "at most" is below the loss
    Ud below       the upper limit of the drop in accuracy is below the drop
    unseen         no loss is claimed although McNemar's test or a clustered t has p < .001

A row that misses a target is simulated four more times, and all data sets count. Rows called
"control" show what goes wrong if the procedure is not followed; they have no targets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from simulated_rows import Job, Rates, Row, Tally, main, simulate
from verdict_measures import (
    MARGIN,
    Draw,
    measure_after_undecided,
    measure_best,
    measure_chain,
    measure_confirmations,
    measure_copies,
    measure_family,
    measure_gate,
    measure_looks,
    measure_once,
    measure_plan,
    measure_refusals,
    measure_selected,
)
from worlds import (
    MMLU,
    Class,
    Items,
    Rng,
    World,
    choices,
    draw,
    frozen_guesses,
    latent_trait,
    mix,
    moved_habit,
    open_items,
    sampled,
)

COLUMNS = {
    "false_lost": 0.03, "false_within": 0.03, "false_held": 0.03, "low_above": 0.035,
    "high_below": 0.03, "drop_below": 0.03, "unseen": 0.0, "found": 1.0, "cannot_tell": 1.0,
}  # fmt: skip
"""Rates that are shown, and the most they may be."""
GATE = {"false_fail": 0.03, "false_pass": 0.03, "fail": 1.0, "pass": 1.0, "inconclusive": 1.0}
SECTION = "\n## Verdicts\n"
ABOUT = """
Models that answer every item right with a known probability before and after
(`.venv/bin/python benchmarks/verdicts.py`, {sets:,} data sets a row or more, margin 2 %; the
simulation shares no code with the limits). The loss is the mean of max(p - q, 0), of the drawn
items and of the population that they are from; the larger error rate is shown.

- **false lost**: a loss is claimed, but nothing was lost; among tasks, the share of false claims.
- **false within**: no loss beyond the margin is claimed, but as much or more was lost.
- **false held**: "no net loss", but accuracy fell by the margin or more.
- **L above, U below, Ud below**: a limit of the loss, or of the drop in accuracy, is on the wrong
  side of the truth.
- **unseen**: no loss is claimed although McNemar's test or a clustered t test has p < .001.
- **found, cannot tell**: how often a loss is claimed, and how often nothing is.

At most .03 of data sets may be false (.035 for L above, .05 for the claims among many tasks, none
for unseen), and too few items or passages must always end with cannot tell. A control shows what
goes wrong if the procedure is not followed. Gate: FAIL if more than the margin was lost, PASS if
less; with "accept net", if accuracy fell by less.
"""


# --- rows -----------------------------------------------------------------------------------------


def of(*worlds: World, **options: Any) -> Draw:
    """Return a function that draws the items of some tasks."""
    return lambda rng: draw(rng, *worlds, **options)


def tasks(number: int, world: Callable[[int], World], **options: Any) -> Draw:
    """Return tasks whose worlds depend on their number."""
    return of(*(world(task) for task in range(number)), **options)


def mmlu(world: Callable[[int, int], World], **options: Any) -> Draw:
    """Return tasks of the sizes of MMLU; `world` gets the size and the number of each."""
    return of(*(world(size, task) for task, size in enumerate(MMLU)), **options)


def once(
    world: str, draw_items: Draw, *, least: float = 0.0, decides: bool = True, **design: Any
) -> Row:
    """Return a row of comparisons.

    Args:
        world: what is simulated.
        draw_items: draws the items.
        least: the least share in which a loss must be found.
        decides: whether so few items can decide anything.
        design: options of `measure_once`.
    """
    floors = {"found": least} if decides else {"cannot_tell": 1.0}
    return Row(world, partial(measure_once, draw_items, **design), COLUMNS, floors)


def more(world: str, measure: Callable[..., Rates], *arguments: Any, **options: Any) -> Row:
    """Return a row with another measure."""
    return Row(world, partial(measure, *arguments, **options), COLUMNS)


def control(world: str, measure: Callable[..., Rates], *arguments: Any, **options: Any) -> Row:
    """Return a row that shows what goes wrong otherwise."""
    return replace(more(f"control: {world}", measure, *arguments, **options), is_control=True)


def gate(world: str, draw_items: Draw, **design: Any) -> Row:
    """Return a row about releases."""
    return Row(f"gate: {world}", partial(measure_gate, draw_items, **design), GATE)


def exchanged(items: int) -> Draw:
    """Return sampled answers: 4 % of them are lost, and as many are gained elsewhere."""
    return of(sampled(items, 0.1, PART, gained=True))


def draw_lucky(size: int, rng: Rng) -> Items:
    """Return 60 passages of 10 and a large one, each of which one throw of the dice answers."""
    items = draw(rng, sampled(600 + size, cluster=10), mood=1.0)
    cluster = np.minimum(np.arange(600 + size) // 10, 60)
    p = np.where(cluster == 60, 0.5, items.p)
    return replace(items, p=p, q=p, cluster=cluster)


def draw_apart(passages: int, size: int, lost: float, gained: float, rng: Rng) -> Items:
    """Return passages that are lost as a whole, with gains of single items."""
    items = draw(rng, open_items(passages * size, lost, cluster=size))
    turned = (items.p == 0) & (rng.random(items.p.size) < gained / 0.3)
    world = replace(items.worlds[0], net=lost - gained)
    return replace(items, q=np.where(turned, 1.0, items.q), worlds=(world,))


def draw_twice(world: World, rng: Rng) -> Items:
    """Return two tasks with the same questions and answers: equal content is one cluster."""
    items, half = draw(rng, world, world), world.items
    p, q = np.tile(items.p[:half], 2), np.tile(items.q[:half], 2)
    return replace(items, p=p, q=q, cluster=np.tile(np.arange(half), 2), mood=1.0)


PART = 0.63
"""Part of p that sampled items lose: with 10 % of them, 4 % of all answers."""
UNEVEN = (20, 30, 40, 60, 80, 100, 150, 200, 400, 800, 1200, 2000)
RULED_OUT = (Class(0.6, 1.0, 1.0), Class(0.4, 0.5, 0.5))
NOISY = (Class(0.7, 1.0, 1.0), Class(0.3, 0.5, 0.5))
REFUSES = (Class(0.6, 1.0, 1.0), Class(0.12, 0.25, 0.0), Class(0.28, 0.25, 0.25))
PARTLY = (Class(0.4, 1.0, 1.0), Class(0.2, 0.9, 0.6), Class(0.1, 0.5, 0.8), Class(0.3, 0.5, 0.5))
SLIGHTLY = (Class(0.5, 1.0, 1.0), Class(0.1, 0.7, 0.5), Class(0.1, 0.5, 0.6), Class(0.3, 0.5, 0.5))
SAME, MARGINAL = of(sampled(500)), of(open_items(3000, MARGIN))
EXCHANGED = exchanged(1000)
PAIR = (("same model, n = 500", SAME), ("4% lost and 4% gained, n = 1000", EXCHANGED))
SHARING = tasks(20, lambda _: sampled(200, cluster=10), mood=1.0)
CHAIN = of(choices(1000, 0.04, 0.04))
LOOKS: tuple[tuple[str, Callable[..., Rates], Draw], ...] = (
    ("12 looks at new runs of the same model, n = 500", measure_looks, SAME),
    ("12 looks, 250 more items each, loss at the margin",
     partial(measure_looks, growing=True), MARGINAL),
    ("12 looks, each with fresh answers to the flips, n = 500", measure_confirmations, SAME),
    ("best of 20 checkpoints, all at the margin, n = 3000", measure_best, of(open_items(3000))),
)  # fmt: skip

# fmt: off
SINGLE = (
    *(once(f"argmax of noisy logits (IRT), nothing changed, n = {n}", of(latent_trait(n)))
      for n in (300, 3000)),
    *(once(f"two of four options ruled out, guesses redrawn, n = {n}", of(mix(n, *RULED_OUT)))
      for n in (300, 3000)),
    *(once(f"batch noise 1.5% one way, {lost:.0%} lost, n = {n}",
           of(open_items(n, lost, flips=0.015))) for n in (500, 4241) for lost in (0.0, 0.03)),
    *(once(f"k = {k}, guesses redrawn, {lost:.0%} lost, n = 3000", of(choices(3000, lost, k=k)))
      for k in (2, 4) for lost in (0.03, 0.04)),
    *(once(f"k = {k}, guesses frozen, 4% of knowledge lost, n = 3000",
           of(frozen_guesses(3000, 0.04, k=k))) for k in (2, 4)),
    once("frozen guesses, no knowledge lost, n = 1000", of(frozen_guesses(1000))),
    once("k = 2, habit moves from A to B, n = 2000", of(moved_habit(2000))),
    *(once(f"sampled once at T = 0.7, nothing changed, n = {n}", of(sampled(n)))
      for n in (300, 2000)),
    *(once(f"sampled once, 4% lost, n = {n}", of(sampled(n, 0.1, PART))) for n in (300, 2000)),
    *(once(f"sampled once, 4% lost and 4% gained, n = {n}", exchanged(n)) for n in (300, 2000)),
    *(once(f"open, {lost:.0%} lost, n = {n}", of(open_items(n, lost)))
      for lost, n in ((0.05, 300), (0.02, 2000), (0.02, 8000), (0.01, 8000), (0.0, 3000))),
    once("open, 10% gained, nothing lost, n = 1000", of(open_items(1000, 0.0, 0.1))),
    once("open, 5% lost and 5% gained, n = 1000", of(open_items(1000, 0.05, 0.05))),
    *(once(f"drop at the margin: 6% lost, 4% gained, n = {n}", of(open_items(n, 0.06, 0.04)))
      for n in (300, 3000)),
    *(once(f"open, 10% lost, n = {n}", of(open_items(n, 0.1))) for n in (5, 10, 20)),
    *(once(f"too few items: open, nothing lost, n = {n}", of(open_items(n)), decides=False)
      for n in (10, 60, 150)),
)
CLUSTERS = (
    *(once(f"clusters: 60 passages of 5, open, {lost:.0%} lost as a whole",
           of(open_items(300, lost, cluster=5)), decides=lost > 0) for lost in (0.0, 0.02, 0.05)),
    *(once(f"clusters: 60 passages of 5, k = 4, {lost:.0%} lost",
           of(choices(300, lost, known=0.8, cluster=5))) for lost in (0.02, 0.05)),
    *(once(f"clusters: {groups} passages of {size}, noise .5% one way, {lost:.0%} lost",
           of(open_items(size * groups, lost, flips=0.005, cluster=size, tied=0.8)))
      for size, groups in ((12, 120), (25, 12), (10, 400)) for lost in (0.0, 0.02, 0.04)),
    once("clusters: 120 passages of 12 share run noise", of(sampled(1440, cluster=12), mood=0.7)),
    *(once(f"clusters: nothing lost, a lucky passage of {size} beside 60 of 10",
           partial(draw_lucky, size)) for size in (100, 190)),
    *(once(f"clusters: {passages} passages of {size}, {lost:.1%} lost as a whole, "
           f"{gained:.1%} gained singly", partial(draw_apart, passages, size, lost, gained))
      for passages, size, lost, gained in ((60, 20, 0.05, 0.03), (120, 12, 0.03, 0.01))),
    *(once(f"clusters: 3,000 single items and {passages} passages of {size}, "
           f"8.7% of passages and {lost:.0%} of items lost",
           of(open_items(3000, lost, known=0.99),
              open_items(passages * size, 0.087, known=0.99, cluster=size)))
      for passages, size, lost in ((12, 75, 0.0), (30, 30, 0.0), (30, 30, 0.01))),
    once("clusters: 10 passages of 100, each lost with .2, beside 7,415 items, 30% coin flips",
         of(open_items(1000, 0.2, known=1.0, cluster=100), mix(7415, *NOISY))),
    once("clusters: 1,500 single items, 200 passages of 5, 25 of 40, 2% of each lost",
         of(open_items(1500, 0.02), open_items(1000, 0.02, cluster=5),
            open_items(1000, 0.02, cluster=40))),
)
TASKS = (
    *(once(f"tasks: 57 of MMLU's sizes, k = 4, {lost:.0%} lost",
           mmlu(lambda n, _, lost=lost: choices(n, lost)), least=0.95 * (lost > 0))  # type: ignore[misc]
      for lost in (0.0, 0.03)),
    once("tasks: 57 of MMLU's sizes, passages of 10, 2% lost as a whole",
         mmlu(lambda n, _: open_items(n, 0.02, flips=0.005, cluster=10))),
    once("tasks: macro of 57 of MMLU's sizes, 2% lost",
         mmlu(lambda n, _: choices(n, 0.02), is_macro=True)),
    *(once(f"tasks: macro of 12 of 20 to 2,000 items, {lost:.0%} lost",
           of(*(open_items(n, lost, flips=0.005) for n in UNEVEN), is_macro=True))
      for lost in (0.0, 0.02, 0.04)),
    once("tasks: macro of 12, 20% lost in the smallest",
         of(*(open_items(n, 0.2 * (n == 20)) for n in UNEVEN), is_macro=True)),
    once("tasks: macro of 12 of 20 to 2,000 items, passages of 10 share run noise",
         of(*(sampled(n, cluster=10) for n in UNEVEN), mood=0.5, is_macro=True)),
    *(once(f"tasks: macro of three of 800 and one of {passages} passages of 20, "
           f"{lost:.0%} of them lost",
           of(*[open_items(800, flips=0.005)] * 3,
              open_items(20 * passages, lost, known=0.99, cluster=20), is_macro=True))
      for passages in (2, 10, 20) for lost in (0.0, 0.08)),
    once("tasks: exchange between 20, 8% lost in ten, 8% gained in ten",
         tasks(20, lambda t: open_items(200, 0.08 * (t < 10), 0.08 * (t >= 10))), least=0.95),
    once("tasks: exchange within 20, 4% lost and 4% gained",
         tasks(20, lambda _: open_items(200, 0.04, 0.04))),
    once("tasks: 20 of 200, sampled once, nothing changed", tasks(20, lambda _: sampled(200))),
    once("tasks: 20 of 200, passages of 10 share run noise", SHARING),
    once("tasks: 20 of 200, passages of 10 across tasks share run noise",
         tasks(20, lambda _: sampled(200), mood=1.0, across=10)),
    control("halves by item where passages of 10 share run noise", measure_once, SHARING,
            by_item=True),
    once("tasks: 8 of two passages of 25 that share run noise",
         tasks(8, lambda _: sampled(50, cluster=25), mood=1.0)),
    once("tasks: the same 300 questions in two, 2% lost",
         partial(draw_twice, open_items(300, 0.02))),
    *(replace(more(f"tasks: 30% of unknown items refused in {number} of 20", measure_refusals,
                   tasks(20, lambda t, number=number: mix(200, *(  # type: ignore[misc]
                       REFUSES if t < number else RULED_OUT[:1])))),
              others={"false_knows": 0.03}) for number in (10, 20)),
)
FAMILIES = tuple(
    replace(more(f"family: {world}", measure_family, items, **design),
            shown=COLUMNS | {"false_lost": 0.05})
    for world, items, design in (
        ("57 of MMLU's sizes, k = 4, nothing lost", mmlu(lambda n, _: choices(n)), {}),
        ("57 of MMLU's sizes, k = 4, 10% lost in 9",
         mmlu(lambda n, t: choices(n, 0.1 * (t % 7 == 0))), {}),
        ("57 of MMLU's sizes, noise 1% one way, 5% lost in 28",
         mmlu(lambda n, t: open_items(n, 0.05 * (t % 2), flips=0.01)), {}),
        ("57 of 20 passages of 5, 30% lost in 10",
         tasks(57, lambda t: open_items(100, 0.3 * (t < 10), flips=0.01, cluster=5)), {}),
        ("57 of 20 passages of 5 that share run noise",
         tasks(57, lambda _: sampled(100, cluster=5), mood=0.5), {}),
        ("57 of 100, 3 repeats, 25% lost in 10",
         tasks(57, lambda t: sampled(100, 0.4 * (t < 10))), {"before": 3, "after": 3}),
    )
)
REPEATS = (
    *(once(f"repeats: {r}, same model, n = {n}", of(sampled(n)), before=r, after=r)
      for n, r in ((40, 2), (100, 3), (500, 2), (500, 3))),
    *(once(f"repeats: {r}, 4% lost and 4% gained, n = 1000", EXCHANGED, before=r, after=r)
      for r in (2, 3, 8)),
    *(once(f"repeats: 3, k = 2, partial changes, {lost} lost, n = {n}", of(mix(n, *classes)),
           before=3, after=3)
      for n, lost, classes in ((500, "6%", PARTLY), (2000, "2%", SLIGHTLY))),
    *(once(f"repeats: 3 only {side}, {world}", items, before=before, after=after)
      for side, before, after in (("before", 3, 1), ("after", 1, 3))
      for world, items in PAIR),
    once("repeats: 1 to 5 by item, same model, n = 500", SAME, before=(1, 5), after=(1, 5)),
    once("repeats: 1 to 5 by item, 4% lost, n = 500", of(sampled(500, 0.1, PART)),
         before=(1, 5), after=(1, 5)),
    once("repeats: 2 to 6 by item, 4% lost and 4% gained, n = 1000", EXCHANGED,
         before=(2, 6), after=(2, 6)),
    *(once(f"repeats: 2, {groups} passages of {size}, {lost:.0%} lost",
           of(mix(groups * size, Class(0.5 - lost, 1.0, 1.0), Class(lost, 1.0, 0.0),
                  Class(0.2, 0.5, 0.5), cluster=size)), before=2, after=2)
      for groups, size in ((60, 5), (30, 20)) for lost in (0.0, 0.05)),
    *(once(f"repeats: 2, {groups} passages of {size}, {lost:.1%} lost as a whole",
           of(open_items(groups * size, lost, cluster=size)), before=2, after=2)
      for groups, size, lost in ((200, 50, 0.017), (140, 100, 0.02))),
    once("repeats: 2, 60 passages of 10 share run noise",
         of(sampled(600, cluster=10), mood=0.7), before=2, after=2),
    once("repeats: 2, 20 tasks of 100, passages of 5 share run noise",
         tasks(20, lambda _: sampled(100, cluster=5), mood=0.7), before=2, after=2),
    once("repeats: copies, as one answer, n = 500", SAME),
    *(control(f"copies of {copied:.0%} of items as 3 answers", measure_copies, SAME, copied=copied)
      for copied in (1.0, 0.25)),
)
CONFIRMED = (
    *(more(f"selected: items that the run before has right, flips asked again, {world}",
           measure_selected, items) for world, items in PAIR),
    control("items that the run before has right, by its first answers, same model, n = 500",
            measure_selected, SAME, is_known=False),
    *(once(f"confirm: {part:.0%} of the flips, {fresh} fresh, {world}", items,
           confirm=part, fresh=fresh)
      for part, fresh in ((1.0, 1), (1.0, 3), (0.5, 1), (0.2, 1)) for world, items in PAIR),
    *(once(f"confirm: all, {world}", items, confirm=1.0, least=least)
      for world, items, least in (
        ("batch noise 1.5% one way, n = 4241", of(open_items(4241, flips=0.015)), 0.0),
        ("frozen guesses, no knowledge lost, n = 1000", of(frozen_guesses(1000)), 0.95),
        ("two of four options ruled out, n = 1000", of(mix(1000, *RULED_OUT)), 0.0),
        ("60 passages of 10 share run noise", of(sampled(600, cluster=10), mood=0.7), 0.0),
        ("57 tasks of MMLU's sizes, 3% lost and 3% gained",
         mmlu(lambda n, _: choices(n, 0.03, 0.03)), 0.95))),
    *(replace(more(f"confirm: only if undecided, {world}", measure_after_undecided, items),
              shown=COLUMNS | {"false_lost": 0.035})
      for world, items in PAIR),
)
SEVERAL = (
    *(more(f"looks: {world}", measure, items) for world, measure, items in LOOKS),
    *(control(f"one level for {world}", measure, items, spend=False)
      for world, measure, items in LOOKS),
    more("chain: 5 stages, sampled, nothing changed, n = 500", measure_chain, SAME, stages=5),
    replace(more("chain: 3 stages, 4% lost and 4% gained, n = 1000", measure_chain, CHAIN),
            least={"found": 0.5}),
    control("the same chain without the stage before", measure_chain, CHAIN, with_stage=False),
    *(replace(more(f"plan: as many items as recommended, {name}", measure_plan, world),
              least={"decided": 0.75})
      for name, world in (
        ("open, 4% lost", partial(open_items, lost=0.04)),
        ("k = 4, 4% lost", partial(choices, lost=0.04)),
        ("sampled once, 4% lost", partial(sampled, hit=0.1, by=PART)),
        ("sampled once, nothing changed", sampled),
        ("batch noise 1.5% one way", partial(open_items, flips=0.015)))),
)
RELEASES = (
    *(gate(f"same model at T = 0.7, n = {n}, accept {accept}", of(sampled(n)), accept=accept)
      for n in (500, 5000) for accept in ("items", "net")),
    gate("same model, 3 repeats, n = 1000", of(sampled(1000)), before=3, after=3),
    gate("same model, 2 repeats, 60 passages of 10 share run noise",
         of(sampled(600, cluster=10), mood=0.7), before=2, after=2),
    gate("same model, batch noise .5% one way, n = 4000", of(open_items(4000, flips=0.005))),
    *(gate(f"loss {name}, {world}, accept {accept}", items, accept=accept)
      for name, lost in (("at the margin", MARGIN), ("2 points above it", MARGIN + 0.02))
      for world, items in (
        ("open, n = 3000", of(open_items(3000, lost))),
        ("k = 4, n = 5000", of(choices(5000, lost))),
        ("sampled once, n = 3000", of(sampled(3000, lost / PART * 11 / 7, PART))),
        ("200 passages of 12", of(open_items(2400, lost, cluster=12))),
        ("57 tasks of MMLU's sizes", mmlu(lambda n, _, lost=lost: open_items(n, lost))))  # type: ignore[misc]
      for accept in ("items", "net")),
    *(gate(f"loss {name}, 3 repeats, n = 1000", of(sampled(1000, lost / PART * 11 / 7, PART)),
           before=3, after=3)
      for name, lost in (("at the margin", MARGIN), ("2 points above it", MARGIN + 0.02))),
    *(gate(f"{lost:.0%} lost, 4% gained, n = 3000, accept net", of(open_items(3000, lost, 0.04)),
           accept="net") for lost in (0.06, 0.04)),
)
# fmt: on
ROWS: tuple[Row, ...] = (
    *SINGLE,
    *CLUSTERS,
    *TASKS,
    *FAMILIES,
    *REPEATS,
    *CONFIRMED,
    *SEVERAL,
    *RELEASES,
)  # fmt: skip


def run_job(job: Job) -> Tally:
    """Simulate some data sets of a row."""
    return simulate(ROWS[job.row], job)


if __name__ == "__main__":
    sys.exit(main(ROWS, run_job, __doc__, SECTION, ABOUT))
