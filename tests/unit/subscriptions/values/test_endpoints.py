"""The syntax of endpoints, which every client reads the same way."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from subscriptions.values import endpoints
from subscriptions.values.addresses import AddressRefusedError
from subscriptions.values.endpoints import (
    EndpointError,
    check_endpoint,
    check_literal,
    parse_endpoint,
    parse_url,
)
from subscriptions.values.resolver import Resolver
from tests.support.receivers.name_server import NameServer, name_server


@pytest.mark.parametrize(
    ("text", "method", "url", "port"),
    [
        ("https://example.com/hook", "POST", "https://example.com/hook", 443),
        ("http://example.com", "POST", "http://example.com/", 80),
        # An empty query is a part of the text that a receiver may sign.
        ("http://example.com?", "POST", "http://example.com/?", 80),
        ("http://example.com/a??", "POST", "http://example.com/a??", 80),
        ("PUT:http://example.com/%e4?b=%2f", "PUT", "http://example.com/%e4?b=%2f", 80),
        ("PATCH:https://example.com/a?b=c&d=%20", "PATCH", "https://example.com/a?b=c&d=%20", 443),
        ("delete:HTTP://Example.COM:8080/", "DELETE", "http://example.com:8080/", 8080),
        (
            "https://bücher.example/ü?q=ä",
            "POST",
            "https://xn--bcher-kva.example/%C3%BC?q=%C3%A4",
            443,
        ),
        ("https://[2606:4700::1111]:8443/", "POST", "https://[2606:4700::1111]:8443/", 8443),
        ("https://1.1.1.1/", "POST", "https://1.1.1.1/", 443),
        ("https://a_b.internal./x", "POST", "https://a_b.internal./x", 443),
    ],
)
def test_an_endpoint_has_a_method_and_a_url_in_ascii(
    text: str, method: str, url: str, port: int
) -> None:
    parsed = parse_endpoint(text)
    assert (parsed.method, parsed.url, parsed.port) == (method, url, port)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "https://"),
        ("example.com", "https://"),
        ("//example.com/", "https://"),
        ("https:///path", "https://"),
        ("gopher://example.com/", "https://"),
        ("POST:ftp://example.com/", "https://"),
        ("POST:PUT:https://example.com/", "https://"),
        ("HEAD:https://example.com/", "HEAD"),
        ("https://user@example.com/", "auth"),
        ("https://example.com/#", "#"),
        ("https://example.com:0/", "port"),
        ("https://example.com:65536/", "port"),
        ("https://example.com:x/", "port"),
        ("https://example.com:/", "port"),
        (" https://example.com/", "white space"),
        ("https://example.com/a b", "white space"),
        ("https://example.com/\x00", "control"),
        ("https://example.com\\@evil.example/", "backslash"),
        ("https://example.com/\ud800", "surrogate"),
        ("https://-a.example/", "host name"),
        ("https://a..example/", "host name"),
        ("https://ex%61mple.com/", "host name"),
        ("https://exa<mple.com/", "host name"),
        ("https://" + "a" * 64 + ".example/", "host name"),
        ("https://" + "a." * 150 + "example/", "host name"),
        ("https://127.1/", "IPv4"),
        ("https://2130706433/", "IPv4"),
        ("https://0x7f.0.0.1/", "IPv4"),
        ("https://0177.0.0.1/", "IPv4"),
        ("https://127.0.0.1./", "IPv4"),
        ("https://１２７.0.0.1/", "IPv4"),
        ("https://example.123/", "IPv4"),
        ("https://[::1", "URL"),
        ("https://[fe80::1%25eth0]/", "zone"),
        ("https://[1.2.3.4]/", ""),
        ("https://example.com/" + "x" * 2000, "2000"),
        ("https://example.com/" + "é" * 1000, "beyond ASCII"),
    ],
)
def test_other_texts_are_refused_with_the_right_form(text: str, words: str) -> None:
    with pytest.raises(EndpointError) as refusal:
        parse_endpoint(text)
    assert words.lower() in str(refusal.value).lower()


@given(
    st.text(max_size=60).map(lambda text: f"https://{text}")
    | st.from_regex(r"https?://[ -~]{1,60}", fullmatch=True)
)
def test_the_client_that_sends_reads_the_same_host_and_port(text: str) -> None:
    try:
        parsed = parse_endpoint(text)
    except EndpointError:
        return
    url = URL(parsed.url, encoded=True)
    assert parsed.url.isascii()
    assert url.raw_host == parsed.host.strip("[]")
    assert url.port == parsed.port
    assert url.user is None
    assert parse_endpoint(parsed.url).url == parsed.url


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    """The name server that this process queries."""
    known: dict[str, Sequence[str]] = {"two.example": ["1.1.1.1", "10.0.0.1"], "later.example": []}
    with name_server(known) as names:
        monkeypatch.setattr(endpoints, "resolver", Resolver(servers=[names.address]))
        yield names


def test_every_address_of_a_name_has_to_be_allowed(names: NameServer) -> None:
    with pytest.raises(AddressRefusedError, match=r"10\.0\.0\.1"):
        check_endpoint("https://two.example/", allowed_networks=())
    check_endpoint("https://two.example/", allowed_networks=[ip_network("10.0.0.0/8")])


@pytest.mark.parametrize("host", ["later.example", "never-answered.example"])
def test_a_name_without_an_address_is_accepted_because_it_may_come_later(
    names: NameServer, host: str
) -> None:
    assert check_endpoint(f"https://{host}/", allowed_networks=()).host == host


@pytest.mark.parametrize("host", ["localhost", "a.localhost.", "127.0.0.1", "[::ffff:7f00:1]"])
def test_an_invalid_url_is_refused_without_a_name_server(names: NameServer, host: str) -> None:
    with pytest.raises(AddressRefusedError):
        check_literal(parse_url(f"http://{host}/"), allowed_networks=())
    check_literal(parse_url("http://two.example/"), allowed_networks=())
    assert names.asked == []
