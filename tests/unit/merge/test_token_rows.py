"""Models with different vocabularies: refused, or mapped to one by the chosen rule."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import merge_models
import tiny_models
from forgetmap.errors import ModelError
from forgetmap.merge.api import apply_recipe

pytestmark = pytest.mark.needs_torch

EMBEDDING = "model.embed_tokens.weight"
ROWS = tiny_models.VOCABULARY


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, and one that was given two tokens more."""
    home = tmp_path_factory.mktemp("tokens")
    model = tiny_models.tiny_model("llama")
    merge_models.save_model(home / "base", model)
    grown = merge_models.moved(model, 8)
    torch.manual_seed(4)
    grown.resize_token_embeddings(ROWS + 2, mean_resizing=False)
    grown.save_pretrained(home / "grown")
    tokenizer = copy.deepcopy(tiny_models.tokenizer())
    tokenizer.add_tokens(["<ask>", "<say>"], special_tokens=True)
    tokenizer.save_pretrained(home / "grown")
    return home


def test_without_a_rule_it_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"400 rows.*402 rows"):
        apply_recipe(merge_models.average(folder / "base", folder / "grown"), tmp_path / "out")


@pytest.mark.parametrize("policy", ["smallest", "base"])
def test_the_rows_that_all_have(policy: str, folder: Path, tmp_path: Path) -> None:
    recipe = merge_models.average(folder / "base", folder / "grown", vocabulary=policy)
    out = apply_recipe(recipe, tmp_path / "out")
    one, two = (merge_models.weights_of(folder / name)[EMBEDDING] for name in ("base", "grown"))
    used = len(AutoTokenizer.from_pretrained(folder / "base"))
    found = merge_models.weights_of(out)[EMBEDDING]
    torch.testing.assert_close(found[:used], (one[:used] + two[:used]) / 2)
    spare = one if policy == "base" else (one + two[:ROWS]) / 2  # rows that no token has
    torch.testing.assert_close(found[used:], spare[used:])
    model = AutoModelForCausalLM.from_pretrained(out)
    assert model.config.vocab_size == ROWS
    assert len(AutoTokenizer.from_pretrained(out)) <= ROWS


def test_the_union_has_the_tokens_of_both(folder: Path, tmp_path: Path) -> None:
    recipe = merge_models.average(folder / "base", folder / "grown", vocabulary="union")
    out = apply_recipe(recipe, tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(out)
    theirs = AutoTokenizer.from_pretrained(folder / "grown")
    added = tokenizer.convert_tokens_to_ids(["<ask>", "<say>"])
    assert len(tokenizer) == len(theirs)
    assert tokenizer("the<ask>cat").input_ids.count(added[0]) == 1
    found = merge_models.weights_of(out)
    model = AutoModelForCausalLM.from_pretrained(out)
    assert model.config.vocab_size == len(found[EMBEDDING]) > max(added)
    for tensor in (EMBEDDING, "lm_head.weight"):
        grown = merge_models.weights_of(folder / "grown")[tensor]
        rows = theirs.convert_tokens_to_ids(["<ask>", "<say>"])
        # Only one model has these tokens, so that the other takes its rows from it.
        torch.testing.assert_close(found[tensor][added], grown[rows])
        base = merge_models.weights_of(folder / "base")[tensor]
        torch.testing.assert_close(found[tensor][5], (base[5] + grown[5]) / 2)


def shuffled(home: Path) -> Path:
    """A model whose tokens have other numbers, and whose rows are where these say."""
    other = merge_models.save_model(
        home / "shuffled", tiny_models.tiny_model("llama"), shards="5GB"
    )
    path = other / "tokenizer.json"
    told = json.loads(path.read_text())
    vocabulary = told["model"]["vocab"]
    special = {entry["content"] for entry in told["added_tokens"]}
    names = [name for name in vocabulary if name not in special]
    told["model"]["vocab"] = vocabulary | {
        name: vocabulary[after] for name, after in zip(names, names[1:] + names[:1], strict=True)
    }
    path.write_text(json.dumps(told))
    return other


def test_equal_sizes_of_different_tokens_are_refused(folder: Path, tmp_path: Path) -> None:
    other = shuffled(tmp_path)
    with pytest.raises(ModelError, match="different tokens"):
        apply_recipe(merge_models.average(folder / "base", other), tmp_path / "out")


def test_tokens_are_matched_by_their_text(folder: Path, tmp_path: Path) -> None:
    other = shuffled(tmp_path)
    recipe = merge_models.average(folder / "base", other, vocabulary="base", tokenizer="base")
    out = apply_recipe(recipe, tmp_path / "out")
    ours, theirs = (
        json.loads((each / "tokenizer.json").read_text())["model"]["vocab"]
        for each in (folder / "base", other)
    )
    found, base, rows = (
        merge_models.weights_of(each)[EMBEDDING] for each in (out, folder / "base", other)
    )
    for token in list(ours)[10:60]:
        expected = (base[ours[token]] + rows[theirs[token]]) / 2
        torch.testing.assert_close(found[ours[token]], expected)
