"""CapTrack's model_responses: MODEL/BENCHMARK_SUBSET.{jsonl,json,csv,parquet}, without scores.

What a row itself decides is judged here: a letter among options, a number. Everything else needs
CapTrack's own scorers or a judge and stays unscored.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

from forgetmap.errors import FieldError, UnreadableError
from forgetmap.records.identity import parse_options
from forgetmap.records.manifest import HarnessInfo, ModelInfo, RunInfo
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.judge import judge
from forgetmap.scoring.judged import Judged
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import rows
from forgetmap.sources.fields import Fields, sound, written
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.dataset_row import place_of_letter
from forgetmap.sources.harnesses.parquet_file import parquet

METRIC, SCORER = "acc", "forgetmap"
REQUIRED = frozenset({"outputs", "gold"})
CARD = frozenset({"id", "family", "prompt", "formatted_prompt", "ctx", "choices", "schema"})
"""Further columns of CapTrack's data set."""
FOREIGN = frozenset({"score", "task", "metric", "metrics", "doc_id", "item"})
"""A table that has one of these is somebody's own."""
_TASK = re.compile(
    r"^(?P<benchmark>.+?)[_.]"
    r"(?P<subset>table_schema|schema|subset|rephrased|full|citation|turn[12]|4k|32k)$"
)
_LABEL = re.compile(r"(?:^|\s)([A-Z])[:.)]\s")
_NUMBER = re.compile(r"[-+]?\$?\d[\d,]*(?:\.\d+)?%?")
_SUFFIXES = re.compile(r"\.(?:jsonl|json|csv|parquet|pq|gz)$")
_ROWS = 1000


class CapTrack:
    """Responses collected for CapTrack."""

    name = "captrack"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Tables of outputs and right answers without scores."""
        return [_log(file) for file in files if _is_known(_columns(file))]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """One sample per output."""
        task = log.tasks[0]
        for file in log.files:
            for line, values in _rows(file, problems):
                yield from _samples(task, Fields(values, file, line, problems), texts=texts)


def _is_known(columns: frozenset[str]) -> bool:
    return columns >= REQUIRED and len(columns & CARD) > 1 and not columns & FOREIGN


def _columns(file: LogFile) -> frozenset[str]:
    if file.kind == "json":
        return file.peek.keys
    if file.kind == "parquet":
        try:
            with parquet(file) as opened:
                return frozenset(opened.schema_arrow.names)
        except UnreadableError:
            return frozenset()
    header = file.head.partition(b"\n")[0].decode("utf-8", "replace")
    return frozenset(name.strip().strip('"') for name in header.split(","))


def _log(file: LogFile) -> Log:
    path = PurePosixPath(file.inside)
    stem = path.name
    while (shorter := _SUFFIXES.sub("", stem)) != stem:
        stem = shorter
    stem = sound(stem)
    named = _TASK.match(stem)
    task = f"{named['benchmark']}.{named['subset']}" if named else stem
    info = RunInfo(
        model=ModelInfo(name=sound(path.parent.name) or None), harness=HarnessInfo(name="captrack")
    )
    return Log("captrack", (file,), info, (task,), format="CapTrack responses")


def _rows(file: LogFile, problems: Problems) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if file.kind == "json":
        yield from rows(file, problems)
    elif file.kind == "parquet":
        yield from _parquet_rows(file)
    else:
        yield from _csv_rows(file, problems)


def _parquet_rows(file: LogFile) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    with parquet(file) as opened:
        for batch in opened.iter_batches(_ROWS):
            for row in batch.to_pylist():
                number += 1
                yield number, row


def _csv_rows(file: LogFile, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    text = io.StringIO(file.read().decode("utf-8", "replace"), newline="")
    reader = csv.DictReader(text)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            problems.add(file.name, f"this row cannot be read: {error}", line=line)
            continue
        if row is None:
            return
        yield line, {name: value or None for name, value in row.items() if name}


def _samples(task: str, row: Fields, *, texts: bool) -> Iterator[Sample]:
    """Several outputs of one row are repeats."""
    question = _question(row.values.get("prompt"))
    item = row.name("id") or (question and blake2b(question.encode(), digest_size=8).hexdigest())
    if not item:
        row.complain("no id and no prompt")
        return
    options, gold = _options(row), _gold(row.values.get("gold"))
    outputs = row.values.get("outputs")
    for repeat, output in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        if output is not None and not isinstance(output, str):
            row.complain(f"a text was expected, not {output!r:.60}", "outputs")
        response = output if isinstance(output, str) else None
        judged = _judged(row, response, options)
        yield Sample(
            task=task,
            item=item,
            repeat=repeat,
            scores=[Score(METRIC, judged.score, SCORER, judged.outcome)],
            question=question,
            options=options,
            gold=gold,
            gold_index=place_of_letter(gold, options),
            choice=judged.choice,
            answer=judged.answer,
            error=judged.error,
            prompt=row.written("formatted_prompt") if texts else None,
            response=written(response) if texts else None,
            file=row.file.name,
            line=row.line,
        )


def _question(prompt: object) -> str | None:
    """Of a conversation the questions of all turns."""
    if isinstance(prompt, list):
        turns = [turn.get("user prompt") if isinstance(turn, dict) else turn for turn in prompt]
        return "\n".join(filter(None, map(written, turns))) or None
    return written(prompt) or None


def _gold(gold: object) -> str | None:
    """Of several right answers the first; of a marked solution what follows the mark."""
    if isinstance(gold, dict):
        return _gold(gold.get("answer", gold.get("text")))
    if isinstance(gold, list):
        return _gold(gold[0]) if gold else None
    text = written(gold)
    return text.rpartition("####")[2].strip() or None if text is not None else None


def _options(row: Fields) -> list[str] | None:
    choices = row.values.get("choices")
    if isinstance(choices, str) and not choices.lstrip().startswith(("[", "(")):
        return [part.strip() for part in _LABEL.split(choices)[2::2]] or None
    try:
        return parse_options(choices)
    except ValueError:
        row.complain(f"a list of options was expected, not {choices!r:.60}", "choices")
        return None


def _judged(row: Fields, response: str | None, options: list[str] | None) -> Judged:
    """The verdict where the row itself decides; else nobody can say yet."""
    gold = row.values.get("gold")
    unscored = Judged(None, Outcome.UNSCORED)
    if response is None or row.values.get("schema") or not isinstance(gold, str | int | float):
        return unscored
    text = _gold(gold) or ""
    place = place_of_letter(text, options)
    try:
        if options and place is not None:
            return judge(response, gold=options[place], kind="option", options=tuple(options))
        if not options and _NUMBER.fullmatch(text):
            return judge(response, gold=text, kind="number")
    except FieldError as error:
        row.complain(str(error), "gold")
    return unscored
