"""Connecting a cluster, step by step: its name, the manifest, the credential, the probe. For
operators of the fleet; each step is a page, and may be left and come back to."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters

from clusters import registry, selectors
from clusters.models import Cluster
from clusters.parts import Part
from clusters.services import clusters, credentials, probes
from clusters.web.connection_forms import CredentialForm, ManifestForm, RegisterForm
from clusters.web.connections import attention, to_do
from controlplane.api.auth import operator_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid, Unavailable
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import (
    focus_fault,
    go,
    minute,
    page,
    partial,
    refusal,
    revision,
    unchanged,
)

FILE = "berth-cluster.yaml"


@page("GET", "HEAD", "POST")
def cluster_register(request: HttpRequest) -> HttpResponse:
    """Step 1. Raises NotAllowed but for operators of the fleet, as all of these do."""
    actor = operator_of(request)
    if request.method != "POST":
        return _register_page(request, RegisterForm())
    form = RegisterForm(request.POST, request.FILES)

    def register() -> None:
        clusters.register(
            name=form.cleaned_data["name"],
            region=form.cleaned_data["region"],
            server=form.cleaned_data["server"],
            actor=actor.label,
            actor_name=actor.name,
            at=clock.now(),
        )

    status = refusal(form, register, about="name")
    if status is not None:
        return _register_page(request, form, status=status)
    return go(request, reverse("cluster-manifest-page", args=[form.cleaned_data["name"]]))


def _register_page(request: HttpRequest, form: RegisterForm, *, status: int = 200) -> HttpResponse:
    context = {"form": form, "step": 1}
    return render(request, "clusters/cluster_register.html", context, status=status)


@page("GET", "HEAD")
def cluster_manifest(request: HttpRequest, name: str) -> HttpResponse:
    """Step 2: what to run in the cluster."""
    operator_of(request)
    cluster = selectors.cluster(name=name)
    form = ManifestForm(request.GET or ManifestForm.defaults())
    context = {"cluster": cluster, "form": form, "step": 2}
    status = 422
    if form.is_valid():
        try:
            context |= _manifest(form)
            status = 200
        except Invalid as error:
            form.show(error.problems)
        except Unavailable as error:
            form.add_error(None, error.message)
    focus_fault(form)
    return render(request, "clusters/cluster_manifest.html", context, status=status)


def _manifest(form: ManifestForm) -> dict[str, object]:
    """Raises Invalid and Unavailable."""
    user, hours = form.named_user, form.cleaned_data["token_hours"]
    parts = [Part(part) for part in form.cleaned_data["parts"]]
    text = registry.manifest(user=user, token_h=hours, parts=parts)
    account, namespace = registry.account()
    query: dict[str, str | int] = {"user": user} if user else {"token_hours": hours}
    if parts:
        query["parts"] = ",".join(parts)
    return {
        "manifest": text,
        "named_user": user,  # the header shows `user`, who is signed in
        "file": FILE,
        "download": f"{reverse('api:cluster-manifest')}?{urlencode(query)}",
        "apply": f"kubectl apply --filename {FILE}",
        "token": f"kubectl create token {account} --namespace {namespace} --duration {hours}h",
        "ca": "kubectl config view --minify --flatten --output"
        " 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 --decode",
    }


@sensitive_post_parameters()
@page("GET", "HEAD", "POST")
def cluster_credential(request: HttpRequest, name: str) -> HttpResponse:
    """Step 3. What was posted is sealed, and never comes back."""
    actor = operator_of(request)
    cluster = selectors.cluster(name=name)
    if request.method != "POST":
        return _credential_page(request, cluster, CredentialForm(cluster=cluster))
    form = CredentialForm(request.POST, request.FILES, cluster=cluster)

    def store() -> None:
        credentials.store(
            cluster=cluster,
            credential=credentials.read(form.fields_of_credential),
            says_metrics="metrics" in form.fields_of_credential,
            actor=actor.label,
            actor_name=actor.name,
            at=clock.now(),
        )

    try:
        status = refusal(form, store)
    except Unavailable as error:
        form.add_error(None, error.message)
        status = 503
    if status is not None:
        return _credential_page(request, cluster, form, status=status)
    messages.success(request, "The credential is sealed and stored; Berth tries it now.")
    return go(request, reverse("cluster-connection", args=[name]))


def _credential_page(
    request: HttpRequest, cluster: Cluster, form: CredentialForm, *, status: int = 200
) -> HttpResponse:
    context = {"cluster": cluster, "form": form, "step": 3}
    return render(request, "clusters/cluster_credential.html", context, status=status)


@page("GET", "HEAD")
def cluster_connection(request: HttpRequest, name: str) -> HttpResponse:
    """Step 4, and from then on how the cluster is connected: its credential, its newest probe,
    what it has."""
    operator_of(request)
    cluster = selectors.counted_cluster(name=name)
    at = clock.now()
    connection = selectors.connection(cluster_id=cluster.id)
    probe = selectors.probes(cluster=cluster).order_by("-id").first()
    models = selectors.models(cluster=cluster)
    credential, exposure = connection.credential, connection.exposure
    rev = revision(
        cluster.inventory_rev,
        models,
        credential and (credential.version, credential.set_at, credential.key_id),
        probe and (probe.id, probe.began_at, len(probe.steps), probe.ended_at),
        exposure
        and (
            exposure.asked_at,
            exposure.ended_at,
            exposure.pod_uid,
            exposure.verdict,
            exposure.why,
        ),
        minute(at),
    )
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "cluster": cluster,
        "credential": credential,
        "attention": attention(connection, at=at, newest=probe),
        "probe": probe,
        "exposure": exposure,
        "to_do": to_do(probe) if probe else (),
        "models": models,
        "without_flavor": [one.name for one in models if not one.has_flavor],
        "step": 4,
        "rev": rev,
    }
    return partial(request, "clusters/cluster_connection.html", "connection", context)


@page("POST")
def cluster_probe(request: HttpRequest, name: str) -> HttpResponse:
    """Have it tried once more."""
    actor = operator_of(request)
    no_fields(request)
    probes.ask(cluster=selectors.cluster(name=name), actor_name=actor.name, at=clock.now())
    return go(request, reverse("cluster-connection", args=[name]))
