"""`forgetmap run --harness`: another program asks, forgetmap imports what it logged."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from forgetmap.cli.asking import settings_of, stoppable
from forgetmap.cli.options import with_options
from forgetmap.cli.service import print_notes
from forgetmap.errors import UsageError
from forgetmap.evaluation import find_model

HARNESSES = ("lm-eval", "inspect", "lighteval")
TAKEN = frozenset({
    "model", "out", "overwrite", "harness", "harness_python", "more", "tasks", "limit", "chat",
    "system_prompt", "shots", "temperature", "top_p", "max_new_tokens", "repeats", "seed", "rows",
    "device", "dtype", "trust_remote_code", "concurrency", "dry_run",
})  # fmt: skip
"""Parameters that mean something to a harness."""

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--harness",
        type=click.Choice(HARNESSES),
        help="Let this program run its own --tasks instead of a suite, and import its logs; "
        "arguments after -- are handed on to it.",
    ),
    click.option(
        "--harness-python",
        help="Python, or environment, that the harness is installed in; this one without it.",
    ),
)


def driving_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which harness."""
    return with_options(command, _OPTIONS)


def drive(context: click.Context, out: Path) -> None:
    """Run the harness, or with `--dry-run` show what would be run."""
    from forgetmap.harness_runs import plan_harness, run_harness  # heavy
    from forgetmap.text import counted, printable

    options = context.params
    _refuse_others(context)
    order = _order(options)
    plan = plan_harness(options["harness"], order, out, python=options["harness_python"])
    print_notes(plan.notes)
    if options["dry_run"]:
        click.echo(shlex.join(plan.command))
        return
    with stoppable():
        run = run_harness(plan, out, overwrite=options["overwrite"], show=_shown())
    for notice in run.notices:
        click.echo(printable(f"! {notice}"), err=True)
    if run.problem_count:
        said = f"{counted(run.problem_count, 'problem')}; the first: {run.problems[0]}"
        click.echo(printable(f"! {said}"), err=True)
    click.echo(printable(f"Written to {out}"))


def refuse_without_harness(options: dict[str, Any]) -> None:
    """What only a harness can use must not be lost without a word."""
    if options["more"]:
        raise UsageError(
            f"{options['more'][0]!r} is one argument too many",
            hint="one model is run at a time; only --harness takes further arguments, after --.",
        )
    if options["harness_python"]:
        raise UsageError("--harness-python needs --harness", hint="add --harness lm-eval.")
    if options["suite"] is None:
        raise UsageError(
            "nothing says what is asked",
            hint="add --suite NAME, or --harness NAME --tasks TASKS.",
        )


def _refuse_others(context: click.Context) -> None:
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is click.core.ParameterSource.COMMANDLINE and name not in TAKEN:
            raise UsageError(
                f"{parameter.opts[0]} means nothing to {context.params['harness']}",
                hint="leave it out, or hand on an argument of the harness itself after --.",
            )


def _order(options: dict[str, Any]) -> Any:
    from forgetmap.harness_runs import Order  # heavy

    settings = settings_of(options)
    same = ("limit", "concurrency", "device", "dtype", "trust_remote_code", "more")
    return Order(
        model=find_model(options["model"]),
        tasks=tuple(filter(None, (each.strip() for each in (options["tasks"] or "").split(",")))),
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


def _shown() -> Callable[[str], None]:
    """What the harness prints: as it comes in a terminal, else line by line as it ends up."""
    if sys.stderr.isatty():
        return lambda text: click.echo(text, nl=False, err=True)
    rest = ""

    def show(text: str) -> None:
        nonlocal rest
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            click.echo(line.rstrip("\r").rpartition("\r")[2], err=True)

    return show
