"""The test of one answer: the code of both processes.

Without tests, a program passes if it runs to its end and its process still replies. Only the
program itself can report that, so code of a model is run with tests.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from secrets import token_hex
from types import CodeType, ModuleType
from typing import Any

from forgetmap.scoring.sandbox.exchange import Channel, ProcessExchange
from forgetmap.scoring.sandbox.stand_in import TamperingError

_ANSWER = "answer"
"""The module that tests may import."""


def serve_answer(channel: Channel) -> None:
    """Load the answer and serve the requests of the tests."""
    actions: dict[str, Callable[..., Any]] = {
        "load": _load,
        "complete": _complete,
        "echo": lambda value: value,
    }
    ProcessExchange(channel, trusting=True, actions=actions).serve()


def _load(source: str, name: str, names: list[str]) -> dict[str, Any]:
    """Run the source of an answer; return its definitions of the names that tests use."""
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"<{name}>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return {attribute: vars(module)[attribute] for attribute in names if attribute in vars(module)}


def _complete(coroutine: Any) -> Any:
    import asyncio  # importing it takes longer than most programs

    async def wait() -> Any:
        return await coroutine

    return asyncio.run(wait())


def run_tests(channel: Channel, request: dict[str, Any]) -> None:
    """Test an answer from outside its process; raise whatever the tests raise."""
    exchange = ProcessExchange(channel, trusting=False, actions={})
    try:
        if request["tests"] is None:
            _run_to_the_end(exchange, request["source"])
        else:
            _test(exchange, request)
    finally:
        # A test may have caught the error.
        if exchange.fault is not None:
            raise exchange.fault


def _run_to_the_end(exchange: ProcessExchange, source: str) -> None:
    exchange.ask("load", source, "__main__", [])
    challenge = token_hex(16)
    if exchange.ask("echo", challenge) != challenge:
        raise TamperingError("it sent a reply without a request")


def _test(exchange: ProcessExchange, request: dict[str, Any]) -> None:
    tests = compile(request["tests"], "<tests>", "exec", dont_inherit=True)
    hidden = vars(builtins).keys() - set(request["replaced"])
    names = sorted(set(_names(tests)) - hidden)
    definitions = exchange.ask("load", request["source"], _ANSWER, names)
    answer = ModuleType(_ANSWER)
    vars(answer).update(definitions)
    sys.modules[_ANSWER] = answer
    namespace = {**vars(answer), "__name__": "tests"}
    exec(tests, namespace)  # noqa: S102


def _names(code: CodeType) -> Iterator[str]:
    """Iterate over all names used in code, nested code included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
