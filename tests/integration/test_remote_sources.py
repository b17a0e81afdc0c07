"""Results on other machines: fetched once, checked for changes, without showing secrets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations
from huggingface_hub import HfFileSystem
from s3fs import S3FileSystem

import forgetmap as fm
from command_line import SCRIPT, call, four_items, results, write
from fault_proxy import fault_proxy
from forgetmap._http import redact_url
from forgetmap.errors import (
    ForbiddenError,
    ForgetmapError,
    MissingInputError,
    NetworkError,
    UnknownFormatError,
    UnreadableError,
    UsageError,
)
from forgetmap.sources import remote
from forgetmap.sources.maps import is_remote
from forgetmap.sources.open import open_run
from forgetmap.sources.remote import fetch
from remote_servers import PASSWORD, SIGNATURE, USER, served
from tls_servers import write_certificate

CELLS = {"n11": 1, "n10": 1, "n01": 1, "n00": 1}
"""Of the four items, counted by hand."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    return tmp_path / "cache"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder to serve: two tables, a folder of a split one beside weights, and locked places."""
    folder = tmp_path / "site"
    folder.mkdir()
    four_items(folder)
    split = folder / "runs" / "tuned"
    (split / "deeper").mkdir(parents=True)
    write(split / "part one.jsonl", results([1, 0]))
    write(split / "part-2.jsonl", results([1, 0, 1, 0])[2:])
    (split / "model.safetensors").write_bytes(b"weights")
    (split / "optimizer.PT").write_bytes(b"weights")
    (split / ".hidden").write_bytes(b"hidden")
    for locked in ("private", "signed"):
        (folder / locked).mkdir()
        write(folder / locked / "base.jsonl", results([1, 1, 0, 0]))
    return folder


@pytest.fixture
def web(site: Path) -> Iterator[tuple[str, list[str]]]:
    with served(site) as (address, got):
        yield address, got


def cells(before: object, after: object) -> dict[str, int]:
    found = fm.compare(before, after).result.total
    return {name: getattr(found, name) for name in CELLS}


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_files_of_a_web_server_compare_and_keep_their_names(web: tuple[str, list[str]]) -> None:
    address, _ = web
    comparison = fm.compare(f"{address}/base.jsonl", f"{address}/tuned.jsonl")
    assert {name: getattr(comparison.result.total, name) for name in CELLS} == CELLS
    assert comparison.result.before.name == "base"
    assert comparison.result.before.origin == f"{address}/base.jsonl"


def test_a_second_call_downloads_nothing(web: tuple[str, list[str]]) -> None:
    address, got = web
    first = fetch(f"{address}/base.jsonl")
    assert (first.downloaded, got) == (1, ["/base.jsonl"])
    second = fetch(f"{address}/base.jsonl")
    assert (second.path, second.downloaded, got) == (first.path, 0, ["/base.jsonl"])


def test_a_file_that_is_sent_twice_does_not_become_another_file(
    web: tuple[str, list[str]], site: Path
) -> None:
    names = [f"{number}.jsonl" for number in range(10, 40)]
    (site / "many").mkdir()
    for name in names:
        (site / "many" / name).write_text(name, "utf-8")
    with fault_proxy(web[0], share=0.3, faults=("twice",), delay=0.0, again=0.001) as proxy:
        found = fetch(f"{proxy.url}/many/").path
    assert proxy.did["twice"]
    assert {path.name: path.read_text("utf-8") for path in found.iterdir()} == {
        name: name for name in names
    }


def test_what_changed_is_fetched_again_even_at_the_same_size(
    web: tuple[str, list[str]], site: Path
) -> None:
    address, _ = web
    assert cells(f"{address}/base.jsonl", f"{address}/tuned.jsonl") == CELLS
    write(site / "tuned.jsonl", results([0, 0, 1, 0]))
    os.utime(site / "tuned.jsonl", (1, 1))
    assert cells(f"{address}/base.jsonl", f"{address}/tuned.jsonl") == {
        "n11": 0, "n10": 2, "n01": 1, "n00": 1
    }  # fmt: skip


def test_a_folder_of_a_web_server(web: tuple[str, list[str]]) -> None:
    """Listed by its page; weights and hidden files stay there."""
    address, got = web
    fetched = fetch(f"{address}/runs/tuned")
    inside = [path.relative_to(fetched.path).as_posix() for path in files_below(fetched.path)]
    assert sorted(inside) == ["part one.jsonl", "part-2.jsonl"]
    assert not any("safetensors" in path or ".PT" in path for path in got)
    assert cells(f"{address}/base.jsonl", f"{address}/runs/tuned/") == CELLS
    again = fetch(f"{address}/runs/tuned")
    assert (again.path, again.downloaded) == (fetched.path, 0)


def test_folders_inside_a_folder_of_a_web_server(web: tuple[str, list[str]], site: Path) -> None:
    """All of them; one whose page cannot be read is an error, not left out."""
    inner = site / "runs" / "tuned" / "deeper" / "still"
    inner.mkdir()
    write(inner / "part-3.jsonl", results([1]))
    (site / "runs" / "tuned" / "optimizer.PT").unlink()
    fetched = fetch(f"{web[0]}/runs/tuned/")
    inside = [path.relative_to(fetched.path).as_posix() for path in files_below(fetched.path)]
    assert sorted(inside) == ["deeper/still/part-3.jsonl", "part one.jsonl", "part-2.jsonl"]
    (site / "runs" / "tuned" / "index.html").write_text('<a href="a.csv">a</a> <a href="b/">b</a>')
    with pytest.raises(MissingInputError):
        fetch(f"{web[0]}/runs/tuned/")


def test_what_is_gone_there_goes_here(web: tuple[str, list[str]], site: Path) -> None:
    address, _ = web
    fetch(f"{address}/runs/tuned")
    (site / "runs" / "tuned" / "part-2.jsonl").unlink()
    fetched = fetch(f"{address}/runs/tuned")
    assert [path.name for path in files_below(fetched.path)] == ["part one.jsonl"]


def test_progress_is_reported(web: tuple[str, list[str]], site: Path) -> None:
    address, _ = web
    told: list[tuple[str, int, int]] = []
    fetch(f"{address}/runs/tuned", on_progress=lambda *each: told.append(each))
    size = sum((site / "runs" / "tuned" / f"part{n}.jsonl").stat().st_size for n in (" one", "-2"))
    assert {name for name, *_ in told} == {"part one.jsonl", "part-2.jsonl"}
    assert told[-1][1:] == (size, size)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("nothing.jsonl", MissingInputError),
        ("private/base.jsonl", ForbiddenError),
        ("signed/base.jsonl", ForbiddenError),
        ("broken/base.jsonl", NetworkError),
        ("busy/base.jsonl", UnreadableError),
    ],
)
def test_faults_of_a_web_server(
    place: str, kind: type[ForgetmapError], web: tuple[str, list[str]], cache: Path
) -> None:
    address, _ = web
    with pytest.raises(kind) as caught:
        open_run(f"{address}/{place}")
    assert getattr(caught.value, "file", None) == f"{address}/{place}"
    assert [p for p in files_below(cache) if p.stat().st_size and p.suffix != ".part"] == []
    done = call("compare", f"{address}/{place}", f"{address}/base.jsonl")
    assert (done.code, done.out) == (2, "")


def test_a_half_copy_never_counts(web: tuple[str, list[str]], site: Path) -> None:
    """Stopped in the middle: the next call begins again."""
    address, _ = web

    def stop(*_: object) -> None:
        raise UsageError("stopped", hint="")

    with pytest.raises(UsageError, match="stopped"):
        fetch(f"{address}/base.jsonl", on_progress=stop)
    fetched = fetch(f"{address}/base.jsonl")
    assert fetched.downloaded == 1
    assert fetched.path.read_bytes() == (site / "base.jsonl").read_bytes()


def test_nobody_there(cache: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NetworkError, match="cannot be reached"):
        open_run(f"http://127.0.0.1:{port}/base.jsonl")


def secrets_in(folder: Path) -> list[str]:
    """Everything in the cache, names and content, that holds a secret."""
    texts = [f"{path}: {path.read_bytes()!r}" for path in files_below(folder)]
    return [text for text in texts if PASSWORD in text or SIGNATURE in text or USER in text]


def test_secrets_are_used_and_neither_kept_nor_shown(
    web: tuple[str, list[str]], cache: Path
) -> None:
    address, _ = web
    host = address.removeprefix("http://")
    private = f"http://{USER}:{PASSWORD}@{host}/private/base.jsonl"
    signed = f"{address}/signed/base.jsonl?sig={SIGNATURE}"
    runs = [open_run(private), open_run(signed)]
    assert [run.name for run in runs] == ["base", "base"]
    assert [run.origin for run in runs] == [
        f"{address}/private/base.jsonl", f"{address}/signed/base.jsonl"
    ]  # fmt: skip
    assert secrets_in(cache) == []
    assert PASSWORD not in str(runs) + call("compare", private, signed).out


@pytest.mark.parametrize("secret", [f"wrong{PASSWORD}", SIGNATURE])
def test_errors_hold_no_secrets(secret: str, web: tuple[str, list[str]]) -> None:
    address, _ = web
    host = address.removeprefix("http://")
    url = f"http://{USER}:{secret}@{host}/private/gone.jsonl?token={secret}"
    with pytest.raises(ForbiddenError) as caught:
        open_run(url)
    assert secret not in "".join(traceback.format_exception(caught.value))
    assert secret not in call("compare", url, url).err
    with pytest.raises(UsageError) as unknown:
        open_run(f"ftp://{USER}:{secret}@host/x")
    assert secret not in str(unknown.value)


def test_netrc_is_where_passwords_come_from(
    web: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = web
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert open_run(f"{address}/private/base.jsonl").name == "base"


def test_faults_inside_are_told_of_the_original(web: tuple[str, list[str]], site: Path) -> None:
    address, _ = web
    (site / "bad.csv").write_text("task,item,score\nt,a,1\nt,b,maybe\n")
    done = call("compare", f"{address}/bad.csv", f"{address}/base.jsonl")
    assert done.code == 2
    assert done.err.startswith(f"Error: {address}/bad.csv, line 3, field 'score'")


def test_https(site: Path, tmp_path: Path) -> None:
    """In a process of its own, because the certificate must be known from the start."""
    certificate = write_certificate(tmp_path / "own.pem")
    command: list[str | Path] = [SCRIPT, "compare", "--json"]
    with served(site, certificate=certificate) as (address, _):
        pair = [f"{address}/base.jsonl", f"{address}/tuned.jsonl"]
        trusted = {**os.environ, "SSL_CERT_FILE": str(certificate)}
        done = subprocess.run([*command, *pair], env=trusted, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        overall = json.loads(done.stdout)["total"]
        assert {name: overall[name] for name in CELLS} == CELLS
        strange = {**os.environ, "FORGETMAP_CACHE": str(tmp_path / "other")}
        done = subprocess.run([*command, *pair], env=strange, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (2, b"")


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """A real S3 server on this machine."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(store: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", store)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    S3FileSystem.clear_instance_cache()  # it may know another server
    client = boto3.client("s3")
    client.create_bucket(Bucket="results")
    for path in files_below(site):
        client.put_object(
            Bucket="results", Key=path.relative_to(site).as_posix(), Body=path.read_bytes()
        )
    client.put_object(Bucket="results", Key="runs/tuned/", Body=b"")
    return "s3://results"


def test_s3(bucket: str, cache: Path) -> None:
    pair = f"{bucket}/base.jsonl", f"{bucket}/runs/tuned"
    comparison = fm.compare(*pair)
    assert {name: getattr(comparison.result.total, name) for name in CELLS} == CELLS
    assert (comparison.result.before.name, comparison.result.after.name) == ("base", "tuned")
    assert [fetch(url).downloaded for url in pair] == [0, 0]
    assert secrets_in(cache) == []


def test_s3_changes_are_seen_in_the_same_process(bucket: str) -> None:
    import boto3

    fetch(f"{bucket}/runs/tuned")
    client = boto3.client("s3")
    client.put_object(Bucket="results", Key="runs/tuned/part-2.jsonl", Body=b"{}")
    fetched = fetch(f"{bucket}/runs/tuned")
    assert fetched.downloaded == 1
    assert (fetched.path / "part-2.jsonl").read_bytes() == b"{}"


@pytest.mark.parametrize("place", ["gone.jsonl", "runs/gone"])
def test_s3_without_the_key(place: str, bucket: str) -> None:
    with pytest.raises(MissingInputError):
        open_run(f"{bucket}/{place}")


def test_s3_without_the_bucket(bucket: str) -> None:
    with pytest.raises(MissingInputError):
        open_run("s3://no-such-bucket/base.jsonl")


def test_s3_out_of_reach(site: Path, tmp_path: Path) -> None:
    """No server, and then no credentials, each in a process that knows of no other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": PASSWORD, "AWS_MAX_ATTEMPTS": "1"}
    for added, wanted in (
        (keys, "NetworkError"),
        ({"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path)}, "ForbiddenError"),
    ):
        env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
        code = (
            "from forgetmap.sources.open import open_run\n"
            "from forgetmap.errors import InputError\n"
            "try: open_run('s3://results/base.jsonl')\n"
            "except InputError as error: print(type(error).__name__)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**env, "AWS_ENDPOINT_URL": nowhere, **added},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == wanted, done.stderr
        assert PASSWORD not in done.stderr


def test_hugging_face_datasets_go_to_its_file_system() -> None:
    """By contract: no server of theirs runs here."""
    system, place = remote._connect("hf://datasets/ann/logs@v2/runs/base", "")
    assert isinstance(system, HfFileSystem)
    assert place == "datasets/ann/logs@v2/runs/base"


def test_google_storage_goes_to_gcsfs() -> None:
    """By contract: no server of theirs runs here."""
    assert known_implementations["gs"]["class"] == "gcsfs.GCSFileSystem"
    assert remote.SERVICES["gs"][0] == "gcsfs"


@pytest.mark.parametrize(
    ("scheme", "package", "command"),
    [
        ("gs", "gcsfs", 'pip install "forgetmap[remote]"'),
        ("s3", "s3fs", 'pip install "forgetmap[remote]"'),
        ("hf", "huggingface_hub", 'pip install "forgetmap[remote]"'),
        ("az", "adlfs", "pip install adlfs"),
    ],
)
def test_a_missing_package_is_named(scheme: str, package: str, command: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from forgetmap.errors import UsageError\n"
        "from forgetmap.sources.remote import fetch\n"
        f"try: fetch('{scheme}://bucket/base.jsonl')\n"
        "except UsageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"reading {scheme}:// needs the package {package}, which is not installed" in done.stdout
    assert f"install it: {command}." in done.stdout


def test_unknown_schemes_are_refused() -> None:
    done = call("compare", "ftp://host/base.jsonl", "ftp://host/tuned.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "ftp://" in done.err
    assert "s3://" in done.err


def test_what_is_an_address() -> None:
    assert is_remote("s3://bucket/key")
    assert not any(map(is_remote, ("runs/base", "C:\\runs", "c:/runs", b"a://b", Path("s3://b"))))
    assert redact_url("https://u:p@h:1/a/b.json?sig=x#y") == "https://h:1/a/b.json"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryFileSystem]:
    """Folders that no server here can have."""
    monkeypatch.setitem(remote.SERVICES, "memory", ("fsspec", ""))
    system = MemoryFileSystem()
    yield system
    system.rm("/", recursive=True)


@pytest.mark.parametrize(("limit", "number"), [("MAX_BYTES", 150), ("MAX_FILES", 1)])
def test_too_much_is_refused_before_it_is_fetched(
    limit: str,
    number: int,
    memory: MemoryFileSystem,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, limit, number)
    memory.pipe({"/run/a.jsonl": b"x" * 100, "/run/b.jsonl": b"x" * 100})
    with pytest.raises(UnknownFormatError, match="too large to fetch"):
        fetch("memory://run")
    assert files_below(cache) == []


def test_a_folder_without_anything(memory: MemoryFileSystem) -> None:
    memory.pipe({"/run/model.safetensors": b"x"})
    with pytest.raises(UnknownFormatError, match="it contains no file"):
        fetch("memory://run")


@pytest.mark.parametrize("name", ["../../outside.jsonl", "a\\..\\b.jsonl", "..%2f..%2fo.jsonl"])
def test_names_that_lead_outside_are_refused(
    name: str, memory: MemoryFileSystem, cache: Path, tmp_path: Path
) -> None:
    memory.store[f"/run/{name}"] = memory.store.setdefault("/run/ok.jsonl", _memory_file(memory))
    before = sorted(tmp_path.rglob("*.jsonl"))
    with pytest.raises(UnreadableError, match="which is not valid here"):
        fetch("memory://run")
    assert sorted(tmp_path.rglob("*.jsonl")) == before


def _memory_file(memory: MemoryFileSystem) -> object:
    memory.pipe("/seed", b"x")
    return memory.store.pop("/seed")


def test_a_file_that_becomes_a_folder(memory: MemoryFileSystem) -> None:
    memory.pipe("/run", b"x")
    assert fetch("memory://run").path.is_file()
    memory.rm("/run")
    memory.pipe("/run/a.jsonl", b"x")
    assert [path.name for path in files_below(fetch("memory://run").path)] == ["a.jsonl"]
