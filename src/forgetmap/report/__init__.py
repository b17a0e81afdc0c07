"""Reports: one payload, and all figures, pages and texts made from it.

The only package that draws and, except for the fragments of `text`, the only one that writes HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.report.choices import MAX_ITEMS, STUDY_ITEMS, Format
    from forgetmap.report.display import Plot, plot, to_frame, to_latex
    from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
    from forgetmap.report.figures.overlap import bridge_figures
    from forgetmap.report.figures.plugins import FIGURES, FigurePlugin
    from forgetmap.report.figures.registry import all_figures, figures_json
    from forgetmap.report.figures.sweep.weights import weight_drift_figure
    from forgetmap.report.figures.theory import phase_figure, run_figures, two_by_two_figure
    from forgetmap.report.folders import write_bridge, write_space, write_sweep
    from forgetmap.report.html.report import served_html, write_report
    from forgetmap.report.html.shell import kept_bundle, vega_bundle
    from forgetmap.report.html.story import WatchedTraining, write_story
    from forgetmap.report.html.study.site import write_study
    from forgetmap.report.html.theory import write_theory_page
    from forgetmap.report.markdown import as_markdown
    from forgetmap.report.payloads.comparison import (
        MISSING_IN_FOLDER,
        assemble,
        is_comparison_folder,
        make_payload,
        payload_from_folder,
    )
    from forgetmap.report.payloads.drift import make_drift_payload
    from forgetmap.report.payloads.items import count_flips
    from forgetmap.report.payloads.schema import Items, Payload
    from forgetmap.report.payloads.texts import parse_patterns
    from forgetmap.report.static import write_figure, write_figures
    from forgetmap.report.tables import write_study_tables
    from forgetmap.report.terminal.drift import DriftTable, tell_drift
    from forgetmap.report.terminal.lab import tell_lab, tell_merge_drift, tell_repair
    from forgetmap.report.terminal.overlap import tell_bridge, tell_events, tell_overlap
    from forgetmap.report.terminal.sweep import tell_sweep, tell_weights
    from forgetmap.report.terminal.theory import (
        tell_advice,
        tell_conditions,
        tell_outcomes,
        tell_run,
    )
    from forgetmap.report.terminal.watch import tell_watch

__all__ = [
    "FIGURES",
    "MAX_ITEMS",
    "MISSING_IN_FOLDER",
    "STUDY_ITEMS",
    "DriftTable",
    "Figure",
    "FigurePlugin",
    "Format",
    "Items",
    "Payload",
    "Plot",
    "Record",
    "Spec",
    "WatchedTraining",
    "all_figures",
    "as_markdown",
    "as_table",
    "assemble",
    "bridge_figures",
    "count_flips",
    "figures_json",
    "is_comparison_folder",
    "kept_bundle",
    "make_drift_payload",
    "make_payload",
    "parse_patterns",
    "payload_from_folder",
    "phase_figure",
    "plot",
    "run_figures",
    "served_html",
    "tell_advice",
    "tell_bridge",
    "tell_conditions",
    "tell_drift",
    "tell_events",
    "tell_lab",
    "tell_merge_drift",
    "tell_outcomes",
    "tell_overlap",
    "tell_repair",
    "tell_run",
    "tell_sweep",
    "tell_watch",
    "tell_weights",
    "to_frame",
    "to_latex",
    "two_by_two_figure",
    "vega_bundle",
    "weight_drift_figure",
    "write_bridge",
    "write_figure",
    "write_figures",
    "write_report",
    "write_space",
    "write_story",
    "write_study",
    "write_study_tables",
    "write_sweep",
    "write_theory_page",
]

__getattr__ = load_on_use(__name__, __file__)
