"""Settings of a single model, given after its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import UsageError
from forgetmap.evaluation.own_settings import AskedModel, refuse_own_settings, split_model
from forgetmap.evaluation.settings import Settings, find_style


def test_everything_that_can_be_set() -> None:
    asked = split_model(
        "org/m@main,stage=base,style=few-shot,shots=2,max_tokens=4096,temperature=0.5,top_p=0.9"
    )
    assert asked.model == "org/m@main"
    assert asked.settings(Settings(protocol="published", seed=3)) == Settings(
        protocol="published", stage="base", chat=False, shots=2, max_new_tokens=4096,
        temperature=0.5, top_p=0.9, seed=3,
    )  # fmt: skip


def test_one_model_alone_wins_over_all() -> None:
    common = Settings(protocol="published", stage="tuned", max_new_tokens=9)
    assert split_model("m").settings(common) == common
    own = split_model("m,stage=base").settings(common)
    assert (find_style(common), find_style(own)) == ("chat", "few-shot")
    assert own.max_new_tokens == 9


def test_names_with_commas_stay_names(tmp_path: Path) -> None:
    folder = tmp_path / "m,stage=base"
    folder.mkdir()
    live = object()
    for model in (str(folder), "a,b", "http://host/v1#m", live, folder):
        assert split_model(model) == AskedModel(model)
    assert split_model("a,b,shots=1") == AskedModel("a,b", {"shots": 1})
    assert split_model("m, stage=base , shots=1") == AskedModel("m", {"stage": "base", "shots": 1})


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("m,stages=base", "did you mean 'stage'?"),
        ("m,stage=sft", "stage=base or stage=tuned"),
        ("m,style=talk", "style=plain or style=chat or style=few-shot"),
        ("m,max_tokens=many", "max_tokens=1"),
        ("m,shots=1,b", "the settings are stage"),
        ("m,stage=base,stage=tuned", "remove one stage="),
    ],
)
def test_what_cannot_be_set_is_refused(model: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_model(model)
    assert hint in caught.value.hint


@pytest.mark.parametrize(("protocol", "style"), [("same", "few-shot"), ("published", "plain")])
def test_a_style_of_the_other_protocol_is_refused(protocol: str, style: str) -> None:
    with pytest.raises(UsageError, match="has no style"):
        split_model(f"m,style={style}").settings(Settings(protocol=protocol))  # type: ignore[arg-type]


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="out of range"):
        split_model("m,max_tokens=0").settings(None)


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        (Settings(stage="base", chat=True), True),
        (Settings(protocol="published", stage="base", chat=True), True),
        (Settings(protocol="published", stage="tuned", chat=False), True),
        (Settings(stage="tuned", chat=False), False),
        (Settings(protocol="published", stage="base"), False),
        (Settings(protocol="published", stage="tuned"), False),
        (Settings(chat=True), False),
    ],
)
def test_who_is_asked_otherwise_than_its_stage(settings: Settings, warns: bool) -> None:
    assert bool(settings.notes) == warns


def test_where_all_are_asked_alike_the_option_for_all_is_named() -> None:
    refuse_own_settings(["base", "tuned", Path("m")], "all are asked alike")
    told = "m,stage=base,style=few-shot,shots=2,max_tokens=9,temperature=0.5,top_p=0.9"
    with pytest.raises(UsageError, match="all are asked alike") as caught:
        refuse_own_settings(["base", told], "all are asked alike")
    assert caught.value.hint == (
        "use m, and set --stage base --no-chat --shots 2 --max-new-tokens 9 "
        "--temperature 0.5 --top-p 0.9 for all models."
    )
    with pytest.raises(UsageError) as caught:
        refuse_own_settings(["m,style=chat"], "all are asked alike")
    assert caught.value.hint.endswith("set --chat for all models.")


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_a_setting_beyond_its_range_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match="out of range"):
        split_model(f"m,{name}={value}").settings(None)
