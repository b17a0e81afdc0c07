"""Registries of named objects: built-in ones, and those of installed packages by entry point.

One `Registry` each holds log formats, scorers, merge methods, suites and whatever else a package
may add. Nothing of ours or of others is imported before it is used: listing names reads only the
metadata of installed packages. Ours come first, and no package replaces them: an entry of another
package under the name of ours is left out, and one under a name that two packages use is refused.
`forgetmap doctor` lists what packages add, and which of it is left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Generic, TypeVar

from forgetmap._lazy import import_own
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")

OURS = "forgetmap"
"""Our own package, which adds some suites by entry point."""

_PLUGIN_ERRORS = (
    ArithmeticError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What modules of other people may raise when they are imported, and objects when they are made."""


@dataclass(frozen=True, slots=True)
class Addition:
    """What an installed package adds.

    Attributes:
        kind: what it is called in messages, such as `merge method`.
        name: under which it is found.
        value: `module:attribute`.
        package: that adds it.
        version: of the package.
        left_out: why it is not used; empty if it is.
    """

    kind: str
    name: str
    value: str
    package: str
    version: str
    left_out: str = ""


# Compared by identity: two registries of one group are still two caches.
@dataclass(frozen=True, eq=False)
class Registry(Generic[Entry]):
    """Objects of one kind by name.

    Attributes:
        group: entry-point group in which packages add their own.
        kind: what one object is called in messages, such as `merge method`.
        built_in: name -> `module:attribute` of ours, in the order in which they are listed.
        check: makes the entry from the object that is loaded; raises TypeError, with a sentence
            about what is missing, if the object is something else.
    """

    group: str
    kind: str
    built_in: Mapping[str, str]
    check: Callable[[object], Entry]
    _entries: dict[str, Entry] = field(default_factory=dict, init=False, repr=False)

    def names(self) -> list[str]:
        """All names: ours in their order, those of other packages in alphabetical order."""
        return [*self.built_in, *sorted(self._plugins.keys() - self.built_in.keys())]

    def get(self, name: str) -> Entry:
        """The entry of this name, loaded if it is not yet.

        Raises:
            UsageError: there is none, or the package that adds it is broken.
            MissingPackageError: it needs an extra.
        """
        if name not in self._entries:
            self._entries[name] = self._load(name)
        return self._entries[name]

    def all(self) -> list[Entry]:
        """All entries, loaded, in the order of `names`."""
        return [self.get(name) for name in self.names()]

    def additions(self) -> list[Addition]:
        """What other packages add, in alphabetical order, and what is left out of it."""
        return [
            Addition(self.kind, name, point.value, *_package(point), self._why_left_out(name))
            for name, points in sorted(self._plugins.items())
            for point in points
            if _package(point)[0] != OURS
        ]

    @cached_property
    def _plugins(self) -> dict[str, list[EntryPoint]]:
        """Entry points by name; where we have one ourselves, or another package too, several."""
        if not _is_mentioned(self.group):
            return {}
        from importlib.metadata import entry_points

        found: dict[str, list[EntryPoint]] = {}
        for point in sorted(entry_points(group=self.group), key=_package):
            found.setdefault(point.name, []).append(point)
        return found

    def _why_left_out(self, name: str) -> str:
        """Why nobody gets what packages add under this name, if so."""
        points = self._plugins[name]
        packages = [_package(point)[0] for point in points]
        if name in self.built_in or (OURS in packages and len(points) > 1):
            return f"the built-in {self.kind} {name!r} is used instead"
        if len(points) > 1:
            return f"{' and '.join(packages)} both add a {self.kind} {name!r}, so neither is used"
        return ""

    def _load(self, name: str) -> Entry:
        if name not in self.built_in and name in self._plugins:
            return self._load_plugin(name)
        if name not in self.built_in:
            raise UsageError(
                f"there is no {self.kind} {name!r}",
                hint=f"{did_you_mean(name, self.names())}choose from {', '.join(self.names())}.",
            )
        return self.check(self._load_built_in(name))

    def _load_plugin(self, name: str) -> Entry:
        points = self._plugins[name]
        ours = [point for point in points if _package(point)[0] == OURS]
        if len(points) > 1 and not ours:
            raise UsageError(
                f"{self._why_left_out(name)}", hint="uninstall all of these packages except one."
            )
        point = (ours or points)[0]
        with _blame_package(self.kind, point):
            return self.check(point.load())

    def _load_built_in(self, name: str) -> object:
        module, _, attribute = self.built_in[name].partition(":")
        return getattr(import_own(module, f"The {self.kind} {name!r}"), attribute)


def _package(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the package that an entry point is of."""
    package = point.dist
    return (package.name, package.version) if package is not None else ("an unknown package", "")


def _is_mentioned(group: str) -> bool:
    """Whether an installed package may have entry points of this group.

    Most people have none, and reading the files takes a tenth of importing `importlib.metadata`,
    which would be a quarter of the time of `forgetmap merge --help`. Wherever files are not all
    there is, `importlib.metadata` has to answer.
    """
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    if finders != [PathFinder]:
        return True
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208  # half the time
        except NotADirectoryError:  # an archive of packages
            return True
        except OSError:
            continue
        for name in names:
            is_package = name.endswith((".dist-info", ".egg-info"))
            if name.endswith(".egg") or (is_package and _has_group(f"{folder}/{name}", group)):
                return True
    return False


def _has_group(info: str, group: str) -> bool:
    try:
        with open(f"{info}/entry_points.txt", "rb") as file:  # noqa: PTH123
            return f"[{group}]".encode() in file.read()
    except OSError:
        return False


@contextmanager
def _blame_package(kind: str, point: EntryPoint) -> Iterator[None]:
    try:
        yield
    except _PLUGIN_ERRORS as error:
        raise UsageError(
            f"the {kind} {point.name!r} ({point.value}) cannot be loaded: {error}",
            hint="fix or uninstall the package that adds it.",
        ) from error


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The beginning of a hint: the known word that is spelt most like this one, if one is."""
    from difflib import get_close_matches  # 2 ms

    near = get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]!r}? " if near else ""
