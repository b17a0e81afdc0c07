"""Functions that workers call in tests, in a module because they are imported by name."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from forgetmap._workers import send
from forgetmap.errors import FieldError


def double(number: int) -> int:
    return 2 * number


def double_slowly(number: int) -> int:
    """Double a number; the first tasks take longest, so that later ones finish before them."""
    time.sleep(max(0.0, 0.2 - number / 20))
    return 2 * number


def pid(_: object = None) -> int:
    return os.getpid()


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def die(_: object = None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(marker: Path) -> str:
    """End the process at the first call only."""
    if not marker.exists():
        marker.touch()
        die()
    return "second try"


def never_let_go() -> int:
    """Compute without end in one operation, which no signal handler or thread can interrupt."""
    exponent: int = 9**9
    return int(9**exponent)


def make_temporary_file() -> Path:
    return Path(tempfile.mkdtemp()) / "file"


def refuse(_: object = None) -> None:
    raise FieldError("not a number", file="a.csv", line=3, field="score", hint="write a number.")


class OddError(Exception):
    """Error that cannot be unpickled: it takes two arguments and keeps one."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def refuse_oddly() -> None:
    raise OddError("odd", "ness")


def print_a_lot() -> str:
    os.write(1, b"printed\n" * 100)
    print("printed")  # noqa: T201  # the point
    return sys.stdin.read()


def loaded() -> set[str]:
    return {name.partition(".")[0] for name in sys.modules}


_READY: list[int] = []


def prepare() -> None:
    time.sleep(2.2)
    _READY.append(1)


def times_prepared() -> int:
    return len(_READY)


def tell_environment(name: str) -> int:
    """Send a variable, and whether pandas can be imported; return the number of values sent."""
    send(os.environ.get(name))
    send(find_spec("pandas") is not None)
    return 2
