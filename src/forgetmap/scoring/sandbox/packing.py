"""JSON encoding of values between a trusted and an untrusted process.

Plain values are copied, other objects get a number. Unpacking runs no code of the other process: it
makes plain values, stand-ins and exceptions, and raises one of `BROKEN` otherwise.
"""

from __future__ import annotations

import builtins
import importlib
import operator
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from pathlib import PosixPath, PurePosixPath
from typing import Any

from forgetmap.scoring.sandbox.stand_in import StandIn, make_stand_in, number_of, traits_of

BROKEN = (
    ArithmeticError, AttributeError, ImportError, LookupError, RecursionError, SyntaxError,
    TypeError, ValueError,
)  # fmt: skip
"""Errors raised by unpacking an invalid value."""

_MAX_DEPTH = 60
"""Levels of nested containers that are copied; deeper ones are passed by reference."""
_MAX_TEXT = 2_000
"""Characters of the text of an exception."""
_SMALL = 1 << 62
_SCALARS = frozenset({str, float, bool, type(None)})
_WITH_INTEGERS = _SCALARS | {int}

_CONTAINERS: Mapping[type, str] = {
    list: "list", dict: "dict", set: "set", bytearray: "bytearray", deque: "deque",
    Counter: "Counter", OrderedDict: "OrderedDict", defaultdict: "defaultdict",
}  # fmt: skip
_EMPTY: Mapping[str, Callable[[], Any]] = {name: kind for kind, name in _CONTAINERS.items()}
_PARTS: Mapping[type, tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", list),
    frozenset: ("frozenset", list),
    bytes: ("bytes", bytes.hex),
    complex: ("complex", lambda value: [value.real, value.imag]),
    range: ("range", lambda value: [value.start, value.stop, value.step]),
    slice: ("slice", lambda value: [value.start, value.stop, value.step]),
    Decimal: ("Decimal", str),
    Fraction: ("Fraction", lambda value: [value.numerator, value.denominator]),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    PosixPath: ("PosixPath", str),
    PurePosixPath: ("PurePosixPath", str),
    timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
}
_MAKE: Mapping[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "frozenset": frozenset,
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(*parts),
    "range": lambda parts: range(*parts),
    "slice": lambda parts: slice(*parts),
    "Decimal": Decimal,
    "Fraction": lambda parts: Fraction(*parts),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "PosixPath": PosixPath,
    "PurePosixPath": PurePosixPath,
    "timedelta": lambda parts: timedelta(*parts),
}


class Objects:
    """Objects that two processes have passed to each other.

    Args:
        exchange: forwards the operations on a stand-in.
        trusting: whether the other process may name modules to import.
    """

    def __init__(self, exchange: Any, *, trusting: bool) -> None:
        self.trusting = trusting
        self._exchange = exchange
        self._own: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._stand_ins: dict[int, StandIn] = {}
        self._classes: dict[int, type[BaseException]] = {}

    def number(self, value: Any) -> int:
        """Return the number of an object of this process, for the other process."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._own)
            self._own.append(value)
        return self._numbers[id(value)]

    def was_sent(self, value: Any) -> bool:
        """Whether an object was passed to the other process."""
        return id(value) in self._numbers

    def own(self, number: int) -> Any:
        """Return the object of this process with a number."""
        if number < 0:
            raise IndexError
        return self._own[number]

    def stand_in(self, number: int, traits: list[str], nature: str) -> StandIn:
        """Return the stand-in for an object of the other process, always the same one."""
        if number not in self._stand_ins:
            self._stand_ins[number] = make_stand_in(self._exchange, number, traits, nature)
        return self._stand_ins[number]

    def error_class(self, number: int, name: str, bases: tuple[Any, ...]) -> type[BaseException]:
        """Return the stand-in for an exception class, itself a class, so that it can be caught."""
        if number not in self._classes:
            if not bases or not all(issubclass(base, BaseException) for base in bases):
                raise TypeError
            own = {"__str__": _own_text, "_number": number}
            self._classes[number] = type(name, bases, own)
        return self._classes[number]


def _own_text(error: BaseException) -> str:
    text = vars(error).get("_text")
    return text if isinstance(text, str) else BaseException.__str__(error)


class Packing:
    """An outgoing message; `containers` are the containers in it, in order.

    Args:
        objects: objects of the two processes.
        known: containers in the request of the other process.
    """

    def __init__(self, objects: Objects, known: list[Any]) -> None:
        self.containers: list[Any] = []
        self._objects = objects
        self._known = {id(value): number for number, value in enumerate(known)}
        self._seen: dict[int, int] = {}
        self._depth = 0

    def pack(self, value: Any) -> Any:
        """Return the value in a form that JSON can encode."""
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is int:
            return value if -_SMALL < value < _SMALL else ["int", hex(value)]
        if kind in _CONTAINERS or kind in _PARTS:
            return self._nested(value)
        if issubclass(kind, StandIn):
            return ["yours", number_of(value)]
        if isinstance(value, BaseException):
            return self._error(value)
        return _array(value) or self._name(value) or self._reference(value)

    def _nested(self, value: Any) -> list[Any]:
        if id(value) in self._known:
            return ["known", self._known[id(value)]]
        if id(value) in self._seen:
            return ["again", self._seen[id(value)]]
        if self._depth >= _MAX_DEPTH:
            return self._reference(value)
        self._depth += 1
        try:
            if type(value) in _PARTS:
                name, parts = _PARTS[type(value)]
                return [name, self.content(parts(value))]
            self._seen[id(value)] = len(self.containers)
            self.containers.append(value)
            return [_CONTAINERS[type(value)], self.content(content(value))]
        finally:
            self._depth -= 1

    def content(self, values: Any) -> list[Any]:
        """Pack elements, all at once if they are all plain."""
        if isinstance(values, str):
            return ["plain", values]
        kinds = set(map(type, values))
        is_plain = kinds <= _WITH_INTEGERS
        if is_plain and int in kinds:
            is_plain = all(-_SMALL < value < _SMALL for value in values if type(value) is int)
        return ["plain", values] if is_plain else ["each", [self.pack(each) for each in values]]

    def _error(self, error: BaseException) -> list[Any]:
        try:
            text = str(error)[:_MAX_TEXT]
        except BaseException:  # noqa: BLE001  # its `__str__` fails
            text = ""
        short = all(
            type(each) in _WITH_INTEGERS and len(str(each)) <= _MAX_TEXT
            for each in error.args
            if not isinstance(each, int) or abs(each) < _SMALL
        )
        arguments = self.pack(tuple(error.args) if short else (text,))
        attributes = {} if id(error) in self._seen else vars(error)
        self._seen[id(error)] = -1  # errors refer to one another, and to themselves
        packed = {str(name): self.pack(value) for name, value in attributes.items()}
        return ["error", self._error_class(type(error)), arguments, text, packed]

    def _error_class(self, kind: type) -> list[Any]:
        if getattr(builtins, kind.__name__, None) is kind:
            return ["builtin", kind.__name__]
        if "_number" in vars(kind):
            return ["yours", vars(kind)["_number"]]
        bases = [
            self._error_class(base) for base in kind.__bases__ if issubclass(base, BaseException)
        ]
        location = [kind.__module__, kind.__qualname__] if _is_named(kind) else None
        return ["raised", self._objects.number(kind), kind.__name__, bases, location]

    def _name(self, value: Any) -> list[Any] | None:
        """Pack a value by name: built-in types, and from the tests also the standard library."""
        if isinstance(value, type):
            if issubclass(value, BaseException):
                return self._error_class(value)
            name = getattr(value, "__name__", "")
            if getattr(builtins, name, None) is value:
                return ["builtin", name]
        if self._objects.trusting:
            return None
        if isinstance(value, types.ModuleType):
            known = value.__name__.partition(".")[0] in sys.stdlib_module_names
            return ["named", value.__name__, ""] if known else None
        return ["named", value.__module__, value.__qualname__] if _is_named(value) else None

    def _reference(self, value: Any) -> list[Any]:
        kind: type = type(value)
        return ["own", self._objects.number(value), *traits_of(kind)]


def _array(value: Any) -> list[Any] | None:
    """Pack numbers and arrays of numpy, if it is loaded."""
    numpy = sys.modules.get("numpy")
    kind = getattr(type(value), "__module__", None)
    if numpy is None or kind != "numpy" or not isinstance(value, numpy.ndarray | numpy.generic):
        return None
    if value.dtype.hasobject or value.dtype.names:
        return None
    shape = list(value.shape) if isinstance(value, numpy.ndarray) else None
    return ["array", value.dtype.str, shape, value.tobytes().hex()]


def _is_named(value: Any) -> bool:
    """Whether the standard library has this value under its name."""
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return False
    module = value.__module__
    if not isinstance(module, str) or module.partition(".")[0] not in sys.stdlib_module_names:
        return False
    try:
        return operator.attrgetter(value.__qualname__)(sys.modules[module]) is value
    except (AttributeError, KeyError):
        return False


class Unpacking:
    """An incoming message; `containers` are the containers in it, in order.

    Args:
        objects: objects of the two processes.
        known: containers that this process has sent, which the message may refer to.
    """

    def __init__(self, objects: Objects, known: list[Any]) -> None:
        self.containers: list[Any] = []
        self._objects = objects
        self._known = known

    def unpack(self, packed: Any) -> Any:
        """Return the value; raise one of `BROKEN` if it is invalid."""
        if not isinstance(packed, list):
            if isinstance(packed, dict):
                raise TypeError
            return packed
        tag, *rest = packed
        if tag in _EMPTY:
            container = _EMPTY[tag]()
            self.containers.append(container)
            refill(container, self.unpack(*rest))
            return container
        if tag in _MAKE:
            return _MAKE[tag](self.unpack(*rest))
        return _UNPACK[tag](self, *rest)

    def each(self, packed: list[Any]) -> list[Any]:
        """Return elements that are not all plain."""
        return [self.unpack(each) for each in packed]

    def again(self, number: int) -> Any:
        """Return a container of this message."""
        return self.containers[number]

    def known(self, number: int) -> Any:
        """Return a container of the previous message."""
        return self._known[number]

    def own(self, number: int, traits: list[str], nature: str) -> StandIn:
        """Return the stand-in for an object of the other process."""
        return self._objects.stand_in(number, list(map(str, traits)), str(nature))

    def yours(self, number: int) -> Any:
        """Return an object of this process."""
        return self._objects.own(number)

    def named(self, module: str, name: str) -> Any:
        """Return the module or object with this name."""
        if not self._objects.trusting:
            raise TypeError
        loaded = importlib.import_module(module)
        return operator.attrgetter(name)(loaded) if name else loaded

    def raised(self, number: int, name: str, bases: list[Any], location: list[str] | None) -> type:
        """Return an exception class that is not built in."""
        library_class = self._library_error(*location) if location else None
        if library_class is not None:
            return library_class
        above = tuple(self.unpack(base) for base in bases)
        return self._objects.error_class(number, str(name), above)

    def _library_error(self, module: str, name: str) -> type[BaseException] | None:
        """Return an exception class of the library; if not trusting, only of a loaded module."""
        if self._objects.trusting:
            importlib.import_module(module)
        if module not in sys.modules:
            return None
        value = operator.attrgetter(name)(sys.modules[module])
        return value if isinstance(value, type) and issubclass(value, BaseException) else None

    def error(
        self, kind: list[Any], arguments: list[Any], text: str, attributes: dict[str, Any]
    ) -> BaseException:
        """Return an exception with the same class, arguments and attributes, as far as possible."""
        made, values = self.unpack(kind), self.unpack(arguments)
        if not issubclass(made, BaseException) or self._means_success(made):
            raise TypeError
        try:
            error: BaseException = made(*values)
        except BROKEN:  # some classes take other arguments than `args`
            error = made.__new__(made)
            error.args = values
        vars(error).update({name: self.unpack(value) for name, value in attributes.items()})
        if "_number" in vars(made):
            vars(error)["_text"] = str(text)
        return error

    def _means_success(self, error: type[BaseException]) -> bool:
        """Whether the error is of unittest, whose runner may count it as a skipped test."""
        if self._objects.trusting:
            return False
        return any(base.__module__.partition(".")[0] == "unittest" for base in error.__mro__)


def _unpack_plain(_: Unpacking, value: Any) -> Any:
    if not isinstance(value, str | list):
        raise TypeError
    return value


def _unpack_integer(_: Unpacking, digits: str) -> int:
    return int(digits, 16)


def _unpack_array(_: Unpacking, kind: str, shape: list[int] | None, data: str) -> Any:
    import numpy as np

    values = np.frombuffer(bytes.fromhex(data), dtype=np.dtype(str(kind)))
    return values[0] if shape is None else values.reshape(shape).copy()


def _unpack_builtin(_: Unpacking, name: str) -> type:
    value = getattr(builtins, name)
    if not isinstance(value, type):
        raise TypeError
    return value


_UNPACK: Mapping[str, Callable[..., Any]] = {
    "plain": _unpack_plain,
    "int": _unpack_integer,
    "array": _unpack_array,
    "builtin": _unpack_builtin,
    "each": Unpacking.each,
    "again": Unpacking.again,
    "known": Unpacking.known,
    "own": Unpacking.own,
    "yours": Unpacking.yours,
    "named": Unpacking.named,
    "raised": Unpacking.raised,
    "error": Unpacking.error,
}


def content(container: Any) -> Any:
    """Return the content of a container: a list, or hexadecimal digits."""
    if isinstance(container, bytearray):
        return container.hex()
    if not isinstance(container, dict):
        return list(container)
    pairs = list(chain.from_iterable(container.items()))
    return [container.default_factory, *pairs] if isinstance(container, defaultdict) else pairs


def refill(container: Any, values: Any) -> None:
    """Replace the content of a container."""
    if isinstance(container, bytearray):
        container[:] = bytes.fromhex(values)
    elif isinstance(container, list):
        container[:] = values
    elif isinstance(container, dict):
        if isinstance(container, defaultdict):
            container.default_factory, *values = values
        container.clear()
        for key, value in zip(values[::2], values[1::2], strict=True):
            container[key] = value
    else:
        container.clear()
        (container.extend if isinstance(container, deque) else container.update)(values)


def is_changed(container: Any, before: Any) -> bool:
    """Whether the content of a container has changed."""
    now = content(container)
    if isinstance(now, str):
        return bool(now != before)
    return len(now) != len(before) or not all(map(operator.is_, now, before))
