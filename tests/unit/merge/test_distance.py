"""Distances in weight space, against plain numpy and against differences of known rank."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from forgetmap.errors import ModelError
from forgetmap.merge.distance import kind_of, layer_number, weight_drift
from forgetmap.merge.spectrum import EXACT, TOLERANCE, effective_rank
from tiny_models import tiny_model

pytestmark = pytest.mark.needs_torch

Matrix = NDArray[np.float64]


def checkpoint(folder: Path, tensors: dict[str, torch.Tensor]) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    save_file(
        {name: tensor.clone() for name, tensor in tensors.items()}, folder / "model.safetensors"
    )
    return folder


def entropy_rank(matrix: Matrix) -> float:
    values = np.linalg.svd(matrix, compute_uv=False)
    share = values[values > 1e-9 * values.max()]
    share = share / share.sum()
    return math.exp(-float((share * np.log(share)).sum()))


def with_values(rows: int, columns: int, values: Any, seed: int = 0) -> Matrix:
    """A matrix with these singular values."""
    source = np.random.default_rng(seed)
    left, right = (
        np.linalg.qr(source.standard_normal((size, len(values))))[0] for size in (rows, columns)
    )
    return np.asarray((left * np.asarray(values)) @ right.T)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny model, and the same with noise of another strength on every tensor."""
    folder = tmp_path_factory.mktemp("drift")
    model = tiny_model("llama")
    model.save_pretrained(folder / "base")
    noise = torch.Generator().manual_seed(5)
    moved = {
        name: tensor + 0.02 * (place % 3) * torch.randn(tensor.shape, generator=noise)
        for place, (name, tensor) in enumerate(sorted(model.state_dict().items()))
    }
    return folder / "base", checkpoint(folder / "tuned", moved)


def test_every_number_is_that_of_plain_numpy(pair: tuple[Path, Path]) -> None:
    from safetensors.numpy import load_file

    base, tuned = (load_file(folder / "model.safetensors") for folder in pair)
    found = weight_drift(*pair)
    assert {each.name for each in found.tensors} == base.keys() & tuned.keys()
    for each in found.tensors:
        one, two = (side[each.name].astype(np.float64) for side in (base, tuned))
        apart = two - one
        assert each.relative == pytest.approx(np.linalg.norm(apart) / np.linalg.norm(one))
        assert each.cosine == pytest.approx(
            float((one * two).sum() / np.linalg.norm(one) / np.linalg.norm(two))
        )
        assert each.difference == pytest.approx(np.linalg.norm(apart))
        if apart.ndim == 2 and apart.any():
            assert each.effective_rank == pytest.approx(entropy_rank(apart), rel=1e-4)
        else:
            assert each.effective_rank is None
    assert found.unchanged == sum(np.array_equal(base[name], tuned[name]) for name in base)
    order = [each.relative or 0.0 for each in found.tensors]
    assert order == sorted(order, reverse=True)


def test_groups_are_one_long_vector(pair: tuple[Path, Path]) -> None:
    from safetensors.numpy import load_file

    base, tuned = (load_file(folder / "model.safetensors") for folder in pair)
    found = weight_drift(*pair, ranks=False)

    def long(side: dict[str, Any], names: list[str]) -> Matrix:
        return np.concatenate([side[name].ravel().astype(np.float64) for name in names])

    attention = [name for name in base if "self_attn" in name]
    second = [name for name in base if ".layers.1." in name]
    groups = {each.name: each for each in (*found.kinds, *found.layers, found.total)}
    for name, members in (("attention", attention), ("layer 1", second), ("all", list(base))):
        one, two = long(base, members), long(tuned, members)
        assert groups[name].relative == pytest.approx(
            np.linalg.norm(two - one) / np.linalg.norm(one)
        )
        assert groups[name].cosine == pytest.approx(
            float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
        )
        assert groups[name].tensors == len(members)
        assert groups[name].parameters == one.size
        assert groups[name].effective_rank is None


@pytest.mark.parametrize("rank", [1, 3, 16])
def test_a_difference_of_equal_singular_values_has_their_number_as_rank(
    tmp_path: Path, rank: int
) -> None:
    base = torch.randn(48, 64, generator=torch.Generator().manual_seed(1))
    moved = base + torch.from_numpy(with_values(48, 64, [5.0] * rank)).float()
    one = checkpoint(tmp_path / "a", {"model.layers.0.mlp.up.weight": base})
    two = checkpoint(tmp_path / "b", {"model.layers.0.mlp.up.weight": moved})
    (found,) = weight_drift(one, two).tensors
    assert found.effective_rank == pytest.approx(rank, rel=1e-3)
    assert not found.estimated
    assert (found.layer, found.kind) == (0, "mlp")


SPECTRA = {
    "flat": np.ones(360),
    "low": np.ones(8),
    "falling": 0.9 ** np.arange(300),
    "heavy tail": 1 / np.arange(1, 361),
    "a few above noise": np.r_[np.full(30, 10.0), np.full(330, 0.1)],
    "one": np.ones(1),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_the_estimate_for_large_matrices_is_within_its_tolerance(spectrum: str) -> None:
    values = SPECTRA[spectrum]
    share = values / values.sum()
    truth = math.exp(-float((share * np.log(share)).sum()))
    matrix = torch.from_numpy(with_values(400, 360, values)).float()
    found = effective_rank(matrix, exact=128)
    assert found is not None
    assert found.estimated
    assert found.value == pytest.approx(truth, rel=TOLERANCE)
    assert effective_rank(matrix.T, exact=128) == found


def test_beyond_the_limit_it_is_estimated_unasked() -> None:
    ones = torch.ones(EXACT + 2, EXACT + 1)
    found = effective_rank(ones)
    assert found is not None
    assert found.estimated
    assert found.value == pytest.approx(1.0, rel=TOLERANCE)


def test_bfloat16_is_read_as_it_is(tmp_path: Path) -> None:
    base = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.bfloat16)
    one = checkpoint(tmp_path / "a", {"w.weight": base})
    two = checkpoint(tmp_path / "b", {"w.weight": base * 2})
    found = weight_drift(one, two).total
    assert found.relative == pytest.approx(1.0)
    assert found.cosine == pytest.approx(1.0)


def test_what_has_no_length_has_no_relative_distance(tmp_path: Path) -> None:
    zero, one = torch.zeros(2, 2), torch.ones(2, 2)
    before = checkpoint(tmp_path / "a", {"x.bias": zero, "y.bias": zero})
    after = checkpoint(tmp_path / "b", {"x.bias": zero, "y.bias": one})
    found = weight_drift(before, after)
    assert [each.relative for each in found.tensors] == [None, None]
    assert [each.cosine for each in found.tensors] == [None, None]
    assert found.total.difference == pytest.approx(2.0)
    assert found.unchanged == 1


def test_what_only_one_model_has_is_said(tmp_path: Path) -> None:
    shared = torch.ones(2, 2)
    one = checkpoint(
        tmp_path / "a", {"w.weight": shared, "old.weight": shared, "embed.weight": torch.ones(3, 2)}
    )
    two = checkpoint(
        tmp_path / "b", {"w.weight": shared, "new.weight": shared, "embed.weight": torch.ones(4, 2)}
    )
    found = weight_drift(one, two)
    assert (found.only_base, found.only_tuned) == (["old.weight"], ["new.weight"])
    assert found.other_shape == ["embed.weight"]
    assert len(found.notices) == 3
    assert [each.name for each in found.tensors] == ["w.weight"]


def test_models_that_share_nothing_are_refused(tmp_path: Path) -> None:
    one = checkpoint(tmp_path / "a", {"w.weight": torch.ones(2, 2)})
    two = checkpoint(tmp_path / "b", {"v.weight": torch.ones(2, 2)})
    with pytest.raises(ModelError, match="no tensor"):
        weight_drift(one, two)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_broken_weights_are_named(tmp_path: Path, bad: float) -> None:
    one = checkpoint(tmp_path / "a", {"w.weight": torch.ones(2, 2)})
    two = checkpoint(tmp_path / "b", {"w.weight": torch.tensor([[1.0, bad], [1.0, 1.0]])})
    with pytest.raises(ModelError, match=r"w\.weight contains NaN or infinite"):
        weight_drift(one, two)


@pytest.mark.parametrize(
    ("name", "layer", "kind"),
    [
        ("model.layers.11.self_attn.q_proj.weight", 11, "attention"),
        ("model.layers.0.input_layernorm.weight", 0, "norm"),
        ("model.layers.3.post_attention_layernorm.weight", 3, "norm"),
        ("model.layers.2.mlp.experts.7.down_proj.weight", 2, "mlp"),
        ("transformer.h.5.attn.c_attn.weight", 5, "attention"),
        ("transformer.h.5.ln_1.bias", 5, "norm"),
        ("transformer.wte.weight", None, "embedding"),
        ("model.embed_tokens.weight", None, "embedding"),
        ("lm_head.weight", None, "head"),
        ("something.else", None, "other"),
    ],
)
def test_layers_and_kinds_are_read_off_names(name: str, layer: int | None, kind: str) -> None:
    assert (layer_number(name), kind_of(name)) == (layer, kind)


MEASURE = """
import resource, sys
from forgetmap.merge.distance import weight_drift
import torch, forgetmap.merge.checkpoint, forgetmap.merge.spectrum
torch.set_num_threads(1)
weight_drift(sys.argv[1], sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
weight_drift(sys.argv[3], sys.argv[4])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_memory_is_that_of_the_largest_tensor(tmp_path: Path) -> None:
    side, count = 640, 24
    size = 4 * side * side
    small = [checkpoint(tmp_path / f"s{n}", {"w.weight": n * torch.eye(2)}) for n in (1, 2)]
    source = torch.Generator().manual_seed(0)
    large = [
        checkpoint(
            tmp_path / f"l{n}",
            {
                f"w{place}.weight": torch.randn(side, side, generator=source)
                for place in range(count)
            },
        )
        for n in (1, 2)
    ]
    arguments = [sys.executable, "-c", MEASURE, *map(str, (*small, *large))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    # Two tensors, their difference, blocks and the Gram matrix; all tensors would be 48 times.
    assert int(done.stdout) < 16 * size
