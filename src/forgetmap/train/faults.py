"""Errors of a look that do not end the training."""

from __future__ import annotations

import sys

from forgetmap.errors import ForgetmapError

# If a look works at step 0, later failures are due to the machine or the training: memory or disk
# full, a deleted file, weights that are not numbers, a plugin scorer that fails on a strange
# answer. These errors are listed, because they must not end a week of training. Not listed are
# KeyboardInterrupt, SystemExit and warnings turned into errors, where the user wants the process to
# end; and errors of names and imports (NameError, ImportError), which are bugs that the first look
# would have shown: any failure at step 0 ends the training at once, when nothing is lost yet.
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
    """Return LOOK_FAULTS and the error of writing weights to a full disk."""
    from safetensors import SafetensorError

    return (*LOOK_FAULTS, SafetensorError)


def reporter_faults() -> tuple[type[Exception], ...]:
    """Return LOOK_FAULTS and the errors of loggers that cannot reach their server.

    Only of packages that are loaded: others cannot raise anything.
    """
    named = (("wandb.errors", "Error"), ("httpx", "HTTPError"), ("requests", "RequestException"),
             ("mlflow.exceptions", "MlflowException"))  # fmt: skip
    classes = [getattr(sys.modules.get(module), name, None) for module, name in named]
    return (*LOOK_FAULTS, *(one for one in classes if isinstance(one, type)))
