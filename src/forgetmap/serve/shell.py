"""The page of a report, fed by the server instead of by what is in the file."""

from __future__ import annotations

from forgetmap._workers import call_apart
from forgetmap.report import served_html, vega_bundle


def page_html() -> tuple[str, str]:
    """The page, and the Content-Security-Policy that lets it run these scripts and no others."""
    # Vega keeps 150 MB for as long as its process lives.
    return served_html(call_apart(vega_bundle))
