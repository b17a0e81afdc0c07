"""`forgetmap overlap bridge`."""

from __future__ import annotations

from pathlib import Path

import click

from forgetmap.cli.options.output import json_option, overwrite_option
from forgetmap.cli.overlap import print_on_terminal

EXAMPLES = """\b
Examples:
  forgetmap overlap bridge models.csv --out bridge
"""


@click.command("bridge", epilog=EXAMPLES)
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for result and figures [default: nothing is written].",
)
@json_option
@overwrite_option
def command(table: Path, out: Path | None, *, as_json: bool, overwrite: bool) -> None:
    """Does divergence predict forgetting, of methods it has not seen?

    TABLE is CSV or JSON with method, model, forgetting and divergences (kl, kl_old, kl_new, ...),
    or with the files overlap and comparison in place of numbers.
    """
    from forgetmap.overlap import fit_bridge, read_models
    from forgetmap.report import tell_bridge, write_bridge

    result = fit_bridge(read_models(table))
    if out is not None:
        write_bridge(result, out, overwrite=overwrite)
    if as_json:
        click.echo(result.to_json())
    else:
        print_on_terminal(tell_bridge(result))
