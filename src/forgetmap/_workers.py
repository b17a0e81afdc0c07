"""One pool of worker processes for reading, scoring, comparing and drawing.

A worker is a fresh interpreter that gets pickled calls through its standard input and answers
through its standard output. Unlike the pools of the standard library it does not import the main
module of the caller, so scripts need no guard and notebooks work, and a call that hangs can be
ended without losing the others.
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
"""Tasks per worker that are read before they are needed, so that no worker waits for one."""
PREPARE_SECONDS = 120.0
LATE = 1
"""Exit code by which `faulthandler` ends a call that took too long."""
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_START = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from forgetmap._workers import serve; serve(sys.argv[1], light=sys.argv[2] == 'light')"
)
OnMessage = Callable[[Any], object]
"""Called with what a function sent on its way."""


def count_cores() -> int:
    """Processors that this process may use: fewer than the machine has in many a container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no quota, or "max"
        quota, period = map(int, CPU_QUOTA.read_text(encoding="ascii").split())
        cores = min(cores, math.ceil(quota / period))
    return max(cores, 1)


class WorkerPool:
    """Processes that are started when they are needed; a context manager.

    Args:
        processes: how many at most; None is one per core.
        prepare: called once in each process before its first task.
    """

    def __init__(
        self, processes: int | None = None, *, prepare: Callable[[], object] | None = None
    ) -> None:
        self.size = count_cores() if processes is None else processes
        self._prepare = prepare
        self._workers: set[WorkerProcess] = set()
        # Last in, first out: what is done one after the other is done by one process.
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
        """End all processes, whatever they are doing."""
        self._is_closed = True
        for worker in list(self._workers):
            worker.kill()

    def call(
        self,
        function: Callable[[*Args], Result],
        *args: *Args,
        seconds: float | None = None,
    ) -> Result:
        """Call a function of a module in a process that is free; threads may do so at a time.

        Args:
            function: must be importable by its name, as must all that is in its arguments.
            args: of it.
            seconds: how long it may take; the process is ended after that.

        Raises:
            TaskTimeoutError: it took longer.
            WorkerError: the process ended before it had answered.
            BaseException: whatever the function raised, with the trace as a note.
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
        """Results in the order of the tasks; few of either are in memory at a time.

        A task whose process dies is tried in a second one. A pool of one works in this process.
        Leaving off before the end closes the pool, so that nobody waits for what is not needed.
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
            self.close()  # the threads wait for their tasks else
            raise
        finally:
            threads.shutdown(cancel_futures=True)

    def share(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        on_result: Callable[[Result], object] | None = None,
    ) -> list[Result]:
        """Results in the order of the tasks; this process works as well, instead of one other.

        It begins at once, while the others start, and each takes the next task when it is free.

        Args:
            function: see `call`.
            tasks: in the order in which they are begun.
            on_result: told each result, in this process and thread.
        """
        left, results = deque(enumerate(tasks)), dict[int, Result]()
        told: SimpleQueue[Result] = SimpleQueue()

        def work(call: Callable[[Callable[[Task], Result], Task], Result]) -> None:
            while left:
                try:
                    place, task = left.popleft()
                except IndexError:  # another thread was quicker
                    return
                results[place] = call(function, task)
                told.put(results[place])

        def tell() -> None:
            while on_result is not None and not told.empty():
                on_result(told.get())

        def work_here(function: Callable[[Task], Result], task: Task) -> Result:
            tell()
            return function(task)

        with ThreadPoolExecutor(max(self.size - 1, 1)) as threads:
            others = [threads.submit(work, self._call_again) for _ in range(self.size - 1)]
            try:
                work(work_here)
                for other in others:
                    other.result()
            except BaseException:
                left.clear()
                self.close()  # the threads wait for their tasks else
                raise
        tell()
        return [results[place] for place in range(len(results))]

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
            self._require_open()  # else one that another thread closed meanwhile would stay
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
    """One process that answers one call at a time.

    Args:
        light: whether it does without pandas, which takes long to import; models may need it.
        environment: variables that it has beside or instead of ours.
    """

    def __init__(self, *, light: bool = True, environment: Mapping[str, str] | None = None) -> None:
        # For its temporary files: it is ended at any time, and cannot always tidy up itself.
        self._folder = tempfile.mkdtemp(prefix="forgetmap-worker-")
        path = [entry for entry in sys.path if isinstance(entry, str)]
        # What libraries print or warn of is nothing to the user; errors come back as exceptions.
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
        """Number of the process."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether it can be called."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it, whatever it is doing; close its pipes and remove its files."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was not yet sent
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
        """See `WorkerPool.call`; `on_message` is told what the function sends on its way."""
        message = pickle.dumps((function, args, seconds))
        is_answered = False
        try:
            has_failed, answer = self._exchange(message, on_message)
            is_answered = True
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            raise self._failure(seconds) from None
        finally:
            if not is_answered:  # a late answer must not be taken for that of the next call
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
    """Call a function in a process of its own, whose memory is free again afterwards."""
    with WorkerPool(1) as pool:
        return pool.call(function, *args)


class _NoPandas:
    """At its first array pyarrow imports pandas where it can, which takes longer than our start."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


_callers: list[IO[bytes]] = []
"""Of a worker: where its answers go."""


def send(value: object) -> None:
    """Send a value to the caller while a call goes on; nothing where this is no worker."""
    for answers in _callers:
        answers.write(pickle.dumps((None, value)))
        answers.flush()


def serve(folder: str, *, light: bool = True) -> None:
    """What a worker does until its caller is no more.

    Args:
        folder: of its temporary files.
        light: whether it does without pandas.
    """
    # Ctrl-C reaches the whole group: the caller decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if light:
        sys.meta_path.insert(0, _NoPandas)
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _callers.append(answers)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what a library prints must not get between the answers
    messages: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(calls, messages, folder), daemon=True).start()
    while True:
        answers.write(_answer(messages.get()))
        answers.flush()


def _receive(calls: IO[bytes], messages: SimpleQueue[bytes], folder: str) -> None:
    """Take messages in a thread of its own, so that a worker ends with its caller at any time."""
    try:
        while True:
            messages.put(pickle.load(calls))  # noqa: S301  # our caller
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _answer(message: bytes) -> bytes:
    """Whether the call failed, and what it returned or raised."""
    try:
        function, args, seconds = pickle.loads(message)  # noqa: S301  # our caller
        if seconds is not None:
            # Needs no lock of Python, so it also ends a huge power that never lets go of it.
            faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            result = function(*args)
        finally:
            faulthandler.cancel_dump_traceback_later()
        return pickle.dumps((False, result))
    except BaseException as error:  # noqa: BLE001  # raised again where it was called
        return _portable(error)


def _portable(error: BaseException) -> bytes:
    """An error as a message; one that cannot be pickled keeps its words only."""
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    try:
        message = pickle.dumps((True, error))
        pickle.loads(message)  # noqa: S301  # just made
    except BaseException:  # noqa: BLE001  # foreign code again
        words = f"{type(error).__name__}: {error}"
        return pickle.dumps((True, WorkerError(words, hint="see the traceback.")))
    return message
