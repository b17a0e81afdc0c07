"""Markdown: the same content as the terminal, and hostile content as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import forgetmap as fm
from command_line import results, write
from forgetmap.comparison import summarize
from forgetmap.report.markdown import as_markdown
from forgetmap.report.payloads.comparison import make_payload
from forgetmap.text import escape_markdown
from reports import two_runs, with_texts

COUNTS = {"a": {"n11": 50, "n10": 12, "n01": 20, "n00": 18}, "b": {"n11": 30, "n10": 3}}


def cells(line: str) -> list[str]:
    """The cells of a line of a table, as GitHub splits them."""
    return [part.strip() for part in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def table_below(text: str, head: str) -> list[list[str]]:
    """The rows of the table whose first head this is, without head and rule."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    return rows


def test_headline_cells_groups_reasons_pairing_and_flips(tmp_path: Path) -> None:
    comparison = fm.compare(*two_runs(tmp_path, COUNTS))
    text = as_markdown(make_payload(comparison, made="2026-01-02"))
    summary = summarize(comparison.result)
    assert text.startswith(f"# tuned against base\n\n**{summary.badge}** base -> tuned\n\n**")
    for words in (summary.sentence, summary.counts, *(fact.words for fact in summary.facts)):
        assert words.replace(">", "") in re.sub(r"\\|>", "", text)
    for row in summary.estimators:
        assert f"**{row.name}**: {row.forgetting} forgotten" in text.replace("\\_", "_")
    assert table_below(text, "tuned") == [
        ["right before", "80 kept", "15 forgotten"],
        ["wrong before", "20 gained", "18 never right"],
    ]
    groups = {row[0]: row[1:] for row in table_below(text, "task")}
    assert groups["a"][:6] == ["100", "62.0%", "70.0%", "+8.0%", "12.0%", "20.0%"]
    assert "Why 15 were forgotten is not recorded." in text
    assert "All 133 results of both sides paired." in text
    assert "## forgotten (tuned): 10 of 15" in text
    assert "## gained (tuned): 10 of 20" in text
    assert text.endswith(f"forgetmap {fm.__version__} on 2026-01-02.\n")


def test_the_first_flips_come_from_every_task(tmp_path: Path) -> None:
    text = as_markdown(make_payload(fm.compare(*two_runs(tmp_path, COUNTS))))
    lines = text[text.index("## forgotten") : text.index("## gained")].splitlines()
    tasks = [cells(line)[0] for line in lines if line.startswith("| `")]
    assert tasks == ["`a`", "`b`"] * 3 + ["`a`"] * 4


def test_warnings_are_a_list(tmp_path: Path) -> None:
    before, after = results([1, 1, None]), results([1, 0, 1])
    paths = write(tmp_path / "a.jsonl", before), write(tmp_path / "b.jsonl", after)
    lines = as_markdown(make_payload(fm.compare(*paths, min_paired=0.5))).splitlines()
    warned = [line for line in lines if line.startswith("- ⚠ ")]
    assert len(warned) == 2
    assert warned[0].startswith("- ⚠ 1 pair without a score")


@pytest.mark.parametrize("form", ["many", "chain"])
def test_many_and_chains(tmp_path: Path, form: str) -> None:
    scores = {"base": [1, 1, 0, 0], "sft": [1, 0, 1, 0], "rl": [1, 1, 0, 0]}
    runs = [write(tmp_path / f"{name}.jsonl", results(each)) for name, each in scores.items()]
    result = fm.chain(*runs) if form == "chain" else fm.compare(*runs)
    text = as_markdown(make_payload(result))
    names = [row[0] for row in table_below(text, "stage" if form == "chain" else "model")]
    assert names == (["base", "sft", "rl"] if form == "chain" else ["sft", "rl"])
    assert text.count("| right before |") == (1 if form == "chain" else 2)


HOSTILE = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "link": "[click](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "bare": "see http://evil.example and www.evil.example or <http://evil.example>",
    "mention": "@octocat fixes #1, mail a@evil.example",
    "code": "```js\nalert(1)\n``` and `x` ``y``",
    "table": "a | b\n| --- | --- |\n| c | d |",
    "title": "# Not a title\n## forgotten",
    "ansi": "\x1b[31mred\x1b[0m \u202eevil\u202c \x00",
    "maths": "$\\href{javascript:alert(1)}{x}$",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_texts_of_items_are_code(tmp_path: Path, text: str) -> None:
    shown = as_markdown(make_payload(fm.compare(*with_texts(tmp_path, question=text, answer=text))))
    (row,) = [line for line in shown.splitlines() if line.startswith("| `t`")]
    found = cells(row)
    assert len(found) == 7
    fence = re.match("`+", found[2])
    assert fence is not None
    inner = found[2][len(fence[0]) : -len(fence[0])]
    assert found[2].endswith(fence[0])
    assert fence[0] not in re.findall("`+", inner)
    assert all(letter.isprintable() for letter in inner)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_names_are_escaped(text: str) -> None:
    found = escape_markdown(text)
    plain = re.sub(r"\\[^\w\s]", "", found)
    assert "<" not in found
    assert not set("`*_{}[]|~$") & set(plain)
    assert not re.search(r"://|www\.|[@#]\w", plain)
    assert all(letter.isprintable() or letter == "\N{ZERO WIDTH SPACE}" for letter in found)
    assert "\n" not in found


@pytest.mark.parametrize("name", ["# x", "- x", "1) x", "> x", "+ x", "=== x"])
def test_a_name_starts_no_title_list_or_quotation(tmp_path: Path, name: str) -> None:
    before = write(tmp_path / f"{name}.jsonl", results([1, 1]))
    after = write(tmp_path / "tuned.jsonl", results([1, 0]))
    lines = as_markdown(make_payload(fm.compare(before, after))).splitlines()
    assert not [line for line in lines if line.startswith(name)]
    assert [line for line in lines if f"** {name} -> tuned" in line.replace("\\", "")]


def test_a_redacted_report_says_so(tmp_path: Path) -> None:
    comparison = fm.compare(*with_texts(tmp_path))
    assert "left out or redacted" in as_markdown(make_payload(comparison, texts=False))
    assert "left out or redacted" not in as_markdown(make_payload(comparison))
