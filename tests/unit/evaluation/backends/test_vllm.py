"""Calls to vLLM, recorded by a stub; the real one needs another installation."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from command_line import call
from forgetmap.errors import ModelError, UsageError
from forgetmap.evaluation.api import open_model
from tiny_models import tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model("llama").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of every engine that was made."""
    made: list[dict[str, Any]] = []

    def make(**arguments: Any) -> Any:
        made.append(arguments)
        if arguments.get("tensor_parallel_size", 1) > 8:
            raise ValueError("World size (16) is larger than the number of available GPUs (8)")
        return SimpleNamespace(
            llm_engine=SimpleNamespace(model_config=SimpleNamespace(max_model_len=256))
        )

    stand_in, platforms = ModuleType("vllm"), ModuleType("vllm.platforms")
    stand_in.LLM = make  # type: ignore[attr-defined]
    platforms.current_platform = SimpleNamespace(is_cpu=lambda: False)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", stand_in)
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    return made


def test_a_model_is_spread_over_several_gpus(model: Path, given: list[dict[str, Any]]) -> None:
    open_model(f"vllm:{model}", tensor_parallel=4, rows=7)
    open_model(f"vllm:{model}")
    spread, single = given
    assert spread["model"] == single["model"] == str(model)
    assert (spread["tensor_parallel_size"], spread["max_num_seqs"]) == (4, 7)
    assert "tensor_parallel_size" not in single


def test_the_command_passes_it_on(model: Path, given: list[dict[str, Any]], tmp_path: Path) -> None:
    call(
        "run", f"vllm:{model}", "--suite", "basics", "--tensor-parallel", "2",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert [made["tensor_parallel_size"] for made in given] == [2]


def test_too_few_gpus_are_an_error_that_says_so(model: Path, given: list[dict[str, Any]]) -> None:
    with pytest.raises(ModelError, match="number of available GPUs") as caught:
        open_model(f"vllm:{model}", tensor_parallel=16)
    assert "as many GPUs" in caught.value.hint


@pytest.mark.parametrize(("parts", "said"), [(16, True), (None, False)])
def test_on_a_cpu_the_hint_says_how_cores_are_divided(
    parts: int | None,
    said: bool,
    model: Path,
    given: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    platform = SimpleNamespace(is_cpu=lambda: True)
    monkeypatch.setattr(sys.modules["vllm.platforms"], "current_platform", platform)

    def fail(**arguments: Any) -> None:
        given.append(arguments)
        raise RuntimeError("Engine core initialization failed.")

    monkeypatch.setattr(sys.modules["vllm"], "LLM", fail)
    with pytest.raises(ModelError, match="initialization failed") as caught:
        open_model(f"vllm:{model}", tensor_parallel=parts)
    assert ("VLLM_CPU_OMP_THREADS_BIND='0-3|4-7'" in caught.value.hint) == said
    assert given[0]["dtype"] == "float32"


@pytest.mark.parametrize(
    ("before", "engine", "said"), [("", "local", "needs vLLM"), ("vllm:", "ray", "Ray actor")]
)
def test_where_it_has_no_effect_it_is_refused(
    before: str, engine: str, said: str, model: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        open_model(f"{before}{model}", tensor_parallel=2, engine=engine)


def test_a_server_decides_about_its_gpus() -> None:
    with pytest.raises(UsageError, match="needs vLLM"):
        open_model("http://localhost:9/v1#m", tensor_parallel=2)
