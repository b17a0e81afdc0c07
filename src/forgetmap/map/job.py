"""Evaluate a model before and models after in the same way, then compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetmap.comparison import (
    BEYOND_NOISE,
    LEVEL,
    MARGIN,
    NOISE_FLOOR,
    Chain,
    Comparison,
    ComparisonResult,
    DecidesResult,
    FanOut,
    GroupResult,
    Options,
    compare,
    decided_sentence,
    make_rule,
    write_result,
)
from forgetmap.errors import UsageError
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
from forgetmap.map.adaptive import Auto, RepeatSpending, run_group_sequential
from forgetmap.map.models import Models, OnMapProgress
from forgetmap.report import make_payload, write_report
from forgetmap.results import Estimate, Notice
from forgetmap.stats import Decision, verdict_of_limits
from forgetmap.text import share

Mapped = Comparison | FanOut | Chain
REPORT = "report.html"
"""The report in the folder of a map."""
REPEATS = "repeats.json"
"""Statistics of the repeats, in the same folder."""
NOTICE = (
    "repeats were added until the categories were decided: the verdicts and intervals of the "
    "categories and the total account for that; p-values, q-values, other intervals and the "
    "verdicts of tasks do not, and a loss detected early is slightly overestimated."
)


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
    margin: float = MARGIN,
    noise_floor: float = NOISE_FLOOR,
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
        margin: the largest acceptable loss, as a share of all items.
        noise_floor: assumed share of greedy answers that flip one way between two runs of the same
            model, unless repeats measure it; 0 turns the correction off.
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
    rule = make_rule(verdict)  # a wrong value is an error now, not after the evaluation
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
    if skip_too_long:
        chosen = fit_suite(chosen, own_settings, models.backends())
    spending = None
    if repeats is not None:
        _refuse_chain(chain=chain)
        base_settings = settings or Settings()
        spending = run_group_sequential(models, chosen, out, base_settings, repeats, rule)
    else:
        for index in models.order():
            models.ask(index, chosen, out / "runs" / models.folders[index], settings)
    models.close()
    runs = [out / "runs" / name for name in models.folders]
    result: Mapped = compare(runs[0], runs[1], *runs[2:], chain=chain, **verdict)  # type: ignore[call-overload]
    if spending is not None:
        (out / REPEATS).write_text(spending.to_json() + "\n", encoding="utf-8")
        result = with_decisions(result, spending)
    write_result(result, out / "result", overwrite=True)
    write_report(make_payload(result), out / REPORT)
    return result


def _refuse_chain(*, chain: bool) -> None:
    if chain:
        raise UsageError(
            "--repeats auto decides on the comparison with the first model, not on a chain",
            hint="remove --chain and compare the runs with --chain afterwards, or give a number "
            "of --repeats.",
        )


def with_decisions(
    result: Comparison | FanOut | Chain, spending: RepeatSpending
) -> Comparison | FanOut:
    """Return the result with verdicts whose error rate holds over all interim analyses."""
    if isinstance(result, FanOut):
        return FanOut(tuple(_with_verdicts(comparison, spending) for comparison in result))
    assert isinstance(result, Comparison)  # noqa: S101  # chains are refused before
    return _with_verdicts(result, spending)


def _with_verdicts(comparison: Comparison, spending: RepeatSpending) -> Comparison:
    after = comparison.after.name
    decisions = {name: one for (run, name), one in spending.decisions.items() if run == after}
    result = comparison.result
    total = _total(result.total, decisions, spending.rule.margin)
    pairing = result.pairing.model_copy(
        update={"warnings": [*result.pairing.warnings, Notice("repeats_auto", NOTICE)]}
    )
    names = {group.name for group in result.categories}
    own = {name: one for name, one in decisions.items() if name not in names}
    changed: ComparisonResult = result.model_copy(
        update={
            "categories": _decided(result.categories, decisions, spending.rule.margin),
            "tasks": _decided(result.tasks, own, spending.rule.margin),
            "total": total,
            "headline": f"{after}: {total.headline.words}.",
            "pairing": pairing,
        }
    )
    return replace(comparison, result=changed)


def _decided(
    groups: Sequence[GroupResult], decisions: Mapping[str, Decision], margin: float
) -> list[GroupResult]:
    """Return the groups with their decisions; a task without a category is its own."""
    changed = []
    for group in groups:
        decision = decisions.get(group.name)
        if decision is not None:
            method = "excess, repeated confidence intervals over all looks"
            loss = Estimate(
                value=decision.look.value, low=decision.low, high=decision.high, method=method
            )
            changed.append(_with_loss(group, loss, margin, _end_of(decision)))
        else:
            changed.append(group)
    return changed


def _total(total: GroupResult, decisions: Mapping[str, Decision], margin: float) -> GroupResult:
    """Return the total with the joint bounds of all categories.

    A loss is never below 0, so the lower bounds of the categories that are called lost add up;
    their error rate is that of any of them. So do the upper bounds, which is conservative.
    """
    items = sum(decision.look.items for decision in decisions.values())
    if not items:
        return total
    weights = {name: decision.look.items / items for name, decision in decisions.items()}
    loss = Estimate(
        value=sum(weights[name] * one.look.value for name, one in decisions.items()),
        low=sum(weights[name] * max(one.low, 0.0) for name, one in decisions.items()),
        high=sum(weights[name] * one.high for name, one in decisions.items()),
        method="excess, joint interval of all categories",
    )
    lost = [name for name, decision in decisions.items() if decision.low > 0]
    return _with_loss(total, loss, margin, f"decided for {', '.join(lost)}" if lost else "")


def _end_of(decision: Decision) -> str:
    """Return the number of answers, and the reason for stopping."""
    took = f"{decision.look.repeats} answers per item"
    return {
        "tested": f"decided by {took}",
        "hopeless": f"stopped after {took}, more repeats would hardly help",
        "used_up": f"undecided after {took}, the limit",
    }[decision.why]


def _with_loss(group: GroupResult, loss: Estimate, margin: float, note: str) -> GroupResult:
    """Return the group with a loss whose bounds hold over all looks, and its verdict."""
    low, high = loss.low or 0.0, loss.high or 0.0
    verdict = verdict_of_limits(low, high, margin)
    if verdict == "cannot_tell":
        words = f"cannot tell: between {share(low)} and {share(high)} of {BEYOND_NOISE} may be lost"
        decides = group.decides or DecidesResult(items=None, repeats=None)
    else:
        words, decides = decided_sentence(verdict, loss, margin), None
    headline = group.headline.model_copy(
        update={
            "verdict": verdict,
            "estimator": "excess",
            "forgetting": loss,
            "of_known": _of_known(loss, group.acc_before),
            "words": "; ".join(part for part in (words, note) if part),
        }
    )
    return group.model_copy(update={"headline": headline, "verdict": verdict, "decides": decides})


def _of_known(loss: Estimate, known: float | None) -> Estimate:
    method = f"{loss.method}, of what was known"
    if not known:
        return Estimate.missing(method, "no answer was right before")
    value, low, high = ((end or 0.0) / known for end in (loss.value, loss.low, loss.high))
    return Estimate(value=value, low=low, high=min(high, 1.0), method=method)
