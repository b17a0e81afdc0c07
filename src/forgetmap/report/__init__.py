"""What people look at: one payload, and every picture, page and text made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.report.build import MOST_ITEMS, assemble, make_payload
    from forgetmap.report.drifted import make_drift_payload
    from forgetmap.report.figures.drift_look import NAME_AXIS
    from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
    from forgetmap.report.html import (
        drawable,
        figures_json,
        fill_page,
        module_names,
        page_file,
        policy,
        script_of,
        vega_bundle,
        write_report,
        write_whole,
    )
    from forgetmap.report.items import count_flips
    from forgetmap.report.markdown import as_markdown
    from forgetmap.report.packing import packed
    from forgetmap.report.payload import Items, Payload
    from forgetmap.report.static import Format, picture, write_figures
    from forgetmap.report.texts import patterns_of
    from forgetmap.report.written import LACKS, is_comparison_folder, payload_from_folder

__all__ = [
    "LACKS",
    "MOST_ITEMS",
    "NAME_AXIS",
    "Figure",
    "Format",
    "Items",
    "Payload",
    "Record",
    "Spec",
    "as_markdown",
    "as_table",
    "assemble",
    "count_flips",
    "drawable",
    "figures_json",
    "fill_page",
    "is_comparison_folder",
    "make_drift_payload",
    "make_payload",
    "module_names",
    "packed",
    "page_file",
    "patterns_of",
    "payload_from_folder",
    "picture",
    "policy",
    "script_of",
    "vega_bundle",
    "write_figures",
    "write_report",
    "write_whole",
]

__getattr__ = load_on_use(__name__, __file__)
