"""Exchange of values between two processes: the tests in one, the answer in the other.

Plain values are copied, other objects stay in the process that made them. Containers that a call
changes are changed on the other side too, and what comes back to its owner is the same object.

What comes over the channel is data. Whatever is no reply to what was asked is tampering. The side
of the tests is not `trusting`: the answer may use what tests handed to it, but gets no frame, no
namespace and no module from there.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import select
import socket
import struct
import sys
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from forgetmap.scoring.sandbox.packing import (
    BROKEN,
    Objects,
    Packing,
    Unpacking,
    content,
    is_changed,
    refill,
)
from forgetmap.scoring.sandbox.stand_in import OPERATIONS, TamperingError

_HEADER = struct.Struct(">4sQ")
_MARK = b"FMX1"
_MAX_MESSAGE_BYTES = 128 << 20
_PART_BYTES = 1 << 18
_FIELDS = 5
"""Of a message: number, action or kind of reply, and three that depend on it."""
_MAX_OUTPUT = 1 << 20
"""Characters that the answer prints in one call and tests get to see."""
_REPLIES = frozenset({"value", "error"})
_ATTRIBUTES = frozenset({"getattr", "setattr", "delattr"})
_READABLE = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})
_FORMATTING = frozenset({"format", "format_map"})
"""Methods of texts that read any attribute."""
_OF_THE_FIRST = _ATTRIBUTES | {"call", "getitem", "setitem", "delitem", "iter", "next"}
"""Operations that are done with their first operand; with others it may be any."""
_CLOSED = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GeneratorType,
    types.CoroutineType, types.AsyncGeneratorType, types.CodeType, types.FrameType,
    types.TracebackType, types.ModuleType, type,
)  # fmt: skip
"""Kinds of objects whose attributes lead to frames and namespaces."""
_NO_REPLY = "it wrote to the channel of its replies"


class PartnerEndedError(BaseException):
    """The other process is gone."""


class Channel:
    """Messages to and from one other process.

    Args:
        connection: to it.
        partner: its id; processes that it started may keep the connection open when it is gone.
    """

    def __init__(self, connection: socket.socket, partner: int | None = None) -> None:
        self._connection = connection
        self._read = bytearray()
        self._ready = None if partner is None else select.poll()
        if self._ready is not None and partner is not None:
            self._ready.register(connection, select.POLLIN)
            self._ready.register(os.pidfd_open(partner), select.POLLIN)

    def send(self, message: list[Any]) -> None:
        """Write one."""
        data = json.dumps(message).encode("ascii")
        try:
            self._connection.sendall(_HEADER.pack(_MARK, len(data)) + data)
        except OSError:
            raise PartnerEndedError from None

    def receive(self) -> list[Any]:
        """Wait for one."""
        mark, length = _HEADER.unpack(self._take(_HEADER.size, begun=False))
        if mark != _MARK:
            raise TamperingError(_NO_REPLY)
        if length > _MAX_MESSAGE_BYTES:
            raise MemoryError
        try:
            message = json.loads(self._take(length, begun=True))
        except (ValueError, RecursionError):
            raise TamperingError(_NO_REPLY) from None
        if not isinstance(message, list) or len(message) != _FIELDS or type(message[1]) is not str:
            raise TamperingError(_NO_REPLY)
        return message

    def _take(self, length: int, *, begun: bool) -> bytes:
        """The next bytes; more than are needed are kept for the next time."""
        while len(self._read) < length:
            part = self._next_part()
            if not part:
                raise TamperingError(_NO_REPLY) if begun or self._read else PartnerEndedError
            self._read += part
        taken = bytes(self._read[:length])
        del self._read[:length]
        return taken

    def _next_part(self) -> bytes:
        """What has come; nothing if the other process is gone."""
        if self._ready is not None:
            ready = {number for number, _ in self._ready.poll()}
            if self._connection.fileno() not in ready:
                return b""
        with suppress(OSError):
            return self._connection.recv(_PART_BYTES)
        return b""


class ProcessExchange:
    """One end: asks the other to do something with values, and does what the other asks.

    Args:
        channel: to the other end.
        trusting: whether the other end may do anything.
        actions: what it may ask for besides operations on objects.

    Attributes:
        fault: why nothing more can be asked.
        compared: how often objects of the other end were compared with values of this one.
    """

    def __init__(
        self, channel: Channel, *, trusting: bool, actions: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.channel = channel
        self.trusting = trusting
        self.fault: BaseException | None = None
        self.compared = 0
        self._actions = {**OPERATIONS, **actions}
        self._objects = Objects(self, trusting=trusting)
        self._asked = 0
        self._process = os.getpid()
        self._process_id, self._leave = os.getpid, os._exit
        self._builtins = dict(vars(builtins))
        self._streams = sys.stdin, sys.stdout

    def ask(self, action: str, *operands: Any, named: Mapping[str, Any] | None = None) -> Any:
        """Have the other end do something; what it raises is raised here."""
        if self.fault is not None:
            raise self.fault
        self._asked += 1
        number = self._asked
        packing = Packing(self._objects, [])
        values = [packing.pack(value) for value in operands]
        names = {name: packing.pack(value) for name, value in (named or {}).items()}
        try:
            self.channel.send([number, action, values, names, self._surroundings(packing)])
            while (message := self.channel.receive())[1] not in _REPLIES:
                self._perform(message)
            return self._settle(number, message, packing.containers)
        except (TamperingError, PartnerEndedError) as fault:
            # Tests that catch everything must not get over it.
            self.fault = fault
            raise

    def serve(self) -> None:
        """Do what the other end asks until it is gone."""
        while True:
            self._perform(self.channel.receive())

    def _settle(self, number: int, message: list[Any], containers: list[Any]) -> Any:
        replied, kind, result, changes, output = message
        if replied != number:
            raise TamperingError("it sent a reply without a request")
        unpacking = Unpacking(self._objects, containers)
        try:
            value = unpacking.unpack(result)
            for index, packed in changes:
                refill(containers[index], unpacking.unpack(packed))
        except BROKEN:
            raise TamperingError("it sent an invalid value") from None
        if output and isinstance(output, str):
            sys.stdout.write(output)
        if kind == "value":
            return value
        if not isinstance(value, BaseException):
            raise TamperingError("it raised what cannot be raised")
        raise value

    def _perform(self, message: list[Any]) -> None:
        number, action, operands, names, surroundings = message
        unpacking = Unpacking(self._objects, [])
        try:
            values = [unpacking.unpack(value) for value in operands]
            named = {name: unpacking.unpack(value) for name, value in names.items()}
            perform = self._actions[action]
        except BROKEN:
            raise TamperingError("it requested something that does not exist") from None
        before = [content(container) for container in unpacking.containers]
        output = self._surround(unpacking, surroundings)
        try:
            self._require_harmless(action, values)
            kind, value = "value", perform(*values, **named)
        except (TamperingError, PartnerEndedError):
            raise
        except BaseException as error:  # noqa: BLE001  # whatever is raised is the reply
            kind, value = "error", error
        self._restore(surroundings)
        # A process that the answer has started speaks for nobody.
        if self._process_id() != self._process:
            self._leave(0)
        packing = Packing(self._objects, unpacking.containers)
        result = packing.pack(value)
        changes = [
            [index, packing.content(content(container))]
            for index, container in enumerate(unpacking.containers)
            if is_changed(container, before[index])
        ]
        self.channel.send([number, kind, result, changes, output.getvalue()[:_MAX_OUTPUT]])

    def _require_harmless(self, action: str, values: list[Any]) -> None:
        """The answer may use what tests handed to it, and nothing behind it."""
        if self.trusting:
            return
        if action not in OPERATIONS:
            raise TamperingError(f"it asked the tests to {action}")
        operands = values[:1] if action in _OF_THE_FIRST else values
        if not any(map(self._objects.was_sent, operands)):
            raise TamperingError("it requested an object that it did not receive")
        if action in _ATTRIBUTES and not _is_public(values[0], str(values[1]), action):
            raise AttributeError(values[1])

    def _surroundings(self, packing: Packing) -> list[Any] | None:
        """What tests put in the place of input and output, so that the answer meets it too."""
        stdin, stdout = self._streams
        if self.trusting:
            return None
        given = sys.stdin.read() if sys.stdin is not stdin else None
        asked = builtins.input if builtins.input is not self._builtins["input"] else None
        listens = sys.stdout is not stdout
        return [given, packing.pack(asked), listens] if given or asked or listens else None

    def _surround(self, unpacking: Unpacking, surroundings: list[Any] | None) -> io.StringIO:
        """Put them in place; what is printed is kept if anybody listens."""
        output = io.StringIO()
        if self.trusting and surroundings:
            given, asked, listens = surroundings
            if given is not None:
                sys.stdin = io.StringIO(given)
            if asked is not None:
                builtins.input = unpacking.unpack(asked)
            if listens:
                sys.stdout = output
        return output

    def _restore(self, surroundings: list[Any] | None) -> None:
        """Our own code needs the builtins that the answer may have changed."""
        if self.trusting:
            vars(builtins).update(self._builtins)
            if surroundings:
                sys.stdin, sys.stdout = self._streams


def _is_public(value: Any, name: str, action: str) -> bool:
    """Whether this attribute leads to nothing but values."""
    if name in _READABLE:
        return action == "getattr"
    if isinstance(value, _CLOSED) or name in _FORMATTING:
        return False
    if name.startswith("_"):
        return (name, action) == ("__class__", "getattr")
    # What tests do with their objects is theirs to say.
    return action == "getattr" or not callable(getattr(type(value), name, None))
