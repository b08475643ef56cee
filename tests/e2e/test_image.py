# SPDX-License-Identifier: Apache-2.0
"""The image of a release.  Nothing here needs a node, so the parts that do find the images built."""

import hashlib
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

from support import images

MAX_BYTES = 28 * 1024 * 1024


@pytest.fixture(scope="module")
def root(image, tmp_path_factory):
    """(the folder with the unpacked image, its configuration)"""
    folder = tmp_path_factory.mktemp("root")
    with tarfile.open(image[0]) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        config = json.load(archive.extractfile(manifest["Config"]))["config"]
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(layer)) as files:
                files.extractall(folder)
    return folder, config


def test_images_of_two_commits_differ(image, tmp_path):
    with images.before(tmp_path) as (_, archive):
        assert images.digest(archive) != image[1]


def test_image_size_is_within_its_limit(root):
    size = sum(f.stat().st_size for f in root[0].rglob("*") if f.is_file() and not f.is_symlink())
    assert size <= MAX_BYTES, f"{size / 1024 / 1024:.1f} MiB"


def test_image_holds_only_the_program_and_its_needs(root):
    folder, config = root
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/usr/bin/steward"]
    assert os.listdir(folder / "usr" / "bin") == ["steward"]
    for absent in ("man", "bash-completion", "zsh", "fish"):
        assert not (folder / "usr" / "share" / absent).exists()
    for path in ("etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo/Europe/Berlin"):
        assert (folder / path).stat().st_size > 100
    for plugin in ("caching_sha2_password", "sha256_password", "client_ed25519"):
        assert list(folder.rglob(f"{plugin}.so")), plugin
    result = subprocess.run(["chroot", str(folder), "/usr/bin/steward", "version"], text=True,
                            capture_output=True, timeout=30, check=False)
    assert result.returncode == 0, result.stderr
    assert "unknown" not in result.stdout


def test_sbom_names_every_library(root, image):
    folder = root[0]
    bill = json.loads((folder / "usr/share/sbom/steward.spdx.json").read_text("utf-8"))
    assert bill == json.loads(pathlib.Path(f"{image[0]}.spdx.json").read_text("utf-8"))
    assert bill["spdxVersion"] == "SPDX-2.3"
    packages = {p["SPDXID"]: p["name"].removesuffix("t64") for p in bill["packages"]}
    for wanted in ("steward", "libc6", "libcurl4", "libexpat1", "libssl3", "libmicrohttpd12",
                   "libmariadb3", "libpq5", "libsodium23", "ca-certificates", "tzdata"):
        assert wanted in packages.values()
    files = {f["SPDXID"]: f for f in bill["files"]}
    owners = {files[r["relatedSpdxElement"]]["fileName"]: packages[r["spdxElementId"]]
              for r in bill["relationships"] if r["relationshipType"] == "CONTAINS"}
    assert owners["./usr/bin/steward"] == "steward"
    libraries = {f"./{f.relative_to(folder)}" for f in folder.rglob("*.so*")}
    assert libraries <= {name.replace("./lib", "./usr/lib", 1) if name.startswith("./lib") else name
                         for name in owners}
    assert [name for name in owners if owners[name] == "steward"] == ["./usr/bin/steward"]
    for entry in files.values():
        content = (folder / entry["fileName"]).read_bytes()
        assert entry["checksums"][0]["checksumValue"] == hashlib.sha256(content).hexdigest()


def test_program_is_hardened(root):
    """Position independent, full RELRO, no executable stack, stack protector."""
    def readelf(*what):
        return subprocess.run(["readelf", *what, str(root[0] / "usr/bin/steward")], text=True,
                              capture_output=True, check=True).stdout
    assert "DYN (Position-Independent Executable file)" in readelf("-h")
    segments = readelf("-lW")
    assert "GNU_RELRO" in segments
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack
    assert "BIND_NOW" in readelf("-d") or "NOW" in readelf("-d")
    assert "__stack_chk_fail" in readelf("-W", "--dyn-syms")
