"""`forgetmap probe`."""

from __future__ import annotations

import click

from forgetmap.cli.groups import LazyGroup

COMMANDS = {
    "choose": "Choose few items that runs of the model before know stably.",
    "check": "What does a run on the chosen items say of forgetting?",
}
EXAMPLES = """\b
Examples:
  forgetmap probe runs/base --suite basics --detect 0.05 --out probe.jsonl
  forgetmap run models/tuned --suite probe.jsonl --out runs/tuned-probe
  forgetmap probe check probe.jsonl runs/tuned-probe
"""

metric_option = click.option(
    "--metric", help="Metric to use, METRIC or METRIC/SCORER [default: the main one of each task]."
)


@click.group(
    "probe", cls=LazyGroup, package=__name__, lines=COMMANDS, default="choose", epilog=EXAMPLES
)
def command() -> None:
    """Which few items show forgetting as a full run would?

    `forgetmap probe RUN --suite SUITE --out FILE` chooses them from a full run of the model before;
    `forgetmap probe choose --help` lists its options.
    """
