"""Work that many wait for: made once, kept for a while, and searches put together in one pass."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from forgetmap.serve.store import PairTable

T = TypeVar("T")


class Kept(Generic[T]):
    """The last few results, each made once however many ask for it at the same time.

    Args:
        most: how many; those asked for longest ago go first.
        drop: called with each that goes.
    """

    def __init__(self, most: int, drop: Callable[[T], Awaitable[None]]) -> None:
        self._most = most
        self._drop = drop
        self._made: OrderedDict[Hashable, asyncio.Future[T]] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The result for a key, made if it is not there."""
        if key not in self._made:
            self._made[key] = asyncio.ensure_future(make())
            self._made[key].add_done_callback(partial(self._forget_failed, key))
        self._made.move_to_end(key)
        # One client that goes away must not take it from the others.
        found = await asyncio.shield(self._made[key])
        await self._make_room()
        return found

    def _forget_failed(self, key: Hashable, done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._made.pop(key, None)

    async def _make_room(self) -> None:
        done = [key for key, each in self._made.items() if each.done()]
        for key in done[: max(len(self._made) - self._most, 0)]:
            await self._drop(self._made.pop(key).result())


Search = Callable[[PairTable, Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    table: PairTable
    text: str
    answer: asyncio.Future[str]


class Together:
    """Searches that wait for each other are made in one pass over the texts.

    Reading the texts takes longer than looking for one text more: ten at once take twice as long
    as one. A pass takes all processors for a while, so there is one at a time.

    Args:
        search: looks for several texts in one table.
        most: texts in one pass.
        where: the thread that it runs in.
    """

    def __init__(self, search: Search, most: int, where: Executor) -> None:
        self._search = search
        self._most = most
        self._where = where
        self._waiting: list[_Asked] = []
        self._work: asyncio.Task[None] | None = None

    async def find(self, table: PairTable, text: str) -> str:
        """The hits for a text."""
        asked = _Asked(table, text, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._make_passes())
        return await asked.answer

    async def _make_passes(self) -> None:
        while self._waiting:
            first = self._waiting[0].table.database
            alike = [each for each in self._waiting if each.table.database == first][: self._most]
            self._waiting = [each for each in self._waiting if each not in alike]
            await self._make_pass(alike)

    async def _make_pass(self, alike: Sequence[_Asked]) -> None:
        texts = [each.text for each in alike]
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._where, self._search, alike[0].table, texts)
        except Exception as error:  # noqa: BLE001  # whoever asked is told, each of them
            for each in alike:
                each.answer.set_exception(error)
            return
        for each, hits in zip(alike, found, strict=True):
            each.answer.set_result(hits)
