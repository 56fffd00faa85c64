"""How properties are tested."""

from __future__ import annotations

from hypothesis import settings

# No time limit per example: on a busy machine it would fail now and then.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
