"""The submit page: a form that any browser can send, and the estimate beside it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from clusters.models import Cluster, FlavorKind
from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, Invalid
from controlplane.kernel.htmx import (
    focus_fault,
    go,
    is_fragment,
    later,
    page,
    partial,
    revision,
    unchanged,
)
from controlplane.kernel.throttle import TooOften
from scheduler.core.node.isolation import is_enough
from scheduler.core.quota.portions import share_milli
from scheduler.core.reasons import ISOLATED_BY
from scheduler.core.snapshot import Isolation
from scheduler.core.units import ONE_MILLI
from scheduler.models import Workload, WorkloadArray
from scheduler.selectors import fleet
from scheduler.selectors import offers as offering
from scheduler.selectors.offers import Offer, by_name
from scheduler.services import arrays, comparing, explaining, workloads
from scheduler.services.specs import ArraySpec, WorkloadSpec
from scheduler.web import comparisons, explanations, serializers
from scheduler.web.forms import LIMIT_UNITS, SubmitForm, mib_of
from tenants import policy, policy_words
from tenants.access import Action, Actor
from tenants.models import Project, Quota
from tenants.selectors import people, policies, prices
from tenants.selectors import preferred as preferring

type Told = dict[str, object]  # more for the template

LINKED = ("project", "flavor", "count", "gpus", "after")
"""The fields that a link to the form may fill in."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What the form as it stands would hold and cost. Amounts in thousandths of the offer's unit.

    `behind` are the flavors that it tries after the offer's, where none is chosen by name.
    `most` is the price of the whole run-time limit, None without one or without a price. The
    project accepts no less isolation than `accepted`, and what is asked for no less than `asked`.
    """

    offer: Offer
    count: int
    amount_milli: int
    per_hour: Decimal | None
    most: Decimal | None
    quota: Quota | None
    accepted: Isolation
    asked: Isolation
    behind: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """Why it will be refused whatever is free; "" when it won't for that."""
        name, given = self.offer.name, Isolation(self.offer.isolation)
        if not is_enough(given=given, least=self.accepted):
            return (
                f"{name} isolates neighbours by {ISOLATED_BY[given]}, and the project accepts no"
                f" less than {ISOLATED_BY[self.accepted]}: its owners may say that it does"
            )
        if not is_enough(given=given, least=self.asked):
            return (
                f"{name} isolates neighbours by {ISOLATED_BY[given]}, and no less than"
                f" {ISOLATED_BY[self.asked]} is asked for"
            )
        if self.offer.kind == FlavorKind.SHARE and self.amount_milli > self.count * ONE_MILLI:
            return f"One GPU of {name} has {self.offer.memory_gib} GiB, which is less than asked"
        return ""

    @property
    def free_now(self) -> bool:
        return self.amount_milli <= self.offer.free_milli

    @property
    def beyond_milli(self) -> int:
        """By how much it would pass the project's nominal quota: that has to be borrowed."""
        if self.quota is None:
            return 0
        after = self.quota.used_milli + self.amount_milli
        return max(0, after - max(self.quota.nominal_milli, self.quota.used_milli))


@page("GET", "HEAD", "POST")
def workload_submit(request: HttpRequest) -> HttpResponse:
    """GET is the form, or the part of it that htmx asks for; POST stores the workload, or 422,
    or 409 where other policies hold by now than it was checked by."""
    actor = actor_of(request)
    project = named_project(request)
    at = clock.now()
    projects = people.projects_by_name(actor=actor, action=Action.SUBMIT)
    offers = offering.offers(prices=prices.at_moment(at=at))
    form = _form(request, projects, offers)
    if not form.is_bound:
        return unchanged(request, _flavors_rev(form)) or _render(request, form, request.GET)
    if form.is_valid() and project:
        try:
            spec = serializers.parse(form.specification())
            made = _store(actor, project, spec, form.array, at)
        except Invalid as error:
            form.show(error.problems)
        except TooOften as error:
            form.add_error(None, error.message)
            return later(_render(request, form, request.POST, status=429, focus_top=True), error)
        except Conflict as error:
            form.add_error(None, error.message)
            return _render(request, form, request.POST, status=409, focus_top=True)
        else:
            messages.success(request, f"Submitted {made.name}.")
            page_of = "workload-detail" if isinstance(made, Workload) else "array-detail"
            return go(request, reverse(page_of, args=[made.id]))
    return _render(request, form, request.POST, status=422, focus_top=not focus_fault(form))


def _store(
    actor: Actor, project: Project, spec: WorkloadSpec, array: ArraySpec | None, at: datetime
) -> Workload | WorkloadArray:
    if array is not None:
        return arrays.submit(actor=actor, project=project, spec=spec, array=array, at=at)
    [made] = workloads.submit(actor=actor, project=project, specs=[spec], at=at)
    return made


@page("POST")
def workload_check(request: HttpRequest) -> HttpResponse:
    """The form again with what would become of it beside it, or 422 with its faults. Nothing is
    stored."""

    def explained(actor: Actor, project: Project, form: SubmitForm, at: datetime) -> Told:
        spec, array = serializers.parse(form.specification()), form.array
        found = explaining.dry_run(actor=actor, project=project, spec=spec, array=array, at=at)
        return {"explained": explanations.dry_run(found, of_element=array is not None)}

    return _answered(request, explained)


@page("POST")
def workload_modes(request: HttpRequest) -> HttpResponse:
    """The form again with what each mode would cost in it, or 422 with its faults. Nothing is
    stored."""

    def compared(actor: Actor, project: Project, form: SubmitForm, at: datetime) -> Told:
        spec, array = serializers.parse(form.comparable()), form.array
        found = comparing.compare(actor=actor, project=project, spec=spec, array=array, at=at)
        return {"comparison": found, "modes": comparisons.rows(found)}

    return _answered(request, compared)


def _answered(
    request: HttpRequest, ask: Callable[[Actor, Project, SubmitForm, datetime], Told]
) -> HttpResponse:
    actor = actor_of(request)
    project = named_project(request)
    at = clock.now()
    projects = people.projects_by_name(actor=actor, action=Action.SUBMIT)
    form = _form(request, projects, offering.offers(prices=prices.at_moment(at=at)))
    if form.is_valid() and project:
        try:
            told = ask(actor, project, form, at)
        except Invalid as error:
            form.show(error.problems)
        except TooOften as error:
            told = {"refusal": error.message}
            return later(_render(request, form, request.POST, status=429, told=told), error)
        else:
            return _render(request, form, request.POST, told=told)
    return _render(request, form, request.POST, status=422, focus_top=not focus_fault(form))


def _form(
    request: HttpRequest, projects: Sequence[Project], offers: Sequence[Offer]
) -> SubmitForm:
    """As it was posted, else as a link to it fills it in."""
    names = Cluster.objects.order_by("name").values_list("name", flat=True)
    preferred = _preferred(projects, offers)
    first = next((offer.name for offer in offers if offer.free_milli), None)
    # A browser shows the first project as chosen anyway.
    start: dict[str, object] = {"project": str(projects[0].id) if projects else ""}
    start |= {name: request.GET[name] for name in LINKED if name in request.GET}
    if not preferred.get(str(start["project"])):
        start.setdefault("flavor", first or (offers[0].name if offers else ""))
    posted = (request.POST, request.FILES) if request.method == "POST" else ()
    return SubmitForm(
        *posted,
        projects=projects,
        offers=offers,
        clusters=names,
        levels=fleet.levels(),
        preferred=preferred,
        initial=start,
    )


def _preferred(
    projects: Sequence[Project], offers: Sequence[Offer]
) -> Mapping[str, tuple[str, ...]]:
    """The names of the whole GPUs that each project prefers, in order, by its id. One query."""
    whole = {offer.id: offer.name for offer in offers if offer.kind == FlavorKind.WHOLE}
    found = preferring.by_project([project.id for project in projects])
    return {
        str(project): tuple(whole[flavor] for flavor in flavors if flavor in whole)
        for project, flavors in found.items()
    }


def _flavors_rev(form: SubmitForm) -> str:
    return revision((form.offers, form.preferred.get(str(form["project"].value()))))


def _render(
    request: HttpRequest,
    form: SubmitForm,
    query: QueryDict,
    *,
    status: int = 200,
    focus_top: bool = False,
    told: Told | None = None,
) -> HttpResponse:
    """With what was asked about the form and found, or why it was not."""
    values = query if is_fragment(request) or form.is_bound else _defaults(form)
    project = form.projects.get(values.get("project", ""))
    chain = policies.of_project(project) if project else ()
    in_force = policies.in_force(project, chain) if project else ()
    context = {
        "form": form,
        "sum": _sum(form, values, limit_s=policy.defaults(chain).run_time_limit_s),
        "policy": policy_words.told(in_force),
        "nowhere": [offer for offer in form.offers if not offer.places],
        "choices": [offer for offer in form.offers if offer.places],
        "chosen": form["flavor"].value() or "",
        "preferred": form.preferred.get(str(form["project"].value()), ()),
        "flavors_rev": _flavors_rev(form),
        "focus_top": focus_top or "flavor" in form.errors,
        "modes": comparisons.rows(None),
        **(told or {}),
    }
    part = "flavors" if request.GET.get("part") == "flavors" else "estimate"
    fragment = "form" if form.is_bound else part
    return partial(request, "scheduler/workload_submit.html", fragment, context, status=status)


def _defaults(form: SubmitForm) -> QueryDict:
    values = QueryDict(mutable=True)
    for field in form:
        values[field.name] = str(field.value() or "")
    return values


def _sum(form: SubmitForm, values: QueryDict, *, limit_s: int | None) -> Sum | None:
    """None while no flavor is chosen. Fields that are not numbers yet count as their least;
    `limit_s` is the run-time limit of what says none."""
    project = values.get("project", "")
    of = form.projects.get(project)
    first, *behind = form.preferred.get(project) or ("",)
    chosen = values.get("flavor", "")
    offer = by_name(form.offers, chosen or first)
    if offer is None:
        return None
    count = _number(values, "count", Decimal(1))
    each_milli = {
        FlavorKind.CPU: _number(values, "cpu", Decimal("0.001")) * 1000,
        FlavorKind.SHARE: _share_milli(values, offer),
    }.get(FlavorKind(offer.kind), _number(values, "gpus", Decimal(1)) * 1000)
    amount_milli = int(count * each_milli)
    per_hour = None if offer.high is None else offer.high * amount_milli / 1000
    limit = _number(values, "limit", Decimal(0))
    unit_s = LIMIT_UNITS.get(values.get("limit_unit", ""), 3600)
    most_s = limit * unit_s if limit else limit_s
    return Sum(
        offer=offer,
        count=int(count),
        amount_milli=amount_milli,
        per_hour=per_hour,
        most=per_hour * most_s / 3600 if per_hour is not None and most_s else None,
        quota=_quota(form, offer, project),
        accepted=Isolation(of.least_isolation) if of else Isolation.NONE,
        asked=_asked(values),
        behind=() if chosen else tuple(behind),
    )


def _asked(values: QueryDict) -> Isolation:
    """The least isolation that the form says, none for what is no isolation."""
    said = values.get("least_isolation", "")
    return Isolation(said) if said in Isolation else Isolation.NONE


def _share_milli(values: QueryDict, offer: Offer) -> Decimal:
    """Of one GPU: what has the memory that is asked for, else the part."""
    gb = int(_number(values, "share_gb", Decimal(0)))
    if gb and offer.memory_mib:
        return Decimal(share_milli(asked_mib=mib_of(gb), device_mib=offer.memory_mib))
    return _number(values, "share_milli", Decimal(1))


def _number(values: QueryDict, name: str, least: Decimal) -> Decimal:
    try:
        found = Decimal(values.get(name, ""))
    except InvalidOperation:
        return least
    return found if found.is_finite() and least <= found <= 1_000_000 else least


def _quota(form: SubmitForm, offer: Offer, project: str) -> Quota | None:
    """The quota of a project that the form offers, of that flavor."""
    if project not in form.projects:
        return None
    return Quota.objects.filter(project_id=UUID(project), flavor_id=offer.id).first()
