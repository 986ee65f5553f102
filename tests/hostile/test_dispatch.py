"""What a hostile cluster answers when it is asked: its own work waits, and nobody else's."""

from dataclasses import dataclass

import orjson
import pytest

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.services import workloads
from tests.hostile.acts import CHUNKED, HEAD, MIB, body, chunk, drip, flood, pod, says
from tests.hostile.lab import LONG, Lab
from tests.hostile.server import Act

CREATE, OPEN = r"POST /api/v1/namespaces/[^/]+/pods", r"PATCH /api/v1/namespaces/[^/]+/pods/"
FRESH = body(orjson.dumps(pod("u-fresh")))
"""A sound pod under a name, a uid and labels that nobody asked for."""
STATUS = b'{"kind":"Status","status":"Failure","code":403,"message":"no"}'


@dataclass(frozen=True)
class Bad:
    name: str
    act: Act
    at: str = CREATE


BAD = (
    Bad("a pod that nobody asked for", FRESH),
    Bad("no JSON", body(b"<script>")),
    Bad("a failure under 200", body(STATUS)),
    Bad("a gibibyte", flood(chunk(MIB))),
    Bad("a body that drips", drip(HEAD + b"Content-Length: 1000000\r\n\r\n", b" ")),
    Bad("half an answer", says(CHUNKED + chunk(b"{"))),
    Bad("an opening that is none", body(b'{"kind":"Pod","metadata":{}}'), at=OPEN),
    Bad("an opening of another pod", FRESH, at=OPEN),
)


@pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])
def test_what_a_hostile_cluster_answers_harms_its_own_work_alone(bad: Bad, lab: Lab) -> None:
    """And that is over once it is cancelled, by sound answers and a sound list."""
    with lab.followed():
        lab.server.behave(bad.at, bad.act)
        work = lab.submit("south", command=LONG, name="harmed")
        assert lab.server.asked
        lab.works()
        work.refresh_from_db()
        assert work.state not in {State.RUNNING, State.SUCCEEDED}
        workloads.cancel(actor=lab.world.ada, workload=work, at=now())
    with lab.followed():
        lab.ends(work)
