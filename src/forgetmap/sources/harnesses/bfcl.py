"""Berkeley Function-Calling Leaderboard: `result/MODEL` with all answers, `score/MODEL` beside it.

A score file begins with a row of totals and then lists only the failures, so both are read: an
answer that is not among the failures of its category is right. If only one of the two folders is
given, the other is looked up next to it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import number, rows
from forgetmap.sources.fields import Fields, as_count, replace_surrogates
from forgetmap.sources.files import LogFile

METRIC = "acc"
TOTALS = ("accuracy", "correct_count", "total_count")
FAILURE = ("id", "valid", "error")
FAILURE_ABOUT = frozenset({"test_category", "model_result_raw", "model_result", "prompt"})
RESULT = ("id", "result")
RESULT_ABOUT = frozenset({"latency", "input_token_count", "inference_log"})
RESULTS, SCORES = "result", "score"
"""Folders of answers and of verdicts."""
PREPARATION = "prereq"
"""Part of the ids of conversations that only fill the memory for others and are not scored."""
_CATEGORY = re.compile(r"(?P<category>.+?)_\d+(?:-.*)?")
_NAME = re.compile(
    r"(?:BFCL_v\d+_|gorilla_openfunctions_v\d+_test_)?(?P<category>.+)_(?:result|score)"
)
_UNREADABLE = re.compile(r"decoder_failed|decoder_wrong_output_format|empty_turn|inference_error")
"""Kinds of error of answers without a readable call."""


class Bfcl:
    """Results and scores of the Berkeley Function-Calling Leaderboard."""

    name = "bfcl"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per model and category, with all its answers and failures."""
        known = {file.name: file for file in files if _is_result(file) or _is_score(file)}
        for file in list(known.values()):
            other = _counterpart(file)
            if other is not None and (_is_result(other) or _is_score(other)):
                known.setdefault(other.name, other)
        groups: dict[tuple[str, ...], list[LogFile]] = defaultdict(list)
        for file in known.values():
            groups[_folder_key(file)].append(file)
        return [log for group in groups.values() for log in _logs(group)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per answer; without a score file, answers are unscored."""
        task = log.tasks[0]
        results = [file for file in log.files if _is_result(file)]
        scores = [file for file in log.files if _is_score(file)]
        if not scores or not results:
            _report_missing_half(log, problems, lacks="score" if results else "result")
        failures = _failures(scores, task, problems)
        for file in results:
            for line, values in rows(file, problems):
                row = Fields(values, file, line, problems)
                item = row.name("id")
                if item is None:
                    row.report_problem("no id")
                elif PREPARATION not in item and (_category(values) or task) == task:
                    failure = failures.pop(item, None)
                    yield _sample(row, task, item, failure, is_scored=bool(scores), texts=texts)
        for item, failure in failures.items() if results else ():
            failure.report_problem(f"a verdict on {item!r}, which is in no result file", "id")


def _is_result(file: LogFile) -> bool:
    return file.peek.has(*RESULT) and not RESULT_ABOUT.isdisjoint(file.peek.names)


def _is_score(file: LogFile) -> bool:
    if file.peek.has(*TOTALS):
        return file.peek.shape in ("object", "objects")
    return file.peek.has(*FAILURE) and not FAILURE_ABOUT.isdisjoint(file.peek.names)


def _counterpart(file: LogFile) -> LogFile | None:
    """Return the local score file of a result file, or the other way round."""
    swapped = {RESULTS: SCORES, SCORES: RESULTS}
    parts = list(file.path.parts)
    indexes = [index for index, part in enumerate(parts[:-1]) if part in swapped]
    if file.member is not None or not indexes:
        return None
    old = parts[indexes[-1]]
    parts[indexes[-1]] = swapped[old]
    parts[-1] = parts[-1].replace(f"_{old}.", f"_{swapped[old]}.")
    path = Path(*parts)
    if not path.is_file():
        return None
    inside = PurePosixPath(file.inside)
    return LogFile(path, str(path), (inside.parent / path.name).as_posix())


def _folder_key(file: LogFile) -> tuple[str, ...]:
    """Return the folders above a file, without `result` or `score`."""
    folders = PurePosixPath(file.name).parent.parts
    indexes = [index for index, part in enumerate(folders) if part in (RESULTS, SCORES)]
    return tuple(part for index, part in enumerate(folders) if not indexes or index != indexes[-1])


def _logs(files: Sequence[LogFile]) -> Iterator[Log]:
    """Yield a log per category of a folder; totals without a category belong to the only one."""
    by_category: dict[str | None, list[LogFile]] = defaultdict(list)
    for file in files:
        by_category[_category_of(file)].append(file)
    nameless = by_category.pop(None, [])
    for category, group in by_category.items():
        if not any(file.peek.has("id") for file in group):
            continue  # totals alone may be those of another program
        own = [*group, *(nameless if len(by_category) == 1 else [])]
        yield _log(str(category), sorted(own, key=_is_score))


def _category_of(file: LogFile) -> str | None:
    by_rows = next(filter(None, map(_category, file.peek.objects)), None)
    match = _NAME.match(PurePosixPath(file.inside).name)
    return by_rows or (replace_surrogates(match["category"]) if match else None)


def _category(row: Mapping[str, Any]) -> str | None:
    """Return the category from the id of a row, else from its field."""
    named, item = row.get("test_category"), row.get("id")
    match = _CATEGORY.fullmatch(item) if isinstance(item, str) else None
    if match:
        return replace_surrogates(match["category"])
    return replace_surrogates(named) if isinstance(named, str) and named else None


def _log(category: str, files: Sequence[LogFile]) -> Log:
    info = RunInfo(
        model=ModelInfo(name=_model(files)),
        harness=HarnessInfo(name="bfcl"),
        tasks={category: TaskInfo(main_metric=METRIC)},
    )
    return Log("bfcl", tuple(files), info, (category,), format="BFCL results and scores")


def _model(files: Sequence[LogFile]) -> str | None:
    """Return the name of the folder below `result` or `score`, else the name in the verdicts."""
    for file in files:
        folders = PurePosixPath(file.name).parent.parts
        indexes = [index for index, part in enumerate(folders) if part in (RESULTS, SCORES)]
        if indexes and indexes[-1] + 1 < len(folders):
            return replace_surrogates(folders[indexes[-1] + 1])
    names = (row.get("model_name") for file in files for row in file.peek.objects)
    return next((replace_surrogates(name) for name in names if isinstance(name, str)), None)


def _report_missing_half(log: Log, problems: Problems, *, lacks: str) -> None:
    what = {
        "score": "there is no score file for these answers, so none of them is scored",
        "result": "a score file lists only the failures, so the answers are needed too",
    }[lacks]
    problems.add(
        log.files[0].name,
        f"{what}: give the folder that contains both result/ and score/ (choose the model with "
        "--run)",
    )


def _failures(files: Sequence[LogFile], task: str, problems: Problems) -> dict[str, Fields]:
    """Return the rows of wrong answers by id, and add the totals to `problems`."""
    failures: dict[str, Fields] = {}
    for file in files:
        for line, values in rows(file, problems):
            row = Fields(values, file, line, problems)
            if "id" not in values and "correct_count" in values:
                count = number(values["correct_count"])
                if count is not None:
                    problems.totals.append(StatedTotal(task, "correct_count", count))
                continue
            item = row.name("id")
            if item is None:
                row.report_problem("the row contains neither totals nor a verdict with an id")
            elif values.get("valid") is not True:
                failures[item] = row
    return failures


def _sample(
    row: Fields, task: str, item: str, failure: Fields | None, *, is_scored: bool, texts: bool
) -> Sample:
    score = Score(METRIC, None)
    if is_scored:
        score = Score(METRIC, float(failure is None), outcome=_outcome(failure))
    return Sample(
        task=task,
        item=item,
        scores=[score],
        # In conversations, both are lists with a number per step.
        tokens_in=as_count(row.values.get("input_token_count")),
        tokens_out=as_count(row.values.get("output_token_count")),
        response=row.json_text("result") if texts else None,
        file=row.file.name,
        line=row.line,
    )


def _outcome(failure: Fields | None) -> Outcome:
    if failure is None:
        return Outcome.CORRECT
    kind = failure.json_text("error_type") or ""
    return Outcome.NO_ANSWER if _UNREADABLE.search(kind) else Outcome.INCORRECT
