"""The manifest of a run that was read from logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forgetmap.records import MetricInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import Adapter, Log
from forgetmap.sources.gather import Measure, RunWriter
from forgetmap.sources.registry import adapter


def describe(logs: Sequence[Log], writer: RunWriter) -> RunInfo:
    """Return the manifest of these logs.

    Args:
        logs: the logs that were read.
        writer: its measures and ranges determine the main measure of each task and the range of
            each metric.
    """
    info, preferred = _merge_infos(logs), _preferred(logs, writer)
    tasks = {
        task: _with_main(info.tasks.get(task, TaskInfo()), list(measures), preferred[task])
        for task, measures in writer.measures.items()
    }
    metrics = {
        name: info.metrics.get(name, MetricInfo()).model_copy(update=_range(*writer.ranges[name]))
        for name in writer.ranges
        if name in info.metrics or _range(*writer.ranges[name])
    }
    return info.model_copy(update={"tasks": tasks, "metrics": metrics})


def _merge_infos(logs: Sequence[Log]) -> RunInfo:
    """Merge the manifests of logs; fields in which they contradict each other are unknown."""
    first = logs[0].info
    same = {
        name: getattr(first, name)
        for name in RunInfo.model_fields
        if all(getattr(log.info, name) == getattr(first, name) for log in logs)
    }
    models = [log.info.model for log in logs if log.info.model.name]
    tasks = {name: task for log in logs for name, task in log.info.tasks.items()}
    metrics = {name: metric for log in logs for name, metric in log.info.metrics.items()}
    newest = max((log.info.created or "" for log in logs), default="") or None
    return RunInfo(
        **{
            **same,
            "model": models[0] if models else first.model,
            "harness": first.harness,
            "tasks": tasks,
            "metrics": metrics,
            "created": newest,
        }
    )


def _preferred(logs: Sequence[Log], writer: RunWriter) -> dict[str, Sequence[str]]:
    """Return for each task the preferred metrics of its adapter."""
    default: Adapter = adapter(logs[0].adapter)
    adapters = {task: adapter(log.adapter) for log in logs for task in log.tasks}
    return {task: adapters.get(task, default).preferred for task in writer.measures}


def _range(low: float, high: float) -> dict[str, None]:
    """Return the ends of 0 to 1 that scores exceed, as None."""
    return {**({"low": None} if low < 0 else {}), **({"high": None} if high > 1 else {})}


def _with_main(info: TaskInfo, measures: Sequence[Measure], preferred: Iterable[str]) -> TaskInfo:
    """Set the main metric: that of the harness, else the first preferred, else the first one."""
    if info.main_metric is not None and any(metric == info.main_metric for metric, _ in measures):
        chosen = [m for m in measures if m[0] == info.main_metric]
        main = [m for m in chosen if m[1] == info.main_scorer]
        metric, scorer = (main or chosen)[0]
    else:
        metric, scorer = next(
            filter(None, (_find(name, measures) for name in preferred)), measures[0]
        )
    return info.model_copy(update={"main_metric": metric, "main_scorer": scorer})


def _find(name: str, measures: Sequence[Measure]) -> Measure | None:
    metric, _, scorer = name.partition("/")
    fitting = [m for m in measures if m[0] == metric and scorer in ("", m[1])]
    return fitting[0] if fitting else None
