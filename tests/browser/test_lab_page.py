"""Pages of sections in a browser: no messages, figures, sorting, dark mode, phone width."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

import lab_results
from chromium import chromium, watched
from drawings import PAIR, report
from forgetmap.report.html.report import write_report
from forgetmap.report.html.story import WatchedTraining, write_story

pytestmark = pytest.mark.needs_browser
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The lab, with a method that is called like a script, and the story."""
    folder = tmp_path_factory.mktemp("pages")
    lab = lab_results.lab_result(["sft", "replay", "lora"])
    evil = lab.methods[0].model_copy(update={"title": "<script>alert(1)</script>"})
    lab = lab.model_copy(update={"methods": [evil, *lab.methods[1:]]})
    history = lab_results.watch_history()
    plain = WatchedTraining("plain", history, report(PAIR))
    protected = WatchedTraining("protected", lab_results.watch_history(most=0.1), report(PAIR))
    sweep = lab_results.sweep_result()
    return {
        "lab": write_report(lab, folder / "lab.html").as_uri(),
        "story": write_story(plain, protected, sweep, folder / "story.html").as_uri(),
    }


def opened(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("body[data-ready][data-sections]", state="attached")


@pytest.mark.parametrize("name", ["lab", "story"])
def test_every_figure_is_drawn_on_a_dark_phone(
    browser: Browser, addresses: dict[str, str], name: str
) -> None:
    with watched(browser, viewport=PHONE, color_scheme="dark") as page:
        opened(page, addresses[name])
        drawn = page.eval_on_selector_all("figure", "all => all.map(each => each.dataset.drawn)")
        assert set(drawn) == {"yes"}
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        ids = page.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
        assert len(ids) == len(set(ids))
        levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(each => each.tagName)")
        assert levels.count("H1") == 1
        unnamed = "all => all.filter(each => !each.textContent.trim() && !each.ariaLabel).length"
        assert page.eval_on_selector_all("button, a", unnamed) == 0
        spoken = "all => all.every(each => each.ariaLabel || each.querySelector('img')?.alt)"
        assert page.eval_on_selector_all(".picture", spoken)


def test_tables_are_sorted_by_their_heads(browser: Browser, addresses: dict[str, str]) -> None:
    with watched(browser) as page:
        opened(page, addresses["lab"])
        assert "<script>alert(1)</script>" in page.locator("main").inner_text()
        table = page.locator("table.sheet").first
        lost = "rows => rows.map(row => parseFloat(row.cells[3].textContent))"
        rows = "table.sheet >> nth=0 >> tbody tr"
        table.get_by_role("button", name="lost near").click()
        falling = page.eval_on_selector_all(rows, lost)
        table.get_by_role("button", name="lost near").click()
        rising = page.eval_on_selector_all(rows, lost)
        assert falling == sorted(falling, reverse=True)
        assert rising == falling[::-1]
        assert table.locator("th[aria-sort=ascending]").count() == 1


def test_panels_take_as_many_columns_as_there_is_room_for(
    browser: Browser, addresses: dict[str, str]
) -> None:
    places = "all => new Set(all.map(each => Math.round(each.getBoundingClientRect().left))).size"
    cells = "#figure-watch_categories .cell > g > .background"
    counts = []
    for width in (1280, 390):
        with watched(browser, viewport={"width": width, "height": 800}) as page:
            opened(page, addresses["story"])
            counts.append(page.eval_on_selector_all(cells, places))
    assert counts == [5, 1]


def test_links_lead_to_sections_and_the_ground_can_be_chosen(
    browser: Browser, addresses: dict[str, str]
) -> None:
    with watched(browser) as page:
        opened(page, addresses["story"])
        page.click("#theme")
        page.wait_for_selector(":root[data-theme]", state="attached")
        page.get_by_role("link", name="Merging instead").click()
        assert page.evaluate("document.activeElement.id") == "merges"
        assert "theme=" in page.url


def test_words_and_tables_stand_there_without_scripts(
    browser: Browser, addresses: dict[str, str]
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(addresses["story"])
    assert page.locator("h1").is_visible()
    assert page.locator("table.sheet tbody tr").count() > 20
    context.close()
