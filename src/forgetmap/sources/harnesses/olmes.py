"""OLMES and olmo-eval: a line per item with its metrics; requests and totals in files beside it.

OLMES      task-000-NAME-{predictions,requests}.jsonl, -metrics.json; {"metrics": {NAME: value}}
olmo-eval  predictions/ and requests/ per model, metrics.json;
           {"instance_metrics": {METRIC: {SCORER: value}}}, or flat in the first versions
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, MetricInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.datasets import as_item
from forgetmap.sources.decode import number, rows, small_document
from forgetmap.sources.fields import (
    as_count,
    as_json_text,
    as_list,
    as_mapping,
    as_text,
    replace_surrogates,
)
from forgetmap.sources.files import LogFile, nearest_files, run_folder

PREDICTED = ("doc_id", "model_output")
REQUESTED = ("doc_id", "request", "doc")
TOTALS, TOTALS_OF_RUN = ("task_name", "task_config", "metrics"), ("tasks", "summary", "timestamp")

# Entries among the metrics that do not measure an answer.
NO_SCORE = re.compile(
    r"predicted_index|correct_choice$|no_answer$|num_|price$|sum_logits|logits_per_|bits_per_byte"
    r"|.*(?:_tokens|_time)$"
)
LOWER_IS_BETTER = ("ppl_token", "ppl_char", "ppl_word", "ppl_byte", "perplexity", "bpb")

_STEM = re.compile(r"(?P<stem>.+?)(?:[-_.](?:predictions|requests|metrics).*)?$")
_NUMBER = re.compile(r"^task-\d+-")
_HASH = re.compile(r"_[0-9a-f]{6}$")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_OPTION = re.compile(r"^ ?(?P<letter>[A-Z])\. (?P<text>.*)$", re.MULTILINE)


class Olmes:
    """Predictions of OLMES and olmo-eval, with requests and metrics if they exist."""

    name = "olmes"
    preferred: Sequence[str] = (
        "acc_per_char", "acc_raw", "exact_match", "exact_match_flex", "exact_match_simple",
        "accuracy", "pass_at_1", "mc1", "f1", "recall",
    )  # fmt: skip

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file of predictions."""
        predicted = [file for file in files if _is_predicted(file)]
        if not predicted:
            return []
        requested = [file for file in files if file.peek.has(*REQUESTED)]
        totals = [total for file in files for total in _totals(file)]
        return [_log(file, requested, totals, alone=len(predicted) == 1) for file in predicted]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per item."""
        requests = _requests(log, problems)
        predictions = list(rows(log.files[0], problems))
        names = _names(row for _, row in predictions)
        for line, row in predictions:
            name = names.get(_row_key(row))
            if name is None or not _metrics(row):
                message = "the row has no usable doc_id or no metrics"
                problems.add(log.files[0].name, message, line=line, field="doc_id")
                continue
            request = requests.get((as_count(row.get("doc_id")), as_text(row.get("native_id"))), {})
            if isinstance(row.get("label"), dict):
                problems.add(
                    log.files[0].name, "the label is not an answer", line=line, field="label"
                )
            yield _sample(log, name, line, row, request, texts=texts)
        problems.totals += log.notes["totals"]


@dataclass(frozen=True, slots=True)
class _Total:
    """The metrics and settings of a task, from a file of metrics."""

    file: LogFile
    content: Mapping[str, Any]
    of_run: Mapping[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        return as_mapping(self.content.get("task_config", self.content.get("config")))


def _is_predicted(file: LogFile) -> bool:
    return file.peek.has(*PREDICTED) and any(map(_metrics, file.peek.objects))


def _totals(file: LogFile) -> list[_Total]:
    """Return the metrics of one task, of several line by line, or of a whole run."""
    if file.peek.has(*TOTALS):
        contents = [row for _, row in rows(file, Problems())]
        return [_Total(file, row, {}) for row in contents]
    if not file.peek.has(*TOTALS_OF_RUN):
        return []
    run = small_document(file)
    return [_Total(file, as_mapping(task), run) for task in as_list(run.get("tasks"))]


def _log(
    file: LogFile, requested: Sequence[LogFile], totals: Sequence[_Total], *, alone: bool
) -> Log:
    total = _total(file, totals, alone=alone)
    requests = [candidate for candidate in requested if _holds_requests_of(file, candidate)]
    if not requests and alone and len(requested) == 1:
        requests = list(requested)
    task = _task(file, total)
    files = (file, *requests[:1], *([total.file] if total else []))
    info = _info(task, total) if total else _bare_info(file)
    harness = "olmo-eval" if file.peek.has("instance_metrics") else "OLMES"
    return Log(
        "olmes",
        files,
        info,
        (task,),
        info.created,
        format=f"{harness} predictions",
        notes={"totals": [] if total is None else list(_stated(task, total))},
    )


def _stated(task: str, total: _Total) -> Iterator[StatedTotal]:
    """Yield the totals of metrics that are means over all items."""
    for name, value in as_mapping(total.content.get("metrics")).items():
        mean = number(value) if name in Olmes.preferred else None
        if mean is not None:
            yield StatedTotal(task, f"metrics.{name}", mean, "mean", name)


def _holds_requests_of(file: LogFile, requests: LogFile) -> bool:
    """Whether requests belong to a file: same name, and same folder or folder of the model."""
    folder, other_folder = PurePosixPath(file.name).parent, PurePosixPath(requests.name).parent
    if _stem(requests) != _stem(file):
        return False
    return folder == other_folder or (
        folder.name == other_folder.name and run_folder(file) == run_folder(requests)
    )


def _total(file: LogFile, totals: Sequence[_Total], *, alone: bool) -> _Total | None:
    """Return the metrics that belong to a file, from its own or the nearest folder."""
    fitting = [total for total in totals if _belongs(file, total)]
    neighbours = nearest_files(file, [total.file for total in fitting], alone=alone)
    return next((total for total in fitting if total.file in neighbours), None)


def _belongs(file: LogFile, total: _Total) -> bool:
    """Whether metrics belong to a file, by the hashes of task and model if known, else by name."""
    content = total.content
    hashed = [row for row in file.peek.objects if as_text(row.get("task_hash"))]
    task_hash = as_text(content.get("task_hash"))
    if hashed and task_hash:
        return any(_has_hashes(row, task_hash, content.get("model_hash")) for row in hashed)
    model = as_text(content.get("model"))
    if model and _cleaned(model) != PurePosixPath(file.name).parent.name:
        return False
    if task_hash and _HASH.search(_name(file)):
        return _name(file).endswith(task_hash[-6:])
    name = as_text(content.get("task_name", content.get("task")))
    return name is not None and _HASH.sub("", _name(file)) in (name, _cleaned(name))


def _has_hashes(row: Mapping[str, Any], task: str, model: object) -> bool:
    return as_text(row["task_hash"]) == task and row.get("model_hash") in (None, model)


def _stem(file: LogFile) -> str:
    """Return the common part of the names of predictions and requests."""
    match = _STEM.match(PurePosixPath(file.name).name.split(".json")[0])
    return match["stem"] if match else ""


def _name(file: LogFile) -> str:
    return _NUMBER.sub("", _stem(file))


def _cleaned(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)


def _task(file: LogFile, total: _Total | None) -> str:
    """Return the alias of the task, else its name, which variants of a task share."""
    if total is None:
        return _HASH.sub("", _name(file)) or "olmes"
    alias = as_text(as_mapping(total.config.get("metadata")).get("alias"))
    name = as_text(total.content.get("task_name", total.content.get("task")))
    return alias or name or _name(file)


def _bare_info(file: LogFile) -> RunInfo:
    """Return the settings without metrics: only the model, from the folder."""
    *_, kind, folder, _ = ("", "", *PurePosixPath(file.name).parts)
    model = folder if kind == "predictions" else None
    return RunInfo(model=ModelInfo(name=model), harness=HarnessInfo(name="olmes"))


def _info(task: str, total: _Total) -> RunInfo:
    config, run = total.config, total.of_run
    model = as_mapping(total.content.get("model_config")) or as_mapping(run.get("config"))
    main, _, scorer = (
        as_text(total.content.get("primary_metric", config.get("primary_metric"))) or ""
    ).partition(":")
    date = _DATE.search(str(total.content.get("current_date", run.get("timestamp"))))
    return RunInfo(
        model=ModelInfo(
            name=as_text(total.content.get("model")) or as_text(model.get("model")),
            revision=as_text(model.get("revision")),
        ),
        harness=HarnessInfo(name="olmo-eval" if run else "olmes"),
        decoding=_decoding(as_mapping(config.get("generation_kwargs"))),
        created=f"{date[1]}T{date[2]}" if date else None,
        tasks={
            task: TaskInfo(
                version=as_text(config.get("version")),
                n_shot=as_count(config.get("num_shots", config.get("num_fewshot"))),
                main_metric=main or None,
                main_scorer=scorer or None,
            )
        },
        metrics={name: MetricInfo(higher_is_better=False) for name in LOWER_IS_BETTER},
    )


def _decoding(generation: Mapping[str, Any]) -> dict[str, Any]:
    plain = {replace_surrogates(name): value for name, value in generation.items()}
    return {
        name: replace_surrogates(value) if isinstance(value, str) else value
        for name, value in plain.items()
        if isinstance(value, str | float | bool) or as_count(value) is not None
    }


RowKey = tuple[int | None, str | None]
"""Number of an item in the run, and its id in the data set."""


def _row_key(row: Mapping[str, Any]) -> RowKey:
    return as_count(row.get("doc_id")), as_text(row.get("native_id"))


def _names(predictions: Iterator[Mapping[str, Any]]) -> dict[RowKey, str]:
    """Name items by the id of the data set, else by number; repeated ids get `#NUMBER` appended.

    The first item of a repeated id keeps the bare id, unless it is the number of an item without
    id.
    """
    keys = {(index, native) for index, native in map(_row_key, predictions) if index is not None}
    nameless = {str(index) for index, native in keys if native is None}
    numbers: dict[str | None, set[int]] = defaultdict(set)
    for index, native in keys:
        numbers[native].add(index)
    names: dict[RowKey, str] = {}
    for index, native in keys:
        if native is None:
            names[index, native] = str(index)
        else:
            is_first = native not in nameless and index == min(numbers[native])
            names[index, native] = native if is_first else f"{native}#{index}"
    return names


def _requests(log: Log, problems: Problems) -> dict[RowKey, dict[str, Any]]:
    """Return the first request of each item, which may have several."""
    requests: dict[RowKey, dict[str, Any]] = {}
    for file in log.files[1:]:
        if file.peek.has(*REQUESTED):
            for _, row in rows(file, problems):
                requests.setdefault(_row_key(row), row)
    return requests


def _metrics(row: Mapping[str, Any]) -> dict[str, Any]:
    return as_mapping(row.get("metrics", row.get("instance_metrics")))


def _sample(
    log: Log,
    name: str,
    line: int,
    row: Mapping[str, Any],
    request: Mapping[str, Any],
    *,
    texts: bool,
) -> Sample:
    main = log.info.tasks[log.tasks[0]].main_metric if log.info.tasks else None
    metrics = _metrics(row)
    outputs = [as_mapping(output) for output in as_list(row.get("model_output"))]
    first = outputs[0] if outputs else {}
    sample = Sample(
        task=log.tasks[0],
        item=name,
        scores=_scores(row, main),
        answer=as_text(metrics.get("extracted_answer", first.get("extracted_answer"))),
        file=log.files[0].name,
        line=line,
    )
    _add_item(sample, as_mapping(request.get("doc")), row.get("label"), is_chosen=len(outputs) > 1)
    _add_choice(sample, metrics, outputs, main)
    _fail(sample, as_mapping(first.get("scoring_errors")))
    if sample.choice is None and "predicted_index_raw" not in metrics:
        sample.tokens_out = as_count(first.get("num_tokens"))
        if texts:
            sample.response = as_text(first.get("continuation", first.get("text")))
    if texts:
        sample.prompt = as_json_text(as_mapping(request.get("request")).get("context"))
    return sample


def _scores(row: Mapping[str, Any], main: str | None) -> list[Score]:
    """Return every scalar that measures the answer, with its scorer if there is one."""
    metrics, is_nested = _metrics(row), "metrics" not in row
    failed = Outcome.NO_ANSWER if number(metrics.get("no_answer")) == 1 else None
    scores = []
    for name, value in metrics.items():
        scored = value if isinstance(value, dict) else {name if is_nested else "default": value}
        for scorer, score in scored.items():
            if NO_SCORE.match(name) or isinstance(score, list | dict | str):
                continue
            if score is not None or name == main:
                scores.append(
                    Score(
                        replace_surrogates(name), number(score), replace_surrogates(scorer), failed
                    )
                )
    return scores


def _fail(sample: Sample, errors: Mapping[str, Any]) -> None:
    """Remove the scores of scorers that failed."""
    for score in sample.scores:
        if score.scorer in errors:
            score.value, score.outcome = None, Outcome.ERROR
            sample.error = as_json_text(errors[score.scorer])


def _add_item(sample: Sample, doc: Mapping[str, Any], label: object, *, is_chosen: bool) -> None:
    """Set question and options from the request, and the gold from the label."""
    query = as_text(doc.get("query"))
    if query is not None:
        sample.question, sample.options = _bare(query)
        choices = [as_text(choice) for choice in as_list(doc.get("choices"))]
        texts = [choice.strip() for choice in choices if choice is not None]
        if sample.options is None and len(texts) > 1 and len(texts) == len(choices):
            sample.options = texts
    elif doc:
        item = as_item(doc)
        sample.question, sample.options, sample.gold = item.question, item.options, item.gold
    if isinstance(label, list):
        label = label[0] if label else None
    if isinstance(label, int) and not isinstance(label, bool):
        sample.gold_index = as_count(label) if is_chosen else None
        sample.gold = None if is_chosen else str(label)
    elif label is not None:
        sample.gold = as_text(label)


def _bare(query: str) -> tuple[str, list[str] | None]:
    """Return the question without the template, and the options listed in it, if any."""
    text = query.strip()
    for ending in ("Answer:", "A:"):
        text = text.removesuffix(ending).rstrip()
    for beginning in ("Question:", "Q:", "Goal:"):
        text = text.removeprefix(beginning).lstrip()
    option_lines = list(_OPTION.finditer(text))
    letters = "".join(option["letter"] for option in option_lines)
    if len(option_lines) > 1 and "ABCDEFGHIJKLMNOPQRSTUVWXYZ".startswith(letters):
        return text[: option_lines[0].start()].rstrip(), [
            option["text"].strip() for option in option_lines
        ]
    return text, None


def _add_choice(
    sample: Sample,
    metrics: Mapping[str, Any],
    outputs: Sequence[Mapping[str, Any]],
    main: str | None,
) -> None:
    """Set the option that is most likely under the main metric."""
    kind = (main or "acc_raw").removeprefix("acc_")
    raw = metrics.get("predicted_index_raw")
    chosen = as_count(metrics.get(f"predicted_index_{kind}", raw))
    if chosen is None or chosen >= len(outputs):
        return
    sample.k = len(outputs) if len(outputs) > 1 else None
    if sample.options and chosen < len(sample.options):
        sample.choice = sample.options[chosen]
    sample.logprob_answer = number(outputs[chosen].get("sum_logits"))
    sample.logprob_gold = number(metrics.get("sum_logits_corr"))
