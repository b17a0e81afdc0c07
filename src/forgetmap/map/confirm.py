"""`map --confirm`: the items that flipped are asked again at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap.comparison import MIN_FLIPS, Comparison, Options
from forgetmap.confirmation import confirm
from forgetmap.errors import UsageError
from forgetmap.evaluation import Suite
from forgetmap.map.models import Models
from forgetmap.records import writable

CONFIRM_FOLDER = "confirm"
"""Folder of the fresh answers; the name is part of the file format."""
PLANNED = "planned.json"


def refuse_confirm(models: int, *, chain: bool, auto: bool) -> None:
    """Refuse to confirm what is not one comparison of two models.

    Raises:
        UsageError: there are several comparisons, or adaptive repeats.
    """
    if auto:
        raise UsageError(
            "--confirm and --repeats auto cannot be combined",
            hint="give a number of --repeats, or remove --confirm.",
        )
    if models > 2 or chain:  # before and after
        raise UsageError(
            "--confirm asks the flips of two models",
            hint="remove --confirm, and confirm single pairs of runs with `forgetmap confirm`.",
        )


def is_planned(out: Path) -> bool:
    """Return whether asking again was planned before a result was seen, and write that down.

    Args:
        out: folder of the map.
    """
    path = out / CONFIRM_FOLDER / PLANNED
    if path.is_file():
        return True
    if (out / "result").exists():
        return False
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"planned": True}) + "\n", encoding="utf-8")
    return True


def confirm_map(
    first: Comparison,
    out: Path,
    models: Models,
    suite: Suite,
    options: Options,
    loading: Mapping[str, Any],
) -> Comparison:
    """Ask the flips of both models again, and return the comparison with the fresh answers.

    Args:
        first: the comparison of the first answers.
        out: folder of the map.
        models: the two models.
        suite: the whole suite.
        options: options of the comparison, with `planned`.
        loading: dtype, device and so on, as for `open_model`.
    """
    if first.result.total.forgotten < MIN_FLIPS:  # nothing to prove
        return first
    runs = [out / "runs" / name for name in models.folders]
    names: Sequence[Any] = [one.model for one in models.models]
    done = confirm(
        *runs,
        out=out / CONFIRM_FOLDER,
        models=(names[0], names[1]),
        suite=suite,
        loading={**loading, "rows": _other_batch(loading.get("rows"))},
        overwrite=models.overwrite,
        on_progress=models.on_progress,
        **options,
    )
    assert done.comparison is not None  # noqa: S101  # the runs of a map name their models
    return done.comparison


def _other_batch(rows: int | None) -> int | None:
    """Return another size of a batch: in the same one, greedy answers would be copies."""
    return None if rows is None else rows - 1 if rows > 1 else 2
