"""What the runs of a study might take, by assumed numbers, without loading a model.

Nothing here was measured: tokens per answer and the speed of a GPU (20,000 tokens written a second,
divided by the billions of parameters, and ten times as many read) are assumptions that show which
models cost most. `forgetmap run MODEL --dry-run` measures one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forgetmap.evaluation import Settings
from forgetmap.study.declaration import Study
from forgetmap.study.run import PlannedRun
from forgetmap.text import Blocks, Line, Sheet, counted

WRITTEN_PER_SECOND = 20_000.0
"""Tokens that one GPU writes for a model of a billion parameters; assumed."""
READ_PER_SECOND = 10 * WRITTEN_PER_SECOND
BYTES_PER_TOKEN = 4
READ = {"chat": 250, "few-shot": 1500, "plain": 400}
"""Tokens of a prompt, by style; assumed."""
WRITTEN = {"chat": 1000, "few-shot": 150, "plain": 10}
"""Tokens of an answer, assumed; in a chat of the published protocol models think first."""
_SHORT = 60
"""Of an answer in a chat where nobody asks for reasons."""


@dataclass(frozen=True, slots=True)
class RunBill:
    """What one run would take; None where it is not known.

    Attributes:
        answers: items times repeats.
        tokens: read and written.
        gpu_hours: of one GPU, at the assumed speed.
        disk: bytes of weights and answers.
    """

    answers: int | None
    tokens: float | None
    gpu_hours: float | None
    disk: float | None


def bill_of(study: Study, plan: PlannedRun) -> RunBill:
    """What a run that is missing would take; nothing for others."""
    if plan.state != "missing":
        return RunBill(0, 0.0, 0.0, 0.0)
    if study.items is None:
        return RunBill(None, None, None, plan.weight_bytes)
    style = _style(plan.settings)
    answers = study.items * (plan.settings.repeats or 1)
    read, written = answers * READ[style], answers * _written(plan.settings, style)
    hours = disk = None
    if plan.weight_bytes is not None:
        billions = plan.weight_bytes / 2e9
        hours = billions * (read / READ_PER_SECOND + written / WRITTEN_PER_SECOND) / 3600
        disk = plan.weight_bytes + BYTES_PER_TOKEN * written
    return RunBill(answers, float(read + written), hours, disk)


def _style(settings: Settings) -> str:
    if settings.chat:
        return "chat"
    return "few-shot" if settings.protocol == "published" else "plain"


def _written(settings: Settings, style: str) -> int:
    typical = _SHORT if style == "chat" and settings.protocol == "same" else WRITTEN[style]
    return min(typical, settings.max_new_tokens or typical)


def tell_bill(study: Study, plans: Sequence[PlannedRun]) -> Blocks:
    """What would be evaluated, how, and what it would take."""
    bills = [bill_of(study, plan) for plan in plans]
    rows = [
        (
            plan.id,
            plan.state,
            _style(plan.settings),
            _amount(bill.answers),
            _amount(bill.tokens, 1e6, " M"),
            _amount(bill.gpu_hours, digits=1),
            _amount(bill.disk, 1e9, " GB", 1),
        )
        for plan, bill in zip(plans, bills, strict=True)
    ]
    missing = sum(plan.state == "missing" for plan in plans)
    totals = [
        f"{sum(bill.tokens or 0 for bill in bills) / 1e9:,.1f} billion tokens",
        f"{sum(bill.gpu_hours or 0 for bill in bills):,.0f} GPU hours",
        f"{sum(bill.disk or 0 for bill in bills) / 1e9:,.0f} GB",
    ]
    heads = ("model", "run", "style", "answers", "tokens", "GPU hours", "disk")
    known = study.items is not None
    words = f", about {', '.join(totals)}" if missing and known else ""
    note = (
        "Assumed, not measured: tokens per answer and speed of a GPU; weights in two bytes. "
        "`forgetmap run MODEL --dry-run` measures one model."
        if known
        else "Give `items`, the number of items of the suite, for tokens and GPU hours."
    )
    return [
        Sheet(heads, rows, spare=("answers", "style")),
        Line(),
        Line(f"{counted(missing, 'model')} to evaluate{words}.", "strong"),
        Line(note, "commands"),
    ]


def _amount(value: float | None, unit: float = 1.0, name: str = "", digits: int = 0) -> str:
    return "-" if value is None else f"{value / unit:,.{digits}f}{name}"
