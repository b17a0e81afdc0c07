"""Which adapters there are: ours, and those that installed packages add by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from forgetmap._plugins import loading
from forgetmap.errors import UsageError
from forgetmap.sources.adapter import Adapter

GROUP = "forgetmap.adapters"

# In this order: what is most specific comes first.
BUILT_IN = (
    "inspect_ai:InspectAI",
    "evalchemy:Evalchemy",
    "lm_eval:LmEval",
    "lm_eval_legacy:LmEvalLegacy",
    "lighteval:Lighteval",
    "helm:Helm",
    "evalscope:EvalScope",
    "opencompass:OpenCompass",
    "olmes:Olmes",
    "verifiers:Verifiers",
    "mmlu_pro:MmluPro",
    "nemo_evaluator:NemoEvaluator",
    "captrack:CapTrack",
    "every_eval_ever:EveryEvalEver",
)


@cache
def adapters() -> Sequence[Adapter]:
    """Adapters of other packages first: whoever installs one wants it."""
    return [*map(_loaded, sorted(entry_points(group=GROUP), key=lambda e: e.name)), *_built_in()]


def adapter(name: str) -> Adapter:
    """The adapter of this name."""
    return next(each for each in adapters() if each.name == name)


def _built_in() -> list[Adapter]:
    found = []
    for place in BUILT_IN:
        module, _, name = place.partition(":")
        found.append(getattr(import_module(f"forgetmap.sources.harnesses.{module}"), name)())
    return found


def _loaded(point: EntryPoint) -> Adapter:
    with loading(point, "adapter"):
        made = point.load()()
    if not all(hasattr(made, part) for part in ("name", "preferred", "sniff", "read")):
        raise UsageError(
            f"the adapter {point.name!r} ({point.value}) lacks name, preferred, sniff or read",
            hint="see forgetmap/sources/adapter.py for what an adapter has.",
        )
    return made  # type: ignore[no-any-return]
