"""One row by which a copy that was put back is known (ADR 0090)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0022_declared_pools")]
    operations = [
        migrations.CreateModel(
            "Imprint",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                )
            ],
        ),
    ]
