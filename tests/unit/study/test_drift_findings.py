"""Findings on drift: simulated studies and runs with known truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.study import compare_study, parse_study, tell_findings
from forgetmap.study.drift import DriftChain, StudyDrift
from forgetmap.study.drift_findings import find_drift_effects
from forgetmap.study.pair_table import PairFacts, StudyTable
from forgetmap.study.result import StudyFinding
from forgetmap.text import blocks_to_text
from run_folders import run_of

FACT = PairFacts("a", "b", "b", "g", "tuning", "a", "s", 1.0, None, 1, False)
LINEAGES, CAPABILITIES, NOISE = 8, 12, 0.06
SCALE = {"SFT": 0.30, "DPO": 0.15, "RL": 0.15}


def simulated(rng: np.random.Generator) -> StudyDrift:
    """Every base is trained in three ways, and SFT goes on to DPO, which takes half of it back.

    Sizes are as `capabilities` computes them: root mean square of noisy effects, less the noise.
    """
    facts, values, chains = [], [], []
    for place in range(LINEAGES):
        base = f"base{place}"
        level = rng.lognormal(0, 0.3)
        effects = {
            name: scale * level * rng.standard_normal(CAPABILITIES) for name, scale in SCALE.items()
        }
        for name, effect in effects.items():
            family = f"family{place % 2}"
            facts.append(
                replace(FACT, before=base, after=f"{base}-{name}", lineage=base, method=name,
                        family=family, series=None, domain_names=("law",))
            )  # fmt: skip
            values.append(measured(effect, rng))
        change = measured(effects["SFT"] / 2, rng) - measured(effects["SFT"], rng)
        chains.append(DriftChain(base, "x", "y", "DPO", "SFT", base, change))
    sizes = np.asarray(values)[:, None]
    nothing = np.full_like(sizes, np.nan)
    table = StudyTable(tuple(facts), ("total",), nothing, nothing, drift=sizes)
    return StudyDrift(table, tuple(chains), (), ())


def measured(effect: Any, rng: np.random.Generator) -> float:
    noisy = effect + NOISE * rng.standard_normal(len(effect))
    return float(max(np.mean(noisy**2 - NOISE**2), 0.0) ** 0.5)


def mean_size(scale: float) -> float:
    """Of a training: over lineages and capabilities drawn anew."""
    rng = np.random.default_rng(1)
    effects = scale * rng.lognormal(0, 0.3, (20_000, 1)) * rng.standard_normal((20_000, 12))
    return float(np.sqrt((effects**2).mean(axis=1)).mean())


def test_intervals_hold_the_truth_and_equal_algorithms_are_rarely_told_apart() -> None:
    rng = np.random.default_rng(7)
    truth = {
        "drift-method:SFT against DPO": mean_size(0.30) - mean_size(0.15),
        "drift-method:DPO against RL": 0.0,
        "drift-recovery:DPO after SFT": -mean_size(0.15),
        "drift-family:family0 against family1": 0.0,
    }
    held = dict.fromkeys(truth, 0)
    wrong, found, rounds = 0, 0, 120
    for _ in range(rounds):
        findings = {one.id: one for one in find_drift_effects(simulated(rng))}
        for name, value in truth.items():
            estimate = findings[name].evidence[0].estimate
            assert estimate.low is not None
            assert estimate.high is not None
            held[name] += estimate.low <= value <= estimate.high
        wrong += findings["drift-method:DPO against RL"].answer != "cannot tell"
        found += findings["drift-method:SFT against DPO"].answer == "yes"
    # Three comparisons of methods: each interval is at 98.3 %.
    assert all(count >= 0.91 * rounds for count in held.values()), held
    assert wrong <= 0.05 * rounds
    assert found >= 0.9 * rounds


def test_one_lineage_says_nothing_for_sure() -> None:
    drift = simulated(np.random.default_rng(2))
    rows = slice(0, 3)
    table = StudyTable(
        drift.table.facts[rows], ("total",), drift.table.forgetting[rows],
        drift.table.forgetting[rows], drift=drift.table.values("drift")[rows, None],
    )  # fmt: skip
    findings = find_drift_effects(StudyDrift(table, drift.chains[:1], (), ()))
    assert {one.answer for one in findings} == {"cannot tell"}
    assert any("3 comparisons" in part for one in findings for part in one.confounds)


TAXONOMY = """name = "small"
groups = [{ id = "CAN", title = "What it can do" }]
capabilities = [
  { id = "maths", group = "CAN", title = "Mathematics", tasks = ["sums"] },
  { id = "facts", group = "CAN", title = "Knowledge", tasks = ["facts"] },
]
"""
RIGHT = {"base": 1.0, "IFT": 0.5, "DPO": 0.9, "IFT+DPO": 0.8}


def study_of(bases: int, extra: str = "") -> tuple[str, dict[str, list[Any]]]:
    """Every base with IFT, DPO, and DPO after IFT; and their runs."""
    rng = np.random.default_rng(3)
    parts, runs = [f'name = "drift"\ntaxonomy = "small.toml"\n{extra}'], {}
    for place in range(bases):
        for method, share in RIGHT.items():
            name = f"m{place}-{method}"
            parent = f"m{place}-IFT" if method == "IFT+DPO" else f"m{place}-base"
            parts.append(f'[[model]]\nid = "{name}"\nlogs = ["{name}"]\nfamily = "f{place % 2}"')
            if method != "base":
                parts.append(f'stage = "tuning"\nmethod = "{method}"\nparent = "{parent}"')
            runs[name] = [
                run_of(
                    [
                        {"task": task, "item": f"{n}", "score": float(rng.random() < share)}
                        for task in ("sums", "facts")
                        for n in range(60)
                    ]
                )
            ]
    return "\n".join(parts), runs


def test_findings_on_drift_follow_those_on_forgetting(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TAXONOMY)
    text, runs = study_of(4)
    study = parse_study(text, str(tmp_path / "study.toml"))
    result = compare_study(study, runs).findings
    answers: dict[str, StudyFinding] = {one.id: one for one in result.drift}
    assert answers["drift-method:IFT against DPO"].answer == "yes"
    assert answers["drift-recovery:DPO after IFT"].answer == "yes"
    assert "drift-family:f0 against f1" in answers
    assert len(result.drift_sizes) == 12
    text = blocks_to_text(tell_findings(result), 120)
    assert "SUPPORTED  IFT drifts more than DPO." in text
    assert text.index("catastrophic") < text.index("Drift of capabilities")


def test_runs_without_capabilities_say_so(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        TAXONOMY.replace('"sums"', '"x"').replace('"facts"]', '"y"]')
    )
    text, runs = study_of(1)
    result = compare_study(parse_study(text, str(tmp_path / "study.toml")), runs).findings
    assert not result.drift
    assert any("drift was not measured" in notice.message for notice in result.notices)
