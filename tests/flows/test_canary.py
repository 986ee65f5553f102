"""A secret goes the whole way of a cluster's credential; afterwards it is nowhere but sealed.

Stored through the API, refused, used by the watcher, the dispatch task and the measuring task,
and by connections that fail. Then it is looked for wherever it could have been left.
"""

import base64
import logging
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse
from redis import Redis
from rest_framework.test import APIClient

from clusters.models import Cluster, ClusterCredential, ClusterProbe
from controlplane.audit.models import AuditEvent
from controlplane.embedded.postgres import wheel
from controlplane.kernel import hints
from scheduler import tasks
from scheduler.core.lifecycle import State
from scheduler.models import Idleness, Workload
from tenants.models import Member, Project, Role, User
from tests.api.access_table import API
from tests.clusters.authority import Authority
from tests.flows.world import World, build
from tests.scheduler.watching import LONG, all_in, following, start
from tests.simulation import simulation
from tests.waiting import eventually

NOT_IT = "canary-that-the-cluster-refuses-0123456789"
MEASURER = "canary-of-the-measurer-0123456789"
KUBECONFIGS = Path(__file__).parents[1] / "clusters/kubeconfigs"


class Canaries:
    """Secrets in each shape in which they could be found."""

    def __init__(self, *secrets: str) -> None:
        shapes: set[bytes] = set()
        for secret in secrets:
            # Of a key in PEM every line of it.
            for line in secret.encode().splitlines():
                if b"-----" not in line:
                    shapes |= {line, line.hex().encode(), *in_base64(line)}
        self._shapes = shapes

    def found(self, places: Mapping[str, bytes]) -> list[str]:
        return [
            place
            for place, contents in places.items()
            if any(shape in contents for shape in self._shapes)
        ]


def in_base64(line: bytes) -> Iterator[bytes]:
    """In either alphabet, wherever in a longer text it begins: the letters that are its alone."""
    for before in range(3):
        word = base64.b64encode(bytes(before) + line)[4 if before else 0 : -4]
        yield from (word, word.translate(bytes.maketrans(b"+/", b"-_")))


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    with simulation(layout="demo-north", bookmark_s=0.2) as simulator:
        yield build(simulator)
    Redis.from_url(settings.REDIS_URL).flushdb()


@pytest.fixture
def oz(transactional_db: None) -> User:
    user = User.objects.create_superuser("oz")
    for role in (Role.OPERATOR, Role.OWNER):
        Member.objects.create(user=user, tenant=None, role=role)
    return user


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process puts temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def the_way_of_a_credential(
    world: World, client: APIClient, key: str, certificate: str
) -> Iterator[bytes]:
    """Each answer on the way."""
    numbers = count()

    def put(cluster: Cluster, **fields: Any) -> bytes:  # Any: as the API takes them
        url = f"/api/v1/clusters/{cluster.id}/credential"
        headers = {"Idempotency-Key": f"key-{next(numbers)}"}
        return bytes(client.put(url, fields, format="json", headers=headers).content)

    Project.objects.update(idle_timeout_s=3600, idle_warning_s=0)
    simulator = world.simulator
    south = client.post("/api/v1/clusters", {"name": "south"}, format="json")
    yield south.content
    refused = (KUBECONFIGS / "hostile/exec-beside-a-token.yaml").read_text()
    token = simulator.token
    yield put(world.cluster, kubeconfig=refused.replace("canary-token-0123456789", token))
    yield put(world.cluster, server="http://north.example.test", token=token)
    yield put(world.cluster, server=simulator.server, token=NOT_IT)
    with following(world):
        eventually("it is refused", lambda: Cluster.objects.get(name="north").last_error)
    tasks.measure_cluster(cluster_id=str(world.cluster.id))
    measured = {"server": simulator.server, "token": MEASURER}
    yield put(world.cluster, server=simulator.server, token=token, metrics=measured)
    tasks.measure_cluster(cluster_id=str(world.cluster.id))
    assert Cluster.objects.get(name="north").use_error
    hints.end(f"measure:{world.cluster.id}")
    measured["token"] = token
    yield put(world.cluster, server=simulator.server, token=token, metrics=measured)
    with following(world):
        [work] = start(world, command=LONG)
        hints.send(hints.DISPATCH_CLUSTER, cluster_id=str(world.cluster.id))
        tasks.dispatch_cluster(cluster_id=str(world.cluster.id))
        all_in(State.RUNNING, work)
    tasks.measure_cluster(cluster_id=str(world.cluster.id))
    assert Idleness.objects.exists()
    yield from the_way_through_the_pages(world, key)
    unreachable = Cluster.objects.get(name="south")
    pair = {"certificate": certificate, "key": key}
    yield put(unreachable, server="https://127.0.0.1:1", **pair)
    with pytest.raises(Exception, match="does not answer"):
        tasks._ports.of("south").version()
    assert ClusterCredential.objects.count() == 2


def the_way_through_the_pages(world: World, key: str) -> Iterator[bytes]:
    """Refused and stored on the page, and probed: each with a secret in it."""
    simulator = world.simulator
    client = Client()
    client.force_login(User.objects.get(username="oz"))

    def post(**fields: Any) -> bytes:  # Any: as a form takes them
        answer = client.post("/clusters/north/credential", fields)
        return bytes(answer.content) + str(client.session.items()).encode()

    def probed() -> bytes:
        """Its connection, after the probe that was asked for with the credential."""
        newest = ClusterProbe.objects.order_by("-id")[0]
        tasks.probe_cluster(probe_id=str(newest.id))
        return bytes(client.get("/clusters/north/connection").content)

    def config() -> SimpleUploadedFile:
        refused = (KUBECONFIGS / "hostile/exec-beside-a-token.yaml").read_text()
        text = refused.replace("canary-token-0123456789", simulator.token)
        return SimpleUploadedFile("config", text.encode())

    server = simulator.server
    yield post(server=f"https://oz:{simulator.token}@north.example.test", token=NOT_IT)
    yield post(server=server, token=simulator.token, ca=key)
    yield post(kubeconfig=f"users: [{simulator.token}")
    yield post(kubeconfig_file=config())
    yield post(server=server, token=NOT_IT, kubeconfig=simulator.token)
    yield post(server=simulator.token, token="short")
    yield post(server=f"https://north.example.test/?token={simulator.token}", token="short")
    yield post(server=server, metrics_server=simulator.token, metrics_query=simulator.token)
    yield post(**{"server": server, simulator.token: NOT_IT})
    measured = {"metrics_server": server, "metrics_token": simulator.token}
    yield post(server=server, token=NOT_IT, **measured)
    yield probed()
    assert ClusterProbe.objects.filter(verdict="fails").exists()
    yield post(server=server, token=simulator.token, unmeasured="on")
    yield probed()
    assert ClusterProbe.objects.filter(verdict="works").exists()


def answers(oz: User, workload: Workload) -> Iterator[tuple[str, bytes]]:
    """What whoever may see most is shown: lists, the clusters, the back office, pages."""
    client = Client()
    client.force_login(oz)
    told = [f"/api/v1/{route}" for method, route in API if method == "GET"]
    urls = {url for url in told if "<" not in url}
    urls.remove("/api/v1/service-accounts")
    urls.add(f"/api/v1/service-accounts?project={workload.project_id}")
    of_cluster = [url for url in told if "/clusters/<" in url and url.count("<") == 1]
    for one in Cluster.objects.all():
        urls |= {url.replace("<uuid:id>", str(one.id)) for url in of_cluster}
    for probe in ClusterProbe.objects.all():
        urls.add(f"/api/v1/clusters/{probe.cluster_id}/probes/{probe.id}")
    for step in ("manifest", "credential", "connection"):
        urls.add(f"/clusters/north/{step}")
    urls |= {"/", "/clusters", "/clusters/north", f"/workloads/{workload.id}", "/metrics"}
    for model in (Cluster, ClusterCredential, ClusterProbe):
        name = f"admin:clusters_{model._meta.model_name}"
        urls.add(reverse(f"{name}_changelist"))
        urls |= {reverse(f"{name}_change", args=[row.pk]) for row in model._default_manager.all()}
    for event in AuditEvent.objects.filter(target_type="cluster"):
        urls.add(reverse("admin:audit_auditevent_change", args=[event.pk]))
    for url in sorted(urls):
        answer = client.get(url)
        yield f"GET {url} {answer.status_code}", answer.getvalue()


def dump() -> bytes:
    """The whole database as its backup would have it."""
    place = connection.settings_dict
    return subprocess.run(
        [
            wheel() / "pginstall/bin/pg_dump",
            f"--host={place['HOST']}",
            f"--username={place['USER']}",
            *([f"--port={place['PORT']}"] if place["PORT"] else []),
            str(place["NAME"]),
        ],
        check=True,
        capture_output=True,
    ).stdout


def in_redis() -> Iterator[tuple[str, bytes]]:
    """Every key with its value, Celery's messages among them; those carry their text in base64."""
    redis = Redis.from_url(settings.REDIS_URL)
    for key in redis.scan_iter():
        kind = redis.type(key)
        value: object = key
        match kind:
            case b"list":
                value = redis.lrange(key, 0, -1)
            case b"string":
                value = redis.get(key)
            case b"set":
                value = redis.smembers(key)
            case b"hash":
                value = redis.hgetall(key)
            case b"zset":
                value = redis.zrange(key, 0, -1)
        text = repr(value).encode()
        yield f"redis {key!r}", key + text + b"".join(_decoded(text))


def _decoded(text: bytes) -> Iterator[bytes]:
    for word in text.replace(b'"', b" ").split():
        try:
            yield base64.b64decode(word, validate=True)
        except ValueError:
            continue


def of_processes() -> Iterator[tuple[str, bytes]]:
    """Environment and command line of every process that may be read, ours among them."""
    for process in Path("/proc").glob("[0-9]*"):
        for part in ("environ", "cmdline"):
            try:
                yield f"{process.name} {part}", (process / part).read_bytes()
            except OSError:  # another's, or gone
                continue


def everywhere(answered: list[bytes], oz: User, log: str, scratch: Path) -> dict[str, bytes]:
    files = [path for path in scratch.rglob("*") if path.is_file()]
    return {
        **{f"answer {number}": answer for number, answer in enumerate(answered)},
        **dict(answers(oz, Workload.objects.get())),
        "the log": log.encode(),
        "the dump": dump(),
        **dict(in_redis()),
        **{str(path): path.read_bytes() for path in files},
        **dict(of_processes()),
    }


def test_a_credential_is_nowhere_but_sealed(
    world: World, oz: User, scratch: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    issued = Authority().issue("berth")
    canaries = Canaries(world.simulator.token, NOT_IT, MEASURER, issued.key_pem)
    client = APIClient()
    client.force_login(oz)
    answered = list(the_way_of_a_credential(world, client, issued.key_pem, issued.certificate_pem))
    places = everywhere(answered, oz, caplog.text, scratch)
    assert canaries.found(places) == []
    # That it was looked for in places where something is:
    assert any(place.startswith("redis") for place in places)
    assert b"clusters_clustercredential" in places["the dump"]
    assert b"127.0.0.1:1" in places["the dump"]
    asked = [place for place in places if place.startswith("GET ")]
    assert [place for place in asked if not place.endswith(" 200")] == []
    assert "watch of north broke" in caplog.text


def test_the_search_finds_what_was_left(
    world: World, oz: User, scratch: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start(world, command=LONG)
    token = world.simulator.token
    Cluster.objects.update(last_error=f"refused: {token}")
    hints.send(hints.DISPATCH_CLUSTER, cluster_id=token)
    (scratch / "left").write_text(base64.b64encode(token.encode()).decode())
    for before in ("{", "{{", "{{{"):
        told = base64.urlsafe_b64encode(f"{before}{token}}}".encode())
        (scratch / f"within {before}").write_bytes(told)
    logging.getLogger("tests").warning("token %s", token)
    child = subprocess.Popen(["sleep", "60"], env={"TOKEN": token})
    try:
        found = Canaries(token).found(everywhere([], oz, caplog.text, scratch))
    finally:
        child.kill()
        child.wait()
    for place in ("the log", "the dump", f"{child.pid} environ"):
        assert place in found
    for name in ("left", "within {", "within {{", "within {{{"):
        assert str(scratch / name) in found
    assert [place for place in found if place.startswith("redis")] != []
    assert [place for place in found if "admin/clusters/cluster/" in place] != []
