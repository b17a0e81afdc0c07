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
    """An immutable value that can be written as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return JSON that is safe to print: control characters are escaped, letters are not."""
        return _UNUSUAL.sub(_escape, self.model_dump_json(indent=indent))


class Presentable:
    """A result that notebooks and papers show; the functions of `forgetmap` do the same."""

    __slots__ = ()

    def plot(self, figure: str | None = None) -> Any:
        """Draw one figure; notebooks show the returned object, and `save(path)` writes it.

        Args:
            figure: name of the figure; by default the most informative one.
        """
        return _top_package().plot(self, figure)

    def to_latex(self, *, caption: str | None = None, label: str = "tab:forgetmap") -> str:
        """Return the main table as LaTeX for the packages booktabs and graphicx.

        Args:
            caption: caption of the table; by default a description of the result.
            label: label for references.
        """
        latex: str = _top_package().to_latex(self, caption=caption, label=label)
        return latex

    def to_frame(self) -> Any:
        """Return all groups as a dataframe of the library of the inputs; PyArrow for files."""
        return _top_package().to_frame(self)


def _top_package() -> Any:
    """Return `forgetmap`, which can draw; it is above this layer, so it cannot be imported."""
    return sys.modules[__name__.partition(".")[0]]


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


class Estimate(Value):
    """A number with its interval and its method. An unknown value is null, never 0."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str
    reason: str | None = Field(default=None, description="Why there is no value.")

    @classmethod
    def missing(cls, method: str, reason: str) -> Estimate:
        """Return an estimate without a value, with the reason."""
        return cls(value=None, method=method, reason=reason)


class Estimates(Value):
    """One estimator in both directions, as shares of all items."""

    forgetting: Estimate
    backward_transfer: Estimate

    @classmethod
    def missing(cls, method: str, reason: str) -> Self:
        """Return estimates without values, with the reason."""
        return cls(**dict.fromkeys(cls.model_fields, Estimate.missing(method, reason)))


def outer_ends(low: Estimates, high: Estimates) -> Estimates:
    """Combine the estimates at both ends of a range, with their uncertainty."""
    return Estimates(
        forgetting=outer_end(low.forgetting, high.forgetting),
        backward_transfer=outer_end(low.backward_transfer, high.backward_transfer),
    )


def outer_end(low: Estimate, high: Estimate) -> Estimate:
    """Return the range from the lower bound of one estimate to the upper bound of the other."""
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
    """Something a reader must know before relying on the numbers.

    Attributes:
        code: stable name, for programs.
        message: one sentence, for people.
    """

    code: str
    message: str
