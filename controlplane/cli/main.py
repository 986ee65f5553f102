"""`berth`: the command line. Commands load when they are called, so that the rest stays quick."""

from importlib import import_module

import click

COMMANDS = {
    "login": "controlplane.cli.login:login",
    "submit": "controlplane.cli.remote:submit",
    "get": "controlplane.cli.remote:get",
    "queue": "controlplane.cli.remote:queue",
    "explain": "controlplane.cli.remote:explain",
    "cancel": "controlplane.cli.remote:cancel",
    "gate": "controlplane.cli.deciding:gate",
    "priority": "controlplane.cli.ordering:priority",
    "release": "controlplane.cli.remote:release",
    "import-trace": "controlplane.cli.trace:import_trace",
    "verify-audit": "controlplane.cli.audit:verify_audit",
}
"""Name → module:attribute."""


class LazyGroup(click.Group):
    """A group that imports a command only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = COMMANDS.get(cmd_name)
        if where is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = where.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="berth", prog_name="berth")
def main() -> None:
    """Berth: shared GPUs across Kubernetes clusters.

    Sign in by `berth login` with a token that you make on the portal under API tokens; or give the
    server by BERTH_SERVER (or --server) and the token by BERTH_TOKEN (or --token), which win.
    """
