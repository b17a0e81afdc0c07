"""Policies are read strictly: a misspelt field is an error, not a rule that never applies."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import FieldError, InputError, MissingInputError, UsageError
from forgetmap.gate import GatePolicy, GateRule, make_default_policy, read_policy

RULES = """
accept = "net"
coverage = 0.98
looks = 5
chosen_among = 3
required_tasks = ["gsm8k"]

[[rule]]
margin = 0.01

[[rule]]
scope = "category"
groups = ["maths", "law"]
quantity = "net_change"
tier = "warning"
min_items = 200
"""


def write(path: Path, text: str) -> Path:
    (path / "policy.toml").write_text(text, encoding="utf-8")
    return path / "policy.toml"


def test_every_field_of_the_file_counts(tmp_path: Path) -> None:
    policy = read_policy(write(tmp_path, RULES))
    first, second = policy.rules
    assert (policy.coverage, policy.looks, policy.required_tasks) == (0.98, 5, ("gsm8k",))
    assert (policy.accept, policy.chosen_among, policy.accept_of(first)) == ("net", 3, "net")
    assert policy.accept_of(second) == "items"
    assert (first.scope, first.quantity, first.tier, first.margin) == (
        "total", "loss", "blocking", 0.01,
    )  # fmt: skip
    assert (second.groups, second.tier, second.min_items) == (("maths", "law"), "warning", 200)
    assert second.label == "net change of maths, law"


def test_the_default_blocks_on_the_total_and_warns_of_categories() -> None:
    total, categories = make_default_policy().rules
    assert (total.scope, total.tier, total.quantity, total.margin) == (
        "total", "blocking", "loss", 0.02,
    )  # fmt: skip
    assert (categories.scope, categories.tier) == ("category", "warning")
    assert make_default_policy().accept == "items"
    assert make_default_policy(accept="net").hash != make_default_policy().hash
    with pytest.raises(UsageError, match="accept is 'all'"):
        make_default_policy(accept="all")  # type: ignore[arg-type]


def test_checks_are_named_by_their_rule_and_group() -> None:
    assert GateRule().check_name("total") == "loss"
    assert GateRule(name="safety").check_name("total") == "safety"
    assert GateRule(scope="task").check_name("maths") == "loss of maths"
    assert GateRule(scope="task", name="safety").check_name("maths") == "safety: maths"
    assert GateRule(scope="task", name="maths").check_name("maths") == "maths"


def test_the_hash_is_that_of_the_rules_not_of_the_file(tmp_path: Path) -> None:
    first = read_policy(write(tmp_path, RULES)).hash
    again = read_policy(write(tmp_path, f"# a comment\n{RULES}\n\n")).hash
    other = read_policy(write(tmp_path, RULES.replace("0.01", "0.02"))).hash
    assert first == again != other
    assert make_default_policy().hash == make_default_policy(0.02).hash


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[[rule]]\nmargins = 0.01\n", "rule[1].margins"),
        ("[[rule]]\n[[rule]]\nscope = 'row'\n", "rule[2].scope"),
        ("[[rule]]\nmargin = 1.5\n", "rule[1].margin"),
        ("[[rule]]\nmargin = '2%'\n", "rule[1].margin"),
        ("[[rule]]\nestimator = 'best'\n", "rule[1]"),
        ("[[rule]]\nquantity = 'drift'\n", "rule[1]"),
        ("[[rule]]\ngroups = ['maths']\n", "rule[1]"),
        ("[[rule]]\n[[rule]]\n", "policy"),
        ("[[rule]]\nscope = 'task'\ngroups = []\n", "rule[1]"),
        ("[[rule]]\nscope = 'task'\ngroups = ['a', 'a']\n", "rule[1]"),
        ("[[rule]]\nquantity = 'net_change'\nestimator = 'matched'\n", "rule[1]"),
        ("[[rule]]\nquantity = 'net_change'\naccept = 'net'\n", "rule[1]"),
        ("[[rule]]\nquantity = 'knowledge_loss'\n", "rule[1].quantity"),
        ("[[rule]]\nestimator = 'excess'\n", "rule[1]"),
        ("accept = 'all'\n[[rule]]\n", "accept"),
        ("chosen_among = 0\n[[rule]]\n", "chosen_among"),
        ("looks = 0\n[[rule]]\n", "looks"),
        ("looks = '5'\n[[rule]]\n", "looks"),
        ("looks = 1000000\n[[rule]]\n", "looks"),
        ("origin = 'main'\n[[rule]]\n", "origin"),
        ("required_tasks = 'gsm8k'\n[[rule]]\n", "required_tasks"),
        ("unchanged = ['weather']\n[[rule]]\n", "unchanged[1]"),
        ("[[rules]]\nmargin = 0.01\n", "rules"),
        ("margin = 0.01\n", "margin"),
        ("rule = []\n", "rule"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_field(tmp_path: Path, text: str, field: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(FieldError) as error:
        read_policy(path)
    assert error.value.file == str(path)
    assert error.value.field == field


def test_a_missing_file_and_a_broken_one_are_typed_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="gate init"):
        read_policy(tmp_path / "none.toml")
    with pytest.raises(InputError, match="line 1"):
        read_policy(write(tmp_path, "[[rule\n"))


def test_two_rules_of_one_name_need_names() -> None:
    with pytest.raises(ValueError, match="give each its own `name`"):
        GatePolicy(rule=(GateRule(), GateRule(margin=0.05)))
    assert len(GatePolicy(rule=(GateRule(), GateRule(name="strict", margin=0.05))).rules) == 2
