"""`forgetmap overlap` on the command line, with two model folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import call, write
from enumerable_models import all_prompts, enumerate_exactly, lettered_model, saved
from forgetmap.overlap.result import OverlapResult
from logprob_server import Dialect, serving

SHORT = ("--max-new-tokens", 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("overlap")
    saved(lettered_model(1), root / "base")
    saved(lettered_model(2, near=1, step=0.4), root / "tuned")
    lines: list[dict[str, Any]] = [
        {"prompt": text, "id": text, "group": "old" if text[0] == "a" else "new"}
        for text in all_prompts(2)
    ]
    write(root / "prompts.jsonl", lines)
    return root


@pytest.fixture(scope="module")
def measured(folder: Path) -> dict[str, Any]:
    done = call(
        "overlap", folder / "base", folder / "tuned", "--prompts", folder / "prompts.jsonl",
        "--samples", 24, *SHORT, "--out", folder / "out", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_the_result_is_near_the_enumerated_truth(measured: dict[str, Any]) -> None:
    result = OverlapResult.model_validate(measured)
    truth = {
        text: enumerate_exactly(lettered_model(1), lettered_model(2, near=1, step=0.4), text)
        for text in all_prompts(2)
    }
    for each in result.prompts:
        exact = truth[each.prompt].forward_kl
        assert each.forward_kl.low is not None
        assert each.forward_kl.high is not None
        wide = each.forward_kl.high - each.forward_kl.low
        assert each.forward_kl.low - wide < exact < each.forward_kl.high + wide
    assert [group.name for group in result.groups] == ["all", "new", "old"]
    assert result.kl_from == "whole distributions"


def test_it_goes_on_and_says_the_same(folder: Path, measured: dict[str, Any]) -> None:
    before = (folder / "out" / "samples.jsonl").read_bytes()
    done = call(
        "overlap", "models", folder / "base", folder / "tuned", "--prompts",
        folder / "prompts.jsonl", "--samples", 24, *SHORT, "--out", folder / "out", "--json",
    )  # fmt: skip
    assert json.loads(done.out) == measured
    assert (folder / "out" / "samples.jsonl").read_bytes() == before
    assert json.loads((folder / "out" / "overlap.json").read_text()) == measured


def test_kept_samples_give_the_same_numbers(folder: Path, measured: dict[str, Any]) -> None:
    done = call("overlap", "samples", folder / "out" / "samples.jsonl", "--json")
    again = json.loads(done.out)
    assert again["groups"] == measured["groups"]
    first = call("overlap", "samples", folder / "out" / "samples.jsonl", "--first", 1, "--json")
    assert json.loads(first.out)["groups"][0]["tokens"] == 1


def test_words_and_tables(folder: Path, measured: dict[str, Any]) -> None:
    assert measured["groups"]
    done = call("overlap", "samples", folder / "out" / "samples.jsonl", columns=120)
    assert done.code == 0
    assert "after moved by KL" in done.out
    assert "keeps a probability of" in done.out
    for word in ("first 2", "of 0.5 | 0.9", "were cut", "old", "new"):
        assert word in done.out


def test_models_far_apart_have_no_guarantee_instead_of_a_tiny_number(tmp_path: Path) -> None:
    lines = [
        {"prompt": f"p{n}", "side": side, "before": before, "after": after}
        for n in range(8)
        for k in range(4)
        for side, before, after in (("before", -20.0, -300.0 - k - n), ("after", -280.0 - k, -20.0))
    ]
    write(tmp_path / "far.jsonl", lines)
    done = call("overlap", "samples", tmp_path / "far.jsonl", columns=80)
    assert done.out.count("no guarantee") == 8
    assert "No guarantee" in done.out
    told = json.loads(call("overlap", "samples", tmp_path / "far.jsonl", "--json").out)
    for each in (told["groups"][0], *told["prompts"]):
        assert each["kept"] == {"0.5": None, "0.9": None}
        assert each["kept_reason"]
        assert each["certificate"]["kept"] == {"0.5": None, "0.9": None}
        assert "may be lost" in each["certificate"]["reason"]
    assert "nats may leave less than 1%" in told["groups"][0]["kept_reason"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--prompts", "none.txt"), "none.txt does not exist"),
        (("--prompts", "empty.txt"), "no prompts"),
        (("--prompts", "blank.jsonl"), "prompt is empty"),
        (("--prompts", "twice.jsonl"), "Two prompts"),
        (("--prompts", "prompts.jsonl", "--level", 2), "level is 2"),
        (("--prompts", "prompts.jsonl", "--behaviour", 0), "behaviour 0"),
        (("--prompts", "prompts.jsonl", "--chat"), "no chat template"),
        (("--prompts", "prompts.jsonl", "--max-new-tokens", 40), "exceeds the context length 16"),
        (("--prompts", "prompts.jsonl", "--out", "base/config.json"), "is a file"),
    ],
)
def test_errors_are_two_lines(folder: Path, args: tuple[Any, ...], says: str) -> None:
    (folder / "empty.txt").write_text("\n")
    write(folder / "blank.jsonl", [{"prompt": " "}])
    write(folder / "twice.jsonl", [{"prompt": "a", "id": 1}, {"prompt": "b", "id": 1}])
    places = {"--prompts", "--out"}
    given = [
        folder / each if place and args[place - 1] in places else each
        for place, each in enumerate(args)
    ]
    done = call("overlap", folder / "base", folder / "tuned", *SHORT, *given)
    assert done.code == 2
    assert says in done.err
    assert "Hint: " in done.err
    assert "Traceback" not in done.err


def test_a_journal_of_other_settings_is_kept(folder: Path, measured: dict[str, Any]) -> None:
    assert measured["groups"]
    done = call(
        "overlap", folder / "base", folder / "tuned", "--prompts", folder / "prompts.jsonl",
        "--max-new-tokens", 3, "--out", folder / "out",
    )  # fmt: skip
    assert done.code == 2
    assert "belongs to" in done.err


def test_a_server_is_tried_first(folder: Path) -> None:
    with serving(Dialect(lettered_model(1), "shifted")) as address:
        done = call(
            "overlap", folder / "base", address, "--prompts", folder / "prompts.jsonl", *SHORT
        )
    assert done.code == 2
    assert "shifted by one token" in done.err


def test_runs_with_log_probabilities(tmp_path: Path) -> None:
    for name, shift in (("base", 0.0), ("tuned", -0.5)):
        write(
            tmp_path / f"{name}.jsonl",
            [
                {"task": "t", "item": n, "score": 1, "logprob_gold": -0.1 * (n + 1) + shift * n}
                for n in range(9)
            ],
        )
    both = (tmp_path / "base.jsonl", tmp_path / "tuned.jsonl")
    done = call("overlap", "records", *both, columns=140)
    assert done.code == 0
    assert "-2 [-3" in done.out  # the mean of 0, -0.5, ..., -4
    found = call("overlap", "records", *both, "--json")
    assert json.loads(found.out)["total"]["items"] == 9


def test_forgetting_against_divergence(tmp_path: Path) -> None:
    rows = ["method,model,forgetting,kl_old,kl_new"]
    rows += [
        f"{method},{method}{n},{0.05 * (n + place + 1)},{0.5 * (n + place + 1)},{1 + n % 2}"
        for place, method in enumerate(("sft", "rl", "sdft"))
        for n in range(4)
    ]
    (tmp_path / "models.csv").write_text("\n".join(rows))
    done = call("overlap", "bridge", tmp_path / "models.csv", "--out", tmp_path / "b", columns=120)
    assert done.code == 0, done.err
    assert "12 models of 3 methods" in done.out
    names = {path.name for path in (tmp_path / "b").iterdir()}
    assert {"bridge.json", "forgetting-against-divergence.svg"} <= names
    assert {"predicted-against-measured.png", "predicted-against-measured.vl.json"} <= names
    again = call("overlap", "bridge", tmp_path / "models.csv", "--out", tmp_path / "b")
    assert again.code == 2
    assert call("overlap", "bridge", tmp_path / "models.csv", "--json").code == 0


def test_the_bridge_reads_results(folder: Path, measured: dict[str, Any], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert call("simulate", "--out", runs, "--items", 40).code == 0
    assert call("compare", runs / "before", runs / "after", "--out", tmp_path / "c").code == 0
    table = [
        {"method": name, "model": name, "overlap": str(folder / "out"), "comparison": "c"}
        for name in ("sft", "rl", "sdft")
    ]
    (tmp_path / "models.json").write_text(json.dumps(table))
    done = call("overlap", "bridge", tmp_path / "models.json", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)["models"][0]["divergences"]
    assert found["kl_old"] == measured["groups"][2]["forward_kl"]["value"]
    assert found.keys() == {f"{r}kl{g}" for r in ("", "reverse_") for g in ("", "_old", "_new")}


def test_help_names_every_way_in() -> None:
    done = call("overlap", "--help")
    assert done.code == 0
    for word in ("bridge", "models", "records", "samples", "BEFORE AFTER"):
        assert word in done.out
