"""OpenAI evals (`oaieval`): events of an evaluation, one per line, from `spec` to `final_report`.

Events of type `match` tell whether an answer is right, those of type `metrics` give other scores,
`sampling` has prompt and response. The events of a sample are joined by its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import number, rows
from forgetmap.sources.fields import Fields, as_json_text, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile
from forgetmap.sources.messages import last_question

ACCURACY = "accuracy"
EVENT = ("run_id", "event_id", "sample_id", "type", "data")
SPEC = ("completion_fns", "eval_name")


class OpenAIEvals:
    """Logs of oaieval."""

    name = "openai-evals"
    preferred: Sequence[str] = (ACCURACY, "score")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per file of events."""
        return [_log(file) for file in files if _is_log(file)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per id and verdict; ids without a verdict are unscored."""
        file, task = log.files[0], log.tasks[0]
        gathered: dict[str, _Events] = {}
        for line, values in rows(file, problems):
            row = Fields(values, file, line, problems)
            if "spec" in values:
                continue
            if "final_report" in values:
                problems.totals += _totals(task, values["final_report"])
                continue
            item = row.name("sample_id")
            if item is None:
                row.report_problem("an event has no sample_id", "sample_id")
            else:
                gathered.setdefault(item, _Events(row)).add(row)
        for item, events in gathered.items():
            yield from events.samples(_task(item) or task, item, texts=texts)


def _task(sample: object) -> str | None:
    """Return the task in an id, `EVAL.SPLIT.NUMBER`, for logs without their first line."""
    parts = sample.rsplit(".", 2) if isinstance(sample, str) else []
    return replace_surrogates(parts[0]) if len(parts) == 3 and parts[2].isdecimal() else None


def _is_log(file: LogFile) -> bool:
    return file.peek.has(*EVENT) or _is_spec(file.peek.objects[0] if file.peek.objects else {})


def _is_spec(row: Mapping[str, Any]) -> bool:
    spec = as_mapping(row.get("spec"))
    return all(name in spec for name in SPEC)


def _log(file: LogFile) -> Log:
    spec = next((as_mapping(row["spec"]) for row in file.peek.objects if _is_spec(row)), {})
    about = Fields(spec, file, None, Problems())
    models = [name for name in as_list(spec.get("completion_fns")) if isinstance(name, str)]
    ids = (_task(row.get("sample_id")) for row in file.peek.objects)
    task = next(filter(None, ids), None) or about.text("base_eval") or "openai-evals"
    stamp = about.text("created_at")
    info = RunInfo(
        run_id=about.text("run_id"),
        model=ModelInfo(name=replace_surrogates(models[0]) if models else None),
        harness=HarnessInfo(name="openai-evals"),
        created=stamp,
    )
    return Log("openai-evals", (file,), info, (task,), stamp, format="OpenAI evals events")


def _totals(task: str, report: object) -> Iterator[StatedTotal]:
    value = number(as_mapping(report).get(ACCURACY))
    if value is not None:
        yield StatedTotal(task, f"final_report.{ACCURACY}", value, "mean", ACCURACY)


@dataclass(slots=True)
class _Events:
    """All events of one sample."""

    first: Fields
    matches: list[Fields] = field(default_factory=list)
    metrics: list[Fields] = field(default_factory=list)
    sampled: Fields | None = None
    error: str | None = None

    def add(self, row: Fields) -> None:
        """Add an event; of several responses the last one counts."""
        data = row.part("data")
        match row.values.get("type"):
            case "match":
                self.matches.append(data)
            case "metrics":
                self.metrics.append(data)
            case "sampling":
                self.sampled = data
            case "error":
                self.error = data.json_text("message") or "error"

    def samples(self, task: str, item: str, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per verdict; several are repeats."""
        for repeat in range(max(len(self.matches), len(self.metrics), 1)):
            verdict = self.matches[repeat] if repeat < len(self.matches) else None
            other = self.metrics[repeat] if repeat < len(self.metrics) else None
            yield self._sample(task, item, repeat, verdict, other, texts=texts)

    def _sample(
        self,
        task: str,
        item: str,
        repeat: int,
        verdict: Fields | None,
        other: Fields | None,
        *,
        texts: bool,
    ) -> Sample:
        prompt = None if self.sampled is None else self.sampled.values.get("prompt")
        response = None if self.sampled is None else _response(self.sampled)
        right = None if verdict is None else verdict.number("correct")
        picked = None if verdict is None else verdict.json_text("picked")
        return Sample(
            task=task,
            item=item,
            scores=_scores(right, verdict, other, failed=self.error is not None),
            repeat=repeat,
            question=last_question(prompt),
            gold=None if verdict is None else _gold(verdict),
            answer=picked,
            prompt=as_json_text(prompt) if texts else None,
            response=response if texts else None,
            error=self.error if right is None else None,
            file=self.first.file.name,
            line=self.first.line,
        )


def _response(sampled: Fields) -> str | None:
    """Return the response; a list with one text is that text."""
    texts = sampled.values.get("sampled")
    only = texts[0] if isinstance(texts, list) and len(texts) == 1 else texts
    return as_json_text(only)


def _gold(verdict: Fields) -> str | None:
    """Return the right answer; of several, the first."""
    gold = verdict.values.get("expected")
    return as_json_text(gold[0] if isinstance(gold, list) and gold else gold)


def _scores(
    right: float | None, verdict: Fields | None, other: Fields | None, *, failed: bool
) -> list[Score]:
    scores = [Score(ACCURACY, right)] if verdict is not None else []
    values = {} if other is None else other.values
    scores += [
        Score(replace_surrogates(name), number(value))
        for name, value in values.items()
        if isinstance(value, bool | int | float) and not (scores and name == ACCURACY)
    ]
    return scores or [Score(ACCURACY, None, outcome=Outcome.ERROR if failed else None)]
