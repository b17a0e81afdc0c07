"""The start model of the tiny world, created once and stored in the cache of the user."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

from forgetmap._cache import cached_folder
from forgetmap.errors import OutputError
from forgetmap.evaluation import pretraining_text
from forgetmap.lab.tiny_world import OnStep, Pretraining, make_start

SAMPLE = 200
"""Number of documents of the world in the cache key."""


def kept_start() -> Path:
    """Return the folder of the start model in the cache."""
    facts = [asdict(Pretraining()), *pretraining_text(SAMPLE)]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    return cached_folder(f"tiny-{key}", "lab")


def write_start(
    out: Path, pretraining: Pretraining | None = None, on_step: OnStep | None = None
) -> Path:
    """Pre-train a start model; its folder appears only when it is complete.

    Raises:
        OutputError: the path already exists, or is not writable.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out} already exists", hint="choose another --out.")
    partial = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        make_start(partial, pretraining, on_step)
        if out.is_dir():
            out.rmdir()
        partial.replace(out)
    except OSError as error:
        raise OutputError(
            f"cannot write {out}: {error.strerror or error}",
            hint="choose a writable folder on a disk with enough space.",
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return out
