"""Under which resource the whole devices of a node are asked for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0007_draining_is_held")]

    operations = [
        migrations.AddField(
            model_name="node",
            name="gpu_resource",
            field=models.CharField(
                db_default="nvidia.com/gpu", default="nvidia.com/gpu", max_length=80
            ),
        )
    ]
