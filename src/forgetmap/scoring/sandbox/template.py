"""The template process that is forked for every program.

It is confined once, has common modules loaded, reads programs from its input and writes the result
of each one. For each program it forks two copies of itself, with a folder and shared memory of
their own. The first, the judge, runs the tests and writes the result to a pipe that no other
process has open. The second runs the answer, sees no processes but those it starts, and serves the
requests of the first (exchange.py). When the first ends or its time is up, everything below it
ends, too.

The first copy reads the tests after the second was forked, so that they were never in the memory of
the second. An answer cannot find anything that would let it pass: it can only return values, which
the tests compare out of its reach. Anything else it sends is tampering.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import random
import resource
import select
import signal
import site
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

from forgetmap.scoring.sandbox import (
    CLOCK_PER_PROCESSOR,
    MAX_TASKS,
    MESSAGE,
    PACKAGES,
    PROGRAM,
    SETTINGS,
    TESTS,
    confinement,
    kernel,
)
from forgetmap.scoring.sandbox.exchange import Channel, PartnerEndedError
from forgetmap.scoring.sandbox.stand_in import TamperingError
from forgetmap.scoring.sandbox.trial import run_tests, serve_answer

_PRELOADED = (
    "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "hashlib", "heapq", "itertools", "math", "operator", "re", "statistics",
    "string", "typing",
)  # fmt: skip
_MAX_REASON = 500
_MAX_VERDICT_BYTES = 1 << 14
_OTHER_TASKS = 2 + MAX_TASKS
"""Other tasks of the user of a judge: two templates, and those of the answer."""
_CLOCK_TOLERANCE = 0.5
"""Share of the time limit that counts as a timeout, since two clocks with ticks are involved."""


def main() -> None:
    """Confine this process, reply `ready` or why not, then run programs until the input ends."""
    settings = _next_message(SETTINGS)
    if settings is None:
        return
    for name in _PRELOADED:
        importlib.import_module(name)
    site.setquit()
    try:
        is_root = confinement.enclose(settings["root"], settings["shown"])
    except OSError as error:
        _say({"refused": error.strerror or str(error)})
        return
    sys.path.remove(settings["package_root"])
    sys.path.append(PACKAGES)
    user = os.getpid() if is_root else None
    # The next process is the first of a namespace: its children see and signal no other process.
    inner = os.fork()
    if inner:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) and 1)
    kernel.die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Frozen objects are not touched by the collector, so that all copies share their memory.
    gc.freeze()
    _say({"ready": True})
    while (request := _next_message(PROGRAM)) is not None:
        _say(_supervise(request, user))


def _next_message(kind: bytes) -> dict[str, Any] | None:
    """Return the next message of this kind; others are skipped. None at the end of the input.

    Not a byte more is read: tests must not be in the memory of a process that an answer is forked
    from.
    """
    while True:
        header = _read_input(MESSAGE.size)
        if not header:
            return None
        message_kind, length = MESSAGE.unpack(header)
        content = _read_input(length)
        if message_kind == kind:
            message: dict[str, Any] = json.loads(content)
            return message


def _read_input(length: int) -> bytes:
    """Read exactly this many bytes; empty if the input ends before."""
    parts: list[bytes] = []
    while length > 0 and (part := os.read(0, length)):
        parts.append(part)
        length -= len(part)
    return b"" if length else b"".join(parts)


def _say(reply: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _supervise(request: dict[str, Any], user: int | None) -> dict[str, Any]:
    """Start a judge, kill it after its time, and return its verdict."""
    try:
        read_end, write_end = os.pipe()
        judge = os.fork()
    except OSError as error:
        return {"failed": error.strerror or str(error)}
    if judge == 0:
        _judge(request, write_end, user)
    os.close(write_end)
    try:
        return _wait_for(judge, read_end, request["seconds"])
    finally:
        os.close(read_end)


def _wait_for(judge: int, read_end: int, seconds: float) -> dict[str, Any]:
    """Return the verdict of a judge, after it and everything below it has ended."""
    process = os.pidfd_open(judge)
    clock = select.poll()
    clock.register(process, select.POLLIN)
    in_time = bool(clock.poll(1000 * CLOCK_PER_PROCESSOR * seconds))
    os.close(process)
    if not in_time:
        os.kill(judge, signal.SIGKILL)
    _, status, usage = os.wait4(judge, 0)
    # This is the first process of its namespace, so this kills all other processes in it. An answer
    # may have asked not to die with its judge.
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    if not in_time:
        return {"reason": "timeout"}
    code = os.waitstatus_to_exitcode(status)
    message = os.read(read_end, _MAX_VERDICT_BYTES)
    if code == 0 and message:
        verdict: dict[str, Any] = json.loads(message)
        return verdict
    return {"reason": _how_it_ended(code, usage, seconds)}


def _how_it_ended(code: int, usage: resource.struct_rusage, seconds: float) -> str:
    cpu_seconds = usage.ru_utime + usage.ru_stime
    if code == -signal.SIGKILL and cpu_seconds >= _CLOCK_TOLERANCE * math.ceil(seconds):
        return "timeout"
    return f"killed: {signal.Signals(-code).name}" if code < 0 else "exit"


def _judge(request: dict[str, Any], write_end: int, user: int | None) -> NoReturn:
    """Start the answer in a new process namespace, run its tests, and write the verdict."""
    try:
        kernel.die_with_parent(signal.SIGKILL)
        confinement.separate()
        connection, other_end = socket.socketpair()
        answer = os.fork()
        if answer == 0:
            connection.close()
            _answer(request, other_end, user)
        other_end.close()
        request |= _next_message(TESTS) or {}
        _cut_off(connection.fileno(), write_end)
        _restrain(request, user, others=_OTHER_TASKS)
        verdict = _verdict(request, Channel(connection, answer), answer)
    except OSError as error:
        verdict = {"failed": error.strerror or str(error)}
    os.write(write_end, json.dumps(verdict).encode("ascii"))
    os._exit(0)


def _verdict(request: dict[str, Any], channel: Channel, answer: int) -> dict[str, Any]:
    """Return the verdict on an answer, from a process that runs none of its code."""
    try:
        _, state, reason, *_ = channel.receive()
        if state != "ready":
            return {"failed": str(reason)}
        run_tests(channel, request)
    except TamperingError as error:
        return {"tampered": True, "reason": str(error)}
    except PartnerEndedError:
        _, status, usage = os.wait4(answer, 0)
        code = os.waitstatus_to_exitcode(status)
        return {"reason": _how_it_ended(code, usage, request["seconds"])}
    except BaseException as error:  # noqa: BLE001  # what fails in tests is the answer's fault
        return {"reason": _reason(error)}
    return {"passed": True}


def _answer(request: dict[str, Any], connection: socket.socket, user: int | None) -> NoReturn:
    """Serve requests in the process of the answer; never returns, and decides nothing.

    A program that walks frames finds a secret and a place to write it, as in sandboxes that rely on
    one. It is bait: writing it is detected as tampering.
    """
    secret = os.urandom(32)  # noqa: F841  # bait
    write_end = connection.fileno()
    channel, leave = Channel(connection), os._exit
    try:
        _cut_off(write_end)
        _restrain(request, user)
    except OSError as error:
        channel.send([0, "failed", error.strerror or str(error), [], ""])
        leave(2)
    channel.send([0, "ready", "", [], ""])
    request.clear()
    with suppress(PartnerEndedError):
        serve_answer(channel)
    leave(0)


def _restrain(request: dict[str, Any], user: int | None, others: int | None = None) -> None:
    confinement.restrain(
        user=user,
        seconds=math.ceil(request["seconds"]),
        megabytes=request["megabytes"],
        others=others,
    )
    random.seed(0)


def _cut_off(*kept: int) -> None:
    """Close all files but these, and leave the process group."""
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    first = 3
    for number in (*sorted(kept), resource.getrlimit(resource.RLIMIT_NOFILE)[0]):
        os.closerange(first, number)
        first = number + 1


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, SystemExit):
        return "exit"
    try:
        message = f"exception: {type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  # its `__str__` fails
        message = "exception"
    return message.strip().removesuffix(":")[:_MAX_REASON]
