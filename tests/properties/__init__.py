"""Properties that hold for any input, tried on inputs that hypothesis makes.

The examples are the same in every run. After a change of what is under test,
look further with `HYPOTHESIS_PROFILE=long python -m pytest tests/properties`,
which tries others each time and fifty times as many.
"""

import os

import hypothesis

_ALWAYS = {"deadline": None, "database": None}
_EXAMPLES = 30

hypothesis.settings.register_profile(
  "short", derandomize=True, max_examples=_EXAMPLES, **_ALWAYS
)
hypothesis.settings.register_profile(
  "long", max_examples=50 * _EXAMPLES, print_blob=True, **_ALWAYS
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))
