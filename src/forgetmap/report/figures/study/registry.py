"""The figures of a study, most informative first."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.study.changes import pair_changes
from forgetmap.report.figures.study.heat_map import study_heat_map
from forgetmap.report.figures.study.lost_items import lost_items_figure
from forgetmap.report.figures.study.merges import merge_figure
from forgetmap.report.figures.study.trends import data_figure, size_figure
from forgetmap.study import StudyDetail


def study_figures(detail: StudyDetail, lost_counts: Sequence[int] = ()) -> list[Figure]:
    """Return the figures of the study; `lost_counts` are items forgotten by 0, 1, ... pairs."""
    figures = [
        study_heat_map(detail, "forgetting"),
        study_heat_map(detail, "backward_transfer"),
        pair_changes(detail),
        size_figure(detail),
        data_figure(detail),
        merge_figure(detail),
        lost_items_figure(lost_counts),
    ]
    return [figure for figure in figures if figure is not None]
