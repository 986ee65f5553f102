import controlplane.kernel.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions', '0001_initial'),
        ('tenants', '0030_usernames'),
    ]

    operations = [
        migrations.CreateModel(
            name='UserSession',
            fields=[
                ('id', models.UUIDField(default=controlplane.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('began_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
                ('address', models.CharField(blank=True, max_length=45)),
                ('agent', models.CharField(blank=True, max_length=300)),
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sessions.session')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('seen_at__gte', models.F('began_at'))), name='user_session_seen_since_it_began')],
            },
        ),
    ]
