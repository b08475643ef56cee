#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# next-run.sh DIR COMMAND...: runs a command in the root folder of the next Debian (debian-next.sh).
# DIR, a build folder, is writable there.
set -euo pipefail

TOP=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
readonly TOP
for part in common apt cache debian-next; do
    # shellcheck source-path=SCRIPTDIR disable=SC1090
    source "$TOP/scripts/lib/$part.sh"
done
next_run "$@"
