"""HELM: a folder per run with its specification, its requests and the statistics of each instance.

Files are recognised by content. Statistics alone are enough; requests add questions, options and
responses.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from forgetmap.errors import UnreadableError
from forgetmap.records import HarnessInfo, MetricInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import document, number, rows, small_document
from forgetmap.sources.fields import Fields, as_count, as_list, as_mapping, as_objects, as_text
from forgetmap.sources.files import LogFile

# Field names of the first object of each file; the first match counts.
PARTS = {
    "state": ("request_states",),
    "spec": ("name", "adapter_spec"),
    "predictions": ("instance_id", "predicted_text"),
    "stats": ("instance_id", "stats"),
    "requests": ("instance_id", "request"),
    "instances": ("id", "input", "references"),
    "totals": ("name", "count", "sum"),
    "scenario": ("name", "description", "tags"),
}

# Statistics about the request, not about the answer.
NO_SCORE = re.compile(
    r"num_|training_|inference_|finish_reason_|batch_size$|prompt_truncated$|predicted_index$"
    r"|max_prob$|logprob|perplexity|bits_per_byte$|.*(?:_time|_runtime|_runtimes|_cost)$"
)
LOWER_IS_BETTER = ("wer", "wer_score", "mer_score", "wip_score", "cer_score", "toxic_frac")

# Main metrics of HELM's schemas that do not follow from the order of `Helm.preferred`.
MAIN_METRICS = {
    "quasi_exact_match": "babi_qa banking77 boolq casehold civil_comments entity_data_imputation "
    "entity_matching imdb legal_support legalbench lsat_qa med_qa raft synthetic_reasoning "
    "wikifact",
    "f1_score": "narrative_qa natural_qa_closedbook natural_qa_openbook_longans quac",
    "f1_set_match": "synthetic_reasoning_natural",
    "rouge_2": "billsum_legal_summarization eurlexsum_legal_summarization summarization_cnndm "
    "multilexsum_legal_summarization summarization_xsum",
    "rouge_l": "legal_contract_summarization sumosum infinite_bench_en_sum",
    "bleu_4": "wmt_14",
}
_MAIN_OF = {group: metric for metric, groups in MAIN_METRICS.items() for group in groups.split()}

# Arguments in the name of a run that are not about the items, and the usual method.
_NOT_OF_TASK = re.compile(r"(?:model|model_deployment|groups)=|method=multiple_choice_joint$")
_FOLDER = re.compile(r"(?P<scenario>[\w.-]+?)[:-](?P<arguments>\w+=.*)$")
_MODEL = re.compile(r"[:,-]model=([^,]+)")
_WITH_OPTIONS = ("multiple_choice", "ranking_binary")


class Helm:
    """Run folders of HELM."""

    name = "helm"
    preferred: Sequence[str] = (
        "bbq_accuracy", "chain_of_thought_correctness", "final_number_exact_match",
        "exact_match_indicator", "math_equiv_chain_of_thought", "math_equiv",
        "ifeval_strict_accuracy", "omni_math_accuracy", "execution_accuracy", "program_accuracy",
        "pass", "test_avg", "exact_match", "quasi_exact_match", "quasi_prefix_exact_match",
        "prefix_exact_match", "f1_score", "rouge_2", "rouge_l", "bleu_4",
    )  # fmt: skip

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per run with statistics of instances."""
        folders: dict[PurePosixPath, list[LogFile]] = defaultdict(list)
        for file in files:
            if _part(file) is not None:
                folders[PurePosixPath(file.name).parent].append(file)
        return [_log(folder) for folder in folders.values() if any(map(_has_results, folder))]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per instance, perturbation and trial."""
        results = _results(log.files, problems)
        requests = _requests(log.files, problems)
        for key, result in results.items():
            states = requests.get(key) or requests.get(key[:2]) or {None: {}}
            instance, perturbation, trial = key
            sample = Sample(
                task=log.tasks[0],
                item=f"{instance}:{perturbation}" if perturbation else instance,
                repeat=trial,
                scores=[Score(n, v) for n, v in result.values.items() if not NO_SCORE.match(n)],
                tags=perturbation or None,
                cluster=instance if perturbation else None,
                tokens_in=as_count(result.values.get("num_prompt_tokens")),
                tokens_out=as_count(result.values.get("num_output_tokens")),
                file=result.file,
                line=result.line,
            )
            _add_item(sample, next(iter(states.values())), log.notes["method"])
            _add_answer(sample, states, result, texts=texts)
            yield sample


def _part(file: LogFile) -> str | None:
    return next((part for part, names in PARTS.items() if file.peek.has(*names)), None)


def _has_results(file: LogFile) -> bool:
    return _part(file) in ("stats", "predictions")


def _log(files: Sequence[LogFile]) -> Log:
    specs = [small_document(file) or file.peek.first for file in files if _part(file) == "spec"]
    spec = specs[0] if specs else {}
    states = [file.peek.first for file in files if _part(file) == "state"]
    adapters = (as_mapping(each.get("adapter_spec")) for each in (spec, *states))
    adapter = next(filter(None, adapters), {})
    task, model = _task(spec, files), _MODEL.search(PurePosixPath(files[0].name).parent.name)
    groups = [*map(as_text, as_list(spec.get("groups"))), task.partition(":")[0]]
    main = next((_MAIN_OF[group] for group in groups if group in _MAIN_OF), None)
    shots = as_count(adapter.get("max_train_instances"))
    # The time of the first request.
    requests = [one for state in states for one in as_objects(state.get("request_states"))[:1]]
    seconds = [as_count(as_mapping(one.get("result")).get("request_datetime")) for one in requests]
    created = next((datetime.fromtimestamp(s, UTC).isoformat() for s in seconds if s), None)
    info = RunInfo(
        model=ModelInfo(name=as_text(adapter.get("model")) or (model[1] if model else None)),
        harness=HarnessInfo(name="helm"),
        decoding={
            "temperature": number(adapter.get("temperature")),
            "max_new_tokens": as_count(adapter.get("max_tokens")),
            "stop": list(map(str, as_list(adapter.get("stop_sequences")))),
            "num_outputs": as_count(adapter.get("num_outputs")),
        },
        created=created,
        tasks={task: TaskInfo(n_shot=shots, main_metric=main)},
        metrics={name: MetricInfo(higher_is_better=False) for name in LOWER_IS_BETTER},
    )
    ordered = sorted(files, key=lambda file: (_part(file) != "stats", not _has_results(file)))
    notes = {"method": as_text(adapter.get("method"))}
    return Log("helm", tuple(ordered), info, (task,), created, format="HELM run", notes=notes)


def _task(spec: Mapping[str, Any], files: Sequence[LogFile]) -> str:
    """Return the name of the run, else of its folder, without the model."""
    folder = _FOLDER.match(PurePosixPath(files[0].name).parent.name)
    # The name of a folder may have a hyphen instead of the colon.
    named = as_text(spec.get("name")) or (":".join(folder.groups()) if folder else "helm")
    scenario, _, arguments = named.partition(":")
    kept = [one for one in arguments.split(",") if one and not _NOT_OF_TASK.match(one)]
    return f"{scenario}:{','.join(kept)}" if kept else scenario


Key = tuple[str, str, int]
"""Instance, perturbation and trial."""


@dataclass(slots=True)
class _Result:
    """All statistics of a key, joined if there are several entries; and its prediction."""

    file: str
    line: int
    values: dict[str, float | None] = field(default_factory=dict)
    prediction: Mapping[str, Any] = field(default_factory=dict)


def _key(instance: object, perturbation: object, trial: object) -> Key | None:
    """Return the key of an entry; None if a part of it is not usable."""
    name, count, about = as_text(instance), as_count(trial), as_mapping(perturbation)
    change, seed = as_text(about.get("name")), as_text(about.get("seed"))
    if name is None or count is None or (change is None and perturbation is not None):
        return None
    return name, (change or "") + (f"#{seed}" if seed else ""), count


def _results(files: Sequence[LogFile], problems: Problems) -> dict[Key, _Result]:
    """Return statistics by key, from the statistics, else from the display predictions."""
    results: dict[Key, _Result] = {}
    part_with_stats = _part(files[0])
    for file in filter(_has_results, files):
        part = _part(file)
        for line, row in rows(file, problems):
            entry = Fields(row, file, line, problems)
            trial = row.get("train_trial_index", 0)
            key = _key(row.get("instance_id"), row.get("perturbation"), trial)
            if key is None:
                message = "instance_id, perturbation or train_trial_index is not usable"
                entry.report_problem(message, "instance_id")
                continue
            if part == part_with_stats:
                _add_stats(results.setdefault(key, _Result(file.name, line)).values, entry)
            if part == "predictions" and key in results:
                results[key].prediction = row
    return results


def _add_stats(values: dict[str, float | None], entry: Fields) -> None:
    stats = entry.values.get("stats")
    for name, value in stats.items() if isinstance(stats, dict) else _means(entry):
        mean = number(value)
        if values.get(name) is None:
            values[name] = mean
        elif mean not in (None, values[name]) and not NO_SCORE.match(name):
            message = f"duplicate value of {name} for this instance; the first one is used"
            entry.report_problem(message, "stats")


def _means(entry: Fields) -> Iterator[tuple[str, float | None]]:
    stats = entry.values.get("stats")
    if not isinstance(stats, list):
        entry.report_problem("stats is not a list", "stats")
    for stat in map(as_mapping, as_list(stats)):
        name, mean = as_mapping(stat.get("name")).get("name"), number(stat.get("mean"))
        if not isinstance(name, str):
            entry.report_problem("a statistic has no name", "stats")
            continue
        if mean is None and as_count(stat.get("count")) != 0:
            entry.report_problem(f"{name} has no usable mean", "stats")
        yield name, mean


Requests = dict[int | None, Mapping[str, Any]]
"""The requests of a key by reference: one, or one for each reference."""


def _requests(
    files: Sequence[LogFile], problems: Problems
) -> dict[Key | tuple[str, str], Requests]:
    """Return requests by key; instances alone, without requests, have no trial in theirs."""
    requests: dict[Key | tuple[str, str], Requests] = {}
    for file in files:
        part = _part(file)
        states: Any = ()
        if part == "instances":
            states = [{"instance": row} for _, row in rows(file, problems)]
        elif part == "state":
            try:
                states = as_mapping(document(file)).get("request_states")
            except UnreadableError as error:
                problems.add(file.name, f"questions and responses are missing: {error.message}")
            if not isinstance(states, list | tuple):
                problems.add(file.name, "request_states is not a list", field="request_states")
        for state in as_objects(states):
            if not state or state.get("request_mode") == "calibration":
                continue
            instance = as_mapping(state.get("instance"))
            trial = state.get("train_trial_index", 0)
            key = _key(instance.get("id"), instance.get("perturbation"), trial)
            if key is None:
                problems.add(file.name, "an instance has no usable id", field="instance")
                continue
            question = _text_in(instance.get("input"))
            if question is None:
                message = f"instance {key[0]!r} has no usable question"
                problems.add(file.name, message, field="input")
            known = requests.setdefault(key if part == "state" else key[:2], {})
            known.setdefault(as_count(state.get("reference_index")), state)
    return requests


def _add_item(sample: Sample, request: Mapping[str, Any], method: str | None) -> None:
    """Set question, options and gold; references are options only in multiple choice."""
    instance = as_mapping(request.get("instance"))
    sample.question = _text_in(instance.get("input"))
    references = [as_mapping(reference) for reference in as_list(instance.get("references"))]
    outputs = [_text_in(reference.get("output")) for reference in references]
    is_right = ["correct" in as_list(reference.get("tags")) for reference in references]
    right = [one for one, is_it in zip(outputs, is_right, strict=True) if is_it and one is not None]
    sample.gold = right[0] if right else None
    chosen = len(right) < len(outputs) if method is None else method.startswith(_WITH_OPTIONS)
    if chosen and None not in outputs and len(outputs) > 1:
        letters = list(map(as_text, as_mapping(request.get("output_mapping")).values()))
        sample.options = [option for option in letters or outputs if option is not None]


def _add_answer(sample: Sample, requests: Requests, result: _Result, *, texts: bool) -> None:
    """Set the response of the model, or the most likely reference."""
    predicted = as_count(result.values.get("predicted_index"))
    state = requests.get(predicted, next(iter(requests.values())))
    reply = as_mapping(state.get("result"))
    completion = as_mapping(next(iter(as_list(reply.get("completions"))), None))
    text = as_text(completion.get("text", result.prediction.get("predicted_text")))
    mapping = as_mapping(state.get("output_mapping"))
    if mapping and text is not None:
        sample.answer = text.strip()
        sample.choice = as_text(mapping.get(sample.answer))
    elif predicted is not None and sample.options and predicted < len(sample.options):
        sample.choice = sample.options[predicted]
    sample.choice = sample.choice or as_text(result.prediction.get("mapped_output"))
    sample.finish_reason = as_text(as_mapping(completion.get("finish_reason")).get("reason"))
    if texts:
        request = as_mapping(state.get("request"))
        messages = as_list(request.get("messages"))
        sample.prompt = json.dumps(messages) if messages else as_text(request.get("prompt"))
        thinking = as_text(as_mapping(completion.get("thinking")).get("text"))
        thinking = thinking or as_text(result.prediction.get("thinking_text"))
        sample.response = f"{thinking}\n\n{text}" if thinking and text is not None else text
    if reply.get("success") is False:  # HELM scores a failed request as an empty answer
        sample.error = as_text(reply.get("error")) or "the request failed"
        for score in sample.scores:
            score.value, score.outcome = None, Outcome.ERROR


def _text_in(value: object) -> str | None:
    """Return a text, which is wrapped in an object except in the first versions."""
    return as_text(value.get("text") if isinstance(value, dict) else value)
