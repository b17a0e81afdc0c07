"""Tool calls: the right tools, with the right arguments, and no others.

    selection   share of the expected calls whose tool was called
    arguments   share of the calls of a right tool with right arguments; absent without such calls
    exact       share of the expected calls made with right tool and arguments
    spurious    share of the calls made that were not expected; 0 without calls
    acc         all expected calls were made exactly, and no others
    acc_strict  the same, letter by letter, and the response is only calls, written as Python

Calls are matched in any order, so that as many as possible agree. If no call is expected (`NONE`,
an empty list), only `acc`, `acc_strict` and `spurious` apply. Rules for arguments:

* Numbers agree to one millionth, texts up to case, punctuation and white space; a number in quotes
  is a text, `true` is not 1. The order matters in lists, but not in objects.
* A positional argument is the parameter at that position, if the item describes its tools (`tools`
  or `tool_spec` in its material); else it is compared with the expected argument at that position.
* Names agree up to case, and `math.hypot` with `math_hypot`; also with `hypot`, unless that is
  another tool.
* BFCL lists the values of an argument, with "" if it is optional.
* MNMS refers to the result of another call: `<node-0>.image`. Any text, variable or call is
  accepted; a `<node-k>` must refer to a call of the same tool. In calls with an id, the arguments
  `text` and `prompt` need only share 7 of 10 words.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.failures import why_nothing
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.extract.tool_calls import (
    MAX_CALLS,
    Call,
    Expression,
    calls_in,
    calls_of,
    same_words,
)
from forgetmap.scoring.extract.wording import normalise
from forgetmap.scoring.grade import grade_answer, grade_failure, grade_share
from forgetmap.scoring.scorer import RIGHT_OR_WRONG, SHARE, Fields, Scale, ScorerInput

_NO_CALL = frozenset({"none", "no call", "no calls", "no function call", "no tool call", "[]"})
_NODE = re.compile(r"<node-(?P<id>\d+)>(?P<part>\.\w+)?")
_FREE_TEXT_ARGUMENTS = frozenset({"text", "prompt"})
_MIN_WORD_OVERLAP = 0.7
_TOLERANCE = 1e-6


class CallsScorer:
    """Scorer of the tool calls of a response."""

    name = "calls"
    version = 1
    fields: Mapping[str, Scale] = {
        "selection": SHARE,
        "arguments": SHARE,
        "exact": SHARE,
        "spurious": SHARE,
        "acc": RIGHT_OR_WRONG,
        "acc_strict": RIGHT_OR_WRONG,
    }

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values; the gold is a list of calls, as text or as objects.

        Raises:
            FieldError: the gold contains something that is not a call.
        """
        expected = _expected_calls(sample.gold)
        parameters = _parameters(sample.material)
        text, cut = visible_text(sample.response, sample.finish_reason)
        names = frozenset(same_words(name) for name in (*parameters, *(w.name for w in expected)))
        calls, bare = calls_in(text, names)
        if not calls and (expected or not text.strip()):
            return _nothing(text, any_expected=bool(expected), cut=cut)
        pairs = _matched(expected, calls[:MAX_CALLS], parameters, names)
        return _compared(expected, calls[:MAX_CALLS], pairs, text, bare=bare)


calls = CallsScorer()


@dataclass(frozen=True, slots=True)
class _ExpectedCall:
    """An expected call, with the allowed values of every argument.

    `listed` means that objects among the values list allowed values, too, as in BFCL.
    """

    name: str
    positional: tuple[Any, ...]
    named: Mapping[str, Sequence[Any]]
    id: str | None = None
    listed: bool = False


def _expected_calls(gold: Any) -> list[_ExpectedCall]:
    if isinstance(gold, str):
        gold = _from_text(gold)
    if isinstance(gold, Mapping):
        gold = [gold]
    if not isinstance(gold, Sequence):
        raise _no_call(gold)
    return [call for part in gold for call in _expected_in(part)]


def _from_text(gold: str) -> Any:
    """Return calls from a text: as written, from a JSON list, or none if it declines."""
    if _declines(gold):
        return []
    if gold.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(gold)
        except ValueError:
            return [gold]
    return [gold]


def _expected_in(part: Any) -> list[_ExpectedCall]:
    if isinstance(part, str):
        if _declines(part):
            return []
        parsed_calls, _ = calls_in(part)
    elif isinstance(part, Mapping) and _is_choice(part):
        [(name, arguments)] = part.items()
        return [_ExpectedCall(name, (), arguments, listed=True)]
    else:
        parsed_calls = calls_of(part)
    if not parsed_calls:
        raise _no_call(part)
    return [
        _ExpectedCall(call.name, call.positional, {k: [v] for k, v in call.named.items()}, call.id)
        for call in parsed_calls
    ]


def _declines(text: str) -> bool:
    """Whether a text only states that there is no call."""
    return text.strip(" \t\n.!`'\"*").lower() in _NO_CALL


def _is_choice(part: Mapping[str, Any]) -> bool:
    """Whether a call has the format of BFCL: one name, with a list of values per argument."""
    inner = next(iter(part.values()), None)
    return (
        len(part) == 1
        and isinstance(inner, Mapping)
        and all(isinstance(values, list) and values for values in inner.values())
    )


def _no_call(gold: Any) -> FieldError:
    return FieldError(
        f"the expected call {gold!r:.80} is invalid",
        field="gold",
        hint="write calls as name(key=value) or as objects with name and arguments, or NONE for no "
        "call.",
    )


def _parameters(material: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of the parameters of each tool, in order."""
    tools = material.get("tools") or material.get("tool_spec") or []
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except ValueError:
            return {}
    tools = tools.get("functions", [tools]) if isinstance(tools, Mapping) else tools
    described = [tool.get("function", tool) for tool in tools if isinstance(tool, Mapping)]
    return {
        str(tool["name"]): _order(tool.get("parameters"))
        for tool in described
        if isinstance(tool, Mapping) and "name" in tool
    }


def _order(parameters: Any) -> list[str]:
    if isinstance(parameters, Mapping):
        properties = parameters.get("properties", parameters)
        return list(properties) if isinstance(properties, Mapping) else []
    listed = parameters if isinstance(parameters, list) else []
    return [str(entry.get("name") if isinstance(entry, Mapping) else entry) for entry in listed]


def _nothing(text: str, *, any_expected: bool, cut: bool) -> Fields:
    """Return the values if an expected call is missing, or the response is empty."""
    applying = ("selection", "exact") if any_expected else ()
    return dict.fromkeys(
        (*applying, "acc", "acc_strict"), grade_failure(why_nothing(text, cut=cut))
    )


def _compared(
    expected: list[_ExpectedCall], calls: list[Call], pairs: list[_Pair], text: str, *, bare: bool
) -> Fields:
    exact = [pair for pair in pairs if pair.right]
    right = len(exact) == len(expected) == len(calls)
    answer = text.strip()[:500]
    strict = (bare or (not expected and _declines(text))) and all(pair.literal for pair in pairs)
    fields = {
        "spurious": grade_share((len(calls) - len(pairs)) / max(1, len(calls)), answer),
        "acc": grade_answer(answer, right=right, strict=strict),
        "acc_strict": grade_answer(answer, right=right and strict, strict=strict),
    }
    if expected:
        fields["selection"] = grade_share(len(pairs) / len(expected), answer)
        fields["exact"] = grade_share(len(exact) / len(expected), answer)
    if pairs:
        fields["arguments"] = grade_share(len(exact) / len(pairs), answer)
    return fields


@dataclass(frozen=True, slots=True)
class _Pair:
    """An expected call and one made, of the same tool; `literal` means letter by letter."""

    right: bool
    literal: bool


def _matched(
    expected: list[_ExpectedCall],
    calls: list[Call],
    parameters: Mapping[str, list[str]],
    known: frozenset[str],
) -> list[_Pair]:
    """Match as many tools as possible, and among these as many right arguments as possible."""
    if not expected or not calls:
        return []
    plan = _Plan(expected, calls, known)
    worth = np.zeros((len(expected), len(calls)))
    for row, want in enumerate(expected):
        for column, call in enumerate(calls):
            if _same_tool(want.name, call.name, known):
                order = parameters.get(want.name, [])
                agreed = _agree(want, call, order, plan)
                worth[row, column] = 1 + agreed / (2 * len(expected))
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return [
        _Pair(right=bool(worth[row, column] > 1), literal=_is_literal(expected[row], calls[column]))
        for row, column in zip(rows, columns, strict=True)
        if worth[row, column]
    ]


def _same_tool(expected: str, tool: str, known: frozenset[str]) -> bool:
    """Whether a name is that of the tool, or its last part if that is not another tool."""
    name, last = same_words(tool), same_words(expected.rpartition(".")[2])
    return name == same_words(expected) or (name == last and name not in known)


def _is_literal(want: _ExpectedCall, call: Call) -> bool:
    """Whether the name, and the arguments with a single allowed value, are written exactly."""
    named = {name: values for name, values in want.named.items() if len(values) == 1}
    return want.name.replace(" ", "_") == call.name and all(
        call.named.get(name) == value or _is_reference(value) or not isinstance(value, str)
        for name, [value] in named.items()
        if name in call.named
    )


def _agree(want: _ExpectedCall, call: Call, order: list[str], plan: _Plan) -> bool:
    """Whether all arguments are right: none is missing or superfluous, all have a right value."""
    positional, named = _placed(call.positional, call.named, order)
    wanted_positional, wanted_named = _placed(
        tuple([value] for value in want.positional), want.named, order
    )
    if len(positional) != len(wanted_positional) or not named.keys() <= wanted_named.keys():
        return False
    if any(name not in named and "" not in wanted_named[name] for name in wanted_named):
        return False
    pairs = zip(wanted_positional, positional, strict=True)
    return all(plan.allows(want, values, value) for values, value in pairs) and all(
        plan.allows(want, wanted_named[name], value, name) for name, value in named.items()
    )


def _placed(
    positional: tuple[Any, ...], named: Mapping[str, Any], order: list[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Name positional arguments by the order of parameters, if that is known."""
    if len(positional) > len(order):
        return positional, dict(named)
    return (), dict(zip(order, positional, strict=False)) | dict(named)


class _Plan:
    """All expected and all made calls, to resolve references between calls."""

    def __init__(
        self, expected: list[_ExpectedCall], calls: list[Call], known: frozenset[str]
    ) -> None:
        self._known = known
        self._expected = {call.id or str(index): call.name for index, call in enumerate(expected)}
        self._calls = {call.id or str(index): call.name for index, call in enumerate(calls)}

    def allows(
        self, want: _ExpectedCall, values: Sequence[Any], value: Any, name: str = ""
    ) -> bool:
        """Whether an argument has one of its right values."""
        return any(self._agrees(want, right, value, name) for right in values)

    def _agrees(self, want: _ExpectedCall, right: Any, value: Any, name: str) -> bool:
        if _is_reference(right):
            return self._leads(right, value)
        if isinstance(right, Expression) or isinstance(value, Expression):
            return bool(_plain_value(right) == _plain_value(value))
        if isinstance(right, list | tuple) and isinstance(value, list | tuple):
            pairs = zip(right, value, strict=False)
            return len(right) == len(value) and all(
                self._agrees(want, one, other, name) for one, other in pairs
            )
        if isinstance(right, Mapping) and isinstance(value, Mapping):
            choices = {key: _choices(part, listed=want.listed) for key, part in right.items()}
            needed = {key for key, part in choices.items() if not (want.listed and "" in part)}
            return needed <= value.keys() <= choices.keys() and all(
                self.allows(want, choices[key], part, key) for key, part in value.items()
            )
        if isinstance(right, str) and isinstance(value, str):
            return _same_text(
                right, value, loose=want.id is not None and name in _FREE_TEXT_ARGUMENTS
            )
        return _same_number(right, value)

    def _leads(self, reference: str, value: Any) -> bool:
        """Whether a value matches a reference; another reference must have its tool and part."""
        text = _plain_value(value)
        if not isinstance(text, str) or not text.strip():
            return False
        own, other = _NODE.match(reference), _NODE.match(text)
        if not own or not other:
            return True
        expected, tool = self._expected.get(own["id"]), self._calls.get(other["id"])
        tools = expected is None or (tool is not None and _same_tool(expected, tool, self._known))
        return bool(tools and own["part"] == other["part"])


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and _NODE.match(value) is not None


def _plain_value(value: Any) -> Any:
    return value.text if isinstance(value, Expression) else value


def _choices(value: Any, *, listed: bool) -> Sequence[Any]:
    return value if listed and isinstance(value, list) else [value]


def _same_text(right: str, value: str, *, loose: bool) -> bool:
    one, other = normalise(right), normalise(value)
    if one == other or not loose:
        return one == other
    words, other_words = set(one.split()), set(other.split())
    return len(words & other_words) >= _MIN_WORD_OVERLAP * len(words | other_words)


def _same_number(right: Any, value: Any) -> bool:
    numbers = [number for number in (right, value) if isinstance(number, int | float)]
    if isinstance(right, bool) or isinstance(value, bool) or len(numbers) < 2:
        return type(right) is type(value) and bool(right == value)
    try:
        return math.isclose(right, value, rel_tol=1e-9, abs_tol=_TOLERANCE)
    except OverflowError:
        return bool(right == value)
