from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0024_imprint_of_before'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='leaving',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
