"""The interactive page of the theory in a real browser shows the same numbers as Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import chromium, watched
from forgetmap.report.html.theory import write_theory_page
from forgetmap.theory import methods
from forgetmap.theory.flows import Trajectory
from forgetmap.theory.methods import Demonstrator, Distillation, Setting

pytestmark = pytest.mark.needs_browser

TIMES = 10 ** np.linspace(-1, 3, 81)[7::8]
"""The rows of the table on the page, but for the start."""
DEFAULTS: dict[str, float] = {
    "share": 0.5, "start": 0.5, "offset": 1.0, "fraction": 0.1, "gap": 1.0, "temperature": 1.0,
    "eta": 2.0, "strength": 0.5, "anchor": 0.2, "refresh": 0.2, "demo": 0.3,
}  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("theory") / "page.html"
    return write_theory_page(path).as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched(browser) as found:
        found.goto(address)
        found.wait_for_selector("body[data-ready]", state="attached")
        yield found


def choose(page: Page, method: str, **values: float) -> None:
    page.select_option("select[name=method]", method)
    for name, value in values.items():
        slider = page.locator(f"input[name={name}]")
        slider.evaluate(
            "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }",
            value,
        )


def numbers(page: Page) -> np.ndarray:
    cells = page.locator("#numbers td").evaluate_all("all => all.map(e => Number(e.dataset.value))")
    return np.array(cells).reshape(-1, 4)


def test_numbers_are_those_of_python(page: Page) -> None:
    cases: list[tuple[str, dict[str, float]]] = [
        ("sft", {"separation": 3.0, "start": 0.6, "offset": 1.0}),
        ("sft", {"separation": 7.0, "start": 0.5, "offset": 0.0}),
        ("replay", {"separation": 4.0, "start": 0.5, "offset": 1.0, "fraction": 0.2}),
        ("rl", {"separation": 5.0, "start": 0.8, "offset": 0.5, "share": 0.3}),
        ("rl-new", {"separation": 5.0, "start": 0.5, "offset": 1.0}),
        ("kl-rl", {"separation": 6.0, "start": 0.7, "offset": 0.0, "temperature": 0.5}),
        ("kl-rl", {"separation": 4.0, "start": 0.4, "temperature": 2.0, "gap": 2.5}),
        ("sdft", {"separation": 5.0, "start": 0.8, "offset": 0.5, "anchor": 0.3, "demo": 0.4}),
        ("sdft", {"separation": 3.0, "anchor": 0.0, "refresh": 0.5, "demo": 0.2}),
        ("ttt-discover", {"separation": 6.0, "start": 0.6, "offset": 0.0, "eta": 3.0}),
        ("ttt-discover", {"separation": 4.0, "strength": 0.0, "gap": 0.5, "share": 0.3}),
        ("oapl", {"separation": 8.0, "offset": 0.0, "gap": 1.0, "temperature": 1.0}),
        ("oapl", {"separation": 5.0, "start": 0.7, "gap": 0.5, "temperature": 0.8, "share": 0.4}),
    ]
    for method, values in cases:
        all_values = DEFAULTS | values
        choose(page, method, **all_values)
        shown = numbers(page)
        path = in_python(method, all_values)
        apart = values["separation"]
        expected = np.stack([path.old_weight, path.old_mass(apart), path.drift(apart)], axis=1)
        assert np.abs(shown[1:, 1:] - expected).max() < 2e-6, (method, values)
        np.testing.assert_allclose(shown[1:, 0], path.times, rtol=1e-12)


def in_python(method: str, values: dict[str, float]) -> Trajectory:
    setting = Setting(values["separation"], values["share"], values["start"], values["offset"])
    gap, temperature = values["gap"], values["temperature"]
    demonstrator = Demonstrator(values["demo"])
    paths: dict[str, Callable[[], Trajectory]] = {
        "sft": lambda: methods.sft(setting, TIMES),
        "replay": lambda: methods.replay(setting, TIMES, values["fraction"]),
        "rl": lambda: methods.rl(setting, TIMES),
        "rl-new": lambda: methods.rl(setting, TIMES, sees_old=False),
        "kl-rl": lambda: methods.kl_rl(setting, TIMES, gap, temperature),
        "sdft": lambda: methods.sdft(
            setting, TIMES, Distillation(values["anchor"], values["refresh"], demonstrator)
        )[0],
        "ttt-discover": lambda: methods.ttt_discover(
            setting, TIMES, values["eta"], values["strength"], gap
        ),
        "oapl": lambda: after_refreshes(methods.oapl(setting, 10, gap, temperature, temperature)),
    }
    return paths[method]()


def after_refreshes(path: Trajectory) -> Trajectory:
    """Without its start, as the page's other rows."""
    return Trajectory(path.times[1:], path.states[:, 1:])


def test_moving_a_slider_changes_words_and_pictures(page: Page) -> None:
    choose(page, "sft", separation=6.0)
    before = page.locator("#outcome").inner_text()
    assert "of the old mass is left" in before
    shape = page.locator("#plots polyline.now").get_attribute("points")
    choose(page, "sft", when=0.0)
    expect(page.locator("#outcome")).to_contain_text("At time 0, 100.0%")
    assert page.locator("#plots polyline.now").get_attribute("points") != shape
    assert page.locator("#plots svg").count() == 3


def test_only_the_target_decides_what_is_left(page: Page) -> None:
    choose(page, "sft", separation=5.0, start=0.5, share=0.5, offset=1.0)
    left = page.locator("#four figure").evaluate_all("all => all.map(e => Number(e.dataset.left))")
    setting, until = Setting(5.0), [1000.0]
    paths = [
        methods.sft(setting, until),
        methods.replay(setting, until, 0.5),
        methods.rl(setting, until, sees_old=False),
        methods.rl(setting, until),
    ]
    expected = [float(path.old_mass(5.0)[-1]) for path in paths]
    np.testing.assert_allclose(left, expected, atol=2e-6)
    assert left[0] < 0.05
    assert left[2] < 0.05
    assert left[1] == pytest.approx(0.5, abs=1e-5)


def test_phase_diagrams_are_pictures_on_the_page(page: Page) -> None:
    widths = page.locator("#phases img").evaluate_all("all => all.map(e => e.naturalWidth)")
    assert len(widths) == 3
    assert min(widths) > 300


def test_only_the_knobs_of_a_method_are_shown(page: Page) -> None:
    choose(page, "replay")
    expect(page.locator("label:has(input[name=fraction])")).to_be_visible()
    expect(page.locator("label:has(input[name=temperature])")).to_be_hidden()
    choose(page, "sdft")
    expect(page.locator("label:has(input[name=anchor])")).to_be_visible()
    expect(page.locator("label:has(input[name=fraction])")).to_be_hidden()


def test_refreshes_are_counted_instead_of_time(page: Page) -> None:
    choose(page, "oapl", separation=8.0, offset=0.0, when=1.0)
    expect(page.locator("#outcome")).to_contain_text("After 10 refreshes")
    expect(page.locator("#numbers th").first).to_have_text("refreshes")
    assert page.locator("#numbers tr").count() == 12
    choose(page, "oapl", when=0.0)
    expect(page.locator("#outcome")).to_contain_text("After 0 refreshes, 100.0%")


@pytest.mark.parametrize("method", ["sdft", "ttt-discover", "oapl"])
def test_the_ends_of_all_sliders_can_be_followed(page: Page, method: str) -> None:
    for end in ("min", "max"):
        page.select_option("select[name=method]", method)
        page.evaluate(
            """end => {
              const all = [...document.querySelectorAll('#controls input')];
              for (const e of all) if (!e.parentElement.hidden) e.value = e[end];
              all[0].dispatchEvent(new Event('input', {bubbles: true}));
            }""",
            end,
        )
        expect(page.locator("#outcome")).to_contain_text("of the old mass is left")
        assert np.isfinite(numbers(page)).all()


def test_limits_are_on_the_page_and_it_fits_a_phone(browser: Browser, address: str) -> None:
    with watched(browser, viewport={"width": 360, "height": 700}) as page:
        page.goto(address)
        page.wait_for_selector("body[data-ready]", state="attached")
        assert page.locator("#limits li").count() >= 5
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360


def test_the_page_allows_no_other_script(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "page.html"
    text = write_theory_page(path).read_text(encoding="utf-8")
    path.write_text(text.replace("</main>", "<script>window.bad = 1</script></main>"))
    assert "window.bad" in path.read_text(encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]", state="attached")
    assert page.evaluate("window.bad === undefined")
    context.close()
