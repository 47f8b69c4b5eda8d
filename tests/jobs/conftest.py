"""The plain restatement of the planner stands with the tests of `motion`."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.append(str(Path(__file__).parents[1] / "motion"))

settings.register_profile("jobs", deadline=None, max_examples=40)
settings.load_profile("jobs")
