from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("tenants", "0047_grant_quota_version")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="caps_from_above",
            field=ArrayField(
                base_field=models.CharField(max_length=30),
                blank=True,
                db_default=[],
                default=list,
                size=None,
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=Q(
                    caps_from_above__contained_by=[
                        "max_running",
                        "max_pending",
                        "user_max_running",
                        "user_max_pending",
                        "user_max_gpus_milli",
                        "max_submits_a_minute",
                        "user_max_submits_a_minute",
                    ]
                ),
                name="project_caps_from_above_known",
            ),
        ),
    ]
