from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0004_model_quota")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="use_seen_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="use_error",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
    ]
