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
"""Told what the program prints, as it comes."""
LOCK, FINGERPRINT, OUTPUT = "lock", "fingerprint", "output.log"
GRACE = 20.0
"""Seconds for a program to end by itself."""
LAST_LINES, LONGEST_LINE = 15, 300
LAST_BYTES = 1 << 16
LOOK = 0.5
"""Seconds between looks at whether a program that says nothing is still there."""
GUARD = """
import os, sys
said = sys.stdin.read().split()
if len(said) == 1:
    os.killpg(int(said[0]), 9)
"""


@contextmanager
def claimed(work: Path, fingerprint: str, *, overwrite: bool) -> Iterator[int]:
    """A folder that nobody else works in, with what an earlier attempt at the same thing left.

    Yields:
        The lock. A program that is handed it keeps it to its own end, so that one that outlived us
        is noticed.

    Raises:
        OutputError: somebody works in it, or it is of another run.
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
    """Raise HarnessError where the system cannot follow and end other programs safely."""
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
    """Run a program to its end, showing and keeping all it prints.

    Args:
        command: program and arguments.
        environment: variables besides those of this process.
        work: folder that keeps what it prints.
        lock: of that folder.
        show: told what it prints.

    Returns:
        Its exit code.
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
    """Another program that outlives us if we are killed, and ends the group it was told of."""
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
    """Keep and show what is printed, until the program ends.

    Something it started may live on and hold the other end of the pipe.
    """
    assert program.stdout is not None  # noqa: S101  # it is a pipe
    # A letter may come in two pieces.
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
    """A program and all it started, as Ctrl-C would; not for longer than a while."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(program.pid, signal.SIGINT)
        program.wait(GRACE)


def last_lines(work: Path) -> tuple[str, ...]:
    """The end of what the program printed; of a line drawn over and over only its last state."""
    with (work / OUTPUT).open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - LAST_BYTES, 0))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return tuple([line[:LONGEST_LINE] for line in lines if line][-LAST_LINES:])
