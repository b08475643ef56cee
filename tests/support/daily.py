# SPDX-License-Identifier: Apache-2.0
"""Random choices that are new each day, and the same again with the seed that a test's output names."""

import datetime
import os
import random

VARIABLE = "STEWARD_TEST_SEED"


def dice(what):
    """A random.Random.  A failure shows the seed, because pytest prints what a failed test printed."""
    seed = int(os.environ.get(VARIABLE) or datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))
    print(f"{what}: {VARIABLE}={seed}")
    return random.Random(f"{what} {seed}")
