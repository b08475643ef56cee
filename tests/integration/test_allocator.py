# SPDX-License-Identifier: Apache-2.0
"""The setting of the allocator in the image: the loader ignores a setting that it does not know."""

import glob
import os
import subprocess

from bench import versus


def test_glibc_knows_the_allocator_settings_of_the_image():
    env = versus.image_env()
    settings = dict(setting.split("=") for setting in env["GLIBC_TUNABLES"].split(":"))
    assert settings
    loader = (glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*"))[0]
    listed = subprocess.run([loader, "--list-tunables"], env={**os.environ, **env}, check=True,
                            capture_output=True, text=True).stdout
    taken = dict(line.split(": ", 1) for line in listed.splitlines() if ": " in line)
    assert {name: int(taken[name].split()[0], 16) for name in settings} == \
        {name: int(value) for name, value in settings.items()}
