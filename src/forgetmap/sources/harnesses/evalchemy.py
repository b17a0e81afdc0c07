"""Chat benchmarks of evalchemy: results JSON with all examples, without a score for each.

`results.TASK.examples[]` has the outputs and the extracted answers, one per repetition. Answers are
graded here again, unless an example has a `label`: letters by letter, numbers by value, anything
else by math-verify. Differences show in the comparison with the benchmark's own counts.

Tasks of lm-eval that evalchemy runs are written in the format of lm-eval.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo
from forgetmap.scoring import UNSCORED, Grade, grade_answer, grade_failure
from forgetmap.sources.adapter import OWN_SCORER, Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import document, number
from forgetmap.sources.fields import Fields, as_json_text, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile

METRIC, LABEL_SCORER = "acc", "evalchemy"
IDS = ("id", "unique_id", "problem_id", "question_id", "Record ID", "task_id")
QUESTIONS = ("problem", "question", "Question", "prompt")
GOLDS = ("expected_answer", "answer", "right_answer", "gold")
OUTPUTS = ("model_outputs", "model_output")
ANSWERS = ("model_answers", "model_answer", "pred")
CATEGORIES = ("subject", "category", "difficulty", "High-level domain")
OWN_RULES = {"type": {"MCQ(multiple)", "Numeric"}, "answer_type": {"exactMatch"}}
"""Kinds of questions that are graded in part, within a tolerance, or by a judge."""
_OPTION = re.compile(r"(?:^|, )([A-D])\) ")
_PRETRAINED = re.compile(r"(?:pretrained|model)=([^,]+)")


class Evalchemy:
    """Results of evalchemy's chat benchmarks."""

    name = "evalchemy"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per benchmark with examples."""
        return [log for file in files if _has_examples(file.peek.first) for log in _logs(file)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per example and repetition."""
        file, task = log.files[0], log.tasks[0]
        results = document(file)["results"][log.notes["key"]]
        examples = results["examples"]
        for example in examples:
            if not isinstance(example, dict):
                problems.add(file.name, f"an example of {task} is not an object", field=task)
                continue
            for sample in _samples(task, Fields(example, file, None, problems), texts=texts):
                if sample.scores[0].scorer == OWN_SCORER:
                    problems.graded.add(task)
                yield sample
        problems.totals += _totals(results, task)


def _has_examples(top: Mapping[str, Any]) -> bool:
    return any("examples" in as_mapping(task) for task in as_mapping(top.get("results")).values())


def _logs(file: LogFile) -> Iterator[Log]:
    top = as_mapping(document(file))
    about = Fields(top, file, None, Problems())
    config = about.part("config")
    match = _PRETRAINED.search(config.text("model_args") or "")
    stamp = _time(about.values.get("date"))
    info = RunInfo(
        model=ModelInfo(name=about.text("model_name") or (match[1] if match else None)),
        harness=HarnessInfo(name="evalchemy", version=about.text("git_hash")),
        created=stamp,
    )
    for task, result in as_mapping(top.get("results")).items():
        if isinstance(as_mapping(result).get("examples"), list):
            names, notes = (replace_surrogates(task),), {"key": task}
            yield Log("evalchemy", (file,), info, names, stamp, format="evalchemy", notes=notes)


def _time(seconds: object) -> str | None:
    value = number(seconds)
    if value is None or not 0 <= value < 2**33:
        return None
    return datetime.fromtimestamp(value, UTC).isoformat()


def _samples(task: str, row: Fields, *, texts: bool) -> Iterator[Sample]:
    """Yield a sample for each repetition of an example."""
    question, gold = _present(row, QUESTIONS), _present(row, GOLDS)
    item = row.name(*IDS) or (
        blake2b(f"{question}\n{gold}".encode(), digest_size=8).hexdigest() if question else None
    )
    if item is None:
        row.report_problem(f"an example of {task} has no id and no question", task)
        return
    outputs, answers = _list(row, OUTPUTS), _list(row, ANSWERS)
    labels = as_list(row.values.get("label"))
    options = _options(row.values.get("multiple_choice_string")) or row.texts("options")
    for repeat in range(max(len(outputs), len(answers))):
        answer = as_json_text(answers[repeat]) or "" if repeat < len(answers) else None
        response = as_json_text(outputs[repeat]) if repeat < len(outputs) else None
        label = labels[repeat] if repeat < len(labels) else None
        grade = _grade(row, gold, answer, label)
        yield Sample(
            task=task,
            item=item,
            repeat=repeat,
            scores=[
                Score(
                    METRIC,
                    grade.score,
                    LABEL_SCORER if isinstance(label, bool) else OWN_SCORER,
                    grade.outcome,
                )
            ],
            question=question,
            options=options,
            gold=gold,
            choice=answer or None if options else None,
            answer=answer or None,
            category=_present(row, CATEGORIES),
            response=response if texts else None,
            error=grade.error,
            file=row.file.name,
        )


def _present(row: Fields, names: Sequence[str]) -> str | None:
    """Return the first of these fields that is a text or a number."""
    values = (row.values.get(name) for name in names)
    scalar = (value for value in values if isinstance(value, str | int | float))
    return next(filter(None, map(as_json_text, scalar)), None)


def _list(row: Fields, names: Sequence[str]) -> list[Any]:
    """Return the first of these fields that exists; a single value becomes a list."""
    value: Any = next((row.values[name] for name in names if name in row.values), [])
    return value if isinstance(value, list) else [value]


def _options(text: object) -> list[str] | None:
    """Split `A) this, B) that` into options."""
    parts = _OPTION.split(replace_surrogates(text)) if isinstance(text, str) else []
    return parts[2::2] if parts[1::2] == list("ABCD") else None


def _grade(row: Fields, gold: str | None, answer: str | None, label: object) -> Grade:
    """Return the recorded grade, else grade the extracted answer."""
    if isinstance(label, bool):
        return grade_answer(answer or "", right=label)
    if gold is None or answer is None or _has_own_rules(row):
        return UNSCORED
    if not answer.strip():
        return grade_failure(Outcome.NO_ANSWER)
    return _grade_by_value(row, gold.strip(), answer.strip())


def _has_own_rules(row: Fields) -> bool:
    return any(row.text(name) in kinds for name, kinds in OWN_RULES.items())


def _grade_by_value(row: Fields, gold: str, answer: str) -> Grade:
    if re.fullmatch("[A-Z]", gold) or answer == gold:
        return grade_answer(answer, right=answer == gold)
    value, right = number(answer), number(gold)
    if value is not None and right is not None:
        return grade_answer(answer, right=value == right)
    from forgetmap.scoring import grade_response  # large

    try:
        return grade_response(f"\\boxed{{{answer}}}", gold=gold, kind="maths")
    except (UsageError, FieldError) as error:
        row.report_problem(str(error), "answer")
        return UNSCORED


def _totals(results: Mapping[str, Any], task: str) -> Iterator[StatedTotal]:
    """Yield the number of right answers as the benchmark counted them, by repetition."""
    for repeat, stats in enumerate(as_list(results.get("run_stats"))):
        count = number(as_mapping(stats).get("num_solved"))
        if count is not None:
            yield StatedTotal(task, "num_solved", count, repeat=repeat)
    count = number(results.get("num_solved"))
    if count is not None and not as_list(results.get("run_stats")):
        yield StatedTotal(task, "num_solved", count)
