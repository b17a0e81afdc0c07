"""MMLU-Pro's own script: one array of all questions with the model's output, often zipped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from forgetmap.records.manifest import HarnessInfo, ModelInfo, RunInfo
from forgetmap.records.outcome import Outcome
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import rows
from forgetmap.sources.files import LogFile

KEYS = ("question_id", "question", "options", "answer", "pred")
_NAME = re.compile(r"model_outputs_(?P<model>.+?)(?:_(?P<shots>\d+)shots?)?(?:\.|$)")


class MmluPro:
    """Output files of MMLU-Pro's own evaluation script."""

    name = "mmlu-pro"
    preferred: Sequence[str] = ("acc",)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Arrays whose elements are questions of MMLU-Pro with a prediction."""
        return [_log(file) for file in files if file.peek.has(*KEYS)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """One sample per question; the subjects are the categories."""
        for file in log.files:
            for line, row in rows(file, problems):
                if not {"question_id", "question"} <= row.keys():
                    problems.add(file.name, "no question_id or question", line=line)
                    continue
                yield _sample(row, file, line, texts=texts)


def _log(file: LogFile) -> Log:
    found = _NAME.search(file.inside)
    model = ModelInfo(name=found["model"]) if found else ModelInfo()
    harness = HarnessInfo(name="mmlu-pro")
    return Log("mmlu-pro", (file,), RunInfo(model=model, harness=harness), ("mmlu_pro",))


def _sample(row: dict[str, Any], file: LogFile, line: int, *, texts: bool) -> Sample:
    predicted, answer = row.get("pred"), row.get("answer")
    options = [str(option) for option in row.get("options") or []]
    return Sample(
        task="mmlu_pro",
        item=str(row["question_id"]),
        scores=[_score(predicted, answer)],
        question=str(row["question"]),
        options=options,
        gold=None if answer is None else str(answer),
        choice=predicted if isinstance(predicted, str) else None,
        answer=predicted if isinstance(predicted, str) else None,
        category=row.get("category"),
        response=str(row.get("model_outputs") or row.get("generated_text") or "")
        if texts
        else None,
        file=file.name,
        line=line,
    )


def _score(predicted: object, answer: object) -> Score:
    """The official script guesses at random where nothing was extracted; here that is wrong."""
    if answer is None:
        return Score("acc", None)
    if not predicted:
        return Score("acc", 0.0, outcome=Outcome.NO_ANSWER)
    right = predicted == answer
    return Score("acc", float(right), outcome=Outcome.CORRECT if right else Outcome.INCORRECT)
