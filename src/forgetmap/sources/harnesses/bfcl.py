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
RESULT_ABOUT = frozenset({"latency", "input_token_count", "inference_log"})
OTHER_HALF = {"result": "score", "score": "result"}
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
        known = {file.name: file for file in files if _half_of(file)}
        for other in list(map(_counterpart, known.values())):
            if other is not None and _half_of(other):
                known.setdefault(other.name, other)
        runs: dict[tuple[str, ...], dict[str | None, list[LogFile]]] = defaultdict(dict)
        for file in known.values():
            folders = PurePosixPath(file.name).parent.parts
            at = _half_at(folders)
            run = folders if at is None else (*folders[:at], *folders[at + 1 :])
            by_rows = next(filter(None, map(_category, file.peek.objects)), None)
            runs[run].setdefault(by_rows or _named_category(file.inside), []).append(file)
        return [log for run in runs.values() for log in _logs(run)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per answer; without a score file, answers are unscored."""
        (task,) = log.tasks
        results = [file for file in log.files if _half_of(file) == "result"]
        scores = [file for file in log.files if _half_of(file) == "score"]
        if not scores or not results:
            what = "a score file lists only the failures, so the answers are needed too"
            if results:
                what = "there is no score file for these answers, so none of them is scored"
            hint = "give the folder that contains both result/ and score/ (choose the model with"
            problems.add(log.files[0].name, f"{what}: {hint} --run)")
        known = Counter(item for _, item in _answers(results, task, Problems()))
        failures, numbered, shared = _verdicts(scores, task, known, problems)
        seen: Counter[str] = Counter()
        for row, item in _answers(results, task, problems):
            seen[item] += 1
            # Two questions of `live_relevance` have the same id from December 2024 to June 2025.
            is_unclear = item in shared and 0 < len(failures.get(item, ())) < known[item]
            if is_unclear:
                row.report_problem(f"several answers are {item!r}, and only some are wrong", "id")
            is_known = scores and not numbered and not is_unclear
            yield Sample(
                task=task,
                # Answers of one id have the same score or none, so their order does not matter.
                item=f"{item}~{seen[item]}" if item in shared and seen[item] > 1 else item,
                scores=[_score(failures.get(item)) if is_known else Score(METRIC, None)],
                # In conversations, both are lists with a number per step.
                tokens_in=as_count(row.values.get("input_token_count")),
                tokens_out=as_count(row.values.get("output_token_count")),
                response=row.json_text("result") if texts else None,
                file=row.file.name,
                line=row.line,
            )
        lost = [(repr(item), own[0]) for item, own in failures.items() if item not in known]
        lost += [(f"answer number {count}", row) for count, row in numbered]
        if results and lost:
            for what, row in lost:
                row.report_problem(f"a verdict on {what}, which the results do not show", "id")
            stated = len(failures) + len(numbered)
            message = f"{task}: {len(lost):,} of {counted(stated, 'verdict')} without an answer."
            problems.contradictions.append(
                Contradiction("verdict_unmatched", task, "id", stated, stated - len(lost), message)
            )


def _verdicts(
    files: Sequence[LogFile], task: str, known: Counter[str], problems: Problems
) -> tuple[dict[str, list[Fields]], list[tuple[int, Fields]], set[str]]:
    """Return the verdicts on wrong answers by the id of the answer, and those with only a number.

    The third value are ids of several answers that are no copies of each other.
    """
    failures: dict[str, list[Fields]] = defaultdict(list)
    numbered: list[tuple[int, Fields]] = []
    counts: list[tuple[float | None, float | None]] = []
    for row in (Fields(v, file, n, problems) for file in files for n, v in rows(file, problems)):
        own, in_prompt = row.values.get("id"), as_mapping(row.values.get("prompt")).get("id")
        if "id" not in row.values and "correct_count" in row.values:
            right = number(row.values["correct_count"])
            counts.append((right, number(row.values.get("total_count"))))
            if right is not None:
                problems.totals.append(StatedTotal(task, "correct_count", right))
        elif row.name("id") is None:
            row.report_problem("the row contains neither totals nor a verdict with an id")
        elif row.values.get("valid") is not True:
            item = next((one for one in (own, in_prompt) if isinstance(one, str)), None)
            if item is None:
                numbered.append((row.values["id"], row))
            else:
                failures[item].append(row)
    total, places = known.total(), {count - 1: row for count, row in numbered}
    by_number = {int(m["number"][:9]): m[0] for m in map(_ID.fullmatch, known) if m}
    # If ids, numbers and stated counts leave no doubt, the ids count all answers from 0 without a
    # gap, and number 8 can only be `..._7`.
    is_exact = counts == [(total - len(numbered), total)] and len(places) == len(numbered)
    is_whole = by_number.keys() == set(range(total)) >= places.keys()
    if not failures and is_exact and is_whole:
        failures = {by_number[place]: [row] for place, row in places.items()}
        numbered = []
    are_all = [count for _, count in counts] == [total]
    return failures, numbered, {item for item, count in known.items() if are_all and count > 1}


def _score(failures: Sequence[Fields] | None) -> Score:
    if not failures:
        return Score(METRIC, 1.0, outcome=Outcome.CORRECT)
    is_readable = not _UNREADABLE.search(failures[0].json_text("error_type") or "")
    return Score(METRIC, 0.0, outcome=Outcome.INCORRECT if is_readable else Outcome.NO_ANSWER)


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


def _half_of(file: LogFile) -> str | None:
    """Return which half of a log a file is: `result` or `score`."""
    names = file.peek.names
    if file.peek.has(*TOTALS):
        return "score" if file.peek.shape in ("object", "objects") else None
    if file.peek.has(*FAILURE) and not FAILURE_ABOUT.isdisjoint(names):
        return "score"
    has_both = "result" in names and not IDS.isdisjoint(names)
    return "result" if has_both and (_is_bare(file) or not RESULT_ABOUT.isdisjoint(names)) else None


def _is_bare(file: LogFile) -> bool:
    """Whether rows only have an id and a result, as those of local models in 2024."""
    return file.peek.has("result") and file.peek.names <= {"result", *IDS}


def _half_at(folders: Sequence[str]) -> int | None:
    """Return the index of the last folder `result` or `score`."""
    return max((at for at, name in enumerate(folders) if name in OTHER_HALF), default=None)


def _counterpart(file: LogFile) -> LogFile | None:
    """Return the local score file of a result file, or the other way round.

    In 2024 their names differ: `gorilla_openfunctions_v1_test_java_result.json` belongs to
    `java_score.json`.
    """
    folders, name = list(file.path.parent.parts), file.path.name
    at, category = _half_at(folders), _named_category(name)
    if file.member is not None or at is None:
        return None
    old, new = folders[at], OTHER_HALF[folders[at]]
    folder = Path(*folders[:at], new, *folders[at + 1 :])
    paths = [folder / name.replace(f"_{old}.", f"_{new}.")]
    if not paths[0].is_file():
        others = folder.glob(f"*_{new}.json") if category else ()
        paths = [path for path in others if _named_category(path.name) == category]
    if len(paths) != 1 or not paths[0].is_file():
        return None
    inside = PurePosixPath(file.inside).parent / paths[0].name
    return LogFile(paths[0], str(paths[0]), inside.as_posix())


def _logs(run: Mapping[str | None, list[LogFile]]) -> Iterator[Log]:
    """Yield a log per category of a run; totals without a category belong to the only one."""
    nameless = run.get(None, []) if len(run.keys() - {None}) == 1 else []
    for category, group in run.items():
        # Totals alone, or results alone, may be those of another program.
        has_ids = any(not IDS.isdisjoint(file.peek.names) for file in group)
        if category is None or not has_ids or all(map(_is_bare, group)):
            continue
        files = sorted([*group, *nameless], key=lambda file: _half_of(file) or "")
        info = RunInfo(
            model=ModelInfo(name=_model(files)),
            harness=HarnessInfo(name="bfcl"),
            tasks={category: TaskInfo(main_metric=METRIC)},
        )
        yield Log("bfcl", tuple(files), info, (category,), format="BFCL results and scores")


def _model(files: Sequence[LogFile]) -> str | None:
    """Return the name of the folder below `result` or `score`, else the name in the verdicts."""
    places = [PurePosixPath(file.name).parent.parts for file in files]
    halves = [(place, at) for place in places if (at := _half_at(place)) is not None]
    below = [name for place, at in halves for name in place[at + 1 : at + 2]]
    names = [row.get("model_name") for file in files for row in file.peek.objects]
    named = next((name for name in [*below, *names] if isinstance(name, str)), None)
    return None if named is None else replace_surrogates(named)


def _named_category(path: str) -> str | None:
    match = _NAME.match(PurePosixPath(path).name)
    return replace_surrogates(match["category"]) if match else None


def _category(row: Mapping[str, Any]) -> str | None:
    """Return the category from the id of a row, else from its field."""
    item = row.get("id")
    match = _ID.fullmatch(item) if isinstance(item, str) else None
    category = match["category"] if match else row.get("test_category")
    return replace_surrogates(category) if category and isinstance(category, str) else None
