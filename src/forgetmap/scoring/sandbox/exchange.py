"""Exchange of values between two processes: the tests in one, the answer in the other.

Plain values are copied, other objects stay in the process that made them. Containers that a call
changes are changed on the other side, too, and an object sent back to its owner is the same object.

Messages on the channel are data. Anything that is not a reply to a request is tampering. The side
of the tests is not `trusting`: the answer may use objects that tests passed to it, but gets no
frames, namespaces or modules from them.
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
"""Fields of a message: number, action or kind of reply, and three that depend on it."""
_MAX_OUTPUT = 1 << 20
"""Characters printed by the answer in one call that tests can see."""
_REPLIES = frozenset({"value", "error"})
_ATTRIBUTES = frozenset({"getattr", "setattr", "delattr"})
_READABLE = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})
_FORMATTING = frozenset({"format", "format_map"})
"""Methods of texts that can read any attribute."""
_OF_THE_FIRST = _ATTRIBUTES | {"call", "getitem", "setitem", "delitem", "iter", "next"}
"""Operations on their first operand; others may be on any operand."""
_CLOSED = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GeneratorType,
    types.CoroutineType, types.AsyncGeneratorType, types.CodeType, types.FrameType,
    types.TracebackType, types.ModuleType, type,
)  # fmt: skip
"""Kinds of objects whose attributes lead to frames and namespaces."""
_NO_REPLY = "it wrote to the channel of its replies"


class PartnerEndedError(BaseException):
    """The other process has ended."""


class Channel:
    """Messages to and from another process.

    Args:
        connection: connection to the process.
        partner: id of the process; its children may keep the connection open after it ends.
    """

    def __init__(self, connection: socket.socket, partner: int | None = None) -> None:
        self._connection = connection
        self._read = bytearray()
        self._ready = None if partner is None else select.poll()
        if self._ready is not None and partner is not None:
            self._ready.register(connection, select.POLLIN)
            self._ready.register(os.pidfd_open(partner), select.POLLIN)

    def send(self, message: list[Any]) -> None:
        """Send a message."""
        data = json.dumps(message).encode("ascii")
        try:
            self._connection.sendall(_HEADER.pack(_MARK, len(data)) + data)
        except OSError:
            raise PartnerEndedError from None

    def receive(self) -> list[Any]:
        """Wait for a message."""
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
        """Return the next bytes; further ones are kept for the next call."""
        while len(self._read) < length:
            part = self._next_part()
            if not part:
                raise TamperingError(_NO_REPLY) if begun or self._read else PartnerEndedError
            self._read += part
        data = bytes(self._read[:length])
        del self._read[:length]
        return data

    def _next_part(self) -> bytes:
        """Return the bytes received; empty if the other process has ended."""
        if self._ready is not None:
            ready = {number for number, _ in self._ready.poll()}
            if self._connection.fileno() not in ready:
                return b""
        with suppress(OSError):
            return self._connection.recv(_PART_BYTES)
        return b""


class ProcessExchange:
    """One end of an exchange: sends requests to the other end, and performs its requests.

    Args:
        channel: channel to the other end.
        trusting: whether the other end may do anything.
        actions: actions that it may request besides operations on objects.

    Attributes:
        fault: error that ended the exchange; every further request raises it.
        compared: number of comparisons of objects of the other end with values of this one.
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
        """Request an action of the other end; an error there is raised here."""
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
            # Tests that catch every error must not continue.
            self.fault = fault
            raise

    def serve(self) -> None:
        """Perform the requests of the other end until it ends."""
        while True:
            self._perform(self.channel.receive())

    def _settle(self, number: int, message: list[Any], containers: list[Any]) -> Any:
        reply_number, kind, result, changes, output = message
        if reply_number != number:
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
        # A child that the answer has forked must not reply.
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
        """Refuse operations of the answer on objects that tests did not pass to it."""
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
        """Return the input and output that tests have replaced, for use by the answer, too."""
        stdin, stdout = self._streams
        if self.trusting:
            return None
        stdin_text = sys.stdin.read() if sys.stdin is not stdin else None
        input_function = builtins.input if builtins.input is not self._builtins["input"] else None
        listens = sys.stdout is not stdout
        return (
            [stdin_text, packing.pack(input_function), listens]
            if stdin_text or input_function or listens
            else None
        )

    def _surround(self, unpacking: Unpacking, surroundings: list[Any] | None) -> io.StringIO:
        """Replace input and output as in the tests; return the stream for captured output."""
        output = io.StringIO()
        if self.trusting and surroundings:
            stdin_text, input_function, listens = surroundings
            if stdin_text is not None:
                sys.stdin = io.StringIO(stdin_text)
            if input_function is not None:
                builtins.input = unpacking.unpack(input_function)
            if listens:
                sys.stdout = output
        return output

    def _restore(self, surroundings: list[Any] | None) -> None:
        """Restore streams, and the builtins that the answer may have changed."""
        if self.trusting:
            vars(builtins).update(self._builtins)
            if surroundings:
                sys.stdin, sys.stdout = self._streams


def _is_public(value: Any, name: str, action: str) -> bool:
    """Whether this attribute leads only to values."""
    if name in _READABLE:
        return action == "getattr"
    if isinstance(value, _CLOSED) or name in _FORMATTING:
        return False
    if name.startswith("_"):
        return (name, action) == ("__class__", "getattr")
    # Methods of the tests' objects must not be replaced.
    return action == "getattr" or not callable(getattr(type(value), name, None))
