"""What the theory does not know, below everything it says."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from forgetmap.theory import LIMITS


def print_limits(console: Console) -> None:
    """One line each."""
    console.print(Text("\nLimits", style="bold"))
    for each in LIMITS:
        console.print(Text(f"- {each}", style="dim"))
