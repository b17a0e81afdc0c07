"""Options of `forgetmap run --harness`: another program evaluates, forgetmap imports its logs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command, split_names, with_options
from forgetmap.cli.options.evaluate import make_settings, print_notes
from forgetmap.cli.progress import stoppable
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.harness_runs import HarnessRequest

HARNESSES = ("lm-eval", "inspect", "lighteval")
HARNESS_PARAMETERS = frozenset({
    "model", "out", "overwrite", "harness", "harness_python", "more", "tasks", "limit", "chat",
    "system_prompt", "shots", "temperature", "top_p", "max_new_tokens", "repeats", "seed", "rows",
    "device", "dtype", "trust_remote_code", "concurrency", "dry_run",
})  # fmt: skip
"""Parameters that apply to a harness."""

_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "--harness",
        type=click.Choice(HARNESSES),
        help=(
            "Evaluate with this program and its own --tasks instead of a suite, and import its "
            "logs. Arguments after -- are passed to it [default: none]."
        ),
    ),
    click.option(
        "--harness-python",
        help="Python interpreter or environment of the harness [default: the current one].",
    ),
)


def harness_options(command: Command) -> Command:
    """Add options for another harness."""
    return with_options(command, _OPTIONS)


def run_with_harness(context: click.Context, out: Path) -> None:
    """Run the harness, or with `--dry-run` print the command."""
    from forgetmap.harness_runs import plan_harness, run_harness
    from forgetmap.text import counted, printable

    options = context.params
    _refuse_others(context)
    request = _request(options)
    plan = plan_harness(options["harness"], request, out, python=options["harness_python"])
    print_notes(plan.notes)
    if options["dry_run"]:
        click.echo(shlex.join(plan.command))
        return
    with stoppable():
        run = run_harness(plan, out, overwrite=options["overwrite"], show=_printer())
    for notice in run.notices:
        click.echo(printable(f"! {notice}"), err=True)
    if run.problem_count:
        problems = f"{counted(run.problem_count, 'problem')}; the first: {run.problems[0]}"
        click.echo(printable(f"! {problems}"), err=True)
    click.echo(printable(f"Written to {out}"))


def refuse_without_harness(options: dict[str, Any]) -> None:
    """Refuse options that only a harness can use."""
    if options["more"]:
        raise UsageError(
            f"unexpected argument {options['more'][0]!r}",
            hint=(
                "give one model at a time; further arguments after -- are allowed only with "
                "--harness."
            ),
        )
    if options["harness_python"]:
        raise UsageError("--harness-python needs --harness", hint="add --harness lm-eval.")
    if options["suite"] is None:
        raise UsageError(
            "nothing to evaluate",
            hint="add --suite NAME, or --harness NAME --tasks TASKS.",
        )


def _refuse_others(context: click.Context) -> None:
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        typed = source is click.core.ParameterSource.COMMANDLINE
        if typed and name not in HARNESS_PARAMETERS:
            raise UsageError(
                f"{parameter.opts[0]} has no effect with {context.params['harness']}",
                hint="remove it, or pass an argument of the harness itself after --.",
            )


def _request(options: dict[str, Any]) -> HarnessRequest:
    from forgetmap.evaluation import find_model
    from forgetmap.harness_runs import HarnessRequest

    settings = make_settings(options)
    same = ("limit", "concurrency", "device", "dtype", "trust_remote_code", "more")
    return HarnessRequest(
        model=find_model(options["model"]),
        tasks=tuple(split_names(options["tasks"])),
        chat=settings.chat,
        system_prompt=settings.system_prompt,
        shots=settings.shots,
        temperature=settings.temperature or 0.0,
        top_p=settings.top_p,
        max_new_tokens=settings.max_new_tokens,
        repeats=settings.repeats or 1,
        seed=settings.seed,
        batch=options["rows"],
        **{name: options[name] for name in same},
    )


def _printer() -> Callable[[str], None]:
    """Return a printer of output: as it arrives on a terminal, else line by line."""
    if sys.stderr.isatty():
        return lambda text: click.echo(text, nl=False, err=True)
    rest = ""

    def show(text: str) -> None:
        nonlocal rest
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            click.echo(line.rstrip("\r").rpartition("\r")[2], err=True)

    return show
