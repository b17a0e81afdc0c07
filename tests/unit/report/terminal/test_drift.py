"""Output of `forgetmap drift` that tests of the whole command do not cover."""

from __future__ import annotations

from dataclasses import replace

from drifting_runs import drifted
from forgetmap.capabilities import Caution
from forgetmap.report.terminal.drift import tell_drift
from forgetmap.text import Line


def test_a_warning_about_a_run_names_it_once() -> None:
    result = drifted().result
    one, other = result.models
    warnings = [
        Caution("unknown_tasks", f"{one}: the taxonomy does not know poems.", one),
        Caution("few_items", "sums rests on 19 items.", other),
    ]
    blocks = tell_drift(replace(result, cautions=tuple(warnings)))
    lines = [block.text for block in blocks if isinstance(block, Line) and block.look == "warning"]
    assert lines == [
        f"{one}: the taxonomy does not know poems.",
        f"{other}: sums rests on 19 items.",
    ]
