# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Asks Debian's archive for what the machine's own apt does not: source packages, and packages of
# another suite.  With a source list and a state folder of its own, so that the machine's apt
# configuration stays as it is and no root is needed.  Sourced, never run.

# apt_private FOLDER ARGUMENT...: apt-get that knows FOLDER/apt/sources.list and nothing else.
apt_private() {
    local folder=$1
    shift
    apt-get -q -o Dir::Etc::sourcelist="$folder/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::Lists="$folder/apt/lists" -o Dir::Cache="$folder/apt/cache" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none "$@"
}

# apt_private_sources FOLDER SED-PROGRAM: FOLDER/apt/sources.list, of the lines "URI RELEASE COMPONENT"
# of Debian in the machine's own sources, which say where the archive is.
apt_private_sources() {
    mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
    # shellcheck disable=SC2016 # the fields are apt's
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' | sort -u | sed -n 's/^Debian //p' | sed -n "$2" | sort -u >"$1/apt/sources.list"
    if [[ ! -s $1/apt/sources.list ]]; then
        echo "This machine's apt knows no Debian archive (apt-get indextargets is empty):"
        echo "run 'apt-get update' as root, on Debian 12."
        return 1
    fi
}

readonly DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# apt_private_suite FOLDER SUITE: the index of another suite of Debian, from where this machine's main
# archive is.
apt_private_suite() {
    if [[ ! -r $DEBIAN_KEYRING ]]; then
        echo "$DEBIAN_KEYRING is missing, and with it the key of $2:"
        echo "run 'apt-get install debian-archive-keyring' as root."
        return 1
    fi
    apt_private_sources "$1" "s|^\\([^ ]*\\) [a-z]* main\$|deb [signed-by=$DEBIAN_KEYRING] \\1 $2 main|p"
    apt_private "$1" update --error-on=any
}
