"""Files that stand beside the samples and say more about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from forgetmap.errors import UnreadableError
from forgetmap.sources.decode import document
from forgetmap.sources.fields import as_mapping
from forgetmap.sources.files import LogFile


def beside(file: LogFile, others: Sequence[LogFile], *, alone: bool) -> list[LogFile]:
    """Those of the nearest folder: that of the file, else one that holds it.

    What lies elsewhere belongs to another run, unless there is only one.

    Args:
        file: holds the samples.
        others: what may belong to it.
        alone: whether no other file holds samples.
    """
    for folder in PurePosixPath(file.inside).parents:
        near = [other for other in others if PurePosixPath(other.inside).parent == folder]
        if near:
            return near
    return list(others) if alone else []


def only_beside(
    file: LogFile, others: Sequence[LogFile], holding_samples: Sequence[LogFile]
) -> LogFile | None:
    """The one that belongs to a file with samples; None if several might."""
    near = beside(file, others, alone=len(holding_samples) == 1)
    return near[0] if len(near) == 1 else None


def run_folder(file: LogFile) -> PurePosixPath:
    """Where results and predictions of one run meet: `RUN/KIND/MODEL/FILE`."""
    return PurePosixPath(file.name).parent.parent.parent


def small_document(file: LogFile | None) -> dict[str, Any]:
    """The object in a file; empty if there is no such file, or it is broken or holds none."""
    try:
        return as_mapping(document(file)) if file else {}
    except UnreadableError:
        return {}
