# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Builds the oracles of the tests: programs of tests/oracles around other projects' Go modules.  A MODULE
# is NAME, or NAME/VERSION when one main.go is built with several versions; its folder has a go.mod and
# a go.sum.  tests/oracles/README.md says how to add one.  Sourced after go-build.
#
# $(cache_root)/oracles/NAME-VERSION-DIGEST  one program; the digest is that of its three files

readonly ORACLES=$LIB/../../tests/oracles
# Of all of them.
# shellcheck disable=SC2034 # bootstrap reads them
readonly ORACLES_MINUTES=4 ORACLES_MB=250
readonly ORACLE_KEEP_DAYS=7 # programs of earlier sources, which other checkouts may still use

# oracle_modules: all of them, one a line.
oracle_modules() {
    (cd "$ORACLES" && printf '%s\n' */go.mod */*/go.mod) | sed -n '/\*/d; s#/go\.mod$##p' | sort
}

# oracle_program MODULE: its path in the cache, whether it exists or not.  tests/support/oracles.py
# computes the same.
oracle_program() {
    local digest
    digest=$(cat "$ORACLES/${1%%/*}/main.go" "$ORACLES/$1/go.mod" "$ORACLES/$1/go.sum" | sha256sum)
    printf '%s/oracles/%s-%s' "$(cache_root)" "${1//\//-}" "${digest:0:12}"
}

# oracles_missing: the modules that are not built, one a line.
oracles_missing() {
    local module
    for module in $(oracle_modules); do
        [[ -x $(oracle_program "$module") ]] || echo "$module"
    done
}

# oracles_build: builds the missing ones.  They share the caches of modules and packages.
oracles_build() {
    local module
    cache_lock 'builds the oracles of the tests'
    cache_require_space "$GO_BUILD_NEEDS_MB"
    STEP_LOG=$(cache_root)/build-oracles.log
    : >"$STEP_LOG"
    for module in $(oracles_missing); do
        go_use "$(sed -n 's/^go //p' "$ORACLES/$module/go.mod")"
        step "build the oracle $module" oracle_build "$module"
    done
    cache_unlock
}

# oracle_tree MODULE: prints a new folder with its sources.
oracle_tree() {
    local tree
    tree=$(go_build_folder)/oracle-${1//\//-}
    rm -rf "$tree"
    mkdir -p "$tree"
    cp "$ORACLES/${1%%/*}/main.go" "$ORACLES/$1/go.mod" "$tree/"
    [[ ! -f $ORACLES/$1/go.sum ]] || cp "$ORACLES/$1/go.sum" "$tree/"
    printf '%s' "$tree"
}

# oracle_build MODULE: the rename puts the program into the cache atomically.
oracle_build() {
    local tree program
    tree=$(oracle_tree "$1")
    program=$(oracle_program "$1")
    cd "$tree" || return
    oracle_tests "$tree"
    go_private build -mod=readonly -trimpath -buildvcs=false -gcflags "$GO_COMPILER_FLAGS" \
        -ldflags '-s -w' -o oracle .
    mkdir -p "${program%/*}"
    find "${program%/*}" -name "${1//\//-}-????????????" -mtime "+$ORACLE_KEEP_DAYS" -delete
    mv -T oracle "$program"
    rm -rf "$tree"
}

# oracle_tests FOLDER: copies the tests of the packages that its main.go names in lines "//oracle:tests
# PACKAGE" into FOLDER/tests/PACKAGE, where the program embeds them.
oracle_tests() {
    local package from
    while read -r package; do
        from=$(go_private list -mod=readonly -f '{{.Dir}}' "$package")
        mkdir -p "$1/tests/$package"
        cp "$from"/*_test.go "$1/tests/$package/"
    done < <(sed -n 's#^//oracle:tests ##p' "$1/main.go")
}

# oracle_vendor MODULE: completes its go.mod and writes its go.sum; a maintainer does this once.
oracle_vendor() {
    local tree
    [[ -f $ORACLES/${1%%/*}/main.go && -f $ORACLES/$1/go.mod ]] ||
        usage_error "'$1' is no folder of tests/oracles with a go.mod"
    cache_lock "writes the go.sum of the oracle $1"
    mkdir -p "$(go_build_folder)"
    STEP_LOG=$(cache_root)/vendor-oracles.log
    : >"$STEP_LOG"
    go_use "$GO_DEBIAN"
    tree=$(oracle_tree "$1")
    step "go mod tidy of the oracle $1" go_vendor_tidy "$tree"
    mv "$tree/go.mod" "$tree/go.sum" "$ORACLES/$1/"
    rm -rf "$tree"
    cache_unlock
}
