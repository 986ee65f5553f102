"""A cluster's connection on its page: its probes, what is told of them, its credential's age."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from clusters.adapters.kubernetes.rights import RIGHTS
from clusters.models import Cluster, ClusterCredential, ClusterProbe, Exposure, ProbeStop
from clusters.port import Verdict
from clusters.web import connections
from controlplane.kernel import clock
from scheduler import tasks
from tests import factories
from tests.conftest import Cast, Unchanged
from tests.simulation import Simulator, simulator, store_credential
from tests.web.conftest import HTMX, Browse
from tests.web.connecting import REGISTER, SECRET, SERVER, north, oz, text, url

__all__ = ["north", "oz", "simulator"]


def test_the_steps_show_as_they_come(oz: Client, north: Cluster) -> None:
    page = oz.get(url("cluster-connection"))
    assert "No credential is stored yet" in text(page)
    store_credential(north, server=SERVER, token=SECRET)
    rev = page.context["rev"]
    waiting = oz.get(url("cluster-connection"), {"rev": rev}, headers=HTMX)
    assert "it waits for a worker" in text(waiting)
    begun = [{"name": "reach", "verdict": "works", "said": "it answers"}]
    ClusterProbe.objects.update(began_at=clock.now(), tries=1, steps=begun)
    rev = waiting.context["rev"]
    shown = oz.get(url("cluster-connection"), {"rev": rev}, headers=HTMX)
    assert "Under way" in text(shown)
    assert "it answers" in text(shown)
    rev = shown.context["rev"]
    assert oz.get(url("cluster-connection"), {"rev": rev}, headers=HTMX).status_code == 204


def test_what_fails_is_told_with_what_to_do(oz: Client, north: Cluster) -> None:
    step = {"name": "patch pods", "verdict": "fails", "said": "may not patch pods: add <b>it</b>"}
    factories.probe(north, Verdict.FAILS, steps=[step])
    page = text(oz.get(url("cluster-connection")))
    assert "1 of 1 steps fail" in page
    assert "it grants every right that is missing" in page
    assert "<b>it</b>" not in page


def test_a_right_that_could_not_be_asked_after_is_not_said_to_be_missing(
    oz: Client, north: Cluster
) -> None:
    step = {"name": "list pods", "verdict": "fails", "said": "The cluster does not answer: slow"}
    factories.probe(north, Verdict.FAILS, steps=[step])
    page = text(oz.get(url("cluster-connection")))
    assert "it grants every right" not in page
    assert "Probe again: if it stays" in page


def test_every_step_has_its_advice(north: Cluster, simulator: Simulator) -> None:
    simulator.store_credential(north)
    probe = ClusterProbe.objects.get()
    tasks.probe_cluster(probe_id=str(probe.id))
    probe.refresh_from_db()
    names = {step.name for step in probe.told}
    assert names - set(map(str, RIGHTS)) == set(connections.TO_DO)


def test_what_was_stopped_says_why(oz: Client, north: Cluster) -> None:
    factories.probe(
        north, verdict="", stopped=ProbeStop.UNOPENED, why="This process has no key 0f."
    )
    assert "It came to no end: This process has no key 0f." in text(
        oz.get(url("cluster-connection"))
    )


def test_it_is_probed_again(oz: Client, north: Cluster) -> None:
    assert oz.post(url("cluster-probe-page"))["Location"] == "/clusters/north/connection"
    assert ClusterProbe.objects.get().asked_by == "oz"
    assert oz.post(url("cluster-probe-page"), {"now": "1"}).status_code == 400


def test_models_that_wait_for_a_flavor_are_named(oz: Client, north: Cluster) -> None:
    factories.flavor(model="NVIDIA-H100")
    factories.node(north, "n1", gpus=8, model="NVIDIA-H100")
    factories.node(north, "n2", gpus=2, model="NVIDIA-A10")
    page = text(oz.get(url("cluster-connection")))
    assert "2 nodes, 10 GPUs." in page
    assert "make one for NVIDIA-A10 by" in page


@pytest.mark.parametrize(
    ("ends_in", "said"),
    [
        (timedelta(days=8), None),
        (timedelta(days=6, hours=23), "The credential ends in 6 d"),
        (timedelta(days=-2), "The credential ended 2 d ago: replace it."),
    ],
)
def test_a_credential_is_said_to_end_a_week_before(
    oz: Client, browse: Browse, cast: Cast, north: Cluster, ends_in: timedelta, said: str | None
) -> None:
    store_credential(north, server=SERVER, token=SECRET)
    ends = clock.now() + ends_in + timedelta(minutes=1) * (1 if ends_in > timedelta() else -1)
    ClusterCredential.objects.update(expires_at=ends)
    pages = ["/clusters", "/clusters/north", "/clusters/north/connection"]
    assert [(said or "The credential end") in text(oz.get(page)) for page in pages] == [
        said is not None
    ] * 3
    assert "The credential end" not in text(browse(cast.ben).get("/clusters"))


def test_the_list_names_clusters_whose_last_probe_fails(oz: Client, north: Cluster) -> None:
    store_credential(north, server=SERVER, token=SECRET)
    factories.probe(north, Verdict.FAILS, Verdict.FAILS, Verdict.WORKS)
    assert "The last probe found 2 things that fail." in text(oz.get("/clusters"))
    assert "Register a cluster" in text(oz.get("/clusters"))


def test_others_neither_see_nor_do_any_of_it(
    browse: Browse, cast: Cast, north: Cluster, nothing_stored: Unchanged
) -> None:
    for who in (cast.ada, cast.pia, cast.cleo):
        client = browse(who)
        with nothing_stored():
            for step in ("manifest-page", "credential-page", "connection"):
                assert client.get(url(f"cluster-{step}")).status_code == 403
            assert client.get(url("cluster-connection", "nowhere")).status_code == 403
            assert client.post(url("cluster-probe-page")).status_code == 403
            assert client.post(REGISTER, {"name": "x", "server": SERVER}).status_code == 403
        assert "Register a cluster" not in text(client.get("/clusters"))
        assert "Connection" not in text(client.get("/clusters/north"))


def test_a_cluster_that_is_not_there_has_no_pages(oz: Client) -> None:
    for step in ("manifest-page", "credential-page", "connection"):
        assert oz.get(url(f"cluster-{step}", "nowhere")).status_code == 404


def test_the_exposure_of_a_cluster_is_told_to_operators_alone(
    oz: Client, north: Cluster, browse: Browse, cast: Cast
) -> None:
    assert "There is no answer that holds." in text(oz.get(url("cluster-connection")))
    row = Exposure.objects.create(cluster=north, verdict="safe", seen_at=clock.now(), node="n1")
    store_credential(north, server=SERVER, token=SECRET)
    Exposure.objects.filter(id=row.id).update(verdict="safe")
    assert "It saw none on any node" in text(oz.get(url("cluster-connection")))
    for page in (reverse("cluster-list"), reverse("cluster-detail", args=["north"])):
        assert "UNSAFE" not in text(oz.get(page))
    Exposure.objects.filter(id=row.id).update(verdict="unsafe", saw=["/dev/<b>nvidia0</b>"])
    said = "UNSAFE: a pod that asked for no device saw, on n1: /dev/&lt;b&gt;nvidia0"
    for page in (reverse("cluster-list"), reverse("cluster-detail", args=["north"])):
        assert said in text(oz.get(page))
        assert "UNSAFE" not in text(browse(cast.ada).get(page))
    shown = text(oz.get(url("cluster-connection")))
    assert "On n1 it saw" in shown
    assert "/dev/&lt;b&gt;nvidia0" in shown
