"""CapTrack's model_responses: MODEL/BENCHMARK_SUBSET.{jsonl,json,csv,parquet}, without scores.

Answers that the row alone decides are graded here: letters of options, and numbers. All others stay
unscored, with everything that the scorers of a taxonomy need in `material`. The task is the exact
name of the file: `gsm8k.jsonl` is not read as `gsm8k.subset`.

Cells become the same plain values from JSON, CSV and Parquet. Parquet has numbers and truth values
where JSON has texts, and pads the objects of a column with nulls until all have the same keys; CSV
has only text, written as JSON or as a Python literal. A response is never parsed: it stays text.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from forgetmap.errors import FieldError, UnreadableError
from forgetmap.records import HarnessInfo, ModelInfo, RunInfo, parse_options
from forgetmap.scoring import UNSCORED, Grade
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.datasets import letter_index
from forgetmap.sources.decode import rows
from forgetmap.sources.fields import Fields, as_json_text, replace_surrogates
from forgetmap.sources.files import LogFile, open_parquet

METRIC = "acc"
PROVISIONAL_SCORER = "forgetmap"
"""Scorer of provisional scores, made while reading and replaced by those of real scorers."""
REQUIRED = frozenset({"outputs", "gold"})
CARD = frozenset({"id", "family", "prompt", "formatted_prompt", "ctx", "choices", "schema"})
"""Further columns of CapTrack's data set."""
FOREIGN = frozenset({"score", "task", "metric", "metrics", "doc_id", "item"})
"""Columns that CapTrack does not have: a table with one of them is another format."""
_TASK = re.compile(
    r"^(?P<benchmark>.+?)[_.]"
    r"(?P<subset>table_schema|schema|subset|rephrased|full|citation|turn[12]|4k|32k)$"
)
_LABEL = re.compile(r"(?:^|\s)([A-Z])[:.)]\s")
_NUMBER = re.compile(r"[-+]?\$?\d[\d,]*(?:\.\d+)?%?")
_SUFFIXES = re.compile(r"\.(?:jsonl|json|csv|parquet|pq|gz)$")
_ROWS_PER_BATCH = 1000
_ARRAY = re.compile(r"\barray\((?=[\[(])")
_DTYPE = re.compile(r",\s*dtype=[\w'<>|]+\s*\)")
_TRUTH = {"true": "true", "false": "false"}


class CapTrack:
    """Responses collected for CapTrack."""

    name = "captrack"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per table of outputs and right answers without scores."""
        return [_log(file) for file in files if _is_known(_columns(file))]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per output."""
        task = log.tasks[0]
        for file in log.files:
            for line, values in _rows(file, problems):
                yield from samples_of(task, Fields(values, file, line, problems), texts=texts)


def _is_known(columns: frozenset[str]) -> bool:
    return columns >= REQUIRED and len(columns & CARD) > 1 and not columns & FOREIGN


def _columns(file: LogFile) -> frozenset[str]:
    if file.kind == "json":
        return file.peek.keys
    if file.kind == "parquet":
        try:
            with open_parquet(file) as opened:
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
    stem = replace_surrogates(stem)
    match = _TASK.match(stem)
    task = f"{match['benchmark']}.{match['subset']}" if match else stem
    info = RunInfo(
        model=ModelInfo(name=replace_surrogates(path.parent.name) or None),
        harness=HarnessInfo(name="captrack"),
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
    with open_parquet(file) as opened:
        for batch in opened.iter_batches(_ROWS_PER_BATCH):
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


def captrack_samples(
    task: str, rows: Iterable[Mapping[str, Any]], *, origin: str
) -> Iterator[Sample]:
    """Yield the samples of rows of CapTrack's data set; the first unusable row is an error.

    Args:
        task: name of the task.
        rows: rows of the data set.
        origin: name of the data set for messages.
    """
    file, problems = LogFile(Path(origin), origin, task), Problems(strict=True)
    for number, row in enumerate(rows, start=1):
        yield from samples_of(task, Fields(row, file, number, problems), texts=True)


def samples_of(task: str, row: Fields, *, texts: bool) -> Iterator[Sample]:
    """Yield one sample per output of a row; several outputs are repeats."""
    prompt = structured(row.values.get("prompt"))
    question = _question(prompt)
    item = _id(row) or (question and blake2b(question.encode(), digest_size=8).hexdigest())
    if not item:
        row.report_problem("the row has no id and no prompt")
        return
    options, golds = _options(row), _read_gold(task, row)
    gold = _gold(golds)
    material = _material(task, row, golds, _turns(prompt)) if texts else None
    outputs = row.values.get("outputs")
    for repeat, output in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        response = as_text(output) if not isinstance(output, str) else replace_surrogates(output)
        if response is None and output is not None:
            row.report_problem(f"expected a text, not {output!r:.60}", "outputs")
        grade = _grade(row, response, golds, options)
        yield Sample(
            task=task,
            item=item,
            repeat=repeat,
            scores=[Score(METRIC, grade.score, PROVISIONAL_SCORER, grade.outcome)],
            question=question,
            options=options,
            gold=gold,
            gold_index=letter_index(gold, options),
            choice=grade.choice,
            answer=grade.answer,
            error=grade.error,
            prompt=row.json_text("formatted_prompt") if texts else None,
            response=response if texts else None,
            material=material,
            file=row.file.name,
            line=row.line,
        )


def _id(row: Fields) -> str | None:
    """Return the id; in a column with empty cells, pandas writes the number 1 as 1.0."""
    name = row.values.get("id")
    return as_text(name) if isinstance(name, float) and name.is_integer() else row.name("id")


def _turns(prompt: object) -> list[str]:
    """Return the questions of a conversation in order; an empty list for a single question."""
    if not isinstance(prompt, list):
        return []
    turns = [turn.get("user prompt") if isinstance(turn, dict) else turn for turn in prompt]
    return [text for turn in turns if (text := as_json_text(turn))]


def _question(prompt: object) -> str | None:
    """Return the question; for a conversation, the questions of all turns."""
    return (
        "\n".join(_turns(prompt)) or None
        if isinstance(prompt, list)
        else as_json_text(prompt) or None
    )


def _read_gold(task: str, row: Fields) -> Any:
    """Return the right answer of the row; WinoGrande numbers its two options from 1."""
    gold = structured(row.values.get("gold"))
    if task.startswith("winogrande") and as_text(gold) in WINOGRANDE:
        return WINOGRANDE[str(as_text(gold))]
    return gold


WINOGRANDE = {"1": "A", "2": "B"}


def _gold(gold: object) -> str | None:
    """Return the first of several right answers; of a solution, the part after `####`."""
    if isinstance(gold, dict):
        return _gold(gold.get("answer", gold.get("text")))
    if isinstance(gold, list):
        return _gold(gold[0]) if gold else None
    text = as_text(gold)
    return text.rpartition("####")[2].strip() or None if text is not None else None


def _options(row: Fields) -> list[str] | None:
    choices = structured(row.values.get("choices"))
    if isinstance(choices, dict):
        choices = choices.get("text", choices)
    if isinstance(choices, str) and not choices.lstrip().startswith(("[", "(")):
        return [part.strip() for part in _LABEL.split(choices)[2::2]] or None
    try:
        return parse_options(choices)
    except ValueError:
        row.report_problem(f"expected a list of options, not {choices!r:.60}", "choices")
        return None


def _material(task: str, row: Fields, gold: object, turns: Sequence[str]) -> str | None:
    """Return, as JSON, what scorers need besides question, options and right answer."""
    values = {name: structured(row.values.get(name)) for name in ("ctx", "context", *_AS_IT_IS)}
    material = {name: values[name] for name in _AS_IT_IS}
    context = values["ctx"] if values["ctx"] is not None else values["context"]
    material["context"] = [context] if isinstance(context, str) else context
    material["first_response"] = as_json_text(row.values.get("turn1_response"))
    material["turns"] = list(turns)
    if isinstance(gold, list | dict):
        material["gold"] = gold
    material |= _special(task, material, gold)
    kept = {name: value for name, value in material.items() if value not in (None, [], {})}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True) if kept else None


_AS_IT_IS = ("schema", "kwargs", "tools", "tool_spec", "language", "meta")


def _special(task: str, material: Mapping[str, Any], gold: object) -> dict[str, Any]:
    """Return tests, instructions and titles, which CapTrack stores under other names."""
    benchmark = task.partition(".")[0]
    context, within = material["context"], gold if isinstance(gold, dict) else {}
    if benchmark in CODE:
        tests = within.get("test", within.get("tests"))
        in_context = context if tests is None and isinstance(context, list) else []
        tests = in_context[0] if in_context else tests
        entry = in_context[1] if len(in_context) > 1 else within.get("entry_point")
        return {"tests": tests, "entry_point": entry, "context": None}
    if benchmark == "ifeval":
        meta = material["meta"] if isinstance(material["meta"], dict) else {}
        return {
            "instructions": gold,
            "kwargs": material["kwargs"] or meta.get("kwargs"),
            "gold": None,
        }
    titles = within.get("context_titles")
    return {"titles": titles} if titles else {}


CODE = frozenset({"humaneval", "mbpp"})


def _grade(row: Fields, response: str | None, gold: object, options: list[str] | None) -> Grade:
    """Grade a letter or a number; any other answer is unscored."""
    if response is None or row.values.get("schema") or isinstance(gold, dict | list | None):
        return UNSCORED
    from forgetmap.scoring import grade_response  # large

    text = _gold(gold) or ""
    index = letter_index(text, options)
    try:
        if options and index is not None:
            return grade_response(
                response, gold=options[index], kind="option", options=tuple(options)
            )
        if not options and _NUMBER.fullmatch(text):
            return grade_response(response, gold=text, kind="number")
    except FieldError as error:
        row.report_problem(str(error), "gold")
    return UNSCORED


def tidy(value: Any) -> Any:
    """Return a value as JSON has it, without the nulls that pad an object."""
    if isinstance(value, dict):
        # Parquet pads mappings with different keys with nulls.
        return {str(key): tidy(element) for key, element in value.items() if element is not None}
    if isinstance(value, list | tuple):
        return [tidy(element) for element in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return replace_surrogates(value) if isinstance(value, str) else replace_surrogates(str(value))


def structured(value: Any) -> Any:
    """Return a list or object, also if it is written as text; any other text stays as it is.

    A text is parsed only as an object, or as a list of texts, lists or objects: the interval [0, 1]
    is an answer.
    """
    value = tidy(value)
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    for parse in _PARSERS:
        try:
            parsed = tidy(parse(value))
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
        if isinstance(parsed, dict) or (isinstance(parsed, list) and not _is_of_numbers(parsed)):
            return parsed
    return value


def as_text(value: Any) -> str | None:
    """Return a plain value as text, with numbers and truth values as in JSON."""
    value = tidy(value)
    if value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, str):
        return _TRUTH.get(value.strip().lower(), value)
    return json.dumps(value)


def _is_of_numbers(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(element, int | float) for element in values)


def _python(text: str) -> Any:
    """Parse a Python literal, also with arrays of numpy, which have no commas between values."""
    text = _DTYPE.sub("", _ARRAY.sub("", text))
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    parts: list[str] = []
    last: tokenize.TokenInfo | None = None
    for token in tokens:
        if last and _ends_value(last) and _starts_value(token):
            parts.append(",")
        if token.type not in _LAYOUT:
            parts.append(token.string + " ")
            last = token
    return ast.literal_eval("".join(parts).strip())


def _ends_value(token: tokenize.TokenInfo) -> bool:
    return token.type in _PLAIN or token.string in {"]", "}", ")"}


def _starts_value(token: tokenize.TokenInfo) -> bool:
    return token.type in _PLAIN or token.string in {"[", "{", "("}


_PLAIN = {tokenize.STRING, tokenize.NUMBER}
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_PARSERS: tuple[Callable[[str], Any], ...] = (json.loads, _python)
