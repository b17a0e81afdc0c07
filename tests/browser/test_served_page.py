"""The served explorer in a real browser: pick runs, filter, search, open an item, go back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from axe import faults_of, shares_beyond
from chromium import chromium, watched
from command_line import SCRIPT, write
from forgetmap.records.folder import write_run
from forgetmap.records.manifest import RunInfo
from forgetmap.sources.open import open_run

pytestmark = pytest.mark.needs_browser

HOSTILE = "<img src=x onerror=\"document.title='broken in'\"></script><script>alert(1)</script>"
READY = "body[data-ready=true]"
SLOW = 60_000
"""Milliseconds that the first comparisons may take."""


def rows(right: list[int], response: str) -> list[dict[str, Any]]:
    return [
        {
            "task": f"t{place % 2}",
            "item": f"i{place}",
            "score": score,
            "question": f"{HOSTILE} {place}?",
            "response": f"{response} {place} {HOSTILE}",
        }
        for place, score in enumerate(right)
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with three runs, two of which are one from the other; it holds the token."""
    folder = tmp_path_factory.mktemp("served")
    for name, right, parent in (
        ("base", [1, 1, 0, 0] * 30, None),
        ("sft", [1, 0, 1, 0] * 30, "base"),
        ("rl", [1, 1, 1, 0] * 30, "sft"),
    ):
        _write_folder(folder, name, rows(right, f"{name} says"), parent)
    call = [str(SCRIPT), "serve", str(folder / "runs")]
    env = {**os.environ, "FORGETMAP_CACHE": str(folder / "cache")}
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=env) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1]
        server.send_signal(signal.SIGINT)


def _write_folder(folder: Path, name: str, found: list[dict[str, Any]], parent: str | None) -> None:
    run = open_run(write(folder / f"{name}.jsonl", found))
    info = RunInfo(run_id=name, parent=parent, stage=f"stage {name}")
    write_run(replace(run, info=info), folder / "runs" / name)


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched(browser, address.partition("?")[0]) as found:
        found.set_default_timeout(SLOW)
        yield found


def open_pair(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("#lineage").get_by_role("link", name="against base").click()
    page.wait_for_selector("#headline")


def test_the_lineage_leads_to_a_comparison(page: Page, address: str) -> None:
    page.goto(address)
    rows = page.locator("#lineage tbody tr")
    expect(rows).to_have_count(3, timeout=SLOW)
    expect(rows.nth(2)).to_contain_text("\N{EN DASH} \N{EN DASH} rl")
    for row in rows.all():
        expect(row.locator("td").nth(0)).to_have_text(re.compile(r"^\d+\.\d%$"))
        expect(row.locator("td").nth(1)).to_have_text(re.compile(r"^[\d,]+$"))
        expect(row.locator("td").nth(3)).to_have_text(re.compile(r"^stage \w+$"))
    expect(page.locator("#choice")).to_contain_text("Choose a run")
    open_pair(page, address)
    assert "before=" in page.url
    expect(page.locator("#top .title")).to_have_text("sft against base")
    page.locator("#run-after").select_option(label="- - rl (stage rl)")
    page.wait_for_url("**#")
    page.wait_for_selector("#headline")
    expect(page.locator("#top .title")).to_have_text("rl against base")


def test_a_press_on_two_runs_compares_them(page: Page, address: str) -> None:
    page.goto(address)
    rows = page.locator("#lineage tbody tr")
    rows.nth(0).get_by_role("button").click()
    expect(page.locator("#choice")).to_have_text("Before: base. Now choose the run after.")
    rows.nth(2).get_by_role("button").click()
    page.wait_for_selector("#headline")
    expect(page.locator("#top .title")).to_have_text("rl against base")
    page.get_by_role("link", name="All runs").click()
    expect(page.locator("#choice")).to_contain_text("Choose a run")


def test_runs_stay_sorted_while_their_numbers_come(page: Page, address: str) -> None:
    page.goto(address)
    table = page.locator("#lineage")
    table.get_by_role("button", name="accuracy").click()
    expect(table.locator("tbody")).not_to_contain_text("…", timeout=SLOW)
    expect(table.locator("tbody tr button")).to_have_text(["rl", "base", "sft"])


def test_the_matrix_is_filled_cell_by_cell_and_leads_on(page: Page, address: str) -> None:
    page.goto(address)
    cells = page.locator("#matrix tbody td a")
    expect(cells).to_have_count(3, timeout=SLOW)
    expect(cells.first).to_have_text("25.0%")
    expect(page.locator("#matrix .bar button")).to_be_hidden()
    page.get_by_role("link", name="base to rl").click()
    page.wait_for_selector("#headline")
    expect(page.locator("#top .title")).to_have_text("rl against base")


def test_the_matrix_can_be_stopped_and_goes_on(page: Page, address: str) -> None:
    held: list[Route] = []
    page.route("**/api/cell**", lambda route: held.append(route))  # noqa: PLW0108
    page.goto(address)
    matrix = page.locator("#matrix")
    matrix.get_by_role("button", name="Stop").click()
    expect(matrix).to_contain_text("0 of 3 comparisons")
    page.unroute("**/api/cell**")
    assert len(held) == 1  # one comparison at a time
    matrix.get_by_role("button", name="Compute").click()
    expect(matrix.locator("tbody td a")).to_have_count(3, timeout=SLOW)


def test_filter_search_open_and_come_back(page: Page, address: str) -> None:
    open_pair(page, address)
    expect(page.locator("#flips .found")).to_contain_text("120 items")
    page.locator("#filter-transition").select_option("forgotten")
    expect(page.locator("#flips .found")).to_contain_text("30 of 120 items")
    page.locator("#filter-q").fill("SFT SAYS 101")
    expect(page.locator("#flips .found")).to_contain_text("1 of 120 items.")
    linked = page.url
    page.locator("#flips a[data-key]").click()
    expect(page.locator("#item")).to_contain_text("base says 101")
    expect(page.locator("#item")).to_contain_text("sft says 101")
    page.reload()
    page.wait_for_selector(READY)
    expect(page.locator("#item")).to_contain_text("sft says 101")
    page.goto(linked)
    expect(page.locator("#flips .found")).to_contain_text("1 of 120 items.")


def test_hostile_texts_stay_texts(page: Page, address: str) -> None:
    open_pair(page, address)
    page.locator("#flips a[data-key]").first.click()
    expect(page.locator("#item")).to_contain_text("onerror=")
    assert page.title() != "broken in"
    assert page.locator("#item img").count() == 0


def test_the_keyboard_meets_things_in_the_order_of_the_eye(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(READY)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    open_pair(page, address)
    tops = page.eval_on_selector_all(
        "#theme, #run-before, #headline", "all => all.map(each => each.getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
    page.set_viewport_size({"width": 1180, "height": 844})
    before_the_top = "picker => picker.nextElementSibling.id === 'top'"
    assert page.locator("#runs").evaluate(before_the_top)


def test_axe_finds_nothing_on_any_of_its_pages(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#matrix tbody td a")).to_have_count(3, timeout=SLOW)
    assert faults_of(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert faults_of(page) == []
    open_pair(page, address)
    page.wait_for_selector("body[data-figures=drawn]")
    assert faults_of(page) == []
    assert shares_beyond(page) == []
    page.locator("#flips a[data-key]").first.click()
    page.wait_for_selector("#item h1")
    assert faults_of(page) == []


def test_links_from_elsewhere_lead_to_the_page(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    """Browsers leave a strict cookie out where another site leads here, as this file does."""
    home = address.partition("?")[0]
    links = {"first": f"{address}#scale=1", "again": f"{home}#scale=1", "never": home}
    for name, where in links.items():
        refresh = f'<meta http-equiv="refresh" content="0;url={where}">'
        (tmp_path / f"{name}.html").write_text(refresh)
    context = browser.new_context()
    page = context.new_page()
    for name in ("first", "again"):
        page.goto((tmp_path / f"{name}.html").as_uri())
        expect(page.locator("#lineage tbody tr")).to_have_count(3, timeout=SLOW)
        assert page.url == f"{home}#scale=1"
    assert "token" not in page.evaluate("document.cookie")
    context.clear_cookies()
    page.goto((tmp_path / "never.html").as_uri())
    expect(page.locator("#loading")).to_contain_text("open the address printed by the server")
    assert page.locator("#lineage tbody tr").count() == 0
    context.close()
