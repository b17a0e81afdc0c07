"""Frameworks: OpenAI evals, promptfoo, every_eval_ever."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from forgetmap.records import METADATA_KEYS, MetricInfo, Outcome
from forgetmap.sources.adapter import Sample, Score
from forgetmap.sources.decode import Malformed, decode, number
from forgetmap.sources.fields import (
    MAX_COUNT,
    as_json_text,
    as_list,
    as_mapping,
    as_objects,
    as_text,
    replace_surrogates,
)
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import (
    Companion,
    Format,
    Head,
    LogReading,
    LogRow,
    digest,
    first_of,
    numbers,
    plain,
    scores_of,
)
from forgetmap.sources.messages import last_question


def _spec(file: LogFile) -> dict[str, Any]:
    """Return the settings in the first line of an evaluation."""
    specs = (as_mapping(row.get("spec")) for row in file.peek.objects)
    return next((spec for spec in specs if {"completion_fns", "eval_name"} <= spec.keys()), {})


def _task_of(sample: object) -> str | None:
    """Return the task in an id, `EVAL.SPLIT.NUMBER`, for logs without their first line."""
    parts = sample.rsplit(".", 2) if isinstance(sample, str) else []
    return replace_surrogates(parts[0]) if len(parts) == 3 and parts[2].isdecimal() else None


def _base_task(head: Head) -> str:
    ids = (_task_of(row.get("sample_id")) for row in head.file.peek.objects)
    return next(filter(None, ids), None) or head.plain("base_eval") or "openai-evals"


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
            [event.part("data").values for event in events if event["type"] == kind]
            for kind in ("match", "metrics", "sampling", "error")
        )
        answer = sampled[-1] if sampled else {}
        said, error = answer.get("sampled"), errors[-1].get("message") if errors else None
        is_one = isinstance(said, list) and len(said) == 1
        row = events[0].adding(
            item=item,
            prompt=answer.get("prompt"),
            response=as_json_text(first_of(said) if is_one else said),
            error=as_json_text(error) or "error" if errors else None,
        )
        verdicts = list(zip_longest(matches, metrics)) or [(None, None)]
        for repeat, (match, further) in enumerate(verdicts):
            yield row.adding(repeat=repeat, match=match, metrics=as_mapping(further))


def _verdict(row: LogRow) -> list[Score]:
    right = {} if row["@match"] is None else {"accuracy": row.part("@match").number("correct")}
    scores = scores_of(numbers(row["@metrics"], right))
    failed = Outcome.ERROR if row["@error"] else None
    return scores_of(right) + scores or [Score("accuracy", None, outcome=failed)]


def _unanswered(row: LogRow) -> str | None:
    return row["@error"] if number(row["@match.correct"]) is None else None


OPENAI_EVALS = Format(
    name="openai-evals",
    title="OpenAI evals events",
    fields=[("run_id", "event_id", "sample_id", "type", "data"), ("spec",)],
    accepts=lambda file: file.peek.has("event_id") or bool(_spec(file)),
    rows=_joined,
    preferred=["accuracy", "score"],
    about=lambda head: _spec(head.file),
    run_id="run_id",
    model=lambda head: as_text(next(iter(as_list(head["completion_fns"])), None)),
    created="created_at",
    tasks=_base_task,
    task=lambda row: _task_of(row["@item"]),
    scores=_verdict,
    question=lambda row: last_question(row["@prompt"]),
    gold=lambda row: as_json_text(first_of(row["@match.expected"])),
    answer=lambda row: as_json_text(row["@match.picked"]),
    error=_unanswered,
    totals=lambda r: r.state("final_report.accuracy", r.own.get("report"), "accuracy"),
)
"""Logs of `oaieval`: events, one per line, from `spec` to `final_report`. Events `match` tell
whether an answer is right, `metrics` give other scores, `sampling` has prompt and response."""

_BROKEN = 2
"""The `failureReason` of a result that is an error, not a failed assertion."""
_MAX_TASK_NAME = 60


def _of_results(top: Mapping[str, Any], name: str) -> Any:
    """Return a field of the evaluation, in the current format or that of version 1."""
    results = top.get("results")
    return results.get(name) if isinstance(results, dict) else top.get(name)


def _has_results(file: LogFile) -> bool:
    top = file.peek.first
    results = map(as_mapping, as_list(_of_results(top, "results"))[:3])
    is_versioned = {"evalId", "version"} & {*top, *as_mapping(top.get("results"))}
    return bool(is_versioned) and any({"success", "vars", "prompt"} <= r.keys() for r in results)


def _tests(reading: LogReading) -> Iterator[LogRow]:
    """Yield the results; promptfoo numbers the repetitions of a test separately."""
    top = reading.document
    name, prompts = top.plain("config.description") or "promptfoo", _prompts(top.values)
    first: dict[object, str] = {}
    for index, result in enumerate(as_list(_of_results(top.values, "results"))):
        if not isinstance(result, dict):
            top.report_problem("a result is not an object", f"results.{index}")
            continue
        row = reading.row(result)
        content = [row["vars"], row["testCase.assert"], row["testCase.description"]]
        key = json.dumps(content, sort_keys=True, default=str)
        item = row.plain("testIdx") or digest(key, size=4)
        item = first.setdefault((_provider(row), key), item)
        prompt = row["prompt"]
        yield row.adding(
            item=item,
            task=_prompt_task(name, prompts, _template(prompt)),
            prompt=as_text(prompt if isinstance(prompt, str) else row["prompt.raw"]),
        )


def _provider(row: LogRow) -> str | None:
    """Return the label of the provider, else its id."""
    return row.plain("provider", "provider.label", "provider.id")


def _prompts(top: Mapping[str, Any]) -> list[str]:
    """Return the templates of all prompts, which the evaluation lists once for each provider."""
    head = as_mapping(as_mapping(_of_results(top, "table")).get("head"))
    listed = as_list(_of_results(top, "prompts")) or as_list(head.get("prompts"))
    return list(dict.fromkeys(filter(None, map(_template, listed))))


def _template(prompt: object) -> str:
    """Return the name of a prompt: `label`, in version 1 `display`, or its text."""
    about = as_mapping(prompt)
    return as_text(about.get("label") or about.get("display") or about.get("raw") or prompt) or ""


def _prompt_task(name: str, prompts: list[str], template: str) -> str:
    """Return the name of the evaluation, with the prompt if there are several."""
    if len(prompts) <= 1:
        return name
    words = " ".join(template.split())
    if 0 < len(words) <= _MAX_TASK_NAME:
        return f"{name}: {words}"
    label = prompts.index(template) + 1 if template in prompts else digest(template, size=4)
    return f"{name}: prompt {label}"


def _assertions(row: LogRow) -> list[Score]:
    """Return pass or fail, the score, and named scores."""
    values = {"pass": row.number("success")}
    if row["score"] is not None:
        values["score"] = row.number("score")
    named = row.part("namedScores")
    return scores_of(values | {replace_surrogates(n): named.number(n) for n in named.values})


def _broken(row: LogRow) -> str | None:
    """Return the error of a result that was not graded, not that of a failed assertion."""
    error, reason = row.json_text("error"), row["failureReason"]
    is_broken = reason == _BROKEN if reason is not None else row["gradingResult"] is None
    return error if error and is_broken and row["success"] is not True else None


def _state_successes(reading: LogReading) -> None:
    top = reading.document.values
    if reading.log.notes["parts"] == 1 and len(_prompts(top)) <= 1:
        stats = as_mapping(_of_results(top, "stats"))
        reading.state("stats.successes", stats.get("successes"), "pass", kind="sum")


PROMPTFOO = Format(
    name="promptfoo",
    title="promptfoo output",
    fields=[("results",)],
    accepts=_has_results,
    rows=_tests,
    apart=lambda row: [_provider(row)],
    preferred=["pass"],
    about="document",
    run_id=plain("evalId"),
    created=lambda head: as_text(_of_results(head.values, "timestamp")),
    scores=_assertions,
    question=lambda row: as_json_text(row["vars"] or None) or row["@prompt"],
    tokens_in="response.tokenUsage.prompt",
    tokens_out="response.tokenUsage.completion",
    response=lambda row: as_json_text(row["response.output"]),
    failure=_broken,
    totals=_state_successes,
)
"""The output of an evaluation as one object: in version 1 `results` is a list and providers are not
named, from 2 on `results.results` is a list with provider, prompt and test of each result."""

_WHOLE = {"repeat", "k", "gold_index", "seed", "tokens_in", "tokens_out"}
_REAL = {"logprob_answer", "logprob_gold"}


def _evaluated_at(head: Head) -> str | None:
    """Return seconds since 1970, or a date, as ISO 8601; else None."""
    evaluation = head.first.plain("evaluation_id") or ""
    text = head.plain("evaluation_timestamp") or evaluation.rpartition("/")[2]
    if re.fullmatch(r"\d{9,10}(?:\.\d+)?", text):
        return datetime.fromtimestamp(float(text), UTC).isoformat()
    return text if re.match(r"\d{4}-\d\d-\d\d", text) else None


def _generation(head: Head) -> dict[str, Any]:
    """Return the numeric generation settings of the first result that has any."""
    every = (one["generation_config.generation_args"] for one in head.parts("evaluation_results"))
    args = next(filter(None, map(as_mapping, every)), {})
    return {name: value for name, value in args.items() if type(value) in {int, float}}


def _metrics(head: Head) -> Iterator[tuple[str, str, MetricInfo]]:
    """Yield the id of each result, with name, range and direction of its metric."""
    for result in head.parts("evaluation_results"):
        key, config = result["evaluation_result_id"], as_mapping(result["metric_config"])
        name = config.get("metric_id") or config.get("metric_name")
        if isinstance(key, str) and isinstance(name, str):
            up = config.get("lower_is_better") is not True
            low, high = number(config.get("min_score")), number(config.get("max_score"))
            info = MetricInfo(low=low, high=high, higher_is_better=up)
            yield key, replace_surrogates(name), info


def _task_and_scorer(row: LogRow) -> tuple[str | None, str]:
    """Return task and scorer; the converter of lm-eval appends the filter to the name."""
    metadata, task = row.part("metadata"), row.text("evaluation_name")
    used = metadata.text("filter")
    if task and used:
        task = task.removesuffix(f"/{used}")
    return task, used or metadata.text(METADATA_KEYS["scorer"]) or "default"


def _stated_tasks(head: Head) -> list[str]:
    names = {one.plain("evaluation_name") for one in head.parts("evaluation_results")} - {None}
    return sorted(map(str, names or {_task_and_scorer(head.first)[0] or "?"}))


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
        answers = [replace_surrogates(text) for text in extracted if isinstance(text, str)]
        reference = asked["reference"]  # before 0.2.1 there was only one
        golds = asked.text("reference") if isinstance(reference, str) else asked.texts("reference")
        yield row.adding(
            task=task,
            item=row.name("sample_id") if task else None,
            scorer=scorer,
            metadata=metadata,
            # The converter of lm-eval writes the rendered prompt as the input.
            rendered="doc_hash" in metadata.values,
            options=asked.texts("choices") or None,
            gold=golds if isinstance(golds, str) else next(iter(golds or ()), None),
            answer=answers[-1] if answers else None,
            response=_output(row),
        )


def _output(row: LogRow) -> str | None:
    """Return the output, else the last message of the model."""
    output = row.part("output")
    if isinstance(output["raw"], str):
        return output.text("raw")
    if several := output.texts("raw"):
        return "\n\n".join(several)
    turns = as_objects(row["messages"] or row["interactions"])
    contents = [turn.get("content") for turn in turns if turn.get("role") == "assistant"]
    texts = [content for content in contents if isinstance(content, str)]
    return replace_surrogates(texts[-1]) if texts else None


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
    missing = Score(_metric(row), None, row["@scorer"])
    several = row["@metadata"].text("lm_eval_metrics")
    if several is not None:
        try:
            values = as_mapping(decode(several.encode()))
        except Malformed as error:
            row.report_problem(str(error), "metadata.lm_eval_metrics")
            return [missing]
        return scores_of(numbers(values), row["@scorer"]) or [missing]
    evaluation = row.part("evaluation" if "evaluation" in row.values else "metrics")
    value = evaluation.number("score")
    value = number(evaluation["is_correct"]) if value is None else value
    if row.text("error") and not value:
        value, missing.outcome = None, Outcome.ERROR
    missing.value = value
    return [missing]


def _chosen(row: LogRow) -> str | None:
    """Return the answer if it is an option or a letter."""
    answer, options = row["@answer"] or row["@response"], row["@options"]
    fits = answer is not None and options and (answer in options or re.fullmatch("[A-Z]", answer))
    return answer if fits else None


def _restore(row: LogRow, sample: Sample) -> None:
    """Restore fields beyond the schema: those of forgetmap's writer, and the epoch of Inspect."""
    metadata, gold, options = row["@metadata"], sample.gold, sample.options
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
    if name in _WHOLE:
        fits = re.fullmatch(r"-?\d{1,18}", text) and (name == "seed" or 0 <= int(text) <= MAX_COUNT)
        return int(text) if fits else None
    if name in _REAL:
        return number(text)
    return None if name == "outcome" and text not in list(Outcome) else text


def _is_of(file: LogFile, aggregate: LogFile) -> bool:
    """Whether an aggregate document is about the evaluation of some instances."""
    return file.peek.first.get("evaluation_id") == aggregate.peek.first.get("evaluation_id")


EVERY_EVAL_EVER = Format(
    name="every-eval-ever",
    title="every_eval_ever instances",
    fields=[("schema_version", "evaluation_id", "evaluation_name", "sample_id", "input")],
    beside={
        "aggregate": Companion(
            fields=[("evaluation_id", "evaluation_results", "model_info")], belongs=_is_of
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
    decoding=_generation,
    tasks=_stated_tasks,
    metrics=lambda head: {name: info for _, name, info in _metrics(head)},
    scores=_instance_scores,
    question=lambda row: None if row["@rendered"] else row.part("input").text("raw") or None,
    choice=_chosen,
    tokens_in="token_usage.input_tokens",
    tokens_out="token_usage.output_tokens",
    finish_reason=lambda row: row["@metadata"].text("stop_reason") or None,
    prompt=lambda row: row.part("input").text("raw" if row["@rendered"] else "formatted"),
    error="error",
    finish=_restore,
)
"""Instances of schema 0.1 to 0.3: one result of one sample per line. Its converters store values
without a field in the schema in `metadata`: lm-eval's filter and further metrics, Inspect's epoch.
So does the writer of forgetmap (records/export/every_eval_ever.py)."""
