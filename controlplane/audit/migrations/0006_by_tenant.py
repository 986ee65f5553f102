from django.db import migrations, models


class Migration(migrations.Migration):
    """What was done to a tenant itself is read beside what was done in its projects."""

    dependencies = [("audit", "0005_old_rows_in_a_chain")]

    operations = [
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                condition=models.Q(("project_id__isnull", True)),
                fields=["tenant_id", "id"],
                name="audit_by_tenant",
            ),
        ),
    ]
