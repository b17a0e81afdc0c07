"""Rows of lighteval's details as samples.

Flat columns up to 0.10 (from 0.2 to 0.7 each written as Python text), since 0.11 the three structs
`doc`, `metric` and `model_response`, in some versions between double underscores.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from string import ascii_uppercase
from typing import Any, Literal

import pyarrow as pa

from forgetmap.errors import UnreadableError
from forgetmap.records import Outcome, normalise
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.decode import encodable, number
from forgetmap.sources.files import LogFile, open_parquet

ROWS_PER_BATCH = 256
"""Rows read at a time; few, since responses are long."""
MAX_LITERAL_LENGTH = 4 << 20
Style = Literal["flat", "structs"]

FLAT_MARKS = frozenset({"example", "full_prompt", "metrics"})
STRUCTS = ("doc", "metric", "model_response")

# Part of a row -> column.
FLAT = {
    "query": "example",
    "instruction": "instruction",
    "choices": "choices",
    "gold_index": "gold_index",
    "gold": "gold",
    "metrics": "metrics",
    "specific": "specifics",
    "output": "predictions",
}
FLAT_TEXTS = {"prompt": "full_prompt"}
NESTED = {
    "id": "doc.id",
    "query": "doc.query",
    "instruction": "doc.instruction",
    "choices": "doc.choices",
    "gold_index": "doc.gold_index",
    "metrics": "metric",
    "specific": "doc.specific",
    "logprobs": "model_response.logprobs",
}
NESTED_TEXTS = {"prompt": "model_response.input", "output": "model_response.text"}
_WRITTEN = ("choices", "gold_index", "gold", "metrics", "specific", "output")
"""Parts that are not texts, but may be written as texts."""
_CUE = re.compile(
    r"(?:^|\n)\s*(?:answer|reasoning|solution|a)\s*:\s*(?:let's think step by step\.?)?\s*\Z",
    re.IGNORECASE,
)
_MARKER = re.compile(r"^[ \t]*(?:Question|Q):[ \t]*", re.MULTILINE)
_ANSWERED = re.compile(r"^[ \t]*(?:Answer|Reasoning|A):[ \t]*\S", re.MULTILINE)
_ORDER = "$LETTER"
"""Placeholder in instructions for the letter at the end of a response."""
_TOPIC = re.compile(r"\AThe following are multiple choice questions \(with answers\)[^\n]*\n+")
_QUOTE = re.compile(r"\"(?=\s*(?:\n[ \t]*A\) |\Z))")
_OPTION = re.compile(r"[ \t]*\(?(?P<letter>[A-Z])[).:][ \t]+(?P<text>\S.*)")
_LISTING = re.compile(r"\n[ \t]*(?:answer )?(?:options|choices)[ \t]*:[ \t]*\Z", re.IGNORECASE)


def style_of(names: Sequence[str]) -> Style | None:
    """Return the layout of lighteval's details with these columns; None if it is none of them."""
    if FLAT_MARKS.issubset(names):
        return "flat"
    return "structs" if {name.strip("_") for name in names}.issuperset(STRUCTS) else None


def rows_of(file: LogFile, *, texts: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the rows of a file with their number, reading only the columns needed."""
    with open_parquet(file) as opened:
        schema = opened.schema_arrow
        paths = _needed_columns(schema, texts=texts)
        columns = {name: _spelt_path(path, schema.names) for name, path in paths.items()}
        number_of = 0
        for batch in opened.iter_batches(ROWS_PER_BATCH, columns=sorted(set(columns.values()))):
            for row in batch.to_pylist():
                number_of += 1
                yield number_of, {name: _inside(row, path) for name, path in columns.items()}


def _needed_columns(schema: pa.Schema, *, texts: bool) -> dict[str, str]:
    if style_of(schema.names) != "flat":
        return NESTED | (NESTED_TEXTS if texts else {})
    columns = FLAT | (FLAT_TEXTS if texts else {})
    long = "predictions" in schema.names and schema.field("predictions").type == pa.list_(
        pa.string()
    )
    if long and not texts:
        columns = {name: column for name, column in columns.items() if name != "output"}
    return {name: column for name, column in columns.items() if column in schema.names}


def _spelt_path(path: str, names: Sequence[str]) -> str:
    """Return the path as written in this file, with double underscores or without."""
    column, dot, rest = path.partition(".")
    column_name = next((name for name in names if name.strip("_") == column), column)
    return f"{column_name}{dot}{rest}" if column not in names else path


def _inside(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def metric_names(files: Sequence[LogFile], problems: Problems) -> list[str]:
    """Return the metrics of a task: those with a value in any row.

    Arrow gives every row the metrics of all rows, so those without any value must be left out.
    """
    names: dict[str, None] = {}
    for file in files:
        try:
            for row in _metrics(file):
                names |= {name: None for name, value in row.items() if _is_score(value)}
        except UnreadableError as error:
            problems.add(file.name, error.message)
    return list(names)


def means(file: LogFile) -> tuple[dict[str, float], int]:
    """Return the mean of each metric over a file, and the number of rows."""
    values: dict[str, list[float]] = {}
    count = 0
    for row in _metrics(file):
        count += 1
        for name, value in row.items():
            if _is_score(value) and math.isfinite(value):
                values.setdefault(name, []).append(float(value))
    return {name: sum(scores) / len(scores) for name, scores in values.items()}, count


def _metrics(file: LogFile) -> Iterator[Mapping[str, Any]]:
    with open_parquet(file) as opened:
        names = opened.schema_arrow.names
        column = next((n for n in names if n.strip("_") in ("metrics", "metric")), "metrics")
        for batch in opened.iter_batches(4096, columns=[column]):
            for value in batch.column(0).to_pylist() if batch.num_columns else ():
                parsed = as_value(value)
                yield parsed if isinstance(parsed, dict) else {}


def _is_score(value: object) -> bool:
    return isinstance(value, bool | int | float)


@dataclass
class DetailsReader:
    """Reader of the samples in files of details.

    Attributes:
        task: name of the task.
        names: metrics of the task.
        texts: whether prompt and response are kept.
        problems: receives the problems of rows.
    """

    task: str
    names: Sequence[str]
    texts: bool
    problems: Problems
    _seen: Counter[tuple[int, str]] = field(default_factory=Counter)

    def samples(self, file: LogFile, *, repeat: int, seed: int | None) -> Iterator[Sample]:
        """Iterate over the samples of a file."""
        try:
            for line, row in rows_of(file, texts=self.texts):
                sample = self._sample(row, file, line)
                if sample is not None:
                    sample.repeat, sample.seed = repeat, seed
                    self._name(sample)
                    yield sample
        except UnreadableError as error:
            self.problems.add(file.name, error.message)

    def _name(self, sample: Sample) -> None:
        """Set the item of details without ids: a hash of the content, numbered if it recurs."""
        if not sample.item:
            parts = (sample.question or "", *sorted(sample.options or ()), sample.gold or "")
            text = "\x1f".join(map(normalise, parts)).encode("utf-8", "replace")
            digest = blake2b(text, digest_size=8).hexdigest()
            again = self._seen[sample.repeat or 0, digest]
            self._seen[sample.repeat or 0, digest] += 1
            sample.item = f"{digest}-{again + 1}" if again else digest

    def _sample(self, row: Mapping[str, Any], file: LogFile, line: int) -> Sample | None:
        def report_problem(message: str, name: str) -> None:
            self.problems.add(file.name, message, line=line, field=name)

        row = {name: as_value(v) if name in _WRITTEN else v for name, v in row.items()}
        query, metrics = row.get("query"), row.get("metrics")
        if not isinstance(query, str):
            report_problem("there is no query", "query")
            return None
        if not isinstance(metrics, dict):
            report_problem("there are no metrics", "metrics")
            metrics = {}
        question = _read_question(row, query)
        sample = Sample(
            task=self.task,
            item=_text(row.get("id")) or "",
            scores=[Score(name, _value(metrics.get(name))) for name in self.names],
            question=question.question or None,
            options=question.options or None,
            gold=question.gold,
            gold_index=question.gold_index,
            prompt=_prompt(row.get("prompt")) if self.texts else None,
            file=file.name,
            line=line,
        )
        _add_answer(sample, row, question)
        if self.texts:
            sample.response = _response(row.get("output"))
        return sample


@dataclass(frozen=True, slots=True)
class _Question:
    """An item: question, options, indices of right answers and the first of them as text."""

    question: str
    options: list[str]
    golds: list[int]
    gold: str | None
    gold_index: int | None
    choices: list[str]


def _read_question(row: Mapping[str, Any], query: str) -> _Question:
    question, option_lines = bare_question(query, _text(row.get("instruction")))
    choices = _strings(row.get("choices"))
    golds = [index for index in _integers(row.get("gold_index")) if 0 <= index < len(choices)]
    is_choice = len(choices) > 1 and len(set(golds)) < len(choices)
    letters = all(len(label.strip(" ().:")) == 1 for label in choices)
    options = option_lines if (letters or not is_choice) and option_lines else []
    if not options and is_choice:
        options = [choice.strip() for choice in choices]
    if not is_choice and len(choices) > 1:
        options = []
    texts = _strings(row.get("gold"))
    gold = texts[0].strip() if texts else (choices[golds[0]].strip() if golds else None)
    index = golds[0] if golds and is_choice and golds[0] < len(options) else None
    return _Question(question, options, golds, gold, index, choices if is_choice else [])


def _add_answer(sample: Sample, row: Mapping[str, Any], question: _Question) -> None:
    """Set the answer: the most likely option, or the one that the harness extracted."""
    logprobs = _logprobs(row)
    first = sample.scores[0] if sample.scores else None
    if question.choices and len(logprobs) == len(question.choices) and first is not None:
        chosen = _likeliest(logprobs, question, right=bool(first.value))
        sample.logprob_answer = logprobs[chosen]
        sample.logprob_gold = logprobs[question.golds[0]] if question.golds else None
        sample.choice = question.options[chosen] if chosen < len(question.options) else None
        return
    specific = row.get("specific")
    extracted = specific.get("extracted_predictions") if isinstance(specific, dict) else None
    if isinstance(extracted, list):
        answers = [answer for answer in extracted if isinstance(answer, str)]
        sample.answer = answers[0] if answers else None
        if question.options:
            sample.choice = sample.answer
        for score in sample.scores:
            if not extracted and score.value == 0:
                score.outcome = Outcome.NO_ANSWER


def _likeliest(logprobs: Sequence[float], question: _Question, *, right: bool) -> int:
    """Return the index of the most likely option; some metrics normalise by its length."""
    plain = list(logprobs)
    by_length = [p / max(1, len(c)) for p, c in zip(logprobs, question.choices, strict=True)]
    bare = [p / max(1, len(c.lstrip())) for p, c in zip(logprobs, question.choices, strict=True)]
    ranked = [
        max(range(len(values)), key=values.__getitem__) for values in (plain, by_length, bare)
    ]
    return next((values for values in ranked if (values in question.golds) == right), ranked[0])


def _logprobs(row: Mapping[str, Any]) -> list[float]:
    """Return a log-probability per option; old details write them among the predictions."""
    outputs = row.get("logprobs") or row.get("output")
    if not isinstance(outputs, list):
        return []
    firsts = [
        output[0] if isinstance(output, list | tuple) and output else output for output in outputs
    ]
    values = [number(output) for output in firsts if isinstance(output, int | float)]
    known = [value for value in values if value is not None]
    return known if len(known) == len(outputs) else []


def _response(output: object) -> str | None:
    """Return the text of a response; several are returned as JSON."""
    texts = [text for text in output if isinstance(text, str)] if isinstance(output, list) else []
    if isinstance(output, str):
        texts = [output]
    if not texts:
        return None
    return texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)


def _prompt(value: object) -> str | None:
    """Return a prompt, or the messages of a chat as JSON."""
    if value is None or isinstance(value, str):
        return value or None
    return json.dumps(value, ensure_ascii=False, default=str)


def _value(value: object) -> float | None:
    return number(value) if _is_score(value) else None


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _strings(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [element if isinstance(element, str) else str(element) for element in _flat(values)]


def _flat(values: Sequence[object]) -> Iterator[object]:
    """Flatten choices; of a choice that is a list of references, the first is used."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value[:1])
        elif value is not None and not isinstance(value, dict):
            yield value


def _integers(value: object) -> list[int]:
    """Return integers, which are stored as floats in a column with missing values."""
    values = value if isinstance(value, list | tuple) else [value]
    numbers = [
        number(element)
        for element in values
        if _is_score(element) and not isinstance(element, bool)
    ]
    return [int(element) for element in numbers if element is not None and element.is_integer()]


def as_value(value: object) -> Any:
    """Parse a Python literal such as `{'acc': 1.0}`; return anything else as it is."""
    if not isinstance(value, str) or value[:1] not in "[{(" or len(value) > MAX_LITERAL_LENGTH:
        return value
    try:
        return encodable(_literal(ast.parse(value, mode="eval").body))
    except (ValueError, SyntaxError, RecursionError, MemoryError, OverflowError):
        return value


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal, also `nan`, `inf` and numbers of other libraries."""
    if isinstance(node, ast.Dict):
        keys = [_literal(key) for key in node.keys if key is not None]
        return {str(key): _literal(v) for key, v in zip(keys, node.values, strict=True)}
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(element) for element in node.elts]
    if isinstance(node, ast.Name) and node.id in ("nan", "inf"):
        return float(node.id)
    if isinstance(node, ast.Call) and node.args:
        return _literal(node.args[0])
    return ast.literal_eval(node)


def bare_question(query: str, instruction: str | None) -> tuple[str, list[str]]:
    """Return the bare question of a query, and the options listed in it, if any.

    Harnesses wrap a question in different words; the bare question is the same text for all of
    them. Each query is parsed on its own, independent of other items.

    Args:
        query: the part of the prompt about this item.
        instruction: text before every item, if the harness logs it.
    """
    text = query.strip()
    lead = (instruction or "").strip()
    if lead and lead != text and text.startswith(lead):
        text = text[len(lead) :]
    text = _CUE.sub("", text)
    stem, options = _split_options(_without_head(text))
    return _LISTING.sub("", stem.rstrip()).strip(), options


def _without_head(text: str) -> str:
    """Remove instruction and worked examples; a passage belongs to the question and stays."""
    text = _TOPIC.sub("", text.lstrip())
    markers = list(_MARKER.finditer(text))
    head = text[: markers[-1].start()] if markers else ""
    if markers and (not head.strip() or _ANSWERED.search(head)):
        return text[markers[-1].end() :]
    if _ORDER not in text:
        return text
    if _ORDER in head:
        body = text[markers[-1].end() :]
        return _QUOTE.sub("", body[1:], count=1) if body.startswith('"') else body
    return text[text.index(_ORDER) :].partition("\n\n")[2] or text


def _split_options(text: str) -> tuple[str, list[str]]:
    """Split off the last list of options that begins with A."""
    lines = text.split("\n")
    matches = [_OPTION.match(line) for line in lines]
    starts = [index for index, option in enumerate(matches) if option and option["letter"] == "A"]
    if not starts:
        return text, []
    options: list[str] = []
    for line, option in zip(lines[starts[-1] :], matches[starts[-1] :], strict=True):
        if option and option["letter"] == ascii_uppercase[len(options) :][:1]:
            options.append(option["text"])
        elif not line.strip():
            continue
        elif len(options) > 1 and not options[-1].endswith("\n"):
            options[-1] += f"\n{line}"
        else:
            return text, []
    if len(options) < 2:  # no choice
        return text, []
    return "\n".join(lines[: starts[-1]]), [option.strip() for option in options]
