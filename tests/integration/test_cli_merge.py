"""`forgetmap merge` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import merge_models
import tiny_models
from command_line import call
from forgetmap.merge.recipe.read import read_recipe
from forgetmap.merge.registry import method_names


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merge")
    model = tiny_models.tiny_model("llama")
    for seed, name in enumerate(("base", "one", "two")):
        other = merge_models.moved(model, seed) if seed else model
        merge_models.save_model(folder / name, other, shards="5GB")
    return folder


def test_the_weight_is_the_share_of_the_second(home: Path, tmp_path: Path) -> None:
    done = call(
        "merge", "linear", home / "base", home / "one", "--weight", 0.2, "--out", tmp_path / "m"
    )
    assert (done.code, done.out) == (0, f"Written to {tmp_path / 'm'}\n")
    base, one, found = (
        merge_models.weights_of(each) for each in (home / "base", home / "one", tmp_path / "m")
    )
    for name, values in found.items():
        torch.testing.assert_close(values, 0.8 * base[name] + 0.2 * one[name])


@pytest.mark.parametrize(
    ("method", "options", "start", "end"),
    [
        ("linear", "--weight", 0, 1),
        ("slerp", "--t", 0, 1),
        ("wise_ft", "--alpha", 0, 1),
        ("task_arithmetic", "--weight", 0, 1),
    ],
)
def test_paths_lead_from_the_first_to_the_second(
    method: str, options: str, start: int, end: int, home: Path, tmp_path: Path
) -> None:
    for value, parent in ((start, "base"), (end, "one")):
        out = tmp_path / parent
        done = call("merge", method, home / "base", home / "one", options, value, "--out", out)
        assert done.code == 0, done.err
        expected, found = merge_models.weights_of(home / parent), merge_models.weights_of(out)
        assert all(torch.equal(found[name], values) for name, values in expected.items())


def test_several_models_each_with_its_values(home: Path, tmp_path: Path) -> None:
    models = [home / name for name in ("base", "one", "two")]
    done = call(
        "merge", "ties", *models, "--weight", 0.4, "--weight", 0.6, "--density", 0.5,
        "--no-normalize", "--dtype", "bfloat16", "--out", tmp_path / "m",
    )  # fmt: skip
    assert done.code == 0, done.err
    recipe = read_recipe(tmp_path / "m" / "merge.yaml")
    assert recipe.base == str(models[0])
    told = [
        {name: rules[0].value for name, rules in part.parameters.items()} for part in recipe.models
    ]
    assert told == [{"weight": 0.4, "density": 0.5}, {"weight": 0.6, "density": 0.5}]
    assert recipe.parameters["normalize"][0].value == 0


def test_a_recipe_is_applied_and_its_copy_makes_the_same(home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "mergekit.yml"
    theirs.write_text(
        f"merge_method: slerp\nbase_model: {home / 'base'}\nmodels:\n"
        f"  - model: {home / 'base'}\n  - model: {home / 'one'}\n"
        "parameters: {t: 0.2}\ndtype: float32\n"
    )
    assert call("merge", "apply", theirs, "--out", tmp_path / "m").code == 0
    again = call(
        "merge",
        "apply",
        tmp_path / "m" / "merge.yaml",
        "--out",
        tmp_path / "n",
        "--shard-size",
        "50KB",
    )
    assert again.code == 0, again.err
    one, two = (merge_models.weights_of(tmp_path / name) for name in ("m", "n"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert len(list((tmp_path / "n").glob("*.safetensors"))) > 1


STUDY = sorted((Path(__file__).parents[1] / "fixtures" / "merge_recipes").glob("*.yaml"))


@pytest.fixture(scope="module")
def study_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders under the names of the study's models."""
    folder = tmp_path_factory.mktemp("study")
    model = tiny_models.tiny_model("llama")
    names = {name for path in STUDY for name in read_recipe(path).all_models}
    for seed, name in enumerate(sorted(names), start=1):
        moved = merge_models.moved(model, seed).to(torch.bfloat16)
        merge_models.save_model(folder / name, moved, shards="5GB")
    return folder


@pytest.mark.parametrize("path", STUDY, ids=lambda path: path.stem)
def test_the_recipes_of_the_study_merge(
    path: Path, study_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study_models)
    done = call("merge", "apply", path, "--out", tmp_path / "m")
    assert done.code == 0, done.err
    found = merge_models.weights_of(tmp_path / "m")
    assert {values.dtype for values in found.values()} == {torch.bfloat16}
    one, two = map(merge_models.weights_of, map(Path, read_recipe(path).part_models))
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    is_linear = "-linear-" in path.name
    assert ("key 'normalize' is unknown to mergekit and ignored" in done.err) == is_linear
    assert ("key 'normalize' is unknown to mergekit and ignored" in card) == is_linear
    share = float(path.stem.rpartition("-")[2])
    for name, values in found.items():
        if is_linear:
            expected = share * one[name].double() + (1 - share) * two[name].double()
            torch.testing.assert_close(values, expected.to(torch.bfloat16), rtol=2**-7, atol=1e-6)
        else:
            assert not torch.equal(values, one[name])


def test_the_methods_are_listed(home: Path) -> None:
    shown = call("merge", "methods", columns=120).out
    assert all(name in shown for name in method_names())
    told = json.loads(call("merge", "methods", "--json").out)
    assert [each["name"] for each in told] == list(method_names())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["linear", "base", "one", "--out", "base"], "is not empty"),
        (["linear", "base", "none", "--out", "m"], "none"),
        (["slerp", "base", "one", "two", "--t", "0.2", "--out", "m"], "takes BASE and 1 models"),
        (["linear", "base", "one", "two", "--weight", "1", "--out", "m"], "1 values of --weight"),
        (["linear", "base", "one", "--chat-template", "no", "--out", "m"], "no chat template 'no'"),
        (["apply", "none.yaml", "--out", "m"], "none.yaml"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(
    arguments: list[str], says: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = call("merge", *arguments)
    assert done.code == 2
    assert says in done.err
    assert "Hint: " in done.err
    assert not (home / "m").exists()


@pytest.mark.parametrize("size", ["0", "5 apples", "-1GB"])
def test_sizes_that_are_none(size: str, home: Path) -> None:
    done = call(
        "merge", "linear", home / "base", home / "one", "--out", "m", f"--shard-size={size}"
    )
    assert done.code == 2
    assert "is not a size" in done.err
