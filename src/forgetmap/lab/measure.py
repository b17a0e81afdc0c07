"""Item-by-item evaluation of a trained model, and its divergence from the start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import torch

from forgetmap.comparison import CORRECT_AT
from forgetmap.evaluation import Suite, evaluate
from forgetmap.lab.recipe import LabRecipe, Row
from forgetmap.lab.result import Divergences, LabCell
from forgetmap.records import read_run
from forgetmap.train import (
    StartDistributions,
    TokenExample,
    device_of,
    predict_batches,
    read_examples,
)


def lab_suite(recipe: LabRecipe) -> Suite:
    """Return near and far questions as one suite."""
    return Suite(f"{recipe.name}-lab", (*recipe.near.tasks, *recipe.far.tasks))


def run_items(recipe: LabRecipe, model: Any, tokenizer: Any, out: Path) -> Path:
    """Evaluate a model on all near and far questions; resume an earlier attempt."""
    return evaluate(model, lab_suite(recipe), out, tokenizer=tokenizer, settings=recipe.settings)


def right_items(run: Path) -> dict[tuple[str, str], bool]:
    """Whether each item of a run is right, by task and id; items without a score are left out."""
    scores = nw.from_native(read_run(run, check_texts=False).scores)
    rows = scores.select("task", "item", "score").collect().iter_rows()
    return {(task, item): score >= CORRECT_AT for task, item, score in rows if score is not None}


def count_cells(recipe: LabRecipe, start: Path, after: Path) -> list[LabCell]:
    """Return the four counts of each part and category, from two runs on the same questions.

    Args:
        recipe: start model, data and settings.
        start: run of the start model.
        after: run of the trained model; an item without an answer is missing, not wrong.
    """
    places = {
        task.name: (part, task.category or "")
        for part, suite in (("near", recipe.near), ("far", recipe.far))
        for task in suite.tasks
    }
    before, now = right_items(start), right_items(after)
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for key, was_right in before.items():
        if key not in now:
            continue
        facts = (True, was_right, was_right and not now[key], not was_right and now[key])
        cell = counts[places[key[0]]]
        for index, fact in enumerate(facts):
            cell[index] += fact
    return [
        LabCell(
            part=part, category=category, items=items, known=known, forgotten=forgotten,
            gained=gained,
        )
        for (part, category), (items, known, forgotten, gained) in sorted(counts.items())
    ]  # fmt: skip


class StartDivergence:
    """KL between a start model and models trained from it."""

    def __init__(self, model: Any, rows: Sequence[Row], tokenizer: Any) -> None:
        self.examples: list[TokenExample] = read_examples(rows, tokenizer, eos=False)
        self.start = StartDistributions.of(model, self.examples, device_of(model))

    def measure(self, model: Any) -> tuple[float, float]:
        """Return forward and reverse KL per answer token."""
        sums = torch.zeros(2, dtype=torch.float64)
        positions = 0
        for chosen, logits in predict_batches(model, self.examples):
            sums[0] += self.start.divergence(logits, chosen, "forward").sum().double()
            sums[1] += self.start.divergence(logits, chosen, "reverse").sum().double()
            positions += len(logits)
        forward, reverse = (sums / positions).tolist()
        return forward, reverse


def divergences(old: StartDivergence, new: StartDivergence, model: Any) -> Divergences:
    """Return KL on old questions and on new examples."""
    old_forward, old_reverse = old.measure(model)
    new_forward, new_reverse = new.measure(model)
    return Divergences(
        old_forward=old_forward, old_reverse=old_reverse,
        new_forward=new_forward, new_reverse=new_reverse,
    )  # fmt: skip
