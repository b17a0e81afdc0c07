"""The Python API: names, frames, texts, notebooks."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetmap as fm
from forgetmap.errors import UsageError

HOSTILE = '<script>alert("1")</script>&'
SIMULATED = "SIMULATED data, not a measured model."
CELLS = {"forgotten": "i1", "gained": "i2", "kept": "i0", "never": "i3"}


def results(*scores: float | None, task: str = "t", response: str | None = None) -> pa.Table:
    n = len(scores)
    columns: dict[str, list[object]] = {
        "task": [task] * n,
        "item": [f"i{place}" for place in range(n)],
        "score": list(scores),
    }
    if response is not None:
        columns["question"] = [f"question {place}?" for place in range(n)]
        columns["answer"] = [f"{response} {place}" for place in range(n)]
        columns["response"] = [f"I say {response} {place}." for place in range(n)]
    return pa.table(columns)


@pytest.fixture
def comparison() -> fm.Comparison:
    """One item of each transition, and one on each side that has no counterpart or no score."""
    before = results(1, 1, 0, 0, None, response="yes")
    after = results(1, 0, 1, 0, 1, 1, response="no")
    return fm.compare(before, after, min_paired=0.5)


# Public names


def test_all_is_sorted_and_complete() -> None:
    assert fm.__all__ == sorted(fm.__all__)
    assert {*fm.__all__, "__version__"} == set(dir(fm))
    assert all(getattr(fm, name) is not None for name in fm.__all__)


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse(Path(inspect.getfile(fm)).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.name for node in block.body if isinstance(node, ast.ImportFrom)
                for alias in node.names}  # fmt: skip
    assert imported == set(fm.__all__)


def test_every_name_that_pages_show_is_public() -> None:
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "examples").rglob("*.py")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    names = set(re.findall(r"\bfm\.(\w+)", text))
    assert {"compare", "write_report"} < names <= set(fm.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'forgetmap' has no attribute 'compere'"):
        _ = fm.compere


def modules() -> Iterator[ModuleType]:
    yield fm
    for found in pkgutil.walk_packages(fm.__path__, "forgetmap."):
        yield importlib.import_module(found.name)


def public_members(module: ModuleType) -> Iterator[tuple[str, object]]:
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", None) == module.__name__
        if is_own and not name.startswith("_") and (inspect.isclass(value) or callable(value)):
            yield name, value
            if inspect.isclass(value):
                for inner, member in vars(value).items():
                    if not inner.startswith("_") and (
                        inspect.isfunction(member) or isinstance(member, property)
                    ):
                        yield f"{name}.{inner}", member


@pytest.mark.parametrize("module", list(modules()), ids=lambda module: module.__name__)
def test_everything_public_has_a_docstring(module: ModuleType) -> None:
    assert module.__doc__
    bare = [name for name, member in public_members(module) if not getattr(member, "__doc__", None)]
    assert bare == []


def test_the_docstring_check_can_fail() -> None:
    module = ModuleType("guilty")
    exec("def f(): pass\nclass C:\n    'doc'\n    def g(self): pass", vars(module))
    for value in (vars(module)["f"], vars(module)["C"]):
        value.__module__ = "guilty"
    assert [n for n, m in public_members(module) if not getattr(m, "__doc__", None)] == ["f", "C.g"]


def test_every_option_of_compare_is_described() -> None:
    doc = fm.compare.__doc__ or ""
    names = re.findall(r"^        (\w+): ", doc, re.MULTILINE)
    options = importlib.import_module("forgetmap.comparison.api").Options.__annotations__
    assert set(options) <= set(names)


# One comparison


def test_the_four_counts_and_the_headline(comparison: fm.Comparison) -> None:
    total = comparison.result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 1)
    assert comparison.headline == comparison.result.headline
    assert (total.forgotten, total.gained) == (1, 1)


def test_the_repr_is_what_the_terminal_shows(comparison: fm.Comparison) -> None:
    lines = repr(comparison).splitlines()
    assert lines[0].split() == ["CANNOT", "TELL", "before", "->", "after"]
    assert lines[1].startswith("Cannot tell: between 0% and 74.3% of all items may be lost")
    assert "1 forgotten, 1 gained of 4 items; accuracy 50.0% -> 50.0% (0.0%)." in lines
    assert "! 1 pair without a score on one or both sides: neither right nor wrong." in lines
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in repr(comparison)


@pytest.mark.parametrize("columns", [60, 100, 300])
def test_the_repr_fits_the_terminal_and_never_sprawls(
    comparison: fm.Comparison, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert max(map(len, repr(comparison).splitlines())) <= min(columns, 100)


@pytest.mark.parametrize("kind", CELLS)
def test_flips(comparison: fm.Comparison, kind: str) -> None:
    rows = comparison.flips(kind).to_pylist()  # type: ignore[arg-type]
    assert [row["item"] for row in rows] == [CELLS[kind]]
    place = CELLS[kind][1:]
    assert rows[0]["answer_before"] == f"yes {place}"
    assert rows[0]["answer_after"] == f"no {place}"
    assert "response_after" not in rows[0]


def test_flips_with_texts(comparison: fm.Comparison) -> None:
    (row,) = comparison.flips("forgotten", texts=True).to_pylist()
    assert row["question"] == "question 1?"
    assert (row["response_before"], row["response_after"]) == ("I say yes 1.", "I say no 1.")


def test_flips_with_texts_of_one_side_or_none() -> None:
    plain, told = results(1, 1), results(0, 1, response="no")
    only_after = fm.compare(plain, told).flips("forgotten", texts=True).to_pylist()
    assert only_after[0]["response_after"] == "I say no 0."
    assert only_after[0]["question"] == "question 0?"
    assert fm.compare(plain, results(0, 1)).flips("forgotten", texts=True).num_rows == 1


def test_an_unknown_transition_is_refused(comparison: fm.Comparison) -> None:
    with pytest.raises(UsageError, match="no transition 'lost'") as caught:
        comparison.flips("lost")  # type: ignore[arg-type]
    assert "forgotten, gained, kept, never" in caught.value.hint


def test_unpaired(comparison: fm.Comparison) -> None:
    rows = comparison.unpaired().to_pylist()
    assert {(row["item"], row["why"]) for row in rows} == {
        ("i4", "unscored"), ("i5", "only after"),
    }  # fmt: skip


def test_cells_and_unpaired_account_for_every_result(comparison: fm.Comparison) -> None:
    pairing, total = comparison.result.pairing, comparison.result.total
    assert pairing.rows_before == pairing.paired + pairing.only_before + pairing.conflicts
    assert pairing.rows_after == pairing.paired + pairing.only_after + pairing.conflicts
    assert pairing.paired == total.n + pairing.unscored
    assert len(comparison.unpaired()) == pairing.unscored + pairing.only_after


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_summary_and_tasks_come_in_the_library_that_went_in(library: str) -> None:
    tables = [pa.concat_tables([results(*scores, task="a"), results(1, task="b")])
              for scores in ((1, 1), (1, 0))]  # fmt: skip
    to = {"pandas": pa.Table.to_pandas, "polars": pl.from_arrow, "pyarrow": lambda table: table}
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[library]
    before, after = map(to[library], tables)
    comparison = fm.compare(before, after)
    assert isinstance(comparison.summary, kind)
    assert isinstance(comparison.tasks, kind)
    tasks = pl.DataFrame(comparison.tasks).to_dicts()
    assert [(row["name"], row["n10"], row["forgetting"]) for row in tasks] == [
        ("a", 1, 0.5), ("b", 0, 0.0),
    ]  # fmt: skip
    assert pl.DataFrame(comparison.summary)["name"].to_list() == ["total", "macro"]


def test_to_json_is_the_result(comparison: fm.Comparison) -> None:
    assert json.loads(comparison.to_json()) == comparison.result.to_dict()
    assert "\n" not in comparison.to_json(indent=None)


def test_json_keeps_letters_and_hides_what_drives_a_terminal() -> None:
    names = ["日本語", "a\x1b[0m", "b\x9b", "c\u202e", "d\U000e0001", "e\u2028"]
    tables = pa.concat_tables([results(1, task=name) for name in names])
    text = fm.compare(tables, tables).to_json()
    assert "日本語" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert {task["name"] for task in json.loads(text)["tasks"]} == set(names)


# Several models


def test_three_runs_are_a_fan_out() -> None:
    fan = fm.compare(results(1, 1), results(1, 0), results(0, 0))
    assert isinstance(fan, fm.FanOut)
    assert [each.result.total.n10 for each in fan] == [1, 2]
    assert len(fan) == 2
    assert fan[1].after.name == "after 2"
    assert [each["total"]["n10"] for each in json.loads(fan.to_json())["comparisons"]] == [1, 2]
    assert repr(fan).startswith("2 models against before")


def test_ordered_runs_are_a_chain() -> None:
    chain = fm.compare(results(1, 1), results(1, 0), results(1, 1), chain=True)
    assert isinstance(chain, fm.Chain)
    assert [(path.path, path.kind) for path in chain.paths] == [
        ("101", "regained"),
        ("111", "kept"),
    ]
    assert [stage.name for stage in chain.stages] == ["after 1", "after 2"]
    assert chain.result.total.n10 == 0
    assert json.loads(chain.to_json())["stages"][1]["regained"] == 1
    assert repr(chain).startswith("Chain: before -> after 1 -> after 2")


def test_equal_names_are_told_apart_by_their_path(tmp_path: Path) -> None:
    base, tuned = (tmp_path / side / "results.parquet" for side in ("base", "tuned"))
    other = tmp_path / "tuned" / "other.parquet"
    for path in (base, tuned, other):
        path.parent.mkdir(exist_ok=True)
        pq.write_table(results(1, 0), path)
    comparison = fm.compare(base, tuned)
    assert comparison.before.name == str(Path("base", "results.parquet"))
    assert comparison.after.name == str(Path("tuned", "results.parquet"))
    with pytest.raises(UsageError, match="is both before and after"):
        fm.compare(base, base)
    fan_out = fm.compare(base, tuned, other)
    assert [each.after.name for each in fan_out] == [comparison.after.name, "other"]


# Notebooks


class Tags(HTMLParser):
    """Every tag and every text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Looks of our own making, never a text of the data.
        looks = [value or "" for name, value in attrs if name == "style"]
        assert len(looks) == len(attrs)
        assert all(re.fullmatch(r"[a-z0-9#:;,.%() -]*", look) for look in looks)
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    return tags


SAFE = {"div", "span", "b", "br", "table", "thead", "tbody", "tr", "th", "td", "code"}


def in_form(form: str, runs: Sequence[fm.Run]) -> fm.Comparison | fm.FanOut | fm.Chain:
    """Three runs compared in one of the three ways."""
    if form == "chain":
        return fm.compare(runs[0], runs[1], runs[2], chain=True)
    return fm.compare(*runs) if form == "fan-out" else fm.compare(runs[0], runs[1])


FORMS = ("comparison", "fan-out", "chain")


@pytest.mark.parametrize("form", FORMS)
def test_html_is_escaped_against_hostile_names(form: str) -> None:
    table = results(1, 0, None, task=HOSTILE)
    runs = [fm.open_run(table, name=f"{HOSTILE}{n}") for n in range(3)]
    found = parsed(in_form(form, runs)._repr_html_())
    assert found.tags <= SAFE
    assert HOSTILE in found.texts
    assert any(f"{HOSTILE}1" in text for text in found.texts)


def test_html_tells_what_the_terminal_tells(comparison: fm.Comparison) -> None:
    html = " ".join(" ".join(parsed(comparison._repr_html_()).texts).split())
    for word in repr(comparison).replace("`", "").split():
        assert word.strip("().") in html
    assert "all items" in html  # and the groups


@pytest.mark.parametrize("form", FORMS)
def test_simulated_data_is_marked_in_every_form(form: str) -> None:
    simulation = fm.simulate([fm.SimulatedTask("t", items=20)])
    other = fm.simulate([fm.SimulatedTask("t", items=20)], seed=1)
    result = in_form(form, [simulation.before, simulation.after, other.after])
    assert repr(result).splitlines()[0] == SIMULATED
    assert SIMULATED in parsed(result._repr_html_()).texts


def test_measured_data_is_not_marked(comparison: fm.Comparison) -> None:
    assert "SIMULATED" not in repr(comparison) + comparison._repr_html_()


def test_chain_is_compare_over_checkpoints() -> None:
    runs = [
        {"task": ["t"] * 2, "item": ["a", "b"], "score": scores}
        for scores in ([1, 1], [0, 1], [1, 0])
    ]
    tables = [pa.table(run) for run in runs]
    assert fm.chain(*tables).result == fm.compare(*tables, chain=True).result
    assert {path.path for path in fm.chain(*tables).paths} == {"101", "110"}
