"""Evaluate a model before and models after in the same way, then compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forgetmap.comparison import Chain, Comparison, FanOut, compare, write_result
from forgetmap.errors import UsageError
from forgetmap.evaluation import Settings, Suite, load_suite, run_names
from forgetmap.map.adaptive import Auto, ask_in_looks
from forgetmap.map.models import Models, Report
from forgetmap.map.verdicts import with_decisions
from forgetmap.report import make_payload, write_report

Mapped = Comparison | FanOut | Chain
REPORT, REPEATS = "report.html", "repeats.json"


def map_models(  # noqa: PLR0913  # as many as the command has
    before: Any,
    after: Any,
    /,
    *more: Any,
    suite: str | Path | Suite,
    out: str | Path,
    settings: Settings | None = None,
    repeats: Auto | None = None,
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
        repeats: spend repeats where a verdict is open, instead of a fixed number of them; what was
            spent is in `repeats.json`.
        chain: the models are ordered checkpoints.
        overwrite: start anew, whatever is there.
        report: called after every answer.
        loading: dtype, device and the like, as for `open_model`.

    Example:
        >>> import forgetmap as fm
        >>> fm.map_models("models/base", "models/sft", suite="basics", out="map")  # doctest: +SKIP
    """
    out = Path(out)
    given = [before, after, *more]
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    models = Models(given, run_names(given), loading, overwrite, report)
    spent = None
    if repeats is not None:
        _refuse_chain(chain=chain)
        spent = ask_in_looks(models, chosen, out, settings or Settings(), repeats)
    else:
        for place, name in enumerate(models.names):
            models.ask(place, chosen, out / "runs" / name, settings)
    models.close()
    runs = [out / "runs" / name for name in models.names]
    result: Mapped = compare(runs[0], runs[1], *runs[2:], chain=chain)  # type: ignore[call-overload]
    if spent is not None:
        (out / REPEATS).write_text(spent.to_json() + "\n", encoding="utf-8")
        result = with_decisions(result, spent)
    write_result(result, out / "result", overwrite=True)
    write_report(make_payload(result), out / REPORT)
    return result


def _refuse_chain(*, chain: bool) -> None:
    if chain:
        raise UsageError(
            "repeats are spent on the verdicts against the first model, not on those of a chain",
            hint="leave out --chain, and afterwards compare the runs with --chain; or give a "
            "number of --repeats.",
        )
