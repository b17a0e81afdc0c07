"""EvalPlus: `*_eval_results.json`, one object with the solutions of each problem and their status.

Base tests are those of HumanEval or MBPP; plus tests are added by EvalPlus, and a solution passes
them only if it also passes the base tests. From 0.2 on each solution is an object; before that
`base` and `plus` were lists of pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import document, number
from forgetmap.sources.fields import Fields, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile

METRIC, BASE, PLUS = "pass@1", "base", "plus"
PASSED = ("pass", "success")
"""The current word, and that of the first releases."""
_MODEL = re.compile(r"(?P<model>.+?)_(?:[a-z0-9]+_)?temp_(?P<temperature>\d+(?:\.\d+)?)")


class EvalPlus:
    """Evaluated solutions of HumanEval+ and MBPP+."""

    name = "evalplus"
    preferred: Sequence[str] = (f"{METRIC}/{PLUS}", f"{METRIC}/{BASE}")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per document with the status of solutions, by problem."""
        return [_log(file) for file in files if _is_evaluated(file.peek.first.get("eval"))]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per solution; those of the same problem are repeats."""
        file, task = log.files[0], log.tasks[0]
        results = Fields(as_mapping(document(file)), file, None, problems)
        counts = set()
        for item, content in as_mapping(results.values.get("eval")).items():
            solutions = _solutions(content)
            counts.add(len(solutions))
            if not solutions:
                results.report_problem("there is no solution of this problem", f"eval.{item[:60]}")
            for repeat, solution in enumerate(solutions):
                row = results.within(solution)
                yield _sample(row, task, replace_surrogates(item), repeat, texts=texts)
        if len(counts) == 1:  # otherwise pass@1 is a mean over problems, not over solutions
            problems.totals += _totals(results, task)


def _is_evaluated(problems: object) -> bool:
    """Whether the first problems have solutions with a status."""
    return any(
        "base_status" in solution
        for content in list(as_mapping(problems).values())[:3]
        for solution in _solutions(content)[:1]
    )


def _solutions(content: object) -> list[dict[str, Any]]:
    """Return the solutions of a problem in the current format."""
    if isinstance(content, list):
        return [as_mapping(solution) for solution in content]
    base, plus = (as_list(as_mapping(content).get(name)) for name in (BASE, PLUS))
    return [
        {
            "base_status": _status(pair),
            "plus_status": _status(plus[index]) if index < len(plus) else None,
        }
        for index, pair in enumerate(base)
    ]


def _status(pair: object) -> object:
    """Return the status from a pair of status and details."""
    return pair[0] if isinstance(pair, list) and pair else None


def _log(file: LogFile) -> Log:
    problems = as_mapping(file.peek.first.get("eval"))
    task = replace_surrogates(next(iter(problems)).partition("/")[0]).lower() or "evalplus"
    path = PurePosixPath(file.inside)
    match = _MODEL.match(path.name) or _MODEL.fullmatch(path.parent.name)
    date = file.peek.first.get("date")
    stamp = replace_surrogates(date) if isinstance(date, str) else None
    info = RunInfo(
        model=ModelInfo(name=_model_name(match) if match else None),
        harness=HarnessInfo(name="evalplus"),
        decoding={"temperature": float(match["temperature"])} if match else {},
        created=stamp,
        tasks={task: TaskInfo()},
    )
    return Log("evalplus", (file,), info, (task,), stamp, format="EvalPlus results")


def _model_name(match: re.Match[str]) -> str:
    """Return the name of the model; EvalPlus writes `org--model` in file names."""
    return replace_surrogates(match["model"]).replace("--", "/")


def _sample(row: Fields, task: str, item: str, repeat: int, *, texts: bool) -> Sample:
    base, plus = row.text("base_status"), row.text("plus_status")
    scores = [_score(base, BASE, passed=base in PASSED)]
    if "plus_status" in row.values and row.values["plus_status"] is not None:
        scores.append(_score(plus and base, PLUS, passed=base in PASSED and plus in PASSED))
    if base is None:
        row.report_problem("a solution has no status", f"eval.{item[:60]}.base_status")
    return Sample(
        task=task,
        item=item,
        scores=scores,
        repeat=repeat,
        response=row.text("solution") if texts else None,
        file=row.file.name,
    )


def _score(status: str | None, scorer: str, *, passed: bool) -> Score:
    if status is None:
        return Score(METRIC, None, scorer)
    return Score(METRIC, float(passed), scorer, Outcome.CORRECT if passed else Outcome.INCORRECT)


def _totals(results: Fields, task: str) -> Iterator[StatedTotal]:
    """Yield the totals in `pass_at_k`, which exists from 0.3 on."""
    stated: Mapping[str, Any] = as_mapping(results.values.get("pass_at_k"))
    for scorer in (BASE, PLUS):
        value = number(as_mapping(stated.get(scorer)).get(METRIC))
        if value is not None:
            yield StatedTotal(task, f"pass_at_k.{scorer}", value, "mean", METRIC, scorer)
