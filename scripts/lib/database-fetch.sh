# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The newest database servers, from Debian's unstable suite, unpacked into the cache as
# ENGINE-VERSION/usr/...  Each includes the C library and all other libraries that it needs, and is
# started with its own loader.  Nothing is installed, and no root is needed.
# Sourced by scripts/bootstrap, after common.sh, apt.sh, cache.sh and versions.sh.

readonly DATABASE_SUITE=sid
# Size of each in the cache, and duration on two idle cores.
# shellcheck disable=SC2034 # bootstrap reads them
readonly MYSQL_MB=175 MARIADB_MB=65 POSTGRESQL_MB=100
# shellcheck disable=SC2034
readonly MYSQL_MINUTES=1 MARIADB_MINUTES=1 POSTGRESQL_MINUTES=1

mysql_cached() { database_cached mysql; }
mysql_fetch() { database_fetch mysql; }
mariadb_cached() { database_cached mariadb; }
mariadb_fetch() { database_fetch mariadb; }
postgresql_cached() { database_cached postgresql; }
postgresql_fetch() { database_fetch postgresql; }

# database_line ENGINE: the tested release line, "9.7" of "9.7.4" and "18" of "18.6".  The archive
# has only the newest release of a line.
database_line() {
    local versions=${1^^}_VERSIONS
    versions=${!versions##* }
    printf '%s' "${versions%.*}"
}

# database_cached ENGINE: prints the folder of its newest line; false when there is none.  A folder
# gets its name only when it is complete, so an existing folder is usable.
database_cached() {
    local dirs
    dirs=$(compgen -G "$(cache_root)/$1-$(database_line "$1").*" | sort -V | tail -n 1) || return 1
    [[ -n $dirs ]] || return 1
    printf '%s' "$dirs"
}

# database_fetch ENGINE: puts it into the cache.  Reuses the downloads of an interrupted call.
database_fetch() {
    local engine=$1 root work
    root=$(cache_root)
    mkdir -p "$root"
    cache_lock "fetch of $engine $(database_line "$engine")"
    if ! database_cached "$engine" >/dev/null; then
        STEP_LOG=$root/database.log
        : >"$STEP_LOG"
        work=$root/database.partial
        step "read the index of Debian's $DATABASE_SUITE" database_index "$work"
        step "fetch $engine" database_download "$engine" "$work"
        step "unpack $engine" database_unpack "$engine" "$work"
        step "start $engine once" database_publish "$engine" "$work" "$root"
        rm -rf "${work:?}/$engine"
    fi
    # All three use this index.
    if mysql_cached && mariadb_cached && postgresql_cached; then
        rm -rf "$root/database.partial"
    fi >/dev/null
    cache_unlock
}

database_index() {
    apt_private_suite "$1" "$DATABASE_SUITE"
    # An empty status, so that all dependencies of a package are taken from the suite.
    : >"$1/apt/status"
}

# database_packages ENGINE: first the package of the server, which is fetched with its dependencies;
# then packages of which only some files are needed.
database_packages() {
    case $1 in
    mysql) echo mysql-server-core ;;
    mariadb) echo mariadb-server-core mariadb-server mariadb-client-core ;; # plugins, my_print_defaults
    postgresql) echo "postgresql-$(database_line postgresql)" ;;
    esac
}

# database_programs ENGINE: the programs that are run, as paths in its folder.
database_programs() {
    local bin
    bin=usr/lib/postgresql/$(database_line postgresql)/bin
    case $1 in
    mysql) echo usr/sbin/mysqld ;;
    mariadb) echo usr/sbin/mariadbd usr/bin/my_print_defaults usr/bin/resolveip ;;
    postgresql) echo "$bin/postgres" "$bin/initdb" "$bin/psql" ;;
    esac
}

# database_files ENGINE: other files to keep, in addition to the libraries.
database_files() {
    case $1 in
    mysql) echo usr/lib/mysql usr/share/mysql ;;
    mariadb) echo usr/bin/mariadb-install-db usr/lib/mysql usr/share/mariadb ;;
    postgresql) echo usr/lib/postgresql usr/share/postgresql ;;
    esac
}

# database_apt WORK ENGINE ARGUMENT...
database_apt() {
    local work=$1 engine=$2
    shift 2
    apt_private "$work" -o Dir::State::status="$work/apt/status" -o APT::Install-Recommends=false \
        -o Dir::Cache::archives="$work/$engine/archives" "$@"
}

database_download() {
    local engine=$1 work=$2 server more version line
    read -r server more < <(database_packages "$engine")
    line=$(database_line "$engine")
    mkdir -p "$work/$engine/archives/partial"
    version=$(database_apt "$work" "$engine" --simulate install "$server" |
        sed -n "s/^Inst $server (\\([0-9]*:\\)\\{0,1\\}\\([0-9.]*\\).*/\\2/p")
    if [[ $version != "$line".* ]]; then
        echo "Debian's $DATABASE_SUITE has $engine ${version:-no more}, not one of the line $line:"
        echo "let ${engine^^}_VERSIONS of scripts/lib/versions.sh end with the newest version."
        return 1
    fi
    database_apt "$work" "$engine" --yes --download-only install "$server"
    cd "$work/$engine/archives"
    # shellcheck disable=SC2086 # word splitting is intended
    [[ -z $more ]] || database_apt "$work" "$engine" download $more
    printf '%s' "$version" >"$work/$engine/version"
}

# database_unpack ENGINE WORK: copies the needed files of the packages to WORK/ENGINE/out.
database_unpack() {
    local engine=$1 package path libraries program
    cd "$2/$engine"
    rm -rf all out
    mkdir all out
    for package in archives/*.deb; do
        dpkg-deb --extract "$package" all
    done
    cd all
    libraries=$(echo usr/lib/*-linux-gnu)
    # shellcheck disable=SC2046 # word splitting is intended
    cp --archive --parents $(database_files "$engine") "$libraries"/*.so* ../out
    for program in $(database_programs "$engine"); do
        path=../out/$program
        mkdir -p "${path%/*}"
        cp --archive "$program" "$path.elf"
        database_starter "$libraries" >"$path.new"
        chmod 755 "$path.new"
        mv "$path.new" "$path"
    done
    rm -rf ../all
}

# database_starter LIBRARIES: prints the script that replaces a program: it runs the program with
# the loader of its own C library.  The folder can be moved.
database_starter() {
    local loader
    loader=$(cd "$1" && echo ld-linux*.so.*)
    cat <<END
#!/bin/sh
libraries=\${0%/usr/*}/$1
exec "\$libraries/$loader" --argv0 "\$0" \\
    --library-path "\$libraries:\${0%/usr/*}/usr/lib/mysql/private" "\$0.elf" "\$@"
END
}

# The final rename puts it into the cache atomically.
database_publish() {
    local engine=$1 work=$2 root=$3 trial
    trial=$(mktemp --directory --tmpdir steward-database.XXXXXX)
    # shellcheck disable=SC2064 # expanded now: trial is local
    trap "rm -rf '$trial'" EXIT
    # Readable by a server that does not run as root.
    chmod 755 "$trial"
    cp --archive "$work/$engine/out/usr" "$trial"
    "${engine}_try" "$trial" "$trial/data"
    mv -T "$work/$engine/out" "$root/$engine-$(cat "$work/$engine/version")"
}

mysql_try() {
    local flags=(--no-defaults --datadir="$2" --lc-messages-dir="$1/usr/share/mysql"
        --plugin-dir="$1/usr/lib/mysql/plugin")
    ! is_root || flags+=(--user=root)
    "$1/usr/sbin/mysqld" "${flags[@]}" --initialize-insecure
    database_try "$1/log" 'ready for connections' "$1/usr/sbin/mysqld" "${flags[@]}" \
        --skip-networking --mysqlx=OFF --secure-file-priv=NULL --socket="$1/socket" \
        --pid-file="$1/pid"
}

mariadb_try() {
    local flags=(--no-defaults --datadir="$2" --basedir="$1/usr")
    ! is_root || flags+=(--user=root)
    "$1/usr/bin/mariadb-install-db" "${flags[@]}" --skip-test-db
    database_try "$1/log" 'ready for connections' "$1/usr/sbin/mariadbd" "${flags[@]}" \
        --plugin-dir="$1/usr/lib/mysql/plugin" --skip-networking --socket="$1/socket" \
        --pid-file="$1/pid"
}

postgresql_try() {
    local bin as=()
    bin=$1/usr/lib/postgresql/$(database_line postgresql)/bin
    mkdir "$2"
    if is_root; then
        as=(setpriv --reuid=nobody --regid=nogroup --clear-groups --)
        chown nobody "$2"
    fi
    "${as[@]}" "$bin/initdb" -D "$2" -A trust
    database_try "$1/log" 'ready to accept connections' "${as[@]}" "$bin/postgres" -D "$2" \
        -c listen_addresses= -c unix_socket_directories="$2"
}

# database_try LOG TEXT COMMAND...: runs a server until its log contains the text, and stops it.
database_try() {
    local log=$1 words=$2 server status=0
    shift 2
    "$@" >"$log" 2>&1 &
    server=$!
    wait_until 60 database_says "$log" "$words" "$server" || true
    kill "$server" 2>/dev/null || true
    wait "$server" || status=$?
    cat "$log"
    grep -q "$words" "$log" && ((status == 0))
}

# Also true when the server has ended, to stop waiting.
database_says() {
    grep -q "$2" "$1" || ! kill -0 "$3" 2>/dev/null
}
