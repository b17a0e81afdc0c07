"""Remote results: a copy in the user's cache, made by fsspec and the library of Hugging Face.

They list and fetch; this module says which files are fetched and when a copy is current. fsspec's
cached file systems are not used, because to them a file of a web server never changes, a file that
was cut off is whole, and there are no folders.

Credentials come from the usual places of each service (environment, ~/.aws, ~/.netrc, gcloud, the
token of Hugging Face). They are neither stored nor shown; nor is the query of a URL, which may
contain some.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from fsspec.callbacks import Callback, TqdmCallback
from fsspec.core import url_to_fs

from forgetmap._cache import cached_folder
from forgetmap._disk import take_turn
from forgetmap._http import redact_url
from forgetmap.errors import (
    ForbiddenError,
    ForgetmapError,
    InputError,
    MissingInputError,
    MissingPackageError,
    NetworkError,
    UnknownFormatError,
    UnreadableError,
    UsageError,
)
from forgetmap.records import FileRow, Run, file_of

_PUBLIC = "; if the bucket is public, type `export FSSPEC_%s` and try again."
SERVICES = {
    "s3": ("s3fs", "log in with `aws configure` or set AWS_PROFILE" + _PUBLIC % "S3_ANON=true"),
    "gs": (
        "gcsfs",
        "log in with `gcloud auth application-default login`" + _PUBLIC % "GS_TOKEN=anon",
    ),
    "az": ("adlfs", "log in with `az login`, or set AZURE_STORAGE_CONNECTION_STRING."),
    "hf": ("huggingface_hub", "log in with `hf auth login`, or set HF_TOKEN."),
    "https": ("aiohttp", "put user and password into ~/.netrc."),
}
"""Scheme -> the package it needs (all but `adlfs` are in the extra `remote`), and how to log in."""
ALIASES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "http": "https"}
NO_LOGS = (
    ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".ggml", ".onnx", ".h5", ".npz",
    ".npy", ".msgpack", ".model", ".pkl", ".pickle", ".distcp", ".tar", ".tar.gz", ".tgz", ".whl",
    ".so", ".py", ".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".mp4", ".html",
)  # fmt: skip
MAX_FILES, MAX_BYTES, MAX_DEPTH = 20_000, 20 << 30, 12
PARALLEL = 8
"""Requests at the same time; they wait for the network, not for a core."""
_VERSIONS = (
    ("etag", "oid", "blob_id", "xet_hash", "md5hash", "content-md5", "digest"),
    ("lastmodified", "last-modified", "last_modified", "updated", "mtime", "created"),
)
"""Fields of a listing that change with the content; where there are none, a date has to do."""
_ERRORS = (
    "aiohttp.ClientError", "azure.core.exceptions.AzureError",
    "botocore.exceptions.BotoCoreError", "botocore.exceptions.ClientError",
    "gcsfs.retry.HttpError", "google.auth.exceptions.GoogleAuthError", "httpx.HTTPError",
    "httpx2.HTTPError", "huggingface_hub.errors.EntryNotFoundError",
    "huggingface_hub.errors.RevisionResolutionError", "huggingface_hub.errors.XetDownloadError",
)  # fmt: skip
_CUT_OFF = re.compile(
    "Connect|Timeout|Disconnected|Endpoint|DNS|Payload|Offline|IncompleteRead|NetworkError|Protocol"
)
KEPT = "try again; the part already fetched is kept."

OnProgress = Callable[[str, int, int], None]
"""Callback for progress: name of the file, bytes copied so far, bytes of all files."""


class _Entry(NamedTuple):
    """A remote file: its name, and its path below the folder (empty: it is the address)."""

    remote: str
    inside: str
    size: int | None
    version: str

    def is_whole(self, file: Path) -> bool:
        """Whether a local file has the size of the remote one."""
        return file.is_file() and self.size in {None, file.stat().st_size}


@dataclass(frozen=True, slots=True)
class RemoteCopy:
    """A local copy of the same name, the URL for messages, and how many files were fetched now."""

    path: Path
    name: str
    downloaded: int

    def original_path(self, text: str) -> str:
        """Replace the path of the copy in a text by the URL."""
        return text.replace(str(self.path), self.name)

    @contextmanager
    def errors_about_original(self) -> Iterator[None]:
        """Make errors raised inside name the URL instead of the copy."""
        try:
            yield
        except ForgetmapError as error:
            if isinstance(error, InputError) and error.file:
                error.file = self.original_path(error.file)
            error.message = self.original_path(error.message)
            error.hint = self.original_path(error.hint)
            raise

    def original_run(self, run: Run) -> Run:
        """Make a run read from the copy name the URL instead of the copy."""
        source = run.rows

        def rows() -> Iterator[tuple[int, FileRow]]:
            for line, row in source() if source is not None else ():
                yield line, FileRow(row, file=self.original_path(file_of(row, run.origin)))

        return replace(
            run,
            origin=self.original_path(run.origin),
            rows=rows if source is not None else None,
            notices=tuple(map(self.original_path, run.notices)),
            problems=tuple(replace(p, file=self.original_path(p.file)) for p in run.problems),
        )


def fetch(url: str, *, on_progress: OnProgress | None = None) -> RemoteCopy:
    """Copy a remote file or folder into the user's cache; unchanged files are not copied again."""
    address, parts = redact_url(url), urlsplit(url)
    with typed_failures(address):
        system, path = _connect(url, address)
        entries = _list(system, path, address)
        host = parts.netloc.rpartition("@")[2]
        # The query belongs to the key, as it may select a file.
        home = cached_folder(_digest((parts.scheme, host, parts.path, parts.query)), "remote")
        name = re.sub(r"[/\\\x00]", "_", unquote(PurePosixPath(parts.path).name) or host)
        copy = home / _digest(entries) / (name.lstrip(".")[-200:] or "remote")
        (home / "files").mkdir(parents=True, exist_ok=True)
        with take_turn(home / "lock"):
            # Files are named by their version, so that one that is there is current.
            files = {entry: home / "files" / _digest(entry) for entry in entries}
            new = {entry: file for entry, file in files.items() if not entry.is_whole(file)}
            _download(system, new, address, on_progress)
            for entry, file in files.items():
                place = copy / entry.inside
                if not entry.is_whole(place):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    try:
                        os.link(file, place)
                    except OSError:  # a file system without links, or a call that was stopped
                        shutil.copyfile(file, place)
            kept = {home / "lock", home / "files", copy.parent, *files.values()}
            for old in {*home.iterdir(), *(home / "files").iterdir()} - kept:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
    return RemoteCopy(copy, address, len(new))


def _digest(value: object) -> str:
    return blake2b(repr(value).encode(), digest_size=16).hexdigest()


def _connect(url: str, address: str) -> tuple[Any, str]:
    scheme = urlsplit(url).scheme
    service = ALIASES.get(scheme, scheme)
    if service not in SERVICES:
        known = ", ".join(f"{name}://" for name in (*SERVICES, *ALIASES))
        message = f"{address}: addresses that begin with {scheme}:// cannot be read"
        raise UsageError(message, hint=f"give a local path, or one of {known}.")
    try:
        system, path = url_to_fs(url, **_OPTIONS.get(service, {}))
    except ImportError as error:
        package = SERVICES[service][0]
        missing = MissingPackageError(f"{address}: reading {scheme}://", package, "remote")
        if package == "adlfs":  # in no extra
            missing.hint = f"install it: pip install {package}."
        raise missing from error
    system.invalidate_cache()
    return system, path


async def _open_session(**options: Any) -> Any:
    """Open a session with a connection for each request: see `REQUEST_HEADERS` of `_http`."""
    import aiohttp  # slow to load

    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), **options)


_OPTIONS: dict[str, dict[str, Any]] = {
    # Parts of a file fetched at the same time might be of two versions.
    "s3": {"max_concurrency": 1},
    # Use proxies and ~/.netrc; without compression, so that sizes are those of the file.
    "https": {
        "client_kwargs": {"trust_env": True},
        "headers": {"Accept-Encoding": "identity"},
        "get_client": _open_session,
    },
}


def _list(system: Any, path: str, address: str) -> list[_Entry]:
    infos: dict[str, Mapping[str, Any]]
    if "http" in system.protocol:  # its folders are pages of links, without sizes and versions
        infos = {path: system.info(path)}
        if infos[path].get("mimetype") == "text/html":
            infos = dict(islice(_walk(system, path), 20 * MAX_FILES))
    else:
        infos = system.find(path, detail=True)
    resolve = getattr(system, "resolve_path", None)  # of the hub
    root = resolve(path).unresolve() if resolve else system._strip_protocol(path)  # noqa: SLF001
    base = str(root).rstrip("/") + "/"
    if not infos:
        raise _missing(address)
    inside = {name: _inside(name, base, address) for name in infos}
    names = [n for n, below in inside.items() if below and not below.lower().endswith(NO_LOGS)]
    names = names or [name for name, below in inside.items() if below == ""]  # one file
    if not names:
        message = "it contains no file that could be results"
        hint = "check the address; give the folder or the file with the logs."
        raise UnknownFormatError(message, file=address, hint=hint)

    def ask(name: str) -> _Entry:
        info = infos[name] if infos[name].get("size") is not None else system.info(name)
        fields = {field.lower(): value for field, value in info.items() if value}
        found = [[str(fields[field]) for field in kind if field in fields] for kind in _VERSIONS]
        version, size = next(filter(None, found), None), info.get("size")
        # Without a version, or a size that tells a whole file, each copy counts as new.
        is_new = version is None or size is None
        return _Entry(name, inside[name] or "", size, f"{time.time_ns() if is_new else version}")

    if len(names) <= MAX_FILES:
        with ThreadPoolExecutor(PARALLEL) as pool:
            # In order, as the name of the copy is made from them and web servers list in any.
            entries = sorted(pool.map(ask, names))
        if sum(entry.size or 0 for entry in entries) <= MAX_BYTES:
            return entries
    raise _too_large(address)


def _walk(system: Any, folder: str, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate over the files below a page of links; fsspec leaves out pages it cannot read."""
    for info in system.ls(folder, detail=True):
        name = info["name"]
        if info["type"] != "directory":
            yield name, info
        elif name.rstrip("/").startswith(folder.rstrip("/") + "/") and depth < MAX_DEPTH:
            yield from _walk(system, name, depth + 1)


def _inside(name: str, base: str, address: str) -> str | None:
    """Return the path of a file below its folder; empty for the folder, None for hidden files."""
    if name.rstrip("/") == base.rstrip("/"):
        return ""
    if not name.startswith(base) or name.endswith("/") or "?" in name:
        return None
    parts = [part for part in unquote(name.removeprefix(base)).split("/") if part]
    if any(part == ".." or re.search(r"[\\\x00]", part) for part in parts):
        message = f"a file in it has the name {'/'.join(parts)!r}, which is not valid here"
        hint = "rename it there, or copy what you need yourself."
        raise UnreadableError(message, file=address, hint=hint)
    return None if any(part.startswith(".") for part in parts) else "/".join(parts)


def _download(
    system: Any, files: Mapping[_Entry, Path], address: str, on_progress: OnProgress | None
) -> None:
    """Fetch files; each gets its name when it is whole."""
    total, done, received = sum(entry.size or 0 for entry in files), 0, dict.fromkeys(files, 0)
    stopped = Event()

    def report(entry: _Entry, count: int) -> None:
        nonlocal done
        done, received[entry] = done + count - received[entry], count
        if done > MAX_BYTES or stopped.is_set():
            raise _too_large(address)
        if on_progress is not None and count:
            path = PurePosixPath(entry.inside or unquote(redact_url(entry.remote)))
            on_progress(path.name, done, max(total, done))

    def get(entry: _Entry) -> int:
        part = files[entry].with_suffix(".part")
        callback = Callback(hooks={"bytes": lambda _, count, **__: report(entry, count)})
        if hasattr(system, "resolve_path"):
            # Only with a bar does the hub's library continue after a broken connection.
            callback = TqdmCallback({"disable": True})
        system.get_file(entry.remote, str(part), callback=callback)
        if entry.is_whole(part):
            part.replace(files[entry])
            part = files[entry]
        return part.stat().st_size

    with ThreadPoolExecutor(PARALLEL) as pool:
        try:
            for entry, size in zip(files, pool.map(get, files), strict=True):
                report(entry, size)
        finally:
            stopped.set()  # after an error or Ctrl-C, what is under way ends with its next part
    for entry, size in received.items():
        if entry.size not in {None, size}:
            of = f"{entry.size:,} bytes of {entry.inside or 'it'}"
            message, hint = f"only {size:,} of {of} were received", f"{KEPT} Is it being written?"
            raise NetworkError(message, file=address, hint=hint)


@contextmanager
def typed_failures(address: str) -> Iterator[None]:
    """Turn errors of remote access into typed ones; original messages may contain secrets."""
    try:
        yield
    except ForgetmapError:
        raise
    except _failures() as error:
        raise _typed_error(error, address) from None


def _failures() -> tuple[type[BaseException], ...]:
    """Return the exceptions of the system and of the remote libraries that are loaded."""
    places = (name.rpartition(".") for name in _ERRORS)
    found = (getattr(sys.modules.get(module), name, None) for module, _, name in places)
    return (OSError, EOFError, ValueError, NotImplementedError, *filter(None, found))


def _typed_error(error: BaseException, address: str) -> ForgetmapError:
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    # Of all base classes too: a BrokenPipeError is a ConnectionError.
    names = " ".join(base.__name__ for cause in causes for base in type(cause).__mro__)
    codes = [getattr(getattr(c, "response", None), "status_code", None) for c in causes]
    codes += [getattr(cause, "status", None) for cause in causes]
    status = next((code for code in codes if code and isinstance(code, int)), None)
    scheme = urlsplit(address).scheme
    _, login = SERVICES.get(ALIASES.get(scheme, scheme), ("", "log in."))
    kind: type[InputError] = NetworkError
    if "GatedRepoError" in names:
        kind, fact = ForbiddenError, "access must be granted by its owner"
        hint = f"accept the terms on the page of the data set; then {login}"
    elif "RepositoryNotFoundError" in names:  # the hub does not say which of the two
        kind, fact = MissingInputError, "there is no such repository, or it is private"
        hint = f"check the name (hf://datasets/OWNER/NAME); if it is private, {login}"
    elif status in {401, 403} or "Credentials" in names or "PermissionError" in names:
        is_none = "NoCredentials" in names
        fact = "there are no credentials for it" if is_none else "access is denied"
        kind, hint = ForbiddenError, login
    elif status not in {404, 410} and _CUT_OFF.search(names):
        fact = "it cannot be reached, or the connection was lost"
        hint = f"check the address and your network; then {KEPT}"
    elif status in {404, 410} or (status is None and "NotFound" in names):
        return _missing(address)
    else:
        number = getattr(error, "errno", None)  # such as of a full disk
        reason = os.strerror(number) if number else names.split()[0]
        fact = f"cannot be fetched ({f'HTTP status {status}' if status else reason})"
        kind, hint = UnreadableError, f"{KEPT} Or copy it yourself."
    return kind(fact, file=address, hint=hint)


def _missing(address: str) -> MissingInputError:
    message = "the file or folder does not exist"
    return MissingInputError(message, file=address, hint="check the address.")


def _too_large(address: str) -> UnknownFormatError:
    message = f"too large to fetch: more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes"
    hint = "give the folder of one run, or copy what you need yourself and give its path."
    return UnknownFormatError(message, file=address, hint=hint)
