"""Reports as HTML files."""

from __future__ import annotations

from html import escape
from pathlib import Path

from forgetmap.errors import UsageError
from forgetmap.report.figures.registry import figures_json
from forgetmap.report.html.lab import lab_page
from forgetmap.report.html.shell import (
    STYLE,
    Page,
    fill_shell,
    page_file,
    page_script,
    policy,
    vega_bundle,
    write_page,
)
from forgetmap.report.html.sweep import sweep_page
from forgetmap.report.payloads import AnyPayload, LabPayload, Reportable, payload_for
from forgetmap.report.payloads.packing import as_json, packed
from forgetmap.report.payloads.schema import Payload
from forgetmap.sweep import SweepResult

LOADING = """<p id="loading" role="status">Opening the report …</p>
<noscript><p>This report needs JavaScript. It works offline and sends no data.</p></noscript>"""


def write_report(result: Reportable, path: str | Path) -> Path:
    """Write a report as one HTML file; it appears only when it is complete.

    Args:
        result: a result of `compare`, `drift`, `merge_sweep` or the lab, the history of `watch`,
            or a payload of `make_payload`.
        path: the file to write; an existing file is replaced.

    Returns:
        The file.

    Raises:
        OutputError: the file cannot be written.
    """
    return write_page(report_html(payload_for(result)), Path(path))


def report_html(payload: AnyPayload) -> str:
    """Return a report as the text of one HTML file."""
    if isinstance(payload, Payload):
        return fill_shell(_report_page(payload), vega_bundle())
    if isinstance(payload, SweepResult):
        return fill_shell(sweep_page(payload), vega_bundle())
    if isinstance(payload, LabPayload):
        return fill_shell(lab_page(payload), vega_bundle())
    raise UsageError(
        "forgetting against divergence has no separate page",
        hint="write its figures with `write_figures`, or pass it to a payload as `bridge`.",
    )


def served_html(vega: str) -> tuple[str, str]:
    """Return the page that a server fills, and the Content-Security-Policy to send with it.

    Args:
        vega: script that draws figures; empty if there is none.
    """
    page = Page("served", title="forgetmap", main=LOADING)
    scripts = [page_script(page.kind), vega]
    allowed = policy(scripts, page_file(STYLE)).replace("connect-src 'none'", "connect-src 'self'")
    return fill_shell(page, vega, csp=escape(allowed)), f"{allowed}; frame-ancestors 'none'"


def _report_page(payload: Payload) -> Page:
    return Page(
        "report",
        title=escape(payload.title),
        main=LOADING,
        payload=packed(as_json(payload)),
        figures=packed(figures_json(payload)),
    )
