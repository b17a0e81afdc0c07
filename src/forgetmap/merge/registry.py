"""The registry of merge methods: built-in ones, and those of installed packages.

A package adds one by an entry point in the group `forgetmap.merge_methods` that names a function
under `@merge_method`; one with a built-in name replaces it. Nothing is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forgetmap._plugins import Registry

if TYPE_CHECKING:
    from forgetmap.merge.method import Method

# Name -> module of forgetmap.merge.methods, in which it has the same name; in the order of the
# documentation.
BUILT_IN = {
    "linear": "averaging",
    "ema": "averaging",
    "wise_ft": "averaging",
    "slerp": "angles",
    "task_arithmetic": "task_vectors",
    "ties": "task_vectors",
    "dare_linear": "dare",
    "dare_ties": "dare",
    "breadcrumbs": "breadcrumbs",
    "breadcrumbs_ties": "breadcrumbs",
    "model_stock": "angles",
    "passthrough": "averaging",
}


def _check_method(value: object) -> Method:
    from forgetmap.merge.method import Method

    if not isinstance(value, Method):
        raise TypeError("it is not a function with @merge_method (see docs/merge-methods.md)")
    return value


METHODS = Registry(
    "forgetmap.merge_methods",
    "merge method",
    {name: f"forgetmap.merge.methods.{module}:{name}" for name, module in BUILT_IN.items()},
    _check_method,
)
"""Built-in methods, and those of installed packages."""


def method_names() -> Sequence[str]:
    """Return all methods: built-in ones in the order of the documentation, then added ones."""
    return METHODS.names()


def find_method(name: str) -> Method:
    """Return the method of this name.

    Raises:
        UsageError: there is none, or the package that adds it is broken.
    """
    return METHODS.get(name)
