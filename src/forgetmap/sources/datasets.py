"""From a row of a well-known data set to the bare question, the options and the right answer.

Harnesses log the row of the data set and a prompt in their own wording. Items are matched across
harnesses by the text of the row, which is extracted here by field names, one shape per data set.
Rows of unknown data sets are read by common field names.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from string import ascii_uppercase
from typing import Any, NamedTuple
from warnings import catch_warnings

import msgspec

Doc = Mapping[str, Any]
Extractor = Callable[[Doc], Any]
"""A function that extracts a value from a row."""
MAX_LABEL_LENGTH = 4
_LABEL = re.compile(r"(?=.{0,4}\Z)[(). ]*[A-Za-z]?[(). ]*")
"""Only a label, such as `B` or `(B)`, or nothing."""
MAX_OPTIONS = 1_000


class DatasetItem(msgspec.Struct):
    """The item in a row of a data set; its question is never blank."""

    question: str
    options: list[str] | None = None
    gold: str | None = None
    gold_index: int | None = None
    category: str | None = None
    has_gold: bool = True
    """False if the data set has no right answer to compare with."""


class Shape(NamedTuple):
    """How to read the rows of a data set: fields all of them have, and where the parts are."""

    needs: frozenset[str]
    ask: tuple[Extractor, ...]
    options: Extractor | None
    gold: Extractor | None
    category: str
    has_gold: bool = True


def as_item(doc: object) -> DatasetItem:
    """Return the question, options and right answer of a row; works for any value."""
    if not isinstance(doc, dict) or not doc:
        return DatasetItem(_text(doc) or "null")
    shape = _find_shape(tuple(doc))
    question = "\n".join(filter(None, (_text(_try(part, doc)) for part in shape.ask)))
    item = DatasetItem(question or _text(doc), has_gold=shape.has_gold)
    category = doc.get(shape.category)
    item.category = category if shape.category and isinstance(category, str) else None
    item.options = _texts(_try(shape.options, doc))
    gold = _try(shape.gold, doc)
    if shape.options is None:
        item.gold = _text(", ".join(map(str, gold)) if isinstance(gold, list) else gold) or None
    else:
        _settle_gold(item, gold)
    return item


def option_index(value: object, options: int) -> int | None:
    """Return the index of one of some options from a number from 0, its digits or a letter."""
    if isinstance(value, str):
        value = value.strip().strip("().:").strip()
        if value.isascii() and value.isdigit():
            value = int(value[:9])
        elif len(value) == 1 and value.isascii() and value.isalpha():
            value = ord(value.upper()) - ord("A")
    return int(value) if isinstance(value, int) and 0 <= value < options else None


def letter_index(letter: str | None, options: Sequence[str] | None) -> int | None:
    """Return the index of the option with this letter, even if options are themselves letters."""
    index = ascii_uppercase.find(letter) if letter and len(letter) == 1 else -1
    return index if options and 0 <= index < len(options) else None


def _settle_gold(item: DatasetItem, gold: object) -> None:
    if isinstance(gold, list) and len(gold) == 1:
        gold = gold[0]
    if isinstance(gold, int) and not isinstance(gold, bool):
        count = len(item.options) if item.options else MAX_OPTIONS
        item.gold_index = gold if 0 <= gold < count else None
    else:
        item.gold = _text(gold) or None
        if item.gold and item.options:
            if item.gold in item.options:
                item.gold_index = item.options.index(item.gold)
            elif not item.gold.strip("() ").isdigit():
                item.gold_index = option_index(item.gold, len(item.options))
    if item.options and item.gold_index is not None:
        item.gold = item.options[item.gold_index]


def _try(extract: Extractor | None, doc: Doc) -> object:
    """Apply an extractor; return None if there is none, or the row is damaged."""
    try:
        return extract(doc) if extract else None
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError):
        return None


def _text(value: object) -> str:
    """Return a text stripped, None as an empty text, anything else as JSON."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _texts(options: object) -> list[str] | None:
    """Return options as texts; None if there is no choice, or only labels such as `A`."""
    if isinstance(options, dict):  # {"text": [...], "label": [...]}
        options = options.get("text")
    if not isinstance(options, list) or len(options) < 2:  # no choice
        return None
    texts = [option.strip() if isinstance(option, str) else _text(option) for option in options]
    # Most first options are long, which is quicker to see than that one of them is no label.
    is_text = len(texts[0]) > MAX_LABEL_LENGTH or not all(map(_LABEL.fullmatch, texts))
    return texts if is_text else None


def _list(value: object) -> list[Any]:
    """Return a list, also if it is written as a Python literal; else an empty list."""
    if isinstance(value, str):
        try:
            with catch_warnings(action="ignore", category=SyntaxWarning):
                value = ast.literal_eval(value)
        except (SyntaxError, MemoryError):
            value = None
    return value if isinstance(value, list) else []


def _arc_key(doc: Doc) -> object:
    choices, key = doc["choices"], doc["answerKey"]
    return choices["label"].index(key.strip()) if isinstance(choices, dict) else key


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


_BOXED = re.compile(r"\\(?:boxed|fbox)\s*")
_MATHQA_OPTION = re.compile(r"[a-e] \) (.*?)(?=\s*,\s*[a-e] \) |\s*,?\s*$)")
_EXTRACTORS: dict[str, Extractor] = {
    "<first>": lambda _: 0,
    "<none>": lambda _: None,
    "<literal choices>": lambda doc: _list(doc["choices"]),
    "<labelled 1>": lambda doc: doc["mc1_targets"]["labels"].index(1),
    "<a ) to e )>": lambda doc: _MATHQA_OPTION.findall(doc["options"]),
    "<without unit>": lambda doc: doc["answer"].partition(" (")[0],
    "<key>": _arc_key,
    "<box>": _boxed,
}
_TABLE = """
# GPQA: every run shuffles the options, but their texts are the same.
Question,choice1-4,Correct Answer | Question | choice1-4 | answer | High-level domain
Question,Correct Answer,Incorrect Answer 1 | Question | Correct Answer,Incorrect Answer 1-3 \
| <first> | High-level domain
# HellaSwag: lm-eval cleans the texts, other harnesses do not, so the raw ones count.
ctx,endings,label | ctx | endings | label:0
# OpenBookQA, ARC and CommonsenseQA
question_stem,choices,answerKey | question_stem | choices | <key>
question,choices,answerKey | question | choices | <key>
# MMLU-Pro, MMLU, MuSR
question,options,answer_index | question | options | answer_index | category
question,choices,answer,subject | question | choices | answer | subject
narrative,question,choices,answer_index | narrative,question | <literal choices> | answer_index
# WinoGrande, PIQA, Social IQa, COPA
sentence,option1-2,answer | sentence | option1-2 | answer:1
goal,sol1-2,label | goal | sol1-2 | label:0
context,question,answerA,answerB,answerC | context,question | answerA,answerB,answerC | label:1
premise,choice1-2,question | premise,question | choice1-2 | label:0
# SciQ: the right answer has a field of its own.
question,correct_answer,distractor1 | question | distractor1-3,correct_answer | correct_answer
# TruthfulQA: multiple choice and generation
question,mc1_targets | question | mc1_targets.choices | <labelled 1>
question,best_answer,correct_answers | question | | best_answer | category
# LogiQA, RACE (as packed by lm-eval, which asks for the last problem, and in its original form)
context,question,options,label | context,question | options | label
article,problems | article,problems.-1.question | problems.-1.options | problems.-1.answer
article,question,options,answer | article,question | options | answer
# MathQA, MedMCQA, Belebele, SWAG and MedQA, StoryCloze
Problem,options,correct | Problem | <a ) to e )> | correct | category
question,opa,opb,opc,opd,cop | question | opa,opb,opc,opd | cop | subject_name
flores_passage,question,mc_answer1 | flores_passage,question | mc_answer1-4 | correct_answer_num:1
startphrase,ending0,ending3 | startphrase | ending0-3 | label
sent1,ending0,ending3 | sent1-2 | ending0-3 | label
input_sentence_1,sentence_quiz1-2 | input_sentence_1-4 | sentence_quiz1-2 | answer_right_ending:1
# Worked mathematics: MGSM, MATH, ASDiv, SVAMP
question,answer_number | question | | answer_number
problem,solution | problem | | <box> | type
body,question,answer,formula | body,question | | <without unit>
Body,Question,Answer | Body,Question | | Answer
# Reading: DROP, CoQA, TriviaQA
passage,question,answers | passage,question | | answers.0
story,questions,answers | story,questions.input_text.-1 | | answers.input_text.-1
question,answer,entity_pages | question | | answer.value
# IFEval, HumanEval, MBPP: there is no single right text.
prompt,instruction_id_list | prompt | | <none>
prompt,canonical_solution | prompt | | <none>
text,code,test_list | text | | <none>
prompt,code,test_list | prompt | | <none>
# SuperGLUE: WSC, WiC, MultiRC
text,span1_text,span2_text | text,span1_text,span2_text
word,sentence1,sentence2 | word,sentence1,sentence2
paragraph,question,answer,label | paragraph,question,answer
"""
"""For each data set: fields needed | fields of the question | options | right answer | category.

`choice1-4` are four fields, `answers.0` is the first element of a list, `label:1` a number counted
from 1, and `<box>` one of `_EXTRACTORS`. An integer is the index of the right option, a text its
text or letter; `<none>` means that there is no right answer to compare with.
"""


def _read_shapes() -> Iterator[Shape]:
    for line in _TABLE.strip().splitlines():
        if not line.startswith("#"):
            row = re.sub(r"(\w[\w ]*?)(\d)-(\d)", _expand, line)
            needs, ask, *others = (cell.strip() for cell in row.split("|"))
            options, gold, category = (*others, "", "", "")[:3]
            asked = tuple(map(_follow, ask.split(",")))
            found = _extractor(options), _extractor(gold)
            yield Shape(frozenset(needs.split(",")), asked, *found, category, gold != "<none>")


def _expand(match: re.Match[str]) -> str:
    return ",".join(f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1))


def _extractor(cell: str) -> Extractor | None:
    if "," in cell:
        paths = [_follow(path) for path in cell.split(",")]
        return lambda doc: [path(doc) for path in paths]
    return _EXTRACTORS.get(cell) or (_follow(cell) if cell else None)


def _follow(path: str) -> Extractor:
    if path.isidentifier():
        return itemgetter(path)
    path, _, first = path.partition(":")
    steps = [int(step) if step.lstrip("-").isdigit() else step for step in path.split(".")]

    def extract(doc: Doc) -> Any:
        value: Any = doc
        for step in steps:
            value = value[step] if isinstance(step, str) else _list(value)[step]
        return int(value) - int(first) if first else value

    return extract


SHAPES = tuple(_read_shapes())

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


@lru_cache(maxsize=4096)
def _find_shape(names: tuple[str, ...]) -> Shape:
    """Return the shape for rows with these fields; of an unknown data set, from common names."""
    for shape in SHAPES:
        if shape.needs.issubset(names):
            return shape
    questions = [name for name in QUESTION_FIELDS if name in names]
    if _QUESTIONS.intersection(names):
        questions = [name for name in questions if name not in _WHOLE]
    ask = tuple(map(_follow, questions))
    if set(_OPTIONS).intersection(names):
        return Shape(frozenset(), ask, _usual_options, _usual_gold, "")
    return Shape(frozenset(), ask, None, _worked_answer, "")


def _usual_options(doc: Doc) -> object:
    found = (doc.get(name) for name in _OPTIONS)
    lists = (one.get("text") if isinstance(one, dict) else one for one in found)
    return next(
        (one for one in lists if isinstance(one, list) and {*map(type, one)} <= {str}), None
    )


def _usual_gold(doc: Doc) -> object:
    """Return the index of the right option, from the first field that names one."""
    options = _texts(_usual_options(doc)) or []
    for name in _GOLDS:
        value = doc.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value.strip() in options:
            return options.index(value.strip())
        if (index := option_index(value, len(options))) is not None:
            return index
    return None


def _worked_answer(doc: Doc) -> object:
    """Return the number at the end of a worked answer of GSM8K: `#### 42`."""
    _, mark, after = doc["answer"].rpartition("####")
    return after.strip() if mark else None
