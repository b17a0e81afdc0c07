"""A process that scores batches as they come through its pipe (see crew.py)."""

from __future__ import annotations

import struct
import sys
from typing import IO, cast

import pyarrow as pa

from forgetmap.capabilities.scoring_batches import score_rows
from forgetmap.records import refuse_pandas
from forgetmap.scoring import RuleScorer, find_scorer

_LENGTH = struct.Struct("<Q")
SCORER = b"scorer"


def write_message(stream: IO[bytes] | None, name: str, batch: pa.RecordBatch) -> None:
    """Send a batch and the name of its scorer."""
    assert stream is not None  # noqa: S101  # it was opened as a pipe
    named = batch.replace_schema_metadata({SCORER: name.encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, named.schema) as writer:
        writer.write_batch(named)
    message = sink.getvalue()
    stream.write(_LENGTH.pack(message.size))
    stream.write(message)
    stream.flush()


def read_message(stream: IO[bytes] | None) -> tuple[str, pa.RecordBatch] | None:
    """Receive one; None at the end, or where the other side broke off."""
    assert stream is not None  # noqa: S101  # it was opened as a pipe
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        return None
    with pa.ipc.open_stream(body) as reader:
        batch = reader.read_next_batch()
        return reader.schema.metadata[SCORER].decode(), batch


def main() -> None:
    """Score whatever comes until nothing comes any more."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the messages
    while (message := read_message(source)) is not None:
        name, batch = message
        write_message(sink, name, score_rows(cast("RuleScorer", find_scorer(name)), batch))


if __name__ == "__main__":
    refuse_pandas()
    main()
