"""Capability drift of the methods, measured with the suite `capabilities`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from forgetmap.capabilities import Cell, drift
from forgetmap.evaluation import Settings, evaluate
from forgetmap.lab.arms import MODEL
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.result import LabCapability, LabRun
from forgetmap.results import Estimate

SUITE, TAXONOMY = "capabilities", "sample"
MAX_TOKENS = 48
"""Maximum length of a response: enough to see its form, and fast on a CPU."""
FOLDER = "capabilities"
METHOD = "mean effect, bootstrap"


def measure_capabilities(
    recipe: LabRecipe, out: Path, chosen: Mapping[str, LabRun]
) -> list[LabCapability]:
    """Return the drift from the start model to one run of each method.

    Args:
        recipe: start model, data and settings.
        out: folder of the lab; existing runs are not repeated.
        chosen: one run of each method.
    """
    start = _ask(recipe.start, out / FOLDER / "start")
    runs = [
        (name, _ask(out / run.folder / MODEL, out / FOLDER / run.folder))
        for name, run in chosen.items()
        if not run.diverged
    ]
    if not runs:
        return []
    first, *more = runs
    result = drift(("start", start), first, *more, taxonomy=TAXONOMY)
    return [_capability(cell) for name, _ in runs for cell in result.cells(name)]


def _ask(model: str | Path, out: Path) -> Path:
    settings = Settings(max_new_tokens=MAX_TOKENS)
    return evaluate(str(model), SUITE, out, settings=settings, skip_too_long=True)


def _capability(cell: Cell) -> LabCapability:
    estimate = (
        Estimate.missing(METHOD, cell.note or "no data")
        if cell.value is None
        else Estimate(value=cell.value, low=cell.low, high=cell.high, method=METHOD)
    )
    return LabCapability(
        method=cell.model,
        group=cell.group or cell.id,
        capability=cell.id if cell.group else None,
        name=cell.name,
        drift=estimate,
    )
