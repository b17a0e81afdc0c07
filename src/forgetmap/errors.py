"""Every error forgetmap raises on purpose.

    ForgetmapError
    ├── InputError              something handed in cannot be used; knows file, line and field
    │   ├── MissingInputError       the path does not exist
    │   ├── ForbiddenError          a remote path exists, but not for us
    │   ├── NetworkError            a remote path cannot be reached
    │   ├── UnknownFormatError      the path is something else than results
    │   ├── UnreadableError         the bytes are broken: truncated, corrupt, not UTF-8
    │   │   └── ChecksumError           a file is not as it was written
    │   ├── EmptyInputError         no rows
    │   ├── ColumnError             a column is missing, doubled or of the wrong kind
    │   ├── FieldError              one value is wrong
    │   ├── DuplicateKeyError       two rows claim to be the same result
    │   └── ManifestError           the manifest of a run folder is wrong
    ├── PairingError            the two sides must not be compared
    │   ├── TooFewPairedError       too few items occur on both sides
    │   ├── TaskVersionError        same task name, other version
    │   ├── MetricError             no single metric to compare
    │   └── BackendError            the two sides live in different dataframe libraries
    ├── LineageError            the runs do not form a chain
    ├── ModelError              a model cannot be found, loaded or used as asked
    ├── HarnessError            another evaluation program cannot be run, or failed
    ├── ConvergenceError        a computation did not come to an end that can be trusted
    ├── ClusterError            a cluster cannot be reached, or broke
    ├── WorkerError             a process that worked for this one ended without an answer
    │   └── TaskTimeoutError        it was ended, because it took too long
    ├── OutputError             the result cannot be written where it was asked for
    └── UsageError              an option or argument makes no sense
        └── MissingPackageError     an optional package is not installed; knows the extra

To add one: subclass the nearest branch, give the builtin it specialises as second parent, raise it
with a sentence made of facts and a `hint` that says what to do. The command line prints both and
exits with 2; nothing here ever reaches a user as a traceback.
"""

from __future__ import annotations

from collections.abc import Callable

TRUNCATED_HINT = "The file looks truncated: copy it again."
"""What to do about a file that ends too early or whose bytes are damaged."""


class ForgetmapError(Exception):
    """Base class of all errors raised by forgetmap: a message, and a hint that says what to do."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.hint, self.__dict__))


def _rebuild(
    kind: type[ForgetmapError], message: str, hint: str, state: dict[str, object]
) -> ForgetmapError:
    # Python refuses to make one by a parent that has no room for what another parent keeps.
    builtins = [parent for parent in kind.__mro__ if parent.__module__ == "builtins"]
    roomiest = max(builtins, key=lambda parent: parent.__basicsize__)
    make: Callable[..., ForgetmapError] = roomiest.__new__
    error = make(kind, message)
    Exception.__init__(error, message)
    error.message, error.hint = message, hint
    error.__dict__.update(state)
    return error


class InputError(ForgetmapError, ValueError):
    """Something handed in cannot be used.

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

    def __str__(self) -> str:
        location = ", ".join(
            part
            for part in (
                self.file,
                f"line {self.line}" if self.line is not None else None,
                f"field '{self.field}'" if self.field is not None else None,
            )
            if part
        )
        return f"{location}: {super().__str__()}" if location else super().__str__()


class MissingInputError(InputError, FileNotFoundError):
    """The path does not exist."""


class ForbiddenError(InputError, PermissionError):
    """A remote path may exist, but access to it is denied."""


class NetworkError(InputError, ConnectionError):
    """A remote path cannot be reached, or the connection broke."""


class UnknownFormatError(InputError):
    """The path exists, but is something else than evaluation results."""


class UnreadableError(InputError):
    """The bytes are broken: truncated, corrupt, or not UTF-8."""


class ChecksumError(UnreadableError):
    """A file is not as it was written: its bytes have another checksum."""


class EmptyInputError(InputError):
    """There is not a single result in it."""


class ColumnError(InputError, KeyError):
    """A column is missing, named twice, or of the wrong kind."""


class FieldError(InputError):
    """One value is wrong: not a number, out of range, not allowed."""


class DuplicateKeyError(InputError):
    """Two rows claim to be the same result."""


class ManifestError(InputError):
    """The manifest of a run folder is missing something or was written by a newer forgetmap."""


class PairingError(ForgetmapError, ValueError):
    """The two sides must not be compared as they are."""


class TooFewPairedError(PairingError):
    """Too few items occur on both sides."""


class TaskVersionError(PairingError):
    """A task has the same name but another version on the other side."""


class MetricError(PairingError):
    """There is no single metric to compare."""


class BackendError(PairingError, TypeError):
    """The two sides live in different dataframe libraries or connections."""


class LineageError(ForgetmapError, ValueError):
    """The runs do not form a chain."""


class ModelError(ForgetmapError, ValueError):
    """A model cannot be found, loaded or used as asked."""


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
    """A computation did not come to an end that can be trusted."""


class ClusterError(ForgetmapError, RuntimeError):
    """A cluster cannot be reached, has no room left, or is gone."""


class WorkerError(ForgetmapError, RuntimeError):
    """A process that worked for this one ended without an answer."""


class TaskTimeoutError(WorkerError, TimeoutError):
    """A process was ended, because what it did took too long."""


class OutputError(ForgetmapError, OSError):
    """The result cannot be written where it was asked for."""


class UsageError(ForgetmapError, ValueError):
    """An option or argument makes no sense."""


class MissingPackageError(UsageError, ImportError):
    """An optional package is not installed.

    Attributes:
        package: which one.
        extra: the extra of forgetmap that brings it.
    """

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the package {package}, which is not installed.",
            hint=f'install it: pip install "forgetmap[{extra}]".',
        )
        self.package = package
        self.extra = extra
