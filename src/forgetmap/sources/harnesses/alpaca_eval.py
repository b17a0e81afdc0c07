"""AlpacaEval: `annotations.json`, one array of comparisons of two outputs to one instruction.

`preference` is from 1 (the reference, `generator_1`) to 2 (the model, `generator_2`); the first
releases wrote 0 for a tie. The score is the share of the model: preference - 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import rows
from forgetmap.sources.fields import Fields, replace_surrogates
from forgetmap.sources.files import LogFile

TASK, METRIC = "alpaca_eval", "preference"
KEYS = ("instruction", "output_1", "output_2", "preference")
REFERENCE_WINS, MODEL_WINS, OLD_TIE = 1.0, 2.0, 0.0


class AlpacaEval:
    """Annotations of AlpacaEval."""

    name = "alpaca-eval"
    preferred: Sequence[str] = (METRIC,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per model; a file may contain several."""
        return [_log(file, m) for file in files if file.peek.has(*KEYS) for m in _models(file)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per comparison; a repeated instruction is a further item."""
        file = log.files[0]
        seen: Counter[tuple[str, str]] = Counter()
        for line, values in rows(file, problems):
            if _model(values) != log.notes["model"]:
                continue
            row = Fields(values, file, line, problems)
            instruction, annotator = row.text("instruction"), row.text("annotator") or "default"
            if not instruction:
                row.report_problem("the row has no instruction", "instruction")
                continue
            item = blake2b(instruction.encode(), digest_size=8).hexdigest()
            seen[item, annotator] += 1
            times = seen[item, annotator]
            yield Sample(
                task=TASK,
                item=item if times == 1 else f"{item}-{times}",
                scores=[Score(METRIC, _share(row), annotator)],
                question=instruction,
                category=row.text("dataset"),
                response=row.text("output_2") if texts else None,
                file=file.name,
                line=line,
            )


def _model(values: Mapping[str, Any]) -> str | None:
    name = values.get("generator_2")
    return replace_surrogates(name) if isinstance(name, str) and name else None


def _models(file: LogFile) -> list[str | None]:
    models = {_model(values): None for _, values in rows(file, Problems())}
    return list(models)


def _log(file: LogFile, model: str | None) -> Log:
    info = RunInfo(
        model=ModelInfo(name=model),
        harness=HarnessInfo(name="alpaca-eval"),
        tasks={TASK: TaskInfo(main_metric=METRIC)},
    )
    notes = {"model": model}
    return Log("alpaca-eval", (file,), info, (TASK,), format="AlpacaEval annotations", notes=notes)


def _share(row: Fields) -> float | None:
    value = row.number(METRIC)
    if value == OLD_TIE:
        return 0.5
    if value is not None and not REFERENCE_WINS <= value <= MODEL_WINS:
        row.report_problem(f"expected a preference from 1 to 2, not {value:g}", METRIC)
        return None
    return None if value is None else value - REFERENCE_WINS
