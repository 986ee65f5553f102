from django.db import migrations, models


def within() -> models.Q:
    in_range = models.Q(("min_run_time_s__gte", 0), ("min_run_time_s__lte", 86400))
    return models.Q(("min_run_time_s__isnull", True), in_range, _connector="OR")


class Migration(migrations.Migration):
    dependencies = [("tenants", "0010_quota_of_tenants")]

    operations = [
        *(
            migrations.AddField(
                model_name=model,
                name="min_run_time_s",
                field=models.IntegerField(blank=True, null=True),
            )
            for model in ("tenant", "project")
        ),
        *(
            migrations.AddConstraint(
                model_name=model,
                constraint=models.CheckConstraint(
                    condition=within(), name=f"{model}_min_run_time_in_range"
                ),
            )
            for model in ("tenant", "project")
        ),
    ]
