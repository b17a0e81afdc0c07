"""Contradictions: what a log states about its results, and the results do not confirm.

Totals that differ beyond rounding, verdicts that belong to no result, or one question for all
prompts show that a log was misread, mixed up or cut. Nothing is concluded from such results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw

from forgetmap.pairing import Measure, Side
from forgetmap.records import Contradiction
from forgetmap.results import Notice
from forgetmap.text import counted

ONE_QUESTION = "one_question"
"""Code of the notice for a task with one question for all its prompts."""
MIN_PROMPTS = 3
"""Minimum number of different prompts with one question. Two may be one question that occurs
twice, after different examples."""
_COLUMNS = ("item", "question_hash", "options_hash", "prompt_hash")


def contradictions(before: Side, after: Side, *more: Side) -> list[Notice]:
    """Return what contradicts the scores that are compared: those of the tasks of both sides.

    Args:
        before: the model before.
        after: the model after.
        more: further runs of the two models.
    """
    tasks = before.measured.measures.keys() & after.measured.measures.keys()
    return [notice for side in (before, after, *more) for notice in _of_side(side, tasks)]


def first_contradiction(found: Sequence[Notice]) -> str:
    """Return the first contradiction and the number of the others, without a full stop."""
    first, *more = found
    others = f" (and {counted(len(more), 'further contradiction')})" if more else ""
    return f"{first.message.removesuffix('.')}{others}"


def _of_side(side: Side, tasks: Collection[str]) -> Iterator[Notice]:
    measures = {task: one for task, one in side.measured.measures.items() if task in tasks}
    for fact in side.run.contradictions:
        if fact.task in measures and _contradicts(fact, measures[fact.task]):
            yield Notice(fact.kind, f"{side.run.name}: {fact.message}")
    for task, prompts in _one_question(side, measures).items():
        message = f"{task}: {prompts:,} different prompts, but the same question in all of them."
        yield Notice(ONE_QUESTION, f"{side.run.name}: {message}")


def _contradicts(fact: Contradiction, measure: Measure) -> bool:
    """Whether a fact is about this measure, and has no other explanation."""
    return (
        fact.metric in (None, measure.metric)
        and fact.scorer in (None, measure.scorer)
        and not fact.is_own_grading
        and not fact.is_explained
    )


def _one_question(side: Side, tasks: Collection[str]) -> dict[str, int]:
    """Return the tasks in which all items have one question, with the number of their prompts."""
    recorded, scores = side.measured.recorded, side.measured.scores
    asked = [t for t in tasks if recorded[t].get("question_hash") == recorded[t]["rows"]]
    columns = [name for name in _COLUMNS if name in side.run.columns]
    if not asked or not {"question_hash", "prompt_hash"} <= set(columns):
        return {}
    rows = scores.filter(nw.col("task").is_in(asked)).group_by("task")
    # The ends of hashes tell whether they are all equal, which is cheaper than to count them.
    ends = {f"{name}_low": nw.col(name).min() for name in columns}
    ends |= {f"{name}_high": nw.col(name).max() for name in columns}
    found = rows.agg(**ends).collect().rows(named=True)
    suspects = [row["task"] for row in found if _has_one_question(row)]
    if not suspects:
        return {}
    counts = scores.filter(nw.col("task").is_in(suspects)).group_by("task")
    prompts = counts.agg(n=nw.col("prompt_hash").n_unique()).collect().rows(named=True)
    return dict(sorted((row["task"], row["n"]) for row in prompts if row["n"] >= MIN_PROMPTS))


def _has_one_question(ends: Mapping[str, Any]) -> bool:
    """Whether items differ in their prompts, but in none of question and options."""
    same = {name: ends.get(f"{name}_low") == ends.get(f"{name}_high") for name in _COLUMNS}
    is_told_apart = not same["question_hash"] or not same["options_hash"]
    return not is_told_apart and not same["item"] and not same["prompt_hash"]
