"""Readers of evaluation logs and tables: one module per format, recognised by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.sources.adapter import OWN_SCORER, Adapter, Log, Problems, Sample, Score
    from forgetmap.sources.files import LogFile
    from forgetmap.sources.formats.engine import Companion, Format, RowScore
    from forgetmap.sources.harnesses.captrack import captrack_samples
    from forgetmap.sources.logs import (
        Progress,
        Reading,
        choose,
        label,
        open_logs,
        recognise,
        recorded_settings,
    )
    from forgetmap.sources.maps import (
        ComparedWith,
        ScoreRange,
        TableMap,
        is_remote,
        map_file,
        map_text,
        parse_range,
        save_map,
    )
    from forgetmap.sources.open import open_run
    from forgetmap.sources.proposal import ColumnProfile, MapProposal, propose_map
    from forgetmap.sources.registry import ADAPTERS
    from forgetmap.sources.remote import typed_failures
    from forgetmap.sources.spark import engine_session

__all__ = [
    "ADAPTERS",
    "OWN_SCORER",
    "Adapter",
    "ColumnProfile",
    "Companion",
    "ComparedWith",
    "Format",
    "Log",
    "LogFile",
    "MapProposal",
    "Problems",
    "Progress",
    "Reading",
    "RowScore",
    "Sample",
    "Score",
    "ScoreRange",
    "TableMap",
    "captrack_samples",
    "choose",
    "engine_session",
    "is_remote",
    "label",
    "map_file",
    "map_text",
    "open_logs",
    "open_run",
    "parse_range",
    "propose_map",
    "recognise",
    "recorded_settings",
    "save_map",
    "typed_failures",
]

__getattr__ = load_on_use(__name__, __file__)
