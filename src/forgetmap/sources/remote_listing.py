"""Listing of the files at an address, with sizes and version tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from forgetmap.errors import UnknownFormatError, UnreadableError
from forgetmap.sources.remote_failures import failures, missing

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
MAX_LISTED = 400_000
"""Upper limit on listed objects of a bucket; a request lists a thousand."""
MAX_NAMES = 8
PARALLEL = 8
"""Concurrent requests; they wait for the network, not for a core."""

_CONTENT = ("etag", "oid", "blob_id", "xet_hash", "md5hash", "content-md5", "digest")
"""Fields that change with the content."""
_DATES = ("lastmodified", "last-modified", "last_modified", "updated", "mtime", "created")


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """Upper limits on a copy.

    Attributes:
        files: number of files of a folder.
        total: bytes of all files.
        other_bytes: bytes of a file without the ending of a log; larger ones are skipped.
    """

    files: int = 20_000
    total: int = 20 << 30
    other_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class RemoteEntry:
    """A remote file.

    Attributes:
        remote: name in the file system.
        inside: path below the folder; empty if the address is that of the file.
        size: bytes, if known.
        version: text that changes with the content; None if unknown.
    """

    remote: str
    inside: str
    size: int | None
    version: str | None


@dataclass(frozen=True, slots=True)
class RemoteListing:
    """The files at an address.

    Attributes:
        entries: files to copy.
        skipped: files skipped because of their size.
        is_folder: whether the address is that of a folder.
    """

    entries: Sequence[RemoteEntry]
    skipped: tuple[str, ...] = ()
    is_folder: bool = True

    @property
    def total(self) -> int:
        """Bytes of all entries whose size is known."""
        return sum(entry.size or 0 for entry in self.entries)


def list_entries(system: Any, path: str, address: str, limits: CopyLimits) -> RemoteListing:
    """List the files at an address.

    Raises:
        MissingInputError: the address does not exist.
        UnknownFormatError: there are too many files, or none that could be results.
    """
    if path.lower().endswith(LOG_ENDINGS) or _is_website(system):
        single = _single(system, path)
        if single is not None:
            return single
    infos = _below(system, path, address, limits)
    entries = [_entry(remote, inside, info) for remote, inside, info in infos if inside]
    if not entries and any(not inside for _, inside, _ in infos):
        remote, _, info = infos[0]
        return RemoteListing([_entry(remote, "", info)], is_folder=False)
    if len(entries) > limits.files:
        raise too_much(address, f"more than {limits.files:,} files")
    kept = [entry for entry in entries if _may_be_a_log(entry, limits)]
    if not kept:
        raise UnknownFormatError(
            "it contains no file that could be results",
            file=address,
            hint="check the address; give the folder or the file with the logs.",
        )
    skipped = tuple(entry.inside for entry in entries if entry not in kept)
    return RemoteListing(sorted(kept, key=lambda entry: entry.inside), skipped)


def too_much(address: str, fact: str) -> UnknownFormatError:
    """Return the error for a copy above the limits."""
    return UnknownFormatError(
        f"too large to fetch: {fact}",
        file=address,
        hint="give the folder of one run, or copy what you need yourself and give its path.",
    )


def speaks(system: Any, scheme: str) -> bool:
    """Whether this is the file system of a scheme."""
    protocol = system.protocol
    return scheme in ((protocol,) if isinstance(protocol, str) else protocol)


def _is_website(system: Any) -> bool:
    """Whether folders are pages of links, which contain neither sizes nor versions."""
    return speaks(system, "http")


def _single(system: Any, path: str) -> RemoteListing | None:
    """Return the listing of a single file; None if the address is a folder or does not exist."""
    try:
        info = system.info(path)
    except FileNotFoundError:
        if _is_website(system):
            raise
        return None
    if info["type"] == "directory" or info.get("mimetype") == "text/html":
        return None
    return RemoteListing([_entry(path, "", info)], is_folder=False)


_Info = tuple[str, str, Mapping[str, Any]]


def _below(system: Any, path: str, address: str, limits: CopyLimits) -> list[_Info]:
    """List the files below a folder, without those whose ending excludes a log."""
    if _is_website(system):
        return _with_sizes(system, list(_walk(system, path, address, limits)))
    options = {"max_items": MAX_LISTED} if speaks(system, "s3") else {}
    infos = system.find(path, detail=True, **options)
    if len(infos) >= MAX_LISTED:
        raise too_much(address, f"at least {MAX_LISTED:,} files")
    base = _base(system, path)
    if not infos:
        raise missing(address, _nearby(system, base, address))
    paths = [(name, _inside(str(name), base, address)) for name in infos]
    return [
        (name, inside, infos[name])
        for name, inside in paths
        if inside is not None and not inside.lower().endswith(OTHER_ENDINGS)
    ]


def _base(system: Any, path: str) -> str:
    """Return the folder as written in listings of the file system."""
    resolve = getattr(system, "resolve_path", None)
    name = resolve(path).unresolve() if resolve else system._strip_protocol(path)  # noqa: SLF001
    return str(name).rstrip("/") + "/"


def _nearby(system: Any, base: str, address: str) -> str:
    """Return a hint with the contents of the parent folder; empty if it cannot be listed."""
    above, slash, _ = base.rstrip("/").rpartition("/")
    if not slash or not above:
        return ""
    try:
        names = sorted(str(name).rstrip("/") for name in system.ls(above, detail=False))
    except failures():
        return ""
    shown = [name.rpartition("/")[2] for name in names if not name.endswith(base.rstrip("/"))]
    if not shown:
        return ""
    more = ", ..." if len(shown) > MAX_NAMES else ""
    folder = address.rstrip("/").rpartition("/")[0]
    return f"{folder} contains {', '.join(shown[:MAX_NAMES])}{more}."


def _walk(system: Any, folder: str, address: str, limits: CopyLimits) -> Iterator[_Info]:
    """Iterate over the files below a page of links."""
    base = folder.rstrip("/") + "/"
    pending, seen, count = [(folder, 0)], {base}, 0
    while pending:
        here, depth = pending.pop()
        for info in sorted(system.ls(here, detail=True), key=lambda info: str(info["name"])):
            name = str(info["name"])
            inside = _inside(name, base, address)
            if not inside:
                continue
            if info["type"] == "directory":
                if depth < MAX_DEPTH and name.rstrip("/") + "/" not in seen:
                    seen.add(name.rstrip("/") + "/")
                    pending.append((name, depth + 1))
            elif not inside.lower().endswith(OTHER_ENDINGS):
                count += 1
                if count > limits.files:
                    raise too_much(address, f"more than {limits.files:,} files")
                yield name, inside, info


def _with_sizes(system: Any, infos: Sequence[_Info]) -> list[_Info]:
    """Add sizes and versions, which a page of links does not contain."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        details = pool.map(
            lambda entry: entry[2] if _is_sized(entry[2]) else system.info(entry[0]), infos
        )
        return [
            (name, inside, info) for (name, inside, _), info in zip(infos, details, strict=True)
        ]


def _is_sized(info: Mapping[str, Any]) -> bool:
    return info.get("size") is not None


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
    return "/".join(parts) if parts and not is_hidden and len(parts) <= MAX_DEPTH + 1 else None


def _may_be_a_log(entry: RemoteEntry, limits: CopyLimits) -> bool:
    is_named_so = entry.inside.lower().endswith(LOG_ENDINGS)
    return is_named_so or entry.size is None or entry.size <= limits.other_bytes


def _entry(remote: str, inside: str, info: Mapping[str, Any]) -> RemoteEntry:
    return RemoteEntry(remote, inside, info.get("size"), version_of(info))


def version_of(info: Mapping[str, Any]) -> str | None:
    """Return the fields that change with the content, else the date; None without either."""
    known = {name.lower(): value for name, value in info.items() if value}
    for names in (_CONTENT, _DATES):
        version = "|".join(str(known[name]) for name in names if name in known)
        if version:
            return version
    return None
