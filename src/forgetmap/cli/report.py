"""`forgetmap report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import overwrite_option, refuse_existing
from forgetmap.cli.options.compare import comparison_options, refuse_verdict_options
from forgetmap.cli.options.logs import reading_progress
from forgetmap.cli.options.report import (
    FIGURE_FORMATS,
    REPORT_FORMATS,
    pop_payload_options,
    report_options,
    write_payload,
)
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.report import Payload

DEFAULT_OUT = {"html": "report.html", **dict.fromkeys(FIGURE_FORMATS, "figures")}
EXAMPLES = """\b
Examples:
  forgetmap report runs/base runs/tuned --out report.html
  forgetmap report runs/base runs/sft runs/rl --chain --out report.html
  forgetmap report result --out report.html
  forgetmap report runs/base runs/tuned --format markdown > forgotten.md
  forgetmap report runs/base runs/tuned --format pdf --out figures
  forgetmap report runs/base runs/sft runs/rl --bridge models.csv --out report.html
  forgetmap report runs/base runs/tuned --redact "[\\w.]+@[\\w.]+" --out for-partners.html
"""


@click.command("report", epilog=EXAMPLES)
@click.argument("sources", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write, or folder for figures [default: report.html or figures; Markdown is "
    "printed].",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(REPORT_FORMATS),
    default="html",
    show_default=True,
    help="Format of the report: an interactive HTML page, Markdown, or a folder of figures.",
)
@click.option(
    "--bridge",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help=(
        "Also draw forgetting against divergence, from a table as for `overlap bridge` [default: "
        "none]."
    ),
)
@report_options
@comparison_options
@overwrite_option
def command(sources: tuple[str, ...], **options: Any) -> None:
    """Write a comparison as one file to read, explore and share.

    SOURCES are BEFORE AFTER [AFTER ...] as for `compare`, or one folder written by `compare --out`,
    which contains no questions and no responses. The page works offline, and no data is sent
    anywhere.
    """
    from forgetmap.overlap import fit_bridge, read_models
    from forgetmap.report import as_markdown, parse_patterns
    from forgetmap.text import printable

    form, table = options.pop("form"), options.pop("bridge")
    default = DEFAULT_OUT.get(form)
    out = options.pop("out") or (None if default is None else Path(default))
    overwrite = options.pop("overwrite")
    if out is not None:
        refuse_existing(out, sources, overwrite=overwrite)
    parse_patterns(options["redact"])
    bridge = None if table is None else fit_bridge(read_models(table))
    payload = _payload(sources, options).model_copy(update={"bridge": bridge})
    if out is None:
        click.echo(as_markdown(payload), nl=False)
        return
    write_payload(payload, out, form)
    click.echo(printable(f"Report: {out}"))


def _payload(sources: tuple[str, ...], options: dict[str, Any]) -> Payload:
    from rich.console import Console

    from forgetmap.comparison import compare
    from forgetmap.report import (
        MISSING_IN_FOLDER,
        is_comparison_folder,
        make_payload,
        payload_from_folder,
    )

    payload_options = pop_payload_options(options)
    if len(sources) == 1:
        folder = Path(sources[0])
        if not is_comparison_folder(folder):
            raise UsageError(
                f"{folder} is one source, and not a saved comparison",
                hint="give BEFORE and AFTER, or a folder written by `forgetmap compare --out`.",
            )
        refuse_verdict_options(folder)
        click.echo(f"Note: {MISSING_IN_FOLDER}", err=True)
        return payload_from_folder(folder, **payload_options)
    with Console(stderr=True).status("Pairing items ...") as status:
        options["progress"] = reading_progress(status)
        result = compare(*sources, **options)
        status.update("Collecting flipped items ...")
        return make_payload(result, **payload_options)
