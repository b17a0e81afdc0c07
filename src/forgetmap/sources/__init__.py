"""Foreign results in: one file per format, recognised by content, never by file name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.sources.adapter import Adapter, Log, Problems, Sample, Score
    from forgetmap.sources.column_maps import save_map
    from forgetmap.sources.fields import Fields
    from forgetmap.sources.files import LogFile
    from forgetmap.sources.harnesses.captrack.adapter import SCORER, samples_of
    from forgetmap.sources.logs import Progress, Reading, choose, label, open_logs, recognise
    from forgetmap.sources.open import open_run
    from forgetmap.sources.remote import is_remote
    from forgetmap.sources.selection import chosen

__all__ = [
    "SCORER",
    "Adapter",
    "Fields",
    "Log",
    "LogFile",
    "Problems",
    "Progress",
    "Reading",
    "Sample",
    "Score",
    "choose",
    "chosen",
    "is_remote",
    "label",
    "open_logs",
    "open_run",
    "recognise",
    "samples_of",
    "save_map",
]

__getattr__ = load_on_use(__name__, __file__)
