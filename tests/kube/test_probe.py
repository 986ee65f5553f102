"""The probe where the real API server has more to say than the simulator."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusters.adapters.kubernetes import access, catching
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.names import Names
from clusters.credential import ClientCertificate
from clusters.port import ProbeStep, Verdict
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.manifests import apply, remove
from tests.kube.work import BERTH
from tests.networks import LOOPBACK
from tests.waiting import eventually


def probe(
    kube: ControlPlane, *, identity: str | ClientCertificate, names: Names = NAMES
) -> dict[str, ProbeStep]:
    client = Client(server=kube.server, identity=identity, ca_pem=kube.ca_pem, allowed=LOOPBACK)
    port = KubernetesCluster(client, names=names)
    steps = tuple(port.probe())
    port.close()
    return {step.name: step for step in steps}


@contextmanager
def refusing(kube: ControlPlane, resource: str, *, to: str) -> Iterator[None]:
    """A policy of the cluster's own, by which nobody makes such objects."""
    admission = "admissionregistration.k8s.io/v1"
    rule: Json = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": [resource],
    }
    documents: list[Json] = [
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "house-rule"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [
                    {"name": "berth", "expression": f"object.metadata.name == '{to}'"}
                ],
                "validations": [{"expression": "false", "message": "name a cost centre"}],
            },
        },
        {
            "apiVersion": admission,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "house-rule"},
            "spec": {"policyName": "house-rule", "validationActions": ["Deny"]},
        },
    ]
    apply(kube.admin, documents)
    try:
        yield
    finally:
        remove(kube.admin, documents)


@pytest.mark.parametrize("what", ["namespace", "pod"])
def test_a_policy_that_refuses_what_berth_makes_is_quoted(
    control_plane: ControlPlane, what: str
) -> None:
    def refused() -> ProbeStep | None:
        step = probe(control_plane, identity=control_plane.berth_token)[f"make a {what}"]
        return step if step.verdict is Verdict.FAILS else None

    with refusing(control_plane, f"{what}s", to="berth-probe"):
        assert "name a cost centre" in eventually("it is refused", refused).said
    eventually(
        "it is refused no more", lambda: refused() is None
    )  # the others' server is this one


def test_a_token_that_may_do_more_than_berth_ever_does_is_told(
    control_plane: ControlPlane,
) -> None:
    steps = probe(control_plane, identity=control_plane.admin_token)
    assert steps["excess"].verdict is Verdict.WARNING
    assert steps["excess"].said.startswith("may do everything, read secrets")
    own = probe(control_plane, identity=control_plane.berth_token)
    assert own["excess"].verdict is Verdict.WORKS


@contextmanager
def reading_owners(kube: ControlPlane, *, but: tuple[str, ...]) -> Iterator[None]:
    """What `--catch` adds is applied, as it would be by a version that knew less."""
    role, *rest = catching.documents(names=NAMES, user=BERTH)
    for rule in role["rules"]:
        rule["resources"] = [each for each in rule["resources"] if each not in but]
    role["rules"] = [rule for rule in role["rules"] if rule["resources"]]
    documents = [role, rest[0]]
    apply(kube.admin, documents)
    try:
        yield
    finally:
        remove(kube.admin, documents)


@pytest.mark.parametrize("but", [(), ("jobs",), ("jobs", "rayjobs", "rayservices", "rayclusters")])
def test_each_owner_that_berth_may_not_read_is_named_where_work_is_caught(
    control_plane: ControlPlane, but: tuple[str, ...]
) -> None:
    def told(verdict: Verdict, begins: str) -> ProbeStep:
        def found() -> ProbeStep | None:
            step = probe(control_plane, identity=control_plane.berth_token)["catch"]
            return (
                step if (step.verdict, step.said.startswith(begins)) == (verdict, True) else None
            )

        return eventually(f"the probe says that {begins}", found)

    told(Verdict.WORKS, "Berth does not read there who owns others' work, which is needed")
    with reading_owners(control_plane, but=but):
        if not but:
            told(Verdict.WORKS, "may read who owns what others make")
            return
        said = told(Verdict.WARNING, "it may not get jobs.batch").said
        named = set(said.removeprefix("it may not ").partition(", so pods")[0].split(", "))
        ray = {f"get {each}.ray.io" for each in but if each != "jobs"}
        assert named == {"get jobs.batch"} | ray


def failed(
    kube: ControlPlane, *, identity: str | ClientCertificate, names: Names
) -> list[ProbeStep]:
    steps = probe(kube, identity=identity, names=names)
    return [step for step in steps.values() if step.verdict is Verdict.FAILS]


@pytest.fixture(scope="module")
def certified(control_plane: ControlPlane) -> Iterator[Names]:
    """The names of an installation that signs in by a certificate, whose manifest is in force."""
    names = Names(prefix="berth.dev", installation="certified")
    documents = access.documents(names=names, user="fleet@example.test")
    apply(control_plane.admin, documents)
    eventually(
        "the policy refuses somebody",
        lambda: failed(control_plane, identity=control_plane.berth_token, names=names),
    )
    yield names
    remove(control_plane.admin, documents)


def test_all_works_by_a_client_certificate_whose_user_the_manifest_names(
    control_plane: ControlPlane, certified: Names
) -> None:
    identity = control_plane.clients.issue("fleet@example.test")

    def granted() -> dict[str, ProbeStep] | None:
        steps = probe(control_plane, identity=identity, names=certified)
        return steps if steps["patch pods"].verdict is Verdict.WORKS else None

    steps = eventually("the role is seen", granted)
    assert [step for step in steps.values() if step.verdict is Verdict.FAILS] == []
    assert steps["identity"].said == "it knows Berth as fleet@example.test"


def test_the_policy_of_another_user_shows_in_the_probe(
    control_plane: ControlPlane, certified: Names
) -> None:
    """Berth's own account has every right there, and would be refused in each project."""

    [step] = failed(control_plane, identity=control_plane.berth_token, names=certified)
    assert step.name == "make a pod"
    assert "only fleet@example.test gives pods the labels" in step.said


def test_a_priority_that_somebody_made_anew_otherwise_is_told(
    control_plane: ControlPlane, certified: Names
) -> None:
    identity = control_plane.clients.issue("fleet@example.test")
    admin, name = control_plane.admin, certified.priority_class("high")
    path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}"

    def told() -> ProbeStep:
        return probe(control_plane, identity=identity, names=certified)["priority classes"]

    eventually("the role is seen", lambda: told().verdict is Verdict.WORKS)
    first = admin.get(path)
    for change in (
        {"value": 5},
        {"preemptionPolicy": "PreemptLowerPriority"},
        {"globalDefault": True},
    ):
        admin.do("DELETE", path)
        made = {key: first[key] for key in ("value", "preemptionPolicy")} | change
        admin.create(path.rpartition("/")[0], {"metadata": {"name": name}, **made})
        step = told()
        assert step.verdict is Verdict.WARNING
        assert step.said.startswith(f"{name}: not as `manage.py cluster_manifest` prints them")


def test_a_user_without_a_manifest_is_told_what_to_apply(control_plane: ControlPlane) -> None:
    nowhere = Names(prefix="berth.dev", installation="nowhere")
    [step] = failed(control_plane, identity=control_plane.berth_token, names=nowhere)
    assert step.name == "priority classes"
    assert step.said.startswith("there is no berth-nowhere-low, berth-nowhere-normal, ")
    assert step.said.endswith("apply what `manage.py cluster_manifest` prints")
