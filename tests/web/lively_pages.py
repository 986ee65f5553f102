"""The pages of the lively installation, by who is asked to open them."""

from django.urls import reverse

from clusters.models import Flavor
from tests import factories
from tests.browser.scene import Scene
from tests.service_accounts import service_account


def by_person(shown: Scene) -> dict[str, dict[str, str]]:
    """Person → what the page is called → its address."""
    detection, ben = shown.projects["Detection"], shown.people["ben"]
    h100 = Flavor.objects.get(name="h100-80gb")
    factories.reservation(detection.tenant, h100, shown.people["oz"])
    array = factories.array(detection, ben, [h100], 40)
    urls = {
        "home": reverse("home"),
        "workload-list": reverse("workload-list"),
        "workload-detail running": reverse("workload-detail", args=[shown.running.id]),
        "workload-detail waiting": reverse("workload-detail", args=[shown.waiting.id]),
        "pod-inspection": reverse(
            "pod-inspection", args=[shown.running.id, shown.running.placements.earliest("id").id]
        ),
        "array-detail": reverse("array-detail", args=[array.id]),
        "workload-explanation": reverse("workload-explanation", args=[shown.waiting.id]),
        "workload-submit": reverse("workload-submit"),
        "queue": reverse("queue"),
        "spend": reverse("spend"),
        "audit-list": reverse("audit-list"),
        "tenant-list": reverse("tenant-list"),
        "tenant-detail": reverse("tenant-detail", args=[detection.tenant_id]),
        "project-people": reverse("project-people", args=[detection.id]),
        "project-policy": reverse("project-policy", args=[detection.id]),
        "cluster-list": reverse("cluster-list"),
        "cluster-detail": reverse("cluster-detail", args=["north"]),
        "quota-list": reverse("quota-list"),
        "project-detail": reverse("project-detail", args=[detection.id]),
        "budget-list": reverse("budget-list"),
        "reservation-list": reverse("reservation-list"),
        "rate-list": reverse("rate-list"),
        "request-new": reverse("request-new"),
        "request-list": reverse("request-list"),
        "approval-rule-list": reverse("approval-rule-list"),
        "delegation-list": reverse("delegation-list"),
        "token-list": reverse("token-list"),
        "second-factor": reverse("second-factor"),
        "session-list": reverse("session-list"),
        "mail": reverse("mail"),
        "group-role-list": reverse("group-role-list"),
    }
    operators = {
        "account-list": reverse("account-list"),
        "project-replay": reverse("project-replay", args=[detection.id]),
        "cluster-list": urls["cluster-list"],
        "cluster-detail": urls["cluster-detail"],
        "cluster-register": reverse("cluster-register"),
        "cluster-manifest": reverse("cluster-manifest-page", args=["north"]),
        "cluster-credential": reverse("cluster-credential-page", args=["north"]),
        "cluster-connection": reverse("cluster-connection", args=["north"]),
        "channels": reverse("channels"),
        "project-channels": reverse("project-channels", args=[detection.id]),
    }
    account = service_account(detection)
    for _ in range(3):
        factories.token(account, made_by=shown.people["ada"])
        service_account(detection)
    owners = {
        "project-service-accounts": reverse("project-service-accounts", args=[detection.id]),
        "service-account": reverse("service-account", args=[account.id]),
        "project-tokens": reverse("project-tokens", args=[detection.id]),
    }
    return {"ben": urls, "pia": urls, "oz": operators, "ada": owners}
