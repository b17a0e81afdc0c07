"""Tool calls: the right tools, with the right arguments, and no others.

    selection   of the wanted calls, the share whose tool was called
    arguments   of the calls of a right tool, the share with right arguments; left out if there is
                none
    exact       of the wanted calls, the share made with right tool and arguments
    spurious    of the calls made, the share that nothing wanted; 0 if none was made
    acc         all wanted calls were made exactly, and no other
    acc_strict  the same, letter by letter, and the response is nothing but calls, as Python

Calls are matched whatever their order, so that as many as possible agree. Where no call is wanted
(`NONE`, an empty list) only `acc`, `acc_strict` and `spurious` apply. What an argument may be:

* Numbers agree to one millionth, texts up to case, punctuation and white space; a number in quotes
  is a text, `true` is no 1. Lists keep their order, objects do not.
* A positional argument is the parameter of that place, if the item describes its tools (`tools`
  or `tool_spec` in its material); else it agrees with a wanted argument in the same place.
* Names agree up to case, and `math.hypot` with `math_hypot`; also with `hypot`, unless that is
  another tool.
* BFCL lists the values an argument may have, "" among them if it may be left out.
* MNMS refers to what another call made: `<node-0>.image`. Any text, variable or call does; a
  `<node-k>` has to lead to a call of the same tool. In calls with an id, the arguments `text` and
  `prompt` need only share 7 of 10 words.
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
    MOST_CALLS,
    Call,
    Expression,
    calls_in,
    calls_of,
    same_words,
)
from forgetmap.scoring.extract.wording import comparable
from forgetmap.scoring.grade import failed, graded, shared
from forgetmap.scoring.scorer import RIGHT_OR_WRONG, SHARE, Answered, Fields, Scale

_NO_CALL = frozenset({"none", "no call", "no calls", "no function call", "no tool call", "[]"})
_NODE = re.compile(r"<node-(?P<id>\d+)>(?P<part>\.\w+)?")
_LOOSE = frozenset({"text", "prompt"})
_ENOUGH = 0.7
_TOLERANCE = 1e-6


class CallsScorer:
    """Scores the tool calls of a response."""

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

    def score(self, sample: Answered) -> Fields:
        """The values; the gold is a list of calls, as text or as objects.

        Raises:
            FieldError: the gold holds something that is no call.
        """
        wanted = _wanted(sample.gold)
        parameters = _parameters(sample.material)
        aloud, cut = visible_text(sample.response, sample.finish_reason)
        names = frozenset(same_words(name) for name in (*parameters, *(w.name for w in wanted)))
        made, bare = calls_in(aloud, names)
        if not made and (wanted or not aloud.strip()):
            return _nothing(aloud, any_wanted=bool(wanted), cut=cut)
        pairs = _matched(wanted, made[:MOST_CALLS], parameters, names)
        return _compared(wanted, made[:MOST_CALLS], pairs, aloud, bare=bare)


calls = CallsScorer()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A wanted call: for every argument the values it may have.

    `listed` means that objects among the values list theirs as well, as BFCL does.
    """

    name: str
    positional: tuple[Any, ...]
    named: Mapping[str, Sequence[Any]]
    id: str | None = None
    listed: bool = False


def _wanted(gold: Any) -> list[_Wanted]:
    if isinstance(gold, str):
        gold = _from_text(gold)
    if isinstance(gold, Mapping):
        gold = [gold]
    if not isinstance(gold, Sequence):
        raise _no_call(gold)
    return [each for part in gold for each in _wanted_in(part)]


def _from_text(gold: str) -> Any:
    """Calls as text; a JSON list of them; or the statement that none is wanted."""
    if _declines(gold):
        return []
    if gold.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(gold)
        except ValueError:
            return [gold]
    return [gold]


def _wanted_in(part: Any) -> list[_Wanted]:
    if isinstance(part, str):
        if _declines(part):
            return []
        found, _ = calls_in(part)
    elif isinstance(part, Mapping) and _is_choice(part):
        [(name, arguments)] = part.items()
        return [_Wanted(name, (), arguments, listed=True)]
    else:
        found = calls_of(part)
    if not found:
        raise _no_call(part)
    return [
        _Wanted(call.name, call.positional, {k: [v] for k, v in call.named.items()}, call.id)
        for call in found
    ]


def _declines(text: str) -> bool:
    """Whether a text says that no call is wanted, and nothing else."""
    return text.strip(" \t\n.!`'\"*").lower() in _NO_CALL


def _is_choice(part: Mapping[str, Any]) -> bool:
    """The form of BFCL: one name, and for each argument the list of its values."""
    inner = next(iter(part.values()), None)
    return (
        len(part) == 1
        and isinstance(inner, Mapping)
        and all(isinstance(values, list) and values for values in inner.values())
    )


def _no_call(gold: Any) -> FieldError:
    return FieldError(
        f"the wanted call {gold!r:.80} is none",
        field="gold",
        hint="write calls as name(key=value) or as objects with name and arguments; NONE for none.",
    )


def _parameters(material: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the parameters of each tool, in order."""
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
    return [str(each.get("name") if isinstance(each, Mapping) else each) for each in listed]


def _nothing(aloud: str, *, any_wanted: bool, cut: bool) -> Fields:
    """No call was made where one was wanted, or nothing was said at all."""
    applying = ("selection", "exact") if any_wanted else ()
    return dict.fromkeys((*applying, "acc", "acc_strict"), failed(why_nothing(aloud, cut=cut)))


def _compared(
    wanted: list[_Wanted], made: list[Call], pairs: list[_Pair], aloud: str, *, bare: bool
) -> Fields:
    exact = [pair for pair in pairs if pair.right]
    right = len(exact) == len(wanted) == len(made)
    said = aloud.strip()[:500]
    strict = (bare or (not wanted and _declines(aloud))) and all(pair.literal for pair in pairs)
    fields = {
        "spurious": shared((len(made) - len(pairs)) / max(1, len(made)), said),
        "acc": graded(said, right=right, strict=strict),
        "acc_strict": graded(said, right=right and strict, strict=strict),
    }
    if wanted:
        fields["selection"] = shared(len(pairs) / len(wanted), said)
        fields["exact"] = shared(len(exact) / len(wanted), said)
    if pairs:
        fields["arguments"] = shared(len(exact) / len(pairs), said)
    return fields


@dataclass(frozen=True, slots=True)
class _Pair:
    """A wanted call and one made, of the same tool; `literal` means letter by letter."""

    right: bool
    literal: bool


def _matched(
    wanted: list[_Wanted],
    made: list[Call],
    parameters: Mapping[str, list[str]],
    known: frozenset[str],
) -> list[_Pair]:
    """As many tools as possible, and among these as many right arguments as possible."""
    if not wanted or not made:
        return []
    plan = _Plan(wanted, made, known)
    worth = np.zeros((len(wanted), len(made)))
    for row, want in enumerate(wanted):
        for column, call in enumerate(made):
            if _same_tool(want.name, call.name, known):
                order = parameters.get(want.name, [])
                agreed = _agree(want, call, order, plan)
                worth[row, column] = 1 + agreed / (2 * len(wanted))
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return [
        _Pair(
            right=bool(worth[row, column] > 1),
            literal=_is_literal(wanted[row], made[column]),
        )
        for row, column in zip(rows, columns, strict=True)
        if worth[row, column]
    ]


def _same_tool(wanted: str, made: str, known: frozenset[str]) -> bool:
    """The same name, or its last part if that is no other tool."""
    said, last = same_words(made), same_words(wanted.rpartition(".")[2])
    return said == same_words(wanted) or (said == last and said not in known)


def _is_literal(want: _Wanted, call: Call) -> bool:
    """Spelled as wanted: the name, and the arguments that are wanted in one form only."""
    named = {name: values for name, values in want.named.items() if len(values) == 1}
    return want.name.replace(" ", "_") == call.name and all(
        call.named.get(name) == value or _is_reference(value) or not isinstance(value, str)
        for name, [value] in named.items()
        if name in call.named
    )


def _agree(want: _Wanted, call: Call, order: list[str], plan: _Plan) -> bool:
    """Whether all arguments are right: none lacks, none is too many, all have a right value."""
    positional, named = _placed(call.positional, call.named, order)
    wanted_positional, wanted_named = _placed(
        tuple([value] for value in want.positional), want.named, order
    )
    if len(positional) != len(wanted_positional) or not named.keys() <= wanted_named.keys():
        return False
    if any(name not in named and "" not in wanted_named[name] for name in wanted_named):
        return False
    places = zip(wanted_positional, positional, strict=True)
    return all(plan.allows(want, values, value) for values, value in places) and all(
        plan.allows(want, wanted_named[name], value, name) for name, value in named.items()
    )


def _placed(
    positional: tuple[Any, ...], named: Mapping[str, Any], order: list[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments by the names of their places, as far as those are known."""
    if len(positional) > len(order):
        return positional, dict(named)
    return (), dict(zip(order, positional, strict=False)) | dict(named)


class _Plan:
    """All wanted and all made calls: what one of them refers to is known only from the others."""

    def __init__(self, wanted: list[_Wanted], made: list[Call], known: frozenset[str]) -> None:
        self._known = known
        self._wanted = {each.id or str(place): each.name for place, each in enumerate(wanted)}
        self._made = {each.id or str(place): each.name for place, each in enumerate(made)}

    def allows(self, want: _Wanted, values: Sequence[Any], value: Any, name: str = "") -> bool:
        """Whether an argument has one of its right values."""
        return any(self._agrees(want, each, value, name) for each in values)

    def _agrees(self, want: _Wanted, right: Any, value: Any, name: str) -> bool:
        if _is_reference(right):
            return self._leads(right, value)
        if isinstance(right, Expression) or isinstance(value, Expression):
            return bool(_written(right) == _written(value))
        if isinstance(right, list | tuple) and isinstance(value, list | tuple):
            pairs = zip(right, value, strict=False)
            return len(right) == len(value) and all(
                self._agrees(want, one, other, name) for one, other in pairs
            )
        if isinstance(right, Mapping) and isinstance(value, Mapping):
            choices = {key: _choices(each, listed=want.listed) for key, each in right.items()}
            needed = {key for key, each in choices.items() if not (want.listed and "" in each)}
            return needed <= value.keys() <= choices.keys() and all(
                self.allows(want, choices[key], each, key) for key, each in value.items()
            )
        if isinstance(right, str) and isinstance(value, str):
            return _same_text(right, value, loose=want.id is not None and name in _LOOSE)
        return _same_number(right, value)

    def _leads(self, wanted: str, value: Any) -> bool:
        """Any text, variable or call; of a reference, the tool and the part referred to."""
        said = _written(value)
        if not isinstance(said, str) or not said.strip():
            return False
        own, other = _NODE.match(wanted), _NODE.match(said)
        if not own or not other:
            return True
        meant, made = self._wanted.get(own["id"]), self._made.get(other["id"])
        tools = meant is None or (made is not None and _same_tool(meant, made, self._known))
        return bool(tools and own["part"] == other["part"])


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and _NODE.match(value) is not None


def _written(value: Any) -> Any:
    return value.text if isinstance(value, Expression) else value


def _choices(value: Any, *, listed: bool) -> Sequence[Any]:
    return value if listed and isinstance(value, list) else [value]


def _same_text(wanted: str, value: str, *, loose: bool) -> bool:
    one, other = comparable(wanted), comparable(value)
    if one == other or not loose:
        return one == other
    words, others = set(one.split()), set(other.split())
    return len(words & others) >= _ENOUGH * len(words | others)


def _same_number(wanted: Any, value: Any) -> bool:
    numbers = [each for each in (wanted, value) if isinstance(each, int | float)]
    if isinstance(wanted, bool) or isinstance(value, bool) or len(numbers) < 2:
        return type(wanted) is type(value) and bool(wanted == value)
    try:
        return math.isclose(wanted, value, rel_tol=1e-9, abs_tol=_TOLERANCE)
    except OverflowError:
        return bool(wanted == value)
