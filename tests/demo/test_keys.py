"""Who is told the private keys: who talks to clusters, in the demo and in the compose file."""

from pathlib import Path

import yaml

from controlplane.demo.folder import Folder
from controlplane.demo.processes import Cluster, Place, reaching, table

COMPOSE = Path(__file__).parents[2] / "docker/compose.yaml"
TOKEN = "canary-token-0123456789"


def test_the_demo_tells_the_dispatcher_and_the_watcher_alone(tmp_path: Path) -> None:
    north = Cluster(name="north", layout="demo-north", port=1, token=TOKEN)
    place = Place(folder=Folder(tmp_path), port=2, clusters=(north,))
    made = reaching(table(place), place)
    services = (*made.first, made.bootstrap, *made.rest)
    told = {each.name for each in services if "BERTH_OPEN_KEYS" in each.environ}
    assert told == {"dispatch", "watcher"}
    plain = {each.name for each in services if TOKEN in str(each.environ)}
    assert plain == {"north", "bootstrap"}  # the cluster itself, and who seals it


def test_the_compose_file_does_too() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    ours = {name: one["environment"] for name, one in services.items() if one["image"] == "berth"}
    assert {name for name, env in ours.items() if "BERTH_OPEN_KEYS" in env} == {
        "dispatch",
        "watch",
    }
    assert all("BERTH_SEAL_KEY" in env for env in ours.values())
