"""The data model of recipes: models or slices, a method, and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from forgetmap._lazy import require
from forgetmap.merge.recipe.yaml_file import KeyPath

Dtype = Literal["float64", "float32", "float16", "bfloat16"]
Vocabulary = Literal["error", "smallest", "base", "union"]
Value = bool | float | tuple[float, ...]
"""One value for all layers, or values at points spread evenly over them, interpolated linearly."""


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ParameterRule(_FrozenModel):
    """A value for the tensors whose name contains `filter`; for all others without a filter."""

    filter: str | None = None
    value: Value

    @field_validator("value", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) > 0 and all(map(_is_number, value)):
            return tuple(map(float, value))
        if isinstance(value, bool) or _is_number(value):
            return value
        raise ValueError(f"{value!r} is not a number, true, false or a list of numbers")

    def fits(self, tensor: str) -> bool:
        """Return whether it applies to the tensor of this name."""
        return self.filter is None or self.filter == "*" or self.filter in tensor


Setting = tuple[ParameterRule, ...]
"""The first rule that fits a tensor applies."""
Settings = Mapping[str, Setting]


class _WithParameters(_FrozenModel):
    parameters: dict[str, Setting] = Field(default_factory=dict)

    @field_validator("parameters", mode="before")
    @classmethod
    def _rules(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return {} if value is None else value
        return {name: as_rules(setting) for name, setting in value.items()}


class ModelPart(_WithParameters):
    """A model in a merge, or the layers of it that go into a slice.

    Attributes:
        model: a folder, a hub id, or `BASE+ADAPTER`.
        layer_range: the first layer and the one after the last; only in slices.
    """

    model: str
    layer_range: tuple[int, int] | None = None

    @field_validator("layer_range")
    @classmethod
    def _some_layers(cls, layers: tuple[int, int] | None) -> tuple[int, int] | None:
        if layers is not None and not 0 <= layers[0] < layers[1]:
            raise ValueError(f"{list(layers)} is not a range; give the first layer and the end")
        return layers


class Slice(_WithParameters):
    """Consecutive layers of the result, each merged from one layer of every part."""

    sources: tuple[ModelPart, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if any(part.layer_range is None for part in self.sources):
            raise ValueError("every source of a slice needs a layer_range")
        if len({stop - start for start, stop in map(_range, self.sources)}) > 1:
            raise ValueError("the sources of a slice have different numbers of layers")
        return self

    @property
    def layers(self) -> int:
        """Number of layers that it adds to the result."""
        start, stop = _range(self.sources[0])
        return stop - start


class Recipe(_WithParameters):
    """A merge recipe.

    Attributes:
        method: name of the method.
        models: whole models; or else `slices`.
        base: the model that changes are relative to, or at which a path begins.
        parameters: parameters of the method, for all models and tensors.
        slices: the layers of the result from first to last.
        dtype: dtype of the result, and of the computation if it is finer than float32.
        out_dtype: dtype of the result, if it differs.
        seed: seed of random methods.
        vocabulary: what to do if models have different numbers of tokens.
        tokenizer: `base`, `union`, or the model whose tokenizer the result gets.
        chat_template: `auto`, a name of a template in transformers, or the template itself.
    """

    method: str
    models: tuple[ModelPart, ...] = ()
    base: str | None = None
    slices: tuple[Slice, ...] = ()
    dtype: Dtype | None = None
    out_dtype: Dtype | None = None
    seed: int = 0
    vocabulary: Vocabulary = "error"
    tokenizer: str | None = None
    chat_template: str | None = None
    _notices: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _models_or_slices(self) -> Self:
        if bool(self.models) == bool(self.slices):
            raise ValueError("give either models or slices, not both")
        if any(part.layer_range for part in self.models):
            raise ValueError("layer_range is allowed only in slices")
        return self

    @property
    def parts(self) -> tuple[ModelPart, ...]:
        """All parts, including those of slices."""
        return self.models or tuple(part for layers in self.slices for part in layers.sources)

    @property
    def part_models(self) -> tuple[str, ...]:
        """The model of every part."""
        return tuple(part.model for part in self.parts)

    @property
    def all_models(self) -> tuple[str, ...]:
        """Every model that is read, the base first, each once."""
        first = (self.base,) if self.base else ()
        return tuple(dict.fromkeys([*first, *self.part_models]))

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about the recipe: keys of its file without effect."""
        return self._notices

    def with_notices(self, notices: Iterable[str]) -> Self:
        """Return the recipe with notices."""
        recipe = self.model_copy()
        recipe._notices = tuple(notices)  # noqa: SLF001  # of its own class
        return recipe

    def as_yaml(self) -> str:
        """Return the recipe as text that `read_recipe` understands."""
        yaml = require("yaml", "A recipe in YAML")

        return str(yaml.safe_dump(_plain(self), sort_keys=False, allow_unicode=True))


def as_rules(setting: Any) -> Any:
    """Convert a setting (a value, a list of values over layers, or a list of rules) to rules."""
    is_list = isinstance(setting, list | tuple) and len(setting) > 0
    if is_list and all(isinstance(rule, Mapping | ParameterRule) for rule in setting):
        return setting
    return [{"value": setting}]


def settings_of(recipe: Recipe) -> Iterator[tuple[KeyPath, Settings]]:
    """Return all settings of a recipe and their key paths."""
    yield ("parameters",), recipe.parameters
    for index, part in enumerate(recipe.models):
        yield ("models", index, "parameters"), part.parameters
    for index, layers in enumerate(recipe.slices):
        yield ("slices", index, "parameters"), layers.parameters
        for source, part in enumerate(layers.sources):
            yield ("slices", index, "sources", source, "parameters"), part.parameters


def short_name(model: str) -> str:
    """Return the last part of the path or id of a model, which stays when it is moved."""
    return "+".join(PurePath(part.rstrip("/")).name for part in model.split("+"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def _range(part: ModelPart) -> tuple[int, int]:
    return part.layer_range or (0, 0)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in value.model_fields_set}
        ordered = sorted(type(value).model_fields, key=lambda name: name == "parameters")
        return {name: _plain(fields[name]) for name in ordered if fields.get(name) is not None}
    if isinstance(value, Mapping):
        return {key: _plain_setting(setting) for key, setting in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _plain_setting(setting: Setting) -> Any:
    if len(setting) == 1 and setting[0].filter is None:
        return _plain(setting[0].value)
    return [_plain(rule) for rule in setting]
