"""`bench console`: response times of the console's pages with millions of deliveries."""

import http.client
import secrets
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from tqdm import tqdm

from delivery.models import Delivery
from tests.bench.console_pages import MeasuredPage, pages
from tests.bench.console_samples import read_samples
from tests.bench.results import BenchReceipt, BenchResult, machine, print_report
from tests.bench.web import web

VISITOR = "bench-console"
# The time recorded for an error or half a page as answer: nobody would wait so long.
GIVEN_UP_MS = 60_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """The time of each answer, in milliseconds; `slowest` is the address of the longest."""

    page: MeasuredPage
    milliseconds: list[float]
    slowest: str

    @property
    def median(self) -> float:
        return median(self.milliseconds)

    @property
    def ninety_fifth(self) -> float:
        if len(self.milliseconds) == 1:
            return self.milliseconds[0]
        return quantiles(self.milliseconds, n=20, method="inclusive")[-1]

    def results(self) -> list[BenchResult]:
        return [
            _result(f"{self.page.name}: median", self.median, at_most=self.page.median_ms),
            _result(
                f"{self.page.name}: 95th percentile",
                self.ninety_fifth,
                at_most=self.page.ninety_fifth_ms,
            ),
        ]

    @property
    def is_met(self) -> bool:
        return all(result.is_met for result in self.results())


def run(*, rounds: int, as_json: bool) -> int:
    """Request every page so many times, one at a time, from the real web server.

    Return the exit code: 1 if a page is too slow.
    """
    with web() as port, closing(_connection(port)) as connection, _session() as session:
        visitor = _Visitor(connection, session)
        asked = pages(read_samples(now=timezone.now()))
        # Warm up templates and connections' caches, which every page needs once.
        visitor.time(asked[0], rounds=1)
        timed = [
            visitor.time(page, rounds=rounds)
            for page in tqdm(asked, desc="console", unit="page", file=sys.stderr, disable=None)
        ]
    results = [result for run in timed for result in run.results()]
    if as_json:
        print_report("console", results, BenchReceipt(), as_json=True)
    else:
        _print_table(timed)
    return 0 if all(result.is_met for result in results) else 1


def page_medians(port: int, names: Collection[str], *, rounds: int) -> dict[str, float]:
    """Read these pages of a running web server; return the median of each, in milliseconds."""
    with closing(_connection(port)) as connection, _session() as session:
        visitor = _Visitor(connection, session)
        wanted = [page for page in pages(read_samples(now=timezone.now())) if page.name in names]
        for page in wanted:
            visitor.time(page, rounds=1)
        return {page.name: visitor.time(page, rounds=rounds).median for page in wanted}


class _Visitor:
    """A signed-in administrator on a connection."""

    def __init__(self, connection: http.client.HTTPConnection, session: str) -> None:
        self._connection = connection
        self._headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}

    def time(self, page: MeasuredPage, *, rounds: int) -> Timed:
        """Request the page's addresses in turn, each at least once."""
        count = max(rounds, len(page.addresses))
        answers = [
            (self._ask(address, page), address)
            for number in range(count)
            for address in [page.addresses[number % len(page.addresses)]]
        ]
        return Timed(page=page, milliseconds=[took for took, _ in answers], slowest=max(answers)[1])

    def _ask(self, address: str, page: MeasuredPage) -> float:
        """Return the milliseconds until the whole answer had arrived."""
        began = time.perf_counter()
        script = {"HX-Request": "true", "HX-Target": page.part} if page.part else {}
        self._connection.request("GET", address, headers=self._headers | script)
        answer = self._connection.getresponse()
        body = answer.read()
        took = 1000 * (time.perf_counter() - began)
        is_right = answer.status == http.HTTPStatus.OK and not (
            page.unwanted and page.unwanted in body
        )
        return took if is_right else GIVEN_UP_MS


def _connection(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


@contextmanager
def _session() -> Iterator[str]:
    """Sign in a superuser and yield the session's key; delete both afterwards."""
    # A killed run leaves a user, which has no usable password.
    user = User(username=f"{VISITOR}-{secrets.token_hex(4)}", is_staff=True, is_superuser=True)
    user.set_unusable_password()
    user.save()
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    try:
        yield str(session.session_key)
    finally:
        session.delete()
        user.delete()


def _result(name: str, value: float, *, at_most: float) -> BenchResult:
    return BenchResult(
        name=name,
        value=value,
        unit="ms",
        limit=at_most,
        ratio=value / at_most,
        wanted=1,
        is_at_most=True,
    )


def _print_table(timed: list[Timed]) -> None:
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"{Delivery.objects.count():,} deliveries")
    print(f"{'page':<52} {'median':>9} {'95th percentile':>20}")
    for run in timed:
        verdict = "met" if run.is_met else f"NOT MET: {run.slowest}"
        print(
            f"{run.page.name:<52} {run.median:>6,.0f} ms {run.ninety_fifth:>17,.0f} ms"
            f"  (at most {run.page.median_ms:g} and {run.page.ninety_fifth_ms:g}: {verdict})"
        )
