from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("tenants", "0046_told_of_work")]

    operations = [
        migrations.AddField(
            model_name="grant",
            name="quota_version",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=Q(quota_version__isnull=True) | Q(begun_at__isnull=False),
                name="grant_changes_a_quota_once_it_begins",
            ),
        ),
    ]
