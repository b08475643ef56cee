#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the Debian packages with which the image of one architecture is built, for the Dockerfile and
# scripts/image.  Another architecture than the build machine's is cross-compiled.
#
# Usage: image-packages.sh BUILD-ARCHITECTURE ARCHITECTURE
set -eu

tools='ca-certificates gcc git meson pkg-config python3 python3-yaml tzdata'
libraries='libc6-dev libcurl4-openssl-dev libexpat1-dev libgnutls28-dev libjansson-dev libmariadb-dev
    libmicrohttpd-dev libpq-dev libsodium-dev libssl-dev libxxhash-dev libyaml-dev zlib1g-dev'

if [ "$1" != "$2" ]; then
    case $2 in
    amd64) tools="$tools gcc-x86-64-linux-gnu" ;;
    arm64) tools="$tools gcc-aarch64-linux-gnu" ;;
    *) echo "image-packages: there is no image for $2: only for amd64 and arm64" >&2 && exit 1 ;;
    esac
    foreign=":$2"
fi
for library in $libraries; do
    tools="$tools $library${foreign:-}"
done
echo "$tools"
