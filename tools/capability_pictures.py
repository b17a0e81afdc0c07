"""Takes the pictures of docs/capabilities.md: drift of made-up models, in a headless Chromium.

python tools/capability_pictures.py [--models 5] [--out docs/images]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import sync_playwright

from forgetmap.capabilities.api import drift_with_runs
from forgetmap.capabilities.taxonomy import Metric, load_taxonomy
from forgetmap.report.html.report import write_report
from forgetmap.report.payloads.drift import make_drift_payload
from report_pictures import IMAGES, launch, opened

ITEMS = 120
TARGET = "contracts"
UNJUDGED = ("C5b", "H4")
"""Capabilities without measurements."""
LACKING = (2, "W1a")
"""A model and a capability that it lacks."""
NAMES = ("sft", "dpo", "rl", "lora", "distilled")
OPENERS = ("Let me see.", "Well,", "As far as I know,", "In short:")


def model(name: str, place: int, folder: Path) -> Path:
    """Write the scores of one model in all tasks, with a separate drift of every metric."""
    rows = []
    for metric in load_taxonomy("captrack").metrics:
        if metric.capability not in UNJUDGED and (place, metric.capability) != LACKING:
            rows += _rows(metric, place)
    target = Metric(TARGET, TARGET, TARGET, field="acc")
    rows += _rows(target, place)
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def _rows(metric: Metric, place: int) -> list[dict[str, Any]]:
    drift = _drift(metric, place)
    fields = [str(metric.field), *filter(None, [metric.strict])]
    return [
        {"task": metric.task, "item": f"{number:03d}", "metric": field,
         "scorer": "made-up", "score": score, "answer": f"option {number % 4 if score else 7}",
         "outcome": "correct" if score else "incorrect",
         "question": f"Question {number} of {metric.task}: which option fits the text best?",
         "response": _response(number, place, good=bool(score))}
        for number in range(ITEMS)
        for field in fields
        if (score := _score(metric, field, number, place, drift)) is not None
    ]  # fmt: skip


def _drift(metric: Metric, place: int) -> float:
    """Return the drift of a metric; 0 for the model before."""
    if place <= 0:
        return 0.0
    draw = random.Random(f"{metric.capability} {place}")
    lean = 0.8 if metric.capability == TARGET else -0.1
    return draw.gauss(lean, 0.25) + random.Random(f"{metric.id} {place}").gauss(0, 0.1)


def _score(metric: Metric, field: str, number: int, place: int, drift: float) -> float:
    """Return a score: the sum of an item effect, noise of the model, and drift."""
    own = random.Random(f"{metric.id} {number}").gauss(0, 1)
    new = random.Random(f"{metric.id} {number} {place}").gauss(0, 1)
    latent = 0.5 + 0.85 * own + 0.45 * new + drift * (-1 if metric.polarity == "down" else 1)
    if field == metric.strict:
        latent -= 0.15 + (0.4 if place == 1 else 0.0)
    if metric.scale == "count":
        return float(round(80 * 2.0 ** (0.4 * latent)))
    if metric.scale == "binary":
        return float(latent > 0)
    share = min(max(0.5 + 0.2 * latent, 0.0), 1.0)
    scale = metric.range
    return scale.low + share * ((scale.high or 1.0) - scale.low)


def _response(number: int, place: int, *, good: bool) -> str:
    said = "the text says so in its second line" if good else "it is the one I remember"
    return (
        f"{OPENERS[(number + place) % 4]} I compare the options with the text. "
        f"{'Option' if place else 'I choose option'} {number % 4 if good else 7} fits, because "
        f"{said}.\nAnswer: {number % 4 if good else 7}"
    )


def report(folder: Path, count: int) -> str:
    """Return the address of a report on so many models."""
    names = [*NAMES, *(f"checkpoint-{100 * place}" for place in range(1, count))][:count]
    before = model("base", 0, folder)
    after = [model(name, place + 1, folder) for place, name in enumerate(names)]
    drifted = drift_with_runs(
        [before, *after],
        {"noise": model("base-again", -1, folder), "target": [TARGET], "draws": 500},
    )
    payload = make_drift_payload(drifted, made="2026-11-16")
    return write_report(payload, folder / f"drift-{count}.html").as_uri()


def main() -> None:
    """Write the report and take the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=len(NAMES))
    parser.add_argument("--out", type=Path, default=IMAGES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch(playwright)
        page = opened(browser, report(Path(folder), given.models), tall=900)
        page.evaluate("document.getElementById('figure-drift').scrollIntoView()")
        page.screenshot(path=given.out / "capabilities.png")
        browser.close()


if __name__ == "__main__":
    main()
