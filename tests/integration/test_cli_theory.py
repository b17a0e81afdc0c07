"""`forgetmap theory`: claims, simulations, advice and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from command_line import call, write
from forgetmap.theory import formulas, verification
from forgetmap.theory.claims.registry import (
    find_claims,
)
from forgetmap.theory.verification import outcomes_markdown, verify_claims

PAGE = Path(__file__).parent.parent.parent / "docs" / "theory.md"
STEADY = ("F3", "R2", "P6", "TT5")
"""Claims whose measured values do not depend on rounding."""


def test_verify_prints_what_was_measured_and_the_limits() -> None:
    done = call("theory", "verify", "R2", "TT4", "--controls", "--processes", 1, columns=120)
    assert done.code == 0
    assert re.search(r"R2 +PASS", done.out)
    assert done.out.count("fails") >= 2
    assert "2 of 2 claims hold." in done.out
    assert "Limits" in done.out


def test_verify_as_json_and_markdown() -> None:
    output = json.loads(call("theory", "verify", "f3", "--json").out)
    (only,) = output["claims"]
    assert (only["id"], only["passed"], only["control_passed"]) == ("F3", True, None)
    table = call("theory", "verify", "F3", "--format", "markdown").out
    assert table.splitlines()[2].startswith("| F3 |")


def test_verify_fails_where_a_formula_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:

    right = formulas.natural_weight
    monkeypatch.setattr(formulas, "natural_weight", lambda *args: 1.1 * right(*args))
    done = call("theory", "verify", "F3", "--processes", 1)
    assert done.code == 1
    assert "FAIL" in done.out
    assert "not F3" in done.out


def test_unknown_claims_end_in_two_lines() -> None:
    done = call("theory", "verify", "F99")
    assert done.code == 2
    assert "there is no claim F99" in done.err


def test_simulate_draws_every_plot(tmp_path: Path) -> None:
    done = call("theory", "simulate", "--method", "sft", "--separation", 3, "--until", 50,
                "--out", tmp_path, "--two-by-two")  # fmt: skip
    assert done.code == 0
    assert "of the old mass is left" in done.out
    for name in ("densities", "old-mass", "drift", "two-by-two"):
        picture = ET.parse(tmp_path / f"sft-{name}.svg").getroot()
        assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) > 2


def test_simulate_says_its_numbers_as_json() -> None:
    options = ("--separation", 8, "--offset", 0, "--refreshes", 2, "--json")
    output = json.loads(call("theory", "simulate", "--method", "oapl", *options).out)
    assert output["refreshes"] == [0, 1, 2]
    assert output["old_weight"][1] == pytest.approx(0.268941, abs=1e-4)


def test_simulate_takes_batches_dimensions_and_modes(tmp_path: Path) -> None:
    options = ("--batch", 16, "--dimension", 5, "--modes", 3, "--until", 20)
    done = call("theory", "simulate", "--method", "sdft", *options, "--out", tmp_path)
    assert done.code == 0
    assert "steps" in done.out
    assert (tmp_path / "sdft-densities.svg").exists()
    by_seed = [
        json.loads(
            call("theory", "simulate", "--method", "sft", *options, "--seed", seed, "--json").out
        )["old_weight"]
        for seed in (0, 0, 1)
    ]
    assert by_seed[0] == by_seed[1] != by_seed[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "sft", "--modes", 1), "modes is 1"),
        (("--method", "sft", "--dimension", 0), "dimension is 0"),
        (("--method", "sft", "--batch", 8, "--geometry", "natural"), "logit geometry"),
        (("--method", "sft", "--separation", "-1"), "separation is -1"),
        (("--method", "sft", "--start-weight", "1"), "start_weight is 1"),
        (("--method", "kl-rl", "--temperature", "0"), "temperature is 0"),
        (("--method", "ttt-discover", "--eta", "high"), "--eta is 'high'"),
        (("--method", "sft", "--geometry", "euclid", "--until", "9"), "the integration stopped"),
    ],
)
def test_bad_numbers_end_in_two_lines(arguments: tuple[object, ...], said: str) -> None:
    done = call("theory", "simulate", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Hint: " in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("batch", "--old-weight", 0.02), "228 samples"),
        (("replay", "--keep", 0.2, "--base", 0.5), "Replay 40.0%"),
        (("kl", "--start", 0.5, "--floor", 0.2, "--eta", 2), "whatever the rewards"),
        (("refreshes", "--start", 0.5, "--floor", 0.01), "4 refreshes"),
        (("refreshes", "--start", 0.5, "--floor", 0.01, "--gap", 0), "Any number"),
        (("replay", "--fraction", 0), "None in the long run"),
        (("replay", "--fraction", 0.3), "30.0% of old mass is kept"),
        (("anchor", "--shown", 90, "--tried", 100, "--keep", 0.95), "Not shown to be enough"),
    ],
)
def test_advice_comes_with_its_conditions(arguments: tuple[object, ...], said: str) -> None:
    done = call("theory", "advise", *arguments)
    assert done.code == 0
    assert said in done.out
    for title in ("Assumes", "Does not apply to", "Limits"):
        assert title in done.out
    output = json.loads(call("theory", "advise", *arguments, "--json").out)
    assert output["assumes"]
    assert output["limits"]


def test_replay_is_asked_from_one_side() -> None:
    for arguments in ((), ("--keep", 0.1, "--fraction", 0.1)):
        done = call("theory", "advise", "replay", *arguments)
        assert done.code == 2
        assert "either --keep or --fraction" in done.err


@pytest.mark.parametrize("method", ["sdft", "ttt-discover", "oapl", "rl", "sft"])
def test_conditions_say_both_sides(method: str) -> None:
    done = call("theory", "conditions", "--method", method, columns=80)
    assert done.code == 0
    assert "\u2026" not in done.out
    output = json.loads(call("theory", "conditions", "--method", method, "--json").out)
    assert output["method"] == method
    assert {each["secures"] for each in output["conditions"]} >= {"mass", "drift"}
    for each in output["conditions"]:
        assert f"{each['right']:.4g}" in done.out
        assert each["name"] in done.out
    assert output["limits"]


def test_conditions_take_separation_and_mass_from_an_overlap(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = [
        {"prompt": f"p{n % 8}", "side": side, "before": -9.0, "after": -9.0 - float(gap)}
        for n in range(64)
        for side, gap in (("before", random.normal(2)), ("after", -random.normal(2)))
    ]
    write(tmp_path / "samples.jsonl", lines)
    done = call("overlap", "samples", tmp_path / "samples.jsonl", "--json")
    (tmp_path / "overlap.json").write_text(done.out)
    group = json.loads(done.out)["groups"][0]
    arguments = ("theory", "conditions", "--method", "rl", "--overlap")
    for path in (tmp_path, tmp_path / "overlap.json"):
        output = json.loads(call(*arguments, path, "--offset", 0, "--json").out)
        expected = np.sqrt(-8 * np.log(group["overlap"]["high"]))
        assert output["numbers"]["separation"] == pytest.approx(expected)
    wrong = {
        ("--group", "old"): "there is no prompt group 'old'",
        ("--separation", 3): "both determine the distance",
    }
    for more, said in wrong.items():
        assert said in call(*arguments, tmp_path, *more).err
    assert "cannot be read" in call(*arguments, tmp_path / "none.json").err
    assert "not a result of forgetmap overlap" in call(*arguments, tmp_path / "samples.jsonl").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sft", "--eta", 1), "--eta is not a parameter of sft"),
        (("rl", "--temperature", 1, "--old-share", 0.2), "both determine the target"),
        (("rl", "--separation", 0.6), "0 starts the new component at the new mode"),
        (("ttt-discover", "--eta", 1e300, "--slope", 1e-12), "eta is 1e+300"),
        (("sft", "--fraction", 1), "fraction is 1"),
        (("rl", "--gap", 2), "only with a KL penalty"),
        (("rl", "--group", "old"), "--group needs --overlap"),
        (("oapl", "--floor", 0.7), "not below the start"),
        (("sdft", "--anchor", 2), "anchor is 2"),
    ],
)
def test_conditions_of_bad_numbers_end_in_two_lines(
    arguments: tuple[object, ...], said: str
) -> None:
    done = call("theory", "conditions", "--method", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Hint: " in done.err


def test_page_is_one_file(tmp_path: Path) -> None:
    done = call("theory", "page", "--out", tmp_path / "page.html")
    assert done.code == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "script-src 'sha256-" in text
    assert not re.search(r"(src|href)=\"http", text)
    assert "{{" not in re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = call("theory", "page", "--out", tmp_path / "file" / "page.html")
    assert done.code == 2
    assert "cannot write" in done.err


def test_the_table_in_the_docs_is_that_of_the_claims() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = {row.split(" | ")[0].strip("| "): row for row in text.splitlines() if row[:2] == "| "}
    for each in find_claims():
        assert f"{each.statement} ({each.provenance})" in rows[each.id], each.id
        assert rows[each.id].endswith("fails |"), each.id
    fresh = outcomes_markdown(list(verify_claims(STEADY, controls=False, processes=1)))
    for row in fresh.splitlines()[2:]:
        cells, shown = row.split(" | "), rows[row.split(" | ")[0].strip("| ")].split(" | ")
        assert shown[:6] == cells[:6]


def test_claims_run_in_several_processes() -> None:
    found = {each.id for each in verification.verify_claims(("F3", "TT4"), controls=True)}
    assert found == {"F3", "TT4"}
