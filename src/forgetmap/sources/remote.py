"""Remote results: a copy in the user's cache, made by fsspec or the library of Hugging Face.

fsspec and the hub's library list and fetch; this module says what is fetched, when a copy is
current, and what went wrong. fsspec's cached file systems are not used, because to them a file of a
web server never changes, a file that was cut off is whole, and there are no folders.

Credentials come from the usual places of each service (environment, ~/.aws, ~/.netrc, gcloud, the
token of Hugging Face). They are neither stored nor shown; nor is the query of a URL, which may
contain some.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from fsspec.callbacks import Callback, TqdmCallback
from fsspec.core import url_to_fs

from forgetmap._cache import cached_folder
from forgetmap._disk import sync, take_turn
from forgetmap._http import redact_url
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
LOGS = (
    ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".parquet", ".eval", ".gz", ".zip",
    ".yaml", ".yml", ".toml",
)  # fmt: skip
NO_LOGS = (
    ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".ggml", ".onnx", ".h5", ".npz",
    ".npy", ".msgpack", ".model", ".pkl", ".pickle", ".distcp", ".tar", ".tar.gz", ".tgz", ".whl",
    ".so", ".py", ".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".mp4", ".html",
)  # fmt: skip
MAX_FILES, MAX_BYTES, MAX_DEPTH = 20_000, 20 << 30, 12
MAX_OTHER = 256 << 20
"""Bytes of a file that has neither kind of ending; larger ones are left out."""
MAX_LISTED = 400_000
"""Files that are listed; a request to a bucket lists a thousand."""
PARALLEL = 8
"""Requests at the same time; they wait for the network, not for a core."""
_CONTENT = ("etag", "oid", "blob_id", "xet_hash", "md5hash", "content-md5", "digest")
"""Fields of a listing that change with the content; where there are none, a date has to do."""
_DATES = ("lastmodified", "last-modified", "last_modified", "updated", "mtime", "created")
_CUT_OFF = re.compile(
    "Connect|Timeout|Disconnected|Endpoint|DNS|Payload|Offline|IncompleteRead|NetworkError|Protocol"
)
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
KEPT = "try again; the part already fetched is kept."

OnProgress = Callable[[str, int, int], None]
"""Callback for progress: name of the file, bytes copied so far, bytes of all files."""


class _Entry(NamedTuple):
    """A remote file: its name there, and its path below the folder (empty: it is the address)."""

    remote: str
    inside: str
    size: int | None
    version: str


@dataclass(frozen=True, slots=True)
class RemoteCopy:
    """A local copy of a remote file or folder.

    Attributes:
        path: the copy; it has the name of the original.
        name: the URL for messages, without secrets.
        downloaded: number of files copied this time.
        skipped: files of the folder that were not copied because of their size.
    """

    path: Path
    name: str
    downloaded: int
    skipped: tuple[str, ...]

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
        source, notices = run.rows, [*map(self.original_path, run.notices)]
        if self.skipped:
            count, first = len(self.skipped), self.skipped[0]
            notices.append(f"{self.name}: {count} large files were not fetched, such as {first}.")

        def rows() -> Iterator[tuple[int, FileRow]]:
            for line, row in source() if source is not None else ():
                yield line, FileRow(row, file=self.original_path(file_of(row, run.origin)))

        return replace(
            run,
            origin=self.original_path(run.origin),
            rows=rows if source is not None else None,
            notices=tuple(notices),
            problems=tuple(replace(p, file=self.original_path(p.file)) for p in run.problems),
        )


def fetch(url: str, *, on_progress: OnProgress | None = None) -> RemoteCopy:
    """Copy a remote file or folder into the user's cache; unchanged files are not copied again.

    Args:
        url: `s3://`, `https://`, `http://`, `gs://`, `az://` or `hf://datasets/...`.
        on_progress: called during the download.
    """
    address, parts = redact_url(url), urlsplit(url)
    with typed_failures(address):
        system, path = _connect(url, address)
        entries, skipped = _list(system, path, address)
        if sum(entry.size or 0 for entry in entries) > MAX_BYTES:
            raise _too_much(address, f"more than {MAX_BYTES:,} bytes")
        progress = _FetchProgress(address, on_progress)
        host = parts.netloc.rpartition("@")[2]
        # The query belongs to the key, as it may select a file.
        home = cached_folder(_digest((parts.scheme, host, parts.path, parts.query)), "remote")
        name = re.sub(r"[/\\\x00]", "_", unquote(PurePosixPath(parts.path).name) or host)
        home.mkdir(parents=True, exist_ok=True)
        with take_turn(home / "lock"):
            files, count = _download(system, entries, home / "files", progress)
            copy = home / _digest(entries) / (name.lstrip(".")[-200:] or "remote")
            _arrange(files, copy)
    return RemoteCopy(copy, address, count, skipped)


def _digest(value: object) -> str:
    return blake2b(repr(value).encode(), digest_size=16).hexdigest()


def _connect(url: str, address: str) -> tuple[Any, str]:
    scheme = urlsplit(url).scheme
    package, _ = SERVICES.get(ALIASES.get(scheme, scheme), (None, ""))
    if package is None:
        known = ", ".join(f"{name}://" for name in (*SERVICES, *ALIASES))
        raise UsageError(
            f"{address}: addresses that begin with {scheme}:// cannot be read",
            hint=f"give a local path, or one of {known}.",
        )
    try:
        system, path = url_to_fs(url, **(_WEB if package == "aiohttp" else {}))
    except ImportError as error:
        feature = f"{address}: reading {scheme}://"
        if package != "adlfs":
            raise MissingPackageError(feature, package, "remote") from error
        raise UsageError(
            f"{feature} needs the package {package}, which is not installed.",
            hint=f"install it: pip install {package}.",
        ) from error
    system.invalidate_cache()
    return system, path


async def _open_session(**options: Any) -> Any:
    """Open a session with a connection for each request: see `REQUEST_HEADERS` of `_http`."""
    import aiohttp  # slow to load

    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), **options)


_WEB = {
    # Use proxies and ~/.netrc; without compression, so that sizes are those of the file.
    "client_kwargs": {"trust_env": True},
    "headers": {"Accept-Encoding": "identity"},
    "get_client": _open_session,
}


def _uses(system: Any, scheme: str) -> bool:
    protocol = system.protocol
    return scheme in ((protocol,) if isinstance(protocol, str) else protocol)


def _list(system: Any, path: str, address: str) -> tuple[list[_Entry], tuple[str, ...]]:
    """List the files to copy, and the names of those that are too large to be logs."""
    is_web = _uses(system, "http")  # its folders are pages of links, without sizes and versions
    if is_web or path.lower().endswith(LOGS):
        try:
            info = system.info(path)
        except FileNotFoundError:
            if is_web:
                raise
            info = {"type": "directory"}
        if info["type"] != "directory" and info.get("mimetype") != "text/html":
            return [_entry(path, "", info)], ()
    resolve = getattr(system, "resolve_path", None)  # of the hub
    root = resolve(path).unresolve() if resolve else system._strip_protocol(path)  # noqa: SLF001
    base = str(root).rstrip("/") + "/"
    limit = {"max_items": MAX_LISTED} if _uses(system, "s3") else {}
    walk = islice(_walk(system, path), MAX_LISTED)
    infos = dict(walk) if is_web else system.find(path, detail=True, **limit)
    if not infos:
        raise _missing(address, _neighbours(system, base, address))
    inside = {name: _inside(name, base, address) for name in infos}
    names = [n for n, below in inside.items() if below and not below.lower().endswith(NO_LOGS)]
    names = names or [name for name, below in inside.items() if below == ""]  # one file
    if len(names) > MAX_FILES or len(infos) >= MAX_LISTED:
        raise _too_much(address, f"more than {MAX_FILES:,} files")
    with ThreadPoolExecutor(PARALLEL) as pool:
        known = pool.map(system.info if is_web else infos.get, names)
        found = [_entry(n, inside[n] or "", info) for n, info in zip(names, known, strict=True)]
    kept = {e for e in found if e.inside.lower().endswith(LOGS) or (e.size or 0) <= MAX_OTHER}
    if not kept:
        raise UnknownFormatError(
            "it contains no file that could be results",
            file=address,
            hint="check the address; give the folder or the file with the logs.",
        )
    # In order, as the name of the copy is made from them and web servers list in any.
    return sorted(kept), tuple(entry.inside for entry in found if entry not in kept)


def _walk(system: Any, folder: str, depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate over the files below a page of links.

    fsspec's own way leaves out, without a word, folders whose page cannot be read.
    """
    for info in system.ls(folder, detail=True):
        name = info["name"]
        if info["type"] != "directory":
            yield name, info
        elif name.rstrip("/").startswith(folder.rstrip("/") + "/") and depth < MAX_DEPTH:
            yield from _walk(system, name, depth + 1)


def _inside(name: str, base: str, address: str) -> str | None:
    """Return the path of a file below its folder; empty for the folder, None for hidden files."""
    if name == base.rstrip("/"):
        return ""
    if not name.startswith(base) or name.endswith("/") or "?" in name:
        return None
    parts = [part for part in unquote(name.removeprefix(base)).split("/") if part]
    if any(part == ".." or re.search(r"[\\\x00]", part) for part in parts):
        raise UnreadableError(
            f"a file in it has the name {'/'.join(parts)!r}, which is not valid here",
            file=address,
            hint="rename it there, or copy what you need yourself.",
        )
    is_hidden = any(part.startswith(".") for part in parts)
    return "/".join(parts) if not is_hidden and len(parts) <= MAX_DEPTH + 1 else None


def _entry(remote: str, inside: str, info: Mapping[str, Any]) -> _Entry:
    fields = {name.lower(): value for name, value in info.items() if value}
    texts = ("|".join(str(fields[n]) for n in names if n in fields) for names in (_CONTENT, _DATES))
    # Without a version, each copy counts as new.
    version = next(filter(None, texts), "") or f"fetched {time.time_ns()}"
    return _Entry(remote, inside, info.get("size"), version)


def _neighbours(system: Any, base: str, address: str) -> str:
    """Return a hint with the contents of the parent folder; empty if it cannot be listed."""
    above, _, missing = base.rstrip("/").rpartition("/")
    try:
        paths = system.ls(above, detail=False) if above else []
    except _failures():
        return ""
    names = sorted({str(path).rstrip("/").rpartition("/")[2] for path in paths} - {missing})
    listing = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"{address.rstrip('/').rpartition('/')[0]} contains {listing}." if names else ""


class _FetchProgress(Callback):  # type: ignore[misc]  # fsspec has no types
    """Bytes of all files; fsspec asks for a callback for each."""

    def __init__(self, address: str, show: OnProgress | None) -> None:
        super().__init__()
        self.address, self.show = address, show
        self.total = self.count = 0
        self.done: dict[str, int] = {}

    def branched(self, path_1: str, *_: Any, **__: Any) -> Callback:
        """Return the callback for a file."""
        return Callback(hooks={"bytes": lambda _, value, **__: self.reach(path_1, value)})

    def reach(self, remote: str, count: int) -> None:
        """Report how many bytes of a file there are."""
        new = max(count - self.done.get(remote, 0), 0)  # fewer if it begins again
        self.done[remote] = self.done.get(remote, 0) + new
        self.count += new
        if self.count > MAX_BYTES:
            raise _too_much(self.address, f"more than {MAX_BYTES:,} bytes")
        if self.show is not None and new:
            name = PurePosixPath(unquote(redact_url(remote))).name
            self.show(name, self.count, max(self.total, self.count))


def _download(
    system: Any, entries: Sequence[_Entry], store: Path, progress: _FetchProgress
) -> tuple[dict[_Entry, Path], int]:
    """Fetch what is not in a store of files named by their version; count it."""
    files = {entry: store / _digest(entry) for entry in entries}
    new = {e: file.with_suffix(".part") for e, file in files.items() if not _is_whole(file, e)}
    # Of a call that was stopped, what was complete is kept.
    missing = {e: part for e, part in new.items() if e.size is None or not _is_whole(part, e)}
    progress.total = sum(entry.size or 0 for entry in missing)
    if missing and _uses(system, "hf"):
        _get_from_hub(system, missing, progress)
    elif missing:
        # Parts of a file fetched at the same time might be of two versions.
        options = {"max_concurrency": 1} if _uses(system, "s3") else {}
        paths = [e.remote for e in missing], [str(part) for part in missing.values()]
        system.get(*paths, callback=progress, batch_size=PARALLEL, **options)
    for entry, part in new.items():
        if not _is_whole(part, entry):
            size, name = part.stat().st_size if part.is_file() else 0, entry.inside or "it"
            raise NetworkError(
                f"only {size:,} of {entry.size or 0:,} bytes of {name} were received",
                file=progress.address,
                hint=f"{KEPT} Check whether it is being written.",
            )
    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(sync, new.values()))  # before they get their names, for a loss of power
    for entry, part in new.items():
        part.replace(files[entry])
    return files, len(new)


def _is_whole(file: Path, entry: _Entry) -> bool:
    return file.is_file() and entry.size in {None, file.stat().st_size}


def _get_from_hub(system: Any, parts: Mapping[_Entry, Path], progress: _FetchProgress) -> None:
    """Fetch files each by one request, which continues after a broken connection.

    The file system of the hub does so only for callbacks with a bar; `snapshot_download` lists the
    whole repository, and keeps no more of a call that was stopped.
    """
    from tqdm import tqdm

    def get(entry: _Entry) -> None:
        class Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **{**options, "disable": True})

            def update(self, n: float | None = 1) -> None:
                self.n += n or 0
                progress.reach(entry.remote, int(self.n))

        system.get_file(entry.remote, str(parts[entry]), callback=TqdmCallback(tqdm_cls=Bar))

    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(get, parts))


def _arrange(files: Mapping[_Entry, Path], copy: Path) -> None:
    """Give files of the store their names in a copy, and remove whatever belongs to no file."""
    home, store = copy.parents[1], copy.parents[1] / "files"
    if not all(_is_whole(copy / entry.inside, entry) for entry in files):
        draft = home / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        for entry, file in files.items():
            place = draft / copy.name / entry.inside
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file, place)
            except OSError:  # a file system without links
                shutil.copyfile(file, place)
        shutil.rmtree(copy.parent, ignore_errors=True)
        draft.rename(copy.parent)
    kept = {home / "lock", store, copy.parent, *files.values()}
    for path in {*home.iterdir(), *store.iterdir()} - kept:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


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
    names = (
        "aiohttp.ClientError", "aiohttp.InvalidURL", "azure.core.exceptions.AzureError",
        "botocore.exceptions.BotoCoreError", "botocore.exceptions.ClientError",
        "gcsfs.retry.HttpError", "google.auth.exceptions.GoogleAuthError", "httpx.HTTPError",
        "httpx2.HTTPError", "huggingface_hub.errors.EntryNotFoundError",
        "huggingface_hub.errors.RevisionResolutionError",
        "huggingface_hub.errors.XetDownloadError", "requests.exceptions.RequestException",
    )  # fmt: skip
    places = (name.rpartition(".") for name in names)
    found = (getattr(sys.modules.get(module), name, None) for module, _, name in places)
    return (OSError, EOFError, ValueError, NotImplementedError, *filter(None, found))


def _typed_error(error: BaseException, address: str) -> ForgetmapError:
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    # Of all base classes too: a BrokenPipeError is a ConnectionError.
    names = " ".join(base.__name__ for cause in causes for base in type(cause).__mro__)
    status = next(filter(None, map(_status, causes)), None)
    parts = urlsplit(address)
    _, login = SERVICES.get(ALIASES.get(parts.scheme, parts.scheme), ("", "log in."))
    disk = next((c.errno for c in causes if isinstance(c, OSError) and c.errno in _FULL_DISK), None)
    if disk is not None:
        return OutputError(
            f"{address} cannot be stored in the cache: {os.strerror(disk)}",
            hint="free some space, or set FORGETMAP_CACHE to another folder.",
        )
    kind: type[InputError] = NetworkError
    if "GatedRepoError" in names:
        kind, fact = ForbiddenError, "access must be granted by its owner"
        hint = f"accept the terms on the page of the data set; then {login}"
    elif "RepositoryNotFoundError" in names:  # the hub does not say which of the two
        kind, fact = MissingInputError, "there is no such repository, or it is private"
        other = "" if parts.netloc == "datasets" else " A data set is hf://datasets/OWNER/NAME."
        hint = f"check the name;{other} if it is private, {login}"
    elif status in {404, 410}:
        return _missing(address)
    elif status in {401, 403} or "Credentials" in names or "PermissionError" in names:
        is_unknown = "NoCredentials" in names
        fact = "there are no credentials for it" if is_unknown else "access is denied"
        kind, hint = ForbiddenError, login
    elif status == 429:
        fact, hint = "the server has received too many requests", f"wait a minute, then {KEPT}"
    elif _CUT_OFF.search(names) or str(error).startswith("Consistency check failed"):
        fact = "it cannot be reached, or the connection was lost"
        hint = f"check the address and your network; then {KEPT}"
    elif status is None and "NotFound" in names:
        return _missing(address)
    else:
        fact = f"cannot be fetched ({f'HTTP status {status}' if status else names.split()[0]})"
        kind, hint = UnreadableError, f"{KEPT} Or copy it yourself."
    return kind(fact, file=address, hint=hint)


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error of any of the libraries; None if it has none."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        response = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    code = getattr(response, "status_code", response) or getattr(error, "status", None)
    return code if isinstance(code, int) and code else None


def _missing(address: str, near: str = "") -> MissingInputError:
    return MissingInputError(
        "the file or folder does not exist", file=address, hint=near or "check the address."
    )


def _too_much(address: str, fact: str) -> UnknownFormatError:
    return UnknownFormatError(
        f"too large to fetch: {fact}",
        file=address,
        hint="give the folder of one run, or copy what you need yourself and give its path.",
    )
