"""`gate init` writes a valid policy for its runs."""

from __future__ import annotations

from pathlib import Path

import forgetmap as fm
from forgetmap.gate import read_policy, run_gate, write_template
from releases import BAD, GOOD, release


def test_the_policy_can_be_read_and_applied(tmp_path: Path) -> None:
    columns = {"a": {"category": "law"}, "b": {"category": 'art"s\n'}}
    before, after = release({"a": GOOD, "b": BAD}, **columns)
    path = tmp_path / "policy.toml"
    path.write_text(write_template(fm.compare(before, after, margin=0.03)), encoding="utf-8")
    policy = read_policy(path)
    assert policy.required_tasks == ("a", "b")
    assert policy.accept == "items"
    assert [(rule.scope, rule.tier, rule.margin) for rule in policy.rules] == [
        ("total", "blocking", 0.03),
        ("category", "warning", 0.03),
    ]
    assert "#   law: 2,000 items; a drop of" in path.read_text(encoding="utf-8")
    statuses = {check.group: check.status for check in run_gate(before, after, policy=path).checks}
    assert statuses == {"total": "FAIL", "law": "PASS", 'art"s\n': "FAIL"}


def test_it_says_what_net_does_not_see(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(write_template(fm.compare(*release({"a": GOOD})), "net"), encoding="utf-8")
    assert read_policy(path).accept == "net"
    assert "it passes a loss of 4 % in 96 of 100 releases" in path.read_text(encoding="utf-8")


def test_without_categories_it_shows_how_tasks_would_be_named() -> None:
    text = write_template(fm.compare(*release({"a": GOOD})))
    assert '# scope = "task"' in text


def test_names_of_tasks_with_any_letters_are_required_as_they_are(tmp_path: Path) -> None:
    name = 'a "quote" \\ \x1b\x7f\n\u2028 \N{GRINNING FACE} = []#'
    path = tmp_path / "policy.toml"
    path.write_text(write_template(fm.compare(*release({name: GOOD}))), encoding="utf-8")
    assert read_policy(path).required_tasks == (name,)
