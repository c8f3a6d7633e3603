"""How hard Hypothesis looks: `pytest --hypothesis-profile=long` for a long look."""

from hypothesis import HealthCheck, Phase, settings

# No deadline and no complaint about slow examples: JAX compiles in some of them.
settings.register_profile(
    "ci-short",
    max_examples=25,
    deadline=None,
    derandomize=True,
    # No shrinking: it compiles for minutes. The long profile shrinks what it finds.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    max_examples=1_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci-short")
