"""The registry of adapters: built-in ones, and those of installed packages by entry point.

Most are declarations (formats/engine.py), some are code (harnesses). A package adds one with an
entry point in the group `forgetmap.adapters` that names a `Format` or a class as described in
adapter.py. Built-in adapters come first, so that no package changes how a known log is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, cast

from forgetmap._plugins import Registry
from forgetmap.sources.adapter import Adapter, Log
from forgetmap.sources.files import LogFile


class Code(NamedTuple):
    """An adapter that is code, described without importing it.

    Attributes:
        home: `module:class` in the folder of these adapters.
        title: display name of the format.
        fields: its typical fields, for messages.
        needs: alternatives: a file of this format has all fields of one of these.
        kinds: kinds of files that are of this format whatever their fields are.
        hint: what to do if there are no results of single items.
    """

    home: str
    title: str
    fields: str
    needs: Sequence[str] = ("",)
    kinds: Sequence[str] = ()
    hint: str = ""


_AGAIN = "evaluate again with {}, and let it finish."
# fmt: off
_CODE = {
    "inspect": Code("inspect:InspectAI", "Inspect",
        "version status eval plan results samples", ["eval", "samples"], ["zip"]),
    "lm-eval": Code("lm_eval.adapter:LmEval", "lm-eval samples",
        "doc_id doc target arguments resps", ["doc_id"],
        hint=_AGAIN.format("--log_samples of lm-eval")),
    "lm-eval-0.3": Code("lm_eval.legacy:LmEvalLegacy", "lm-eval 0.3 write-out",
        "doc_id prompt_0 logit_0 truth", ["doc_id prompt_0"]),
    "lighteval": Code("lighteval:Lighteval", "lighteval details",
        "doc metric model_response", [], ["parquet"],
        hint=_AGAIN.format("--save-details of lighteval")),
    "helm": Code("helm:Helm", "HELM",
        "adapter_spec request_states", ["instance_id stats", "instance_id predicted_text"]),
    "captrack": Code("captrack:CapTrack", "CapTrack answers",
        "outputs gold id family formatted_prompt", ["outputs gold"], ["other"]),
    "bfcl": Code("bfcl:Bfcl", "BFCL scores",
        "id test_category valid error model_result",
        ["result", "valid error", "accuracy correct_count total_count"],
        hint="keep its folders result/MODEL and score/MODEL side by side, and give either of "
        "them."),
}
# fmt: on
"""Adapters as code: a log is no table there, or they know more than a file says."""
# The order matters: the most specific formats come first.
_ORDER = {
    "inspect": "",
    "evalchemy": "benchmarks:EVALCHEMY",
    "lm-eval": "",
    "lm-eval-0.3": "",
    "lighteval": "",
    "helm": "",
    "evalscope": "suites:EVALSCOPE",
    "evalscope-0.x": "suites:EVALSCOPE_0X",
    "opencompass": "suites:OPENCOMPASS",
    "olmes": "olmes:OLMES",
    "verifiers": "frameworks:VERIFIERS",
    "verifiers-v1": "frameworks:VERIFIERS_V1",
    "mmlu-pro": "benchmarks:MMLU_PRO",
    "nemo-evaluator": "benchmarks:NEMO_EVALUATOR",
    "captrack": "",
    "every-eval-ever": "frameworks:EVERY_EVAL_EVER",
    "bfcl": "",
    "evalplus": "benchmarks:EVALPLUS",
    "tau-bench": "agents:TAU_BENCH",
    "tau2-bench": "agents:TAU2_BENCH",
    "promptfoo": "frameworks:PROMPTFOO",
    "swe-bench": "agents:SWE_BENCH",
    "mt-bench": "benchmarks:MT_BENCH",
    "alpaca-eval": "benchmarks:ALPACA_EVAL",
    "openai-evals": "frameworks:OPENAI_EVALS",
    "livebench": "benchmarks:LIVEBENCH",
    "verl": "frameworks:VERL",
    "trl": "frameworks:TRL",
    "openrlhf": "frameworks:OPENRLHF",
}
"""Name -> place of the declaration; empty for adapters that are code."""
_BUILT_IN = {
    name: f"forgetmap.sources.{'formats' if place else 'harnesses'}.{place or _CODE[name].home}"
    for name, place in _ORDER.items()
}
MIN_FIELDS = 3


def _make_adapter(declared: object) -> Adapter:
    """Return an adapter: a `Format`, or an instance of a class."""
    instance = cast("Callable[[], object]", declared)() if isinstance(declared, type) else declared
    if not all(hasattr(instance, part) for part in ("name", "preferred", "sniff", "read")):
        raise TypeError("it lacks name, preferred, sniff or read (see docs/logs.md)")
    return cast("Adapter", instance)


ADAPTERS = Registry(
    "forgetmap.adapters",
    "adapter",
    _BUILT_IN,
    _make_adapter,
)
"""Built-in adapters, then those of other packages, in the order in which they are tried."""


def adapters() -> Sequence[Adapter]:
    """Return all adapters, in the order in which they are tried on a file."""
    return ADAPTERS.all()


def adapter(name: str) -> Adapter:
    """Return the adapter with this `name`, which may differ from that of its entry point."""
    if name in _BUILT_IN:
        return ADAPTERS.get(name)
    return next(adapter for adapter in adapters() if adapter.name == name)


def sniff_all(files: Sequence[LogFile]) -> Iterator[Sequence[Log]]:
    """Yield the logs that each adapter recognises among files; files may be removed meanwhile.

    Code is imported only if a file may be of its format.
    """
    for name in ADAPTERS.names():
        if name not in _CODE or any(map(partial(_may_be, _CODE[name]), files)):
            yield ADAPTERS.get(name).sniff(files)


def _may_be(code: Code, file: LogFile) -> bool:
    return file.kind in code.kinds or any(file.peek.has(*names.split()) for names in code.needs)


def known_fields(least: int = MIN_FIELDS) -> dict[str, frozenset[str]]:
    """Return the display names of formats, each with the field names that identify it.

    Args:
        least: least number of fields; few are in many files and say little in a message.
    """
    known = {code.title: frozenset(code.fields.split()) for code in _CODE.values()}
    for one in adapters():
        for names in getattr(one, "fields", ()):
            if len(names) >= least:
                known.setdefault(getattr(one, "title", one.name), frozenset(names))
    return known


def hint_of(name: str) -> str:
    """Return what to do if a log has no results of single items; empty if nothing is known."""
    return _CODE[name].hint if name in _CODE else getattr(adapter(name), "hint", "")
