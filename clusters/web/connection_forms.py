"""Forms that connect a cluster. What may be a secret never comes back from them."""

from typing import Any

from django import forms

from clusters import credential, registry, selectors
from clusters.credential import BadCredential
from clusters.models import Cluster
from clusters.parts import WHAT
from clusters.services import clusters
from controlplane.kernel import text
from controlplane.kernel.forms import Posted, StrictForm

_KIB = credential.LARGEST // 1024


class _Unkept(forms.Textarea):
    """What was posted is not shown again."""

    def format_value(self, value: object) -> str:
        return ""


class _Certificates(forms.Textarea):
    """Shown again where it is certificates and nothing else: a key may have slipped in."""

    def format_value(self, value: object) -> str:
        try:
            return credential.ca(value or None) or ""
        except BadCredential:
            return ""


class _Server(forms.TextInput):
    """Shown again where it is a server's URL and nothing else: a token may have slipped in."""

    input_type = "url"

    def format_value(self, value: object) -> str:
        try:
            return credential.server(value) if value else ""
        except BadCredential:
            return ""


def _unkept(rows: int) -> _Unkept:
    return _Unkept(attrs={"rows": rows, "autocomplete": "off", "spellcheck": "false"})


def _token() -> forms.PasswordInput:
    return forms.PasswordInput(attrs={"autocomplete": "off"})


def _certificates() -> _Certificates:
    return _Certificates(
        attrs={"rows": 4, "spellcheck": "false", "placeholder": "-----BEGIN CERTIFICATE-----"}
    )


class RegisterForm(StrictForm):
    name = forms.CharField(
        max_length=40, help_text="1 to 40 of a-z, 0-9 and -. It stays as it is.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )  # fmt: skip
    region = forms.CharField(
        max_length=clusters.MAX_REGION, required=False,
        help_text="Where it stands, as people say it.",
    )  # fmt: skip
    server = forms.CharField(
        label="API server URL", widget=_Server(attrs={"placeholder": "https://"}),
        help_text="Where Berth's workers reach it: kubectl cluster-info names it.",
    )  # fmt: skip


class ManifestForm(StrictForm):
    ACCOUNT, USER = "account", "user"

    sign_in = forms.ChoiceField(
        label="Berth signs in as", widget=forms.RadioSelect, initial=ACCOUNT,
        choices=[
            (ACCOUNT, "an account of its own, by a token (recommended)"),
            (USER, "a user whom the cluster knows, such as by a client certificate"),
        ],
    )  # fmt: skip
    user = forms.CharField(
        label="Name of the user", required=False, max_length=253,
        help_text="Of a certificate its common name, else what kubectl auth whoami says.",
    )  # fmt: skip
    token_hours = forms.IntegerField(
        label="Hours that the token is good for", min_value=1, max_value=registry.MOST_TOKEN_H,
        initial=registry.TOKEN_H, help_text="A cluster may make it shorter.",
    )  # fmt: skip
    parts = forms.MultipleChoiceField(
        label="Beside starting pods, let Berth", required=False,
        widget=forms.CheckboxSelectMultiple, choices=list(WHAT.items()),
        help_text="Each comes with rights of its own, and can be granted later, too.",
    )  # fmt: skip

    @classmethod
    def defaults(cls) -> dict[str, Any]:  # Any: initial values
        """What a page shows whose address says nothing."""
        return {name: field.initial for name, field in cls.base_fields.items()}

    def clean(self) -> dict[str, Any]:  # Any: cleaned values
        cleaned = super().clean()
        if cleaned.get("sign_in") == self.USER and not cleaned.get("user"):
            self.add_error("user", "The name of the user is wanted.")
        return cleaned

    @property
    def named_user(self) -> str | None:
        """Of a valid form: None for an account of Berth's own."""
        by_user = self.cleaned_data["sign_in"] == self.USER
        return self.cleaned_data["user"] if by_user else None


class CredentialForm(StrictForm):
    """A token with the parts beside it, or a kubeconfig, as a text or a file."""

    secret = True
    server = forms.CharField(label="API server URL", required=False, widget=_Server())
    ca = forms.CharField(
        label="Certificate of the cluster's authority", required=False, widget=_certificates(),
        help_text="PEM. Left out, the authorities of Berth's own system are trusted.",
    )  # fmt: skip
    token = forms.CharField(required=False, widget=_token())
    kubeconfig = forms.CharField(
        required=False, strip=False, widget=_unkept(6),
        help_text="One cluster, one user, one context; a token, or a client certificate and its"
        " key, as data. What names a program or a file is refused.",
    )  # fmt: skip
    kubeconfig_file = forms.FileField(
        label="Or a file with it", required=False, allow_empty_file=True,
        help_text=f"At most {_KIB} KiB.",
    )  # fmt: skip
    metrics_server = forms.CharField(label="URL", required=False, widget=_Server())
    metrics_ca = forms.CharField(
        label="Certificate of its authority", required=False, widget=_certificates(),
        help_text="PEM, where its authority is its own.",
    )  # fmt: skip
    metrics_token = forms.CharField(label="Token for it", required=False, widget=_token())
    metrics_query = forms.CharField(
        label="Query", required=False, max_length=credential.LONGEST_QUERY,
        widget=_unkept(2), help_text="PromQL: left out, what DCGM exporter tells.",
    )  # fmt: skip
    unmeasured = forms.BooleanField(label="Nothing measures it any longer", required=False)

    _METRICS = {"server": "metrics_server", "ca": "metrics_ca", "token": "metrics_token",
                "query": "metrics_query"}  # fmt: skip
    pointers = {"/metrics": "metrics_server"} | {
        f"/metrics/{name}": field for name, field in _METRICS.items()
    }

    def __init__(self, data: Posted = None, files: Posted = None, *, cluster: Cluster) -> None:
        stored = selectors.connection(cluster_id=cluster.id).credential
        # Clusters of before have no server of their own.
        server = cluster.server or (f"https://{stored.host}" if stored else "")
        measured_by = stored.metrics_server if stored else ""
        super().__init__(
            data, files, initial={"server": server, "metrics_server": measured_by or ""}
        )
        self.was_measured = measured_by != ""
        """Or nobody knows: it is to be said whether something does."""

    def clean_kubeconfig_file(self) -> str | None:
        """Its text."""
        file = self.cleaned_data["kubeconfig_file"]
        if file is None:
            return None
        if file.size > credential.LARGEST:
            raise forms.ValidationError(f"It has more than {_KIB} KiB.")
        try:
            found: str = file.read().decode()
        except UnicodeDecodeError:
            raise forms.ValidationError("It is not UTF-8.") from None
        return found

    def clean_metrics_query(self) -> str:
        query: str = self.cleaned_data["metrics_query"]
        if fault := text.fault(query.replace("\r\n", "\n"), lines=True):
            raise forms.ValidationError(f"{fault}: not accepted here.")
        return query

    def clean(self) -> dict[str, Any]:  # Any: cleaned values
        cleaned = super().clean()
        if self.errors:
            return cleaned
        ways = [name for name in ("token", *self._KUBECONFIGS) if cleaned[name] not in ("", None)]
        if not ways:
            self.add_error("token", "A token is wanted, or a kubeconfig.")
        elif len(ways) > 1:
            self.add_error(ways[-1], "One way is wanted: a token, a kubeconfig, or a file.")
        elif ways != ["token"]:
            self._check_beside_kubeconfig(cleaned)
        if cleaned["unmeasured"] and self._names_what_measures(cleaned):
            said = "Either it is measured by what is named here, or by nothing: one is wanted."
            self.add_error("unmeasured", said)
        return cleaned

    _KUBECONFIGS = ("kubeconfig", "kubeconfig_file")

    def _check_beside_kubeconfig(self, cleaned: dict[str, Any]) -> None:  # Any: as above
        """Nothing that was said is dropped without a word; what the page filled in itself may."""
        if cleaned["server"] not in ("", self.initial["server"]):
            self.add_error("server", "The kubeconfig says where it is: leave this as it was.")
        if cleaned["ca"]:
            self.add_error("ca", "The kubeconfig has the authority: leave this out.")

    def _names_what_measures(self, cleaned: dict[str, Any]) -> bool:  # Any: as above
        """Beyond what the page filled in itself."""
        given = {name for name in self._METRICS.values() if cleaned[name]}
        if cleaned["metrics_server"] == self.initial["metrics_server"]:
            given.discard("metrics_server")
        return bool(given)

    def field_of(self, pointer: str) -> str | None:
        if pointer == "/kubeconfig" and not self.cleaned_data["kubeconfig"]:
            return "kubeconfig_file"
        return super().field_of(pointer)

    @property
    def measures(self) -> bool:
        """Whether anything was said of what measures the cluster, or is to be."""
        return self.was_measured or any(self[field].value() for field in self._METRICS.values())

    @property
    def fields_of_credential(self) -> dict[str, Any]:  # Any: JSON values
        """Of a valid form, as `credentials.read` takes them."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        config = [given[name] for name in self._KUBECONFIGS if name in given]
        # A browser's line ends; a refusal counts lines, of which there are as many.
        found = (
            {"kubeconfig": config[0].replace("\r\n", "\n")}
            if config
            else {name: given[name] for name in ("server", "ca", "token") if name in given}
        )
        if self.cleaned_data["unmeasured"]:
            return found | {"metrics": None}
        measured = {name: given[field] for name, field in self._METRICS.items() if field in given}
        return found | ({"metrics": measured} if measured else {})
