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


class AsyncLRU(Generic[T]):
    """The last few results, each made once however many ask for it at the same time.

    Args:
        limit: how many; those asked for longest ago go first.
        drop: called with each that goes.
    """

    def __init__(self, limit: int, drop: Callable[[T], Awaitable[None]]) -> None:
        self._limit = limit
        self._drop = drop
        self._results: OrderedDict[Hashable, asyncio.Future[T]] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The result for a key, made if it is not there."""
        if key not in self._results:
            self._results[key] = asyncio.ensure_future(make())
            self._results[key].add_done_callback(partial(self._forget_failed, key))
        self._results.move_to_end(key)
        # One client that goes away must not take it from the others.
        result = await asyncio.shield(self._results[key])
        await self._make_room()
        return result

    def _forget_failed(self, key: Hashable, done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._results.pop(key, None)

    async def _make_room(self) -> None:
        done = [key for key, result in self._results.items() if result.done()]
        for key in done[: max(len(self._results) - self._limit, 0)]:
            await self._drop(self._results.pop(key).result())


Search = Callable[[PairTable, Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True, eq=False)
class _SearchRequest:
    table: PairTable
    text: str
    answer: asyncio.Future[str]


class BatchedSearch:
    """Searches that wait for each other are made in one pass over the texts.

    Reading the texts takes longer than looking for one text more: ten at once take twice as long
    as one. A pass takes all processors for a while, so there is one at a time.

    Args:
        search: looks for several texts in one table.
        limit: texts in one pass.
        executor: the thread that it runs in.
    """

    def __init__(self, search: Search, limit: int, executor: Executor) -> None:
        self._search = search
        self._limit = limit
        self._executor = executor
        self._waiting: list[_SearchRequest] = []
        self._work: asyncio.Task[None] | None = None

    async def find(self, table: PairTable, text: str) -> str:
        """The hits for a text."""
        request = _SearchRequest(table, text, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._make_passes())
        return await request.answer

    async def _make_passes(self) -> None:
        while self._waiting:
            first = self._waiting[0].table.database
            batch = [request for request in self._waiting if request.table.database == first][
                : self._limit
            ]
            self._waiting = [request for request in self._waiting if request not in batch]
            await self._make_pass(batch)

    async def _make_pass(self, batch: Sequence[_SearchRequest]) -> None:
        texts = [request.text for request in batch]
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(
                self._executor, self._search, batch[0].table, texts
            )
        except Exception as error:  # noqa: BLE001  # whoever asked is told, each of them
            for request in batch:
                request.answer.set_exception(error)
            return
        for request, hits in zip(batch, results, strict=True):
            request.answer.set_result(hits)
