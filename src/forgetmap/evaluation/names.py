"""What runs are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forgetmap.errors import UsageError


def run_names(models: Sequence[Any]) -> list[str]:
    """A name for each run: what the model is called, with its place in front."""
    names = []
    for number, model in enumerate(models):
        if not isinstance(model, str | Path):
            raise UsageError(
                "only paths, hub ids and addresses can be taken here",
                hint="evaluate live models one by one with fm.evaluate, then compare the runs.",
            )
        last = re.split(r"[/\\#]", str(model).rstrip("/\\"))[-1]
        shown = re.sub(r"[^\w.-]+", "-", last).strip("-.") or "model"
        names.append(f"{number}-{shown}")
    return names
