"""`forgetmap theory page`."""

from __future__ import annotations

from pathlib import Path

import click

EXAMPLES = """\b
Examples:
  forgetmap theory page --out page.html
"""


@click.command("page", epilog=EXAMPLES)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="HTML file to write.",
)
def command(out: Path) -> None:
    """Write an interactive page that follows the flow while you move its parameters.

    One file, without a server or a network: the flow is computed in the browser.
    """
    from forgetmap.report import write_theory_page

    click.echo(f"Wrote {write_theory_page(out)}; open it in a browser.")
