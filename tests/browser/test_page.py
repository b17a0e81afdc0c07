"""The report in a real browser, opened from the file."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import forgetmap as fm
import page_reports as reports
from backends import as_arrow
from chromium import chromium, open_report, watched, write
from forgetmap.comparison import verdict_words
from forgetmap.report.figures.registry import all_figures
from forgetmap.report.html.report import report_html
from forgetmap.report.payloads.comparison import assemble
from forgetmap.report.payloads.packing import packed
from forgetmap.report.payloads.schema import Payload
from forgetmap.results import Notice
from report_files import unpacked

pytestmark = pytest.mark.needs_browser

ITEM = "capitals/capitals-1/0"
"""Forgotten with a wrong answer."""
UNFINISHED = "capitals/capitals-9/0"
"""Forgotten because the thinking was cut."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def payload() -> Payload:
    return reports.pair()


@pytest.fixture(scope="module")
def address(payload: Payload, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(payload, tmp_path_factory.mktemp("report"))


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched(browser) as found:
        open_report(found, address)
        yield found


def rows_like(payload: Payload, **wanted: Any) -> list[dict[str, Any]]:
    columns = payload.rows.model_dump()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def shown_share(value: float) -> str:
    return f"{100 * value:.1f}%".replace("-", "\N{MINUS SIGN}")


def verdict_of(payload: Payload, place: int) -> str:
    return f"{payload.summaries[place].badge}: {payload.comparisons[place].after.name}"


def row_links(page: Page) -> Locator:
    return page.locator("#flips a[data-key]")


def downloaded(page: Page, press: Locator) -> bytes:
    with page.expect_download() as waiting:
        press.click()
    return Path(waiting.value.path()).read_bytes()


def test_the_first_screen_is_the_summary(browser: Browser, tmp_path: Path) -> None:
    """A clear loss, and one that cannot be told."""
    for place, payload in enumerate((reports.pair(80), reports.pair(24))):
        summary, total = payload.summaries[0], payload.comparisons[0].total
        assert total.verdict == ("lost", "cannot_tell")[place]
        (tmp_path / str(place)).mkdir()
        with watched(browser) as page:
            open_report(page, write(payload, tmp_path / str(place)))
            first = page.locator(".first")
            expect(page.locator("h1#headline")).to_have_text(verdict_of(payload, 0))
            expect(first.locator(".lead")).to_have_text(summary.sentence)
            expect(first.locator(".interval")).to_have_count(0)  # it is in the sentence
            for words in (summary.counts, summary.noise, summary.gained, summary.tasks):
                expect(first).to_contain_text(words)
            for step in summary.steps:
                expect(first.locator(".next")).to_contain_text(step.words)
            # Everything else stands behind the fold, so that no other interval competes with this.
            for fact in summary.facts:
                expect(first).not_to_contain_text(fact.words)
            expect(page.locator("#how-we-know .facts")).to_be_hidden()


def test_the_bar_is_what_is_proven_beside_the_margin(browser: Browser, tmp_path: Path) -> None:
    payload = reports.pair(80)
    total = payload.comparisons[0].total
    assert total.loss.low is not None
    assert total.loss.high is not None
    with watched(browser) as page:
        open_report(page, write(payload, tmp_path))
        bar, margin = page.locator(".first .range"), page.locator(".first .floor")
        start = float(bar.get_attribute("x") or "nan") - 4
        end = start + float(bar.get_attribute("width") or "nan")
        share = (float(margin.get_attribute("x1") or "nan") - 4) / total.margin
        assert (start / share, end / share) == pytest.approx((total.loss.low, total.loss.high))
        expect(page.locator(".first svg")).to_contain_text("margin 2%")


def test_what_is_behind_the_verdict_is_in_a_fold(page: Page, payload: Payload) -> None:
    summary = payload.summaries[0]
    fold = page.locator("#how-we-know")
    blind = fold.get_by_role("region", name="If guesses are blind").locator("tbody tr")
    expect(blind.first).to_be_hidden()
    fold.locator("summary").click()
    expect(blind.first).to_be_visible()
    rows = fold.locator(".scroll tbody tr")
    expect(rows).to_have_count(len(summary.estimators))
    for estimator in summary.estimators:
        # Those that decide come first, estimates for blind guesses last.
        row = rows.filter(has=page.get_by_role("rowheader", name=estimator.name, exact=True))
        expect(row).to_contain_text(estimator.forgetting)
        expect(row).to_contain_text(estimator.formula)
    assert blind.count() == sum(row.role == "if guesses are blind" for row in summary.estimators)
    for fact in summary.facts:
        expect(fold).to_contain_text(fact.words)
    pattern = reports.PATTERN
    names = {"11": "kept", "10": "forgotten", "01": "gained", "00": "never right"}
    for went, name in names.items():
        share = pattern.count(went) / len(pattern)
        cell = page.locator(".cell", has=page.get_by_text(name, exact=True))
        expect(cell).to_contain_text(f"{name}{round(72 * share)}{100 * share:.1f}%")
    page.get_by_label("Estimator", exact=True).select_option("latent")
    expect(blind.first).to_be_visible()


def test_on_a_phone_the_verdict_comes_before_the_switches(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    badge, first = page.locator("h1 .verdict"), page.locator("#overview select").first
    places = [each.evaluate("it => it.getBoundingClientRect().y") for each in (badge, first)]
    assert places == sorted(places)
    assert places[0] < 300


def test_three_warnings_come_first_and_say_what_to_do(browser: Browser, tmp_path: Path) -> None:
    result = reports.pair().comparisons[0]
    notices = [Notice(code, f"about {code}") for code in ("log", "prompts", "metric", "n_shot")]
    notices.append(Notice("thin_task", "about a task"))  # urgent
    many = replace(result, pairing=replace(result.pairing, warnings=notices))
    with watched(browser) as page:
        open_report(page, write(assemble([many], []), tmp_path))
        first, fold = page.locator(".first"), page.locator("#how-we-know")
        expect(first.locator(".warnings li")).to_have_count(3)
        expect(first.locator(".warnings li").first).to_contain_text("About a task")
        assert all(first.locator(".advice").all_inner_texts())
        expect(fold.locator(".warnings li").first).to_be_hidden()
        first.get_by_role("button", name="2 more").click()
        expect(fold.locator(".warnings li").first).to_be_visible()
        expect(fold.locator(".warnings li")).to_have_count(5)


def test_the_switches_apply_to_everything_and_stay_in_the_address(
    page: Page, payload: Payload
) -> None:
    figure = page.locator("#figure-categories .picture")
    before = figure.inner_html()
    page.get_by_label("Estimator", exact=True).select_option("upper")
    page.get_by_label("Scale", exact=True).select_option("right_before")
    line = page.locator("#tables tr", has=page.get_by_role("rowheader", name="Math"))
    for direction in ("forgetting", "backward_transfer"):
        (group,) = rows_like(
            payload, level="category", group="Math", estimator="upper", scale="right_before",
            direction=direction,
        )  # fmt: skip
        expect(line).to_contain_text(shown_share(group["value"]))
    expect(page).to_have_url(re.compile("estimator=upper&scale=right_before"))
    expect(figure).to_contain_text("right before")
    assert figure.inner_html() != before
    page.reload()
    expect(page.get_by_label("Estimator", exact=True)).to_have_value("upper")
    expect(page.get_by_label("Scale", exact=True)).to_have_value("right_before")


def test_the_estimators_to_choose_from_decide_nothing(page: Page) -> None:
    choices = page.get_by_label("Estimator", exact=True)
    expect(choices).to_have_value("flips")
    expect(choices.locator("option").first).to_have_text("as counted")
    values = choices.locator("option").evaluate_all("all => all.map((each) => each.value)")
    assert values == ["flips", "latent", "upper", "matched", "published"]


def test_every_figure_has_words_for_those_who_do_not_see_it(page: Page, payload: Payload) -> None:
    figures = all_figures(payload)
    assert len(figures) > 2
    for figure in figures:
        card = page.locator("figure", has=page.get_by_role("heading", name=figure.title))
        expect(card.get_by_role("img", name=figure.alt, exact=True).first).to_be_visible()
        expect(card.locator("figcaption")).to_have_text(figure.caption)


def test_figures_can_be_taken_away(page: Page) -> None:
    card = page.locator("#figure-categories")
    page.get_by_label("Estimator", exact=True).select_option("upper")
    expect(page).to_have_url(re.compile("estimator=upper"))
    svg = downloaded(page, card.get_by_role("button", name="as SVG"))
    assert svg.startswith(b"<svg")
    assert b"Knowledge" in svg
    png = downloaded(page, card.get_by_role("button", name="as PNG"))
    assert png.startswith(b"\x89PNG\r\n")
    table = downloaded(page, card.get_by_role("button", name="as CSV")).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert {row["estimator"] for row in rows} == {"upper"}
    assert {row["scale"] for row in rows} == {"items"}
    assert json.loads(downloaded(page, card.get_by_role("button", name="as JSON")))


def test_a_table_can_be_sorted_and_taken_away(page: Page, payload: Payload) -> None:
    page.get_by_label("Rows", exact=True).select_option("task")
    names = page.locator("#tables tbody th")
    expect(names).to_have_count(3)
    page.locator("#tables").get_by_role("button", name="task", exact=True).click()
    assert names.all_inner_texts() == ["capitals", "stories", "sums"]
    page.locator("#tables").get_by_role("button", name="task", exact=True).click()
    assert names.all_inner_texts() == ["sums", "stories", "capitals"]
    button = page.get_by_role("button", name="Download groups-by-task as CSV")
    rows = list(csv.DictReader(io.StringIO(downloaded(page, button).decode())))
    expected = {
        row["group"]: row["value"]
        for row in rows_like(
            payload, level="task", estimator="flips", scale="items", direction="forgetting"
        )
    }
    assert {row["task"]: float(row["forgetting"]) for row in rows} == expected
    tasks = {task.name: task for task in payload.comparisons[0].tasks}
    for row in rows:
        task = tasks[row["task"]]
        assert (row["verdict"], float(row["lost_at_most"])) == (task.verdict, task.loss.high)
        assert "shown" not in row
    as_json = page.get_by_role("button", name="Download groups-by-task as JSON")
    assert len(json.loads(downloaded(page, as_json))) == 3


def test_the_largest_proven_losses_stand_first(browser: Browser, tmp_path: Path) -> None:
    """Not the largest shares, which are those of the smallest groups."""
    groups = {"large": (300, 40, 5, 100), "small": (10, 6, 5, 4), "kept": (90, 0, 0, 9)}
    runs: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for task, counts in groups.items():
        went = [
            pair for pair, n in zip(("11", "10", "01", "00"), counts, strict=True) for _ in range(n)
        ]
        for number, pair in enumerate(went):
            for rows, score in zip(runs, pair, strict=True):
                rows.append({"task": task, "item": str(number), "score": float(score)})
    payload = reports.payload_of(*runs)
    with watched(browser) as page:
        open_report(page, write(payload, tmp_path))
        expect(page.locator("#tables tbody th")).to_have_text(["large", "small", "kept"])
        heads = page.locator("#tables thead th").all_inner_texts()
        assert [head.strip(" ↓") for head in heads] == [
            "task", "items", "before", "after", "change", "forgotten", "gained", "lost", "verdict",
        ]  # fmt: skip
        words = {task.name: verdict_words(task) for task in payload.comparisons[0].tasks}
        expect(page.locator("#tables tbody .verdict")).to_have_text(
            [words[name] for name in ("large", "small", "kept")]
        )


@pytest.mark.parametrize(
    ("label", "choice", "count"),
    [
        ("Change", "gained", 9),
        ("Change", "forgotten", 18),
        ("Task", "sums", 9),
        ("Category", "Math", 9),
        ("Reason", "truncated", 6),
    ],
)
def test_items_can_be_filtered(page: Page, label: str, choice: str, count: int) -> None:
    page.locator("#flips").get_by_label(label, exact=True).select_option(choice)
    expect(page.locator(".found")).to_contain_text(f"{count} of 27 items.")
    expect(row_links(page)).to_have_count(count)
    expect(page.get_by_role("navigation", name="Pages").get_by_role("button")).to_have_count(0)
    page.get_by_role("button", name="Clear").click()
    expect(row_links(page)).to_have_count(27)


def test_free_text_finds_and_filters_add_up(page: Page) -> None:
    page.get_by_label("Text", exact=True).fill("COUNTRY 1 IN")
    expect(row_links(page)).to_have_count(3)
    page.locator("#flips").get_by_label("Task", exact=True).select_option("sums")
    expect(row_links(page)).to_have_count(1)
    page.get_by_label("Text", exact=True).fill("nowhere to be found (")
    expect(page.locator(".empty")).to_contain_text("No item matches")
    page.get_by_role("button", name="Clear the filters").click()
    expect(row_links(page)).to_have_count(27)


def test_the_first_screen_leads_to_what_was_forgotten(page: Page) -> None:
    page.get_by_role("link", name="See the forgotten ones").click()
    expect(row_links(page)).to_have_count(18)
    row_links(page).nth(1).click()
    expect(page.locator("#item-place")).to_have_text("2 of 18")


def test_a_step_that_this_page_shows_is_a_link(browser: Browser, tmp_path: Path) -> None:
    with watched(browser) as page:
        open_report(page, write(reports.pair(80), tmp_path))
        page.get_by_role("link", name="read what was forgotten").click()
        expect(page.get_by_label("Change", exact=True)).to_have_value("forgotten")
        expect(page.locator(".first .next")).to_contain_text("(command: export replay)")


def test_items_can_be_ordered(page: Page) -> None:
    page.get_by_label("Order", exact=True).select_option("reason")
    reasons = page.locator("#flips tbody td:last-child")
    expect(reasons.first).to_have_text("cut at the token limit")
    expect(reasons.last).to_have_text("")


def test_a_cell_leads_to_its_items(page: Page) -> None:
    page.locator("#how-we-know > summary").click()
    page.locator(".cell button", has_text="gained").click()
    expect(row_links(page)).to_have_count(9)
    expect(page.get_by_label("Change", exact=True)).to_have_value("gained")


def test_many_items_come_in_pages(browser: Browser, tmp_path: Path) -> None:
    with watched(browser) as page:
        open_report(page, write(reports.pair(80), tmp_path))
        expect(page.locator(".found")).to_contain_text("90 items.")
        expect(row_links(page)).to_have_count(50)
        seen = set(row_links(page).evaluate_all("links => links.map((each) => each.dataset.key)"))
        page.get_by_role("navigation", name="Pages").get_by_role("button", name="Next").click()
        expect(row_links(page)).to_have_count(40)
        seen |= set(row_links(page).evaluate_all("links => links.map((each) => each.dataset.key)"))
        assert len(seen) == 90


def test_an_item_shows_everything(page: Page, address: str) -> None:
    page.goto(f"{address}#item={ITEM}")
    item = page.locator("#item")
    expect(item.get_by_role("heading", level=1)).to_have_text("forgotten wrong answer")
    expect(item).to_contain_text("Which town is the capital of country 1 in capitals?")
    right = item.locator(".options li.right")
    expect(right).to_contain_text("Rome")
    expect(right).to_contain_text("right answer")
    expect(right).to_contain_text("chosen before")
    chosen = item.locator(".options li", has_text="chosen after")
    expect(chosen).to_contain_text("Cairo")
    assert item.locator("del").all_inner_texts() == ["Rome", "therefore", "Rome"]
    assert "".join(item.locator("ins").all_inner_texts()).replace(" ", "") == "CairoandsoCairo"
    thinking = item.locator("details.thinking")
    expect(thinking).to_have_count(1)
    expect(thinking).not_to_have_attribute("open", "")
    thinking.locator("summary").click()
    expect(thinking).to_contain_text("Is it Oslo? Or rather Cairo?")


def test_unfinished_thinking_is_said_to_be(page: Page, address: str) -> None:
    page.goto(f"{address}#item={UNFINISHED}")
    expect(page.locator("details.thinking summary")).to_contain_text("not finished")
    expect(page.locator("#item")).to_contain_text("No answer after the thinking.")


def test_a_term_says_what_it_means_on_hover_and_focus(page: Page) -> None:
    term = page.locator(".first .term", has_text="margin")
    tip = page.locator("#term-tip")
    expect(tip).to_be_hidden()
    term.hover()
    expect(tip).to_contain_text("largest loss that you accept")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.locator("#tables").get_by_role("button", name="gained").focus()
    expect(tip).to_contain_text("Wrong before, right after")
    expect(term).to_have_accessible_description(re.compile("largest loss that you accept"))
    page.locator("#help-button").click()
    expect(page.get_by_role("dialog")).to_contain_text("noise floor")


def test_markdown_and_latex_are_shown_and_can_be_raw(browser: Browser, tmp_path: Path) -> None:
    before, after = reports.rows_of(0), reports.rows_of(1)
    for row in (*before, *after):
        row["question"] = r"What is $\frac{1}{2}$ of **two**? <b>No markup</b>"
        row["response"] += "\n\n- first\n- second, \\(x^2\\)"
    with watched(browser) as page:
        open_report(page, f"{write(reports.payload_of(before, after), tmp_path)}#item={ITEM}")
        item = page.locator("#item")
        expect(item.locator("section math mfrac")).to_have_count(1)
        expect(item.locator("section strong")).to_have_text(["two"])
        expect(item.locator(".side li")).to_have_count(4)
        expect(item.locator("ins").first).to_be_visible()
        expect(item).to_contain_text("<b>No markup</b>")
        item.get_by_role("button", name="Raw text").click()
        expect(item.locator("math")).to_have_count(0)
        expect(item).to_contain_text(r"What is $\frac{1}{2}$ of **two**?")
        expect(page).to_have_url(re.compile("texts=raw"))


def test_a_link_to_nothing_says_so(page: Page, address: str) -> None:
    page.goto(f"{address}#item=no/such/0")
    expect(page.get_by_role("heading", name="Item not found")).to_be_visible()
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator("#overview")).to_be_visible()


def test_a_link_opens_an_item_in_a_fresh_browser(browser: Browser, address: str) -> None:
    with watched(browser) as page:
        open_report(page, f"{address}#transition=gained&item=capitals%2Fcapitals-2%2F0")
        expect(page.locator("#item h1")).to_contain_text("gained")
        expect(page.locator("#overview")).to_be_hidden()
        page.get_by_role("button", name="← Back").click()
        expect(row_links(page)).to_have_count(9)


def test_an_item_can_be_copied(browser: Browser, address: str, payload: Payload) -> None:
    with watched(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        open_report(page, f"{address}#item={ITEM}")
        page.get_by_role("button", name="Copy as JSONL").click()
        expect(page.locator("#said")).to_have_text("Copied as JSONL.")
        columns = payload.items[0].columns
        place = columns["item"].index("capitals-1")
        copied = page.evaluate("() => navigator.clipboard.readText()")
        assert json.loads(copied) == {name: cells[place] for name, cells in columns.items()}
        assert copied.endswith("\n")
        assert "\n" not in copied[:-1]


def test_the_list_can_be_taken_away(page: Page) -> None:
    page.locator("#flips").get_by_label("Change", exact=True).select_option("gained")
    expect(row_links(page)).to_have_count(9)
    lines = downloaded(page, page.get_by_role("button", name="JSONL of these 9")).splitlines()
    assert {json.loads(line)["transition"] for line in lines} == {"gained"}
    assert len(lines) == 9
    table = downloaded(page, page.get_by_role("button", name="CSV of these 9")).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["item"] for row in rows] == [json.loads(line)["item"] for line in lines]


def test_everything_can_be_taken_away(page: Page, payload: Payload) -> None:
    content = downloaded(page, page.get_by_role("button", name="Everything as JSON"))
    assert Payload.model_validate_json(content) == payload


def test_the_keyboard_is_enough(page: Page) -> None:
    page.keyboard.press("/")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.type("country")
    expect(page).to_have_url(re.compile("q=country"))
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(row_links(page).nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(row_links(page).nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("j")
    second = row_links(page).nth(1).get_attribute("data-key")
    page.keyboard.press("Enter")
    expect(page.locator("#item h1")).to_be_focused()
    assert second is not None
    first_name = page.locator("#item .names").inner_text()
    page.keyboard.press("j")
    expect(page.locator("#item .names")).not_to_have_text(first_name)
    page.keyboard.press("k")
    expect(page.locator("#item .names")).to_have_text(first_name)
    page.keyboard.press("Escape")
    expect(page.locator("#overview")).to_be_visible()
    expect(row_links(page).nth(1)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_headings_go_down_one_step_at_a_time(page: Page) -> None:
    levels = page.locator(":is(h1, h2, h3):visible").evaluate_all(
        "found => found.map((each) => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_control_has_a_name(page: Page) -> None:
    nameless = page.locator("button, select, input, a").evaluate_all(
        """found => found.filter((each) => !(each.ariaLabel || each.textContent.trim()
             || each.labels?.[0]?.textContent.trim())).map((each) => each.outerHTML)"""
    )
    assert nameless == []


CONTRAST = """() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
    .map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return colour === "rgba(0, 0, 0, 0)" ? ground(element.parentElement) : colour;
  };
  const low = [];
  for (const element of document.querySelectorAll("body *:not(svg *, script, option)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.disabled || !element.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push([element.textContent, ratio]);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", f"#item={ITEM}"])
def test_words_stand_out_in_both_themes(
    browser: Browser, address: str, scheme: str, place: str
) -> None:
    with watched(browser, color_scheme=scheme) as page:
        open_report(page, address + place)
        assert page.evaluate(CONTRAST) == []


def ground_of(page: Page) -> str:
    return str(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))


def test_dark_follows_the_system_and_the_switch(browser: Browser, address: str) -> None:
    with watched(browser, color_scheme="light") as page:
        open_report(page, address)
        light = ground_of(page)
        figure = page.locator("#figure-categories svg").first
        drawn = figure.inner_html()
        page.get_by_role("button", name="Dark mode").click()
        expect(page.get_by_role("button", name="Light mode")).to_be_visible()
        dark = ground_of(page)
        assert dark != light
        expect(figure).to_be_visible()
        page.wait_for_timeout(300)
        assert figure.inner_html() != drawn
    with watched(browser, color_scheme="dark") as page:
        open_report(page, address)
        assert ground_of(page) == dark
        page.get_by_role("button", name="Light mode").click()
        expect(page.get_by_role("button", name="Dark mode")).to_be_visible()
        assert ground_of(page) == light


@pytest.mark.parametrize("place", ["", f"#item={ITEM}"])
def test_a_phone_need_not_scroll_sideways(browser: Browser, address: str, place: str) -> None:
    with watched(browser, viewport={"width": 360, "height": 740}, has_touch=True) as page:
        open_report(page, address + place)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_paper_gets_no_buttons(page: Page) -> None:
    page.emulate_media(media="print")
    expect(page.locator("#headline")).to_be_visible()
    expect(page.locator("#switches select").first).to_be_hidden()
    expect(page.get_by_role("button", name="Clear")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # paper has no fold
    expect(page.locator(".cell b").first).to_be_visible()


def test_many_models_can_be_chosen_between(browser: Browser, tmp_path: Path) -> None:
    payload = reports.many()
    with watched(browser) as page:
        open_report(page, write(payload, tmp_path))
        expect(page.locator("h1#headline")).to_have_text(verdict_of(payload, 0))
        page.get_by_label("Comparison", exact=True).select_option("2")
        expect(page.locator("h1#headline")).to_have_text(verdict_of(payload, 2))
        expect(row_links(page).first).to_be_visible()
        keys = row_links(page).evaluate_all("all => all.map((each) => each.dataset.key)")
        columns = payload.items[2].columns
        names = zip(columns["task"], columns["item"], strict=True)
        assert keys == [f"{task}/{item}/0" for task, item in names]
        page.get_by_label("Rows", exact=True).select_option("model")
        expect(page.locator("#tables tbody tr")).to_have_count(3)


def test_a_chain_is_offered_stage_by_stage(browser: Browser, tmp_path: Path) -> None:
    payload = reports.chain()
    stages = payload.comparisons[0].stages
    assert stages is not None
    with watched(browser) as page:
        open_report(page, write(payload, tmp_path))
        expect(page.get_by_label("Comparison", exact=True).locator("option")).to_have_count(
            len(stages)
        )
        page.get_by_label("Rows", exact=True).select_option("stage")
        names = page.locator("#tables tbody th")
        expect(names).to_have_count(len(stages))
        assert set(names.all_inner_texts()) == {stage.name for stage in stages}
        listed = page.get_by_role("region", name="All comparisons").get_by_role("link")
        assert listed.all_inner_texts() == ["after 3", "after 1", "after 2"]
        listed.nth(1).click()
        expect(page.locator("h1#headline")).to_have_text(verdict_of(payload, 1))
        expect(listed.nth(1)).to_have_attribute("aria-current", "true")
        task, item = (payload.items[0].columns[name][0] for name in ("task", "item"))
        page.goto(f"{page.url.split('#')[0]}#item={task}/{item}/0")
        number = int(str(item).split("-")[1])
        right = [reports.PATTERN[(number + stage) % 8][min(stage, 1)] for stage in range(4)]
        went = zip(["before", "after 1", "after 2", "after 3"], right, strict=True)
        words = [f"{name}: {'right' if digit == '1' else 'wrong'}" for name, digit in went]
        expect(page.locator("#item-history")).to_have_text(" → ".join(words))


def test_hostile_texts_are_only_text(browser: Browser, tmp_path: Path) -> None:
    payload = reports.hostile()
    with watched(browser) as page:
        open_report(page, write(payload, tmp_path))
        shown = page.locator("#flips tbody tr").first.inner_text()
        assert "<script>window.hacked = 1</script>" in shown
        page.locator("#flips tbody tr td").first.click()
        item = page.locator("#item")
        expect(item.locator(".card").first).to_contain_text("onerror='window.hacked = 2'")
        expect(item.locator(".card").first).to_contain_text("⟨U+202E⟩gnp.exe ⟨U+001B⟩[31mred")
        assert (
            page.locator("main script, main img[src='x'], main a[href^='javascript']").count() == 0
        )
        page.keyboard.press("Escape")
        # The overview is shown again when the address has changed, a moment after the key.
        expect(item).to_be_hidden()
        mark = page.locator("#figure-categories svg .mark-symbol path").first
        expect(mark).to_be_visible()
        mark.hover(force=True)
        expect(page.locator("#tooltip")).to_contain_text("forgotten")
        assert page.evaluate("() => window.hacked") is None


def test_hostile_cells_are_quoted_in_csv(browser: Browser, tmp_path: Path) -> None:
    before, after = reports.rows_of(0), reports.rows_of(1)
    for row in (*before, *after):
        row["task"] = f"=cmd({row['task']})"
    with watched(browser) as page:
        open_report(page, write(reports.payload_of(before, after), tmp_path))
        page.get_by_label("Rows", exact=True).select_option("task")
        button = page.get_by_role("button", name="Download groups-by-task as CSV")
        rows = csv.DictReader(io.StringIO(downloaded(page, button).decode()))
        assert {row["task"] for row in rows} == {
            "'=cmd(capitals)", "'=cmd(stories)", "'=cmd(sums)"
        }  # fmt: skip


def test_a_megabyte_on_one_line_is_cut_until_asked_for(browser: Browser, tmp_path: Path) -> None:
    before, after = reports.rows_of(0), reports.rows_of(1)
    after[1]["response"] = "x" * 1_000_000
    with watched(browser) as page:
        open_report(page, f"{write(reports.payload_of(before, after), tmp_path)}#item={ITEM}")
        whole = len(str(reports.payload_of(before, after).items[0].columns["response_after"][0]))
        more = page.get_by_role("button", name=f"Show all {whole:,} characters")
        expect(more).to_be_visible()
        assert page.locator("ins").inner_text() == "x" * 20_000
        more.click()
        expect(more).to_have_count(0)
        assert len(page.locator("ins").inner_text()) == whole


ODD_NAMES = ("__proto__", "constructor", "toString", "hasOwnProperty", " ", "\u200b")


def oddly_named(side: int, **options: int) -> list[reports.Row]:
    """Runs whose tasks and categories have names that programs trip over."""
    rows = reports.rows_of(side, 24, **options)
    for place, row in enumerate(rows):
        row["task"] = ODD_NAMES[place // 8 % 6]
        row["category"] = ODD_NAMES[(place // 8 + 1) % 6]
        row["item"] += f" {place}"
    return rows


@pytest.mark.parametrize("kind", ["pair", "many", "chain"])
def test_names_of_prototypes_are_only_names(browser: Browser, tmp_path: Path, kind: str) -> None:
    runs = [as_arrow(oddly_named(min(place, 1), drift=place)) for place in range(4)]
    compared = (
        fm.chain(*runs) if kind == "chain" else fm.compare(*runs[: 2 if kind == "pair" else 4])
    )
    with watched(browser) as page:
        open_report(
            page,
            f"{write(fm.make_payload(compared), tmp_path)}#estimator=__proto__&by=task",
        )
        expect(page.locator("figure[data-drawn=yes]")).to_have_count(page.locator("figure").count())
        for name in ("categories", "reasons"):
            picture = page.locator(f"#figure-{name} .picture")
            for shown in (*ODD_NAMES[:4], "“ ”", "\N{REPLACEMENT CHARACTER}"):
                expect(picture).to_contain_text(shown)
        points = page.locator("#figure-directions .mark-symbol path")
        expect(points).to_have_count(6)
        expect(page.locator("#tables tbody th", has_text="“ ”")).to_have_count(1)
        for name in ODD_NAMES[:5]:
            page.locator("#flips").get_by_label("Task", exact=True).select_option(name)
            expect(page.locator("#flips tbody td:nth-child(2)").first).to_have_text(
                "“ ”" if name == " " else name
            )


def test_a_figure_that_fails_says_so_and_can_be_tried_again(
    browser: Browser, payload: Payload, tmp_path: Path
) -> None:
    """Vega reports what goes wrong in its data to the console only."""
    html = report_html(payload)
    figures = unpacked(html, "figures")
    broken = next(each for each in figures if each["name"] == "reasons")
    broken["spec"]["data"][0]["transform"] = [{"type": "formula", "as": "x", "expr": "nothing()"}]
    path = tmp_path / "report.html"
    old, new = (
        packed(json.dumps(each, ensure_ascii=False))
        for each in (unpacked(html, "figures"), figures)
    )
    path.write_text(html.replace(old, new), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    open_report(page, path.as_uri())
    failed = page.locator("#figure-reasons")
    expect(failed).to_have_attribute("data-drawn", "no")
    expect(failed.get_by_role("alert")).to_contain_text("cannot be drawn here")
    failed.get_by_role("button", name="Try again").click()
    expect(failed.get_by_role("alert")).to_contain_text("cannot be drawn here")
    expect(page.locator("figure[data-drawn=yes]")).to_have_count(len(figures) - 1)
    context.close()


def test_figures_drawn_late_have_their_width(browser: Browser, address: str) -> None:
    """Behind an open item there is no room; they are drawn when one comes back."""
    with watched(browser) as page:
        open_report(page, f"{address}#item={ITEM}")
        expect(page.locator("figure[data-drawn]")).to_have_count(0)
        page.get_by_role("button", name="← Back").click()
        expect(page.locator("figure:not([data-drawn=yes])")).to_have_count(0)
        wide = page.locator("#figure-categories svg").bounding_box()
        assert wide is not None
        assert wide["width"] > 300


def test_switching_fast_ends_in_the_last_choice(page: Page) -> None:
    for choice in ("upper", "latent", "flips", "upper", "matched", "flips"):
        page.get_by_label("Estimator", exact=True).select_option(choice)
    page.get_by_label("Scale", exact=True).select_option("right_before")
    page.get_by_label("Scale", exact=True).select_option("items")
    expect(page.locator("figure:not([data-drawn=yes])")).to_have_count(0)
    expect(page.locator("#figure-categories .picture")).to_contain_text("share of all items")


def test_a_report_without_flips_says_so(browser: Browser, tmp_path: Path) -> None:
    rows = reports.rows_of(0)
    with watched(browser) as page:
        open_report(page, write(reports.payload_of(rows, rows), tmp_path))
        expect(page.locator("#flips")).to_contain_text(
            "No item was forgotten, and none was gained."
        )


def test_a_list_without_answers_has_no_columns_for_them(browser: Browser, tmp_path: Path) -> None:
    left_out = {"answer", "choice", "outcome", "response", "prompt"}
    runs = [
        [{name: row[name] for name in row.keys() - left_out} for row in reports.rows_of(side)]
        for side in (0, 1)
    ]
    with watched(browser, viewport={"width": 390, "height": 844}) as page:
        open_report(page, write(reports.payload_of(*runs), tmp_path))
        expect(row_links(page)).to_have_count(27)
        assert "Answer" not in page.locator("#flips table").inner_text()
        assert page.locator("#flips [class^=answer]").count() == 0
