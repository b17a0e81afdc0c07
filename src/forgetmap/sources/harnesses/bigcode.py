"""bigcode-evaluation-harness: recognised, but refused, because it stores no item results.

It writes generations and one number per task, but not which problems were solved. A file of
generations can be evaluated again, by it or by EvalPlus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forgetmap.sources.adapter import Log, Problems, Sample
from forgetmap.sources.fields import as_mapping
from forgetmap.sources.files import LogFile

SETTINGS = frozenset({"n_samples", "allow_code_execution", "metric_output_path"})
SENTENCE = (
    "bigcode-evaluation-harness stores one number per task and no results of single items: "
    "evaluate the generations again with a harness that does, such as EvalPlus "
    "(evalplus.evaluate --samples)"
)


class BigCode:
    """Metrics of bigcode-evaluation-harness."""

    name = "bigcode"
    preferred: Sequence[str] = ()

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per document of metrics with the settings of a run."""
        return [
            Log("bigcode", (file,), format="bigcode metrics")
            for file in files
            if as_mapping(file.peek.first.get("config")).keys() >= SETTINGS
        ]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:  # noqa: ARG002
        """Report why there are no samples."""
        problems.add(log.files[0].name, SENTENCE)
        return iter(())
