"""Which URLs are those of built-in receivers, and that no other one of the web server is."""

import pytest

from subscriptions.values.addresses import AddressRefusedError
from subscriptions.values.built_in_receivers import built_in_receivers
from subscriptions.values.endpoints import check_endpoint, parse_endpoint

TOKEN = "Ab1-_" * 6 + "xy"
BASE = "http://127.0.0.1:8000"
OWN = built_in_receivers(BASE)


@pytest.mark.parametrize("text", [f"{BASE}/receiver/{TOKEN}", f"PUT:{BASE}/receiver/{TOKEN}"])
def test_a_built_in_receiver_is_accepted_whatever_its_address_is(text: str) -> None:
    check_endpoint(text, allowed_networks=(), built_in_receivers=OWN)
    with pytest.raises(AddressRefusedError):
        check_endpoint(text, allowed_networks=())


@pytest.mark.parametrize(
    "url",
    [
        f"{BASE}/",
        f"{BASE}/admin/",
        f"{BASE}/receiver/",
        f"{BASE}/receiver/{TOKEN[1:]}",
        f"{BASE}/receiver/{TOKEN}x",
        f"{BASE}/receiver/{TOKEN}/",
        f"{BASE}/receiver/{TOKEN}?to=/admin/",
        f"{BASE}/receiver/../{TOKEN}",
        f"{BASE}/receiver/%2e%2e/{TOKEN[7:]}",
        f"{BASE}/receiver//{TOKEN[1:]}",
        f"{BASE}/x/receiver/{TOKEN}",
        f"http://127.0.0.1:8001/receiver/{TOKEN}",
        f"http://127.0.0.1/receiver/{TOKEN}",
        f"http://127.0.0.2:8000/receiver/{TOKEN}",
        f"http://localhost:8000/receiver/{TOKEN}",
        f"http://[::1]:8000/receiver/{TOKEN}",
        f"https://127.0.0.1:8000/receiver/{TOKEN}",
    ],
)
def test_everything_else_on_the_loopback_stays_refused(url: str) -> None:
    assert parse_endpoint(url).url not in OWN
    with pytest.raises(AddressRefusedError):
        check_endpoint(url, allowed_networks=(), built_in_receivers=OWN)


@pytest.mark.parametrize(
    ("base_url", "beginning"),
    [
        ("https://Broker.Example", "https://broker.example/receiver/"),
        ("https://broker.example/inturn", "https://broker.example/inturn/receiver/"),
        ("http://[::1]:8000", "http://[::1]:8000/receiver/"),
        ("http://bröker.example", "http://xn--brker-kua.example/receiver/"),
    ],
)
def test_the_base_url_is_compared_in_its_encoded_form(base_url: str, beginning: str) -> None:
    own = built_in_receivers(base_url)
    assert own.url_of(TOKEN) == f"{beginning}{TOKEN}"
    assert parse_endpoint(f"{base_url}/receiver/{TOKEN}").url in own


def test_a_base_url_that_is_no_endpoint_allows_nothing() -> None:
    assert f"http://a..b/receiver/{TOKEN}" in built_in_receivers("http://a..b")
    with pytest.raises(ValueError, match="not a host name"):
        check_endpoint(
            f"http://a..b/receiver/{TOKEN}",
            allowed_networks=(),
            built_in_receivers=built_in_receivers("http://a..b"),
        )
