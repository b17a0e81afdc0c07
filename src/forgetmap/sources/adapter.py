"""Protocol of adapters, which recognise the logs of one harness and read their samples.

    class MyHarness:
        name = "my-harness"
        preferred = ("acc",)

        def sniff(self, files): ...        # the logs it knows among these files
        def read(self, log, problems): ... # the samples of one of them, one by one

A package adds one by an entry point in the group `forgetmap.adapters` that names such a class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from forgetmap.errors import FieldError
from forgetmap.records import Outcome, Problem
from forgetmap.sources.files import LogFile

if TYPE_CHECKING:  # a process that reads a range does without pydantic, half of its start
    from forgetmap.records import RunInfo

MAX_PROBLEMS = 1_000
"""Problems kept with their place; more are only counted."""
OWN_SCORER = "forgetmap"
"""Who scored an answer that was graded here, for want of a verdict in the log or on demand."""
Verdicts = Literal["log", "own"]
"""Whose scores are used: only those of the log, or only those that are given here."""


class Score(msgspec.Struct, gc=False):
    """One value of one metric, by one scorer; None where there is none."""

    metric: str
    value: float | None
    scorer: str = "default"
    outcome: Outcome | None = None


class Sample(msgspec.Struct, gc=False):
    """One answer of a model to one item, as a harness logged it.

    Fields are those of the canonical table (records/schema.py); what a harness does not say stays
    None. Texts are as logged: hashes, letters and counts of options are settled by the reader.

    Attributes:
        scores: one or several values.
        repeat: None if answers to the same item count as repeats in the order they come.
        prompt_key: the harness's own hash of the prompt, where the prompt itself is not read.
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
    """What a log says of its own results as a whole.

    Attributes:
        task: the task it is about.
        field: what the log calls it.
        value: the number.
        kind: the sum of all scores, such as a number of right answers, or their mean.
        metric: the metric it is about; None where the task has one.
        scorer: the scorer; None where the metric has one.
        category: the category it is about; None for all.
        repeat: the repeat it is about; None for all.
        scale: what a mean of 1 is written as, such as 100.
    """

    task: str
    field: str
    value: float
    kind: Literal["sum", "mean"] = "sum"
    metric: str | None = None
    scorer: str | None = None
    category: str | None = None
    repeat: int | None = None
    scale: float = 1.0


class Problems:
    """Collects what could not be used; when strict, the first one is an error.

    Attributes:
        count: how many there were.
        kept: the first of them.
        totals: what the logs say of their results as a whole.
        graded: tasks whose answers were graded here, because the log stores no verdict.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self.kept: list[Problem] = []
        self.totals: list[StatedTotal] = []
        self.graded: set[str] = set()

    def add(
        self, file: str, message: str, *, line: int | None = None, field: str | None = None
    ) -> None:
        """Report one; the rest of the log stays usable."""
        if self.strict:
            raise FieldError(
                message,
                file=file,
                line=line,
                field=field,
                hint="fix this row, or remove --strict to skip it.",
            )
        self.count += 1
        if len(self.kept) < MAX_PROBLEMS:
            self.kept.append(Problem(file, line, field, message))

    def extend(self, others: Problems) -> None:
        """Add those that another process found."""
        self.count += others.count
        self.kept = (self.kept + others.kept)[:MAX_PROBLEMS]
        self.totals += others.totals
        self.graded |= others.graded


def _empty_info() -> RunInfo:
    from forgetmap.records import RunInfo

    return RunInfo()


@dataclass(frozen=True, slots=True)
class Log:
    """One evaluation of one model, as one harness wrote it: one or several tasks.

    Attributes:
        adapter: name of the adapter that knows it.
        files: what it is made of, samples first.
        info: what the harness says about the run as a whole.
        tasks: names of its tasks, as far as they are known before reading.
        stamp: when it was written, in a form that sorts; None where nobody says.
        finished: whether the harness says that the evaluation came to its end.
        format: which format and version of it, for people.
        notes: what the adapter wants to remember between `sniff` and `read`.
    """

    adapter: str
    files: tuple[LogFile, ...]
    info: RunInfo = field(default_factory=_empty_info)
    tasks: tuple[str, ...] = ()
    stamp: str | None = None
    finished: bool = True
    format: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)


class Adapter(Protocol):
    """Knows the logs of one harness."""

    name: str
    preferred: Sequence[str]
    """Metrics (`METRIC` or `METRIC/SCORER`) to compare where the harness names no main one: the
    first that a task has. A task with none of them is compared by the first metric it logs."""

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """The logs among these files, known by content; large files are only peeked at."""
        ...

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """The samples of a log; without `texts` the prompt and response need not be read."""
        ...
