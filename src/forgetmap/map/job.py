"""Evaluate a model before and models after in the same way, then compare them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from forgetmap.report.build import make_payload
from forgetmap.report.html import write_report
from forgetmap.runner.evaluate import open_model
from forgetmap.runner.items import Suite
from forgetmap.runner.names import run_names
from forgetmap.runner.run import Step, run_model
from forgetmap.runner.settings import Settings
from forgetmap.runner.suites.catalogue import load_suite
from forgetmap.transitions.chains import Chain
from forgetmap.transitions.compare import FanOut, compare
from forgetmap.transitions.comparison import Comparison
from forgetmap.transitions.export import write_result

Mapped = Comparison | FanOut | Chain
REPORT = "report.html"
Report = Callable[[str, Step], None]
"""Called with the name of the run and how far it is."""


def map_models(
    before: Any,
    after: Any,
    /,
    *more: Any,
    suite: str | Path | Suite,
    out: str | Path,
    settings: Settings | None = None,
    chain: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
    **loading: Any,
) -> Mapped:
    """What did the models after forget, and gain? Evaluates all of them first.

    Every model is asked the same items in the same way, with random numbers of its own. What is
    already there is not done again.

    Args:
        before: the model before: a folder, a hub id, `BASE+ADAPTER` or a GGUF file.
        after: the model after.
        more: further models after.
        suite: its name, a file of items, a hub data set, or a suite.
        out: folder for `runs/`, `result/` and `report.html`.
        settings: how the models are asked.
        chain: the models are ordered checkpoints.
        overwrite: start anew, whatever is there.
        report: called after every answer.
        loading: dtype, device and the like, as for `open_model`.

    Example:
        >>> import forgetmap as fm
        >>> fm.map_models("models/base", "models/sft", suite="basics", out="map")  # doctest: +SKIP
    """
    out = Path(out)
    models = [before, after, *more]
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    names = run_names(models)
    for number, (model, name) in enumerate(zip(models, names, strict=True), start=1):
        # Two runs of one model must not share random numbers, or they would agree by chance.
        backend, who = open_model(model, name=name, salt=str(number), **loading)
        seen = None if report is None else partial(report, name)
        folder = out / "runs" / name
        run_model(backend, chosen, folder, who, settings, overwrite=overwrite, report=seen)
        del backend
    runs = [out / "runs" / name for name in names]
    result: Mapped = compare(runs[0], runs[1], *runs[2:], chain=chain)  # type: ignore[call-overload]
    write_result(result, out / "result", overwrite=True)
    write_report(make_payload(result), out / REPORT)
    return result
