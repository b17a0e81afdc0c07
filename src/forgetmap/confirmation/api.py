"""The public function `confirm`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from forgetmap._disk import whole_file
from forgetmap.comparison import Comparison, Options, compare
from forgetmap.confirmation.asking import Asking, OnConfirmProgress, ask_again
from forgetmap.confirmation.choices import ItemFormat
from forgetmap.confirmation.flips import FlipPlan, choose_flips
from forgetmap.confirmation.inspect_ai import for_inspect
from forgetmap.confirmation.listing import SIDES, Listing, as_jsonl, natural_format, rerun_folder
from forgetmap.confirmation.lm_eval import for_lm_eval
from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import Suite
from forgetmap.records import writable

PLAN = "confirm.json"
"""What was fixed before the first fresh answer; the name is part of the file format."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Flips that were asked again, or that are to be asked.

    Attributes:
        plan: what is asked.
        out: folder of the files.
        reruns: where the fresh answers of the two models are, or are to be.
        comparison: the comparison with the fresh answers; None if they are still to be asked.
        files: files of items, if another program is to ask them.
        commands: commands that ask them.
        notices: what to know.
    """

    plan: FlipPlan
    out: Path
    reruns: tuple[Path, Path]
    comparison: Comparison | None = None
    files: tuple[Path, ...] = ()
    commands: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the output of `--json`."""
        plan, comparison = self.plan, self.comparison
        values = {
            "forgotten": plan.forgotten,
            "gained": plan.gained,
            "asked": len(plan.items),
            "repeats": plan.repeats,
            "answers": plan.answers,
            "provable": plan.provable,
            "out": str(self.out),
            "reruns": [str(path) for path in self.reruns],
            "files": [str(path) for path in self.files],
            "commands": list(self.commands),
            "notices": list(self.notices),
            "comparison": None if comparison is None else comparison.result.to_dict(),
        }
        return json.dumps(values, indent=2)


def confirm(  # noqa: PLR0913  # as many as the command has
    before: Any,
    after: Any,
    /,
    *,
    out: str | Path,
    models: tuple[str, str] | None = None,
    suite: str | Path | Suite | None = None,
    repeats: int = 1,
    limit: int | None = None,
    gains: bool = False,
    seed: int = 0,
    items_only: bool = False,
    item_format: ItemFormat | None = None,
    overwrite: bool = False,
    data_root: Path | None = None,
    loading: Mapping[str, Any] | None = None,
    on_plan: Callable[[FlipPlan], None] | None = None,
    on_progress: OnConfirmProgress | None = None,
    **options: Unpack[Options],
) -> Confirmation:
    """Ask only the items that flipped again, which proves a loss that one run cannot.

    The first answers choose the items and do not count. Runs of forgetmap are asked again by their
    models, in the same way, with another seed, order and batch size. For logs of another harness,
    the items and the commands are written; `compare` reads the results with `confirm=`.

    Args:
        before: path or run of the model before.
        after: path or run of the model after.
        out: folder for the fresh answers, or for the files of items.
        models: the models, if they are not where they were when they were first asked.
        suite: the suite, if it is not where it was.
        repeats: fresh answers of each model to each item, fixed before the first one.
        limit: ask at most this many forgotten items, a random part.
        gains: also ask the items that became right.
        seed: seed of the random part.
        items_only: write the items even if the models can be asked here.
        item_format: `lm-eval`, `inspect` or `jsonl`; by default that of the harness.
        overwrite: replace an earlier confirmation.
        data_root: folder with local copies of hub data sets.
        loading: dtype, device and so on, as for `open_model`.
        on_plan: called once with what will be asked.
        on_progress: called after every answer.
        options: options of `compare`; `planned` if asking again was planned before the first
            answers were seen.

    Example:
        >>> import forgetmap as fm
        >>> fm.confirm("runs/base", "runs/tuned", out="confirm").comparison  # doctest: +SKIP
    """
    out = Path(out)
    first: Comparison = compare(before, after, **options)
    plan = choose_flips(first, repeats=repeats, limit=limit, gains=gains, seed=seed)
    asks = not items_only and item_format is None and _can_ask(first, models, suite)
    _fix(plan, out, overwrite=overwrite)
    if on_plan is not None:
        on_plan(plan)
    if not asks:
        parts = _parts(options)
        listing = _list_items(first, plan, out, item_format or natural_format(first), parts)
        _write(listing)
        reruns = (rerun_folder(out, SIDES[0]), rerun_folder(out, SIDES[1]))
        notices = [*listing.notices, *_greedy(first)]
        files = tuple(listing.files)
        return Confirmation(plan, out, reruns, None, files, listing.commands, tuple(notices))
    asking = Asking(models or (None, None), suite, data_root, loading, overwrite, on_progress)
    reruns, notices = ask_again(first, plan, out, asking)
    options["confirm"] = reruns
    comparison: Comparison = compare(before, after, **options)
    return Confirmation(plan, out, reruns, comparison, notices=tuple(notices))


def _can_ask(
    comparison: Comparison, models: tuple[str, str] | None, suite: str | Path | Suite | None
) -> bool:
    """Whether both runs say how their models were asked.

    Raises:
        UsageError: models are given for runs of another harness.
    """
    runs = (comparison.before, comparison.after)
    silent = [run for run in runs if run.info.asked is None or not (suite or run.info.asked.suite)]
    if models is not None and silent:
        harness = silent[0].info.harness.name
        who = "" if harness in (None, "forgetmap") else f": {harness} asked the model"
        raise UsageError(
            f"{silent[0].name} does not say how forgetmap could ask in the same way{who}",
            hint="remove --models: the items and the commands to ask them are written instead.",
        )
    return not silent


def _greedy(comparison: Comparison) -> list[str]:
    """Say what to change where answers are not known to be sampled."""
    if all(run.info.is_sampled for run in (comparison.before, comparison.after)):
        return []
    words = "Greedy answers may repeat exactly, and copies do not count: use another batch size, "
    return [f"{words}number format or engine than at first."]


def _parts(options: Options) -> tuple[str | None, str | None]:
    """Return which run of the logs each side is."""
    run = options.get("run")
    names: Sequence[str | None] = [run] if run is None or isinstance(run, str) else [*run]
    names = names or [None]
    return names[0], names[-1]


def _list_items(
    comparison: Comparison,
    plan: FlipPlan,
    out: Path,
    form: ItemFormat,
    parts: tuple[str | None, str | None],
) -> Listing:
    if form == "lm-eval":
        return for_lm_eval(comparison, plan, out, parts)
    if form == "inspect":
        return for_inspect(comparison, plan, out, parts)
    return as_jsonl(comparison, plan, out)


def _fix(plan: FlipPlan, out: Path, *, overwrite: bool) -> None:
    """Write down what is asked; an earlier attempt must have been about the same.

    Raises:
        OutputError: other items, or another number of answers, were fixed before.
    """
    path, fixed = out / PLAN, plan.to_dict()
    if path.is_file() and not overwrite:
        try:
            earlier = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            earlier = None
        if earlier != fixed:
            raise OutputError(
                f"{out} belongs to another confirmation: its items and its number of answers were "
                "fixed before the first fresh answer",
                hint="choose another --out, or add --overwrite; to confirm the same runs a second "
                "time, also add --look 2.",
            )
        return
    _write(Listing({path: json.dumps(fixed, indent=1) + "\n"}))


def _write(listing: Listing) -> None:
    for path, content in listing.files.items():
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as partial:
                partial.write_text(content, encoding="utf-8")
