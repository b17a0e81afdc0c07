"""Every estimator on the same simulated data, whose truth is known: docs/estimators.md."""

from __future__ import annotations

from dataclasses import dataclass, replace

import forgetmap as fm
from forgetmap.comparison import all_estimators, estimator_table, sentence
from forgetmap.results import Estimate
from forgetmap.simulation.answers import Habits
from forgetmap.text import percent

ITEMS = 3000
SEED = 11


@dataclass(frozen=True)
class Scene:
    """A simulation: losses, and how the models answer."""

    title: str
    task: fm.SimulatedTask
    habits: Habits
    repeats: int = 1


TASK = fm.SimulatedTask("t", items=ITEMS, k=4, known=0.6, lost=0.08, gained=0.05)
UNCHANGED = replace(TASK, lost=0.0, gained=0.0)
FIRST = (0.55, 0.2, 0.15, 0.1)
HALF_KNOWN = Habits(persistence=0.0, mastery=0.8)
SCENES = (
    Scene("one run, guesses redrawn", TASK, Habits(persistence=0.0)),
    Scene("one run, half of the guesses repeated", TASK, Habits(persistence=0.5)),
    Scene("one greedy run, all guesses repeated", TASK, Habits(persistence=1.0)),
    Scene("the same model, greedy", UNCHANGED, Habits(persistence=1.0)),
    Scene(
        "nothing lost, letter habit moves",
        UNCHANGED,
        Habits(persistence=0.0, letter_bias=FIRST, moved_bias=FIRST[::-1]),
    ),
    Scene("two options", replace(TASK, k=2), Habits(persistence=0.5)),
    Scene("open-ended", replace(TASK, k=None), Habits()),
    Scene("sampled, asked 4 times", TASK, HALF_KNOWN, 4),
    Scene("the same model, sampled, asked 4 times", UNCHANGED, HALF_KNOWN, 4),
    Scene("the same model, sampled, asked once", UNCHANGED, HALF_KNOWN),
)  # fmt: skip


def side_by_side_page() -> str:
    """Return the page."""
    rows = [_row(scene) for scene in SCENES]
    heads = (
        "what happened",
        "truth: lost",
        *(row.name for row in all_estimators()),
        "noise floor",
    )
    table = [
        "| " + " | ".join(heads) + " |",
        "|---" * len(heads) + "|",
        *("| " + " | ".join(cells) + " |" for cells, _ in rows),
    ]
    words = [f"- **{scene.title}**: {said}." for scene, (_, said) in zip(SCENES, rows, strict=True)]
    return "\n".join([_HEAD, estimator_table(), _SIDE_BY_SIDE, *table, _BELOW, *words, ""])


def _row(scene: Scene) -> tuple[list[str], str]:
    simulation = fm.simulate([scene.task], seed=SEED, repeats=scene.repeats, habits=scene.habits)
    total = fm.compare(simulation.before, simulation.after).result.total
    classes = simulation.truth["class"].to_pylist()
    lost = classes.count("lost") / len(classes)
    shown = [_shown(total.estimators[row.name].forgetting) for row in all_estimators()]
    floor = percent(total.noise_floor.value)
    return [scene.title, percent(lost), *shown, floor], sentence(total)


def _shown(estimate: Estimate) -> str:
    if estimate.value is None:
        return "-"
    if estimate.low is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({percent(estimate.low)} to {percent(estimate.high)})"


_HEAD = """# The estimators

Three numbers decide ([Verdicts](verdicts.md)): flips, the drop in accuracy, and leave-one-out
flips. The others are shown beside them with `--details`. They are about knowledge, and hold if
guesses are blind, which one run cannot check. `--estimator matched` adds its lower limit to the
others; the sentence then begins with "If guesses are blind".

k is the number of options of an item, c = k/(k-1); P[1→w] is the share of pairs of answers that are
right before and wrong after, P[w→0] that of a wrong answer before and none after; p_b and p_a are
the shares of right answers to an item. For gains exchange before and after. `published` is the
chance adjustment of Harmon et al. (2026): max(F - C, 0), C = (1-a)(1-b)/(k-1), a and b the
accuracies; it is not 0 if nothing is lost. A package adds a row of its own under the entry point
`forgetmap.estimators`: see [`examples/plugins/estimator`](../examples/plugins/estimator).
"""
_SIDE_BY_SIDE = f"""
## All of them on the same data

The same {ITEMS:,} simulated items in every row, except that the models behave differently. `truth:
lost` is the share of all items known before and not after. Every other number is what an
estimator makes of the answers alone, as a share of all items, with its 95 % interval. 60 % of the
items are known before.
"""
_BELOW = """
What `compare` says of each:
"""
