"""HELM: a folder per run with its specification, its requests and the statistics of each instance.

Files are recognised by content. Statistics alone are enough; requests add questions, options and
responses.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Literal

from forgetmap.errors import UnreadableError
from forgetmap.records import HarnessInfo, MetricInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import document, number, rows
from forgetmap.sources.fields import as_count, as_list, as_mapping, as_text
from forgetmap.sources.files import LogFile

Part = Literal[
    "stats", "predictions", "state", "instances", "requests", "spec", "totals", "scenario"
]

# Field names of the first object of each file; the first match counts.
PARTS: tuple[tuple[Part, tuple[str, ...]], ...] = (
    ("state", ("request_states",)),
    ("spec", ("name", "adapter_spec")),
    ("predictions", ("instance_id", "predicted_text")),
    ("stats", ("instance_id", "stats")),
    ("requests", ("instance_id", "request")),
    ("instances", ("id", "input", "references")),
    ("totals", ("name", "count", "sum")),
    ("scenario", ("name", "description", "tags")),
)

# Statistics about the request, not about the answer.
NO_SCORE = re.compile(
    r"num_|training_|inference_|finish_reason_|batch_size$|prompt_truncated$|predicted_index$"
    r"|max_prob$|logprob|perplexity|bits_per_byte$|.*(?:_time|_runtime|_runtimes|_cost)$"
)
LOWER_IS_BETTER = ("wer", "wer_score", "mer_score", "wip_score", "cer_score", "toxic_frac")

# Main metrics of HELM's schemas that do not follow from the order of `Helm.preferred`.
MAIN_METRICS: dict[str, tuple[str, ...]] = {
    "quasi_exact_match": (
        "babi_qa", "banking77", "boolq", "casehold", "civil_comments", "entity_data_imputation",
        "entity_matching", "imdb", "legal_support", "legalbench", "lsat_qa", "med_qa", "raft",
        "synthetic_reasoning", "wikifact",
    ),
    "f1_score": ("narrative_qa", "natural_qa_closedbook", "natural_qa_openbook_longans", "quac"),
    "f1_set_match": ("synthetic_reasoning_natural",),
    "rouge_2": (
        "billsum_legal_summarization", "eurlexsum_legal_summarization",
        "multilexsum_legal_summarization", "summarization_cnndm", "summarization_xsum",
    ),
    "rouge_l": ("legal_contract_summarization", "sumosum", "infinite_bench_en_sum"),
    "bleu_4": ("wmt_14",),
}  # fmt: skip
_MAIN_OF = {group: metric for metric, groups in MAIN_METRICS.items() for group in groups}

# Arguments in the name of a run that are not about the items.
_NO_ARGUMENT_OF_TASK = ("model=", "model_deployment=", "groups=")
_USUAL_METHOD = "method=multiple_choice_joint"
_FOLDER = re.compile(r"(?P<scenario>[\w.-]+?)[:-](?P<arguments>\w+=.*)$")
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
        runs = [run for folder in folders.values() for run in _runs(folder)]
        return [_log(run) for run in runs if any(_part(f) in ("stats", "predictions") for f in run)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per instance, perturbation and trial."""
        results = _results(log.files, problems)
        requests = _requests_by_key(log.files, problems)
        for key, result in results.items():
            about = requests.get(key) or requests.get((*key[:2], None)) or _KeyRequests({})
            sample = _sample(log.tasks[0], key, result)
            _add_item(sample, about, log.notes["method"])
            _add_answer(sample, about, result, texts=texts)
            yield sample


def _part(file: LogFile) -> Part | None:
    return next((part for part, names in PARTS if file.peek.has(*names)), None)


def _runs(files: Sequence[LogFile]) -> list[list[LogFile]]:
    """Return the files of each run; several runs in one folder are separated by file names."""
    specs = [file for file in files if _part(file) == "spec"]
    if len(specs) <= 1:
        return [list(files)]
    runs: dict[str, list[LogFile]] = defaultdict(list)
    for file in files:
        nearest = max(specs, key=lambda spec: _shared(spec.name, file.name))
        runs[nearest.name].append(file)
    return list(runs.values())


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two names."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), len(one))


def _log(files: Sequence[LogFile]) -> Log:
    spec = next((_small(file) for file in files if _part(file) == "spec"), {})
    states = [file.peek.first for file in files if _part(file) == "state"]
    adapter = as_mapping(spec.get("adapter_spec")) or next(
        (as_mapping(state.get("adapter_spec")) for state in states), {}
    )
    task = _task(spec, files)
    groups = [*map(as_text, as_list(spec.get("groups"))), task.partition(":")[0]]
    main = next((_MAIN_OF[group] for group in groups if group in _MAIN_OF), None)
    created = next(filter(None, map(_created, states)), None)
    shots = as_count(adapter.get("max_train_instances"))
    info = RunInfo(
        model=ModelInfo(name=as_text(adapter.get("model")) or _model_of(files)),
        harness=HarnessInfo(name="helm"),
        decoding=_decoding(adapter),
        created=created,
        tasks={task: TaskInfo(n_shot=shots, main_metric=main)},
        metrics={name: MetricInfo(higher_is_better=False) for name in LOWER_IS_BETTER},
    )
    order = [part for part, _ in PARTS]
    ordered = sorted(files, key=lambda f: (_part(f) != "stats", order.index(_part(f) or "totals")))
    notes = {"method": as_text(adapter.get("method"))}
    return Log("helm", tuple(ordered), info, (task,), created, format="HELM run", notes=notes)


def _small(file: LogFile) -> dict[str, Any]:
    """Return a small document, or its first fields if it is damaged."""
    try:
        return as_mapping(document(file))
    except UnreadableError:
        return dict(file.peek.first)


def _task(spec: Mapping[str, Any], files: Sequence[LogFile]) -> str:
    """Return the name of the run without the model; else that of the folder or the scenario."""
    name = as_text(spec.get("name")) or _folder_name(files)
    if name is None:
        scenarios = (f.peek.first.get("name") for f in files if _part(f) == "scenario")
        return next(filter(None, map(as_text, scenarios)), "helm")
    scenario, _, arguments = name.partition(":")
    kept = [
        argument
        for argument in arguments.split(",")
        if argument and not argument.startswith(_NO_ARGUMENT_OF_TASK) and argument != _USUAL_METHOD
    ]
    return f"{scenario}:{','.join(kept)}" if kept else scenario


def _folder_name(files: Sequence[LogFile]) -> str | None:
    """Return the name of a run from its folder, which may have a hyphen instead of the colon."""
    match = _FOLDER.match(PurePosixPath(files[0].name).parent.name)
    return f"{match['scenario']}:{match['arguments']}" if match else None


def _model_of(files: Sequence[LogFile]) -> str | None:
    arguments = (_folder_name(files) or "").partition(":")[2].split(",")
    return next((a.removeprefix("model=") for a in arguments if a.startswith("model=")), None)


def _decoding(adapter: Mapping[str, Any]) -> dict[str, Any]:
    stop = [text for text in as_list(adapter.get("stop_sequences")) if isinstance(text, str)]
    return {
        "temperature": number(adapter.get("temperature")),
        "max_new_tokens": as_count(adapter.get("max_tokens")),
        "stop": stop,
        "num_outputs": as_count(adapter.get("num_outputs")),
    }


def _created(state: Mapping[str, Any]) -> str | None:
    """Return the time of the first request."""
    first = next(iter(as_list(state.get("request_states"))), None)
    seconds = as_count(as_mapping(as_mapping(first).get("result")).get("request_datetime"))
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None


Key = tuple[str, str, int | None]
"""Instance, perturbation and trial; the trial is None if it does not matter."""


@dataclass(slots=True)
class _Result:
    """All statistics of a key, joined if there are several entries."""

    file: str
    line: int
    values: dict[str, float | None] = field(default_factory=dict)
    display: dict[str, Any] = field(default_factory=dict)
    """The entry of the display predictions."""

    def add(self, name: str, value: float | None) -> bool:
        """Add a value; return False if there is already another one."""
        if self.values.get(name) is None:
            self.values[name] = value
        return value is None or self.values[name] == value or NO_SCORE.match(name) is not None


@dataclass(slots=True)
class _KeyRequests:
    """The requests of a key: one, or one for each reference."""

    first: Mapping[str, Any]
    of_reference: dict[int | None, Mapping[str, Any]] = field(default_factory=dict)


def _results(files: Sequence[LogFile], problems: Problems) -> dict[Key, _Result]:
    """Return statistics by key, from the statistics, else from the display predictions."""
    results: dict[Key, _Result] = {}
    with_stats = any(_part(file) == "stats" for file in files)
    for file in files:
        part = _part(file)
        if part not in ("stats", "predictions"):
            continue
        for line, row in rows(file, problems):
            key = _key(row.get("instance_id"), row)
            if key is None:
                message = "instance_id, perturbation or train_trial_index is not usable"
                problems.add(file.name, message, line=line, field="instance_id")
            elif part == "stats" or not with_stats or key in results:
                result = results.setdefault(key, _Result(file.name, line))
                if part == "predictions":
                    result.display = row
                if part == "stats" or not with_stats:
                    _add_values(result, row, file, line, problems)
    return results


def _add_values(
    result: _Result, row: Mapping[str, Any], file: LogFile, line: int, problems: Problems
) -> None:
    stats = row.get("stats")
    if isinstance(stats, dict):
        values: Iterable[tuple[str, float | None]] = (
            (name, number(value)) for name, value in stats.items()
        )
    else:
        values = _means(stats, file, line, problems)
    for name, value in values:
        if not result.add(name, value):
            message = f"duplicate value of {name} for this instance; the first one is used"
            problems.add(file.name, message, line=line, field="stats")


def _key(instance: object, row: Mapping[str, Any], *, trial: bool = True) -> Key | None:
    """Return the key of an entry; None if it has none."""
    perturbation, index = row.get("perturbation"), row.get("train_trial_index", 0)
    known = as_count(index) if trial else None
    if as_text(instance) is None or (trial and known is None):
        return None
    if perturbation is None:
        return str(as_text(instance)), "", known
    name = as_text(as_mapping(perturbation).get("name"))
    seed = as_text(as_mapping(perturbation).get("seed"))
    return (
        None
        if name is None
        else (str(as_text(instance)), name + (f"#{seed}" if seed else ""), known)
    )


def _means(
    stats: object, file: LogFile, line: int, problems: Problems
) -> Iterator[tuple[str, float | None]]:
    if not isinstance(stats, list):
        problems.add(file.name, "stats is not a list", line=line, field="stats")
    for stat in as_list(stats):
        name = as_mapping(as_mapping(stat).get("name")).get("name")
        if not isinstance(name, str):
            problems.add(file.name, "a statistic has no name", line=line, field="stats")
            continue
        mean = number(stat.get("mean"))
        if mean is not None or as_count(stat.get("count")) == 0:
            yield name, mean
        else:
            problems.add(file.name, f"{name} has no usable mean", line=line, field="stats")
            yield name, None


def _requests_by_key(files: Sequence[LogFile], problems: Problems) -> dict[Key, _KeyRequests]:
    requests: dict[Key, _KeyRequests] = {}
    for file in files:
        part = _part(file)
        if part == "state":
            for state in _states(file, problems):
                instance = as_mapping(state.get("instance"))
                row_of_state = {**state, "perturbation": instance.get("perturbation")}
                _keep(requests, _key(instance.get("id"), row_of_state), state, file, problems)
        elif part == "instances":
            for _, row in rows(file, problems):
                key = _key(row.get("id"), row, trial=False)
                _keep(requests, key, {"instance": row}, file, problems)
    return requests


def _states(file: LogFile, problems: Problems) -> list[dict[str, Any]]:
    try:
        states = as_mapping(document(file)).get("request_states")
    except UnreadableError as error:
        problems.add(file.name, f"questions and responses are missing: {error.message}")
        return []
    if not isinstance(states, list):
        problems.add(file.name, "request_states is not a list", field="request_states")
    return [
        state
        for state in as_list(states)
        if as_mapping(state) and state.get("request_mode") != "calibration"
    ]


def _keep(
    requests: dict[Key, _KeyRequests],
    key: Key | None,
    state: Mapping[str, Any],
    file: LogFile,
    problems: Problems,
) -> None:
    """Add a request; the first question of an id counts, another one is a problem."""
    if key is None:
        problems.add(file.name, "an instance has no usable id", field="instance")
        return
    if _question(state) is None:
        problems.add(file.name, f"instance {key[0]!r} has no usable question", field="input")
    kept = requests.setdefault(key, _KeyRequests(state))
    if _question(kept.first) != _question(state):
        message = f"duplicate question of instance {key[0]!r}; the first one is used"
        problems.add(file.name, message, field="instance")
        return
    kept.of_reference.setdefault(as_count(state.get("reference_index")), state)


def _sample(task: str, key: Key, result: _Result) -> Sample:
    instance, perturbation, trial = key
    return Sample(
        task=task,
        item=f"{instance}:{perturbation}" if perturbation else instance,
        repeat=trial or 0,
        scores=[Score(n, v) for n, v in result.values.items() if not NO_SCORE.match(n)],
        tags=perturbation or None,
        cluster=instance if perturbation else None,
        tokens_in=as_count(result.values.get("num_prompt_tokens")),
        tokens_out=as_count(result.values.get("num_output_tokens")),
        file=result.file,
        line=result.line,
    )


def _add_item(sample: Sample, requests: _KeyRequests, method: str | None) -> None:
    """Set question, options and gold; references are options only in multiple choice."""
    sample.question = _question(requests.first)
    instance = as_mapping(requests.first.get("instance"))
    references = [as_mapping(reference) for reference in as_list(instance.get("references"))]
    outputs = [_content(reference.get("output")) for reference in references]
    right = [
        output
        for output, reference in zip(outputs, references, strict=True)
        if output is not None and "correct" in as_list(reference.get("tags"))
    ]
    sample.gold = right[0] if right else None
    chosen = len(right) < len(outputs) if method is None else method.startswith(_WITH_OPTIONS)
    if chosen and None not in outputs and len(outputs) > 1:
        letters = as_mapping(requests.first.get("output_mapping"))
        display = [as_text(option) for option in letters.values()] or outputs
        sample.options = [option for option in display if option is not None]


def _add_answer(sample: Sample, requests: _KeyRequests, result: _Result, *, texts: bool) -> None:
    """Set the response of the model, or the most likely reference."""
    predicted = as_count(result.values.get("predicted_index"))
    state = requests.of_reference.get(predicted, requests.first)
    reply = as_mapping(state.get("result"))
    completion = as_mapping(next(iter(as_list(reply.get("completions"))), None))
    text = as_text(completion.get("text", result.display.get("predicted_text")))
    mapping = as_mapping(state.get("output_mapping"))
    if mapping and text is not None:
        sample.answer = text.strip()
        sample.choice = as_text(mapping.get(sample.answer))
    elif predicted is not None and sample.options and predicted < len(sample.options):
        sample.choice = sample.options[predicted]
    sample.choice = sample.choice or as_text(result.display.get("mapped_output"))
    sample.finish_reason = as_text(as_mapping(completion.get("finish_reason")).get("reason"))
    if texts:
        sample.prompt = _prompt(as_mapping(state.get("request")))
        sample.response = _with_thinking(text, completion, result.display)
    if reply.get("success") is False:
        _fail(sample, as_text(reply.get("error")))


def _fail(sample: Sample, error: str | None) -> None:
    """Remove the scores of a failed request, which HELM scores as an empty answer."""
    sample.error = error or "the request failed"
    for score in sample.scores:
        score.value, score.outcome = None, Outcome.ERROR


def _question(state: Mapping[str, Any]) -> str | None:
    return _content(as_mapping(state.get("instance")).get("input"))


def _content(value: object) -> str | None:
    """Return a text, which is wrapped in an object except in the first versions."""
    return as_text(value.get("text") if isinstance(value, dict) else value)


def _with_thinking(
    text: str | None, completion: Mapping[str, Any], display: Mapping[str, Any]
) -> str | None:
    thinking = as_text(as_mapping(completion.get("thinking")).get("text"))
    thinking = thinking or as_text(display.get("thinking_text"))
    return f"{thinking}\n\n{text}" if thinking and text is not None else text


def _prompt(request: Mapping[str, Any]) -> str | None:
    messages = as_list(request.get("messages"))
    return json.dumps(messages) if messages else as_text(request.get("prompt"))
