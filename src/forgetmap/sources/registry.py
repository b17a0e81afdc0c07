"""The registry of adapters: built-in ones, and those of installed packages by entry point.

Most are declarations (formats/engine.py), some are code (harnesses). A package adds one with an
entry point in the group `forgetmap.adapters` that names a `Format` or a class as described in
adapter.py. Built-in adapters come first, so that no package changes how a known log is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

from forgetmap._plugins import Registry
from forgetmap.sources.adapter import Adapter, Log
from forgetmap.sources.files import LogFile


class Code(NamedTuple):
    """An adapter that is code, described without importing it."""

    home: str
    title: str
    fields: str  # for messages
    needs: Sequence[str] = ()  # a file of this format has all fields of one of these,
    kinds: Sequence[str] = ()  # or is of such a kind
    hint: str = ""  # what to do if there are no results of single items


_AGAIN = "evaluate again with {}, and let it finish."
# fmt: off
# The order matters: the most specific formats come first. Adapters are code if a log is no table,
# or if they know more than a file says; of the others it is the place of the declaration.
_FORMATS: dict[str, Code | str] = {
    "inspect": Code("inspect:InspectAI", "Inspect",
        "version status eval plan results samples", ["eval", "samples"], ["zip"]),
    "evalchemy": "benchmarks:EVALCHEMY",
    "lm-eval": Code("lm_eval:LmEval", "lm-eval samples",
        "doc_id doc target arguments resps", ["doc_id"],
        hint=_AGAIN.format("--log_samples of lm-eval")),
    "lm-eval-0.3": Code("lm_eval:LmEvalLegacy", "lm-eval 0.3 write-out",
        "doc_id prompt_0 logit_0 truth", ["doc_id prompt_0"]),
    "lighteval": Code("lighteval:Lighteval", "lighteval details",
        "doc metric model_response", [], ["parquet"],
        hint=_AGAIN.format("--save-details of lighteval")),
    "helm": Code("helm:Helm", "HELM",
        "adapter_spec request_states", ["instance_id stats", "instance_id predicted_text"]),
    "evalscope": "suites:EVALSCOPE",
    "evalscope-0.x": "suites:EVALSCOPE_0X",
    "opencompass": "suites:OPENCOMPASS",
    "olmes": "suites:OLMES",
    "verifiers": "frameworks:VERIFIERS",
    "verifiers-v1": "frameworks:VERIFIERS_V1",
    "mmlu-pro": "benchmarks:MMLU_PRO",
    "nemo-evaluator": "benchmarks:NEMO_EVALUATOR",
    "captrack": Code("captrack:CapTrack", "CapTrack answers",
        "outputs gold id family formatted_prompt", ["outputs gold"], ["other"]),
    "every-eval-ever": "frameworks:EVERY_EVAL_EVER",
    "bfcl": Code("bfcl:Bfcl", "BFCL scores",
        "id test_category valid error model_result",
        ["result", "valid error", "accuracy correct_count total_count"],
        hint="keep its folders result/MODEL and score/MODEL side by side, and give either of "
        "them."),
    "evalplus": "benchmarks:EVALPLUS",
    "tau-bench": "benchmarks:TAU_BENCH",
    "tau2-bench": "benchmarks:TAU2_BENCH",
    "promptfoo": "frameworks:PROMPTFOO",
    "swe-bench": "benchmarks:SWE_BENCH",
    "mt-bench": "benchmarks:MT_BENCH",
    "alpaca-eval": "benchmarks:ALPACA_EVAL",
    "openai-evals": "frameworks:OPENAI_EVALS",
    "livebench": "benchmarks:LIVEBENCH",
    "verl": "frameworks:VERL",
    "trl": "frameworks:TRL",
    "openrlhf": "frameworks:OPENRLHF",
}
# fmt: on
_CODE = {name: one for name, one in _FORMATS.items() if isinstance(one, Code)}
_BUILT_IN = {
    name: "forgetmap.sources."
    + (f"formats.{one}" if isinstance(one, str) else f"harnesses.{one.home}")
    for name, one in _FORMATS.items()
}
MIN_FIELDS = 3


def _make_adapter(declared: object) -> Adapter:
    instance = cast("Callable[[], object]", declared)() if isinstance(declared, type) else declared
    if not all(hasattr(instance, part) for part in ("name", "preferred", "sniff", "read")):
        raise TypeError("it lacks name, preferred, sniff or read (see docs/logs.md)")
    return cast("Adapter", instance)


ADAPTERS = Registry("forgetmap.adapters", "adapter", _BUILT_IN, _make_adapter)
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
        code = _CODE.get(name)
        if code is None or any(
            file.kind in code.kinds or any(file.peek.has(*names.split()) for names in code.needs)
            for file in files
        ):
            yield ADAPTERS.get(name).sniff(files)


def known_fields(least: int = MIN_FIELDS) -> dict[str, frozenset[str]]:
    """Return the display names of formats, each with at least so many fields that identify it."""
    known = {code.title: frozenset(code.fields.split()) for code in _CODE.values()}
    for one in adapters():
        for names in getattr(one, "fields", ()):
            if len(names) >= least:
                known.setdefault(getattr(one, "title", one.name), frozenset(names))
    return known


def hint_of(name: str) -> str:
    """Return what to do if a log has no results of single items; empty if nothing is known."""
    return _CODE[name].hint if name in _CODE else getattr(adapter(name), "hint", "")
