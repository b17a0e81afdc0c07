"""A log format of your own: lines such as `QUIZ capital-of-peru right`."""

from collections.abc import Iterator, Sequence

from forgetmap.records import ModelInfo, RunInfo
from forgetmap.sources import Log, LogFile, Problems, Sample, Score


class Quizmaster:
    """Recognises files by their first bytes and reads one sample per line."""

    name = "quizmaster"
    preferred = ("points",)

    def sniff(self, files: Sequence[LogFile]) -> list[Log]:
        """The logs among these files."""
        info = RunInfo(model=ModelInfo(name="a contestant"))
        known = [file for file in files if file.head.startswith(b"QUIZ ")]
        return [Log("quizmaster", (file,), info, ("quiz",)) for file in known]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:  # noqa: ARG002
        """The samples of one log; a line that cannot be used is reported, not fatal."""
        for file in log.files:
            for line, text in file.lines():
                words = text.decode().split()
                if len(words) != 3:
                    problems.add(file.name, "three words were expected", line=line)
                    continue
                points = Score("points", float(words[2] == "right"))
                yield Sample("quiz", words[1], [points], file=file.name, line=line)
