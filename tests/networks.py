"""Where servers that tests start may be connected to."""

from ipaddress import ip_network

from controlplane.kernel.addresses import Allowed

LOOPBACK = Allowed((ip_network("127.0.0.0/8"), ip_network("::1/128")))
