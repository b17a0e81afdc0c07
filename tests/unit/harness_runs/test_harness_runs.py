"""Commands of harnesses, refused options, and the import of their logs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import peft
import pytest
import torch

import forgetmap as fm
from command_line import Done, call
from forgetmap.errors import HarnessError, OutputError, UsageError
from forgetmap.evaluation import ModelSource, load_model
from forgetmap.harness_runs.lm_eval import LM_EVAL, weighed
from forgetmap.harness_runs.request import Driver, HarnessRequest
from forgetmap.harness_runs.run import DRIVERS, HarnessPlan, plan_harness, run_harness
from tiny_models import tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch

HERE = Path(__file__).parents[2] / "support"


def small(what: str) -> Driver:
    """A driver of the program beside this file, which logs as lm-eval does."""
    return replace(
        LM_EVAL,
        name="small",
        distribution="pytest",
        module="small_harness",
        arguments=lambda _, work: [what, str(work / "logs")],
        environment=lambda _: {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
    )


def plan_of(what: str, out: Path, **order: Any) -> HarnessPlan:
    asked = HarnessRequest(ModelSource("some/model"), ("who",), **order)
    return HarnessPlan(small(what), asked, sys.executable, "1.0", out.parent / f".{out.name}.small")


def arguments(harness: str, source: ModelSource | None = None, **order: Any) -> list[str]:
    asked = HarnessRequest(
        source or ModelSource("some/model"), ("a", "b"), dtype="float32", **order
    )
    return DRIVERS[harness].arguments(asked, Path("/logs"))


def told(found: list[str], name: str) -> str:
    return found[found.index(name) + 1]


def test_a_failed_harness_is_quoted_and_can_be_run_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(HarnessError) as caught:
        run_harness(plan_of("fail", out), out)
    assert caught.value.output == ("working", "the disk \x1b[31m is on fire")
    assert "ended with exit code 3" in caught.value.message
    assert str(tmp_path / ".run.small" / "output.log") in caught.value.hint
    assert not out.exists()
    run = run_harness(plan_of("fail", out), out)
    assert (run.info.run_id, run.info.model.name) == ("run", "some/model")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert fm.open_run(out).scores.collect()["score"].to_list() == [1.0]
    assert shlex.split(run.info.command or "")[1:4] == ["-m", "small_harness", "fail"]
    assert (out / "logs" / "output.log").read_text().endswith("asking\n")


def test_a_harness_that_logs_nothing_failed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(HarnessError, match="wrote no log with samples"):
        run_harness(plan_of("letters", out), out)


def test_another_order_does_not_go_on_with_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(HarnessError):
        run_harness(plan_of("fail", out), out)
    with pytest.raises(OutputError, match="another model, task or setting"):
        run_harness(plan_of("fail", out, limit=3), out)
    assert (tmp_path / ".run.small" / "logs" / "tried").exists()


def test_weights_that_change_change_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    task = tmp_path / "task.py"
    task.write_text("")
    order = HarnessRequest(
        ModelSource(str(tmp_path)), ("one",), more=("--include_path", str(tmp_path))
    )
    plan = HarnessPlan(LM_EVAL, order, "python", "1", tmp_path)
    first = plan.fingerprint
    assert plan.fingerprint == first
    (tmp_path / "results.json").write_text("{}")
    assert plan.fingerprint == first, "what runs leave there does not count"
    task.write_text("# another")
    second = plan.fingerprint
    (tmp_path / "model.safetensors").write_bytes(b"12")
    assert len({first, second, plan.fingerprint}) == 3


def test_what_lm_eval_is_told(tmp_path: Path) -> None:
    found = arguments("lm-eval", ModelSource("base", revision="v2", adapter=str(tmp_path)), shots=2)
    model = json.loads(told(found, "--model_args"))
    assert model == {
        "pretrained": "base", "revision": "v2", "dtype": "float32", "peft": str(tmp_path),
    }  # fmt: skip
    assert json.loads(told(found, "--gen_kwargs")) == {"do_sample": False, "temperature": 0.0}
    assert (told(found, "--tasks"), told(found, "--num_fewshot")) == ("a,b", "2")
    sampled = arguments("lm-eval", temperature=0.5, top_p=0.9, max_new_tokens=7, chat=True)
    assert json.loads(told(sampled, "--gen_kwargs")) == {
        "do_sample": True, "temperature": 0.5, "top_p": 0.9, "max_gen_toks": 7,
    }  # fmt: skip
    assert "--apply_chat_template" in sampled


def test_what_lm_eval_is_told_of_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ModelSource("http://host/v1#org/name", via="server")
    found = arguments("lm-eval", server, weighs=False)
    assert told(found, "--model") == "local-completions"
    model = json.loads(told(found, "--model_args"))
    assert (model["model"], model["base_url"]) == ("org/name", "http://host/v1/completions")
    assert model["tokenizer_backend"] == "none"
    assert "tokenizer_backend" not in told(arguments("lm-eval", server), "--model_args")
    chat = json.loads(told(arguments("lm-eval", server, chat=True), "--model_args"))
    assert chat["base_url"] == "http://host/v1/chat/completions"
    monkeypatch.setenv("OPENAI_API_KEY", "of somebody else")
    monkeypatch.delenv("FORGETMAP_API_KEY", raising=False)
    assert LM_EVAL.environment(HarnessRequest(server, ("a",))) == {"OPENAI_API_KEY": "none"}


def test_what_inspect_is_told(tmp_path: Path) -> None:
    found = arguments("inspect", ModelSource(str(tmp_path)), repeats=3, temperature=1.0, limit=5)
    assert told(found, "--model") == "hf/local"
    assert f"model_path={tmp_path}" in found
    assert "do_sample=true" in found
    assert (told(found, "--epochs"), told(found, "--limit")) == ("3", "5")
    assert found[1:3] == ["a", "b"]
    assert told(arguments("inspect", ModelSource("org/name")), "--model") == "hf/org/name"
    served = arguments("inspect", ModelSource("http://host/v1#org/name", via="server"))
    assert told(served, "--model") == "openai-api/forgetmap/org/name"
    assert told(served, "--model-base-url") == "http://host/v1"


def test_what_lighteval_is_told() -> None:
    found = arguments("lighteval", shots=2, limit=4, max_new_tokens=9)
    assert found[0] == "accelerate"
    assert found[1].startswith("model_name=some/model,dtype=float32,cache_dir=/logs/answers,")
    assert "generation_parameters={temperature:0.0,max_new_tokens:9,seed:0}" in found[1]
    assert found[2] == "a|2,b|2"
    assert "--save-details" in found


def test_an_adapter_is_merged_where_the_harness_cannot(tmp_path: Path) -> None:
    base, adapter, out = tmp_path / "base", tmp_path / "adapter", tmp_path / "run"
    tiny_model("llama").save_pretrained(base)
    tokenizer().save_pretrained(base)
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    peft.get_peft_model(load_model(str(base)).model, config).save_pretrained(adapter)
    source = ModelSource(str(base), adapter=str(adapter))
    plan = replace(plan_of("fail", out), request=HarnessRequest(source, ("who",), dtype="float32"))
    plan = replace(plan, driver=replace(plan.driver, merges=True))
    with pytest.raises(HarnessError):
        run_harness(plan, out)
    tokens = torch.arange(8)[None]
    merged, both, alone = (
        load_model(name).model(tokens).logits for name in (str(plan.stand_in), source, str(base))
    )
    assert torch.allclose(merged, both, atol=1e-5)
    assert not torch.allclose(merged, alone, atol=1e-3)
    info = run_harness(plan, out).info
    assert (info.model.name, info.model.adapter) == (str(base), str(adapter))


def test_a_harness_that_litters_gets_links(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    out = tmp_path / "run"
    plan = replace(plan_of("fail", out), request=HarnessRequest(ModelSource(str(model)), ("who",)))
    plan = replace(plan, driver=replace(plan.driver, litters=True))
    with pytest.raises(HarnessError):
        run_harness(plan, out)
    linked = tmp_path / ".run.small" / "linked"
    assert plan.stand_in == linked
    assert (linked / "config.json").resolve() == (model / "config.json").resolve()
    (linked / "litter").touch()
    assert run_harness(plan, out).info.model.name == str(model)
    assert [file.name for file in model.iterdir()] == ["config.json"]


def test_logs_of_lighteval_are_put_where_they_are_found(tmp_path: Path) -> None:
    for name in (
        "details/home/.hidden/m/2026/details_a_2026.parquet",
        "results/home/.hidden/m/results_2026.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    for _ in range(2):
        DRIVERS["lighteval"].tidy(tmp_path)
    found = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*_2026.*")}
    assert found == {"details/model/2026/details_a_2026.parquet", "results/model/results_2026.json"}


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "--repeats": ("lm-eval", {"repeats": 2, "temperature": 1.0}),
    "--shots": ("inspect", {"shots": 1}),
    "a GGUF file": ("inspect", {"source": ModelSource("folder", gguf="model.gguf")}),
    "a revision": ("inspect", {"source": ModelSource("org/name", revision="v2")}),
    "--no-chat": ("inspect", {"source": ModelSource("http://h/v1#m", via="server"), "chat": False}),
    "a server": ("lighteval", {"source": ModelSource("http://h/v1#m", via="server")}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_harness_cannot_do_is_refused(what: str) -> None:
    harness, order = REFUSED[what]
    with pytest.raises(UsageError, match=what):
        arguments(harness, **order)


def test_weighed_tasks_are_known_by_the_results(tmp_path: Path) -> None:
    configs = {"a": {"output_type": "generate_until"}, "b": {"output_type": "multiple_choice"}}
    (tmp_path / "results_1.json").write_text(json.dumps({"configs": configs}))
    assert weighed(tmp_path) == ["b"]


def run(*more: object, harness: str = "lm-eval") -> Done:
    return call("run", "org/name", "--out", "nowhere", "--harness", harness, *more)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


WRONG = {
    "no tasks given": [],
    "--suite has no effect with": ["--tasks", "a", "--suite", "basics"],
    "--output_path of lm-eval is set by": ["--tasks", "a", "--", "--output_path", "x"],
    "--log_s of lm-eval is set by": ["--tasks", "a", "--", "--log_s"],
    "contains the API key": ["--tasks", "a", "--", "--header=sesame"],
    "would be identical": ["--tasks", "a", "--repeats", "2"],
    "is not an executable program": ["--tasks", "a", "--harness-python", "no/such/python"],
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_orders_are_told(
    what: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGETMAP_API_KEY", "sesame")
    done = call("run", model, "--out", tmp_path / "run", "--harness", "lm-eval", *WRONG[what])
    assert done.code == 2
    assert what in done.err
    assert "\nHint: " in done.err
    assert not (tmp_path / "run").exists()


def test_what_only_a_harness_takes_needs_one(model: Path, tmp_path: Path) -> None:
    for more in (("--", "-x"), ("--harness-python", "python"), ()):
        done = call("run", model, "--out", tmp_path / "run", *more)
        assert (done.code, done.out) == (2, "")
        assert "--harness" in done.err


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without any package."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


@pytest.mark.parametrize("harness", DRIVERS)
def test_a_harness_that_is_not_installed(
    harness: str, bare: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(HarnessError, match=f"{harness} is not installed") as caught:
        plan_harness(
            harness, HarnessRequest(ModelSource(str(model)), ("a",)), Path("run"), python=str(bare)
        )
    assert caught.value.hint.startswith("pip install ")


def test_the_environment_named_is_the_one_used(
    bare: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    packages = next((bare / "lib").glob("python*")) / "site-packages"
    info = packages / "lm_eval-0.9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lm_eval\nVersion: 0.9.9\n")
    ask = ("--harness", "lm-eval", "--harness-python", bare, "--tasks", "a", "--device", "cpu")
    done = call("run", model, "--out", tmp_path / "run", *ask, "--dry-run")
    assert done.code == 0, done.err
    command = shlex.split(done.out)
    assert command[:3] == [str(bare / "bin" / "python"), "-m", "lm_eval"]
    assert json.loads(told(command, "--model_args"))["dtype"] == "float32"
    assert not (tmp_path / "run").exists()
    done = call("run", model, "--out", tmp_path / "run", *ask)
    assert done.code == 2
    assert "No module named lm_eval" in done.err
