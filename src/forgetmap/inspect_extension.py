"""Extension for Inspect: after each run, compare its log with an earlier one and print a verdict.

    FORGETMAP_BASELINE=logs/base inspect eval tasks.py --model openai/tuned --log-dir logs/tuned

Inspect loads this module through its entry point `inspect_ai`, so it must be cheap until it is
used:
forgetmap is only imported then.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

from inspect_ai.hooks import Hooks, RunEnd, hooks

BASELINE = "FORGETMAP_BASELINE"


class ForgettingHooks(Hooks):  # type: ignore[misc]  # Inspect is untyped
    """Print the verdict at the end of a run of Inspect."""

    async def on_run_end(self, data: RunEnd) -> None:
        """Compare the logs of the run with those of the baseline."""
        logs = [log.location for log in data.logs if log.status == "success" and log.location]
        if logs:
            sys.stderr.write(f"\n{verdict_of(os.environ[BASELINE], logs)}\n")


# Inspect announces all registered hooks, so none is registered without a baseline.
if os.environ.get(BASELINE):
    hooks(name="forgetmap", description="What the model forgot")(ForgettingHooks)


def verdict_of(baseline: str, logs: list[str]) -> str:
    """Return the verdict and commands for details, or the reason why there is none."""
    from forgetmap.comparison import compare, counts_sentence, step_texts
    from forgetmap.errors import ForgetmapError

    after = common_path(logs)
    both = f"{shlex.quote(baseline)} {shlex.quote(after)}"
    try:
        result = compare(baseline, after).result
    except ForgetmapError as error:
        return f"forgetmap: {error}"
    step, *_ = step_texts(result, {"confirm": f"forgetmap confirm {both}"})
    return (
        f"forgetmap: {result.headline}\n"
        f"  {counts_sentence(result.total)}\n"
        f"  next:    {step}\n"
        f"  items:   forgetmap compare {both} --show forgotten\n"
        f"  report:  forgetmap report {both} --out report.html\n"
        f"  samples: inspect view --log-dir {shlex.quote(str(Path(after).parent))}"
    )


def common_path(locations: list[str]) -> str:
    """Return the log of the run, or its folder if there are several logs."""
    paths = [_local_path(location) for location in locations]
    return paths[0] if len(paths) == 1 else os.path.dirname(paths[0])  # noqa: PTH120  # or an address


def _local_path(location: str) -> str:
    address = urlparse(location)
    return unquote(address.path) if address.scheme == "file" else location
