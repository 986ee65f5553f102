"""Which addresses a client may connect to, decided on the address that is connected to.

A name is looked up once for each connection; what it led to is checked, then connected to. A
look-up before would be worth nothing, as the next may answer otherwise (DNS rebinding). Clusters
and webhooks are held to the same rule. What must not live here: what is sent, and where the
operator's list comes from.
"""

import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv6Address,
    ip_address,
    ip_network,
)

from urllib3.exceptions import HTTPError

from controlplane.kernel.networks import LINKS_AND_METADATA, Network

type Address = IPv4Address | IPv6Address
type _Found = tuple[int, int, int, str, tuple[str, int]]  # as getaddrinfo has it

# Nobody is ever there, whatever the operator's list says.
_NEVER = (
    *LINKS_AND_METADATA,
    *(
        ip_network(text)
        for text in (
            "0.0.0.0/8",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
            "::/128",
            "fec0::/10",  # what came before unique local addresses
            "ff00::/8",
        )
    ),
)
_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
# The last four bytes are the address that a gateway translates to; ::/96 is the oldest such form.
_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"), ip_network("::/96"))


class AddressNotAllowed(HTTPError):
    """Berth may not connect there. Of no address is said what is behind it."""

    def __init__(self, host: str, setting: str) -> None:
        super().__init__(
            f"The address of {host} is not allowed. {setting} has to list its "
            "network, or an address of Berth's own by itself; those of a link or of a cloud's "
            "metadata are never allowed."
        )


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where somebody may be: in one of `networks`, or anywhere when there are none; `public_too`
    is in one of them or on the public internet. `setting` has the list.

    Loopback counts only where a network of the list lies in it, as 0.0.0.0/0 does not. `own_hosts`
    run Berth's own parts, such as its database: their addresses, and this machine's, count only
    where the list has just that address (10.0.0.5/32), on loopback as well, since a network may
    well hold both them and clusters.
    """

    networks: tuple[Network, ...] = ()
    own_hosts: tuple[str, ...] = ()
    public_too: bool = False
    setting: str = "BERTH_CLUSTER_NETWORKS"

    def connect(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float | None,
        options: Iterable[tuple[int, int, int | bytes]] = (),
    ) -> socket.socket:
        """A connection to the first of the host's addresses that takes it. `timeout_s` is for all
        of them: each has an equal part of what is left, so that a silent one leaves the next some.

        Raises AddressNotAllowed, with nothing connected, when any of them is not allowed, and
        OSError.
        """
        found = _found(host, port)
        own = self._own() if found else set()
        if not all(self._allows(ip_address(where[4][0]), own) for where in found):
            raise AddressNotAllowed(host, self.setting)
        failure = OSError(f"{host} has no address")
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        for index, where in enumerate(found):
            part_s = None
            if ends_at is not None:
                part_s = (ends_at - time.monotonic()) / (len(found) - index)
                if part_s <= 0:
                    raise failure if index else TimeoutError(f"{host} has no time left")
            try:
                line = _connected(where, part_s, options)
                line.settimeout(timeout_s)  # for what comes next
                return line
            except OSError as error:
                failure = error
        raise failure

    def _own(self) -> set[Address]:
        own: set[Address] = set()
        for host in self.own_hosts:
            try:
                own |= {ip_address(where[4][0]) for where in _found(host, 0)}
            except OSError:
                continue  # it has no address now, so nothing is to be found there either
        return own

    def _allows(self, address: Address, own: set[Address]) -> bool:
        """All that the address stands for has to be allowed; where packets go, to be listed."""
        stands_for = list(_forms(address))
        if not _is_in(stands_for[0], self.networks):
            if self.public_too:
                if not all(form.is_global for form in stands_for):
                    return False
            elif self.networks:
                return False
        return not any(self._is_denied(form, own) for form in stands_for)

    def _is_denied(self, address: Address, own: set[Address]) -> bool:
        if _is_in(address, _NEVER):
            return True
        is_loopback = _is_in(address, _LOOPBACK)
        listing = [network for network in self.networks if address in network]
        if address in own or (not is_loopback and _is_of_this_machine(address)):
            return not any(network.num_addresses == 1 for network in listing)
        if is_loopback:
            return not any(_is_in(network.network_address, _LOOPBACK) for network in listing)
        return False


def _forms(address: Address) -> Iterator[Address]:
    """Where packets to the address go, then what else they may come to."""
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped  # IPv4 written otherwise: the kernel speaks that
    else:
        address = IPv6Address(int(address))  # without its zone
        yield address
        if address.sixtofour is not None:
            yield address.sixtofour
        if address.teredo is not None:
            yield from address.teredo  # its server, its client
        if _is_in(address, _TRANSLATED) and not _is_in(address, (*_NEVER, *_LOOPBACK)):
            yield IPv4Address(int(address) & 0xFFFFFFFF)


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _is_of_this_machine(address: Address) -> bool:
    """The kernel speaks to an address of its own from that address. Nothing is sent for it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0]) == address
    except OSError:  # no way leads there, or this machine does not speak IPv6 at all
        return False


def _found(host: str, port: int) -> list[_Found]:
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, 0, socket.SOCK_STREAM)
    except UnicodeError:  # a part of it is empty or too long
        raise socket.gaierror(socket.EAI_NONAME, "it is no name of a host") from None
    return found  # type: ignore[return-value]  # of a stream's address, host and port go first


def _connected(
    where: _Found, timeout_s: float | None, options: Iterable[tuple[int, int, int | bytes]]
) -> socket.socket:
    family, kind, protocol, _, address = where
    line = socket.socket(family, kind, protocol)
    try:
        for option in options:
            line.setsockopt(*option)
        line.settimeout(timeout_s)
        line.connect(address)
    except OSError:
        line.close()
        raise
    return line
