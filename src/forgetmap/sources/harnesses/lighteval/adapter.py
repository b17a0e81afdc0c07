"""lighteval: `details_TASK_TIME.parquet`, one per task, and `results_TIME.json` with the settings.

Settings and details are matched by the time in their names, else by their scores. Several seeds of
one model and task with the same settings are repeats of one evaluation.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from forgetmap.errors import UnreadableError
from forgetmap.records import HarnessInfo, MetricInfo, ModelInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, StatedTotal
from forgetmap.sources.decode import document, number
from forgetmap.sources.fields import as_mapping, as_objects
from forgetmap.sources.files import LogFile, open_parquet
from forgetmap.sources.harnesses.lighteval.rows import (
    DetailsReader,
    Style,
    means,
    metric_names,
    style_of,
)

FORMATS: Mapping[Style, str] = {
    "flat": "lighteval details with flat columns (up to 0.10)",
    "structs": "lighteval details with doc, metric and model_response (0.11 on)",
}
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?")
_SHOTS = re.compile(r"^(?P<name>.+?)\|(?P<shots>\d+)(?:\|\d+)?$")
CLOSE = 1e-6
MAX_ROWS_COMPARED = 4096


class Lighteval:
    """Details of lighteval, all versions."""

    name = "lighteval"
    preferred: Sequence[str] = (
        "extractive_match", "acc", "acc_norm", "loglikelihood_acc", "loglikelihood_acc_norm", "em",
        "qem", "exact_match", "prompt_level_strict_acc", "truthfulqa_mc1",
    )  # fmt: skip

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return logs of Parquet files with lighteval's columns, with their settings."""
        candidates = [_details(file) for file in files if file.kind == "parquet"]
        details = [part for part in candidates if isinstance(part, _Details)]
        if not details:
            return []
        settings = [_settings(file) for file in files if file.peek.has("config_general")]
        known = [part for part in settings if part is not None]
        parts = _shorten_names([_part(part, known) for part in details])
        broken = [part for part in candidates if isinstance(part, UnreadableError)]
        return [*_logs(parts), *(_broken(files, error) for error in broken)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per row and seed."""
        if "broken" in log.notes:
            problems.add(log.files[0].name, log.notes["broken"])
            return
        sources: Mapping[str, tuple[int, int | None]] = log.notes["repeats"]
        files = [file for file in log.files if file.name in sources]
        reader = DetailsReader(log.tasks[0], metric_names(files, problems), texts, problems)
        for file in files:
            repeat, seed = sources[file.name]
            yield from reader.samples(file, repeat=repeat, seed=seed)
        problems.totals += log.notes["totals"]


@dataclass(frozen=True, slots=True)
class _Settings:
    """A file of results: settings and scores of an evaluation."""

    file: LogFile
    stamp: str | None
    general: Mapping[str, Any]
    results: Mapping[str, Any]
    versions: Mapping[str, Any]
    tasks: Mapping[str, Any]

    @property
    def model_config(self) -> Mapping[str, Any]:
        return as_mapping(self.general.get("model_config"))

    @property
    def model(self) -> str | None:
        name = self.general.get("model_name") or self.model_config.get("model_name")
        return name if isinstance(name, str) and name else None

    @property
    def generation(self) -> Mapping[str, Any]:
        parameters = self.general.get("generation_parameters")
        return as_mapping(parameters or self.model_config.get("generation_parameters"))

    @property
    def seed(self) -> int | None:
        for config in (self.generation, self.model_config):
            seed = config.get("seed")
            if isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < 1 << 63:
                return seed
        return None


@dataclass(frozen=True, slots=True)
class _Details:
    """A file of details: task, time and model from its content and name, and its settings.

    Attributes:
        full_name: the task with suite and number of examples.
        written: the time in the name of the file.
        task: the task without suite and number of examples, unless two would become equal.
    """

    file: LogFile
    style: Style
    full_name: str
    written: str | None
    model: str | None
    settings: _Settings | None = None
    task: str = ""

    @property
    def seed(self) -> int | None:
        return self.settings.seed if self.settings else None

    @property
    def stamp(self) -> str:
        return self.written or (self.settings and self.settings.stamp) or ""

    @property
    def n_shot(self) -> int | None:
        match = _SHOTS.match(self.full_name)
        return int(match["shots"][:6]) if match else None

    @property
    def decoding(self) -> dict[str, float | int | str | bool | list[str] | None]:
        parameters = self.settings.generation if self.settings else {}
        return {
            str(name): value
            for name, value in parameters.items()
            if name != "seed" and (_is_scalar(value) or _is_texts(value))
        }


def _details(file: LogFile) -> _Details | UnreadableError | None:
    try:
        with open_parquet(file) as opened:
            style = style_of(opened.schema_arrow.names)
            if style is None:
                return None
            logged = _logged_task(opened) if style == "structs" else None
    except UnreadableError as error:
        return error
    stamps = _STAMP.findall(file.inside)
    stamp = stamps[-1].replace(":", "-") if stamps else None
    return _Details(file, style, logged or _label(file), stamp, _model_folder(file))


def _logged_task(opened: Any) -> str | None:
    """Return the task of most rows, since single rows may be damaged."""
    column = next(name for name in opened.schema_arrow.names if name.strip("_") == "doc")
    names: Counter[str] = Counter()
    for batch in opened.iter_batches(MAX_ROWS_COMPARED, columns=[f"{column}.task_name"]):
        values = (as_mapping(row.get(column)).get("task_name") for row in batch.to_pylist())
        names.update(name for name in values if isinstance(name, str) and name)
    return names.most_common(1)[0][0] if names else None


def _label(file: LogFile) -> str:
    """Return the task in the name of the file, else that name."""
    name = PurePosixPath(file.inside).name.removesuffix(".gz").removesuffix(".parquet")
    before = _STAMP.split(name)[0].rstrip("_")
    return before.removeprefix("details_") or name


def _model_folder(file: LogFile) -> str | None:
    """Return the folders between `details` and the time: the name of the model."""
    folders = PurePosixPath(file.inside).parts[:-1]
    if "details" not in folders:
        return None
    after = folders[len(folders) - folders[::-1].index("details") :]
    return "/".join(part for part in after if not _STAMP.fullmatch(part)) or None


def _settings(file: LogFile) -> _Settings | None:
    try:
        content = document(file)
    except UnreadableError:
        return None
    if not isinstance(content, dict):
        return None
    stamps = _STAMP.findall(file.inside)
    return _Settings(
        file,
        stamps[-1].replace(":", "-") if stamps else None,
        as_mapping(content.get("config_general")),
        as_mapping(content.get("results")),
        as_mapping(content.get("versions")),
        as_mapping(content.get("config_tasks")),
    )


def _part(details: _Details, known: Sequence[_Settings]) -> _Details:
    """Join details with the settings of the same time, else the same scores, else the only ones."""
    same = [other for other in known if details.written in {other.stamp} - {None}]
    with_task = [
        other for other in same if _squashed(details.full_name) in map(_squashed, other.results)
    ]
    settings, task = next(iter(with_task), None), details.full_name
    if settings is None and known:
        undated = [other for other in known if None in (other.stamp, details.written)]
        settings, task = _by_scores(details, same or undated)
        candidates = same or (undated if len(known) == 1 else [])
        settings = settings or next(iter(candidates), None)
    model = (settings.model if settings else None) or _known_model(details.model, known)
    return replace(details, settings=settings, model=model, full_name=task)


def _by_scores(details: _Details, known: Sequence[_Settings]) -> tuple[_Settings | None, str]:
    """Return the only settings whose scores agree with the details, or None; and the task."""
    try:
        averages, count = means(details.file) if known else ({}, 0)
    except UnreadableError:
        return None, details.full_name
    fitting = [
        (settings, name)
        for settings in known
        for name, scores in settings.results.items()
        if name != "all"
        and _agree(averages, as_mapping(scores))
        and _has_rows(settings, name, count)
    ]
    runs, tasks = {other.file.name for other, _ in fitting}, {name for _, name in fitting}
    task = next(iter(tasks)) if len(tasks) == 1 and details.style == "flat" else details.full_name
    return (fitting[0][0] if len(runs) == 1 else None), task


def _agree(averages: Mapping[str, float], scores: Mapping[str, Any]) -> bool:
    shared = [name for name in averages if isinstance(scores.get(name), int | float)]
    return bool(shared) and all(
        math.isclose(averages[name], scores[name], rel_tol=CLOSE, abs_tol=CLOSE) for name in shared
    )


def _has_rows(settings: _Settings, task: str, count: int) -> bool:
    for name, config in settings.tasks.items():
        if task.startswith(name) or _squashed(name) == _squashed(task):
            return as_mapping(config).get("effective_num_docs") in (None, -1, count)
    return True


def _known_model(folder: str | None, known: Sequence[_Settings]) -> str | None:
    """Return the name of a folder as written in the settings; without a folder, the only model."""
    names = {_squashed(settings.model): settings.model for settings in known if settings.model}
    if folder is None:
        return next(iter(names.values())) if len(names) == 1 else None
    return names.get(_squashed(folder), folder)


def _shorten_names(parts: Sequence[_Details]) -> list[_Details]:
    """Set task names without suite and number of examples, unless two would become equal."""
    full: dict[tuple[str | None, str, str], set[str]] = defaultdict(set)
    for part in parts:
        full[part.model, part.stamp, _bare(part.full_name)].add(part.full_name)
    ambiguous = {bare for (_, _, bare), names in full.items() if len(names) > 1}
    return [
        replace(part, task=part.full_name if _bare(part.full_name) in ambiguous else bare)
        for part in parts
        for bare in [_bare(part.full_name)]
    ]


def _bare(full_name: str) -> str:
    """Return `arc:easy` for `community|arc:easy|0` and `arc:easy|0`."""
    match = _SHOTS.match(full_name)
    return (match["name"] if match else full_name).rpartition("|")[2] or full_name


def _logs(parts: Sequence[_Details]) -> list[Log]:
    groups: dict[tuple[str, ...], list[_Details]] = defaultdict(list)
    for part in parts:
        key = (part.model or "", part.task, part.full_name, repr(sorted(part.decoding.items())))
        groups[key].append(part)
    return [log for group in groups.values() for log in _evaluations(group, parts)]


def _evaluations(group: Sequence[_Details], everything: Sequence[_Details]) -> Iterator[Log]:
    """Yield a log of the newest details of all seeds, then a log for each older time."""
    newest = {
        seed: max(part.stamp for part in group if part.seed == seed)
        for seed in {part.seed for part in group} - {None}
    }
    together: list[_Details] = []
    if len(newest) > 1:
        together = [part for part in group if newest.get(part.seed) == part.stamp]
        seeds = {part.seed for part in everything if part.model == group[0].model}
        yield _log(together, sorted(seed for seed in seeds if seed is not None))
    by_stamp: dict[str, list[_Details]] = defaultdict(list)
    for part in group:
        if part not in together:
            by_stamp[part.stamp].append(part)
    for same in by_stamp.values():
        yield _log(same, [seed for seed in [same[0].seed] if seed is not None])


def _log(parts: Sequence[_Details], seeds: Sequence[int]) -> Log:
    first = max(parts, key=lambda part: part.stamp)
    repeats = {
        part.file.name: (seeds.index(part.seed) if part.seed in seeds else 0, part.seed)
        for part in parts
    }
    settings = {p.settings.file.name: p.settings.file for p in parts if p.settings}
    return Log(
        "lighteval",
        (*(part.file for part in parts), *settings.values()),
        _info(first, seeds),
        (first.task,),
        stamp=first.stamp or None,
        format=FORMATS[first.style],
        notes={"repeats": repeats, "totals": list(_totals(parts, first.task, repeats))},
    )


def _totals(
    parts: Sequence[_Details], task: str, repeats: Mapping[str, tuple[int, int | None]]
) -> Iterator[StatedTotal]:
    """Yield the totals of metrics that are means over all items."""
    for part in parts:
        stated = part.settings.results.get(part.full_name) if part.settings else None
        for name, value in as_mapping(stated).items():
            mean = number(value) if name in Lighteval.preferred else None
            if mean is not None:
                repeat = repeats[part.file.name][0]
                yield StatedTotal(task, f"results.{name}", mean, "mean", name, repeat=repeat)


def _broken(files: Sequence[LogFile], error: UnreadableError) -> Log:
    """Return a log for a Parquet file that cannot be opened, so that it is reported."""
    file = next(file for file in files if file.name == error.file)
    info = RunInfo(harness=HarnessInfo(name="lighteval"))
    return Log("lighteval", (file,), info, notes={"broken": error.message})


def _info(part: _Details, seeds: Sequence[int]) -> RunInfo:
    settings = part.settings
    general = settings.general if settings else {}
    version = general.get("lighteval_sha")
    task = TaskInfo(version=_version(part), n_shot=part.n_shot)
    return RunInfo(
        model=ModelInfo(name=part.model, revision=_revision(settings) if settings else None),
        harness=HarnessInfo(
            name="lighteval",
            version=version if isinstance(version, str) and version != "?" else None,
        ),
        decoding=part.decoding,
        seeds=list(seeds),
        system_prompt_hash=_system_prompt(settings) if settings else None,
        created=_iso(part.stamp),
        tasks={part.task: task},
        metrics=_directions(part),
    )


def _version(part: _Details) -> str | None:
    known = part.settings.versions if part.settings else {}
    for name, version in known.items():
        if _squashed(name) == _squashed(part.full_name) and isinstance(version, int | float | str):
            return str(version)
    return None


def _revision(settings: _Settings) -> str | None:
    revision = settings.general.get("model_sha") or settings.model_config.get("revision")
    return revision if isinstance(revision, str) and revision else None


def _system_prompt(settings: _Settings) -> str | None:
    prompt = settings.model_config.get("system_prompt")
    if not isinstance(prompt, str) or not prompt:
        return None
    return sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16]


def _directions(part: _Details) -> dict[str, MetricInfo]:
    """Return the metrics of which less is better."""
    directions: dict[str, MetricInfo] = {}
    for name, config in (part.settings.tasks if part.settings else {}).items():
        if _squashed(_bare(part.full_name)) not in _squashed(name):
            continue
        settings = as_mapping(config)
        metrics = settings.get("metrics") or settings.get("metric")
        for metric in as_objects(metrics):
            for metric_name, higher in _higher(metric):
                if higher is False:
                    directions[metric_name] = MetricInfo(
                        low=None, high=None, higher_is_better=False
                    )
    return directions


def _higher(metric: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Return names of a metric, each with whether more is better; a group has several."""
    names, higher = metric.get("metric_name"), metric.get("higher_is_better")
    for name in names if isinstance(names, list) else [names]:
        if isinstance(name, str):
            yield name, higher.get(name) if isinstance(higher, dict) else higher


def _iso(stamp: str) -> str | None:
    date, separator, time = stamp.partition("T")
    return f"{date}T{time.replace('-', ':')}" if separator else None


def _squashed(name: str | None) -> str:
    return re.sub(r"[^a-z0-9]+", "", (name or "").casefold())


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | str) or (
        isinstance(value, int | float) and abs(value) < 1 << 63 and math.isfinite(value)
    )


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(element, str) for element in value)
