"""Cost estimate of the runs of a study, without loading a model.

Tokens per answer are assumptions until a model of the same style is evaluated in the study; `speed`
converts tokens to seconds. `forgetmap run MODEL --dry-run` measures one model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forgetmap.evaluation import Settings, load_suite
from forgetmap.study.declaration import Study
from forgetmap.study.plan import PlannedRun, beside
from forgetmap.study.run_files import RunEffort, read_finished
from forgetmap.study.speed import MeasuredRun, Speed, choose_speed
from forgetmap.text import Blocks, Line, Sheet, counted

BYTES_PER_TOKEN = 4
LOCAL_SUITES = ("basics", "world", "capabilities")
"""Suites whose items are counted, because nothing has to be downloaded."""
THINKING = "reason"
"""Part of the stage of models that reason at length before they answer."""
READ = {"plain": 400, "few-shot": 1000, "chat": 250, "thinking": 250}
"""Assumed tokens of a prompt, by kind of answer."""
WRITTEN = {"plain": 10, "few-shot": 150, "chat": 350, "thinking": 3000}
"""Assumed tokens of an answer; in chats of the published protocol models reason first."""
_SHORT = 60
"""Assumed tokens of an answer in a chat without reasoning."""


@dataclass(frozen=True, slots=True)
class RunBill:
    """Estimated cost of one run; None if unknown.

    Attributes:
        answers: number of items times repeats.
        tokens: tokens read and written.
        gpu_hours: hours of one GPU.
        disk: bytes of weights and answers.
        gpus: number of GPUs that hold the weights.
    """

    answers: int | None
    tokens: float | None
    gpu_hours: float | None
    disk: float | None
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class BillRates:
    """Basis of cost estimates.

    Attributes:
        speed: speed of a GPU.
        tokens: kind of answer -> measured tokens read and written per answer.
        items: number of items of the suite, by the limit per task; counted if missing.
    """

    speed: Speed = field(default_factory=Speed)
    tokens: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    items: Mapping[int | None, int] = field(default_factory=dict)


def make_rates(
    study: Study,
    plans: Sequence[PlannedRun],
    out: Path,
    *,
    gpu: str | None = None,
    tokens_per_second: str | None = None,
) -> BillRates:
    """Return the basis of cost estimates: finished runs of the study, or else assumptions.

    Args:
        study: the study, whose items are counted.
        plans: plans of all its models.
        out: folder of the runs.
        gpu: name of a GPU, as for `choose_speed`.
        tokens_per_second: speed, as for `choose_speed`.
    """
    runs: list[MeasuredRun] = []
    efforts: dict[str, list[RunEffort]] = {}
    for plan in plans:
        finished = read_finished(out, plan.id)
        if plan.state != "done" or finished is None or not finished.effort.answers:
            continue
        effort = finished.effort
        efforts.setdefault(_kind(plan), []).append(effort)
        if plan.billions is not None and plan.server is None:
            read = effort.tokens - effort.written
            runs.append(MeasuredRun(plan.billions, read, effort.written, effort.seconds))
    limits = {plan.limit for plan in plans}
    counts = {limit: _count_items(study, limit) for limit in limits}
    return BillRates(
        speed=choose_speed(gpu, tokens_per_second, runs),
        tokens={kind: _mean_tokens(every) for kind, every in efforts.items()},
        items={limit: count for limit, count in counts.items() if count is not None},
    )


def bill_of(study: Study, plan: PlannedRun, rates: BillRates | None = None) -> RunBill:
    """Return the cost of a missing run; empty for others."""
    if plan.state != "missing":
        return RunBill(0, 0.0, 0.0, 0.0)
    rates = rates or BillRates()
    speed, items = rates.speed, rates.items.get(plan.limit, study.items)
    gpus = None if plan.weight_bytes is None else speed.gpus(plan.weight_bytes)
    if items is None:
        return RunBill(None, None, None, plan.weight_bytes, gpus)
    answers = items * (plan.settings.repeats or 1)
    read, written = (answers * each for each in _tokens(plan, rates))
    hours = disk = None
    if plan.billions is not None and plan.weight_bytes is not None:
        hours = speed.seconds(plan.billions, read, written) / 3600
        # Weights on a server take no disk space here.
        weights = 0.0 if plan.server is not None else plan.weight_bytes
        disk = weights + BYTES_PER_TOKEN * (read + written)
    return RunBill(answers, read + written, hours, disk, gpus)


def _count_items(study: Study, limit: int | None) -> int | None:
    """Return the number of items of a local suite; for others, the number in the study."""
    name = beside(study, study.suite or "")
    if name not in LOCAL_SUITES and not Path(name).is_file():
        return study.items
    return sum(len(task.load()) for task in load_suite(name, limit=limit).tasks)


def _mean_tokens(efforts: Sequence[RunEffort]) -> tuple[float, float]:
    answers = sum(effort.answers for effort in efforts)
    written = sum(effort.written for effort in efforts)
    return (sum(effort.tokens for effort in efforts) - written) / answers, written / answers


def _tokens(plan: PlannedRun, rates: BillRates) -> tuple[float, float]:
    """Return the tokens read and written per answer."""
    kind = _kind(plan)
    if kind in rates.tokens:
        return rates.tokens[kind]
    typical = WRITTEN[kind]
    if kind == "chat" and plan.settings.protocol == "same":
        typical = _SHORT
    return float(READ[kind]), float(min(typical, plan.settings.max_new_tokens or typical))


def _kind(plan: PlannedRun) -> str:
    """Return the kind of answer, which determines the lengths of prompts and answers."""
    settings = plan.settings
    if settings.chat and settings.protocol == "published" and THINKING in (plan.stage or ""):
        return "thinking"
    return _style(settings)


def _style(settings: Settings) -> str:
    if settings.chat:
        return "chat"
    return "few-shot" if settings.protocol == "published" else "plain"


def tell_bill(study: Study, plans: Sequence[PlannedRun], rates: BillRates | None = None) -> Blocks:
    """Return a text with the planned evaluations and their cost."""
    rates = rates or BillRates()
    bills = [bill_of(study, plan, rates) for plan in plans]
    rows = [
        (
            plan.id,
            plan.state,
            _kind(plan),
            _amount(bill.answers),
            _amount(bill.tokens, 1e6, " M"),
            _amount(bill.gpu_hours, digits=1),
            _amount(bill.gpus),
            _amount(bill.disk, 1e9, " GB", 1),
        )
        for plan, bill in zip(plans, bills, strict=True)
    ]
    missing = sum(plan.state == "missing" for plan in plans)
    is_known = all(bill.tokens is not None for bill in bills)
    heads = ("model", "run", "answers are", "answers", "tokens", "GPU hours", "GPUs", "disk")
    words = f", about {', '.join(_totals(bills))}" if missing and is_known else ""
    return [
        Sheet(heads, rows, spare=("answers", "answers are", "GPUs")),
        Line(),
        Line(f"{counted(missing, 'model')} to evaluate{words}.", "strong"),
        *(Line(note, "commands") for note in _notes(rates, is_known=is_known)),
    ]


def _totals(bills: Sequence[RunBill]) -> list[str]:
    """Return the known sums; if a model is missing from one, it is a minimum."""
    tokens = [bill.tokens for bill in bills]
    unit, name = (1e9, "billion") if sum(each or 0 for each in tokens) >= 1e9 else (1e6, "million")
    return [
        _total(tokens, unit, f"{name} tokens", 2),
        _total([bill.gpu_hours for bill in bills], 1.0, "GPU hours", 1),
        _total([bill.disk for bill in bills], 1e9, "GB", 1),
    ]


def _total(values: Sequence[float | None], unit: float, name: str, digits: int) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return f"unknown {name}"
    least = "" if len(known) == len(values) else "at least "
    return f"{least}{sum(known) / unit:,.{digits}f} {name}"


def _notes(rates: BillRates, *, is_known: bool) -> list[str]:
    if not is_known:
        return ["Set `items`, the number of items of the suite, to estimate tokens and GPU hours."]
    kinds = ", ".join(rates.tokens)
    tokens = (
        f"Tokens per answer: measured in this study for {kinds} answers, assumed otherwise."
        if kinds
        else "Tokens per answer: assumed, not measured."
    )
    return [
        rates.speed.sentence,
        f"{tokens} Weights in two bytes. Use `forgetmap run MODEL --dry-run` to measure one model.",
    ]


def _amount(value: float | None, unit: float = 1.0, name: str = "", digits: int = 0) -> str:
    return "-" if value is None else f"{value / unit:,.{digits}f}{name}"
