"""Every method, checked against its formula in plain numpy and against exact properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import merge_oracle as oracle
from forgetmap.errors import UsageError
from forgetmap.merge.chunks import CHUNK_VALUES, ChunkedTensor, chunk_slices
from forgetmap.merge.method import Draws
from forgetmap.merge.methods.task_vectors import TaskVector, largest_values
from forgetmap.merge.registry import BUILT_IN, find_method

pytestmark = pytest.mark.needs_torch

SHAPE = (13, 7)
DRAWS = Draws(5, "layer", ("a", "b", "c"))
Array = oracle.Array


def family(seed: int = 0, spread: float = 0.3) -> tuple[Array, list[Array]]:
    """A base and three models that moved away from it."""
    source = np.random.default_rng(seed)
    base = source.normal(size=SHAPE)
    return base, [base + spread * source.normal(size=SHAPE) for _ in range(3)]


def merged(name: str, models: Sequence[Array], base: Array | None = None, **values: Any) -> Array:
    """In double precision, so that nothing but the formula can differ."""
    result = find_method(name)(
        [torch.tensor(model) for model in models],
        None if base is None else torch.tensor(base),
        {key.rstrip("_"): value for key, value in values.items()},
        DRAWS,
    )
    return np.asarray(result.numpy(), dtype=np.float64)


def close(one: Array, other: Array) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weights", [(0.2, 0.8, 0.0), (1.0, 2.0, 3.0), (-0.5, 1.0, 1.0)])
@pytest.mark.parametrize("normalize", [True, False])
def test_linear(weights: tuple[float, ...], normalize: bool) -> None:
    _, models = family()
    close(
        merged("linear", models, weight=weights, normalize=normalize),
        oracle.linear(models, weights, normalize=normalize),
    )


@pytest.mark.parametrize("decay", [0.0, 0.3, 0.9, 1.0])
def test_ema_is_the_recursion(decay: float) -> None:
    _, models = family()
    close(merged("ema", models, decay=decay), oracle.ema(models, decay))


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.8, 1.0])
def test_wise_ft(alpha: float) -> None:
    base, models = family()
    close(
        merged("wise_ft", models[:1], base, alpha=alpha),
        oracle.linear([base, models[0]], [1 - alpha, alpha]),
    )


@pytest.mark.parametrize("t", [0.0, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("spread", [0.3, 2.0, -5.0])
def test_slerp(t: float, spread: float) -> None:
    base, models = family(spread=spread)
    close(merged("slerp", models[:1], base, t=t), oracle.slerp(base, models[0], t))


def test_slerp_between_perpendicular_vectors() -> None:
    """Half way between (1, 0) and (0, 1) lies (1, 1) / sqrt 2."""
    base, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    close(merged("slerp", [other], base, t=0.5), np.full(2, 0.5**0.5))


@pytest.mark.parametrize("t", [0.2, 0.5])
def test_slerp_is_straight_between_almost_parallel_tensors(t: float) -> None:
    base, models = family(spread=0.02)
    found = merged("slerp", models[:1], base, t=t)
    close(found, oracle.linear([base, models[0]], [1 - t, t]))
    arc = oracle.slerp(base, models[0], t)
    assert np.linalg.norm(found - arc) < 1.3e-4 * np.linalg.norm(arc)


@pytest.mark.parametrize("zero", ["base", "other", "both"])
def test_slerp_takes_zero_for_perpendicular(zero: str) -> None:
    base, models = family()
    start = np.zeros(SHAPE) if zero in {"base", "both"} else base
    stop = np.zeros(SHAPE) if zero in {"other", "both"} else models[0]
    expected = np.sin(0.75 * np.pi / 2) * start + np.sin(0.25 * np.pi / 2) * stop
    close(merged("slerp", [stop], start, t=0.25), expected)


@pytest.mark.parametrize("scale", [1.0, 0.4])
@pytest.mark.parametrize("weights", [(0.3, 0.5, 0.7), (1.0, -1.0, 0.0)])
def test_task_arithmetic(weights: tuple[float, ...], scale: float) -> None:
    base, models = family()
    close(
        merged("task_arithmetic", models, base, weight=weights, lambda_=scale),
        oracle.task_arithmetic(base, models, weights, scale),
    )


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.7, 0.2, 1.5), (1.0, -0.6, 0.0)])
@pytest.mark.parametrize("densities", [(1.0, 1.0, 1.0), (0.5, 0.3, 0.8), (0.0, 0.01, 0.2)])
@pytest.mark.parametrize("normalize", [True, False])
def test_ties(weights: tuple[float, ...], densities: tuple[float, ...], normalize: bool) -> None:
    base, models = family()
    changes = [
        oracle.trimmed(model - base, density)
        for model, density in zip(models, densities, strict=True)
    ]
    expected = base + 0.9 * oracle.elected(changes, weights, normalize=normalize)
    found = merged(
        "ties", models, base, weight=weights, density=densities, normalize=normalize, lambda_=0.9
    )
    close(found, expected)


def test_ties_follows_the_example_of_its_paper() -> None:
    """Two of three say up, but one says down louder: down is elected, and alone counts."""
    base = np.zeros(1)
    models = [np.array([1.0]), np.array([2.0]), np.array([-4.0])]
    found = merged("ties", models, base, weight=(1.0, 1.0, 1.0), density=(1.0, 1.0, 1.0))
    close(found, np.array([-4.0]))
    louder = [np.array([1.0]), np.array([4.0]), np.array([-4.0])]
    found = merged("ties", louder, base, weight=(1.0, 1.0, 1.0), density=(1.0, 1.0, 1.0))
    close(found, np.array([2.5]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["ties", "dare_ties", "breadcrumbs_ties"])
def test_where_votes_cancel_the_base_stays(name: str, dtype: torch.dtype) -> None:
    """Common where models are stored in bfloat16 and have equal weights."""
    base = torch.linspace(-1, 1, 64, dtype=dtype)
    change = torch.full_like(base, 2.0**-6)
    values = {"weight": (0.6, 0.6), "density": (1.0, 1.0)}
    if name == "breadcrumbs_ties":
        values["gamma"] = (0.0, 0.0)
    found = find_method(name)([base + change, base - change], base, values, DRAWS)
    exact = (base + change - base) == -(base - change - base)
    assert exact.float().mean() > 0.4
    assert torch.equal(found[exact], base[exact])


@pytest.mark.parametrize("gammas", [(0.0, 0.0, 0.0), (0.1, 0.02, 0.4)])
@pytest.mark.parametrize("densities", [(1.0, 1.0, 1.0), (0.5, 0.3, 0.8)])
@pytest.mark.parametrize("name", ["breadcrumbs", "breadcrumbs_ties"])
def test_breadcrumbs(name: str, densities: tuple[float, ...], gammas: tuple[float, ...]) -> None:
    base, models = family()
    weights = (0.7, 0.2, 1.5)
    changes = [
        oracle.middle(model - base, density, gamma)
        for model, density, gamma in zip(models, densities, gammas, strict=True)
    ]
    total = oracle.linear(changes, weights, normalize=False)
    if name == "breadcrumbs_ties":
        total = oracle.elected(changes, weights, normalize=False)
    found = merged(name, models, base, weight=weights, density=densities, gamma=gammas)
    close(found, base + total)


@pytest.mark.parametrize("name", ["dare_linear", "dare_ties"])
@pytest.mark.parametrize("rescale", ["density", "norm", "none"])
def test_dare_with_the_same_mask(name: str, rescale: str) -> None:
    base, models = family()
    weights, densities = (0.7, 0.2, 1.5), (0.5, 0.9, 0.2)
    changes = []
    for index, (model, density) in enumerate(zip(models, densities, strict=True)):
        full = model - base
        kept_count = full * (DRAWS.uniform(index, SHAPE).numpy() < density)
        factor = {
            "density": 1 / density,
            "norm": np.abs(full).sum() / np.abs(kept_count).sum(),
            "none": 1.0,
        }
        changes.append(kept_count * factor[rescale])
    total = oracle.linear(changes, weights, normalize=False)
    if name == "dare_ties":
        total = oracle.elected(changes, weights, normalize=False)
    flags = {"rescale": rescale != "none", "keep_norm": rescale == "norm"}
    found = merged(name, models, base, weight=weights, density=densities, **flags)
    close(found, base + total)


def test_dare_keeps_the_change_in_the_mean_over_draws() -> None:
    base, models = family()
    found = []
    for seed in range(400):
        draws = Draws(seed, "layer", ("a",))
        tensors = [torch.tensor(models[0])], torch.tensor(base)
        values = {"weight": (1.0,), "density": (0.25,)}
        found.append(find_method("dare_linear")(*tensors, values, draws).numpy() - base)
    change = models[0] - base
    # One draw has the deviation |change| sqrt(1 / density - 1), the mean of 400 a twentieth of it.
    assert np.all(np.abs(np.mean(found, axis=0) - change) <= 5 * np.abs(change) * 3**0.5 / 20)


def test_draws_are_uniform_and_depend_on_seed_tensor_and_model_only() -> None:
    draws = Draws(0, "x", ("a", "b")).uniform(0, (1000, 100))
    assert abs(draws.mean().item() - 0.5) < 0.005
    assert draws.min().item() >= 0
    assert draws.max().item() < 1
    assert torch.equal(draws, Draws(0, "x", ("b", "a")).uniform(1, (1000, 100)))
    others = [Draws(1, "x", ("a",)), Draws(0, "y", ("a",)), Draws(0, "x", ("b",))]
    assert all(not torch.equal(draws, each.uniform(0, (1000, 100))) for each in others)


@pytest.mark.parametrize("count", [2, 3])
def test_model_stock(count: int) -> None:
    base, models = family()
    close(merged("model_stock", models[:count], base), oracle.model_stock(base, models[:count]))


def test_model_stock_row_by_row() -> None:
    base, models = family()
    expected = np.stack(
        [oracle.model_stock(base[row], [model[row] for model in models]) for row in range(SHAPE[0])]
    )
    close(merged("model_stock", models, base, filter_wise=True), expected)


def test_model_stock_at_special_angles() -> None:
    """All the way along one direction, nowhere at a right angle, nowhere between opposites."""
    base, models = family()
    change = models[0] - base
    close(merged("model_stock", [models[0], models[0]], base), models[0])
    close(merged("model_stock", [base, base], base), base)
    close(merged("model_stock", [base + change, base - change], base), base)
    right = np.zeros((2, *SHAPE))
    right[0, 0, 0] = right[1, 0, 1] = 1.0
    close(merged("model_stock", [base + right[0], base + right[1]], base), base)


@pytest.mark.parametrize("name", ["linear", "task_arithmetic"])
def test_weights_that_add_up_to_nothing_cannot_be_normalised(name: str) -> None:
    base, models = family()
    with pytest.raises(UsageError, match="add up to 0"):
        merged(
            name,
            models[:2],
            base if name == "task_arithmetic" else None,
            weight=(1.0, -1.0),
            normalize=True,
        )


def selected(change: torch.Tensor, count: int, at_once: int) -> list[int]:
    """Places of the largest values."""
    values = TaskVector(
        ChunkedTensor(change, change.dtype), ChunkedTensor(torch.zeros_like(change), change.dtype)
    )
    chosen = largest_values(values, count)
    parts = [chosen.mask(change[cut], cut.start) for cut in chunk_slices(len(change), at_once)]
    return torch.cat(parts).nonzero().flatten().tolist()


@pytest.mark.parametrize("at_once", [1, 2, 4, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_of_equal_magnitudes_the_first_are_taken(at_once: int, dtype: torch.dtype) -> None:
    change = torch.tensor([1.0, -2.0, 2.0, 2.0, 0.0, 3.0], dtype=dtype)
    assert selected(change, 3, at_once) == [1, 2, 5]
    assert selected(change, 0, at_once) == []
    assert selected(change, 9, at_once) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["all different", "often equal", "mostly zero", "tiny"])
def test_the_largest_are_those_of_a_sort(kind: str, dtype: torch.dtype) -> None:
    """Over several stretches, whose ends fall between equal values."""
    source = torch.Generator().manual_seed(1)
    change = torch.randn(2 * CHUNK_VALUES + 77, generator=source, dtype=dtype)
    if kind == "often equal":
        change = (change * 3).round()
    if kind == "mostly zero":
        change *= torch.rand(len(change), generator=source) < 0.1
    if kind == "tiny":
        change *= torch.finfo(dtype).tiny
    order = change.abs().sort(descending=True, stable=True).indices
    for count in (1, 999, len(change) // 2, len(change) - 1):
        assert selected(change, count, CHUNK_VALUES) == sorted(order[:count].tolist())


def test_a_weight_of_zero_keeps_infinities_out() -> None:
    broken = [np.full(SHAPE, np.inf), np.ones(SHAPE)]
    close(merged("linear", broken, weight=(0.0, 0.5)), np.ones(SHAPE))


SAMPLES: dict[str, dict[str, Any]] = {
    "linear": {"weight": (0.3, 0.5, 0.9)},
    "ema": {"decay": 0.7},
    "wise_ft": {"alpha": 0.3},
    "slerp": {"t": 0.3},
    "task_arithmetic": {"weight": (0.3, 0.5, 0.9)},
    "ties": {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7)},
    "dare_linear": {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7)},
    "dare_ties": {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7)},
    "breadcrumbs": {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7), "gamma": (0.1,) * 3},
    "breadcrumbs_ties": {
        "weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7), "gamma": (0.1,) * 3,
    },
    "model_stock": {},
    "passthrough": {"scale": (0.7,)},
}  # fmt: skip


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_no_method_changes_its_inputs_and_all_keep_shape_and_dtype(name: str) -> None:
    base, models = family()
    found = find_method(name)
    tensors = [torch.tensor(model, dtype=torch.float32) for model in models][
        : found.max_models or 3
    ]
    start = torch.tensor(base, dtype=torch.float32)
    before = [each.clone() for each in (*tensors, start)]
    result = found(tensors, start, SAMPLES[name], DRAWS)
    assert result.dtype == torch.float32
    assert result.shape == SHAPE
    assert all(map(torch.equal, (*tensors, start), before))


@pytest.mark.parametrize("name", [name for name in BUILT_IN if find_method(name).elementwise])
def test_methods_that_say_so_work_in_pieces(name: str) -> None:
    base, models = family()
    found = find_method(name)
    tensors = [torch.tensor(model, dtype=torch.float32) for model in models][
        : found.max_models or 3
    ]
    start = torch.tensor(base, dtype=torch.float32)
    whole = found(tensors, start, SAMPLES[name], DRAWS).flatten()
    pieces = [
        found([each.flatten()[cut] for each in tensors], start.flatten()[cut], SAMPLES[name], DRAWS)
        for cut in (slice(0, 40), slice(40, 41), slice(41, None))
    ]
    assert torch.equal(torch.cat(pieces), whole)


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_single_precision_is_near_to_double(name: str) -> None:
    base, models = family()
    found = find_method(name)
    ends = [
        found(
            [torch.tensor(model, dtype=dtype) for model in models][: found.max_models or 3],
            torch.tensor(base, dtype=dtype),
            SAMPLES[name],
            DRAWS,
        ).double()
        for dtype in (torch.float32, torch.float64)
    ]
    torch.testing.assert_close(ends[0], ends[1], rtol=2e-6, atol=2e-6)
