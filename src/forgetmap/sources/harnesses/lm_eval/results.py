"""Metadata of lm-eval runs, from the results document and from names of files and folders.

The document is recognised by its content. It belongs to the samples with the same time stamp, else
to those of its tasks. Names are used only for what the document does not state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from forgetmap.errors import ForgetmapError
from forgetmap.records import HarnessInfo, MetricInfo, ModelInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import StatedTotal
from forgetmap.sources.decode import document, number
from forgetmap.sources.fields import as_mapping, as_objects
from forgetmap.sources.files import LogFile

MARKS = frozenset({"configs", "versions", "n-shot", "group_subtasks", "higher_is_better"})
MODEL_ARGS = ("peft", "delta", "pretrained", "model", "path", "engine")
"""Arguments that name the model, in lm-eval's order."""
MEANS = re.compile(r"(acc|acc_norm|acc_bytes|exact_match|em|mc1|mc2|prompt_level_\w+|\w+_acc)")
"""Metrics whose total is the mean over all items if the configuration names no aggregation."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?")
_SAMPLES = re.compile(rf"samples_(?P<task>.+?)_{_STAMP.pattern}")
_TASK = re.compile(
    r"_(?P<task>(?:arc_|hellaswag|winogrande|piqa|boolq|gsm8k|mmlu|hendrycks|truthfulqa|openbookqa"
    r"|sciq|commonsense|social_i|bbh|gpqa|drop|triviaqa|lambada|ifeval|minerva|mathqa|math_|copa"
    r"|rte|wsc|wic|logiqa|race|asdiv|cola|mnli|qnli|sst|anli|nq_|mgsm|xnli|xcopa|pubmedqa|medmcqa"
    r"|agieval|humaneval|mbpp|coqa|squad|toxigen|wikitext|headqa|prost|swag|webqs|blimp).*)$"
)


@dataclass(frozen=True, slots=True)
class Results:
    """One results document."""

    file: LogFile
    content: Mapping[str, Any]

    def part(self, name: str) -> dict[str, Any]:
        """Return an object in the document; empty if there is none."""
        return as_mapping(self.content.get(name))

    @property
    def tasks(self) -> set[str]:
        """Names of the tasks in the document."""
        return {*self.part("configs"), *self.part("results")}

    @property
    def stamp(self) -> str | None:
        """Time of the run, from the file name, else from the document."""
        return _stamp(self.file) or _moment(self.content.get("date"))

    def filters(self, task: str) -> Sequence[str]:
        """Return the names of a task's filters in order; empty if they are not stated."""
        entries = as_objects(as_mapping(self.part("configs").get(task)).get("filter_list"))
        return [entry["name"] for entry in entries if isinstance(entry.get("name"), str)]

    def totals(self, task: str) -> list[StatedTotal]:
        """Return the means of a task over all items; keys are `METRIC,FILTER`, `METRIC` in 0.3."""
        rules = _by_metric(as_mapping(self.part("configs").get(task)), "aggregation")
        totals = []
        for name, value in as_mapping(self.part("results").get(task)).items():
            metric, comma, scorer = name.partition(",")
            rule = rules.get(metric)
            is_mean = rule == "mean" or (rule is None and MEANS.fullmatch(metric) is not None)
            mean = number(value) if isinstance(value, int | float) else None
            if is_mean and mean is not None:
                only = scorer if comma else None
                totals.append(StatedTotal(task, name, mean, "mean", metric, only))
        return totals

    def info(self, task: str, alias: str | None, settings: Mapping[str, Any]) -> RunInfo:
        """Return the metadata of a run: `alias` is the model by files, `settings` are of a row."""
        content, run = self.content, self.part("config")
        config = as_mapping(self.part("configs").get(task))
        arguments = _arguments(run.get("model_args"))
        by_arguments = next((arguments[name] for name in MODEL_ARGS if arguments.get(name)), None)
        directions = _by_metric(config, "higher_is_better")
        directions |= as_mapping(self.part("higher_is_better").get(task))
        better = {name: way for name, way in directions.items() if isinstance(way, bool)}
        generates = config.get("output_type") in (None, "generate_until")
        kwargs = as_mapping(config.get("generation_kwargs")) | _arguments(run.get("gen_kwargs"))
        seed = _whole(run.get("torch_seed", run.get("random_seed")))
        created = _moment(content.get("date"))
        names = [entry.get("metric") for entry in as_objects(config.get("metric_list"))]
        known = [name for name in names if isinstance(name, str) and better.get(name)]
        shots = self.part("n-shot").get(task, config.get("num_fewshot", run.get("num_fewshot")))
        chat, system = (  # "none" if the document states null, None if it lacks the field
            "none" if content.get(name, "") is None else _text(content.get(name))
            for name in ("chat_template_sha", "system_instruction_sha")
        )
        version = content.get("lm_eval_version") or content.get("git_hash")
        about_task = TaskInfo(
            version=_text(self.part("versions").get(task)),
            n_shot=_whole(shots),
            main_metric="acc" if "acc" in names else next(iter(known), None),
            main_scorer=next(iter(self.filters(task)), "none"),
        )
        return RunInfo(
            model=ModelInfo(
                name=_text(
                    content.get("model_name") or by_arguments or alias or run.get("model") or None
                ),
                revision=_text(run.get("model_sha") or arguments.get("revision") or None),
                adapter=_text(arguments.get("peft") or None),
            ),
            harness=HarnessInfo(name="lm-eval", version=_text(version or None)),
            template_hash=chat,
            system_prompt_hash=system,
            decoding=decoding({**kwargs, **settings}) if generates else {},
            seeds=[] if seed is None else [seed],
            created=created and re.sub(r"T(\d\d)-(\d\d)-(\d\d)", r"T\1:\2:\3Z", created),
            tasks={task: about_task},
            metrics={name: MetricInfo(higher_is_better=way) for name, way in better.items()},
        )


class SamplesInfo(NamedTuple):
    """Metadata of a file with samples, from its name and the results document."""

    folder: str
    task: str | None
    stamp: str | None
    model: str | None
    results: Results | None
    totals: Sequence[StatedTotal]


def find_results(files: Iterable[LogFile]) -> list[Results]:
    """Return the results documents among these files, without damaged ones."""
    results = []
    for file in files:
        try:
            content = document(file) if _is_results(file) else None
        except ForgetmapError:
            continue
        if isinstance(content, Mapping):
            results.append(Results(file, content))
    return results


def _is_results(file: LogFile) -> bool:
    first = file.peek.first.get("results")
    if file.peek.shape != "object" or not isinstance(first, Mapping):
        return False
    of_one = as_mapping(next(iter(first.values()), None))
    return any("," in name for name in of_one) or not MARKS.isdisjoint(file.peek.keys)


def find_samples_info(file: LogFile, results: Sequence[Results]) -> SamplesInfo:
    """Return task, time and model of a file with samples, and its results document."""
    folder, _, name = file.inside.rpartition("/")
    candidates = [result for result in results if is_above(result.file.inside, folder)]
    stem = re.sub(r"\.(jsonl?|gz|ndjson|parquet)\b", "", name)
    own = _stamp(file)
    match = _SAMPLES.search(name)
    task = match["task"] if match else None
    fitting = (
        [r for r in candidates if own and _stamp(r.file) == own]
        or [r for r in candidates if _task_in(task or stem, r.tasks) or r.tasks == {task}]
        or [r for r in candidates if task is None and len(r.part("configs")) == 1]
    )
    chosen = max(fitting, key=lambda r: (len(r.file.inside), r.stamp or ""), default=None)
    if task is None and chosen is not None:
        configs = chosen.part("configs")
        task = _task_in(stem, chosen.tasks) or (next(iter(configs)) if len(configs) == 1 else None)
    task = task or _task_of_array(stem)
    stamp = own or (chosen.stamp if chosen else None)
    is_of_this_run = chosen is not None and _stamp(chosen.file) in (None, stamp)
    totals = chosen.totals(task) if chosen and task and is_of_this_run else []
    return SamplesInfo(folder, task, stamp, _model_by_name(file, stem), chosen, totals)


def is_above(inside: str, folder: str) -> bool:
    """Return whether a file is in the folder or in one of its parents."""
    parent = inside.rpartition("/")[0]
    return parent in ("", folder) or folder.startswith(parent + "/")


def _task_in(stem: str, tasks: Iterable[str]) -> str | None:
    """Return the longest task name that a file name ends with."""
    fitting = [task for task in tasks if stem == task or stem.endswith("_" + task)]
    return max(fitting, key=len, default=None)


def _task_of_array(stem: str) -> str | None:
    """Return the task in a file name of 0.4.0 to 0.4.2: the model's arguments, then the task."""
    _, marks, last = stem.rpartition("__")
    known = _TASK.search(last)
    return (known["task"] if known else last.partition("_")[2] or None) if marks else None


def _model_by_name(file: LogFile, stem: str) -> str | None:
    """Return the model's name, which lm-eval writes as `org__name` in folders and files."""
    parent = file.inside.rpartition("/")[0].rpartition("/")[2] or file.path.parent.name
    if "__" in parent and not file.member:
        return parent.replace("__", "/")
    if stem.startswith(("pretrained__", "model__", "path__")):
        head = stem.partition(",")[0].removesuffix(f"_{_task_of_array(stem)}")
        return head.partition("__")[2].replace("__", "/") or None
    below = "/" in file.inside and _SAMPLES.search(file.inside) is not None
    return parent if below and parent else None


def _stamp(file: LogFile) -> str | None:
    stamps = _STAMP.findall(file.inside.rpartition("/")[2])
    return stamps[-1] if stamps else None


def _moment(seconds: object) -> str | None:
    """Format seconds since 1970 as a time stamp of lm-eval."""
    value = number(seconds)
    if value is None or not 0 < value < 1e11:  # beyond any calendar
        return None
    return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H-%M-%S")


def _by_metric(config: Mapping[str, Any], field: str) -> dict[str, Any]:
    entries = as_objects(config.get("metric_list"))
    return {str(entry.get("metric")): entry.get(field) for entry in entries}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _arguments(value: object) -> dict[str, Any]:
    """Parse arguments, written as `a=1,b=2` or as a mapping."""
    if not isinstance(value, str):
        return dict(as_mapping(value))
    parts = (part.partition("=") for part in value.split(",") if "=" in part)
    return {name.strip(): _plain(text.strip()) for name, _, text in parts}


def _plain(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text if number(text) is None else number(text)


def decoding(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a manifest can hold; without sampling the temperature is 0."""
    kept = {
        name: value
        for name, value in kwargs.items()
        if isinstance(value, str | bool | int | float)
        or (isinstance(value, list) and all(isinstance(element, str) for element in value))
    }
    return kept | {"temperature": 0.0} if kept.get("do_sample") is False else kept
