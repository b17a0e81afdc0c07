"""Timing of requests to a server."""

from __future__ import annotations

import asyncio
import time

from forgetmap.evaluation.backends.servers.client import Pace

INTERVAL, HELD, SLACK = 0.02, 0.3, 0.01


def test_nobody_sends_while_the_server_asks_to_wait() -> None:
    """Nor do those who had a turn before it asked; afterwards they go one by one, as before."""

    async def moments() -> tuple[float, list[float]]:
        pace = Pace(INTERVAL)
        sent: list[float] = []

        async def send() -> None:
            await pace.turn()
            sent.append(time.monotonic())

        waiting = [asyncio.create_task(send()) for _ in range(10)]
        await asyncio.sleep(2.5 * INTERVAL)
        asked = time.monotonic()
        pace.hold(HELD)
        await asyncio.gather(*waiting)
        return asked, sorted(sent)

    asked, sent = asyncio.run(moments())
    later = [moment for moment in sent if moment > asked]
    assert len(sent) == 10
    assert len(later) > 1
    # Of a busy machine only later than this; several of them may then be late together.
    for place, moment in enumerate(later):
        assert moment >= asked + HELD + place * INTERVAL - SLACK
