"""Benchmarks with scripts of their own: of answers, judgments, conversations and repairs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import Outcome
from forgetmap.sources.adapter import OWN_SCORER, Log, Sample, Score
from forgetmap.sources.datasets import letter_index
from forgetmap.sources.decode import number
from forgetmap.sources.fields import as_json_text, as_list, as_mapping
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import Companion, Format, Head, LogReading, LogRow, RowScore
from forgetmap.sources.formats.values import (
    as_json,
    as_time,
    digest,
    is_beside,
    numbers,
    plain,
    texts_of_role,
    verdict,
)

_PASSED = ("pass", "success")
"""The current word of EvalPlus, and that of its first releases."""
_EVALPLUS = r"^(?:.*/)?(?P<model>[^/]+?)_(?:[a-z0-9]+_)?temp_(?P<temperature>\d+(?:\.\d+)?)"


def _solutions(content: object) -> list[dict[str, Any]]:
    """Return the solutions of a problem; before 0.2 `base` and `plus` were lists of pairs."""
    if isinstance(content, list):
        return [as_mapping(solution) for solution in content]
    pairs = zip_longest(*(as_list(as_mapping(content).get(name)) for name in ("base", "plus")))
    statuses = ((next(iter(as_list(pair)), None) for pair in both) for both in pairs)
    return [dict(zip(("base_status", "plus_status"), both, strict=True)) for both in statuses]


def _has_status(file: LogFile) -> bool:
    problems = list(as_mapping(file.peek.first.get("eval")).values())[:3]
    return any("base_status" in one for content in problems for one in _solutions(content)[:1])


def _evaluated(reading: LogReading) -> Iterator[LogRow]:
    for name, content in as_mapping(reading.document["eval"]).items():
        solutions = _solutions(content)
        reading.seen[len(solutions)] += 1
        if not solutions:
            reading.document.report_problem("there is no solution", f"eval.{name[:60]}")
        for repeat, solution in enumerate(solutions):
            yield reading.row(solution).adding(item=name, repeat=repeat)


def _statuses(row: LogRow) -> list[Score]:
    """Return the scores of base and plus tests; who fails the base tests fails both."""
    base, plus = row.text("base_status"), row.text("plus_status")
    scores = [verdict("pass@1", None if base is None else base in _PASSED, "base")]
    if row["plus_status"] is not None:
        is_right = base in _PASSED and plus in _PASSED
        scores.append(verdict("pass@1", is_right if plus and base else None, "plus"))
    return scores


def _state_passed(reading: LogReading) -> None:
    # The mean over problems is also one over solutions.
    for scorer in ("base", "plus") if len(reading.seen) == 1 else ():
        stated = reading.document[f"pass_at_k.{scorer}.pass@1"]
        reading.state(f"pass_at_k.{scorer}", stated, "pass@1", scorer=scorer)


EVALPLUS = Format(
    name="evalplus",
    title="EvalPlus results",
    fields=[("eval",)],
    accepts=_has_status,
    rows=_evaluated,
    preferred=["pass@1/plus", "pass@1/base"],
    model=lambda head: head.named(_EVALPLUS).get("model", "").replace("--", "/") or None,
    created="date",
    decoding=lambda head: {n: float(v) for n, v in head.named(_EVALPLUS).items() if n != "model"},
    tasks=lambda head: next(iter(head["eval"])).partition("/")[0].lower() or "evalplus",
    scores=_statuses,
    response="solution",
    totals=_state_passed,
)
"""`*_eval_results.json`: one object with the solutions of each problem and their status."""

_RESPONSES = ("model_outputs", "generated_text", "response")
"""Names of the response: in current scripts, in those of 2024, in the fork for local servers."""
_REFUSED = ("Killed by user", "Error")
_MMLU_PRO_NAMES = (
    r"model_outputs_(?P<model>.+?)(?:_(?P<shots>\d+)-?shots?)?(?:_[\d_]+)?(?:\.|$)",
    r"(?:^|/)(?P<model>[^/]+)/CoT/",
)


def _named_model(head: Head) -> str | None:
    """Return the model from the path; if several folders have a file of this name, the folder."""
    names = [PurePosixPath(file.inside).name for file in head.known]
    of_folder = head.path.parent.name if names.count(head.path.name) > 1 else ""
    return head.named(*_MMLU_PRO_NAMES).get("model") or of_folder or None


def _predicted(row: LogRow) -> list[Score]:
    """Return the score; without an extracted answer it is 0, where the official script guesses."""
    predicted, answer = row.text("pred"), row.text("answer")
    if answer is None or (predicted is None and row["pred"] is not None):
        return [Score("acc", None)]
    if predicted:
        return [verdict("acc", predicted == answer)]
    is_cut = row.text(*_RESPONSES) == "MaxTokensExceeded"
    return [Score("acc", 0.0, outcome=Outcome.TRUNCATED if is_cut else Outcome.NO_ANSWER)]


def _name_options(_: LogRow, sample: Sample) -> None:
    """Set what letters name, and outcomes of multiple choice; an error is no response."""
    options, answer = sample.options, sample.answer
    sample.gold_index, index = letter_index(sample.gold, options), letter_index(answer, options)
    if sample.error is not None:
        sample.response = None
    if options is not None:
        named = answer if answer in options else None
        sample.choice = named if index is None else options[index]
        wrong = Outcome.INCORRECT if sample.choice or answer else Outcome.NO_ANSWER
        for score in sample.scores:
            if score.outcome is None and score.value in (0.0, 1.0):
                score.outcome = Outcome.CORRECT if score.value else wrong


def _state_right(reading: LogReading) -> None:
    for file in reading.beside["summary"]:
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
            accepts=lambda file: "corr" in as_mapping(file.peek.first.get("total")),
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
    # What the script with retries writes in place of a response for an error.
    failure=lambda row: (
        said if (said := row.text(*_RESPONSES)) in _REFUSED and not row.text("pred") else None
    ),
    finish=_name_options,
    totals=_state_right,
)
"""Arrays of questions: all in one file (`model_outputs_MODEL_5shots.json`, often zipped), or one
per subject (`SUBJECT_result.json`, `MODEL/CoT/all/SUBJECT.json`)."""

_IDS = ("id", "unique_id", "problem_id", "question_id", "Record ID", "task_id")
_QUESTIONS = ("problem", "question", "Question", "prompt")
_GOLDS = ("expected_answer", "answer", "right_answer", "gold")
_OWN_RULES = {"MCQ(multiple)", "Numeric", "exactMatch"}
"""Kinds of questions that are graded in part, within a tolerance, or by a judge."""
_INLINE_OPTION = re.compile(r"(?:^|, )([A-D])\) ")


def _examples(reading: LogReading) -> Iterator[LogRow]:
    for task, result in as_mapping(reading.document["results"]).items():
        for example in as_list(as_mapping(result).get("examples")):
            row = reading.row(as_mapping(example)).adding(task=task)
            question, gold = row.plain(*_QUESTIONS), row.plain(*_GOLDS)
            item = row.name(*_IDS) or (digest(question, gold) if question else None)
            if item is None and reading.log.notes["part"] == task:
                row.report_problem(f"an example of {task} has no id and no question", task)
            outputs = _listed(row, "model_outputs", "model_output")
            answers = _listed(row, "model_answers", "model_answer", "pred")
            parts = _INLINE_OPTION.split(row.plain("multiple_choice_string") or "")
            options = parts[2::2] if parts[1::2] == list("ABCD") else row.texts("options")
            every = zip_longest(outputs, map(as_json_text, answers), as_list(row["label"]))
            for repeat, (output, answer, label) in enumerate(every) if item else ():
                yield row.adding(
                    item=item,
                    repeat=repeat,
                    question=question,
                    options=options,
                    gold=gold,
                    extracted=answer or ("" if repeat < len(answers) else None),
                    choice=answer or None if options else None,
                    response=as_json_text(output),
                    label=label,
                )


def _listed(row: LogRow, *names: str) -> list[Any]:
    value: Any = next((row.values[name] for name in names if name in row.values), [])
    return value if isinstance(value, list) else [value]


def _graded(row: LogRow) -> list[Score]:
    """Return the recorded verdict, else our own: letters by letter, numbers by value."""
    from forgetmap.scoring import grade_response  # large

    own = Score("acc", None, OWN_SCORER)
    label, gold, answer = row["@label"], row["@gold"], row["@extracted"]
    if isinstance(label, bool):
        return [verdict("acc", label, "evalchemy")]
    row.reading.problems.graded.add(row["@task"])
    has_own_rules = {row.plain("type"), row.plain("answer_type")} & _OWN_RULES
    if gold is None or answer is None or has_own_rules:
        return [own]
    gold, answer = gold.strip(), answer.strip()
    values = [number(gold), number(answer)]
    if not answer:
        return [Score("acc", 0.0, OWN_SCORER, Outcome.NO_ANSWER)]
    if answer == gold or None not in values or re.fullmatch("[A-Z]", gold):
        is_right = answer == gold or (values[0] is not None and values[0] == values[1])
        return [verdict("acc", is_right, OWN_SCORER)]
    try:
        grade = grade_response(f"\\boxed{{{answer}}}", gold=gold, kind="maths")
    except (UsageError, FieldError) as error:
        row.report_problem(str(error), "answer")
        return [own]
    row.reading.own["error"] = grade.error
    return [Score("acc", grade.score, OWN_SCORER, grade.outcome)]


def _state_solved(reading: LogReading) -> None:
    result = as_mapping(as_mapping(reading.document["results"]).get(reading.log.notes["part"]))
    for repeat, stats in enumerate(as_list(result.get("run_stats")) or [result]):
        which, count = None if stats is result else repeat, as_mapping(stats).get("num_solved")
        reading.state("num_solved", count, kind="sum", repeat=which)


EVALCHEMY = Format(
    name="evalchemy",
    title="evalchemy",
    fields=[("results",)],
    accepts=lambda file: any(
        "examples" in as_mapping(one) for one in as_mapping(file.peek.first.get("results")).values()
    ),
    rows=_examples,
    apart=["@task"],
    about="document",
    model=lambda head: (
        head.text("model_name")
        or next(iter(re.findall("pretrained=([^,]+)", head.plain("config.model_args") or "")), None)
    ),
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

_ANSWER_KEY = ("problem_idx", "repeat", "prompt")
_CAUSE = "scoring_details.error_category"
_MEAN = "benchmark.scores.mean_reward.value"


def _shown_options(row: LogRow) -> list[str] | None:
    """Return the options of the metadata without padding: a list, or the fields A, B, ..."""
    metadata = row.part("metadata")
    listed = next(filter(None, (as_list(metadata[name]) for name in ("choices", "options"))), None)
    options = listed or [v for letter in ascii_uppercase if (v := metadata[letter]) is not None]
    is_text = all(isinstance(option, str) for option in options)
    return [option for option in options if option.strip()] or None if is_text else None


def _all_rewards(row: LogRow) -> list[Score]:
    """Return the rewards unchanged: a reward above 0 does not mean that the answer is right."""
    further = row.part("scorer_rewards")
    named = {name.removeprefix("scorer:"): further.number(name) for name in further.values}
    others = [Score("reward", value, scorer) for scorer, value in named.items()]
    return [Score("reward", row.number("reward")), *others]


NEMO_EVALUATOR = Format(
    name="nemo-evaluator",
    title="NeMo Evaluator results",
    fields=[("problem_idx", "reward", "model_response")],
    beside={"bundle": Companion(fields=[("run_id", "config", "benchmark")])},
    # Of answers that a resumed run repeats, the last counts.
    rows=lambda reading: iter(
        {repr([row[name] for name in _ANSWER_KEY]): row for row in reading.lines()}.values()
    ),
    about="bundle",
    run_id="run_id",
    model="config.model",
    version="sdk_version",
    created="timestamp",
    decoding=lambda head: numbers(as_mapping(head["config"])),
    seeds="config.seed",
    tasks=lambda head: head.plain("benchmark.name") or head.path.parent.name or "nemo-evaluator",
    main="reward",
    item="problem_idx",
    repeat=lambda row: row.count("repeat") or 0,
    scores=_all_rewards,
    question=as_json("metadata.question", "metadata.Question", "prompt"),
    options=_shown_options,
    gold=as_json("expected_answer"),
    answer=as_json("extracted_answer"),
    category=plain("metadata.category", "metadata.subject"),
    prompt="prompt",
    response="model_response",
    # An answer that could not be scored has reward 0.
    failure=lambda row: (
        as_json("scoring_details.error", _CAUSE)(row) if row[_CAUSE] is not None else None
    ),
    finish=_name_options,
    totals=lambda r: r.state("mean_reward", r.head[_MEAN], "reward", scorer="default"),
)
"""results.jsonl with one answer per line, and a bundle eval-*.json beside it."""


def _is_near(file: LogFile, other: LogFile) -> bool:
    return PurePosixPath(file.name).parent.parent in PurePosixPath(other.name).parents[:2]


def _with_texts(reading: LogReading) -> Iterator[LogRow]:
    questions = {row.plain("question_id"): row for row in reading.every("questions")}
    answers = {
        (row.plain("question_id"), row.plain("model_id")): row for row in reading.every("answers")
    }
    for row in reading.lines():
        item, nothing = row.plain("question_id"), row.within({})
        question = questions.get(item, nothing)
        answer = answers.get((item, row.plain("model")), nothing)
        turns = (as_list(question["turns"]), as_list(answer["choices.0.turns"]))
        asked, said = ("\n\n".join(map(str, each)) or None for each in turns)
        yield row.adding(question=asked, gold=question.plain("ground_truth"), response=said)


LIVEBENCH = Format(
    name="livebench",
    title="LiveBench judgments",
    fields=[("question_id", "task", "model", "score", "category")],
    accepts=lambda file: "judge" not in file.peek.names,
    beside={
        "questions": Companion(fields=[("question_id", "turns", "task")], belongs=_is_near),
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
_judge = plain("judge.0", "judge")  # the other part is the kind of prompt
_rating = RowScore(metric="rating", value="score", scorer=_judge, low=1, high=10, labels={-1: None})


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
    for row in reading.lines():
        question, turn = row.name("question_id"), row.count("turn")
        against = {row.plain("model_1"), row.plain("model_2")} - {None, reading.log.notes["part"]}
        texts = {name: row[name] for name in _JUDGED if isinstance(row[name], str)}
        yield row.adding(
            task=f"mt_bench_against_{against.pop()}" if against else "mt_bench",
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
    form=lambda head: ", pairs" if head["model_1"] else ", single answers",
    tasks=lambda head: None if head["model_1"] else "mt_bench",
    main=lambda head: None if head["model_1"] else "rating",
    repeat=0,
    scores=_rating_or_win,
    cluster="question_id",
)
"""FastChat's llm_judge: ratings from 1 to 10 (-1 if the judge failed), or winners of two games."""

ALPACA_EVAL = Format(
    name="alpaca-eval",
    title="AlpacaEval annotations",
    fields=[("instruction", "output_1", "output_2", "preference")],
    apart=["generator_2"],
    tasks="alpaca_eval",
    main="preference",
    item=lambda row: digest(text) if (text := row.text("instruction")) else None,
    # From 1 (the reference) to 2 (the model); the first releases wrote 0 for a tie.
    scores=RowScore(metric="preference", scorer="annotator", low=1, high=2, labels={0: 1.5}),
    question="instruction",
    category="dataset",
    response="output_2",
)

REWARD = "reward"
OUTCOMES = {0.0: Outcome.INCORRECT, 1.0: Outcome.CORRECT}
_POLICY = re.compile(r"#\s*(?P<domain>\w+) agent policy", re.IGNORECASE)
_NAME = (
    r"(?:tool-calling|act|react|few-shot)-(?P<model>[^/]+?)-[\d.]+_range_[^/]*_(?P<time>\d{10})\b"
    r"[^/]*$"
)
"""File names of tau-bench, with month, day and time of day at the end."""


def _score(value: float | None) -> Score:
    outcome = None if value is None else OUTCOMES.get(value, Outcome.PARTIAL)
    return Score(REWARD, value, outcome=outcome)


def _domain(head: Head) -> str:
    starts = (head.within(row).plain("traj.0.content") for row in head.file.peek.objects)
    match = next(filter(None, (_POLICY.search((start or "")[:200]) for start in starts)), None)
    return f"tau_{match['domain'].lower() if match else 'bench'}"


TAU_BENCH = Format(
    name="tau-bench",
    title="tau-bench",
    form=" trials",
    fields=[("task_id", "reward", "info", "traj")],
    model=lambda head: head.named(_NAME).get("model"),
    stamp=lambda head: head.named(_NAME).get("time"),
    tasks=_domain,
    main=REWARD,
    item="task_id",
    repeat=lambda row: row.count("trial") or 0,
    scores=lambda row: [_score(row.number(REWARD))],
    question="info.task.instruction",
    prompt=lambda row: texts_of_role(as_list(row["traj"])[:1], "system"),
    response=lambda row: texts_of_role(row["traj"], "assistant"),
    failure="info.error",
)
"""One array; a row per task and trial with `reward`, `info` and `traj`."""


def _simulations(reading: LogReading) -> Iterator[LogRow]:
    scenarios: dict[str | None, str | None] = {}
    for task in reading.document.parts("tasks"):
        scenarios.setdefault(task.name("id"), task.json_text("user_scenario"))
    for row in chain(reading.inside("simulations"), reading.every("simulations")):
        yield row.adding(question=scenarios.get(row.name("task_id")))


def _rewards(row: LogRow) -> list[Score]:
    rewards = row.part("reward_info")
    parts = rewards.part("reward_breakdown")
    named = (Score(name.lower(), parts.number(name), "breakdown") for name in parts.values)
    return [_score(rewards.number(REWARD)), *named]


TAU2_BENCH = Format(
    name="tau2-bench",
    title="tau2-bench",
    form=" simulations",
    # Simulations may begin beyond the first bytes, or be in files of their own.
    fields=[("timestamp", "info", "tasks", "simulations"), ("info",)],
    accepts=lambda file: "agent_info" in as_mapping(file.peek.first.get("info")),
    beside={
        "simulations": Companion(
            fields=[("task_id", "trial", "reward_info", "termination_reason")],
            belongs=lambda file, other: _is_near(other, file),
        )
    },
    about="document",
    model=["info.agent_info.llm", "info.agent_info.implementation"],
    version="info.git_commit",
    decoding=lambda head: numbers(head.part("info.agent_info.llm_args").values),
    seeds="info.seed",
    seed="seed",
    created="timestamp",
    tasks=lambda head: f"tau2_{head.part('info.environment_info').text('domain_name') or 'bench'}",
    main=REWARD,
    rows=_simulations,
    item="task_id",
    repeat=lambda row: row.count("trial") or 0,
    scores=_rewards,
    finish_reason="termination_reason",
    response=lambda row: texts_of_role(row["messages"], "assistant"),
    failure=lambda row: (
        ended
        if "error" in (ended := row.plain("termination_reason") or "")
        and row["reward_info.reward"] is None
        else None
    ),
)
"""One object with `info`, `tasks` and `simulations`; or `results.json` with the settings and a
folder of files with one simulation each."""

REPORT = ("resolved_ids", "completed_ids", "total_instances")
_REPORT_NAME = r"(?P<model>[^/]+)\.(?P<run>[^/.]+)\.json"
LISTS = ("resolved_ids", "unresolved_ids", "error_ids", "empty_patch_ids")
"""Lists of a report, in the order in which they count: all but the first are not resolved, as in
the harness. Instances that were not submitted are listed only as incomplete, and are omitted."""


class _SweBench(Format):
    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per report of a run, else per model with reports of instances."""
        logs = [*super().sniff(files)]
        folders: dict[PurePosixPath, list[LogFile]] = defaultdict(list)
        for file in [] if logs else files:
            first = as_mapping(next(iter(file.peek.first.values()), None))
            if file.peek.shape == "object" and "patch_successfully_applied" in first:
                folders[PurePosixPath(file.name).parent.parent].append(file)
        for first_file, *rest in folders.values():
            logs += self._logs(Head(self, first_file, {"reports": rest}))
        return logs


def _instances(reading: LogReading) -> Iterator[LogRow]:
    for file in reading.log.files:
        content = reading.whole(file)
        reports = content.values
        if file.peek.has(*REPORT):
            listed = [(str(item), name) for name in LISTS[::-1] for item in as_list(content[name])]
            reports = {
                item: {"resolved": name == LISTS[0], "patch_exists": name != LISTS[-1]}
                for item, name in listed
            }
        for item, report in reports.items():
            category = item.rpartition("-")[0].replace("__", "/") or None
            yield reading.row(as_mapping(report), None, file).adding(item=item, category=category)


def _reported_model(head: Head) -> str:
    of_instances = "" if head.file.peek.has(*REPORT) else head.folders[-2]
    return head.named(_REPORT_NAME).get("model") or of_instances


def _resolved(row: LogRow) -> list[Score]:
    right = row.number("resolved")
    score = verdict("resolved", None if right is None else bool(right))
    if row["patch_exists"] is False and not right:
        score.outcome = Outcome.NO_ANSWER
    return [score]


SWE_BENCH = _SweBench(
    name="swe-bench",
    title="SWE-bench report",
    fields=[REPORT],
    accepts=lambda file: file.peek.shape == "object",
    model=lambda head: _reported_model(head).replace("__", "/") or None,
    run_id=lambda head: head.named(_REPORT_NAME).get("run"),
    tasks="swe_bench",
    main="resolved",
    rows=_instances,
    repeat=0,
    scores=_resolved,
    totals=lambda r: r.state("resolved_instances", r.document["resolved_instances"], kind="sum"),
)
"""The report of a run (`MODEL.RUN.json`), or those of its instances (`report.json`)."""
