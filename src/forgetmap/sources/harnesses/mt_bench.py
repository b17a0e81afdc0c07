"""MT-Bench (FastChat's llm_judge): judgments, one per line, of many models in one file.

single  a rating from 1 to 10 of one answer; -1 if the judge did not answer
pair    the winner of two games against another model, with the order of the answers swapped

Ratings are stored as shares of the scale: (rating - 1) / 9. In a pair, each model gets 1, 0, or 0.5
for a tie; two games with different winners are a tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import rows
from forgetmap.sources.fields import Fields, as_json_text, as_list, replace_surrogates
from forgetmap.sources.files import LogFile

TASK, RATING, WIN = "mt_bench", "rating", "win"
SINGLE = ("question_id", "model", "judge", "score", "turn")
PAIR = ("question_id", "model_1", "model_2", "g1_winner", "g2_winner")
LOWEST, HIGHEST = 1.0, 10.0
FAILED = -1.0
"""Score of a judgment without a rating."""
GAMES = ("g1_winner", "g2_winner")
JUDGED = ("user_prompt", "judgment", "g1_judgment", "g2_judgment")
_POINTS = {"model_1": (1.0, 0.0), "model_2": (0.0, 1.0), "tie": (0.5, 0.5)}


class MtBench:
    """Judgments of MT-Bench."""

    name = "mt-bench"
    preferred: Sequence[str] = (RATING, WIN)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per model; a file may contain several."""
        return [
            _log(file, model)
            for file in files
            if file.peek.has(*SINGLE) or file.peek.has(*PAIR)
            for model in _models(file)
        ]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per judgment of the model; the turns of a question are one cluster."""
        file, model = log.files[0], log.notes["model"]
        for line, values in rows(file, problems):
            if model not in _named(values):
                continue
            row = Fields(values, file, line, problems)
            question, turn = row.name("question_id"), row.count("turn")
            if question is None:
                row.report_problem("the row has no question_id")
                continue
            yield Sample(
                task=log.tasks[0] if "model_1" not in values else _pair_task(row, model),
                item=question if turn is None else f"{question}/{turn}",
                scores=[_rating(row) if "model_1" not in values else _win(row, model)],
                category=None if turn is None else f"turn {turn}",
                cluster=question,
                material=_material(values) if texts else None,
                file=file.name,
                line=line,
            )


def _named(values: Mapping[str, Any]) -> list[str]:
    """Return the models that a judgment is about."""
    names = (values.get(name) for name in ("model", "model_1", "model_2"))
    return [replace_surrogates(name) for name in names if isinstance(name, str) and name]


def _models(file: LogFile) -> list[str]:
    models = {name: None for _, values in rows(file, Problems()) for name in _named(values)}
    return list(models)


def _log(file: LogFile, model: str) -> Log:
    is_pair = file.peek.has(*PAIR)
    info = RunInfo(
        model=ModelInfo(name=model),
        harness=HarnessInfo(name="mt-bench"),
        tasks={} if is_pair else {TASK: TaskInfo(main_metric=RATING)},
    )
    tasks = () if is_pair else (TASK,)
    form = f"MT-Bench judgments, {'pairs' if is_pair else 'single answers'}"
    return Log("mt-bench", (file,), info, tasks, format=form, notes={"model": model})


def _material(values: Mapping[str, Any]) -> str | None:
    """Return the texts that the judge read and wrote, the only ones with the answer."""
    kept = {name: values[name] for name in JUDGED if isinstance(values.get(name), str)}
    return as_json_text(kept) if kept else None


def _judge(row: Fields) -> str:
    """Return the name of the judge, from the pair of judge and kind of prompt."""
    name = next(iter(as_list(row.values.get("judge"))), None)
    return replace_surrogates(name) if isinstance(name, str) and name else "default"


def _rating(row: Fields) -> Score:
    value = row.number("score")
    if value == FAILED:
        return Score(RATING, None, _judge(row), Outcome.ERROR)
    if value is None or not LOWEST <= value <= HIGHEST:
        if value is not None:
            row.report_problem(f"expected a rating from 1 to 10, not {value:g}", "score")
        return Score(RATING, None, _judge(row))
    return Score(RATING, (value - LOWEST) / (HIGHEST - LOWEST), _judge(row))


def _pair_task(row: Fields, model: str) -> str:
    """Return the task of games against another model."""
    opponents = [name for name in _named(row.values) if name != model]
    return f"{TASK}_against_{opponents[0]}" if opponents else TASK


def _win(row: Fields, model: str) -> Score:
    """Return the score of a pair; two games with different winners are a tie."""
    winners = {row.text(game) for game in GAMES}
    index = 0 if row.values.get("model_1") == model else 1
    if not winners <= _POINTS.keys():
        return Score(WIN, None, _judge(row), Outcome.ERROR if "error" in winners else None)
    winner = winners.pop() if len(winners) == 1 else "tie"
    return Score(WIN, _POINTS[winner or "tie"][index], _judge(row))
