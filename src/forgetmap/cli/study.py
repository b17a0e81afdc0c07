"""`forgetmap study`: many models, declared in one file, and what they say together."""

from __future__ import annotations

from pathlib import Path

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import json_option, overwrite_option

COMMANDS = {
    "init": "Write a study to start from.",
    "check": "Say what is in a study, and what is wrong with it.",
}
EXAMPLES = """\b
Examples:
  forgetmap study init post-forget --out study.toml
  forgetmap study check study.toml
"""


@click.group("study", cls=CommandGroup, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Many pairs of models: which stages, sizes and data make models forget?"""


INIT_EXAMPLES = """\b
Examples:
  forgetmap study init empty --out study.toml
  forgetmap study init post-forget --out study.toml
  forgetmap study init captrack
"""


@command.command("init", epilog=INIT_EXAMPLES)
@click.argument("name", type=click.Choice(["post-forget", "captrack", "empty"]))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write the study to [default: it is printed].",
)
@overwrite_option
def init(name: str, out: Path | None, *, overwrite: bool) -> None:
    """Write a study to start from: that of a paper, or an empty one."""
    from forgetmap.cli.options import refuse_existing
    from forgetmap.records import writable
    from forgetmap.study import study_template

    text = study_template(name)
    if out is None:
        click.echo(text, nl=False)
        return
    refuse_existing(out, (), overwrite=overwrite)
    with writable(out):
        out.write_text(text, encoding="utf-8")
    click.echo(f"Written to {out}. Next: forgetmap study check {out}")


CHECK_EXAMPLES = """\b
Examples:
  forgetmap study check study.toml
  forgetmap study check study.toml --json
"""


@command.command("check", epilog=CHECK_EXAMPLES)
@click.argument("study", type=click.Path(path_type=Path))
@json_option
def check(study: Path, *, as_json: bool) -> None:
    """Say what is in a study: models, pairs, merges, trends, and what is wrong with it."""
    from rich.console import Console

    from forgetmap.study import read_study, summarize_study, tell_summary
    from forgetmap.text import print_blocks

    summary = summarize_study(read_study(study))
    if as_json:
        click.echo(summary.to_json())
        return
    print_blocks(Console(), tell_summary(summary))
