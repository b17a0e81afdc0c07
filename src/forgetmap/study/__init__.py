"""Many pairs of models, declared in one file, and what can be said about all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.study.declaration import Study, StudyMerge, StudyModel, StudyPair
    from forgetmap.study.read import parse_study, read_study
    from forgetmap.study.summary import StudySummary, summarize_study, tell_summary
    from forgetmap.study.templates import TEMPLATES, study_template

__all__ = [
    "TEMPLATES",
    "Study",
    "StudyMerge",
    "StudyModel",
    "StudyPair",
    "StudySummary",
    "parse_study",
    "read_study",
    "study_template",
    "summarize_study",
    "tell_summary",
]

__getattr__ = load_on_use(__name__, __file__)
