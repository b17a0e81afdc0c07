"""One pool of worker processes for reading, scoring, comparing and drawing.

A worker is a new interpreter that receives pickled calls on its standard input and sends results
on its standard output. Unlike the pools of the standard library, it does not import the main
module of the caller, so scripts need no `__main__` guard and notebooks work; and a call that hangs
can be ended without affecting the other workers.
"""

from __future__ import annotations

import faulthandler
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import LifoQueue, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import IO, Any, Self, TypeVar, TypeVarTuple

from forgetmap.errors import TaskTimeoutError, WorkerError

Task = TypeVar("Task")
Result = TypeVar("Result")
Args = TypeVarTuple("Args")

TASKS_AHEAD = 3
"""Tasks per worker that are submitted in advance, so that no worker is idle."""
PREPARE_SECONDS = 120.0
LATE = 1
"""Exit code of a process that `faulthandler` ended because a call took too long."""
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_START = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from forgetmap._workers import serve; serve(sys.argv[1], light=sys.argv[2] == 'light')"
)
OnMessage = Callable[[Any], object]
"""Callback that receives the values that a function passes to `send`."""


def count_cores() -> int:
    """Return the number of cores that this process may use, which a container may limit."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no quota, or "max"
        quota, period = map(int, CPU_QUOTA.read_text(encoding="ascii").split())
        cores = min(cores, math.ceil(quota / period))
    return max(cores, 1)


class WorkerPool:
    """Worker processes, started when needed; a context manager.

    Args:
        processes: maximum number of processes; None for one per core.
        prepare: called once in each process before its first task.
    """

    def __init__(
        self, processes: int | None = None, *, prepare: Callable[[], object] | None = None
    ) -> None:
        self.size = count_cores() if processes is None else processes
        self._prepare = prepare
        self._workers: set[WorkerProcess] = set()
        # Last in, first out: consecutive calls are done by the same process.
        self._free: LifoQueue[WorkerProcess | None] = LifoQueue()
        for _ in range(self.size):
            self._free.put(None)
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all processes, even during a call."""
        self._is_closed = True
        for worker in list(self._workers):
            worker.kill()

    def call(
        self,
        function: Callable[[*Args], Result],
        *args: *Args,
        seconds: float | None = None,
    ) -> Result:
        """Call a function in a free process; safe to call from several threads.

        Args:
            function: function to call; it must be importable by its name.
            args: its arguments, which are pickled.
            seconds: timeout, after which the process is killed; None for no timeout.

        Raises:
            TaskTimeoutError: the call took longer.
            WorkerError: the process ended before it returned a result.
            BaseException: any error of the function, with its traceback as a note.
        """
        worker = self._free.get()
        try:
            if worker is not None and not worker.is_alive():
                worker.kill()
                self._workers.discard(worker)
                worker = None
            worker = worker or self._start()
            return worker.call(function, *args, seconds=seconds)
        finally:
            self._free.put(worker)

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield results in the order of the tasks, with few tasks and results in memory at a time.

        A task is retried once if its process is killed. A pool of size 1 works in this process.
        Closing the iterator before its end closes the pool, so that nothing waits for the rest.
        """
        if self.size == 1:
            yield from map(function, tasks)
            return
        threads = ThreadPoolExecutor(self.size)
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                waiting.append(threads.submit(self._call_again, function, task))
                if len(waiting) >= TASKS_AHEAD * self.size:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            self.close()  # otherwise the threads would wait for their tasks
            raise
        finally:
            threads.shutdown(cancel_futures=True)

    def _call_again(self, function: Callable[[Task], Result], task: Task) -> Result:
        try:
            return self.call(function, task)
        except WorkerError:
            return self.call(function, task)

    def _start(self) -> WorkerProcess:
        self._require_open()
        worker = WorkerProcess()
        self._workers.add(worker)
        try:
            self._require_open()  # another thread may have closed the pool in the meantime
            if self._prepare is not None:
                worker.call(self._prepare, seconds=PREPARE_SECONDS)
        except BaseException:
            worker.kill()
            raise
        return worker

    def _require_open(self) -> None:
        if self._is_closed:
            raise WorkerError("the process pool is closed", hint="open a new one.")


class WorkerProcess:
    """One worker process, for one call at a time.

    Args:
        light: whether to hide pandas, which is slow to import; models may need it.
        environment: environment variables to add or replace.
    """

    def __init__(self, *, light: bool = True, environment: Mapping[str, str] | None = None) -> None:
        # Temporary files of the process, which may be killed before it can remove them.
        self._folder = tempfile.mkdtemp(prefix="forgetmap-worker-")
        path = [entry for entry in sys.path if isinstance(entry, str)]
        # Output and warnings of libraries are dropped; errors are returned as exceptions.
        try:
            self._process = subprocess.Popen(  # noqa: S603  # this Python and this module
                [
                    sys.executable, "-P", "-c", _START, self._folder,
                    "light" if light else "whole", *path,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **(environment or {}), "TMPDIR": self._folder},
            )  # fmt: skip
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise WorkerError(
                f"cannot start another process: {error.strerror or error}",
                hint="use fewer processes: --processes 1.",
            ) from None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process, close its pipes and remove its temporary files."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # unsent data
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(
        self,
        function: Callable[[*Args], Result],
        *args: *Args,
        seconds: float | None = None,
        on_message: OnMessage | None = None,
    ) -> Result:
        """Call a function, see `WorkerPool.call`; `on_message` receives values that it sends."""
        message = pickle.dumps((function, args, seconds))
        is_answered = False
        try:
            has_failed, answer = self._exchange(message, on_message)
            is_answered = True
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            raise self._failure(seconds) from None
        finally:
            if not is_answered:  # a late result must not be read as that of the next call
                self.kill()
        if has_failed:
            raise answer
        return answer  # type: ignore[no-any-return]

    def _exchange(self, message: bytes, on_message: OnMessage | None) -> tuple[bool, Any]:
        to_worker, from_worker = self._process.stdin, self._process.stdout
        assert to_worker is not None and from_worker is not None  # noqa: S101, PT018  # pipes
        pickle.dump(message, to_worker)
        to_worker.flush()
        while True:
            state, value = pickle.load(from_worker)  # noqa: S301  # our worker
            if state is not None:
                return state, value
            if on_message is not None:
                on_message(value)

    def _failure(self, seconds: float | None) -> WorkerError:
        self.kill()
        code = self._process.wait()
        if seconds is not None and code == LATE:
            return TaskTimeoutError(
                f"a computation took longer than {seconds:g} s", hint="increase the timeout."
            )
        return WorkerError(
            f"a worker process ended unexpectedly (exit code {code})",
            hint="it may have run out of memory; use fewer processes: --processes 1.",
        )


def call_apart(function: Callable[[*Args], Result], *args: *Args) -> Result:
    """Call a function in a separate process, so that its memory is freed afterwards."""
    with WorkerPool(1) as pool:
        return pool.call(function, *args)


class _NoPandas:
    """Import hook that hides pandas, which pyarrow would import at its first array."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


_callers: list[IO[bytes]] = []
"""Stream to the caller, in a worker; empty elsewhere."""


def send(value: object) -> None:
    """Send a value to the caller during a call; do nothing outside a worker."""
    for answers in _callers:
        answers.write(pickle.dumps((None, value)))
        answers.flush()


def serve(folder: str, *, light: bool = True) -> None:
    """Run a worker: execute calls until the caller ends.

    Args:
        folder: folder of its temporary files, removed at the end.
        light: whether to hide pandas.
    """
    # Ctrl-C reaches the whole process group; the caller decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if light:
        sys.meta_path.insert(0, _NoPandas)
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _callers.append(answers)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # output of libraries must not mix with the results
    messages: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(calls, messages, folder), daemon=True).start()
    while True:
        answers.write(_answer(messages.get()))
        answers.flush()


def _receive(calls: IO[bytes], messages: SimpleQueue[bytes], folder: str) -> None:
    """Receive messages in a separate thread, so that the worker ends as soon as its caller."""
    try:
        while True:
            messages.put(pickle.load(calls))  # noqa: S301  # our caller
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _answer(message: bytes) -> bytes:
    """Execute a call; return whether it failed, and its result or error, as a message."""
    try:
        function, args, seconds = pickle.loads(message)  # noqa: S301  # our caller
        if seconds is not None:
            # Needs no interpreter lock, so it also ends computations that never release it.
            faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            result = function(*args)
        finally:
            faulthandler.cancel_dump_traceback_later()
        return pickle.dumps((False, result))
    except BaseException as error:  # noqa: BLE001  # raised again where it was called
        return _portable(error)


def _portable(error: BaseException) -> bytes:
    """Pickle an error as a message; only its text if it cannot be pickled."""
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    try:
        message = pickle.dumps((True, error))
        pickle.loads(message)  # noqa: S301  # just made
    except BaseException:  # noqa: BLE001  # foreign code again
        words = f"{type(error).__name__}: {error}"
        return pickle.dumps((True, WorkerError(words, hint="see the traceback.")))
    return message
