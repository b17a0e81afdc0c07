"""Two samples of the same model show no loss: intervals contain 0 in 95 of 100 cases."""

from __future__ import annotations

import copy
import random
from functools import cache

import pyarrow as pa
import torch
from scipy import stats

import forgetmap as fm
from forgetmap.evaluation.backends.base import Backend, Failure, Prompt
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.jobs import make_jobs
from forgetmap.evaluation.prompts import full_response
from forgetmap.evaluation.settings import Settings, resolve
from forgetmap.scoring.grading import grade_response
from tiny_models import encode, sentence, tiny_model, tokenizer

COMPARISONS, ITEMS, REPEATS = 100, 40, 2
FEW = 40
"""Comparisons of what must be found at once."""
OPTIONS = ("this", "that")
DIRECTIONS = ("forgetting", "backward_transfer")


@cache
def undecided() -> Backend:
    """Says A or B and hardly anything else, each item with chances of its own."""
    model = copy.deepcopy(tiny_model("gpt2"))
    head = torch.nn.Linear(*reversed(model.lm_head.weight.shape))
    with torch.no_grad():
        head.weight.copy_(model.lm_head.weight)
        head.bias.zero_()
        for letter in "AB":
            head.bias[encode(letter)] = 20.0
    model.lm_head = head
    return TransformersBackend(model, tokenizer())


@cache
def items() -> tuple[Item, ...]:
    source = random.Random(1)
    return tuple(Item(str(n), sentence(source, 3), OPTIONS[n % 2], OPTIONS) for n in range(ITEMS))


@cache
def sampled(salt: str, comparisons: int, temperature: float = 2.0) -> pa.Table:
    """Every comparison is a task of its own; the task is part of each answer's seed."""
    tasks = tuple(Task(f"{n:03}", None, "option", items) for n in range(comparisons))
    settings = Settings(temperature=temperature, repeats=REPEATS, shots=0, max_new_tokens=1)
    resolved = resolve(settings, undecided())
    jobs = make_jobs(Suite("s", tasks), resolved, undecided(), salt)
    rows = []
    prompts = [Prompt(job.prompt, job.seed) for job in jobs]
    for place, response in undecided().generate(prompts, resolved.decoding):
        assert not isinstance(response, Failure)
        score = score_of(full_response(response.text, resolved), jobs[place].item.gold)
        task, item, repeat = jobs[place].key
        rows.append({"task": task, "item": item, "repeat": repeat, "score": score})
    return pa.Table.from_pylist(rows)


@cache
def score_of(response: str, gold: str) -> float | None:
    return grade_response(response, gold=gold, kind="option", options=OPTIONS).score


def without_a_change(before: pa.Table, after: pa.Table) -> dict[str, int]:
    """Comparisons whose interval of `excess` contains 0, in both directions."""
    tasks = fm.compare(before, after).result.tasks
    found = {
        name: [getattr(task.estimators["excess"], name) for task in tasks] for name in DIRECTIONS
    }
    return {
        name: sum(each.low <= 0 <= each.high for each in limits) for name, limits in found.items()
    }


def fewest(comparisons: int) -> float:
    """Intervals that contain 0, if 93 % do; one time in 20 there are fewer."""
    return float(stats.binom.ppf(0.05, comparisons, 0.93))


def test_a_model_compared_with_itself() -> None:
    before, after = (sampled(salt, COMPARISONS) for salt in ("before", "after"))
    many = float(stats.binom.ppf(0.95, COMPARISONS, 0.97))
    assert many < COMPARISONS
    for contained in without_a_change(before, after).values():
        assert fewest(COMPARISONS) <= contained <= many


def test_another_temperature_is_found() -> None:
    before, after = sampled("before", FEW), sampled("after", FEW, temperature=5.0)
    assert without_a_change(before, after)["forgetting"] < fewest(FEW)


def test_shared_random_numbers_are_found() -> None:
    before = sampled("before", FEW)
    assert without_a_change(before, sampled("before", FEW))["forgetting"] < fewest(FEW)
