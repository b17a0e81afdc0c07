"""Samples of an Inspect log: members of an archive, or elements of one document.

header.json, _journal/start.json         about the run; the first is written when it ends
summaries.json, _journal/summaries/N.json  all samples without messages, long texts truncated
samples/ID_epoch_N.json                  a sample
samples/ID_epoch_N/sample.json           the same in pieces: messages/K.json, attachments/K.json
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

from forgetmap.errors import TRUNCATED_HINT, UnreadableError
from forgetmap.sources.adapter import Log, Problems
from forgetmap.sources.decode import UNDECODABLE, Malformed, decode, decode_slowly, with_lines
from forgetmap.sources.fields import Fields, as_list, as_mapping
from forgetmap.sources.files import Archive, LogFile
from forgetmap.sources.harnesses.inspect.sample import is_cut, is_thinner

HEADER, START, SUMMARIES = "header.json", "_journal/start.json", "summaries.json"
_JOURNAL = re.compile(r"_journal/summaries/([0-9]{1,9})\.json")
_SAMPLE = re.compile(r"samples/(.+)_epoch_([0-9]{1,9})(?:\.json|/sample\.json)", re.DOTALL)
_PIECE = re.compile(
    r"(samples/.+_epoch_[0-9]{1,9}/(?:messages|attachments)/)([0-9]{1,9})\.json", re.DOTALL
)
_ROOT, _REFERENCE = "/sample.json", b"attachment://"
_MARKS = frozenset({"created", "task", "task_id", "run_id", "eval_id", "dataset", "model"})

Key = tuple[str, int]
"""Id of the item, as text, and epoch."""


class _Header(msgspec.Struct):
    """The fields of a document about the run; its samples are skipped."""

    status: Any = None
    eval: Any = None
    plan: Any = None
    results: Any = None
    invalidated: Any = None


class _Document(msgspec.Struct):
    samples: list[msgspec.Raw] | None = None


class _Sample(msgspec.Struct):
    """The fields read of a sample; its events, by far the largest part, are skipped."""

    id: Any = None
    epoch: Any = None
    input: Any = None
    choices: Any = None
    target: Any = None
    scores: Any = None
    score: Any = None
    metadata: Any = None
    model_usage: Any = None
    error: Any = None
    limit: Any = None
    invalidation: Any = None
    attachments: Any = None
    message_refs: Any = None


class _SampleWithTexts(_Sample):
    messages: Any = None
    output: Any = None


_decode_header = msgspec.json.Decoder(_Header)
_decode_document = msgspec.json.Decoder(_Document)
_decode_sample: dict[bool, msgspec.json.Decoder[Any]] = {
    False: msgspec.json.Decoder(_Sample),
    True: msgspec.json.Decoder(_SampleWithTexts),
}


def archive_header(file: LogFile, archive: Archive) -> dict[str, Any] | None:
    """Return the header of an archive; None if it is not a log of Inspect.

    Raises:
        UnreadableError: the header of the log cannot be read.
    """
    members = set(archive.members)
    if START not in members and not (HEADER in members and _holds_samples(members)):
        return None
    for member in (HEADER, START):
        try:
            header = (
                _decode_fields(archive.read(member), _decode_header) if member in members else {}
            )
        except (Malformed, UnreadableError):
            continue
        if isinstance(header.get("eval"), dict):
            return header
    raise UnreadableError(
        "neither header.json nor _journal/start.json of this Inspect log can be read",
        file=file.name,
        hint=f"{TRUNCATED_HINT} Or write it again with `inspect log convert`.",
    )


def document_header(file: LogFile) -> dict[str, Any] | None:
    """Return the header of a single document; None if it is not a log of Inspect."""
    first = file.peek.first
    spec, samples = first.get("eval"), first.get("samples")
    if not (_is_spec(spec) or _are_samples(samples)) or file.peek.shape == "array":
        return None
    if "stats" in first:
        return dict(first)
    try:
        header = _decode_fields(file.read(), _decode_header)
    except Malformed as error:
        raise _broken(file, error) from None
    return header if _is_spec(header.get("eval")) else None


def samples_of(log: Log, problems: Problems, *, texts: bool) -> Iterator[tuple[Key, Fields]]:
    """Iterate over the samples of a log; without `texts`, over summaries that are complete."""
    file = log.files[0]
    if file.archive is not None and file.member is None:
        return _Members(log, file.archive, problems, texts=texts).rows()
    rows = _elements(file, problems, texts=texts)
    return ((key, row) for row in rows if (key := key_of(row)))


class _Members:
    """The samples in an archive."""

    def __init__(self, log: Log, archive: Archive, problems: Problems, *, texts: bool) -> None:
        self._log, self._archive, self._problems = log, archive, problems
        self._texts, self._members = texts, frozenset(archive.members)
        matches = ((_SAMPLE.fullmatch(member), member) for member in archive.members)
        self._sample_members: dict[Key, str] = {
            (match[1], int(match[2])): member for match, member in matches if match
        }

    def rows(self) -> Iterator[tuple[Key, Fields]]:
        """Iterate over the samples: the summary of each if it is complete, else the sample."""
        summaries = self._summaries()
        needs_sample = self._texts or self._log.notes["invalidated"] or self._are_thin(summaries)
        for key in dict.fromkeys([*summaries, *self._sample_members]):
            row = summaries.get(key)
            if key in self._sample_members and (needs_sample or row is None or is_cut(row.values)):
                row = self._sample(key) or row
            if row is not None:
                yield key, row

    def _are_thin(self, summaries: dict[Key, Fields]) -> bool:
        """Whether the summaries lack fields of the samples, as those of older versions do."""
        key = next((key for key in summaries if key in self._sample_members), None)
        sample = self._sample(key) if key is not None else None
        if key is None or sample is None:
            return False
        return is_thinner(summaries[key].values, sample.values)

    def _summaries(self) -> dict[Key, Fields]:
        """Return the summaries; the last one of each sample counts."""
        summaries: dict[Key, Fields] = {}
        for member in self._summary_members:
            rows = self._decoded(member)
            if rows is not None and not isinstance(rows, list):
                self._problems.add(self._file(member).name, "expected a list of samples")
            for values in as_list(rows):
                row = Fields(as_mapping(values), self._file(member), None, self._problems)
                key = key_of(row)
                if key is not None:
                    summaries[key] = row
        return summaries

    @cached_property
    def _summary_members(self) -> list[str]:
        """Members with summaries: one for all samples, or those of an unfinished evaluation."""
        if SUMMARIES in self._members:
            return [SUMMARIES]
        pieces = ((_JOURNAL.fullmatch(member), member) for member in self._members)
        return [member for _, member in sorted((int(m[1]), name) for m, name in pieces if m)]

    def _sample(self, key: Key) -> Fields | None:
        member = self._sample_members[key]
        data = self._read(member)
        if data is None:
            return None
        try:
            values = _decode_fields(data, _decode_sample[self._texts])
        except Malformed as error:
            self._problems.add(self._file(member).name, str(error))
            return None
        if member.endswith(_ROOT):
            self._put_together(values, member.removesuffix(_ROOT), refers=_REFERENCE in data)
        row = Fields(values, self._file(member), None, self._problems)
        if key_of(row) != key:
            row.report_problem(
                f"the name of this file belongs to another sample: {key[0]!r:.60}", "id"
            )
            return None
        return row

    def _put_together(self, values: dict[str, Any], folder: str, *, refers: bool) -> None:
        """Add the parts of a sample that are stored in other members."""
        if f"{folder}/metadata.json" in self._members:
            values["metadata"] = self._decoded(f"{folder}/metadata.json")
        if self._texts:
            messages = self._sequence(f"{folder}/messages/")
            values["messages"] = list(_referred(messages, values.get("message_refs")))
        if self._texts or refers:
            attachments = self._sequence(f"{folder}/attachments/")
            values["attachments"] = {str(at): text for at, text in attachments.items()}

    def _sequence(self, folder: str) -> dict[int, Any]:
        """Join a list stored in pieces, each named by the index of its first element."""
        elements: dict[int, Any] = {}
        for start in self._pieces.get(folder, ()):
            piece = self._decoded(f"{folder}{start}.json")
            elements.update(enumerate(as_list(piece), start=start))
        return elements

    @cached_property
    def _pieces(self) -> dict[str, list[int]]:
        """Folder -> indices at which its pieces begin."""
        starts_of: dict[str, list[int]] = defaultdict(list)
        for member in self._members:
            if match := _PIECE.fullmatch(member):
                starts_of[match[1]].append(int(match[2]))
        return {folder: sorted(starts) for folder, starts in starts_of.items()}

    def _decoded(self, member: str) -> Any:
        """Return the value in a member; otherwise add a problem and return None."""
        data = self._read(member)
        try:
            return None if data is None else decode(data)
        except Malformed as error:
            self._problems.add(self._file(member).name, str(error))
            return None

    def _read(self, member: str) -> bytes | None:
        try:
            return self._archive.read(member)
        except UnreadableError as error:
            self._problems.add(self._file(member).name, error.message)
            return None

    def _file(self, member: str) -> LogFile:
        file = self._log.files[0]
        name, inside = f"{file.name}/{member}", f"{file.inside}/{member}"
        return LogFile(file.path, name, inside, member, self._archive)


def _elements(file: LogFile, problems: Problems, *, texts: bool) -> Iterator[Fields]:
    """Iterate over the samples of a document, with the line each begins in."""
    data = file.read()
    try:
        raws: list[Any] = _decode_document.decode(data).samples or []
    except UNDECODABLE:
        yield from _slow_elements(data, file, problems)
        return
    for line, raw in with_lines(data, raws):
        try:
            yield Fields(_decode_fields(raw, _decode_sample[texts]), file, line, problems)
        except Malformed as error:
            problems.add(file.name, str(error), line=line)


def _slow_elements(data: bytes, file: LogFile, problems: Problems) -> Iterator[Fields]:
    """Iterate over the samples of a document that contains bare NaN."""
    try:
        document = decode_slowly(data)
    except Malformed as error:
        raise _broken(file, error) from None
    samples = as_mapping(document).get("samples")
    if samples is not None and not isinstance(samples, list):
        problems.add(file.name, "expected a list of samples", field="samples")
    for values in as_list(samples):
        if isinstance(values, dict):
            yield Fields(values, file, None, problems)
        else:
            problems.add(file.name, "a sample is not an object", field="samples")


def _decode_fields(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[Any]) -> dict[str, Any]:
    """Return the fields of a decoder's type; all fields if the text contains bare NaN.

    Raises:
        Malformed: the text is not an object.
    """
    try:
        return msgspec.structs.asdict(decoder.decode(data))
    except UNDECODABLE:
        value = decode_slowly(bytes(data))
    if not isinstance(value, dict):
        raise Malformed("expected an object")
    return value


def key_of(row: Fields) -> Key | None:
    """Return id and epoch of a sample; if either is missing, report it and return None."""
    item, epoch = row.name("id"), row.count("epoch")
    if item is not None and epoch:
        return item, epoch
    row.report_problem("the sample has no id or no epoch")
    return None


def _referred(messages: dict[int, Any], ranges: object) -> Iterator[Any]:
    """Iterate over the messages in these ranges of indices."""
    last = max(messages, default=-1)
    for reference in as_list(ranges):
        match reference:
            case [int(start), int(end)]:
                indexes = range(max(start, 0), min(end, last + 1))
                yield from (messages[at] for at in indexes if at in messages)


def _holds_samples(members: set[str]) -> bool:
    return SUMMARIES in members or any(member.startswith("samples/") for member in members)


def _is_spec(spec: object) -> bool:
    return isinstance(spec, dict) and len(_MARKS & spec.keys()) > 1


def _are_samples(samples: object) -> bool:
    """Whether a document that begins with its samples may be one of Inspect."""
    first = next(iter(as_list(samples)), None)
    return {"id", "epoch", "input"} <= as_mapping(first).keys()


def _broken(file: LogFile, error: Malformed) -> UnreadableError:
    return UnreadableError(str(error), file=file.name, hint=TRUNCATED_HINT)
