"""every_eval_ever instances, schema 0.1 to 0.3: one result of one sample per line.

Its converters store values without a field in the schema in `metadata`: lm-eval's filter and
further metrics, Inspect's epoch. So does the writer of forgetmap
(records/export/every_eval_ever.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from forgetmap.errors import UnreadableError
from forgetmap.records import METADATA_KEYS, HarnessInfo, MetricInfo, ModelInfo, Outcome, RunInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import Malformed, decode, document, number, rows
from forgetmap.sources.fields import MAX_COUNT, Fields, as_mapping, as_objects, replace_surrogates
from forgetmap.sources.files import LogFile

KEYS = ("schema_version", "evaluation_id", "evaluation_name", "sample_id", "input")
AGGREGATE = ("evaluation_id", "evaluation_results", "model_info")
METRIC = "score"
MAX_AGGREGATE_BYTES = 64 << 20
_WHOLE = {"repeat", "k", "gold_index", "seed", "tokens_in", "tokens_out"}
_REAL = {"logprob_answer", "logprob_gold"}
_UNIX = re.compile(r"\d{9,10}(?:\.\d+)?")
_SEPARATORS = "/:#.-_| "


class EveryEvalEver:
    """Instance records of every_eval_ever."""

    name = "every-eval-ever"
    preferred: Sequence[str] = (METRIC, "acc", "accuracy", "exact_match")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file of instances, with the aggregate document that belongs to it."""
        aggregates = dict(_aggregates(files))
        return [_log(file, aggregates) for file in files if file.peek.has(*KEYS)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per line; the same sample again is a repeat."""
        seen: Counter[tuple[object, ...]] = Counter()
        file, metrics = log.files[0], log.notes["metrics"]
        for line, values in rows(file, problems):
            row = Fields(values, file, line, problems)
            model = row.text("model_id")
            if log.info.model.name not in {None, model}:
                row.report_problem(
                    f"this is a result of {model!r}, but the log belongs to {log.info.model.name!r}"
                )
                continue
            sample = _sample(row, metrics, texts=texts)
            if sample is not None:
                _number(sample, seen)
                yield sample


def _aggregates(files: Sequence[LogFile]) -> Iterator[tuple[str, tuple[LogFile, dict[str, Any]]]]:
    for file in files:
        if not file.peek.has(*AGGREGATE) or file.size > MAX_AGGREGATE_BYTES:
            continue
        try:
            content = document(file)
        except UnreadableError:
            continue
        if isinstance(content, dict) and isinstance(content.get("evaluation_id"), str):
            yield content["evaluation_id"], (file, content)


def _log(file: LogFile, aggregates: Mapping[str, tuple[LogFile, dict[str, Any]]]) -> Log:
    first = Fields(file.peek.first, file, None, Problems())
    evaluation = first.text("evaluation_id") or ""
    aggregate, about = aggregates.get(evaluation, (None, {}))
    document = Fields(about, aggregate or file, None, Problems())
    results = as_objects(about.get("evaluation_results"))
    names = [result.get("evaluation_name") for result in results]
    created = _time(document.text("evaluation_timestamp") or evaluation.rpartition("/")[2])
    metrics = dict(_metrics(results))
    return Log(
        "every-eval-ever",
        (file, aggregate) if aggregate else (file,),
        RunInfo(
            model=ModelInfo(name=first.text("model_id")),
            harness=_harness(document.part("eval_library")),
            decoding=_decoding(results),
            created=created,
            metrics=dict(metrics.values()),
        ),
        tuple(
            sorted(
                {replace_surrogates(n) for n in names if isinstance(n, str)}
                or {_task(first, first.part("metadata"))[0] or "?"}
            )
        ),
        created,
        format=f"every_eval_ever instances {first.text('schema_version') or ''}".strip(),
        notes={"metrics": {key: name for key, (name, _) in metrics.items()}},
    )


def _harness(library: Fields) -> HarnessInfo:
    name = library.text("name")
    return HarnessInfo(name=name or "every_eval_ever", version=library.text("version"))


def _decoding(
    results: Sequence[Mapping[str, Any]],
) -> dict[str, float | int | str | bool | list[str] | None]:
    """Return the numeric generation settings of the first result that has any."""
    for result in results:
        args = as_mapping(as_mapping(result.get("generation_config")).get("generation_args"))
        if args:
            return {replace_surrogates(k): v for k, v in args.items() if type(v) in {int, float}}
    return {}


def _metrics(results: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, MetricInfo]]]:
    """Yield the result ids, each with name, range and direction of its metric."""
    for result in results:
        key, config = result.get("evaluation_result_id"), result.get("metric_config")
        if not isinstance(key, str) or not isinstance(config, dict):
            continue
        name = config.get("metric_id") or config.get("metric_name")
        if isinstance(name, str):
            up = config.get("lower_is_better") is not True
            low, high = number(config.get("min_score")), number(config.get("max_score"))
            yield (
                key,
                (replace_surrogates(name), MetricInfo(low=low, high=high, higher_is_better=up)),
            )


def _time(text: str) -> str | None:
    """Return seconds since 1970, or a date, as ISO 8601; else None."""
    if _UNIX.fullmatch(text):
        return datetime.fromtimestamp(float(text), UTC).isoformat()
    return text if re.match(r"\d{4}-\d\d-\d\d", text) else None


def _task(row: Fields, metadata: Fields) -> tuple[str | None, str]:
    """Return task and scorer; the converter of lm-eval appends the filter to the name."""
    task, used = row.text("evaluation_name"), metadata.text("filter")
    if task and used:
        task = task.removesuffix(f"/{used}")
    return task, used or metadata.text(METADATA_KEYS["scorer"]) or "default"


def _sample(row: Fields, metrics: Mapping[str, str], *, texts: bool) -> Sample | None:
    metadata = row.part("metadata")
    task, scorer = _task(row, metadata)
    item, prompt, tokens = row.name("sample_id"), row.part("input"), row.part("token_usage")
    if not task or not item:
        row.report_problem("the row has no sample_id or no evaluation_name")
        return None
    rendered = "doc_hash" in metadata.values
    options = prompt.texts("choices") or None
    gold = _first(prompt, "reference")
    answer, response, error = _answer(row), _response(row), row.text("error")
    metric = _metric(row, metadata, task, metrics)
    sample = Sample(
        task=task,
        item=item,
        scores=_scores(row, metadata, Score(metric, None, scorer), failed=bool(error)),
        repeat=None,
        question=None if rendered else prompt.text("raw") or None,
        options=options,
        gold=gold,
        gold_index=_index(gold, options) if rendered else None,
        choice=_choice(answer or response, options),
        answer=answer,
        tokens_in=tokens.count("input_tokens"),
        tokens_out=tokens.count("output_tokens"),
        finish_reason=metadata.text("stop_reason") or None,
        prompt=prompt.text("raw" if rendered else "formatted") if texts else None,
        response=response if texts else None,
        error=error,
        file=row.file.name,
        line=row.line,
    )
    _restore(sample, metadata)
    return sample


def _metric(row: Fields, metadata: Fields, task: str, metrics: Mapping[str, str]) -> str:
    """Return the metric named by the aggregate document, else by the result id."""
    own = metadata.text(METADATA_KEYS["metric"])
    result = row.text("evaluation_result_id")
    if own or not result:
        return own or METRIC
    if result in metrics:
        return metrics[result]
    for known in (row.text("evaluation_id"), row.text("model_id"), task):
        result = result.replace(known, "") if known else result
    return result.strip(_SEPARATORS) or METRIC


def _scores(row: Fields, metadata: Fields, score: Score, *, failed: bool) -> list[Score]:
    """Return all metrics stored by the converter of lm-eval, or the single score.

    The converters write 0 if a sample failed.
    """
    several = metadata.text("lm_eval_metrics")
    if several is not None:
        return _lm_eval_scores(row, several, score.scorer) or [score]
    evaluation = row.part("evaluation" if "evaluation" in row.values else "metrics")
    score.value = evaluation.number("score")
    if score.value is None:
        score.value = number(evaluation.values.get("is_correct"))
    if failed and not score.value:
        score.value, score.outcome = None, Outcome.ERROR
    return [score]


def _lm_eval_scores(row: Fields, text: str, scorer: str) -> list[Score]:
    try:
        values = decode(text.encode())
    except Malformed as error:
        row.report_problem(str(error), "metadata.lm_eval_metrics")
        return []
    known = as_mapping(values).items()
    scalar = [(name, value) for name, value in known if isinstance(value, bool | int | float)]
    return [Score(replace_surrogates(name), number(value), scorer) for name, value in scalar]


def _first(part: Fields, name: str) -> str | None:
    """Return the first of several texts; before 0.2.1 there was only one."""
    if isinstance(part.values.get(name), str):
        return part.text(name)
    return next(iter(part.texts(name) or ()), None)


def _answer(row: Fields) -> str | None:
    """Return the answer that was extracted last."""
    attributions = as_objects(row.values.get("answer_attribution"))
    values = (part.get("extracted_value") for part in attributions)
    extracted = [value for value in values if isinstance(value, str)]
    return replace_surrogates(extracted[-1]) if extracted else None


def _response(row: Fields) -> str | None:
    """Return the output, else the last message of the model."""
    output = row.part("output")
    if isinstance(output.values.get("raw"), str):
        return output.text("raw")
    if several := output.texts("raw"):
        return "\n\n".join(several)
    turns = row.values.get("messages") or row.values.get("interactions")
    contents = (
        turn.get("content") for turn in as_objects(turns) if turn.get("role") == "assistant"
    )
    texts = [content for content in contents if isinstance(content, str)]
    return replace_surrogates(texts[-1]) if texts else None


def _index(gold: str | None, options: list[str] | None) -> int | None:
    """Return the index of the right option, which lm-eval writes as the gold."""
    known = options is not None and gold is not None and gold not in options
    return int(gold) if known and gold and re.fullmatch(r"\d{1,3}", gold) else None


def _choice(answer: str | None, options: list[str] | None) -> str | None:
    """Return the answer if it is an option or a letter."""
    fits = answer is not None and options and (answer in options or re.fullmatch("[A-Z]", answer))
    return answer if fits else None


def _restore(sample: Sample, metadata: Fields) -> None:
    """Restore fields beyond the schema: those of forgetmap's writer, and the epoch of Inspect."""
    epoch = metadata.values.get("epoch")
    if isinstance(epoch, str) and re.fullmatch(r"[1-9]\d{0,5}", epoch):
        sample.repeat = int(epoch) - 1
    for name, key in METADATA_KEYS.items():
        text = metadata.text(key)
        value = None if text is None else _typed(name, text)
        if text is not None and value is None:
            metadata.report_problem(f"{text!r:.60} is not valid for {name}", f"metadata.{key}")
        elif text is not None and name == "outcome":
            sample.scores[0].outcome = Outcome(text)
        elif value is not None and name not in {"metric", "scorer"}:
            setattr(sample, name, value)


def _typed(name: str, text: str) -> str | int | float | None:
    if name in _WHOLE:
        fits = re.fullmatch(r"-?\d{1,18}", text) and (name == "seed" or 0 <= int(text) <= MAX_COUNT)
        return int(text) if fits else None
    if name in _REAL:
        return number(text)
    if name == "outcome":
        return text if text in list(Outcome) else None
    return text


def _number(sample: Sample, seen: Counter[tuple[object, ...]]) -> None:
    """Number the repeats of each metric; rows with different metrics are not repeats."""
    if sample.repeat is None:
        content = (sample.question, sample.gold)
        key = (sample.task, sample.item, sample.scores[0].metric, sample.scores[0].scorer, content)
        sample.repeat = seen[key]
        seen[key] += 1
