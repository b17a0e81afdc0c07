"""The site of a study in a browser, opened from a folder: no messages, figures, sorting, links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from chromium import chromium, watched
from forgetmap.report import write_study
from forgetmap.report.html.study import site
from forgetmap.study import examine_study, read_study
from study_runs import write_told_study

pytestmark = pytest.mark.needs_browser
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    study = read_study(write_told_study(folder))
    detail = examine_study(study, folder=folder / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "_write_figures", lambda *_: None)  # drawing takes seconds
        return write_study(detail, folder / "site")


def wait(page: Page) -> None:
    page.wait_for_selector("body[data-ready][data-sections]", state="attached")


def test_from_the_start_page_to_an_item(browser: Browser, start: Path) -> None:
    with watched(browser) as page:
        page.goto(start.as_uri())
        wait(page)
        drawn = page.eval_on_selector_all("figure", "all => all.map(each => each.dataset.drawn)")
        assert set(drawn) == {"yes"}
        table = page.locator("table[data-name=pairs]")
        values = "rows => rows.map(row => row.cells[7].dataset.value).filter(Boolean).map(Number)"
        table.get_by_role("button", name="forgetting", exact=True).click()
        falling = page.eval_on_selector_all("table[data-name=pairs] tbody tr", values)
        assert falling == sorted(falling, reverse=True)
        assert table.locator("th[aria-sort=descending]").count() == 1
        # A number leads to its items.
        table.locator("tbody tr").first.locator("td a").nth(1).click()
        wait(page)
        assert "transition=forgotten" in page.url
        items = page.locator("#flips a[data-key]")
        assert items.count() > 0
        items.first.click()
        page.wait_for_selector("#item h1")
        assert "gold" in page.locator("#item").inner_text()
        assert "What is" in page.locator("#item").inner_text()
        page.get_by_role("button", name="Back").click()
        assert page.locator("#overview").is_visible()


def test_a_table_is_saved_with_its_numbers(browser: Browser, start: Path) -> None:
    with watched(browser) as page:
        page.goto(start.as_uri())
        wait(page)
        with page.expect_download() as saved:
            page.get_by_role("button", name="Download stages as CSV").click()
        lines = Path(saved.value.path()).read_text("utf-8").splitlines()
        assert lines[0].startswith("stage,pairs,lineages,forgetting")
        assert len(lines) == 4
        assert 0 < float(lines[1].split(",")[3]) < 1


def test_every_kind_of_page_fits_a_dark_phone(browser: Browser, start: Path) -> None:
    folder = start.parent
    pages = [start, folder / "items.html", folder / "downloads.html"]
    pages += [
        min((folder / kind).iterdir()) for kind in ("stages", "pairs", "categories", "models")
    ]
    with watched(browser, viewport=PHONE, color_scheme="dark") as page:
        for path in pages:
            page.goto(path.as_uri())
            wait(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
            assert page.locator("h1").count() == 1
            ids = page.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
            assert len(ids) == len(set(ids)), path
            unnamed = (
                "all => all.filter(each => !each.textContent.trim() && !each.ariaLabel).length"
            )
            assert page.eval_on_selector_all("button, a", unnamed) == 0


def test_the_ground_goes_along_and_tables_stand_without_scripts(
    browser: Browser, start: Path
) -> None:
    with watched(browser) as page:
        page.goto(start.as_uri())
        wait(page)
        page.click("#theme")
        page.wait_for_selector(":root[data-theme=dark]", state="attached")
        page.locator("table[data-name=stages] a").first.click()
        page.wait_for_selector(":root[data-theme=dark]", state="attached")
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(start.as_uri())
    assert plain.locator("table.sheet tbody tr").count() > 10
    context.close()
