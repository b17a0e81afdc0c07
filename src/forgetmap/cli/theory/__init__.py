"""`forgetmap theory`: the claims, simulations, advice and the interactive page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import Command, json_option, with_options
from forgetmap.cli.progress import JobProgress
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.theory import (
        ClaimOutcome,
        Hyperparameters,
        Setting,
        TrainingAdvice,
        TrainingRun,
    )

COMMANDS = {
    "verify": "Check the claims of the theory numerically; exit code 1 if one fails.",
    "conditions": "Check whether a method keeps old behaviour, for your parameters.",
    "simulate": "Simulate a training method in the two-mode model.",
    "page": "Write an interactive page of the two-mode model.",
    "advise": "Derive advice for a training run, with its assumptions.",
}
EXAMPLES = """\b
Examples:
  forgetmap theory verify
  forgetmap theory conditions --method sdft --demo-weight 0.3 --floor 0.2
  forgetmap theory simulate --method sft --separation 3
  forgetmap theory page --out page.html
  forgetmap theory advise replay --keep 0.3
"""


@click.group("theory", cls=CommandGroup, lines=COMMANDS, package=__name__, epilog=EXAMPLES)
def command() -> None:
    """A two-mode model of why post-training forgets, verified numerically."""


VERIFY_EXAMPLES = """\b
Examples:
  forgetmap theory verify
  forgetmap theory verify F1 R3 --controls
  forgetmap theory verify --controls --json > claims.json
"""


@command.command("verify", epilog=VERIFY_EXAMPLES)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--controls",
    is_flag=True,
    help="Also change each formula by 5 % and require that its check fails.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="Format of the printed table.",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Number of processes.",
)
@json_option
def verify(
    ids: tuple[str, ...], *, controls: bool, form: str, processes: int, as_json: bool
) -> None:
    """Check the claims of the theory numerically; exit code 1 if one fails.

    Without ID, checks all claims in less than a minute. With --controls, each claim must also fail
    after its formula is changed by about 5 %, which shows that the check can fail.
    """
    from forgetmap.theory import is_verified, outcomes_json, outcomes_markdown

    outcomes = _verify_claims(ids, controls=controls, processes=processes)
    if as_json:
        click.echo(outcomes_json(outcomes))
    elif form == "markdown":
        click.echo(outcomes_markdown(outcomes))
    else:
        _print_outcomes(outcomes)
    if not all(map(is_verified, outcomes)):
        sys.exit(1)


def _verify_claims(ids: tuple[str, ...], *, controls: bool, processes: int) -> list[ClaimOutcome]:
    from forgetmap.theory import find_claims, verify_claims

    order = [claim.id for claim in find_claims(ids)]
    outcomes: dict[str, ClaimOutcome] = {}
    with JobProgress() as progress:
        for outcome in verify_claims(ids, controls=controls, processes=processes):
            outcomes[outcome.id] = outcome
            progress.show_items("theory", len(outcomes), len(order), "claims")
    return [outcomes[claim] for claim in order]


def _print_outcomes(outcomes: list[ClaimOutcome]) -> None:
    from rich.console import Console

    from forgetmap.report import tell_outcomes
    from forgetmap.text import print_blocks

    print_blocks(Console(), tell_outcomes(outcomes))


METHODS = ("sft", "replay", "rl", "rl-new", "kl-rl", "iw-replay", "sdft", "ttt-discover", "oapl")
PARAMETER_OF_METHOD = {
    "replay": "replay",
    "rl": "temperature",
    "kl-rl": "temperature",
    "sdft": "anchor",
}
PHASE_POINTS = 60
SIMULATE_EXAMPLES = """\b
Examples:
  forgetmap theory simulate --method sft --separation 3
  forgetmap theory simulate --method replay --fraction 0.05 --out plots --phase
  forgetmap theory simulate --method rl --out plots --two-by-two --format png
  forgetmap theory simulate --method sdft --batch 32 --dimension 8 --modes 4 --seed 1
"""


def _number(name: str, default: float, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=float, default=default, show_default=True, help=text)


@command.command("simulate", epilog=SIMULATE_EXAMPLES)
@click.option("--method", type=click.Choice(METHODS), required=True, help="Training method.")
@_number("--separation", 5.0, "Distance of the two modes, in standard deviations.")
@_number("--old-share", 0.5, "Weight of the old mode in the true target.")
@_number("--start-weight", 0.5, "Weight of the model on the old mode before training.")
@_number("--offset", 1.0, "Distance at which the new component starts from the new mode.")
@click.option(
    "--trained",
    type=click.Choice(["weight", "weight+new", "joint"]),
    default="joint",
    show_default=True,
    help="Which parameters are trained.",
)
@click.option(
    "--geometry",
    type=click.Choice(["logit", "euclid", "natural"]),
    default="logit",
    show_default=True,
    help="Geometry in which the weight moves.",
)
@_number("--until", 1000.0, "End time of the simulation.")
@_number("--fraction", 0.1, "replay, iw-replay: fraction of old data.")
@_number("--gap", 1.0, "kl-rl, ttt-discover, oapl: reward of new minus old behaviour.")
@_number("--temperature", 1.0, "kl-rl: strength of the KL penalty.")
@click.option(
    "--eta",
    default="2",
    show_default=True,
    help="ttt-discover: inverse temperature, a number or `adaptive`.",
)
@_number("--strength", 0.5, "ttt-discover: strength of the KL penalty.")
@_number("--anchor", 0.2, "sdft: pull of the teacher towards the demonstrations, 0 to 1.")
@_number("--refresh", 0.2, "sdft: rate of the teacher's moving average.")
@_number("--demo-weight", 0.5, "sdft: old weight of the demonstrator.")
@_number("--t1", 1.0, "oapl: temperature of the soft maximum.")
@_number("--t2", 1.0, "oapl: temperature of the regression.")
@click.option(
    "--refreshes",
    type=click.IntRange(1),
    default=6,
    show_default=True,
    help="oapl: number of refreshes of the lagged policy.",
)
@click.option(
    "--batch",
    type=click.IntRange(1),
    help=(
        "Train on batches of this many samples [default: exact averages; 64 for iw-replay, or with "
        "--dimension or --modes]."
    ),
)
@click.option(
    "--dimension",
    type=int,
    default=1,
    show_default=True,
    help="Dimension of the space; above 1 implies batches.",
)
@click.option(
    "--modes",
    type=int,
    default=2,
    show_default=True,
    help="Number of modes, of which the last is new; above 2 implies batches.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Random seed of the batches.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for plots [default: no plots]."
)
@click.option(
    "--two-by-two", is_flag=True, help="Also plot the direction of KL against the target."
)
@click.option(
    "--phase", is_flag=True, help="Also plot old mass over separation and the method's parameter."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png"]),
    default="svg",
    show_default=True,
    help="Format of the plots.",
)
@json_option
def simulate(method: str, **options: Any) -> None:
    """Simulate a training method in the two-mode model.

    Prints old weight, old mass and drift over time, and plots them with --out. With --batch,
    --dimension or --modes, trains on finite batches, in any dimension and with several old modes.
    """
    run = _simulate(method, options)
    plots = _draw_all(run, options) if options["out"] else []
    if options["as_json"]:
        click.echo(json.dumps(_table(run) | {"plots": [str(path) for path in plots]}))
        return
    from rich.console import Console

    from forgetmap.report import tell_run
    from forgetmap.text import print_blocks

    print_blocks(Console(), tell_run(run))
    for path in plots:
        click.echo(f"Wrote {path}", err=True)


def _simulate(method: str, options: dict[str, Any]) -> TrainingRun:
    """Simulate batches if requested, else exact averages."""
    from forgetmap.theory import ModeSpace, simulate, simulate_batches

    space = ModeSpace(options["dimension"], options["modes"])
    exact = options["batch"] is None and space == ModeSpace()
    setting, parameters = _setting(options), _hyperparameters(options)
    if exact or (method == "iw-replay" and space == ModeSpace()):
        return simulate(method, setting, parameters, options["until"])  # type: ignore[arg-type]
    return simulate_batches(method, setting, parameters, options["until"], space)  # type: ignore[arg-type]


def _setting(options: dict[str, Any]) -> Setting:
    from forgetmap.theory import Setting

    return Setting(
        options["separation"],
        options["old_share"],
        options["start_weight"],
        options["offset"],
        options["trained"],
        options["geometry"],
        1e-8,
    )


def _hyperparameters(options: dict[str, Any]) -> Hyperparameters:
    from forgetmap.theory import Hyperparameters

    names = set(Hyperparameters.__dataclass_fields__) - {"eta"}
    values = {name: options[name] for name in names if options[name] is not None}
    return Hyperparameters(eta=_eta(options["eta"]), **values)


def _eta(text: str) -> float | None:
    if text == "adaptive":
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--eta is {text!r}", hint="give a number, or adaptive.") from None


def _table(run: TrainingRun) -> dict[str, Any]:
    return {
        "method": run.method,
        run.unit: run.path.times.tolist(),
        "old_weight": run.weight.tolist(),
        "old_mass": run.mass.tolist(),
        "drift": run.drift.tolist(),
    }


def _draw_all(run: TrainingRun, options: dict[str, Any]) -> list[Path]:
    import numpy as np

    from forgetmap.report import phase_figure, run_figures, two_by_two_figure, write_figure
    from forgetmap.theory import PHASE_VALUES, phase_diagram, two_by_two

    figures = run_figures(run)
    if options["two_by_two"]:
        figures.append(two_by_two_figure(two_by_two(run.setting, options["until"])))
    if options["phase"]:
        parameter: Any = PARAMETER_OF_METHOD.get(run.method)
        if parameter is None:
            raise UsageError(
                f"there is no phase diagram for {run.method}",
                hint=f"use one of {', '.join(PARAMETER_OF_METHOD)}.",
            )
        separations = np.linspace(1, 8, PHASE_POINTS)
        values = PHASE_VALUES[parameter]
        diagram = phase_diagram(parameter, separations, values, options["until"], run.setting)
        figures.append(phase_figure(diagram))
    names = {figure.name: figure.name.replace("_", "-") for figure in figures}
    return [
        write_figure(
            figure,
            options["out"] / f"{run.method}-{names[figure.name]}.{options['form']}",
            words=True,
            ground=True,
        )
        for figure in figures
    ]


PAGE_EXAMPLES = """\b
Examples:
  forgetmap theory page --out page.html
"""


@command.command("page", epilog=PAGE_EXAMPLES)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="HTML file to write.",
)
def page(out: Path) -> None:
    """Write an interactive page of the two-mode model.

    The page is one file that works offline and computes the model in the browser.
    """
    from forgetmap.report import write_theory_page

    click.echo(f"Wrote {write_theory_page(out)}; open it in a browser.")


ADVISE_EXAMPLES = """\b
Examples:
  forgetmap theory advise batch --old-weight 0.05
  forgetmap theory advise replay --keep 0.3
  forgetmap theory advise kl --start 0.5 --floor 0.2 --gap 1
  forgetmap theory advise refreshes --start 0.5 --floor 0.2
  forgetmap theory advise anchor --shown 45 --tried 50 --keep 0.8
"""


def _example(name: str) -> str:
    """Return the example of a command."""
    line = next(line for line in ADVISE_EXAMPLES.splitlines() if f" advise {name} " in line)
    return f"\b\nExamples:\n{line}\n"


@command.group("advise", epilog=ADVISE_EXAMPLES)
def advise() -> None:
    """Derive advice for a training run from the theory, with its assumptions."""


@advise.command("batch", epilog=_example("batch"))
@click.option(
    "--old-weight", type=float, required=True, help="Share of samples that show the old behaviour."
)
@click.option(
    "--chance",
    type=float,
    default=0.01,
    show_default=True,
    help="Accepted probability of a batch without old behaviour.",
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
    """Calculate how large a batch must be to contain old behaviour."""
    from forgetmap.theory import batch_size

    _print_advice(batch_size(old_weight, chance, replay), as_json=as_json)


@advise.command("replay", epilog=_example("replay"))
@click.option("--keep", type=float, help="Old mass to keep [default: none].")
@click.option(
    "--fraction",
    type=float,
    help="Or: fraction of old data, to calculate what it keeps [default: none].",
)
@click.option(
    "--base",
    type=float,
    help="Share of old behaviour in the replayed data [default: pure old data].",
)
@json_option
def replay(
    keep: float | None, fraction: float | None, base: float | None, *, as_json: bool
) -> None:
    """Calculate how much old data fine-tuning needs, or how much a fraction of it keeps."""
    from forgetmap.theory import replay_fraction, replay_mass

    if keep is not None and fraction is None:
        _print_advice(replay_fraction(keep, base), as_json=as_json)
    elif fraction is not None and keep is None:
        _print_advice(replay_mass(fraction, base), as_json=as_json)
    else:
        raise UsageError(
            "give either --keep or --fraction, not both",
            hint="--keep 0.3 calculates the fraction, --fraction 0.1 calculates what it keeps.",
        )


def _reward_options(command: Command) -> Command:
    """Add options for training with a reward: start, floor and reward gap."""
    options = [
        click.option(
            "--start", type=float, required=True, help="Old mass of the model before training."
        ),
        click.option("--floor", type=float, required=True, help="Old mass to keep."),
        click.option(
            "--gap",
            type=float,
            default=1.0,
            show_default=True,
            help="Reward of the new minus the old behaviour.",
        ),
    ]
    return with_options(command, options)


@advise.command("kl", epilog=_example("kl"))
@_reward_options
@click.option(
    "--eta", type=float, help="Inverse temperature of an entropic utility [default: none]."
)
@json_option
def kl(start: float, floor: float, gap: float, eta: float | None, *, as_json: bool) -> None:
    """Calculate how strong the KL penalty must be."""
    from forgetmap.theory import kl_strength

    _print_advice(kl_strength(start, floor, gap, eta), as_json=as_json)


@advise.command("refreshes", epilog=_example("refreshes"))
@_reward_options
@click.option(
    "--temperature",
    type=float,
    default=1.0,
    show_default=True,
    help="Both temperatures of OAPL.",
)
@json_option
def refreshes(start: float, floor: float, gap: float, temperature: float, *, as_json: bool) -> None:
    """Calculate how often OAPL's lagged policy may be refreshed."""
    from forgetmap.theory import oapl_refreshes

    _print_advice(oapl_refreshes(start, floor, gap, temperature), as_json=as_json)


@advise.command("anchor", epilog=_example("anchor"))
@click.option(
    "--shown", type=int, required=True, help="Number of completions that show the old behaviour."
)
@click.option(
    "--tried", type=int, required=True, help="Number of completions sampled from the teacher."
)
@click.option("--keep", type=float, required=True, help="Old mass to keep.")
@json_option
def anchor(shown: int, tried: int, keep: float, *, as_json: bool) -> None:
    """Check whether the demonstration-conditioned teacher of SDFT keeps the old behaviour."""
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
