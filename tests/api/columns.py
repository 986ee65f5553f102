"""The names of all that a row of Berth's may have: what somebody would try to write unasked."""

from functools import cache

from django.apps import apps

APPS = ("audit", "api", "clusters", "tenants", "scheduler")


@cache
def of_models() -> frozenset[str]:
    """Fields of every model, also as their columns are called, and what leads to other rows."""
    return frozenset(
        name
        for label in APPS
        for model in apps.get_app_config(label).get_models(include_auto_created=True)
        for field in model._meta.get_fields(include_hidden=False)
        for name in (field.name, getattr(field, "attname", field.name))
    )
