"""The history of a watched training: `watch.json`, beside the run folders of its looks.

    FORGETTING/
      watch.json        the curve, costs, alarms and gaps (`WatchHistory`); its lists only grow
      start.npz         distributions of the start model over the answers, for the KL to it
      step-000000/      run folders, one per look, for `compare --chain`, `report` and `serve`
      step-000050/
      best/             the kept checkpoint, with keep_best

The file is replaced atomically, so a reader never sees a partial one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from forgetmap._disk import whole_file
from forgetmap.errors import FieldError, MissingInputError, UnreadableError
from forgetmap.results import Value

WATCH_FILE = "watch.json"
WATCH_VERSION = 2
GapKind = Literal["probe", "items", "budget", "save", "logger", "loss"]
"""What is missing: a look, answers, a look beyond the budget, a file, logged values, a loss."""


class WatchGroup(Value):
    """Results of one look for a category, or for all items."""

    items: int = Field(
        description="Number of items scored at the start and now; shares refer to these."
    )
    missing: int = Field(
        description="Number of items scored at the start without an answer "
        "now; they do not count as wrong."
    )
    accuracy: float | None = Field(description="Share that is right now.")
    forgotten: float | None = Field(
        description="Share that was right at the start and is wrong now."
    )
    gained: float | None = Field(description="Share that was wrong at the start and is right now.")
    lost_at_least: float = Field(
        description="What is proven to be lost, as a share of such items, at all looks and in all "
        "groups together; 0 if nothing is.",
    )
    lost_at_most: float | None = Field(
        default=None, description="Upper limit of the loss; null at the start."
    )
    kl_to_start: float | None = Field(
        default=None, description="KL(now || start) in nats per token of the right answers."
    )
    kl_from_start: float | None = Field(
        default=None, description="KL(start || now) in nats per token of the right answers."
    )
    alarm: bool = Field(
        default=False, description="Whether a loss of more than the margin is proven."
    )


class WatchLook(Value):
    """One evaluation of the probe on the live model."""

    look: int = Field(
        description="Number of the look, from 0 at the start; repeated looks count too."
    )
    step: int
    epoch: float | None = None
    learning_rate: float | None = Field(default=None, description="Learning rate of the next step.")
    loss: float | None = Field(default=None, description="Training loss, as last logged.")
    run: str = Field(description="Name of its run folder.")
    total: WatchGroup
    categories: dict[str, WatchGroup]
    probe_seconds: float = Field(description="Duration of this look.")
    probed_seconds: float = Field(description="Duration of all looks so far.")
    trained_seconds: float = Field(description="Duration of training so far, without looks.")
    abandoned: bool = Field(
        default=False,
        description="Whether training resumed from a checkpoint before this step; such looks "
        "are not part of the curve.",
    )

    @property
    def cost(self) -> float | None:
        """Time in the probe divided by training time so far; None at the start."""
        return self.probed_seconds / self.trained_seconds if self.step else None


class WatchAlarm(Value):
    """An alarm: more than the margin was lost."""

    step: int
    look: int
    groups: list[str] = Field(description="`total` and names of categories.")
    action: str = Field(description="The action taken.")


class WatchGap(Value):
    """A missing result, and the reason."""

    step: int
    kind: GapKind
    message: str


class KeptCheckpoint(Value):
    """The checkpoint in the folder `best`."""

    step: int
    forgotten: float
    accuracy: float
    alarm: bool = Field(default=False, description="Whether the look raised an alarm.")


class WatchRule(Value):
    """Options of the watch."""

    cost: float | None = Field(
        description="Maximum time in the probe, as a share of training time."
    )
    every: int | None = Field(description="Number of steps between looks, if fixed.")
    margin: float
    noise_floor: float | None = Field(
        default=None, description="Stated share of answers that reruns flip one way at most."
    )
    alpha: float
    on_alarm: str
    keep_best: bool


class WatchHistory(Value):
    """The history of one training, including resumed parts."""

    version: int = WATCH_VERSION
    suite: str
    asked: str = Field(description="Identifies the items, their wording and the prompts.")
    tokens: str = Field(description="Identifies the tokenisation of the items.")
    rule: WatchRule
    items: int = Field(description="Number of items evaluated at every look.")
    items_of_suite: int = Field(
        description="Number of items before some were left out to limit the cost."
    )
    kl_is_exact: bool = Field(
        default=True, description="Otherwise rare tokens are grouped, and each KL is a lower bound."
    )
    max_steps: int = 0
    looks: list[WatchLook] = Field(default_factory=list)
    alarms: list[WatchAlarm] = Field(default_factory=list)
    gaps: list[WatchGap] = Field(default_factory=list)
    best: KeptCheckpoint | None = None

    @property
    def curve(self) -> list[WatchLook]:
        """Looks that were not abandoned, in order of steps."""
        return [look for look in self.looks if not look.abandoned]


def read_history(path: str | Path) -> WatchHistory:
    """Read the history of a training.

    Args:
        path: `watch.json`, the folder it is in, or the output folder of the trainer.

    Raises:
        MissingInputError: there is no history.
        UnreadableError: the file cannot be read.
        FieldError: it is another file, or has a newer version.
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
            hint="check that this is a watch.json written by forgetmap; if so, upgrade forgetmap.",
        ) from None
    if history.version > WATCH_VERSION:
        raise FieldError(
            f"the history has version {history.version}; this forgetmap reads up to "
            f"{WATCH_VERSION}",
            file=str(file),
            field="version",
            hint="upgrade forgetmap: pip install -U forgetmap.",
        )
    return history


def write_history(history: WatchHistory, folder: Path) -> None:
    """Write `watch.json` atomically."""
    with whole_file(folder / WATCH_FILE) as partial:
        partial.write_text(history.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _find(path: Path) -> Path:
    for file in (path, path / WATCH_FILE, path / "forgetting" / WATCH_FILE):
        if file.is_file():
            return file
    raise MissingInputError(
        "no history of a watched training",
        file=str(path),
        hint=f"pass a {WATCH_FILE}, or the folder written by fm.watch.",
    )
