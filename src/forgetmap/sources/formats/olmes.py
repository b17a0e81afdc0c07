"""OLMES and olmo-eval: a line per item with its metrics; requests and totals in files beside it.

OLMES      task-000-NAME-{predictions,requests}.jsonl, -metrics.json; {"metrics": {NAME: value}}
olmo-eval  predictions/ and requests/ per model, metrics.json;
           {"instance_metrics": {METRIC: {SCORER: value}}}, or flat in the first versions
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.records import MetricInfo, Outcome
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.datasets import as_item
from forgetmap.sources.decode import number, rows, small_document
from forgetmap.sources.fields import as_count, as_json_text, as_list, as_mapping, as_text
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import Companion, Format, Head, LogReading, LogRow
from forgetmap.sources.formats.values import is_beside, plain

_TOTALS, _TOTALS_OF_RUN = ("task_name", "task_config", "metrics"), ("tasks", "summary", "timestamp")
_PREFERRED = (
    "acc_per_char", "acc_raw", "exact_match", "exact_match_flex", "exact_match_simple", "accuracy",
    "pass_at_1", "mc1", "f1", "recall",
)  # fmt: skip
_NO_SCORE = re.compile(
    r"predicted_index|correct_choice$|no_answer$|num_|price$|sum_logits|logits_per_|bits_per_byte"
    r"|.*(?:_tokens|_time)$"
)
"""Entries among the metrics that do not measure an answer."""
_LOWER_IS_BETTER = ("ppl_token", "ppl_char", "ppl_word", "ppl_byte", "perplexity", "bpb")
_KIND = re.compile(r"(?<=.)[-_.](?:predictions|requests|metrics).*$")
_NUMBER = re.compile(r"^task-\d+-")
_HASH = re.compile(r"_[0-9a-f]{6}$")
_OPTION = re.compile(r"^ ?(?P<letter>[A-Z])\. (?P<text>.*)$", re.MULTILINE)


def _common_name(file: LogFile) -> str:
    """Return the common part of the names of predictions and requests."""
    return _KIND.sub("", PurePosixPath(file.name).name.split(".json")[0])


def _task_name(file: LogFile) -> str:
    return _NUMBER.sub("", _common_name(file))


def _cleaned(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)


def _metrics(row: Mapping[str, Any]) -> dict[str, Any]:
    return as_mapping(row.get("metrics", row.get("instance_metrics")))


def _totals_in(file: LogFile) -> Iterator[dict[str, Any]]:
    """Yield the metrics of one task, of several line by line, or of a whole run (as `run`)."""
    if file.peek.has(*_TOTALS):
        yield from (row for _, row in rows(file, Problems()))
    else:
        run = small_document(file)
        yield from ({**as_mapping(task), "run": run} for task in as_list(run.get("tasks")))


def _are_of(file: LogFile, total: Mapping[str, Any]) -> bool:
    """Whether metrics belong to a file, by the hashes of task and model if known, else by name."""
    hashed = [row for row in file.peek.objects if as_text(row.get("task_hash"))]
    task_hash, model = as_text(total.get("task_hash")), as_text(total.get("model"))
    if hashed and task_hash:
        models = (None, total.get("model_hash"))
        return any(
            row["task_hash"] == task_hash and row.get("model_hash") in models for row in hashed
        )
    if model and _cleaned(model) != PurePosixPath(file.name).parent.name:
        return False
    if task_hash and _HASH.search(_task_name(file)):
        return _task_name(file).endswith(task_hash[-6:])
    name = as_text(total.get("task_name", total.get("task")))
    return name is not None and _HASH.sub("", _task_name(file)) in (name, _cleaned(name))


def _hold_metrics_of(file: LogFile, other: LogFile) -> bool:
    # The beginning of a file with one task is enough; there may be many.
    is_single = other.peek.shape == "object" and other.peek.has(*_TOTALS)
    return any(
        _are_of(file, one) for one in (other.peek.objects if is_single else _totals_in(other))
    )


def _about(head: Head) -> dict[str, Any]:
    """Return the metrics that belong to a file, with the task's settings as `config`."""
    every = (total for file in head.beside["metrics"] for total in _totals_in(file))
    total = next((total for total in every if _are_of(head.file, total)), None)
    if total is None:
        return {}
    config = as_mapping(total.get("task_config", total.get("config")))
    setup = total.get("model_config") or as_mapping(total.get("run")).get("config")
    return {**total, "config": config, "setup": setup}


def _task(head: Head) -> str:
    """Return the alias of the task, else its name, which variants of a task share."""
    named = head.plain("config.metadata.alias", "task_name", "task")
    bare = _task_name(head.file)
    return (named or bare) if head.values else _HASH.sub("", bare) or "olmes"


def _key(row: LogRow) -> tuple[int | None, str | None]:
    """Return the number of an item in the run, and its id in the data set."""
    return as_count(row["doc_id"]), as_text(row["native_id"])


def _predicted(reading: LogReading) -> Iterator[LogRow]:
    """Yield the rows with names and requests, of which an item may have several.

    Items are named by the id of the data set, else by number; the first item of a repeated id keeps
    the bare id, others get `#NUMBER` appended.
    """
    requests = {_key(row): row for row in reversed([*reading.every("requests")])}
    predictions = list(reading.lines())
    indexes: dict[str | None, set[int]] = defaultdict(set)
    for index, native in map(_key, predictions):
        if index is not None:
            indexes[native].add(index)
    nameless = set(map(str, indexes[None]))
    for row in predictions:
        index, native = _key(row)
        if index is None or not _metrics(row.values):
            row.report_problem("the row has no usable doc_id or no metrics", "doc_id")
            continue
        if isinstance(row["label"], dict):
            row.report_problem("the label is not an answer", "label")
        is_bare = native not in nameless and index == min(indexes[native])
        numbered = f"{index}" if native is None else f"{native}#{index}"
        request, metrics = requests.get((index, native), row.within({})), _metrics(row.values)
        outputs = [as_mapping(output) for output in as_list(row["model_output"])]
        first = outputs[0] if outputs else {}
        yield row.adding(
            item=native if native is not None and is_bare else numbered,
            doc=as_mapping(request["doc"]),
            prompt=as_json_text(request["request.context"]),
            outputs=outputs,
            answer=as_text(metrics.get("extracted_answer", first.get("extracted_answer"))),
            tokens_out=as_count(first.get("num_tokens")),
            response=as_text(first.get("continuation", first.get("text"))),
        )


def _main_metric(row: LogRow) -> str | None:
    log = row.reading.log
    return log.info.tasks[log.tasks[0]].main_metric if log.info.tasks else None


def _measured(row: LogRow) -> list[Score]:
    """Return every scalar that measures the answer, with its scorer if there is one."""
    metrics, is_nested = _metrics(row.values), "metrics" not in row.values
    failed = Outcome.NO_ANSWER if number(metrics.get("no_answer")) == 1 else None
    main = _main_metric(row)
    scores = []
    for name, value in metrics.items():
        scored = value if isinstance(value, dict) else {name if is_nested else "default": value}
        for scorer, score in scored.items():
            is_score = not _NO_SCORE.match(name) and not isinstance(score, list | dict | str)
            if is_score and (score is not None or name == main):
                scores.append(Score(name, number(score), scorer, failed))
    return scores


def _finish(row: LogRow, sample: Sample) -> None:
    """Set the item, the chosen option and the errors of scorers; a choice has no response."""
    metrics, outputs, doc = _metrics(row.values), row["@outputs"], row["@doc"]
    query, label = as_text(doc.get("query")), row["label"]
    if query is not None:
        sample.question, sample.options = _bare(query)
        choices = [as_text(choice) for choice in as_list(doc.get("choices"))]
        texts = [choice.strip() for choice in choices if choice is not None]
        if sample.options is None and len(texts) > 1 and len(texts) == len(choices):
            sample.options = texts
    elif doc:
        item = as_item(doc)
        sample.question, sample.options, sample.gold = item.question, item.options, item.gold
    label = (label or [None])[0] if isinstance(label, list) else label
    if isinstance(label, int) and not isinstance(label, bool) and len(outputs) > 1:
        sample.gold_index, sample.gold = as_count(label), None
    elif label is not None:
        sample.gold = as_text(label)
    # The option that is most likely under the main metric.
    kind = (_main_metric(row) or "acc_raw").removeprefix("acc_")
    raw = metrics.get("predicted_index_raw")
    chosen = as_count(metrics.get(f"predicted_index_{kind}", raw))
    if chosen is not None and chosen < len(outputs):
        sample.k = len(outputs) if len(outputs) > 1 else None
        sample.choice = dict(enumerate(sample.options or ())).get(chosen)
        sample.logprob_answer = number(outputs[chosen].get("sum_logits"))
        sample.logprob_gold = number(metrics.get("sum_logits_corr"))
    errors = as_mapping(outputs[0].get("scoring_errors")) if outputs else {}
    for score in sample.scores:
        if score.scorer in errors:
            score.value, score.outcome = None, Outcome.ERROR
            sample.error = as_json_text(errors[score.scorer])
    if sample.choice is not None or "predicted_index_raw" in metrics:
        sample.tokens_out = sample.response = None


def _bare(query: str) -> tuple[str, list[str] | None]:
    """Return the question without the template, and the options listed in it, if any."""
    text = re.sub(r"\s*A:$", "", re.sub(r"\s*Answer:$", "", query.strip()))
    for beginning in ("Question:", "Q:", "Goal:"):
        text = text.removeprefix(beginning).lstrip()
    lines = list(_OPTION.finditer(text))
    letters = "".join(option["letter"] for option in lines)
    if len(lines) > 1 and ascii_uppercase.startswith(letters):
        return text[: lines[0].start()].rstrip(), [option["text"].strip() for option in lines]
    return text, None


def _state_means(reading: LogReading) -> None:
    """Note the totals of metrics that are means over all items."""
    for name, value in as_mapping(reading.head["metrics"]).items():
        if name in _PREFERRED:
            reading.state(f"metrics.{name}", value, name)


OLMES = Format(
    name="olmes",
    title="OLMES predictions",
    fields=[("doc_id", "model_output")],
    accepts=lambda file: any(map(_metrics, file.peek.objects)),
    beside={
        "requests": Companion(
            fields=[("doc_id", "request", "doc")],
            belongs=lambda file, other: (
                _common_name(file) == _common_name(other) and is_beside(file, other)
            ),
            or_only=True,
        ),
        "metrics": Companion(
            fields=[_TOTALS, _TOTALS_OF_RUN], belongs=_hold_metrics_of, nearest=True
        ),
    },
    rows=_predicted,
    preferred=_PREFERRED,
    harness=lambda head: "olmo-eval" if head["run"] else "olmes",
    about=_about,
    model=lambda head: (
        head.plain("model", "setup.model") if head.values else head.folder_in("predictions")
    ),
    revision=plain("setup.revision"),
    created=lambda head: (
        (head.plain("current_date", "run.timestamp") or "")[:19].replace(" ", "T") or None
    ),
    decoding=lambda head: {
        name: value
        for name, value in as_mapping(head["config.generation_kwargs"]).items()
        if isinstance(value, str | float | bool) or as_count(value) is not None
    },
    tasks=_task,
    task_version=plain("config.version"),
    shots=["config.num_shots", "config.num_fewshot"],
    main=plain("primary_metric", "config.primary_metric"),
    metrics=lambda head: {
        name: MetricInfo(higher_is_better=False) for name in _LOWER_IS_BETTER if head.values
    },
    repeat=0,
    scores=_measured,
    finish=_finish,
    totals=_state_means,
)
