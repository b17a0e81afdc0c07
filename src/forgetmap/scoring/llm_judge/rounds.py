"""One round of questions to a judge: those not yet answered, several at a time, with patience."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from forgetmap._http import PassingError, RefusedError, pause_before, shown
from forgetmap.errors import NetworkError
from forgetmap.scoring.llm_judge.cache import Reply, ReplyCache, key_of
from forgetmap.scoring.llm_judge.port import Judge, Progress
from forgetmap.scoring.llm_judge.sending import send
from forgetmap.scoring.scorer import Ask

_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Round:
    """Some questions to one judge."""

    judge: Judge
    cache: ReplyCache
    parameters: Mapping[str, Any]
    progress: Progress | None

    async def replies(self, asks: Sequence[Ask]) -> list[str | None]:
        """In order; None where there is none."""
        keys = [key_of(ask, self.judge.model, self.parameters) for ask in asks]
        found = {key: self.cache.get(key) for key in dict.fromkeys(keys)}
        wanted = {key: ask for key, ask in zip(keys, asks, strict=True) if found[key] is None}
        times = Counter(keys)
        settled = sum(found[key] is not None for key in keys)
        self.judge.tally.cached += settled

        def settle(key: str, reply: str | None) -> None:
            nonlocal settled
            found[key] = reply
            settled += times[key]
            self._tell(settled, len(asks))

        self._tell(settled, len(asks))
        if wanted:
            await self._ask_each(wanted, settle)
        return [found[key] for key in keys]

    def _tell(self, settled: int, of: int) -> None:
        if self.progress is not None:
            self.progress(settled, of)

    async def _ask_each(
        self, wanted: Mapping[str, Ask], settle: Callable[[str, str | None], None]
    ) -> None:
        """A few workers take questions until there are none."""
        at_once = self.judge.patience.at_once
        waiting = iter(wanted.items())

        async def work(client: httpx.AsyncClient) -> None:
            for key, ask in waiting:
                settle(key, await self._settled(client, key, ask))

        limits = httpx.Limits(max_connections=at_once)
        async with httpx.AsyncClient(limits=limits, timeout=None) as client:  # noqa: S113  # `send` has one
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(at_once, len(wanted))):
                        group.create_task(work(client))
            except ExceptionGroup as several:
                raise several.exceptions[0] from None

    async def _settled(self, client: httpx.AsyncClient, key: str, ask: Ask) -> str | None:
        """The reply, kept; None if there is none, unless that is one too many."""
        tally = self.judge.tally
        try:
            reply = await self._persistently(client, key, ask)
        except (PassingError, RefusedError) as error:
            tally.failed += 1
            tally.failed_in_a_row += 1
            tally.last_failure = str(error)
            absent = isinstance(error, PassingError) and error.unreachable and not tally.answered
            if absent or tally.failed_in_a_row >= self.judge.patience.in_a_row:
                raise self._hopeless() from None
            return None
        tally.answered += 1
        tally.failed_in_a_row = 0
        return self.cache.put(key, ask, self.judge.model, self.parameters, reply)

    async def _persistently(self, client: httpx.AsyncClient, key: str, ask: Ask) -> Reply:
        """Ask until there is a reply or patience is at its end."""
        patience, variable = self.judge.patience, self.judge.key_variable
        body = self._body(ask)
        spread = int(key[:8], 16) / 2**32
        attempt, waited = 1, 0.0
        while True:
            try:
                return await send(client, self.judge.url, body, variable, patience.seconds)
            except PassingError as error:
                wait = error.wait or pause_before(attempt, patience.pause, _LONGEST_PAUSE, spread)
                if attempt >= patience.attempts or waited + wait > patience.waiting:
                    raise
            self.judge.tally.retried += 1
            attempt, waited = attempt + 1, waited + wait
            await asyncio.sleep(wait)

    def _body(self, ask: Ask) -> dict[str, Any]:
        messages = [
            {"role": "system", "content": ask.system},
            {"role": "user", "content": ask.user},
        ]
        return {"model": self.judge.model, "messages": messages, **self.parameters}

    def _hopeless(self) -> NetworkError:
        tally = self.judge.tally
        return NetworkError(
            f"the judge at {shown(self.judge.url)} gives no replies: {tally.failed_in_a_row} "
            f"questions in a row failed, the last one with: {tally.last_failure}",
            hint="see to the server and start again; replies it has given are kept.",
        )
