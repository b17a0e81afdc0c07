"""verifiers of Prime Intellect: one rollout per line of results.jsonl, metadata.json beside it.

0.1.2-  no id: prompt, completion, answer, reward; completions of failed rollouts are empty
0.1.3   id (numbered across rollouts, so not an item), prompt, completion, task, answer, reward,
        metrics as columns
0.1.4+  example_id instead of id
0.1.9+  metrics also as an object, error, is_truncated, token_usage; no task
v1      traces.jsonl: one episode per line, with a trace of each agent
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.columns import SampleColumns
from forgetmap.sources.decode import UNDECODABLE, as_object, is_lines, number, rows, small_document
from forgetmap.sources.fields import (
    Fields,
    as_json_text,
    as_list,
    as_mapping,
    as_objects,
    replace_surrogates,
)
from forgetmap.sources.files import LogFile, nearest_file
from forgetmap.sources.messages import last_question, texts_of_role
from forgetmap.sources.typed_lines import (
    PlainRow,
    RowForm,
    TokenUsage,
    TypedLines,
    token_counts,
)

KEYS = ("prompt", "completion", "reward")
IDS = frozenset({"example_id", "id"})
BESIDES = IDS | {"answer", "info"}
"""A row has at least one of these besides prompt, completion and reward."""
EPISODE = ("env", "task", "traces", "ok")
METADATA = ("model", "num_examples", "rollouts_per_example")
REWARD = "reward"
NO_METRICS = frozenset({
    *KEYS, *IDS, "answer", "error", "error_chain", "generation_ms", "info", "is_completed",
    "is_truncated", "long_error_chain", "metrics", "scoring_ms", "src_id", "stop_condition", "task",
    "timing", "token_usage", "tool_defs", "total_ms", "trajectory",
})  # fmt: skip
"""Columns of a row that are not metrics."""
_OF_ENV = frozenset({None, "", "default"})
"""Values of the field `task` if the environment is the task."""
_FOLDER = re.compile(r"(?:^|/)(?P<env>[^/]+?)--(?P<model>[^/]+)/")


class Verifiers:
    """Results of vf-eval and prime eval."""

    name = "verifiers"
    preferred: Sequence[str] = (REWARD,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file of rollouts, with the metadata of its folder."""
        metadata = [file for file in files if file.peek.has(*METADATA)]
        results = [
            file
            for file in files
            if (file.peek.has(*KEYS) and file.peek.keys & BESIDES) or file.peek.has(*EPISODE)
        ]
        return [_log(file, nearest_file(file, metadata, results)) for file in results]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per rollout; several of the same example are repeats."""
        file = log.files[0]
        sample_of = _episode if file.peek.has(*EPISODE) else _sample
        tasks: set[str] = set()
        for line, values in rows(file, problems):
            sample = sample_of(Fields(values, file, line, problems), log.notes["env"], texts=texts)
            if sample is not None:
                tasks.add(sample.task)
                yield sample
        problems.totals += _totals(log, tasks)

    def read_columns(
        self, log: Log, problems: Problems, *, texts: bool
    ) -> Iterator[Sample | SampleColumns]:
        """Yield the same samples, with common rollouts as columns."""
        file, env = log.files[0], log.notes["env"]
        if file.peek.has(*EPISODE) or not is_lines(file):
            yield from self.read(log, problems, texts=texts)
            return

        def careful(line: int, raw: bytes) -> Iterator[Sample]:
            values = as_object(raw, file, line, problems)
            if values is not None:
                sample = _sample(Fields(values, file, line, problems), env, texts=texts)
                yield from () if sample is None else (sample,)

        decode = msgspec.json.Decoder(_RolloutTexts if texts else _Rollout).decode
        plain, tasks = partial(_plain, env=env, texts=texts), set()
        lines = TypedLines(file, decode, plain, _COLUMNS[texts], careful, {"repeat": None})
        for samples in lines.samples():
            tasks.add(samples.task)
            yield samples
        problems.totals += _totals(log, tasks)

    def split_files(self, log: Log) -> Sequence[LogFile]:
        """Return the file if rollouts of an example are adjacent and all are of one task."""
        file = log.files[0]
        is_apart = log.notes["rollouts"] == 1 or _stand_together(file)
        return (file,) if is_lines(file) and is_apart and "task" not in file.peek.keys else ()

    def group_of(self, line: bytes) -> object:
        """Return the example of a rollout; the rollouts of an example must be read together."""
        try:
            return _decode_group(line).example_id
        except UNDECODABLE:
            return None


def _totals(log: Log, tasks: set[str]) -> Iterator[StatedTotal]:
    mean = log.notes["mean"]
    if mean is not None and len(tasks) == 1:
        yield StatedTotal(next(iter(tasks)), "avg_reward", mean, "mean", REWARD)


def _stand_together(file: LogFile) -> bool:
    """Whether the first two rollouts are of the same example."""
    first, second, *_ = (*file.head.split(b"\n", 2), b"", b"")
    group = Verifiers().group_of(first)
    return group is not None and group == Verifiers().group_of(second)


class _Group(msgspec.Struct):
    example_id: int | str


_decode_group = msgspec.json.Decoder(_Group).decode


class _Rollout(msgspec.Struct, gc=False):
    """A row of the common form, without error."""

    example_id: int | str
    prompt: Any
    reward: float | bool
    metrics: dict[str, float | bool]
    answer: Any = None
    task: str | None = None
    error: None = None
    is_truncated: bool | None = None
    token_usage: TokenUsage | None = None
    stop_condition: str | None = None


class _RolloutTexts(_Rollout, gc=False):
    completion: Any = None


_NAMES = ("item", "question", "gold", "tokens_in", "tokens_out", "finish_reason")
_COLUMNS = {False: _NAMES, True: (*_NAMES, "prompt", "response")}


def _plain(row: Any, *, env: str, texts: bool) -> PlainRow | None:
    """Return the cells of a rollout as in `_sample`; None if it needs more than these cells."""
    values = {REWARD: float(row.reward)}
    values |= {name: float(value) for name, value in row.metrics.items() if name != REWARD}
    is_cut = row.is_truncated and not row.reward
    if is_cut or row.example_id == "" or not all(map(isfinite, values.values())):
        return None
    cells: tuple[Any, ...] = (
        str(row.example_id),
        last_question(row.prompt),
        as_json_text(row.answer) or None,
        *token_counts(row.token_usage),
        row.stop_condition,
    )
    if texts:
        spoken = texts_of_role(row.completion, "assistant")
        cells = (*cells, as_json_text(row.prompt), spoken)
    task = env if row.task in _OF_ENV else row.task
    return PlainRow(RowForm(task, tuple(values)), tuple(values.values()), cells)


def _log(file: LogFile, metadata: LogFile | None) -> Log:
    about = Fields(small_document(metadata), metadata or file, None, Problems())
    match = _FOLDER.search(file.inside)
    first = Fields(file.peek.first, file, None, Problems())
    env = about.text("env_id", "env") or first.part("env").text("id")
    env = env or (replace_surrogates(match["env"]) if match else "verifiers")
    model = about.text("model") or _model(first)
    model = model or (replace_surrogates(match["model"]).replace("--", "/") if match else None)
    sampling = about.part("sampling_args").values
    version = about.part("version_info").text("vf_version")
    stamp = _stamp(about)
    info = RunInfo(
        model=ModelInfo(name=model),
        harness=HarnessInfo(name="verifiers", version=version),
        decoding={
            replace_surrogates(k): v
            for k, v in sampling.items()
            if isinstance(v, bool | int | float)
        },
        created=stamp,
        tasks={env: TaskInfo(main_metric=REWARD)},
    )
    files = (file, metadata) if metadata else (file,)
    notes = {
        "env": env,
        "mean": number(about.values.get("avg_reward")),
        "rollouts": about.values.get("rollouts_per_example"),
    }
    return Log("verifiers", files, info, (env,), stamp, format="verifiers", notes=notes)


def _stamp(about: Fields) -> str | None:
    """Return date and time, which were separate fields up to 0.1.3."""
    date, time = about.text("date"), about.values.get("time")
    return f"{date}T{time}" if date and isinstance(time, str) else date


def _sample(row: Fields, env: str, *, texts: bool) -> Sample | None:
    question, gold = last_question(row.values.get("prompt")), row.json_text("answer") or None
    item = row.name("example_id") or _content_id(question, gold)
    if item is None:
        row.report_problem("the row has no example_id and no prompt")
        return None
    task = row.text("task")
    error = as_json_text(row.values.get("error") or None)
    tokens = row.part("token_usage")
    return Sample(
        task=env if task in _OF_ENV else str(task),
        item=item,
        scores=_scores(row, failed=error is not None),
        repeat=None,
        question=question,
        gold=gold,
        tokens_in=tokens.count("input_tokens"),
        tokens_out=tokens.count("output_tokens"),
        finish_reason=row.text("stop_condition"),
        prompt=row.json_text("prompt") if texts else None,
        response=texts_of_role(row.values.get("completion"), "assistant") if texts else None,
        error=error,
        file=row.file.name,
        line=row.line,
    )


def _content_id(question: str | None, gold: str | None) -> str | None:
    if not question:
        return None
    return blake2b(f"{question}\n{gold}".encode(), digest_size=8).hexdigest()


def _scores(row: Fields, *, failed: bool) -> list[Score]:
    """Return the reward and all metrics; those of a failed rollout are missing."""
    metrics = row.part("metrics").values if "metrics" in row.values else None
    if metrics is None:
        metrics = {k: v for k, v in row.values.items() if k not in NO_METRICS}
    values = {REWARD: row.number(REWARD)}
    values |= {
        replace_surrogates(name): number(value)
        for name, value in metrics.items()
        if type(value) in {bool, int, float} and name != REWARD
    }
    cut = row.values.get("is_truncated") is True
    scores = []
    for name, value in values.items():
        outcome = Outcome.TRUNCATED if cut and name == REWARD and value == 0 else None
        scores.append(Score(name, value, outcome=outcome))
    if failed:
        scores = [Score(score.metric, None, outcome=Outcome.ERROR) for score in scores]
    return scores


def _model(episode: Fields) -> str | None:
    """Return the model of the first agent, as configured or as called."""
    for trace in episode.parts("traces"):
        models = (call.text("model") for call in trace.parts("calls")[:1])
        return trace.part("agent").part("config").text("model") or next(models, None)
    return None


def _episode(row: Fields, env: str, *, texts: bool) -> Sample | None:
    """Return the sample of an episode: the rewards of all agents, the response of the first."""
    task = row.part("task")
    data = task.part("data")
    question, gold = last_question(data.values.get("prompt")), data.json_text("answer") or None
    item = task.name("key", "hash") or data.name("idx") or _content_id(question, gold)
    if item is None:
        row.report_problem("the row has no key and no prompt")
        return None
    traces = row.parts("traces")
    error = _first_error(row, traces)
    scores = [score for trace in traces for score in _rewards(trace, alone=len(traces) == 1)]
    return Sample(
        task=row.part("env").text("id") or env,
        item=item,
        scores=scores or [Score(REWARD, None, outcome=Outcome.ERROR if error else None)],
        repeat=None,
        question=question,
        gold=gold,
        finish_reason=traces[0].text("stop_condition") if traces else None,
        response=_sampled(traces[0]) if texts and traces else None,
        error=error,
        file=row.file.name,
        line=row.line,
    )


def _first_error(row: Fields, traces: Sequence[Fields]) -> str | None:
    for part in (row, *traces):
        errors = as_list(part.values.get("errors"))
        if part.values.get("ok") is False and errors:
            return as_json_text(errors[-1])
    return None


def _rewards(trace: Fields, *, alone: bool) -> list[Score]:
    """Return the weighted sum, its parts and the metrics; unscored ones are missing."""
    scorer = "default" if alone else trace.part("agent").text("name") or "default"
    rewards = {
        replace_surrogates(name): trace.within(as_mapping(reward))
        for name, reward in trace.part("rewards").values.items()
    }
    parts = {name: reward.number("score") for name, reward in rewards.items()}
    metrics = trace.part("metrics")
    further = {replace_surrogates(name): metrics.number(name) for name in metrics.values}
    failure = Outcome.ERROR if trace.values.get("ok") is False else None
    values = {REWARD: None, **parts, **further} | {REWARD: _total(rewards)}
    return [
        Score(name, value, scorer, failure if value is None else None)
        for name, value in values.items()
    ]


def _total(rewards: Mapping[str, Fields]) -> float | None:
    """Return the weighted sum of the rewards; None if one of them is missing."""
    parts = [(reward.number("score"), reward.number("weight")) for reward in rewards.values()]
    known = [
        value * (1.0 if weight is None else weight) for value, weight in parts if value is not None
    ]
    return sum(known) if known and len(known) == len(parts) else None


def _sampled(trace: Fields) -> str | None:
    """Return the messages generated by the model."""
    nodes = as_objects(trace.values.get("nodes"))
    messages = [node.get("message") for node in nodes if node.get("sampled") is True]
    return texts_of_role(messages, "assistant")
