"""Command blocks of README and docs, run as a reader would, in one folder per page.

`forgetmap` runs in this process. Evaluations use fewer items and shorter answers than the page
states, and a local server replaces the servers of the pages.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from command_line import call

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^( *)```(\w*)[^\n]*$")
MARK = re.compile(r"<!-- (not run|slow): (.+?) -->")
SHELLS = {"sh", "bash", "console", "shell"}
COMMENT = re.compile(r"(^|\s)#( .*)?$")
DECIDES = {0, 1, 3}
"""Exit codes of a gate's decisions."""
FEWER = {"--limit": "1", "--max-new-tokens": "4"}
"""Options that keep evaluations within seconds."""
EVALUATE = (("run",), ("map",), ("merge", "sweep"))
SERVERS = re.compile(r"http://(localhost:8000|host-[ab])/v1")


@dataclass(frozen=True)
class Block:
    """A block of code of a page.

    Attributes:
        page: its path below the repository.
        line: line number of its first line of code.
        kind: the language.
        code: the lines.
        mark: `not run` or `slow`, if the page marks it so.
        reason: reason for the mark.
    """

    page: str
    line: int
    kind: str
    code: str
    mark: str = ""
    reason: str = ""

    @property
    def place(self) -> str:
        """Page and line, as editors open them."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[str]:
        """Yield the commands of a block, continued lines joined; in a console those after $."""
        for line in self.code.replace("\\\n", " ").splitlines():
            if self.kind == "console" and not line.startswith("$ "):
                continue
            command = COMMENT.sub("", line.removeprefix("$ ")).strip()
            if command:
                yield command


def pages() -> list[Path]:
    """Return README and docs without the pages of commands, which hold help texts only."""
    docs = ROOT / "docs"
    return [ROOT / "README.md", *sorted(docs.glob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page with commands or Python, in order."""
    name, blocks = str(page.relative_to(ROOT)), []
    lines = page.read_text(encoding="utf-8").splitlines()
    start, kind, indent = 0, "", 0
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence and not start:
            start, kind, indent = number + 1, fence[2], len(fence[1])
        elif fence:
            mark = MARK.search(lines[start - 2]) if start > 1 else None
            if kind in SHELLS or kind == "python":
                code = "\n".join(each[indent:] for each in lines[start:number])
                blocks.append(
                    Block(name, start + 1, kind, code, *(mark.groups() if mark else ("", "")))
                )
            start = 0
    return blocks


@dataclass
class Reader:
    """Runs the blocks of a page in one folder, as if typed into a terminal and a Python prompt.

    Attributes:
        folder: working folder.
        server: address of a working server.
        wheel: wheel that `pip install forgetmap` installs.
        names: variables of the Python prompt.
        given: files of the folder that existed before the page and were not replaced.
        code: exit code of the last command.
    """

    folder: Path
    server: str = ""
    wheel: Path | None = None
    names: dict[str, Any] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    code: int = 0

    def run(self, block: Block) -> None:
        """Run every command of a block; fail if one fails."""
        with chdir(self.folder):
            if block.kind == "python":
                source = compile(block.code, block.place, "exec")
                exec(source, self.names)  # the page itself
                return
            for command in block.commands():
                self.type(command, block.place)

    def type(self, command: str, place: str) -> None:
        """Run one command."""
        if command == "echo $?":
            return
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            pytest.MonkeyPatch().setenv(name, value)
            return
        words = [word for each in shlex.split(command) for word in _expand(each)]
        program, arguments = words[0], words[1:]
        if program == "forgetmap":
            self._forgetmap(arguments, f"{place}: {command}")
        elif program == "pip":
            self._install(arguments)
        else:
            done = subprocess.run(
                [Path(sys.executable).parent / program, *arguments],
                cwd=self.folder, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{place}: {command}\n{done.stdout}{done.stderr}"

    def _forgetmap(self, arguments: list[str], told: str) -> None:
        asks_server = any(map(SERVERS.match, arguments))
        arguments = [SERVERS.sub(self.server, word) for word in arguments]
        if any(tuple(arguments[: len(path)]) == path for path in EVALUATE):
            end = arguments.index("--") if "--" in arguments else len(arguments)
            more = [word for name, value in FEWER.items() if name not in arguments
                    for word in (name, value)]  # fmt: skip
            more += ["--scoring", "generate"] * asks_server  # the local server only generates
            arguments = [*arguments[:end], *more, *arguments[end:]]
        self._make_room(arguments)
        with patch("uvicorn.Server.run", lambda *_, **__: None):
            done = call(*arguments, columns=100)
        self.code = done.code
        allowed = DECIDES if arguments[0] == "gate" else {0}
        assert done.code in allowed, f"{told}\nexit code {done.code}\n{done.out}\n{done.err}"

    def _make_room(self, arguments: list[str]) -> None:
        """Delete files from before the page that the command writes."""
        for name, value in pairwise(arguments):
            if name == "--out" and value in self.given and arguments.count(value) == 1:
                path = self.folder / value
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                self.given.discard(value)

    def _install(self, arguments: list[str]) -> None:
        """Run `pip install` with the local wheel, in a separate environment."""
        assert arguments[0] == "install"
        assert self.wheel is not None
        home = self.folder / "environment"
        if not home.exists():
            venv.create(home)
        packages = [word for word in arguments[1:] if not word.startswith("-")]
        ours = [word for word in packages if word.startswith("forgetmap")]
        wheels = ["--no-index", "--find-links", str(self.wheel.parent), "--no-deps"]
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install",
             "--quiet", "--disable-pip-version-check", "--no-compile", *wheels, *ours],
            check=True,
        )  # fmt: skip
        site = next((home / "lib").glob("python*/site-packages"))
        assert (site / "forgetmap" / "py.typed").exists()
        # Dependencies are taken from this environment.
        around = os.pathsep.join(path for path in sys.path if "site-packages" in path)
        done = subprocess.run(
            [home / "bin" / "forgetmap", "--version"],
            env={**os.environ, "PYTHONPATH": around}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.startswith("forgetmap, version"), done.stderr


def _expand(word: str) -> list[str]:
    """Expand a word with a star, as a shell does."""
    if "*" not in word or ":" in word:
        return [word]
    return sorted(glob.glob(word)) or [word]  # noqa: PTH207  # in the folder of the page


def make_reader(source: Path, folder: Path, **more: Any) -> Reader:
    """Return a reader in a copy of a folder."""
    shutil.copytree(source, folder)
    given = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return Reader(folder, given=given, **more)
