"""Use cases from public threads: the commands of docs/gate-ci.md on small runs."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from command_line import call, json_of, results, write
from forgetmap.stats import mcnemar_p

THOUSAND = [1.0] * 900 + [0.0] * 100
WORSE = [1.0] * 700 + [0.0] * 300


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a run before and one after that lost a fifth."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "main.jsonl", results(THOUSAND))
    write(tmp_path / "same.jsonl", results(THOUSAND))
    write(tmp_path / "worse.jsonl", results(WORSE))
    return tmp_path


def test_gaia_3371_a_stale_baseline_decides_nothing(runs: Path) -> None:
    """Another judge is no regression, and new scenarios do not move the rate of the old ones."""
    write(runs / "old.jsonl", results(THOUSAND, scorer="judge-4"))
    write(runs / "new.jsonl", results(WORSE, scorer="judge-5"))
    done = call("gate", "old.jsonl", "new.jsonl")
    assert done.code == 3
    assert "judge-4 before" in done.out
    write(runs / "more.jsonl", results([*THOUSAND, *([0.0] * 250)]))
    assert call("gate", "main.jsonl", "more.jsonl").code == 0
    assert call("gate", "more.jsonl", "main.jsonl").code == 3


def test_lm_eval_3831_the_test_is_paired(runs: Path) -> None:
    """An example of the thread: of 220 items few change, so only a paired test sees it."""
    before = [1.0] * 150 + [0.0] * 70
    after = [1.0] * 131 + [0.0] * 19 + [1.0] * 5 + [0.0] * 65
    write(runs / "a.jsonl", results(before))
    write(runs / "b.jsonl", results(after))
    total = json_of("a.jsonl", "b.jsonl")["total"]
    assert (total["n10"], total["n01"]) == (19, 5)
    assert total["mcnemar_p"] == pytest.approx(float(mcnemar_p(19, 5)))
    assert total["mcnemar_p"] < 0.01
    unpaired = 14 / 220 / math.sqrt((150 * 70 + 136 * 84) / 220**3)
    assert unpaired < 1.5
    policy = '[[rule]]\nquantity = "net_change"\nmargin = 0.005\n'
    (runs / "policy.toml").write_text(policy, "utf-8")
    done = call("gate", "a.jsonl", "b.jsonl", "--policy", "policy.toml", "--json")
    assert done.code == 1
    loss = json.loads(done.out)["checks"][0]["loss"]
    assert 0.005 < loss["low"] < 14 / 220 < loss["high"]


def test_mcpjam_4371_a_waived_gate_is_never_silent(runs: Path) -> None:
    waiver = (
        '[[waiver]]\nrule = "loss"\nowner = "Ada"\nreason = "new tokenizer"\n'
        "ceiling = 0.3\nexpires = 2030-01-31\n"
    )
    (runs / "waivers.toml").write_text(waiver, "utf-8")
    gate = ("gate", "main.jsonl", "worse.jsonl", "--waivers", "waivers.toml")
    files = ("--junit", "gate.xml", "--markdown", "gate.md", "--github")
    done = call(*gate, *files, "--as-of", "2030-01-31")
    assert done.code == 0
    assert "waived up to 30% by Ada" in " ".join(done.out.split())
    assert "::warning title=waived" in done.out
    assert "<skipped>" in (runs / "gate.xml").read_text("utf-8")
    assert "PASS (waived)" in (runs / "gate.md").read_text("utf-8")
    assert call(*gate, "--as-of", "2030-02-01").code == 1


def test_agentclash_1135_and_obsidian_717_a_baseline_is_accepted_by_name(runs: Path) -> None:
    """An explicit act stores it; the gate compares with it, exits by what it finds, remembers."""
    store = ("--store", "baselines")
    assert call("gate", "baseline:flash", "same.jsonl", *store).code == 2
    assert call("gate", "accept", "main.jsonl", "--as", "flash", "--by", "ada", *store).code == 0
    assert call("gate", "baseline:flash", "same.jsonl", *store).code == 0
    assert call("gate", "baseline:flash", "worse.jsonl", *store).code == 1
    assert call("gate", "baseline:flash", "same.jsonl", *store).code == 0
    assert "3 decisions: 1 FAIL, 2 PASS" in call("gate", "history", *store).out


def test_deepeval_2870_one_comment_says_it_all(runs: Path) -> None:
    """The test of the action shows that it is posted, and replaced."""
    assert call("gate", "main.jsonl", "worse.jsonl", "--markdown", "gate.md").code == 1
    text = (runs / "gate.md").read_text("utf-8")
    assert text.startswith("<!-- forgetmap-gate -->\n\n## ❌ forgetmap gate: FAIL")
    assert "| loss | ❌ FAIL | 17.5% to 22.6% | 2% |" in text
    assert "Forgotten items (20 of 200)" in text
    assert "- t: `i700`" in text


def test_gemini_cli_23937_noise_blocks_nothing(runs: Path) -> None:
    """What also a second run of the model before gets wrong is no regression of the one after."""
    draw = random.Random(1)
    for name in ("main", "candidate", "repeat"):
        scores = [float(n >= 300 or draw.random() < 0.5) for n in range(3000)]
        write(runs / f"{name}.jsonl", results(scores))
    gate = ("gate", "main.jsonl", "candidate.jsonl", "--noise", "repeat.jsonl")
    assert [call(*gate, "--accept", accept).code for accept in ("items", "net")] == [3, 0]
    write(runs / "candidate.jsonl", results([0.0] * 600 + [1.0] * 2400))
    assert call(*gate, "--accept", "net").code == 1


def test_nemo_gym_1493_a_policy_of_several_rules_for_several_candidates(runs: Path) -> None:
    policy = (
        "[[rule]]\nmargin = 0.02\n"
        '[[rule]]\nname = "accuracy"\naccept = "net"\nmargin = 0.02\n'
        '[[rule]]\nscope = "task"\nquantity = "net_change"\ntier = "warning"\n'
    )
    (runs / "policy.toml").write_text(policy, "utf-8")
    codes = {
        name: call("gate", "main.jsonl", f"{name}.jsonl", "--policy", "policy.toml").code
        for name in ("same", "worse")
    }
    assert codes == {"same": 0, "worse": 1}
    both = call("compare", "main.jsonl", "same.jsonl", "worse.jsonl")
    assert "2 models against main" in both.out
