"""Registries of named objects: built-in ones, and those of installed packages by entry point.

There is one `Registry` each for log formats, scorers, merge methods, suites and so on. Nothing is
imported before it is used: listing names reads only the metadata of installed packages. Built-in
entries take precedence: an entry of another package with the name of a built-in one is ignored, and
a name that two packages use is refused. `forgetmap doctor` lists the entries of other packages and
those that are ignored.
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
"""Name of our package, which registers some suites by entry point."""

_PLUGIN_ERRORS = (
    ArithmeticError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""Errors that code of other packages may raise on import or when its objects are created."""


@dataclass(frozen=True, slots=True)
class Addition:
    """An entry that an installed package adds.

    Attributes:
        kind: kind of entry in messages, such as `merge method`.
        name: name of the entry.
        value: `module:attribute`.
        package: name of the package.
        version: version of the package.
        left_out: why the entry is ignored; empty if it is used.
    """

    kind: str
    name: str
    value: str
    package: str
    version: str
    left_out: str = ""


# Compared by identity: two registries of one group have separate caches.
@dataclass(frozen=True, eq=False)
class Registry(Generic[Entry]):
    """Objects of one kind by name.

    Attributes:
        group: entry-point group for entries of other packages.
        kind: kind of entry in messages, such as `merge method`.
        built_in: name -> `module:attribute` of built-in entries, in listing order.
        check: converts the loaded object into an entry; raises TypeError with a sentence about what
            is missing if the object is unsuitable.
    """

    group: str
    kind: str
    built_in: Mapping[str, str]
    check: Callable[[object], Entry]
    _entries: dict[str, Entry] = field(default_factory=dict, init=False, repr=False)

    def names(self) -> list[str]:
        """Return all names: built-in ones in their order, then those of packages, sorted."""
        return [*self.built_in, *sorted(self._plugins.keys() - self.built_in.keys())]

    def get(self, name: str) -> Entry:
        """Return the entry of this name; load it on first use.

        Raises:
            UsageError: there is no such entry, or the package that adds it is broken.
            MissingPackageError: the entry needs an extra.
        """
        if name not in self._entries:
            self._entries[name] = self._load(name)
        return self._entries[name]

    def all(self) -> list[Entry]:
        """All entries, loaded, in the order of `names`."""
        return [self.get(name) for name in self.names()]

    def additions(self) -> list[Addition]:
        """Return the entries of other packages in alphabetical order, ignored ones included."""
        return [
            Addition(self.kind, name, point.value, *_package(point), self._why_left_out(name))
            for name, points in sorted(self._plugins.items())
            for point in points
            if _package(point)[0] != OURS
        ]

    @cached_property
    def _plugins(self) -> dict[str, list[EntryPoint]]:
        """Entry points by name; several if a name is used more than once."""
        if not _is_mentioned(self.group):
            return {}
        from importlib.metadata import entry_points

        points: dict[str, list[EntryPoint]] = {}
        for point in sorted(entry_points(group=self.group), key=_package):
            points.setdefault(point.name, []).append(point)
        return points

    def _why_left_out(self, name: str) -> str:
        """Return why entries of packages with this name are ignored; empty if they are not."""
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
    """Return name and version of the package of an entry point."""
    package = point.dist
    return (package.name, package.version) if package is not None else ("an unknown package", "")


def _is_mentioned(group: str) -> bool:
    """Whether an installed package may have entry points of this group.

    Most installations have none, and reading the files takes a tenth of the import of
    `importlib.metadata`, which is a quarter of the time of `forgetmap merge --help`. If packages
    are not plain folders, `importlib.metadata` decides.
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
    """Return the beginning of a hint with the most similar known word; empty if there is none."""
    from difflib import get_close_matches  # 2 ms

    near = get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]!r}? " if near else ""
