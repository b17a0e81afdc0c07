"""evalchemy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forgetmap.sources.adapter import Log, Problems, Sample
from forgetmap.sources.files import LogFile


class Evalchemy:
    """Logs of evalchemy."""

    name = "evalchemy"
    preferred: Sequence[str] = ()

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """The logs among these files."""
        return []

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """The samples of a log."""
        yield from ()
