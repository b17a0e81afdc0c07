"""Adapter for logs of lm-evaluation-harness 0.4 and 0.5: finds the files of each task.

Versions 0.4.0 to 0.4.2 write one JSON array; 0.4.3 to 0.4.6 write JSON lines without the name of
the filter; from 0.4.7 on, rows name their filter and metrics; 0.5 adds the scores of each repeat.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forgetmap.sources.adapter import Log, Problems, Sample
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval.filters import Filters
from forgetmap.sources.harnesses.lm_eval.results import (
    SamplesInfo,
    find_results,
    find_samples_info,
)
from forgetmap.sources.harnesses.lm_eval.rows import (
    ROW_FIELDS,
    UNSCORED,
    RowReader,
    generation_settings,
    is_scalar,
    metric_names,
    parsed_rows,
)

MIN_ROW_FIELDS = 3
_LINE_ID = re.compile(rb'^\{"doc_id": ?(\d{1,12})', re.MULTILINE)


class LmEval:
    """Logs of lm-evaluation-harness 0.4 and 0.5."""

    name = "lm-eval"
    preferred: Sequence[str] = ("acc", "exact_match/strict-match", "prompt_level_strict_acc")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per task, from files whose rows hold a document with its responses."""
        samples = [file for file in files if _is_samples(file)]
        if not samples:
            return []
        results = find_results(files)
        groups: dict[tuple[object, ...], list[LogFile]] = defaultdict(list)
        labels: dict[tuple[object, ...], SamplesInfo] = {}
        for file in samples:
            label = find_samples_info(file, results)
            key = (label.folder, label.stamp, label.task or _kind(file))
            groups[key].append(file)
            labels.setdefault(key, label)
        return [_log(labels[key], group) for key, group in groups.items()]

    def settings(self, log: Log) -> Mapping[str, Any]:
        """Return the document of results, which has the arguments of the command."""
        found = find_results([file for file in log.files if not _is_samples(file)])
        return found[0].content if found else {}

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield a sample per row; more if metrics choose differently or repeats are scored."""
        files = [file for file in log.files if _is_samples(file)]
        reader = RowReader(log.tasks[0], _nameless(log, files), problems, texts=texts)
        for file in files:
            yield from reader.samples(file)
        problems.totals += log.notes["totals"]


def _is_samples(file: LogFile) -> bool:
    """Return whether the first rows have the fields of lm-eval."""
    return file.peek.has("doc_id") and len(ROW_FIELDS & file.peek.keys) >= MIN_ROW_FIELDS


def _kind(file: LogFile) -> tuple[object, ...]:
    """Return the document's fields and the metrics, which identify a task if names do not."""
    doc = file.peek.first.get("doc")
    fields = tuple(sorted(doc)) if isinstance(doc, Mapping) else ()
    return fields, tuple(sorted(metric_names(file.peek.first)))


def _log(label: SamplesInfo, files: list[LogFile]) -> Log:
    first = files[0]
    task = label.task or first.inside.rpartition("/")[2].partition(".")[0] or "lm-eval"
    companions = () if label.results is None else (label.results.file,)
    return Log(
        LmEval.name,
        (*files, *companions),
        label.info(
            task, main=_main_measure(first), generation=generation_settings(first.peek.first)
        ),
        (task,),
        label.stamp,
        format=_format(first),
        notes={"filters": label.filters, "totals": label.totals},
    )


def _format(file: LogFile) -> str:
    if file.peek.shape == "array":
        return "lm-eval 0.4.0 to 0.4.2"
    if "scores_per_repeat" in file.peek.keys:
        return "lm-eval 0.5"
    return "lm-eval 0.4.7 or later" if "filter" in file.peek.keys else "lm-eval 0.4.3 to 0.4.6"


def _main_measure(file: LogFile) -> tuple[str, str] | None:
    """Return the main metric (accuracy or exact match, else the first one) and the first filter.

    Returns None if the rows do not name a filter or are not in the order of the harness.
    """
    first = file.peek.first
    ids = [int(digits) for digits in _LINE_ID.findall(file.head)]
    names = [name for name in metric_names(first) if is_scalar(first[name]) and name != UNSCORED]
    scorer = first.get("filter")
    if not names or ids != sorted(ids) or not isinstance(scorer, str):
        return None
    right = [name for name in names if name.endswith("_acc") or name.startswith("pass@")]
    main = next((name for name in ("acc", "exact_match", *right) if name in names), names[0])
    return main, scorer


def _nameless(log: Log, files: Sequence[LogFile]) -> Filters | None:
    """Return the filters of rows that do not name theirs; None if the rows of all files do."""
    if all("filter" in file.peek.keys for file in files):
        return None
    return Filters(parsed_rows(files), log.notes.get("filters", ()))
