"""Speed of models: from the data sheet of a GPU, or measured.

Generation is bound by memory: every step reads all weights once and generates one token for each
concurrent answer, so tokens per second are bandwidth / bytes of weights x concurrent answers x
efficiency. Reading prompts is bound by arithmetic: two operations per parameter and token, at a
share of the peak. docs/studies.md has the numbers and their sources.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from forgetmap.errors import UsageError
from forgetmap.study.declaration import UNKNOWN, parse_size

ANSWERS_AT_ONCE = 64
"""Assumed number of concurrent answers."""
BANDWIDTH_SHARE = 0.4
"""Assumed share of the memory bandwidth; attention, sampling and ends of batches take the rest."""
PEAK_SHARE = 0.5
"""Assumed share of the peak of arithmetic while reading prompts."""
WEIGHTS_SHARE = 0.8
"""Maximum share of GPU memory for weights; the rest is for concurrent answers."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """Data sheet of one GPU.

    Attributes:
        bandwidth: memory bandwidth in bytes per second.
        peak: dense operations per second in bfloat16, or in float16 if there is no bfloat16.
        memory: memory in bytes.
    """

    bandwidth: float
    peak: float
    memory: float


GPUS = {
    "t4": Gpu(0.32e12, 65e12, 16e9),
    "l4": Gpu(0.30e12, 121e12, 24e9),
    "l40s": Gpu(0.864e12, 362e12, 48e9),
    "rtx4090": Gpu(1.008e12, 165e12, 24e9),
    "a100-40": Gpu(1.555e12, 312e12, 40e9),
    "a100": Gpu(2.039e12, 312e12, 80e9),
    "h100": Gpu(3.35e12, 989e12, 80e9),
    "h200": Gpu(4.8e12, 989e12, 141e9),
    "b200": Gpu(8.0e12, 2250e12, 192e9),
    "mi300x": Gpu(5.3e12, 1307e12, 192e9),
}
"""SXM or OAM versions if there are several; a100 is the one with 80 GB."""
DEFAULT_GPU = "a100"
_SPEED = re.compile(r"((?P<size>[^=]+)=)?(?P<number>\d+(\.\d+)?)")


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """Cost of one run of the study.

    Attributes:
        billions: parameters of its model.
        read: tokens of the prompts.
        written: tokens of the answers.
        seconds: duration of the run.
    """

    billions: float
    read: int
    written: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of one GPU.

    Attributes:
        gpu: name in `GPUS`.
        tokens_per_second: tokens read and written per second, if given by the user; None uses the
            formula.
        of_billions: model size for which this speed holds; None for any.
        slower: ratio of measured seconds to those of the formula, over the runs of the study.
        measured: number of runs behind that ratio.
    """

    gpu: str = DEFAULT_GPU
    tokens_per_second: float | None = None
    of_billions: float | None = None
    slower: float = 1.0
    measured: int = 0

    def seconds(self, billions: float, read: float, written: float) -> float:
        """Return the seconds of a model of this size."""
        if self.tokens_per_second is not None:
            relative = 1.0 if self.of_billions is None else billions / self.of_billions
            return (read + written) * relative / self.tokens_per_second
        gpu, parameters = GPUS[self.gpu], billions * 1e9
        reading = read * 2 * parameters / (gpu.peak * PEAK_SHARE)
        steps = written / (ANSWERS_AT_ONCE * BANDWIDTH_SHARE)
        by_memory = steps * 2 * parameters / gpu.bandwidth
        by_peak = written * 2 * parameters / (gpu.peak * PEAK_SHARE)
        return self.slower * (reading + max(by_memory, by_peak))

    def gpus(self, weight_bytes: float) -> int:
        """Return the number of GPUs that hold the weights."""
        return math.ceil(weight_bytes / (WEIGHTS_SHARE * GPUS[self.gpu].memory))

    @property
    def sentence(self) -> str:
        """The basis of the speed as a sentence."""
        if self.tokens_per_second is not None:
            size = "" if self.of_billions is None else f" for a model of {self.of_billions:g}B"
            return f"Speed: {self.tokens_per_second:,.0f} tokens per second{size}, as given."
        basis = f"Speed: from the data sheet of {self.gpu}"
        if not self.measured:
            return f"{basis}, not measured; give --gpu or --tokens-per-second."
        runs = "run" if self.measured == 1 else "runs"
        return (
            f"{basis}, times {self.slower:.2g}, from the duration of {self.measured} {runs} of "
            "this study."
        )


def choose_speed(
    gpu: str | None = None,
    tokens_per_second: str | None = None,
    runs: Sequence[MeasuredRun] = (),
) -> Speed:
    """Return the speed for cost estimates: given by the user, else measured, else assumed.

    Args:
        gpu: name in `GPUS`.
        tokens_per_second: `2500`, or `7B=2500` for models of that size.
        runs: runs of the study, if there are any.

    Raises:
        UsageError: there is no such GPU, or the speed is invalid.
    """
    name = (gpu or DEFAULT_GPU).lower()
    if name not in GPUS:
        raise UsageError(f"there is no GPU {gpu!r}", hint=f"choose from {', '.join(GPUS)}.")
    if tokens_per_second is not None:
        number, size = _read_speed(tokens_per_second)
        return Speed(name, number, size)
    speed = Speed(name)
    ratios = [
        run.seconds / speed.seconds(run.billions, run.read, run.written)
        for run in runs
        if run.seconds > 0 and run.read + run.written > 0
    ]
    if not ratios:
        return speed
    slower = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return Speed(name, slower=slower, measured=len(ratios))


def _read_speed(text: str) -> tuple[float, float | None]:
    match = _SPEED.fullmatch(text.strip())
    try:
        size = parse_size(match["size"]) if match and match["size"] else None
    except ValueError:
        match, size = None, None
    if match is None or float(match["number"]) == 0 or size == UNKNOWN:
        raise UsageError(
            f"{text!r} is not a speed", hint="use a number such as 2500, or 7B=2500 for that size."
        )
    return float(match["number"]), size if isinstance(size, float) else None
