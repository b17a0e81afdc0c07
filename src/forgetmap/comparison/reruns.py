"""A rerun must be of the model that it repeats, where both runs state which model they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from forgetmap.errors import UsageError
from forgetmap.records import Run, RunInfo

STATING = ("lm-eval", "inspect", "lighteval")
"""Harnesses that log the model; names in logs of others are often those of folders."""
OLD_LM_EVAL = "0.3"
"""Its samples do not name the model."""
COMMIT = re.compile("[0-9a-f]{40}")


def refuse_exchanged(runs: Sequence[Run], reruns: Sequence[Run]) -> None:
    """Refuse the rerun of one model as that of the other.

    Raises:
        UsageError: the reruns of both models are exchanged.
    """
    first, again = ([run.info.model for run in pair] for pair in (runs, reruns))
    if first != again and first == again[::-1]:
        raise UsageError(
            f"the reruns are exchanged: {reruns[0].name} is a run of {first[1].name}",
            hint="give the rerun of the model before first.",
        )


def refuse_other_model(run: Run, rerun: Run) -> None:
    """Refuse the run of another model as a rerun.

    Raises:
        UsageError: both state their models, and these differ.
    """
    if not _is_other(run.info, rerun.info):
        return
    model, other = _label(run.info), _label(rerun.info)
    raise UsageError(
        f"{_where(rerun)} is a run of the model {other}, but {run.name} is one of {model}",
        hint=f"give another run of {model}; if both names are of one model, write the rerun under "
        f"that name: forgetmap records convert RERUN --model {shlex.quote(model)} --out FOLDER.",
    )


def _is_other(first: RunInfo, again: RunInfo) -> bool:
    """Return whether two runs state different models; False if that is not known.

    Equal weights are one model, whatever their place. Of places, what both state must be equal:
    `/data/models/base` may be `models/base`, and one name may be served at two addresses.
    """
    if not (_states_model(first) and _states_model(again)):
        return False
    asked = [info.asked for info in (first, again) if info.asked is not None]
    weights = [one.weights for one in asked]
    if len(asked) == 2 and None not in weights and len({*weights}) == 1:
        return False
    files = {PurePath(one.model).name for one in asked if one.model.lower().endswith(".gguf")}
    revisions = [info.model.revision for info in (first, again)]
    # A commit and the name of a branch may be the same revision.
    comparable = len({bool(COMMIT.fullmatch(one)) for one in revisions if one}) == 1
    if len(files) == 2 or (None not in revisions and comparable and len({*revisions}) == 2):
        return True
    names = [_name(info) for info in (first, again)]
    if first.harness.name == again.harness.name == "inspect":
        # The provider may change, for other batches or another engine.
        bare = [re.sub(r"^[\w-]+/", "", name) for name in names]
        if _is_one_place(*bare):
            return False
    return not _is_one_place(*names)


def _where(rerun: Run) -> str:
    """Return the name of a rerun and that of its file; addresses may contain secrets."""
    is_local = rerun.handed_in == "path" and "://" not in rerun.origin
    file = PurePath(rerun.origin).name if is_local else rerun.name
    return rerun.name if file == rerun.name else f"{rerun.name} ({file})"


def _states_model(info: RunInfo) -> bool:
    harness, version = info.harness.name, info.harness.version
    is_ours = harness is None or harness.startswith("forgetmap")
    logs_it = harness in STATING and version not in (None, OLD_LM_EVAL)
    return bool(info.model.name) and (is_ours or logs_it)


def _name(info: RunInfo) -> str:
    return "+".join(filter(None, (info.model.name, info.model.adapter)))


def _label(info: RunInfo) -> str:
    """Return the model as users type it."""
    if info.asked is not None:
        return info.asked.model
    revision = f"@{info.model.revision}" if info.model.revision else ""
    return "+".join(filter(None, (f"{info.model.name}{revision}", info.model.adapter)))


def _is_one_place(first: str, second: str) -> bool:
    """Return whether one name may be short for the other, for a model and its adapter alike."""
    pairs = [name.split("+") for name in (first, second)]
    return len(pairs[0]) == len(pairs[1]) and all(map(_ends_alike, *pairs))


def _ends_alike(first: str, second: str) -> bool:
    parts = [_parts(name) for name in (first, second)]
    length = min(map(len, parts))
    return parts[0][-length:] == parts[1][-length:]


def _parts(name: str) -> list[str]:
    """Split a path or id; of a server, only the name of its model counts."""
    found = re.split(r"/|\\|__", name.rpartition("#")[2] if "://" in name else name)
    return [part for part in found if part not in ("", ".", "..")] or [name]
