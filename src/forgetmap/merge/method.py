"""What a merge method is: a pure function of tensors whose annotations say what it takes.

    @merge_method("halfway", says="the middle between base and one model", paper="")
    def halfway(tensors: One, base: torch.Tensor, *, t: Share = 0.5) -> torch.Tensor:
        return torch.lerp(base, tensors[0], t)

The first parameter receives the models' tensors, one called `base` that of the base; all others
are by keyword and appear under their names in recipes (`lambda_` as `lambda`). Tensors arrive in
the dtype of the computation and must not be changed in place.

A method that has to see whole tensors, but then works value by value, saves memory as a function of
`Values` that returns a `Step`: it looks at them a stretch at a time and says how to merge one.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import torch

from forgetmap.merge.stretches import Step, Values, fill

Tensors = Sequence[torch.Tensor]
"""The tensors of any number of models."""
One = tuple[torch.Tensor]
"""The tensor of exactly one model."""
ManyValues = Sequence[Values]
"""As `Tensors`, for methods that return a step."""
OneValues = tuple[Values]
"""As `One`, for methods that return a step."""
BASE = "base"
Merging = Callable[..., Any]
"""Returns a tensor, or a step."""


@dataclass(frozen=True, slots=True)
class Between:
    """An annotation: the least and greatest value of a parameter."""

    low: float
    high: float


Share = Annotated[float, Between(0.0, 1.0)]
PerModel = Annotated[tuple[float, ...], "per model"]
"""One value for every model."""
SharePerModel = Annotated[tuple[float, ...], "per model", Between(0.0, 1.0)]


@dataclass(frozen=True, slots=True)
class Draws:
    """Random numbers that depend on the seed, the output tensor and the model, on nothing else.

    Neither the order of the models nor that in which tensors are worked on changes them.
    """

    seed: int
    tensor: str
    models: tuple[str, ...]

    def uniform(self, place: int, shape: Sequence[int]) -> torch.Tensor:
        """Uniform on [0, 1), for the model at this place."""
        return torch.rand(tuple(shape), generator=self.generator(place))

    def generator(self, place: int) -> torch.Generator:
        """Gives the same numbers with `torch.rand`, in as many parts as one likes."""
        key = "\0".join((str(self.seed), self.tensor, self.models[place]))
        number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1
        return torch.Generator().manual_seed(number)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a method, as its signature has it.

    Attributes:
        name: as in recipes.
        keyword: as in the signature.
        flag: true or false rather than a number.
        per_model: one value for every model rather than one for all.
        default: None if it has to be given.
        limits: least and greatest value, if there are such.
    """

    name: str
    keyword: str
    flag: bool
    per_model: bool
    default: float | bool | None
    limits: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Method:
    """A way to merge tensors.

    Attributes:
        base: whether a base model is needed, possible or ignored. A base that is needed or
            possible is handed over apart, and is not among the tensors.
        fewest: how many models it takes at least, the base not counted.
        most: how many at most, None for any number.
        ordered: the order of the models matters.
        elementwise: a value of the result depends only on the values at the same place.
        stepwise: the function takes `Values` and returns a step.
        draws: the keyword under which it takes random numbers, if it does.
    """

    name: str
    says: str
    paper: str
    function: Merging
    parameters: tuple[Parameter, ...]
    base: Literal["needed", "possible", "ignored"]
    fewest: int = 1
    most: int | None = None
    ordered: bool = False
    elementwise: bool = False
    stepwise: bool = False
    draws: str | None = None

    @property
    def needs_base(self) -> bool:
        """It cannot do without a base model."""
        return self.base == "needed"

    def __call__(
        self,
        tensors: Tensors,
        base: torch.Tensor | None = None,
        values: Mapping[str, Any] | None = None,
        draws: Draws | None = None,
    ) -> torch.Tensor:
        """Merge; `values` by the names of recipes."""
        own_base = None if base is None else Values(base.contiguous(), base.dtype)
        taken = [Values(tensor.contiguous(), tensor.dtype) for tensor in tensors]
        step = self.step(taken, own_base, values or {}, draws)
        return fill(torch.empty(tensors[0].shape, dtype=tensors[0].dtype), step)

    def step(
        self,
        tensors: ManyValues,
        base: Values | None,
        values: Mapping[str, Any],
        draws: Draws | None,
    ) -> Step:
        """How to merge any stretch of these tensors."""
        keywords = {each.name: each.keyword for each in self.parameters}
        given = {keywords[name]: value for name, value in values.items()}
        if self.draws is not None:
            given[self.draws] = draws
        takes_base = self.base != "ignored"
        if self.stepwise:
            step: Step = self.function(tensors, **given, **({BASE: base} if takes_base else {}))
            return step

        def merged(take: Callable[[Values], torch.Tensor]) -> torch.Tensor:
            if takes_base:
                given[BASE] = None if base is None else take(base)
            result: torch.Tensor = self.function([take(each) for each in tensors], **given)
            return result

        if self.elementwise:
            return lambda stretch: merged(lambda each: each[stretch])
        whole = merged(Values.whole).reshape(-1)
        return lambda stretch: whole[stretch]


def merge_method(
    name: str,
    *,
    says: str,
    paper: str = "",
    fewest: int = 1,
    ordered: bool = False,
    elementwise: bool = False,
) -> Callable[[Merging], Method]:
    """Make a method of a function; its signature says all the rest.

    Args:
        name: as in recipes.
        says: one line for people.
        paper: where it comes from.
        fewest: how many models it takes at least, the base not counted.
        ordered: the order of the models matters.
        elementwise: a value of the result depends only on the values at the same place, so that
            large tensors may be merged in pieces.
    """

    def made(function: Merging) -> Method:
        hints = get_type_hints(function, include_extras=True)
        first, *others = inspect.signature(function).parameters.values()
        keywords = [each for each in others if each.name != BASE and hints[each.name] is not Draws]
        return Method(
            name=name,
            says=says,
            paper=paper,
            function=function,
            parameters=tuple(_parameter(each, hints[each.name]) for each in keywords),
            base=_base(hints.get(BASE)),
            fewest=fewest,
            most=1 if hints[first.name] in {One, OneValues} else None,
            ordered=ordered,
            elementwise=elementwise,
            stepwise=hints["return"] == Step,
            draws=next((each.name for each in others if hints[each.name] is Draws), None),
        )

    return made


def _base(hint: Any) -> Literal["needed", "possible", "ignored"]:
    if hint in {torch.Tensor, Values}:
        return "needed"
    return "ignored" if hint is None else "possible"


def _parameter(given: inspect.Parameter, hint: Any) -> Parameter:
    kind, *marks = get_args(hint) if get_origin(hint) is Annotated else [hint]
    limits: Between | None = next((each for each in marks if isinstance(each, Between)), None)
    default = None if given.default is given.empty else given.default
    return Parameter(
        name=given.name.rstrip("_"),
        keyword=given.name,
        flag=kind is bool,
        per_model=get_origin(kind) is tuple,
        default=default[0] if isinstance(default, tuple) else default,
        limits=(limits.low, limits.high) if limits else None,
    )
