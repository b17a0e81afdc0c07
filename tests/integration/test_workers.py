"""The pool of worker processes: order, failures, timeouts, cleanup."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

import worker_tasks as tasks
from forgetmap import _workers, errors
from forgetmap._workers import TASKS_AHEAD, WorkerPool, WorkerProcess, call_apart, count_cores
from forgetmap.capabilities.batches import score_batch
from forgetmap.errors import FieldError, TaskTimeoutError, WorkerError
from forgetmap.scoring.extract.maths import _compare


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2) as pool:
        yield pool


def is_gone(process: int) -> bool:
    """Whether a process ends within some seconds."""
    try:
        found = psutil.Process(process)
        found.wait(120)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def test_results_come_in_order(pool: WorkerPool) -> None:
    assert list(pool.map(tasks.double_slowly, range(20))) == [2 * n for n in range(20)]


def test_tasks_are_read_as_they_are_needed(pool: WorkerPool) -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    results = pool.map(tasks.double, numbers())
    assert next(results) == 0
    assert len(read) == TASKS_AHEAD * pool.size
    assert list(results) == [2 * n for n in range(1, 100)]


def test_no_tasks_start_no_process(pool: WorkerPool) -> None:
    assert list(pool.map(tasks.double, [])) == []
    assert pool._workers == set()


def test_several_processes_work(pool: WorkerPool) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = set(threads.map(lambda seconds: pool.call(tasks.nap, seconds), [0.5, 0.5]))
    assert len(found) == 2
    assert os.getpid() not in found


def test_calls_one_after_the_other_use_one_process(pool: WorkerPool) -> None:
    assert len({pool.call(tasks.pid) for _ in range(4)}) == 1


def test_a_pool_of_one_maps_in_this_process() -> None:
    with WorkerPool(1) as pool:
        assert list(pool.map(tasks.pid, range(3))) == [os.getpid()] * 3
        assert pool.call(tasks.pid) != os.getpid()


def test_a_task_whose_process_dies_is_done_again(pool: WorkerPool, tmp_path: Path) -> None:
    marks = [tmp_path / str(n) for n in range(4)]
    assert list(pool.map(tasks.die_once, marks)) == ["second try"] * 4


def test_a_task_that_kills_every_process_is_a_typed_error(pool: WorkerPool) -> None:
    with pytest.raises(WorkerError, match="exit code -9") as caught:
        list(pool.map(tasks.die, range(2)))
    assert "--processes 1" in caught.value.hint


def test_an_idle_process_that_died_is_replaced(pool: WorkerPool) -> None:
    first = pool.call(tasks.pid)
    os.kill(first, signal.SIGKILL)
    assert is_gone(first)
    assert pool.call(tasks.pid) != first


def test_a_call_that_hangs_is_ended_and_the_next_one_works(pool: WorkerPool) -> None:
    process = pool.call(tasks.pid)
    with pytest.raises(TaskTimeoutError, match=r"longer than 0\.3 s"):
        pool.call(tasks.nap, 60.0, seconds=0.3)
    assert is_gone(process)
    assert pool.call(tasks.double, 4, seconds=30) == 8


def test_a_call_that_never_lets_go_of_the_interpreter_is_ended(pool: WorkerPool) -> None:
    with pytest.raises(TaskTimeoutError):
        pool.call(tasks.never_let_go, seconds=0.3)


def test_the_time_of_one_call_does_not_end_the_next(pool: WorkerPool) -> None:
    process = pool.call(tasks.nap, 0.0, seconds=2.0)
    assert pool.call(tasks.nap, 2.2) == process


def test_errors_come_back_as_they_are(pool: WorkerPool) -> None:
    with pytest.raises(FieldError, match="not a number") as caught:
        list(pool.map(tasks.refuse, range(3)))
    assert (caught.value.file, caught.value.line, caught.value.field) == ("a.csv", 3, "score")
    assert "worker_tasks.py" in caught.value.__notes__[0]


def test_an_error_that_cannot_travel_keeps_its_words(pool: WorkerPool) -> None:
    process = pool.call(tasks.pid)
    with pytest.raises(WorkerError, match="OddError: oddness"):
        pool.call(tasks.refuse_oddly)
    assert pool.call(tasks.pid) == process


def test_what_cannot_be_sent_is_an_error_here(pool: WorkerPool) -> None:
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        pool.call(lambda: 1)
    assert pool.call(tasks.double, 1) == 2


def test_what_is_printed_and_read_does_not_disturb(pool: WorkerPool) -> None:
    assert pool.call(tasks.print_a_lot) == ""
    assert pool.call(tasks.double, 1) == 2


def test_each_process_is_prepared_once_whatever_the_time_limit() -> None:
    with WorkerPool(2, prepare=tasks.prepare) as pool:
        assert [pool.call(tasks.times_prepared, seconds=2.0) for _ in range(3)] == [1, 1, 1]


def test_a_failed_preparation_leaves_no_process() -> None:
    with WorkerPool(2, prepare=tasks.refuse) as pool:
        for _ in range(3):
            with pytest.raises(FieldError):
                pool.call(tasks.pid)
        assert all(not worker.is_alive() for worker in pool._workers)


def test_a_process_starts_light(pool: WorkerPool) -> None:
    heavy = {"pandas", "duckdb", "torch", "pyarrow", "numpy", "pydantic", "multiprocessing"}
    assert not heavy & pool.call(tasks.loaded)


@pytest.mark.parametrize("work", [score_batch, _compare])
def test_work_loads_neither_pandas_nor_an_engine(
    work: Callable[..., object], pool: WorkerPool
) -> None:
    with pytest.raises(TypeError, match="missing"):
        pool.call(work)
    assert not {"pandas", "duckdb", "torch", "narwhals", "rich"} & pool.call(tasks.loaded)


def test_closing_ends_what_is_under_way() -> None:
    with WorkerPool(2) as pool:
        processes = {pool.call(tasks.pid)}
        results = pool.map(tasks.nap, [0.0, *[120.0] * 6])
        processes.add(next(results))
        start = time.monotonic()
        results.close()  # type: ignore[attr-defined]  # a generator
    assert time.monotonic() - start < 60
    assert all(map(is_gone, processes))
    with pytest.raises(WorkerError, match="closed"):
        pool.call(tasks.pid)


def test_temporary_files_are_gone_afterwards() -> None:
    with WorkerPool(2) as pool, ThreadPoolExecutor(2) as threads:
        folders = [threads.submit(pool.call, tasks.make_temporary_file) for _ in range(2)]
        homes = {folder.result().parent.parent for folder in folders}
        assert all(home.is_dir() for home in homes)
    assert not any(home.exists() for home in homes)


def test_a_process_of_its_own_is_gone_afterwards() -> None:
    assert is_gone(call_apart(tasks.pid))


SCRIPT = """
import sys
sys.path.insert(0, {support!r})
from worker_tasks import double, nap, pid
from forgetmap._workers import WorkerPool
print("start", flush=True)
pool = WorkerPool(2)
print(*pool.map(double, range(5)), flush=True)
print(*(worker.pid for worker in pool._workers), flush=True)
list(pool.map(nap, [600.0] * 2)) if {hang} else pool.close()
"""


def start_script(folder: Path, *, hang: bool) -> subprocess.Popen[str]:
    """A script whose main part has no guard."""
    path = folder / "script.py"
    support = str(Path(tasks.__file__).parent)
    path.write_text(SCRIPT.format(support=support, hang=hang), encoding="utf-8")
    command = [sys.executable, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    with start_script(tmp_path, hang=False) as script:
        assert script.stdout
        lines = script.stdout.read().splitlines()
    assert script.returncode == 0
    assert lines[:2] == ["start", "0 2 4 6 8"]


def test_processes_end_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    with start_script(tmp_path, hang=True) as script:
        assert script.stdout
        lines = [script.stdout.readline() for _ in range(3)]
        workers = [int(each) for each in lines[2].split()]
        folders = [psutil.Process(each).environ()["TMPDIR"] for each in workers]
        assert workers
        time.sleep(0.5)  # until they have a task
        script.kill()
    assert all(map(is_gone, workers))
    assert not any(Path(folder).exists() for folder in folders)


def test_a_quota_counts_for_less_than_all_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(_workers, "CPU_QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert count_cores() == 8
    for content, cores in [("max 100000", 8), ("250000 100000", 3), ("1000 100000", 1)]:
        quota.write_text(content)
        assert count_cores() == cores


def test_a_call_sends_messages_on_its_way() -> None:
    worker = WorkerProcess(light=False, environment={"FORGETMAP_TRIAL": "here"})
    messages: list[object] = []
    try:
        assert (
            worker.call(tasks.tell_environment, "FORGETMAP_TRIAL", on_message=messages.append) == 2
        )
        assert worker.call(tasks.tell_environment, "FORGETMAP_TRIAL") == 2  # nobody listens
    finally:
        worker.kill()
    assert messages == ["here", True]
    tasks.tell_environment("FORGETMAP_TRIAL")  # no worker: nobody is told


def test_every_error_keeps_its_kind_on_its_way() -> None:
    classes = [one for one in vars(errors).values() if isinstance(one, type)]
    kinds: list[Any] = [one for one in classes if issubclass(one, errors.ForgetmapError)]
    assert len(kinds) > 20
    for kind in kinds:
        words = ("a", "b", "c") if kind is errors.MissingPackageError else ("a",)
        error = kind(*words) if len(words) > 1 else kind(*words, hint="b")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (kind, str(error))
