"""Address of a server (`http://HOST/v1#MODEL`), its request limits and its prices."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from forgetmap.errors import UsageError

KEY = "FORGETMAP_API_KEY"
"""Environment variable with the key of a server; none is sent if it is not set."""


def is_address(name: str) -> bool:
    """Whether this names a server and not a file."""
    return name.lower().startswith(("http://", "https://"))


def checked_address(name: str) -> str:
    """The address in one spelling.

    Raises:
        UsageError: it is none, or holds what may be a secret.
    """
    parts = urlsplit(name.strip())
    if parts.username or parts.password or parts.query:
        raise UsageError(
            "the server address contains a user name, a password or a query",
            hint="use http://HOST/v1#MODEL, and put the API key into the environment variable "
            f"{KEY}.",
        )
    if not parts.hostname or not _has_port(parts.netloc):
        raise UsageError(
            f"{parts.scheme}://{parts.netloc} is not a server address",
            hint="use an address such as http://localhost:8000/v1#MODEL.",
        )
    path = parts.path.rstrip("/") or "/v1"
    model = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.scheme}://{parts.netloc}{path}{model}"


def split_address(address: str) -> tuple[str, str]:
    """Where the server is, and what the model is called there; nothing if that is left open."""
    base, _, model = address.partition("#")
    return base, model


def _has_port(netloc: str) -> bool:
    """Whether the part behind the colon, if any, can be a port."""
    try:
        return urlsplit(f"//{netloc}").port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a server is expected to bear, and what is done when it does not.

    Attributes:
        concurrency: requests under way at the same time.
        requests_per_minute: no more than these are sent; as many as go through if None.
        seconds: for one reply.
        attempts: for one request.
        pause: seconds before the second attempt; twice as many before each further one.
        longest_pause: seconds; a server that names a longer one is waited for as it asks.
        spare: attempts beyond the first that a run may need at the start; each reply earns half
            of one more, so that a server that fails now and then is borne and one that fails
            more than that is not.
        in_a_row: requests that fail for good, one after the other, that end the run.
        price_in: of a million tokens read.
        price_out: of a million tokens written.
    """

    concurrency: int = 16
    requests_per_minute: float | None = None
    seconds: float = 600.0
    attempts: int = 8
    pause: float = 0.5
    longest_pause: float = 30.0
    spare: int = 200
    in_a_row: int = 20
    price_in: float | None = None
    price_out: float | None = None

    def __post_init__(self) -> None:
        least = {
            "--concurrency": self.concurrency >= 1,
            "--requests-per-minute": self.requests_per_minute is None
            or self.requests_per_minute > 0,
            "--timeout": self.seconds > 0,
            "--price-in": self.price_in is None or self.price_in >= 0,
            "--price-out": self.price_out is None or self.price_out >= 0,
        }
        for name, fine in least.items():
            if not fine:
                raise UsageError(f"{name} is out of range", hint="use a number above 0.")
