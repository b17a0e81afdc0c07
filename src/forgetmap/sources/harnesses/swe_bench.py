"""SWE-bench: the report of a run (`MODEL.RUN.json`) or those of its instances (`report.json`).

A report lists instances as resolved, unresolved, with an empty patch, or ended in an error; all but
the first count as not resolved, as in the harness. Instances that were not submitted are listed
only as incomplete, and are omitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import document, number
from forgetmap.sources.fields import Fields, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile

TASK, METRIC = "swe_bench", "resolved"
REPORT = ("resolved_ids", "completed_ids", "total_instances")
INSTANCE = frozenset({"resolved", "patch_successfully_applied"})
OUTCOMES = {
    "resolved_ids": Outcome.CORRECT,
    "unresolved_ids": Outcome.INCORRECT,
    "error_ids": Outcome.INCORRECT,
    "empty_patch_ids": Outcome.NO_ANSWER,
}
"""Lists of a report, in the order in which they count."""
SUFFIX = ".json"


class SweBench:
    """Reports of SWE-bench."""

    name = "swe-bench"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per report of a run, else per model with reports of instances."""
        reports = [file for file in files if _is_report(file)]
        if reports:
            return [_log((file,), *_names(file)) for file in reports]
        folders: dict[PurePosixPath, list[LogFile]] = defaultdict(list)
        for file in files:
            if _is_instance(file):
                folders[PurePosixPath(file.name).parent.parent].append(file)
        return [
            _log(group, replace_surrogates(folder.name).replace("__", "/") or None, None)
            for folder, group in folders.items()
        ]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:  # noqa: ARG002
        """Yield one sample per submitted instance."""
        for file in log.files:
            content = Fields(as_mapping(document(file)), file, None, problems)
            if not _is_report(file):
                yield from _of_instances(content)
                continue
            yield from _of_report(content)
            count = number(content.values.get("resolved_instances"))
            if count is not None:
                problems.totals.append(StatedTotal(TASK, "resolved_instances", count))


def _is_report(file: LogFile) -> bool:
    return file.peek.shape == "object" and file.peek.has(*REPORT)


def _is_instance(file: LogFile) -> bool:
    first = next(iter(file.peek.first.values()), None) if file.peek.shape == "object" else None
    return as_mapping(first).keys() >= INSTANCE


def _names(file: LogFile) -> tuple[str | None, str | None]:
    """Return model and run from `MODEL.RUN.json`, with `__` for `/`."""
    name = PurePosixPath(file.inside).name.removesuffix(".gz").removesuffix(SUFFIX)
    model, dot, run = name.rpartition(".")
    return (replace_surrogates(model).replace("__", "/"), run) if dot else (None, None)


def _log(files: Sequence[LogFile], model: str | None, run: str | None) -> Log:
    info = RunInfo(
        run_id=run,
        model=ModelInfo(name=model),
        harness=HarnessInfo(name="swe-bench"),
        tasks={TASK: TaskInfo(main_metric=METRIC)},
    )
    return Log("swe-bench", tuple(files), info, (TASK,), format="SWE-bench report")


def _of_report(report: Fields) -> Iterator[Sample]:
    seen: set[str] = set()
    for name, outcome in OUTCOMES.items():
        for item in as_list(report.values.get(name)):
            if not isinstance(item, str):
                report.report_problem(f"expected an id, not {item!r:.60}", name)
            elif item not in seen:
                seen.add(item)
                yield _sample(report, replace_surrogates(item), outcome)


def _of_instances(content: Fields) -> Iterator[Sample]:
    for item, report in content.values.items():
        values: Mapping[str, Any] = as_mapping(report)
        if not isinstance(values.get("resolved"), bool):
            content.report_problem("expected true or false", f"{item[:60]}.resolved")
            continue
        wrong = Outcome.INCORRECT if values.get("patch_exists", True) else Outcome.NO_ANSWER
        right = values["resolved"] is True
        yield _sample(content, replace_surrogates(item), Outcome.CORRECT if right else wrong)


def _sample(report: Fields, item: str, outcome: Outcome) -> Sample:
    """Return the sample of an instance; its category is the repository."""
    repository = item.rpartition("-")[0].replace("__", "/")
    return Sample(
        task=TASK,
        item=item,
        scores=[Score(METRIC, float(outcome is Outcome.CORRECT), outcome=outcome)],
        category=repository or None,
        file=report.file.name,
    )
