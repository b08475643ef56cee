# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: rights are granted and revoked, and no others are changed."""

import pytest

from support import dbserver, postgres
from support.sqlprobe import CLUSTER, account, grant


@pytest.fixture
def my(make_probe, maria):
    """A probe on MariaDB."""
    return make_probe(maria.target("db"))


@pytest.fixture
def post(make_probe, pg):
    """A probe on PostgreSQL."""
    return make_probe(pg.target("db"))


@pytest.mark.every_version("columns of the catalogue and names of privileges")
def test_mariadb_grants_on_all_levels(my, maria, user):
    """Global, database, table; extended, reduced, repaired; each as the catalogue shows it."""
    maria.sql("CREATE DATABASE IF NOT EXISTS lv; CREATE TABLE IF NOT EXISTS lv.t (i INT); "
              "CREATE DATABASE IF NOT EXISTS other")
    grants = [grant("*", "PROCESS", "REPLICATION CLIENT"), grant("lv", "SELECT", "CREATE VIEW"),
              grant("lv", "UPDATE", "DELETE", table="t"), grant("other", "ALL", option=True)]
    report = my.sync(**account(user, grants=grants))
    shown = "\n".join(maria.grants(user))
    for part in ("SELECT, CREATE VIEW ON `lv`.*", "UPDATE, DELETE ON `lv`.`t`",
                 "ALL PRIVILEGES ON `other`.*", "WITH GRANT OPTION"):
        assert part in shown, shown
    assert "BINLOG MONITOR" in "\n".join(r[0] for r in maria.sql(f"SHOW GRANTS FOR '{user}'@'%'"))
    assert my.sync(**account(user, grants=grants))["statements"] == 1
    assert "SELECT ON lv.*" in report["granted"] and report["foreign"] == ""
    # D8: each list is reduced.
    grants = [grant("*", "PROCESS"), grant("lv", "SELECT"), grant("lv", "UPDATE", table="t"),
              grant("other", "INSERT")]
    assert my.sync(**account(user, grants=grants))["revoked"] > 4
    assert maria.grants(user) == [f"GRANT INSERT ON `other`.* TO `{user}`@`%`",
                                  f"GRANT PROCESS ON *.* TO `{user}`@`%`",
                                  f"GRANT SELECT ON `lv`.* TO `{user}`@`%`",
                                  f"GRANT UPDATE ON `lv`.`t` TO `{user}`@`%`"]
    maria.sql(f"REVOKE SELECT ON lv.* FROM '{user}'@'%'")
    assert my.sync(**account(user, grants=grants))["given"] == 1
    assert my.sync(**account(user))["statements"] == 7  # the last one reads what it has now
    assert maria.grants(user) == [] and maria.marks(user)["%"][4] == "[]"


@pytest.mark.every_version("names of databases in grants")
def test_grant_wildcards_are_escaped(make_probe, hosted, user):
    """A database name in a grant is a pattern: "a_b" must not match "axb", and "50%" not "500"."""
    probe = make_probe(hosted.target("db"))
    for name in ("a_b", "axb", "50%", "500"):
        hosted.sql(f"CREATE DATABASE IF NOT EXISTS `{name}`; CREATE TABLE IF NOT EXISTS `{name}`.t (i INT)")
    hosted.sql("CREATE DATABASE IF NOT EXISTS `back\\slash`")
    grants = [grant("a_b", "SELECT"), grant("50%", "SELECT"), grant("back\\slash", "SELECT")]
    probe.sync(**account(user, grants=grants))
    assert probe.sync(**account(user, grants=grants))["statements"] == 1
    for name in ("a_b", "50%"):
        assert hosted.logs_in(user, "s3cret-Pa55", f"SELECT * FROM `{name}`.t")
    for name in ("axb", "500"):
        assert not hosted.logs_in(user, "s3cret-Pa55", f"SELECT * FROM `{name}`.t")


@pytest.mark.every_version("columns of the catalogue and names of privileges")
def test_mariadb_privilege_policies(my, maria, user):
    """Managed revokes what steward granted; Exact all others as well; Additive nothing."""
    maria.sql("CREATE DATABASE IF NOT EXISTS pol; CREATE TABLE IF NOT EXISTS pol.t (i INT, k INT)")
    app = [grant("pol", "SELECT", "INSERT")]
    my.sync(**account(user, grants=app))
    maria.sql(f"GRANT DELETE ON pol.* TO '{user}'@'%'; GRANT UPDATE (i) ON pol.t TO '{user}'@'%'; "
              "CREATE ROLE r1; GRANT r1 TO 'steward-admin'@'%' WITH ADMIN OPTION; "
              f"GRANT r1 TO '{user}'@'%'")
    report = my.sync(**account(user, grants=app[:1]))
    assert report["statements"] == 1 and "DELETE ON pol.*" in report["foreign"]
    assert "UPDATE ON pol.t(i)" in report["foreign"] and "role r1" in report["foreign"]
    # Additive: those of steward stay too, and are remembered for Managed.
    assert my.sync(**account(user, policy="Additive"))["revoked"] == 0
    assert "SELECT, INSERT, DELETE" in maria.grants(user)[0]
    my.sync(**account(user, policy="Managed"))
    assert any("GRANT DELETE ON `pol`.*" in line for line in maria.grants(user))
    report = my.sync(**account(user, policy="Exact", grants=[grant("pol", "SELECT")]))
    assert report["foreign"] == ""
    assert [g for g in maria.grants(user)] == [f"GRANT SELECT ON `pol`.* TO `{user}`@`%`"]
    assert my.sync(**account(user, policy="Exact", grants=[grant("pol", "SELECT")]))[
        "statements"] == 1


def test_pre_existing_right_is_not_revoked(my, maria, user):
    """A right granted by an administrator stays when the object no longer asks for it."""
    my.sync(**account(user))
    maria.sql(f"CREATE DATABASE IF NOT EXISTS old; GRANT SELECT ON old.* TO '{user}'@'%'")
    report = my.sync(**account(user, grants=[grant("old", "SELECT", "INSERT")]))
    assert report["given"] == 1 and "SELECT" in report["foreign"]
    my.sync(**account(user))
    assert maria.grants(user) == [f"GRANT SELECT ON `old`.* TO `{user}`@`%`"]


SERVER_RIGHTS = {
    "mariadb": ["BINLOG MONITOR", "PROCESS", "REPLICATION SLAVE", "SLAVE MONITOR"],
    "mysql": ["BACKUP_ADMIN", "FLUSH_TABLES", "INNODB_REDO_LOG_ARCHIVE", "PROCESS",
              "REPLICATION CLIENT", "REPLICATION SLAVE", "SHOW_ROUTINE"]}


@pytest.mark.every_version("names of privileges, and tables of dynamic ones")
def test_server_rights_are_granted_and_repaired(make_probe, hosted, user):
    """Each alone is shown, others are revoked with Exact, and none makes the account an admin."""
    probe, rights = make_probe(hosted.target("db")), SERVER_RIGHTS[hosted.engine]
    wanted = account(user, grants=[grant("*", *rights)], policy="Exact")
    probe.sync(**wanted)
    assert probe.sync(**wanted)["statements"] == 1
    given = {right for line in hosted.grants(user)
             for right in line.removeprefix("GRANT ").split(" ON ")[0].replace(", ", ",").split(",")}
    assert given == set(rights)
    more = "CONNECTION_ADMIN" if hosted.engine == "mysql" else "CONNECTION ADMIN"
    hosted.sql(f"REVOKE {rights[0]} ON *.* FROM '{user}'@'%'; GRANT {more} ON *.* TO '{user}'@'%'")
    report = probe.sync(**wanted)
    assert (report["given"], report["revoked"]) == (1, 1), report
    for attack in ("SELECT * FROM mysql.user", f"CREATE USER {user}_2", "SET GLOBAL max_connections = 1",
                   f"GRANT PROCESS ON *.* TO '{user}'@'%'", f"SET PASSWORD FOR '{dbserver.ADMIN}'@'%' = 'x'"):
        done = hosted.run_client("-e", attack, check=False, user=user, password="s3cret-Pa55", tcp=True)
        assert "denied" in done.stderr, (attack, done)
    probe.sync(**account(user, grants=[grant("*", "PROCESS")]))
    assert hosted.grants(user) == [f"GRANT PROCESS ON *.* TO `{user}`@`%`"]


@pytest.mark.every_version("the list of databases")
def test_grant_on_missing_database_is_reported(make_probe, hosted, user):
    """The server takes rights on it.  An account that may create the database is not told."""
    probe = make_probe(hosted.target("db"))
    wanted = account(user, grants=[grant(f"{user}_d", "SELECT")])
    for _ in range(2):
        report = probe.fails("sync", "NO_OBJECT", **wanted)
        assert f'the database "{user}_d" does not exist' in report["error"] and report["login_done"], report
    probe.sync(**account(user, grants=[grant(f"{user}_d", "SELECT", "CREATE")]))
    hosted.sql(f"CREATE DATABASE {user}_d")
    assert probe.sync(**wanted)["revoked"] == 1
    assert probe.sync(**wanted)["statements"] == 1


@pytest.mark.every_version("errors of the servers")
def test_refused_grant_names_right_object_and_admin(make_probe, server, user):
    """So that a DBA knows what to give, and to whom."""
    admin, shop = f"{user}_admin", f"{user}d"
    password = dbserver.ADMIN_PASSWORD
    if server.engine == "postgresql":
        server.sql(f"CREATE ROLE {admin} LOGIN CREATEROLE PASSWORD '{password}'; CREATE DATABASE {shop}")
        server.sql("CREATE SCHEMA s; CREATE TABLE s.t (i int); REVOKE CONNECT ON DATABASE "
                   f"{shop} FROM PUBLIC", shop)
        wanted = account(user, grants=[grant(shop, "SELECT", schema="s", table="t")])
    else:
        server.sql(f"CREATE DATABASE {shop}; CREATE USER {admin}@'%' IDENTIFIED BY '{password}'; GRANT CREATE "
                   f"USER, RELOAD ON *.* TO {admin}@'%'; GRANT SELECT ON mysql.* TO {admin}@'%'; GRANT ALL ON "
                   f"steward.* TO {admin}@'%'; GRANT SELECT ON {shop}.* TO {admin}@'%' WITH GRANT OPTION")
        wanted = account(user, grants=[grant(shop, "SELECT", "DROP")])
    probe = make_probe(server.target("db", admin={"user": admin, "passwordFile": str(server.admin_file)}))
    report = probe.fails("sync", "DENIED", **wanted)
    for part in (shop, admin, "GRANT CONNECT" if server.engine == "postgresql" else "DROP"):
        assert part in report["error"], report
    if server.engine == "postgresql":
        server.sql(f"GRANT CONNECT ON DATABASE {shop} TO {admin}")
        server.sql(f"GRANT USAGE ON SCHEMA s TO {admin}", shop)
        report = probe.fails("sync", "DENIED", **wanted)
        assert f"SELECT ON {shop}.s.t" in report["error"], report
        report = probe.fails("sync", "NO_OBJECT", **account(user, grants=[
            grant(shop, "SELECT", schema="s", table="missing")]))
        assert "s.missing" in report["error"], report
    probe.drop(**wanted)


def test_failed_connection_names_server_and_account(make_probe, server, user):
    """The password is not the admin's."""
    other = f"{user}_admin"
    probe = make_probe(server.target("db", admin={"user": other, "passwordFile": str(server.admin_file)}))
    report = probe.fails("sync", "AUTH", **account(user))
    assert f'(127.0.0.1:{server.port}, account "{other}")' in report["error"], report


def test_mariadb_invalid_grants_are_reported(my, maria, user):
    """Reported in an error message; the account itself is created."""
    report = my.fails("sync", "NO_OBJECT", **account(user, grants=[
        grant("nowhere", "SELECT", table="none")]))
    assert report["step"] == "GRANT" and maria.accounts(user) == ["%"]
    my.fails("sync", "UNSUPPORTED", **account(user, grants=[grant("app", "PROCESS")]))
    my.fails("sync", "UNSUPPORTED", **account(user, grants=[grant("app", "SELECT; DROP")]))
    my.fails("sync", "UNSUPPORTED", **account(user, grants=[grant("app", "SELECT", schema="s")]))
    assert my.sync(**account(user))["statements"] in (1, 2)


PG_GRANTS = [grant("gr", "CONNECT", "CREATE"), grant("gr", "USAGE", schema="s 1"),
             grant("gr", "SELECT", "INSERT", schema="s 1", table="*"),
             grant("gr", "USAGE", schema="s 1", table="*"),
             grant("gr", "UPDATE", schema="public", table="one", option=True)]


@pytest.fixture
def tables(pg):
    """A database with schemas, tables and sequences."""
    if pg.sql("SELECT 1 FROM pg_database WHERE datname = 'gr'"):
        return
    pg.sql("CREATE DATABASE gr")
    pg.sql('CREATE SCHEMA "s 1"; CREATE TABLE "s 1".a (i serial); CREATE TABLE "s 1".b (i int); '
           "CREATE TABLE public.one (i int, k int)", "gr")


def has(pg, user, what):
    """has_table_privilege and its companions."""
    return pg.sql(f"SELECT {what.format(user)}", "gr")[0][0] == "t"


@pytest.mark.every_version("columns of the catalogue and names of privileges")
def test_postgresql_grants_on_all_levels(post, pg, user, tables):
    """Database, schema, all tables, all sequences, one table; two statements when settled."""
    report = post.sync(**account(user, grants=PG_GRANTS))
    assert "UPDATE WITH GRANT OPTION ON gr.public.one" in report["granted"]
    for what in ("has_database_privilege('{}', 'gr', 'CREATE')",
                 "has_schema_privilege('{}', 's 1', 'USAGE')",
                 "has_table_privilege('{}', '\"s 1\".a', 'INSERT')",
                 "has_sequence_privilege('{}', '\"s 1\".a_i_seq', 'USAGE')",
                 "has_table_privilege('{}', 'one', 'UPDATE WITH GRANT OPTION')"):
        assert has(pg, user, what), what
    report = post.sync(**account(user, grants=PG_GRANTS))
    assert report["statements"] == 2 and report["given"] == 0
    # A table that was created later.
    pg.sql('CREATE TABLE "s 1".later (i int)', "gr")
    assert has(pg, user, "has_table_privilege('{}', '\"s 1\".later', 'SELECT')")
    assert post.sync(**account(user, grants=PG_GRANTS))["statements"] == 2
    pg.sql(f'REVOKE SELECT ON "s 1".later FROM {user}', "gr")
    assert post.sync(**account(user, grants=PG_GRANTS))["given"] > 0
    assert has(pg, user, "has_table_privilege('{}', '\"s 1\".later', 'SELECT')")
    pg.sql('DROP TABLE "s 1".later', "gr")
    # From all tables to one; from WITH GRANT OPTION to without.
    less = [grant("gr", "SELECT", schema="s 1", table="b"),
            grant("gr", "UPDATE", schema="public", table="one")]
    report = post.sync(**account(user, grants=less))
    assert report["granted"].splitlines() == ["UPDATE ON gr.public.one", "SELECT ON gr.s 1.b"]
    assert has(pg, user, "has_table_privilege('{}', '\"s 1\".b', 'SELECT')")
    for what in ("has_table_privilege('{}', '\"s 1\".a', 'SELECT')",
                 "has_table_privilege('{}', 'one', 'UPDATE WITH GRANT OPTION')",
                 "has_database_privilege('{}', 'gr', 'CREATE')",
                 "has_sequence_privilege('{}', '\"s 1\".a_i_seq', 'USAGE')",
                 "has_schema_privilege('{}', 's 1', 'USAGE')"):
        assert not has(pg, user, what), what
    assert post.sync(**account(user, grants=less))["statements"] == 2
    post.sync(**account(user))
    assert post.sync(**account(user))["statements"] == 1
    post.drop(**account(user))
    assert not pg.exists(user)


@pytest.mark.every_version("columns of the catalogue and names of privileges")
def test_postgresql_privilege_policies(post, pg, user, tables):
    """The same as on MariaDB."""
    mine = [grant("gr", "SELECT", schema="public", table="one")]
    post.sync(**account(user, grants=mine))
    pg.sql(f"GRANT DELETE ON one TO {user}; GRANT UPDATE (k) ON one TO {user}; "
           f"GRANT pg_monitor TO {user}", "gr")
    report = post.sync(**account(user, grants=mine))
    assert report["statements"] == 2 and "DELETE ON gr.public.one" in report["foreign"]
    assert "UPDATE ON gr.public.one(k)" in report["foreign"]
    assert "role pg_monitor" in report["foreign"]
    assert post.sync(**account(user, policy="Additive"))["revoked"] == 0
    assert has(pg, user, "has_table_privilege('{}', 'one', 'SELECT')")
    report = post.sync(**account(user, grants=mine, policy="Exact"))
    assert report["foreign"] == "" and report["revoked"] == 3
    assert not has(pg, user, "has_any_column_privilege('{}', 'one', 'UPDATE')")
    assert post.sync(**account(user, grants=mine, policy="Exact"))["statements"] == 2


def test_postgresql_invalid_grants_are_reported(post, pg, user, tables):
    """An object that does not exist, an invalid privilege."""
    for bad in (grant("nowhere", "SELECT", schema="public", table="*"),
                grant("nowhere", "CONNECT"),
                grant("gr", "USAGE", schema="none"),
                grant("gr", "SELECT", schema="public", table="none"),
                grant("gr", "SELECT", schema="none", table="*")):
        post.fails("sync", "NO_OBJECT", **account(user, grants=[bad]))
    for bad in (grant("gr", "SELECT"), grant("gr", "SELECT", schema="s 1"),
                grant("gr", "CONNECT", schema="s 1", table="a")):
        post.fails("sync", "UNSUPPORTED", **account(user, grants=[bad]))
    assert pg.exists(user)
    post.sync(**account(user))


@pytest.mark.every_version("PostgreSQL 16 changed what CREATEROLE may do")
def test_dropped_role_hands_its_objects_over(post, pg, user, tables):
    """D7: its objects, in every database, get a new owner; nothing is lost."""
    pg.sql("CREATE DATABASE second")
    pg.sql("CREATE ROLE heir NOLOGIN NOINHERIT")
    post.sync(**account(user))
    for database in ("gr", "second"):
        pg.sql(f"CREATE SCHEMA own_{user} AUTHORIZATION {user}; "
               f"CREATE TABLE own_{user}.t (i int); ALTER TABLE own_{user}.t OWNER TO {user}; "
               f"INSERT INTO own_{user}.t VALUES (42)", database)
    post.drop(**account(user, reassign="heir"))
    assert not pg.exists(user)
    for database in ("gr", "second"):
        assert pg.sql(f"SELECT i FROM own_{user}.t", database) == [["42"]]
        owner = f"SELECT tableowner FROM pg_tables WHERE schemaname = 'own_{user}'"
        assert pg.sql(owner, database) == [["heir"]]


def test_blocked_drop_names_the_obstacle(post, pg, user):
    """The message names the obstacle; when it is removed, the drop succeeds."""
    pg.sql(f"CREATE DATABASE closed{user}")
    post.sync(**account(user))
    pg.sql(f"CREATE TABLE t (i int); ALTER TABLE t OWNER TO {user}", f"closed{user}")
    pg.sql(f"ALTER DATABASE closed{user} ALLOW_CONNECTIONS false")
    report = post.fails("drop", "OWNS_OBJECTS", **account(user))
    assert f"closed{user}" in report["error"]
    report = post.fails("drop", "OWNS_OBJECTS", **account(user, reassign="not_there"))
    assert "does not exist" in report["error"]
    pg.sql(f"ALTER DATABASE closed{user} ALLOW_CONNECTIONS true")
    post.drop(**account(user))
    assert not pg.exists(user)


def test_inaccessible_database_affects_one_object(make_probe, make_postgres, user):
    """Only that object fails; other accounts of the target are still reconciled."""
    pg = make_postgres()
    pg.sql("CREATE DATABASE walled")
    hba = pg.folder / "data" / "pg_hba.conf"
    hba.write_text("hostssl walled all 127.0.0.1/32 reject\n" + hba.read_text())
    pg.sql("SELECT pg_reload_conf()")
    probe = make_probe(pg.target("db"))
    bad = account(f"{user}b", grants=[grant("walled", "CREATE", schema="public")])
    for _ in range(5):
        assert "walled" in probe.fails("sync", "DENIED", **bad)["error"]
        probe.sync(**account(user))
    pg.sql(f"GRANT CREATE ON SCHEMA public TO {user}b", "walled")
    report = probe.fails("drop", "DENIED", **bad)
    assert report["error"].startswith(f'dropping account "{user}b": the admin account may not enter'), report
    pg.sql("ALTER DATABASE walled ALLOW_CONNECTIONS false")
    hba.write_text(hba.read_text().split("\n", 1)[1])
    pg.sql("SELECT pg_reload_conf()")
    for _ in range(5):
        assert "takes no connections" in probe.fails("sync", "NO_OBJECT", **bad)["error"]
        probe.sync(**account(user))


@pytest.mark.every_version("PostgreSQL 16 changed what CREATEROLE may do")
def test_admin_with_createrole_suffices(make_probe, make_postgres, user):
    """CREATEROLE suffices; a login checks the password, and drops reassign objects, too."""
    pg = make_postgres()
    pg.sql('ALTER ROLE "steward-admin" NOSUPERUSER CREATEROLE')
    pg.sql('CREATE DATABASE theirs OWNER "steward-admin"')
    pg.sql("CREATE TABLE public.t (i int); CREATE SCHEMA s", "theirs")
    probe = make_probe(pg.target("db"))
    probe.sync(**account(user, grants=[grant("theirs", "CONNECT")]))
    assert probe.sync(**account(user, grants=[grant("theirs", "CONNECT")]))["statements"] == 1
    assert probe.sync(**account(user, "r0tated-Pa55"))["password_changed"]
    assert pg.logs_in(user, "r0tated-Pa55")
    assert not probe.sync(**account(user, "r0tated-Pa55"))["password_changed"]
    # It cannot grant on another owner's table: the server only warns, steward fails.
    probe.fails("sync", "DENIED", **account(user, "r0tated-Pa55", grants=[
        grant("theirs", "SELECT", schema="public", table="t")]))
    pg.sql(f"CREATE TABLE s.mine (i int); ALTER TABLE s.mine OWNER TO {user}", "theirs")
    probe.drop(**account(user))
    assert not pg.exists(user)
    assert pg.sql("SELECT tableowner FROM pg_tables WHERE tablename = 'mine'", "theirs") == [
        [postgres.heir(CLUSTER, "shop")]]


def on_columns(database, columns, *privileges, **more):
    """A grant on columns of a table."""
    return {**grant(database, *privileges, **more), "columns": columns}


@pytest.mark.every_version("columns of the catalogue, and what goes with a right on the table")
def test_column_rights_are_granted_and_revoked(make_probe, server, user):
    """Given, repaired, taken, kept when the right on the whole table goes, and alone with Exact; a dropped column
    is told, and all else is done."""
    pg, shop = server.engine == "postgresql", f"{user}d"
    place = {"table": "people", "schema": "public" if pg else None}
    server.sql(f"CREATE DATABASE {shop}")

    def run(text):
        return server.sql(text, shop) if pg else server.sql(f"USE {shop}; {text}")

    def may(column, privilege="SELECT"):
        read = privilege == "SELECT"
        text = f"SELECT {column} FROM people" if read else f"UPDATE people SET {column} = {column}"
        if pg:
            return server.run_client(text, check=False, user=user, password="s3cret-Pa55", database=shop,
                                     tcp=True).returncode == 0
        return server.logs_in(user, "s3cret-Pa55", f"USE {shop}; {text}")

    run("CREATE TABLE people (id int, name int, salary int, `odd \"one` int)".replace("`odd \"one`", '"odd ""one"')
        if pg else "CREATE TABLE people (id int, name int, salary int, `odd \"one` int)")
    connect = [grant(shop, "CONNECT"), grant(shop, "USAGE", schema="public")] if pg else []
    some = [*connect, on_columns(shop, ["id", "name", 'odd "one'], "SELECT", **place),
            on_columns(shop, ["name"], "UPDATE", **place)]
    probe = make_probe(server.target("db"))
    report = probe.sync(**account(user, grants=some))
    place_text = f"{shop}.public.people" if pg else f"{shop}.people"
    assert f"SELECT, UPDATE ON {place_text}(name)" in report["granted"], report
    assert may("id, name") and not may("salary") and not may("id", "UPDATE")
    settled = probe.sync(**account(user, grants=some, policy="Exact"))
    assert settled["given"] == settled["revoked"] == 0 and settled["foreign"] == "", settled

    to = user if pg else f"'{user}'@'%'"
    run(f"GRANT SELECT (salary), INSERT (id) ON people TO {to}; REVOKE SELECT (id) ON people FROM {to}")
    assert may("salary") and not may("id")
    report = probe.sync(**account(user, grants=some, policy="Exact"))
    assert (report["given"], report["revoked"]) == (1, 2), report
    assert may("id, name") and not may("salary")
    whole = [*some, grant(shop, "SELECT", **place)]
    probe.sync(**account(user, grants=whole))
    assert may("salary")
    probe.sync(**account(user, grants=some))
    assert may("id, name") and not may("salary")
    assert probe.sync(**account(user, grants=some))["given"] == 0

    run("ALTER TABLE people DROP COLUMN name")
    for _ in range(2):
        report = probe.fails("sync", "NO_OBJECT", **account(user, grants=some))
        assert "name" in report["error"] and "column" in report["error"] and report["login_done"], report
    assert may("id") and not may("salary")
    for bad in (on_columns(shop, ["id"], "DELETE", **place), on_columns(shop, ["id"], "SELECT")):
        probe.fails("sync", "UNSUPPORTED", **account(user, grants=[bad]))
    probe.sync(**account(user, grants=connect))
    assert not may("id") and probe.sync(**account(user, grants=connect))["statements"] <= 2
    probe.drop(**account(user))


@pytest.mark.every_version("the server's own columns")
def test_column_rights_on_system_tables_are_seen(make_probe, pg, user):
    """They are given like others, and with Exact another client's are taken."""
    probe = make_probe(pg.target("db"))
    pg.sql(f"CREATE TABLE {user}_t (a int)")
    held = f"SELECT has_column_privilege('{user}', '{user}_t', 'ctid', 'SELECT')"
    mine = {**grant("postgres", "SELECT", schema="public", table=f"{user}_t"), "columns": ["ctid"]}
    probe.sync(**account(user, grants=[mine]))
    assert pg.sql(held) == [["t"]] and probe.sync(**account(user, grants=[mine]))["given"] == 0
    assert probe.sync(**account(user))["revoked"] == 1 and pg.sql(held) == [["f"]]
    pg.sql(f"GRANT SELECT (ctid) ON {user}_t TO {user}")
    assert probe.sync(**account(user, policy="Exact"))["revoked"] == 1 and pg.sql(held) == [["f"]]
    pg.sql(f"DROP TABLE {user}_t")
    probe.drop(**account(user))


@pytest.mark.every_version("tables of routines and of their definers")
def test_routine_rights_exclude_privileged_definers(make_probe, hosted, user):
    """A function and a procedure of one name; none that runs with the rights of a privileged account, also when
    it becomes one later."""
    shop = f"{user}d"
    probe = make_probe(hosted.target("db"))

    def routine(name, *privileges, **more):
        return {**grant(shop, *(privileges or ("EXECUTE",)), **more), "routine": name}

    def runs(call):
        return hosted.logs_in(user, "s3cret-Pa55", f"{call[0]} {shop}.{call[1]}()")

    def create(what, name, definer, security):
        body = "RETURNS INT DETERMINISTIC RETURN 1" if what == "FUNCTION" else "SELECT 1"
        body = body.replace("RETURNS INT DETERMINISTIC ", f"RETURNS INT DETERMINISTIC SQL SECURITY {security} ") \
            if what == "FUNCTION" else f"SQL SECURITY {security} {body}"
        hosted.sql(f"CREATE DEFINER={definer} {what} {shop}.{name}() {body}")

    hosted.sql(f"CREATE DATABASE {shop}; CREATE USER {user}_plain@'%' IDENTIFIED BY 'x-Pa55-x'; "
               f"GRANT ALL ON {shop}.* TO {user}_plain@'%'")
    create("FUNCTION", "Both", f"{user}_plain@'%'", "DEFINER")
    create("PROCEDURE", "Both", f"'{dbserver.ADMIN}'@'%'", "INVOKER")
    create("PROCEDURE", "admins", f"'{dbserver.ADMIN}'@'%'", "DEFINER")
    wanted = account(user, grants=[routine("both")], policy="Exact")
    report = probe.sync(**wanted)
    assert f"EXECUTE ON FUNCTION {shop}.both" in report["granted"], report
    assert runs(("SELECT", "both")) and runs(("CALL", "BOTH")) and not runs(("CALL", "admins"))
    settled = probe.sync(**wanted)
    assert settled["given"] == settled["revoked"] == 0, settled

    withheld = account(user, grants=[routine("both"), routine("admins")], policy="Exact")
    for _ in range(2):
        report = probe.fails("sync", "DENIED", **withheld)
        assert "privileged" in report["error"] and "admins" in report["error"] and report["login_done"], report
        assert runs(("SELECT", "both")) and not runs(("CALL", "admins"))
    hosted.sql(f"CREATE ROLE {user}_all; GRANT SELECT ON *.* TO {user}_all; CREATE ROLE {user}_some; "
               f"GRANT {user}_all TO {user}_some")
    for right in ("CREATE USER ON *.*", "SELECT ON mysql.*", "SELECT ON mysql.user", f"{user}_some",
                  "CONNECTION_ADMIN ON *.*" if hosted.engine == "mysql" else "CONNECTION ADMIN ON *.*"):
        hosted.sql(f"GRANT {right} TO {user}_plain@'%'")
        probe.fails("sync", "DENIED", **withheld)
        assert not runs(("SELECT", "both")) and runs(("CALL", "both")), right
        hosted.sql(f"REVOKE {right} FROM {user}_plain@'%'")
        probe.fails("sync", "DENIED", **withheld)
        assert runs(("SELECT", "both")), right
    if hosted.engine == "mariadb":  # a role as the definer
        create("PROCEDURE", "roles", f"{user}_some", "DEFINER")
        probe.fails("sync", "DENIED", **account(user, grants=[routine("both"), routine("roles")], policy="Exact"))
        assert not runs(("CALL", "roles"))
    hosted.sql(f"DROP ROLE {user}_some, {user}_all; DROP PROCEDURE {shop}.Both; GRANT EXECUTE ON "
               f"PROCEDURE {shop}.admins TO '{user}'@'%'")
    report = probe.sync(**wanted)
    assert runs(("SELECT", "both")) and not runs(("CALL", "admins")), report
    report = probe.fails("sync", "NO_OBJECT", **account(user, grants=[routine("nowhere")]))
    assert f'the routine "{shop}"."nowhere" does not exist' in report["error"], report
    assert not runs(("SELECT", "both")) and hosted.grants(user) == []
    probe.fails("sync", "UNSUPPORTED", **account(user, grants=[routine("both", "SELECT")]))
    probe.drop(**account(user))
