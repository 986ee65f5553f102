"""TLS that presents a client certificate, whose private key never lies on a disk."""

import os
import ssl

from urllib3.util.ssl_ import create_urllib3_context

from clusters.credential import ClientCertificate


def presenting(identity: ClientCertificate, *, ca_pem: str | None) -> ssl.SSLContext:
    """As urllib3 makes its own, with the certificate. The server is checked by `ca_pem`, which who
    connects adds, or by the system's authorities.

    OpenSSL reads a key from a file by its name. This one is anonymous memory of this process
    (Linux), gone once it is read.
    """
    context = create_urllib3_context()
    if ca_pem is None:
        context.load_default_certs()
    with open(os.memfd_create("identity"), "wb") as memory:
        memory.write((identity.key_pem + identity.certificate_pem).encode())
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}")
    return context
