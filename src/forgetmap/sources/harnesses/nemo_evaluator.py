"""NeMo Evaluator: results.jsonl with one answer per line, and a bundle eval-*.json beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.datasets import letter_index
from forgetmap.sources.decode import rows, small_document
from forgetmap.sources.fields import Fields, replace_surrogates
from forgetmap.sources.files import LogFile, nearest_file

KEYS = ("problem_idx", "reward", "model_response")
BUNDLE = ("run_id", "config", "benchmark")
REWARD = "reward"
DECODING = ("temperature", "top_p", "max_tokens", "seed", "repeats")
QUESTIONS, CATEGORIES = ("question", "Question"), ("category", "subject")
OPTIONS = ("choices", "options")
"""Names that benchmarks use for these in their metadata."""


_OPTION = re.compile(r"^\s*\(?([A-Z])[).:]\s+(\S.*?)\s*$", re.MULTILINE)


class NemoEvaluator:
    """Bundles of NeMo Evaluator."""

    name = "nemo-evaluator"
    preferred: Sequence[str] = (REWARD,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file of results, with the bundle of its folder."""
        bundles = [file for file in files if file.peek.has(*BUNDLE)]
        results = [file for file in files if file.peek.has(*KEYS)]
        return [_log(file, nearest_file(file, bundles, results)) for file in results]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per answer; of answers that a resumed run repeats, the last counts."""
        file, task = log.files[0], log.tasks[0]
        last = {_key(values): line for line, values in rows(file, Problems())}
        for line, values in rows(file, problems):
            if last.get(_key(values)) != line:
                continue
            row = Fields(values, file, line, problems)
            item = row.name("problem_idx")
            if item is None:
                row.report_problem("the row has no problem_idx")
                continue
            yield _sample(row, task, item, texts=texts)
        mean = log.notes["mean"]
        if mean is not None:
            total = StatedTotal(task, "mean_reward", mean, "mean", REWARD, "default")
            problems.totals.append(total)


def _key(values: Mapping[str, Any]) -> str:
    return repr((values.get("problem_idx"), values.get("repeat"), values.get("prompt")))


def _log(file: LogFile, bundle: LogFile | None) -> Log:
    about = Fields(small_document(bundle), bundle or file, None, Problems())
    config, benchmark = about.part("config"), about.part("benchmark")
    task = benchmark.text("name") or replace_surrogates(PurePosixPath(file.inside).parent.name)
    task = task or "nemo-evaluator"
    settings = {name: config.values.get(name) for name in DECODING}
    seed, stamp = config.count("seed"), about.text("timestamp")
    info = RunInfo(
        run_id=about.text("run_id"),
        model=ModelInfo(name=config.text("model")),
        harness=HarnessInfo(name="nemo-evaluator", version=about.text("sdk_version")),
        decoding={k: v for k, v in settings.items() if isinstance(v, int | float)},
        seeds=[] if seed is None else [seed],
        created=stamp,
        tasks={task: TaskInfo(main_metric=REWARD)},
    )
    files = (file, bundle) if bundle else (file,)
    mean = benchmark.part("scores").part("mean_reward").number("value")
    return Log(
        "nemo-evaluator",
        files,
        info,
        (task,),
        stamp,
        format="NeMo Evaluator results",
        notes={"mean": mean},
    )


def _sample(row: Fields, task: str, item: str, *, texts: bool) -> Sample:
    metadata, details = row.part("metadata"), row.part("scoring_details")
    prompt, gold, answer = (
        row.json_text(name) for name in ("prompt", "expected_answer", "extracted_answer")
    )
    error, options = _error(details), _options(metadata) or _shown_options(prompt, gold)
    choice = _named_option(answer, options)
    return Sample(
        task=task,
        item=item,
        scores=[
            _with_outcome(score, answer, choice, options)
            for score in _scores(row, failed=error is not None)
        ],
        repeat=row.count("repeat") or 0,
        question=_one(metadata, QUESTIONS) or prompt or None,
        options=options,
        gold=gold or None,
        gold_index=letter_index(gold, options),
        choice=choice,
        answer=answer,
        category=_one(metadata, CATEGORIES),
        prompt=prompt if texts else None,
        response=row.text("model_response") if texts and error is None else None,
        error=error,
        file=row.file.name,
        line=row.line,
    )


def _one(metadata: Fields, names: Sequence[str]) -> str | None:
    """Return the first of these fields of the metadata that is a text."""
    values = (metadata.values.get(name) for name in names)
    return next(
        (replace_surrogates(value) for value in values if isinstance(value, str) and value), None
    )


def _options(metadata: Fields) -> list[str] | None:
    """Return the options: a list, else the fields A, B, ...; without empty ones at the end."""
    lists = (metadata.values.get(name) for name in OPTIONS)
    lettered = takewhile(
        lambda value: value is not None, (metadata.values.get(name) for name in ascii_uppercase)
    )
    options = next((value for value in lists if isinstance(value, list)), None) or [*lettered]
    if not all(isinstance(option, str) for option in options):
        return None
    while options and not options[-1].strip():
        options = options[:-1]
    return [replace_surrogates(option) for option in options] or None


def _shown_options(prompt: str | None, gold: str | None) -> list[str] | None:
    """Return the options in the prompt, if the gold is a letter.

    Of several lists, as with examples before the question, the last one counts.
    """
    lines = _OPTION.findall(prompt or "") if gold and re.fullmatch("[A-Z]", gold.strip()) else []
    starts = [index for index, (letter, _) in enumerate(lines) if letter == "A"]
    last = lines[starts[-1] :] if starts else []
    options = [
        text
        for (letter, text), expected in zip(last, ascii_uppercase, strict=False)
        if letter == expected
    ]
    return options if len(options) == len(last) > 1 else None


def _named_option(answer: str | None, options: list[str] | None) -> str | None:
    """Return the option that an answer names by its letter or text; else None."""
    index = letter_index(answer, options)
    if options and index is not None:
        return options[index]
    return answer if options and answer in options else None


def _with_outcome(
    score: Score, answer: str | None, choice: str | None, options: list[str] | None
) -> Score:
    """Set the outcome of a multiple-choice item; for other items the reward is not enough."""
    if options is None or score.outcome is not None or score.value not in (0.0, 1.0):
        return score
    if score.value == 1.0:
        score.outcome = Outcome.CORRECT
    else:
        score.outcome = Outcome.INCORRECT if choice or answer else Outcome.NO_ANSWER
    return score


def _error(details: Fields) -> str | None:
    """Return the error of an answer that could not be scored, for which the log has score 0."""
    kind = details.json_text("error_category")
    return None if kind is None else details.json_text("error") or kind


def _scores(row: Fields, *, failed: bool) -> list[Score]:
    """Return the rewards unchanged: a reward above 0 does not mean that the answer is right."""
    further = row.part("scorer_rewards")
    values = {"default": row.number(REWARD)}
    values |= {
        replace_surrogates(name).removeprefix("scorer:"): further.number(name)
        for name in further.values
    }
    outcome = Outcome.ERROR if failed else None
    return [
        Score(REWARD, None if failed else value, scorer, outcome)
        for scorer, value in values.items()
    ]
