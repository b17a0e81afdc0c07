"""Arguments that name a model, and errors for those that do not."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import peft
import pytest
import torch

from forgetmap.errors import MissingPackageError, ModelError
from forgetmap.evaluation import find_model, load_model, model_labels
from forgetmap.evaluation.backends.base import Message, ModelSource, Question
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.models import weights_stamp
from tiny_models import CONTEXT, tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    tiny_model("llama").save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def adapter(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LoRA adapter whose weights are not all zero."""
    path = tmp_path_factory.mktemp("adapter")
    torch.manual_seed(5)
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    peft.get_peft_model(load_model(str(folder)).model, config).save_pretrained(path)
    return path


def logits(name: str, adapter: str | None = None) -> torch.Tensor:
    loaded = load_model(name, adapter=adapter)
    with torch.no_grad():
        found = loaded.model(torch.tensor([[5, 6, 7, 8]])).logits
    assert isinstance(found, torch.Tensor)
    return found


def test_a_folder_is_the_model_that_was_saved(folder: Path) -> None:
    with torch.no_grad():
        expected = tiny_model("llama")(torch.tensor([[5, 6, 7, 8]])).logits
    assert torch.equal(logits(str(folder)), expected)
    loaded = load_model(str(folder))
    assert loaded.model.dtype == torch.float32
    assert not loaded.model.training
    assert loaded.tokenizer("the cat").input_ids == tokenizer()("the cat").input_ids


def test_an_adapter_is_added_however_it_is_named(folder: Path, adapter: Path) -> None:
    base = load_model(str(folder)).model
    with torch.no_grad():
        expected = peft.PeftModel.from_pretrained(base, adapter)(
            torch.tensor([[5, 6, 7, 8]])
        ).logits
    for found in (
        logits(str(adapter)),
        logits(f"{folder}+{adapter}"),
        logits(str(folder), adapter=str(adapter)),
    ):
        assert torch.allclose(found, expected, atol=1e-5)
    assert not torch.allclose(expected, logits(str(folder)), atol=1e-2)


def test_half_precision_on_request(folder: Path) -> None:
    assert load_model(str(folder), dtype="bfloat16").model.dtype == torch.bfloat16


def test_where_a_model_comes_from_can_be_named(folder: Path, adapter: Path, tmp_path: Path) -> None:
    gguf = tmp_path / "some.gguf"
    gguf.write_bytes(b"GGUF\x03" + bytes(19))
    for name in (f"{folder}/", f"{folder}+{adapter}", str(gguf)):
        source = find_model(name)
        assert find_model(str(source)) == source
    assert str(find_model(f"{folder}/")) == str(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "There is no model ./nowhere."),
        ("/no/such/folder", "There is no model /no/such/folder."),
        ("no/such.gguf", "The file no/such.gguf does not exist."),
        ("a b", "There is no model a b."),
        ("../no-such-model", "There is no model ../no-such-model."),
    ],
)
def test_a_missing_path_is_said_to_be_missing(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError) as caught:
        load_model(name)
    assert caught.value.message == message


def test_a_hub_model_that_cannot_be_had_is_said_quickly() -> None:
    start = time.monotonic()
    with pytest.raises(ModelError, match="nobody-here/no-such-model") as caught:
        load_model("nobody-here/no-such-model")
    assert time.monotonic() - start < 60
    assert caught.value.hint.startswith("check")


def test_a_missing_folder_is_named_where_the_hub_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingPackageError, match="There is no folder models/base, and a model"):
        find_model("models/base")


def test_a_folder_or_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ModelError, match=r"no config\.json"):
        load_model(str(tmp_path))
    with pytest.raises(ModelError, match="not a GGUF file"):
        load_model(str(tmp_path / "notes.txt"))
    with pytest.raises(ModelError, match="no adapter"):
        load_model(str(tmp_path), adapter=str(tmp_path))


@pytest.mark.parametrize("config", ["{", "[]", "{}", '{"base_model_name_or_path": ""}'])
def test_an_adapter_without_a_base(tmp_path: Path, config: str) -> None:
    (tmp_path / "adapter_config.json").write_text(config)
    with pytest.raises(ModelError, match=r"adapter_config\.json"):
        find_model(str(tmp_path))


def test_broken_weights_are_an_error_with_the_model_in_it(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(
            file.read_bytes()[: 10_000 if "safe" in file.name else None]
        )
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        load_model(str(tmp_path))
    assert str(tmp_path) in caught.value.message


def test_code_of_a_model_is_not_run_unasked(tmp_path: Path) -> None:
    config = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ModelError) as caught:
        load_model(str(tmp_path))
    assert "--trust-remote-code" in caught.value.hint
    assert not (tmp_path / "ran").exists()


def test_an_unknown_device_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="device nonsense"):
        load_model(str(folder), device="nonsense")


def test_a_missing_package_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackageError) as caught:
        load_model(str(folder))
    assert 'pip install "forgetmap[run]"' in caught.value.hint


def test_chat_needs_a_template(folder: Path) -> None:
    loaded = load_model(str(folder))
    backend = TransformersBackend(loaded.model, loaded.tokenizer)
    assert not backend.has_chat_template
    with pytest.raises(ModelError, match="no chat template"):
        backend.chat([Message("user", "hello")])
    loaded.tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    assert backend.chat([Message("user", "hello")]) == "user: hello\nassistant:"
    loaded.tokenizer.chat_template = "{{ raise_exception('no system role') }}"
    with pytest.raises(ModelError, match="no system role"):
        backend.chat([Message("user", "hello")])


def test_the_context_is_what_the_model_states_or_what_is_asked_for(folder: Path) -> None:
    loaded = load_model(str(folder))
    assert TransformersBackend(loaded.model, loaded.tokenizer).context == CONTEXT
    assert TransformersBackend(loaded.model, loaded.tokenizer, context=64).context == 64


def test_the_opening_token_is_put_in_front_once(folder: Path) -> None:
    loaded = load_model(str(folder))
    without = TransformersBackend(loaded.model, loaded.tokenizer).count_tokens(
        ["the cat", "<s>the cat"]
    )
    from tokenizers.processors import TemplateProcessing

    loaded.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    backend = TransformersBackend(loaded.model, loaded.tokenizer)
    assert backend.count_tokens(["the cat", "<s>the cat"]) == [without[0] + 1, without[1]]
    plain, opened = (
        dict(backend.loglikelihood([Question(text, (" sat",))]))[0] for text in ("a", "<s>a")
    )
    assert plain == opened


@pytest.mark.parametrize(
    ("models", "labels"),
    [
        (["models/base", Path("models/sft")], ["base", "sft"]),
        (["/home/ann/runs/base/", "org/name"], ["base", "name"]),
        (["a/model", "b/model", "c"], ["a/model", "b/model", "c"]),
        (["x/a/model", "y/a/model"], ["x/a/model", "y/a/model"]),
        (["model", "a/model"], ["model", "a/model"]),
        (["model", "model"], ["model", "model (2)"]),
        (["http://host/v1#org/name", "base+adapters/lora"], ["name", "lora"]),
    ],
)
def test_models_are_called_by_what_tells_them_apart(models: list[Any], labels: list[str]) -> None:
    assert model_labels(models) == labels


def test_the_stamp_of_a_gguf_file_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    before = weights_stamp(ModelSource(str(tmp_path), gguf="a.gguf"))
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    assert weights_stamp(ModelSource(str(tmp_path), gguf="a.gguf")) == before
    (tmp_path / "a.gguf").write_bytes(b"GGUF2")
    assert weights_stamp(ModelSource(str(tmp_path), gguf="a.gguf")) != before
