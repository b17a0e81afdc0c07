"""Remote results: listed, copied into the user's cache, and updated when they change.

Credentials come from the usual places of each service (environment, ~/.aws, ~/.netrc, gcloud, the
token of Hugging Face). They are neither stored nor shown; nor is the query of a URL, which may
contain some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from fsspec.core import url_to_fs

from forgetmap._cache import cached_folder
from forgetmap.errors import ForgetmapError, InputError, MissingPackageError, UsageError
from forgetmap.records import FileRow, Run, file_of
from forgetmap.sources.remote_download import DATA, Meter, OnProgress, copy_entries
from forgetmap.sources.remote_failures import typed_failures, without_secrets
from forgetmap.sources.remote_listing import CopyLimits, list_entries

NEEDED = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "hf": "huggingface_hub",
    "https": "aiohttp",
    "http": "aiohttp",
    "s3a": "s3fs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
}
"""Scheme -> package that fsspec needs for it."""


async def _open_session(**options: Any) -> Any:
    """Open a session with a connection for each request: see `REQUEST_HEADERS` of `_http`."""
    import aiohttp  # slow to load

    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), **options)


OPTIONS: dict[str, dict[str, Any]] = {
    # Use proxies and ~/.netrc; without compression, so that sizes are those of the file.
    scheme: {
        "client_kwargs": {"trust_env": True},
        "headers": {"Accept-Encoding": "identity"},
        "get_client": _open_session,
    }
    for scheme in ("https", "http")
}
OURS = frozenset({"s3fs", "gcsfs", "huggingface_hub", "aiohttp"})
"""Packages installed by the extra `remote`."""


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
        return replace(
            run,
            origin=self.original_path(run.origin),
            rows=(lambda: self._rows(run)) if run.rows is not None else None,
            notices=(*map(self.original_path, run.notices), *self.notices),
            problems=tuple(
                replace(problem, file=self.original_path(problem.file)) for problem in run.problems
            ),
        )

    def _rows(self, run: Run) -> Iterator[tuple[int, FileRow]]:
        for line, row in run.rows() if run.rows is not None else ():
            yield line, FileRow(row, file=self.original_path(file_of(row, run.origin)))

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user."""
        if not self.skipped:
            return ()
        count, first = len(self.skipped), self.skipped[0]
        return (f"{self.name}: {count} large files were not fetched, such as {first}.",)


def fetch(
    url: str, *, on_progress: OnProgress | None = None, limits: CopyLimits | None = None
) -> RemoteCopy:
    """Copy a remote file or folder into the user's cache; unchanged files are not copied again.

    Args:
        url: `s3://`, `https://`, `http://`, `gs://`, `az://` or `hf://datasets/...`.
        on_progress: called during the download.
        limits: upper limits on the copy.
    """
    address, limits = without_secrets(url), limits or CopyLimits()
    with typed_failures(address):
        system, path = _connect(url, address)
        listing = list_entries(system, path, address, limits)
        meter = Meter(address, listing, limits, on_progress)
        home, name = cached_folder(_key(url), "remote"), _base_name(url)
        copied = copy_entries(system, listing, home, name, meter)
    return RemoteCopy(home / DATA / name, address, copied, listing.skipped)


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
        raise _missing_package(f"{address}: reading {scheme}://", NEEDED[scheme]) from error
    system.invalidate_cache()
    return system, path


def _missing_package(feature: str, package: str) -> UsageError:
    if package in OURS:
        return MissingPackageError(feature, package, "remote")
    return UsageError(
        f"{feature} needs the package {package}, which is not installed.",
        hint=f"install it: pip install {package}.",
    )


def _key(url: str) -> str:
    """Return the key of a URL in the cache, with its query, which may select a file."""
    parts = urlsplit(url)
    identity = repr((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query))
    return blake2b(identity.encode(), digest_size=16).hexdigest()


def _base_name(url: str) -> str:
    parts = urlsplit(url)
    name = unquote(PurePosixPath(parts.path).name) or parts.netloc.rpartition("@")[2]
    return re.sub(r"[/\\\x00]", "_", name).lstrip(".")[-200:] or "remote"
