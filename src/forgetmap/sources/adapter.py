"""Protocol of adapters, which recognise the logs of one harness and read their samples.

A package adds one by an entry point in the group `forgetmap.adapters` that names such a class. If a
log is rows in a file, a declaration is enough: a `Format` (formats/engine.py) is an adapter, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from forgetmap.errors import FieldError
from forgetmap.records import Contradiction, Outcome, Problem, RunInfo
from forgetmap.sources.files import LogFile

MAX_PROBLEMS = 1_000
"""Maximum number of problems kept; more are only counted."""
OWN_SCORER = "forgetmap"
"""Scorer of answers that forgetmap graded itself."""
Verdicts = Literal["log", "own"]
"""Scores to use: only those of the log, or only our own grading."""


class Score(msgspec.Struct, gc=False):
    """One value of one metric by one scorer; None if there is no value."""

    metric: str
    value: float | None
    scorer: str = "default"
    outcome: Outcome | None = None


class Sample(msgspec.Struct, gc=False):
    """One answer of a model to one item, as a harness logged it.

    Fields are those of the canonical table (records/schema.py), None if they are not logged. Texts
    are as logged; hashes, letters and numbers of options are added when the sample is written. A
    `repeat` of None means that answers to the same item are numbered in order of appearance, and
    `prompt_key` is the harness's hash of the prompt, used if the prompt is not read.
    """

    task: str
    item: str
    scores: list[Score]
    repeat: int | None = 0
    question: str | None = None
    options: list[str] | None = None
    gold: str | None = None
    gold_index: int | None = None
    choice: str | None = None
    answer: str | None = None
    k: int | None = None
    category: str | None = None
    tags: str | None = None
    cluster: str | None = None
    seed: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish_reason: str | None = None
    logprob_answer: float | None = None
    logprob_gold: float | None = None
    logprob_next: float | None = None
    prompt: str | None = None
    response: str | None = None
    material: str | None = None
    error: str | None = None
    prompt_key: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class StatedTotal:
    """A total that a log states about its results; what is None is the only one, or all."""

    task: str
    field: str
    value: float
    kind: Literal["sum", "mean"] = "sum"
    """The sum of all scores, such as the number of right answers, or their mean."""
    metric: str | None = None
    scorer: str | None = None
    category: str | None = None
    repeat: int | None = None
    scale: float = 1.0
    """The value that stands for a mean of 1, such as 100."""
    may_be_percent: bool = False
    """Whether the scale may be 1 or 100."""
    guesses: bool = False
    """Whether the harness guesses in place of an answer that cannot be read."""


class Problems:
    """Collects unusable rows and fields; if strict, the first one is an error."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self.kept: list[Problem] = []
        self.totals: list[StatedTotal] = []
        self.contradictions: list[Contradiction] = []
        """Other statements of the logs that the samples contradict."""
        self.graded: set[str] = set()
        """Tasks whose answers forgetmap graded because the log has no scores."""

    def add(
        self, file: str, message: str, *, line: int | None = None, field: str | None = None
    ) -> None:
        """Report a problem; the rest of the log remains usable."""
        if self.strict:
            hint = "fix this row, or remove --strict to skip it."
            raise FieldError(message, file=file, line=line, field=field, hint=hint)
        self.count += 1
        if len(self.kept) < MAX_PROBLEMS:
            self.kept.append(Problem(file, line, field, message))


@dataclass(frozen=True, slots=True)
class Log:
    """One evaluation of one model by one harness, with one or more tasks."""

    adapter: str
    files: tuple[LogFile, ...]
    """Its files, samples first."""
    info: RunInfo = field(default_factory=RunInfo)
    tasks: tuple[str, ...] = ()
    """Names of its tasks, if known before reading."""
    stamp: str | None = None
    """Time of writing in a sortable form; None if unknown."""
    finished: bool = True
    format: str = ""
    """Display name of the format and its version."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Values that `sniff` passes to `read`."""


class Adapter(Protocol):
    """Recognises and reads the logs of one harness."""

    name: str
    preferred: Sequence[str]
    """Metrics (`METRIC` or `METRIC/SCORER`) to compare if the harness names no main metric: the
    first one that a task has. A task with none of them is compared by its first metric."""

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return the logs among these files, recognised by the beginning of their content."""
        ...

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield the samples of a log; without `texts`, prompts and responses can be skipped."""
        ...
