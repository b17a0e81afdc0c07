"""Parallel evaluation of several models of a study, in processes and on servers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from forgetmap._workers import WorkerProcess, count_cores, send
from forgetmap.errors import ForgetmapError, ModelError, UsageError, WorkerError
from forgetmap.evaluation import Step, connect_ray
from forgetmap.study.declaration import Study
from forgetmap.study.ledger import RunLedger
from forgetmap.study.plan import PlannedRun
from forgetmap.study.run_files import RunEffort
from forgetmap.study.single_run import OnStudyProgress, RunOptions, evaluate_plan

INTERVAL_S = 0.2
"""Seconds between two progress messages of a process."""
ATTEMPTS = 2
"""Number of processes that may die on one model."""
GPU_FOLDER = Path("/proc/driver/nvidia/gpus")
HERE = "here"
"""Lane of models that run on this machine or its cluster."""
_RAY = "ray"


def run_in_processes(
    study: Study,
    plans: Sequence[PlannedRun],
    out: Path,
    options: RunOptions,
    ledger: RunLedger,
    parallel: int,
    on_progress: OnStudyProgress | None,
) -> None:
    """Evaluate `parallel` models at a time here, and as many on each server.

    Finished runs are on the disk whatever happens to other processes, and no process outlives this
    one.

    Args:
        study: the study.
        plans: plans in starting order.
        out: folder for one run folder per model.
        options: options of the evaluation.
        ledger: chooses the next model, and records outcomes.
        parallel: number of models at a time.
        on_progress: called at intervals, never concurrently.

    Raises:
        UsageError: `parallel` is below 1.
    """
    if parallel < 1:
        raise UsageError(f"--parallel is {parallel}", hint="use 1 or more.")
    open_plans = [plan for plan in plans if plan.state == "missing"]
    lanes: dict[str, list[PlannedRun]] = {}
    for plan in open_plans:
        lanes.setdefault(plan.server or HERE, []).append(plan)
    here = min(parallel, len(lanes.get(HERE, ())))
    processes = _Processes(study, out, _with_cluster(options, here), ledger, on_progress)
    for lane, queue in lanes.items():
        for place in range(min(parallel, len(queue))):
            environment = _environment(place, here, options) if lane == HERE else {}
            processes.start(queue, environment)
    processes.wait()


class _Processes:
    """Threads with one process each, which evaluate the models of their lane."""

    def __init__(
        self,
        study: Study,
        out: Path,
        options: RunOptions,
        ledger: RunLedger,
        on_progress: OnStudyProgress | None,
    ) -> None:
        self._study, self._out, self._options = study, out, options
        self._ledger = ledger
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._workers: set[WorkerProcess] = set()
        self._is_stopped = False
        self._fault: BaseException | None = None

    def start(self, queue: Sequence[PlannedRun], environment: Mapping[str, str]) -> None:
        """Add a process for the models of this queue."""
        thread = threading.Thread(target=self._work, args=(queue, environment), daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self) -> None:
        """Wait until all is done or this process is stopped; end all processes in both cases."""
        try:
            for thread in self._threads:
                thread.join()
        finally:
            self._stop()
        if self._fault is not None:
            raise self._fault

    def _stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            for worker in self._workers:
                worker.kill()
        for thread in self._threads:
            thread.join()

    def _work(self, queue: Sequence[PlannedRun], environment: Mapping[str, str]) -> None:
        slot = _Slot(self, environment)
        try:
            while (plan := self._next(queue)) is not None:
                self._settle(plan, slot)
        except BaseException as error:  # noqa: BLE001  # raised again by `wait`
            with self._lock:
                self._is_stopped = True
                self._fault = self._fault or error
        finally:
            slot.close()

    def _next(self, queue: Sequence[PlannedRun]) -> PlannedRun | None:
        with self._lock:
            return None if self._is_stopped else self._ledger.begin(queue)

    def _settle(self, plan: PlannedRun, slot: _Slot) -> None:
        try:
            effort = slot.evaluate(plan)
        except ForgetmapError as error:
            with self._lock:
                if not self._is_stopped:  # otherwise we ended it, and nothing failed
                    self._ledger.fail(plan, error)
        except Exception as error:  # noqa: BLE001  # any error is a failure of this model
            reason = f"{type(error).__name__}: {error}"
            hint = f"find the reason with `forgetmap run {plan.source or plan.id} ...`."
            with self._lock:
                self._ledger.fail(plan, ModelError(reason, hint=hint))
        else:
            with self._lock:
                self._ledger.finish(plan, effort)

    def open_worker(self, environment: Mapping[str, str]) -> WorkerProcess:
        """Start a process, unless everything is being stopped."""
        with self._lock:
            if self._is_stopped:
                raise WorkerError("the study was stopped", hint="run the same command to resume.")
            worker = WorkerProcess(light=False, environment=environment)
            self._workers.add(worker)
            return worker

    def close_worker(self, worker: WorkerProcess) -> None:
        """End a process."""
        with self._lock:
            worker.kill()
            self._workers.discard(worker)

    def call(self, worker: WorkerProcess, plan: PlannedRun) -> RunEffort:
        """Evaluate a model in a process."""

        def tell(step: Step) -> None:
            with self._lock:
                if self._on_progress is not None:
                    self._on_progress(plan.id, step)

        return worker.call(
            evaluate_in_worker, self._study, plan, self._out, self._options, on_message=tell
        )


class _Slot:
    """Evaluates one model at a time in a process, which is replaced if it dies."""

    def __init__(self, processes: _Processes, environment: Mapping[str, str]) -> None:
        self._processes = processes
        self._environment = environment
        self._worker: WorkerProcess | None = None

    def evaluate(self, plan: PlannedRun) -> RunEffort:
        """Evaluate a model; if its process dies, try once more in another one."""
        for attempt in range(1, ATTEMPTS + 1):
            worker = self._worker or self._processes.open_worker(self._environment)
            self._worker = worker
            try:
                return self._processes.call(worker, plan)
            except WorkerError:
                if worker.is_alive():
                    raise
                self.close()
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError  # the last attempt returned or raised

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._processes.close_worker(self._worker)
            self._worker = None


def evaluate_in_worker(study: Study, plan: PlannedRun, out: Path, options: RunOptions) -> RunEffort:
    """Evaluate one model in a worker process, which sends its progress at intervals."""
    last = 0.0

    def tell(_: str, step: Step) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= INTERVAL_S or step.done == step.total:
            last = now
            send(step)

    return evaluate_plan(study, plan, out, options, tell)


def _environment(place: int, count: int, options: RunOptions) -> dict[str, str]:
    """Return variables that give a process an equal share of processors and GPUs."""
    variables = {}
    threads = options.threads or (max(count_cores() // count, 1) if count > 1 else None)
    if threads is not None and (options.threads or "OMP_NUM_THREADS" not in os.environ):
        variables["OMP_NUM_THREADS"] = str(threads)
    gpus = visible_gpus()
    if gpus and options.loading.get("device", "auto") == "auto":
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(
            gpus[place::count] or [gpus[place % len(gpus)]]
        )
    return variables


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, without loading a library."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name.strip() for name in chosen.split(",") if name.strip()]
    with suppress(OSError):
        return [str(number) for number, _ in enumerate(GPU_FOLDER.iterdir())]
    return []


def _with_cluster(options: RunOptions, count: int) -> RunOptions:
    """Make models share one Ray cluster equally."""
    engine = str(options.loading.get("engine", ""))
    if count < 2 or engine.partition(":")[0] != _RAY:
        return options
    loading = {**options.loading, "models_at_once": count}
    if engine == _RAY:  # we start one: all processes must join the same
        ray = connect_ray(None)
        loading["engine"] = f"{_RAY}:{ray.get_runtime_context().gcs_address}"
    return replace(options, loading=loading)
