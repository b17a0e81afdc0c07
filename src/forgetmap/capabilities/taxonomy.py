"""The taxonomy: groups, capabilities, tasks and metrics, defined only here.

    name = "mine"
    groups = [{ id = "CAN", title = "What it can do" }]
    capabilities = [{ id = "maths", group = "CAN", title = "Mathematics", tasks = ["gsm8k"] }]
    metrics = [{ id = "maths.aime", capability = "maths", task = "aime", scorer = "number",
                 field = "acc", strict = "acc_strict", polarity = "up", scale = "binary" }]

A capability that lists `tasks` gets one metric for each of them: the main metric of that task in
the run. A metric with a scorer is computed from texts if the run has no such score. `deep_dive`
lists further metrics, which are shown on demand and are in no average.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from forgetmap.errors import FieldError, MissingInputError, UnreadableError
from forgetmap.scoring import Needs, Polarity, Scale, find_scorer, needs_of, scorer_names

NAMES = ("captrack", "knowledge", "sample")
"""Included taxonomies."""
SUITE_OF_TAXONOMY = {"captrack": "captrack", "knowledge": "post-forget", "sample": "capabilities"}
"""Taxonomy -> the suite with its tasks."""
FIRST = ".first"
"""Suffix of the task with the first turns of another; nothing is measured on it."""
TARGET = "TARGET"
"""Group of the tasks a model was trained for."""
ScaleName = Literal["binary", "share", "rating", "count"]
SHARES: tuple[ScaleName, ...] = ("binary", "share")
"""Scales whose means are shares, shown in percent."""
_HINT = "see docs/capabilities.md for the fields of a taxonomy."


@dataclass(frozen=True, slots=True)
class CapabilityGroup:
    """A group of capabilities.

    Attributes:
        id: id, such as CAN.
        title: title in words.
    """

    id: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Capability:
    """A capability, one row of the table.

    Attributes:
        id: unique.
        group: the group it belongs to.
        title: title in words.
        code: id shared by parts of one capability that are shown separately; by default its own.
        published: its column in the comparison files of CapTrack.
        tasks: tasks whose main metric counts, whatever it is.
    """

    id: str
    group: str
    title: str = ""
    code: str = ""
    published: str = ""
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaxonomyTask:
    """A set of items.

    Attributes:
        name: name in the records.
        items: number of items of the data set; None if unknown.
        also: other names of the task.
    """

    name: str
    items: int | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One number per item of a task.

    Attributes:
        id: unique.
        capability: the capability it belongs to.
        task: the task it is measured on.
        name: name in words.
        scorer: scorer of the response; None if it is only in records.
        field: value of the scorer, and name of the metric in records; None means the main one.
        strict: field that counts only answers in the required form.
        polarity: `up` if more is better, `down` if less is, `both` if any change is drift.
        scale: kind of its values.
        chance: value of guessing; the recorded number of options takes precedence.
        weight: weight in the mean of its capability; 0 is shown and does not count.
        needs: a rule, a judge or a sandbox.
        column: its column in the metric files of CapTrack.
        agrees_with: task with the same items in other words; the value is then whether both answers
            agree.
        judge: scorer that asks an LLM judge what the rule cannot decide, if there is a judge.
    """

    id: str
    capability: str
    task: str
    name: str = ""
    scorer: str | None = None
    field: str | None = None
    strict: str | None = None
    polarity: Polarity = "up"
    scale: ScaleName = "binary"
    chance: float = 0.0
    weight: float = 1.0
    needs: Needs = "rule"
    column: str | None = None
    agrees_with: str | None = None
    judge: str | None = None

    @property
    def range(self) -> Scale:
        """Smallest and largest value."""
        if self.scorer is not None and self.field is not None:
            return find_scorer(self.scorer).fields[self.field]
        return _SCALES[self.scale]


_SCALES = {
    "binary": Scale(binary=True),
    "share": Scale(),
    "rating": Scale(1.0, 10.0),
    "count": Scale(high=None),
}


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Consistent groups, capabilities, tasks and metrics.

    Attributes:
        name: name of the taxonomy.
        title: title in words.
        groups: groups of capabilities.
        capabilities: rows of the table.
        tasks: sets of items.
        metrics: metrics that capabilities average.
        deep_dive: metrics that explain a capability: shown on demand, in no average.
    """

    name: str
    title: str
    groups: tuple[CapabilityGroup, ...]
    capabilities: tuple[Capability, ...]
    tasks: tuple[TaxonomyTask, ...]
    metrics: tuple[Metric, ...]
    deep_dive: tuple[Metric, ...] = ()

    def capabilities_of(self, group: str) -> list[Capability]:
        """Return the capabilities of a group."""
        return [capability for capability in self.capabilities if capability.group == group]

    def metrics_of(self, capability: str) -> list[Metric]:
        """Return the metrics of a capability."""
        return [metric for metric in self.metrics if metric.capability == capability]


def load_taxonomy(source: str | Path | Taxonomy) -> Taxonomy:
    """Load an included taxonomy by name, or a file.

    Raises:
        MissingInputError: there is no such name or file.
        UnreadableError: the file is not TOML.
        FieldError: an entry is invalid; file and key are named.
    """
    if isinstance(source, Taxonomy):
        return source
    if str(source) in NAMES:
        return _shipped(str(source))
    path = Path(source)
    if not path.is_file():
        raise MissingInputError(
            f"there is no taxonomy {str(source)!r}",
            file=str(path),
            hint=f"give {', '.join(NAMES)} or the path of a TOML file.",
        )
    return parse_taxonomy(path.read_bytes(), origin=str(path))


@cache
def _shipped(name: str) -> Taxonomy:
    data = files("forgetmap.capabilities").joinpath("data", f"{name}.toml").read_bytes()
    return parse_taxonomy(data, origin=f"{name}.toml")


def parse_taxonomy(data: bytes, *, origin: str) -> Taxonomy:
    """Parse a taxonomy from TOML, and check it."""
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableError(f"not valid TOML: {error}", file=origin, hint=_HINT) from None
    read = _TaxonomyReader(origin)
    taxonomy = Taxonomy(
        name=str(raw.pop("name", origin)),
        title=str(raw.pop("title", "")),
        groups=read.all(raw.pop("groups", []), "groups", CapabilityGroup),
        capabilities=read.all(raw.pop("capabilities", []), "capabilities", Capability),
        tasks=read.all(raw.pop("tasks", []), "tasks", TaxonomyTask),
        metrics=read.all(raw.pop("metrics", []), "metrics", Metric),
        deep_dive=read.all(raw.pop("deep_dive", []), "deep_dive", Metric),
    )
    for key in raw:
        raise read.fault(key, f"unknown key {key!r}")
    taxonomy = _expand(taxonomy)
    _check(taxonomy, read)
    return taxonomy


def with_targets(taxonomy: Taxonomy, tasks: Sequence[str]) -> Taxonomy:
    """Add these tasks as the target domain, to show learning beside losses."""
    capabilities = tuple(
        Capability(id=f"target.{task}", group=TARGET, title=task, code=f"target.{task}")
        for task in tasks
    )
    return replace(
        _with_metrics(
            taxonomy, [Metric(f"target.{task}", f"target.{task}", task, task) for task in tasks]
        ),
        groups=(*taxonomy.groups, *([CapabilityGroup(TARGET, "Target domain")] if tasks else [])),
        capabilities=(*taxonomy.capabilities, *capabilities),
    )


def only_deep_dive(taxonomy: Taxonomy) -> Taxonomy:
    """Return the taxonomy with the metrics of its deep dive in place of the others."""
    return replace(taxonomy, metrics=taxonomy.deep_dive, deep_dive=())


def with_deep_dive(taxonomy: Taxonomy) -> Taxonomy:
    """Return the taxonomy with both kinds of metrics in one list, to score and read them."""
    return replace(taxonomy, metrics=(*taxonomy.metrics, *taxonomy.deep_dive), deep_dive=())


def _with_metrics(taxonomy: Taxonomy, metrics: Sequence[Metric]) -> Taxonomy:
    """Return the taxonomy with further metrics and their tasks."""
    names = {task.name for task in taxonomy.tasks}
    new = dict.fromkeys(metric.task for metric in metrics if metric.task not in names)
    return replace(
        taxonomy,
        tasks=(*taxonomy.tasks, *map(TaxonomyTask, new)),
        metrics=(*taxonomy.metrics, *metrics),
    )


Entry = TypeVar("Entry", CapabilityGroup, Capability, TaxonomyTask, Metric)


class _TaxonomyReader:
    """Converts tables of TOML into objects; invalid entries are errors with file and key."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def fault(self, key: str, message: str) -> FieldError:
        """Return the error for this key."""
        return FieldError(message, file=self.origin, field=key, hint=_HINT)

    def all(self, rows: Any, key: str, kind: type[Entry]) -> tuple[Entry, ...]:
        """Convert a list of tables to objects of one kind."""
        if not isinstance(rows, list):
            raise self.fault(key, f"expected a list of tables, not {rows!r:.40}")
        return tuple(self.one(row, f"{key}[{index}]", kind) for index, row in enumerate(rows))

    def one(self, row: Any, key: str, kind: type[Entry]) -> Entry:
        """Convert one table."""
        if not isinstance(row, Mapping):
            raise self.fault(key, f"expected a table, not {row!r:.40}")
        known = {field.name: str(field.type) for field in fields(kind)}
        for name, value in row.items():
            if name not in known:
                raise self.fault(f"{key}.{name}", f"unknown field {name!r}")
            if not _fits(value, known[name]):
                raise self.fault(f"{key}.{name}", f"invalid value {value!r:.40}: {known[name]}")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
        }
        try:
            return kind(**values)
        except TypeError as error:
            needed = str(error).rpartition(": ")[2]
            raise self.fault(key, f"missing field: {needed}") from None


_ALLOWED: dict[str, tuple[Any, ...]] = {
    "Polarity": get_args(Polarity),
    "ScaleName": get_args(ScaleName),
    "Needs": get_args(Needs),
}
_PLAIN: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "float": (int, float)}


def _fits(value: Any, kind: str) -> bool:
    """Return whether a value of TOML has the declared type of a field."""
    base = kind.removesuffix(" | None")
    if base in _ALLOWED:
        return value in _ALLOWED[base]
    if base.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if isinstance(value, bool):
        return False
    return isinstance(value, _PLAIN[base])


def _expand(taxonomy: Taxonomy) -> Taxonomy:
    """Add the codes of capabilities, and the metrics and tasks that they only list."""
    entries = [
        Metric(f"{capability.id}.{task}", capability.id, task, name=task)
        for capability in taxonomy.capabilities
        for task in capability.tasks
    ]
    return replace(
        _with_metrics(taxonomy, entries),
        capabilities=tuple(
            replace(capability, code=capability.code or capability.id)
            for capability in taxonomy.capabilities
        ),
    )


def _check(taxonomy: Taxonomy, read: _TaxonomyReader) -> None:
    """Refuse duplicates, unknown references, and names that the scorers do not have."""
    groups = _unique([group.id for group in taxonomy.groups], "groups", read)
    capabilities = _unique([part.id for part in taxonomy.capabilities], "capabilities", read)
    tasks = _unique([task.name for task in taxonomy.tasks], "tasks", read)
    _unique([metric.id for metric in (*taxonomy.metrics, *taxonomy.deep_dive)], "metrics", read)
    for index, capability in enumerate(taxonomy.capabilities):
        if capability.group not in groups:
            key = f"capabilities[{index}].group"
            raise read.fault(key, f"there is no group {capability.group!r}")
    for index, metric in enumerate(taxonomy.metrics):
        _check_metric(metric, f"metrics[{index}]", capabilities, tasks, read)
    for index, metric in enumerate(taxonomy.deep_dive):
        _check_metric(metric, f"deep_dive[{index}]", capabilities, tasks, read)
    used = {metric.task for metric in (*taxonomy.metrics, *taxonomy.deep_dive)}
    used |= {metric.agrees_with for metric in taxonomy.metrics if metric.agrees_with}
    _no_orphans("tasks", tasks, used, read)
    _no_orphans("capabilities", capabilities, {m.capability for m in taxonomy.metrics}, read)
    _no_orphans("groups", groups, {part.group for part in taxonomy.capabilities}, read)


def _unique(ids: Sequence[str], key: str, read: _TaxonomyReader) -> set[str]:
    for name, count in Counter(ids).most_common(1):
        if count > 1:
            raise read.fault(key, f"{name!r} is defined {count} times")
    return set(ids)


def _no_orphans(key: str, there: set[str], used: set[str], read: _TaxonomyReader) -> None:
    for name in sorted(there - used):
        raise read.fault(key, f"no metric belongs to {name!r}")


def _check_metric(
    metric: Metric, key: str, capabilities: set[str], tasks: set[str], read: _TaxonomyReader
) -> None:
    if metric.capability not in capabilities:
        raise read.fault(f"{key}.capability", f"there is no capability {metric.capability!r}")
    for name, task in (("task", metric.task), ("agrees_with", metric.agrees_with)):
        if task is not None and task not in tasks:
            raise read.fault(f"{key}.{name}", f"there is no task {task!r}")
    if metric.weight < 0 or not 0 <= metric.chance < 1:
        raise read.fault(key, "the weight must be 0 or more, and chance between 0 and 1")
    if metric.scorer is None:
        if metric.strict or metric.judge:
            raise read.fault(f"{key}.strict", "strict and judge need a scorer")
        return
    _check_scorer(metric, key, read)


def _check_scorer(metric: Metric, key: str, read: _TaxonomyReader) -> None:
    for name, scorer_name in (("scorer", metric.scorer), ("judge", metric.judge)):
        if scorer_name is None:
            continue
        if scorer_name not in scorer_names():
            raise read.fault(f"{key}.{name}", f"there is no scorer {scorer_name!r}")
        scorer = find_scorer(scorer_name)
        for part in ("field", "strict"):
            field = getattr(metric, part)
            if field not in scorer.fields and not (part == "strict" and field is None):
                fields = ", ".join(scorer.fields)
                message = f"scorer {scorer_name!r} has no field {field!r}; its fields are {fields}"
                raise read.fault(f"{key}.{part}", message)
        needs = needs_of(scorer) if name == "scorer" else "judge"
        if needs != (metric.needs if name == "scorer" else needs_of(scorer)):
            raise read.fault(f"{key}.needs", f"scorer {scorer_name!r} needs a {needs}")
    scale = metric.range
    if metric.agrees_with is None and not _SCALE_FITS[metric.scale](scale):
        raise read.fault(
            f"{key}.scale", f"the scale of the scorer is {scale}, not {metric.scale!r}"
        )


_SCALE_FITS: dict[str, Callable[[Scale], bool]] = {
    "binary": lambda scale: scale.binary,
    "share": lambda scale: (scale.low, scale.high) == (0.0, 1.0) and not scale.binary,
    "rating": lambda scale: scale.high is not None and (scale.low, scale.high) != (0.0, 1.0),
    "count": lambda scale: scale.high is None,
}
