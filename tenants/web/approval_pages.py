"""The rules by which requests for quota take more than one agreement."""

from decimal import Decimal
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import NotAllowed
from controlplane.kernel.forms import Posted, StrictForm, no_fields
from controlplane.kernel.htmx import go, page, partial, refusal
from tenants.access import Actor
from tenants.approval import Level
from tenants.models import MAX_AFTER_DAYS, Tenant
from tenants.selectors import approval_rules as selectors
from tenants.services import approval_rules, quotas

EVERYWHERE = "everywhere"


class RuleForm(StrictForm):
    """Who agrees too, from which size on."""

    pointers = {"/from_milli": "from_gpus"}

    place = forms.ChoiceField(label="Of projects")
    level = forms.ChoiceField(
        label="Also agrees",
        choices=[
            (Level.TENANT.value, "an approver of the tenant or above"),
            (Level.FLEET.value, "an approver of the whole fleet"),
        ],
    )
    from_gpus = forms.DecimalField(
        label="From", min_value=Decimal(0), max_value=Decimal(quotas.MAX_MILLI) / 1000,
        decimal_places=3,
        help_text="GPUs of one flavor that the project would have in all; slices count as parts.",
    )  # fmt: skip

    after_days = forms.IntegerField(
        label="Or after days", required=False, min_value=1, max_value=MAX_AFTER_DAYS,
        help_text="A step below that nobody answers for so long goes up to them. Empty: never.",
    )  # fmt: skip

    def __init__(
        self, data: Posted = None, files: Posted = None, *, everywhere: bool, tenants: list[Tenant]
    ) -> None:
        super().__init__(data, files)
        first = [(EVERYWHERE, "Everywhere")] if everywhere else []
        self.choose("place", [*first, *((str(each.id), each.name) for each in tenants)])


@page("GET", "HEAD", "POST")
def approval_rule_list(request: HttpRequest) -> HttpResponse:
    """What holds, with the form of who may say more; 422 with it for a rule that can't be."""
    actor = actor_of(request)
    everywhere, tenants = selectors.places(actor=actor)
    if request.method != "POST":
        return _page(request, actor, RuleForm(everywhere=everywhere, tenants=tenants))
    if not everywhere and not tenants:
        raise NotAllowed("Operators, and owners for their tenant, say who agrees.")
    form = RuleForm(request.POST, request.FILES, everywhere=everywhere, tenants=tenants)

    def save() -> None:
        place = form.cleaned_data["place"]
        approval_rules.set_rule(
            actor=actor,
            tenant=next((each for each in tenants if str(each.id) == place), None),
            level=Level(form.cleaned_data["level"]),
            from_milli=int(form.cleaned_data["from_gpus"] * 1000),
            after_days=form.cleaned_data["after_days"],
            at=clock.now(),
        )

    status = refusal(form, save)
    if status is not None:
        return _page(request, actor, form, status=status)
    messages.success(request, "Saved. It holds for open requests too.")
    return go(request, reverse("approval-rule-list"))


@page("POST")
def approval_rule_remove(request: HttpRequest, id: UUID) -> HttpResponse:
    """One step fewer from now on."""
    no_fields(request)
    actor = actor_of(request)
    rule = selectors.rule(actor=actor, id=id)
    approval_rules.remove(actor=actor, rule=rule, at=clock.now())
    messages.success(request, "Removed. It holds for open requests too.")
    return go(request, reverse("approval-rule-list"))


def _page(
    request: HttpRequest, actor: Actor, form: RuleForm, *, status: int = 200
) -> HttpResponse:
    everywhere, tenants = selectors.places(actor=actor)
    own = {each.id for each in tenants}
    rows = selectors.rules(actor=actor).order_by("tenant__name", "level")
    context = {
        "form": form,
        "rules": [
            (rule, everywhere if rule.tenant_id is None else rule.tenant_id in own)
            for rule in rows
        ],
        "may_set": everywhere or bool(tenants),
    }
    return partial(request, "tenants/approval_rule_list.html", "rules", context, status=status)
