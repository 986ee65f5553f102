"""Where Berth connects to, and that nothing at all arrives where it may not.

What counts connections is a real socket that listens on every address of this machine. Where a
name has to lead somewhere, `socket.getaddrinfo` is replaced, which is where names are looked up.
"""

import errno
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from clusters.adapters.kubernetes.client import Client
from clusters.port import ClusterError, Fault
from clusters.registry import connect, connect_use
from controlplane.kernel.addresses import AddressNotAllowed, Allowed
from controlplane.settings.env import hosts, networks
from tests import factories
from tests.clusters.scripted import answer, scripted
from tests.networks import LOOPBACK
from tests.parts import SIMULATOR, missing
from tests.simulation import store_credential

pytestmark = pytest.mark.part_simulator

EVERYWHERE = Allowed((ip_network("0.0.0.0/0"), ip_network("::/0")))
TOKEN = "canary-token-0123456789"
type Names = Callable[..., None]


class Counter:
    """A port that listens; `connections` are those that arrived since it was last asked."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.port: int = listener.getsockname()[1]

    @property
    def connections(self) -> int:
        arrived = 0
        while True:
            try:
                self._listener.accept()[0].close()
            except BlockingIOError:
                return arrived
            arrived += 1


@pytest.fixture
def counter() -> Iterator[Counter]:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        listener.setblocking(False)
        yield Counter(listener)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """`names(cluster=[...])`: each look-up of that name finds the next list of addresses."""
    asked = socket.getaddrinfo

    def name(**answers: list[list[str]]) -> None:
        def look_up(host: str, *how: Any, **further: Any) -> Any:  # Any: as the socket module's
            if host not in answers:
                return asked(host, *how, **further)
            found = answers[host].pop(0) if len(answers[host]) > 1 else answers[host][0]
            return [one for address in found for one in asked(address, *how, **further)]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)

    return name


def streamed(client: Client) -> Iterator[bytes]:
    how = {"lasts_s": 1.0, "silence_s": 1.0}
    with client.stream("/api/v1/pods", query={"watch": 1}, **how) as pieces:
        yield from pieces


def refused(host: str, port: int, *, allowed: Allowed, scheme: str = "https") -> None:
    """A client of that host is told only that its address is not allowed, and what to set."""
    client = Client(server=f"{scheme}://{host}:{port}", identity=TOKEN, allowed=allowed)
    for ask in (
        lambda: client.call("GET", "/version"),
        lambda: list(streamed(client)),
    ):
        with pytest.raises(
            ClusterError, match=r"is not allowed\. BERTH_CLUSTER_NETWORKS"
        ) as error:
            ask()
        assert error.value.fault is Fault.UNREACHABLE
    client.close()


def tried(allowed: Allowed, host: str, port: int) -> None:
    """It is allowed: whether anybody is there does not matter."""
    with suppress(OSError):
        allowed.connect(host, port, timeout_s=0.01).close()


LOOPBACK_SPELLINGS = [
    *("127.0.0.1", "127.1", "127.9.9.9", "localhost"),
    *("0177.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001"),
    *("[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]"),
    *("0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]"),  # noqa: S104  # connected to, it is this machine
]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", LOOPBACK_SPELLINGS)
def test_this_machine_is_not_connected_to_however_it_is_written(
    counter: Counter, host: str, scheme: str
) -> None:
    refused(host, counter.port, allowed=Allowed(), scheme=scheme)
    assert counter.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "0177.0.0.1", "2130706433", "[::1]"])
def test_loopback_that_is_listed_is_connected_to(counter: Counter, host: str) -> None:
    LOOPBACK.connect(host, counter.port, timeout_s=5.0).close()
    assert counter.connections == 1


def test_loopback_is_not_listed_by_another_network(counter: Counter) -> None:
    refused("127.0.0.1", counter.port, allowed=Allowed((ip_network("10.0.0.0/8"),)))
    refused("127.0.0.1", counter.port, allowed=Allowed((ip_network("127.0.0.2/32"),)))
    for host in ("127.0.0.1", "[::1]"):
        refused(host, counter.port, allowed=EVERYWHERE)
        halves = ("0.0.0.0/1", "::/1", "126.0.0.0/7", "::/127")
        refused(host, counter.port, allowed=Allowed(tuple(map(ip_network, halves))))
    assert counter.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_berths_own_parts_on_loopback_have_to_be_listed_by_themselves(
    counter: Counter, host: str
) -> None:
    own = ("127.0.0.1", "::1")
    refused(host, counter.port, allowed=Allowed((ip_network("127.0.0.0/8"),), own_hosts=own))
    refused(host, counter.port, allowed=Allowed(EVERYWHERE.networks, own_hosts=own))
    assert counter.connections == 0
    by_itself = Allowed((ip_network(host.strip("[]")),), own_hosts=own)
    by_itself.connect(host, counter.port, timeout_s=5.0).close()
    assert counter.connections == 1


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "169.254.170.2", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"),
        *("100.100.100.200", "168.63.129.16", "192.0.0.192"),
        *("[fd00:ec2::254]", "[fd20:ce::254]", "[fe80::1]", "[fec0::1]"),
        *("[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]"),
        *("[::ffff:100.100.100.200]", "[2001:0:a9fe:a9fe::]", "[2001:0:1::5601:5601]"),
        *("224.0.0.1", "[ff02::1]", "255.255.255.255", "240.0.0.1", "0.1.2.3", "[::]"),
    ],
)
def test_what_is_never_a_clusters_is_refused_though_it_is_listed(host: str) -> None:
    refused(host, 443, allowed=EVERYWHERE)


def test_where_networks_are_listed_nothing_else_is_connected_to(names: Names) -> None:
    names(
        **{
            "near.test": [["10.20.0.7"]],
            "far.test": [["192.0.2.7"]],
            "six.test": [["2001:db8::1"]],
        }
    )
    listed = Allowed((ip_network("10.20.0.0/16"),))
    for host in ("far.test", "six.test"):
        with pytest.raises(AddressNotAllowed):
            listed.connect(host, 443, timeout_s=0.01)
    tried(listed, "near.test", 443)
    tried(listed, "::ffff:10.20.0.7", 443)


def test_a_name_that_leads_elsewhere_the_next_time_is_connected_to_where_it_was_checked(
    names: Names,
) -> None:
    """DNS rebinding: what is checked at one look-up must not be connected to by another."""
    listed = Allowed((ip_network("127.0.0.2/32"),))
    with socket.create_server(("127.0.0.1", 0)) as forbidden:
        port = forbidden.getsockname()[1]
        forbidden.setblocking(False)
        with socket.create_server(("127.0.0.2", port)) as meant:
            meant.settimeout(5.0)
            names(**{"rebound.test": [["127.0.0.2"], ["127.0.0.1"]]})
            listed.connect("rebound.test", port, timeout_s=5.0).close()
            meant.accept()[0].close()
            with pytest.raises(AddressNotAllowed):
                listed.connect("rebound.test", port, timeout_s=5.0)
        assert Counter(forbidden).connections == 0


def test_a_client_checks_each_of_its_connections(names: Names, counter: Counter) -> None:
    """A name that was good once is not good for ever."""
    with scripted(lambda _: answer("200 OK")) as server:
        names(**{"rebound.test": [["127.0.0.1"], ["127.0.0.9"]]})
        listed = Allowed((ip_network("127.0.0.1/32"),))
        port = server.url.rpartition(":")[2]
        client = Client(server=f"http://rebound.test:{port}", identity=TOKEN, allowed=listed)
        assert client.call("GET", "/version") == {}
        with pytest.raises(ClusterError, match="is not allowed"):
            client.call("GET", "/version")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "found", [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "::1"]]
)
def test_a_name_with_one_forbidden_address_is_not_connected_to_at_all(
    names: Names, counter: Counter, found: list[str]
) -> None:
    names(**{"both.test": [found]})
    refused("both.test", counter.port, allowed=Allowed((ip_network("127.0.0.2/32"),)))
    assert counter.connections == 0


def test_each_address_of_a_name_is_tried(names: Names, counter: Counter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5.0)
        names(**{"two.test": [["127.0.0.2", "127.0.0.1"]]})
        port = server.getsockname()[1]  # nobody listens there on the first
        LOOPBACK.connect("two.test", port, timeout_s=5.0).close()
        server.accept()[0].close()


def test_a_machine_without_ipv6_connects_to_the_other_address(
    names: Names, monkeypatch: pytest.MonkeyPatch, counter: Counter
) -> None:
    made = socket.socket

    def make(family: int, *how: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "no IPv6 here")
        return made(family, *how)

    names(**{"both.test": [["2001:db8::1", "127.0.0.1"]]})
    both = Allowed((*LOOPBACK.networks, ip_network("2001:db8::/32")))
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", make)
        both.connect("both.test", counter.port, timeout_s=5.0).close()
    assert counter.connections == 1


def test_all_addresses_of_a_name_share_one_time(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent address takes its part; the last has what is left and the whole time afterwards."""
    parts: list[float] = []

    class Silent(socket.socket):
        def connect(self, address: Any) -> None:  # Any: as the socket module's
            wait_s = self.gettimeout()
            assert wait_s is not None
            parts.append(wait_s)
            if len(parts) < 3:
                time.sleep(wait_s)
                raise TimeoutError

    names(**{"three.test": [["127.0.0.2", "127.0.0.3", "127.0.0.4"]]})
    monkeypatch.setattr(socket, "socket", Silent)
    with LOOPBACK.connect("three.test", 443, timeout_s=0.6) as line:
        assert line.gettimeout() == 0.6
    assert parts[0] == pytest.approx(0.2, abs=0.02)
    assert sum(parts) <= 0.6


@pytest.mark.parametrize("code", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Moved"])
def test_a_redirect_leads_nowhere(counter: Counter, code: str) -> None:
    there = f"http://127.0.0.1:{counter.port}/latest/meta-data"
    with scripted(lambda _: answer(code, Location=there)) as server:
        client = Client(server=server.url, identity=TOKEN, allowed=LOOPBACK)
        with pytest.raises(ClusterError):
            client.call("GET", "/version")
        with pytest.raises(ClusterError):
            list(streamed(client))
        assert len(server.requests) == 2
    assert counter.connections == 0


def test_the_hosts_of_berths_own_parts_have_to_be_listed_by_themselves(names: Names) -> None:
    names(**{"db.test": [["192.0.2.7"]], "gone.test": [[]], "north.test": [["192.0.2.7"]]})
    own = ("gone.test", "db.test")
    for listed in ((), (ip_network("192.0.2.0/24"),)):
        with pytest.raises(AddressNotAllowed):
            Allowed(listed, own_hosts=own).connect("north.test", 5432, timeout_s=0.01)
    by_itself = Allowed((ip_network("192.0.2.7/32"),), own_hosts=own)
    tried(by_itself, "north.test", 5432)


def test_this_machines_own_address_has_to_be_listed_by_itself(counter: Counter) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            missing(SIMULATOR, "an address besides loopback")
        own = line.getsockname()[0]
    refused(own, counter.port, allowed=Allowed())
    refused(own, counter.port, allowed=EVERYWHERE)
    assert counter.connections == 0
    Allowed((ip_network(own),)).connect(own, counter.port, timeout_s=5.0).close()
    assert counter.connections == 1


@pytest.mark.parametrize("host", ["a" * 64 + ".test", "a..test", "nowhere.invalid"])
def test_what_is_no_name_of_a_host_is_unreachable(host: str) -> None:
    client = Client(server=f"https://{host}", identity=TOKEN, allowed=Allowed())
    with pytest.raises(ClusterError) as raised:
        client.call("GET", "/version")
    assert raised.value.fault is Fault.UNREACHABLE


def test_a_registered_cluster_and_what_measures_it_are_held_to_the_operators_list(
    settings: Settings, counter: Counter, db: None
) -> None:
    here = f"http://127.0.0.1:{counter.port}"
    at_it = {"server": here, "token": TOKEN}
    store_credential(factories.cluster("north"), **at_it, metrics=at_it)
    settings.BERTH_CLUSTER_NETWORKS = ()
    measured = connect_use("north")
    assert measured is not None
    for ask in (connect("north").version, measured.use):
        with pytest.raises(ClusterError, match="is not allowed"):
            ask()
    assert counter.connections == 0


def test_the_operators_list_is_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIST", "10.20.0.0/16, 2001:db8::/48 192.0.2.7")
    listed = (ip_network("10.20.0.0/16"), ip_network("2001:db8::/48"), ip_network("192.0.2.7"))
    assert networks("LIST") == listed
    assert networks("UNSET") == ()


@pytest.mark.parametrize("text", ["10.20.0.1/16", "10.20.0.0/33", "north.test", "10.20"])
def test_what_is_no_network_stops_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LIST", text)
    with pytest.raises(ImproperlyConfigured, match=f"has to list networks .*'{text}' is none"):
        networks("LIST")


def test_berths_own_hosts_are_those_of_its_urls() -> None:
    urls = ("redis://:word@cache:6379/0", "sentinel://one:26379;sentinel://cache:26379")
    assert hosts("db.internal", *urls) == ("cache", "one", "db.internal")
    assert hosts("/run/postgresql", "redis+socket:///run/redis") == ()
    assert hosts("one.db,two.db,/run/postgresql") == ("one.db", "two.db")
