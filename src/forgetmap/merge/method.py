"""Merge methods: pure functions of tensors whose annotations declare the parameters.

    @merge_method("halfway", summary="the middle between base and one model")
    def halfway(tensors: One, base: torch.Tensor, *, t: Share = 0.5) -> torch.Tensor:
        return torch.lerp(base, tensors[0], t)

The first parameter receives the tensors of the models, `base` that of the base; all others are
keyword parameters, with their names in recipes (`lambda_` as `lambda`). Tensors have the dtype of
the computation and must not be changed in place.

A method that needs whole tensors, but then works value by value, saves memory as a function of
`ChunkedTensor` that returns a `ChunkFunction`: it reads them chunk by chunk, and returns a function
that merges one chunk.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from forgetmap._lazy import LazyModule
from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction, fill

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

Tensors = Sequence["torch.Tensor"]
"""The tensors of any number of models."""
One = tuple["torch.Tensor"]
"""The tensor of exactly one model."""
ChunkedTensors = Sequence[ChunkedTensor]
"""As `Tensors`, for methods that return a chunk function."""
OneChunkedTensor = tuple[ChunkedTensor]
"""As `One`, for methods that return a chunk function."""
BASE = "base"
MethodFunction = Callable[..., Any]
"""Returns a tensor, or a chunk function."""


@dataclass(frozen=True, slots=True)
class Between:
    """An annotation: the smallest and largest value of a parameter."""

    low: float
    high: float


Share = Annotated[float, Between(0.0, 1.0)]
"""A number from 0 to 1."""
PerModel = Annotated[tuple[float, ...], "per model"]
"""One value for every model."""
SharePerModel = Annotated[tuple[float, ...], "per model", Between(0.0, 1.0)]
"""A number from 0 to 1 for every model."""


@dataclass(frozen=True, slots=True)
class Draws:
    """Random numbers that depend only on the seed, the output tensor and the model.

    The order of the models and of the tensors does not change them.
    """

    seed: int
    tensor: str
    models: tuple[str, ...]

    def uniform(self, index: int, shape: Sequence[int]) -> torch.Tensor:
        """Draw uniformly from [0, 1), for the model at this index."""
        return torch.rand(tuple(shape), generator=self.generator(index))

    def generator(self, index: int) -> torch.Generator:
        """Return a generator of the same numbers for `torch.rand`, in any number of parts."""
        import hashlib

        key = "\0".join((str(self.seed), self.tensor, self.models[index]))
        number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1
        return torch.Generator().manual_seed(number)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a method, from its signature.

    Attributes:
        name: name in recipes.
        keyword: name in the signature.
        flag: a boolean rather than a number.
        per_model: one value for every model rather than one for all.
        default: default value; None if it is required.
        limits: smallest and largest value, if any.
    """

    name: str
    keyword: str
    flag: bool
    per_model: bool
    default: float | bool | None
    limits: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Method:
    """A merge method.

    Attributes:
        summary: one-line description.
        paper: its paper.
        direction: effect of its parameters, for help and model cards.
        base: whether a base model is needed, possible or ignored. A base that is needed or possible
            is a separate argument, and is not among the tensors.
        min_models: minimum number of models, without the base.
        max_models: maximum number of models, None for any number.
        ordered: the order of the models matters.
        elementwise: a value of the result depends only on the values at the same index.
        by_chunks: the function takes `ChunkedTensor` and returns a chunk function.
        draws: keyword of its random numbers, if it has any.
    """

    name: str
    summary: str
    paper: str
    direction: str
    function: MethodFunction
    parameters: tuple[Parameter, ...]
    base: Literal["needed", "possible", "ignored"]
    min_models: int = 1
    max_models: int | None = None
    ordered: bool = False
    elementwise: bool = False
    by_chunks: bool = False
    draws: str | None = None

    @property
    def needs_base(self) -> bool:
        """Whether a base model is required."""
        return self.base == "needed"

    def __call__(
        self,
        tensors: Tensors,
        base: torch.Tensor | None = None,
        values: Mapping[str, Any] | None = None,
        draws: Draws | None = None,
    ) -> torch.Tensor:
        """Merge tensors; `values` are named as in recipes."""
        own_base = None if base is None else ChunkedTensor(base.contiguous(), base.dtype)
        inputs = [ChunkedTensor(tensor.contiguous(), tensor.dtype) for tensor in tensors]
        merge_chunk = self.chunk_function(inputs, own_base, values or {}, draws)
        return fill(torch.empty(tensors[0].shape, dtype=tensors[0].dtype), merge_chunk)

    def chunk_function(
        self,
        tensors: ChunkedTensors,
        base: ChunkedTensor | None,
        values: Mapping[str, Any],
        draws: Draws | None,
    ) -> ChunkFunction:
        """Return the function that merges any chunk of these tensors."""
        keywords = {parameter.name: parameter.keyword for parameter in self.parameters}
        arguments = {keywords[name]: value for name, value in values.items()}
        if self.draws is not None:
            arguments[self.draws] = draws
        takes_base = self.base != "ignored"
        if self.by_chunks:
            if takes_base:
                arguments[BASE] = base
            merge_chunk: ChunkFunction = self.function(tensors, **arguments)
            return merge_chunk

        def merge(read: Callable[[ChunkedTensor], torch.Tensor]) -> torch.Tensor:
            if takes_base:
                arguments[BASE] = None if base is None else read(base)
            result: torch.Tensor = self.function([read(tensor) for tensor in tensors], **arguments)
            return result

        if self.elementwise:
            return lambda chunk: merge(lambda tensor: tensor[chunk])
        merged = merge(ChunkedTensor.whole).reshape(-1)
        return lambda chunk: merged[chunk]


def merge_method(
    name: str,
    *,
    summary: str,
    paper: str = "",
    direction: str = "",
    min_models: int = 1,
    ordered: bool = False,
    elementwise: bool = False,
) -> Callable[[MethodFunction], Method]:
    """Turn a function into a method; everything else is in its signature.

    Args:
        name: name in recipes.
        summary: one-line description.
        paper: its paper.
        direction: effect of its parameters, for help and model cards.
        min_models: minimum number of models, without the base.
        ordered: the order of the models matters.
        elementwise: a value of the result depends only on the values at the same index, so that
            large tensors may be merged in pieces.
    """

    def make(function: MethodFunction) -> Method:
        hints = _hints(function)
        first, *others = inspect.signature(function).parameters.values()
        keywords = [arg for arg in others if arg.name != BASE and hints[arg.name] is not Draws]
        return Method(
            name=name,
            summary=summary,
            paper=paper,
            direction=direction,
            function=function,
            parameters=tuple(_parameter(arg, hints[arg.name]) for arg in keywords),
            base=_base(hints.get(BASE)),
            min_models=min_models,
            max_models=1 if get_origin(hints[first.name]) is tuple else None,
            ordered=ordered,
            elementwise=elementwise,
            by_chunks=get_origin(hints["return"]) is Callable,
            draws=next((arg.name for arg in others if hints[arg.name] is Draws), None),
        )

    return make


class _NoTorch:
    """Replaces torch when annotations are read, so that the help of a method does not import it."""

    Tensor = type("Tensor", (), {})


def _hints(function: MethodFunction) -> dict[str, Any]:
    loaded = {
        name: value
        for name, value in function.__globals__.items()
        if not isinstance(value, LazyModule)
    }
    return get_type_hints(function, globalns={"torch": _NoTorch, **loaded}, include_extras=True)


def _base(hint: Any) -> Literal["needed", "possible", "ignored"]:
    if hint is None:
        return "ignored"
    return "possible" if NoneType in get_args(hint) else "needed"


def _parameter(argument: inspect.Parameter, hint: Any) -> Parameter:
    kind, *marks = get_args(hint) if get_origin(hint) is Annotated else [hint]
    limits: Between | None = next((mark for mark in marks if isinstance(mark, Between)), None)
    default = None if argument.default is argument.empty else argument.default
    return Parameter(
        name=argument.name.rstrip("_"),
        keyword=argument.name,
        flag=kind is bool,
        per_model=get_origin(kind) is tuple,
        default=default[0] if isinstance(default, tuple) else default,
        limits=(limits.low, limits.high) if limits else None,
    )
