"""Templates of studies: those of the papers, and an empty one."""

from __future__ import annotations

from importlib.resources import files
from typing import Final, Literal, get_args

from forgetmap.errors import UsageError

TemplateName = Literal["post-forget", "captrack", "empty"]
TEMPLATES: Final[tuple[TemplateName, ...]] = get_args(TemplateName)
"""Names of the built-in studies."""


def study_template(name: str) -> str:
    """Return a commented study in TOML.

    Raises:
        UsageError: there is none with this name.
    """
    if name not in TEMPLATES:
        raise UsageError(f"there is no study {name!r}", hint=f"choose from {', '.join(TEMPLATES)}.")
    return files("forgetmap.study").joinpath("data", f"{name}.toml").read_text("utf-8")
