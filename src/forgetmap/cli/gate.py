"""`forgetmap gate`: PASS, FAIL or INCONCLUSIVE, with exit codes for pipelines."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.next_commands import NextCommand, is_typable, next_commands
from forgetmap.cli.options import json_option, overwrite_option
from forgetmap.cli.options.compare import (
    confirm_option,
    margin_option,
    noise_option,
    selected_option,
)
from forgetmap.cli.options.logs import (
    log_options,
    reading_progress,
    single_reading,
    table_options,
)
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.gate import GateResult

COMMANDS = {
    "check": "Check two runs against a policy. The default command.",
    "init": "Write a commented policy from a comparison.",
    "accept": "Store a run as a named baseline.",
    "history": "List past decisions, and losses that got through.",
}
EXAMPLES = """\b
Examples:
  forgetmap gate runs/main runs/candidate
  forgetmap gate runs/main runs/candidate --policy policy.toml --explain
  forgetmap gate runs/main runs/candidate --confirm again/main again/candidate
  forgetmap gate baseline:main runs/candidate --policy policy.toml --waivers waivers.toml
  forgetmap gate runs/main runs/candidate --json --junit gate.xml --markdown gate.md
  forgetmap gate init runs/main runs/candidate --out policy.toml
  forgetmap gate accept runs/candidate --as main
  forgetmap gate history

\b
Exit codes:
  0 PASS   1 FAIL   3 INCONCLUSIVE   2 bad input or policy   4 anything unforeseen
"""
EXIT_CODES = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}
STORE = "forgetmap-baselines"
accept_option = click.option(
    "--accept",
    type=click.Choice(["items", "net"]),
    help=(
        "What passes. items: fewer items than the margin may be lost, whatever was gained; net: "
        "also if accuracy fell by less than the margin [default: items]."
    ),
)
store_option = click.option(
    "--store",
    metavar="FOLDER|URL",
    help=(
        "Folder or address (such as s3://...) of the store of baselines and decisions [default: "
        f"{STORE}]."
    ),
)


@click.group("gate", cls=CommandGroup, lines=COMMANDS, default="check", epilog=EXAMPLES)
def command() -> None:
    """Decide whether a model may be released: PASS, FAIL or INCONCLUSIVE.

    `forgetmap gate BEFORE AFTER` checks both runs against a policy. By default at most 2 % of all
    items may be lost, and every category that lost more is reported as a warning.
    """


@command.command("check", epilog=EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    help="TOML file with the rules [default: a loss of all items below the margin].",
)
@margin_option
@accept_option
@click.option(
    "--waivers",
    type=click.Path(path_type=Path),
    help="TOML file with losses that are accepted for a limited time [default: none].",
)
@click.option(
    "--look",
    type=click.IntRange(1),
    help=(
        "Number of this look at the models, if the policy plans several [default: one more than in "
        "the store]."
    ),
)
@click.option(
    "--as-of",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Date used to check whether waivers have expired [default: today].",
)
@store_option
@click.option(
    "--record/--no-record",
    default=None,
    help="Record the decision in the store [default: yes if a store or a baseline is given].",
)
@click.option("--explain", is_flag=True, help="Explain every rule and check in a sentence.")
@json_option
@click.option("--junit", type=click.Path(path_type=Path), help="Also write JUnit XML to this file.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    help="Also write a Markdown comment to this file.",
)
@click.option(
    "--github/--no-github",
    default=None,
    help="Print annotations for GitHub Actions [default: if GITHUB_ACTIONS is true].",
)
@noise_option
@confirm_option
@selected_option
@click.option(
    "--chosen-among",
    type=click.IntRange(1),
    help="Number of checkpoints among which AFTER was chosen by these items [default: that of the "
    "policy, or 1].",
)
@table_options
@log_options
@click.pass_context
def check(ctx: click.Context, /, before: str, after: str, **options: Any) -> None:
    """Check two runs against a policy.

    BEFORE and AFTER are the same as for `forgetmap compare`; BEFORE may also be baseline:NAME.
    """
    from rich.console import Console

    from forgetmap.gate import print_gate, run_gate, tell_policy
    from forgetmap.text import Line, print_blocks

    explain, as_json = options.pop("explain"), options.pop("as_json")
    outputs = {name: options.pop(name) for name in ("junit", "markdown", "github")}
    as_of: datetime | None = options.pop("as_of")
    policy = _policy(ctx, options)
    with Console(stderr=True).status("Pairing items ...") as status:
        options["progress"] = reading_progress(status)
        is_kept = options["record"] or before.startswith("baseline:")
        options["store"] = options["store"] or (STORE if is_kept else None)
        result = run_gate(
            before, after, policy=policy, today=as_of.date() if as_of else None, **options
        )
    if as_json:
        click.echo(result.to_json())
    else:
        console = Console()
        # Printed at once: a reader such as `head` may close the pipe after the first line.
        with console.capture() as text:
            if explain:
                print_blocks(console, [*tell_policy(policy), Line()])
            commands = next_commands((before, after), accept)
            print_gate(console, result, explain=explain, commands=commands)
        shown = text.get()
        # Names come from files: a line must not be a command for the CI runner.
        for command in ("::", "##[") if _is_on_github(outputs["github"]) else ():
            shown = shown.replace(command, f"{command[0]} {command[1:]}")
        click.echo(shown, nl=False)
    _write_outputs(result, outputs, to_stderr=as_json)
    ctx.exit(EXIT_CODES[result.status])


def _policy(ctx: click.Context, options: dict[str, Any]) -> Any:
    """Return the policy of the file, or the default one with the given margin."""
    from click.core import ParameterSource

    from forgetmap.gate import make_default_policy, read_policy

    path, margin, accept = (options.pop(name) for name in ("policy", "margin", "accept"))
    if path is None:
        return make_default_policy(margin, accept or "items")
    for name in ("margin", "accept"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"--{name} and --policy cannot be combined", hint=f"set {name} in {path}."
            )
    return read_policy(path)


def _write_outputs(result: GateResult, outputs: dict[str, Any], *, to_stderr: bool) -> None:
    """Write the requested files, and lines for GitHub."""
    from forgetmap.gate import as_annotations, as_comment, write_junit
    from forgetmap.records import writable

    if outputs["junit"] is not None:
        write_junit(result, outputs["junit"])
    if outputs["markdown"] is not None:
        with writable(outputs["markdown"]):
            outputs["markdown"].write_text(as_comment(result), encoding="utf-8")
    for line in as_annotations(result) if _is_on_github(outputs["github"]) else ():
        click.echo(line, err=to_stderr)


def _is_on_github(wish: bool | None) -> bool:  # noqa: FBT001  # what click hands over
    """Return the option, or by default whether GitHub Actions runs this."""
    import os

    return os.environ.get("GITHUB_ACTIONS") == "true" if wish is None else wish


INIT_EXAMPLES = """\b
Examples:
  forgetmap gate init runs/main runs/candidate --out policy.toml
  forgetmap gate init runs/main runs/candidate --margin 0.01 --accept net
"""


@command.command("init", epilog=INIT_EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@margin_option
@accept_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write the policy to [default: print it].",
)
@overwrite_option
@table_options
@log_options
def init(before: str, after: str, out: Path | None, *, overwrite: bool, **options: Any) -> None:
    """Write a commented policy from a comparison of two runs."""
    from forgetmap.cli.options import refuse_existing
    from forgetmap.comparison import compare
    from forgetmap.gate import write_template
    from forgetmap.records import writable
    from forgetmap.text import printable

    if out is not None:
        refuse_existing(out, (before, after), overwrite=overwrite)
    accept = options.pop("accept") or _ask_accept()
    text = write_template(compare(before, after, **options), accept)
    if out is None:
        click.echo(text, nl=False)
        return
    with writable(out):
        out.write_text(text, encoding="utf-8")
    # Margin and accept stand in the policy.
    unwanted = ("margin", "accept")
    following = NextCommand(check, (before, after), ("--policy", str(out)), unwanted=unwanted)
    line = following.line("gate") or f"forgetmap gate BEFORE AFTER --policy {shlex.quote(str(out))}"
    click.echo(printable(f"Written to {out}. Next: {line}"))


def _ask_accept() -> Any:
    """Ask what passes, and say what net does not see; items if nobody can answer."""
    import sys

    from forgetmap.gate import ABOUT_ACCEPT

    if not sys.stdin.isatty():
        return "items"
    click.echo("\n".join(ABOUT_ACCEPT), err=True)
    return click.prompt("accept", type=click.Choice(["items", "net"]), default="items", err=True)


ACCEPT_EXAMPLES = """\b
Examples:
  forgetmap gate accept runs/candidate --as main
  forgetmap gate accept runs/candidate --as main --store s3://team/baselines --by ada
"""


@command.command("accept", epilog=ACCEPT_EXAMPLES)
@click.argument("source", type=click.Path(), metavar="RUN")
@click.option("--as", "name", required=True, help="Name of the baseline, such as main.")
@store_option
@click.option("--by", help="Person who accepts the run [default: not recorded].")
@click.option("--note", help="Reason [default: not recorded].")
@table_options
@log_options
@json_option
def accept(source: str, name: str, store: str | None, *, as_json: bool, **options: Any) -> None:
    """Store RUN as a named baseline. Earlier versions are kept."""
    import json
    from dataclasses import asdict

    from rich.console import Console

    from forgetmap.gate import accept_run
    from forgetmap.sources import open_run
    from forgetmap.text import printable

    facts = {fact: options.pop(fact) for fact in ("by", "note")}
    columns, task = options.pop("column_map"), options.pop("task")
    with Console(stderr=True).status("Reading ...") as status:
        reading = single_reading(options, status)
        run = open_run(source, column_map=columns, task=task, reading=reading)
    baseline = accept_run(run, name, store or STORE, **facts)
    if as_json:
        click.echo(json.dumps(asdict(baseline), indent=2))
        return
    # Without an id, a changed table cannot be detected.
    of = "" if baseline.run["run_id"] else " on a run of this name"
    gate = (
        f"the last decision{of} was {baseline.gate}"
        if baseline.gate
        else "no decision of a gate is recorded"
    )
    shown = printable(baseline.run["name"] or source)
    click.echo(f"{shown} is now baseline {name} (version {baseline.version}; {gate}).")
    of_store = f" --store {shlex.quote(store)}" if store and is_typable(store) else ""
    click.echo(printable(f"Next: forgetmap gate baseline:{name} AFTER{of_store}"))


HISTORY_EXAMPLES = """\b
Examples:
  forgetmap gate history
  forgetmap gate history --store s3://team/baselines --json
"""


@command.command("history", epilog=HISTORY_EXAMPLES)
@store_option
@json_option
def history(store: str | None, *, as_json: bool) -> None:
    """List past decisions: verdicts, margins used, and losses that came back or got through."""
    from rich.console import Console

    from forgetmap.gate import summarize_history, tell_history
    from forgetmap.text import print_blocks

    summary = summarize_history(store or STORE)
    if as_json:
        click.echo(summary.to_json())
        return
    print_blocks(Console(), tell_history(summary))
