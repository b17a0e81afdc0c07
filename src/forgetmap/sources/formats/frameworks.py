"""Frameworks of evaluation and of reinforcement learning, whose rows are tests or rollouts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from forgetmap.records import METADATA_KEYS, MetricInfo, Outcome
from forgetmap.sources.adapter import Sample, Score
from forgetmap.sources.decode import Malformed, decode, number
from forgetmap.sources.fields import as_count, as_json_text, as_list, as_mapping, as_text
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import KINDS, Companion, Format, Head, LogReading, LogRow
from forgetmap.sources.formats.values import (
    as_json,
    as_time,
    digest,
    last_question,
    numbers,
    plain,
    scores_of,
    text_of,
    texts_of_role,
)

_SAMPLE = "sample_id"
_ID = re.compile(r"(.+)\.[^.]+\.\d+$")
"""Ids of samples: `EVAL.SPLIT.NUMBER`."""


def _spec(file: LogFile) -> dict[str, Any]:
    specs = (as_mapping(row.get("spec")) for row in file.peek.objects)
    return next((spec for spec in specs if {"completion_fns", "eval_name"} <= spec.keys()), {})


def _joined(reading: LogReading) -> Iterator[LogRow]:
    """Yield the events of each sample as one row per verdict; several verdicts are repeats."""
    samples: dict[str, list[LogRow]] = {}
    for row in reading.lines():
        item = row.name(_SAMPLE)
        if item is not None:
            samples.setdefault(item, []).append(row)
        elif "final_report" in row.values:
            reading.own["report"] = row["final_report.accuracy"]
    for item, events in samples.items():
        matches, metrics, sampled, errors = (
            [event.part("data") for event in events if event["type"] == kind]
            for kind in ("match", "metrics", "sampling", "error")
        )
        nothing = events[0].within({})
        answer = sampled[-1] if sampled else nothing
        said = answer["sampled"]
        failure = (errors[-1].plain("message") or "error") if errors else None
        for repeat, (match, further) in enumerate(zip_longest(matches, metrics or [nothing])):
            graded = match or nothing
            yield events[0].adding(
                item=item,
                repeat=repeat,
                question=last_question(answer["prompt"]),
                prompt=answer["prompt"],
                response=as_json_text(said[0] if len(as_list(said)) == 1 else said),
                values=numbers((further or nothing).values)
                | ({"accuracy": match.number("correct")} if match else {}),
                gold=as_json("expected.0", "expected")(graded),
                answer=graded.json_text("picked"),
                error=failure if number(graded["correct"]) is None else None,
            )


OPENAI_EVALS = Format(
    name="openai-evals",
    title="OpenAI evals events",
    fields=[("run_id", "event_id", "sample_id", "type", "data"), ("spec",)],
    accepts=lambda file: file.peek.has("event_id") or bool(_spec(file)),
    rows=_joined,
    preferred=["accuracy", "score"],
    about=lambda head: _spec(head.file),
    run_id="run_id",
    model=plain("completion_fns.0"),
    created="created_at",
    tasks=lambda head: next(
        (id_[1] for row in head.file.peek.objects if (id_ := _ID.match(str(row.get(_SAMPLE))))),
        head.plain("base_eval") or "openai-evals",
    ),
    scores=lambda row: (
        scores_of(row["@values"])
        or [Score("accuracy", None, outcome=Outcome.ERROR if row["@error"] else None)]
    ),
    totals=lambda r: r.state("final_report.accuracy", r.own.get("report"), "accuracy"),
)
"""Logs of `oaieval`: events, one per line, from `spec` to `final_report`. Events `match` tell
whether an answer is right, `metrics` give other scores, `sampling` has prompt and response."""

_MAX_TASK_NAME = 60
_PROMPTS = ("results.prompts", "results.table.head.prompts", "table.head.prompts")
_SUCCESSES = ("results.stats.successes", "stats.successes")


def _has_results(file: LogFile) -> bool:
    top = file.peek.first
    outer = as_mapping(top.get("results"))
    results = map(as_mapping, as_list(outer.get("results", top.get("results")))[:3])
    is_versioned = bool({"evalId", "version"} & {*top, *outer})
    return is_versioned and any({"success", "vars", "prompt"} <= row.keys() for row in results)


def _tests(reading: LogReading) -> Iterator[LogRow]:
    """Yield the results; promptfoo numbers the repetitions of a test separately."""
    name = reading.document.plain("config.description") or "promptfoo"
    # The evaluation lists all prompts once for each provider.
    listed = as_list(reading.document.any(*_PROMPTS))
    prompts = [*dict.fromkeys(filter(None, map(_template, listed)))]
    first: dict[object, str] = {}
    is_old = isinstance(reading.document["results"], list)
    for row in reading.inside("results" if is_old else "results.results"):
        content = [row["vars"], row["testCase.assert"], row["testCase.description"]]
        key = json.dumps(content, sort_keys=True, default=str)
        item = row.plain("testIdx") or digest(key, size=4)
        provider = row.plain("provider", "provider.label", "provider.id")
        template = _template(row["prompt"])
        words = " ".join(template.split())
        if not 0 < len(words) <= _MAX_TASK_NAME:
            words = f"prompt {[*prompts, template].index(template) + 1}"
        yield row.adding(
            item=first.setdefault((provider, key), item),
            model=provider,
            task=f"{name}: {words}" if len(prompts) > 1 else name,
            prompt=row.plain("prompt", "prompt.raw"),
        )


def _template(prompt: object) -> str:
    """Return the name of a prompt: `label`, in version 1 `display`, or its text."""
    about = as_mapping(prompt)
    return as_text(about.get("label") or about.get("display") or about.get("raw") or prompt) or ""


def _assertions(row: LogRow) -> list[Score]:
    values = {"pass": row.number("success")}
    if row["score"] is not None:
        values["score"] = row.number("score")
    return scores_of(values | numbers(row.part("namedScores").values))


def _broken(row: LogRow) -> str | None:
    """Return the error of a result that was not graded, not that of a failed assertion."""
    is_broken = row["failureReason"] in (2, None) and row["success"] is not True
    is_graded = row["failureReason"] is None and row["gradingResult"] is not None
    return row.json_text("error") or None if is_broken and not is_graded else None


PROMPTFOO = Format(
    name="promptfoo",
    title="promptfoo output",
    fields=[("results",)],
    accepts=_has_results,
    rows=_tests,
    apart=["@model"],
    about="document",
    run_id=plain("evalId"),
    created=plain("results.timestamp", "timestamp"),
    scores=_assertions,
    question=lambda row: as_json_text(row["vars"] or None) or row["@prompt"],
    tokens_in="response.tokenUsage.prompt",
    tokens_out="response.tokenUsage.completion",
    response=as_json("response.output"),
    failure=_broken,
    # The count is that of all providers.
    totals=lambda r: (
        r.state("stats.successes", r.document.plain(*_SUCCESSES), "pass", kind="sum")
        if r.log.notes["parts"] == 1
        else None
    ),
)
"""The output of an evaluation as one object: in version 1 `results` is a list and providers are not
named, from 2 on `results.results` is a list with provider, prompt and test of each result."""


_ARGUMENTS = "evaluation_results.0.generation_config.generation_args"


def _evaluated_at(head: Head) -> str | None:
    evaluation = head.first.plain("evaluation_id") or ""
    text = head.plain("evaluation_timestamp") or evaluation.rpartition("/")[2]
    return text if re.match(r"\d{4}-\d\d-\d\d", text) else as_time(text)


def _metrics(head: Head) -> Iterator[tuple[str, str, MetricInfo]]:
    for result in head.parts("evaluation_results"):
        key, config = result["evaluation_result_id"], as_mapping(result["metric_config"])
        name = config.get("metric_id") or config.get("metric_name")
        if isinstance(key, str) and isinstance(name, str):
            low, high = number(config.get("min_score")), number(config.get("max_score"))
            up = config.get("lower_is_better") is not True
            yield key, name, MetricInfo(low=low, high=high, higher_is_better=up)


def _task_of_instance(row: LogRow) -> str | None:
    """Return the task; the converter of lm-eval appends the filter to the name."""
    task, used = row.text("evaluation_name"), row.part("metadata").text("filter")
    return task.removesuffix(f"/{used}") if task else None


def _instances(reading: LogReading) -> Iterator[LogRow]:
    model = reading.log.info.model.name
    reading.own["metrics"] = {key: name for key, name, _ in _metrics(reading.head)}
    for row in reading.lines():
        own = row.text("model_id")
        if model not in (None, own):
            row.report_problem(f"this is a result of {own!r}, but the log belongs to {model!r}")
            continue
        task, asked, metadata = _task_of_instance(row), row.part("input"), row.part("metadata")
        answers = [part.plain("extracted_value") for part in row.parts("answer_attribution")]
        # Before 0.2.1 there was only one reference.
        is_one = isinstance(asked["reference"], str)
        golds = [asked["reference"]] if is_one else asked.texts("reference")
        # The converter of lm-eval writes the rendered prompt as the input.
        is_rendered = "doc_hash" in metadata.values
        yield row.adding(
            task=task,
            item=row.name("sample_id") if task else None,
            scorer=metadata.text("filter", METADATA_KEYS["scorer"]) or "default",
            metadata=metadata,
            question=None if is_rendered else asked.text("raw") or None,
            options=asked.texts("choices") or None,
            gold=golds[0] if golds else None,
            answer=answers[-1] if answers else None,
            finish_reason=metadata.text("stop_reason") or None,
            prompt=asked.text("raw" if is_rendered else "formatted"),
            response=_output(row),
        )


def _output(row: LogRow) -> str | None:
    """Return the output, else the last message of the model."""
    raw = row["output.raw"]
    if texts := [raw] if isinstance(raw, str) else row.part("output").texts("raw"):
        return "\n\n".join(texts)
    turns = row.parts("messages") or row.parts("interactions")
    said = [turn for turn in turns if turn["role"] == "assistant"]
    return text_of(said[-1]["content"]) if said else None


def _metric(row: LogRow) -> str:
    result = row.text("evaluation_result_id") or ""
    named = row["@metadata"].text(METADATA_KEYS["metric"]) or row.reading.own["metrics"].get(result)
    for known in filter(None, (row["evaluation_id"], row["model_id"], row["@task"])):
        result = result.replace(str(known), "")
    return named or result.strip("/:#.-_| ") or "score"


def _instance_scores(row: LogRow) -> list[Score]:
    """Return all metrics that the converter of lm-eval stored, else the score, 0 after errors."""
    score = Score(_metric(row), None, row["@scorer"])
    several = row["@metadata"].text("lm_eval_metrics")
    if several is not None:
        try:
            values = as_mapping(decode(several.encode()))
        except Malformed as error:
            row.report_problem(str(error), "metadata.lm_eval_metrics")
            return [score]
        return scores_of(numbers(values), row["@scorer"]) or [score]
    evaluation = row.part("evaluation" if "evaluation" in row.values else "metrics")
    value = evaluation.number("score")
    score.value = number(evaluation["is_correct"]) if value is None else value
    if row.text("error") and not score.value:
        score.value, score.outcome = None, Outcome.ERROR
    return [score]


def _restore(row: LogRow, sample: Sample) -> None:
    """Restore fields beyond the schema: those of forgetmap's writer, and the epoch of Inspect."""
    metadata, options, answer = row["@metadata"], sample.options, sample.answer or sample.response
    if answer and options and (answer in options or re.fullmatch("[A-Z]", answer)):
        sample.choice = answer
    if epoch := as_count(number(metadata["epoch"])):
        sample.repeat = epoch - 1
    score = sample.scores[0]
    stored = {name: key for name, key in METADATA_KEYS.items() if key in metadata.values}
    for name, key in stored.items():
        text, kind = metadata.text(key), "number" if name == "seed" else KINDS.get(name, "text")
        typed = {key: number(text) if kind in ("count", "number") else text}
        value = metadata.within(typed).find(key, kind)
        if value is not None and name not in {"metric", "scorer", "outcome"}:
            setattr(sample, name, int(value) if name == "seed" else value)
    outcome = metadata.text(METADATA_KEYS["outcome"])
    if outcome in list(Outcome):
        score.outcome = Outcome(outcome)
    if sample.repeat is None:
        # Rows with different metrics are not repeats.
        content = (sample.task, sample.item, score.metric, score.scorer, sample.question)
        sample.repeat = row.reading.seen[content]
        row.reading.seen[content] += 1


EVERY_EVAL_EVER = Format(
    name="every-eval-ever",
    title="every_eval_ever instances",
    fields=[("schema_version", "evaluation_id", "evaluation_name", "sample_id", "input")],
    beside={
        "aggregate": Companion(
            fields=[("evaluation_id", "evaluation_results", "model_info")],
            belongs=lambda file, other: (
                file.peek.first.get("evaluation_id") == other.peek.first.get("evaluation_id")
            ),
        )
    },
    rows=_instances,
    preferred=["score", "acc", "accuracy", "exact_match"],
    harness=lambda head: head.plain("eval_library.name") or "every_eval_ever",
    about="aggregate",
    model=lambda head: head.first.plain("model_id"),
    version="eval_library.version",
    created=_evaluated_at,
    form=lambda head: f" {head.first.plain('schema_version') or ''}".rstrip(),
    decoding=lambda head: numbers(as_mapping(head[_ARGUMENTS])),
    tasks=lambda head: sorted(
        {one.plain("evaluation_name") or "?" for one in head.parts("evaluation_results")}
        or {_task_of_instance(head.first) or "?"}
    ),
    metrics=lambda head: {name: info for _, name, info in _metrics(head)},
    scores=_instance_scores,
    tokens_in="token_usage.input_tokens",
    tokens_out="token_usage.output_tokens",
    error="error",
    finish=_restore,
)
"""Instances of schema 0.1 to 0.3: one result of one sample per line. Its converters store values
without a field in the schema in `metadata`: lm-eval's filter and further metrics, Inspect's epoch.
So does the writer of forgetmap (records/export/every_eval_ever.py)."""

_NO_SCORES = (
    "input", "output", "step", "prompt", "completion", "gts", "advantage", "data_source", "uid",
    "request_id",
)  # fmt: skip


def _rollouts(name: str, prompt: str, response: str, gold: str = "", **values: Any) -> Format:
    """Declare rows without ids: the prompt is the item, and several answers to it are repeats."""

    def item(row: LogRow) -> str | None:
        question = last_question(row[prompt])
        return digest(question, as_json_text(row[gold])) if question else None

    return Format(
        name=name,
        title=f"{name} rollouts",
        # Of several steps in one folder the last counts; `--run` chooses another.
        stamp=lambda head: None if (n := as_count(head["step"])) is None else f"{n:08d}",
        step=lambda head: as_count(head["step"]),
        tasks=lambda head: () if "data_source" in head.file.peek.names else name,
        task=lambda row: row.text("data_source") or name,
        item=item,
        scores=lambda row: scores_of(numbers(row.values, _NO_SCORES)) or [Score("score", None)],
        question=lambda row: last_question(row[prompt]),
        gold=as_json(gold),
        answer=plain("pred"),
        prompt=prompt,
        response=lambda row: texts_of_role(row[response], "assistant"),
        **values,
    )


VERL = _rollouts(
    *("verl", "input", "output", "gts"),
    fields=[("input", "output", "score", "step")],
    preferred=["acc", "score"],
)
"""`STEP.jsonl` of `trainer.validation_data_dir` or `rollout_data_dir`."""
TRL = _rollouts(
    *("trl", "prompt", "completion"),
    fields=[("step", "prompt", "completion")],
    preferred=["accuracy_reward", "correctness_reward_func", "accuracy"],
    accepts=lambda file: bool(numbers(file.peek.first, _NO_SCORES)),
)
"""`completions_STEP.parquet` of `log_completions`, with a column per reward function."""
OPENRLHF = _rollouts(
    *("openrlhf", "input", "output"),
    fields=[("input", "output", "reward")],
    accepts=lambda file: len(file.peek.names) == 3,
)
"""Lines of `batch_inference`: only these three fields."""

_NO_METRICS = {
    "prompt", "completion", "reward", "example_id", "id", "answer", "error", "error_chain",
    "generation_ms", "info", "is_completed", "is_truncated", "long_error_chain", "metrics",
    "scoring_ms", "src_id", "stop_condition", "task", "timing", "token_usage", "tool_defs",
    "total_ms", "trajectory",
}  # fmt: skip
"""Columns of a row of verifiers that are not metrics."""
_FOLDER = r"(?:^|/)(?P<env>[^/]+?)--(?P<model>[^/]+)/"


def _example(row: LogRow) -> str | None:
    """Return the id, or one made from question and answer; `id` numbers rollouts, not items."""
    item, question = row.name("@item", "example_id"), last_question(row["prompt"])
    return item or (digest(question, as_json("answer")(row)) if question else None)


def _verifiers(**values: Any) -> Format:
    return Format(
        beside={"metadata": Companion(fields=[("model", "num_examples", "rollouts_per_example")])},
        harness="verifiers",
        about="metadata",
        model=lambda head: (
            head.plain("model")
            or head.first.plain("traces.0.agent.config.model", "traces.0.calls.0.model")
            or head.named(_FOLDER).get("model", "").replace("--", "/")
            or None
        ),
        version="version_info.vf_version",
        # Date and time were separate fields up to 0.1.3.
        created=lambda head: (
            "T".join([text for text in (head["date"], head["time"]) if isinstance(text, str)])
            or None
        ),
        decoding=lambda head: numbers(as_mapping(head["sampling_args"])),
        tasks=lambda head: (
            head.plain("env_id", "env")
            or head.first.plain("env.id")
            or head.named(_FOLDER).get("env", "verifiers")
        ),
        main="reward",
        item=_example,
        question=lambda row: last_question(row["prompt"]),
        gold=as_json("answer"),
        totals=lambda reading: reading.state("avg_reward", reading.head["avg_reward"], "reward"),
        **values,
    )


def _rewarded(row: LogRow) -> list[Score]:
    # Metrics were columns up to 0.1.8.
    metrics = row.part("metrics") if "metrics" in row.values else row
    reward = {"reward": row.number("reward")}
    scores = scores_of(reward | numbers(metrics.values, _NO_METRICS))
    if row["is_truncated"] is True and scores[0].value == 0:
        scores[0].outcome = Outcome.TRUNCATED
    return scores


VERIFIERS = _verifiers(
    name="verifiers",
    title="verifiers",
    fields=[("prompt", "completion", "reward")],
    accepts=lambda file: bool(file.peek.keys & {"example_id", "id", "answer", "info"}),
    task=lambda row: (row.text("task") or "default").removeprefix("default") or None,
    scores=_rewarded,
    tokens_in="token_usage.input_tokens",
    tokens_out="token_usage.output_tokens",
    finish_reason="stop_condition",
    prompt="prompt",
    response=lambda row: texts_of_role(row["completion"], "assistant"),
    failure=as_json("error"),
)
"""vf-eval and prime eval: one rollout per line of results.jsonl, metadata.json beside it."""


def _episodes(reading: LogReading) -> Iterator[LogRow]:
    for row in reading.lines():
        task, traces = row.part("task"), row.parts("traces")
        data, first = task.part("data"), traces[0] if traces else row.within({})
        failed = (as_list(p["errors"]) for p in (row, *traces) if p["ok"] is False)
        said = [node["message"] for node in first.parts("nodes") if node["sampled"] is True]
        yield data.adding(
            item=task.name("key", "hash") or data.name("idx"),
            task=row.part("env").text("id"),
            traces=traces,
            error=next((as_json_text(errors[-1]) for errors in failed if errors), None),
            finish_reason=first.text("stop_condition"),
            response=texts_of_role(said, "assistant"),
        )


def _agent_scores(row: LogRow) -> list[Score]:
    """Return the weighted sum of the rewards of each agent, its parts and its metrics."""
    scores: list[Score] = []
    for trace in row["@traces"]:
        rewards, metrics = trace.part("rewards"), trace.part("metrics")
        each = {name: trace.within(as_mapping(one)) for name, one in rewards.values.items()}
        parts = {name: part.number("score") for name, part in each.items()}
        weights = [part.number("weight") for part in each.values()]
        known = [
            score * (1.0 if weight is None else weight)
            for score, weight in zip(parts.values(), weights, strict=True)
            if score is not None
        ]
        reward = {"reward": sum(known) if known and len(known) == len(parts) else None}
        values = reward | parts | {name: metrics.number(name) for name in metrics.values} | reward
        failed = Outcome.ERROR if trace["ok"] is False else None
        agent = trace.part("agent").text("name") if len(row["@traces"]) > 1 else None
        for name, value in values.items():
            scores.append(Score(name, value, agent or "default", failed if value is None else None))
    return scores or [Score("reward", None, outcome=row["@error"] and Outcome.ERROR)]


VERIFIERS_V1 = _verifiers(
    name="verifiers-v1",
    title="verifiers traces",
    fields=[("env", "task", "traces", "ok")],
    rows=_episodes,
    scores=_agent_scores,
)
"""traces.jsonl: one episode per line, with a trace of each agent."""
