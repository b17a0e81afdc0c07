"""Runs of another model are no reruns, if both say which model they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import call, write
from forgetmap.comparison import refuse_other_model
from forgetmap.errors import UsageError
from forgetmap.records import AskedInfo, HarnessInfo, ModelInfo, Run, RunInfo, write_run

MODELS = {"s": "models/start", "p": "models/plain", "q": "models/protected"}
WRONG = {"s": range(300, 400), "p": [*range(40), *range(300, 400)], "q": range(250, 400)}
"""Items that each model has wrong."""


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, str]:
    """Each model twice, with the name of its model in its manifest."""
    found = {}
    for name, wrong in WRONG.items():
        for again in ("", "2"):
            rows = [
                {"task": "gsm8k.subset", "item": f"{item}", "score": float(item not in wrong),
                 "response": f"{name}{again}{item}"}
                for item in range(400)
            ]  # fmt: skip
            run = fm.open_run(write(tmp_path / f"{name}{again}.jsonl", rows))
            info = run.info.model_copy(update={"model": ModelInfo(name=MODELS[name])})
            write_run(replace(run, info=info), tmp_path / f"{name}{again}")
            found[name + again] = str(tmp_path / f"{name}{again}")
    return found


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["compare", "s", "q", "--confirm", "s2", "p2"], "p2 plain protected"),
        (["gate", "s", "q", "--confirm", "s2", "p2"], "p2 plain protected"),
        (["compare", "s", "p", "--confirm", "q2", "p2"], "q2 protected start"),
        (["compare", "s", "p", "--noise", "q2"], "q2 protected start"),
        (["drift", "s", "p", "--noise", "q2"], "q2 protected start"),
    ],
)
def test_a_run_of_another_model_is_no_rerun(
    command: list[str], said: str, runs: dict[str, str]
) -> None:
    done = call(*(runs.get(word, word) for word in command))
    assert done.code == 2, done.out
    assert [words for words in said.split() if words not in done.err] == [], done.err


def test_reruns_of_the_models_are_taken(runs: dict[str, str]) -> None:
    total = fm.compare(runs["s"], runs["p"], confirm=(runs["s2"], runs["p2"])).result.total
    assert total.confirmed is not None
    assert (total.verdict, total.confirmed.asked, total.confirmed.held) == ("lost", 40, 40)
    assert fm.compare(runs["s"], runs["p"], noise=runs["s2"]).result.total.loss.low is not None


def run_of(
    name: str | None,
    harness: str | None = "forgetmap",
    weights: str | None = None,
    asked: str | None = None,
    **model: Any,
) -> Run:
    known = None
    if weights or asked:
        known = AskedInfo(model=asked or str(name), weights=weights)
    info = RunInfo(
        model=ModelInfo(name=name, **model),
        harness=HarnessInfo(name=harness, version="1"),
        asked=known,
    )
    empty: Any = None
    return Run(info, empty, None, "run", "run")


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (run_of("models/base"), run_of("/data/models/base")),
        (run_of("../models/base"), run_of("/data/models/base")),
        (run_of("a/base", weights="1"), run_of("b/copy", weights="1")),
        (run_of("a/base", weights="1"), run_of("a/base", weights="2")),
        (run_of("http://one:80/v1#base"), run_of("http://two:81/v1#base")),
        (run_of("org/base", "inspect"), run_of("org/base", "inspect")),
        (run_of("hf/org/base", "inspect"), run_of("vllm/org/base", "inspect")),
        (run_of("org/base", "lm-eval"), run_of("org__base", "lm-eval")),
        (run_of("org/base", revision="main"), run_of("org/base", revision="0" * 40)),
        (run_of("org/base", revision="step1"), run_of("org/base")),
        (run_of("base", adapter="a/lora"), run_of("base", adapter="/x/a/lora")),
        (run_of("base+a/lora"), run_of("base", adapter="a/lora")),
        (run_of(None), run_of("base")),
        (run_of("first-folder", "mmlu-pro"), run_of("second-folder", "mmlu-pro")),
    ],
)
def test_what_may_be_one_model_is_taken(first: Run, again: Run) -> None:
    refuse_other_model(first, again)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (run_of("a/final", weights="1"), run_of("b/final", weights="2")),
        (run_of("models/base"), run_of("models/tuned", weights="2")),
        (run_of("http://one:80/v1#base"), run_of("http://one:80/v1#tuned")),
        (run_of("openai/gpt", "inspect"), run_of("openai/gpt-mini", "inspect")),
        (run_of("org/base", "lm-eval"), run_of("org/tuned", "lm-eval")),
        (run_of("org/base", revision="step1"), run_of("org/base", revision="step2")),
        (run_of("base"), run_of("base", adapter="lora")),
        (run_of("base", adapter="one"), run_of("base", adapter="two")),
        (run_of("m", asked="m/q8.gguf"), run_of("m", asked="m/q4.gguf")),
    ],
)
def test_what_is_stated_to_be_another_model_is_refused(first: Run, again: Run) -> None:
    with pytest.raises(UsageError, match="is a run of the model") as caught:
        refuse_other_model(first, again)
    assert "records convert RERUN --model" in caught.value.hint


def test_one_run_in_two_places_is_named_with_both(runs: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"^fresh before is one of the compared runs: s\n"):
        fm.compare(runs["s"], runs["p"], confirm=(runs["s"], runs["p2"]))
    with pytest.raises(UsageError, match=r"^fresh after is the same run as fresh before\n"):
        fm.compare(runs["s"], runs["p"], confirm=(runs["s2"], runs["s2"]))
