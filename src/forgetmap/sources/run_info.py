"""The manifest of a run that was read from logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forgetmap.records import MetricInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log
from forgetmap.sources.gather import Measure, RunWriter
from forgetmap.sources.registry import adapter


def describe(logs: Sequence[Log], writer: RunWriter) -> RunInfo:
    """Return the manifest of these logs; fields in which they contradict each other are unknown.

    The main measure of each task and the range of each metric follow from what the writer saw.
    """
    infos = [log.info for log in logs]
    same = {
        name: getattr(infos[0], name)
        for name in RunInfo.model_fields
        if all(getattr(info, name) == getattr(infos[0], name) for info in infos)
    }
    known = {name: task for info in infos for name, task in info.tasks.items()}
    metrics = {name: metric for info in infos for name, metric in info.metrics.items()}
    adapters = {task: log.adapter for log in logs for task in log.tasks}
    tasks = {}
    for task, measures in writer.measures.items():
        preferred = adapter(adapters.get(task, logs[0].adapter)).preferred
        tasks[task] = _with_main(known.get(task, TaskInfo()), list(measures), preferred)
    for name, (low, high) in writer.ranges.items():
        # The ends of 0 to 1 that scores exceed are unknown.
        changed = ({"low": None} if low < 0 else {}) | ({"high": None} if high > 1 else {})
        if name in metrics or changed:
            metrics[name] = metrics.get(name, MetricInfo()).model_copy(update=changed)
    return RunInfo(
        **{
            **same,
            "model": next((info.model for info in infos if info.model.name), infos[0].model),
            "harness": infos[0].harness,
            "created": max((info.created or "" for info in infos), default="") or None,
            "tasks": tasks,
            "metrics": {name: metrics[name] for name in writer.ranges if name in metrics},
        }
    )


def _with_main(info: TaskInfo, measures: Sequence[Measure], preferred: Iterable[str]) -> TaskInfo:
    """Set the main metric: that of the harness, else the first preferred, else the first one."""
    fitting = [measure for measure in measures if measure[0] == info.main_metric]
    main = [measure for measure in fitting if measure[1] == info.main_scorer]
    for name in preferred:
        metric, _, scorer = name.partition("/")
        fitting = fitting or [m for m in measures if m[0] == metric and scorer in ("", m[1])]
    metric, scorer = (main or fitting or measures)[0]
    return info.model_copy(update={"main_metric": metric, "main_scorer": scorer})
