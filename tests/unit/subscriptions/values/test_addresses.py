"""The addresses that an endpoint may have."""

from ipaddress import ip_network

import pytest

from subscriptions.values.addresses import AddressRefusedError, check_address, is_allowed

FORBIDDEN = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "::ffff:0:127.0.0.1",
    "::ffff:0:8.8.8.8",
    "1::1",
    "200::1",
    "400::1",
    "4000::1",
    "e000::1",
    "2606:4700::5efe:127.0.0.1",
    "2606:4700::200:5efe:10.0.0.1",
    "2606:4700:1:2:300:5efe:169.254.169.254",
    "100::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "192.0.1.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "2606:4700::5efe:8.8.8.8",
    "2a00::5eff:7f00:1",
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not is_allowed(address, allowed_networks=())
    assert not is_allowed(f"[{address}]", allowed_networks=())


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(address, allowed_networks=())


@pytest.mark.parametrize(
    "address", ["", "localhost", "127.1", "0x7f000001", "2130706433", "1.2.3.4.5", "1.2.3.4/8"]
)
def test_an_invalid_address_is_refused(address: str) -> None:
    assert not is_allowed(address, allowed_networks=())


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3"])
def test_an_administrator_allows_a_range(address: str) -> None:
    assert is_allowed(address, allowed_networks=[ip_network("10.1.0.0/16")])
    assert not is_allowed(address, allowed_networks=[ip_network("10.2.0.0/16")])


@pytest.mark.parametrize(
    ("gateway", "public", "private"),
    [
        ("64:ff9b::/96", "64:ff9b::808:808", "64:ff9b::a00:1"),
        ("2002::/16", "2002:808:808::1", "2002:a9fe:a9fe::1"),
        ("::ffff:0:0:0/96", "::ffff:0:8.8.8.8", "::ffff:0:10.0.0.1"),
        ("fd00::/8", "fd00::5efe:8.8.8.8", "fd00::5efe:10.0.0.1"),
    ],
)
def test_an_allowed_gateway_does_not_allow_private_addresses_behind_it(
    gateway: str, public: str, private: str
) -> None:
    assert is_allowed(public, allowed_networks=[ip_network(gateway)])
    assert not is_allowed(private, allowed_networks=[ip_network(gateway)])
    assert is_allowed(private, allowed_networks=[ip_network(gateway), ip_network("0.0.0.0/0")])


def test_an_administrator_allows_addresses_outside_public_ipv6() -> None:
    assert is_allowed("4000::1", allowed_networks=[ip_network("4000::/16")])
    assert is_allowed("168.63.129.16", allowed_networks=[ip_network("168.63.129.16/32")])


def test_a_refusal_outside_every_range_says_so() -> None:
    with pytest.raises(AddressRefusedError, match=r"2000::/3"):
        check_address("4000::1", allowed_networks=())


def test_a_refusal_names_the_range_and_the_setting() -> None:
    with pytest.raises(AddressRefusedError) as refusal:
        check_address("169.254.169.254", allowed_networks=())
    assert isinstance(refusal.value, OSError)
    for words in ["169.254.169.254", "169.254.0.0/16", "metadata", "INTURN_ALLOWED_NETWORKS"]:
        assert words in str(refusal.value)
