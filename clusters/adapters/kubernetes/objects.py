"""Objects of one cluster's API: listed, watched, read, deleted, and told apart from others'. What
each of them is for is the adapter's to know."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from clusters.adapters.kubernetes.checks import Json
from clusters.adapters.kubernetes.client import Client, Query
from clusters.adapters.kubernetes.lists import listing
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.watch import watch
from clusters.port import MOST_PODS, ClusterError, Fault, Listing, WatchEvent

NOT_THAT_ONE = frozenset({Fault.NOT_FOUND, Fault.CONFLICT})
"""Gone already, or no longer what is meant (409)."""


class Objects:
    """One cluster's API under one token. Threads may share it; make it after a fork."""

    def __init__(
        self,
        client: Client,
        *,
        names: Names,
        page: int = 500,
        watch_timeout_s: int = 60,
        watch_read_timeout_s: float = 70.0,
    ) -> None:
        self._client = client
        self._names = names
        self._page = page
        self._watch_timeout_s = watch_timeout_s
        self._watch_read_timeout_s = watch_read_timeout_s

    def _list[Report](
        self,
        path: str,
        translate: Callable[[Json], Report],
        *,
        most: int = MOST_PODS,
        chosen: Query | None = None,
    ) -> Listing[Report]:
        """All of them, or those that `chosen` selects."""
        return listing(self._client, path, translate, page=self._page, most=most, chosen=chosen)

    def _watch[Report](
        self, path: str, translate: Callable[[Json], Report], resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[Report]]]:
        return watch(
            self._client,
            path,
            resource_version=resource_version,
            translate=translate,
            timeout_s=self._watch_timeout_s,
            read_timeout_s=self._watch_read_timeout_s,
        )

    def _delete(self, path: str, preconditions: Json, **options: int) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions,
            **options,
        }
        try:
            self._client.call("DELETE", path, body=body)
        except ClusterError as error:
            if error.fault not in NOT_THAT_ONE:
                raise
            # A server may be in conflict with itself, and what is meant is still there.
            if error.fault is Fault.CONFLICT and self._is_there(path, preconditions):
                raise

    def _is_there(self, path: str, preconditions: Json) -> bool:
        """The very object that they name."""
        metadata = (self._found(path) or {}).get("metadata")
        return isinstance(metadata, dict) and preconditions.items() <= metadata.items()

    def _namesake(self, path: str, refused: ClusterError) -> Json:
        """What is there already where a creation was refused for that. Raises what refused it for
        anything else; and SERVER where nothing is there, as after contention for a quota: that
        passes by itself, and CONFLICT is hopeless."""
        if refused.fault is not Fault.CONFLICT:
            raise refused
        found = self._found(path)
        if found is None:
            raise ClusterError(Fault.SERVER, str(refused)) from None
        return found

    def _found(self, path: str) -> Json | None:
        try:
            return self._client.call("GET", path)
        except ClusterError as error:
            if error.fault is Fault.NOT_FOUND:
                return None
            raise

    def _is_same(self, found: Json, wanted: Json) -> bool:
        """Whether it is what we would have made: its hash and each of our labels."""
        key = self._names.annotation_hash
        digest = mapping(wanted, "annotations")[key]
        return mapping(found, "annotations").get(key) == digest and has_labels(
            found, labels_of(wanted)
        )


def labels_of(body: Json) -> Json:
    return mapping(body, "labels")


def has_labels(body: Json, wanted: Json) -> bool:
    labels = labels_of(body)
    return all(labels.get(name) == value for name, value in wanted.items())


def mapping(body: Json, key: str) -> Json:
    metadata = body.get("metadata")
    found = metadata.get(key) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
