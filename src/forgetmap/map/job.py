"""Evaluate a model before and models after in the same way, then compare them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.comparison import (
    LEVEL,
    MARGIN,
    Chain,
    Comparison,
    FanOut,
    Options,
    compare,
    make_rule,
    write_result,
)
from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import (
    Settings,
    Suite,
    find_style,
    fit_suite,
    load_suite,
    model_labels,
    run_names,
    split_model,
)
from forgetmap.map.adaptive import Auto, run_in_looks
from forgetmap.map.confirm import confirm_map, is_planned, refuse_confirm
from forgetmap.map.models import Models, OnMapProgress
from forgetmap.report import make_payload, write_report
from forgetmap.text import listed

Mapped = Comparison | FanOut | Chain
REPORT = "report.html"
"""The report in the folder of a map."""
RESULT = "result"
"""The folder of the result in it."""
REPEATS = "repeats.json"
"""Statistics of the repeats, in the same folder."""


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
    confirm: bool = False,
    margin: float = MARGIN,
    noise_floor: float | None = None,
    level: float = LEVEL,
    overwrite: bool = False,
    skip_too_long: bool = False,
    on_progress: OnMapProgress | None = None,
    **loading: Any,
) -> Mapped:
    """Evaluate models before and after training on the same items, and compare them.

    All models are evaluated with the same settings and their own random numbers. Existing results
    are kept.

    Args:
        before: the model before: a folder, a hub id, `BASE+ADAPTER` or a GGUF file. Settings of a
            single model follow its name: `MODEL,stage=base,max_tokens=4096`.
        after: the model after.
        more: further models after.
        suite: name of a suite, a file of items, a hub data set, or a `Suite`.
        out: folder for `runs/`, `result/` and `report.html`.
        settings: settings of the evaluation.
        repeats: add repeats only where a verdict is undecided, instead of a fixed number;
            `repeats.json` records them.
        chain: the models are successive checkpoints.
        confirm: ask the items that flipped once more, which proves a loss that one run cannot.
        margin: the largest acceptable loss, as a share of all items.
        noise_floor: share of answers that reruns flip one way at most, if you know it.
        level: confidence level of the intervals and the verdicts.
        overwrite: start again even if there is an earlier result.
        skip_too_long: skip items that exceed the context length of any model; their number is
            recorded in the runs and in the result. Opens every model once more.
        on_progress: called after every answer.
        loading: dtype, device and so on, as for `open_model`.

    Example:
        >>> import forgetmap as fm
        >>> fm.map_models("models/base", "models/sft", suite="basics", out="map")  # doctest: +SKIP
    """
    verdict: Options = {"margin": margin, "noise_floor": noise_floor, "level": level}
    make_rule(verdict)  # a wrong value is an error now, not after the evaluation
    out = Path(out)
    specs = [split_model(model) for model in (before, after, *more)]
    sources = [one.model for one in specs]
    own_settings = [one.settings(settings) for one in specs]
    for one, name in zip(own_settings, model_labels(sources), strict=True):
        find_style(one, name)  # a missing setting is an error now, not after the first model
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    models = Models(
        specs,
        run_names(sources),
        model_labels(sources),
        loading,
        overwrite,
        on_progress,
    )
    _refuse_fewer(models, out)
    if skip_too_long:
        chosen = fit_suite(chosen, own_settings, models.backends())
    if confirm:
        refuse_confirm(len(specs), chain=chain, auto=repeats is not None)
        verdict["planned"] = is_planned(out)
    spending = None
    if repeats is not None:
        _refuse_chain(chain=chain)
        verdict["looks"] = len(repeats.schedule)
        spending = run_in_looks(models, chosen, out, settings or Settings(), repeats, verdict)
    else:
        for index in models.order():
            models.ask(index, chosen, out / "runs" / models.folders[index], settings)
    models.close()
    runs = [out / "runs" / name for name in models.folders]
    result: Mapped = compare(runs[0], runs[1], *runs[2:], chain=chain, **verdict)  # type: ignore[call-overload]
    if isinstance(result, Comparison) and confirm:
        result = confirm_map(result, out, models, chosen, verdict, loading)
    if spending is not None:
        (out / REPEATS).write_text(spending.to_json() + "\n", encoding="utf-8")
    write_result(result, out / RESULT, overwrite=True)
    write_report(make_payload(result), out / REPORT)
    return result


def _refuse_fewer(models: Models, out: Path) -> None:
    """Refuse to replace a result of other models; one of some of these models is extended.

    Raises:
        OutputError: the folder has the result of a model that is not evaluated now.
    """
    path = out / RESULT / "comparison.json"
    if models.overwrite or not path.is_file():
        return
    try:
        earlier = {Path(origin).name for origin in _origins(json.loads(path.read_text("utf-8")))}
    except ValueError:  # damaged, so there is nothing to keep
        return
    left_out = sorted(earlier.difference(models.folders))
    if not left_out:
        return
    command = ""
    if earlier.issuperset(models.folders):
        runs = [str(out / "runs" / name) for name in models.folders]
        command = f" {shlex.join(['forgetmap', 'compare', *runs])} compares its runs."
    raise OutputError(
        f"{out} has the result of {listed(sorted(earlier))}, and {listed(left_out)} would be gone",
        hint=f"choose another folder: --out {shlex.quote(f'{out}-2')}.{command} Add --overwrite to "
        "replace the result.",
    )


def _origins(value: Any) -> Iterator[str]:
    """Return the paths of all runs in the JSON of a result."""
    if isinstance(value, dict):
        found = value.get("origin")
        yield from [found] if isinstance(found, str) else []
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _origins(part)


def _refuse_chain(*, chain: bool) -> None:
    if chain:
        raise UsageError(
            "--repeats auto decides on the comparison with the first model, not on a chain",
            hint="remove --chain and compare the runs with --chain afterwards, or give a number "
            "of --repeats.",
        )
