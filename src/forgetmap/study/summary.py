"""Counts of the contents of a study, and notices for its readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from forgetmap.results import Notice, Value
from forgetmap.study.declaration import Study, StudyModel, StudyPair, write_size
from forgetmap.text import Blocks, Line, Sheet, counted, listed

SUMMARY_VERSION = 1
MIN_SIZES = 2
"""Minimum number of sizes of a series for a trend."""


class GroupSummary(Value):
    """The pairs of one group."""

    name: str
    pairs: int
    before_models: int
    sizes: list[float] = Field(description="Sizes of the models after, in billions of parameters.")
    changed_style: int = Field(description="Pairs whose models have different prompt styles.")


class SeriesSummary(Value):
    """A series of similar models of several sizes."""

    name: str
    group: str
    sizes: list[float]


class StudySummary(Value):
    """Contents of a study."""

    schema_version: int = SUMMARY_VERSION
    name: str
    title: str
    file: str
    models: int
    families: list[str]
    pairs: int
    merges: int
    merge_pairs: int
    groups: list[GroupSummary]
    series: list[SeriesSummary]
    missing_logs: list[str] = Field(description="Listed logs that do not exist.")
    notices: list[Notice]


def summarize_study(study: Study) -> StudySummary:
    """Count the contents of a study."""
    return StudySummary(
        name=study.name,
        title=study.title,
        file=study.origin,
        models=len(study.models),
        families=sorted({model.family for model in study.models if model.family}),
        pairs=len(study.pairs),
        merges=len(study.merges),
        merge_pairs=len(study.merge_pairs),
        groups=_groups(study),
        series=_series(study),
        missing_logs=_missing_logs(study),
        notices=list(_notices(study)),
    )


def changes_style(study: Study, pair: StudyPair) -> bool:
    """Whether the two models of a pair have different prompt styles."""
    styles = {_style(study, study.model(name)) for name in (pair.before, pair.after)}
    return len(styles) > 1


def _style(study: Study, model: StudyModel) -> str | None:
    return model.style or study.protocol.style


def _groups(study: Study) -> list[GroupSummary]:
    groups: dict[str, list[StudyPair]] = {}
    for pair in study.pairs:
        groups.setdefault(pair.group, []).append(pair)
    return [
        GroupSummary(
            name=name,
            pairs=len(pairs),
            before_models=len({pair.before for pair in pairs}),
            sizes=_sizes(study.model(pair.after) for pair in pairs),
            changed_style=sum(changes_style(study, pair) for pair in pairs),
        )
        for name, pairs in groups.items()
    ]


def _sizes(models: Iterator[StudyModel]) -> list[float]:
    return sorted({model.billions for model in models if model.billions is not None})


def _series(study: Study) -> list[SeriesSummary]:
    series: dict[tuple[str, str], list[StudyModel]] = {}
    for pair in study.pairs:
        after = study.model(pair.after)
        if after.made_like is not None:
            series.setdefault((after.made_like, pair.group), []).append(after)
    summaries = [
        SeriesSummary(name=name, group=group, sizes=_sizes(iter(models)))
        for (name, group), models in series.items()
    ]
    return [one for one in summaries if len(one.sizes) >= MIN_SIZES]


def _missing_logs(study: Study) -> list[str]:
    paths = [log for model in study.models for log in model.logs]
    paths += [log for merge in study.merges for log in merge.logs]
    local = [path for path in paths if "://" not in path]
    return [path for path in local if not (study.folder / path).exists()]


def _notices(study: Study) -> Iterator[Notice]:
    changed = sum(changes_style(study, pair) for pair in study.pairs)
    if changed:
        message = (
            f"in {changed} of {counted(len(study.pairs), 'pair')} the two models have different "
            "prompt styles: apparent forgetting or gains may be due to the prompt."
        )
        yield Notice("style_changes", message)
    missing = _missing_logs(study)
    if missing:
        message = f"{counted(len(missing), 'log')} not found: {listed(missing)}."
        yield Notice("logs_missing", message)
    paths = [m.path for m in study.models if m.path and study.is_missing(m.path)]
    if paths:
        message = f"{counted(len(paths), 'model')} not found: {listed(paths)}."
        yield Notice("models_missing", message)
    assumed = Counter(name for model in study.models for name in model.assumed)
    if assumed:
        parts = [f"{name} of {counted(count, 'model')}" for name, count in assumed.items()]
        yield Notice("assumed", f"assumed, not checked: {', '.join(parts)}.")
    shares = Counter(pair.before for pair in study.pairs)
    if shares and len(shares) < len(study.pairs):
        message = (
            f"{counted(len(study.pairs), 'pair')} share {counted(len(shares), 'model')} before: "
            "pairs of one of these count as one cluster."
        )
        yield Notice("shared_before", message)


def tell_summary(summary: StudySummary) -> Blocks:
    """Describe the contents of a study."""
    counts = [
        counted(summary.models, "model"),
        f"{len(summary.families)} {'family' if len(summary.families) == 1 else 'families'}",
        counted(summary.pairs, "pair"),
        f"{counted(summary.merges, 'merge')} ({summary.merge_pairs} comparisons)",
    ]
    rows = [
        (
            group.name,
            str(group.pairs),
            str(group.before_models),
            ", ".join(map(write_size, group.sizes)) or "-",
            str(group.changed_style),
        )
        for group in summary.groups
    ]
    heads = ("group", "pairs", "models before", "sizes", "style changes")
    blocks: Blocks = [
        Line(f"{summary.name}: {', '.join(counts)}", "strong"),
        *([Line(summary.title)] if summary.title else []),
        Line(),
        Sheet(heads, rows, spare=("style changes", "models before")),
        Line(),
    ]
    trends = [f"{one.name} ({len(one.sizes)} sizes)" for one in summary.series]
    if trends:
        blocks.append(Line(f"Trends with size: {', '.join(trends)}."))
    return [*blocks, *(Line(one.message, "warning", lead="!") for one in summary.notices)]
