"""The public function `simulate`: two runs and the truth behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa

from forgetmap.errors import UsageError
from forgetmap.records import FAILED, HarnessInfo, ModelInfo, Outcome, Run, RunInfo, build_run
from forgetmap.simulation.answers import (
    CLASSES,
    LOST,
    Answers,
    Habits,
    Ints,
    answer_again,
    answer_items,
    draw_classes,
)

MOST_OPTIONS = 26
"""Maximum number of options: the number of letters."""


@dataclass(frozen=True, slots=True)
class SimulatedTask:
    """A simulated task: number of items and options, and what happens to the knowledge.

    Attributes:
        name: name of the task.
        items: number of items.
        k: number of options; None for open-ended items.
        known: share of items known before.
        lost: share of the known items that is lost.
        gained: share of the unknown items that is gained.
        category: group of the task.
    """

    name: str
    items: int = 200
    k: int | None = 4
    known: float = 0.6
    lost: float = 0.1
    gained: float = 0.1
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Simulation:
    """Two runs and the truth behind them.

    Attributes:
        before: the run before.
        after: the run after.
        truth: one row per item: task, item, its latent class, and the probability of a right
            answer of each model.
        reruns: fresh answers of both models to the same items, if wanted.
    """

    before: Run
    after: Run
    truth: pa.Table
    reruns: tuple[Run, Run] | None = None

    @property
    def loss(self) -> float:
        """The true loss: mean of max(p - q, 0) over the items."""
        return _mean_fall(self.truth["right_before"], self.truth["right_after"])

    @property
    def gain(self) -> float:
        """The true gain: mean of max(q - p, 0)."""
        return _mean_fall(self.truth["right_after"], self.truth["right_before"])


def _mean_fall(first: pa.ChunkedArray, then: pa.ChunkedArray) -> float:
    return float(np.maximum(first.to_numpy() - then.to_numpy(), 0.0).mean())


@dataclass(frozen=True, slots=True)
class _Setting:
    repeats: int
    habits: Habits
    failures: Mapping[str, float]
    seed: int


def simulate(
    tasks: Sequence[SimulatedTask],
    *,
    seed: int = 0,
    repeats: int = 1,
    habits: Habits | None = None,
    failures: Mapping[str, float] | None = None,
    reruns: bool = False,
    names: tuple[str, str] = ("simulated-base", "simulated-tuned"),
) -> Simulation:
    """Simulate two models with known forgetting that answer the same items.

    Args:
        tasks: the tasks, with what is lost and gained.
        seed: random seed; the same seed gives the same answers.
        repeats: number of answers per item and model.
        habits: guessing habits and mastery.
        failures: share of lost items with another outcome than a wrong answer, such as
            `{"no_answer": 0.1, "truncated": 0.2}`.
        reruns: both models also answer the same items once more, with fresh noise.
        names: names of the two models.
    """
    setting = _Setting(repeats, habits or Habits(), failures or {}, seed)
    _check(tasks, setting)
    columns: list[dict[str, list[Any]]] = [{} for _ in range(4 if reruns else 2)]
    truth: dict[str, list[Any]] = {name: [] for name in _TRUTH}
    for index, task in enumerate(tasks):
        rng = np.random.default_rng([seed, index])
        answers = _answer(rng, task, setting)
        failed = _failures(rng, answers.classes_S, setting)
        # Their own random numbers: the first answers are the same with and without reruns.
        noise = np.random.default_rng([seed, index, 1])
        again, (before, after) = answer_again(noise, answers, k=task.k, habits=setting.habits)
        chosen = (*answers.chosen, *again)
        for number, side in enumerate(columns):
            broken = failed if number % 2 else None
            _append(side, _rows(task, answers.gold_S, chosen[number], broken))
        after = np.where([fault is not None for fault in failed], 0.0, after)
        cells = (
            [task.name] * task.items, [f"{task.name}/{n}" for n in range(task.items)],
            [CLASSES[number] for number in answers.classes_S], before.tolist(), after.tolist(),
        )  # fmt: skip
        _append(truth, dict(zip(_TRUTH, cells, strict=True)))
    runs = [
        _run(side, name + "-rerun" * (number > 1), name, names, setting)
        for number, (side, name) in enumerate(zip(columns, names * 2, strict=False))
    ]
    return Simulation(runs[0], runs[1], pa.table(truth), (runs[2], runs[3]) if reruns else None)


_TRUTH = ("task", "item", "class", "right_before", "right_after")


def _answer(rng: np.random.Generator, task: SimulatedTask, setting: _Setting) -> Answers:
    classes = draw_classes(rng, task.items, known=task.known, lost=task.lost, gained=task.gained)
    return answer_items(rng, classes, k=task.k, repeats=setting.repeats, habits=setting.habits)


def _failures(rng: np.random.Generator, classes_s: Ints, setting: _Setting) -> list[str | None]:
    """Draw the outcome of lost items after, if it is not a wrong answer."""
    names = [None, *setting.failures]
    shares = [max(1 - sum(setting.failures.values()), 0.0), *setting.failures.values()]
    drawn = rng.choice(len(names), size=len(classes_s), p=shares)
    return [names[how] if c == LOST else None for how, c in zip(drawn, classes_s, strict=True)]


def _rows(
    task: SimulatedTask, gold_s: Ints, chosen_s_r: Ints, broken: list[str | None] | None
) -> dict[str, list[Any]]:
    """Return the columns of one task of one run, by item and repeat."""
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for number, gold in enumerate(gold_s.tolist()):
        options = [_option(task, number, letter) for letter in range(task.k)] if task.k else None
        question = f"[simulated] Question {number} of {task.name}?"
        for repeat, letter in enumerate(chosen_s_r[number].tolist()):
            fault = broken[number] if broken is not None else None
            answer = None if fault else _option(task, number, letter)
            right = letter == gold and not fault
            outcome = fault or (Outcome.CORRECT if right else Outcome.INCORRECT)
            _add_row(
                rows, task.name, f"{task.name}/{number}", repeat, float(right), str(outcome),
                task.k, task.category, _option(task, number, gold), answer,
                answer if task.k else None,
                question, options, f"Question: {question}\nAnswer:", _response(answer, fault),
            )  # fmt: skip
    return rows


_COLUMNS = (
    "task", "item", "repeat", "score", "outcome", "k", "category", "gold", "answer", "choice",
    "question", "options", "prompt", "response",
)  # fmt: skip


def _add_row(rows: dict[str, list[Any]], *cells: Any) -> None:
    for name, cell in zip(_COLUMNS, cells, strict=True):
        rows[name].append(cell)


def _option(task: SimulatedTask, number: int, letter: int) -> str:
    return f"fact {number}-{chr(97 + letter)}" if task.k else f"fact {number}-{letter}"


def _response(answer: str | None, fault: str | None) -> str:
    return {
        None: f"The answer is {answer}.",
        "refused": "I cannot help with that.",
        "truncated": "Let me think about this step by step. First",
        "degenerate": "the the the the the the the the",
        "no_answer": "That is an interesting question.",
        "misread": f"Surely {answer}, as everybody knows.",
    }[fault]


def _append(side: dict[str, list[Any]], rows: dict[str, list[Any]]) -> None:
    for name, cells in rows.items():
        side.setdefault(name, []).extend(cells)


def _run(
    side: dict[str, list[Any]], run_id: str, name: str, names: tuple[str, str], setting: _Setting
) -> Run:
    is_tuned = name == names[1]
    sampled = setting.repeats > 1 or setting.habits.mastery < 1
    info = RunInfo(
        run_id=run_id,
        model=ModelInfo(name=name),
        stage="tuned" if is_tuned else "base",
        parent=names[0] if is_tuned else None,
        harness=HarnessInfo(name="forgetmap simulator"),
        decoding={"temperature": 1.0 if sampled else 0.0},
        seeds=[setting.seed],
        simulated=True,
    )
    return build_run(side, info, run_id)


def _check(tasks: Sequence[SimulatedTask], setting: _Setting) -> None:
    for fault, hint in (*_task_faults(tasks), *_setting_faults(setting)):
        raise UsageError(fault, hint=hint)


def _task_faults(tasks: Sequence[SimulatedTask]) -> Iterator[tuple[str, str]]:
    """Return invalid values, each with a hint."""
    names = [task.name for task in tasks]
    if not tasks or len(set(names)) < len(names):
        yield "a simulation needs tasks with unique names", "rename or add tasks."
    for task in tasks:
        if task.items < 1:
            yield f"task {task.name!r} has {task.items} items", "give it 1 or more."
        if task.k is not None and not 2 <= task.k <= MOST_OPTIONS:
            yield f"k is {task.k}", f"k is 2 to {MOST_OPTIONS}, or None for open-ended items."
        shares = {name: getattr(task, name) for name in ("known", "lost", "gained")}
        yield from _share_faults(shares)


def _setting_faults(setting: _Setting) -> Iterator[tuple[str, str]]:
    habits, failures = setting.habits, setting.failures
    shares = {name: getattr(habits, name) for name in ("persistence", "mastery", "spread")}
    yield from _share_faults({**shares, **failures})
    yield from _share_faults({"the sum of all failures": round(sum(failures.values()), 9)})
    if setting.repeats < 1 or setting.seed < 0:
        yield (
            f"repeats is {setting.repeats} and seed {setting.seed}",
            "repeats is 1 or more, seed 0 or more.",
        )
    for weight in (*habits.letter_bias, *(habits.moved_bias or ())):
        if not 0 < weight < inf:
            yield f"the weight of a letter is {weight:g}", "give a positive number."
    for name in failures:
        if name not in FAILED:
            yield f"there is no failure {name!r}", f"choose from {', '.join(FAILED)}."


def _share_faults(shares: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    for name, share in shares.items():
        if not 0 <= share <= 1:
            yield f"{name} is {share:g}", "give a share between 0 and 1."
