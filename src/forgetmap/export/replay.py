"""Replay sets: training examples similar to the forgotten items, without evaluation items."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import IO, Any, TypedDict, TypeVar, Unpack

from xxhash import xxh3_64_intdigest

from forgetmap.comparison import Comparison
from forgetmap.errors import UsageError
from forgetmap.export.choices import MIN_SIMILARITY, PER_ITEM, RowFormat
from forgetmap.export.duplicates import WHYS, Duplicate, DuplicateFinder, PlainText
from forgetmap.export.files import complete_file, refuse_existing_file
from forgetmap.export.measured import MeasuredItem, items_of, read_measured
from forgetmap.export.neighbours import NeighbourSearch
from forgetmap.export.plain_text import plain_words
from forgetmap.export.pool import Example, Pool, Turn
from forgetmap.records import ColumnMap, reading
from forgetmap.text import counted

ROWS_PER_BATCH = 1_000
CELLS_PER_BATCH = 20_000_000
"""Number of similarities that are computed at a time."""
MAX_HELD = 10_000
"""Number of examples beyond the best ones that are kept before they are dropped."""
MEASURED = (
    "the replay set contains {count} of the evaluation; a model trained on it can no longer be "
    "evaluated on them."
)


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """Statistics of a replay set.

    Attributes:
        out: path of the file.
        rows: number of training examples.
        measured: of these, evaluation items; 0 unless `include_measured` is set.
        forgotten: number of forgotten items.
        reached: of these, items with an example in the set.
        similarity: median over the chosen examples; None without a pool.
        pool: number of examples read.
        excluded: of these, examples that leak an evaluation item, by kind.
        repeated: number of examples that repeat an earlier one of the pool.
        unusable: rows without a text, if these are left out.
        guarded: number of evaluation items that examples were compared with.
        notices: limitations.
    """

    out: str
    rows: int
    measured: int
    forgotten: int
    reached: int
    similarity: float | None
    pool: int
    excluded: Mapping[str, int]
    repeated: int
    unusable: int
    guarded: int
    notices: tuple[str, ...]

    def to_json(self) -> str:
        """Return the output of `--json`."""
        return json.dumps(asdict(self), indent=2)


@dataclass(slots=True)
class _Chosen:
    """Examples chosen from the pool, and counts of the others."""

    examples: list[Example] = field(default_factory=list)
    similarities: list[float] = field(default_factory=list)
    reached: set[int] = field(default_factory=set)
    read: int = 0
    repeated: int = 0
    excluded: Counter[str] = field(default_factory=Counter)


class ReplayOptions(TypedDict, total=False):
    """Options of a replay set; see `write_replay`."""

    pool: Sequence[str | Path]
    row_format: RowFormat
    include_measured: bool
    per_item: int
    limit: int | None
    min_similarity: float
    pool_columns: ColumnMap | None
    skip_unusable: bool
    excluded: str | Path | None
    overwrite: bool


def write_replay(
    comparison: Comparison, out: str | Path, **options: Unpack[ReplayOptions]
) -> ReplaySummary:
    """Write training examples that are similar to the forgotten items, as JSON lines.

    Examples that equal, contain or reword an item of either run are left out.

    Args:
        comparison: result of `compare` for two runs that were read with their texts.
        out: the file to write.
        pool: sources of examples: tables of texts, run folders or logs.
        row_format: `chat` writes messages, `prompt-completion` a prompt and a completion.
        include_measured: also write the forgotten items themselves; they are useless for evaluation
            afterwards.
        per_item: maximum number of examples for each forgotten item.
        limit: maximum number of examples in all; the best of each item first.
        min_similarity: minimum similarity of an example.
        pool_columns: `prompt`, `completion` or `messages` -> their columns in tables.
        skip_unusable: leave out rows of a table that have no text, instead of failing.
        excluded: path of a file that lists the examples left out of the pool, with reasons.
        overwrite: replace earlier files.

    Raises:
        UsageError: nothing was forgotten, there is no pool, or the evaluation items are not
            recorded, so that they could not be left out.
    """
    out, overwrite = Path(out), options.get("overwrite", False)
    pool = Pool(
        options.get("pool", ()),
        options.get("pool_columns"),
        skip_unusable=options.get("skip_unusable", False),
    )
    _check_options(out, pool, options)
    forgotten = forgotten_items(comparison)
    measured = read_measured([comparison.before, comparison.after])
    notices = _check_measured(measured, forgotten) if pool.sources else []
    with _listing(options.get("excluded"), overwrite=overwrite) as listing:
        chosen = _choose(pool, measured, forgotten, options, listing)
    own = [*filter(None, map(_own_example, forgotten))] if options.get("include_measured") else []
    notices += [MEASURED.format(count=counted(len(own), "item"))] if own else []
    _refuse_nothing(chosen, own, pool)
    with complete_file(out, overwrite=overwrite) as file:
        for row in _rows([*chosen.examples, *own], options.get("row_format", "chat")):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return ReplaySummary(
        out=str(out),
        rows=len(chosen.examples) + len(own),
        measured=len(own),
        forgotten=len(forgotten),
        reached=len(chosen.reached),
        similarity=round(median(chosen.similarities), 3) if chosen.similarities else None,
        pool=chosen.read,
        excluded={why: chosen.excluded[why] for why in WHYS},
        repeated=chosen.repeated,
        unusable=pool.unusable,
        guarded=len(measured),
        notices=tuple(notices),
    )


def _check_options(out: Path, pool: Pool, options: ReplayOptions) -> None:
    """Check the options before anything is read."""
    excluded = options.get("excluded")
    for path in [out] if excluded is None else [out, Path(excluded)]:
        refuse_existing_file(path, overwrite=options.get("overwrite", False))
    if not pool.sources and not options.get("include_measured"):
        raise UsageError(
            "--pool is missing",
            hint="pass training examples with --pool FILE, or train on the evaluation items "
            "themselves with --include-measured.",
        )


@contextmanager
def _listing(path: str | Path | None, *, overwrite: bool) -> Iterator[IO[str] | None]:
    """Open the file for excluded examples, if one is requested."""
    if path is None:
        yield None
        return
    with complete_file(Path(path), overwrite=overwrite) as file:
        yield file


def forgotten_items(comparison: Comparison) -> list[MeasuredItem]:
    """Return every item that was right before and wrong after, once.

    Raises:
        UsageError: nothing was forgotten.
    """
    with reading(comparison.before, comparison.after):
        rows = comparison.flip_frame("forgotten").collect().rows(named=True)
    sides = [items_of(comparison.before), items_of(comparison.after)]
    forgotten: dict[tuple[str, str], MeasuredItem] = {}
    for row in rows:
        keys = (row["task"], str(row["item"])), (row["task"], str(row["item_after"]))
        known = [side[key] for side, key in zip(sides, keys, strict=True) if key in side]
        # Learn from the side that recorded the question.
        best = max(known, key=lambda item: (item.has_text and item.is_bare, item.has_text))
        forgotten.setdefault(keys[0], best)
    if not forgotten:
        raise UsageError(
            f"{comparison.after.name} forgot no item that {comparison.before.name} had right",
            hint="there is nothing to replay; see `forgetmap compare` for what was compared.",
        )
    return list(forgotten.values())


def _check_measured(
    measured: Sequence[MeasuredItem], forgotten: Sequence[MeasuredItem]
) -> list[str]:
    """Refuse if copies of evaluation items cannot be detected; warn if detection is limited."""
    hint = "compare logs or runs that contain questions, or add a column `question` to the table."
    unknown = sum(not item.has_text and item.question_hash is None for item in measured)
    if unknown:
        raise UsageError(
            f"{unknown:,} of {counted(len(measured), 'evaluation item')} have no recorded "
            "question, so training examples that leak them could not be left out",
            hint=hint,
        )
    if not any(item.has_text for item in forgotten):
        raise UsageError("no forgotten item has a recorded question", hint=hint)
    hashed = sum(not item.has_text for item in measured)
    if not hashed:
        return []
    return [f"{counted(hashed, 'item')} are known only by a hash: only exact copies are left out."]


def _choose(
    pool: Pool,
    measured: Sequence[MeasuredItem],
    forgotten: Sequence[MeasuredItem],
    options: ReplayOptions,
    listing: IO[str] | None,
) -> _Chosen:
    """Read the pool once and keep examples similar to a forgotten item that leak no item."""
    chosen = _Chosen()
    if not pool.sources:
        return chosen
    finder = DuplicateFinder(measured)
    search = NeighbourSearch(
        [plain_words(f"{item.question} {item.gold}") for item in forgotten],
        [plain_words(item.question) for item in measured],
        per_item=options.get("per_item", PER_ITEM),
        least=options.get("min_similarity", MIN_SIMILARITY),
    )
    examples_by_number: dict[int, Example] = {}
    seen: set[int] = set()
    for examples in _parts(pool, ROWS_PER_BATCH):
        texts = [PlainText.of(example.texts) for example in examples]
        new: list[tuple[int, bytes]] = []
        duplicates = finder.find(texts)
        for example, text, duplicate in zip(examples, texts, duplicates, strict=True):
            number, chosen.read = chosen.read, chosen.read + 1
            digest = xxh3_64_intdigest(text.words)
            if duplicate is not None:
                chosen.excluded[duplicate.why] += 1
                _list_excluded(listing, example, duplicate)
            elif digest in seen:
                chosen.repeated += 1
            else:
                seen.add(digest)
                new.append((number, text.words))
                examples_by_number[number] = example
        _add_neighbours(search, new)
        if len(examples_by_number) > MAX_HELD + 2 * len(search.kept):
            examples_by_number = {number: examples_by_number[number] for number in search.kept}
    _take_best(chosen, search, examples_by_number, options.get("limit"))
    return chosen


_Part = TypeVar("_Part")


def _parts(values: Iterable[_Part], size: int) -> Iterator[list[_Part]]:
    """Split into lists of at most this size."""
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


def _add_neighbours(search: NeighbourSearch, new: Sequence[tuple[int, bytes]]) -> None:
    size = max(1, CELLS_PER_BATCH // max(len(search), 1))
    for part in _parts(new, size):
        search.add([words for _, words in part], [number for number, _ in part])


def _take_best(
    chosen: _Chosen, search: NeighbourSearch, held: Mapping[int, Example], limit: int | None
) -> None:
    """Take the best example of every item first, then the second best, up to the limit."""
    best = search.best()
    turns = [
        (rank, -neighbour.similarity, target, neighbour.number)
        for target, neighbours in enumerate(best)
        for rank, neighbour in enumerate(neighbours)
    ]
    taken: set[int] = set()
    for _, similarity, target, number in sorted(turns):
        if number not in taken:
            if limit is not None and len(taken) >= limit:
                continue
            taken.add(number)
            chosen.examples.append(held[number])
            chosen.similarities.append(-similarity)
        chosen.reached.add(target)


def _list_excluded(listing: IO[str] | None, example: Example, duplicate: Duplicate) -> None:
    if listing is None:
        return
    row = {
        "file": example.file,
        "line": example.line,
        "pool_item": example.item,
        "why": duplicate.why,
        "task": duplicate.item.task,
        "item": duplicate.item.item,
    }
    known = {name: value for name, value in row.items() if value is not None}
    listing.write(json.dumps(known, ensure_ascii=False) + "\n")


def _own_example(item: MeasuredItem) -> Example | None:
    """Return an evaluation item as a training example, if question and right answer are known."""
    if not item.question or not item.gold:
        return None
    turns = Turn("user", item.as_asked()), Turn("assistant", item.answer())
    return Example(turns, item.task, item=item.item)


def _refuse_nothing(chosen: _Chosen, own: Sequence[Example], pool: Pool) -> None:
    if chosen.examples or own:
        return
    if not pool.sources:
        raise UsageError(
            "no forgotten item has both a recorded question and a recorded right answer",
            hint="compare logs or runs that contain questions and right answers.",
        )
    out = sum(chosen.excluded.values())
    raise UsageError(
        f"none of {counted(chosen.read, 'training example')} was chosen: {out:,} leak an "
        "evaluation item, and the others are not similar to any forgotten item",
        hint="use a larger --pool, or a lower --min-similarity.",
    )


def _rows(examples: Sequence[Example], row_format: RowFormat) -> Iterator[dict[str, Any]]:
    """Return rows of one shape: all prompts are lists of messages if one of them must be."""
    is_plain = all([turn.role for turn in e.turns] == ["user", "assistant"] for e in examples)
    for example in examples:
        messages = [turn._asdict() for turn in example.turns]
        if row_format == "chat":
            yield {"messages": messages}
        elif is_plain:
            yield {"prompt": messages[0]["content"], "completion": messages[1]["content"]}
        else:
            yield {"prompt": messages[:-1], "completion": messages[-1:]}
