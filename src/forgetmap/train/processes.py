"""Distributed training: the first process looks, and all processes act on the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from forgetmap.errors import ForgetmapError

Told = TypeVar("Told")


def decide_together(work: Callable[[], Told], world: int, *, is_first: bool) -> Told:
    """Do the work in the first process and send the result to the others.

    The others wait, so that none enters a collective operation of the training before the first
    one. A ForgetmapError is raised in all processes: otherwise they would wait for a process that
    has ended.

    Args:
        work: function to call in the first process only.
        world: number of processes.
        is_first: whether this is the first process.
    """
    if world <= 1:
        return work()
    from torch import distributed

    box: list[Any] = [None]
    if is_first:
        try:
            box = [work()]
        except ForgetmapError as error:
            box = [error]
    distributed.broadcast_object_list(box, src=0)
    if isinstance(box[0], ForgetmapError):
        raise box[0]
    result: Told = box[0]
    return result
