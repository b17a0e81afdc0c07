"""Judgments of many models in one file: LiveBench, MT-Bench, AlpacaEval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Score
from forgetmap.sources.fields import as_json_text, as_list, replace_surrogates
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import (
    Companion,
    Format,
    Head,
    LogReading,
    LogRow,
    RowScore,
    digest,
    first_of,
)


def _names(*values: object) -> list[str]:
    """Return the names among these values."""
    return [replace_surrogates(name) for name in values if isinstance(name, str) and name]


def _is_near(file: LogFile, other: LogFile) -> bool:
    """Whether a file is in the folder of a task, or in a folder in it."""
    folder, parent = PurePosixPath(file.name).parent.parent, PurePosixPath(other.name).parent
    return folder in (parent, parent.parent)


def _with_texts(reading: LogReading) -> Iterator[LogRow]:
    """Yield the judgments with the turns of their questions and answers."""
    questions, answers = reading.by_item("questions"), reading.by_item("answers")
    for row in reading.lines():
        item, model = row.plain("question_id"), row.plain("model")
        question, answer = questions.get((item,)), answers.get((item, model))
        choices = answer.parts("choices") if answer else []
        turns = (question and question["turns"], choices[0]["turns"] if choices else None)
        asked, said = ("\n\n".join(_names(*as_list(one))) or None for one in turns)
        gold = question.plain("ground_truth") if question else None
        yield row.adding(question=asked, gold=gold, response=said)


LIVEBENCH = Format(
    name="livebench",
    title="LiveBench judgments",
    fields=[("question_id", "task", "model", "score", "category")],
    accepts=lambda file: "judge" not in file.peek.names,
    beside={
        "questions": Companion(
            fields=[("question_id", "category", "turns", "task")],
            belongs=_is_near,
            key=["question_id"],
        ),
        "answers": Companion(
            fields=[("question_id", "model_id", "choices")],
            belongs=_is_near,
            key=["question_id", "model_id"],
        ),
    },
    rows=_with_texts,
    apart=lambda row: _names(row["model"]),
    preferred=["score"],
    tasks=lambda head: _names(head["task"]),
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


def _is_pair(head: Head) -> bool:
    return head.file.peek.has(*_PAIR)


def _rated(row: LogRow) -> list[str]:
    return _names(row["model"], row["model_1"], row["model_2"])


def _judge(row: LogRow) -> str | None:
    """Return the name of the judge, from the pair of judge and kind of prompt."""
    return next(iter(_names(first_of(row["judge"]))), None)


_rating = RowScore(
    metric="rating", value="score", scorer=_judge, low=1, high=10, labels={-1.0: Outcome.ERROR}
)


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
        others = [name for name in _rated(row) if name != reading.log.notes["part"]]
        against = f"_against_{others[0]}" if "model_1" in row.values and others else ""
        texts = {name: row[name] for name in _JUDGED if isinstance(row[name], str)}
        yield row.adding(
            task=f"mt_bench{against}",
            item=question if question is None or turn is None else f"{question}/{turn}",
            category=None if turn is None else f"turn {turn}",
            material=as_json_text(texts) if texts else None,
        )


MT_BENCH = Format(
    name="mt-bench",
    title="MT-Bench judgments",
    fields=[("question_id", "model", "judge", "score", "turn"), _PAIR],
    rows=_turns,
    apart=_rated,
    preferred=["rating", "win"],
    form=lambda head: f", {'pairs' if _is_pair(head) else 'single answers'}",
    tasks=lambda head: () if _is_pair(head) else "mt_bench",
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
    apart=lambda row: _names(row["generator_2"]) or [None],
    preferred=["preference"],
    tasks="alpaca_eval",
    main="preference",
    repeat=0,
    # From 1 (the reference) to 2 (the model); the first releases wrote 0 for a tie.
    scores=RowScore(metric="preference", scorer="annotator", low=1, high=2, labels={0.0: 0.5}),
    question="instruction",
    category="dataset",
    response="output_2",
)
