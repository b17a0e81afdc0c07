"""Evaluation items are found in disguised copies, without false matches."""

from __future__ import annotations

import random

import pytest

from disguises import disguised, innocent, measured_items, reworded
from forgetmap.export import DuplicateFinder, MeasuredItem, PlainText

ROWS = 1_000


def find(finder: DuplicateFinder, *messages: str) -> str | None:
    found = finder.find([PlainText.of(messages)])[0]
    return None if found is None else found.why


@pytest.mark.parametrize("seed", [0, 1])
def test_no_disguise_hides_a_measured_item(seed: int) -> None:
    items, dice = measured_items(seed, 700), random.Random(seed)
    chosen = [items[n % len(items)] for n in range(ROWS)]
    rows = [disguised(item, dice) for item in chosen]
    found = DuplicateFinder(items).find([PlainText.of(row) for row in rows])
    missed = [row for row, hit in zip(rows, found, strict=True) if hit is None]
    assert missed == []


def test_rows_about_something_else_are_kept() -> None:
    dice = random.Random(5)
    rows = [PlainText.of(innocent(dice)) for _ in range(ROWS)]
    found = DuplicateFinder(measured_items(0, 700)).find(rows)
    assert sum(hit is not None for hit in found) <= ROWS // 100


def test_slight_rewording_is_found() -> None:
    dice = random.Random(2)
    items = [item for item in measured_items(3, 700) if item.options and len(item.question) > 50]
    texts = [PlainText.of([f"{innocent(dice)[0]} {reworded(item, dice)}"]) for item in items]
    found = DuplicateFinder(items).find(texts)
    assert all(found)
    assert {hit.why for hit in found if hit} >= {"reworded", "part"}


def test_a_batch_says_what_single_texts_say() -> None:
    items, dice = measured_items(1, 100), random.Random(1)
    rows = [disguised(item, dice) if n % 2 else innocent(dice) for n, item in enumerate(items)]
    finder = DuplicateFinder(items)
    together = finder.find([PlainText.of(row) for row in rows])
    assert together == [finder.find([PlainText.of(row)])[0] for row in rows]


BIRDS = MeasuredItem(
    "t", "1", "Which large bird cannot fly over the sea?", ("penguin", "tern"), "penguin"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("WHICH LARGE BIRD CANNOT FLY OVER THE SEA", "same"),
        ("Question: which large bird cannot fly over the sea? (A) tern (B) penguin", "contains"),
        ("Which large bird can not fly over\nthe sea", "same"),
        ("Which large bird surely cannot fly over the sea?", "reworded"),
        ("Which bird cannot sing?", None),
        ("Penguins cannot fly.", None),
        ("penguin, tern", None),
    ],
)
def test_why_a_text_is_left_out(text: str, why: str | None) -> None:
    assert find(DuplicateFinder([BIRDS]), text) == why


def test_a_stem_that_many_items_share_needs_their_options() -> None:
    stem = "Which of these is true?"
    items = [
        MeasuredItem(
            "t", str(n), stem, (f"snow is {n} cold", f"fire is {n} hot"), f"fire is {n} hot"
        )
        for n in (1, 2)
    ]
    finder = DuplicateFinder(items)
    assert find(finder, stem, "B. fire is 2 hot") == "same"
    assert find(finder, f"{stem}\nA. fire is 1 hot\nB. snow is 1 cold") == "contains"
    assert find(finder, stem, "Grass is green.") is None


def test_a_few_letters_need_their_answer_and_a_short_message() -> None:
    finder = DuplicateFinder([MeasuredItem("t", "1", "17+25=?", gold="42")])
    assert find(finder, "What is 17 + 25?", "42") == "contains"
    assert find(finder, "What is 17 + 25?", "It is 43.") is None
    assert find(finder, "Rooms 17, 25 and 42 of the old hotel by the sea were never let.") is None


def test_another_number_is_another_question() -> None:
    question = "A train leaves the northern town at {} and arrives by noon: how fast is it?"
    finder = DuplicateFinder([MeasuredItem("t", "1", question.format(7))])
    assert find(finder, question.format(7)) == "same"
    short = "How many of {} green apples are left for Tom and his sister?"
    assert find(DuplicateFinder([MeasuredItem("t", "1", short.format(7))]), short.format(8)) is None


def test_items_without_a_question_are_known_by_their_options() -> None:
    endings = (
        "she opens the window and looks at the rain",
        "she closes the book and goes to sleep",
    )
    finder = DuplicateFinder([MeasuredItem("t", "1", options=endings, gold=endings[0])])
    assert find(finder, f"Choose: {endings[1]}; or {endings[0]}") == "contains"
    assert find(finder, f"At night {endings[1]}.") is None


def test_options_inside_a_question_may_come_in_another_order() -> None:
    item = MeasuredItem("t", "1", "Which bird swims?\nA. owl\nB. penguin\nC. wren", gold="B")
    finder = DuplicateFinder([item])
    assert find(finder, "which bird swims? (1) wren (2) owl (3) penguin") == "contains"
    assert find(finder, "Which bird sings? A. owl B. lark C. robin") is None


def test_of_a_prompt_the_last_block_is_the_question() -> None:
    shots = "Answer in one word.\n\nQ: Which bird sings at night?\nA: nightingale\n\n"
    prompts = [f"{shots}Q: Which bird swims {place}?\nA:" for place in ("north", "south")]
    finder = DuplicateFinder(
        [MeasuredItem("t", str(n), text, is_bare=False) for n, text in enumerate(prompts)]
    )
    assert find(finder, "Tell me: which bird swims south?") == "contains"
    assert find(finder, "Which bird swims west?") is None


def test_where_only_a_hash_is_known_exact_copies_are_found() -> None:
    from forgetmap.records import text_hash

    item = MeasuredItem("t", "1", question_hash=text_hash("Which bird sings?"))
    assert find(DuplicateFinder([item]), "Which  bird sings?") == "same"
    assert find(DuplicateFinder([item]), "Which bird swims?") is None


def test_instructions_that_all_items_share_give_nothing_away() -> None:
    head = "Read the passage with care, think about it step by step, and name the best answer: "
    items = [
        MeasuredItem("t", str(n), f"{head} why is case {n} odd, and who says so?")
        for n in range(30)
    ]
    finder = DuplicateFinder(items)
    assert find(finder, f"{head} what does the author think of the harvest?") is None
    assert find(finder, f"So: {head} Why is case 12 odd - and who says so") == "contains"


def test_nothing_measured_finds_nothing() -> None:
    assert find(DuplicateFinder([]), "any text of some length at all") is None
