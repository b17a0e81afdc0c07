"""Result values of several packages: estimates with intervals, and notices."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

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


class Plain:
    """A plain result: pydantic is imported only when it is written or read as JSON."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "use_attribute_docstrings": True,
        "extra": "forbid",
    }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return JSON that is safe to print: control characters are escaped, letters are not."""
        text: bytes = _adapter(type(self)).dump_json(self, indent=indent)
        return _UNUSUAL.sub(_escape, text.decode())

    def to_dict(self) -> dict[str, Any]:
        """Return the values of the JSON."""
        values: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json")
        return values

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote.

        Raises:
            ValidationError: the text is something else.
        """
        value: Self = _adapter(cls).validate_json(text)
        return value


_ADAPTERS: dict[type[Any], Any] = {}


def _adapter(kind: type[Any]) -> Any:
    from pydantic import TypeAdapter

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Plain):
    """A number with its interval and its method. An unknown value is null, never 0."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str
    reason: str | None = None
    """Why there is no value."""

    @classmethod
    def missing(cls, method: str, reason: str) -> Estimate:
        """Return an estimate without a value, with the reason."""
        return Estimate(value=None, method=method, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates(Plain):
    """One estimator in both directions, as shares of all items."""

    forgetting: Estimate
    backward_transfer: Estimate

    @classmethod
    def missing(cls, method: str, reason: str) -> Estimates:
        """Return estimates without values, with the reason."""
        missing = Estimate.missing(method, reason)
        return Estimates(forgetting=missing, backward_transfer=missing)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a reader must know before relying on the numbers.

    Attributes:
        code: stable name, for programs.
        message: one sentence, for people.
    """

    code: str
    message: str
