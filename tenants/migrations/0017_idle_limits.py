from django.db import migrations, models


def in_range() -> models.Q:
    both = models.Q(
        ("idle_timeout_s__gte", 0),
        ("idle_timeout_s__isnull", False),
        ("idle_timeout_s__lte", 2592000),
        ("idle_warning_s__gte", 0),
        ("idle_warning_s__isnull", False),
        ("idle_warning_s__lte", models.F("idle_timeout_s")),
    )
    neither = models.Q(("idle_timeout_s__isnull", True), ("idle_warning_s__isnull", True))
    return models.Q(neither, both, _connector="OR")


class Migration(migrations.Migration):
    dependencies = [("tenants", "0016_submit_rate")]

    operations = [
        *(
            migrations.AddField(
                model_name=model,
                name=name,
                field=models.IntegerField(blank=True, null=True),
            )
            for model in ("tenant", "project")
            for name in ("idle_timeout_s", "idle_warning_s")
        ),
        *(
            migrations.AddConstraint(
                model_name=model,
                constraint=models.CheckConstraint(
                    condition=in_range(), name=f"{model}_idle_limit_in_range"
                ),
            )
            for model in ("tenant", "project")
        ),
    ]
