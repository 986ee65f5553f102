from django.apps import AppConfig


class ControlplaneConfig(AppConfig):
    name = "controlplane"

    def ready(self) -> None:
        # Makes the configured Celery app the current one, so that hints reach the broker from any
        # process. Here and not at import: it reads the settings.
        import controlplane.celery
        import controlplane.portal.checks  # noqa: F401  # registered by being read
