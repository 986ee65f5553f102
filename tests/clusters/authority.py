"""Certificates for tests, of an authority that nobody trusts."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from clusters.credential import ClientCertificate


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _identifier(key: ec.EllipticCurvePublicKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


@dataclass(frozen=True, slots=True)
class Authority:
    """Issues certificates for 127.0.0.1 and for clients alike."""

    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @property
    def pem(self) -> str:
        return self._issue("authority", self.key.public_key(), ends_at=_LATER, is_authority=True)

    def issue(self, name: str, *, ends_at: datetime | None = None) -> ClientCertificate:
        key = ec.generate_private_key(ec.SECP256R1())
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        made = self._issue(name, key.public_key(), ends_at=ends_at or _LATER)
        return ClientCertificate(made, plain.decode())

    def _issue(
        self,
        name: str,
        key: ec.EllipticCurvePublicKey,
        *,
        ends_at: datetime,
        is_authority: bool = False,
    ) -> str:
        alternatives = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        made = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name("authority"))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOW - timedelta(days=1))
            .not_valid_after(ends_at)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(_usage(signs=is_authority), critical=True)
            .add_extension(alternatives, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(_identifier(self.key.public_key()), critical=False)
            .sign(self.key, SHA256())
        )
        return made.public_bytes(Encoding.PEM).decode()


_NOW = datetime.now(UTC).replace(microsecond=0)
_LATER = _NOW + timedelta(days=30)
