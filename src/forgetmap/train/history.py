"""What was seen while a model was trained: `watch.json`, beside the run folders of its looks.

    FORGETTING/
      watch.json        the curve, costs, alarms and gaps (`WatchHistory`); its lists only grow
      start.npz         distributions of the start model over the answers, for the KL to it
      step-000000/      run folders, one per look, for `compare --chain`, `report` and `serve`
      step-000050/
      best/             the kept checkpoint, with keep_best

The file is written whole and exchanged at once, so a reader never sees half of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from forgetmap._disk import whole_file
from forgetmap.errors import FieldError, MissingInputError, UnreadableError
from forgetmap.results import Value

WATCH_FILE = "watch.json"
WATCH_VERSION = 1
GapKind = Literal["probe", "items", "budget", "save", "logger", "loss"]
"""What is missing: a look, answers, a look for lack of budget, a file, a report, a loss."""


class WatchGroup(Value):
    """One look at a category, or at all items."""

    items: int = Field(description="Scored at the start and now; shares are of these.")
    missing: int = Field(description="Scored at the start, without an answer now: not wrong.")
    accuracy: float | None = Field(description="Share that is right now.")
    forgotten: float | None = Field(description="Share that was right at the start and is wrong.")
    forgotten_at_least: float = Field(
        description="Lower limit of what was forgotten of all such items, less the noise floor; "
        "valid at all looks and for all groups together."
    )
    gained: float | None = Field(description="Share that was wrong at the start and is right.")
    kl_to_start: float | None = Field(
        default=None, description="KL(now || start) in nats per token of the right answers."
    )
    kl_from_start: float | None = Field(
        default=None, description="KL(start || now) in nats per token of the right answers."
    )
    alarm: bool = Field(default=False, description="It forgot more than the margin.")


class WatchLook(Value):
    """One evaluation of the probe on the live model."""

    look: int = Field(description="Its number, from 0 at the start; repeated looks count too.")
    step: int
    epoch: float | None = None
    learning_rate: float | None = Field(default=None, description="Of the next step.")
    loss: float | None = Field(default=None, description="Of training, as last logged before.")
    run: str = Field(description="Name of its run folder.")
    total: WatchGroup
    categories: dict[str, WatchGroup]
    probe_seconds: float = Field(description="Of this look.")
    probed_seconds: float = Field(description="Of all looks so far.")
    trained_seconds: float = Field(description="Of training so far, looks left out.")
    abandoned: bool = Field(
        default=False,
        description="Training went on from a checkpoint before this step; no part of the curve.",
    )

    @property
    def cost(self) -> float | None:
        """Time in the probe per time in training so far; None at the start."""
        return self.probed_seconds / self.trained_seconds if self.step else None


class WatchAlarm(Value):
    """More than the margin was forgotten."""

    step: int
    look: int
    groups: list[str] = Field(description="`total` and names of categories.")
    action: str = Field(description="What was done.")


class WatchGap(Value):
    """Something that should be here and is not."""

    step: int
    kind: GapKind
    message: str


class KeptCheckpoint(Value):
    """The checkpoint in the folder `best`."""

    step: int
    forgotten: float
    accuracy: float


class WatchRule(Value):
    """What was asked for."""

    cost: float | None = Field(description="Most time in the probe per time in training.")
    every: int | None = Field(description="Steps between looks, where that is fixed.")
    margin: float
    noise_floor: float
    alpha: float
    on_alarm: str
    keep_best: bool


class WatchHistory(Value):
    """All that was seen in one training, with its resumed parts."""

    version: int = WATCH_VERSION
    suite: str
    asked: str = Field(description="Tells items, their wording and how they are asked apart.")
    tokens: str = Field(description="Tells apart what tokens a tokenizer makes of them.")
    rule: WatchRule
    items: int = Field(description="Asked at every look.")
    items_of_suite: int = Field(description="Before items were left out for the cost.")
    kl_is_exact: bool = Field(
        default=True, description="Else rare tokens are one: then each KL is a lower limit."
    )
    max_steps: int = 0
    looks: list[WatchLook] = Field(default_factory=list)
    alarms: list[WatchAlarm] = Field(default_factory=list)
    gaps: list[WatchGap] = Field(default_factory=list)
    best: KeptCheckpoint | None = None

    @property
    def curve(self) -> list[WatchLook]:
        """Looks at the training as it went on, in order of steps."""
        return [look for look in self.looks if not look.abandoned]


def read_history(path: str | Path) -> WatchHistory:
    """What was seen in a training.

    Args:
        path: `watch.json`, the folder it is in, or the output folder of the trainer.

    Raises:
        MissingInputError: nothing was watched there.
        UnreadableError: the file cannot be read.
        FieldError: it is not such a file, or of a newer version.
    """
    file = _find(Path(path))
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"the history cannot be read: {error}",
            file=str(file),
            hint="check read permission, or copy it again.",
        ) from None
    try:
        history = WatchHistory.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise FieldError(
            first["msg"],
            file=str(file),
            field=".".join(str(part) for part in first["loc"]) or None,
            hint="is this a watch.json that forgetmap wrote? If so, upgrade forgetmap.",
        ) from None
    if history.version > WATCH_VERSION:
        raise FieldError(
            f"written with version {history.version}; this forgetmap reads up to {WATCH_VERSION}",
            file=str(file),
            field="version",
            hint="upgrade forgetmap: pip install -U forgetmap.",
        )
    return history


def write_history(history: WatchHistory, folder: Path) -> None:
    """Write `watch.json`, whole or not at all."""
    with whole_file(folder / WATCH_FILE) as partial:
        partial.write_text(history.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _find(path: Path) -> Path:
    for file in (path, path / WATCH_FILE, path / "forgetting" / WATCH_FILE):
        if file.is_file():
            return file
    raise MissingInputError(
        "no training was watched there",
        file=str(path),
        hint=f"give a {WATCH_FILE}, or the folder that fm.watch wrote it to.",
    )
