"""LiveBench: `ground_truth_judgment.jsonl` of each task, one judgment per line, of many models.

Questions (`question.jsonl`) and answers (`model_answer/MODEL.jsonl`) of the same folder are added
if they exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, RunInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import rows
from forgetmap.sources.fields import Fields, as_objects, as_text, replace_surrogates
from forgetmap.sources.files import LogFile

METRIC = "score"
JUDGMENT = ("question_id", "task", "model", "score", "category")
QUESTION = ("question_id", "category", "turns", "task")
ANSWER = ("question_id", "model_id", "choices")


class LiveBench:
    """Judgments of LiveBench."""

    name = "livebench"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per model and file of judgments."""
        judgments = [file for file in files if _is_judgment(file)]
        questions = [file for file in files if file.peek.has(*QUESTION)]
        answers = [file for file in files if file.peek.has(*ANSWER)] if judgments else []
        return [
            _log(file, model, questions, answers) for file in judgments for model in _models(file)
        ]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per judgment of the model."""
        file, model = log.files[0], log.notes["model"]
        texts_of = _Texts.of(log.files[1:], model)
        for line, values in rows(file, problems):
            if values.get("model") != model:
                continue
            row = Fields(values, file, line, problems)
            item, task = row.name("question_id"), row.text("task")
            if item is None or not task:
                row.report_problem("the row has no question_id or no task")
                continue
            yield Sample(
                task=task,
                item=item,
                scores=[Score(METRIC, row.number("score"))],
                repeat=None,
                question=texts_of.questions.get(item),
                gold=texts_of.golds.get(item),
                category=row.text("category"),
                tags=row.text("subtask"),
                response=texts_of.answers.get(item) if texts else None,
                file=file.name,
                line=line,
            )


def _is_judgment(file: LogFile) -> bool:
    return file.peek.has(*JUDGMENT) and "judge" not in file.peek.names


def _models(file: LogFile) -> list[str]:
    names = (values.get("model") for _, values in rows(file, Problems()))
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def _log(
    file: LogFile, model: str, questions: Sequence[LogFile], answers: Sequence[LogFile]
) -> Log:
    folder = PurePosixPath(file.name).parent.parent
    beside = [
        other
        for other in (*questions, *answers)
        if folder in (PurePosixPath(other.name).parent, PurePosixPath(other.name).parent.parent)
    ]
    task = file.peek.first.get("task")
    return Log(
        "livebench",
        (file, *beside),
        RunInfo(
            model=ModelInfo(name=replace_surrogates(model)),
            harness=HarnessInfo(name="livebench"),
        ),
        (replace_surrogates(task),) if isinstance(task, str) else (),
        format="LiveBench judgments",
        notes={"model": model},
    )


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts by question, from the files next to the judgments."""

    questions: Mapping[str, str]
    golds: Mapping[str, str]
    answers: Mapping[str, str]

    @classmethod
    def of(cls, files: Sequence[LogFile], model: str) -> _Texts:
        """Read the texts; damaged rows are skipped."""
        texts: dict[str, dict[str, str]] = defaultdict(dict)
        for file in files:
            for _, values in rows(file, Problems()):
                item = as_text(values.get("question_id"))
                if item is not None and values.get("model_id", model) == model:
                    for name, text in _texts_in(values).items():
                        texts[name][item] = text
        return cls(texts["question"], texts["gold"], texts["answer"])


def _texts_in(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts in a row: question and gold, or the answer."""
    turns = values.get("turns")
    choices = as_objects(values.get("choices"))
    texts = {
        "question": _joined(turns),
        "gold": as_text(values.get("ground_truth")),
        "answer": _joined(choices[0].get("turns")) if choices else None,
    }
    return {name: text for name, text in texts.items() if text}


def _joined(turns: object) -> str | None:
    parts = turns if isinstance(turns, list) else []
    return "\n\n".join(replace_surrogates(part) for part in parts if isinstance(part, str)) or None
