"""The process that every program is a copy of.

It is locked in once, has the usual modules loaded, reads programs from its input and writes how
each one ended. A program runs as a copy of it in process, mount and shared-memory namespaces of its
own; when it ends or its time is up, so does everything it started.

A program passes if it sends back a secret that its supervisor gave to the code around it, and that
code sends it only after the last statement. Ending early, by whatever means, is no pass. Python
cannot hide anything from a program that searches the memory of its own process; such a program
would have to be written against this file.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import resource
import select
import signal
import site
import sys
from types import ModuleType
from typing import Any, NoReturn

from forgetmap.scoring.sandbox import CLOCK_PER_PROCESSOR, PACKAGES, confinement, kernel

_PRELOADED = (
    "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "hashlib", "heapq", "itertools", "math", "operator", "re", "statistics",
    "string", "typing",
)  # fmt: skip
_MAX_REASON_BYTES = 500
_CLOCK_TOLERANCE = 0.5
"""Of the limit: the two clocks involved count in ticks of their own."""
_FIRST_PROCESS = 1
"""Process id of the program in its namespace; a process it forked speaks for nobody."""


def main() -> None:
    """Lock in, say `ready` or why not, then answer every line until there is none."""
    settings = json.loads(sys.stdin.readline())
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
    _say({"ready": True})
    for line in sys.stdin:
        supervisor = os.fork()
        if supervisor == 0:
            _supervise(json.loads(line), is_root=is_root)
        if os.waitpid(supervisor, 0)[1] != 0:
            _say({"failed": "the supervisor of the program ended"})


def _say(reply: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _supervise(request: dict[str, Any], *, is_root: bool) -> NoReturn:
    """Start a program, end it in time, say how it ended."""
    secret = os.urandom(32)
    try:
        kernel.die_with_parent(signal.SIGKILL)
        confinement.separate()
        read_end, write_end = os.pipe()
        user = os.getpid() if is_root else None
        program = os.fork()
    except OSError as error:
        _say({"failed": error.strerror or str(error)})
        os._exit(0)
    if program == 0:
        _run(request, secret, write_end, user)
    os.close(write_end)
    _say(_wait_for(program, read_end, secret, request["seconds"]))
    os._exit(0)


def _wait_for(program: int, read_end: int, secret: bytes, seconds: float) -> dict[str, Any]:
    """Wait for the first process of a namespace: when it is gone, so are all others."""
    clock = select.poll()
    clock.register(os.pidfd_open(program), select.POLLIN)
    in_time = bool(clock.poll(1000 * CLOCK_PER_PROCESSOR * seconds))
    if not in_time:
        os.kill(program, signal.SIGKILL)
    _, status, usage = os.wait4(program, 0)
    code = os.waitstatus_to_exitcode(status)
    message = os.read(read_end, _MAX_REASON_BYTES)
    if in_time and code == 0 and message == secret and not os.read(read_end, 1):
        return {"passed": True}
    cpu_seconds = usage.ru_utime + usage.ru_stime
    if not in_time or (
        code == -signal.SIGKILL and cpu_seconds >= _CLOCK_TOLERANCE * math.ceil(seconds)
    ):
        return {"reason": "timeout"}
    if message.startswith(b"failed "):
        return {"failed": message[7:].decode("utf-8", "replace")}
    if code < 0:
        return {"reason": f"killed: {signal.Signals(-code).name}"}
    return {"reason": message.decode("utf-8", "replace") if code == 1 and message else "exit"}


def _run(request: dict[str, Any], secret: bytes, write_end: int, user: int | None) -> NoReturn:
    """In the process of the program: nothing here returns."""
    write, leave, process_id = os.write, os._exit, os.getpid
    try:
        _cut_off(write_end)
        confinement.restrain(
            user=user, seconds=math.ceil(request["seconds"]), megabytes=request["megabytes"]
        )
    except OSError as error:
        write(write_end, f"failed {error.strerror or error}".encode())
        leave(2)
    random.seed(0)
    try:
        _execute(request.pop("source"))
    except BaseException as error:  # noqa: BLE001  # whatever the program does is its end
        if process_id() == _FIRST_PROCESS:
            write(write_end, _reason(error))
        leave(1)
    if process_id() == _FIRST_PROCESS:
        write(write_end, secret)
    leave(0)


def _cut_off(write_end: int) -> None:
    """No way in or out but this one, and no group of processes shared with the outside."""
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.closerange(3, write_end)
    os.closerange(write_end + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _execute(source: str) -> None:
    main_module = ModuleType("__main__")
    sys.modules["__main__"] = main_module
    exec(compile(source, "<program>", "exec", dont_inherit=True), main_module.__dict__)  # noqa: S102


def _reason(error: BaseException) -> bytes:
    if isinstance(error, MemoryError):
        return b"memory"
    if isinstance(error, SystemExit):
        return b"exit"
    try:
        message = f"exception: {type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  # its own text fails
        message = "exception"
    return message.strip().removesuffix(":").encode("utf-8", "replace")[:_MAX_REASON_BYTES]
