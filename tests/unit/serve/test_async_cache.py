"""Concurrent requests compute a result once; waiting searches share a pass."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

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


async def used(kept: AsyncLRU[str], key: str, make: Callable[[], Awaitable[str]]) -> str:
    async with kept.use(key, make) as result:
        return result


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
        await asyncio.gather(*(used(kept, "a", lambda: make("a")) for _ in range(5)))
        for name in ("b", "a", "c"):
            await used(kept, name, partial(make, name))

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
            await used(kept, "a", make)
        return await used(kept, "a", make)

    assert asyncio.run(use()) == "made"


def test_what_is_in_use_stays_and_all_that_goes_is_dropped_once() -> None:
    """Each is dropped in a thread, which takes a while: others ask for room meanwhile."""
    dropped: list[str] = []
    gone: set[str] = set()
    failed: list[str] = []

    async def make(name: str) -> str:
        await asyncio.sleep(0)
        return name

    def drop(name: str) -> None:
        gone.add(name)
        dropped.append(name)

    async def read(kept: AsyncLRU[str], name: str, turn: int) -> None:
        async with kept.use(name, partial(make, f"{name}, made in {turn}")) as result:
            await asyncio.to_thread(lambda: None)
            failed.extend([result] if result in gone else [])

    async def use() -> None:
        kept: AsyncLRU[str] = AsyncLRU(4, lambda name: asyncio.to_thread(drop, name))
        for turn in range(4):
            await asyncio.gather(*(read(kept, f"{number % 40}", turn) for number in range(120)))

    asyncio.run(use())
    assert not failed
    assert dropped
    assert max(Counter(dropped).values()) == 1


def test_what_a_client_that_went_away_asked_for_goes_like_all_else() -> None:
    dropped: list[str] = []

    async def drop(name: str) -> None:
        dropped.append(name)

    async def use() -> None:
        kept: AsyncLRU[str] = AsyncLRU(1, drop)
        started, go = asyncio.Event(), asyncio.Event()

        async def make(name: str) -> str:
            started.set()
            await go.wait()
            return name

        client = asyncio.create_task(used(kept, "a", partial(make, "a")))
        await started.wait()
        client.cancel()
        await asyncio.gather(client, return_exceptions=True)
        go.set()
        for name in ("b", "c"):
            await used(kept, name, partial(make, name))

    asyncio.run(use())
    assert dropped == ["a", "b"]
