"""The web server of `forgetmap serve`: comparisons of any two runs, item by item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.serve.app import ComparisonSetup, Explorer, make_app
    from forgetmap.serve.connections import ConnectionLimits, make_server
    from forgetmap.serve.runs import find_runs
    from forgetmap.serve.security import allowed_hosts, is_loopback
    from forgetmap.serve.store import Store

__all__ = [
    "ComparisonSetup",
    "ConnectionLimits",
    "Explorer",
    "Store",
    "allowed_hosts",
    "find_runs",
    "is_loopback",
    "make_app",
    "make_server",
]

__getattr__ = load_on_use(__name__, __file__)
