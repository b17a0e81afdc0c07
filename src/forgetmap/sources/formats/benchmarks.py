"""Benchmarks with scripts of their own: EvalPlus, MMLU-Pro, evalchemy, NeMo Evaluator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import Outcome
from forgetmap.sources.adapter import OWN_SCORER, Problems, Sample, Score
from forgetmap.sources.datasets import letter_index
from forgetmap.sources.decode import number, rows
from forgetmap.sources.fields import as_json_text, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import (
    Companion,
    Format,
    Head,
    LogReading,
    LogRow,
    as_json,
    digest,
    first_of,
    plain,
    scores_of,
)

if TYPE_CHECKING:
    from forgetmap.scoring import Grade

_PASSED = ("pass", "success")
"""The current word of EvalPlus, and that of its first releases."""
_EVALPLUS_NAME = r"^(?:.*/)?(?P<model>[^/]+?)_(?:[a-z0-9]+_)?temp_(?P<temperature>\d+(?:\.\d+)?)"


def _solutions(content: object) -> list[dict[str, Any]]:
    """Return the solutions of a problem; before 0.2 `base` and `plus` were lists of pairs."""
    if isinstance(content, list):
        return [as_mapping(solution) for solution in content]
    base, plus = (as_list(as_mapping(content).get(name)) for name in ("base", "plus"))
    statuses = [[first_of(as_list(pair)) for pair in pairs] for pairs in (base, plus)]
    statuses[1] += [None] * len(base)
    return [{"base_status": one, "plus_status": two} for one, two in zip(*statuses, strict=False)]


def _has_status(file: LogFile) -> bool:
    problems = list(as_mapping(file.peek.first.get("eval")).values())[:3]
    return any("base_status" in one for content in problems for one in _solutions(content)[:1])


def _evaluated(reading: LogReading) -> Iterator[LogRow]:
    """Yield the solutions of each problem, which are repeats."""
    top = reading.document
    for name, content in as_mapping(top["eval"]).items():
        solutions = _solutions(content)
        reading.seen[len(solutions)] += 1
        if not solutions:
            top.report_problem("there is no solution of this problem", f"eval.{name[:60]}")
        for repeat, solution in enumerate(solutions):
            yield reading.row(solution).adding(item=name, repeat=repeat)


def _statuses(row: LogRow) -> list[Score]:
    """Return the scores of base and plus tests; who fails the base tests fails both."""
    base, plus = row.text("base_status"), row.text("plus_status")
    if base is None:
        field = f"eval.{row['@item'][:60]}.base_status"
        row.report_problem("a solution has no status", field)
    scores = [Score("pass@1", None if base is None else float(base in _PASSED), "base")]
    if row["plus_status"] is not None:
        is_right = base in _PASSED and plus in _PASSED
        scores.append(Score("pass@1", float(is_right) if plus and base else None, "plus"))
    for score in scores:
        known = Outcome.CORRECT if score.value else Outcome.INCORRECT
        score.outcome = None if score.value is None else known
    return scores


def _state_passed(reading: LogReading) -> None:
    """Note `pass_at_k`, a mean over problems, if that is also one over solutions."""
    for scorer in ("base", "plus") if len(reading.seen) == 1 else ():
        stated = as_mapping(reading.document[f"pass_at_k.{scorer}"]).get("pass@1")
        reading.state(f"pass_at_k.{scorer}", stated, "pass@1", scorer=scorer)


EVALPLUS = Format(
    name="evalplus",
    title="EvalPlus results",
    fields=[("eval",)],
    accepts=_has_status,
    rows=_evaluated,
    preferred=["pass@1/plus", "pass@1/base"],
    model=lambda head: head.named(_EVALPLUS_NAME).get("model", "").replace("--", "/") or None,
    created="date",
    decoding=lambda head: {
        name: float(value) for name, value in head.named(_EVALPLUS_NAME).items() if name != "model"
    },
    tasks=lambda head: next(iter(head["eval"])).partition("/")[0].lower() or "evalplus",
    scores=_statuses,
    response="solution",
    totals=_state_passed,
)
"""`*_eval_results.json`: one object with the solutions of each problem and their status."""

_RESPONSES = ("model_outputs", "generated_text", "response")
"""Names of the response: in current scripts, in those of 2024, in the fork for local servers."""
_STOPPED = {
    "Killed by user": Outcome.ERROR,
    "Error": Outcome.ERROR,
    "MaxTokensExceeded": Outcome.TRUNCATED,
}
"""Texts that the script with retries writes in place of a response."""
_MMLU_PRO_NAMES = (
    r"model_outputs_(?P<model>.+?)(?:_(?P<shots>\d+)-?shots?)?(?:_[\d_]+)?(?:\.|$)",
    r"(?:^|/)(?P<model>[^/]+)/CoT/",
)


def _is_summary(file: LogFile) -> bool:
    """Whether a file has counts of right and wrong answers, as the API script writes them."""
    return {"corr", "wrong"} <= as_mapping(file.peek.first.get("total")).keys()


def _named_model(head: Head) -> str | None:
    """Return the model from the path; if several folders have a file of this name, the folder."""
    names = [PurePosixPath(file.inside).name for file in head.known]
    of_folder = head.path.parent.name if names.count(head.path.name) > 1 else ""
    return head.named(*_MMLU_PRO_NAMES).get("model") or replace_surrogates(of_folder) or None


def _predicted(row: LogRow) -> list[Score]:
    """Return the score; without an extracted answer it is 0, where the official script guesses."""
    predicted, answer = row.text("pred"), row.text("answer")
    if answer is None or (predicted is None and row["pred"] is not None):
        return [Score("acc", None)]
    if not predicted:
        outcome = _STOPPED.get(row.text(*_RESPONSES) or "", Outcome.NO_ANSWER)
        return [Score("acc", None if outcome is Outcome.ERROR else 0.0, outcome=outcome)]
    right = predicted == answer
    return [Score("acc", float(right), outcome=Outcome.CORRECT if right else Outcome.INCORRECT)]


def _set_letters(row: LogRow, sample: Sample) -> None:
    """Set the options that letters name; what the script wrote for an error is no response."""
    sample.gold_index = letter_index(sample.gold, sample.options)
    index = letter_index(sample.answer, sample.options)
    sample.choice = sample.options[index] if sample.options and index is not None else None
    if sample.scores[0].outcome is Outcome.ERROR:
        sample.error, sample.response = row.text(*_RESPONSES), None


def _state_right(reading: LogReading) -> None:
    """Note the right answers of each subject, in which the script includes its own guesses."""
    for file in reading.companions("summary"):
        for subject, counts in reading.whole(file).values.items():
            if subject != "total":
                right = as_mapping(counts).get("corr")
                reading.state("corr", right, kind="sum", category=subject, guesses=True)


MMLU_PRO = Format(
    name="mmlu-pro",
    title="MMLU-Pro outputs",
    fields=[("question_id", "question", "options", "answer", "pred")],
    beside={
        "summary": Companion(
            fields=[("total",)],
            accepts=_is_summary,
            belongs=lambda file, other: (
                other.inside.rpartition("/")[0] == file.inside.rpartition("/")[0]
            ),
        )
    },
    preferred=["acc"],
    model=_named_model,
    shots=lambda head: int(head.named(*_MMLU_PRO_NAMES).get("shots", 0)) or None,
    tasks="mmlu_pro",
    item=lambda row: row.name("question_id") if isinstance(row["question"], str) else None,
    repeat=0,
    scores=_predicted,
    question="question",
    options="options",
    gold="answer",
    answer=lambda row: row.text("pred") or None,
    category="category",
    prompt="prompt",
    response=_RESPONSES,
    finish=_set_letters,
    totals=_state_right,
)
"""Arrays of questions: all in one file (`model_outputs_MODEL_5shots.json`, often zipped), or one
per subject (`SUBJECT_result.json`, `MODEL/CoT/all/SUBJECT.json`)."""

_IDS = ("id", "unique_id", "problem_id", "question_id", "Record ID", "task_id")
_QUESTIONS = ("problem", "question", "Question", "prompt")
_GOLDS = ("expected_answer", "answer", "right_answer", "gold")
_CATEGORIES = ("subject", "category", "difficulty", "High-level domain")
_OWN_RULES = {"type": {"MCQ(multiple)", "Numeric"}, "answer_type": {"exactMatch"}}
"""Kinds of questions that are graded in part, within a tolerance, or by a judge."""
_INLINE_OPTION = re.compile(r"(?:^|, )([A-D])\) ")
_PRETRAINED = re.compile(r"(?:pretrained|model)=([^,]+)")


def _has_examples(file: LogFile) -> bool:
    results = as_mapping(file.peek.first.get("results")).values()
    return any("examples" in as_mapping(result) for result in results)


def _examples(reading: LogReading) -> Iterator[LogRow]:
    """Yield the repetitions of each example in `results.TASK.examples`."""
    for task, result in as_mapping(reading.document["results"]).items():
        for example in as_list(as_mapping(result).get("examples")):
            row = reading.row(as_mapping(example)).adding(task=task)
            question, gold = row.plain(*_QUESTIONS), row.plain(*_GOLDS)
            item = row.name(*_IDS) or (digest(question, gold) if question else None)
            if item is None and reading.log.notes["part"] == task:
                is_usual = isinstance(example, dict)
                what = "has no id and no question" if is_usual else "is not an object"
                row.report_problem(f"an example of {task} {what}", task)
            outputs = _list(row, "model_outputs", "model_output")
            answers = _list(row, "model_answers", "model_answer", "pred")
            labels = as_list(row["label"])
            for place in range(max(len(outputs), len(answers)) if item else 0):
                yield row.adding(
                    item=item,
                    repeat=place,
                    question=question,
                    gold=gold,
                    answer=as_json_text(answers[place]) or "" if place < len(answers) else None,
                    response=as_json_text(outputs[place]) if place < len(outputs) else None,
                    label=labels[place] if place < len(labels) else None,
                )


def _list(row: LogRow, *names: str) -> list[Any]:
    """Return the first of these fields that exists; a single value becomes a list."""
    value: Any = next((row.values[name] for name in names if name in row.values), [])
    return value if isinstance(value, list) else [value]


def _inline_options(row: LogRow) -> list[str] | None:
    """Return the options in `A) this, B) that`, else a list."""
    parts = _INLINE_OPTION.split(row.plain("multiple_choice_string") or "")
    return parts[2::2] if parts[1::2] == list("ABCD") else row.texts("options")


def _graded(row: LogRow) -> list[Score]:
    """Return the recorded score; the score of an answer without one is our own."""
    from forgetmap.scoring import grade_answer  # large

    label, answer = row["@label"], row["@answer"]
    if isinstance(label, bool):
        grade, scorer = grade_answer(answer or "", right=label), "evalchemy"
    else:
        grade, scorer = _grade(row, row["@gold"], answer), OWN_SCORER
        row.reading.problems.graded.add(replace_surrogates(row["@task"]))
    row.reading.own["error"] = grade.error
    return [Score("acc", grade.score, scorer, grade.outcome)]


def _grade(row: LogRow, gold: str | None, answer: str | None) -> Grade:
    """Grade an extracted answer: letters by letter, numbers by value, others by math-verify."""
    from forgetmap.scoring import UNSCORED, grade_answer, grade_failure, grade_response

    if (
        gold is None
        or answer is None
        or any(row.text(n) in kinds for n, kinds in _OWN_RULES.items())
    ):
        return UNSCORED
    gold, answer = gold.strip(), answer.strip()
    if not answer:
        return grade_failure(Outcome.NO_ANSWER)
    if re.fullmatch("[A-Z]", gold) or answer == gold:
        return grade_answer(answer, right=answer == gold)
    value, right = number(answer), number(gold)
    if value is not None and right is not None:
        return grade_answer(answer, right=value == right)

    try:
        return grade_response(f"\\boxed{{{answer}}}", gold=gold, kind="maths")
    except (UsageError, FieldError) as error:
        row.report_problem(str(error), "answer")
        return UNSCORED


def _set_choice(_: LogRow, sample: Sample) -> None:
    sample.choice = sample.answer if sample.options else None


def _state_solved(reading: LogReading) -> None:
    """Note the number of right answers as the benchmark counted them, by repetition."""
    results = as_mapping(reading.document["results"])
    result = as_mapping(results.get(reading.log.notes["part"]))
    for repeat, stats in enumerate(as_list(result.get("run_stats")) or [result]):
        which, count = None if stats is result else repeat, as_mapping(stats).get("num_solved")
        reading.state("num_solved", count, kind="sum", repeat=which)


def _time(head: Head) -> str | None:
    seconds = number(head["date"]) or -1
    return datetime.fromtimestamp(seconds, UTC).isoformat() if 0 <= seconds < 2**33 else None


def _evaluated_model(head: Head) -> str | None:
    match = _PRETRAINED.search(head.plain("config.model_args") or "")
    return head.text("model_name") or (match[1] if match else None)


EVALCHEMY = Format(
    name="evalchemy",
    title="evalchemy",
    fields=[("results",)],
    accepts=_has_examples,
    rows=_examples,
    apart=lambda row: [row["@task"]],
    apart_is="task",
    preferred=["acc"],
    about="document",
    model=_evaluated_model,
    version="git_hash",
    created=_time,
    scores=_graded,
    options=_inline_options,
    answer=lambda row: row["@answer"] or None,
    category=plain(*_CATEGORIES),
    error=lambda row: row.reading.own["error"],
    finish=_set_choice,
    totals=_state_solved,
)
"""Chat benchmarks of evalchemy, without a score for each example: answers are graded here again,
and differences show in the comparison with the benchmark's own counts. Tasks of lm-eval that
evalchemy runs are written in the format of lm-eval."""

_OPTION_LINE = re.compile(r"^\s*\(?([A-Z])[).:]\s+(\S.*?)\s*$", re.MULTILINE)
_DECODING = ("temperature", "top_p", "max_tokens", "seed", "repeats")


def _last_answers(reading: LogReading) -> Iterator[LogRow]:
    """Yield the rows; of answers that a resumed run repeats, the last counts."""

    def key(values: Mapping[str, Any]) -> str:
        return repr([values.get(name) for name in ("problem_idx", "repeat", "prompt")])

    last = {key(values): line for line, values in rows(reading.file, Problems())}
    return (row for row in reading.lines() if last.get(key(row.values)) == row.line)


def _listed_options(row: LogRow) -> list[str] | None:
    """Return the options of the metadata: a list, or the fields A, B, ...; else those shown."""
    metadata = row.part("metadata")
    lists = (metadata[name] for name in ("choices", "options"))
    lettered = takewhile(lambda value: value is not None, map(metadata.values.get, ascii_uppercase))
    options = next((value for value in lists if isinstance(value, list)), None) or [*lettered]
    if all(isinstance(option, str) for option in options):
        while options and not options[-1].strip():  # padding
            options = options[:-1]
        if options:
            return [replace_surrogates(option) for option in options]
    return _shown_options(row.json_text("prompt"), row.json_text("expected_answer"))


def _shown_options(prompt: str | None, gold: str | None) -> list[str] | None:
    """Return the options in the prompt, if the gold is a letter.

    Of several lists, as with examples before the question, the last one counts.
    """
    lines = _OPTION_LINE.findall(prompt or "") if re.fullmatch(r"\s*[A-Z]\s*", gold or "") else []
    starts = [index for index, (letter, _) in enumerate(lines) if letter == "A"]
    last = lines[starts[-1] :] if starts else []
    is_listed = [letter for letter, _ in last] == list(ascii_uppercase[: len(last)])
    return [text for _, text in last] if is_listed and len(last) > 1 else None


def _scoring_error(row: LogRow) -> str | None:
    """Return the error of an answer that could not be scored, for which the log has score 0."""
    details = row.part("scoring_details")
    kind = details.json_text("error_category")
    return None if kind is None else details.json_text("error") or kind


def _all_rewards(row: LogRow) -> list[Score]:
    """Return the rewards unchanged: a reward above 0 does not mean that the answer is right."""
    further = row.part("scorer_rewards")
    names = {replace_surrogates(name).removeprefix("scorer:"): name for name in further.values}
    others = [Score("reward", further.number(name), scorer) for scorer, name in names.items()]
    return [*scores_of({"reward": row.number("reward")}), *others]


def _set_options(_: LogRow, sample: Sample) -> None:
    """Set what a letter names, and outcomes of multiple choice: else a reward is not enough."""
    options, answer = sample.options, sample.answer
    sample.gold_index = letter_index(sample.gold, options)
    sample.response = sample.response if sample.error is None else None
    if options is None:
        return
    index = letter_index(answer, options)
    sample.choice = options[index] if index is not None else answer if answer in options else None
    for score in sample.scores:
        if score.value == 1.0:
            score.outcome = Outcome.CORRECT
        elif score.value == 0.0:
            has_answer = sample.choice or answer
            score.outcome = Outcome.INCORRECT if has_answer else Outcome.NO_ANSWER


def _benchmark(head: Head) -> str:
    named = head.plain("benchmark.name") or replace_surrogates(head.path.parent.name)
    return named or "nemo-evaluator"


def _settings(head: Head) -> dict[str, Any]:
    settings = as_mapping(head["config"])
    return {k: settings[k] for k in _DECODING if isinstance(settings.get(k), int | float)}


def _state_mean(reading: LogReading) -> None:
    mean = reading.head["benchmark.scores.mean_reward.value"]
    reading.state("mean_reward", mean, "reward", scorer="default")


NEMO_EVALUATOR = Format(
    name="nemo-evaluator",
    title="NeMo Evaluator results",
    fields=[("problem_idx", "reward", "model_response")],
    beside={"bundle": Companion(fields=[("run_id", "config", "benchmark")])},
    rows=_last_answers,
    preferred=["reward"],
    about="bundle",
    run_id="run_id",
    model="config.model",
    version="sdk_version",
    created="timestamp",
    decoding=_settings,
    seed="config.seed",
    tasks=_benchmark,
    main="reward",
    item="problem_idx",
    repeat=lambda row: row.count("repeat") or 0,
    scores=_all_rewards,
    question=as_json("metadata.question", "metadata.Question", "prompt"),
    options=_listed_options,
    gold=as_json("expected_answer"),
    answer=as_json("extracted_answer"),
    category=plain("metadata.category", "metadata.subject"),
    prompt="prompt",
    response="model_response",
    failure=_scoring_error,
    finish=_set_options,
    totals=_state_mean,
)
"""results.jsonl with one answer per line, and a bundle eval-*.json beside it."""
