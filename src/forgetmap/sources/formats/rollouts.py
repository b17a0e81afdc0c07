"""Rollouts of reinforcement learning: verl, TRL, OpenRLHF, and verifiers of Prime Intellect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Score
from forgetmap.sources.fields import as_count, as_json_text, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import (
    Companion,
    Format,
    Head,
    LogReading,
    LogRow,
    as_json,
    digest,
    numbers,
    plain,
    scores_of,
)
from forgetmap.sources.messages import last_question, texts_of_role

_NO_SCORES = (
    "input", "output", "step", "prompt", "completion", "gts", "advantage", "data_source", "uid",
    "request_id",
)  # fmt: skip


def _rewards(row: LogRow) -> list[Score]:
    """Return all numbers of a row that are scores."""
    scores = scores_of(numbers(row.values, _NO_SCORES))
    if not scores:
        row.report_problem("the row has no score")
    return scores or [Score("score", None)]


def _stamp(head: Head) -> str | None:
    """Return the step: of several in one folder the last counts; `--run` chooses another."""
    step = as_count(head["step"])
    return None if step is None else f"{step:08d}"


def _rollouts(
    trainer: str,
    *fields: str,
    prompt: str,
    response: str,
    preferred: list[str],
    gold: str = "",
    accepts: Callable[[LogFile], bool] | None = None,
) -> Format:
    """Declare rows without ids: the prompt is the item, and several answers to it are repeats."""

    def question(row: LogRow) -> str | None:
        return last_question(row[prompt])

    def item(row: LogRow) -> str | None:
        return digest(question(row), as_json_text(row[gold])) if question(row) else None

    return Format(
        name=trainer,
        title=f"{trainer} rollouts",
        fields=[fields],
        accepts=accepts,
        preferred=preferred,
        stamp=_stamp,
        step=lambda head: as_count(head["step"]),
        tasks=lambda head: () if "data_source" in head.file.peek.names else trainer,
        task=lambda row: row.text("data_source") or trainer,
        item=item,
        scores=_rewards,
        question=question,
        gold=lambda row: as_json_text(row[gold]),
        answer=plain("pred"),
        prompt=prompt,
        response=lambda row: texts_of_role(row[response], "assistant"),
    )


VERL = _rollouts(
    "verl", "input", "output", "score", "step",
    prompt="input", response="output", gold="gts", preferred=["acc", "score"],
)  # fmt: skip
"""`STEP.jsonl` of `trainer.validation_data_dir` or `rollout_data_dir`."""
TRL = _rollouts(
    "trl", "step", "prompt", "completion",
    prompt="prompt", response="completion",
    preferred=["accuracy_reward", "correctness_reward_func", "accuracy"],
    accepts=lambda file: bool(numbers(file.peek.first, _NO_SCORES)),
)  # fmt: skip
"""`completions_STEP.parquet` of `log_completions`, with a column per reward function."""
OPENRLHF = _rollouts(
    "openrlhf", "input", "output", "reward",
    prompt="input", response="output", preferred=["reward"],
    accepts=lambda file: len(file.peek.names) == 3,
)  # fmt: skip
"""Lines of `batch_inference`: only these three fields."""

_NO_METRICS = {
    "prompt", "completion", "reward", "example_id", "id", "answer", "error", "error_chain",
    "generation_ms", "info", "is_completed", "is_truncated", "long_error_chain", "metrics",
    "scoring_ms", "src_id", "stop_condition", "task", "timing", "token_usage", "tool_defs",
    "total_ms", "trajectory",
}  # fmt: skip
"""Columns of a row of verifiers that are not metrics."""
_FOLDER = r"(?:^|/)(?P<env>[^/]+?)--(?P<model>[^/]+)/"


def _model(head: Head) -> str | None:
    """Return the model of the metadata, of the first agent, or of the folder."""
    trace = next(iter(head.first.parts("traces")), head.within({}))
    calls = [call.plain("model") for call in trace.parts("calls")[:1]]
    named = (head.plain("model"), trace.plain("agent.config.model"), *calls)
    of_folder = head.named(_FOLDER).get("model", "").replace("--", "/")
    return next(filter(None, named), None) or of_folder or None


def _created(head: Head) -> str | None:
    """Return date and time, which were separate fields up to 0.1.3."""
    date, time = head.text("date"), head["time"]
    return f"{date}T{time}" if date and isinstance(time, str) else date


def _env(head: Head) -> str:
    env = head.plain("env_id", "env") or head.first.plain("env.id")
    return env or head.named(_FOLDER).get("env") or "verifiers"


_RUN: dict[str, Any] = {
    "beside": {"metadata": Companion(fields=[("model", "num_examples", "rollouts_per_example")])},
    "preferred": ["reward"],
    "harness": "verifiers",
    "about": "metadata",
    "model": _model,
    "version": "version_info.vf_version",
    "created": _created,
    "decoding": lambda head: numbers(as_mapping(head["sampling_args"])),
    "tasks": _env,
    "main": "reward",
    "totals": lambda reading: reading.state("avg_reward", reading.head["avg_reward"], "reward"),
    "question": lambda row: last_question(row["prompt"]),
    "gold": as_json("answer"),
}
"""What both forms of results say about a run."""


def _item(row: LogRow) -> str | None:
    """Return the id, or one made from question and answer; `id` numbers rollouts, not items."""
    question = last_question(row["prompt"])
    by_text = digest(question, as_json("answer")(row)) if question else None
    return row.name("@item", "example_id") or by_text


def _metrics(row: LogRow) -> list[Score]:
    """Return the reward and all metrics, which were columns up to 0.1.8."""
    is_apart = "metrics" in row.values
    metrics = row.part("metrics").values if is_apart else row.values
    further = numbers(metrics, ["reward"] if is_apart else _NO_METRICS)
    scores = scores_of({"reward": row.number("reward"), **further})
    if row["is_truncated"] is True and scores[0].value == 0:
        scores[0].outcome = Outcome.TRUNCATED
    return scores


def _own_task(row: LogRow) -> str | None:
    task = row.text("task")
    return None if task == "default" else task


VERIFIERS = Format(
    name="verifiers",
    title="verifiers",
    fields=[("prompt", "completion", "reward")],
    accepts=lambda file: bool(file.peek.keys & {"example_id", "id", "answer", "info"}),
    task=_own_task,
    item=_item,
    scores=_metrics,
    tokens_in="token_usage.input_tokens",
    tokens_out="token_usage.output_tokens",
    finish_reason="stop_condition",
    prompt="prompt",
    response=lambda row: texts_of_role(row["completion"], "assistant"),
    failure=as_json("error"),
    **_RUN,
)
"""vf-eval and prime eval: one rollout per line of results.jsonl, metadata.json beside it."""


def _episodes(reading: LogReading) -> Iterator[LogRow]:
    """Yield the data of the task of each episode, with its traces."""
    for row in reading.lines():
        task, traces = row.part("task"), row.parts("traces")
        data = task.part("data")
        failed = (as_list(p["errors"]) for p in (row, *traces) if p["ok"] is False)
        nodes = [node.values for node in (traces[0].parts("nodes") if traces else ())]
        said = [node.get("message") for node in nodes if node.get("sampled") is True]
        yield data.adding(
            item=task.name("key", "hash") or data.name("idx"),
            env=row.part("env").text("id"),
            traces=traces,
            error=next((as_json_text(errors[-1]) for errors in failed if errors), None),
            finish_reason=traces[0].text("stop_condition") if traces else None,
            response=texts_of_role(said, "assistant") if traces else None,
        )


def _agent_scores(row: LogRow) -> list[Score]:
    """Return the rewards of all agents; unscored ones are missing."""
    traces = row["@traces"]
    scores = [score for trace in traces for score in _weighted(trace, alone=len(traces) == 1)]
    return scores or [Score("reward", None, outcome=row["@error"] and Outcome.ERROR)]


def _weighted(trace: LogRow, *, alone: bool) -> list[Score]:
    """Return the weighted sum of the rewards, its parts and the metrics."""
    scorer = "default" if alone else trace.part("agent").text("name") or "default"
    parts, total = {}, []
    for name, reward in trace.part("rewards").values.items():
        part = trace.within(as_mapping(reward))
        score, weight = part.number("score"), part.number("weight")
        parts[replace_surrogates(name)] = score
        total.append(None if score is None else score * (1.0 if weight is None else weight))
    metrics = trace.part("metrics")
    further = {replace_surrogates(name): metrics.number(name) for name in metrics.values}
    known = [part for part in total if part is not None]
    reward = sum(known) if known and len(known) == len(total) else None
    scores = scores_of({"reward": None} | parts | further | {"reward": reward}, scorer)
    for one in scores:
        if one.value is None and trace["ok"] is False:
            one.outcome = Outcome.ERROR
    return scores


VERIFIERS_V1 = Format(
    name="verifiers-v1",
    title="verifiers traces",
    fields=[("env", "task", "traces", "ok")],
    rows=_episodes,
    task=lambda row: row["@env"],
    item=_item,
    scores=_agent_scores,
    **_RUN,
)
"""traces.jsonl: one episode per line, with a trace of each agent."""
