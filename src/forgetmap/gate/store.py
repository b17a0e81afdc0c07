"""Storage of baselines and decisions: a folder, or any address that fsspec can write.

    STORE/baselines/NAME/current.json      the current version, with a checksum of every file
    STORE/baselines/NAME/VERSION/...       a run folder
    STORE/history/TIME-HASH.json           one decision each

Files are written before the pointer to them, so that there is always a complete baseline.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap._disk import sync_tree, whole_file
from forgetmap._http import redact_url
from forgetmap.errors import ChecksumError, MissingInputError, OutputError, UnreadableError
from forgetmap.sources import is_remote, typed_failures

_CHECKSUM = "sha256"


@dataclass(frozen=True, slots=True)
class BaselineStore:
    """A store of files by their relative path.

    Attributes:
        address: a folder, or an address for fsspec.
    """

    address: str

    @property
    def shown(self) -> str:
        """The address without secrets."""
        return redact_url(self.address) if is_remote(self.address) else self.address

    def read(self, path: str) -> bytes:
        """Read a file.

        Raises:
            MissingInputError: there is no such file.
        """
        if not is_remote(self.address):
            try:
                return self._local(path).read_bytes()
            except FileNotFoundError:
                raise _missing(self.shown, path) from None
        with typed_failures(f"{self.shown}/{path}"):
            system, root = self._connect()
            content: bytes = system.cat_file(f"{root}/{path}")
            return content

    def write(self, path: str, content: bytes) -> None:
        """Write a file; a local one is replaced atomically."""
        if is_remote(self.address):
            with typed_failures(f"{self.shown}/{path}"):
                system, root = self._connect()
                system.makedirs(f"{root}/{path}".rpartition("/")[0], exist_ok=True)
                system.pipe_file(f"{root}/{path}", content)
            return
        target = self._local(path)
        try:
            with whole_file(target) as partial:
                partial.write_bytes(content)
        except OSError as error:
            raise OutputError(
                f"{target} cannot be written: {error.strerror}",
                hint="choose another --store, or free some space and check the permissions.",
            ) from error

    def list_names(self, folder: str) -> list[str]:
        """List the files of a folder, sorted; empty if there is no such folder."""
        if not is_remote(self.address):
            there = self._local(folder)
            files = there.iterdir() if there.is_dir() else ()
            return sorted(path.name for path in files if not path.name.startswith("."))
        with typed_failures(f"{self.shown}/{folder}"):
            system, root = self._connect()
            if not system.exists(f"{root}/{folder}"):
                return []
            paths = system.ls(f"{root}/{folder}", detail=False)
            return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def put_folder(self, folder: Path, path: str) -> None:
        """Copy a folder of files into the store."""
        for file in sorted(folder.iterdir()):
            self.write(f"{path}/{file.name}", file.read_bytes())
        if not is_remote(self.address):
            sync_tree(self._local(path))

    def get_folder(self, path: str, names: Mapping[str, str], target: Path) -> None:
        """Copy files out of the store, and verify their checksums.

        Args:
            path: the folder inside the store.
            names: names of the files, each with its checksum.
            target: an empty folder.

        Raises:
            ChecksumError: a file was changed.
        """
        for name, checksum in names.items():
            content = self.read(f"{path}/{name}")
            if hashlib.sha256(content).hexdigest() != checksum:
                raise ChecksumError(
                    "the file was changed after it was accepted",
                    file=f"{self.shown}/{path}/{name}",
                    hint="restore it from a backup, or accept the run again.",
                )
            (target / name).write_bytes(content)

    def read_json(self, path: str) -> dict[str, Any]:
        """Read a JSON object that `write_json` wrote.

        Raises:
            ChecksumError: it was changed.
            UnreadableError: it is not such an object.
        """
        file = f"{self.shown}/{path}"
        hint = "restore it from a backup, or create it again."
        try:
            content = json.loads(self.read(path))
        except (ValueError, RecursionError):
            raise UnreadableError("not JSON", file=file, hint=hint) from None
        if not isinstance(content, dict) or _CHECKSUM not in content:
            raise UnreadableError("not a file of this store", file=file, hint=hint)
        if content.pop(_CHECKSUM) != _checksum(content):
            raise ChecksumError("the file was changed after it was written", file=file, hint=hint)
        return content

    def write_json(self, path: str, content: Mapping[str, Any]) -> None:
        """Write a JSON object with its own checksum."""
        whole = {**content, _CHECKSUM: _checksum(content)}
        self.write(path, (json.dumps(whole, indent=2, sort_keys=True) + "\n").encode())

    def _local(self, path: str) -> Path:
        return Path(self.address) / path

    def _connect(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # large, and not needed for a folder

        system, root = url_to_fs(self.address)
        return system, root.rstrip("/")


def is_store_name(name: str) -> bool:
    """Return whether a name can be a folder of a store on every system."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) is not None


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _missing(address: str, path: str) -> MissingInputError:
    return MissingInputError(
        "the file does not exist",
        file=f"{address}/{path}",
        hint="check --store; create a baseline with `forgetmap gate accept RUN --as NAME`.",
    )
