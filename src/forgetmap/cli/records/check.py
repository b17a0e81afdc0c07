"""`forgetmap records check`."""

from __future__ import annotations

import json
from typing import Any

import click

from forgetmap.cli.options.logs import log_options, table_options
from forgetmap.cli.options.output import json_option
from forgetmap.cli.records import open_checked, save_map_option, summary

EXAMPLES = """\b
Examples:
  forgetmap records check runs/base
  forgetmap records check base.csv --columns item=question_id,score=correct --json
"""


@click.command("check", epilog=EXAMPLES)
@click.argument("path", type=click.Path())
@table_options
@save_map_option
@log_options
@json_option
def command(path: str, *, as_json: bool, **options: Any) -> None:
    """Check every result in PATH; the first fault is named with file, line and field."""
    from forgetmap.comparison import SIMULATED
    from forgetmap.records import survey
    from forgetmap.text import printable

    run = open_checked(path, options)
    content, simulated = survey(run), run.info.simulated
    if as_json:
        facts = {"valid": True, "simulated": simulated, **content.as_dict()}
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(printable(f"{path}: valid. {summary(content)}"))
    if simulated:
        click.echo(SIMULATED)
