"""`forgetmap report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from forgetmap.cli.comparing import comparison_options
from forgetmap.cli.options import overwrite_option
from forgetmap.cli.reading import reading_progress
from forgetmap.cli.showing import PICTURES, WRITERS, refuse_to_replace, showing_options, shown
from forgetmap.comparison import compare
from forgetmap.errors import UsageError
from forgetmap.overlap import fit_bridge, read_models
from forgetmap.report import (
    LACKS,
    Payload,
    as_markdown,
    is_comparison_folder,
    make_payload,
    patterns_of,
    payload_from_folder,
)
from forgetmap.text import printable

PLACES = {"html": "report.html", **dict.fromkeys(PICTURES, "figures")}
EXAMPLES = r"""\b
Examples:
  forgetmap report runs/base runs/tuned --out report.html
  forgetmap report runs/base runs/sft runs/rl --chain --out report.html
  forgetmap report result --out report.html
  forgetmap report runs/base runs/tuned --format markdown > forgotten.md
  forgetmap report runs/base runs/tuned --format pdf --out figures
  forgetmap report runs/base runs/sft runs/rl --bridge models.csv --out report.html
  forgetmap report runs/base runs/tuned --redact "[\w.]+@[\w.]+" --out for-partners.html
"""


@click.command(epilog=EXAMPLES)
@click.argument("sources", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File, or folder for figures. By default report.html or figures; Markdown is printed.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown", *PICTURES]),
    default="html",
    show_default=True,
    help="One page to read and explore, Markdown, or a folder of figures.",
)
@click.option(
    "--bridge",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Also draw forgetting against divergence from such a table as `overlap bridge` takes.",
)
@showing_options
@comparison_options
@overwrite_option
def report(sources: tuple[str, ...], **options: Any) -> None:
    """Write what was forgotten as one file to read, explore and mail around.

    SOURCES are BEFORE AFTER [AFTER ...] as for `compare`, or one folder that `compare --out` wrote;
    such a folder holds no questions and no responses. The page needs no network, and nothing is
    sent anywhere.
    """
    form, out, bridge = options.pop("form"), options.pop("out"), options.pop("bridge")
    overwrite = options.pop("overwrite")
    place = out or (Path(PLACES[form]) if form in PLACES else None)
    if place is not None:
        refuse_to_replace(place, sources, overwrite=overwrite)
    patterns_of(options["redact"])
    fitted = None if bridge is None else fit_bridge(read_models(bridge))
    payload = _payload(sources, options).model_copy(update={"bridge": fitted})
    if place is None:
        click.echo(as_markdown(payload), nl=False)
        return
    WRITERS[form](payload, place)
    click.echo(printable(f"Report: {place}"))


def _payload(sources: tuple[str, ...], options: dict[str, Any]) -> Payload:
    what = shown(options)
    if len(sources) == 1:
        folder = Path(sources[0])
        if not is_comparison_folder(folder):
            raise UsageError(
                f"{folder} is one source, and not a comparison that was written",
                hint="name BEFORE and AFTER, or a folder that `forgetmap compare --out` wrote.",
            )
        click.echo(f"Note: {LACKS}", err=True)
        return payload_from_folder(folder, **what)
    with Console(stderr=True).status("Pairing and counting ...") as status:
        options["progress"] = reading_progress(status)
        result = compare(*sources, **options)
        status.update("Collecting flipped items ...")
        return make_payload(result, **what)
