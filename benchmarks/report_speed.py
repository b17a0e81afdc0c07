"""How large is a report with 10,000 flips and their texts, and how soon can it be used?

    .venv/bin/python benchmarks/report_speed.py                  10,000 flips, 7 loads
    .venv/bin/python benchmarks/report_speed.py --flips 2000 --loads 3

The texts are chains of words that follow each other in the documentation of Python's own language
(`pydoc_data.topics`), so that they have the words, the repetition and the length of English. Each
item has a question of about 45 words, four options of 5, a prompt that repeats both, the same on
both sides, and on each side a chain of thought of 270 words on average (at most 2,000), in numbered
steps, with numbers, quoting an option at the end. Items that do not flip have no texts: no report
shows them.

Each load is a new context of one headless Chromium, from the start of the navigation: `usable` is
when the first screen is painted and the list of items can be filtered. The filter is then used,
texts are searched, and memory is the JavaScript heap after that and a garbage collection.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import psutil
import pyarrow as pa
from playwright.sync_api import Browser, sync_playwright

import forgetmap as fm
from forgetmap.report.html.report import write_report
from forgetmap.report.payloads.comparison import make_payload
from forgetmap.report.payloads.schema import Payload

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results"
BARS = {"file_mb": 15.0, "usable_max_s": 2.0}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TASKS = 40
CELLS = ("11", "10", "01", "00")
FILTER, SEARCH = "gained", "therefore"

WATCH = """
  window.painted = new Promise((resolve) => new MutationObserver((_, watcher) => {
    if (!document.body?.dataset.ready) return;
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-ready"] }));
"""
CHANGE = """([id, kind, value]) => new Promise((resolve) => {
  const [control, found] = [document.getElementById(id), document.querySelector(".found")];
  const start = performance.now();
  new MutationObserver((_, watcher) => {
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
  }).observe(found, { subtree: true, childList: true });
  control.value = value;
  control.dispatchEvent(new Event(kind));
})"""


class Writer:
    """Generates English as a chain of words: each one followed the previous somewhere."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        words = re.findall(r"(?<=\s)[A-Za-z]+[.,]?(?=\s)", " ".join(topics.values()))
        self._after: dict[str, list[str]] = {}
        for word, following in zip(words, [*words[1:], words[0]], strict=True):
            self._after.setdefault(word, []).append(following)
        self._words = words

    def words(self, count: int) -> str:
        """Return this many words."""
        return " ".join(self._chain(count))

    def _chain(self, count: int) -> Iterator[str]:
        draw = self._draw.random
        word = self._draw.choice(self._words)
        for _ in range(count):
            yield word
            following = self._after[word]
            word = following[int(draw() * len(following))]

    def question(self) -> str:
        """Return about 45 words."""
        return f"{self.words(self._draw.randint(15, 75))}?"

    def options(self) -> list[str]:
        """Return four options."""
        return [self.words(self._draw.randint(2, 8)) for _ in range(4)]

    def prompt(self, question: str, options: list[str]) -> str:
        """Return the prompt."""
        listed = "\n".join(f"{'ABCD'[place]}. {each}" for place, each in enumerate(options))
        return f"Question: {question}\n{listed}\nThink step by step, then answer."

    def thoughts(self, answer: str) -> str:
        """Return a chain of thought that ends with the answer."""
        left = min(int(self._draw.expovariate(1 / 250)) + 20, 2000)
        steps: list[str] = []
        while left > 0:
            length = min(left, self._draw.randint(20, 60))
            left -= length
            number = self._draw.randint(2, 999)
            steps.append(f"Step {len(steps) + 1}: {self.words(length)}, which gives {number}.")
        return "\n".join([*steps, f"Therefore the answer is: {answer}"])


def make_runs(flips: int) -> tuple[pa.Table, pa.Table]:
    """Return two runs of twice as many items as flip: each cell has a quarter."""
    writer = Writer(3)
    rows = [_item(writer, place) for place in range(2 * flips)]
    return pa.Table.from_pylist([row[0] for row in rows]), pa.Table.from_pylist(
        [row[1] for row in rows]
    )


def _item(writer: Writer, place: int) -> list[dict[str, Any]]:
    cell = CELLS[place // TASKS % 4]
    texts: dict[str, Any] = dict.fromkeys(("question", "options", "gold", "prompt"))
    if cell in ("10", "01"):
        question, options = writer.question(), writer.options()
        prompt = writer.prompt(question, options)
        texts = {"question": question, "options": options, "gold": options[1], "prompt": prompt}
    sides = []
    for right in cell:
        chosen = texts["options"] and texts["options"][1 if right == "1" else 2]
        sides.append({
            "task": f"task_{place % TASKS:02d}", "item": f"item-{place // TASKS:05d}",
            "category": f"Category {place % TASKS % 8 + 1}", "k": 4, **texts,
            "score": float(right), "answer": chosen, "choice": chosen,
            "outcome": "correct" if right == "1" else "incorrect",
            "response": chosen and writer.thoughts(chosen),
        })  # fmt: skip
    return sides


def load(browser: Browser, address: str) -> dict[str, float]:
    """Open the report once, use it, and return all times."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(address, wait_until="commit")
    painted = page.evaluate("window.painted") / 1000
    filtered = page.evaluate(CHANGE, ["filter-transition", "change", FILTER]) / 1000
    page.wait_for_selector("body[data-figures]", state="attached")
    drawn = page.evaluate("performance.now()") / 1000
    searched = page.evaluate(CHANGE, ["filter-q", "input", SEARCH]) / 1000
    devtools = context.new_cdp_session(page)
    devtools.send("HeapProfiler.collectGarbage")
    heap = devtools.send("Runtime.getHeapUsage")["usedSize"] / 2**20
    context.close()
    return {
        "painted_s": painted, "usable_s": painted + filtered, "filter_s": filtered,
        "search_s": searched, "figures_s": drawn, "heap_mib": heap,
    }  # fmt: skip


def measure(path: Path, loads: int) -> dict[str, list[float]]:
    """Return each measurement of every load."""
    found = next(filter(None, map(shutil.which, BROWSERS)))
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=quiet)
        print(f"Chromium {browser.version}")
        each = [load(browser, path.as_uri()) for _ in range(loads)]
        browser.close()
    return {name: [one[name] for one in each] for name in each[0]}


def text_facts(payload: Payload) -> dict[str, float]:
    """Return the amount of text."""
    columns = payload.items[0].columns
    texts = [cell for cells in columns.values() for cell in cells if isinstance(cell, str)]
    return {
        "flips": len(columns["task"]),
        "characters_millions": round(sum(map(len, texts)) / 1e6, 1),
        "texts_shortened": payload.items[0].shortened,
    }


def main() -> None:
    """Write the report, load it, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=7)
    given = parser.parse_args()
    runs = make_runs(given.flips)
    start = time.perf_counter()
    payload = make_payload(fm.compare(*runs))
    path = write_report(payload, DATA / "report.html")
    took = time.perf_counter() - start
    size = path.stat().st_size / 1e6
    memory = psutil.virtual_memory().total / 2**30
    print(f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.platform()}")
    facts = {"file_mb": round(size, 2), "made_s": round(took, 1), **text_facts(payload)}
    figures = measure(path, given.loads)
    for name, value in facts.items():
        print(f"{name:22}{value:>10,}")
    print(f"{'':22}{'median':>10}{'max':>10}")
    for name, values in figures.items():
        print(f"{name:22}{statistics.median(values):>10.2f}{max(values):>10.2f}")
    held = {"file_mb": size, "usable_max_s": max(figures["usable_s"])}
    for name, bar in BARS.items():
        print(f"{name} {held[name]:.2f} <= {bar:g}: {'yes' if held[name] <= bar else 'NO'}")
    RESULTS.mkdir(exist_ok=True)
    summary = {
        name: {"median": round(statistics.median(values), 3), "max": round(max(values), 3)}
        for name, values in figures.items()
    }
    (RESULTS / "report_speed.json").write_text(
        json.dumps(facts | {"loads": given.loads} | summary, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
