"""The rate limit of publishers: `INTURN_PUBLISH_RATE_LIMIT`, such as `1000/s`; empty: none.

Each web process counts on its own: with several, a publisher may publish as many times as fast.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings

from delivery.incoming.problems import Problem
from subscriptions.models import Publisher

# The short way marks a request as counted by this key before it passes the request to the view.
COUNTED = "inturn.is_counted"
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(slots=True)
class Bucket:
    """A token bucket: it starts with a period's messages, and refills over a period.

    A batch may take more than the bucket has, so no size of batch is impossible; the next request
    waits for the difference.
    """

    messages: int
    seconds: int
    clock: Callable[[], float] = time.monotonic
    _left: dict[int, tuple[float, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_seconds(self, publisher_id: int, *, messages: int) -> int:
        """Take the messages and return 0, or take none and return the seconds to wait."""
        with self._lock:
            now = self.clock()
            left, at = self._left.get(publisher_id, (float(self.messages), now))
            left = min(left + (now - at) * self.messages / self.seconds, float(self.messages))
            missing = min(messages, 1) - left
            self._left[publisher_id] = (left if missing > 0 else left - messages, now)
        return math.ceil(missing * self.seconds / self.messages) if missing > 0 else 0


@lru_cache(maxsize=1)
def bucket_of(limit: str) -> Bucket | None:
    """Return the bucket of a limit, whose format `config.env` has checked."""
    if not limit:
        return None
    messages, _, unit = limit.partition("/")
    return Bucket(int(messages), _SECONDS[unit.strip()])


def limit_rate(publisher: Publisher, environ: Mapping[str, Any], *, messages: int = 1) -> None:
    """Raise Problem 429 with Retry-After when the publisher is too fast."""
    bucket = bucket_of(settings.ENVIRONMENT.publish_rate_limit)
    if bucket is None or COUNTED in environ:
        return
    if wait := bucket.wait_seconds(publisher.pk, messages=messages):
        raise Problem(
            429,
            "too-fast",
            (
                f"{publisher.name} may publish {settings.ENVIRONMENT.publish_rate_limit}; "
                f"wait {wait} s."
            ),
            headers={"Retry-After": str(wait)},
        )
