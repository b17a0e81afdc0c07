"""`forgetmap simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command, overwrite_option

if TYPE_CHECKING:
    from forgetmap.simulation import SimulatedTask

CATEGORIES = ("knowledge", "reasoning", "language")
RERUNS = ("before-rerun", "after-rerun")
EXAMPLES = """\b
Examples:
  forgetmap simulate --out demo
  forgetmap simulate --out demo --lost 0.2 --k 2 --k 4 --k open --repeats 3 --mastery 0.9
  forgetmap compare demo/before demo/after
  forgetmap compare demo/before demo/after --confirm demo/before-rerun demo/after-rerun
"""


def _share(name: str, default: float, text: str) -> Callable[[Command], Command]:
    return click.option(
        name, type=click.FloatRange(0, 1), default=default, show_default=True, help=text
    )


def _option_counts(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> list[int | None]:
    try:
        return [None if value == "open" else int(value) for value in values]
    except ValueError:
        raise click.BadParameter("give whole numbers of 2 or more, or 'open'") from None


@click.command("simulate", epilog=EXAMPLES)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for both runs.")
@click.option(
    "--tasks", type=click.IntRange(1), default=9, show_default=True, help="Number of tasks."
)
@click.option(
    "--items",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Number of items per task.",
)
@click.option(
    "--k",
    multiple=True,
    default=("4", "10", "open"),
    show_default=True,
    callback=_option_counts,
    help="Number of options per item, one per task in turn, or `open`. Repeatable.",
)
@_share("--known", 0.6, "Share of items known before.")
@_share("--lost", 0.155, "Share of the known items that is lost, on average over tasks.")
@_share("--gained", 0.25, "Share of the unknown items that is gained.")
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of answers per item.",
)
@_share("--persistence", 0.55, "Probability that a guess is the same in another run.")
@_share("--mastery", 1.0, "Probability of answering a known item correctly.")
@_share("--spread", 0.0, "Variation of mastery between items.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Random seed; the same seed gives the same answers.",
)
@click.option(
    "--rerun/--no-rerun",
    default=True,
    show_default=True,
    help="Whether both models also answer the items once more, for `compare --confirm`.",
)
@overwrite_option
def command(out: Path, **options: Any) -> None:
    """Write simulated runs of two models with known losses, to try forgetmap without a model.

    The folders before-rerun and after-rerun have fresh answers of both models to the same items.
    The file truth.parquet states for each item whether it was kept, lost, gained or never known,
    and the probability of a right answer of each model. Unknown items are guessed, which is noise:
    with the defaults accuracy holds, and nearly as many items are lost as gained.
    """
    import pyarrow.parquet as pq

    from forgetmap.records import complete_folder, write_run
    from forgetmap.simulation import Habits, simulate
    from forgetmap.text import share

    habits = Habits(
        persistence=options["persistence"], mastery=options["mastery"], spread=options["spread"]
    )
    simulation = simulate(
        _tasks(**options),
        seed=options["seed"],
        repeats=options["repeats"],
        habits=habits,
        failures={"no_answer": 0.1, "truncated": 0.1, "refused": 0.03, "degenerate": 0.02},
        reruns=options["rerun"],
    )
    with complete_folder(out, overwrite=options["overwrite"]) as partial:
        write_run(simulation.before, partial / "before")
        write_run(simulation.after, partial / "after")
        for run, name in zip(simulation.reruns or (), RERUNS, strict=False):
            write_run(run, partial / name)
        pq.write_table(simulation.truth, partial / "truth.parquet")
        (partial / "manifest.json").write_text('{"simulated": true}\n', encoding="utf-8")
    click.echo(
        f"Simulated (not measured) runs in {out}. Of all items, {share(simulation.loss)} are truly "
        f"lost and {share(simulation.gain)} gained."
    )
    compare = f"forgetmap compare {out / 'before'} {out / 'after'}"
    click.echo(f"Compare them: {compare}")
    if options["rerun"]:
        fresh = " ".join(str(out / name) for name in RERUNS)
        click.echo(f"With fresh answers to what flipped: {compare} --confirm {fresh}")


def _tasks(**options: Any) -> list[SimulatedTask]:
    """Return tasks whose losses vary around --lost."""
    from forgetmap.simulation import SimulatedTask

    ks, lost = options["k"], options["lost"]
    tasks = []
    for index in range(options["tasks"]):
        tilt = 2 * (index + 1) / (options["tasks"] + 1) - 1
        tasks.append(
            SimulatedTask(
                name=f"{CATEGORIES[index % 3]}-{index // 3 + 1}",
                items=options["items"],
                k=ks[index % len(ks)],
                known=options["known"],
                lost=lost + min(lost, 1 - lost) * tilt,
                gained=options["gained"],
                category=CATEGORIES[index % 3],
            )
        )
    return tasks
