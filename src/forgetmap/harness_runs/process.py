"""A harness as a child process with a folder of its own, stopped together with forgetmap."""

from __future__ import annotations

import codecs
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from forgetmap.errors import HarnessError, OutputError
from forgetmap.records import writable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Show = Callable[[str], None]
"""Callback that receives the output of the program as it arrives."""
LOCK, FINGERPRINT, OUTPUT = "lock", "fingerprint", "output.log"
GRACE = 20.0
"""Seconds that a program has to end by itself."""
LAST_LINES, LONGEST_LINE = 15, 300
LAST_BYTES = 1 << 16
LOOK = 0.5
"""Seconds between checks that a silent program is still running."""
GUARD = """
import os, sys
said = sys.stdin.read().split()
if len(said) == 1:
    os.killpg(int(said[0]), 9)
"""


@contextmanager
def claimed(work: Path, fingerprint: str, *, overwrite: bool) -> Iterator[int]:
    """Lock a work folder, with the results of an earlier attempt at the same run.

    Yields:
        The lock. A program that inherits it holds it until its own end, so that one that outlives
        us is noticed.

    Raises:
        OutputError: another process uses the folder, or it belongs to another run.
        HarnessError: the system has no locks.
    """
    require_locks()
    with writable(work):
        work.mkdir(parents=True, exist_ok=True)
        lock = os.open(work / LOCK, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        _lock(lock, work)
        _prepare(work, fingerprint, overwrite=overwrite)
        yield lock
    finally:
        os.close(lock)


def require_locks() -> None:
    """Raise HarnessError if the system cannot follow and end other programs safely."""
    if fcntl is None:
        raise HarnessError(
            f"forgetmap cannot run other harnesses on {sys.platform}",
            hint="run the harness yourself and compare its logs, or use Linux, macOS or WSL.",
        )


def _lock(lock: int, work: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            f"another program is still running in {work}",
            hint="wait for it or stop it, or choose another --out.",
        ) from None


def _prepare(work: Path, fingerprint: str, *, overwrite: bool) -> None:
    mark = work / FINGERPRINT
    with writable(work):
        known = mark.read_text(encoding="utf-8") if mark.is_file() else None
        if known not in {None, fingerprint} and not overwrite:
            raise OutputError(
                f"{work} belongs to a run with another model, task or setting",
                hint="use the same options to resume it, choose another --out, or start again "
                "with --overwrite.",
            )
        if overwrite or known is None:
            _empty(work)
        mark.write_text(fingerprint, encoding="utf-8")


def _empty(work: Path) -> None:
    for child in work.iterdir():
        if child.name == LOCK:
            continue
        if child.is_dir():
            shutil.rmtree(child)
        else:
            child.unlink()


def follow(
    command: Sequence[str], environment: Mapping[str, str], work: Path, lock: int, show: Show
) -> int:
    """Run a program to its end; show and save its output.

    Args:
        command: program and arguments.
        environment: additional environment variables.
        work: folder in which the output is saved.
        lock: lock of that folder.
        show: receives the output.

    Returns:
        The exit code of the program.
    """
    with (work / OUTPUT).open("ab") as log, _guarded() as guard:
        program = subprocess.Popen(  # noqa: S603  # the user names program and arguments
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            pass_fds=(lock,),
            start_new_session=True,
        )
        guard(program.pid)
        with program:
            try:
                _copy(program, log, show)
                program.wait()
            except BaseException:
                _ask_to_end(program)
                raise
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
    return program.returncode


@contextmanager
def _guarded() -> Iterator[Callable[[int], None]]:
    """Start a process that ends the process group of the program if we are killed."""
    guard = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-I", "-S", "-c", GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )

    def say(word: object) -> None:
        assert guard.stdin is not None  # noqa: S101  # it is a pipe
        with suppress(BrokenPipeError):
            guard.stdin.write(f"{word}\n".encode())

    with guard:
        try:
            yield say
        finally:
            say("done")


def _copy(program: subprocess.Popen[bytes], log: IO[bytes], show: Show) -> None:
    """Save and show the output until the program ends.

    A process that it started may live longer and keep the pipe open.
    """
    assert program.stdout is not None  # noqa: S101  # it is a pipe
    # A character may arrive in two parts.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    pipe = program.stdout.fileno()
    while True:
        is_over = program.poll() is not None
        if select.select([pipe], [], [], 0 if is_over else LOOK)[0]:
            chunk = os.read(pipe, 1 << 16)
            if not chunk:
                return
            log.write(chunk)
            log.flush()
            show(decoder.decode(chunk))
        elif is_over:
            return


def _ask_to_end(program: subprocess.Popen[bytes]) -> None:
    """Interrupt a program and its processes as Ctrl-C would, and wait for a limited time."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(program.pid, signal.SIGINT)
        program.wait(GRACE)


def last_lines(work: Path) -> tuple[str, ...]:
    """Return the last lines of output; of a line that is redrawn only its last state."""
    with (work / OUTPUT).open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - LAST_BYTES, 0))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return tuple([line[:LONGEST_LINE] for line in lines if line][-LAST_LINES:])
