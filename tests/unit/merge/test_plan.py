"""From recipes to jobs: identities, order, dtypes, schedules, filters, slices, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest
import torch

from forgetmap.errors import FieldError, ModelError
from forgetmap.merge.job import TensorJob
from forgetmap.merge.layers import at_the_start, layer_of
from forgetmap.merge.plan import ModelShape, interpolate, plan_merge
from forgetmap.merge.recipe.model import Recipe
from forgetmap.merge.tensor_file import TensorInfo

pytestmark = pytest.mark.needs_torch

Weights = Mapping[str, Mapping[str, torch.Tensor]]
LAYERS = 5
NAMES = ["model.embed_tokens.weight"]
NAMES += [
    f"model.layers.{layer}.{rest}"
    for layer in range(LAYERS)
    for rest in ("self_attn.q_proj.weight", "mlp.up_proj.weight")
]
NAMES += ["model.norm.weight", "lm_head.weight"]
CONFIG = {"model_type": "llama", "num_hidden_layers": LAYERS}


def weights(*models: str, dtype: torch.dtype = torch.float32) -> dict[str, dict[str, torch.Tensor]]:
    source = torch.Generator().manual_seed(7)
    base = {name: torch.randn(6, 4, generator=source) for name in NAMES}
    return {
        model: {
            name: (base[name] + 0.3 * torch.randn(6, 4, generator=source)).to(dtype)
            for name in NAMES
        }
        for model in models
    }


def shapes(given: Weights, **config: Any) -> dict[str, ModelShape]:
    return {
        model: ModelShape(
            {
                name: TensorInfo(tuple(each.shape), str(each.dtype).removeprefix("torch."))
                for name, each in tensors.items()
            },
            {**CONFIG, **config},
        )
        for model, tensors in given.items()
    }


def done(job: TensorJob, given: Weights) -> torch.Tensor:
    base = given[job.base[0]][job.base[1]] if job.base else None
    result = job.compute([given[model][name] for model, name in job.inputs], base)
    assert (tuple(result.shape), str(result.dtype)) == (job.shape, f"torch.{job.dtype}")
    return result


def merged(recipe: Recipe, given: Weights) -> dict[str, torch.Tensor]:
    return {job.name: done(job, given) for job in plan_merge(recipe, shapes(given))}


def recipe(method: str, models: Mapping[str, Any], **others: Any) -> Recipe:
    parts = [{"model": model, "parameters": values} for model, values in models.items()]
    return Recipe.model_validate({"method": method, "models": parts, **others})


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


# What returns a parent: the method, its models, the rest of the recipe, and which parent.
WHOLE = {"density": 1.0}
PARENTS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("linear", {"a": {"weight": 1}, "b": {"weight": 0}}, {}, "a"),
    ("linear", {"a": {"weight": 0}, "b": {"weight": 0.3}}, {}, "b"),
    ("linear", {"a": {"weight": 0}, "b": {"weight": 1}}, {"parameters": {"normalize": False}}, "b"),
    ("ema", {"a": {}, "b": {}, "c": {}}, {"parameters": {"decay": 1}}, "a"),
    ("ema", {"a": {}, "b": {}, "c": {}}, {"parameters": {"decay": 0}}, "c"),
    ("wise_ft", {"b": {}}, {"base": "a", "parameters": {"alpha": 0}}, "a"),
    ("wise_ft", {"b": {}}, {"base": "a", "parameters": {"alpha": 1}}, "b"),
    ("slerp", {"b": {}}, {"base": "a", "parameters": {"t": 0}}, "a"),
    ("slerp", {"a": {}, "b": {}}, {"base": "a", "parameters": {"t": 1}}, "b"),
    ("passthrough", {"a": {}}, {}, "a"),
]
for _method in ("task_arithmetic", "ties", "dare_linear", "dare_ties", "breadcrumbs"):
    _full = WHOLE if _method != "task_arithmetic" else {}
    for _weight, _parent in ((0, "a"), (1, "b")):
        PARENTS.append((_method, {"b": {"weight": _weight, **_full}}, {"base": "a"}, _parent))
        _two = {"b": {"weight": _weight, **_full}, "c": {"weight": 0, **_full}}
        PARENTS.append((_method, _two, {"base": "a"}, _parent))
    PARENTS.append(
        (_method, {"b": {"weight": 1, **_full}}, {"base": "a", "parameters": {"lambda": 0}}, "a")
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(("method", "models", "others", "parent"), PARENTS)
def test_weights_of_zero_and_one_return_a_parent_bit_for_bit(
    method: str, models: dict[str, Any], others: dict[str, Any], parent: str, dtype: torch.dtype
) -> None:
    given = weights("a", "b", "c", dtype=dtype)
    # Values that ordinary arithmetic would change: signed zeros, and far apart magnitudes.
    for place, name in enumerate("abc"):
        given[name][NAMES[0]][0] = torch.tensor([-0.0, 0.0, 1e-3, 3e4][place:] + [-0.0] * place)
    result = merged(recipe(method, models, **others), given)
    for name in NAMES:
        assert bits(result[name]) == bits(given[parent][name]), name


UNORDERED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("linear", {"weight": (0.3, 0.5, 0.9)}, {}),
    ("task_arithmetic", {"weight": (0.3, 0.5, 0.9)}, {"base": "x/base"}),
    ("ties", {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7)}, {"base": "x/base"}),
    ("dare_linear", {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7)}, {"base": "x/base"}),
    ("dare_ties", {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7)}, {"base": "x/base"}),
    ("breadcrumbs", {"weight": (0.3, 0.5, 0.9), "density": (0.5, 0.6, 0.7)}, {"base": "x/base"}),
    ("model_stock", {}, {"base": "x/base"}),
]


@pytest.mark.parametrize(("method", "values", "others"), UNORDERED)
def test_the_order_of_the_models_does_not_matter(
    method: str, values: dict[str, Any], others: dict[str, Any]
) -> None:
    given = weights("x/base", "x/a", "y/b", "z/c")
    models = {
        model: {name: each[place] for name, each in values.items()}
        for place, model in enumerate(("x/a", "y/b", "z/c"))
    }
    orders = [dict(order) for order in permutations(models.items())]
    results = [merged(recipe(method, order, **others), given) for order in orders]
    for name in NAMES:
        assert len({bits(result[name]) for result in results}) == 1


def test_the_order_of_checkpoints_matters_to_a_moving_average() -> None:
    given = weights("a", "b")
    one = merged(recipe("ema", {"a": {}, "b": {}}, parameters={"decay": 0.9}), given)
    other = merged(recipe("ema", {"b": {}, "a": {}}, parameters={"decay": 0.9}), given)
    assert not torch.allclose(one[NAMES[0]], other[NAMES[0]])


def dare(*models: str, seed: int = 0) -> Recipe:
    values = {"weight": 1.0, "density": 0.5}
    return recipe("dare_linear", dict.fromkeys(models, values), base="base", seed=seed)


def test_draws_survive_a_move_and_change_with_the_seed() -> None:
    given = weights("base", "old/a", "b")
    moved = {"base": given["base"], "new/place/a": given["old/a"], "b": given["b"]}
    first = merged(dare("old/a", "b"), given)
    again = merged(dare("new/place/a", "b"), moved)
    other = merged(dare("old/a", "b", seed=1), given)
    assert all(torch.equal(first[name], again[name]) for name in NAMES)
    assert not any(torch.equal(first[name], other[name]) for name in NAMES)


def test_models_of_one_name_do_not_share_their_draws() -> None:
    given = weights("base", "1/a")
    given["2/a"] = given["1/a"]
    both = merged(dare("1/a", "2/a"), given)["lm_head.weight"] - given["base"]["lm_head.weight"]
    full = given["1/a"]["lm_head.weight"] - given["base"]["lm_head.weight"]
    # Dropped by one, kept and doubled by the other: 2 of 4 parts.
    assert torch.isclose(both, 2 * full, atol=1e-6).any()


@pytest.mark.parametrize(
    ("asked", "stored", "expected"),
    [
        ({}, torch.bfloat16, torch.bfloat16),
        ({"dtype": "float32"}, torch.bfloat16, torch.float32),
        ({"dtype": "bfloat16"}, torch.float32, torch.bfloat16),
        ({"dtype": "float32", "out_dtype": "float16"}, torch.float32, torch.float16),
        ({"out_dtype": "float64"}, torch.float32, torch.float64),
        ({"dtype": "float64"}, torch.float32, torch.float64),
    ],
)
def test_the_result_has_the_dtype_that_was_asked_for(
    asked: dict[str, Any], stored: torch.dtype, expected: torch.dtype
) -> None:
    given = weights("a", "b", dtype=stored)
    models = {"a": {"weight": 0.3}, "b": {"weight": 0.7}}
    result = merged(recipe("linear", models, **asked), given)
    finest = torch.float64 if asked.get("dtype") == "float64" else torch.float32
    for name in NAMES:
        a, b = (given[model][name].double() for model in "ab")
        assert result[name].dtype == expected
        # Computed finely and rounded once: half a unit in the last place.
        nearest = (0.3 * a + 0.7 * b).to(finest).to(expected)
        if expected in {torch.float16, torch.bfloat16}:
            assert (result[name] == nearest).float().mean() > 0.95
        coarser = max(4 * torch.finfo(finest).eps, torch.finfo(expected).eps)
        torch.testing.assert_close(result[name], nearest, rtol=coarser, atol=1e-6)


def used_weights(given: Recipe) -> dict[str, float]:
    """The weight of model `a`, told from the result: `a` is all ones, `b` all zeros."""
    tensors = {
        "a": {name: torch.ones(2, 2) for name in NAMES},
        "b": {name: torch.zeros(2, 2) for name in NAMES},
    }
    return {name: each[0, 0].item() for name, each in merged(given, tensors).items()}


def scheduled(setting: Any, overall: Any = None) -> dict[str, float]:
    parameters = {"normalize": False} | ({"weight": overall} if overall is not None else {})
    models = {"a": {"weight": setting}, "b": {"weight": 0}}
    return used_weights(recipe("linear", models, parameters=parameters))


def test_a_list_is_spread_over_the_layers() -> None:
    found = scheduled([0.0, 1.0, 5.0])
    by_layer = [found[f"model.layers.{layer}.mlp.up_proj.weight"] for layer in range(LAYERS)]
    assert by_layer == [0.0, 0.5, 1.0, 3.0, 5.0]
    outside = [found[name] for name in NAMES if layer_of(name) is None]
    assert outside == [0.0, 0.0, 0.0]  # the first value


def test_the_first_filter_that_fits_holds() -> None:
    found = scheduled(
        [
            {"filter": "self_attn", "value": [0.0, 1.0]},
            {"filter": "layers.2.", "value": 7.0},
            {"filter": "lm_head", "value": 3.0},
            {"value": 2.0},
        ]
    )
    assert found["model.layers.2.self_attn.q_proj.weight"] == 0.5
    assert found["model.layers.2.mlp.up_proj.weight"] == 7.0
    assert found["model.layers.1.mlp.up_proj.weight"] == 2.0
    assert found["lm_head.weight"] == 3.0
    assert found["model.norm.weight"] == 2.0


def test_a_star_fits_everything() -> None:
    assert set(scheduled([{"filter": "*", "value": 4.0}, {"value": 2.0}]).values()) == {4.0}


def test_where_no_filter_fits_the_value_for_all_holds() -> None:
    found = scheduled([{"filter": "mlp", "value": 0.5}], overall=2.0)
    assert found["model.layers.0.mlp.up_proj.weight"] == 0.5
    assert found["model.norm.weight"] == 2.0


def test_a_value_that_is_set_nowhere_is_asked_for() -> None:
    with pytest.raises(FieldError, match="'weight' of 'a' has no value for the tensor"):
        scheduled([{"filter": "mlp", "value": 0.5}])


@pytest.mark.parametrize(
    ("position", "expected"), [(0.0, 1.0), (0.25, 2.0), (0.5, 3.0), (0.9, -0.6), (1.0, -1.5)]
)
def test_values_between_points_lie_on_a_line(position: float, expected: float) -> None:
    assert interpolate((1.0, 3.0, -1.5), position) == pytest.approx(expected)
    assert interpolate((4.0,), position) == 4.0
    assert interpolate(4.0, position) == 4.0


def test_points_of_a_schedule_are_met_exactly() -> None:
    values = (0.1, 0.7, 0.3)
    assert [interpolate(values, place) for place in (0.0, 0.5, 1.0)] == list(values)


def sliced(*slices: Any, **others: Any) -> Recipe:
    return Recipe.model_validate(
        {"method": "passthrough", "slices": [{"sources": each} for each in slices], **others}
    )


def source(model: str, start: int, stop: int, **values: Any) -> dict[str, Any]:
    return {"model": model, "layer_range": [start, stop], "parameters": values}


def test_slices_stack_layers() -> None:
    given = weights("a", "b")
    result = merged(sliced([source("a", 0, 2)], [source("b", 1, 5)]), given)
    origin = [("a", 0), ("a", 1), ("b", 1), ("b", 2), ("b", 3), ("b", 4)]
    for layer, (model, old) in enumerate(origin):
        for rest in ("self_attn.q_proj.weight", "mlp.up_proj.weight"):
            own = given[model][f"model.layers.{old}.{rest}"]
            assert torch.equal(result[f"model.layers.{layer}.{rest}"], own)
    assert torch.equal(result["model.embed_tokens.weight"], given["a"]["model.embed_tokens.weight"])
    for name in ("model.norm.weight", "lm_head.weight"):
        assert torch.equal(result[name], given["b"][name])
    assert len(result) == 2 * 6 + 3


def test_a_schedule_runs_over_each_slice() -> None:
    given = weights("a", "b")
    plan = sliced(
        [source("a", 0, 2), source("b", 0, 2)],
        [source("a", 1, 4), source("b", 2, 5)],
        method="wise_ft",
        base="a",
        parameters={"alpha": [0.0, 1.0]},
    )
    result = merged(plan, given)
    place = "model.layers.{}.mlp.up_proj.weight"
    assert torch.equal(result[place.format(0)], given["a"][place.format(0)])
    assert torch.equal(result[place.format(1)], given["b"][place.format(1)])
    assert torch.equal(result[place.format(2)], given["a"][place.format(1)])
    middle = (given["a"][place.format(2)] + given["b"][place.format(3)]) / 2
    torch.testing.assert_close(result[place.format(3)], middle)
    assert torch.equal(result[place.format(4)], given["b"][place.format(4)])


def test_nearer_settings_win_in_slices() -> None:
    given = {"a": {name: torch.ones(2, 2) for name in NAMES}}
    near = {"sources": [source("a", 0, 1, scale=5.0)], "parameters": {"scale": 4.0}}
    middle = {"sources": [source("a", 1, 2)], "parameters": {"scale": 3.0}}
    far = {"sources": [source("a", 2, 3)]}
    plan = Recipe.model_validate(
        {"method": "passthrough", "slices": [near, middle, far], "parameters": {"scale": 2.0}}
    )
    result = merged(plan, given)
    found = [result[f"model.layers.{layer}.mlp.up_proj.weight"][0, 0].item() for layer in range(3)]
    assert found == [5.0, 3.0, 2.0]


def test_two_layers_of_one_model_can_be_merged() -> None:
    given = weights("a")
    parts = [source("a", 0, 2, weight=1.0), source("a", 2, 4, weight=3.0)]
    result = merged(sliced(parts, method="linear"), given)
    place = "model.layers.{}.mlp.up_proj.weight"
    expected = 0.25 * given["a"][place.format(1)] + 0.75 * given["a"][place.format(3)]
    torch.testing.assert_close(result[place.format(1)], expected)


def test_layers_that_a_model_lacks_are_named() -> None:
    with pytest.raises(ModelError, match="'a' has 5 layers; layer 5 does not exist"):
        merged(sliced([source("a", 3, 6)]), weights("a"))


HALVES = recipe("linear", {"a": {"weight": 0.5}, "b": {"weight": 0.5}})


def test_different_shapes_are_refused() -> None:
    given = weights("a", "b")
    given["b"]["model.norm.weight"] = torch.ones(5)
    with pytest.raises(ModelError, match=r"'model.norm.weight' has different shapes: \[6, 4\] in"):
        merged(HALVES, given)


def test_a_missing_tensor_is_named() -> None:
    given = weights("a", "b")
    del given["b"]["model.norm.weight"]
    for plan in (HALVES, recipe("linear", {"b": {"weight": 1}, "a": {"weight": 1}})):
        with pytest.raises(ModelError, match=r"'model\.norm\.weight' is missing in 'b'"):
            merged(plan, given)


def test_different_depths_are_named_as_such() -> None:
    given = weights("a", "b")
    given["b"] = {name: each for name, each in given["b"].items() if ".layers.4." not in name}
    with pytest.raises(ModelError, match="'a' has 5, 'b' has 4"):
        merged(HALVES, given)


def test_an_output_layer_that_only_one_model_stores_is_refused_unless_all_tie_it() -> None:
    given = weights("a", "b")
    del given["b"]["lm_head.weight"]
    with pytest.raises(ModelError, match="ties it to its input embeddings"):
        plan_merge(HALVES, shapes(given))
    tied = plan_merge(HALVES, shapes(given, tie_word_embeddings=True))
    assert [job.name for job in tied] == [name for name in NAMES if name != "lm_head.weight"]


SCHEDULE = recipe("wise_ft", {"b": {}}, base="a", parameters={"alpha": [0.0, 1.0]})


@pytest.mark.parametrize("kind", ["unnumbered", "other count"])
def test_a_schedule_needs_layers_that_can_be_told_apart(kind: str) -> None:
    given: Weights = weights("a", "b")
    if kind == "unnumbered":
        given = {
            model: {name.replace(".", "_"): each for name, each in tensors.items()}
            for model, tensors in given.items()
        }
    config = {"num_hidden_layers": 7, "model_type": "odd"}
    with pytest.raises(ModelError, match=r"layers of 'a' \(architecture 'odd'\).* says 7"):
        plan_merge(SCHEDULE, shapes(given, **config))
    flat = recipe("wise_ft", {"b": {}}, base="a", parameters={"alpha": 0.5})
    assert len(plan_merge(flat, shapes(given, **config))) == len(NAMES)


def test_whole_numbers_have_to_be_equal_and_stay() -> None:
    given = weights("a", "b")
    for tensors in given.values():
        tensors["mask"] = torch.arange(4)
    assert torch.equal(merged(HALVES, given)["mask"], torch.arange(4))
    given["b"]["mask"] = torch.arange(1, 5)
    with pytest.raises(ModelError, match="'mask' does not contain floating-point numbers"):
        merged(HALVES, given)


def test_weights_and_whole_numbers_do_not_mix() -> None:
    given = weights("a", "b")
    given["b"]["model.norm.weight"] = torch.ones(6, 4, dtype=torch.int8)
    with pytest.raises(ModelError, match="int8 in 'b'"):
        plan_merge(HALVES, shapes(given))


def test_a_base_that_is_listed_is_not_merged_into_itself() -> None:
    given = weights("a", "b")
    listed = recipe("task_arithmetic", {"a": {}, "b": {"weight": 0.5}}, base="a")
    alone = recipe("task_arithmetic", {"b": {"weight": 0.5}}, base="a")
    one, other = merged(listed, given), merged(alone, given)
    assert all(torch.equal(one[name], other[name]) for name in NAMES)


def test_a_recipe_made_in_python_is_checked_as_well() -> None:
    with pytest.raises(FieldError) as caught:
        plan_merge(recipe("linear", {"a": {"weightt": 1}}), shapes(weights("a")))
    assert caught.value.field == "models.0.parameters.weightt"


@pytest.mark.parametrize(
    ("name", "stack", "index"),
    [
        ("model.layers.12.mlp.experts.3.w1.weight", "model.layers", 12),
        ("h.0.attn.c_attn.weight", "h", 0),
        ("transformer.h.7.ln_1.bias", "transformer.h", 7),
        ("gpt_neox.layers.1.attention.dense.weight", "gpt_neox.layers", 1),
        ("decoder.block.3.layer.0.SelfAttention.q.weight", "decoder.block", 3),
    ],
)
def test_the_first_number_in_a_name_is_the_layer(name: str, stack: str, index: int) -> None:
    layer = layer_of(name)
    assert layer is not None
    assert (layer.stack, layer.index, layer.name) == (stack, index, name)
    assert layer.name_in(99) == f"{stack}.99.{name.removeprefix(f'{stack}.{index}.')}"


def test_embeddings_come_before_the_layers() -> None:
    first = ["model.embed_tokens.weight", "transformer.wte.weight", "wpe.weight", "embed_in.weight"]
    last = ["lm_head.weight", "model.norm.weight", "transformer.ln_f.bias", "embed_out.weight"]
    assert all(map(at_the_start, first))
    assert not any(map(at_the_start, last))
