# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The compiler and the libraries of the next Debian, in a root folder of the cache, and a build of
# steward with them.  The built programs also run outside that folder, with the servers of this
# machine, because they name the folder's loader and libraries by absolute paths.  Sourced by
# scripts/bootstrap and scripts/test, after common, apt and cache.

readonly NEXT_SUITE=trixie
readonly NEXT_VERSION=13
# shellcheck disable=SC2034 # bootstrap reads them
readonly NEXT_MB=560 NEXT_MINUTES=3
# The packages of the group build, and of programs that tests start.
readonly NEXT_PACKAGES=(gcc libc6-dev ccache meson ninja-build pkg-config git ca-certificates python3 python3-yaml
    libmicrohttpd-dev libgnutls28-dev libssl-dev libexpat1-dev libjansson-dev libyaml-dev
    libcurl4-openssl-dev libxxhash-dev libmariadb-dev libpq-dev libsodium-dev zlib1g-dev libcmocka-dev openssl tzdata)

# next_folder: its path in the cache, whether it exists or not.
next_folder() {
    printf '%s/debian-%s.r1-%s' "$(cache_root)" "$NEXT_VERSION" \
        "$(printf '%s ' "${NEXT_PACKAGES[@]}" | sha256sum | cut -c 1-8)"
}

next_cached() {
    [[ -d $(next_folder) ]]
}

# next_fetch: creates the folder in the cache; it gets its name only when it is complete.
next_fetch() {
    local root work
    root=$(cache_root)
    cache_lock "fetches Debian $NEXT_VERSION"
    if ! next_cached; then
        STEP_LOG=$root/debian-next.log
        : >"$STEP_LOG"
        # Only the holder of the lock fetches, so other folders are left from a killed process.
        rm -rf "$root"/debian-next.??????
        work=$(mktemp -d "$root/debian-next.XXXXXX")
        step "read the index of Debian's $NEXT_SUITE" apt_private_suite "$work" "$NEXT_SUITE"
        step "unpack compiler and libraries of Debian $NEXT_VERSION" next_unpack "$work"
        mv -T "$work/root" "$(next_folder)"
        rm -rf "$work"
    fi
    cache_unlock
}

next_unpack() {
    local target
    target=$(next_folder)
    mmdebstrap --variant=apt --include="$(IFS=,; echo "${NEXT_PACKAGES[*]}")" "$NEXT_SUITE" "$1/root" - \
        <"$1/apt/sources.list"
    chroot "$1/root" gcc --version
    # Its programs name the loader by its path outside, so that path must also exist inside.
    mkdir -p "$1/root/${target%/*}"
    ln -sT / "$1/root/$target"
}

# next_build DIR: the whole build with the next Debian's compiler, in DIR.  The tree and DIR have
# the same paths inside the root folder.
next_build() {
    local dir=$1 root loader
    root=$(next_folder)
    loader=$(readlink -e "$root/usr/bin/true" >/dev/null && next_loader "$root")
    # A build for another root folder would name a loader and libraries that do not exist there.
    grep -qsF "$root$loader" "$dir/build.ninja" || rm -rf "$dir"
    mkdir -p "$dir"
    STEP_LOG=$dir/build.log
    : >"$STEP_LOG"
    [[ -f $dir/build.ninja ]] || step 'configure' next_run "$dir" meson setup "$dir" "$TOP" -Dwerror=true \
        "-Dc_link_args=-Wl,--dynamic-linker=$root$loader,--disable-new-dtags,-rpath,$root/usr/lib/$(uname -m)-linux-gnu"
    step "build (${dir#"$TOP"/}, Debian $NEXT_VERSION)" next_run "$dir" ninja -C "$dir"
}

# next_loader ROOT: the path of the loader, such as /lib64/ld-linux-x86-64.so.2.
next_loader() {
    chroot "$1" readelf -l /usr/bin/true | sed -n 's|.*program interpreter: \(.*\)\]|\1|p'
}

# next_run DIR COMMAND...: runs it in the root folder.  The tree is read-only there, except DIR.  meson
# finds ccache there, which has the same path as outside.  The mounts are private to this command.
next_run() {
    local dir=$1 root
    root=$(next_folder)
    shift
    ccache_use
    mkdir -p "$root$TOP" "$root$dir" "$root$CCACHE_DIR" "$CCACHE_DIR"
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --propagation private sh -euc '
        root=$1 top=$2 dir=$3
        shift 3
        mount --rbind /proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /tmp "$root/tmp"
        mount --bind "$top" "$root$top"
        mount -o remount,ro,bind "$root$top"
        mount --bind "$dir" "$root$dir"
        mount --bind "$CCACHE_DIR" "$root$CCACHE_DIR"
        export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
        cd "$root"
        exec chroot "$root" sh -c '\''cd "$1" && shift && exec "$@"'\'' sh "$top" "$@"' \
        sh "$root" "$TOP" "$dir" "$@"
}
