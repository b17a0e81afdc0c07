"""The report of a sweep in a browser: no messages, figures, dark mode, phone width."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from chromium import chromium, watched
from forgetmap.report.html.report import write_report
from forgetmap.sweep.api import compare_runs
from merged_runs import write_mixtures

pytestmark = pytest.mark.needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of two tuned models, one of which is called like a script."""
    folder = tmp_path_factory.mktemp("page")
    path = write_mixtures(folder, (0.3, 0.7))
    paths = [path, path._replace(model="models/<script>alert(1)</script>")]
    found = compare_runs(folder, ("models/base", "base"), paths, suite="simulated")
    return write_report(found, folder / "sweep.html").as_uri()


def opened(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("body[data-ready][data-figures]", state="attached")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_and_nothing_is_wider_than_the_screen(
    browser: Browser, address: str, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 800}
    with watched(browser, viewport=size, color_scheme=scheme) as page:
        opened(page, address)
        drawn = page.eval_on_selector_all("figure", "all => all.map(each => each.dataset.drawn)")
        assert set(drawn) == {"yes"}
        assert {"figure-front", "figure-path", "figure-trade", "figure-connectivity"} <= set(
            page.eval_on_selector_all("figure", "all => all.map(each => each.id)")
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_words_and_tables_stand_there_without_scripts(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("h2").first.is_visible()
    assert page.locator("table.sheet tbody tr").count() > 8
    assert "<script>alert(1)</script>" in page.locator("main").inner_text()
    context.close()


def test_the_model_in_the_figures_and_the_ground_can_be_chosen(
    browser: Browser, address: str
) -> None:
    with watched(browser) as page:
        opened(page, address)
        page.select_option("#comparison", "1")
        assert "comparison=1" in page.url
        page.click("#theme")
        page.wait_for_selector(":root[data-theme]", state="attached")
