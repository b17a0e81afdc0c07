"""Evaluating models: suites of tasks, backends, and the run itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.evaluation.api import evaluate, open_model, weights_stamp
    from forgetmap.evaluation.backend import Backend, Decoding, Message, Served, Service
    from forgetmap.evaluation.decode import Decoder, DecodeRow, Size
    from forgetmap.evaluation.items import Item, Suite, Task
    from forgetmap.evaluation.journal import Journal
    from forgetmap.evaluation.models import Dtype, LoadedModel, Source, find_model, load_model, need
    from forgetmap.evaluation.names import run_names
    from forgetmap.evaluation.network import Network
    from forgetmap.evaluation.run import Estimate, Examinee, Step, estimate, is_complete, run_model
    from forgetmap.evaluation.servers.address import KEY, checked_address, is_address, split_address
    from forgetmap.evaluation.servers.backend import open_server
    from forgetmap.evaluation.servers.traffic import Traffic
    from forgetmap.evaluation.settings import ProtocolName, Scoring, Settings
    from forgetmap.evaluation.suites.catalogue import load_suite
    from forgetmap.evaluation.suites.hub import HubData, HubRow, load_rows
    from forgetmap.evaluation.suites.probes import MARK
    from forgetmap.evaluation.suites.tables import table_rows
    from forgetmap.evaluation.transformers_backend import (
        PASS_TOKENS,
        ROWS,
        TransformersBackend,
        cells_that_fit,
        end_tokens,
    )

__all__ = [
    "KEY",
    "MARK",
    "PASS_TOKENS",
    "ROWS",
    "Backend",
    "DecodeRow",
    "Decoder",
    "Decoding",
    "Dtype",
    "Estimate",
    "Examinee",
    "HubData",
    "HubRow",
    "Item",
    "Journal",
    "LoadedModel",
    "Message",
    "Network",
    "ProtocolName",
    "Scoring",
    "Served",
    "Service",
    "Settings",
    "Size",
    "Source",
    "Step",
    "Suite",
    "Task",
    "Traffic",
    "TransformersBackend",
    "cells_that_fit",
    "checked_address",
    "end_tokens",
    "estimate",
    "evaluate",
    "find_model",
    "is_address",
    "is_complete",
    "load_model",
    "load_rows",
    "load_suite",
    "need",
    "open_model",
    "open_server",
    "run_model",
    "run_names",
    "split_address",
    "table_rows",
    "weights_stamp",
]

__getattr__ = load_on_use(__name__, __file__)
