"""Rows of well-known data sets give the question, the options and the right answer."""

from __future__ import annotations

from typing import Any

import pytest

from forgetmap.sources.datasets import DatasetItem, as_item, option_index

ARC = {"text": ["tin", "oak"], "label": ["1", "2"]}
KNOWN: dict[str, tuple[dict[str, Any], DatasetItem]] = {
    "arc": (
        {"id": "x", "question": "Which grows?", "choices": ARC, "answerKey": "2"},
        DatasetItem("Which grows?", ["tin", "oak"], "oak", 1),
    ),
    "openbookqa": (
        {"id": "x", "question_stem": "It grows:", "choices": ARC, "answerKey": "1"},
        DatasetItem("It grows:", ["tin", "oak"], "tin", 0),
    ),
    "mmlu": (
        {"question": "Q?", "subject": "law", "choices": ["a b", "c d"], "answer": 1},
        DatasetItem("Q?", ["a b", "c d"], "c d", 1, "law"),
    ),
    "mmlu-pro": (
        {
            "question_id": 7,
            "question": "Q?",
            "options": ["ox", "hen", "cat"],
            "answer": "C",
            "answer_index": 2,
            "category": "zoo",
        },
        DatasetItem("Q?", ["ox", "hen", "cat"], "cat", 2, "zoo"),
    ),
    "hellaswag cleaned by lm-eval": (
        {
            "ctx": "He sat [substeps]",
            "endings": ["down.", "up [x]."],
            "label": "1",
            "query": "Sitting: He sat",
            "choices": ["down.", "up ."],
            "gold": 1,
        },
        DatasetItem("He sat [substeps]", ["down.", "up [x]."], "up [x].", 1),
    ),
    "winogrande": (
        {"sentence": "The _ broke.", "option1": "cup", "option2": "bag", "answer": "1"},
        DatasetItem("The _ broke.", ["cup", "bag"], "cup", 0),
    ),
    "social iqa": (
        {
            "context": "Al fell.",
            "question": "Why?",
            "answerA": "ice",
            "answerB": "joy",
            "answerC": "tea",
            "label": "3",
        },
        DatasetItem("Al fell.\nWhy?", ["ice", "joy", "tea"], "tea", 2),
    ),
    "sciq": (
        {
            "question": "Q?",
            "distractor1": "a1",
            "distractor2": "a2",
            "distractor3": "a3",
            "correct_answer": "a4",
            "support": "Long text.",
        },
        DatasetItem("Q?", ["a1", "a2", "a3", "a4"], "a4", 3),
    ),
    "truthfulqa": (
        {
            "question": "Q?",
            "mc1_targets": {"choices": ["no", "yes"], "labels": [0, 1]},
            "mc2_targets": {"choices": ["no", "yes", "so"], "labels": [0, 1, 1]},
        },
        DatasetItem("Q?", ["no", "yes"], "yes", 1),
    ),
    "race packed by lm-eval": (
        {
            "article": "Text.",
            "problems": "[{'question': 'Old?', 'options': ['a', 'b'], 'answer': 'A'},"
            " {'question': 'New?', 'options': ['red', 'blue'], 'answer': 'B'}]",
        },
        DatasetItem("Text.\nNew?", ["red", "blue"], "blue", 1),
    ),
    "mathqa": (
        {
            "Problem": "P?",
            "options": "a ) 38 , b ) 1,250 , c ) none of these",
            "correct": "b",
            "category": "gain",
        },
        DatasetItem("P?", ["38", "1,250", "none of these"], "1,250", 1, "gain"),
    ),
    "gsm8k": (
        {"question": "How many?", "answer": "First 2.\nThen 3.\n#### 1,005"},
        DatasetItem("How many?", gold="1,005"),
    ),
    "math without answer field": (
        {"problem": "P", "solution": r"So \boxed{1} or \boxed{\frac{1}{2}}.", "type": "Algebra"},
        DatasetItem("P", gold=r"\frac{1}{2}", category="Algebra"),
    ),
    "asdiv": (
        {"body": "Two pens.", "question": "How many?", "answer": "2 (pens)", "formula": "2=2"},
        DatasetItem("Two pens.\nHow many?", gold="2"),
    ),
    "drop": (
        {"passage": "Text.", "question": "Who?", "answers": [["Ann", "Bo"], ["Bo"]]},
        DatasetItem("Text.\nWho?", gold="Ann, Bo"),
    ),
    "triviaqa": (
        {"question": "Who?", "answer": {"value": "Ann", "aliases": []}, "entity_pages": {}},
        DatasetItem("Who?", gold="Ann"),
    ),
    "ifeval": (
        {"key": 1, "prompt": "Write.", "instruction_id_list": ["x"], "kwargs": []},
        DatasetItem("Write.", has_gold=False),
    ),
    "boolq": ({"passage": "Text.", "question": "is it", "label": 1}, DatasetItem("Text.\nis it")),
    "rte": ({"sentence1": "A.", "sentence2": "B.", "label": 0}, DatasetItem("A.\nB.")),
    "bbh": ({"input": "not True is", "target": "False"}, DatasetItem("not True is")),
    "agieval": (
        {"query": "Q: what?", "choices": ["(A) ox", "(B) hen"], "gold": [1]},
        DatasetItem("Q: what?", ["(A) ox", "(B) hen"], "(B) hen", 1),
    ),
    "letters are no options": (
        {"prompt": "A. ox B. hen", "choices": ["A", "B"], "gold": 1},
        DatasetItem("A. ox B. hen"),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_row(name: str) -> None:
    doc, expected = KNOWN[name]
    assert as_item(doc) == expected


def test_gpqa_is_the_same_however_its_options_were_shuffled() -> None:
    texts = {
        "Question": "Q?",
        "Correct Answer": "right",
        **{f"Incorrect Answer {n}": f"wrong {n}" for n in (1, 2, 3)},
    }
    shown = ["wrong 2", "right", "wrong 1", "wrong 3"]
    shuffled = {f"choice{n}": text for n, text in enumerate(shown, start=1)}
    first, raw = as_item({**texts, **shuffled, "answer": "(B)"}), as_item(texts)
    assert (first.question, first.gold, first.gold_index) == ("Q?", "right", 1)
    assert first.options == shown
    assert (raw.question, raw.gold) == (first.question, first.gold)
    assert sorted(raw.options or []) == sorted(shown)


def test_a_row_of_no_known_fields_is_its_own_question_whatever_their_order() -> None:
    assert as_item({"b": 1, "a": "x"}) == as_item({"a": "x", "b": 1})
    assert as_item({"b": 1, "a": "x"}).question == '{"a": "x", "b": 1}'


@pytest.mark.parametrize(
    "doc",
    [
        None,
        [],
        "text",
        3,
        {},
        {"question": None, "choices": None, "answerKey": None},
        {"question": ["a"], "choices": {"text": "no list", "label": 3}, "answerKey": []},
        {"article": 1, "problems": "[broken"},
        {"problem": "P", "solution": r"\boxed{never closed"},
        {"question": "", "answer": 5},
        {"sentence": "The _", "option1": {}, "option2": [], "answer": "first"},
    ],
)
def test_anything_gives_an_item_with_a_question(doc: object) -> None:
    assert as_item(doc).question.strip()


@pytest.mark.parametrize(
    ("value", "place"),
    [(2, 2), ("2", 2), ("C", 2), ("(c)", 2), ("C.", 2), (4, None), ("E", None), (-1, None),
     (True, 1), (None, None), ("", None), ("yes", None), ([1], None), ("9" * 30, None)],
)  # fmt: skip
def test_place_of(value: object, place: int | None) -> None:
    assert option_index(value, 4) == place
