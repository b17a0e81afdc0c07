"""Configs in JSON: round trip, and strict reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import FieldError, MissingInputError, UnreadableError, UsageError
from forgetmap.train import (
    EWC,
    L2SP,
    OAPL,
    SDFT,
    EMAWeights,
    GradientProjection,
    GRPOWithKL,
    KLToStart,
    LoRA,
    MarginPenalty,
    Mitigation,
    OnPolicyReplay,
    Replay,
    SyntheticReplay,
    TTTDiscover,
    WiSEFT,
    load_mitigations,
)
from forgetmap.train.mitigations.files import KINDS
from protected_training import pairs, protected

pytestmark = pytest.mark.needs_torch

ALL: list[Mitigation] = [
    KLToStart("prompts.jsonl", weight=0.5, direction="reverse", top_k=64),
    KLToStart([{"prompt": "a", "completion": "b"}]),
    Replay("replay.jsonl", share=0.1),
    SyntheticReplay(rows=10, prompt="the"),
    L2SP(0.2),
    EWC(None, weight=3.0),
    MarginPenalty("known.jsonl", shape="smooth", bound=0.1),
    GradientProjection("old.jsonl"),
    EMAWeights(0.9),
    WiSEFT(0.25),
    LoRA(rank=4, targets=("q_proj", "v_proj")),
    OnPolicyReplay("prompts.jsonl"),
    OAPL(t2=0.1),
    TTTDiscover(eta=None),
    GRPOWithKL(0.1),
    SDFT(teacher="ema"),
]


@pytest.mark.parametrize("config", ALL, ids=lambda config: config.kind)
def test_one_config_comes_back_as_it_was(tmp_path: Path, config: Mitigation) -> None:
    path = tmp_path / "one.json"
    path.write_text(config.to_json())
    (again,) = load_mitigations(path)
    assert again == config
    assert json.loads(again.to_json()) == json.loads(config.to_json())


def test_every_kind_can_be_kept() -> None:
    assert {config.kind for config in ALL} == set(KINDS)


def test_what_was_applied_comes_back(tmp_path: Path) -> None:
    run = protected(tmp_path, KLToStart(pairs(3)), L2SP())
    path = tmp_path / "all.json"
    path.write_text(run.to_json())
    assert load_mitigations(path) == run.mitigations


def test_configs_do_not_change() -> None:
    with pytest.raises(AttributeError):
        L2SP().weight = 3.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"mitigation": "magic"}, "mitigation"),
        ({"weight": 1.0}, "mitigation"),
        (["l2sp"], "mitigation"),
        ({"mitigation": "l2sp", "heavy": 1.0}, "heavy"),
        ({"mitigation": "l2sp", "weight": "heavy"}, "weight"),
        ({"mitigation": "kl_to_start"}, "prompts"),
        ({"mitigation": "kl_to_start", "prompts": "p.jsonl", "direction": "up"}, "direction"),
    ],
)
def test_entries_that_are_wrong_are_named(tmp_path: Path, entry: Any, field: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps([entry]))
    with pytest.raises(FieldError) as caught:
        load_mitigations(path)
    assert (caught.value.file, caught.value.field) == (str(path), field)


def test_values_that_make_no_sense_say_so(tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text('{"mitigation": "l2sp", "weight": -1}')
    with pytest.raises(FieldError, match="weight is -1"):
        load_mitigations(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        load_mitigations(tmp_path / "none.json")
    path = tmp_path / "broken.json"
    path.write_text("{")
    with pytest.raises(UnreadableError):
        load_mitigations(path)


@pytest.mark.filterwarnings("ignore:You are importing from 'trl.experimental'")
def test_recipes_for_trainers_of_trl(tmp_path: Path) -> None:
    assert LoRA(rank=3).peft_config().r == 3
    args = GRPOWithKL(0.2).config(str(tmp_path), use_cpu=True, bf16=False)
    assert args.beta == 0.2
    args = SDFT(teacher="ema", max_tokens=9).config(str(tmp_path), use_cpu=True, bf16=False)
    assert (args.teacher_model_kind, args.max_completion_length) == ("ema", 9)
    rows = SDFT().rows(
        [
            {"prompt": "q", "completion": "a"},
            {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]},
        ]
    )
    assert rows[0] == {"prompt": "q", "privileged_context": "a"}
    assert rows[1]["prompt"] == [{"role": "user", "content": "q"}]
    with pytest.raises(FieldError, match="no completion"):
        SDFT().rows([{"prompt": "q"}])
    with pytest.raises(UsageError, match="its own trainer"):
        protected(tmp_path, SDFT())
    with pytest.raises(UsageError, match="needs groups"):
        protected(tmp_path, GRPOWithKL())
    with pytest.raises(UsageError, match="template"):
        SDFT(template="{prompt}")
