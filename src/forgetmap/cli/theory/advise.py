"""`forgetmap theory advise`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from forgetmap.cli.options.output import json_option

if TYPE_CHECKING:
    from forgetmap.theory import TrainingAdvice


EXAMPLES = """\b
Examples:
  forgetmap theory advise batch --old-weight 0.05
  forgetmap theory advise replay --keep 0.3
  forgetmap theory advise kl --start 0.5 --floor 0.2 --gap 1
  forgetmap theory advise refreshes --start 0.5 --floor 0.2
  forgetmap theory advise anchor --shown 45 --tried 50 --keep 0.8
"""


def _example(name: str) -> str:
    """The example of a command."""
    line = next(line for line in EXAMPLES.splitlines() if f" advise {name} " in line)
    return f"\b\nExamples:\n{line}\n"


@click.group("advise", epilog=EXAMPLES)
def command() -> None:
    """What follows from the theory for a training run, with its assumptions."""


@command.command("batch", epilog=_example("batch"))
@click.option(
    "--old-weight", type=float, required=True, help="Share of samples that show old behaviour."
)
@click.option(
    "--chance",
    type=float,
    default=0.01,
    show_default=True,
    help="Accepted chance of a batch without old behaviour.",
)
@click.option(
    "--replay",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of each batch that is replayed old data.",
)
@json_option
def batch(old_weight: float, chance: float, replay: float, *, as_json: bool) -> None:
    """How large must a batch be to contain old behaviour?"""
    from forgetmap.theory import batch_size

    _print_advice(batch_size(old_weight, chance, replay), as_json=as_json)


@command.command("replay", epilog=_example("replay"))
@click.option("--keep", type=float, required=True, help="Old mass to be kept.")
@click.option(
    "--base",
    type=float,
    help="Share of old behaviour in what is replayed [default: pure old data].",
)
@json_option
def replay(keep: float, base: float | None, *, as_json: bool) -> None:
    """How much old data does fine-tuning need?"""
    from forgetmap.theory import replay_fraction

    _print_advice(replay_fraction(keep, base), as_json=as_json)


@command.command("kl", epilog=_example("kl"))
@click.option("--start", type=float, required=True, help="Old mass of the model before.")
@click.option("--floor", type=float, required=True, help="Old mass to be kept.")
@click.option("--gap", type=float, default=1.0, show_default=True, help="Reward of new minus old.")
@click.option(
    "--eta", type=float, help="Inverse temperature of an entropic utility [default: none]."
)
@json_option
def kl(start: float, floor: float, gap: float, eta: float | None, *, as_json: bool) -> None:
    """How strong must the KL penalty be?"""
    from forgetmap.theory import kl_strength

    _print_advice(kl_strength(start, floor, gap, eta), as_json=as_json)


@command.command("refreshes", epilog=_example("refreshes"))
@click.option("--start", type=float, required=True, help="Old mass of the model before.")
@click.option("--floor", type=float, required=True, help="Old mass to be kept.")
@click.option("--gap", type=float, default=1.0, show_default=True, help="Reward of new minus old.")
@click.option(
    "--temperature",
    type=float,
    default=1.0,
    show_default=True,
    help="Both temperatures of OAPL.",
)
@json_option
def refreshes(start: float, floor: float, gap: float, temperature: float, *, as_json: bool) -> None:
    """How often may OAPL's lagged policy be refreshed?"""
    from forgetmap.theory import oapl_refreshes

    _print_advice(oapl_refreshes(start, floor, gap, temperature), as_json=as_json)


@command.command("anchor", epilog=_example("anchor"))
@click.option("--shown", type=int, required=True, help="Completions that show the old behaviour.")
@click.option("--tried", type=int, required=True, help="Completions sampled from the teacher.")
@click.option("--keep", type=float, required=True, help="Old mass to be kept.")
@json_option
def anchor(shown: int, tried: int, keep: float, *, as_json: bool) -> None:
    """Does the demonstration-conditioned teacher of SDFT keep the old behaviour?"""
    from forgetmap.theory import sdft_anchor

    _print_advice(sdft_anchor(shown, tried, keep), as_json=as_json)


def _print_advice(advice: TrainingAdvice, *, as_json: bool) -> None:
    if as_json:
        from forgetmap.theory import LIMITS

        click.echo(json.dumps(asdict(advice) | {"limits": LIMITS}, indent=2))
        return
    from rich.console import Console

    from forgetmap.report import tell_advice
    from forgetmap.text import print_blocks

    print_blocks(Console(), tell_advice(advice))
