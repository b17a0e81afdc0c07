"""Doing the jobs of a plan: several workers, each reading, merging and writing a piece at a time.

While one worker waits for the disk the others compute, so that the next tensors are read while the
current one is merged. What is in memory at once is bounded: pieces of tensors where a method works
value by value, else whole tensors, of which as many as fit into what the largest one needs.
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
from forgetmap.merge.stage import Piece, Stage
from forgetmap.merge.tensor_file import WIDTHS

if TYPE_CHECKING:
    import torch

    from forgetmap.merge.plan import TensorJob

PIECE = 1 << 19
"""Values read and written at once where a method works value by value."""
AT_LEAST = 128 << 20
"""Bytes that may be in memory even if the largest tensor needs less."""
ADDING = 12
"""Bytes per value on top while an adapter is added, or a tensor is changed otherwise on reading."""
LOOK = 0.1
"""Seconds between two looks at how far the workers are."""


@dataclass(frozen=True, slots=True)
class MergeStep:
    """How far a merge is, in bytes of the result.

    Attributes:
        done: written so far.
        total: to be written in all.
        kept: written by an earlier attempt.
        seconds: since this attempt began.
    """

    done: int
    total: int
    kept: int
    seconds: float


Report = Callable[[MergeStep], None]


@dataclass(frozen=True, slots=True)
class Unit:
    """What a worker does at a time: some values of a tensor, or all of them (`whole`).

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
        """Its place in the result."""
        width = WIDTHS[self.job.dtype]
        return self.job.name, self.start * width, self.count * width

    @property
    def memory(self) -> int:
        """Bytes it needs, about."""
        return self.count * self.width


class _Room:
    """Admits units while there is memory, and any unit when there is no other."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._changed = Condition()

    def take(self, size: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + size <= self._limit)
            self._used += size

    def give(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()


class Crew:
    """Workers on the units of a merge that are not done yet."""

    def __init__(
        self, jobs: Sequence[TensorJob], models: Mapping[str, Checkpoint], stage: Stage
    ) -> None:
        units = [unit for job in jobs for unit in units_of(job, models)]
        left = [unit for unit in units if unit.piece not in stage.done]
        self._models = models
        self._stage = stage
        self._total = sum(unit.piece[2] for unit in units)
        self._kept = self._total - sum(unit.piece[2] for unit in left)
        self._left = iter(left)
        self._room = _Room(max([AT_LEAST, *(unit.memory for unit in left)]))
        self._turn = Lock()
        self._stop = Event()
        self._made = 0

    def work(self, threads: int, report: Report) -> None:
        """Do everything; the first error of a worker ends it."""
        started = time.monotonic()
        with one_thread_each(), ThreadPoolExecutor(threads, "merge") as pool:
            try:
                workers: list[Future[None]] = [pool.submit(self._work) for _ in range(threads)]
                busy = set(workers)
                while busy:
                    over, busy = wait(busy, LOOK, FIRST_EXCEPTION)
                    for worker in over:
                        worker.result()
                    done = self._kept + self._made
                    seconds = time.monotonic() - started
                    report(MergeStep(done, self._total, self._kept, seconds))
            finally:
                self._stop.set()

    def _work(self) -> None:
        desk = _Desk()
        while not self._stop.is_set():
            with self._turn:  # in order, so that files are read from front to back
                unit = next(self._left, None)
                if unit is None:
                    return
                self._room.take(unit.memory)
            try:
                self._stage.write(unit.piece, _bytes_of(self._merged(unit, desk)))
            except BaseException:
                self._stop.set()
                raise
            finally:
                self._room.give(unit.memory)
            with self._turn:
                self._made += unit.piece[2]

    def _merged(self, unit: Unit, desk: _Desk) -> torch.Tensor:
        """The values to write, all of them finite."""
        read, job = self._read(unit, desk), unit.job
        if unit.whole:
            self._check(job, read)
        inputs = len(job.inputs)
        result = None if unit.whole else desk.values(-1, job.dtype, unit.count)
        merged = job.compute(read[:inputs], read[inputs] if job.base else None, result)
        if not finite(merged):
            self._check(job, read)
            raise FieldError(
                f"Merged, the tensor {job.name} has values that {job.dtype} cannot hold.",
                field=job.name,
                hint="choose a wider dtype, or smaller weights.",
            )
        return merged

    def _read(self, unit: Unit, desk: _Desk) -> list[torch.Tensor]:
        """What a unit needs of every model, the base last."""
        sources = sources_of(unit.job)
        if unit.whole:
            return [self._models[model].read(name) for model, name in sources]
        read = []
        for place, (model, name) in enumerate(sources):
            checkpoint = self._models[model]
            values = desk.values(place, checkpoint.tensors[name].dtype, unit.count)
            checkpoint.read_into(values, name, unit.start)
            read.append(values)
        return read

    def _check(self, job: TensorJob, read: Sequence[torch.Tensor]) -> None:
        """Raise if a model brought values that cannot be merged."""
        for (model, name), values in zip(sources_of(job), read, strict=True):
            if not finite(values):
                raise FieldError(
                    f"The weights have NaN or infinite values in the tensor {name}.",
                    file=model,
                    field=name,
                    hint="these weights are broken: take another checkpoint of the model.",
                )


class _Desk:
    """Memory that a worker uses again and again: asking the system for it takes longer."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], torch.Tensor] = {}

    def values(self, place: int, dtype: str, count: int) -> torch.Tensor:
        """Room for a piece."""
        import torch  # heavy

        if (place, dtype) not in self._kept:
            self._kept[place, dtype] = torch.empty(PIECE, dtype=getattr(torch, dtype))
        return self._kept[place, dtype][:count]


def sources_of(job: TensorJob) -> list[tuple[str, str]]:
    """Models and tensors to read, the base last."""
    return [*job.inputs, *([job.base] if job.base else [])]


def _bytes_of(values: torch.Tensor) -> memoryview:
    import torch  # heavy

    return values.contiguous().view(-1).view(torch.uint8).numpy().data


def units_of(job: TensorJob, models: Mapping[str, Checkpoint]) -> Iterator[Unit]:
    """A job as a whole, or in pieces where that gives the same."""
    count = prod(job.shape)
    read = [(models[model], name) for model, name in sources_of(job)]
    stored = [model.tensors[name] for model, name in read]
    in_parts = all(model.in_parts(name) for model, name in read)
    width = WIDTHS[job.dtype] + sum(WIDTHS[info.dtype] for info in stored)
    alike = in_parts and all(info.shape == job.shape for info in stored)
    if not (job.elementwise and alike) or count <= PIECE:
        yield Unit(job, 0, count, whole=True, width=width + (0 if in_parts else ADDING))
        return
    for start in range(0, count, PIECE):
        yield Unit(job, start, min(PIECE, count - start), whole=False, width=width)


def finite(values: torch.Tensor) -> bool:
    """Whether no value is NaN or infinite, in passes that need no memory."""
    if not values.is_floating_point() or not values.numel():
        return True
    import torch  # heavy

    narrow = values.element_size() == 1  # for float8 there are neither sums nor a minimum
    if not narrow and torch.isfinite(values.sum()):
        return True  # the quicker pass; a sum may also overflow
    low, high = (values.float() if narrow else values).aminmax()
    return bool(torch.isfinite(low) & torch.isfinite(high))


def workers() -> int:
    """How many are best: one computes on each core, and one more waits for the disk."""
    return min(len(os.sched_getaffinity(0)) + 1, 8)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Every worker computes on its own: sums then come out the same on any number of cores."""
    import torch  # heavy

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
