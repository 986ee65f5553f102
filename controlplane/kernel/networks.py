"""Networks that are special whoever asks. Pure: a setting and an adapter read the same list."""

from ipaddress import IPv4Network, IPv6Network, ip_network

type Network = IPv4Network | IPv6Network

LINKS_AND_METADATA: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local, and the metadata of most clouds
        "100.100.100.200/32",  # Alibaba's metadata
        "168.63.129.16/32",  # Azure's
        "192.0.0.192/32",  # Oracle's
        "fe80::/10",
        "fd00:ec2::/32",  # AWS's metadata and its other services for a machine
        "fd20:ce::254/128",  # Google's
    )
)
"""Links, and where a cloud tells a machine what concerns it, its credentials included."""


def lies_in(network: Network, other: Network) -> bool:
    """All of it, or it is the same; of another version none does."""
    return network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]  # of one version
