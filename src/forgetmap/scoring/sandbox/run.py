"""Concurrent execution of programs, with the way each one ended."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from forgetmap.errors import UsageError
from forgetmap.scoring.sandbox import (
    CLOCK_PER_PROCESSOR,
    MESSAGE,
    PACKAGES,
    PROGRAM,
    SETTINGS,
    TESTS,
    WORK,
)
from forgetmap.scoring.scorer import TAMPERING, Program, ProgramResult

_START_SECONDS = 60.0
_GRACE_SECONDS = 10.0
_PROGRAMS_AHEAD = 64
_MAX_TRIES = 2
"""Attempts per program: the system may kill a template if memory runs out."""
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from forgetmap.scoring.sandbox.template import main; main()"
)
_ENVIRONMENT = {
    "HOME": WORK,
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/bin:/bin",
    "PYTHONHASHSEED": "0",
    "TMPDIR": WORK,
}
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo")
_VISIBLE_PACKAGES = ("numpy", "numpy.libs")

Progress = Callable[[int], None]
"""Callback for progress: number of programs that have ended."""


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Limits of a program.

    Attributes:
        seconds: processor time; three times as much wall time.
        megabytes: memory of each of at most four processes and threads.
    """

    seconds: float = 5.0
    megabytes: int = 512


def run_programs(
    programs: Iterable[Program | None],
    *,
    limits: ProgramLimits | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Generator[ProgramResult | None, None, None]:
    """Run untrusted programs, each isolated from all others.

    Programs have only the standard library and numpy, and no network; nothing outlives a program.
    A program can affect nothing but its own result.

    Args:
        programs: programs, consumed lazily; None stays None.
        limits: limits of each program.
        workers: number of concurrent programs; by default the number of processors.
        progress: called with the number of programs that have ended.

    Yields:
        The result of each program, in order.

    Raises:
        UsageError: this system cannot isolate programs. They are never run without isolation.
    """
    workers = workers or os.cpu_count() or 1
    with (
        _Sandboxes(limits or ProgramLimits(), workers) as sandboxes,
        ThreadPoolExecutor(workers) as pool,
    ):
        try:
            for count, result in enumerate(_in_order(pool, sandboxes.run, programs), start=1):
                if progress is not None:
                    progress(count)
                yield result
        finally:
            pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ThreadPoolExecutor,
    run: Callable[[Program | None], ProgramResult | None],
    programs: Iterable[Program | None],
) -> Iterator[ProgramResult | None]:
    """Submit a limited number of programs ahead, so that no worker waits."""
    waiting: deque[Future[ProgramResult | None]] = deque()
    for program in programs:
        waiting.append(pool.submit(run, program))
        if len(waiting) >= _PROGRAMS_AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def require_sandbox() -> None:
    """Raise UsageError if programs cannot be isolated on this system."""
    with _Sandboxes(ProgramLimits(), 1):
        pass


class _Sandboxes:
    """A template per worker, each used by one program at a time."""

    def __init__(self, limits: ProgramLimits, number: int) -> None:
        if sys.platform != "linux":
            raise _refusal(f"{sys.platform} has no namespaces")
        self._limits = limits
        self._number = number
        self._free: SimpleQueue[_Template] = SimpleQueue()
        self._root = tempfile.TemporaryDirectory(prefix="forgetmap-sandbox-")

    def __enter__(self) -> Self:
        try:
            for _ in range(self._number):
                self._free.put(_Template(self._root.name))
        except UsageError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while not self._free.empty():
            self._free.get().end()
        self._root.cleanup()

    def run(self, program: Program | None) -> ProgramResult | None:
        if program is None:
            return None
        template, failure = self._free.get(), ""
        try:
            for _ in range(_MAX_TRIES):
                try:
                    return template.run(program, self._limits)
                except OSError as error:
                    failure = f"the sandbox failed: {error}"
                    template.end()
                    template = _Template(self._root.name)
        finally:
            self._free.put(template)
        return ProgramResult(passed=False, reason=failure, failed_to_start=True)


class _Template:
    """A template process; see template.py."""

    def __init__(self, root: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # this Python and our own script
            [sys.executable, "-P", "-s", "-S", "-B", "-c", _BOOT, _package_root()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        settings = {"root": root, "shown": _visible_folders(), "package_root": _package_root()}
        try:
            reply = self._ask({SETTINGS: settings}, _START_SECONDS)
        except OSError as error:
            self.end()
            raise _refusal(str(error)) from error
        if "ready" not in reply:
            self.end()
            raise _refusal(str(reply.get("refused")))

    def run(self, program: Program, limits: ProgramLimits) -> ProgramResult:
        """Run a program; raise OSError if the template is broken."""
        tests = {"tests": program.tests, "replaced": sorted(program.replaced)}
        request = {
            "source": program.source,
            "seconds": limits.seconds,
            "megabytes": limits.megabytes,
        }
        seconds = CLOCK_PER_PROCESSOR * limits.seconds + _GRACE_SECONDS
        reply = self._ask({PROGRAM: request, TESTS: tests}, seconds)
        if "failed" in reply:
            return ProgramResult(passed=False, reason=str(reply["failed"]), failed_to_start=True)
        reason = str(reply.get("reason", ""))
        if reply.get("tampered"):
            return ProgramResult(passed=False, reason=f"{TAMPERING}: {reason}", tampered=True)
        return ProgramResult(passed=reply.get("passed") is True, reason=reason)

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with suppress(OSError):
                    stream.close()
        self._process.wait()

    def _ask(self, messages: dict[bytes, dict[str, Any]], seconds: float) -> dict[str, Any]:
        ask, answer = self._process.stdin, self._process.stdout
        if ask is None or answer is None:
            raise BrokenPipeError("it has no streams")
        for kind, message in messages.items():
            content = json.dumps(message).encode()
            ask.write(MESSAGE.pack(kind, len(content)) + content)
        ask.flush()
        if not select.select([answer], [], [], seconds)[0]:
            raise TimeoutError("no reply in time")
        line = answer.readline()
        if not line:
            raise BrokenPipeError("it ended")
        reply: dict[str, Any] = json.loads(line)
        return reply


def _refusal(reason: str) -> UsageError:
    return UsageError(
        f"programs cannot be isolated on this system, so none is run: {reason}",
        hint="use Linux (5.12 or newer) as root or with unprivileged user namespaces, or in a "
        "container that allows them, or skip the code metrics.",
    )


def _package_root() -> str:
    return str(Path(__file__).parents[3])


def _visible_folders() -> list[tuple[str, str]]:
    """Return the mounts: libraries at their own path, packages in `PACKAGES`."""
    inner = [*_LIBRARIES, f"{sys.base_prefix}/lib", f"{sys.base_prefix}/lib64"]
    mounts = [(path, path) for path in dict.fromkeys(inner) if Path(path).exists()]
    spec = find_spec("numpy")
    if spec and spec.origin:
        path = Path(spec.origin).parents[1]
        mounts += [
            (str(path / name), f"{PACKAGES}/{name}")
            for name in _VISIBLE_PACKAGES
            if (path / name).is_dir()
        ]
    return [mount for mount in mounts if not _inside_another(mount, mounts)]


def _inside_another(mount: tuple[str, str], mounts: list[tuple[str, str]]) -> bool:
    return any(mount[1].startswith(other + "/") for _, other in mounts)
