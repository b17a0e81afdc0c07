"""Results on other machines: listed, copied into the user's cache, and again when they changed.

Credentials come from where each service looks for them itself (environment, ~/.aws, ~/.netrc,
gcloud, the token of Hugging Face). They are neither kept nor shown, nor is the query of an address,
which may be one.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from fsspec.callbacks import Callback
from fsspec.core import url_to_fs

from forgetmap._cache import cached_folder
from forgetmap.errors import (
    ForbiddenError,
    ForgetmapError,
    InputError,
    MissingInputError,
    MissingPackageError,
    NetworkError,
    OutputError,
    UnknownFormatError,
    UnreadableError,
    UsageError,
)
from forgetmap.records import FileRow, Run, file_of

NEEDED = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "hf": "huggingface_hub",
    "https": "aiohttp",
    "http": "aiohttp",
}
"""Scheme -> the package that fsspec needs for it."""
OPTIONS: dict[str, dict[str, Any]] = {
    # Proxies and ~/.netrc count; sizes are those of the file, not of what is on the wire.
    scheme: {"client_kwargs": {"trust_env": True}, "headers": {"Accept-Encoding": "identity"}}
    for scheme in ("https", "http")
}
CREDENTIALS = {
    "s3": "set AWS_PROFILE or AWS_ACCESS_KEY_ID; for a public bucket FSSPEC_S3_ANON=true.",
    "gs": "log in with gcloud auth application-default login.",
    "hf": "log in with hf auth login or set HF_TOKEN, and accept the terms of a gated dataset.",
    "https": "put user and password into ~/.netrc.",
    "http": "put user and password into ~/.netrc.",
}
LOG_ENDINGS = (
    ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".parquet", ".eval", ".gz", ".zip",
    ".yaml", ".yml", ".toml",
)  # fmt: skip
OTHER_ENDINGS = (
    ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".ggml", ".onnx", ".h5", ".npz",
    ".npy", ".msgpack", ".model", ".pkl", ".pickle", ".distcp", ".tar", ".tar.gz", ".tgz", ".whl",
    ".so", ".py", ".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".mp4", ".html",
)  # fmt: skip
MAX_DEPTH = 12
STATE, DATA = "state.json", "data"

_VERSIONS = (
    "etag", "oid", "blob_id", "md5hash", "content-md5", "lastmodified", "last-modified",
    "last_modified", "updated", "mtime", "created",
)  # fmt: skip
_CUT_OFF = re.compile(r"Connect|Timeout|Disconnected|Endpoint|DNS|Payload|Offline")

OnProgress = Callable[[str, int, int], None]
"""Told the name of a file, bytes copied so far, and bytes of all files together."""


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """How much is copied.

    Attributes:
        files: of a folder.
        total: bytes.
        other_bytes: of a file in a folder that is not called like a log; a larger one is left.
    """

    files: int = 20_000
    total: int = 20 << 30
    other_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class RemoteCopy:
    """What was at an address, now on this machine.

    Attributes:
        path: the copy; its name is that of the original.
        name: the address to show, without secrets.
        downloaded: how many files had to be copied this time.
        skipped: files of the folder that were left because of their size.
    """

    path: Path
    name: str
    downloaded: int
    skipped: tuple[str, ...]

    def original_path(self, text: str) -> str:
        """A text about the copy as one about the original."""
        return text.replace(str(self.path), self.name)

    @contextmanager
    def errors_about_original(self) -> Iterator[None]:
        """Errors inside are about the original, too."""
        try:
            yield
        except InputError as error:
            error.file = self.original_path(error.file) if error.file else error.file
            raise

    def original_run(self, run: Run) -> Run:
        """The run read from the copy, as one read from the original."""
        return replace(
            run,
            origin=self.name,
            rows=(lambda: self._rows(run)) if run.rows is not None else None,
            notices=(*run.notices, *self.notices),
            problems=tuple(
                replace(problem, file=self.original_path(problem.file)) for problem in run.problems
            ),
        )

    def _rows(self, run: Run) -> Iterator[tuple[int, FileRow]]:
        for line, row in run.rows() if run.rows is not None else ():
            yield line, FileRow(row, file=self.original_path(file_of(row, run.origin)))

    @property
    def notices(self) -> tuple[str, ...]:
        """What people should know."""
        if not self.skipped:
            return ()
        count, first = len(self.skipped), self.skipped[0]
        return (f"{self.name}: {count} large files were not fetched, such as {first}.",)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One remote file; `version` differs once its content does, None if that cannot be known."""

    remote: str
    inside: str
    size: int | None
    version: str | None


def without_secrets(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def fetch(
    url: str, *, on_progress: OnProgress | None = None, limits: CopyLimits | None = None
) -> RemoteCopy:
    """Copy a remote file or folder into the user's cache, as far as it changed.

    Args:
        url: `s3://`, `https://`, `http://`, `gs://` or `hf://datasets/...`.
        on_progress: told about progress.
        limits: how much to copy at most.
    """
    address, limits = without_secrets(url), limits or CopyLimits()
    with typed_failures(address):
        system, path = _connect(url, address)
        entries, skipped, is_folder = _list_entries(system, path, address, limits)
        home = cached_folder(_key(url), "remote")
        target = home / DATA / _base_name(url)
        if target.exists() and target.is_dir() != is_folder:
            shutil.rmtree(home)
        copied = _update(
            system, entries, home, target, _Meter(address, entries, limits, on_progress)
        )
    return RemoteCopy(target, address, copied, skipped)


def _connect(url: str, address: str) -> tuple[Any, str]:
    scheme = urlsplit(url).scheme
    if scheme not in NEEDED:
        raise UsageError(
            f"{address}: addresses that begin with {scheme}:// cannot be read",
            hint=f"give a local path, or one of {', '.join(f'{name}://' for name in NEEDED)}.",
        )
    try:
        system, path = url_to_fs(url, **OPTIONS.get(scheme, {}))
    except ImportError as error:
        raise MissingPackageError(
            f"{address}: reading {scheme}://", NEEDED[scheme], "remote"
        ) from error
    system.invalidate_cache()
    return system, path


def _key(url: str) -> str:
    """One folder of the cache per address; a query may say which file is meant."""
    parts = urlsplit(url)
    identity = repr((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query))
    return blake2b(identity.encode(), digest_size=16).hexdigest()


def _base_name(url: str) -> str:
    parts = urlsplit(url)
    name = unquote(PurePosixPath(parts.path).name) or parts.netloc.rpartition("@")[2]
    return re.sub(r"[/\\\x00]", "_", name).lstrip(".")[-200:] or "remote"


def _list_entries(
    system: Any, path: str, address: str, limits: CopyLimits
) -> tuple[list[_Entry], tuple[str, ...], bool]:
    """What to copy, what is left because of its size, and whether it is a folder."""
    info = system.info(path)
    if info["type"] != "directory" and info.get("mimetype") != "text/html":
        return [_entry(path, "", info)], (), False
    entries = [
        _entry(remote, inside, info if info.get("size") is not None else system.info(remote))
        for remote, inside, info in _walk(system, info["name"], address, limits)
    ]
    kept = [entry for entry in entries if _may_be_a_log(entry, limits)]
    if not kept:
        raise UnknownFormatError(
            "there is no file in it that could hold results",
            file=address,
            hint="check the address; give the folder or the file with the logs.",
        )
    skipped = tuple(entry.inside for entry in entries if entry not in kept)
    return sorted(kept, key=lambda entry: entry.inside), skipped, True


def _walk(
    system: Any, folder: str, address: str, limits: CopyLimits
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Files below a folder that are not known to be something else than logs."""
    base = folder.rstrip("/") + "/"
    pending, seen, count = [(folder, 0)], {base}, 0
    while pending:
        here, depth = pending.pop()
        for info in sorted(system.ls(here, detail=True), key=lambda info: str(info["name"])):
            name = str(info["name"])
            inside = _inside(name, base, address)
            if inside is None:
                continue
            if info["type"] == "directory":
                if depth < MAX_DEPTH and name.rstrip("/") + "/" not in seen:
                    seen.add(name.rstrip("/") + "/")
                    pending.append((name, depth + 1))
            elif not inside.lower().endswith(OTHER_ENDINGS):
                count += 1
                if count > limits.files:
                    raise _too_much(address, f"more than {limits.files:,} files")
                yield name, inside, info


def _inside(name: str, base: str, address: str) -> str | None:
    """The place of a remote file below its folder; None for what is hidden or no file."""
    if not name.startswith(base) or "?" in name:
        return None
    parts = [part for part in unquote(name.removeprefix(base)).split("/") if part]
    if any(part == ".." or re.search(r"[\\\x00]", part) for part in parts):
        raise UnreadableError(
            f"a file in it is called {'/'.join(parts)!r}, which is no name for a file here",
            file=address,
            hint="rename it there, or copy what you need yourself.",
        )
    return "/".join(parts) if parts and not any(p.startswith(".") for p in parts) else None


def _may_be_a_log(entry: _Entry, limits: CopyLimits) -> bool:
    is_named_so = entry.inside.lower().endswith(LOG_ENDINGS)
    return is_named_so or entry.size is None or entry.size <= limits.other_bytes


def _entry(remote: str, inside: str, info: Mapping[str, Any]) -> _Entry:
    known = {name.lower(): value for name, value in info.items() if value}
    version = "|".join(str(known[name]) for name in _VERSIONS if name in known)
    return _Entry(remote, inside, info.get("size"), version or None)


def _update(system: Any, entries: Sequence[_Entry], home: Path, target: Path, meter: _Meter) -> int:
    """Copy what changed, forget what is gone; how many files were copied."""
    known = _read_state(home)
    state: dict[str, list[Any]] = {}
    copied = 0
    by_path = {target / entry.inside if entry.inside else target: entry for entry in entries}
    for local, entry in by_path.items():
        if not _is_current(local, entry, known):
            _download(system, entry, local, meter)
            copied += 1
        state[entry.inside] = [entry.version, local.stat().st_size]
        _write_state(home, {**known, **state})
    for path in [*target.rglob("*")] if target.is_dir() else []:
        if path.is_file() and path not in by_path:
            path.unlink()
    _write_state(home, state)
    return copied


def _is_current(local: Path, entry: _Entry, known: Mapping[str, Any]) -> bool:
    if entry.version is None or not local.is_file():
        return False
    size = local.stat().st_size
    return known.get(entry.inside) == [entry.version, size] and entry.size in (None, size)


def _download(system: Any, entry: _Entry, local: Path, meter: _Meter) -> None:
    """Copy beside, then rename: what was cut off never counts."""
    local.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=".partial-", dir=local.parent)
    os.close(handle)
    try:
        meter.begin(entry)
        system.get_file(entry.remote, partial, callback=meter)
        size = Path(partial).stat().st_size
        if entry.size not in (None, size):
            raise NetworkError(
                f"{size:,} of {entry.size:,} bytes of {entry.inside or 'it'} arrived",
                file=meter.address,
                hint="try again; is it being written just now?",
            )
        Path(partial).replace(local)
    finally:
        Path(partial).unlink(missing_ok=True)


def _read_state(home: Path) -> dict[str, Any]:
    try:
        state = json.loads((home / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _write_state(home: Path, state: Mapping[str, Any]) -> None:
    partial = home / f".{STATE}.{os.getpid()}"
    partial.write_text(json.dumps(state), encoding="utf-8")
    partial.replace(home / STATE)


class _Meter(Callback):  # type: ignore[misc]  # fsspec has no types
    """Counts bytes while they come, tells how many, and stops where it is too many."""

    def __init__(
        self,
        address: str,
        entries: Sequence[_Entry],
        limits: CopyLimits,
        on_progress: OnProgress | None,
    ) -> None:
        super().__init__()
        self.address, self._limits, self._on_progress = address, limits, on_progress
        self._name, self._done = "", 0
        self._total = sum(entry.size or 0 for entry in entries)
        if self._total > limits.total:
            raise _too_much(address, f"{self._total:,} bytes")

    def begin(self, entry: _Entry) -> None:
        """The next file."""
        self._name = PurePosixPath(entry.inside or unquote(without_secrets(entry.remote))).name

    def relative_update(self, inc: int = 1) -> None:
        """So many more bytes are there."""
        self._done += inc
        if self._done > self._limits.total:
            raise _too_much(self.address, f"more than {self._limits.total:,} bytes")
        if self._on_progress is not None:
            self._on_progress(self._name, self._done, max(self._total, self._done))


def _too_much(address: str, fact: str) -> UnknownFormatError:
    return UnknownFormatError(
        f"this is too much to fetch: {fact}",
        file=address,
        hint="give the folder of one run, or copy what you need yourself and give its path.",
    )


@contextmanager
def typed_failures(address: str) -> Iterator[None]:
    """Turn what fails at an address into typed errors made of facts; others may hold secrets."""
    try:
        yield
    except ForgetmapError:
        raise
    except _failures() as error:
        raise _typed_error(error, address) from None


def _failures() -> tuple[type[BaseException], ...]:
    """What the libraries that are loaded raise, besides what the system does."""
    classes = {
        "aiohttp": ("ClientError", "InvalidURL"),
        "botocore.exceptions": ("BotoCoreError", "ClientError"),
        "gcsfs.retry": ("HttpError",),
        "google.auth.exceptions": ("GoogleAuthError",),
        "httpx": ("HTTPError",),
        "huggingface_hub.errors": ("EntryNotFoundError", "RevisionResolutionError"),
    }
    failures = [
        getattr(sys.modules[module], name)
        for module, names in classes.items()
        if module in sys.modules
        for name in names
        if hasattr(sys.modules[module], name)
    ]
    return (OSError, EOFError, ValueError, NotImplementedError, *failures)


def _typed_error(error: BaseException, address: str) -> ForgetmapError:
    causes = list(_causes(error))
    status = next((code for code in map(_status, causes) if code), None)
    names = [type(cause).__name__ for cause in causes]
    local = next((c.errno for c in causes if isinstance(c, OSError) and c.errno in _DISK), None)
    if local is not None:
        return OutputError(
            f"{address} cannot be kept in the cache: {os.strerror(local)}",
            hint="make room, or set FORGETMAP_CACHE to another folder.",
        )
    if status in {401, 403} or any(_is_forbidden(cause) for cause in causes):
        return ForbiddenError(
            "access is denied",
            file=address,
            hint=CREDENTIALS.get(urlsplit(address).scheme, "log in."),
        )
    if status in {404, 410}:
        return _missing(address)
    if any(_is_cut_off(cause) for cause in causes):
        return NetworkError(
            "it cannot be reached", file=address, hint="check the address and your network."
        )
    if status is None and any(map(_is_missing, causes)):
        return _missing(address)
    fact = f"HTTP status {status}" if status else names[0]
    return UnreadableError(
        f"cannot be fetched ({fact})", file=address, hint="try again, or copy it yourself."
    )


_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def _missing(address: str) -> MissingInputError:
    return MissingInputError(
        "there is no such file or folder", file=address, hint="check the address."
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _status(error: BaseException) -> int | None:
    """The HTTP status, wherever the library keeps it."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        response = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    code = getattr(response, "status_code", response) or getattr(error, "status", None)
    return code if isinstance(code, int) and code else None


def _is_forbidden(error: BaseException) -> bool:
    return isinstance(error, PermissionError) or "Credentials" in type(error).__name__


def _is_missing(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) or "NotFound" in type(error).__name__


def _is_cut_off(error: BaseException) -> bool:
    is_system = isinstance(error, ConnectionError | TimeoutError)
    return is_system or _CUT_OFF.search(type(error).__name__) is not None
