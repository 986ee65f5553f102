"""Pure: why no answer came from a server, in words that say what to look at."""

import socket
import ssl

# Of OpenSSL's verification errors (x509_vfy.h).
_CERTIFICATE = {
    9: "its certificate is not valid yet",
    10: "its certificate has expired",
    62: "its certificate is for another name",
    64: "its certificate is for another address",
}


def named(error: BaseException) -> str:
    """What went wrong, as far as it is known; "" where it is not."""
    for cause in _chain(error):
        match cause:
            case ssl.SSLCertVerificationError():
                untrusted = "its certificate is not trusted: it is not of the CA that was given"
                return _CERTIFICATE.get(cause.verify_code, untrusted)
            case ssl.SSLError():
                return "it does not speak TLS as it should"
            case socket.gaierror():
                return "its name is not found"
            case ConnectionRefusedError():
                return "it refuses the connection"
            case TimeoutError():
                return "it takes too long"
    return ""


def _chain(error: BaseException) -> list[BaseException]:
    """The error, then what it came from."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        wrapped = [part for part in cause.args if isinstance(part, BaseException)]
        cause = cause.__cause__ or next(iter(wrapped), None)
    return found
