# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Container images from programs of this machine, without docker and without a registry: a root
# folder becomes a docker-archive, which `ctr images import` reads.  Sourced by scripts/cluster.

readonly IMAGE_SOURCES=$LIB/../../tests/images
readonly PAUSE_IMAGE=steward/pause:1
# nginx:latest is found only by pods that do not pull: imagePullPolicy Never or IfNotPresent.
readonly ETCD_REPOSITORY=quay.io/coreos/etcd # spec.repository of an EtcdCluster that names none
readonly WEB_IMAGES=(nginx:1.22 nginx:1.23 nginx:latest)

# image_root DIR: creates a root with the folders and accounts that programs expect.
image_root() {
    local name
    mkdir -p "$1"/{etc,tmp,root,run,var/log,usr/{bin,sbin,lib,lib64}}
    for name in bin sbin lib lib64; do
        ln -s "usr/$name" "$1/$name"
    done
    chmod 1777 "$1/tmp"
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$1/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$1/etc/group"
}

# image_add_program ROOT FILE [DESTINATION]: adds it with its libraries and its loader; a static
# program has none.
image_add_program() {
    local root=$1 file=$2 library
    install -D "$file" "$root${3:-$file}"
    { ldd "$file" 2>/dev/null || true; } | { grep -o '/[^ )]*' || true; } | while read -r library; do
        mkdir -p "$root${library%/*}"
        cp -Lu "$library" "$root$library"
    done
}

# image_archive TAR ROOT CONFIG NAME:TAG...: CONFIG is the "config" object of an image, in JSON.
image_archive() {
    local tar=$1 root=$2 config=$3 work digest
    shift 3
    work=$(mktemp -d "$tar.XXXXXX")
    tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .
    digest=$(sha256sum "$work/layer.tar")
    jq -n --argjson config "$config" --arg layer "sha256:${digest%% *}" \
        --arg architecture "$(dpkg --print-architecture)" \
        '{$architecture, os: "linux", $config, rootfs: {type: "layers", diff_ids: [$layer]}}' \
        >"$work/config.json"
    jq -n '[{Config: "config.json", RepoTags: $ARGS.positional, Layers: ["layer.tar"]}]' \
        --args "$@" >"$work/manifest.json"
    tar -C "$work" -cf "$tar" manifest.json config.json layer.tar
    rm -rf "$work"
}

# image_pause TAR
image_pause() {
    local root=$1.root
    mkdir -p "$root"
    gcc -static -Os -s -o "$root/pause" "$IMAGE_SOURCES/pause.c"
    image_archive "$1" "$root" '{"Entrypoint": ["/pause"]}' "$PAUSE_IMAGE"
    rm -rf "$root"
}

# image_web TAR: Debian's nginx, and a shell for debugging.
image_web() {
    local root=$1.root program
    image_root "$root"
    for program in nginx sh cat ls sleep; do
        program=$(PATH=/usr/sbin:/usr/bin type -P "$program")
        image_add_program "$root" "$program"
    done
    mkdir -p "$root/var/log/nginx"
    install -m 644 -D -t "$root/etc/nginx" "$IMAGE_SOURCES/nginx.conf" /etc/nginx/mime.types
    install -m 644 -D -t "$root/usr/share/nginx/html" "$IMAGE_SOURCES/index.html"
    image_archive "$1" "$root" '{"Entrypoint": ["/usr/sbin/nginx"], "StopSignal": "SIGQUIT",
        "ExposedPorts": {"80/tcp": {}}, "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}' \
        "${WEB_IMAGES[@]}"
    rm -rf "$root"
}

# image_etcd TAR FOLDER: etcd and its tools from FOLDER, at the paths of the official image, and a
# shell for debugging.  Named as EtcdCluster expects, with the version that etcd reports.
image_etcd() {
    local root=$1.root name program version
    version=$("$2/etcd" --version | sed -n 's/^etcd Version: //p')
    image_root "$root"
    for name in etcd etcdctl etcdutl; do
        [[ ! -x $2/$name ]] || image_add_program "$root" "$2/$name" "/usr/local/bin/$name"
    done
    for name in sh cat ls; do
        program=$(PATH=/usr/bin type -P "$name")
        image_add_program "$root" "$program"
    done
    image_archive "$1" "$root" '{"Cmd": ["/usr/local/bin/etcd"],
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]}' "$ETCD_REPOSITORY:v$version"
    rm -rf "$root"
}

# image_pack NAME:TAG TAR USER PROGRAM [ARGUMENT...]: an image of one program.
image_pack() {
    local name=$1 tar=$2 user=$3 program=$4 entry root=$2.root
    shift 4
    entry=/usr/bin/${program##*/}
    image_root "$root"
    image_add_program "$root" "$program" "$entry"
    image_archive "$tar" "$root" "$(printf '%s\n' "$@" | jq -R . | jq -s --arg user "$user" \
        --arg entry "$entry" '{User: $user, Entrypoint: [$entry], Cmd: .}')" "$name"
    rm -rf "$root"
}

# image_rename TAR NAME:TAG NEW-TAR: the same image under another name.  It is packed again, because
# 'tar --delete' also dropped other members (GNU tar 1.34, archives of buildah).
image_rename() {
    local manifest folder=$3.root
    manifest=$(tar -xOf "$1" manifest.json 2>/dev/null) ||
        die "$1 is no docker-archive: it has no manifest.json" \
            "'docker save', 'buildah push IMAGE docker-archive:FILE' and '$0 image pack' write one"
    mkdir "$folder"
    tar -xf "$1" -C "$folder"
    rm -f "$folder/manifest.json"
    jq --arg name "$2" '.[0].RepoTags = [$name]' <<<"$manifest" >"$folder/manifest.json"
    tar -C "$folder" -cf "$3" .
    rm -rf "$folder"
}

# image_import TAR: imports it into the node of the selected cluster.
image_import() {
    node_ctr images import "$1" >>"$CLUSTER/log/images.log" 2>&1 || {
        indent_tail "$CLUSTER/log/images.log" 5
        die "the node did not take the image in $1"
    }
}
