"""Address of a server (`http://HOST/v1#MODEL`), its request limits and its prices."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from forgetmap.errors import UsageError

KEY = "FORGETMAP_API_KEY"
"""Environment variable with the API key; no key is sent if it is not set."""


def is_address(name: str) -> bool:
    """Whether this is a server address and not a file."""
    return name.lower().startswith(("http://", "https://"))


def checked_address(name: str) -> str:
    """Validate and normalise an address.

    Raises:
        UsageError: the address is invalid, or contains what may be a secret.
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
    """Split an address into the address of the server and the model name, which may be empty."""
    base, _, model = address.partition("#")
    return base, model


def _has_port(netloc: str) -> bool:
    """Whether the port, if any, is valid."""
    try:
        return urlsplit(f"//{netloc}").port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Traffic:
    """Request limits of a server, and retries.

    Attributes:
        concurrency: number of concurrent requests.
        requests_per_minute: upper limit on requests per minute; None is no limit.
        seconds: timeout of one reply.
        attempts: number of attempts per request.
        pause: seconds before the second attempt; doubled before each further one.
        longest_pause: maximum pause in seconds, unless the server asks for a longer one.
        spare: retry budget of the run; each successful reply adds half a retry, so occasional
            failures are tolerated and frequent ones end the run.
        in_a_row: number of failed requests in a row that end the run.
        price_in: price of a million input tokens.
        price_out: price of a million output tokens.
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
