"""Every error forgetmap raises on purpose.

    ForgetmapError
    ├── InputError              an input cannot be used; has file, line and field
    │   ├── MissingInputError       the path does not exist
    │   ├── ForbiddenError          access to a remote path is denied
    │   ├── NetworkError            a remote path cannot be reached
    │   ├── UnknownFormatError      the path does not hold results
    │   ├── UnreadableError         the bytes are broken: truncated, corrupt, not UTF-8
    │   │   └── ChecksumError           a file was changed after it was written
    │   ├── EmptyInputError         no rows
    │   ├── ColumnError             a column is missing, duplicated or of the wrong kind
    │   ├── FieldError              one value is wrong
    │   ├── DuplicateKeyError       two rows have the same key
    │   ├── ContradictionError      the results contradict what their log states
    │   └── ManifestError           the manifest of a run folder is wrong
    ├── PairingError            the two sides cannot be compared
    │   ├── TooFewPairedError       too few items occur on both sides
    │   ├── TaskVersionError        same task name, other version
    │   ├── MetricError             no single metric to compare
    │   └── BackendError            the two sides use different dataframe libraries
    ├── LineageError            the runs do not form a chain
    ├── ModelError              a model cannot be found, loaded or used as requested
    ├── HarnessError            another evaluation program cannot be run, or failed
    ├── ConvergenceError        a computation did not converge
    ├── ClusterError            a cluster cannot be reached, or failed
    ├── WorkerError             a worker process ended without a result
    │   └── TaskTimeoutError        it was stopped after a timeout
    ├── OutputError             the result cannot be written to this path
    └── UsageError              an option or argument is invalid
        └── MissingPackageError     an optional package is not installed; names the extra

To add one: subclass the nearest branch, give the builtin it specialises as second parent, raise it
with a factual message and a `hint` that says what to do. The command line prints both and
exits with code 2, without a traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

TRUNCATED_HINT = "The file looks truncated: copy it again."
"""What to do about a file that ends too early or whose bytes are damaged."""


class ForgetmapError(Exception):
    """Base class of all errors raised by forgetmap: a message, and a hint that says what to do."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def located(self) -> str:
        """The message, with the location of the problem if there is one."""
        return self.message

    def __str__(self) -> str:
        return f"{self.located}\nHint: {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.hint, self.__dict__))


def _rebuild(
    kind: type[ForgetmapError], message: str, hint: str, state: dict[str, object]
) -> ForgetmapError:
    # An object must be created by the built-in parent with the largest memory layout.
    builtins = [parent for parent in kind.__mro__ if parent.__module__ == "builtins"]
    roomiest = max(builtins, key=lambda parent: parent.__basicsize__)
    make: Callable[..., ForgetmapError] = roomiest.__new__
    error = make(kind, message)
    Exception.__init__(error, message)
    error.message, error.hint = message, hint
    error.__dict__.update(state)
    return error


class InputError(ForgetmapError, ValueError):
    """An input cannot be used.

    Attributes:
        file: the path (or a name for a dataframe), if there is one.
        line: line of a text file, counted from 1, or row of a table, if there is one.
        field: the column or manifest entry concerned, if there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line
        self.field = field

    @property
    def located(self) -> str:
        """The message after file, line and field."""
        location = ", ".join(
            part
            for part in (
                self.file,
                f"line {self.line}" if self.line is not None else None,
                f"field '{self.field}'" if self.field is not None else None,
            )
            if part
        )
        return f"{location}: {self.message}" if location else self.message


class MissingInputError(InputError, FileNotFoundError):
    """The path does not exist."""


class ForbiddenError(InputError, PermissionError):
    """A remote path may exist, but access to it is denied."""


class NetworkError(InputError, ConnectionError):
    """A remote path cannot be reached, or the connection broke."""


class UnknownFormatError(InputError):
    """The path exists, but does not hold evaluation results."""


class UnreadableError(InputError):
    """The bytes are broken: truncated, corrupt, or not UTF-8."""


class ChecksumError(UnreadableError):
    """A file was changed after it was written: its checksum differs."""


class EmptyInputError(InputError):
    """The input has no results."""


class ColumnError(InputError, KeyError):
    """A column is missing, duplicated, or of the wrong kind.

    Attributes:
        missing: required fields for which no column was found.
    """

    missing: tuple[str, ...] = ()


class FieldError(InputError):
    """One value is wrong: not a number, out of range, not allowed."""


class DuplicateKeyError(InputError):
    """Two rows have the same key."""


class ContradictionError(InputError):
    """The results contradict what their log states about them."""


class ManifestError(InputError):
    """The manifest of a run folder is incomplete, or was written by a newer version."""


class PairingError(ForgetmapError, ValueError):
    """The two sides cannot be compared as they are."""


class TooFewPairedError(PairingError):
    """Too few items occur on both sides."""


class TaskVersionError(PairingError):
    """A task has the same name but another version on the other side."""


class MetricError(PairingError):
    """There is no single metric to compare."""


class BackendError(PairingError, TypeError):
    """The two sides use different dataframe libraries or connections."""


class LineageError(ForgetmapError, ValueError):
    """The runs do not form a chain."""


class ModelError(ForgetmapError, ValueError):
    """A model cannot be found, loaded or used as requested."""


class HarnessError(ForgetmapError, RuntimeError):
    """Another evaluation program cannot be run, or failed.

    Attributes:
        output: the last lines it printed.
    """

    def __init__(self, message: str, *, hint: str, output: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.output = output

    def __str__(self) -> str:
        output = "".join(f"\n  | {line}" for line in self.output)
        return f"{self.message}{output}\nHint: {self.hint}"


class ConvergenceError(ForgetmapError, ArithmeticError):
    """A computation did not converge."""


class ClusterError(ForgetmapError, RuntimeError):
    """A cluster cannot be reached, is full, or has stopped."""


class WorkerError(ForgetmapError, RuntimeError):
    """A worker process ended without a result."""


class TaskTimeoutError(WorkerError, TimeoutError):
    """A worker process was stopped after a timeout."""


class OutputError(ForgetmapError, OSError):
    """The result cannot be written to the given path.

    Attributes:
        occupied: the file or folder whose content is in the way, if that is the reason.
    """

    def __init__(self, message: str, *, hint: str, occupied: Path | None = None) -> None:
        super().__init__(message, hint=hint)
        self.occupied = occupied


class UsageError(ForgetmapError, ValueError):
    """An option or argument is invalid."""


class MissingPackageError(UsageError, ImportError):
    """An optional package is not installed.

    Attributes:
        package: the missing package.
        extra: the extra of forgetmap that installs it.
    """

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the package {package}, which is not installed.",
            hint=f'install it: pip install "forgetmap[{extra}]".',
        )
        self.package = package
        self.extra = extra
