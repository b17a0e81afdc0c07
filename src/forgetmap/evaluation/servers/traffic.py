"""How a server is asked: how many requests at once, how often, for how long, at what price."""

from __future__ import annotations

from dataclasses import dataclass

from forgetmap.errors import UsageError


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
                raise UsageError(f"{name} is out of range", hint="give a number above 0.")
