"""Another program, run in a folder of its own: claimed, followed, and ended when we are."""

from __future__ import annotations

import codecs
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from forgetmap.errors import OutputError
from forgetmap.records.folder import writable

Show = Callable[[str], None]
"""Told what the program prints, as it comes."""
LOCK, FINGERPRINT, OUTPUT = "lock", "fingerprint", "output.log"
GRACE = 20.0
"""Seconds for a program to end by itself."""
LAST_LINES, LONGEST_LINE = 15, 300
LAST_BYTES = 1 << 16


@contextmanager
def claimed(work: Path, fingerprint: str, *, overwrite: bool) -> Iterator[int]:
    """A folder that nobody else works in, with what an earlier attempt at the same thing left.

    Yields:
        The lock. A program that is handed it keeps it to its own end, so that one that outlived us
        is noticed.

    Raises:
        OutputError: somebody works in it, or it is of another run.
    """
    with writable(work):
        work.mkdir(parents=True, exist_ok=True)
        lock = os.open(work / LOCK, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        _lock(lock, work)
        _prepare(work, fingerprint, overwrite=overwrite)
        yield lock
    finally:
        os.close(lock)


def _lock(lock: int, work: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            f"another program still works in {work}",
            hint="wait for it or end it, or choose another --out.",
        ) from None


def _prepare(work: Path, fingerprint: str, *, overwrite: bool) -> None:
    mark = work / FINGERPRINT
    with writable(work):
        known = mark.read_text(encoding="utf-8") if mark.is_file() else None
        if known not in {None, fingerprint} and not overwrite:
            raise OutputError(
                f"{work} belongs to a run of another model, task or setting",
                hint="use the same options to go on with it, another --out, or --overwrite to "
                "start anew.",
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
    with (
        (work / OUTPUT).open("ab") as kept,
        subprocess.Popen(  # noqa: S603  # the user names program and arguments
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            pass_fds=(lock,),
            start_new_session=True,
        ) as program,
    ):
        try:
            _copy(program, kept, show)
            return program.wait()
        except BaseException:
            _end(program)
            raise


def _copy(program: subprocess.Popen[bytes], kept: IO[bytes], show: Show) -> None:
    """Keep and show what is printed; a letter may come in two pieces."""
    assert program.stdout is not None  # noqa: S101  # it is a pipe
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while chunk := os.read(program.stdout.fileno(), 1 << 16):
        kept.write(chunk)
        kept.flush()
        show(decoder.decode(chunk))


def _end(program: subprocess.Popen[bytes]) -> None:
    """Ask a program and all it started to end, as Ctrl-C would; insist after a while."""
    try:
        os.killpg(program.pid, signal.SIGINT)
        program.wait(GRACE)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def last_lines(work: Path) -> tuple[str, ...]:
    """The end of what the program printed; of a line drawn over and over only its last state."""
    with (work / OUTPUT).open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - LAST_BYTES, 0))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return tuple([line[:LONGEST_LINE] for line in lines if line][-LAST_LINES:])
