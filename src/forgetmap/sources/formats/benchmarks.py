"""Benchmarks with scripts of their own, and judgments of many models in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import Outcome
from forgetmap.sources.adapter import OWN_SCORER, Problems, Sample, Score
from forgetmap.sources.datasets import letter_index
from forgetmap.sources.decode import number, rows
from forgetmap.sources.fields import as_json_text, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import Companion, Format, Head, LogReading, LogRow, RowScore
from forgetmap.sources.formats.values import as_json, as_time, digest, is_beside, plain, verdict

_PASSED = ("pass", "success")
"""The current word of EvalPlus, and that of its first releases."""
_EVALPLUS_NAME = r"^(?:.*/)?(?P<model>[^/]+?)_(?:[a-z0-9]+_)?temp_(?P<temperature>\d+(?:\.\d+)?)"


def _solutions(content: object) -> list[dict[str, Any]]:
    """Return the solutions of a problem; before 0.2 `base` and `plus` were lists of pairs."""
    if isinstance(content, list):
        return [as_mapping(solution) for solution in content]
    base, plus = (as_list(as_mapping(content).get(name)) for name in ("base", "plus"))
    firsts = [[next(iter(as_list(pair)), None) for pair in pairs] for pairs in (base, plus)]
    firsts[1] += [None] * len(base)
    return [{"base_status": one, "plus_status": two} for one, two in zip(*firsts, strict=False)]


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
    scores = [verdict("pass@1", None if base is None else base in _PASSED, "base")]
    if row["plus_status"] is not None:
        is_right = base in _PASSED and plus in _PASSED
        scores.append(verdict("pass@1", is_right if plus and base else None, "plus"))
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
_MMLU_PRO_NAMES = (
    r"model_outputs_(?P<model>.+?)(?:_(?P<shots>\d+)-?shots?)?(?:_[\d_]+)?(?:\.|$)",
    r"(?:^|/)(?P<model>[^/]+)/CoT/",
)


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
    score = verdict("acc", bool(predicted) and predicted == answer)
    if not predicted:
        is_cut = row.text(*_RESPONSES) == "MaxTokensExceeded"
        score.outcome = Outcome.TRUNCATED if is_cut else Outcome.NO_ANSWER
    return [score]


def _refused(row: LogRow) -> str | None:
    """Return what the script with retries writes in place of a response for an error."""
    said = row.text(*_RESPONSES)
    return said if said in ("Killed by user", "Error") and not row.text("pred") else None


def _name_options(_: LogRow, sample: Sample) -> None:
    """Set what letters name, and outcomes of multiple choice; an error is no response."""
    options, answer = sample.options, sample.answer
    sample.gold_index, index = letter_index(sample.gold, options), letter_index(answer, options)
    if sample.error is not None:
        sample.response = None
    if options is not None:
        is_option = answer in options
        sample.choice = options[index] if index is not None else answer if is_option else None
        wrong = Outcome.INCORRECT if sample.choice or answer else Outcome.NO_ANSWER
        for score in sample.scores:
            if score.outcome is None and score.value in (0.0, 1.0):
                score.outcome = Outcome.CORRECT if score.value else wrong


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
            accepts=lambda file: (
                {"corr", "wrong"} <= as_mapping(file.peek.first.get("total")).keys()
            ),
            belongs=is_beside,
        )
    },
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
    failure=_refused,
    finish=_name_options,
    totals=_state_right,
)
"""Arrays of questions: all in one file (`model_outputs_MODEL_5shots.json`, often zipped), or one
per subject (`SUBJECT_result.json`, `MODEL/CoT/all/SUBJECT.json`)."""

_IDS = ("id", "unique_id", "problem_id", "question_id", "Record ID", "task_id")
_QUESTIONS = ("problem", "question", "Question", "prompt")
_GOLDS = ("expected_answer", "answer", "right_answer", "gold")
_OWN_RULES = {"type": {"MCQ(multiple)", "Numeric"}, "answer_type": {"exactMatch"}}
"""Kinds of questions that are graded in part, within a tolerance, or by a judge."""
_INLINE_OPTION = re.compile(r"(?:^|, )([A-D])\) ")
_PRETRAINED = re.compile(r"(?:pretrained|model)=([^,]+)")


def _examples(reading: LogReading) -> Iterator[LogRow]:
    """Yield the repetitions of each example in `results.TASK.examples`."""
    for task, result in as_mapping(reading.document["results"]).items():
        for example in as_list(as_mapping(result).get("examples")):
            row = reading.row(as_mapping(example)).adding(task=task)
            question, gold = row.plain(*_QUESTIONS), row.plain(*_GOLDS)
            item = row.name(*_IDS) or (digest(question, gold) if question else None)
            if item is None and reading.log.notes["part"] == task:
                row.report_problem(f"an example of {task} has no id and no question", task)
            outputs = _list(row, "model_outputs", "model_output")
            answers = _list(row, "model_answers", "model_answer", "pred")
            labels, options = as_list(row["label"]), _inline_options(row)
            for place in range(max(len(outputs), len(answers)) if item else 0):
                answer = as_json_text(answers[place]) or "" if place < len(answers) else None
                yield row.adding(
                    item=item,
                    repeat=place,
                    question=question,
                    options=options,
                    gold=gold,
                    extracted=answer,
                    choice=answer or None if options else None,
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
    """Return the recorded verdict, else our own: letters by letter, numbers by value."""
    from forgetmap.scoring import grade_response  # large

    own = Score("acc", None, OWN_SCORER)
    label, gold, answer = row["@label"], row["@gold"], row["@extracted"]
    if isinstance(label, bool):
        return [verdict("acc", label, "evalchemy")]
    row.reading.problems.graded.add(replace_surrogates(row["@task"]))
    has_own_rules = any(row.text(name) in kinds for name, kinds in _OWN_RULES.items())
    if gold is None or answer is None or has_own_rules:
        return [own]
    gold, answer = gold.strip(), answer.strip()
    values = [number(gold), number(answer)]
    if not answer:
        own.value, own.outcome = 0.0, Outcome.NO_ANSWER
    elif answer == gold or None not in values or re.fullmatch("[A-Z]", gold):
        own = verdict("acc", answer == gold or None not in values[:1] == values[1:], OWN_SCORER)
    else:
        try:
            grade = grade_response(f"\\boxed{{{answer}}}", gold=gold, kind="maths")
        except (UsageError, FieldError) as error:
            row.report_problem(str(error), "answer")
            return [own]
        own.value, own.outcome, row.reading.own["error"] = grade.score, grade.outcome, grade.error
    return [own]


def _state_solved(reading: LogReading) -> None:
    """Note the number of right answers as the benchmark counted them, by repetition."""
    results = as_mapping(reading.document["results"])
    result = as_mapping(results.get(reading.log.notes["part"]))
    for repeat, stats in enumerate(as_list(result.get("run_stats")) or [result]):
        which, count = None if stats is result else repeat, as_mapping(stats).get("num_solved")
        reading.state("num_solved", count, kind="sum", repeat=which)


def _evaluated_model(head: Head) -> str | None:
    match = _PRETRAINED.search(head.plain("config.model_args") or "")
    return head.text("model_name") or (match[1] if match else None)


EVALCHEMY = Format(
    name="evalchemy",
    title="evalchemy",
    fields=[("results",)],
    accepts=lambda file: any(
        "examples" in as_mapping(result)
        for result in as_mapping(file.peek.first.get("results")).values()
    ),
    rows=_examples,
    apart=["@task"],
    about="document",
    model=_evaluated_model,
    version="git_hash",
    created=lambda head: as_time(head["date"]),
    scores=_graded,
    answer=lambda row: row["@extracted"] or None,
    category=plain("subject", "category", "difficulty", "High-level domain"),
    error=lambda row: row.reading.own.pop("error", None),
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
    """Return the options of the metadata: a list, or the fields A, B, ...; else those shown.

    Those in the prompt are options if the gold is a letter; of several lists, as with examples
    before the question, the last one counts.
    """
    metadata = row.part("metadata")
    lists = (metadata[name] for name in ("choices", "options"))
    lettered = takewhile(lambda value: value is not None, map(metadata.values.get, ascii_uppercase))
    options = next((value for value in lists if isinstance(value, list)), None) or [*lettered]
    if options and all(isinstance(option, str) for option in options):
        while options and not options[-1].strip():  # padding
            options = options[:-1]
        if options:
            return [replace_surrogates(option) for option in options]
    if not re.fullmatch(r"\s*[A-Z]\s*", row.json_text("expected_answer") or ""):
        return None
    lines = _OPTION_LINE.findall(row.json_text("prompt") or "")
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
    return [Score("reward", row.number("reward")), *others]


NEMO_EVALUATOR = Format(
    name="nemo-evaluator",
    title="NeMo Evaluator results",
    fields=[("problem_idx", "reward", "model_response")],
    beside={"bundle": Companion(fields=[("run_id", "config", "benchmark")])},
    rows=_last_answers,
    about="bundle",
    run_id="run_id",
    model="config.model",
    version="sdk_version",
    created="timestamp",
    decoding=lambda head: {
        name: value
        for name in _DECODING
        if isinstance(value := head[f"config.{name}"], int | float)
    },
    seed="config.seed",
    tasks=lambda head: (
        head.plain("benchmark.name")
        or replace_surrogates(head.path.parent.name)
        or "nemo-evaluator"
    ),
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
    finish=_name_options,
    totals=lambda reading: reading.state(
        "mean_reward",
        reading.head["benchmark.scores.mean_reward.value"],
        "reward",
        scorer="default",
    ),
)
"""results.jsonl with one answer per line, and a bundle eval-*.json beside it."""


def _is_near(file: LogFile, other: LogFile) -> bool:
    """Whether a file is in the folder of a task, or in a folder in it."""
    folder, parent = PurePosixPath(file.name).parent.parent, PurePosixPath(other.name).parent
    return folder in (parent, parent.parent)


def _with_texts(reading: LogReading) -> Iterator[LogRow]:
    """Yield the judgments with the turns of their questions and answers."""
    questions = {row.plain("question_id"): row for row in reading.every("questions")}
    answers = {
        (row.plain("question_id"), row.plain("model_id")): row for row in reading.every("answers")
    }
    for row in reading.lines():
        item, nothing = row.plain("question_id"), row.within({})
        question = questions.get(item, nothing)
        answer = answers.get((item, row.plain("model")), nothing)
        asked, said = (
            "\n\n".join(turn for turn in as_list(turns) if isinstance(turn, str)) or None
            for turns in (question["turns"], answer["choices.0.turns"])
        )
        yield row.adding(question=asked, gold=question.plain("ground_truth"), response=said)


LIVEBENCH = Format(
    name="livebench",
    title="LiveBench judgments",
    fields=[("question_id", "task", "model", "score", "category")],
    accepts=lambda file: "judge" not in file.peek.names,
    beside={
        "questions": Companion(
            fields=[("question_id", "category", "turns", "task")], belongs=_is_near
        ),
        "answers": Companion(fields=[("question_id", "model_id", "choices")], belongs=_is_near),
    },
    rows=_with_texts,
    apart=["model"],
    tasks=plain("task"),
    task="task",
    item="question_id",
    scores="score",
    category="category",
    tags="subtask",
)
"""`ground_truth_judgment.jsonl`, with questions and answers of the same task if they exist."""

_PAIR = ("question_id", "model_1", "model_2", "g1_winner", "g2_winner")
_POINTS = {"model_1": (1.0, 0.0), "model_2": (0.0, 1.0), "tie": (0.5, 0.5)}
_JUDGED = ("user_prompt", "judgment", "g1_judgment", "g2_judgment")
_judge = plain("judge.0", "judge")
"""The name of the judge, from the pair of judge and kind of prompt."""
_rating = RowScore(
    metric="rating", value="score", scorer=_judge, low=1, high=10, labels={-1.0: Outcome.ERROR}
)


def _is_pair(head: Head) -> bool:
    return head.file.peek.has(*_PAIR)


def _rating_or_win(row: LogRow) -> list[Score]:
    """Return the rating, or the points of a pair; two games with different winners are a tie."""
    if "model_1" not in row.values:
        return _rating(row)
    scorer, winners = _judge(row) or "default", {row.text("g1_winner"), row.text("g2_winner")}
    if not winners <= _POINTS.keys():
        return [Score("win", None, scorer, Outcome.ERROR if "error" in winners else None)]
    points = _POINTS[(winners.pop() if len(winners) == 1 else None) or "tie"]
    is_second = row["model_1"] != row.reading.log.notes["part"]
    return [Score("win", points[is_second], scorer)]


def _turns(reading: LogReading) -> Iterator[LogRow]:
    """Yield the judgments, each with its task, item and turn."""
    for row in reading.lines():
        question, turn = row.name("question_id"), row.count("turn")
        others = [row.plain(name) for name in ("model_1", "model_2") if name in row.values]
        against = [name for name in others if name and name != reading.log.notes["part"]]
        texts = {name: row[name] for name in _JUDGED if isinstance(row[name], str)}
        yield row.adding(
            task=f"mt_bench_against_{against[0]}" if against else "mt_bench",
            item=question if question is None or turn is None else f"{question}/{turn}",
            category=None if turn is None else f"turn {turn}",
            material=as_json_text(texts) if texts else None,
        )


MT_BENCH = Format(
    name="mt-bench",
    title="MT-Bench judgments",
    fields=[("question_id", "model", "judge", "score", "turn"), _PAIR],
    rows=_turns,
    apart=["model", "model_1", "model_2"],
    form=lambda head: f", {'pairs' if _is_pair(head) else 'single answers'}",
    tasks=lambda head: None if _is_pair(head) else "mt_bench",
    main=lambda head: None if _is_pair(head) else "rating",
    repeat=0,
    scores=_rating_or_win,
    cluster="question_id",
)
"""FastChat's llm_judge: ratings from 1 to 10 (-1 if the judge failed), or winners of two games."""


def _numbered(reading: LogReading) -> Iterator[LogRow]:
    """Yield the rows; an instruction that comes again is a further item."""
    for row in reading.lines():
        instruction = row.text("instruction")
        item = digest(instruction) if instruction else None
        key = (item, row.plain("generator_2"), row.plain("annotator"))
        reading.seen[key] += 1
        times = reading.seen[key]
        yield row.adding(item=item if item is None or times == 1 else f"{item}-{times}")


ALPACA_EVAL = Format(
    name="alpaca-eval",
    title="AlpacaEval annotations",
    fields=[("instruction", "output_1", "output_2", "preference")],
    rows=_numbered,
    apart=["generator_2"],
    tasks="alpaca_eval",
    main="preference",
    repeat=0,
    # From 1 (the reference) to 2 (the model); the first releases wrote 0 for a tie.
    scores=RowScore(metric="preference", scorer="annotator", low=1, high=2, labels={0.0: 0.5}),
    question="instruction",
    category="dataset",
    response="output_2",
)
