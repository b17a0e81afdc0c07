"""`forgetmap theory simulate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command
from forgetmap.cli.options.output import json_option
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.theory import Hyperparameters, Setting, TrainingRun

METHODS = ("sft", "replay", "rl", "rl-new", "kl-rl", "iw-replay", "sdft", "ttt-discover", "oapl")
PARAMETER_OF_METHOD = {
    "replay": "replay",
    "rl": "temperature",
    "kl-rl": "temperature",
    "sdft": "anchor",
}
PHASE_POINTS = 60
EXAMPLES = """\b
Examples:
  forgetmap theory simulate --method sft --separation 3
  forgetmap theory simulate --method replay --fraction 0.05 --out plots --phase
  forgetmap theory simulate --method rl --out plots --two-by-two --format png
"""


def _number(name: str, default: float, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=float, default=default, show_default=True, help=text)


@click.command("simulate", epilog=EXAMPLES)
@click.option("--method", type=click.Choice(METHODS), required=True, help="Way of post-training.")
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
    help="Metric of the space in which the weight moves.",
)
@_number("--until", 1000.0, "Time at which the simulation ends.")
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
@_number("--anchor", 0.2, "sdft: pull of the teacher to the demonstrations, 0 to 1.")
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
    default=64,
    show_default=True,
    help="iw-replay: size of a batch.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="iw-replay: random seed."
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
def command(method: str, **options: Any) -> None:
    """Follow a way of post-training in the two-mode model.

    Prints how old weight, old mass and drift develop; with --out draws them.
    """
    from forgetmap.theory import simulate

    run = simulate(method, _setting(options), _hyperparameters(options), options["until"])  # type: ignore[arg-type]
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
    return Hyperparameters(eta=_eta(options["eta"]), **{name: options[name] for name in names})


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
                f"{run.method} has no phase diagram",
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
