"""Results that many wait for are made once; searches that wait share a pass."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from forgetmap.serve.async_cache import AsyncLRU, BatchedSearch
from forgetmap.serve.store import PairTable

ONE, OTHER = (PairTable(name, (), (), (), asked_alike=True) for name in ("one", "other"))


class Passes:
    """Notes what is searched together; the first pass lasts until it is let go."""

    def __init__(self) -> None:
        self.made: list[tuple[str, list[str]]] = []
        self.started, self.go = threading.Event(), threading.Event()

    def search(self, table: PairTable, texts: Sequence[str]) -> list[str]:
        self.made.append((table.database, list(texts)))
        self.started.set()
        assert self.go.wait(10)
        if "fails" in texts:
            raise OSError("no disk")
        return [f"{table.database}: {text}" for text in texts]


def ask_while_the_first_runs(
    asked: Sequence[tuple[PairTable, str]], most: int = 16
) -> tuple[Passes, list[str | BaseException]]:
    passes = Passes()

    async def ask() -> list[str | BaseException]:
        with ThreadPoolExecutor(1) as where:
            together = BatchedSearch(passes.search, most, where)
            waiting = [asyncio.create_task(together.find(*each)) for each in asked]
            assert await asyncio.to_thread(passes.started.wait, 10)
            passes.go.set()
            return await asyncio.gather(*waiting, return_exceptions=True)

    return passes, asyncio.run(ask())


def test_those_that_wait_are_searched_in_one_pass_per_table() -> None:
    asked = [(ONE, "a"), (ONE, "b"), (OTHER, "c"), (ONE, "d")]
    passes, found = ask_while_the_first_runs(asked)
    assert found == ["one: a", "one: b", "other: c", "one: d"]
    assert sorted(text for _, texts in passes.made for text in texts) == ["a", "b", "c", "d"]
    assert len(passes.made) <= 3


def test_a_pass_has_its_limit() -> None:
    passes, found = ask_while_the_first_runs([(ONE, str(number)) for number in range(10)], most=4)
    assert found == [f"one: {number}" for number in range(10)]
    assert max(len(texts) for _, texts in passes.made) == 4


def test_a_failed_pass_is_told_to_all_of_it_and_to_nobody_else() -> None:
    _, found = ask_while_the_first_runs([(ONE, "fails"), (OTHER, "fine")])
    assert isinstance(found[0], OSError)
    assert found[1] == "other: fine"


def test_a_result_is_made_once_and_the_oldest_go() -> None:
    made, dropped = [], []

    async def make(name: str) -> str:
        made.append(name)
        await asyncio.sleep(0)
        return name

    async def drop(name: str) -> None:
        dropped.append(name)

    async def use() -> None:
        kept: AsyncLRU[str] = AsyncLRU(2, drop)
        await asyncio.gather(*(kept.get("a", lambda: make("a")) for _ in range(5)))
        for name in ("b", "a", "c"):
            await kept.get(name, lambda name=name: make(name))  # type: ignore[misc]

    asyncio.run(use())
    assert made == ["a", "b", "c"]
    assert dropped == ["b"]


def test_what_failed_is_tried_again() -> None:
    tries = []

    async def make() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no disk")
        return "made"

    async def drop(_: str) -> None: ...

    async def use() -> str:
        kept: AsyncLRU[str] = AsyncLRU(2, drop)
        with pytest.raises(OSError, match="no disk"):
            await kept.get("a", make)
        return await kept.get("a", make)

    assert asyncio.run(use()) == "made"
