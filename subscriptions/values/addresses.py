"""The possible addresses of an endpoint: public addresses, and those allowed by the administrator.

The ranges are the union of those refused by Svix and Hook0, and a few unused by legitimate
endpoints. The URLs of Inturn's built-in receivers are an exception:
`subscriptions.values.built_in_receivers` says which they are, and why they are safe.
"""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# For requests whose URL has been allowed already.
EVERY_NETWORK: tuple[Network, ...] = (ip_network("0.0.0.0/0"), ip_network("::/0"))

FORBIDDEN_NETWORKS: dict[Network, str] = {
    ip_network(cidr): use
    for cidr, use in {
        "0.0.0.0/8": "this machine",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a provider's customers",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "metadata of Azure",
        "169.254.0.0/16": "link-local and cloud metadata",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "protocol assignments",
        "192.0.2.0/24": "documentation",
        "192.88.99.0/24": "6to4 relays",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "benchmarks",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved and broadcast",
        # In IPv6 only 2000::/3 is assigned as public (IANA). The ranges below have names for the
        # message; ::/96 includes :: and ::1, and IPv4 addresses in a form long deprecated.
        "::/96": "this machine, loopback",
        "::ffff:0:0:0/96": "IPv4-translated",
        "64:ff9b::/96": "NAT64",
        "64:ff9b:1::/48": "NAT64",
        "100::/64": "discarded",
        # Includes Teredo, 2001::/32, which embeds an IPv4 address.
        "2001::/23": "protocol assignments and Teredo",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4",
        "3fff::/20": "documentation",
        "5f00::/16": "segment routing",
        "fc00::/7": "private and cloud metadata",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
    }.items()
}

_PUBLIC_IPV6 = ip_network("2000::/3")
# Networks whose addresses end with an IPv4 address.
_IPV4_AT_END = (ip_network("64:ff9b::/96"), ip_network("::ffff:0:0:0/96"))
# The part of an interface id announcing an IPv4 address (ISATAP, RFC 5214), without the bits
# "universal" and "group".
_ISATAP = 0x0000_5EFE
_ISATAP_MASK = 0xFCFF_FFFF


class AddressRefusedError(OSError):
    """This address may not be called.

    An OSError, so a connector treats it as a failed connect.
    """

    def __init__(self, address: str) -> None:
        super().__init__(
            f"The address {address} is refused: {_reason(address)}. An administrator can allow it "
            "by adding its CIDR range to INTURN_ALLOWED_NETWORKS."
        )
        self.address = address


def is_allowed(address: str, *, allowed_networks: Collection[Network]) -> bool:
    """Return whether an endpoint may have this address; False for a string other than an address.

    An IPv4 address embedded in an IPv6 address is checked as well: allowing a NAT64 gateway does
    not allow the private addresses behind it.
    """
    try:
        carrier, *carried = _with_embedded(_canonical(address))
    except ValueError:
        return False
    return all(
        _network_of(candidate, allowed_networks) is not None or not _use_of(candidate)
        for candidate in (carrier, *carried)
    )


def check_address(address: str, *, allowed_networks: Collection[Network]) -> None:
    """Raise AddressRefusedError unless the address is allowed."""
    if not is_allowed(address, allowed_networks=allowed_networks):
        raise AddressRefusedError(address)


def _canonical(address: str) -> Address:
    """Return the address without brackets and zone, and an IPv4-mapped address as IPv4."""
    parsed = ip_address(address.strip("[]").partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


def _with_embedded(address: Address) -> list[Address]:
    if not isinstance(address, IPv6Address):
        return [address]
    embedded: list[Address | None] = [address.sixtofour, *(address.teredo or ())]
    if _network_of(address, _IPV4_AT_END) is not None or _is_isatap(address):
        embedded.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return [address, *(part for part in embedded if part is not None)]


def _is_isatap(address: IPv6Address) -> bool:
    return int(address) >> 32 & _ISATAP_MASK == _ISATAP


def _use_of(address: Address) -> str:
    """Return the use of a forbidden address; empty if it is not forbidden."""
    network = _network_of(address, FORBIDDEN_NETWORKS)
    if network is not None:
        return f"in {network} ({FORBIDDEN_NETWORKS[network]})"
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6:
        return f"not in {_PUBLIC_IPV6}, which public addresses are of"
    return ""


def _network_of(address: Address, networks: Collection[Network]) -> Network | None:
    return next((network for network in networks if address in network), None)


def _reason(address: str) -> str:
    try:
        addresses = _with_embedded(_canonical(address))
    except ValueError:
        return "it is not an IP address"
    return " and ".join(f"it is {use}" for resolved in addresses if (use := _use_of(resolved)))
