"""A sweep as Markdown, for pull requests and model cards."""

from __future__ import annotations

from pathlib import PurePath

import forgetmap
from forgetmap.sweep.render import tell_sweep
from forgetmap.sweep.result import SweepResult
from forgetmap.text import blocks_to_markdown, escape_markdown


def sweep_markdown(result: SweepResult) -> str:
    """The words and tables that the terminal shows."""
    parts = [f"# {escape_markdown(title_of(result))}", *blocks_to_markdown(tell_sweep(result))]
    parts.append(f"Made with forgetmap {forgetmap.__version__}.")
    return "\n\n".join(parts) + "\n"


def title_of(result: SweepResult) -> str:
    """What the report is called."""
    tuned = result.pairs[0].name if len(result.pairs) == 1 else f"{len(result.pairs)} models"
    return f"Merging {PurePath(result.base).name or result.base} with {tuned}"
