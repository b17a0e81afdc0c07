"""Hostile logs lead to a typed error or a problem, within limits, and write nothing elsewhere."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from command_line import call
from forgetmap.errors import ForgetmapError, UnknownFormatError, UnreadableError
from forgetmap.sources.files import LogFile
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run

LONGEST_SECONDS = 20
"""Of the processor: a busy machine takes longer by the clock."""
MOST_BYTES = 1 << 30


def question(number: int, **changed: Any) -> dict[str, Any]:
    """One row of a real format."""
    row = {
        "question_id": number,
        "question": f"How many legs have {number} spiders?",
        "options": [str(8 * number), "many", "none"],
        "answer": "A",
        "pred": "A",
        "category": "biology",
        "model_outputs": "The answer is (A).",
    }
    return row | changed


def log(*rows: dict[str, Any]) -> bytes:
    return json.dumps(list(rows)).encode()


def zipped(members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def lying_size(content: bytes, size: int) -> bytes:
    """A zip whose directory says that its only member unpacks to so many bytes."""
    packed = bytearray(zipped({"log.json": content}))
    at = packed.rindex(b"PK\x01\x02")
    packed[at + 24 : at + 28] = size.to_bytes(4, "little")
    return bytes(packed)


def zstandard_with_lying_size() -> bytes:
    """A member of 300 MB, packed as zstandard, said to be as small as its packed form."""
    bomb = pa.Codec("zstd").compress(b"[" * (300 << 20), asbytes=True)
    packed = bytearray(zipped({"samples/1.json": bomb}, zipfile.ZIP_STORED))
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = packed.index(mark)
        packed[at + place : at + place + 2] = (93).to_bytes(2, "little")
    return bytes(packed)


class Evil:
    """Does something when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch unpickled",)


DEEP = 100_000
BAD_FILES: dict[str, bytes | Callable[[], bytes]] = {
    "nothing": b"",
    "only blanks": b" \n\n\t\n",
    "only NUL": b"\0" * 10_000,
    "only a byte order mark": b"\xef\xbb\xbf",
    "UTF-16": log(question(1)).decode().encode("utf-16"),
    "UTF-16 without mark": log(question(1)).decode().encode("utf-16-le"),
    "UTF-32": log(question(1)).decode().encode("utf-32"),
    "brackets": b"[" * DEEP,
    "braces": b'{"a":' * DEEP,
    "deep and closed": b"[" * DEEP + b"]" * DEEP,
    "deep row": b'{"question_id": 1, "question": ' + b"[" * DEEP + b"]" * DEEP + b"}\n",
    "pickle": pickle.dumps(Evil()),
    "old pickle": pickle.dumps(Evil(), protocol=0),
    "gzipped pickle": gzip.compress(pickle.dumps(Evil())),
    "zipped pickle": zipped({"data.pkl": pickle.dumps(Evil())}),
    "empty zip": zipped({}),
    "zip cut off": zipped({"log.json": log(question(1))})[:-30],
    "zip of a zip": zipped({"a.zip": zipped({"log.json": log(question(1))})}),
    "zip without end": b"PK\x03\x04" + b"\0" * 1000,
    "gzip cut off": gzip.compress(log(*map(question, range(2000))))[:-2000],
    "gzip of nothing": gzip.compress(b""),
    "gzip header": b"\x1f\x8b",
    "gzip of brackets": lambda: gzip.compress(b"[" * (40 << 20)),
    "gzip of NUL": lambda: gzip.compress(b"\0" * (40 << 20)),
    "zip of brackets": lambda: zipped({"log.json": b"[" * (40 << 20)}),
    "zip of a long string": lambda: zipped({"l": b'[{"question_id": "' + b"a" * (40 << 20)}),
    "size said too large": lying_size(log(question(1)), 2**32 - 2),
    "size said too small": lying_size(log(*map(question, range(50))), 100),
    "zstandard with a lying size": zstandard_with_lying_size,
    "Parquet cut off": b"PAR1" + b"\0" * 100,
    "Parquet of nothing": b"PAR1PAR1",
}
"""Content, or what makes it: a worker that does not run these tests need not pack 400 MB."""


@cache
def bad_content(name: str) -> bytes:
    content = BAD_FILES[name]
    return content if isinstance(content, bytes) else content()


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@contextmanager
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < LONGEST_SECONDS


def refused(path: Path) -> ForgetmapError:
    """The error, the same for a library and at the command line."""
    with soon(), pytest.raises(ForgetmapError) as caught:
        open_run(path)
    done = call("compare", path, path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: ")
    assert "Hint: " in done.err
    assert list(Path.cwd().iterdir()) == []
    return caught.value


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(bad_content(name))
    refused(path)


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_folder_of_nothing_but_a_bad_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.json").write_bytes(bad_content(name))
    refused(tmp_path / "run")


@pytest.mark.parametrize("name", ["pickle", "gzipped pickle", "zipped pickle"])
def test_pickles_are_called_so(name: str, tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_bytes(bad_content(name))
    assert "pickle" in str(refused(path))


def test_a_pickle_beside_logs_is_never_opened(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "cache.pkl").write_bytes(pickle.dumps(Evil()))
    (run / "log.json").write_bytes(log(question(1), question(2)))
    assert items(run) == ["1", "2"]
    assert list(Path.cwd().iterdir()) == []


def items(path: Path) -> list[str]:
    run = open_run(path, reading=Reading(cached=False))
    return sorted(run.scores.collect()["item"].to_list())


OUTSIDE = ["../../outside.json", "/etc/outside.json", "a\\..\\..\\outside.json", "C:\\outside.json"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_outside_lead_nowhere(name: str, tmp_path: Path) -> None:
    """Members are read where they are; their names are only shown."""
    path = tmp_path / "a" / "b" / "logs.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(zipped({name: log(question(1), question(2))}))
    assert items(path) == ["1", "2"]
    assert not list(tmp_path.rglob("*outside*"))
    assert not Path("/etc/outside.json").exists()


def test_members_of_the_same_name(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("log.json", log(question(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("log.json", log(question(2)))
    (tmp_path / "logs.zip").write_bytes(packed.getvalue())
    with soon():
        assert items(tmp_path / "logs.zip") == ["2"]


def test_an_archive_of_very_many_members(tmp_path: Path) -> None:
    many = {f"notes/{number}.txt": b"" for number in range(30_000)}
    (tmp_path / "logs.zip").write_bytes(zipped({**many, "log.json": log(question(1))}))
    with soon():
        assert items(tmp_path / "logs.zip") == ["1"]


def test_a_password_is_asked_for(tmp_path: Path) -> None:
    packed = bytearray(zipped({"log.json": log(question(1))}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        packed[packed.index(mark) + place] |= 1
    (tmp_path / "logs.zip").write_bytes(bytes(packed))
    assert "password" in str(refused(tmp_path / "logs.zip"))


@pytest.mark.parametrize("place", ["question_id", "question", "options", "answer", "pred", "x"])
def test_one_deep_row_costs_only_itself(place: str, tmp_path: Path) -> None:
    """Whatever field holds it, and whatever it is made of."""
    for depth in (500, 900, 960, 2_000, DEEP):
        for opened, closed in (("[", "]"), ('{"a":', "}")):
            inner = opened * depth + "1" + closed * depth
            row = json.dumps(question(2, **{place: "DEEP"})).replace('"DEEP"', inner)
            lines = [json.dumps(question(1)), row, json.dumps(question(3))]
            path = tmp_path / f"log-{depth}.jsonl"
            path.write_text("\n".join(lines) + "\n")
            with soon():
                found = items(path)
            assert [item for item in found if item in {"1", "3"}] == ["1", "3"]


def test_a_line_of_100_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as out:
        out.write(json.dumps(question(1)).encode() + b"\n")
        out.write(b'{"question_id": 2, "question": "' + b"a" * (100 << 20) + b'"}\n')
    error = refused(path)
    assert isinstance(error, UnreadableError)
    assert error.line == 2


def test_latin_1_in_one_row(tmp_path: Path) -> None:
    lines = [json.dumps(question(number)).encode() for number in (1, 2, 3)]
    lines[1] = lines[1].replace(b"spiders", "K\u00e4fer".encode("latin-1"))
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines))
    assert items(path) == ["1", "3"]
    run = open_run(path)
    assert [(each.line, each.message) for each in run.problems] == [(2, "not UTF-8: byte 0xe4")]


def test_nul_in_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(log(question(1, question="a\0b", model_outputs="\0"), question(2)))
    assert items(path) == ["1", "2"]


def test_links_that_lead_in_circles_or_nowhere(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "deep").mkdir(parents=True)
    (run / "deep" / "log.json").write_bytes(log(question(1)))
    (run / "deep" / "up").symlink_to(run)
    (run / "self").symlink_to("self")
    (run / "gone.json").symlink_to(tmp_path / "gone")
    with soon():
        assert items(run) == ["1"]


@pytest.mark.parametrize("target", ["link", "gone"])
def test_a_link_to_itself_or_to_nothing(target: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(target)
    refused(tmp_path / "link")


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    os.mkfifo(run / "samples.jsonl")
    assert isinstance(refused(run / "samples.jsonl"), UnknownFormatError)
    refused(run)
    (run / "log.json").write_bytes(log(question(1)))
    with soon():
        assert items(run) == ["1"]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_refused(device: str) -> None:
    refused(Path(device))


def test_folders_named_like_files(tmp_path: Path) -> None:
    (tmp_path / "run" / "samples.jsonl").mkdir(parents=True)
    refused(tmp_path / "run")
    (tmp_path / "run" / "samples.jsonl" / "x").write_bytes(log(question(1)))
    assert items(tmp_path / "run") == ["1"]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Permissions mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("kind", ["file", "folder", "file in a folder", "folder in a folder"])
def test_what_may_not_be_read(kind: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "inner").mkdir(parents=True)
    (run / "inner" / "log.json").write_bytes(log(question(1)))
    assert items(run) == ["1"]
    locked = {
        "file": run / "inner" / "log.json",
        "folder": run / "inner",
        "file in a folder": run / "inner" / "log.json",
        "folder in a folder": run / "inner",
    }[kind]
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(0o755)
    locked.chmod(0)
    try:
        with as_nobody(), pytest.raises(UnreadableError, match="Permission denied"):
            open_run(run if "in a" in kind else locked)
    finally:
        locked.chmod(0o755)


BOUNDED = """
import resource, sys, time
from pathlib import Path
from forgetmap.errors import ForgetmapError
from forgetmap.sources.open import open_run
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
start = time.process_time()
try:
    open_run(Path(sys.argv[1]))
except ForgetmapError as error:
    print(type(error).__name__, file=sys.stderr)
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(peak, time.process_time() - start)
"""


def sparse(path: Path) -> None:
    with path.open("wb") as out:
        out.truncate(50 << 30)


def sparse_array(path: Path) -> None:
    with path.open("wb") as out:
        out.write(log(question(1))[:-1] + b",")
        out.truncate(50 << 30)


def sparse_lines(path: Path) -> None:
    with path.open("wb") as out:
        out.write(json.dumps(question(1)).encode() + b"\n")
        out.truncate(50 << 30)


def blank_lines(path: Path) -> None:
    row = json.dumps(question(1)).encode()
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(row + b"\n" + row + b"\n")
        for _ in range(300):
            out.write(b"\n" * (1 << 20))


def one_value(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("log.json", "w", force_zip64=True) as out,
    ):
        out.write(log(question(1))[:-1] + b',{"a": "')
        for _ in range(2100):
            out.write(b"a" * (1 << 20))


def zip_in_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(zipped({"x": b"\0" * (200 << 20)}, zipfile.ZIP_STORED)))


@pytest.mark.parametrize(
    "bomb", [sparse, sparse_array, sparse_lines, blank_lines, one_value, zip_in_gzip]
)
def test_bombs_take_bounded_memory_and_time(bomb: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    bomb(path)
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, path], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    peak, seconds = map(float, done.stdout.split())
    assert peak < MOST_BYTES
    assert seconds < LONGEST_SECONDS


def test_heads_of_many_large_files_are_short(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(log(question(1)) + b" " * (1 << 20))
    assert len(LogFile(path, "log", "log").head) == 1 << 17
