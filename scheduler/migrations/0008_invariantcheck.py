import controlplane.kernel.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0007_leftover_of_before'),
    ]

    operations = [
        migrations.CreateModel(
            name='InvariantCheck',
            fields=[
                ('id', models.UUIDField(default=controlplane.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('took_ms', models.PositiveIntegerField()),
                ('violations', models.JSONField(blank=True, default=list)),
                ('keys', models.JSONField(blank=True, default=list)),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['at', 'id'], name='check_by_time')],
            },
        ),
    ]
