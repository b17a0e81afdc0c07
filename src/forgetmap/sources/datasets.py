"""From a row of a well-known data set to the bare question, the options and the right answer.

Harnesses log the row of the data set and a prompt in their own wording. Items are matched across
harnesses by the text of the row, which is extracted here by field names, one shape per data set.
Rows of unknown data sets are read by common field names.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any
from warnings import catch_warnings

import msgspec

Doc = Mapping[str, Any]
Extractor = Callable[[Doc], Any]
"""A function that extracts a value from a row."""
MAX_LABEL_LENGTH = 4
MAX_OPTIONS = 1_000


class DatasetItem(msgspec.Struct):
    """The item in a row of a data set.

    Attributes:
        question: bare text, never blank.
        options: texts of the options in the order of the row; None if the row has no options.
        gold: the right answer as text.
        gold_index: index of the right option.
        category: subject or kind, if the row names one.
        has_gold: False if the data set has no right answer to compare with.
    """

    question: str
    options: list[str] | None = None
    gold: str | None = None
    gold_index: int | None = None
    category: str | None = None
    has_gold: bool = True


@dataclass(frozen=True, slots=True)
class Shape:
    """How to read the rows of a data set.

    Attributes:
        needs: fields that every row of the data set has.
        ask: fields that make up the question, in order.
        options: extracts the texts of the options.
        gold: extracts the right answer: an integer is its index, a text the answer or its letter.
        category: field with the subject.
        has_gold: whether there is a right answer to compare with.
    """

    needs: tuple[str, ...]
    ask: tuple[str, ...] | Callable[[Doc], str]
    options: Extractor | None = None
    gold: Extractor | None = None
    category: str | None = None
    has_gold: bool = True


def as_item(doc: object) -> DatasetItem:
    """Return the question, options and right answer of a row; works for any value."""
    if not isinstance(doc, dict) or not doc:
        return DatasetItem(_text(doc) or "null")
    shape = _shape(tuple(doc))
    item = DatasetItem(_question(shape, doc), has_gold=shape.has_gold)
    if shape.options is not None:
        item.options = _texts(_try(shape.options, doc))
    if shape.category is not None:
        category = doc.get(shape.category)
        item.category = category if isinstance(category, str) else None
    if shape.gold is not None:
        _settle_gold(item, _try(shape.gold, doc))
    return item


def option_index(value: object, options: int) -> int | None:
    """Return the index of the option named by a number, its digits or a letter; else None.

    Args:
        value: the number, from 0, or the text.
        options: number of options.
    """
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, str):
        value = value.strip().strip("().:").strip()
        if value.isascii() and value.isdigit():
            value = int(value[:9])
        elif len(value) == 1 and value.isascii() and value.isalpha():
            value = ord(value.upper()) - ord("A")
    if isinstance(value, int) and 0 <= value < options:
        return value
    return None


def _question(shape: Shape, doc: Doc) -> str:
    if callable(shape.ask):
        question = _text(_try(shape.ask, doc))
    elif len(shape.ask) == 1:
        question = _text(doc.get(shape.ask[0]))
    else:
        question = "\n".join(filter(None, (_text(doc.get(name)) for name in shape.ask)))
    return question or _json(doc)


def _settle_gold(item: DatasetItem, gold: object) -> None:
    if isinstance(gold, list) and len(gold) == 1:
        gold = gold[0]
    if isinstance(gold, int) and gold is not True and gold is not False:
        if not item.options:
            item.gold_index = gold if 0 <= gold < MAX_OPTIONS else None
        elif 0 <= gold < len(item.options):
            item.gold_index = gold
    elif gold is not None:
        item.gold = _text(gold) or None
        if item.gold and item.options:
            item.gold_index = (
                item.options.index(item.gold)
                if item.gold in item.options
                else _letter(item.gold, len(item.options))
            )
    if item.options and item.gold_index is not None:
        item.gold = item.options[item.gold_index]


def _letter(gold: str, options: int) -> int | None:
    return None if gold.strip("() ").isdigit() else option_index(gold, options)


_DAMAGES = (
    AttributeError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError,
)  # fmt: skip
"""Errors that an extractor may raise for a damaged row."""


def _try(extract: Extractor, doc: Doc) -> object:
    """Apply an extractor; return None if the row is damaged."""
    try:
        return extract(doc)
    except _DAMAGES:
        return None


def _text(value: object) -> str:
    """Return a text stripped, None as an empty text, anything else as JSON."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    return _json(value)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _texts(options: object) -> list[str] | None:
    """Return options as texts; None if there is no choice, or only labels such as `A`."""
    if not isinstance(options, list) or len(options) < 2:  # no choice
        return None
    texts = [option.strip() if isinstance(option, str) else _text(option) for option in options]
    # Most first options are long, which is quicker to see than that one of them is no label.
    is_text = len(texts[0]) > MAX_LABEL_LENGTH or not all(map(_is_label, texts))
    return texts if is_text else None


def _is_label(text: str) -> bool:
    """Whether a text is only a label, such as `B` or `(B)`, or empty."""
    if len(text) > MAX_LABEL_LENGTH:
        return False
    bare = text.strip("(). ")
    return not bare or (len(bare) == 1 and bare.isascii() and bare.isalpha())


def _declare(
    needs: tuple[str, ...],
    ask: str | tuple[str, ...] | Extractor,
    options: str | tuple[str, ...] | Extractor | None,
    gold: str | Extractor,
    category: str | None = None,
) -> Shape:
    """Build a shape from field names; a tuple of option fields has one option per field."""
    return Shape(
        needs,
        (ask,) if isinstance(ask, str) else ask,
        options if options is None or callable(options) else _cells(options),
        gold if callable(gold) else _cells(gold),
        category,
    )


def _cells(names: str | tuple[str, ...]) -> Extractor:
    if isinstance(names, str):
        return lambda doc: doc[names]
    return lambda doc: [doc[name] for name in names]


def _minus_one(name: str) -> Extractor:
    return lambda doc: int(doc[name]) - 1


def _number(name: str) -> Extractor:
    return lambda doc: int(doc[name])


def _labelled(doc: Doc) -> object:
    """Return the options of ARC and similar data sets: `{"text": [...], "label": [...]}`."""
    choices = doc["choices"]
    return choices["text"] if isinstance(choices, dict) else choices


def _answer_key(doc: Doc) -> object:
    choices, key = doc["choices"], doc["answerKey"]
    if isinstance(choices, dict):
        return choices["label"].index(key.strip())
    return key


_BOXED = re.compile(r"\\(?:boxed|fbox)\s*")


def _boxed(doc: Doc) -> object:
    """Return the answer of a MATH row: its field, else the last box of the solution."""
    if isinstance(doc.get("answer"), str):
        return doc["answer"]
    solution = doc["solution"]
    start = [match.end() for match in _BOXED.finditer(solution)][-1]
    depth = 0
    for index in range(start, len(solution)):
        depth += {"{": 1, "}": -1}.get(solution[index], 0)
        if depth == 0:
            return solution[start + 1 : index]
    return None


_MATHQA_OPTION = re.compile(r"[a-e] \) (.*?)(?=\s*,\s*[a-e] \) |\s*,?\s*$)")


def _last_problem(doc: Doc) -> Mapping[str, Any]:
    """Return the last problem of an article, the one that lm-eval asks for RACE."""
    problem: Mapping[str, Any] = _list(doc["problems"])[-1]
    return problem


def _list(value: object) -> list[Any]:
    """Return a list, also if it is written as a Python literal; else an empty list."""
    if isinstance(value, str):
        try:
            with catch_warnings(action="ignore", category=SyntaxWarning):
                value = ast.literal_eval(value)
        except (SyntaxError, MemoryError):
            value = None
    return value if isinstance(value, list) else []


def _drop_answer(doc: Doc) -> object:
    first = doc["answers"][0]
    return ", ".join(map(str, first)) if isinstance(first, list | tuple) else first


SHAPES: tuple[Shape, ...] = (
    # GPQA: every run shuffles the options, but their texts are the same.
    _declare(
        ("Question", "choice1", "choice2", "choice3", "choice4", "Correct Answer"),
        "Question", ("choice1", "choice2", "choice3", "choice4"), "answer", "High-level domain",
    ),
    _declare(
        ("Question", "Correct Answer", "Incorrect Answer 1"),
        "Question", ("Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3))),
        lambda _: 0, "High-level domain",
    ),
    # HellaSwag: lm-eval cleans the texts, other harnesses do not, so the raw ones count.
    _declare(("ctx", "endings", "label"), "ctx", "endings", _number("label")),
    # OpenBookQA, ARC and CommonsenseQA
    _declare(("question_stem", "choices", "answerKey"), "question_stem", _labelled, _answer_key),
    _declare(("question", "choices", "answerKey"), "question", _labelled, _answer_key),
    # MMLU-Pro, MMLU
    _declare(
        ("question", "options", "answer_index"), "question", "options", "answer_index", "category"
    ),
    _declare(
        ("question", "choices", "answer", "subject"), "question", "choices", "answer", "subject"
    ),
    # MuSR
    _declare(
        ("narrative", "question", "choices", "answer_index"), ("narrative", "question"),
        lambda doc: _list(doc["choices"]), "answer_index",
    ),
    # WinoGrande, PIQA, Social IQa, COPA
    _declare(
        ("sentence", "option1", "option2", "answer"), "sentence",
        ("option1", "option2"), _minus_one("answer"),
    ),
    _declare(("goal", "sol1", "sol2", "label"), "goal", ("sol1", "sol2"), _number("label")),
    _declare(
        ("context", "question", "answerA", "answerB", "answerC"), ("context", "question"),
        ("answerA", "answerB", "answerC"), _minus_one("label"),
    ),
    _declare(
        ("premise", "choice1", "choice2", "question"), ("premise", "question"),
        ("choice1", "choice2"), _number("label"),
    ),
    # SciQ: the right answer has a field of its own.
    _declare(
        ("question", "correct_answer", "distractor1"), "question",
        ("distractor1", "distractor2", "distractor3", "correct_answer"), "correct_answer",
    ),
    # TruthfulQA: multiple choice and generation
    _declare(
        ("question", "mc1_targets"), "question",
        lambda doc: doc["mc1_targets"]["choices"],
        lambda doc: doc["mc1_targets"]["labels"].index(1),
    ),
    _declare(
        ("question", "best_answer", "correct_answers"), "question", None, "best_answer", "category"
    ),
    # LogiQA, RACE (as packed by lm-eval, and in its original form)
    _declare(
        ("context", "question", "options", "label"), ("context", "question"), "options", "label"
    ),
    _declare(
        ("article", "problems"),
        lambda doc: f"{doc['article'].strip()}\n{_last_problem(doc)['question'].strip()}",
        lambda doc: _last_problem(doc)["options"], lambda doc: _last_problem(doc)["answer"],
    ),
    _declare(
        ("article", "question", "options", "answer"), ("article", "question"), "options", "answer"
    ),
    # MathQA, MedMCQA, Belebele, SWAG and MedQA, StoryCloze
    _declare(
        ("Problem", "options", "correct"), "Problem",
        lambda doc: _MATHQA_OPTION.findall(doc["options"]), "correct", "category",
    ),
    _declare(
        ("question", "opa", "opb", "opc", "opd", "cop"), "question",
        ("opa", "opb", "opc", "opd"), "cop", "subject_name",
    ),
    _declare(
        ("flores_passage", "question", "mc_answer1"), ("flores_passage", "question"),
        tuple(f"mc_answer{n}" for n in (1, 2, 3, 4)), _minus_one("correct_answer_num"),
    ),
    _declare(
        ("startphrase", "ending0", "ending3"), "startphrase",
        ("ending0", "ending1", "ending2", "ending3"), "label",
    ),
    _declare(
        ("sent1", "ending0", "ending3"), ("sent1", "sent2"),
        ("ending0", "ending1", "ending2", "ending3"), "label",
    ),
    _declare(
        ("input_sentence_1", "sentence_quiz1", "sentence_quiz2"),
        tuple(f"input_sentence_{n}" for n in (1, 2, 3, 4)),
        ("sentence_quiz1", "sentence_quiz2"), _minus_one("answer_right_ending"),
    ),
    # Worked mathematics: GSM8K, MGSM, MATH, ASDiv, SVAMP
    _declare(("question", "answer_number"), "question", None, lambda d: str(d["answer_number"])),
    _declare(("problem", "solution"), "problem", None, _boxed, "type"),
    _declare(
        ("body", "question", "answer", "formula"), ("body", "question"),
        None, lambda doc: doc["answer"].partition(" (")[0],
    ),
    _declare(
        ("Body", "Question", "Answer"), ("Body", "Question"), None, lambda doc: str(doc["Answer"])
    ),
    # Reading: DROP, CoQA, BoolQ, TriviaQA
    _declare(("passage", "question", "answers"), ("passage", "question"), None, _drop_answer),
    _declare(
        ("story", "questions", "answers"),
        lambda doc: f"{doc['story'].strip()}\n{doc['questions']['input_text'][-1].strip()}",
        None, lambda doc: doc["answers"]["input_text"][-1],
    ),
    _declare(
        ("question", "answer", "entity_pages"), "question", None, lambda d: d["answer"]["value"]
    ),
    # IFEval, HumanEval, MBPP: there is no single right text.
    Shape(("prompt", "instruction_id_list"), ("prompt",), has_gold=False),
    Shape(("prompt", "canonical_solution"), ("prompt",), has_gold=False),
    Shape(("text", "code", "test_list"), ("text",), has_gold=False),
    Shape(("prompt", "code", "test_list"), ("prompt",), has_gold=False),
    # SuperGLUE: WSC, WiC, MultiRC
    Shape(("text", "span1_text", "span2_text"), ("text", "span1_text", "span2_text")),
    Shape(("word", "sentence1", "sentence2"), ("word", "sentence1", "sentence2")),
    Shape(("paragraph", "question", "answer", "label"), ("paragraph", "question", "answer")),
)  # fmt: skip

QUESTION_FIELDS = (
    *("passage", "context", "CONTEXTS", "article", "story", "narrative", "paragraph", "body"),
    *("premise", "sentence1", "question1", "hypothesis", "sentence2", "question2"),
    *("question", "Question", "QUESTION", "question_stem", "query", "problem", "Problem", "goal"),
    *("sentence", "Sentence", "statement", "instruction", "input", "ctx", "prompt", "text"),
)
"""Common field names for the parts of a question, in the order of the question."""

_QUESTIONS = frozenset(
    {"question", "Question", "QUESTION", "question_stem", "problem", "Problem", "goal"}
)
_WHOLE = frozenset({"query", "prompt", "text", "ctx", "instruction", "input"})
"""Fields that only repeat the question in a template, if there is a field for the question."""


_OPTIONS = ("choices", "options", "endings")
_GOLDS = ("answer_index", "gold_index", "gold", "answerKey", "label", "answer", "target")


def _usual_options(doc: Doc) -> object:
    for name in _OPTIONS:
        options = doc.get(name)
        if isinstance(options, dict) and isinstance(options.get("text"), list):
            return options["text"]
        if isinstance(options, list) and all(isinstance(option, str) for option in options):
            return options
    return None


def _usual_gold(doc: Doc) -> object:
    """Return the index of the right option, from the first field that names one."""
    options = _texts(_usual_options(doc)) or []
    for name in _GOLDS:
        value = doc.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value.strip() in options:
            return options.index(value.strip())
        index = option_index(value, len(options))
        if index is not None:
            return index
    return None


def _worked_answer(doc: Doc) -> object:
    """Return the number at the end of a worked answer of GSM8K: `#### 42`."""
    _, mark, after = doc["answer"].rpartition("####")
    return after.strip() if mark else None


def _usual(names: Sequence[str]) -> Shape:
    """Return the shape for rows of an unknown data set, from common field names."""
    questions = [name for name in QUESTION_FIELDS if name in names]
    if _QUESTIONS.intersection(names):
        questions = [name for name in questions if name not in _WHOLE]
    if set(_OPTIONS).intersection(names):
        return Shape((), tuple(questions), _usual_options, _usual_gold)
    return Shape((), tuple(questions), None, _worked_answer if "answer" in names else None)


@lru_cache(maxsize=4096)
def _shape(names: tuple[str, ...]) -> Shape:
    present = set(names)
    known = next((shape for shape in SHAPES if present.issuperset(shape.needs)), None)
    return known or _usual(names)


def letter_index(letter: str | None, options: Sequence[str] | None) -> int | None:
    """Return the index of the option with this letter, even if options are themselves letters."""
    index = ascii_uppercase.find(letter) if letter and len(letter) == 1 else -1
    return index if options and 0 <= index < len(options) else None
