"""Queries of pairs in the store, checked against plain Python rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.records import connection
from forgetmap.serve.store import PairTable, Selection, Store, rare_part
from served_runs import AFTER, BEFORE, Row, add_pair, results, write_folder

KINDS = {(1, 0): "forgotten", (0, 1): "gained", (1, 1): "kept", (0, 0): "never"}


@pytest.fixture(scope="module")
def store() -> Store:
    return Store()


@pytest.fixture(scope="module")
def rows() -> tuple[list[Row], list[Row]]:
    return results(BEFORE), results(AFTER)


@pytest.fixture(scope="module")
def table(
    store: Store, rows: tuple[list[Row], list[Row]], tmp_path_factory: pytest.TempPathFactory
) -> PairTable:
    folder = tmp_path_factory.mktemp("store")
    before, after = rows
    sides = write_folder(folder / "b", before), write_folder(folder / "a", after)
    return add_pair(store, fm.compare(*sides))


def expected(rows: tuple[list[Row], list[Row]], **wanted: str) -> list[str]:
    """Ids of the items that pass, in the order of the list."""
    found = []
    for before, after in zip(*rows, strict=True):
        kind = KINDS[int(before["score"]), int(after["score"])]
        reason = "no_answer" if after["outcome"] == "no_answer" else "wrong"
        item = {
            "transition": kind,
            "task": before["task"],
            "category": before["category"],
            "reason": reason if kind == "forgotten" else None,
        }
        if all(item[name] == value for name, value in wanted.items()):
            found.append((kind, before["task"], before["item"]))
    return [item for _, _, item in sorted(found)]


def listed(store: Store, table: PairTable, chosen: Selection, hits: str | None = None) -> list[str]:
    total, found = store.page(table, chosen, hits, offset=0, limit=500)
    assert total == len(found)
    return [row["item"] for row in found]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"transition": "forgotten"},
        {"task": "t1"},
        {"category": "y", "transition": "never"},
        {"reason": "no_answer"},
        {"reason": "wrong", "task": "t2"},
        {"task": "none such"},
        {"task": "t1' OR '1'='1"},
    ],
)
def test_filters_keep_what_they_should(
    store: Store, table: PairTable, rows: tuple[list[Row], list[Row]], wanted: dict[str, str]
) -> None:
    assert listed(store, table, Selection(**wanted)) == expected(rows, **wanted)


def test_facets_count_every_value(table: PairTable) -> None:
    assert dict(table.facets["transition"]) == dict.fromkeys(KINDS.values(), 6)
    assert dict(table.facets["category"]) == {"x": 8, "y": 8}
    assert sum(count for _, count in table.facets["reason"]) == 6


def test_pages_follow_each_other_without_gap(store: Store, table: PairTable) -> None:
    chosen = Selection()
    whole = listed(store, table, chosen)
    parts = [store.page(table, chosen, None, offset=at, limit=7) for at in range(0, 28, 7)]
    assert [row["item"] for _, found in parts for row in found] == whole
    assert {total for total, _ in parts} == {24}
    assert store.page(table, chosen, None, offset=99, limit=7) == (24, [])


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("what is 7?", [7]),
        ("JAJAJAJA TO", [4, 9, 14, 19]),
        ("i0", list(range(10))),
        ("<b>1</b>", [place for place in range(24) if place % 4 != 3]),
        ("%", []),
        ("' OR 1=1 --", []),
    ],
)
def test_search_finds_text_of_either_side(
    store: Store, table: PairTable, text: str, places: list[int]
) -> None:
    [hits] = store.search(table, [text])
    assert sorted(listed(store, table, Selection(q=text), hits)) == [f"i{p:02d}" for p in places]
    within = listed(store, table, Selection(q=text, transition="kept"), hits)
    assert sorted(within) == [f"i{p:02d}" for p in places if p % 4 == 0]
    store.drop_hits(hits)


def test_longest_responses_come_first(store: Store, table: PairTable) -> None:
    found = listed(store, table, Selection(sort="longest"))
    lengths = {row["item"]: len(row["response"]) for row in results(AFTER)}
    assert [lengths[item] for item in found] == sorted(lengths.values(), reverse=True)
    shortest = listed(store, table, Selection(sort="shortest"))
    assert [lengths[item] for item in shortest] == sorted(lengths.values())


@pytest.mark.parametrize("sort", ["", "category", "reason", "longest", "task", "transition"])
def test_an_item_knows_its_place(store: Store, table: PairTable, sort: str) -> None:
    chosen = Selection(sort=sort)
    _, found = store.page(table, chosen, None, offset=0, limit=50)
    places = [store.find(table, chosen, None, (row["task"], row["item"], 0))[1] for row in found]
    assert places == list(range(24))


def test_an_item_has_all_its_texts(
    store: Store, table: PairTable, rows: tuple[list[Row], list[Row]]
) -> None:
    item, _ = store.find(table, Selection(), None, ("t1", "i01", 0))
    assert item is not None
    before, after = rows[0][1], rows[1][1]
    shown: dict[str, Any] = {
        "question": before["question"],
        "response_before": before["response"],
        "response_after": after["response"],
        "answer_before": "answer 1",
        "answer_after": "elsewhere",
        "transition": "forgotten",
        "reason": "no_answer",
    }
    assert {name: item[name] for name in shown} == shown


def test_what_is_not_there_is_not_found(store: Store, table: PairTable) -> None:
    assert store.find(table, Selection(), None, ("t1", "nobody", 0)) == (None, None)
    item, place = store.find(table, Selection(transition="gained"), None, ("t1", "i01", 0))
    assert (item or {})["item"] == "i01"
    assert place is None


def test_runs_without_texts_are_listed_and_searched(store: Store, tmp_path: Path) -> None:
    bare = [
        [{name: row[name] for name in ("task", "item", "score")} for row in results(right)]
        for right in (BEFORE, AFTER)
    ]
    before, after = (write_folder(tmp_path / f"{n}", rows) for n, rows in enumerate(bare))
    comparison = fm.compare(before, after)
    comparison = replace(
        comparison,
        before=replace(comparison.before, texts=None),
        after=replace(comparison.after, texts=None),
    )
    table = add_pair(store, comparison)
    assert len(listed(store, table, Selection())) == 24
    assert listed(store, table, Selection(reason="unknown")) == [
        row["item"]
        for row in sorted(bare[0], key=lambda row: (row["task"], row["item"]))
        if int(row["item"][1:]) % 4 == 1
    ]
    assert listed(store, table, Selection(), store.search(table, ["I07"])[0]) == ["i07"]


def test_texts_that_stand_twice_double_no_item(store: Store, tmp_path: Path) -> None:
    """A table with two metrics has the texts of every item twice."""
    sides = []
    for name, right in (("b", BEFORE), ("a", AFTER)):
        rows = results(right)
        doubled = [row | {"metric": metric} for row in rows for metric in ("acc", "acc_norm")]
        sides.append(write_folder(tmp_path / name, doubled))
    table = add_pair(store, fm.compare(sides[0], sides[1], metric="acc"))
    assert len(listed(store, table, Selection())) == 24


def test_a_dropped_pair_leaves_the_others(store: Store, table: PairTable, tmp_path: Path) -> None:
    sides = [write_folder(tmp_path / n, results(r)) for n, r in (("b", AFTER), ("a", BEFORE))]
    other = add_pair(store, fm.compare(sides[0], sides[1]))
    store.drop(other)
    assert len(listed(store, table, Selection())) == 24


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("castle 4999", "4999"),
        ("zebra", "zebra"),
        ("ab", "ab"),
        ("a", "a"),
        ("eeez", "eeez"),
        ("eqez", "qez"),
    ],
)
def test_the_rare_part_is_an_end_of_the_text(text: str, part: str) -> None:
    assert rare_part(text) == part
    assert text.endswith(part)


def test_several_texts_are_found_in_one_pass(store: Store, table: PairTable) -> None:
    texts = ["what is 7?", "nothing of that", "i0", "JaJaJaJa to 9,"]
    found = [listed(store, table, Selection(), hits) for hits in store.search(table, texts)]
    assert [sorted(each) for each in found] == [
        ["i07"],
        [],
        [f"i0{place}" for place in range(10)],
        ["i09"],
    ]


def test_search_reads_prompts_options_and_long_answers(store: Store, tmp_path: Path) -> None:
    """Also where only one side has them, and beyond what a list shows."""
    before, after = results(BEFORE), results(AFTER)
    before[3] |= {"prompt": "Think of BADGERS: What is 3?"}
    after[4] |= {"prompt": "Think of otters: What is 4?", "options": ["Heron", "Stork"]}
    after[5] |= {"answer": f"{'long ' * 200}puffin", "question": f"{'why ' * 200}lapwing"}
    sides = write_folder(tmp_path / "b", before), write_folder(tmp_path / "a", after)
    table = add_pair(store, fm.compare(*sides, pair_by="id"))
    expected = {
        "badgers": "i03",
        "OTTERS": "i04",
        "stork": "i04",
        "puffin": "i05",
        "lapwing": "i05",
    }
    found = zip(expected, store.search(table, list(expected)), strict=True)
    assert {text: listed(store, table, Selection(), hits) for text, hits in found} == {
        text: [item] for text, item in expected.items()
    }


def test_a_list_cuts_texts_visibly_and_the_item_has_all(store: Store, tmp_path: Path) -> None:
    long = {"question": "q" * 2000, "answer": "a" * 2000, "gold": "g" * 2000}
    before, after = (
        write_folder(tmp_path / name, [row | long for row in results(right)])
        for name, right in (("b", BEFORE), ("a", AFTER))
    )
    table = add_pair(store, fm.compare(before, after, pair_by="id"))
    _, rows = store.page(table, Selection(), None, offset=0, limit=1)
    item, _ = store.find(table, Selection(), None, (rows[0]["task"], rows[0]["item"], 0))
    assert item is not None
    for name in ("question", "answer_before", "answer_after", "gold"):
        whole = name[0] * 2000
        assert rows[0][name] == whole[:500] + "…"
        assert item[name] == whole


def test_questions_come_from_the_side_that_has_them(store: Store, tmp_path: Path) -> None:
    bare = [{k: v for k, v in row.items() if k != "question"} for row in results(BEFORE)]
    sides = write_folder(tmp_path / "b", bare), write_folder(tmp_path / "a", results(AFTER))
    table = add_pair(store, fm.compare(*sides, pair_by="id"))
    _, rows = store.page(table, Selection(task="t1"), None, offset=0, limit=50)
    assert {row["question"] for row in rows} == {f"What is {n}?" for n in range(1, 24, 3)}


def test_the_limit_on_memory_ends_with_the_store() -> None:
    """The engine is that of the whole process."""
    question = "SELECT current_setting('memory_limit')"
    before = connection().execute(question).fetchall()
    store = Store("512MB")
    assert connection().execute(question).fetchall() == [("488.2 MiB",)]
    store.close()
    assert connection().execute(question).fetchall() == before
