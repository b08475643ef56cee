# SPDX-License-Identifier: Apache-2.0
"""The setting of the allocator in the image: the loader ignores a setting that it does not know."""

import glob
import os
import subprocess

from bench import versus


def test_glibc_takes_the_allocator_setting_of_the_image():
    env = versus.image_env()
    name, _, value = env["GLIBC_TUNABLES"].partition("=")
    loader = (glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*"))[0]
    listed = subprocess.run([loader, "--list-tunables"], env={**os.environ, **env}, check=True,
                            capture_output=True, text=True).stdout
    taken = dict(line.split(": ", 1) for line in listed.splitlines() if ": " in line)
    assert int(taken[name].split()[0], 16) == int(value)
