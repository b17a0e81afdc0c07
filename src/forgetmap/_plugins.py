"""What installed packages add by entry point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint

from forgetmap.errors import UsageError

_FAULTS = (
    ArithmeticError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What other people's modules may raise when they are imported."""


@contextmanager
def loading(point: EntryPoint, kind: str) -> Iterator[None]:
    """Faults of a package while it is loaded are told as such.

    Args:
        point: what is loaded.
        kind: what it adds, as people call it.

    Raises:
        UsageError: the package is broken.
    """
    try:
        yield
    except _FAULTS as error:
        raise UsageError(
            f"the {kind} {point.name!r} ({point.value}) cannot be loaded: {error}",
            hint="mend or uninstall the package that adds it.",
        ) from error
