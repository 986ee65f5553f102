"""Keys with which providers of the tests sign."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

type Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


class Signer:
    """A key, and a certificate of nobody's but itself, as providers have them."""

    def __init__(self, key: Key | None = None) -> None:
        self.key = key or rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "only for tests")])
        of = x509.CertificateBuilder(
            issuer_name=name,
            subject_name=name,
            public_key=self.key.public_key(),
            serial_number=1,
            not_valid_before=datetime(2026, 1, 1, tzinfo=UTC),
            not_valid_after=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=36500),
        )
        digest = None if isinstance(self.key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
        self.certificate = of.sign(self.key, digest).public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return pem.decode()

    @property
    def public_pem(self) -> str:
        public = self.key.public_key()
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
