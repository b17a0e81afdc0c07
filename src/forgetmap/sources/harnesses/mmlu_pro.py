"""Scripts of MMLU-Pro and their forks: arrays of questions with the model's output.

All questions in one file (`model_outputs_MODEL_5shots.json`, often zipped) or one file per subject
(`SUBJECT_result.json` of the API script, `MODEL/CoT/all/SUBJECT.json` of the local one).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.datasets import letter_index
from forgetmap.sources.decode import number, rows, small_document
from forgetmap.sources.fields import Fields, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile

TASK = "mmlu_pro"
KEYS = ("question_id", "question", "options", "answer", "pred")
RESPONSES = ("model_outputs", "generated_text", "response")
"""Names of the response: in current scripts, in those of 2024, in the fork for local servers."""
STOPPED = {
    "Killed by user": Outcome.ERROR,
    "Error": Outcome.ERROR,
    "MaxTokensExceeded": Outcome.TRUNCATED,
}
"""Texts that the script with retries writes in place of a response."""
_NAMES = (
    re.compile(r"model_outputs_(?P<model>.+?)(?:_(?P<shots>\d+)-?shots?)?(?:_[\d_]+)?(?:\.|$)"),
    re.compile(r"(?:^|/)(?P<model>[^/]+)/CoT/"),
)


class MmluPro:
    """Output files of MMLU-Pro's own evaluation scripts."""

    name = "mmlu-pro"
    preferred: Sequence[str] = ("acc",)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per array of questions of MMLU-Pro with predictions."""
        known = [file for file in files if file.peek.has(*KEYS)]
        names = Counter(PurePosixPath(file.inside).name for file in known)
        summaries = [file for file in files if _is_summary(file)] if known else []
        return [_log(file, names, summaries) for file in known]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per question; the subjects are the categories."""
        for file in log.files[:1]:
            for line, values in rows(file, problems):
                row = Fields(values, file, line, problems)
                item = row.name("question_id")
                if item is None or not isinstance(values.get("question"), str):
                    row.report_problem("the row has no question_id or no question")
                    continue
                yield _sample(row, item, texts=texts)
        for file in log.files[1:]:
            problems.totals += _totals(small_document(file))


def _is_summary(file: LogFile) -> bool:
    """Whether a file has counts of right and wrong answers, as the API script writes them."""
    total = as_mapping(file.peek.first.get("total")) if file.peek.shape == "object" else {}
    return {"corr", "wrong"} <= total.keys()


def _totals(summary: Mapping[str, Any]) -> Iterator[StatedTotal]:
    """Yield the right answers of each subject, in which the script includes its own guesses."""
    for subject, counts in summary.items():
        right = number(as_mapping(counts).get("corr"))
        if right is not None and subject != "total":
            yield StatedTotal(TASK, "corr", right, category=subject, guesses=True)


def _log(file: LogFile, names: Counter[str], summaries: Sequence[LogFile]) -> Log:
    """Return the log of a file.

    The model is not in the file: it comes from the name, or from the folder if several folders have
    a file of this name.
    """
    path = PurePosixPath(file.inside)
    match = next(filter(None, (name.search(file.inside) for name in _NAMES)), None)
    folder = path.parent.name if names[path.name] > 1 else None
    shots = match.groupdict().get("shots") if match else None
    info = RunInfo(
        model=ModelInfo(name=replace_surrogates(match["model"] if match else folder or "") or None),
        harness=HarnessInfo(name="mmlu-pro"),
        tasks={TASK: TaskInfo(n_shot=int(shots) if shots else None)},
    )
    beside = [other for other in summaries if PurePosixPath(other.inside).parent == path.parent]
    return Log("mmlu-pro", (file, *beside), info, (TASK,), format="MMLU-Pro outputs")


def _sample(row: Fields, item: str, *, texts: bool) -> Sample:
    options, predicted, response = row.texts("options"), row.text("pred"), row.text(*RESPONSES)
    answer = row.text("answer")
    score = _score(row, predicted, answer, response)
    return Sample(
        task=TASK,
        item=item,
        scores=[score],
        question=row.text("question"),
        options=options,
        gold=answer,
        gold_index=letter_index(answer, options),
        choice=_chosen(predicted, options),
        answer=predicted or None,
        category=row.text("category"),
        prompt=row.json_text("prompt") if texts else None,
        response=response if texts and score.outcome is not Outcome.ERROR else None,
        error=response if score.outcome is Outcome.ERROR else None,
        file=row.file.name,
        line=row.line,
    )


def _score(row: Fields, predicted: str | None, answer: str | None, response: str | None) -> Score:
    """Return the score; without an extracted answer it is 0, where the official script guesses."""
    if answer is None or (predicted is None and row.values.get("pred") is not None):
        return Score("acc", None)
    if not predicted:
        outcome = STOPPED.get(response or "", Outcome.NO_ANSWER)
        return Score("acc", None if outcome is Outcome.ERROR else 0.0, outcome=outcome)
    right = predicted == answer
    return Score("acc", float(right), outcome=Outcome.CORRECT if right else Outcome.INCORRECT)


def _chosen(letter: str | None, options: list[str] | None) -> str | None:
    index = letter_index(letter, options)
    return None if options is None or index is None else options[index]
