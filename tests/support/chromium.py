"""A Chromium browser for tests, and pages that must not log anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from forgetmap.report.html.report import write_report
from forgetmap.report.payloads.schema import Payload

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless browser; if there is none, fail in CI and skip elsewhere."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing = "no Chromium on this machine: run tools/system.sh chromium"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


@contextmanager
def watched(browser: Browser, home: str = "file:", **options: Any) -> Iterator[Page]:
    """Open a page that must have no console message, no error and no request outside `home`."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    heard: list[str] = []
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    inside = (home, "data:", "blob:")
    context.on(
        "request",
        lambda request: None if request.url.startswith(inside) else heard.append(request.url),
    )
    yield page
    context.close()
    if heard:
        pytest.fail("\n".join(heard))


def write(payload: Payload, folder: Path) -> str:
    """Write a report and return its address."""
    return write_report(payload, folder / "report.html").as_uri()


def open_report(page: Page, address: str) -> None:
    """Open a report and wait until its figures are drawn."""
    page.goto(address)
    page.wait_for_selector("body[data-ready][data-figures]", state="attached")
