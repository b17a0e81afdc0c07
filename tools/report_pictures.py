"""Takes the pictures of docs/report.md: reports on made-up runs, in a headless Chromium.

    python tools/report_pictures.py [--demo demo/map] [--out docs/images]

With --demo, the output folder of `make demo`, also takes the picture of the README.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

import forgetmap as fm

IMAGES = Path(__file__).parent.parent / "docs" / "images"
ITEMS = 60
TASKS = {
    "arithmetic": "Math", "algebra": "Math", "geometry": "Math",
    "capitals": "World knowledge", "rivers": "World knowledge",
    "synonyms": "Language", "grammar": "Language", "translation": "Language",
    "logic puzzles": "Reasoning", "timetables": "Reasoning",
    "python": "Code", "sql": "Code",
    "proverbs": "Culture", "festivals": "Culture",
}  # fmt: skip
WORDS = ("amber", "birch", "cedar", "dove", "elm", "fern", "grove", "heron", "iris", "juniper")
KNOWN, STICKS, CUT = 0.7, 0.8, 0.4
"""Shares: items right at first, wrong answers that stay the same, long thoughts that are cut."""
LOST = {
    "sft": {"Math": 0.02, "World knowledge": 0.20, "Language": 0.08, "Culture": 0.28},
    "dpo": {"Math": 0.03, "World knowledge": 0.10, "Language": 0.03, "Code": 0.12},
    "rl": {"World knowledge": 0.16, "Language": 0.14, "Reasoning": 0.02, "Culture": 0.18},
}
GAINED = {
    "sft": {"Math": 0.30, "Code": 0.35, "Reasoning": 0.20},
    "dpo": {"Language": 0.25, "Reasoning": 0.15},
    "rl": {"Math": 0.50, "Code": 0.30, "Reasoning": 0.45},
}
"""Shares of right (or wrong) items of the previous stage, by category; 0.05 elsewhere."""


def answers(stages: Sequence[str]) -> dict[str, pa.Table]:
    """Return a run of each stage, each starting from the previous one."""
    draw = random.Random(5)
    places = [(task, number) for task in TASKS for number in range(ITEMS)]
    right = {place: draw.random() < KNOWN for place in places}
    runs = {"base": _run("base", right, draw)}
    for stage in stages:
        right = {place: _goes_on(stage, place[0], was, draw) for place, was in right.items()}
        runs[stage] = _run(stage, right, draw)
    return runs


def _goes_on(stage: str, task: str, was: bool, draw: random.Random) -> bool:  # noqa: FBT001
    change = (LOST if was else GAINED)[stage].get(TASKS[task], 0.05)
    return was != (draw.random() < change)


def _run(stage: str, right: dict[tuple[str, int], bool], draw: random.Random) -> pa.Table:
    rows = [_row(stage, task, number, draw, well=well) for (task, number), well in right.items()]
    return pa.Table.from_pylist(rows)


def _row(stage: str, task: str, number: int, draw: random.Random, *, well: bool) -> dict[str, Any]:
    options = [WORDS[(3 * number + step) % 10] for step in range(4)]
    gold = options[number % 4]
    wrong = [each for each in options if each != gold]
    # An item that is wrong twice usually has the same wrong answer.
    chosen = gold if well else wrong[number % 3 if draw.random() < STICKS else draw.randrange(3)]
    cut = stage == "rl" and not well and draw.random() < CUT
    clue = f"the {task} of item {number} leave {options[0]} and {chosen}"
    thought = f"<think>Let me compare the options. I see that {clue}. Is it {options[0]}? No,"
    said = (
        f"Of the four options, {clue}. "
        f"{'Therefore' if stage == 'base' else 'Step by step this shows that'} "
        f"the best fit is {chosen}.\nAnswer: {chosen}"
    )
    response = (
        said if stage == "base" else thought if cut else f"{thought} {chosen}.</think>\n{said}"
    )
    return {
        "task": task, "item": f"{task}-{number:03d}", "category": TASKS[task], "k": 4,
        "question": f"Which word belongs into gap {number} of the exercise on {task}?",
        "options": options, "gold": gold, "score": float(well),
        "answer": None if cut else chosen, "choice": None if cut else chosen,
        "outcome": "correct" if well else "truncated" if cut else "incorrect",
        "prompt": f"Answer with one of the options.\nGap {number} of {task}: {', '.join(options)}",
        "response": response,
    }  # fmt: skip


def reports(folder: Path, demo: Path | None) -> dict[str, str]:
    """Return the addresses of a report of each kind."""
    names = ("sft", "dpo", "rl")
    paths = {name: folder / f"{name}.parquet" for name in ("base", *names)}
    for name, table in answers(names).items():
        pq.write_table(table, paths[name])
    base, *after = paths.values()
    kinds: dict[str, fm.Comparison | fm.FanOut | fm.Chain] = {
        "pair": fm.compare(base, after[0]),
        "many": fm.compare(base, *after),
        "chain": fm.chain(base, *after),
    }
    if demo:
        kinds["demo"] = fm.compare(demo / "runs" / "0-start", demo / "runs" / "1-plain")
    return {
        kind: fm.write_report(result, folder / f"{kind}.html").as_uri()
        for kind, result in kinds.items()
    }


def launch(playwright: Playwright) -> Browser:
    """Start the Chromium of this machine."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    return playwright.chromium.launch(
        executable_path=found, args=["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    )


def opened(
    browser: Browser, address: str, *, wide: int = 1180, tall: int = 820, **options: Any
) -> Page:
    """Return a page with all figures drawn."""
    page = browser.new_page(viewport={"width": wide, "height": tall}, **options)
    page.goto(address)
    page.wait_for_selector("body[data-ready][data-figures]", state="attached")
    return page


def take(browser: Browser, found: dict[str, str], out: Path) -> None:
    """Take every picture."""
    if "demo" in found:
        opened(browser, found["demo"], wide=1280, tall=860).screenshot(path=out / "report.png")
    dark = opened(browser, found["pair"], color_scheme="dark")
    dark.screenshot(path=out / "report-dark.png")
    item = opened(browser, f"{found['pair']}#transition=forgotten&reason=wrong")
    item.locator("#flips a[data-key]").first.click()
    item.locator("details.thinking summary").click()
    item.screenshot(path=out / "report-item.png")
    listed = opened(browser, f"{found['pair']}#transition=forgotten", tall=560)
    listed.evaluate("document.getElementById('flips').scrollIntoView()")
    listed.screenshot(path=out / "report-items.png")
    for kind, first in (("many", "heat_forgetting"), ("chain", "flow")):
        page = opened(browser, found[kind], tall=900)
        page.evaluate("id => document.getElementById(id).scrollIntoView()", f"figure-{first}")
        page.screenshot(path=out / f"report-{kind}.png")
    phone = opened(browser, found["pair"], wide=390, tall=844)
    phone.screenshot(path=out / "report-phone.png")


def main() -> None:
    """Write the reports and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path)
    parser.add_argument("--out", type=Path, default=IMAGES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch(playwright)
        take(browser, reports(Path(folder), given.demo), given.out)
        browser.close()


if __name__ == "__main__":
    main()
