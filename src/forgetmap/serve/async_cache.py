"""Cache of asynchronous results, and searches that are batched into one pass."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from forgetmap.serve.store import PairTable

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _KeptResult(Generic[T]):
    """A result, which may be pending, and the number of its users."""

    result: asyncio.Future[T]
    users: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether there is a result without users."""
        done = self.result.done() and not self.result.cancelled()
        return done and self.users == 0 and self.result.exception() is None


class AsyncLRU(Generic[T]):
    """The most recent results; each is computed once for concurrent requests.

    Results in use are kept, so there may temporarily be more than the limit.

    Args:
        limit: maximum number of results; the least recently used are dropped.
        drop: called once with each dropped result, when it has no users.
    """

    def __init__(self, limit: int, drop: Callable[[T], Awaitable[None]]) -> None:
        self._limit = limit
        self._drop = drop
        self._entries: OrderedDict[Hashable, _KeptResult[T]] = OrderedDict()

    @asynccontextmanager
    async def use(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> AsyncIterator[T]:
        """Yield the result of a key, computed if it is missing; it is not dropped while in use."""
        entry = self._entry(key, make)
        entry.users += 1
        try:
            # A client that disconnects must not cancel it for the others.
            yield await asyncio.shield(entry.result)
        finally:
            entry.users -= 1
            await self._make_room()

    def _entry(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> _KeptResult[T]:
        if key not in self._entries:
            entry = self._entries[key] = _KeptResult(asyncio.ensure_future(make()))
            entry.result.add_done_callback(partial(self._forget_failed, key))
        self._entries.move_to_end(key)
        return self._entries[key]

    def _forget_failed(self, key: Hashable, done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._entries.pop(key, None)

    async def _make_room(self) -> None:
        """Drop surplus results; they are removed before any other task runs."""
        surplus = max(len(self._entries) - self._limit, 0)
        idle = [key for key, entry in self._entries.items() if entry.is_idle][:surplus]
        results = [self._entries.pop(key).result.result() for key in idle]
        drops = [asyncio.ensure_future(self._drop(result)) for result in results]
        if drops:
            # Not gather: a client that disconnects must not stop them.
            await asyncio.wait(drops)


Search = Callable[[PairTable, Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True, eq=False)
class _SearchRequest:
    table: PairTable
    text: str
    answer: asyncio.Future[str]


class BatchedSearch:
    """Combines waiting searches into one pass over the texts.

    Reading the texts takes longer than searching for another text: ten at once take twice as long
    as one. A pass uses all processors, so there is one at a time.

    Args:
        search: searches for several texts in one table.
        limit: maximum number of texts per pass.
        executor: thread in which it runs.
    """

    def __init__(self, search: Search, limit: int, executor: Executor) -> None:
        self._search = search
        self._limit = limit
        self._executor = executor
        self._waiting: list[_SearchRequest] = []
        self._work: asyncio.Task[None] | None = None

    async def find(self, table: PairTable, text: str) -> str:
        """Return the hits of a text."""
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
        except Exception as error:  # noqa: BLE001  # passed to every requester
            for request in batch:
                request.answer.set_exception(error)
            return
        for request, hits in zip(batch, results, strict=True):
            request.answer.set_result(hits)
