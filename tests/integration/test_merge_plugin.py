"""Other packages add merge methods by entry point: really built, installed and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "median-merging"
version = "1.0"

[project.entry-points."forgetmap.merge_methods"]
median = "median_merging:median"
"""

METHOD = '''
import torch
from forgetmap.merge.method import PerModel, Tensors, merge_method


@merge_method("median", says="the median of the models, value by value", fewest=3)
def median(tensors: Tensors, *, shift: PerModel = (0.0,)) -> torch.Tensor:
    """Of what is left after a shift."""
    moved = [tensor + each for tensor, each in zip(tensors, shift, strict=True)]
    return torch.stack(moved).median(dim=0).values
'''

RECIPE = """\
method: median
models:
  - {model: a, parameters: {shift: 4}}
  - {model: b}
  - {model: c}
"""

USE = """
import sys, torch
from forgetmap.merge.plan import ModelShape, TensorInfo, plan_merge
from forgetmap.merge.recipe import read_recipe
from forgetmap.merge.registry import find_method, method_names

recipe = read_recipe(sys.argv[1])
shape = ModelShape({"w": TensorInfo((2,), "float32")})
(job,) = plan_merge(recipe, {name: shape for name in recipe.all_models})
numbers = {"a": [1.0, 9.0], "b": [2.0, 3.0], "c": [3.0, 1.0]}
tensors = {name: torch.tensor(each) for name, each in numbers.items()}
print(method_names()[-1], find_method("median").says, sep="|")
print(job.compute([tensors[model] for model, _ in job.inputs], None).tolist())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built and installed: the folder to put on the path."""
    folder = tmp_path_factory.mktemp("merging")
    project, target = folder / "project", folder / "installed"
    (project / "median_merging").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "median_merging" / "__init__.py").write_text(METHOD)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    flags = ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*pip, *flags, project], check=True, capture_output=True)
    return target


def used(installed: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A fresh Python that has the package, and uses the method in a recipe."""
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE)
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-c", USE, recipe],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_installed_method_is_found_and_used(installed: Path, tmp_path: Path) -> None:
    done = used(installed, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "median|the median of the models, value by value",
        "[3.0, 3.0]",
    ]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import no_such_package_anywhere\n", "No module named 'no_such_package_anywhere'"),
        ("def median(tensors): return tensors[0]\n", "is no function under @merge_method"),
    ],
    ids=["import", "undecorated"],
)
def test_a_broken_method_is_named(installed: Path, tmp_path: Path, source: str, says: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(installed, copy)
    (copy / "median_merging" / "__init__.py").write_text(source)
    done = used(copy, tmp_path)
    assert done.returncode != 0
    assert "the merge method 'median' (median_merging:median)" in done.stderr
    assert says in done.stderr
