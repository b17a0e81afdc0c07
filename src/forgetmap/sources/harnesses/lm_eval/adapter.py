"""Adapter for logs of lm-evaluation-harness 0.4 and 0.5: finds the files of each task.

Versions 0.4.0 to 0.4.2 write one JSON array; 0.4.3 to 0.4.6 write JSON lines without the name of
the filter; from 0.4.7 on, rows name their filter and metrics; 0.5 adds the scores of each repeat.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, RunInfo
from forgetmap.sources.adapter import Log, Problems, Sample
from forgetmap.sources.fields import as_mapping
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval.filters import Filters
from forgetmap.sources.harnesses.lm_eval.results import (
    SamplesInfo,
    decoding,
    find_results,
    find_samples_info,
)
from forgetmap.sources.harnesses.lm_eval.rows import (
    ROW_FIELDS,
    RowReader,
    metric_names,
    parsed_rows,
    requests_of,
)

MIN_ROW_FIELDS = 3


class LmEval:
    """Logs of lm-evaluation-harness 0.4 and 0.5."""

    name = "lm-eval"
    preferred: Sequence[str] = (
        *("acc", "exact_match/strict-match", "exact_match", "prompt_level_strict_acc"),
        *("bleu_acc", "rouge1_acc", "pass@1", "pass@10"),
    )

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per task, from files whose rows hold a document with its responses."""
        samples = [file for file in files if _is_samples(file)]
        results = find_results(files) if samples else []
        groups: dict[object, list[tuple[SamplesInfo, LogFile]]] = defaultdict(list)
        for file in samples:
            label, first = find_samples_info(file, results), file.peek.first
            # Fields of the document and metrics identify a task if names do not.
            kind = tuple(sorted(as_mapping(first.get("doc")))), tuple(sorted(metric_names(first)))
            groups[label.folder, label.stamp, label.task or kind].append((label, file))
        return [_log(group[0][0], [file for _, file in group]) for group in groups.values()]

    def settings(self, log: Log) -> Mapping[str, Any]:
        """Return the document of results, which has the arguments of the command."""
        found = find_results([file for file in log.files if not _is_samples(file)])
        return found[0].content if found else {}

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield a sample per row; more if metrics choose differently or repeats are scored."""
        files, filters = [file for file in log.files if _is_samples(file)], None
        if not all("filter" in file.peek.keys for file in files):
            filters = Filters(parsed_rows(files), log.notes.get("filters", ()))
        reader = RowReader(log.tasks[0], filters, problems, texts=texts)
        for file in files:
            yield from reader.samples(file)
        problems.totals += log.notes["totals"]


def _is_samples(file: LogFile) -> bool:
    """Return whether the first rows have the fields of lm-eval."""
    return file.peek.has("doc_id") and len(ROW_FIELDS & file.peek.keys) >= MIN_ROW_FIELDS


def _log(label: SamplesInfo, files: list[LogFile]) -> Log:
    first, results = files[0], label.results
    task = label.task or first.inside.rpartition("/")[2].partition(".")[0] or "lm-eval"
    requests = requests_of(first.peek.first.get("arguments"))
    generation = as_mapping(requests[0][1]) if requests else {}
    if results is None:
        model, harness = ModelInfo(name=label.model), HarnessInfo(name=LmEval.name)
        info = RunInfo(model=model, harness=harness, decoding=decoding(generation))
    else:
        info = results.info(task, label.model, generation)
        files = [*files, results.file]
    filters = results.filters(task) if results else ()
    notes = {"filters": filters, "totals": label.totals}
    version = _format(first)
    return Log(LmEval.name, tuple(files), info, (task,), label.stamp, format=version, notes=notes)


def _format(file: LogFile) -> str:
    if file.peek.shape == "array":
        return "lm-eval 0.4.0 to 0.4.2"
    if "scores_per_repeat" in file.peek.keys:
        return "lm-eval 0.5"
    return "lm-eval 0.4.7 or later" if "filter" in file.peek.keys else "lm-eval 0.4.3 to 0.4.6"
