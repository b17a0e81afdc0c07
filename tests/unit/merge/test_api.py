"""Applied recipes: right values, folders that transformers loads, nothing overwritten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

import merge_models
import tiny_models
from forgetmap.errors import FieldError, ForgetmapError, ModelError, OutputError
from forgetmap.merge.api import apply_recipe
from forgetmap.merge.checkpoint import Checkpoint
from forgetmap.merge.engine import PIECE, MergeStep
from forgetmap.merge.recipe.model import Recipe
from forgetmap.merge.recipe.read import read_recipe

pytestmark = pytest.mark.needs_torch

KINDS = ("llama", "gpt2", "window")


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parents")
    for kind in KINDS:
        model = tiny_models.tiny_model(kind)
        merge_models.save_model(folder / f"{kind}-base", model)
        merge_models.save_model(
            folder / f"{kind}-tuned", merge_models.moved(model, 5), shards="5GB"
        )
    return folder


def pair(parents: Path, kind: str = "llama") -> tuple[Path, Path]:
    return parents / f"{kind}-base", parents / f"{kind}-tuned"


@pytest.mark.parametrize("kind", KINDS)
def test_the_result_is_the_mean_and_generates(kind: str, parents: Path, tmp_path: Path) -> None:
    base, tuned = pair(parents, kind)
    recipe = merge_models.average(base, tuned, weights=(0.75, 0.25))
    out = apply_recipe(recipe, tmp_path / "out", shard_bytes=50_000)
    one, two, found = map(merge_models.weights_of, (base, tuned, out))
    assert found.keys() == one.keys()
    for name, values in found.items():
        expected = (0.75 * one[name].double() + 0.25 * two[name].double()).float()
        torch.testing.assert_close(values, expected, rtol=1e-6, atol=1e-7)
    model = AutoModelForCausalLM.from_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    asked = tokenizer("the cat sat", return_tensors="pt")
    written = model.generate(**asked, max_new_tokens=4, do_sample=False)
    assert written.shape[1] > asked.input_ids.shape[1]
    loaded = model.state_dict()
    assert all(torch.equal(loaded[name], values) for name, values in found.items())


def test_files_hold_what_the_index_says_and_no_more(parents: Path, tmp_path: Path) -> None:
    out = apply_recipe(merge_models.average(*pair(parents)), tmp_path / "out", shard_bytes=50_000)
    index = json.loads((out / "model.safetensors.index.json").read_text())
    files = sorted(path.name for path in out.glob("*.safetensors"))
    assert len(files) > 2
    assert files == sorted(set(index["weight_map"].values()))
    total = 0
    for file in files:
        with safe_open(out / file, "pt") as opened:
            sizes = {name: opened.get_tensor(name).nbytes for name in opened.keys()}  # noqa: SIM118
            assert {name for name, at in index["weight_map"].items() if at == file} == set(sizes)
            assert opened.metadata() == {"format": "pt"}
        assert len(sizes) == 1 or sum(sizes.values()) <= 50_000
        total += sum(sizes.values())
    assert index["metadata"]["total_size"] == total
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]


def test_pieces_give_the_same_as_whole_tensors(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    shape = (3, PIECE + 12_345)
    models = [
        {"model.layers.0.w": torch.randn(shape, generator=generator).bfloat16()} for _ in range(3)
    ]
    folders = [
        merge_models.save_tensors(tmp_path / f"{at}", each) for at, each in enumerate(models)
    ]
    recipe = merge_models.average(*folders, weights=(0.2, 0.3, 0.5))
    found = merge_models.weights_of(apply_recipe(recipe, tmp_path / "out"))["model.layers.0.w"]
    first, second, third = (each["model.layers.0.w"].double() for each in models)
    expected = (0.2 * first + 0.3 * second + 0.5 * third).bfloat16()
    torch.testing.assert_close(found, expected, rtol=2**-7, atol=1e-6)
    assert (found == expected).float().mean() > 0.99  # float32 rounds a tie the other way, rarely


@pytest.mark.parametrize(("weights", "same_as"), [((1.0, 0.0), 0), ((0.0, 1.0), 1)])
def test_all_weight_on_one_returns_it_bit_for_bit(
    weights: tuple[float, float], same_as: int, parents: Path, tmp_path: Path
) -> None:
    both = pair(parents)
    out = apply_recipe(merge_models.average(*both, weights=weights), tmp_path / "out")
    expected = merge_models.weights_of(both[same_as])
    found = merge_models.weights_of(out)
    assert all(torch.equal(found[name], values) for name, values in expected.items())


@pytest.mark.parametrize("threads", [1, 5])
def test_neither_threads_nor_shards_change_a_value(
    threads: int, parents: Path, tmp_path: Path
) -> None:
    base, tuned = map(str, pair(parents))
    told = {"method": "ties", "base": base, "models": [{"model": tuned}],
            "parameters": {"weight": 0.7, "density": 0.4}}  # fmt: skip
    recipe = Recipe.model_validate(told)
    one = apply_recipe(recipe, tmp_path / "one", threads=2)
    two = apply_recipe(recipe, tmp_path / "two", threads=threads, shard_bytes=30_000)
    first, second = merge_models.weights_of(one), merge_models.weights_of(two)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_dtype_of_the_result_is_that_of_the_recipe(parents: Path, tmp_path: Path) -> None:
    recipe = merge_models.average(*pair(parents), out_dtype="bfloat16")
    out = apply_recipe(recipe, tmp_path / "out")
    assert {values.dtype for values in merge_models.weights_of(out).values()} == {torch.bfloat16}
    assert json.loads((out / "config.json").read_text())["dtype"] == "bfloat16"
    assert AutoModelForCausalLM.from_pretrained(out).dtype == torch.bfloat16


def test_tied_weights_stay_tied(parents: Path, tmp_path: Path) -> None:
    out = apply_recipe(merge_models.average(*pair(parents, "gpt2")), tmp_path / "out")
    assert "lm_head.weight" not in merge_models.weights_of(out)
    model = AutoModelForCausalLM.from_pretrained(out)
    assert model.lm_head.weight.data_ptr() == model.transformer.wte.weight.data_ptr()


def test_card_recipe_tokenizer_and_configuration_come_along(parents: Path, tmp_path: Path) -> None:
    base, tuned = pair(parents)
    (tuned / "chat_template.jinja").write_text("{{ messages }}")
    try:
        recipe = merge_models.average(base, tuned, chat_template=str(tuned))
        out = apply_recipe(recipe, tmp_path / "out")
    finally:
        (tuned / "chat_template.jinja").unlink()
    assert read_recipe(out / "merge.yaml") == recipe
    card = (out / "README.md").read_text()
    assert recipe.as_yaml() in card
    assert "weighted mean" in card
    assert (out / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    assert AutoTokenizer.from_pretrained(out).chat_template == "{{ messages }}"
    assert (out / "generation_config.json").is_file()
    before, after = (json.loads((each / "config.json").read_text()) for each in (base, out))
    assert {key: after[key] for key in before if key != "_name_or_path"} == {
        key: value for key, value in before.items() if key != "_name_or_path"
    }


def test_slices_change_the_number_of_layers(parents: Path, tmp_path: Path) -> None:
    base, tuned = map(str, pair(parents))
    slices = [
        {"sources": [{"model": base, "layer_range": [0, 2]}]},
        {"sources": [{"model": tuned, "layer_range": [1, 2]}]},
    ]
    recipe = Recipe.model_validate({"method": "passthrough", "slices": slices})
    out = apply_recipe(recipe, tmp_path / "out")
    assert AutoModelForCausalLM.from_pretrained(out).config.num_hidden_layers == 3
    found, source = merge_models.weights_of(out), merge_models.weights_of(Path(tuned))
    name = "model.layers.{}.mlp.up_proj.weight"
    assert torch.equal(found[name.format(2)], source[name.format(1)])


def test_progress_ends_at_all(parents: Path, tmp_path: Path) -> None:
    steps: list[MergeStep] = []
    out = apply_recipe(
        merge_models.average(*pair(parents)), tmp_path / "out", on_progress=steps.append
    )
    written = sum(values.nbytes for values in merge_models.weights_of(out).values())
    assert (steps[-1].done, steps[-1].total, steps[-1].kept) == (written, written, 0)


# --- Bad input: a typed error, and what was there stays ------------------------------------------


def earlier_result(parents: Path, tmp_path: Path) -> dict[str, bytes]:
    out = apply_recipe(merge_models.average(*pair(parents)), tmp_path / "out")
    return {path.name: path.read_bytes() for path in out.iterdir()}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("method", ["linear", "ties"])
def test_broken_weights_are_named_and_nothing_is_replaced(
    method: str, value: float, parents: Path, tmp_path: Path
) -> None:
    before = earlier_result(parents, tmp_path)
    name = "model.layers.1.mlp.up_proj.weight"
    model = merge_models.moved(tiny_models.tiny_model("llama"), 6)
    model.state_dict()[name][3, 4] = value
    broken = merge_models.save_model(tmp_path / "broken", model)
    told = {"method": method, "models": [{"model": str(broken)}], "base": str(pair(parents)[0]),
            "parameters": {"weight": 0.5}}  # fmt: skip
    if method == "linear":
        told = {**told, "models": [{"model": told.pop("base")}, {"model": str(broken)}]}
    with pytest.raises(FieldError, match="NaN or infinite") as caught:
        apply_recipe(Recipe.model_validate(told), tmp_path / "out", overwrite=True)
    assert (caught.value.file, caught.value.field) == (str(broken), name)
    assert content(tmp_path / "out") == before
    assert not (tmp_path / ".out.merging").exists()


def test_values_that_overflow_are_named(tmp_path: Path) -> None:
    models = [
        merge_models.save_tensors(tmp_path / name, {"w": torch.full((4,), 6e4)}) for name in "ab"
    ]
    recipe = merge_models.average(*models, out_dtype="float16", parameters={"normalize": False})
    with pytest.raises(FieldError, match="outside the range of float16"):
        apply_recipe(recipe, tmp_path / "out")


def test_mismatched_shapes(parents: Path, tmp_path: Path) -> None:
    tensors = merge_models.weights_of(pair(parents)[0])
    tensors["model.norm.weight"] = torch.ones(5)
    told = json.loads((pair(parents)[0] / "config.json").read_text())
    other = merge_models.save_tensors(tmp_path / "other", tensors, **told)
    with pytest.raises(ModelError, match=r"model\.norm\.weight"):
        apply_recipe(merge_models.average(pair(parents)[0], other), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unknown_architecture(tmp_path: Path) -> None:
    models = [
        merge_models.save_tensors(tmp_path / name, {"w": torch.ones(4)}, model_type="strange")
        for name in "ab"
    ]
    recipe = Recipe.model_validate(
        {"method": "slerp", "base": str(models[0]), "models": [{"model": str(models[1])}],
         "parameters": {"t": [0.0, 1.0]}}
    )  # fmt: skip
    with pytest.raises(ModelError, match="strange"):
        apply_recipe(recipe, tmp_path / "out")


def test_a_folder_with_something_in_it_is_left_alone(parents: Path, tmp_path: Path) -> None:
    recipe = merge_models.average(*pair(parents))
    out = tmp_path / "out"
    out.mkdir()
    apply_recipe(recipe, out)  # an empty one is as good as none
    with pytest.raises(OutputError, match="not empty"):
        apply_recipe(recipe, out)
    other = tmp_path / "letters"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="not a model merged by forgetmap"):
        apply_recipe(recipe, other, overwrite=True)
    assert content(other) == {"letter.txt": b"dear"}


def test_a_merged_model_is_replaced_if_asked(parents: Path, tmp_path: Path) -> None:
    before = earlier_result(parents, tmp_path)
    recipe = merge_models.average(*pair(parents), weights=(0.9, 0.1))
    out = apply_recipe(recipe, tmp_path / "out", overwrite=True)
    assert content(out)["model.safetensors"] != before["model.safetensors"]
    assert read_recipe(out / "merge.yaml") == recipe
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_model_is_not_merged_into_itself(parents: Path, tmp_path: Path) -> None:
    first = apply_recipe(merge_models.average(*pair(parents)), tmp_path / "out")
    before = content(first)
    with pytest.raises(OutputError, match="folder of the input model"):
        apply_recipe(merge_models.average(first, pair(parents)[0]), first, overwrite=True)
    assert content(first) == before


def test_a_disk_that_is_too_small_is_noticed_before(
    parents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        free = 1000

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Full)
    with pytest.raises(OutputError, match=r"needs .* GB"):
        apply_recipe(merge_models.average(*pair(parents)), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("template", ["no such template", "llama9"])
def test_an_unknown_chat_template(template: str, parents: Path, tmp_path: Path) -> None:
    recipe = merge_models.average(*pair(parents), chat_template=template)
    with pytest.raises(ModelError, match=template):
        apply_recipe(recipe, tmp_path / "out")


def test_a_missing_shard_stops_it_before_anything(parents: Path, tmp_path: Path) -> None:
    broken = merge_models.save_model(tmp_path / "broken", tiny_models.tiny_model("llama"))
    next(broken.glob("*.safetensors")).unlink()
    with pytest.raises(ForgetmapError, match="shards are missing"):
        apply_recipe(merge_models.average(pair(parents)[0], broken), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert Checkpoint.open(pair(parents)[0]).tensors
