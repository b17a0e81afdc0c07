"""The registry of adapters: built-in ones, and those of installed packages by entry point.

A package adds one with an entry point in the group `forgetmap.adapters` that names a class as
described in adapter.py. Built-in adapters come first, so that no package changes how a known log is
read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from forgetmap._plugins import Registry
from forgetmap.sources.adapter import Adapter

# The order matters: the most specific formats come first.
_BUILT_IN = {
    "inspect": "inspect.adapter:InspectAI",
    "evalchemy": "evalchemy:Evalchemy",
    "lm-eval": "lm_eval.adapter:LmEval",
    "lm-eval-0.3": "lm_eval.legacy:LmEvalLegacy",
    "lighteval": "lighteval.adapter:Lighteval",
    "helm": "helm:Helm",
    "evalscope": "evalscope.adapter:EvalScope",
    "opencompass": "opencompass:OpenCompass",
    "olmes": "olmes:Olmes",
    "verifiers": "verifiers:Verifiers",
    "mmlu-pro": "mmlu_pro:MmluPro",
    "nemo-evaluator": "nemo_evaluator:NemoEvaluator",
    "captrack": "captrack:CapTrack",
    "every-eval-ever": "every_eval_ever:EveryEvalEver",
    "bfcl": "bfcl:Bfcl",
    "evalplus": "evalplus:EvalPlus",
    "tau-bench": "tau_bench:TauBench",
    "tau2-bench": "tau_bench:Tau2Bench",
    "promptfoo": "promptfoo:Promptfoo",
    "swe-bench": "swe_bench:SweBench",
    "mt-bench": "mt_bench:MtBench",
    "alpaca-eval": "alpaca_eval:AlpacaEval",
    "openai-evals": "openai_evals:OpenAIEvals",
    "livebench": "livebench:LiveBench",
    "verl": "rollouts:Verl",
    "trl": "rollouts:Trl",
    "openrlhf": "rollouts:OpenRlhf",
}


def _make_adapter(adapter_class: object) -> Adapter:
    instance = cast("Callable[[], object]", adapter_class)()
    if not all(hasattr(instance, part) for part in ("name", "preferred", "sniff", "read")):
        raise TypeError("it lacks name, preferred, sniff or read (see docs/logs.md)")
    return cast("Adapter", instance)


ADAPTERS = Registry(
    "forgetmap.adapters",
    "adapter",
    {name: f"forgetmap.sources.harnesses.{home}" for name, home in _BUILT_IN.items()},
    _make_adapter,
)
"""Built-in adapters, then those of other packages, in the order in which they are tried."""


def adapters() -> Sequence[Adapter]:
    """Return all adapters, in the order in which they are tried on a file."""
    return ADAPTERS.all()


def adapter(name: str) -> Adapter:
    """Return the adapter with this `name`, which may differ from that of its entry point."""
    return next(adapter for adapter in adapters() if adapter.name == name)
