"""Draws docs/images/compare.svg: what `forgetmap compare` prints on the runs of the README."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

import click
from click.testing import CliRunner
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

import forgetmap as fm
from forgetmap.cli.compare import command as compare
from forgetmap.cli.main import cli
from forgetmap.cli.next_commands import next_commands
from forgetmap.comparison.render import View, print_comparison

# The template of rich loads fonts from the network; any monospace font will do.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "compare.svg"


def main() -> None:
    """Simulate as in the README and draw the comparison."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/example"
        CliRunner().invoke(cli, ["simulate", "--out", out], catch_exceptions=False)
        comparison = fm.compare(f"{out}/before", f"{out}/after")
        console = Console(record=True, width=88, file=io.StringIO(), force_terminal=True)
        runs = ["example/before", "example/after"]
        with click.Context(compare):
            print_comparison(console, comparison.result, View(commands=next_commands(runs)))
    drawn = console.export_svg(
        title="forgetmap compare example/before example/after", code_format=FORMAT
    )
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
