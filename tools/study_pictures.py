"""Takes the pictures of docs/studies.md in a headless Chromium.

    python tools/study_pictures.py [--site FOLDER] [--out docs/images]

The sites are of the published values, and of a made-up study with items; with --site both are kept
there.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

from forgetmap.records import run_from_frame, write_run
from forgetmap.report import write_study
from forgetmap.study import examine_study, published_detail, read_study
from report_pictures import IMAGES, TASKS, WORDS, launch

ITEMS = 80
SIZES = (1, 3, 7)
FAMILIES = ("Birch", "Cedar")
STAGES: dict[str, dict[str, Any]] = {
    "code": {"stage": "domain pretraining", "lost": 0.10, "gained": 0.12, "worst": "Culture"},
    "it": {"stage": "instruction tuning", "lost": 0.14, "gained": 0.30, "worst": "World knowledge"},
    "r-few": {"stage": "reasoning from instruct", "lost": 0.05, "gained": 0.12, "worst": "Culture",
              "data": "low"},
    "r-many": {"stage": "reasoning from instruct", "lost": 0.12, "gained": 0.30,
               "worst": "Language", "data": "high"},
}  # fmt: skip
PARENTS = {"code": "", "it": "", "r-few": "-it", "r-many": "-it"}
STAGE = 2
"""Index of the stage that is shown."""
MISSING = "cedar-3b-r-many"
"""A declared model that was never evaluated."""


def write_example(folder: Path) -> Path:
    """Write a study of two families in three sizes and four stages, with merges and a gap."""
    random = np.random.default_rng(3)
    parts = ['name = "example"\ntitle = "A made-up study"\nmargin = 0.15\n']
    known: dict[str, NDArray[np.bool_]] = {}
    for family in FAMILIES:
        for size in SIZES:
            base = f"{family.lower()}-{size}b"
            known[base] = random.random((len(TASKS), ITEMS)) < 0.55 + 0.05 * np.log2(size)
            parts.append(_model(base, family, size, stage="base"))
            for name, facts in STAGES.items():
                model, parent = f"{base}-{name}", f"{base}{PARENTS[name]}"
                known[model] = _trained(known[parent], facts, size, random)
                parts.append(_model(model, family, size, parent=parent, **_shown(facts)))
            later = f"{base}-code"
            for share in (0.3, 0.7) if size == SIZES[-1] else ():
                merge = f"{base}-merge-{round(100 * share)}"
                takes = random.random(known[base].shape) < share
                known[merge] = np.where(takes, known[later], known[base])
                parts.append(_merge(merge, base, later, share))
    for model, right in known.items():
        if model != MISSING:
            write_run(run_from_frame(_run(model, right)), folder / "runs" / model)
    file = folder / "study.toml"
    file.write_text("\n".join(parts), encoding="utf-8")
    return file


def _shown(facts: dict[str, Any]) -> dict[str, str]:
    return {name: facts[name] for name in ("stage", "data") if name in facts}


def _trained(
    known: NDArray[np.bool_], facts: dict[str, Any], size: int, random: np.random.Generator
) -> NDArray[np.bool_]:
    worst = np.asarray([category == facts["worst"] for category in TASKS.values()])[:, None]
    lost = facts["lost"] * (1.0 - 0.12 * np.log2(size)) * np.where(worst, 2.2, 0.8)
    # Some items are lost by every training.
    fragile = (np.arange(known.size).reshape(known.shape) % 17 == 0) * 0.35
    draws = random.random(known.shape)
    knows: NDArray[np.bool_] = np.where(known, draws > lost + fragile, draws < facts["gained"])
    return knows


def _model(name: str, family: str, size: int, **facts: str) -> str:
    lines = [f'[[model]]\nid = "{name}"\nhub = "org/{name}"\nfamily = "{family}"\nsize = "{size}B"']
    return "\n".join([*lines, *(f'{field} = "{value}"' for field, value in facts.items())]) + "\n"


def _merge(name: str, earlier: str, later: str, share: float) -> str:
    label = f"{earlier.partition('-')[0]} linear {share:g}"
    return (
        f'[[merge]]\nid = "{name}"\nlabel = "{label}"\nmethod = "linear"\n'
        f'models = ["{earlier}", "{later}"]\nweight = {share}\n'
    )


def _run(model: str, right: NDArray[np.bool_]) -> pa.Table:
    rows = [
        _row(model, task, number, bool(flag))
        for task, flags in zip(TASKS, right, strict=True)
        for number, flag in enumerate(flags)
    ]
    return pa.Table.from_pylist(rows)


def _row(model: str, task: str, number: int, well: bool) -> dict[str, Any]:  # noqa: FBT001
    options = [WORDS[(3 * number + step) % 10] for step in range(4)]
    gold = options[number % 4]
    chosen = gold if well else options[(number + 1) % 4]
    clue = f"the {task} of item {number} leave {options[0]} and {chosen}"
    return {
        "task": task, "item": f"{task}-{number:03d}", "category": TASKS[task],
        "question": f"Which word belongs into gap {number} of the exercise on {task}?",
        "gold": gold, "score": float(well), "answer": chosen,
        "outcome": "correct" if well else "incorrect",
        "response": f"Of the four options, {clue}. As {model} sees it, the best fit is {chosen}.\n"
        f"Answer: {chosen}",
    }  # fmt: skip


def opened(
    browser: Browser, address: str, *, wide: int = 1180, tall: int = 860, **more: Any
) -> Page:
    """Return a page with all figures drawn."""
    page = browser.new_page(viewport={"width": wide, "height": tall}, **more)
    page.goto(address)
    page.wait_for_selector("body[data-ready][data-sections]", state="attached")
    return page


def take(browser: Browser, published: Path, example: Path, out: Path) -> None:
    """Take the pictures of the docs: published values, and items of the made-up study."""
    start = published.as_uri()
    opened(browser, start, tall=900).screenshot(path=out / "study-start.png")
    heat = opened(browser, start, tall=1000)
    heat.evaluate("document.getElementById('figure-heat_forgetting').scrollIntoView()")
    heat.screenshot(path=out / "study-heat.png")
    stages = sorted((published.parent / "stages").iterdir())
    stage = opened(browser, stages[STAGE].as_uri(), tall=900)
    stage.evaluate("document.getElementById('figure-radar').scrollIntoView()")
    stage.screenshot(path=out / "study-stage.png")
    pair = min((example.parent / "pairs").iterdir())
    opened(browser, pair.as_uri(), tall=820).screenshot(path=out / "study-pair.png")
    listed = opened(browser, f"{pair.as_uri()}#transition=forgotten&category=Culture", tall=620)
    listed.screenshot(path=out / "study-items.png")


def main() -> None:
    """Write both sites and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path)
    parser.add_argument("--out", type=Path, default=IMAGES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        detail = examine_study(read_study(write_example(folder)), folder=folder / "runs")
        site = options.site or folder / "sites"
        example = write_study(detail, site / "example", overwrite=True)
        published = write_study(published_detail(), site / "published", overwrite=True)
        browser = launch(playwright)
        take(browser, published, example, options.out)
        browser.close()


if __name__ == "__main__":
    main()
