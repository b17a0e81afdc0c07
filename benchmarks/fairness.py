"""Is a model compared with itself found to have lost nothing?

    make demo && .venv/bin/python benchmarks/fairness.py --runs 1000

The model of the demo answers 300 open-ended items of `world` at temperature 1, twice as the model
before and twice as the model after, repeatedly with other seeds: how often is a loss claimed?
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.progress import track

from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.base import Backend, Failure, Prompt
from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.jobs import Job, make_jobs
from forgetmap.evaluation.prompts import full_response
from forgetmap.evaluation.settings import ResolvedSettings, Settings, resolve
from forgetmap.evaluation.suites.catalogue import load_suite
from forgetmap.scoring.grading import grade_response
from forgetmap.stats.limits import ItemSample, PairedAnswers
from forgetmap.stats.verdicts import decide, measure_limits, offered_bounds

ROOT = Path(__file__).parent.parent
ITEMS, REPEATS = 300, 2
MARGIN, ALPHA = 0.02, 0.025
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


def count_answers(
    number: int, asked: Sequence[Asked], right: Counter[tuple[int, str, str, str]]
) -> PairedAnswers:
    """Return the answers of one comparison."""
    keys = sorted({(job.task.name, job.item.id) for _, _, job in asked})
    before, after = (
        np.array([right[number, side, *key] for key in keys], float) for side in ("before", "after")
    )
    repeats = np.full(len(keys), float(REPEATS))
    return PairedAnswers(before, repeats, after, repeats, ItemSample(np.ones(len(keys))))


def main() -> None:
    """ItemSample, count, and print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(ROOT / "demo" / "models" / "start"))
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    backend, _ = open_model(options.model)
    tasks = tuple(task for task in load_suite("world").tasks if task.kind == "text")
    resolved = resolve(Settings(temperature=1.0, repeats=REPEATS, max_new_tokens=8), backend)
    verdicts: Counter[str] = Counter()
    for first in track(range(0, options.runs, TOGETHER), description="sampling"):
        numbers = range(first, min(first + TOGETHER, options.runs))
        asked = make_asked(backend, Suite("world", tasks), resolved, numbers)
        right = count_right(backend, asked, resolved)
        for number in numbers:
            answers = count_answers(number, asked, right)
            limits = measure_limits(answers, offered_bounds(answers), ALPHA)
            verdicts[decide(limits, MARGIN)] += 1
    for verdict, count in verdicts.most_common():
        print(f"{verdict}: {count:,} of {options.runs:,}, {count / options.runs:.3f}")


if __name__ == "__main__":
    main()
