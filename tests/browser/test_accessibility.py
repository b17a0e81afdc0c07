"""Every kind of page passes axe-core, and axes of shares stay between 0% and 100%.

Pages share one browser; each is checked in light mode, a report also in dark mode and on a phone.
The explorer is checked in test_served_page.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

import page_reports as reports
from axe import faults_of, shares_beyond
from chromium import chromium, write
from drifting_runs import drifted
from forgetmap.report import write_report, write_study, write_theory_page
from forgetmap.report.html.study import site
from forgetmap.report.payloads.drift import make_drift_payload
from forgetmap.report.payloads.schema import Payload
from forgetmap.study import examine_study, read_study
from forgetmap.sweep import compare_runs
from merged_runs import write_mixtures
from study_runs import write_told_study

pytestmark = pytest.mark.needs_browser

DRAWN = "body[data-ready][data-figures]"
SECTIONS = "body[data-ready][data-sections]"
PHONE: ViewportSize = {"width": 390, "height": 844}
SCREEN: ViewportSize = {"width": 1180, "height": 820}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def rising() -> Payload:
    """A report in which the accuracy of one task rose: a fall in accuracy of less than nothing."""
    before, after = reports.rows_of(0), reports.rows_of(1)
    pairs = list(zip(before, after, strict=True))
    turned = [pair[::-1] if pair[0]["task"] == "sums" else pair for pair in pairs]
    return reports.payload_of([one for one, _ in turned], [other for _, other in turned])


def check(page: Page, address: str, ready: str) -> None:
    page.goto(address)
    page.wait_for_selector(ready, state="attached")
    assert faults_of(page) == []
    assert shares_beyond(page) == []


def check_all(browser: Browser, pages: dict[str, str]) -> None:
    """Addresses with what tells that a page is ready."""
    context = browser.new_context(bypass_csp=True, viewport=SCREEN)
    page = context.new_page()
    for address, ready in pages.items():
        check(page, address, ready)
    context.close()


def test_the_report_of_a_pair(browser: Browser, tmp_path: Path) -> None:
    address = write(rising(), tmp_path)
    context = browser.new_context(bypass_csp=True, viewport=SCREEN)
    page = context.new_page()
    check(page, address, DRAWN)
    page.emulate_media(color_scheme="dark")
    page.locator("#how-we-know summary").click()
    assert faults_of(page) == []
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    page.locator("#help-button").click()
    assert faults_of(page) == []
    page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator("#flips a[data-key]").first.click()
    page.wait_for_selector("#item h1")
    assert faults_of(page) == []
    context.close()


def test_reports_of_many_models_and_of_a_chain(browser: Browser, tmp_path: Path) -> None:
    folders = {"many": reports.many(), "chain": reports.chain()}
    check_all(browser, {write(made, tmp_path / name): DRAWN for name, made in folders.items()})


def test_pictures_wider_than_a_phone_scroll_with_the_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    context = browser.new_context(bypass_csp=True, viewport=SCREEN)
    page = context.new_page()
    check(page, write(reports.chain(), tmp_path), DRAWN)
    picture = page.locator("#figure-flow .picture")
    expect(picture).not_to_have_attribute("tabindex", "0")
    page.set_viewport_size(PHONE)
    expect(picture).to_have_attribute("tabindex", "0")
    assert faults_of(page) == []
    context.close()


def test_reports_of_a_drift_and_of_a_sweep(browser: Browser, tmp_path: Path) -> None:
    paths = [write_mixtures(tmp_path, (0.3, 0.7))]
    sweep = compare_runs(tmp_path, ("models/base", "base"), paths, suite="simulated")
    check_all(
        browser,
        {
            write(make_drift_payload(drifted(2)), tmp_path): DRAWN,
            write_report(sweep, tmp_path / "sweep.html").as_uri(): DRAWN,
        },
    )


@pytest.mark.slow
def test_the_site_of_a_study_and_the_page_of_the_theory(browser: Browser, tmp_path: Path) -> None:
    detail = examine_study(read_study(write_told_study(tmp_path)), folder=tmp_path / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "_write_figures", lambda *_: None)  # drawing takes seconds
        start = write_study(detail, tmp_path / "site")
    folders = [min((start.parent / name).iterdir()) for name in ("pairs", "stages", "models")]
    pages = {path.as_uri(): SECTIONS for path in (start, *folders, start.with_name("items.html"))}
    pages[write_theory_page(tmp_path / "theory.html").as_uri()] = "#outcome:not(:empty)"
    check_all(browser, pages)
