"""Files beside the run folders of a study: status, speed and errors."""

from __future__ import annotations

import glob
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from forgetmap._disk import whole_file
from forgetmap.errors import ForgetmapError
from forgetmap.records import writable


@dataclass(frozen=True, slots=True)
class RunEffort:
    """Cost of the last attempt at a run.

    Attributes:
        answers: number of new answers, without those of earlier attempts.
        tokens: tokens read and written for them.
        written: tokens that the model generated, of `tokens`.
        seconds: duration from the first prompt to the last answer.
    """

    answers: int = 0
    tokens: int = 0
    written: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A complete run.

    Attributes:
        mark: fingerprint of model, suite and settings.
        stamp: text that changes with the files of the model or the suite.
        effort: cost of the run.
    """

    mark: str
    stamp: str
    effort: RunEffort


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why a model could not be evaluated.

    Attributes:
        kind: class of the error.
        reason: problem and location.
        hint: what to do.
        time: time of the failure, ISO 8601, UTC.
    """

    kind: str
    reason: str
    hint: str
    time: str


def run_folder(folder: Path, name: str) -> Path:
    """Return the run folder of a model."""
    return folder / name.replace("/", "--")


def read_finished(out: Path, name: str) -> FinishedRun | None:
    """Read the record of a complete run; None if there is none."""
    content = _read(_finished_path(out, name))
    try:
        return FinishedRun(content["mark"], content["stamp"], RunEffort(**content["effort"]))  # type: ignore[arg-type]
    except (KeyError, TypeError):
        return None


def write_finished(out: Path, name: str, finished: FinishedRun) -> None:
    """Record that a run is complete, and remove an earlier failure."""
    _write(_finished_path(out, name), asdict(finished))
    clear_failure(out, name)


def read_failure(out: Path, name: str) -> RunFailure | None:
    """Read why the last attempt at a model failed; None if it did not."""
    try:
        return RunFailure(**_read(_failure_path(out, name)))  # type: ignore[arg-type]
    except TypeError:
        return None


def write_failure(out: Path, name: str, error: ForgetmapError) -> None:
    """Record why a model failed."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    failure = RunFailure(type(error).__name__, error.located, error.hint, time)
    _write(_failure_path(out, name), asdict(failure))


def clear_failure(out: Path, name: str) -> None:
    """Remove the failure of a model that is tried again."""
    _failure_path(out, name).unlink(missing_ok=True)


def answers_so_far(out: Path, name: str) -> int:
    """Return the number of answers of an interrupted run; 0 if it was not started."""
    folder = run_folder(out, name)
    journal = folder.parent / f".{folder.name}.journal.jsonl"
    if not journal.is_file():
        return 0
    with journal.open("rb") as file:
        return max(sum(line.endswith(b"\n") for line in file) - 1, 0)


def _finished_path(out: Path, name: str) -> Path:
    folder = run_folder(out, name)
    return folder.parent / f".{folder.name}.study.json"


def _failure_path(out: Path, name: str) -> Path:
    folder = run_folder(out, name)
    return folder.parent / f".{folder.name}.failed.json"


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: dict[str, object]) -> None:
    with writable(path), whole_file(path) as partial:
        partial.write_text(json.dumps(content), encoding="utf-8")
    for unfinished in path.parent.glob(f".{glob.escape(path.name)}.????????"):
        unfinished.unlink(missing_ok=True)  # left over from a process that was killed
