"""From rules to PASS, FAIL or INCONCLUSIVE: every case, and that the gate fails closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison import Evidence, VerdictSettings, judge_group
from forgetmap.errors import MetricError, UsageError
from forgetmap.gate import GatePolicy, GateResult, GateRule, Waiver, run_gate
from forgetmap.gate.check_text import next_steps
from forgetmap.gate.policy import CompareSection
from forgetmap.records import HarnessInfo, TaskInfo
from forgetmap.stats import items_to_decide
from releases import BAD, CLOSE, GOOD, Cells, one_task, release


def policy(*rules: GateRule, **options: Any) -> GatePolicy:
    return GatePolicy(rule=rules, **options)


TASKS = policy(GateRule(scope="task"))


def of(result: GateResult) -> dict[str, str]:
    return {check.group: check.status for check in result.checks}


@pytest.mark.parametrize(
    ("cells", "status", "verdict"),
    [(GOOD, "PASS", "no_material_loss"), (BAD, "FAIL", "lost"), (CLOSE, "INCONCLUSIVE", "lost")],
)
def test_the_default_policy_decides_by_the_limits_of_the_total(
    cells: Cells, status: str, verdict: str
) -> None:
    before, after = one_task(cells)
    result = run_gate(before, after)
    (check,) = result.of_tier("blocking")
    assert (result.status, check.status, check.verdict) == (status, status, verdict)
    total = fm.compare(before, after).result.total
    assert (check.loss, check.drop_high) == (total.loss, total.drop.high)
    assert (result.compared, result.forgotten, result.gained) == (2000, cells.lost, 0)
    assert (check.forgotten, check.gained) == (cells.lost, 0)
    assert result.headline.startswith(f"{status}: loss: ")


def test_a_margin_is_that_of_the_default_policy() -> None:
    before, after = one_task(BAD)
    assert run_gate(before, after, margin=0.9).status == "PASS"
    assert run_gate(before, after, margin=0.02).checks == run_gate(before, after).checks
    with pytest.raises(UsageError, match="margin and policy cannot be combined"):
        run_gate(before, after, margin=0.02, policy=TASKS)
    with pytest.raises(UsageError, match="accept and policy cannot be combined"):
        run_gate(before, after, accept="net", policy=TASKS)


def test_an_option_that_nothing_reads_is_refused() -> None:
    options: dict[str, Any] = {"level": 0.5}
    with pytest.raises(UsageError, match="a gate has no option 'level'"):
        run_gate(*one_task(BAD), **options)


def test_a_small_loss_passes() -> None:
    before, after = one_task(Cells(kept=13_760, lost=240, never=6_000))
    (check,) = run_gate(before, after).of_tier("blocking")
    assert (check.verdict, check.status) == ("small_loss", "PASS")


def test_what_cannot_be_decided_says_how_many_items_would() -> None:
    (check,) = run_gate(*one_task(CLOSE)).of_tier("blocking")
    assert check.decides is not None
    assert check.decides.items is not None
    assert check.decides.items > check.items
    assert f"{check.decides.items:,} items would decide" in check.sentence


def test_the_number_of_items_is_that_of_compare_but_beyond_the_margin() -> None:
    """A drop is proven sooner than that it is within the margin, which a gate needs to know."""
    sides = one_task(Cells(kept=1480, lost=60, gained=40, never=420))
    (check,) = run_gate(*sides, accept="net").of_tier("blocking")
    first = fm.compare(*sides)
    answers = first.grounds.evidence.total().kinds.answers()
    assert check.decides is not None
    assert check.decides.items == items_to_decide(answers, 0.02, 0.025, above=0.02)
    decides = first.result.total.decides
    assert decides is not None
    assert decides.items == items_to_decide(answers, 0.02, 0.025)
    assert (decides.items or 0) < (check.decides.items or 0)


def test_a_margin_of_its_own_decides_a_rule() -> None:
    before, after = one_task(BAD)
    wide = run_gate(before, after, policy=policy(GateRule(margin=0.15)))
    assert wide.status == "PASS"


EXCHANGE = Cells(kept=1000, lost=200, gained=400, never=400)
"""As much may have been lost as was forgotten, or nothing: one run cannot tell."""


def test_one_run_cannot_tell_noise_from_an_exchange_that_only_net_accepts() -> None:
    before, after = one_task(EXCHANGE)
    (check,) = run_gate(before, after).checks
    assert (check.status, check.verdict) == ("INCONCLUSIVE", "no_net_loss")
    assert check.decides is not None
    assert (check.decides.items, check.decides.answers) == (None, 400)
    assert (check.decides.provable or 0) > check.margin
    (accepted,) = run_gate(before, after, accept="net").checks
    assert (accepted.status, accepted.verdict) == ("PASS", "no_net_loss")
    assert (accepted.most, accepted.loss) == (check.drop_high, check.loss)
    net = policy(GateRule(quantity="net_change"))
    (check,) = run_gate(before, after, policy=net).checks
    assert (check.status, check.verdict, check.loss.high) == (
        "PASS", "no_material_loss", check.drop_high,
    )  # fmt: skip


def test_a_policy_and_each_of_its_rules_say_what_passes() -> None:
    tables = one_task(EXCHANGE)
    rules = (GateRule(accept="items"), GateRule(name="net"))
    result = run_gate(*tables, policy=policy(*rules, accept="net"))
    assert [check.status for check in result.checks] == ["INCONCLUSIVE", "PASS"]


def test_net_accepts_a_loss_that_is_shown_as_long_as_accuracy_held() -> None:
    tables = one_task(Cells(kept=5700, lost=270, gained=210, never=3820))
    (check,) = run_gate(*tables, accept="net").checks
    assert (check.status, check.verdict) == ("PASS", "lost")
    assert 0 < (check.loss.low or 0) < check.margin < (check.loss.high or 0)
    assert "accepted, because accuracy fell by at most" in check.sentence
    assert run_gate(*tables).status == "INCONCLUSIVE"


def test_what_is_certain_to_be_lost_fails_whatever_was_gained() -> None:
    """Both models answered three times: what is gone does not come back, so it is no noise."""
    before, after = (
        pa.concat_tables(
            table.append_column("repeat", pa.array([number] * len(table))) for number in range(3)
        )
        for table in one_task(EXCHANGE)
    )
    # Not a single answer of a model differs from its others: these are copies, not repeats.
    (copied,) = run_gate(before, after, accept="net").checks
    assert (copied.status, copied.loss.carried_by) == ("PASS", "drop")
    scores = after["score"].to_pylist()
    scores[-1] = 1.0  # one answer that differs
    first = before["score"].to_pylist()
    first[-1] = 1.0
    for accept in ("items", "net"):
        (check,) = run_gate(
            before.set_column(2, "score", pa.array(first)),
            after.set_column(2, "score", pa.array(scores)),
            accept=accept,
        ).checks
        assert (check.status, check.loss.carried_by) == ("FAIL", "repeats")


def test_flips_that_are_asked_again_decide_what_one_run_cannot() -> None:
    before, after = one_task(EXCHANGE)
    flipped = slice(1000, 400)  # the 200 forgotten and 200 of the gained
    rerun = [table.slice(flipped.start, flipped.stop) for table in (before, after)]
    result = run_gate(before, after, confirm=(rerun[0], rerun[1]))
    (check,) = result.checks
    assert (result.status, check.loss.carried_by) == ("FAIL", "confirmed")
    assert result.confirmed is not None
    assert (result.confirmed.asked, result.confirmed.held) == (200, 200)
    noise = run_gate(before, after, confirm=(rerun[0], rerun[0].slice(0)))
    assert (noise.status, noise.confirmed and noise.confirmed.held) == ("INCONCLUSIVE", 0)


def test_a_checkpoint_chosen_among_many_by_these_items_must_be_better() -> None:
    tables = one_task(Cells(kept=1377, lost=23, never=600))
    lucky = run_gate(*tables).checks[0]
    chosen = run_gate(*tables, chosen_among=20).checks[0]
    assert (lucky.status, chosen.status) == ("PASS", "INCONCLUSIVE")
    assert chosen.loss.low == lucky.loss.low
    assert (chosen.loss.high or 0) > (lucky.loss.high or 0)
    rules = policy(GateRule(), chosen_among=20)
    assert run_gate(*tables, policy=rules).checks[0].loss == chosen.loss
    assert run_gate(*tables, policy=rules, chosen_among=1).checks[0].loss == lucky.loss


def test_items_that_before_may_have_helped_to_choose_decide_nothing() -> None:
    tables = one_task(Cells(kept=1400))
    (check,) = run_gate(*tables, accept="net").checks
    assert (check.status, check.verdict, check.most) == ("INCONCLUSIVE", "cannot_tell", None)
    assert [reason.code for reason in check.reasons] == ["all_right"]
    net = policy(GateRule(quantity="net_change"))
    assert run_gate(*tables, policy=net).status == "INCONCLUSIVE"
    assert run_gate(*tables, selected=False).status == "PASS"
    easy = policy(GateRule(), compare=CompareSection(selected=False))
    assert run_gate(*tables, policy=easy).status == "PASS"


def test_an_assumption_that_a_rule_states_is_in_its_sentence() -> None:
    tables = one_task(Cells(kept=600, lost=100, gained=100, never=200))
    rules = policy(GateRule(estimator="upper"))
    (check,) = run_gate(*tables, policy=rules).checks
    assert (check.status, check.loss.carried_by) == ("FAIL", "stated")
    assert check.loss.assumes is not None
    assert check.sentence.startswith(f"if {check.loss.assumes}, ")
    floor = policy(GateRule(), compare=CompareSection(noise_floor=0.01))
    (check,) = run_gate(*tables, policy=floor).checks
    assert (check.status, check.loss.carried_by) == ("FAIL", "stated")


def test_graded_scores_that_fall_above_the_cut_are_seen() -> None:
    before, after = (
        pa.table({"task": ["t"] * 999, "item": [*map(str, range(999))], "score": [score] * 999})
        for score in (0.9, 0.55)
    )
    codes = {notice.code: notice.message for notice in run_gate(before, after).warnings}
    assert "fell by 0.35, at least 0.34" in codes["graded_fall"]
    assert "identical" not in codes
    same = pa.concat_tables([before])
    assert "graded_fall" not in {notice.code for notice in run_gate(before, same).warnings}


def test_only_blocking_rules_block() -> None:
    before, after = one_task(BAD)
    rules = policy(GateRule(margin=0.5), GateRule(name="strict", tier="warning"))
    result = run_gate(before, after, policy=rules)
    assert (result.status, [check.status for check in result.checks]) == ("PASS", ["PASS", "FAIL"])


def test_a_policy_of_warnings_only_passes_and_says_so() -> None:
    result = run_gate(*one_task(BAD), policy=policy(GateRule(tier="warning")))
    assert (result.status, result.headline) == ("PASS", "PASS: the policy has no blocking rule.")


def test_holm_lets_no_single_task_of_many_fail_by_chance() -> None:
    # 20 tasks at the margin, of which one looks lost at 95 % by itself.
    tasks = {f"task {n:02}": Cells(kept=680, lost=20, never=300) for n in range(19)}
    unlucky = {**tasks, "unlucky": Cells(kept=668, lost=32, never=300)}
    alone = run_gate(*release({"unlucky": unlucky["unlucky"]}), policy=TASKS)
    assert of(alone) == {"unlucky": "FAIL"}
    among = run_gate(*release(unlucky), policy=TASKS)
    (check,) = [check for check in among.checks if check.group == "unlucky"]
    assert (check.status, check.verdict) == ("INCONCLUSIVE", "lost")
    assert "not significant after correction for all blocking checks" in check.sentence
    assert (check.loss.low or 0) > check.margin


def test_holm_is_that_of_its_definition() -> None:
    tasks = {
        f"task {n}": Cells(kept=700 - lost, lost=lost, never=300)
        for n, lost in enumerate((20, 35, 38, 41, 60))
    }
    before, after = release(tasks)
    result = run_gate(before, after, policy=TASKS)
    grounds = fm.compare(before, after).grounds
    # Smallest error rate at which each limit is above the margin, by bisection.
    parts = grounds.evidence.by("task")
    p = {name: _smallest_p(part, grounds.settings) for name, part in parts.items()}
    expected, left = set(), len(p)
    for name in sorted(p, key=p.__getitem__):
        if p[name] > 0.05 / left:
            break
        expected.add(name)
        left -= 1
    failed = {name for name, status in of(result).items() if status == "FAIL"}
    assert failed == expected
    assert 0 < len(failed) < len(tasks)


def _smallest_p(part: Evidence, settings: VerdictSettings) -> float:
    low, high = 1e-9, 0.499
    for _ in range(60):
        middle = (low + high) / 2
        limit = judge_group("task", part, replace(settings, level=1 - middle)).loss.low
        low, high = (low, middle) if limit is not None and limit > 0.02 else (middle, high)
    return high


@pytest.mark.parametrize(("kept", "status"), [(1980, "PASS"), (1979, "INCONCLUSIVE")])
def test_less_than_99_percent_of_what_before_scored_is_inconclusive(kept: int, status: str) -> None:
    before, after = one_task(GOOD)
    result = run_gate(before, after.slice(0, kept))
    assert result.status == status
    codes = [reason.code for check in result.checks for reason in check.reasons]
    assert codes == ([] if status == "PASS" else ["coverage"])


def test_also_a_great_loss_is_inconclusive_on_what_little_there_is() -> None:
    before, after = one_task(BAD)
    result = run_gate(before, after.slice(600, 1400))
    assert result.status == "INCONCLUSIVE"


def with_labels(column: str, label: str, cells: Cells, missing: int) -> tuple[pa.Table, pa.Table]:
    """One task whose items are under two labels; of one, so many items are missing after."""
    before, after = one_task(cells)
    before = before.append_column(
        column, pa.array([label if number % 10 == 3 else "rest" for number in range(len(before))])
    )
    gone = [number for number in range(len(before)) if number % 10 == 3][:missing]
    return before, after.take([number for number in range(len(after)) if number not in gone])


MANY = Cells(kept=14_000, never=6_000)


@pytest.mark.parametrize("scope", ["category", "tag"])
@pytest.mark.parametrize(("missing", "status"), [(20, "PASS"), (21, "INCONCLUSIVE")])
def test_items_missing_from_a_category_count_against_it(
    scope: Any, missing: int, status: str
) -> None:
    column = "category" if scope == "category" else "tags"
    tables = with_labels(column, "law" if scope == "category" else "law; hard", MANY, missing)
    result = run_gate(*tables, policy=policy(GateRule(), GateRule(scope=scope, groups=("law",))))
    assert [check.status for check in result.checks] == ["PASS", status]
    assert result.checks[1].coverage == pytest.approx(1 - missing / 2000)


@pytest.mark.parametrize("scope", ["category", "tag"])
def test_a_category_of_before_that_is_gone_is_inconclusive_under_every_category(
    scope: Any,
) -> None:
    column = "category" if scope == "category" else "tags"
    tables = with_labels(column, "law", MANY, 2000)
    result = run_gate(*tables, policy=policy(GateRule(scope=scope)))
    assert of(result) == {"law": "INCONCLUSIVE", "rest": "PASS"}


def test_items_whose_category_only_after_would_tell_count_against_all() -> None:
    before, after = with_labels("category", "law", MANY, 0)
    labelled = after.append_column("category", before["category"]).slice(0, 19_900)
    rule = GateRule(scope="category")
    known = run_gate(before, labelled, policy=policy(rule))
    assert of(known) == {"law": "PASS", "rest": "PASS"}
    unknown = run_gate(before.drop_columns(["category"]), labelled, policy=policy(rule))
    assert of(unknown) == {"law": "INCONCLUSIVE", "rest": "PASS"}


def repeated(table: pa.Table, items: int) -> pa.Table:
    """The first items answered twice, the others once."""
    return pa.concat_tables(
        [
            part.append_column("repeat", pa.array([number] * len(part)))
            for number, part in enumerate((table, table.slice(0, items)))
        ]
    )


@pytest.mark.parametrize("items", [600, 2000])
def test_a_loss_among_items_that_are_not_repeated_is_seen(items: int) -> None:
    before, after = one_task(BAD)  # what was lost comes after the first 1,200 items
    result = run_gate(repeated(before, items), repeated(after, items))
    assert result.status == "FAIL"
    assert run_gate(before, after, noise=before.slice(0, items)).status == "FAIL"
    # No repeat differs from the first answer: they say nothing about noise.
    assert "copies" in {notice.code for notice in result.warnings}


def test_what_compare_refuses_is_inconclusive_not_an_error() -> None:
    before, after = one_task(GOOD)
    strangers = after.set_column(1, "item", pa.array([f"x{n}" for n in range(len(after))]))
    result = run_gate(before, strangers)
    assert result.status == "INCONCLUSIVE"
    assert [reason.code for reason in result.checks[0].reasons] == ["refused"]


def test_a_required_task_that_is_missing_fails() -> None:
    rules = policy(GateRule(margin=0.2), required_tasks=["facts", "logic"])
    assert run_gate(*one_task(GOOD), policy=rules).missing_tasks == ["logic"]
    assert run_gate(*one_task(GOOD), policy=rules).status == "FAIL"
    both = release({"facts": GOOD, "logic": GOOD})
    assert run_gate(*both, policy=rules).status == "PASS"


def test_misspelt_names_are_in_the_first_lines_with_the_nearest_ones() -> None:
    """Whatever the tier and the status, and with a step that helps."""
    rules = policy(GateRule(margin=0.2), required_tasks=["fact"])
    result = run_gate(*one_task(GOOD), policy=rules)
    assert result.headline == "FAIL: required task is missing: fact (did you mean 'facts'?)."
    steps = [step.words for step in next_steps(result)]
    assert steps[-1] == "correct required_tasks in the policy"
    assert "read what was forgotten" not in steps
    failed = run_gate(*one_task(BAD), policy=rules.model_copy(update={"rules": (GateRule(),)}))
    assert next_steps(failed)[0].words == "read what was forgotten"
    misspelt = GateRule(scope="task", groups=("facs",))
    rules = policy(GateRule(margin=0.2), misspelt)
    result = run_gate(*one_task(GOOD), policy=rules)
    assert result.status == "INCONCLUSIVE"
    assert result.headline.endswith("; no item before has the task facs (did you mean 'facts'?).")
    assert [step.words for step in next_steps(result)] == ["correct groups in the policy"]
    alone = run_gate(*one_task(GOOD), policy=policy(misspelt))
    assert alone.headline.count("did you mean") == 1
    shown = run_gate(*one_task(GOOD), policy=policy(
        GateRule(margin=0.2), misspelt.model_copy(update={"tier": "warning"}),
    ))  # fmt: skip
    assert shown.status == "PASS"
    assert "did you mean 'facts'" in shown.headline
    other = run_gate(*one_task(GOOD), policy=policy(GateRule(scope="task", groups=("xyz",))))
    assert "no item before has the task xyz (there are facts)" in other.headline


def test_a_required_task_is_missing_also_where_nothing_can_be_compared() -> None:
    before, _ = release({"facts": GOOD, "logic": GOOD})
    _, after = release({"other": GOOD})
    rules = policy(GateRule(), required_tasks=["logic"])
    assert run_gate(before, after, policy=rules).status == "FAIL"


def test_a_run_that_cannot_be_compared_is_read_with_the_same_options() -> None:
    before, after = (table.drop_columns(["task"]) for table in one_task(GOOD))
    strangers = after.set_column(0, "item", pa.array([f"x{n}" for n in range(len(after))]))
    rules = policy(GateRule(), required_tasks=["facts"])
    result = run_gate(before, strangers, policy=rules, task="facts")
    assert (result.status, result.missing_tasks) == ("INCONCLUSIVE", [])


def test_a_run_is_not_held_against_itself() -> None:
    before, _ = one_task(GOOD)
    with pytest.raises(UsageError, match="is both before and after"):
        run_gate(before, before)


def test_a_task_of_before_that_is_gone_is_inconclusive_under_every_task() -> None:
    before, _ = release({"facts": GOOD, "logic": GOOD})
    _, after = release({"facts": GOOD})
    result = run_gate(before, after, policy=TASKS)
    assert of(result) == {"facts": "PASS", "logic": "INCONCLUSIVE"}


def test_a_blocking_rule_about_nothing_does_not_pass() -> None:
    for rule in (GateRule(scope="category"), GateRule(scope="task", groups=("none",))):
        assert run_gate(*one_task(GOOD), policy=policy(rule)).status == "INCONCLUSIVE"


def test_too_few_items_for_a_rule_are_inconclusive() -> None:
    result = run_gate(*one_task(GOOD), policy=policy(GateRule(min_items=2001)))
    assert (result.status, result.checks[0].reasons[0].code) == ("INCONCLUSIVE", "too_few_items")


def with_info(table: pa.Table, name: str, **facts: Any) -> fm.Run:
    run = fm.open_run(table, name=name)
    return replace(run, info=run.info.model_copy(update=facts))


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ({"template_hash": "a"}, {"template_hash": "b"}, "prompt_changed"),
        ({"system_prompt_hash": "a"}, {"system_prompt_hash": "b"}, "prompt_changed"),
        (
            {"tasks": {"facts": TaskInfo(n_shot=0)}},
            {"tasks": {"facts": TaskInfo(n_shot=5)}},
            "prompt_changed",
        ),
        (
            {"tasks": {"facts": TaskInfo(version="1")}},
            {"tasks": {"facts": TaskInfo(version="2")}},
            "refused",
        ),
        ({"template_hash": "a"}, {}, None),
        ({"harness": HarnessInfo(version="1")}, {"harness": HarnessInfo(version="2")}, None),
    ],
)
def test_what_changed_is_inconclusive_and_what_is_unknown_did_not_change(
    before: dict[str, Any], after: dict[str, Any], code: str | None
) -> None:
    tables = one_task(GOOD)
    result = run_gate(with_info(tables[0], "base", **before), with_info(tables[1], "new", **after))
    codes = {reason.code for check in result.checks for reason in check.reasons}
    assert codes == (set() if code is None else {code})
    assert result.status == ("PASS" if code is None else "INCONCLUSIVE")


def test_another_judge_is_inconclusive() -> None:
    before, after = (
        table.append_column("metric", pa.array(["grade"] * len(table))).append_column(
            "scorer", pa.array([judge] * len(table))
        )
        for table, judge in zip(one_task(GOOD), ("judge-1", "judge-2"), strict=True)
    )
    result = run_gate(before, after)
    assert [reason.code for reason in result.checks[0].reasons] == ["scorer_changed"]
    free = policy(GateRule(), unchanged=["prompt"])
    assert run_gate(before, after, policy=free).status == "PASS"


def test_what_only_the_user_can_say_stays_an_error() -> None:
    before, after = (
        pa.concat_tables(
            [
                table.append_column("metric", pa.array([metric] * len(table)))
                for metric in ("loose", "strict")
            ]
        )
        for table in one_task(GOOD)
    )
    with pytest.raises(MetricError, match=r"\[compare\]"):
        run_gate(before, after)


def test_several_planned_looks_make_each_of_them_stricter() -> None:
    # 3.5 % lost: at least 2.75 % at 95 %, at least 2.55 % at 99 %.
    tables, rule = one_task(Cells(kept=1330, lost=70, never=600)), GateRule(margin=0.0265)
    assert run_gate(*tables, policy=policy(rule)).status == "FAIL"
    result = run_gate(*tables, policy=policy(rule, looks=5), look=2)
    assert result.status == "INCONCLUSIVE"
    assert result.look.level == pytest.approx(0.99)
    level = run_gate(*tables, policy=policy(GateRule(), looks="any"), look=3).look.level
    assert level == pytest.approx(1 - 0.05 / 12)


def test_a_look_that_was_not_planned_does_not_pass() -> None:
    rules = policy(GateRule(), looks=2)
    assert run_gate(*one_task(GOOD), policy=rules, look=2).status == "PASS"
    result = run_gate(*one_task(GOOD), policy=rules, look=3)
    assert result.status == "INCONCLUSIVE"
    assert "look 3 exceeds the 2 planned looks" in result.headline
    for number in (-1, 0):
        with pytest.raises(UsageError):
            run_gate(*one_task(GOOD), policy=rules, look=number)


@pytest.mark.parametrize(("looks", "look"), [("any", 1000), (10_000, 1)])
def test_many_looks_are_possible(looks: Any, look: int) -> None:
    tables, rules = one_task(BAD), policy(GateRule(), looks=looks)
    (check,) = run_gate(*tables, policy=rules, look=look).checks
    first = run_gate(*tables).checks[0]
    assert (check.status, first.status) == ("FAIL", "FAIL")
    assert (check.loss.low or 1) < (first.loss.low or 0)


def test_a_look_has_the_limits_of_a_comparison_at_its_level() -> None:
    tables = one_task(CLOSE)
    (check,) = run_gate(*tables, policy=policy(GateRule(), looks=5)).checks
    assert check.loss == fm.compare(*tables, level=0.99).result.total.loss


def test_an_unplanned_look_has_the_part_of_a_later_one() -> None:
    looks = [run_gate(*one_task(CLOSE), look=number).look for number in (1, 2, 3)]
    assert [look.level for look in looks] == pytest.approx([0.95, 1 - 0.05 / 6, 1 - 0.05 / 12])
    assert [look.planned for look in looks] == [1, None, None]


TODAY = date(2026, 11, 17)
WAIVER = Waiver(rule="loss", owner="ada", reason="known", ceiling=0.15, expires=date(2026, 12, 1))


def test_a_waiver_lets_a_loss_pass_up_to_its_ceiling_and_until_it_expires() -> None:
    tables = one_task(BAD)
    result = run_gate(*tables, waivers=[WAIVER], today=TODAY)
    (check,) = result.checks
    assert (result.status, check.verdict) == ("PASS", "lost")
    assert check.waiver is not None
    assert check.waiver.state == "applied"
    assert "waived up to 15% by ada until 2026-12-01: known" in check.sentence
    low = WAIVER.model_copy(update={"ceiling": 0.11})  # the loss may be above
    late = date(2026, 12, 2)
    assert run_gate(*tables, waivers=[low], today=TODAY).status == "FAIL"
    assert run_gate(*tables, waivers=[WAIVER], today=late).status == "FAIL"
    assert run_gate(*tables, waivers=[WAIVER], today=date(2026, 12, 1)).status == "PASS"


def test_an_expired_waiver_fails_what_is_inconclusive_and_not_what_passes() -> None:
    late = date(2027, 1, 1)
    assert run_gate(*one_task(CLOSE), waivers=[WAIVER], today=late).status == "FAIL"
    result = run_gate(*one_task(GOOD), waivers=[WAIVER], today=late)
    assert result.status == "PASS"
    assert result.checks[0].waiver is not None
    assert result.checks[0].waiver.state == "not needed"


def test_a_waiver_is_about_losses_not_about_what_is_missing() -> None:
    before, after = one_task(BAD)
    result = run_gate(before, after.slice(0, 1500), waivers=[WAIVER], today=TODAY)
    assert result.status == "INCONCLUSIVE"


def test_a_waiver_is_about_losses_not_about_what_cannot_be_told() -> None:
    before, after = one_task(BAD)
    never_right = before.set_column(2, "score", pa.array([0.0] * len(before)))
    result = run_gate(never_right, after, waivers=[WAIVER], today=TODAY)
    (check,) = result.checks
    assert (result.status, check.verdict) == ("INCONCLUSIVE", "cannot_tell")
    assert check.waiver is not None
    assert check.waiver.state == "not applicable"


def test_an_expired_waiver_fails_also_what_cannot_be_compared() -> None:
    before, _ = one_task(BAD)
    _, strangers = release({"other": GOOD})
    assert run_gate(before, strangers, waivers=[WAIVER], today=TODAY).status == "INCONCLUSIVE"
    late = date(2026, 12, 2)
    assert run_gate(before, strangers, waivers=[WAIVER], today=late).status == "FAIL"


def test_another_day_and_a_waiver_about_nothing_are_seen() -> None:
    tables, day = one_task(BAD), date(2020, 1, 1)
    result = run_gate(*tables, waivers=[WAIVER], today=day)
    (notice,) = [notice for notice in result.warnings if notice.code == "as_of"]
    assert "2020-01-01" in notice.message
    misspelt = WAIVER.model_copy(update={"group": "Facts"})
    result = run_gate(*tables, waivers=[misspelt])
    assert result.status == "FAIL"
    assert [notice.code for notice in result.warnings] == ["waiver_unused"]
    late = run_gate(*tables, waivers=[WAIVER])
    assert not late.warnings


def test_a_failed_gate_names_the_first_items() -> None:
    before, after = one_task(BAD)
    result = run_gate(repeated(before, 2000), repeated(after, 2000))
    lost = sorted(str(number) for number in range(1200, 1400))
    assert [one.item for one in result.forgotten_items] == lost[:20]
