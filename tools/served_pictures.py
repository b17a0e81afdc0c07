"""Takes the pictures of `forgetmap serve` in docs/report.md, in a headless Chromium.

python tools/served_pictures.py [--out docs/images]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from forgetmap.records.folder import write_run
from forgetmap.records.manifest import ModelInfo, RunInfo
from forgetmap.sources.open import open_run
from report_pictures import IMAGES, answers, launch

STAGES = {
    "base": ("base", "2026-11-02"),
    "sft": ("SFT", "2026-11-09"),
    "dpo": ("preference", "2026-11-12"),
    "rl": ("RL", "2026-11-16"),
}
PARENTS = {"base": None, "sft": "base", "dpo": "sft", "rl": "dpo"}


def write_runs(folder: Path) -> None:
    """Write run folders with their parents."""
    for name, table in answers(("sft", "dpo", "rl")).items():
        stage, date = STAGES[name]
        info = RunInfo(
            run_id=name,
            parent=PARENTS[name],
            stage=stage,
            model=ModelInfo(name=f"birch-7b-{name}"),
            created=date,
        )
        write_run(replace(open_run(table, name=name), info=info), folder / name)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Start the command as a process; yield its address."""
    code = "from forgetmap.cli.main import script; script()"
    call = [sys.executable, "-c", code, "serve", str(folder), "--no-cache"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=env) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()


def opened(browser: Browser, address: str, width: int = 1180, height: int = 820) -> Page:
    """Open the start page."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(address)
    page.locator("#lineage").get_by_role("link", name="against base").wait_for()
    expect(page.locator("#lineage")).not_to_contain_text("…")
    expect(page.locator("#matrix td a")).to_have_count(6, timeout=60_000)
    return page


def compared(page: Page) -> Page:
    """Open the page of a comparison."""
    page.locator("#lineage").get_by_role("link", name="against base").click()
    page.wait_for_selector("#headline", timeout=120_000)
    page.wait_for_selector("body[data-figures=drawn]", timeout=120_000)
    return page


def take(browser: Browser, address: str, out: Path) -> None:
    """Take start page, comparison, filtered list, item, and the list on a phone."""

    def picture(page: Page, name: str) -> None:
        page.screenshot(path=out / f"serve-{name}.png")

    page = opened(browser, address, height=640)
    picture(page, "start")
    page.set_viewport_size({"width": 1180, "height": 820})
    picture(compared(page), "pair")
    page.locator("#filter-transition").select_option("forgotten")
    page.locator("#filter-q").fill("exercise on rivers")
    page.wait_for_timeout(1500)
    page.locator("#flips").scroll_into_view_if_needed()
    page.locator("#flips-title").evaluate("title => title.scrollIntoView()")
    picture(page, "items")
    page.locator("#flips a[data-key]").first.click()
    page.locator("#item h1").wait_for()
    page.evaluate("scrollTo(0, 0)")
    picture(page, "item")
    picture(compared(opened(browser, address, 390, 800)), "phone")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=IMAGES)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        write_runs(Path(name) / "runs")
        browser = launch(playwright)
        with serving(Path(name) / "runs") as address:
            take(browser, address, out)
        browser.close()


if __name__ == "__main__":
    main()
