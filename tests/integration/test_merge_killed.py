"""Merges that are killed or run out of memory or disk: never half finished, always resumed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import merge_models
from forgetmap.merge.registry import BUILT_IN, find_method

TENSORS, ROWS, WIDTH = 10, 1000, 1024
SETUP = """
import json, os, random, resource, signal, sys, time
from pathlib import Path
import torch
from forgetmap.errors import ForgetmapError
from forgetmap.merge.api import apply_recipe
from forgetmap.merge.plan import plan_merge
from forgetmap.merge.recipe.read import read_recipe
home = Path(sys.argv[1])
recipe = read_recipe(home / "recipe.yaml")
"""
KILLING = """
random.seed(7)
def merging():
    child = os.fork()
    if child == 0:
        kept = []
        seen = lambda step: kept.append(step.kept)
        apply_recipe(recipe, home / "out", shard_bytes=9_000_000, on_progress=seen)
        (home / "kept").write_text(str(kept[-1]))
        os._exit(0)
    return child
journal = home / ".out.merging" / "done.jsonl"
kills, early = 0, 0
while kills < 12:
    child = merging()
    if kills == 0:  # once surely in the middle
        while not journal.exists() or journal.read_bytes().count(b"\\n") < 5:
            time.sleep(0.001)
    else:
        time.sleep(random.random() * 0.25)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    kills += os.WIFSIGNALED(status)
    if (home / "out").exists():
        break
    early += 1
if not (home / "out").exists():
    assert os.waitpid(merging(), 0)[1] == 0
kept = home / "kept"
print(json.dumps({"early": early, "kept": int(kept.read_text()) if kept.exists() else None}))
"""
STARVED = """
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
apply_recipe(recipe, home / "out")
print(json.dumps((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024))
"""
ALL_STARVED = """
import threading
from forgetmap.merge.recipe.read import Recipe
def own_memory():  # without pages of files, which come and go
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024
from forgetmap.merge.registry import BUILT_IN, find_method
def peak(name):
    names = "st" if find_method(name).max_models else "stu"
    settings = {"t": 0.3, "weight": 0.5, "density": 0.5, "filter_wise": True}
    known = settings.keys() & {each.name for each in find_method(name).parameters}
    told = {"method": name, "base": str(home / "s"),
            "models": [{"model": str(home / each)} for each in names[1:]],
            "parameters": {key: settings[key] for key in known}}
    receive, send = os.pipe()
    if os.fork() == 0:
        looks, over = [own_memory()], threading.Event()
        def look():
            while not over.wait(0.001):
                looks.append(own_memory())
        watcher = threading.Thread(target=look)
        watcher.start()
        apply_recipe(Recipe.model_validate(told), home / name)
        over.set()
        watcher.join()
        os.write(send, json.dumps([len(names), max(looks) - looks[0]]).encode())
        os._exit(0)
    os.close(send)
    return json.loads(os.read(receive, 1000))
print(json.dumps({name: peak(name) for name in BUILT_IN if not find_method(name).elementwise}))
"""
CUT_SHORT = """
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, resource.RLIM_INFINITY))
try:
    apply_recipe(recipe, home / "out")
except ForgetmapError as error:
    first = [type(error).__name__, str(error), (home / "out").exists()]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
steps = []
apply_recipe(recipe, home / "out", on_progress=steps.append)
print(json.dumps([*first, steps[-1].kept]))
"""
TWO_AT_ONCE = """
from forgetmap.merge.output.layout import WeightLayout
from forgetmap.merge.output.atomic_folder import open_atomic_folder
try:
    with open_atomic_folder(home / "out", WeightLayout(()), "one", overwrite=False):
        apply_recipe(recipe, home / "out")
except ForgetmapError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two models of 20 MB and a recipe."""
    generator = torch.Generator().manual_seed(1)
    for name in ("a", "b"):
        tensors = {
            f"model.layers.{at}.weight": torch.randn(ROWS, WIDTH, generator=generator).bfloat16()
            for at in range(TENSORS)
        }
        merge_models.save_tensors(tmp_path / name, tensors, num_hidden_layers=TENSORS)
    write_recipe(tmp_path, "linear")
    return tmp_path


def write_recipe(home: Path, method: str) -> None:
    recipe = merge_models.average(home / "a", home / "b", weights=(0.3, 0.7))
    text = recipe.as_yaml()
    if method == "ties":
        text = (
            f"method: ties\nbase: {home / 'a'}\nmodels: [{{model: {home / 'b'}}}]\n"
            "parameters: {weight: 0.5, density: 0.5}\n"
        )
    (home / "recipe.yaml").write_text(text)


def run(script: str, home: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", SETUP + script, str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_merge_that_is_killed_again_and_again_ends_bit_for_bit(home: Path) -> None:
    told = run(KILLING, home)
    assert told["early"] >= 1
    found = contents(home / "out")
    assert told["kept"] is None or told["kept"] > 0
    (home / "out").rename(home / "resumed")
    run('apply_recipe(recipe, home / "out", shard_bytes=9_000_000); print("{}")', home)
    assert found == contents(home / "out")
    assert {path.name for path in home.iterdir()} <= {
        "a",
        "b",
        "out",
        "resumed",
        "recipe.yaml",
        "kept",
    }


def test_memory_does_not_grow_with_the_model(home: Path) -> None:
    """Value by value a merge needs the same for tensors of any size."""
    generator = torch.Generator().manual_seed(2)
    for name in ("a", "b"):
        values = torch.randn(4096, 8192, generator=generator).bfloat16()
        (home / name / "model.safetensors").unlink()
        (home / name / "config.json").unlink()
        (home / name).rmdir()
        merge_models.save_tensors(home / name, {"model.layers.0.weight": values})
    assert run(STARVED, home) < 64 << 20  # one of the two tensors has as much


@pytest.mark.slow
def test_memory_is_bounded_by_the_largest_tensor_times_the_models(home: Path) -> None:
    """Inputs and result as they are stored; in float32 nothing but a stretch of each."""
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(2048, 3072, generator=generator)
    for name in "stu":
        moved = values + 0.1 * torch.randn(values.shape, generator=generator)
        merge_models.save_tensors(home / name, {"model.layers.0.weight": moved})
    found = run(ALL_STARVED, home)
    assert set(found) == {name for name in BUILT_IN if not find_method(name).elementwise}
    for name, (models, peak) in found.items():
        assert peak < (models + 1) * values.nbytes + (48 << 20), name


def test_a_disk_that_fills_up_is_said_and_gone_on_from(home: Path) -> None:
    kind, text, exists, kept = run(CUT_SHORT, home)
    assert (kind, exists) == ("OutputError", False)
    assert "the same command to resume" in text
    assert 0 < kept < TENSORS * ROWS * WIDTH * 2
    assert set(contents(home / "out")) == {
        "README.md", "config.json", "merge.yaml", "model.safetensors"
    }  # fmt: skip


def test_two_merges_into_one_folder_do_not_meet(home: Path) -> None:
    assert re.search(r"out is already being written \(process \d+, since ", run(TWO_AT_ONCE, home))
