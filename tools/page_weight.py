"""How large pages are and when a reader sees something, by the clock of a headless Chromium.

    python tools/page_weight.py report.html [more.html ...] [--rounds 5]

Medians of several loads: file size, first paint, time to interactive, time of the last figure, and
processor time of the main thread of the page.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from report_pictures import launch

PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
NOW = "() => performance.now()"


def load(browser: Browser, path: Path) -> tuple[float, float, float, float]:
    """Return first paint, ready and drawn in milliseconds, and seconds of the main thread."""
    page = browser.new_page(viewport={"width": 1180, "height": 820})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("body[data-ready]", state="attached")
    ready = page.evaluate(NOW)
    page.wait_for_selector("body[data-figures], body[data-sections]", state="attached")
    drawn, paint = page.evaluate(NOW), page.evaluate(PAINT)
    metrics = session.send("Performance.getMetrics")["metrics"]
    seconds = next(row["value"] for row in metrics if row["name"] == "TaskDuration")
    page.close()
    return paint, ready, drawn, seconds


def main() -> None:
    """Print one line per page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for path in options.pages:
            loads = [load(browser, path) for _ in range(options.rounds)]
            paint, ready, drawn, seconds = (median(column) for column in zip(*loads, strict=True))
            print(
                f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, first paint {paint:.0f} ms, "
                f"ready {ready:.0f} ms, drawn {drawn:.0f} ms, thread {seconds:.2f} s"
            )
        browser.close()


if __name__ == "__main__":
    main()
