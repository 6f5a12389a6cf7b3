"""The addresses of a name, queried from real name servers."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pycares
import pytest

from config.env import CHECKOUT
from subscriptions.values.resolver import Resolver, UnresolvedError
from tests.support.receivers.name_server import NameServer, name_server


@pytest.fixture
def names() -> Iterator[NameServer]:
    with name_server({"well.test": ["127.0.0.2", "127.0.0.1"], "gone.test": []}) as names:
        yield names


def test_a_name_has_all_its_addresses(names: NameServer) -> None:
    resolver = Resolver(servers=[names.address])
    assert sorted(resolver.addresses_of("well.test")) == ["127.0.0.1", "127.0.0.2"]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_an_address_is_its_own(names: NameServer, host: str) -> None:
    assert Resolver(servers=[names.address]).addresses_of(host) == [host.strip("[]")]
    assert names.asked == []


def test_names_in_etc_hosts_are_not_queried(names: NameServer) -> None:
    assert "127.0.0.1" in Resolver(servers=[names.address]).addresses_of("localhost")
    assert names.asked == []


def test_names_that_are_not_answered_take_no_thread_and_delay_no_other_name(
    names: NameServer,
) -> None:
    resolver = Resolver(servers=[names.address])
    resolver.addresses_of("well.test")
    threads = set(threading.enumerate())
    for number in range(500):
        with pytest.raises(UnresolvedError, match="no answer within 0 s"):
            resolver.addresses_of(f"dead-{number}.test", seconds=0)
    assert set(threading.enumerate()) <= threads
    assert resolver.addresses_of("well.test")


def test_a_failed_name_is_queried_at_intervals(names: NameServer) -> None:
    resolver = Resolver(servers=[names.address])
    for _ in range(3):
        with pytest.raises(UnresolvedError, match="has no address"):
            resolver.addresses_of("gone.test")
    assert names.asked == ["gone.test"] * 2  # for IPv4 and for IPv6


def test_without_c_ares_names_are_resolved_by_libc(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise pycares.AresError("Failed to initialize c-ares channel")

    monkeypatch.setattr(pycares, "Channel", fail)
    resolver = Resolver()
    assert "127.0.0.1" in resolver.addresses_of("localhost")
    with pytest.raises(UnresolvedError):
        resolver.addresses_of("no host name")


FORKING = """
import os, sys
from subscriptions.values.resolver import resolver
resolver.__init__(servers=[sys.argv[1]])
assert resolver.addresses_of("well.test")
try:
    resolver.addresses_of("never-answered.test", seconds=0)
except OSError:
    pass
child = os.fork()
if not child:
    # The parent's thread and what it waits for are not here.
    assert resolver.addresses_of("well.test")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert resolver.addresses_of("well.test")
"""


def test_a_child_process_resolves_names_and_no_pending_query_keeps_it_alive(
    names: NameServer,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING, names.address],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
