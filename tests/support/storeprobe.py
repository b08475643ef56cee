# SPDX-License-Identifier: Apache-2.0
"""tests/integration/store_probe, which drives lib/store; and files to store."""

import hashlib
import json
import pathlib
import subprocess

from . import paths, s3double

PART = 8 << 20
BIG = 2 * PART + 12345  # three parts


class Probe:
    """Runs tests/integration/store_probe with one configuration."""

    def __init__(self, scratch, **config):
        self.file = scratch / "config.json"
        self.file.write_text(json.dumps(config))

    def __call__(self, *command, fails=None):
        """Runs a command and returns its output.  `fails`: the expected trouble."""
        done = subprocess.run([paths.build() / "tests" / "integration" / "store_probe", self.file,
                               *map(str, command)], capture_output=True, text=True, timeout=120)
        assert done.returncode == (1 if fails else 0), done.stdout + done.stderr
        said = json.loads(done.stdout)
        assert said["trouble"] == (fails or "Reachable"), said
        if fails:
            assert said["error"]
        for secret in (s3double.SECRET_KEY, s3double.TOKEN, s3double.ACCESS_KEY):
            assert secret not in done.stdout + done.stderr
        return said


def blob(folder, size):
    """A file of `size` bytes, no two parts of which are equal."""
    path = folder / f"blob-{size}"
    piece, data = hashlib.sha256(b"0").digest(), bytearray()
    while len(data) < size:
        piece = hashlib.sha256(piece).digest()
        data += piece * 32
    path.write_bytes(bytes(data[:size]))
    return path


def file_sha(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
