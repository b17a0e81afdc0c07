"""CPU time of asking a server, per item: the server answers at once, so all of it is ours.

    python benchmarks/client_overhead.py --items 20000 --concurrency 64

Includes everything in the process of the runner between the first question and the finished run
folder: prompts, requests, replies, scoring, the journal on the disk, records.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from forgetmap.evaluation import journal
from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.servers.connection import Traffic
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.run import run_model
from forgetmap.evaluation.settings import Settings

USAGE = {"prompt_tokens": 60, "completion_tokens": 2}
COMPLETION = {"choices": [{"text": " 7", "finish_reason": "stop"}], "usage": USAGE}
CHAT = {
    "choices": [{"message": {"content": "Answer: 7"}, "finish_reason": "stop"}],
    "usage": USAGE,
}
MODELS = {"data": [{"id": "instant"}]}


class Instant(asyncio.Protocol):
    """Answers every request with a prepared reply."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for replies."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer all complete requests."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            place = head.find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            body = CHAT if b"/chat/" in head else COMPLETION if b"post" in head[:4] else MODELS
            content = json.dumps(body).encode()
            reply = (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            )
            assert isinstance(self._transport, asyncio.WriteTransport)
            self._transport.write(reply % len(content) + content)


def serve(pipe: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def sums(count: int) -> Suite:
    items = [Item(str(n), f"What is {n} and {n + 1}?", str(2 * n + 1)) for n in range(count)]
    return Suite("sums", (Task("sums", "sums", "number", lambda: items),))


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(address: str, suite: Suite, concurrency: int, *, chat: bool) -> tuple[float, float]:
    """Return CPU and wall-clock milliseconds per item."""
    count = sum(len(task.load()) for task in suite.tasks)
    backend, who = open_model(address, traffic=Traffic(concurrency=concurrency))
    with tempfile.TemporaryDirectory() as folder:
        started, used = time.perf_counter(), cpu()
        run_model(backend, suite, Path(folder) / "run", who, Settings(chat=chat))
        spent = cpu() - used
        passed = time.perf_counter() - started
    return 1000 * spent / count, 1000 * passed / count


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="CPU time of asking a server, per item.")
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=64)
    options = parser.parse_args(arguments)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    address = f"http://127.0.0.1:{ours.recv()}/v1#instant"
    measure(address, sums(200), options.concurrency, chat=False)
    print(f"{options.items:,} items, {options.concurrency} at once, journal synced every "
          f"{1000 * journal.SYNC_SECONDS:.0f} ms")  # fmt: skip
    for name, chat in (("completions", False), ("chats", True)):
        spent, passed = measure(address, sums(options.items), options.concurrency, chat=chat)
        print(f"{name:12} {spent:.3f} ms of CPU, {passed:.3f} ms in all, per item")
    process.terminate()
    process.join()


if __name__ == "__main__":
    main()
