"""Folders in buckets and on a hub: listed once, read in parallel, resumed, cached by etag."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fsspec.config
import pytest
from s3fs import S3FileSystem

import forgetmap as fm
from command_line import SCRIPT, call
from forgetmap.errors import (
    ColumnError,
    ForbiddenError,
    MissingInputError,
    NetworkError,
    UsageError,
)
from forgetmap.sources import Reading, TableMap, save_map
from forgetmap.sources.open import open_run
from forgetmap.sources.remote import PARALLEL, fetch
from remote_servers import Hub, served_hub

FILES = 12
NAMES = [f"part-{number % 3}/{number:02}.jsonl" for number in range(FILES)]
PASSWORD = "hunter2secret"


def content(number: int) -> bytes:
    """Two items of a task of its own."""
    return (
        f'{{"task": "t{number}", "item": "a", "score": 1}}\n'
        f'{{"task": "t{number}", "item": "b", "score": {number % 2}}}\n'
    ).encode()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    return tmp_path / "cache"


@dataclass
class Store:
    """A real S3 server on this machine; every request is noted, and may be answered otherwise."""

    address: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    before: Callable[[str, str], tuple[str, bytes] | None] = lambda *_: None

    def __call__(self, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        """The application with a look at each request."""

        def watched(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            method, path = environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"])
            kind = "LIST" if "list-type" in environ["QUERY_STRING"] else method
            self.asked.append((kind, path))
            answer = self.before(kind, path)
            if answer is None:
                return app(environ, start)
            start(answer[0], [("Content-Length", str(len(answer[1])))])
            return [answer[1]]

        return watched

    def count(self, kind: str) -> int:
        """How many requests of a kind there were."""
        return sum(asked == kind for asked, _ in self.asked)

    def got(self) -> list[str]:
        """The files that were fetched."""
        return sorted(path for kind, path in self.asked if kind == "GET")


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    server.get_host_and_port()
    yield server
    server.stop()


@pytest.fixture
def store(server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A bucket `evals` with a folder of twelve files in three folders."""
    store = Store("http://{}:{}".format(*server.get_host_and_port()))
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    S3FileSystem.clear_instance_cache()  # it may know another server
    put("evals", {f"tuned/{name}": content(number) for number, name in enumerate(NAMES)})
    app = server._server.app
    server._server.app = store(app)
    yield store
    server._server.app = app


def put(bucket: str, files: dict[str, bytes], **options: Any) -> None:
    import boto3

    client = boto3.client("s3")
    client.create_bucket(Bucket=bucket)
    for key, body in files.items():
        client.put_object(Bucket=bucket, Key=key, Body=body, **options)


def paths_below(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def together(count: int) -> Callable[[str, str], None]:
    """Every GET waits until so many of them are under way."""
    barrier = threading.Barrier(count)

    def wait(kind: str, _: str) -> None:
        if kind == "GET":
            barrier.wait(60)

    return wait


def test_a_bucket_is_listed_once_and_its_files_come_at_the_same_time(store: Store) -> None:
    store.before = together(FILES // 3)
    copy = fetch("s3://evals/tuned")
    assert paths_below(copy.path) == sorted(NAMES)
    assert [copy.path.joinpath(n).read_bytes() for n in NAMES] == [*map(content, range(FILES))]
    assert (store.count("LIST"), store.count("GET"), store.count("HEAD")) == (1, FILES, 0)
    assert PARALLEL < FILES


def test_the_second_time_nothing_is_fetched(store: Store) -> None:
    fetch("s3://evals/tuned")
    store.asked.clear()
    assert fetch("s3://evals/tuned").downloaded == 0
    assert store.asked == [("LIST", "/evals")]


def test_exactly_the_file_with_another_etag_is_fetched_again(store: Store) -> None:
    """One at the same size; one that was only put there anew is the same file."""
    fetch("s3://evals/tuned")
    put("evals", {f"tuned/{NAMES[3]}": content(4), f"tuned/{NAMES[5]}": content(5)})
    store.asked.clear()
    copy = fetch("s3://evals/tuned")
    assert (copy.downloaded, store.got()) == (1, [f"/evals/tuned/{NAMES[3]}"])
    assert (copy.path / NAMES[3]).read_bytes() == content(4)


def test_a_kill_in_the_middle_costs_only_what_was_missing(
    store: Store, cache: Path, tmp_path: Path
) -> None:
    """Five files arrive, the others never do; the process dies without a word."""
    passed = threading.Semaphore(5)
    killed = threading.Event()

    def hold(kind: str, _: str) -> tuple[str, bytes] | None:
        if kind == "GET" and not passed.acquire(blocking=False):
            killed.wait(120)
            return "503 Too late", b""
        return None

    store.before = hold
    code = "from forgetmap.sources.remote import fetch; fetch('s3://evals/tuned')"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 100
        while len(whole_parts(cache)) < 5 and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    killed.set()
    assert len(whole_parts(cache)) == 5
    store.before, store.asked = (lambda *_: None), []
    copy = fetch("s3://evals/tuned")
    assert store.count("GET") == FILES - 5
    assert paths_below(copy.path) == sorted(NAMES)
    assert [copy.path.joinpath(n).read_bytes() for n in NAMES] == [*map(content, range(FILES))]


def whole_parts(cache: Path) -> list[Path]:
    """The files that have arrived in full, and are not yet part of a copy."""
    files = (path for path in cache.rglob("files/*") if path.suffix != ".part")
    sizes = {len(content(number)) for number in range(FILES)}
    return [path for path in files if path.stat().st_size in sizes]


def test_half_a_file_is_never_taken_for_a_whole_one(store: Store, cache: Path) -> None:
    """It is written anew between listing and fetching; what is whole is kept."""
    store.before = lambda kind, path: (
        ("200 OK", content(0)[:20]) if kind == "GET" and path.endswith(NAMES[0]) else None
    )
    with pytest.raises(
        NetworkError, match=r"20 of \d+ bytes of part-0/00.jsonl were received"
    ) as error:
        fetch("s3://evals/tuned")
    assert "the part already fetched is kept" in error.value.hint
    assert not list(cache.rglob("*.jsonl"))
    store.before, store.asked = (lambda *_: None), []
    copy = fetch("s3://evals/tuned")
    assert store.got() == [f"/evals/tuned/{NAMES[0]}"]
    assert [copy.path.joinpath(n).read_bytes() for n in NAMES] == [*map(content, range(FILES))]


def test_two_at_once_fetch_each_file_once(store: Store) -> None:
    copies: list[int] = []
    workers = [
        threading.Thread(target=lambda: copies.append(fetch("s3://evals/tuned").downloaded))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(copies) == [0, FILES]
    assert store.count("GET") == FILES


def test_progress_counts_the_bytes_that_are_fetched(store: Store) -> None:
    told: list[tuple[int, int]] = []
    fetch("s3://evals/tuned", on_progress=lambda _, done, total: told.append((done, total)))
    size = sum(len(content(number)) for number in range(FILES))
    assert told[-1] == (size, size)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    put("evals", {f"tuned/{NAMES[3]}": content(4)})
    told.clear()
    fetch("s3://evals/tuned", on_progress=lambda _, done, total: told.append((done, total)))
    assert told[-1] == (len(content(4)), len(content(4)))


def test_progress_in_words(store: Store) -> None:
    said: list[str] = []
    put("evals", {"base.jsonl": results_of([1, 1, 0, 0])})
    open_run("s3://evals/base.jsonl", reading=Reading(progress=said.append))
    assert said[-1] == "Fetching base.jsonl: 0.2 of 0.2 kB"


def results_of(scores: list[int]) -> bytes:
    rows = (f'{{"task": "t", "item": "i{n}", "score": {s}}}\n' for n, s in enumerate(scores))
    return "".join(rows).encode()


def test_what_is_gone_or_became_a_folder(store: Store) -> None:
    import boto3

    put("other", {"run/a": b"{}", "run/b.jsonl": b"{}", "run/deep/c.jsonl": b"{}"})
    assert paths_below(fetch("s3://other/run").path) == ["a", "b.jsonl", "deep/c.jsonl"]
    client = boto3.client("s3")
    for key in ("run/a", "run/b.jsonl", "run/deep/c.jsonl"):
        client.delete_object(Bucket="other", Key=key)
    put("other", {"run/a/inner.jsonl": b"{}", "run/deep": b"{}"})
    assert paths_below(fetch("s3://other/run").path) == ["a/inner.jsonl", "deep"]


@pytest.mark.parametrize("place", ["tunde", "tuned/gone.jsonl"])
def test_a_missing_place(place: str, store: Store) -> None:
    with pytest.raises(MissingInputError, match="does not exist"):
        open_run(f"s3://evals/{place}")


def test_a_denied_bucket(store: Store) -> None:
    store.before = lambda *_: ("403 Forbidden", b"<Error><Code>AccessDenied</Code></Error>")
    with pytest.raises(ForbiddenError, match="access is denied") as error:
        open_run("s3://evals/tuned")
    assert "`aws configure`" in error.value.hint


@pytest.mark.slow
def test_no_credentials_and_then_what_the_hint_says(store: Store, tmp_path: Path) -> None:
    """In a process of its own, which knows of no credentials."""
    put("evals", {"base.jsonl": results_of([1, 0])}, ACL="public-read")
    env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    env |= {
        "AWS_ENDPOINT_URL": store.address, "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_DEFAULT_REGION": "us-east-1", "HOME": str(tmp_path),
    }  # fmt: skip
    code = (
        "from forgetmap.sources.open import open_run; print(open_run('s3://evals/base.jsonl').name)"
    )
    command = shlex.join([sys.executable, "-c", code])
    done = subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, text=True, check=False
    )
    assert "ForbiddenError: s3://evals/base.jsonl: there are no credentials for it" in done.stderr
    hint = "export FSSPEC_S3_ANON=true"
    assert f"`{hint}`" in done.stderr
    done = subprocess.run(
        ["bash", "-c", f"{hint}; {command}"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("base", "")


def test_one_model_of_a_table_in_a_bucket(store: Store) -> None:
    put("evals", {"two.csv": b"item,base,tuned\na,1,0\nb,1,1\nc,0,1\n"})
    total = fm.compare("s3://evals/two.csv#base", "s3://evals/two.csv#tuned").result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 0)
    run = open_run("s3://evals/two.csv#tuned")
    assert (run.name, run.origin) == ("tuned", "s3://evals/two.csv#tuned")
    with pytest.raises(ColumnError) as error:
        open_run("s3://evals/two.csv")
    assert "s3://evals/two.csv#base" in str(error.value)


def test_a_table_in_a_bucket_is_mapped_and_read_by_the_commands_shown(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put("evals", {"odd.json": b'{"settings": {"a": 1}, "answers": {"q1": {"right": true}}}'})
    failed = call("records", "show", "s3://evals/odd.json")
    assert failed.code == 2
    assert str(tmp_path) not in failed.err
    put("evals", {"rows.jsonl": b'{"uid": "a", "pass@1": 1}\n{"uid": "b", "pass@1": 0}\n'})
    done = call("records", "map", "s3://evals/rows.jsonl")
    assert (done.code, done.err) == (0, "")
    following = done.out.splitlines()[-1].removeprefix("Next: ")
    assert following.startswith("forgetmap records show s3://evals/rows.jsonl --columns ")
    assert "2 results of 1 task" in call(*shlex.split(following)[1:]).out
    done = call("records", "map", "s3://evals/rows.jsonl", "--save-map")
    following = done.out.splitlines()[-1].removeprefix("Next: ")
    wanted = "forgetmap records show s3://evals/rows.jsonl --mapping rows.jsonl.map.toml"
    assert following == wanted
    assert "2 results of 1 task" in call(*shlex.split(following)[1:]).out


def test_a_map_is_not_saved_next_to_what_is_elsewhere(store: Store) -> None:
    with pytest.raises(UsageError, match="next to a remote table") as error:
        save_map("s3://evals/rows.jsonl", TableMap())
    assert "`forgetmap records map s3://evals/rows.jsonl`" in error.value.hint


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a data set of logs."""
    files = {f"tuned/{name}": content(number) for number, name in enumerate(NAMES)}
    files |= {"base.jsonl": results_of([1, 1, 0, 0]), "README.md": b"# logs"}
    with served_hub({"ann/logs": files}) as hub:
        monkeypatch.setitem(fsspec.config.conf, "hf", {"endpoint": hub.address})
        yield hub
    # huggingface_hub leaves the file open that it was writing when a download failed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_a_data_set_is_listed_once_and_its_files_come_at_the_same_time(hub: Hub) -> None:
    hub.barrier = threading.Barrier(4)
    copy = fetch("hf://datasets/ann/logs/tuned")
    assert paths_below(copy.path) == sorted(NAMES)
    assert [copy.path.joinpath(n).read_bytes() for n in NAMES] == [*map(content, range(FILES))]
    assert (hub.count("information"), hub.count("tree"), hub.count("resolve")) == (1, 1, FILES)
    assert len(hub.asked) == FILES + 2


def test_a_data_set_again_and_after_a_change(hub: Hub) -> None:
    fetch("hf://datasets/ann/logs/tuned")
    hub.asked.clear()
    assert fetch("hf://datasets/ann/logs/tuned").downloaded == 0
    assert hub.count("resolve") == 0
    hub.files["ann/logs"][f"tuned/{NAMES[3]}"] = content(4)
    hub.asked.clear()
    copy = fetch("hf://datasets/ann/logs/tuned")
    assert copy.downloaded == 1
    assert [p for kind, p in hub.asked if kind == "resolve"] == [f"tuned/{NAMES[3]}"]
    assert (copy.path / NAMES[3]).read_bytes() == content(4)


def test_a_file_of_a_data_set_goes_on_where_it_was_cut_off(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 50)
    monkeypatch.setattr("time.sleep", lambda _: None)
    rows = results_of([1, 0] * 20)
    hub.files["ann/logs"]["long.jsonl"], hub.cut_off = rows, 200
    assert fetch("hf://datasets/ann/logs/long.jsonl").path.read_bytes() == rows
    assert hub.ranges == ["bytes=0-", "bytes=200-"]


def test_a_whole_data_set_a_file_and_a_revision(hub: Hub) -> None:
    assert fm.open_run("hf://datasets/ann/logs/base.jsonl").name == "base"
    assert fetch("hf://datasets/ann/logs@v2/tuned").downloaded == FILES
    assert len(paths_below(fetch("hf://datasets/ann/logs").path)) == FILES + 1


def test_progress_of_a_data_set_counts_bytes(hub: Hub) -> None:
    told: list[tuple[int, int]] = []
    fetch(
        "hf://datasets/ann/logs/tuned",
        on_progress=lambda _, done, total: told.append((done, total)),
    )
    size = sum(len(content(number)) for number in range(FILES))
    assert told[-1] == (size, size)


def test_a_missing_data_set_and_a_missing_file(hub: Hub) -> None:
    with pytest.raises(MissingInputError, match="no such repository, or it is private") as error:
        open_run("hf://datasets/ann/nothing")
    assert "`hf auth login`" in error.value.hint
    with pytest.raises(MissingInputError, match="no such repository") as error:
        open_run("hf://ann/logs")
    assert "hf://datasets/OWNER/NAME" in error.value.hint
    with pytest.raises(MissingInputError) as error:
        open_run("hf://datasets/ann/logs/tunde")


def test_a_private_and_a_gated_data_set(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, and then read with the token that the hint names."""
    hub.files |= {"ann/own": hub.files["ann/logs"], "ann/gate": hub.files["ann/logs"]}
    hub.private, hub.gated = {"ann/own"}, {"ann/gate"}
    with pytest.raises(MissingInputError, match="or it is private") as error:
        open_run("hf://datasets/ann/own/base.jsonl")
    assert "HF_TOKEN" in error.value.hint
    with pytest.raises(ForbiddenError, match="granted by its owner") as denied:
        open_run("hf://datasets/ann/gate/base.jsonl")
    assert "accept the terms" in denied.value.hint
    assert "HF_TOKEN" in denied.value.hint
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert open_run("hf://datasets/ann/own/base.jsonl").name == "base"
    assert open_run("hf://datasets/ann/gate/base.jsonl").name == "base"


@pytest.mark.slow
def test_a_data_set_on_the_command_line(hub: Hub, tmp_path: Path) -> None:
    """By the address that the hub's own libraries take from the environment."""
    hub.files["ann/logs"]["after.jsonl"] = results_of([1, 0, 1, 0])
    pair = ["hf://datasets/ann/logs/base.jsonl", "hf://datasets/ann/logs/after.jsonl"]
    done = subprocess.run(
        [SCRIPT, "compare", *pair, "--json"],
        env={**os.environ, "HF_ENDPOINT": hub.address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"n10": 1' in done.stdout
