"""Berkeley Function-Calling Leaderboard: `result/MODEL` with all answers, `score/MODEL` beside it.

A score file begins with a row of totals and then lists only the failures, so both are read: an
answer that is not among the failures of its category is right. If only one of the two folders is
given, the other is looked up next to it.

Until January 2025 the `id` of a verdict only counts the answers from 1; the id of the answer is
then in its prompt, except for some categories.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from forgetmap.records import Contradiction, HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import number, rows
from forgetmap.sources.fields import Fields, as_count, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile
from forgetmap.text import counted

METRIC = "acc"
TOTALS = ("accuracy", "correct_count", "total_count")
FAILURE = ("id", "valid", "error")
FAILURE_ABOUT = frozenset({"test_category", "model_result_raw", "model_result", "prompt"})
IDS = frozenset({"id", "idx"})
"""Fields with the id of an answer; `idx` until July 2024."""
RESULT = "result"
RESULT_ABOUT = frozenset({"latency", "input_token_count", "inference_log"})
RESULTS, SCORES = "result", "score"
"""Folders of answers and of verdicts."""
PREPARATION = "prereq"
"""Part of the ids of conversations that only fill the memory for others and are not scored."""
_ID = re.compile(r"(?P<category>.+?)_(?P<number>\d+)(?:-.*)?")
_NAME = re.compile(
    r"(?:BFCL_v\d+_|gorilla_openfunctions_v\d+_test_)?(?P<category>.+)_(?:result|score)"
)
_UNREADABLE = re.compile(r"decoder_failed|wrong_output_format|empty_turn|inference_error")
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
        verdicts = _verdicts(scores, task, problems)
        verdicts.settle(Counter(item for _, item in _answers(results, task, Problems())))
        seen: Counter[str] = Counter()
        for row, item in _answers(results, task, problems):
            seen[item] += 1
            # Answers of one id have the same score or none, so their order does not matter.
            name = f"{item}~{seen[item]}" if item in verdicts.shared and seen[item] > 1 else item
            if verdicts.is_unclear(item):
                row.report_problem(f"several answers are {item!r}, and only some are wrong", "id")
            score = verdicts.score(item) if scores else Score(METRIC, None)
            yield _sample(row, task, name, score, texts=texts)
        if results:
            _report_unmatched(verdicts, task, problems)


@dataclass(slots=True)
class _Verdicts:
    """The rows of the score files of a category.

    Attributes:
        failures: verdicts on wrong answers, by the id of the answer.
        numbered: verdicts on wrong answers with nothing but a number from 1.
        counts: stated numbers of right and of all answers, per file.
        known: ids of the answers.
        shared: ids of several answers that are no copies of each other.
    """

    failures: dict[str, list[Fields]] = field(default_factory=lambda: defaultdict(list))
    numbered: list[tuple[int, Fields]] = field(default_factory=list)
    counts: list[tuple[float | None, float | None]] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)
    shared: frozenset[str] = frozenset()

    def settle(self, known: Counter[str]) -> None:
        """Compare with the ids of the answers, before any answer is scored."""
        self.known = known
        if [total for _, total in self.counts] == [known.total()]:
            self.shared = frozenset(item for item, count in known.items() if count > 1)
        self._name_numbered()

    def _name_numbered(self) -> None:
        """Find the ids of numbered verdicts, if ids, numbers and stated counts leave no doubt.

        The ids then count all answers from 0 without a gap, so that number 8 can only be `..._7`.
        """
        by_number = {_number(item): item for item in self.known}
        named = {by_number.get(count - 1): row for count, row in self.numbered}
        total, wrong = self.known.total(), len(self.numbered)
        if (
            not self.failures
            and self.counts == [(total - wrong, total)]
            and by_number.keys() == set(range(total))
            and len(named) == wrong
            and None not in named
        ):
            self.failures = {item: [row] for item, row in named.items() if item is not None}
            self.numbered = []

    def is_unclear(self, item: str) -> bool:
        """Whether some of the answers with this id are wrong, and nothing tells which.

        Two questions of `live_relevance` have the same id from December 2024 to June 2025.
        """
        return item in self.shared and 0 < len(self.failures.get(item, ())) < self.known[item]

    def score(self, item: str) -> Score:
        """Return the score of an answer; None if it cannot be told."""
        if self.numbered or self.is_unclear(item):
            return Score(METRIC, None)
        failure = next(iter(self.failures.get(item, ())), None)
        return Score(METRIC, float(failure is None), outcome=_outcome(failure))


def _answers(
    files: Sequence[LogFile], task: str, problems: Problems
) -> Iterator[tuple[Fields, str]]:
    """Yield the answers of a category with their ids."""
    for file in files:
        for line, values in rows(file, problems):
            row = Fields(values, file, line, problems)
            item = row.name("id", "idx")
            if item is None:
                row.report_problem("no id")
            elif PREPARATION not in item and (_category(values) or task) == task:
                # The first versions only write the number at the end of later ids.
                own = values.get("idx") if values.get("id") is None else values["id"]
                yield row, item if isinstance(own, str) else f"{task}_{item}"


def _report_unmatched(verdicts: _Verdicts, task: str, problems: Problems) -> None:
    """Report verdicts that belong to no answer."""
    unmatched = len(verdicts.numbered)
    for item, failures in verdicts.failures.items():
        if item not in verdicts.known:
            unmatched += 1
            failures[0].report_problem(f"a verdict on {item!r}, which is in no result file", "id")
    for count, failure in verdicts.numbered:
        message = f"a verdict on answer number {count}, but the results do not show which that is"
        failure.report_problem(message, "id")
    if unmatched:
        stated = len(verdicts.failures) + len(verdicts.numbered)
        message = f"{task}: {unmatched:,} of {counted(stated, 'verdict')} without an answer."
        problems.contradictions.append(
            Contradiction("verdict_unmatched", task, "id", stated, stated - unmatched, message)
        )


def _is_result(file: LogFile) -> bool:
    names = file.peek.names
    if RESULT not in names or IDS.isdisjoint(names):
        return False
    return _is_bare(file) or not RESULT_ABOUT.isdisjoint(names)


def _is_bare(file: LogFile) -> bool:
    """Whether rows only have an id and a result, as those of local models in 2024."""
    return file.peek.has(RESULT) and file.peek.names <= {RESULT, *IDS}


def _is_score(file: LogFile) -> bool:
    if file.peek.has(*TOTALS):
        return file.peek.shape in ("object", "objects")
    return file.peek.has(*FAILURE) and not FAILURE_ABOUT.isdisjoint(file.peek.names)


def _counterpart(file: LogFile) -> LogFile | None:
    """Return the local score file of a result file, or the other way round.

    In 2024 their names differ: `gorilla_openfunctions_v1_test_java_result.json` belongs to
    `java_score.json`.
    """
    swapped = {RESULTS: SCORES, SCORES: RESULTS}
    parts = list(file.path.parts)
    indexes = [index for index, part in enumerate(parts[:-1]) if part in swapped]
    if file.member is not None or not indexes:
        return None
    old = parts[indexes[-1]]
    parts[indexes[-1]] = swapped[old]
    folder = Path(*parts[:-1])
    path = folder / parts[-1].replace(f"_{old}.", f"_{swapped[old]}.")
    if not path.is_file():
        category = _named_category(parts[-1])
        others = folder.glob(f"*_{swapped[old]}.json")
        alike = [
            other for other in others if _named_category(other.name) == category and other.is_file()
        ]
        if category is None or len(alike) != 1:
            return None
        path = alike[0]
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
        if all(IDS.isdisjoint(file.peek.names) for file in group) or all(map(_is_bare, group)):
            continue  # totals alone, or results alone, may be those of another program
        own = [*group, *(nameless if len(by_category) == 1 else [])]
        yield _log(str(category), sorted(own, key=_is_score))


def _category_of(file: LogFile) -> str | None:
    by_rows = next(filter(None, map(_category, file.peek.objects)), None)
    return by_rows or _named_category(PurePosixPath(file.inside).name)


def _named_category(name: str) -> str | None:
    match = _NAME.match(name)
    return replace_surrogates(match["category"]) if match else None


def _category(row: Mapping[str, Any]) -> str | None:
    """Return the category from the id of a row, else from its field."""
    named, item = row.get("test_category"), row.get("id")
    match = _ID.fullmatch(item) if isinstance(item, str) else None
    if match:
        return replace_surrogates(match["category"])
    return replace_surrogates(named) if isinstance(named, str) and named else None


def _number(item: str) -> int | None:
    """Return the number of an answer in its category, from 0, from its id."""
    match = _ID.fullmatch(item)
    return int(match["number"]) if match and len(match["number"]) < 10 else None


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


def _verdicts(files: Sequence[LogFile], task: str, problems: Problems) -> _Verdicts:
    """Return the verdicts on wrong answers, and add the totals to `problems`."""
    verdicts = _Verdicts()
    for file in files:
        for line, values in rows(file, problems):
            row = Fields(values, file, line, problems)
            if "id" not in values and "correct_count" in values:
                count = number(values["correct_count"])
                verdicts.counts.append((count, number(values.get("total_count"))))
                if count is not None:
                    problems.totals.append(StatedTotal(task, "correct_count", count))
                continue
            item = row.name("id")
            if item is None:
                row.report_problem("the row contains neither totals nor a verdict with an id")
            elif values.get("valid") is not True:
                _add_failure(verdicts, row, item)
    return verdicts


def _add_failure(verdicts: _Verdicts, row: Fields, item: str) -> None:
    """Add a verdict by the id of its answer: its own, unless that is a number."""
    own, in_prompt = row.values["id"], as_mapping(row.values.get("prompt")).get("id")
    if isinstance(own, str):
        verdicts.failures[item].append(row)
    elif isinstance(in_prompt, str):
        verdicts.failures[replace_surrogates(in_prompt)].append(row)
    else:
        verdicts.numbered.append((own, row))


def _sample(row: Fields, task: str, item: str, score: Score, *, texts: bool) -> Sample:
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
