"""Is a model compared with itself found to have lost nothing?

    make demo && .venv/bin/python benchmarks/fairness.py --runs 1000

The model of the demo answers 300 open-ended items of `world` at temperature 1, twice as the model
before and twice as the model after, repeatedly with other seeds: how often does the interval of
`excess` contain 0?
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.progress import track

from forgetmap.comparison.repeated import ItemCounts, ItemSums, excess, noise_floor
from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.base import Backend, Failure, Prompt
from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.jobs import Job, make_jobs
from forgetmap.evaluation.prompts import full_response
from forgetmap.evaluation.settings import ResolvedSettings, Settings, resolve
from forgetmap.evaluation.suites.catalogue import load_suite
from forgetmap.scoring.grading import grade_response

ROOT = Path(__file__).parent.parent
ITEMS, REPEATS = 300, 2
TOGETHER = 5
"""Comparisons sampled in one call; samples do not depend on their batch."""

Asked = tuple[int, str, Job]
"""Number of the comparison, side, job."""


def make_asked(
    backend: Backend, suite: Suite, resolved: ResolvedSettings, numbers: range
) -> list[Asked]:
    """Return the jobs of several comparisons; each side has its own random numbers."""
    return [
        (number, side, job)
        for number in numbers
        for side in ("before", "after")
        for job in make_jobs(suite, resolved, backend, f"{number} {side}")[: ITEMS * REPEATS]
    ]


def count_right(
    backend: Backend, asked: Sequence[Asked], resolved: ResolvedSettings
) -> Counter[tuple[int, str, str, str]]:
    """Count how often each side of each comparison was right on each item."""
    right: Counter[tuple[int, str, str, str]] = Counter()
    prompts = [Prompt(job.prompt, job.seed) for _, _, job in asked]
    for place, response in backend.generate(prompts, resolved.decoding):
        number, side, job = asked[place]
        if isinstance(response, Failure):
            raise SystemExit(f"{job.key}: {response}")
        verdict = grade_response(
            full_response(response.text, resolved),
            gold=job.item.gold,
            kind=job.task.kind,
            also_right=job.item.also_right,
            finish_reason=response.finish_reason,
        )
        right[number, side, job.task.name, job.item.id] += int(verdict.score or 0)
    return right


def item_sums(
    number: int, asked: Sequence[Asked], right: Counter[tuple[int, str, str, str]]
) -> ItemSums:
    """Return the counts of `compare` for one comparison."""
    counts: Counter[ItemCounts] = Counter()
    for task, item in {(job.task.name, job.item.id) for _, _, job in asked}:
        before, after = (right[number, side, task, item] for side in ("before", "after"))
        wrong = REPEATS - before, REPEATS - after
        counts[ItemCounts(math.inf, before, 0, 0, wrong[0], after, 0, 0, wrong[1], 0, 0, 0)] += 1
    return ItemSums(dict(counts))


def main() -> None:
    """Sample, count, and print how many intervals contain 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(ROOT / "demo" / "models" / "before"))
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    backend, _ = open_model(options.model)
    tasks = tuple(task for task in load_suite("world").tasks if task.kind == "text")
    resolved = resolve(Settings(temperature=1.0, repeats=REPEATS, max_new_tokens=8), backend)
    inside, floors = 0, []
    for first in track(range(0, options.runs, TOGETHER), description="sampling"):
        numbers = range(first, min(first + TOGETHER, options.runs))
        asked = make_asked(backend, Suite("world", tasks), resolved, numbers)
        right = count_right(backend, asked, resolved)
        for number in numbers:
            sums = item_sums(number, asked, right)
            interval = excess(sums)
            inside += bool(interval is not None and interval.contains(0.0))
            floors.append(noise_floor(sums, "before") or 0.0)
    share = inside / options.runs
    print(f"noise floor {sum(floors) / len(floors):.3f} of {ITEMS} items")
    print(f"{inside:,} of {options.runs:,} intervals of excess contain 0: {share:.3f}")


if __name__ == "__main__":
    main()
