"""Hypothesis for all tests: HYPOTHESIS_PROFILE=nightly runs 10,000 examples of each property, else 200."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A slow machine must not fail a test, so examples have no deadline; the nightly run looks for new ones each time.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}
settings.register_profile("ordinary", max_examples=200, derandomize=True, **_COMMON)
settings.register_profile("nightly", max_examples=10_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ordinary"))
