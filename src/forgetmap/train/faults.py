"""Errors of a look that do not end the training."""

from __future__ import annotations

import sys

from forgetmap.errors import ForgetmapError

# A look that worked at step 0 fails later for what the machine or the training did: memory or disk
# used up, a file taken away, weights that are not numbers, a scorer of another package that chokes
# on a strange answer. All of these must not cost a week of training, and they are what is listed.
# Not listed, and so passed on: KeyboardInterrupt, SystemExit and warnings that a user turned into
# errors, who wants the process to end; and errors of names and syntax (NameError, ImportError),
# which are faults of a program that the first look would have shown: nothing fails at step 0
# without ending the training at once, where nothing is lost yet.
LOOK_FAULTS: tuple[type[Exception], ...] = (
    ForgetmapError,
    OSError,
    MemoryError,
    RuntimeError,  # torch: memory, devices, shapes
    ValueError,
    LookupError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    TypeError,
)


def save_faults() -> tuple[type[Exception], ...]:
    """The same, with what writing weights raises on a full disk."""
    from safetensors import SafetensorError

    return (*LOOK_FAULTS, SafetensorError)


def reporter_faults() -> tuple[type[Exception], ...]:
    """The same, with what loggers raise that cannot reach their server.

    Only of packages that are loaded: others cannot have raised anything.
    """
    named = (("wandb.errors", "Error"), ("httpx", "HTTPError"), ("requests", "RequestException"),
             ("mlflow.exceptions", "MlflowException"))  # fmt: skip
    found = [getattr(sys.modules.get(module), name, None) for module, name in named]
    return (*LOOK_FAULTS, *(one for one in found if isinstance(one, type)))
