"""Deferred imports, and errors that name the package to install if an import fails.

`import forgetmap` and `forgetmap --help` must be fast although the public names need DuckDB, numpy
and torch. A package lists its names in the usual two places: in an import under `TYPE_CHECKING`,
from which type checkers and this module read where a name is defined, and in `__all__`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from forgetmap.errors import MissingPackageError

EXTRAS = {
    "aiohttp": "server", "httpx": "server",
    "accelerate": "run", "datasets": "run", "gguf": "run", "huggingface_hub": "run",
    "peft": "run", "safetensors": "run", "torch": "run", "transformers": "run", "yaml": "run",
    "emoji": "drift", "jsonschema": "drift", "langdetect": "drift", "markdown_it": "drift",
    "math_verify": "drift",
    "gcsfs": "remote", "s3fs": "remote",
    "pandas": "pandas", "polars": "polars", "pyspark": "spark",
    "ray": "ray", "vllm": "vllm",
    "starlette": "serve", "uvicorn": "serve",
    "trl": "train",
}  # fmt: skip
"""Package -> the extra of forgetmap that installs it; `require` may name another one."""

# A parser would be more robust, but importing one takes a tenth of the time of `--help`.
_IMPORT = re.compile(r"^ +from (forgetmap[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


def load_on_use(package: str, init_file: str) -> Callable[[str], object]:
    """Return `__getattr__` for a package whose `__init__.py` imports only under `TYPE_CHECKING`.

    Values are not cached in the package, so that a function replaced in its module by a test is
    also replaced in the package.

    Args:
        package: `__name__` of the package.
        init_file: its `__file__`.
    """
    homes: dict[str, str] = {}

    def load(name: str) -> object:
        if not homes:
            homes.update(read_homes(init_file))
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_own(homes[name]), name)

    return load


def read_homes(init_file: str) -> dict[str, str]:
    """Read from the source of a package which module each name is imported from."""
    with open(init_file, encoding="utf-8") as file:  # noqa: PTH123  # pathlib takes 5 ms
        source = file.read()
    return {
        name: module
        for module, names in _IMPORT.findall(source)
        for name in re.findall(r"\w+", names)
    }


class LazyModule:
    """A module that is imported when one of its names is first used.

    For modules that only a few functions need:

        if TYPE_CHECKING:
            import torch
        else:
            torch = LazyModule("torch")
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        value = getattr(require(self._name, "This"), name)
        setattr(self, name, value)  # later uses do not call __getattr__
        return value


def require(package: str, feature: str, *, extra: str | None = None) -> Any:
    """Import an optional package.

    Args:
        package: the package to import, such as `torch` or `transformers.utils`.
        feature: the feature that needs it, as the beginning of a sentence: `Running models`.
        extra: the extra that installs it for this feature; by default that of `EXTRAS`.

    Raises:
        MissingPackageError: the package, or one that it needs, is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            feature, error.name or package, extra or EXTRAS[_root(package)]
        ) from error


def check_installed(package: str, feature: str, *, extra: str | None = None) -> None:
    """Like `require`, without the import: for packages that are slow to load."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise MissingPackageError(feature, package, extra or EXTRAS[package])


def import_own(module: str, feature: str = "This") -> Any:
    """Import a module of forgetmap that may import optional packages; errors as in `require`."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = _root(error.name or "")
        if package not in EXTRAS:
            raise
        raise MissingPackageError(feature, package, EXTRAS[package]) from error


def _root(module: str) -> str:
    return module.partition(".")[0]
