# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A MariaDB on loopback for a cluster.  Its data folder is in $CLUSTER, and it is one of the
# processes there (proc.sh).  Sourced by scripts/demo.

database_there() {
    type -P mariadbd mariadb-install-db mariadb >/dev/null
}

# database_up PORT ADMIN PASSWORD: starts it, with an admin for steward and a database `shop`.
database_up() {
    local folder=$CLUSTER/mariadb as_root=()
    ! is_root || as_root=(--user=root)
    mkdir -p "$folder"
    mariadb-install-db --no-defaults --datadir="$folder/data" "${as_root[@]}" \
        --auth-root-authentication-method=normal --skip-test-db --innodb-log-file-size=8M
    proc_define mariadb "$(type -P mariadbd)" --no-defaults "${as_root[@]}" \
        --datadir="$folder/data" --socket="$folder/socket" --pid-file="$folder/pid" \
        --port="$1" --bind-address=127.0.0.1 --skip-name-resolve \
        --innodb-log-file-size=8M --innodb-buffer-pool-size=16M --performance-schema=OFF
    proc_launch mariadb
    proc_wait_ready mariadb 60 database_ask 'SELECT 1'
    database_ask "CREATE DATABASE shop;
        CREATE USER '$2'@'%' IDENTIFIED BY '$3';
        GRANT ALL PRIVILEGES ON *.* TO '$2'@'%' WITH GRANT OPTION;"
}

# database_ask STATEMENTS: runs them as the superuser.  They are passed on standard input, so that
# process lists do not show them.
database_ask() {
    mariadb --no-defaults --user=root --socket="$CLUSTER/mariadb/socket" <<<"$1"
}
