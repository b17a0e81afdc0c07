"""What stands in one process for an object of the other, and passes on what is done with it."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import lru_cache
from secrets import token_hex
from typing import Any, NoReturn

_KINDS: tuple[type, ...] = (
    tuple, list, dict, set, frozenset, str, bytes, int, float, complex, type, types.FunctionType,
    types.BuiltinFunctionType, types.MethodType, types.GeneratorType, types.CoroutineType,
)  # fmt: skip
NATURES: Mapping[str, type] = {kind.__name__: kind for kind in _KINDS}
"""What a stand-in says it is, where its original is one of these or made from one."""


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
    made = stand_in_class(frozenset(traits).intersection(_METHODS), nature)()
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


def _comparison(action: str, *, claim: bool, challenges: Mapping[type, Callable[[], Any]]) -> Any:
    """What the original says, unless it says the same of a value that nobody can know.

    Args:
        action: how it is compared.
        claim: the answer that lets a test pass.
        challenges: by type of the other side, values of which no honest object says so.
    """

    def compare(self: StandIn, other: Any) -> Any:
        answer = ask(self, action, self, other)
        exchange = object.__getattribute__(self, "_exchange")
        challenge = challenges.get(type(other))
        if answer is not claim or challenge is None or exchange.trusting:
            return answer
        if ask(self, action, self, challenge()) is claim:
            exchange.fault = TamperingError("it returned an object that is like everything")
            raise exchange.fault
        return answer

    return compare


def _random_number() -> int:
    return int(token_hex(16), 16)


_OTHERS: Mapping[type, Callable[[], Any]] = {
    str: lambda: token_hex(16),
    int: _random_number,
    float: _random_number,
    list: lambda: [token_hex(16)],
    tuple: lambda: (token_hex(16),),
    dict: lambda: {token_hex(16): token_hex(16)},
    set: lambda: {token_hex(16)},
}
_HIGH = dict.fromkeys((int, float), _random_number)
_LOW = dict.fromkeys((int, float), lambda: -_random_number())


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
    "__eq__": _comparison("eq", claim=True, challenges=_OTHERS),
    "__ne__": _comparison("ne", claim=False, challenges=_OTHERS),
    "__lt__": _comparison("lt", claim=True, challenges=_LOW),
    "__le__": _comparison("le", claim=True, challenges=_LOW),
    "__gt__": _comparison("gt", claim=True, challenges=_HIGH),
    "__ge__": _comparison("ge", claim=True, challenges=_HIGH),
    "__exit__": _leave, "__await__": _await,
}  # fmt: skip
