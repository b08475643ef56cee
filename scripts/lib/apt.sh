# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Fetches source packages and packages of another suite from Debian's archive.  Uses its own source
# list and state folder, so that the machine's apt configuration is not changed and no root is
# needed.  Sourced, never run.

# apt_private FOLDER ARGUMENT...: apt-get with only FOLDER/apt/sources.list as its source.
apt_private() {
    local folder=$1
    shift
    apt-get -q -o Dir::Etc::sourcelist="$folder/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::Lists="$folder/apt/lists" -o Dir::Cache="$folder/apt/cache" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none "$@"
}

# apt_private_sources FOLDER SED-PROGRAM: writes FOLDER/apt/sources.list: the output of the sed
# program for lines "URI RELEASE COMPONENT", one for each Debian source of the machine.
apt_private_sources() {
    mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
    # shellcheck disable=SC2016 # apt expands the fields
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' | sort -u | sed -n 's/^Debian //p' | sed -n "$2" | sort -u >"$1/apt/sources.list"
    if [[ ! -s $1/apt/sources.list ]]; then
        echo "This machine's apt knows no Debian archive (apt-get indextargets is empty):"
        echo "run 'apt-get update' as root, on Debian 12."
        return 1
    fi
}

readonly DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# apt_private_suite FOLDER SUITE: fetches the index of another suite of Debian, from the machine's
# mirror.
apt_private_suite() {
    if [[ ! -r $DEBIAN_KEYRING ]]; then
        echo "$DEBIAN_KEYRING is missing, and with it the key of $2:"
        echo "run 'apt-get install debian-archive-keyring' as root."
        return 1
    fi
    apt_private_sources "$1" "s|^\\([^ ]*\\) [a-z]* main\$|deb [signed-by=$DEBIAN_KEYRING] \\1 $2 main|p"
    apt_private "$1" update --error-on=any
}
