"""Kubeconfigs: five fields are taken; of a hostile one nothing runs, is read or is quoted."""

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
import yaml

from clusters import credential, kubeconfig
from clusters.credential import BadCredential, ClientCertificate

FOLDER = Path(__file__).parent / "kubeconfigs"
HOSTILE = sorted((FOLDER / "hostile").glob("*.yaml"))
REFUSALS: dict[str, str] = yaml.safe_load((FOLDER / "refusals.yaml").read_text())


def text(file: Path) -> str:
    """Bytes that are no text come as what JSON could carry instead."""
    return file.read_bytes().decode(errors="surrogateescape")


def test_every_hostile_file_has_its_reason() -> None:
    assert {file.stem for file in HOSTILE} == set(REFUSALS)
    assert len(HOSTILE) >= 40
    assert len({file.read_bytes() for file in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("file", HOSTILE, ids=lambda file: file.stem)
def test_a_hostile_one_is_refused_by_its_place_and_not_quoted(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadCredential) as raised:
        kubeconfig.parse(text(file))
    said = str(raised.value)
    assert said == REFUSALS[file.stem]
    assert "canary" not in said
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    assert list(tmp_path.iterdir()) == []  # "touch exec-canary" never ran


def test_more_than_64_kib_is_not_even_read() -> None:
    with pytest.raises(BadCredential, match="line 1: more than 64 KiB"):
        kubeconfig.parse(text(FOLDER / "accepted/k3s.yaml") + "#" * 65536)


@pytest.mark.parametrize(
    ("name", "host", "expires_at"),
    [
        ("eks-bound-token", "0123456789ABCDEF.gr7.eu-north-1.eks.amazonaws.com", 2030),
        ("gke-static-token", "203.0.113.7", 2030),
        ("as-json", "north.example.test:6443", None),
        ("public-authority", "north.example.test", None),
    ],
)
def test_a_token_is_taken_with_when_it_says_that_it_ends(
    name: str, host: str, expires_at: int | None
) -> None:
    found = kubeconfig.parse(text(FOLDER / f"accepted/{name}.yaml"))
    assert isinstance(found.identity, str)
    assert found.host == host
    assert (found.ca_pem is None) == (name == "public-authority")
    assert found.expires_at == (expires_at and datetime(expires_at, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("name", "host"), [("kind", "127.0.0.1:41231"), ("k3s", "127.0.0.1:6443")]
)
def test_a_client_certificate_is_taken_with_its_key(name: str, host: str) -> None:
    found = kubeconfig.parse(text(FOLDER / f"accepted/{name}.yaml"))
    assert isinstance(found.identity, ClientCertificate)
    assert found.identity.certificate_pem.count("BEGIN CERTIFICATE") == (2 if name == "k3s" else 1)
    assert found.host == host
    assert found.expires_at is not None
    assert found.expires_at.year == 2035


@pytest.mark.parametrize(
    "file", sorted((FOLDER / "accepted").glob("*.yaml")), ids=lambda f: f.stem
)
def test_what_is_taken_is_written_and_read_the_same_and_never_shown(file: Path) -> None:
    found = kubeconfig.parse(text(file))
    assert credential.read(orjson.loads(found.written())) == found
    secret = found.identity if isinstance(found.identity, str) else found.identity.key_pem
    assert secret not in repr(found)
    assert "PRIVATE KEY" not in repr(found)
