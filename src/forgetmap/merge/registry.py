"""Which merge methods there are: ours, and those that installed packages add by entry point.

A package adds one by an entry point in the group `forgetmap.merge_methods` that names a function
under `@merge_method`; one of a known name replaces ours. Nothing is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.merge.method import Method

GROUP = "forgetmap.merge_methods"
BUILT_IN = {
    "linear": "averaging",
    "ema": "averaging",
    "wise_ft": "averaging",
    "slerp": "spherical",
    "task_arithmetic": "arithmetic",
    "ties": "ties",
    "dare_linear": "dare",
    "dare_ties": "dare",
    "breadcrumbs": "breadcrumbs",
    "breadcrumbs_ties": "breadcrumbs",
    "model_stock": "stock",
    "passthrough": "averaging",
}
"""Name -> module of forgetmap.merge.methods, in which it has the same name."""
_FAULTS = (
    ArithmeticError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What other people's modules may raise when they are imported."""


def method_names() -> Sequence[str]:
    """All methods: ours in the order of the documentation, then added ones."""
    return [*BUILT_IN, *sorted(set(_added()) - set(BUILT_IN))]


@cache
def find_method(name: str) -> Method:
    """The method of this name.

    Raises:
        UsageError: there is none, or the package that adds it is broken.
    """
    if name in _added():
        return _loaded(_added()[name])
    if name not in BUILT_IN:
        known = ", ".join(method_names())
        raise UsageError(
            f"there is no merge method {name!r}",
            hint=f"{meant(name, method_names())}the methods are {known}.",
        )
    found = import_module(f"forgetmap.merge.methods.{BUILT_IN[name]}")
    return cast("Method", getattr(found, name))


def meant(word: str, known: Sequence[str]) -> str:
    """The beginning of a hint: the known word that is spelt most like this one, if one is."""
    near = get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}? " if near else ""


@cache
def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _loaded(point: EntryPoint) -> Method:
    from forgetmap.merge.method import Method  # brings torch

    try:
        made = point.load()
    except _FAULTS as error:
        raise UsageError(
            f"the merge method {point.name!r} ({point.value}) cannot be loaded: {error}",
            hint="mend or uninstall the package that adds it.",
        ) from error
    if not isinstance(made, Method):
        raise UsageError(
            f"the merge method {point.name!r} ({point.value}) is no function under @merge_method",
            hint="see docs/merge-methods.md for how to write one.",
        )
    return made
