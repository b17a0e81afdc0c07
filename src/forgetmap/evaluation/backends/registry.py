"""Backends by name: ours, and those that installed packages add.

A package adds one by an entry point in the group `forgetmap.backends`. Its name is what users put
before a model (`NAME:MODEL`), and it refers to a function from a `ModelSource` and `LoadOptions` to
a `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from forgetmap._plugins import Registry
from forgetmap.evaluation.backends.base import Backend, LoadOptions, ModelSource

OpenBackend = Callable[[ModelSource, LoadOptions], Backend]
_HERE = "forgetmap.evaluation.backends"


def _check(entry: object) -> OpenBackend:
    if not callable(entry):
        raise TypeError("a backend is a function from a model source and options to a backend")
    return cast("OpenBackend", entry)


BACKENDS: Registry[OpenBackend] = Registry(
    group="forgetmap.backends",
    kind="backend",
    built_in={
        "transformers": f"{_HERE}.transformers.backend:open_transformers",
        "vllm": f"{_HERE}.vllm:open_vllm",
        "server": f"{_HERE}.servers.backend:open_server",
    },
    check=_check,
)
