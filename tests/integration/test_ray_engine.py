"""Items spread over a real Ray cluster: the same records as locally, even if workers die."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from forgetmap.errors import ModelError, UsageError
from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.base import (
    Decoding,
    Failure,
    LoadOptions,
    Message,
    Prompt,
    Question,
)
from forgetmap.evaluation.backends.ray import Batch, RayActors, RayBackend, actor_spec, open_ray
from forgetmap.evaluation.backends.ray_cluster import Share, connect_ray
from forgetmap.evaluation.models import find_model
from forgetmap.evaluation.run import Step, run_model
from forgetmap.evaluation.settings import Settings
from small_suites import small_suite
from tiny_models import tiny_model, tokenizer
from written_runs import records

ITEMS = 24
TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
SETTINGS = Settings(max_new_tokens=12)
NEW_TOKENS = Decoding(max_new_tokens=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model("llama").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster with two processors, whatever this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
            object_store_memory=2**27, logging_level="ERROR",
        )  # fmt: skip
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def actors(cluster: None, model: Path) -> RayBackend:
    return open_ray(find_model(str(model)), LoadOptions(device="cpu"), actors=2)


@pytest.fixture(scope="module")
def local_records(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Settings], list[dict[str, Any]]]:
    """The records of the local run with some settings, which runs once."""
    backend = open_model(str(model), device="cpu")[0]
    return cache(
        lambda settings: answered(backend, tmp_path_factory.mktemp("runs") / "local", settings)
    )


def answered(
    backend: Any, out: Path, settings: Settings, report: Callable[[Step], None] | None = None
) -> list[dict[str, Any]]:
    _, who = open_model(backend, name="run")
    run_model(backend, small_suite(ITEMS), out, who, settings, on_progress=report)
    return records(out)


def actors_of(name: str) -> list[psutil.Process]:
    """Processes of the cluster that are doing this."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            command = process.cmdline()
        except psutil.NoSuchProcess:
            continue
        if command and command[0].startswith(name):
            found.append(process)
    return found


@dataclass
class Killer:
    """Stops an actor, and kills it once it must have a batch in hand, as if its machine were lost.

    A tiny model answers so quickly that an actor is hardly ever seen at work, but one that is
    stopped keeps the next batch it gets. One dies while options are weighed, one over texts.
    """

    stopped: list[psutil.Process] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)

    def __call__(self, step: Step) -> None:
        part = 2 * ITEMS * len(self.killed)
        if len(self.killed) == 2:
            return
        if len(self.stopped) == len(self.killed) and step.done > part:
            self.stopped.append(actors_of("ray::ModelActor")[0])
            self.stopped[-1].suspend()
        elif step.done >= part + ITEMS:
            self.stopped[-1].kill()
            self.killed.append(self.stopped[-1].pid)


def assert_same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(found) == len(wanted) > ITEMS
    for one, other in zip(found, wanted, strict=True):
        for name in one:
            if name.startswith("logprob") and other[name] is not None:
                assert one[name] == pytest.approx(other[name], abs=1e-4)
            else:
                assert one[name] == other[name], name


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(SETTINGS, id="greedy"),
        pytest.param(Settings(max_new_tokens=8, temperature=1.0, repeats=2), id="sampled"),
        pytest.param(Settings(chat=True), id="chat", marks=pytest.mark.slow),
    ],
)
def test_the_records_are_those_of_the_local_run(
    settings: Settings, actors: RayBackend, local_records: Any, tmp_path: Path
) -> None:
    found = answered(actors, tmp_path / "ray", settings)
    assert_same(found, local_records(settings))


def test_what_a_killed_actor_had_is_done_by_another(
    actors: RayBackend, local_records: Any, tmp_path: Path
) -> None:
    killer = Killer()
    found = answered(actors, tmp_path / "ray", SETTINGS, killer)
    assert len(killer.killed) == 2
    assert_same(found, local_records(SETTINGS))


@pytest.mark.slow
def test_an_actor_killed_while_idle_is_replaced(actors: RayBackend) -> None:
    assert actors.count_tokens(["the cat"]) == [len(tokenizer()("the cat").input_ids)]
    for process in actors_of("ray::ModelActor"):
        os.kill(process.pid, signal.SIGKILL)
    assert actors.chat([Message("user", "cat")]) == "[user] cat\n[assistant]"


def test_one_bad_prompt_fails_alone(actors: RayBackend) -> None:
    prompts = [Prompt("the cat"), Prompt("cat " * 600), Prompt("a dog")]
    found = dict(actors.generate(prompts, NEW_TOKENS))
    assert sorted(found) == [0, 1, 2]
    assert isinstance(found[1], Failure)
    assert "context" in str(found[1])
    assert not isinstance(found[0], Failure)
    weighed = dict(actors.loglikelihood([Question("the cat", (" sat", " ran"))]))
    assert not isinstance(weighed[0], Failure)


def test_a_request_given_up_half_way_does_not_mix_with_the_next(actors: RayBackend) -> None:
    prompts = [Prompt(f"the cat {number}") for number in range(40)]
    assert next(iter(actors.generate(prompts, NEW_TOKENS)))
    found = [place for place, _ in actors.generate(prompts[:5], NEW_TOKENS)]
    assert sorted(found) == [0, 1, 2, 3, 4]


def test_a_batch_that_kills_is_tried_again_then_one_by_one_then_not_at_all() -> None:
    batch = Batch((4, 5), ("a", "b"), call=1)
    (again,) = batch.after_death()
    singles = again.after_death()
    assert [(one.indices, one.requests) for one in singles] == [((4,), ("a",)), ((5,), ("b",))]
    (last,) = singles[0].after_death()
    assert last.after_death() == []


@pytest.mark.slow
def test_a_model_that_an_actor_cannot_load_is_a_typed_error(
    cluster: None, model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    spec = actor_spec(ray, find_model(str(broken)), Share(0.0, 0.0), LoadOptions(device="cpu"))
    with pytest.raises(ModelError, match="broken cannot be loaded"):
        assert RayActors(ray, spec, 1).profile


@pytest.mark.slow
def test_a_cluster_without_room_is_given_up(
    actors: RayBackend, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forgetmap.evaluation.backends.ray.ROOM_SECONDS", 0.5)
    with pytest.raises(ModelError, match="could not start an actor"):
        open_ray(find_model(str(model)), LoadOptions(device="cpu"), actors=1)


def test_addresses_that_lead_nowhere() -> None:
    ray.shutdown()
    with pytest.raises(ModelError, match=r"no Ray cluster at 127\.0\.0\.1:9"):
        connect_ray("127.0.0.1:9")
    with pytest.raises(UsageError, match="is not the address of a Ray cluster"):
        connect_ray("ray://127.0.0.1:10001")
    with pytest.raises(UsageError, match="is not the address of a Ray cluster"):
        connect_ray("somewhere")
