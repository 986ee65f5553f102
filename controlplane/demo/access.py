"""How the clusters of a demo are reached: from the process that starts them to sealed rows.

Nothing of Django is imported before it is set up: the demo's parent process never sets it up.
"""

import json
import os
from datetime import datetime

TOLD = "BERTH_DEMO_CLUSTERS"
"""The variable of a bootstrap's environment: a JSON object of credentials by a cluster's name."""


def store(*, actor: str, actor_name: str, at: datetime) -> None:
    """Seal what the parent process told. The clusters are registered already."""
    from clusters import credential
    from clusters.models import Cluster
    from clusters.services import credentials

    for name, fields in json.loads(os.environ[TOLD]).items():
        credentials.store(
            cluster=Cluster.objects.get(name=name),
            credential=credential.read(fields),
            actor=actor,
            actor_name=actor_name,
            at=at,
        )
