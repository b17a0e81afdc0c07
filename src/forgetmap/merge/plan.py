"""Plans: one job per tensor, from a recipe and the shapes of its models; nothing is read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from forgetmap.errors import FieldError, ModelError
from forgetmap.merge.job import Computation, TensorJob
from forgetmap.merge.layers import (
    Layer,
    at_the_start,
    configured_layers,
    layer_of,
    may_be_tied,
    stacks,
)
from forgetmap.merge.method import Draws, Method, Parameter
from forgetmap.merge.recipe.checks import check_recipe
from forgetmap.merge.recipe.model import (
    ModelPart,
    Recipe,
    Settings,
    Slice,
    Value,
    settings_of,
    short_name,
)
from forgetmap.merge.tensor_file import TensorInfo

Infos = Sequence[tuple[str, TensorInfo]]
"""A tensor in every model of the merge."""
_FLOATING = ("float", "bfloat")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Tensors and configuration of a model, before its weights are read."""

    tensors: Mapping[str, TensorInfo]
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def layers(self) -> int:
        """Number of layers of its largest stack, 0 if it numbers none."""
        return max(stacks(self.tensors).values(), default=0)


@dataclass(frozen=True, slots=True)
class _Output:
    """A tensor of the result and its sources.

    Attributes:
        sources: each part of the merge and its tensor.
        position: position of its layer from 0 to 1.
        around: settings of its slice.
    """

    name: str
    sources: Sequence[tuple[ModelPart, str]]
    position: float = 0.0
    around: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A tensor of the result, and its settings.

    Attributes:
        tensor: its name.
        position: position of its layer, from 0 for the first to 1 for the last; 0 outside of all
            layers.
        settings: settings, the nearest first; those of a model take precedence over all of them.
    """

    tensor: str
    position: float
    settings: tuple[Settings, ...]


def plan_merge(recipe: Recipe, models: Mapping[str, ModelShape]) -> list[TensorJob]:
    """Return one job for every tensor of the result, in the order of storage.

    Args:
        recipe: the recipe.
        models: the shape of each of `recipe.all_models`.

    Raises:
        FieldError: the recipe does not fit its method, or lacks a parameter.
        ModelError: the models do not fit each other or the recipe.
    """
    method = check_recipe(recipe)
    outputs = _of_slices(recipe, models) if recipe.slices else _whole(recipe, method, models)
    return [_job(output, recipe, method, models) for output in outputs]


def _whole(recipe: Recipe, method: Method, models: Mapping[str, ModelShape]) -> Iterator[_Output]:
    parts = list(recipe.models)
    if recipe.base and method.base != "ignored" and recipe.base not in recipe.part_models:
        parts.insert(0, ModelPart(model=recipe.base))
    used = {part.model: models[part.model] for part in parts}
    if _varies_by_layer(recipe):
        for model, shape in used.items():
            _check_layers(model, shape)
    _check_depth(used)
    names = _common_names(
        [(model, list(shape.tensors)) for model, shape in used.items()], tied=_tie(used)
    )
    sizes = stacks(names)
    for name in names:
        layer = layer_of(name)
        position = _position(layer.index, sizes[layer.stack]) if layer else 0.0
        yield _Output(name, [(part, name) for part in parts], position)


def _of_slices(recipe: Recipe, models: Mapping[str, ModelShape]) -> Iterator[_Output]:
    for part in recipe.parts:
        _check_layers(part.model, models[part.model], one_stack=True)
    first, last = recipe.slices[0], recipe.slices[-1]
    yield from (output for output in _outside(first, models) if at_the_start(output.name))
    start = 0
    for layers in recipe.slices:
        yield from _of_slice(layers, start, models)
        start += layers.layers
    yield from (output for output in _outside(last, models) if not at_the_start(output.name))


def _outside(layers: Slice, models: Mapping[str, ModelShape]) -> Iterator[_Output]:
    """Return the tensors outside of all layers."""
    used = {part.model: models[part.model] for part in layers.sources}
    names = [
        (model, [name for name in shape.tensors if layer_of(name) is None])
        for model, shape in used.items()
    ]
    for name in _common_names(names, tied=_tie(used)):
        sources = [(part, name) for part in layers.sources]
        yield _Output(name, sources, around=layers.parameters)


def _of_slice(layers: Slice, start: int, models: Mapping[str, ModelShape]) -> Iterator[_Output]:
    for offset in range(layers.layers):
        tensors = [
            (part, _layer(part, (part.layer_range or (0, 0))[0] + offset, models[part.model]))
            for part in layers.sources
        ]
        names = [(part.model, list(by_rest)) for part, by_rest in tensors]
        for rest in _common_names(names, tied=False):
            sources = [(part, by_rest[rest].name) for part, by_rest in tensors]
            name = tensors[0][1][rest].name_in(start + offset)
            position = _position(offset, layers.layers)
            yield _Output(name, sources, position, layers.parameters)


def _layer(part: ModelPart, index: int, shape: ModelShape) -> dict[str, Layer]:
    """Return the tensors of one layer by the part of their names after its number."""
    if index >= shape.layers:
        raise ModelError(
            f"'{part.model}' has {shape.layers} layers; layer {index} does not exist",
            hint=f"use a layer_range that ends at {shape.layers} or before.",
        )
    layers = filter(None, map(layer_of, shape.tensors))
    return {layer.rest: layer for layer in layers if layer.index == index}


def _job(
    output: _Output, recipe: Recipe, method: Method, models: Mapping[str, ModelShape]
) -> TensorJob:
    base, sources = None, list(output.sources)
    if recipe.base and method.base != "ignored":
        base = next((part.model, name) for part, name in sources if part.model == recipe.base)
        sources = [pair for pair in sources if pair[0].model != recipe.base]
    if not method.ordered:
        # Float sums depend on their order: sorted, they do not depend on that of the recipe.
        sources.sort(key=lambda pair: (short_name(pair[0].model), pair[0].model))
    inputs = tuple((part.model, name) for part, name in sources)
    read = [*inputs, base] if base else list(inputs)
    infos = [(model, models[model].tensors[name]) for model, name in read]
    shape = _shape(output.name, infos)
    dtype = _dtype(output.name, recipe, infos, recipe.base or output.sources[0][0].model)
    scope = _Scope(output.name, output.position, (output.around, recipe.parameters))
    compute = Computation(
        method=method,
        values=_values_of(method, scope, [part for part, _ in sources]),
        draws=Draws(recipe.seed, output.name, _distinct_names([model for model, _ in inputs])),
        dtype=dtype,
        computed_in=_computation_dtype(recipe, infos),
    )
    return TensorJob(output.name, shape, dtype, inputs, base, compute, method.elementwise)


def _values_of(method: Method, scope: _Scope, parts: Sequence[ModelPart]) -> Mapping[str, Any]:
    """Return the value of every parameter of a method; one for each model if it takes that."""
    values: dict[str, Any] = {}
    for parameter in method.parameters:
        if parameter.per_model:
            values[parameter.name] = tuple(_value(parameter, scope, part) for part in parts)
        else:
            values[parameter.name] = _value(parameter, scope)
    return values


def _value(parameter: Parameter, scope: _Scope, part: ModelPart | None = None) -> bool | float:
    nearest = (part.parameters,) if part else ()
    for settings in (*nearest, *scope.settings):
        for rule in settings.get(parameter.name, ()):
            if rule.fits(scope.tensor):
                value = interpolate(rule.value, scope.position)
                return bool(value) if parameter.flag else float(value)
    if parameter.default is None:
        model = f" of '{part.model}'" if part else ""
        raise FieldError(
            f"'{parameter.name}'{model} has no value for the tensor '{scope.tensor}'.",
            field=parameter.name,
            hint="add a value, or a rule without a filter.",
        )
    return parameter.default


def interpolate(value: Value, position: float) -> bool | float:
    """Interpolate a list of values linearly, at points spread evenly from 0 to 1."""
    if not isinstance(value, tuple):
        return value
    if len(value) == 1:
        return value[0]
    step = min(int(position * (len(value) - 1)), len(value) - 2)
    start, stop = list(pairwise(value))[step]
    share = position * (len(value) - 1) - step
    # Exact at the points themselves, where nothing is computed.
    return start + share * (stop - start) if share not in {0.0, 1.0} else (stop if share else start)


def _distinct_names(models: Sequence[str]) -> tuple[str, ...]:
    """Return numbered short names of models, so that moving a folder changes no draw."""
    short = [short_name(model) for model in models]
    return tuple(f"{name} {short[:index].count(name)}" for index, name in enumerate(short))


def _shape(name: str, infos: Infos) -> tuple[int, ...]:
    shapes = {info.shape for _, info in infos}
    if len(shapes) > 1:
        details = ", ".join(f"{list(info.shape)} in '{model}'" for model, info in infos)
        raise ModelError(
            f"The tensor '{name}' has different shapes: {details}",
            hint="merge models with the same architecture and size.",
        )
    return shapes.pop()


def _dtype(name: str, recipe: Recipe, infos: Infos, leader: str) -> str:
    """Return the dtype of the result: as requested, or else that of the base or the first model."""
    floating = {info.dtype.startswith(_FLOATING) for _, info in infos}
    if len(floating) > 1:
        dtypes = ", ".join(f"{info.dtype} in '{model}'" for model, info in infos)
        raise ModelError(
            f"The tensor '{name}' contains floating-point weights in one model and integers in "
            f"another: {dtypes}",
            hint="merge models stored in the same format; dequantise quantised models first.",
        )
    stored = dict(infos).get(leader, infos[0][1]).dtype
    return (recipe.out_dtype or recipe.dtype or stored) if floating == {True} else stored


def _computation_dtype(recipe: Recipe, infos: Infos) -> str:
    """Return the dtype of the computation: float32, or float64 if requested or stored."""
    dtypes = {recipe.dtype} if recipe.dtype else {info.dtype for _, info in infos}
    return "float64" if "float64" in dtypes else "float32"


def _position(index: int, count: int) -> float:
    return index / (count - 1) if count > 1 else 0.0


def _varies_by_layer(recipe: Recipe) -> bool:
    settings = (setting for _, group in settings_of(recipe) for setting in group.values())
    values = (rule.value for setting in settings for rule in setting)
    return any(isinstance(value, tuple) and len(value) > 1 for value in values)


def _check_layers(model: str, shape: ModelShape, *, one_stack: bool = False) -> None:
    """Check that layers can be numbered, for settings over layers and slices."""
    sizes = stacks(shape.tensors)
    promised = configured_layers(shape.config)
    known = bool(sizes) and (promised is None or promised in sizes.values())
    if known and not (one_stack and len(sizes) > 1):
        return
    counts = ", ".join(f"{count} in '{stack}'" for stack, count in sizes.items()) or "none"
    expected = f", but its config says {promised}" if promised is not None else ""
    raise ModelError(
        f"The layers of '{model}' (architecture '{shape.config.get('model_type', 'unknown')}') "
        f"cannot be derived from its tensor names: found {counts}{expected}",
        hint="remove slices and values that change over the layers.",
    )


def _check_depth(shapes: Mapping[str, ModelShape]) -> None:
    depths = {model: shape.layers for model, shape in shapes.items()}
    if len(set(depths.values())) > 1:
        details = ", ".join(f"'{model}' has {depth}" for model, depth in depths.items())
        raise ModelError(
            f"The models have different numbers of layers: {details}",
            hint="merge models of the same size, or select layers with slices.",
        )


def _tie(shapes: Mapping[str, ModelShape]) -> bool:
    """Return whether all models use their input embeddings as output layer."""
    return all(shape.config.get("tie_word_embeddings") is True for shape in shapes.values())


def _common_names(tensor_names: Sequence[tuple[str, Sequence[str]]], *, tied: bool) -> list[str]:
    """Return the names that all models have, in the order of the first; refuse any others.

    Args:
        tensor_names: models and the names of their tensors.
        tied: an output layer that some models store is not used.
    """
    sets = [(model, set(names)) for model, names in tensor_names]
    missing = {
        name: [model for model, own in sets if name not in own]
        for name in dict.fromkeys(name for _, names in tensor_names for name in names)
    }
    for name, lacking in missing.items():
        if lacking and not (tied and may_be_tied(name)):
            raise _missing(name, lacking, sum(map(bool, missing.values())))
    return [name for name, lacking in missing.items() if not lacking]


def _missing(name: str, lacking: Sequence[str], others: int) -> ModelError:
    where = ", ".join(f"'{model}'" for model in lacking)
    more = f" (and {others - 1} more)" if others > 1 else ""
    if may_be_tied(name):
        return ModelError(
            f"The tensor '{name}' is missing in {where}, which ties it to its input embeddings; "
            "the other models do not",
            hint="store it in that model: load it, set tie_word_embeddings to false, and save it.",
        )
    return ModelError(
        f"The tensor '{name}'{more} is missing in {where}",
        hint="merge models of the same architecture, saved in the same way.",
    )
