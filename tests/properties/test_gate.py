"""Gate and comparison never contradict each other, for any counts."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import forgetmap as fm
from effort import examples
from forgetmap.gate import GatePolicy, GateRule, run_gate
from releases import Cells, release

counts = st.integers(0, 60)
cells = st.builds(
    Cells, kept=st.integers(1, 400), lost=counts, gained=counts, never=st.integers(0, 200)
)
tables = st.dictionaries(st.sampled_from("abcd"), cells, min_size=1).map(release)
margins = st.sampled_from([0.005, 0.02, 0.1])


@given(tables, margins)
@examples(60)
def test_no_pass_beside_a_loss_above_the_margin_and_no_fail_beside_none(
    sides: tuple[pa.Table, pa.Table], margin: float
) -> None:
    policy = GatePolicy(
        rule=(
            GateRule(margin=margin),
            GateRule(name="tasks", scope="task", margin=margin),
            GateRule(name="seen tasks", scope="task", tier="warning", margin=margin),
            GateRule(name="accuracy", tier="info", accept="net", margin=margin),
            GateRule(quantity="net_change", tier="info", margin=margin),
        )
    )
    gate = run_gate(*sides, policy=policy)
    result = fm.compare(*sides, margin=margin).result
    verdicts = {("loss", "total"): result.total}
    verdicts |= {("seen tasks", task.name): task for task in result.tasks}
    for check in gate.checks:
        compared = verdicts.get((check.rule, check.group))
        if compared is not None:
            assert check.verdict == compared.verdict
            assert check.loss == compared.loss
        is_beyond = check.verdict == "lost" and (check.loss.low or 0) > margin
        assert not (check.status == "PASS" and is_beyond)
        assert not (check.status == "FAIL" and not is_beyond)
        small = check.verdict in ("no_material_loss", "small_loss")
        held = (check.drop_high or 1.0) < margin and not is_beyond
        assert (check.status == "PASS") == (small or (check.accept == "net" and held))
    blocking = [check.status for check in gate.of_tier("blocking")]
    expected = (
        "FAIL" if "FAIL" in blocking else "PASS" if set(blocking) == {"PASS"} else "INCONCLUSIVE"
    )
    assert gate.status == expected
