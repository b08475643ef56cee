# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Container images from files of this machine, as docker-archive tars: no registry and no Docker.
# Sourced by scripts/cluster.

# image_pack OUT ROOT CMD-JSON NAME:TAG...: one layer with the folder ROOT; the same input gives the
# same bytes.
image_pack() {
    local out=$1 root=$2 cmd=$3 work layer config tags
    shift 3
    work=$(mktemp -d)
    tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .
    layer=$(sha256sum "$work/layer.tar")
    printf '{"architecture":"%s","os":"linux","config":{"Cmd":%s,"WorkingDir":"/","Env":["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$(dpkg --print-architecture)" "$cmd" "${layer%% *}" >"$work/config.json"
    tags=$(printf '"%s",' "$@")
    printf '[{"Config":"config.json","RepoTags":[%s],"Layers":["layer.tar"]}]' "${tags%,}" \
        >"$work/manifest.json"
    tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 -cf "$out" \
        manifest.json config.json layer.tar
    rm -rf "$work"
}

# image_copy ROOT FILE...: files into ROOT at the same paths, programs with the libraries they load.
image_copy() {
    local root=$1 file library
    shift
    for file; do
        image_copy_file "$root" "$file"
        for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*'); do
            image_copy_file "$root" "$library"
        done
    done
}

image_copy_file() {
    mkdir -p "$1${2%/*}"
    cp -L "$2" "$1$2"
}

# image_pause OUT: the sandbox of every pod.
image_pause() {
    local root
    root=$(mktemp -d)
    gcc -Os -static -s -o "$root/pause" "$IMAGE_SOURCES/pause.c"
    image_pack "$1" "$root" '["/pause"]' "$IMAGE_PAUSE"
    rm -rf "$root"
}

# image_web OUT: Debian's nginx under the names that samples and people use.
image_web() {
    local root
    root=$(mktemp -d)
    mkdir -p "$root"/{etc/nginx,run,tmp,usr/share/nginx/html,var/lib/nginx,var/log/nginx,usr/lib}
    chmod 1777 "$root/tmp" "$root/run"
    ln -s usr/lib "$root/lib"
    [[ ! -e /lib64 ]] || ln -s usr/lib64 "$root/lib64"
    mkdir -p "$root/usr/lib64"
    image_copy "$root" /usr/sbin/nginx
    cp "$IMAGE_SOURCES/nginx.conf" /etc/nginx/mime.types "$root/etc/nginx/"
    ln -s /dev/stderr "$root/var/log/nginx/error.log"
    printf 'root:x:0:0::/:/sbin/nologin\nnobody:x:65534:65534::/:/sbin/nologin\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
    printf '<h1>nginx</h1>\n' >"$root/usr/share/nginx/html/index.html"
    image_pack "$1" "$root" '["/usr/sbin/nginx"]' nginx:1.22 nginx:1.23 nginx:latest
    rm -rf "$root"
}
