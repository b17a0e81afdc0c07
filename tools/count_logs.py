"""Counts of logs by rules of their own, for `tools/check_truth`: nothing of forgetmap is used.

Each counter recognises one format by its files and yields pairs in the format of `truth.json`. If a
format has a single model, a log is paired with itself: then only the number of right answers
counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

Pair = dict[str, Any]
Verdicts = Mapping[Any, bool]
MIDDLE = 0.5
"""Minimum share of a scale for a right answer."""


def count_pairs(folder: Path) -> list[Pair]:
    """Return all pairs of logs below a folder whose cells can be counted here."""
    return [pair for counter in COUNTERS for pair in counter(folder)]


def cells(before: Verdicts, after: Verdicts) -> dict[str, int]:
    """Return how many are right on both sides, only before, only after, and on none."""
    both = before.keys() & after.keys()
    return {
        "n11": sum(before[key] and after[key] for key in both),
        "n10": sum(before[key] and not after[key] for key in both),
        "n01": sum(after[key] and not before[key] for key in both),
        "n00": sum(not before[key] and not after[key] for key in both),
    }


def bfcl(folder: Path) -> Iterator[Pair]:
    """Count BFCL: a file of scores lists the failures; the results beside it have all ids."""
    for scores in sorted(folder.rglob("score")):
        results = scores.parent / "result"
        if not scores.is_dir() or not results.is_dir():
            continue
        models = sorted(path.name for path in scores.iterdir() if path.is_dir())
        for before, after in list(permutations(models, 2))[:MAX_PAIRS]:
            sides = [_bfcl_verdicts(results / model, scores / model) for model in (before, after)]
            tasks = {task: cells(sides[0][task], sides[1][task]) for task in sides[0]}
            yield {
                "name": f"bfcl {before} -> {after}",
                "before": str((results / before).relative_to(folder)),
                "after": str((results / after).relative_to(folder)),
                "tasks": tasks,
                **{name: sum(task[name] for task in tasks.values()) for name in CELLS},
                "forms": [],  # the names of folders connect results and scores
            }


def _bfcl_verdicts(results: Path, scores: Path) -> dict[str, dict[str, bool]]:
    verdicts = {}
    for file in sorted(results.rglob("*_result.json")):
        task = file.name.removesuffix("_result.json").split("_", 2)[2]
        ids = [json.loads(line)["id"] for line in _lines(file)]
        of_scores = scores / file.relative_to(results).with_name(
            file.name.replace("_result", "_score")
        )
        head, *failures = map(json.loads, _lines(of_scores))
        failed = {row["id"] for row in failures}
        verdicts[task] = {name: name not in failed for name in ids}
        if sum(verdicts[task].values()) != head["correct_count"]:
            raise ValueError(f"{of_scores} states another correct_count")
    return verdicts


def evalplus(folder: Path) -> Iterator[Pair]:
    """Count EvalPlus: answers that pass the base tests, and those that pass all."""
    for file in sorted(folder.rglob("*_eval_results.json")):
        rows = json.loads(file.read_bytes())["eval"]
        for scorer, names in {"base": ("base",), "plus": ("base", "plus")}.items():
            right = {
                name: all(row[0][f"{kind}_status"] == "pass" for kind in names)
                for name, row in rows.items()
            }
            yield _with_itself(folder, file, right, metric=f"pass@1/{scorer}", name=scorer)


def tau2(folder: Path) -> Iterator[Pair]:
    """Count tau2-bench by the reward of each simulation; several trials are not counted here."""
    for file in sorted(folder.rglob("*.json")):
        rows = _document(file).get("simulations")
        if not isinstance(rows, list):
            continue
        if len({row["task_id"] for row in rows}) == len(rows):
            right = {row["task_id"]: row["reward_info"]["reward"] >= MIDDLE for row in rows}
            yield _with_itself(folder, file, right, metric="reward")


def mt_bench(folder: Path) -> Iterator[Pair]:
    """Count two models in a file of MT-Bench: an item is a question and a turn."""
    for file in sorted(folder.rglob("*_single.jsonl")):
        by_model: dict[str, dict[tuple[str, int], float]] = {}
        for line in _lines(file):
            row = json.loads(line)
            if row["score"] >= 1:
                key = str(row["question_id"]), row["turn"]
                by_model.setdefault(row["model"], {})[key] = (row["score"] - 1) / 9
        whole = {
            m: scores for m, scores in by_model.items() if len(scores) >= _MOST * _size(by_model)
        }
        for before, after in list(combinations(sorted(whole), 2))[:MAX_PAIRS]:
            sides = [{key: s >= MIDDLE for key, s in whole[m].items()} for m in (before, after)]
            yield {
                "name": f"mt-bench {before} -> {after}",
                "before": str(file.relative_to(folder)),
                "after": str(file.relative_to(folder)),
                "run": [before, after],
                **cells(*sides),
            }


def promptfoo(folder: Path) -> Iterator[Pair]:
    """Count promptfoo: a result per prompt and test, with its verdict."""
    for file in sorted(folder.rglob("output.json")):
        rows = _document(file).get("results")
        if isinstance(rows, list):
            right = {place: row["success"] for place, row in enumerate(rows)}
            yield _with_itself(folder, file, right, forms=["renamed", "gzipped"])


def _with_itself(folder: Path, file: Path, right: Verdicts, name: str = "", **more: Any) -> Pair:
    path = str(file.relative_to(folder))
    title = f"{file.stem} {name}".strip()
    return {"name": title, "before": path, "after": path, **cells(right, right), **more}


def _document(file: Path) -> dict[str, Any]:
    """Return the object in a file; empty if it has lines or a list."""
    try:
        document = json.loads(file.read_bytes())
    except json.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _lines(file: Path) -> list[bytes]:
    return [line for line in file.read_bytes().split(b"\n") if line.strip()]


def _size(by_model: Mapping[str, Mapping[Any, Any]]) -> int:
    return max(map(len, by_model.values()), default=0)


CELLS = ("n11", "n10", "n01", "n00")
MAX_PAIRS = 3
_MOST = 0.9
COUNTERS: tuple[Callable[[Path], Iterator[Pair]], ...] = (bfcl, evalplus, tau2, mt_bench, promptfoo)
