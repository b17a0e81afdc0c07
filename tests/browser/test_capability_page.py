"""The report of a drift in a real browser, opened from the file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from chromium import chromium, open_report, watched, write
from drifting_runs import deep_chain, drifted
from forgetmap.report.payloads.drift import make_drift_payload
from forgetmap.report.payloads.schema import Payload
from page_reports import HOSTILE

pytestmark = pytest.mark.needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def payload() -> Payload:
    return make_drift_payload(drifted(2))


@pytest.fixture(scope="module")
def address(payload: Payload, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(payload, tmp_path_factory.mktemp("drift"))


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched(browser) as found:
        open_report(found, address)
        yield found


def line(page: Page, name: str) -> Locator:
    return page.locator("#tables tbody tr", has=page.get_by_role("rowheader", name=name))


def test_the_first_screen(page: Page, payload: Payload) -> None:
    assert payload.capabilities is not None
    expect(page.locator("h1#headline")).to_have_text(payload.capabilities.headlines[0])
    expect(page.locator(".lead").first).to_have_text(payload.capabilities.leads[0])
    expect(page.locator("[data-group]")).to_have_count(3)
    expect(page.locator("#summary")).to_contain_text("No data: its task is in neither run")
    page.get_by_label("Comparison", exact=True).select_option("1")
    expect(page.locator("h1#headline")).to_have_text(payload.capabilities.headlines[1])


def test_scales_and_no_data(page: Page) -> None:
    for scale in ("effect", "points", "relative"):
        page.get_by_label("Scale", exact=True).select_option(scale)
        expect(page).to_have_url(re.compile(f"scale={scale}"))
        assert line(page, "tools").locator("td").all_inner_texts() == ["no data", "no data"]
    page.get_by_label("Scale", exact=True).select_option("points")
    expect(line(page, "maths")).to_contain_text("\N{MINUS SIGN}40.0*")
    picture = page.locator("#figure-drift .picture")
    expect(picture).to_contain_text("\N{MINUS SIGN}40.0*")
    expect(picture).to_contain_text("// no data //")
    page.get_by_label("Rows", exact=True).select_option("metric")
    expect(line(page, "tools.calls")).to_contain_text("no data")


def test_a_capability_its_items_and_the_way_back(page: Page) -> None:
    page.locator("#tables a[data-capability=maths]").click()
    capability = page.locator("#capability")
    expect(capability.get_by_role("heading", level=1)).to_have_text("maths Mathematics")
    expect(page.locator("#summary")).to_be_hidden()
    expect(page.locator("#figure-drift_of_metrics")).to_have_attribute("data-drawn", "yes")
    form = page.get_by_role("region", name="Format and ability")
    expect(form).to_contain_text("90.0% → 70.0%")
    metrics = page.get_by_role("region", name="Metrics")
    expect(metrics).to_contain_text("\N{MINUS SIGN}20.0")
    metrics.get_by_role("button", name="24").click()
    expect(page).to_have_url(re.compile("metric=maths.sums"))
    expect(page.locator("#flips a[data-key]")).to_have_count(24)
    page.locator("#flips a[data-key]").first.click()
    expect(page.locator("#item")).to_contain_text("Metric: maths.sums")
    expect(page.locator("#item .side del")).to_have_text("1")
    expect(page.locator("#item .side ins")).to_have_text("0")
    linked = page.url
    page.reload()
    expect(page.locator("#item")).to_contain_text("Metric: maths.sums")
    assert page.url == linked
    page.keyboard.press("Escape")
    expect(capability.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("h1#headline")).to_be_visible()
    expect(page.locator("#tables a[data-capability=maths]")).to_be_focused()


def test_style_has_a_distance_and_no_form(page: Page, address: str) -> None:
    page.goto(f"{address}#capability=style")
    expect(page.get_by_role("region", name="Distance between distributions")).to_contain_text(
        "Words"
    )
    expect(page.get_by_role("region", name="Format and ability")).to_have_count(0)
    expect(page.locator("#figure-form_and_ability")).to_be_hidden()
    expect(page.locator("#capability")).to_contain_text("the tasks the model was trained for")


def test_a_press_on_the_picture_opens_it(page: Page) -> None:
    page.locator("#figure-drift .picture").get_by_text("// no data //").first.click()
    expect(page.locator("#capability h1")).to_have_text("tools Tool use")
    expect(page.locator("#capability .lead")).to_contain_text("No result")
    expect(page.get_by_role("region", name="Metrics")).to_contain_text("no data")


def test_what_can_be_taken_away(page: Page) -> None:
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download drift-by-capability as CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    empty = [row for row in rows if row["id"] == "tools"]
    assert [row["value"] for row in empty] == ["", ""]
    assert len(rows) == 2 * 5
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download drift as SVG").click()
    assert Path(waiting.value.path()).read_bytes().startswith(b"<svg")


def test_texts_of_others_run_nowhere(browser: Browser, tmp_path: Path) -> None:
    payload = make_drift_payload(drifted(1, hostile=HOSTILE))
    with watched(browser, viewport={"width": 390, "height": 800}) as page:
        open_report(page, write(payload, tmp_path))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto(f"{page.url}#capability=maths")
        page.locator("#flips a[data-key]").first.click()
        expect(page.locator("#item")).to_contain_text("<script>window.hacked")
        assert page.evaluate("window.hacked") is None


def test_a_chain_with_its_deep_dive(browser: Browser, tmp_path: Path) -> None:
    with watched(browser) as page:
        open_report(page, write(make_drift_payload(deep_chain()), tmp_path))
        expect(page.locator("#compared")).to_contain_text("drifted most")
        sizes = page.get_by_role("region", name="Total size of drift")
        expect(sizes.get_by_role("row").nth(1)).to_contain_text("model-1")
        expect(sizes).to_contain_text("1.00")
        undone = page.get_by_role("region", name="What later steps undid")
        expect(undone).to_contain_text("model-1 → model-2")
        expect(undone).to_contain_text("+100%")
        expect(page.locator("#figure-drift_deep_dive")).to_contain_text(
            "they do not count in any average"
        )
        page.get_by_label("Rows").select_option("deep_dive")
        expect(line(page, "style_DD.characters")).to_have_count(1)
        page.get_by_label("Rows").select_option("capability")
        page.get_by_label("Comparison", exact=True).select_option("1")
        expect(page.locator("p.names").first).to_contain_text("model-1 → model-2 ·")
        expect(page.locator("p.names").first).not_to_contain_text("model-1 → model-1")
        page.locator("#tables a[data-capability=style]").click()
        expect(page.get_by_role("heading", name="Deep dive", exact=True)).to_be_visible()
        deep = page.locator("#figure-drift_of_deep_dive")
        expect(deep).to_have_attribute("data-drawn", "yes")
        expect(deep.locator(".picture")).to_contain_text("style_DD.characters")


def test_without_a_deep_dive_none_is_offered(page: Page) -> None:
    levels = page.get_by_label("Rows").locator("option").all_inner_texts()
    assert levels == ["capability", "metric", "group"]
    expect(page.locator("#figure-drift_deep_dive")).to_have_count(0)


def test_averages_without_bounds_are_not_called_chance(browser: Browser, tmp_path: Path) -> None:
    result = drifted(2).result
    cells = tuple(replace(cell, low=None, high=None, p=None, q=None) for cell in result.groups)
    payload = make_drift_payload(replace(drifted(2), result=replace(result, groups=cells), runs=()))
    with watched(browser) as page:
        open_report(page, write(payload, tmp_path))
        card = page.locator(".card.measure").first
        expect(card).to_contain_text("no interval, so the uncertainty is unknown")
        expect(card).not_to_contain_text("may be chance")
