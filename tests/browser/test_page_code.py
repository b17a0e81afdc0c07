"""Functions of the page, called in a browser and checked against Python."""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from playwright.sync_api import Page

from chromium import chromium, watched
from forgetmap.records.tables import quote_formulas
from forgetmap.report.html.shell import PageKind, estimator_script, page_modules, page_script
from forgetmap.scoring.extract.thinking import without_thinking
from forgetmap.text import percent

pytestmark = pytest.mark.needs_browser

FOLDER = Path(str(files("forgetmap.report") / "page"))
KINDS = get_args(PageKind)
MODULES = page_modules("report")
WORD = re.compile(r"\s+|\w+|[^\s\w]")


@pytest.fixture(scope="module")
def code() -> Iterator[Page]:
    """An empty page with all functions, but nothing started."""
    with chromium() as browser, watched(browser) as page:
        page.add_script_tag(content=estimator_script())
        for name in MODULES[:-1]:
            page.add_script_tag(content=FOLDER.joinpath(name).read_text(encoding="utf-8"))
        yield page


def test_every_module_belongs_to_a_page_and_the_last_starts() -> None:
    present = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.js")}
    assert {name for kind in KINDS for name in page_modules(kind)} == present
    assert MODULES[-1] == "start.js"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_as_markup(kind: PageKind) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert re.findall(forbidden, page_script(kind)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_top_level_names_are_unique_and_modules_listed_once(kind: PageKind) -> None:
    names = re.findall(r"^(?:async )?(?:function|const|let) (\w+)", page_script(kind), re.MULTILINE)
    assert sorted(names) == sorted(set(names))
    assert len(page_modules(kind)) == len(set(page_modules(kind)))


@pytest.mark.parametrize("seed", range(6))
def test_the_diff_is_the_shortest_one(code: Page, seed: int) -> None:
    draw = random.Random(seed)
    vocabulary = ["a", "bee", "c", ".", "ä"]
    before, after = (" ".join(draw.choices(vocabulary, k=draw.randrange(60))) for _ in range(2))
    pieces = code.evaluate("([a, b]) => diffWords(a, b)", [before, after])
    assert joined(pieces, "gone") == before
    assert joined(pieces, "new") == after
    edits = sum(len(WORD.findall(piece["text"])) for piece in pieces if piece["kind"] != "same")
    ours, theirs = WORD.findall(before), WORD.findall(after)
    assert edits == len(ours) + len(theirs) - 2 * longest_common(ours, theirs)


def joined(pieces: list[dict[str, str]], kind: str) -> str:
    return "".join(piece["text"] for piece in pieces if piece["kind"] in ("same", kind))


def longest_common(ours: list[str], theirs: list[str]) -> int:
    row = [0] * (len(theirs) + 1)
    for one in ours:
        last = row
        row = [0]
        for place, other in enumerate(theirs):
            row.append(last[place] + 1 if one == other else max(last[place + 1], row[place]))
    return row[-1]


def test_a_diff_of_megabytes_gives_up_in_time(code: Page) -> None:
    found = code.evaluate(
        """() => {
          const word = (seed) => (place) => ((place * seed) % 7919).toString(36);
          const text = (seed) => Array.from({length: 250000}, (_, i) => word(seed)(i)).join(" ");
          const [a, b] = [text(31), text(37)];
          const start = performance.now();
          const pieces = diffWords(`same ${a}`, `same ${b}`);
          const part = (kind) => pieces.filter((each) => ["same", kind].includes(each.kind))
            .map((each) => each.text).join("");
          return {
            took: performance.now() - start,
            whole: part("gone") === `same ${a}` && part("new") === `same ${b}`,
            first: pieces[0],
          };
        }"""
    )
    assert found["whole"]
    assert found["first"]["text"].startswith("same ")
    assert found["took"] < 10_000


@pytest.mark.parametrize(
    "response",
    [
        "plain",
        "<think>hm</think>said",
        "before <think>hm</think> after",
        "<THINKING>a</thinking>b<think>c</think>d",
        "began in the prompt</think>said",
        "<|begin_of_thought|>x<|end_of_thought|>y",
        "said<think>never ends",
        "a < b and <b>bold</b>",
        "",
    ],
)
def test_what_is_said_aloud_is_what_the_scorer_reads(code: Page, response: str) -> None:
    said, finished = without_thinking(response)
    assert code.evaluate("text => withoutThinking(text)", response) == said.strip()
    sections = code.evaluate("text => splitThinking(text)", response)
    assert all(section["finished"] for section in sections) == finished


@pytest.mark.parametrize("share", [None, 0, 1, 0.5, 1e-9, 1 - 1e-9, 0.12345, -0.25, -1e-9, 1.5])
def test_shares_read_as_in_the_terminal(code: Page, share: float | None) -> None:
    shown = code.evaluate("value => percent(value)", share)
    assert shown.replace("\N{MINUS SIGN}", "-").replace("\N{EN DASH}", "-") == percent(share)


def test_cells_that_a_spreadsheet_would_run_are_quoted(code: Page) -> None:
    cells = ["=1+1", "+x", "-1", "-x", "@a", "'=b", "\tc", 'd"e,f', "line\nbreak", "plain", "1e5"]
    table = pa.table({"cell": cells})
    text = code.evaluate("cells => asCsv(cells.map((cell) => ({cell})))", cells)
    found = [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:]
    assert found == quote_formulas(table)[0].to_pylist()


def test_numbers_and_gaps_survive_csv(code: Page) -> None:
    records: list[dict[str, Any]] = [{"a": -0.25, "b": None}, {"a": 1, "c": ["x"]}]
    text = code.evaluate("records => asCsv(records)", records)
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"a": "-0.25", "b": "", "c": ""},
        {"a": "1", "b": "", "c": '["x"]'},
    ]


def test_an_address_says_the_state(code: Page) -> None:
    change = {"comparison": 2, "q": "a&b=c #% ü", "item": "a%2Fb/c/0", "estimator": "upper"}
    found = code.evaluate("change => stateFrom(hashOf({...FIRST_STATE, ...change}))", change)
    first = code.evaluate("() => FIRST_STATE")
    assert found == {**first, **change}
    assert code.evaluate("() => stateFrom('#comparison=-1e9&page=x').comparison") == 0


def test_what_turns_the_direction_of_text_is_made_visible(code: Page) -> None:
    shown = code.evaluate("text => visible(text)", "a\u202eb\x1b[31mc\n\td\u200f")
    assert shown == "a⟨U+202E⟩b⟨U+001B⟩[31mc\n\td⟨U+200F⟩"


def test_unknown_numbers_stand_last_in_both_directions(code: Page) -> None:
    records = [{"x": value} for value in (2, None, 10, 1)]
    for down, expected in ((False, [1, 2, 10, None]), (True, [10, 2, 1, None])):
        found = code.evaluate("([r, down]) => sortedBy(r, 'x', down)", [records, down])
        assert [each["x"] for each in found] == expected


def test_percent_of_many_values_never_shows_a_false_end(code: Page) -> None:
    shares = [place / 4001 for place in range(1, 4001)]
    shown = code.evaluate("values => values.map(percent)", shares)
    assert not {"0.0%", "100.0%"} & set(shown)
    assert all(math.isfinite(float(each.strip("<>%"))) for each in shown)


SHOW = """text => {
  const mark = markerOf([{kind: "same", text}]);
  document.body.replaceChildren(make("div", {id: "shown"}, ...markupNodes(text, mark)));
  return [...document.querySelectorAll("#shown *")].map((it) => it.localName);
}"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("**a** and *b*, `c`", {"p", "strong", "em", "code"}),
        ("# head\n\n- one\n- two\n\n> said", {"p", "ul", "li", "blockquote"}),
        ("| a | b |\n|---|---|\n| 1 | 2 |", {"div", "table", "thead", "tbody", "tr", "th", "td"}),
        ("```python\nx = '**'\n```", {"pre", "code"}),
        ("It costs $5 and $10, or 20$ for the whole lot.", {"p"}),
        ("snake_case_name and 2*3*4", {"p"}),
        (r"$\frac{1}{2}$", {"p", "math", "mfrac", "mn"}),
        (r"\(x^2\)", {"p", "math", "msup", "mi", "mn"}),
        ("$$\n\\sum_{i=1}^n i\n$$", {"p", "math", "mrow", "munderover", "mo", "mi", "mn"}),
        (r"$\unknown{x}$", {"p", "code"}),
    ],
)
def test_markdown_and_latex_become_elements(code: Page, text: str, names: set[str]) -> None:
    assert set(code.evaluate(SHOW, text)) == names


@pytest.mark.parametrize(
    "text",
    [
        "**<img src=x onerror=window.hacked=1>**",
        "[a](javascript:window.hacked=1) ![b](x)",
        "`<script>window.hacked = 1</script>`",
        r"$\text{<img src=x onerror=window.hacked=1>}$",
        r"$\href{javascript:window.hacked=1}{x}$ $\constructor$ $\__proto__$",
        "| <svg onload=window.hacked=1> |\n|---|\n| x |",
        "$" + "{" * 3000 + "$ and $" + r"\frac" * 700 + "$",
        "*" * 5000 + "_" * 5000 + "`" * 5000 + "$" * 5000 + "| " * 5000,
    ],
)
def test_hostile_markup_stays_text(code: Page, text: str) -> None:
    allowed = {
        "p", "code", "strong", "em", "math", "mtext", "mi", "mo", "mn", "mrow", "span",
        "div", "table", "thead", "tbody", "tr", "th", "td", "hr",
    }  # fmt: skip
    assert set(code.evaluate(SHOW, text)) <= allowed
    assert code.evaluate("() => window.hacked") is None
    assert (
        code.evaluate("() => document.querySelectorAll('#shown [href], #shown [src]').length") == 0
    )


def test_no_word_is_lost_and_changes_stay_marked(code: Page) -> None:
    text = "# One\n\nThe **answer** is $x+1$, so\n1. first\n2. `second`\n\nplain"
    shown = code.evaluate(
        """text => {
          const piece = (kind, from, to) => ({kind, text: text.slice(from, to)});
          const pieces = [piece("same", 0, 13), piece("new", 13, 19), piece("same", 19)];
          const box = make("div", {}, ...markupNodes(text, markerOf(pieces)));
          return {words: box.textContent, changed: box.querySelector("strong ins")?.textContent};
        }""",
        text,
    )
    for word in ("One", "answer", "first", "second", "plain"):
        assert word in shown["words"]
    assert shown["changed"] == "answer"


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        (r"\left(\frac{a}{b}\right)^2", "(ab)2"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(1234)"),
        (r"\mathbb{R} \le \alpha", "\N{DOUBLE-STRUCK CAPITAL R}\u2264\u03b1"),
        (r"{n \choose k}", "(nk)"),
        (r"\sqrt[3]{x}", "x3"),
    ],
)
def test_a_formula_says_what_it_said(code: Page, latex: str, words: str) -> None:
    assert code.evaluate("latex => mathNode(latex)?.textContent", latex) == words


@pytest.mark.parametrize(
    "latex", [r"\frac{1}", "{", "}", r"\left(", r"\begin{a}\end{b}", "x" * 5000]
)
def test_a_formula_that_cannot_be_read_is_none(code: Page, latex: str) -> None:
    assert code.evaluate("latex => mathNode(latex)", latex) is None
