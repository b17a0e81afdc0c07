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
from forgetmap.sources.formats.values import as_json, as_time, digest, numbers, plain, scores_of
from forgetmap.sources.messages import last_question, text_of, texts_of_role


def _spec(file: LogFile) -> dict[str, Any]:
    """Return the settings in the first line of an evaluation."""
    specs = (as_mapping(row.get("spec")) for row in file.peek.objects)
    return next((spec for spec in specs if {"completion_fns", "eval_name"} <= spec.keys()), {})


def _task_of(sample: object) -> str | None:
    """Return the task in an id, `EVAL.SPLIT.NUMBER`, for logs without their first line."""
    parts = sample.rsplit(".", 2) if isinstance(sample, str) else []
    return parts[0] if len(parts) == 3 and parts[2].isdecimal() else None


def _joined(reading: LogReading) -> Iterator[LogRow]:
    """Yield the events of each sample as one row per verdict; several verdicts are repeats."""
    samples: dict[str, list[LogRow]] = {}
    for row in reading.lines():
        item = row.name("sample_id")
        if "final_report" in row.values:
            reading.own["report"] = row["final_report.accuracy"]
        if item is not None:
            samples.setdefault(item, []).append(row)
        elif "spec" not in row.values and "final_report" not in row.values:
            row.report_problem("an event has no sample_id", "sample_id")
    for item, events in samples.items():
        matches, metrics, sampled, errors = (
            [event.part("data") for event in events if event["type"] == kind]
            for kind in ("match", "metrics", "sampling", "error")
        )
        nothing = events[0].within({})
        answer, error = (found[-1] if found else nothing for found in (sampled, errors))
        said = answer["sampled"]
        row = events[0].adding(
            item=item,
            task=_task_of(item),
            question=last_question(answer["prompt"]),
            prompt=answer["prompt"],
            response=as_json_text(said[0] if isinstance(said, list) and len(said) == 1 else said),
        )
        failure = as_json_text(error["message"]) or "error" if errors else None
        verdicts = [*zip_longest(matches, metrics)] or [(None, None)]
        for repeat, (match, further) in enumerate(verdicts):
            graded = match or nothing
            yield row.adding(
                repeat=repeat,
                match=match,
                metrics=further.values if further else {},
                gold=as_json(*("expected.0", "expected"))(graded),
                answer=graded.json_text("picked"),
                error=failure if number(graded["correct"]) is None else None,
            )


def _verdict(row: LogRow) -> list[Score]:
    right = {} if row["@match"] is None else {"accuracy": row["@match"].number("correct")}
    failed = Outcome.ERROR if row["@error"] else None
    missing = Score("accuracy", None, outcome=failed)
    return scores_of(right | numbers(row["@metrics"], right)) or [missing]


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
        filter(None, (_task_of(row.get("sample_id")) for row in head.file.peek.objects)),
        head.plain("base_eval") or "openai-evals",
    ),
    scores=_verdict,
    totals=lambda r: r.state("final_report.accuracy", r.own.get("report"), "accuracy"),
)
"""Logs of `oaieval`: events, one per line, from `spec` to `final_report`. Events `match` tell
whether an answer is right, `metrics` give other scores, `sampling` has prompt and response."""

_BROKEN = 2
"""The `failureReason` of a result that is an error, not a failed assertion."""
_MAX_TASK_NAME = 60


def _has_results(file: LogFile) -> bool:
    top = file.peek.first
    outer = as_mapping(top.get("results"))
    results = map(as_mapping, as_list(outer.get("results", top.get("results")))[:3])
    is_versioned = {"evalId", "version"} & {*top, *outer}
    return bool(is_versioned) and any({"success", "vars", "prompt"} <= r.keys() for r in results)


def _tests(reading: LogReading) -> Iterator[LogRow]:
    """Yield the results; promptfoo numbers the repetitions of a test separately."""
    top, prompts = reading.document, _prompts(reading)
    first: dict[object, str] = {}
    for index, result in enumerate(as_list(top.any("results.results", "results"))):
        if not isinstance(result, dict):
            top.report_problem("a result is not an object", f"results.{index}")
            continue
        row = reading.row(result)
        content = [row["vars"], row["testCase.assert"], row["testCase.description"]]
        key = json.dumps(content, sort_keys=True, default=str)
        item = row.plain("testIdx") or digest(key, size=4)
        provider = row.plain("provider", "provider.label", "provider.id")
        task, prompt = top.plain("config.description") or "promptfoo", row["prompt"]
        if len(prompts) > 1:
            template = _template(prompt)
            place = prompts.index(template) + 1 if template in prompts else digest(template, size=4)
            words = " ".join(template.split())
            task += f": {words if 0 < len(words) <= _MAX_TASK_NAME else f'prompt {place}'}"
        yield row.adding(
            item=first.setdefault((provider, key), item),
            model=provider,
            task=task,
            prompt=row.plain("prompt", "prompt.raw"),
        )


def _prompts(reading: LogReading) -> list[str]:
    """Return the templates of all prompts, which the evaluation lists once for each provider."""
    homes = ("results.prompts", "results.table.head.prompts", "table.head.prompts")
    listed = as_list(reading.document.any(*homes))
    return list(dict.fromkeys(filter(None, map(_template, listed))))


def _template(prompt: object) -> str:
    """Return the name of a prompt: `label`, in version 1 `display`, or its text."""
    about = as_mapping(prompt)
    return as_text(about.get("label") or about.get("display") or about.get("raw") or prompt) or ""


def _assertions(row: LogRow) -> list[Score]:
    """Return pass or fail, the score, and named scores."""
    values, named = {"pass": row.number("success")}, row.part("namedScores")
    if row["score"] is not None:
        values["score"] = row.number("score")
    return scores_of(values | {name: named.number(name) for name in named.values})


def _broken(row: LogRow) -> str | None:
    """Return the error of a result that was not graded, not that of a failed assertion."""
    error, reason = row.json_text("error"), row["failureReason"]
    is_broken = reason == _BROKEN if reason is not None else row["gradingResult"] is None
    return error if error and is_broken and row["success"] is not True else None


def _state_successes(reading: LogReading) -> None:
    if reading.log.notes["parts"] == 1 and len(_prompts(reading)) <= 1:
        stated = reading.document.any("results.stats.successes", "stats.successes")
        reading.state("stats.successes", stated, "pass", kind="sum")


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
    totals=_state_successes,
)
"""The output of an evaluation as one object: in version 1 `results` is a list and providers are not
named, from 2 on `results.results` is a list with provider, prompt and test of each result."""


def _evaluated_at(head: Head) -> str | None:
    """Return seconds since 1970, or a date, as ISO 8601; else None."""
    evaluation = head.first.plain("evaluation_id") or ""
    text = head.plain("evaluation_timestamp") or evaluation.rpartition("/")[2]
    return text if re.match(r"\d{4}-\d\d-\d\d", text) else as_time(text)


def _metrics(head: Head) -> Iterator[tuple[str, str, MetricInfo]]:
    """Yield the id of each result, with name, range and direction of its metric."""
    for result in head.parts("evaluation_results"):
        key, config = result["evaluation_result_id"], as_mapping(result["metric_config"])
        name = config.get("metric_id") or config.get("metric_name")
        if isinstance(key, str) and isinstance(name, str):
            up = config.get("lower_is_better") is not True
            low, high = number(config.get("min_score")), number(config.get("max_score"))
            yield key, name, MetricInfo(low=low, high=high, higher_is_better=up)


def _task_and_scorer(row: LogRow) -> tuple[str | None, str]:
    """Return task and scorer; the converter of lm-eval appends the filter to the name."""
    metadata, task = row.part("metadata"), row.text("evaluation_name")
    used = metadata.text("filter")
    if task and used:
        task = task.removesuffix(f"/{used}")
    return task, used or metadata.text(METADATA_KEYS["scorer"]) or "default"


def _instances(reading: LogReading) -> Iterator[LogRow]:
    """Yield the rows of the model, with what several values need."""
    model = reading.log.info.model.name
    reading.own["metrics"] = {key: name for key, name, _ in _metrics(reading.head)}
    for row in reading.lines():
        own = row.text("model_id")
        if model not in (None, own):
            row.report_problem(f"this is a result of {own!r}, but the log belongs to {model!r}")
            continue
        task, scorer = _task_and_scorer(row)
        asked, metadata = row.part("input"), row.part("metadata")
        extracted = [part["extracted_value"] for part in row.parts("answer_attribution")]
        answers = [text for text in extracted if isinstance(text, str)]
        # Before 0.2.1 there was only one reference.
        is_one = isinstance(asked["reference"], str)
        golds = asked.within({"reference": [asked["reference"]]}) if is_one else asked
        # The converter of lm-eval writes the rendered prompt as the input.
        is_rendered = "doc_hash" in metadata.values
        yield row.adding(
            task=task,
            item=row.name("sample_id") if task else None,
            scorer=scorer,
            metadata=metadata,
            rendered=is_rendered,
            question=None if is_rendered else asked.text("raw") or None,
            options=asked.texts("choices") or None,
            gold=next(iter(golds.texts("reference") or ()), None),
            answer=answers[-1] if answers else None,
            finish_reason=metadata.text("stop_reason") or None,
            prompt=asked.text("raw" if is_rendered else "formatted"),
            response=_output(row),
        )


def _output(row: LogRow) -> str | None:
    """Return the output, else the last message of the model."""
    output = row.part("output")
    if isinstance(output["raw"], str):
        return output.text("raw")
    if several := output.texts("raw"):
        return "\n\n".join(several)
    turns = row.parts("messages") or row.parts("interactions")
    said = [turn for turn in turns if turn["role"] == "assistant"]
    return text_of(said[-1]["content"]) if said else None


def _metric(row: LogRow) -> str:
    """Return the metric named by the aggregate document, else by the result id."""
    own = row["@metadata"].text(METADATA_KEYS["metric"])
    result = row.text("evaluation_result_id")
    if own or not result:
        return own or "score"
    if result in row.reading.own["metrics"]:
        return str(row.reading.own["metrics"][result])
    for known in (row.text("evaluation_id"), row.text("model_id"), row["@task"]):
        result = result.replace(known, "") if known else result
    return result.strip("/:#.-_| ") or "score"


def _instance_scores(row: LogRow) -> list[Score]:
    """Return all metrics stored by the converter of lm-eval, or the single score.

    The converters write 0 if a sample failed.
    """
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
    score.value = evaluation.number("score")
    if score.value is None:
        score.value = number(evaluation["is_correct"])
    if row.text("error") and not score.value:
        score.value, score.outcome = None, Outcome.ERROR
    return [score]


def _restore(row: LogRow, sample: Sample) -> None:
    """Restore fields beyond the schema: those of forgetmap's writer, and the epoch of Inspect."""
    metadata, gold, options = row["@metadata"], sample.gold, sample.options
    answer = sample.answer or sample.response
    if answer and options and (answer in options or re.fullmatch("[A-Z]", answer)):
        sample.choice = answer
    if row["@rendered"] and options and gold not in options:
        is_index = gold and re.fullmatch(r"\d{1,3}", gold)  # which lm-eval writes as the gold
        sample.gold_index = int(gold) if gold and is_index else None
    epoch = metadata["epoch"]
    if isinstance(epoch, str) and re.fullmatch(r"[1-9]\d{0,5}", epoch):
        sample.repeat = int(epoch) - 1
    for name, key in METADATA_KEYS.items():
        text = metadata.text(key)
        value = None if text is None else _typed(name, text)
        if text is not None and value is None:
            row.report_problem(f"{text!r:.60} is not valid for {name}", f"metadata.{key}")
        elif value is not None and name == "outcome":
            sample.scores[0].outcome = Outcome(str(value))
        elif value is not None and name not in {"metric", "scorer"}:
            setattr(sample, name, value)
    if sample.repeat is None:
        # Rows with different metrics are not repeats.
        measure = (sample.scores[0].metric, sample.scores[0].scorer)
        content = (sample.task, sample.item, *measure, sample.question, sample.gold)
        sample.repeat = row.reading.seen[content]
        row.reading.seen[content] += 1


def _typed(name: str, text: str) -> str | int | float | None:
    """Return the value of a field of a sample from its text; None if it is not valid."""
    if name == "seed":
        return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None
    if name == "outcome":
        return text if text in list(Outcome) else None
    kind = KINDS.get(name, "text")
    value = number(text) if kind in ("count", "number") else text
    return as_count(value) if kind == "count" else value


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
    # Of several results the first counts.
    decoding=lambda head: {
        name: value
        for result in head.parts("evaluation_results")[::-1]
        for name, value in as_mapping(result["generation_config.generation_args"]).items()
        if type(value) in {int, float}
    },
    tasks=lambda head: sorted(
        {one.plain("evaluation_name") or "?" for one in head.parts("evaluation_results")}
        or {_task_and_scorer(head.first)[0] or "?"}
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


def _rewards(row: LogRow) -> list[Score]:
    """Return all numbers of a row that are scores."""
    if scores := scores_of(numbers(row.values, _NO_SCORES)):
        return scores
    row.report_problem("the row has no score")
    return [Score("score", None)]


def _step(head: Head) -> str | None:
    """Return the step: of several in one folder the last counts; `--run` chooses another."""
    step = as_count(head["step"])
    return None if step is None else f"{step:08d}"


def _rollouts(name: str, prompt: str, response: str, gold: str = "", **values: Any) -> Format:
    """Declare rows without ids: the prompt is the item, and several answers to it are repeats."""

    def question(row: LogRow) -> str | None:
        return last_question(row[prompt])

    def item(row: LogRow) -> str | None:
        return digest(question(row), as_json_text(row[gold])) if question(row) else None

    return Format(
        name=name,
        title=f"{name} rollouts",
        stamp=_step,
        step=lambda head: as_count(head["step"]),
        tasks=lambda head: () if "data_source" in head.file.peek.names else name,
        task=lambda row: row.text("data_source") or name,
        item=item,
        scores=_rewards,
        question=question,
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


def _trained(head: Head) -> str | None:
    """Return the model of the metadata, of the first agent, or of the folder."""
    named = (f"traces.0.{path}.model" for path in ("agent.config", "calls.0"))
    of_folder = head.named(_FOLDER).get("model", "").replace("--", "/")
    return head.plain("model") or head.first.plain(*named) or of_folder or None


def _created(head: Head) -> str | None:
    """Return date and time, which were separate fields up to 0.1.3."""
    date, time = head.text("date"), head["time"]
    return f"{date}T{time}" if date and isinstance(time, str) else date


def _example(row: LogRow) -> str | None:
    """Return the id, or one made from question and answer; `id` numbers rollouts, not items."""
    question = last_question(row["prompt"])
    by_text = digest(question, as_json("answer")(row)) if question else None
    return row.name("@item", "example_id") or by_text


def _verifiers(**values: Any) -> Format:
    """Declare what both forms of results have in common."""
    return Format(
        beside={"metadata": Companion(fields=[("model", "num_examples", "rollouts_per_example")])},
        harness="verifiers",
        about="metadata",
        model=_trained,
        version="version_info.vf_version",
        created=_created,
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
    """Return the reward and all metrics, which were columns up to 0.1.8."""
    is_apart = "metrics" in row.values
    metrics = row.part("metrics").values if is_apart else row.values
    further = numbers(metrics, ["reward"] if is_apart else _NO_METRICS)
    scores = scores_of({"reward": row.number("reward"), **further})
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
    """Yield the data of the task of each episode, with its traces."""
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
    """Return the rewards of all agents; unscored ones are missing."""
    scores = [score for trace in row["@traces"] for score in _weighted(trace)]
    if len(row["@traces"]) == 1:
        scores = [Score(one.metric, one.value, outcome=one.outcome) for one in scores]
    return scores or [Score("reward", None, outcome=row["@error"] and Outcome.ERROR)]


def _weighted(trace: LogRow) -> list[Score]:
    """Return the weighted sum of the rewards of an agent, its parts and the metrics."""
    rewards, metrics = trace.part("rewards"), trace.part("metrics")
    each = {name: trace.within(as_mapping(part)) for name, part in rewards.values.items()}
    parts = {name: part.number("score") for name, part in each.items()}
    weights = {name: part.number("weight") for name, part in each.items()}
    known = [
        score * (1.0 if (weight := weights[name]) is None else weight)
        for name, score in parts.items()
        if score is not None
    ]
    reward = sum(known) if known and len(known) == len(parts) else None
    further = {name: metrics.number(name) for name in metrics.values}
    values = {"reward": None} | parts | further | {"reward": reward}
    failed = Outcome.ERROR if trace["ok"] is False else None
    scorer = trace.part("agent").text("name") or "default"
    return [Score(n, v, scorer, failed if v is None else None) for n, v in values.items()]


VERIFIERS_V1 = _verifiers(
    name="verifiers-v1",
    title="verifiers traces",
    fields=[("env", "task", "traces", "ok")],
    rows=_episodes,
    scores=_agent_scores,
)
"""traces.jsonl: one episode per line, with a trace of each agent."""
