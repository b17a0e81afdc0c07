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
"""Classes that a stand-in reports as its own, if its original is one of these or a subclass."""
_DECOYS, _WITH_MANY_DECOYS = 7, 20
"""Decoys of each of the first comparisons, and number of these; later ones have one decoy."""
_ALMOST = 0.99
"""Tolerance for distances, since differences are rounded."""
_LIKE_ALL = "it returned an object that is like everything"


class TamperingError(BaseException):
    """A message is not a reply to a request, or a value claims to be equal to anything."""


class StandIn:
    """Stand-in for an object of the other process; `stand_in_class` adds its operators."""

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
    """Request an action on the original from the other process."""
    return object.__getattribute__(stand_in, "_exchange").ask(action, *operands, named=named)


def number_of(stand_in: StandIn) -> int:
    """Return the number of the original in the other process."""
    number: int = object.__getattribute__(stand_in, "_number")
    return number


def make_stand_in(exchange: Any, number: int, traits: Iterable[str], nature: str) -> StandIn:
    """Return a stand-in for the object with this number in the other process."""
    kind = stand_in_class(frozenset(traits).intersection(_METHODS), nature)
    return _make(kind, exchange, number)


def _make(kind: type[StandIn], exchange: Any, number: int) -> StandIn:
    made = kind()
    object.__setattr__(made, "_exchange", exchange)
    object.__setattr__(made, "_number", number)
    return made


@lru_cache(maxsize=1_000)
def stand_in_class(traits: frozenset[str], nature: str) -> type[StandIn]:
    """Return a class with only these operators, so that it is callable only if its original is."""
    methods: dict[str, Any] = {name: _METHODS[name] for name in traits}
    if nature == "coroutine":
        methods |= {"send": _complete, "throw": _complete, "close": lambda _: None}
    return type(nature, (StandIn,), {"__slots__": (), "__hash__": None, **methods})


@lru_cache(maxsize=1_000)
def traits_of(kind: type) -> tuple[list[str], str]:
    """Return the operators of a class, and its name among the `NATURES`, else `object`."""
    # Not by getattr, which also finds the operators of the metaclass.
    members = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    traits = [name for name in _METHODS if members.get(name) is not None]
    natures = (base.__name__ for base in kind.__mro__ if NATURES.get(base.__name__) is base)
    return traits, next(natures, "object")


def _forward(action: str) -> Callable[..., Any]:
    return lambda self, *operands, **named: ask(self, action, self, *operands, **named)


def _backward(action: str) -> Callable[..., Any]:
    return lambda self, other: ask(self, action, other, self)


def _comparison(action: str, *, claim: bool, decoy: Callable[[Any], Any] = unlike) -> Any:
    """Return a comparison that forwards to the original, and detects one that also claims decoys.

    Args:
        action: the comparison.
        claim: the result that lets a test pass.
        decoy: makes, from the compared value, one for which no honest object returns the claim.
    """

    def compare(self: StandIn, other: Any) -> Any:
        is_number = isinstance(other, int | float)
        if _is_trusted(self, other) or (decoy is not unlike and not is_number):
            return ask(self, action, self, other)
        values = _with_decoys(self, other, decoy)
        reply, (truth, *rest) = _replies_to(
            values, lambda value: ask(self, action, self, value), _truth
        )
        is_lie = truth is claim and claim in rest
        if isinstance(reply, StandIn) and truth is not None:
            return _with_truth(reply, truth=truth, is_lie=is_lie)
        return _accuse(self, _LIKE_ALL) if is_lie else reply

    return compare


def _difference(*, backward: bool) -> Callable[[StandIn, Any], Any]:
    """Return a subtraction that forwards, and detects an object close to two distant numbers."""

    def subtract(self: StandIn, other: Any) -> Any:
        def ask_of(number: Any) -> Any:
            return ask(self, "sub", *((number, self) if backward else (self, number)))

        if _is_trusted(self, other) or not isinstance(other, int | float):
            return ask_of(other)
        numbers = _with_decoys(self, other, unlike)
        reply, (distance, *rest) = _replies_to(numbers, ask_of, _size)
        for number, size in zip(numbers[1:], rest, strict=True):
            if distance is None or size is None or not isinstance(number, int | float):
                continue
            if distance + size < _ALMOST * abs(other - number):
                _accuse(self, "it returned an object that is near every number")
        return reply

    return subtract


def _is_trusted(stand_in: StandIn, value: Any) -> bool:
    """Whether a comparison needs no decoys: made by the answer, or between its own objects."""
    return object.__getattribute__(stand_in, "_exchange").trusting or isinstance(value, StandIn)


def _with_decoys(stand_in: StandIn, value: Any, make: Callable[[Any], Any]) -> list[Any]:
    exchange = object.__getattribute__(stand_in, "_exchange")
    exchange.compared += 1
    number = _DECOYS if exchange.compared <= _WITH_MANY_DECOYS else 1
    return with_decoys(value, number, make)


def _replies_to(
    values: list[Any], say: Callable[[Any], Any], read: Callable[[Any], Any]
) -> tuple[Any, list[Any]]:
    """Return the reply for the first value, and the readings of the replies for all values.

    The values are tried in random order.
    """
    first_reply, readings = None, [None] * len(values)
    for index in shuffle(list(range(len(values)))):
        # Errors of decoys are not claims and do not concern the tests.
        with suppress(*([Exception] if index else [])):
            reply = say(values[index])
            first_reply = first_reply if index else reply
            with suppress(Exception):
                readings[index] = read(reply)
    return first_reply, readings


def _truth(reply: Any) -> bool:
    """Return the truth value in a test; of arrays of numpy, whether all elements are true."""
    every = getattr(type(reply), "all", None)
    return bool(every(reply) if every else reply)


def _size(reply: Any) -> float | None:
    size = abs(reply)
    return size if isinstance(size, int | float) else None


def _with_truth(reply: StandIn, *, truth: bool, is_lie: bool) -> StandIn:
    """Return the reply with a fixed truth value; a lie is reported only if a test evaluates it.

    Honest objects may also return objects from a comparison, such as a condition of a query.
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
    """Run a coroutine to its end in the process that made it."""
    raise StopIteration(ask(self, "complete", self))


def _await(self: StandIn) -> Generator[Any, None, Any]:
    # `await` needs a generator.
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
"""Operations allowed on any object of the other process."""

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
