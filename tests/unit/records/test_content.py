"""Values derived from texts: hashes, the text of letters, the number of options, ids."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from xxhash import xxh3_64

from forgetmap.errors import FieldError
from forgetmap.sources.open import open_run

Row = dict[str, Any]
QUESTION = "What is the capital of Italy?"


def digest(text: str) -> int:
    return int.from_bytes(xxh3_64(text.encode()).digest(), "big") - 2**63


def derived(folder: Path, *rows: Row) -> list[Row]:
    """The rows as a run has them, in the order of the file."""
    path = folder / "table"
    path.write_text("".join(json.dumps({"task": "t", "score": 1} | row) + "\n" for row in rows))
    run = open_run(path)
    assert run.texts is not None
    return [dict(row) for row in run.scores.collect().rows(named=True)]


def item(number: int = 0, **cells: Any) -> Row:
    return {"item": str(number), "question": QUESTION, **cells}


def test_hashes_are_those_of_the_normalised_texts(tmp_path: Path) -> None:
    (row,) = derived(
        tmp_path,
        item(options=[" Rome", "Oslo"], gold="Rome ", prompt=f"Question:\n{QUESTION}"),
    )
    assert row["question_hash"] == digest(QUESTION)
    assert row["options_hash"] == digest("Oslo\x1fRome")
    assert row["gold_hash"] == digest("Rome")
    assert row["prompt_hash"] == digest(f"Question: {QUESTION}")
    assert row["k"] == 2


@pytest.mark.parametrize("gold", ["B", "b", "(B)", "Rome", " Rome "])
def test_a_letter_and_a_text_are_the_same_gold(gold: str, tmp_path: Path) -> None:
    (row,) = derived(tmp_path, item(options=["Oslo", "Rome"], gold=gold, choice="A"))
    assert (row["gold"], row["gold_hash"]) == ("Rome", digest("Rome"))
    assert row["choice"] == "Oslo"


def test_shuffled_options_are_the_same_item(tmp_path: Path) -> None:
    orders = list(permutations(["Rome", "Oslo", "Bern"]))
    rows = derived(
        tmp_path,
        *(
            item(n, options=list(order), gold="ABC"[order.index("Rome")])
            for n, order in enumerate(orders)
        ),
    )
    keys = {(row["question_hash"], row["options_hash"], row["gold_hash"]) for row in rows}
    assert keys == {(digest(QUESTION), digest("Bern\x1fOslo\x1fRome"), digest("Rome"))}


@pytest.mark.parametrize("written", ['["Rome", "Oslo"]', "['Rome', 'Oslo']", ["Rome", "Oslo"]])
def test_options_may_be_written_as_text(written: object, tmp_path: Path) -> None:
    (row,) = derived(tmp_path, item(options=written))
    assert (row["options_hash"], row["k"]) == (digest("Oslo\x1fRome"), 2)


def test_a_given_k_is_believed(tmp_path: Path) -> None:
    first, second, third = derived(
        tmp_path, item(0, options=["a", "b"], k=4), item(1, options=["a", "b"]), item(2)
    )
    assert (first["k"], second["k"], third["k"]) == (4, 2, None)


@pytest.mark.parametrize("nothing", [None, "", "  "])
def test_nothing_has_no_hash(nothing: str | None, tmp_path: Path) -> None:
    _, row = derived(
        tmp_path,
        item(0, gold="g", options=["a"]),
        {"item": "1", "question": nothing, "gold": nothing, "options": nothing},
    )
    assert (row["question_hash"], row["gold_hash"], row["options_hash"]) == (None, None, None)


def test_without_ids_items_are_numbered_within_equal_content(tmp_path: Path) -> None:
    asked = [("t", "one"), ("t", "two"), ("t", "one"), ("u", "one"), ("t", " one ")]
    rows = derived(tmp_path, *({"task": task, "question": text} for task, text in asked))

    def made(text: str, occurrence: int) -> str:
        return f"{digest(text) % 2**64:016x}#{occurrence}"

    assert [row["item"] for row in rows] == [
        made("one", 0),
        made("two", 0),
        made("one", 1),
        made("one", 0),
        made("one", 2),
    ]
    assert open_run(tmp_path / "table").ids_are_occurrences


def test_repeats_and_metrics_are_no_further_occurrences(tmp_path: Path) -> None:
    rows = derived(
        tmp_path,
        *(
            {"question": "q", "repeat": repeat, "metric": metric}
            for repeat in (0, 1)
            for metric in ("acc", "f1")
        ),
    )
    assert len({row["item"] for row in rows}) == 1


def test_made_ids_tell_right_answers_and_options_apart(tmp_path: Path) -> None:
    rows = derived(
        tmp_path,
        {"question": "q", "gold": "a", "options": ["a", "b"]},
        {"question": "q", "gold": "b", "options": ["a", "b"]},
        {"question": "q", "gold": "a", "options": ["a", "c"]},
    )
    assert len({row["item"] for row in rows}) == 3


def test_texts_find_the_items_whose_ids_were_made(tmp_path: Path) -> None:
    derived(tmp_path, *({"question": "q", "response": text} for text in ("first", "second")))
    run = open_run(tmp_path / "table")
    assert run.texts is not None
    responses = {row["item"]: row["response"] for row in run.texts.collect().rows(named=True)}
    items = [row["item"] for row in run.scores.collect().rows(named=True)]
    assert [responses[each] for each in items] == ["first", "second"]


def test_without_ids_and_question_an_item_has_no_identity(tmp_path: Path) -> None:
    with pytest.raises(FieldError) as caught:
        derived(tmp_path, {"question": "q"}, {"question": " "})
    assert (caught.value.line, caught.value.field) == (2, "question")


def test_hashes_that_were_recorded_are_believed(tmp_path: Path) -> None:
    (row,) = derived(tmp_path, item(question_hash=5))
    assert row["question_hash"] == 5
