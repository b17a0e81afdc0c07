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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from forgetmap.errors import FieldError
from forgetmap.records import HarnessInfo, ModelInfo, RunInfo, parse_options
from forgetmap.scoring import UNSCORED, Grade
from forgetmap.sources.adapter import OWN_SCORER, Log, Problems, Sample, Score
from forgetmap.sources.datasets import letter_index
from forgetmap.sources.decode import rows
from forgetmap.sources.fields import Fields, as_json_text, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile

METRIC = "acc"
REQUIRED = frozenset({"outputs", "gold"})
CARD = frozenset({"id", "family", "prompt", "formatted_prompt", "ctx", "choices", "schema"})
"""Further columns of CapTrack's data set."""
FOREIGN = frozenset({"score", "task", "metric", "metrics", "doc_id", "item"})
"""Columns that CapTrack does not have: a table with one of them is another format."""
AS_IT_IS = ("schema", "kwargs", "tools", "tool_spec", "language", "meta")
"""Columns that scorers need."""
WINOGRANDE = {"1": "A", "2": "B"}
CODE = frozenset({"humaneval", "mbpp"})
_TASK = re.compile(
    r"^(.+?)[_.](table_schema|schema|subset|rephrased|full|citation|turn[12]|4k|32k)$"
)
_LABEL = re.compile(r"(?:^|\s)([A-Z])[:.)]\s")
_NUMBER = re.compile(r"[-+]?\$?\d[\d,]*(?:\.\d+)?%?")
_SUFFIXES = re.compile(r"(?:\.(?:jsonl|json|csv|parquet|pq|gz))+$")
_NUMPY = re.compile(r"\barray\((?=[\[(])|,\s*dtype=[\w'<>|]+\s*\)")
"""What numpy writes around the values of an array."""
_TRUTH = {"true": "true", "false": "false"}
_PLAIN = {tokenize.STRING, tokenize.NUMBER}


class CapTrack:
    """Responses collected for CapTrack."""

    name = "captrack"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per table of outputs and right answers without scores."""
        logs = []
        for file in files:
            names = file.peek.keys
            if file.kind == "other":  # CSV
                header = file.head.partition(b"\n")[0].decode("utf-8", "replace")
                names = frozenset(name.strip().strip('"') for name in header.split(","))
            if names >= REQUIRED and len(names & CARD) > 1 and not names & FOREIGN:
                path = PurePosixPath(replace_surrogates(file.inside))
                task = _TASK.sub(r"\1.\2", _SUFFIXES.sub("", path.name))
                model = ModelInfo(name=path.parent.name or None)
                info = RunInfo(model=model, harness=HarnessInfo(name=self.name))
                logs.append(Log(self.name, (file,), info, (task,), format="CapTrack responses"))
        return logs

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per output."""
        file = log.files[0]
        read_rows = _csv_rows if file.kind == "other" else rows
        for line, values in read_rows(file, problems):
            yield from samples_of(log.tasks[0], Fields(values, file, line, problems), texts=texts)


def _csv_rows(file: LogFile, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    text = io.StringIO(file.read().decode("utf-8", "replace"), newline="")
    reader, line = csv.DictReader(text), 1
    try:
        for row in reader:
            yield line, {name: value for name, value in row.items() if name and value}
            line = reader.line_num + 1
    except csv.Error as error:
        problems.add(file.name, f"this row cannot be read: {error}", line=line)


def captrack_samples(
    task: str, rows: Iterable[Mapping[str, Any]], *, origin: str
) -> Iterator[Sample]:
    """Yield the samples of rows of a data set; the first unusable row is an error of `origin`."""
    file, problems = LogFile(Path(origin), origin, task), Problems(strict=True)
    for number, row in enumerate(rows, start=1):
        yield from samples_of(task, Fields(row, file, number, problems), texts=True)


def samples_of(task: str, row: Fields, *, texts: bool) -> Iterator[Sample]:
    """Yield one sample per output of a row; several outputs are repeats."""
    row = row.within(tidy(row.values))
    prompt = structured(row.values.get("prompt"))
    said = (turn.get("user prompt") if isinstance(turn, dict) else turn for turn in as_list(prompt))
    turns = [text for one in said if (text := as_json_text(one))]  # of a conversation
    question = ("\n".join(turns) if isinstance(prompt, list) else as_json_text(prompt)) or None
    # In a column with empty cells, pandas writes the id 1 as 1.0; `tidy` makes it 1 again.
    item = row.name("id") or (question and blake2b(question.encode(), digest_size=8).hexdigest())
    if not item:
        row.report_problem("the row has no id and no prompt")
        return
    options, golds = _options(row), structured(row.values.get("gold"))
    if task.startswith("winogrande"):  # which numbers its two options from 1
        golds = WINOGRANDE.get(as_text(golds) or "", golds)
    gold = _gold(golds)
    material = _material(task, row, golds, turns) if texts else None
    outputs = row.values.get("outputs")
    for repeat, output in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        response = output if isinstance(output, str) else as_text(output)
        if response is None and output is not None:
            row.report_problem(f"expected a text, not {output!r:.60}", "outputs")
        grade = _grade(row, response, golds, options)
        yield Sample(
            task=task,
            item=item,
            repeat=repeat,
            scores=[Score(METRIC, grade.score, OWN_SCORER, grade.outcome)],
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


def _gold(gold: object) -> str | None:
    """Return the first of several right answers; of a solution, the part after `####`."""
    if isinstance(gold, dict):
        return _gold(gold.get("answer", gold.get("text")))
    if isinstance(gold, list):
        return _gold(gold[0]) if gold else None
    return (as_text(gold) or "").rpartition("####")[2].strip() or None


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


def _material(task: str, row: Fields, gold: object, turns: list[str]) -> str | None:
    """Return, as JSON, what scorers need besides question, options and right answer.

    CapTrack stores tests, instructions and titles under other names.
    """
    context = structured(row.values.get("ctx", row.values.get("context")))
    context = [context] if isinstance(context, str) else context
    material = {
        **{name: structured(row.values.get(name)) for name in AS_IT_IS},
        "context": context,
        "first_response": row.json_text("turn1_response"),
        "turns": turns,
        "gold": gold if isinstance(gold, list | dict) else None,
    }
    benchmark, within = task.partition(".")[0], as_mapping(gold)
    if benchmark in CODE:
        stated = [within.get("test", within.get("tests")), within.get("entry_point")]
        if stated[0] is None and isinstance(context, list):
            stated[: len(context)] = context
        material |= {"tests": stated[0], "entry_point": stated[1], "context": None}
    elif benchmark == "ifeval":
        kwargs = material["kwargs"] or as_mapping(material["meta"]).get("kwargs")
        material |= {"instructions": gold, "kwargs": kwargs, "gold": None}
    else:
        material["titles"] = within.get("context_titles") or None
    kept = {name: value for name, value in material.items() if value not in (None, [], {})}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True) if kept else None


def _grade(row: Fields, response: str | None, gold: object, options: list[str] | None) -> Grade:
    """Grade a letter or a number; any other answer is unscored."""
    if response is None or row.values.get("schema") or isinstance(gold, dict | list | None):
        return UNSCORED
    from forgetmap.scoring import grade_response  # large

    text = _gold(gold) or ""
    index = letter_index(text, options)
    try:
        if options and index is not None:
            right = options[index]
            return grade_response(response, gold=right, kind="option", options=tuple(options))
        if not options and _NUMBER.fullmatch(text):
            return grade_response(response, gold=text, kind="number")
    except FieldError as error:
        row.report_problem(str(error), "gold")
    return UNSCORED


def tidy(value: Any) -> Any:
    """Return a value as JSON has it, without the nulls that pad an object."""
    if isinstance(value, Mapping):
        # Parquet pads mappings with different keys with nulls.
        return {str(key): tidy(element) for key, element in value.items() if element is not None}
    if isinstance(value, list | tuple):
        return [tidy(element) for element in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | float | None) else replace_surrogates(str(value))


def structured(value: Any) -> Any:
    """Return a list or object, also if it is written as text; any other text stays as it is.

    A text is parsed only as an object, or as a list of texts, lists or objects: the interval [0, 1]
    is an answer.
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    for parse in (json.loads, _python):
        try:
            parsed = tidy(parse(value))
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
        numbers = [one for one in as_list(parsed) if isinstance(one, int | float)]
        if isinstance(parsed, dict | list) and (not parsed or len(numbers) < len(parsed)):
            return parsed
    return value


def as_text(value: Any) -> str | None:
    """Return a plain value as text, with numbers and truth values as in JSON."""
    if isinstance(value, str):
        return _TRUTH.get(value.strip().lower(), value)
    return None if isinstance(value, list | dict | None) else json.dumps(value)


def _python(text: str) -> Any:
    """Parse a Python literal, also with arrays of numpy, which have no commas between values."""
    parts: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(_NUMPY.sub("", text)).readline):
        begins = token.type in _PLAIN or token.string in {"[", "{", "("}
        if begins and parts and (parts[-1][-1] in "]})'\"." or parts[-1][-1].isalnum()):
            parts.append(",")
        parts += [token.string] if token.string.strip() else []
    return ast.literal_eval(" ".join(parts))
