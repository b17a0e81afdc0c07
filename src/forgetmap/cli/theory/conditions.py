"""`forgetmap theory conditions`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command, json_option
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.theory import ConditionReport

METHODS = ("sdft", "ttt-discover", "oapl", "rl", "sft")
OPTIONS: dict[str, tuple[str, str]] = {
    "start": ("0.5", "Old mass of the model before training."),
    "floor": ("0.1", "Old mass to keep."),
    "separation": ("5", "Distance of old and new behaviour, in standard deviations of one."),
    "tolerance": ("0.25", "Accepted drift, in standard deviations."),
    "offset": ("1", "Distance at which the new component starts from the new mode."),
    "fraction": ("0", "sft: fraction of replayed old data."),
    "bias": ("0", "sft: distance of replayed data from the old mode."),
    "old_share": (
        "0.5",
        "rl: weight of the old mode in the target; 0 if the target does not contain it.",
    ),
    "temperature": ("none", "rl: temperature of a KL penalty, which then determines the target."),
    "gap": ("1", "rl with a penalty, ttt-discover, oapl: reward of new minus old behaviour."),
    "slope": ("0", "rl with a penalty, ttt-discover, oapl: slope of the rewards on old behaviour."),
    "anchor": ("0.2", "sdft: pull of the teacher towards the demonstrations, 0 to 1."),
    "demo_weight": ("0.5", "sdft: old mass of the teacher that has seen demonstrations."),
    "demo_shift": ("0", "sdft: distance of that teacher's old behaviour from the old mode."),
    "eta": ("2", "ttt-discover: inverse temperature of the utility."),
    "strength": ("0.5", "ttt-discover: strength of the KL penalty."),
    "t1": ("1", "oapl: temperature of the soft maximum."),
    "t2": ("1", "oapl: temperature of the regression."),
}
EXAMPLES = """\b
Examples:
  forgetmap theory conditions --method sft --fraction 0.05 --floor 0.1
  forgetmap theory conditions --method rl --temperature 0.5 --gap 1 --separation 6
  forgetmap theory conditions --method sdft --demo-weight 0.3 --floor 0.2 --anchor 0.1
  forgetmap theory conditions --method ttt-discover --strength 0.2 --eta 4
  forgetmap theory conditions --method oapl --refreshes 3 --gap 0.5
  forgetmap theory conditions --method rl --overlap overlap.json --group old --json
"""


def _number_options(command: Command) -> Command:
    for name, (default, text) in reversed(OPTIONS.items()):
        option = f"--{name.replace('_', '-')}"
        command = click.option(option, name, type=float, help=f"{text[:-1]} [default: {default}].")(
            command
        )
    return command


@click.command("conditions", epilog=EXAMPLES)
@click.option("--method", type=click.Choice(METHODS), required=True, help="Training method.")
@_number_options
@click.option(
    "--refreshes", type=int, help="oapl: number of refreshes of the lagged policy [default: 1]."
)
@click.option(
    "--overlap",
    "file",
    type=click.Path(path_type=Path),
    help=(
        "Output of `forgetmap overlap --json`, or the folder of its --out, from which to take "
        "separation and old mass [default: none]."
    ),
)
@click.option("--group", help="With --overlap: group of prompts [default: all].")
@json_option
def command(
    method: str, file: Path | None, group: str | None, *, as_json: bool, **options: Any
) -> None:
    """Check whether a method keeps old behaviour, for your parameters.

    Prints both sides of every condition on old mass and drift, and whether it holds. An exact
    condition decides; a sufficient condition guarantees protection if it holds, and is inconclusive
    otherwise.
    """
    from forgetmap.theory import ConditionNumbers, check_conditions

    values = {name: value for name, value in options.items() if value is not None}
    _refuse_unused(method, values, with_file=file is not None, group=group)
    numbers = ConditionNumbers(**values)
    if file is None:
        report = check_conditions(method, numbers)  # type: ignore[arg-type]
    else:
        from forgetmap.overlap import conditions_of_overlap, read_overlap

        report = conditions_of_overlap(read_overlap(file), method, numbers, group or "all")  # type: ignore[arg-type]
    _print_conditions(report, as_json=as_json)


def _refuse_unused(
    method: str, given: dict[str, Any], *, with_file: bool, group: str | None
) -> None:
    """Refuse numbers that would have no effect."""
    from forgetmap.theory import NUMBERS_OF_ALL, NUMBERS_OF_METHOD

    own = NUMBERS_OF_METHOD[method]  # type: ignore[index]
    unused = [name for name in given if name not in {*NUMBERS_OF_ALL, *own}]
    if unused:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in own)
        raise UsageError(
            f"--{unused[0].replace('_', '-')} is not a parameter of {method}",
            hint=f"use the common parameters and {names}.",
        )
    if method == "rl" and "temperature" not in given and {"gap", "slope"} & given.keys():
        raise UsageError(
            "rewards have an effect only with a KL penalty",
            hint="add --temperature, or remove them.",
        )
    if method == "rl" and {"temperature", "old_share"} <= given.keys():
        raise UsageError(
            "--temperature and --old-share both determine the target",
            hint="give one of them.",
        )
    if with_file and "separation" in given:
        raise UsageError(
            "--separation and --overlap both determine the distance of old and new",
            hint="give one of them.",
        )
    if group is not None and not with_file:
        raise UsageError(
            "--group needs --overlap", hint="add --overlap with the result that contains the group."
        )


def _print_conditions(report: ConditionReport, *, as_json: bool) -> None:
    if as_json:
        from forgetmap.theory import LIMITS

        verdicts = {"keeps_mass": report.keeps_mass, "bounds_drift": report.bounds_drift}
        click.echo(json.dumps(asdict(report) | verdicts | {"limits": LIMITS}, indent=2))
        return
    from rich.console import Console

    from forgetmap.report import tell_conditions
    from forgetmap.text import print_blocks

    print_blocks(Console(), tell_conditions(report))
