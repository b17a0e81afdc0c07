"""Result values of several packages: estimates with intervals, and notices."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

_UNUSUAL = re.compile(r"[^\n\x20-\x7e]")


class Value(BaseModel):
    """A plain value that never changes and prints as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self, *, indent: int | None = 2) -> str:
        """As JSON that is safe to print: what drives a terminal is escaped, letters are not."""
        return _UNUSUAL.sub(_escape, self.model_dump_json(indent=indent))


class Presentable:
    """A result that notebooks and papers show; `forgetmap` has the same as functions."""

    __slots__ = ()

    def plot(self, figure: str | None = None) -> Any:
        """Draw one figure: an object that notebooks show, with `save(path)`.

        Args:
            figure: its name; the most telling one by default.
        """
        return _top_package().plot(self, figure)

    def to_latex(self, *, caption: str | None = None, label: str = "tab:forgetmap") -> str:
        """The main table as LaTeX, for the packages booktabs and graphicx.

        Args:
            caption: of the table; what the result is by default.
            label: to refer to it.
        """
        latex: str = _top_package().to_latex(self, caption=caption, label=label)
        return latex

    def to_frame(self) -> Any:
        """All groups as one dataframe, of the library of the inputs; PyArrow for files."""
        return _top_package().to_frame(self)


def _top_package() -> Any:
    """`forgetmap`, which knows what draws: it is there before any module of it, and above this."""
    return sys.modules[__name__.partition(".")[0]]


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


class Estimate(Value):
    """A number, how sure we are, and how it was made. Unknown is null, never 0."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str
    reason: str | None = Field(default=None, description="Why there is no value.")

    @classmethod
    def missing(cls, method: str, reason: str) -> Estimate:
        """No value, and why."""
        return cls(value=None, method=method, reason=reason)


class Estimates(Value):
    """One estimator in both directions, as shares of all items."""

    forgetting: Estimate
    backward_transfer: Estimate

    @classmethod
    def missing(cls, method: str, reason: str) -> Self:
        """No value of anything, and why."""
        return cls(**dict.fromkeys(cls.model_fields, Estimate.missing(method, reason)))


def outer_ends(low: Estimates, high: Estimates) -> Estimates:
    """Both ends of a range and the uncertainty of each."""
    return Estimates(
        forgetting=outer_end(low.forgetting, high.forgetting),
        backward_transfer=outer_end(low.backward_transfer, high.backward_transfer),
    )


def outer_end(low: Estimate, high: Estimate) -> Estimate:
    """From the lower limit of one estimate to the upper limit of the other."""
    reason = (
        low.reason or "guesses may be redrawn or repeated: the data allow a range, not one value"
    )
    return Estimate(
        value=None,
        low=low.low,
        high=high.high,
        method=f"from {low.method} to {high.method}",
        reason=reason,
    )


class PublishedResult(Estimates):
    """The published chance adjustment with its ceilings."""

    forgetting_max: Estimate
    backward_transfer_max: Estimate


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a reader must know before believing the numbers.

    Attributes:
        code: stable name, for programs.
        message: one sentence, for people.
    """

    code: str
    message: str
