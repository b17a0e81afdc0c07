"""Typed errors of remote access, without secrets in their messages."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

from forgetmap.errors import (
    ForbiddenError,
    ForgetmapError,
    MissingInputError,
    NetworkError,
    OutputError,
    UnreadableError,
)

CREDENTIALS = {
    "s3": "log in with `aws configure` or set AWS_PROFILE; if the bucket is public, type "
    "`export FSSPEC_S3_ANON=true` and try again.",
    "gs": "log in with `gcloud auth application-default login`; if the bucket is public, type "
    "`export FSSPEC_GS_TOKEN=anon` and try again.",
    "az": "log in with `az login`, or set AZURE_STORAGE_CONNECTION_STRING.",
    "hf": "log in with `hf auth login`, or set HF_TOKEN.",
    "https": "put user and password into ~/.netrc.",
}
"""Hints for logging in, by scheme."""
ALIASES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "http": "https"}
"""Scheme -> scheme with the same credentials."""
KEPT = "try again; the part already fetched is kept."
_CUT_OFF = re.compile(r"Connect|Timeout|Disconnected|Endpoint|DNS|Payload|Offline|IncompleteRead")
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_BUSY = 429


def without_secrets(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@contextmanager
def typed_failures(address: str) -> Iterator[None]:
    """Turn errors of remote access into typed ones; original messages may contain secrets."""
    try:
        yield
    except ForgetmapError:
        raise
    except failures() as error:
        raise _typed_error(error, address) from None


def failures() -> tuple[type[BaseException], ...]:
    """Return the exceptions of the system and of the remote libraries that are loaded."""
    classes = {
        "aiohttp": ("ClientError", "InvalidURL"),
        "azure.core.exceptions": ("AzureError",),
        "botocore.exceptions": ("BotoCoreError", "ClientError"),
        "gcsfs.retry": ("HttpError",),
        "google.auth.exceptions": ("GoogleAuthError",),
        "httpx": ("HTTPError",),
        "httpx2": ("HTTPError",),
        "huggingface_hub.errors": (
            "EntryNotFoundError", "RevisionResolutionError", "XetDownloadError"
        ),
        "requests.exceptions": ("RequestException",),
    }  # fmt: skip
    loaded = [
        getattr(sys.modules[module], name)
        for module, names in classes.items()
        if module in sys.modules
        for name in names
        if hasattr(sys.modules[module], name)
    ]
    return (OSError, EOFError, ValueError, NotImplementedError, *loaded)


def _typed_error(error: BaseException, address: str) -> ForgetmapError:
    causes = list(_causes(error))
    status = next((code for code in map(_status, causes) if code), None)
    names = [type(cause).__name__ for cause in causes]
    local = next((c.errno for c in causes if isinstance(c, OSError) and c.errno in _DISK), None)
    if local is not None:
        return OutputError(
            f"{address} cannot be stored in the cache: {os.strerror(local)}",
            hint="free some space, or set FORGETMAP_CACHE to another folder.",
        )
    if status in {404, 410} or "RepositoryNotFoundError" in names:
        return missing(address) if "RepositoryNotFoundError" not in names else _private(address)
    if status in {401, 403} or any(_is_forbidden(cause) for cause in causes):
        return _forbidden(address, names)
    if status == _BUSY or any(map(_is_cut_off, causes)):
        return _interrupted(address, status)
    if status is None and any(map(_is_missing, causes)):
        return missing(address)
    return _other(address, f"HTTP status {status}" if status else names[0])


def _interrupted(address: str, status: int | None) -> NetworkError:
    if status == _BUSY:
        return NetworkError(
            "the server has received too many requests",
            file=address,
            hint=f"wait a minute, then {KEPT}",
        )
    return NetworkError(
        "it cannot be reached, or the connection was lost",
        file=address,
        hint=f"check the address and your network; then {KEPT}",
    )


def _other(address: str, fact: str) -> UnreadableError:
    return UnreadableError(
        f"cannot be fetched ({fact})", file=address, hint=f"{KEPT} Or copy it yourself."
    )


def missing(address: str, near: str = "") -> MissingInputError:
    """Return the error for an address that does not exist."""
    return MissingInputError(
        "the file or folder does not exist", file=address, hint=near or "check the address."
    )


def _private(address: str) -> MissingInputError:
    """Return the error for a repository that is private or missing: the hub does not say which."""
    repository = urlsplit(address)
    is_dataset = repository.netloc == "datasets"
    other = "" if is_dataset else " A data set is hf://datasets/OWNER/NAME."
    return MissingInputError(
        "there is no such repository, or it is private",
        file=address,
        hint=f"check the name;{other} if it is private, {CREDENTIALS['hf']}",
    )


def _forbidden(address: str, names: list[str]) -> ForbiddenError:
    scheme = urlsplit(address).scheme
    hint = CREDENTIALS.get(ALIASES.get(scheme, scheme), "log in.")
    if "GatedRepoError" in names:
        return ForbiddenError(
            "access must be granted by its owner",
            file=address,
            hint=f"accept the terms on the page of the data set; then {hint}",
        )
    if any("NoCredentials" in name for name in names):
        return ForbiddenError("there are no credentials for it", file=address, hint=hint)
    return ForbiddenError("access is denied", file=address, hint=hint)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over an error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error of any of the libraries; None if it has none."""
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
    is_short = str(error).startswith("Consistency check failed")
    return is_system or is_short or _CUT_OFF.search(type(error).__name__) is not None
