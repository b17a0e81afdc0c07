"""Execution of a plan in several threads, which read, merge and write piece by piece.

While one thread waits for the disk the others compute, so that the next tensors are read while the
current one is merged. Memory is bounded: pieces of tensors if a method works value by value, else
whole tensors, as many as fit into the memory that the largest one needs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from threading import Condition, Event, Lock
from typing import TYPE_CHECKING

from forgetmap.errors import FieldError
from forgetmap.merge.checkpoint import Checkpoint
from forgetmap.merge.output.atomic_folder import AtomicFolder, Piece
from forgetmap.merge.tensor_file import WIDTHS

if TYPE_CHECKING:
    import torch

    from forgetmap.merge.job import TensorJob

PIECE = 1 << 19
"""Number of values read and written at once if a method works value by value."""
MIN_MEMORY = 128 << 20
"""Memory limit in bytes if the largest tensor needs less."""
ADAPTER_BYTES = 12
"""Additional bytes per value while an adapter is added, or a tensor is changed otherwise on
reading."""
PROGRESS_INTERVAL_S = 0.1
"""Seconds between two progress reports."""


@dataclass(frozen=True, slots=True)
class MergeStep:
    """Progress of a merge, in bytes of the result.

    Attributes:
        done: bytes written so far.
        total: bytes of the result.
        kept: bytes written by an earlier attempt.
        seconds: seconds since the start of this attempt.
    """

    done: int
    total: int
    kept: int
    seconds: float


OnProgress = Callable[[MergeStep], None]
"""Progress callback, called several times a second."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """One unit of work: some values of a tensor, or all of them (`whole`).

    Attributes:
        width: bytes in memory for every value of the result.
    """

    job: TensorJob
    start: int
    count: int
    whole: bool
    width: int

    @property
    def piece(self) -> Piece:
        """Position of its values in the result."""
        width = WIDTHS[self.job.dtype]
        return self.job.name, self.start * width, self.count * width

    @property
    def memory(self) -> int:
        """Approximate number of bytes that it needs."""
        return self.count * self.width


class _MemoryLimit:
    """Admits units while there is memory; a single unit is always admitted."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._changed = Condition()

    def acquire(self, size: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + size <= self._limit)
            self._used += size

    def release(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()


class MergeEngine:
    """Runs the remaining units of a merge in threads."""

    def __init__(
        self, jobs: Sequence[TensorJob], models: Mapping[str, Checkpoint], folder: AtomicFolder
    ) -> None:
        units = [unit for job in jobs for unit in work_units(job, models)]
        remaining = [unit for unit in units if unit.piece not in folder.done]
        self._models = models
        self._folder = folder
        self._total = sum(unit.piece[2] for unit in units)
        self._kept = self._total - sum(unit.piece[2] for unit in remaining)
        self._left = iter(remaining)
        self._memory = _MemoryLimit(max([MIN_MEMORY, *(unit.memory for unit in remaining)]))
        self._order = Lock()
        self._stop = Event()
        self._written = 0

    def run(self, threads: int, on_progress: OnProgress) -> None:
        """Run all units; the first error in a thread stops it."""
        started = time.monotonic()
        with single_threaded_torch(), ThreadPoolExecutor(threads, "merge") as pool:
            try:
                futures: list[Future[None]] = [
                    pool.submit(self._run_thread) for _ in range(threads)
                ]
                busy = set(futures)
                while busy:
                    ended, busy = wait(busy, PROGRESS_INTERVAL_S, FIRST_EXCEPTION)
                    for future in ended:
                        future.result()
                    done = self._kept + self._written
                    seconds = time.monotonic() - started
                    on_progress(MergeStep(done, self._total, self._kept, seconds))
            finally:
                self._stop.set()

    def _run_thread(self) -> None:
        buffers = _Buffers()
        while not self._stop.is_set():
            with self._order:  # in order, so that files are read from front to back
                unit = next(self._left, None)
                if unit is None:
                    return
                self._memory.acquire(unit.memory)
            try:
                self._folder.write(unit.piece, _bytes_of(self._merge(unit, buffers)))
            except BaseException:
                # Also when interrupted: the other threads must not continue for hours.
                self._stop.set()
                raise
            finally:
                self._memory.release(unit.memory)
            with self._order:
                self._written += unit.piece[2]

    def _merge(self, unit: WorkUnit, buffers: _Buffers) -> torch.Tensor:
        """Merge a unit, and check that all values are finite."""
        values, job = self._read(unit, buffers), unit.job
        # Pieces are checked only if the result is not finite: a method that works value by value
        # passes NaN on, while one on whole tensors may lose it in a sort or a threshold.
        if unit.whole:
            self._check(job, values)
        inputs = len(job.inputs)
        result = None if unit.whole else buffers.values(-1, job.dtype, unit.count)
        merged = job.compute(values[:inputs], values[inputs] if job.base else None, result)
        if not is_finite(merged):
            self._check(job, values)
            raise FieldError(
                f"The merged tensor {job.name} has values outside the range of {job.dtype}.",
                field=job.name,
                hint="choose a wider dtype, or smaller weights.",
            )
        return merged

    def _read(self, unit: WorkUnit, buffers: _Buffers) -> list[torch.Tensor]:
        """Read the values of a unit from every model, the base last."""
        sources = sources_of(unit.job)
        if unit.whole:
            return [self._models[model].read(name) for model, name in sources]
        pieces = []
        for index, (model, name) in enumerate(sources):
            checkpoint = self._models[model]
            values = buffers.values(index, checkpoint.tensors[name].dtype, unit.count)
            checkpoint.read_into(values, name, unit.start)
            pieces.append(values)
        return pieces

    def _check(self, job: TensorJob, tensors: Sequence[torch.Tensor]) -> None:
        """Raise an error if a model has values that cannot be merged."""
        for (model, name), values in zip(sources_of(job), tensors, strict=True):
            if not is_finite(values):
                raise FieldError(
                    f"The weights have NaN or infinite values in the tensor {name}.",
                    file=model,
                    field=name,
                    hint="use another checkpoint of the model; these weights are broken.",
                )


class _Buffers:
    """Memory that a thread reuses, because allocating it takes longer."""

    def __init__(self) -> None:
        self._tensors: dict[tuple[int, str], torch.Tensor] = {}

    def values(self, index: int, dtype: str, count: int) -> torch.Tensor:
        """Return a buffer for a piece."""
        import torch  # heavy

        if (index, dtype) not in self._tensors:
            self._tensors[index, dtype] = torch.empty(PIECE, dtype=getattr(torch, dtype))
        return self._tensors[index, dtype][:count]


def sources_of(job: TensorJob) -> list[tuple[str, str]]:
    """Return models and tensors to read, the base last."""
    return [*job.inputs, *([job.base] if job.base else [])]


def _bytes_of(values: torch.Tensor) -> memoryview:
    import torch  # heavy

    return values.contiguous().view(-1).view(torch.uint8).numpy().data


def work_units(job: TensorJob, models: Mapping[str, Checkpoint]) -> Iterator[WorkUnit]:
    """Return a job as a whole, or in pieces if that gives the same result."""
    count = prod(job.shape)
    sources = [(models[model], name) for model, name in sources_of(job)]
    stored = [model.tensors[name] for model, name in sources]
    can_read_in_parts = all(model.can_read_in_parts(name) for model, name in sources)
    width = WIDTHS[job.dtype] + sum(WIDTHS[info.dtype] for info in stored)
    alike = can_read_in_parts and all(info.shape == job.shape for info in stored)
    if not (job.elementwise and alike) or count <= PIECE:
        yield WorkUnit(
            job, 0, count, whole=True, width=width + (0 if can_read_in_parts else ADAPTER_BYTES)
        )
        return
    for start in range(0, count, PIECE):
        yield WorkUnit(job, start, min(PIECE, count - start), whole=False, width=width)


def is_finite(values: torch.Tensor) -> bool:
    """Return whether no value is NaN or infinite, in passes that need no memory."""
    if not values.is_floating_point() or not values.numel():
        return True
    import torch  # heavy

    narrow = values.element_size() == 1  # float8 has neither sums nor a minimum
    if not narrow and torch.isfinite(values.sum()):
        return True  # the faster pass; a sum may also overflow
    low, high = (values.float() if narrow else values).aminmax()
    return bool(torch.isfinite(low) & torch.isfinite(high))


def default_threads() -> int:
    """Return the default number of threads: one per core, and one that waits for the disk."""
    return min(len(os.sched_getaffinity(0)) + 1, 8)


@contextmanager
def single_threaded_torch() -> Iterator[None]:
    """Limit torch to one thread per operation: then sums do not depend on the number of cores."""
    import torch  # heavy

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
