from tests.kube.fixtures import add_node, control_plane, namespace

__all__ = ["add_node", "control_plane", "namespace"]
