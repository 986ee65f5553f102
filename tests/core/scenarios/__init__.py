"""Scenarios of the core, by subject: see README.md here."""

import pytest

pytest.register_assert_rewrite("tests.core.scenarios.scenario")
