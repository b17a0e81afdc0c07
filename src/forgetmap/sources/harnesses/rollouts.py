"""Rollouts of reinforcement learning: prompts, answers and rewards of three trainers.

verl      `STEP.jsonl` of `trainer.validation_data_dir` or `rollout_data_dir`: input, output, gts,
          score, step, and further values of the reward function
TRL       `completions_STEP.parquet` of `log_completions`: step, prompt, completion, a column per
          reward function, advantage
OpenRLHF  lines of `batch_inference`: input, output, reward

Items have no ids: they are identified by the prompt, and several answers to a prompt are repeats.
Of several steps in one folder the last counts; `--run` chooses another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from forgetmap.records import HarnessInfo, RunInfo, TrainingInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import number, rows
from forgetmap.sources.fields import (
    Fields,
    as_count,
    as_json_text,
    as_text,
    replace_surrogates,
)
from forgetmap.sources.files import LogFile
from forgetmap.sources.messages import last_question, texts_of_role

VERL = ("input", "output", "score", "step")
TRL = ("step", "prompt", "completion")
OPENRLHF = ("input", "output", "reward")
NO_METRICS = frozenset({*VERL[:2], *TRL, "gts", "advantage", "data_source", "uid", "request_id"})
"""Fields of a row that are not scores."""


class Verl:
    """Validation and rollout dumps of verl."""

    name = "verl"
    preferred: Sequence[str] = ("acc", "score")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file of answers with score and step."""
        return [_log("verl", file) for file in files if file.peek.has(*VERL)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per answer; its data source is its task."""
        for row in _rows(log, problems):
            prompt, gold = row.values.get("input"), row.json_text("gts")
            yield from _samples(row, log, prompt, "output", texts=texts, gold=gold)


class Trl:
    """Completions of TRL."""

    name = "trl"
    preferred: Sequence[str] = ("accuracy_reward", "correctness_reward_func", "accuracy")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per table of completions with at least one reward."""
        return [_log("trl", file) for file in files if file.peek.has(*TRL) and _has_reward(file)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per completion; each reward function is a metric."""
        for row in _rows(log, problems):
            yield from _samples(row, log, row.values.get("prompt"), "completion", texts=texts)


class OpenRlhf:
    """Scored answers of OpenRLHF."""

    name = "openrlhf"
    preferred: Sequence[str] = ("reward",)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file that has only prompts, answers and rewards."""
        return [_log("openrlhf", file) for file in files if file.peek.names == {*OPENRLHF}]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per answer."""
        for row in _rows(log, problems):
            yield from _samples(row, log, row.values.get("input"), "output", texts=texts)


def _has_reward(file: LogFile) -> bool:
    return any(_is_score(name, value) for name, value in file.peek.first.items())


def _is_score(name: str, value: object) -> bool:
    return name not in NO_METRICS and isinstance(value, bool | int | float)


def _log(trainer: str, file: LogFile) -> Log:
    step = as_count(file.peek.first.get("step"))
    info = RunInfo(
        harness=HarnessInfo(name=trainer),
        training=None if step is None else TrainingInfo(step=step),
    )
    tasks = () if "data_source" in file.peek.names else (trainer,)
    stamp = None if step is None else f"{step:08d}"
    return Log(trainer, (file,), info, tasks, stamp, format=f"{trainer} rollouts")


def _rows(log: Log, problems: Problems) -> Iterator[Fields]:
    for line, values in rows(log.files[0], problems):
        yield Fields(values, log.files[0], line, problems)


def _samples(
    row: Fields, log: Log, prompt: object, response: str, *, texts: bool, gold: str | None = None
) -> Iterator[Sample]:
    question = last_question(prompt)
    if not question:
        row.report_problem("the row has no prompt")
        return
    source = row.text("data_source") if "data_source" in row.values else None
    answer = row.values.get(response)
    yield Sample(
        task=source or (log.tasks[0] if log.tasks else log.adapter),
        item=blake2b(f"{question}\n{gold}".encode(), digest_size=8).hexdigest(),
        scores=_scores(row.values, row),
        repeat=None,
        question=question,
        gold=gold,
        answer=as_text(row.values.get("pred")),
        prompt=as_json_text(prompt) if texts else None,
        response=texts_of_role(answer, "assistant") if texts else None,
        file=row.file.name,
        line=row.line,
    )


def _scores(values: Mapping[str, Any], row: Fields) -> list[Score]:
    """Return all numbers of a row that are scores."""
    scores = [
        Score(replace_surrogates(name), number(value))
        for name, value in values.items()
        if _is_score(name, value)
    ]
    if not scores:
        row.report_problem("the row has no score")
    return scores or [Score("score", None)]
