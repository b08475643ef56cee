# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Configures and compiles steward with meson.  Sourced by scripts/test, demo, lint and others.

# build DIR [SANITIZER|coverage] [COMPILER] [TARGET...]: the whole build, or these targets, in DIR, which
# is created when it does not exist.  On failure shows the end of the log and ends the script.
build() {
    local dir=$1 options=(-Dwerror=true) compiler=${3:-} cache='' linker=''
    case ${2:-} in
    address) options+=('-Db_sanitize=address,undefined' -Dlibrary=false -Db_lundef=false) ;;
    thread) options+=(-Db_sanitize=thread -Dlibrary=false -Db_lundef=false) ;;
    coverage) options+=(-Db_coverage=true -Dlibrary=false) ;;
    esac
    need_commands build meson ninja "${compiler:-cc}"
    if type -P ccache >/dev/null; then
        ccache_use
        cache='ccache '
    fi
    # mold links 430 programs in a tenth of the time of ld.
    ! type -P mold >/dev/null || linker=mold
    mkdir -p "$dir"
    STEP_LOG=$dir/build.log
    : >"$STEP_LOG"
    [[ -f $dir/build.ninja ]] ||
        CC=$cache${compiler:-${CC:-cc}} CC_LD=$linker step 'configure' meson setup "$dir" "$TOP" "${options[@]}"
    step "build (${dir#"$TOP"/})" ninja -C "$dir" "${@:4}"
}
