"""Metadata of lm-eval runs, from the results document and from names of files and folders.

The document is recognised by its content. It belongs to the samples with the same time stamp, else
to those of its tasks. Names are used only for what the document does not state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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

    @property
    def tasks(self) -> set[str]:
        """Names of the tasks in the document."""
        return {*as_mapping(self.content.get("configs")), *as_mapping(self.content.get("results"))}

    def totals(self, task: str) -> list[StatedTotal]:
        """Return the means of a task over all items; keys are `METRIC,FILTER`, `METRIC` in 0.3."""
        config = as_mapping(as_mapping(self.content.get("configs")).get(task))
        rules = {
            str(entry.get("metric")): entry.get("aggregation")
            for entry in as_objects(config.get("metric_list"))
        }
        totals = []
        for name, value in as_mapping(as_mapping(self.content.get("results")).get(task)).items():
            metric, comma, scorer = name.partition(",")
            is_mean = rules.get(metric) == "mean" or (
                rules.get(metric) is None and MEANS.fullmatch(metric) is not None
            )
            mean = number(value) if isinstance(value, int | float) else None
            if is_mean and mean is not None:
                only = scorer if comma else None
                totals.append(StatedTotal(task, name, mean, "mean", metric, only))
        return totals

    @property
    def stamp(self) -> str | None:
        """Time of the run, from the file name, else from the document."""
        return _stamp(self.file) or _moment(self.content.get("date"))


@dataclass(frozen=True, slots=True)
class SamplesInfo:
    """Metadata of a file with samples, from its name and the results document."""

    folder: str
    task: str | None
    stamp: str | None
    model: str | None
    results: Results | None

    @property
    def filters(self) -> Sequence[str]:
        """Names of the task's filters in order; empty if the results do not state them."""
        if self.results is None or self.task is None:
            return ()
        config = as_mapping(as_mapping(self.results.content.get("configs")).get(self.task))
        names = [entry.get("name") for entry in as_objects(config.get("filter_list"))]
        return [name for name in names if isinstance(name, str)]

    @property
    def totals(self) -> list[StatedTotal]:
        """Totals that the results state for the task; none if they are of another time."""
        if self.results is None or self.task is None:
            return []
        is_of_this_run = _stamp(self.results.file) in (None, self.stamp)
        return self.results.totals(self.task) if is_of_this_run else []

    def info(
        self, task: str, *, main: tuple[str, str] | None, generation: Mapping[str, Any]
    ) -> RunInfo:
        """Return the metadata of the run.

        Args:
            task: name of the task.
            main: main metric and filter, judging by the rows.
            generation: generation settings, as logged in a row.
        """
        if self.results is None:
            tasks = {task: TaskInfo(main_metric=main[0], main_scorer=main[1])} if main else {}
            return RunInfo(
                model=ModelInfo(name=self.model),
                harness=HarnessInfo(name="lm-eval"),
                decoding=_decoding(generation),
                tasks=tasks,
            )
        return _run_info(self.results.content, task, self.model, generation, self.filters)


def find_results(files: Iterable[LogFile]) -> list[Results]:
    """Return the results documents among these files, without damaged ones."""
    results = []
    for file in files:
        if not _is_results(file):
            continue
        try:
            content = document(file)
        except ForgetmapError:
            continue
        if isinstance(content, Mapping):
            results.append(Results(file, content))
    return results


def _is_results(file: LogFile) -> bool:
    first = file.peek.first
    if file.peek.shape != "object" or not isinstance(first.get("results"), Mapping):
        return False
    if MARKS & file.peek.keys:
        return True
    of_one = next(iter(first["results"].values()), None)
    return isinstance(of_one, Mapping) and any("," in name for name in of_one)


def find_samples_info(file: LogFile, results: Sequence[Results]) -> SamplesInfo:
    """Return task, time and model of a file with samples, and its results document."""
    folder, _, name = file.inside.rpartition("/")
    candidates = [result for result in results if _is_above(result.file.inside, folder)]
    stem = re.sub(r"\.(jsonl?|gz|ndjson|parquet)\b", "", name)
    own = _stamp(file)
    match = _SAMPLES.search(name)
    task = match["task"] if match else None
    fitting = [r for r in candidates if own and _stamp(r.file) == own]
    if not fitting:
        fitting = [r for r in candidates if _task_in(task or stem, r.tasks) or r.tasks == {task}]
    if not fitting and task is None:
        fitting = [r for r in candidates if len(as_mapping(r.content.get("configs"))) == 1]
    chosen = max(fitting, key=lambda r: (len(r.file.inside), r.stamp or ""), default=None)
    if task is None and chosen is not None:
        configs = as_mapping(chosen.content.get("configs"))
        task = _task_in(stem, chosen.tasks) or (next(iter(configs)) if len(configs) == 1 else None)
    if task is None:
        task = _task_of_array(stem)
    stamp = own or (chosen.stamp if chosen else None)
    return SamplesInfo(folder, task, stamp, _model_by_name(file, stem), chosen)


def _is_above(inside: str, folder: str) -> bool:
    """Return whether a file is in the folder or in one of its parents."""
    parent = inside.rpartition("/")[0]
    return parent in ("", folder) or folder.startswith(parent + "/")


def _task_in(stem: str, tasks: Iterable[str]) -> str | None:
    """Return the longest task name that a file name ends with."""
    fitting = [task for task in tasks if stem == task or stem.endswith("_" + task)]
    return max(fitting, key=len, default=None)


def _task_of_array(stem: str) -> str | None:
    """Return the task in a file name of 0.4.0 to 0.4.2: the model's arguments, then the task."""
    if "__" not in stem:
        return None
    last = stem.rpartition("__")[2]
    known = _TASK.search(last)
    if known:
        return known["task"]
    return last.partition("_")[2] or None


def _model_by_name(file: LogFile, stem: str) -> str | None:
    """Return the model's name, which lm-eval writes as `org__name` in folders and files."""
    parent = file.inside.rpartition("/")[0].rpartition("/")[2] or file.path.parent.name
    if "__" in parent and not file.member:
        return parent.replace("__", "/")
    if stem.startswith(("pretrained__", "model__", "path__")):
        head = stem.partition(",")[0]
        task = _task_of_array(stem)
        head = head.removesuffix(f"_{task}") if task else head
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


def _run_info(
    content: Mapping[str, Any],
    task: str,
    model: str | None,
    generation: Mapping[str, Any],
    filters: Sequence[str],
) -> RunInfo:
    config = as_mapping(as_mapping(content.get("configs")).get(task))
    run = as_mapping(content.get("config"))
    metrics = _directions(as_mapping(as_mapping(content.get("higher_is_better")).get(task)), config)
    created = _moment(content.get("date"))
    kwargs = {
        **as_mapping(config.get("generation_kwargs")),
        **_arguments(run.get("gen_kwargs")),
        **generation,
    }
    generates = config.get("output_type") in (None, "generate_until")
    seed = run.get("torch_seed", run.get("random_seed"))
    return RunInfo(
        model=_model(content, run, model),
        harness=HarnessInfo(name="lm-eval", version=_version(content)),
        template_hash=_hash(content, "chat_template_sha"),
        system_prompt_hash=_hash(content, "system_instruction_sha"),
        decoding=_decoding(kwargs) if generates else {},
        seeds=[seed] if isinstance(seed, int) and not isinstance(seed, bool) else [],
        created=None
        if created is None
        else re.sub(r"T(\d\d)-(\d\d)-(\d\d)", r"T\1:\2:\3Z", created),
        tasks={task: _task(content, task, config, metrics, filters)},
        metrics=metrics,
    )


def _hash(content: Mapping[str, Any], name: str) -> str | None:
    """Return a hash; "none" if the document states null, None if it does not have the field."""
    value = content.get(name)
    if value is None:
        return "none" if name in content else None
    return str(value)


def _version(content: Mapping[str, Any]) -> str | None:
    value = content.get("lm_eval_version") or content.get("git_hash")
    return str(value) if value else None


def _model(content: Mapping[str, Any], run: Mapping[str, Any], alias: str | None) -> ModelInfo:
    arguments = _arguments(run.get("model_args"))
    by_arguments = next((arguments[name] for name in MODEL_ARGS if arguments.get(name)), None)
    name = content.get("model_name") or by_arguments or alias or run.get("model")
    revision = run.get("model_sha") or arguments.get("revision")
    adapter = arguments.get("peft")
    return ModelInfo(
        name=str(name) if name else None,
        revision=str(revision) if revision else None,
        adapter=str(adapter) if adapter else None,
    )


def _arguments(value: object) -> dict[str, Any]:
    """Parse arguments, written as `a=1,b=2` or as a mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, str):
        return {}
    parts = (part.partition("=") for part in value.split(",") if "=" in part)
    return {name.strip(): _plain(text.strip()) for name, _, text in parts}


def _plain(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text if number(text) is None else number(text)


def _decoding(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a manifest can hold; without sampling the temperature is 0."""
    kept = {
        name: value
        for name, value in kwargs.items()
        if isinstance(value, str | bool | int | float)
        or (isinstance(value, list) and all(isinstance(element, str) for element in value))
    }
    if kept.get("do_sample") is False:
        kept["temperature"] = 0.0
    return kept


def _directions(directions: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, MetricInfo]:
    higher = {
        str(entry.get("metric")): entry.get("higher_is_better")
        for entry in as_objects(config.get("metric_list"))
    }
    higher.update(directions)
    return {
        name: MetricInfo(higher_is_better=better)
        for name, better in higher.items()
        if isinstance(better, bool)
    }


def _task(
    content: Mapping[str, Any],
    task: str,
    config: Mapping[str, Any],
    metrics: Mapping[str, MetricInfo],
    filters: Sequence[str],
) -> TaskInfo:
    version = as_mapping(content.get("versions")).get(task)
    shots = as_mapping(content.get("n-shot")).get(task, config.get("num_fewshot"))
    names = [entry.get("metric") for entry in as_objects(config.get("metric_list"))]
    main = next((n for n in names if n == "acc"), None) or next(
        (n for n in names if isinstance(n, str) and metrics.get(n, MetricInfo()).higher_is_better),
        None,
    )
    return TaskInfo(
        version=None if version is None else str(version),
        n_shot=shots if isinstance(shots, int) and not isinstance(shots, bool) else None,
        main_metric=main,
        main_scorer=filters[0] if filters else "none",
    )


def legacy_run_info(
    task: str, folder: str, results: Sequence[Results]
) -> tuple[RunInfo, Results | None]:
    """Return the metadata of a run of 0.3, and the results document of the task if there is one.

    Args:
        task: name of the task.
        folder: folder of its samples, relative to the path of the logs.
        results: all results documents.
    """
    candidates = [r for r in results if _is_above(r.file.inside, folder) and task in r.tasks]
    chosen = max(candidates, key=lambda r: len(r.file.inside), default=None)
    alias = folder.rpartition("/")[2] or None
    harness = HarnessInfo(name="lm-eval", version="0.3")
    if chosen is None:
        return RunInfo(model=ModelInfo(name=alias), harness=harness), None
    run = as_mapping(chosen.content.get("config"))
    version = as_mapping(chosen.content.get("versions")).get(task)
    shots = run.get("num_fewshot")
    info = TaskInfo(
        version=None if version is None else str(version),
        n_shot=shots if isinstance(shots, int) and not isinstance(shots, bool) else None,
    )
    model = _model(chosen.content, run, alias)
    return RunInfo(model=model, harness=harness, tasks={task: info}), chosen
