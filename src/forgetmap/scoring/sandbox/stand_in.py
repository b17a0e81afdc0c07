"""Proxies for objects of the other process, which forward all operations."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn

from forgetmap.scoring.sandbox.decoys import (
    far_above,
    far_below,
    shuffle,
    unlike,
    with_decoys,
)

_KINDS: tuple[type, ...] = (
    tuple, list, dict, set, frozenset, str, bytes, int, float, complex, type, types.FunctionType,
    types.BuiltinFunctionType, types.MethodType, types.GeneratorType, types.CoroutineType,
)  # fmt: skip
NATURES: Mapping[str, type] = {kind.__name__: kind for kind in _KINDS}
"""What a stand-in says it is, where its original is one of these or made from one."""
_DECOYS, _WITH_MANY_DECOYS = 7, 20
"""For each of the first comparisons; a program that got through these gets one for each."""
_ALMOST = 0.99
"""Of a distance: differences are rounded."""
_LIKE_ALL = "it returned an object that is like everything"


class TamperingError(BaseException):
    """Something was sent that is no reply to what was asked, or a value that claims too much."""


class StandIn:
    """For an object of the other process; its operators are added by `stand_in_class`."""

    __slots__ = ("_exchange", "_number")

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            nature = NATURES.get(type(self).__name__)
            if nature is not None:
                return nature
        return ask(self, "getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        ask(self, "setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        ask(self, "delattr", self, name)


def ask(stand_in: StandIn, action: str, *operands: Any, **named: Any) -> Any:
    """Have the other process do something with the original."""
    return object.__getattribute__(stand_in, "_exchange").ask(action, *operands, named=named)


def number_of(stand_in: StandIn) -> int:
    """Under which the other process knows the original."""
    number: int = object.__getattribute__(stand_in, "_number")
    return number


def make_stand_in(exchange: Any, number: int, traits: Iterable[str], nature: str) -> StandIn:
    """Stand for the object that has this number in the other process."""
    kind = stand_in_class(frozenset(traits).intersection(_METHODS), nature)
    return _make(kind, exchange, number)


def _make(kind: type[StandIn], exchange: Any, number: int) -> StandIn:
    made = kind()
    object.__setattr__(made, "_exchange", exchange)
    object.__setattr__(made, "_number", number)
    return made


@lru_cache(maxsize=1_000)
def stand_in_class(traits: frozenset[str], nature: str) -> type[StandIn]:
    """A class with just these operators, so that what cannot be called or counted is not."""
    methods: dict[str, Any] = {name: _METHODS[name] for name in traits}
    if nature == "coroutine":
        methods |= {"send": _complete, "throw": _complete, "close": lambda _: None}
    return type(nature, (StandIn,), {"__slots__": (), "__hash__": None, **methods})


@lru_cache(maxsize=1_000)
def traits_of(kind: type) -> tuple[list[str], str]:
    """The operators of a class, and which of the `NATURES` it has."""
    # Not by getattr, which also finds what can be done with the class itself.
    members = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    traits = [name for name in _METHODS if members.get(name) is not None]
    natures = (base.__name__ for base in kind.__mro__ if NATURES.get(base.__name__) is base)
    return traits, next(natures, "object")


def _forward(action: str) -> Callable[..., Any]:
    return lambda self, *operands, **named: ask(self, action, self, *operands, **named)


def _backward(action: str) -> Callable[..., Any]:
    return lambda self, other: ask(self, action, other, self)


def _comparison(action: str, *, claim: bool, decoy: Callable[[Any], Any] = unlike) -> Any:
    """What the original says, unless it says so of decoys as well.

    Args:
        action: how it is compared.
        claim: the answer that lets a test pass.
        decoy: makes a value of which no honest object says so, from the one it is compared with.
    """

    def compare(self: StandIn, other: Any) -> Any:
        is_number = isinstance(other, int | float)
        if _is_believed(self, other) or (decoy is not unlike and not is_number):
            return ask(self, action, self, other)
        values = _with_decoys(self, other, decoy)
        said, (truth, *rest) = _said_of(values, lambda each: ask(self, action, self, each), _truth)
        is_lie = truth is claim and claim in rest
        if isinstance(said, StandIn) and truth is not None:
            return _with_truth(said, truth=truth, is_lie=is_lie)
        return _accuse(self, _LIKE_ALL) if is_lie else said

    return compare


def _difference(*, backward: bool) -> Callable[[StandIn, Any], Any]:
    """What the original says, unless it says to be nearer to two numbers than any number is."""

    def subtract(self: StandIn, other: Any) -> Any:
        def ask_of(number: Any) -> Any:
            return ask(self, "sub", *((number, self) if backward else (self, number)))

        if _is_believed(self, other) or not isinstance(other, int | float):
            return ask_of(other)
        numbers = _with_decoys(self, other, unlike)
        said, (distance, *rest) = _said_of(numbers, ask_of, _size)
        for number, size in zip(numbers[1:], rest, strict=True):
            if distance is None or size is None or not isinstance(number, int | float):
                continue
            if distance + size < _ALMOST * abs(other - number):
                _accuse(self, "it returned an object that is near every number")
        return said

    return subtract


def _is_believed(stand_in: StandIn, value: Any) -> bool:
    """Whether what an object says is taken as it is: by an answer, or of objects of its own."""
    return object.__getattribute__(stand_in, "_exchange").trusting or isinstance(value, StandIn)


def _with_decoys(stand_in: StandIn, value: Any, make: Callable[[Any], Any]) -> list[Any]:
    exchange = object.__getattribute__(stand_in, "_exchange")
    exchange.compared += 1
    number = _DECOYS if exchange.compared <= _WITH_MANY_DECOYS else 1
    return with_decoys(value, number, make)


def _said_of(
    values: list[Any], say: Callable[[Any], Any], read: Callable[[Any], Any]
) -> tuple[Any, list[Any]]:
    """What is said of the first value, and what that and what is said of the others comes to.

    All are asked about in an order that nobody knows.
    """
    said, readings = None, [None] * len(values)
    for place in shuffle(list(range(len(values)))):
        # What a decoy leads to is no claim and concerns no test, whatever is raised.
        with suppress(*([Exception] if place else [])):
            reply = say(values[place])
            said = said if place else reply
            with suppress(Exception):
                readings[place] = read(reply)
    return said, readings


def _truth(reply: Any) -> bool:
    """What it counts as in a test; arrays of numpy have no truth of their own."""
    every = getattr(type(reply), "all", None)
    return bool(every(reply) if every else reply)


def _size(reply: Any) -> float | None:
    size = abs(reply)
    return size if isinstance(size, int | float) else None


def _with_truth(reply: StandIn, *, truth: bool, is_lie: bool) -> StandIn:
    """The same, but true or not from now on; a lie is one only once a test wants to know.

    Honest objects reply with others to a comparison too, such as a condition in another language.
    """

    def fixed(self: StandIn) -> bool:
        return _accuse(self, _LIKE_ALL) if is_lie else truth

    kind = type(type(reply).__name__, (type(reply),), {"__slots__": (), "__bool__": fixed})
    return _make(kind, object.__getattribute__(reply, "_exchange"), number_of(reply))


def _accuse(stand_in: StandIn, of: str) -> NoReturn:
    exchange = object.__getattribute__(stand_in, "_exchange")
    exchange.fault = TamperingError(of)
    raise exchange.fault


def _complete(self: StandIn, *_: Any) -> NoReturn:
    """A coroutine is run to its end in the process that made it."""
    raise StopIteration(ask(self, "complete", self))


def _await(self: StandIn) -> Generator[Any, None, Any]:
    # A generator is what `await` wants.
    yield from ()
    return ask(self, "complete", self)


def _leave(self: StandIn, _: Any, error: BaseException | None, __: Any) -> Any:
    return ask(self, "exit", self, error)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "divmod": divmod, "pow": pow,
    "matmul": operator.matmul, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift,
}  # fmt: skip
_IN_PLACE: dict[str, Callable[..., Any]] = {
    "iadd": operator.iadd, "isub": operator.isub, "imul": operator.imul,
    "itruediv": operator.itruediv, "ifloordiv": operator.ifloordiv, "imod": operator.imod,
    "ipow": operator.ipow, "imatmul": operator.imatmul, "iand": operator.iand,
    "ior": operator.ior, "ixor": operator.ixor,
}  # fmt: skip
_PLAIN: dict[str, Callable[..., Any]] = {
    "call": lambda function, /, *operands, **named: function(*operands, **named),
    "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "hash": hash, "len": len, "bool": bool, "iter": iter, "next": next,
    "contains": operator.contains, "getitem": operator.getitem, "setitem": operator.setitem,
    "delitem": operator.delitem, "neg": operator.neg, "pos": operator.pos, "abs": abs,
    "invert": operator.invert, "int": int, "float": float, "complex": complex,
    "index": operator.index, "round": round, "str": str, "repr": repr, "format": format,
    "reversed": reversed, "bytes": bytes, "length_hint": operator.length_hint,
    "enter": lambda manager: type(manager).__enter__(manager),
    "instancecheck": lambda kind, value: isinstance(value, kind),
    "subclasscheck": lambda kind, value: issubclass(value, kind),
}  # fmt: skip
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    **_PLAIN, **_ARITHMETIC, **_IN_PLACE,
    "eq": operator.eq, "getattr": getattr, "setattr": setattr, "delattr": delattr,
    "exit": lambda manager, error: type(manager).__exit__(
        manager, type(error) if error else None, error, None
    ),
}  # fmt: skip
"""What may be done with any object of the other process."""

_METHODS: Mapping[str, Any] = {
    **{f"__{name}__": _forward(name) for name in (*_PLAIN, *_ARITHMETIC, *_IN_PLACE)},
    **{f"__r{name}__": _backward(name) for name in _ARITHMETIC},
    "__eq__": _comparison("eq", claim=True),
    "__ne__": _comparison("ne", claim=False),
    "__lt__": _comparison("lt", claim=True, decoy=far_below),
    "__le__": _comparison("le", claim=True, decoy=far_below),
    "__gt__": _comparison("gt", claim=True, decoy=far_above),
    "__ge__": _comparison("ge", claim=True, decoy=far_above),
    "__sub__": _difference(backward=False), "__rsub__": _difference(backward=True),
    "__exit__": _leave, "__await__": _await,
}  # fmt: skip
