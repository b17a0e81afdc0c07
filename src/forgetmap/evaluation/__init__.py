"""Evaluating models: suites of tasks, backends, and the run itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.evaluation.api import evaluate, model_unchanged, open_model
    from forgetmap.evaluation.backends.base import (
        BACKENDS,
        Backend,
        Decoding,
        Failure,
        Likelihoods,
        LoadOptions,
        Message,
        ModelSource,
        Prompt,
        Question,
        Response,
        ServerBacked,
        Service,
    )
    from forgetmap.evaluation.backends.ray_cluster import connect_ray
    from forgetmap.evaluation.backends.servers.backend import connect_server, served_models
    from forgetmap.evaluation.backends.servers.connection import (
        KEY,
        Traffic,
        checked_address,
        is_address,
        split_address,
    )
    from forgetmap.evaluation.backends.transformers.backend import (
        PASS_TOKENS,
        ROWS,
        TransformersBackend,
        cells_that_fit,
        end_tokens,
    )
    from forgetmap.evaluation.backends.transformers.decode import Decoder, DecodeRow, Size
    from forgetmap.evaluation.backends.transformers.load import LoadedModel, load_model
    from forgetmap.evaluation.backends.transformers.network import Network, spread
    from forgetmap.evaluation.backends.transformers.repeating import RepeatingBackend
    from forgetmap.evaluation.choices import Dtype, ProtocolName, Scoring, Stage
    from forgetmap.evaluation.items import Item, Suite, Task
    from forgetmap.evaluation.jobs import Job, fit_suite, make_jobs
    from forgetmap.evaluation.journal import Journal
    from forgetmap.evaluation.models import find_model, model_labels, run_names, weights_stamp
    from forgetmap.evaluation.own_settings import AskedModel, refuse_own_settings, split_model
    from forgetmap.evaluation.prompts import continuations_of
    from forgetmap.evaluation.run import (
        OnProgress,
        RunEstimate,
        Step,
        estimate_run,
        is_complete,
        run_model,
    )
    from forgetmap.evaluation.run_records import ModelIdentity
    from forgetmap.evaluation.settings import ResolvedSettings, Settings, find_style, resolve
    from forgetmap.evaluation.suites.catalogue import (
        PROBE_COLUMN,
        SUITES,
        load_suite,
        suite_part,
    )
    from forgetmap.evaluation.suites.hub import HubData, HubRow, load_rows
    from forgetmap.evaluation.suites.tables import table_rows
    from forgetmap.evaluation.suites.world import as_text
    from forgetmap.evaluation.suites.world_badges import (
        badge_suite,
        far_suite,
        hint,
        near_suite,
        new_examples,
        pool_examples,
        pretraining_text,
    )

__all__ = [
    "BACKENDS",
    "KEY",
    "PASS_TOKENS",
    "PROBE_COLUMN",
    "ROWS",
    "SUITES",
    "AskedModel",
    "Backend",
    "DecodeRow",
    "Decoder",
    "Decoding",
    "Dtype",
    "Failure",
    "HubData",
    "HubRow",
    "Item",
    "Job",
    "Journal",
    "Likelihoods",
    "LoadOptions",
    "LoadedModel",
    "Message",
    "ModelIdentity",
    "ModelSource",
    "Network",
    "OnProgress",
    "Prompt",
    "ProtocolName",
    "Question",
    "RepeatingBackend",
    "ResolvedSettings",
    "Response",
    "RunEstimate",
    "Scoring",
    "ServerBacked",
    "Service",
    "Settings",
    "Size",
    "Stage",
    "Step",
    "Suite",
    "Task",
    "Traffic",
    "TransformersBackend",
    "as_text",
    "badge_suite",
    "cells_that_fit",
    "checked_address",
    "connect_ray",
    "connect_server",
    "continuations_of",
    "end_tokens",
    "estimate_run",
    "evaluate",
    "far_suite",
    "find_model",
    "find_style",
    "fit_suite",
    "hint",
    "is_address",
    "is_complete",
    "load_model",
    "load_rows",
    "load_suite",
    "make_jobs",
    "model_labels",
    "model_unchanged",
    "near_suite",
    "new_examples",
    "open_model",
    "pool_examples",
    "pretraining_text",
    "refuse_own_settings",
    "resolve",
    "run_model",
    "run_names",
    "served_models",
    "split_address",
    "split_model",
    "spread",
    "suite_part",
    "table_rows",
    "weights_stamp",
]

__getattr__ = load_on_use(__name__, __file__)
