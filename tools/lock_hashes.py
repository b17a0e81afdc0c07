"""The hashes of every package that constraints.txt pins, in requirements.lock.

usage: python tools/lock_hashes.py            query the package index and write requirements.lock
       python tools/lock_hashes.py --check    check that every pin has its hashes; works offline
       python tools/lock_hashes.py --report FILE
                                              check the choice of pip (pip install --report)

constraints.txt has no hashes: with a single one, pip requires them for everything, also for the
checkout and for torch, which has its own builds. Those are in FROM_ELSEWHERE. The index is the one
that pip uses.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent
CONSTRAINTS, LOCK = ROOT / "constraints.txt", ROOT / "requirements.lock"
FROM_ELSEWHERE = re.compile(r"forgetmap|torch|torchaudio|torchvision|triton|nvidia-.*")
"""Not from the index: our own checkout, and torch with its dependencies."""
AT_A_TIME = 8
SECONDS = 60.0
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([\w.!+]+)", re.MULTILINE)
_LINK = re.compile(r"""href=["'][^"'#]*/([^"'#/]+)#sha256=([0-9a-f]{64})["']""")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_SUPPORTED = re.compile(r"-(py2\.)?py3\d*-|-cp31[1-4]-|-cp3\d+-abi3")
"""Tags in the name of a wheel that a supported Python can install."""
_HEAD = (
    "# Hashes of what constraints.txt pins, for all systems; written by `make lock`.\n"
    "# pip install --require-hashes --no-deps -r requirements.lock\n"
)

Hashes = Mapping[tuple[str, str], frozenset[str]]
"""Name and version -> hashes of all files of that version."""


def plain_name(name: str) -> str:
    """Return a name in the spelling of the index."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> list[tuple[str, str]]:
    """Return pinned names and versions, without those from elsewhere."""
    found = ((plain_name(name), version) for name, version in _PIN.findall(text))
    return sorted(pin for pin in found if not FROM_ELSEWHERE.fullmatch(pin[0]))


def locked(text: str) -> Hashes:
    """Return the hashes in a lock file."""
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)
    return {pin: frozenset(_HASH.findall(entry)) for entry in entries for pin in pins(entry)}


def is_of_version(file: str, name: str, version: str) -> bool:
    """Whether a file on the index is a wheel or source of this version."""
    if file.endswith(".whl"):
        stem, stated, *_ = unquote(file).split("-")
        is_usable = bool(_SUPPORTED.search(file))
    else:
        source = re.sub(r"\.(tar\.gz|zip|tar\.bz2)$", "", unquote(file))
        stem, _, stated = source.rpartition("-")
        is_usable = True
    return is_usable and (plain_name(stem), stated) == (name, version)


def hashes_on_page(page: str, name: str, version: str) -> list[str]:
    """Return the hashes of one version on the page of a package."""
    return sorted(
        {mark for file, mark in _LINK.findall(page) if is_of_version(file, name, version)}
    )


def index_address() -> str:
    """Return the index of pip."""
    from pip._internal.models.index import PyPI

    return (os.environ.get("PIP_INDEX_URL") or PyPI.simple_url).rstrip("/")


def ask(address: str, pin: tuple[str, str]) -> list[str]:
    """Return the hashes of one pin; empty if the index does not have it."""
    request = urllib.request.Request(f"{address}/{pin[0]}/", headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            return hashes_on_page(reply.read().decode("utf-8"), *pin)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise


def write() -> int:
    """Query all pins and write the lock; nothing is written if one has no hashes."""
    wanted = pins(CONSTRAINTS.read_text("utf-8"))
    address = index_address()
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = list(pool.map(lambda pin: ask(address, pin), wanted))
    missing = [f"{pin[0]}=={pin[1]}" for pin, marks in zip(wanted, found, strict=True) if not marks]
    if missing:
        print("The index has no hashes of", ", ".join(missing))
        return 1
    entries = (
        " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{mark}" for mark in marks)])
        for (name, version), marks in zip(wanted, found, strict=True)
    )
    LOCK.write_text(_HEAD + "\n".join(entries) + "\n", "utf-8")
    print(f"{LOCK.name}: {len(wanted)} packages, {sum(map(len, found))} hashes")
    return 0


def faults_of_lock(constraints: str, lock: str) -> list[str]:
    """Return pins without hashes, and hashes without a pin."""
    wanted, there = set(pins(constraints)), locked(lock)
    without = [
        f"{name}=={version} has no hashes"
        for name, version in sorted(wanted)
        if not there.get((name, version))
    ]
    return without + [
        f"{name}=={version} is not pinned" for name, version in sorted(there.keys() - wanted)
    ]


def faults_of_report(report: Mapping[str, Any], lock: str) -> list[str]:
    """Return choices of pip that differ from the lock; local files are not from the index."""
    return [
        fault for entry in report["install"] for fault in _faults_of_choice(entry, locked(lock))
    ]


def _faults_of_choice(entry: Mapping[str, Any], there: Hashes) -> Iterable[str]:
    name, version = plain_name(entry["metadata"]["name"]), entry["metadata"]["version"]
    if FROM_ELSEWHERE.fullmatch(name):
        return
    mark = entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", "")
    if (name, version) not in there:
        yield f"{name} {version} is not in {LOCK.name}"
    elif mark not in there[name, version]:
        yield f"{name} {version} has the hash {mark or 'unknown'}, which is not in {LOCK.name}"


def main(arguments: Sequence[str]) -> int:
    """Write the lock, or print its faults."""
    match arguments:
        case []:
            return write()
        case ["--check"]:
            faults = faults_of_lock(CONSTRAINTS.read_text("utf-8"), LOCK.read_text("utf-8"))
        case ["--report", file]:
            report = json.loads(Path(file).read_text("utf-8"))
            faults = faults_of_report(report, LOCK.read_text("utf-8"))
        case _:
            print(__doc__)
            return 2
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
