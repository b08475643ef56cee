# SPDX-License-Identifier: Apache-2.0
"""Marks: what one cluster made is not changed by another cluster that uses the same server."""

import pytest

from support.sqlprobe import CLUSTER, account, grant
from test_sql_databases import ALL, each, fill, has_table, is_pg, names, one, wants

STAGING = "5a7e0000-0000-4000-8000-000000000002"
OPS = ("sync", "drop", "lock", "release", "end sessions")


def marked(server, kind, name):
    """The clusters in the marks of an account or a database."""
    if is_pg(server):
        catalog, column = (("pg_authid", "rolname") if kind == "accounts"
                           else ("pg_database", "datname"))
        return server.sql(f"SELECT shobj_description(oid, '{catalog}')::json->>'cluster' FROM "
                          f"{catalog} WHERE {column} = '{name}'")
    column = "user" if kind == "accounts" else "name"
    return server.sql(f"SELECT cluster FROM steward.{kind} WHERE {column} = '{name}'")


def forget_cluster(server, user):
    """The marks as a former version wrote them."""
    if is_pg(server):
        for kind, catalog, column in (("ROLE", "pg_authid", "rolname"),
                                      ("DATABASE", "pg_database", "datname")):
            for name, mark in server.sql(
                    f"SELECT {column}, shobj_description(oid, '{catalog}')::jsonb - 'cluster' FROM "
                    f"{catalog} WHERE {column} LIKE '{user}%' AND shobj_description(oid, "
                    f"'{catalog}') LIKE '{{\"steward\"%'"):
                server.sql(f"COMMENT ON {kind} {name} IS '{mark}'")
    else:
        for table in ("accounts", "databases"):
            server.sql(f"ALTER TABLE steward.{table} DROP COLUMN cluster")


def make_both(probe, server, user, **more):
    """An account and a database with a table, of the production cluster."""
    probe.sync(**account(user))
    assert one(probe, "databases", wants(user, f"{user}_d", **more))["created"]
    fill(server, f"{user}_d")


@pytest.mark.every_version("how accounts and databases are marked")
@pytest.mark.parametrize("uid", ["uid-staging", None], ids=["another UID", "the same UID"])
def test_another_cluster_changes_nothing(make_probe, server, user, uid):
    """A staging cluster with the same namespace and name, on the same server: whatever its object
    asks for, production's account and database stay as they are."""
    probe = make_probe(server.target("db", **ALL, allowAdoption=[]))
    make_both(probe, server, user)
    theirs = {"cluster": STAGING, **({"uid": uid} if uid else {})}
    for adopt in (False, True):
        for op in OPS:
            there = account(user, "staging-Pa55", adopt=adopt, hosts=["%", "10.%"], **theirs)
            if op == "end sessions":
                assert not probe.ask(op, **there)["found"]
            elif op == "release":
                assert probe.ask(op, **there)["result"] == 0
            else:
                report = probe.fails(op, "NOT_OURS", **there)
                assert f"of another cluster ({CLUSTER})" in report["error"]
        database = {**wants(user, f"{user}_d", adopt=adopt), **theirs}
        report = one(probe, "databases", database)
        assert report["trouble"] == "NOT_OURS" and not report["owned"], report
        assert f"DatabaseUser shop/{user} of another cluster ({CLUSTER})" in report["error"]
        assert not one(probe, "undatabases", database)["dropped"]
    assert server.logs_in(user, "s3cret-Pa55") and not server.logs_in(user, "staging-Pa55")
    assert has_table(server, f"{user}_d")
    assert probe.sync(**account(user))["statements"] <= 2  # its own finds it as it was
    assert one(probe, "undatabases", wants(user, f"{user}_d"))["dropped"]
    probe.drop(**account(user))


@pytest.mark.every_version("how accounts and databases are marked")
def test_another_cluster_adopts_what_the_target_lists(make_probe, server, user):
    """A move to another cluster: with Adopt and allowAdoption, its object takes both, and the former
    cluster's can no longer change or drop them.  What the account has beyond the new cluster's target
    keeps it from being adopted, although steward gave it."""
    make_both(make_probe(server.target("db", **ALL)), server, user)
    here = {"cluster": STAGING, "uid": "uid-staging", "adopt": True}
    named = make_probe(server.target("db", **ALL, allowAdoption=[user, f"{user}_d"]))
    database = {**wants(user, f"{user}_d"), **here}
    assert one(named, "databases", {**database, "adopt": False})["trouble"] == "NOT_OURS"
    assert one(named, "databases", database)["owned"]
    named.fails("sync", "NOT_OURS", **account(user, "moved-Pa55", **{**here, "adopt": False}))
    assert named.sync(**account(user, "moved-Pa55", **here))["adopted"]
    assert server.logs_in(user, "moved-Pa55") and has_table(server, f"{user}_d")
    assert marked(server, "accounts", user) == marked(server, "databases", f"{user}_d") == [[STAGING]]
    named.fails("drop", "NOT_OURS", **account(user))
    assert not one(named, "undatabases", wants(user, f"{user}_d"))["dropped"]
    assert one(named, "undatabases", database)["dropped"]
    named.drop(**account(user, **here))


@pytest.mark.every_version("rights of accounts")
def test_rights_of_another_cluster_are_not_adopted(make_probe, server, user):
    """The other cluster's target gave a right that this one does not give."""
    wide = make_probe(server.target("db", **ALL, allowedDatabases=["*"], allowAdoption=["*"]))
    one(wide, "databases", wants(user, f"{user}_pay"))
    rights = [grant(f"{user}_pay", "CONNECT" if is_pg(server) else "SELECT")]
    wide.sync(**account(user, grants=rights))
    narrow = make_probe(server.target("db", allowedDatabases=["shop"], allowAdoption=["*"]))
    there = account(user, uid="uid-staging", adopt=True, policy="Additive", cluster=STAGING)
    report = narrow.fails("sync", "EXISTS", **there)
    assert "more than the target allows" in report["error"] and f"{user}_pay" in report["error"]
    again = account(user, uid="uid-2", adopt=True)  # of the same cluster
    assert wide.sync(**again)["adopted"]
    wide.drop(**again)
    one(wide, "undatabases", wants(user, f"{user}_pay"))


@pytest.mark.every_version("how accounts and databases are marked")
def test_marks_of_former_version_get_the_cluster(make_probe, server, user):
    """Marks without a cluster: the object with their UID completes them, and no other takes them."""
    probe = make_probe(server.target("db", **ALL))
    make_both(probe, server, user)
    forget_cluster(server, user)
    other = {"cluster": STAGING, "uid": "uid-staging"}
    former = {"uid": "uid-2"}  # of this cluster, perhaps: nothing tells
    for them in (other, former):
        report = probe.fails("sync", "NOT_OURS", **account(user, **them))
        assert "a former version did not note" in report["error"]
        report = one(probe, "databases", {**wants(user, f"{user}_d"), **them})
        assert report["trouble"] == "NOT_OURS" and "did not note" in report["error"]
        assert not one(probe, "undatabases", {**wants(user, f"{user}_d"), **them})["dropped"]
    report = probe.sync(**account(user))
    assert report["owned"] and not report["adopted"] and not report["password_changed"]
    assert one(probe, "databases", wants(user, f"{user}_d"))["owned"]
    assert marked(server, "accounts", user) == marked(server, "databases", f"{user}_d") == [[CLUSTER]]
    settled = probe.sync(**account(user))["statements"]
    assert settled == probe.sync(**account(user))["statements"] <= 2
    assert has_table(server, f"{user}_d")
    forget_cluster(server, user)  # the object ends before its mark is complete
    assert one(probe, "undatabases", wants(user, f"{user}_d"))["dropped"]
    probe.drop(**account(user))
    assert f"{user}_d" not in names(server) and not server.logs_in(user, "s3cret-Pa55")


def test_missing_mark_column_is_added_after_a_crash(make_probe, hosted, user):
    """MySQL and MariaDB: only one of the two tables has the column yet, or the admin may not add it."""
    target = hosted.target("db", **ALL)
    probe = make_probe(target)
    make_both(probe, hosted, user)
    hosted.sql("ALTER TABLE steward.databases DROP COLUMN cluster")
    assert one(probe, "databases", wants(user, f"{user}_d"))["owned"]
    assert marked(hosted, "databases", f"{user}_d") == [[CLUSTER]]
    admin = f"low{user}"
    hosted.sql(f"CREATE USER {admin}@'%' IDENTIFIED BY '{hosted.admin_file.read_text().strip()}'; "
               f"GRANT CREATE USER, RELOAD ON *.* TO {admin}@'%'; GRANT SELECT ON mysql.* TO {admin}@'%'; GRANT "
               f"CREATE, SELECT, INSERT, UPDATE, DELETE ON steward.* TO {admin}@'%'")
    low = make_probe(hosted.target("db", **ALL, admin={"user": admin,
                                                       "passwordFile": str(hosted.admin_file)}))
    forget_cluster(hosted, user)
    report = low.fails("sync", "DENIED", **account(user))
    assert 'may not add the column "cluster"' in report["error"]
    assert "ALL PRIVILEGES ON steward.*" in report["error"]
    assert one(probe, "undatabases", wants(user, f"{user}_d"))["dropped"]
    probe.drop(**account(user))


@pytest.mark.every_version("how accounts and databases are marked")
def test_unknown_cluster_uid_changes_nothing(make_probe, server, user):
    """A caller that does not know its cluster changes nothing, of its own either."""
    probe = make_probe(server.target("db", **ALL))
    make_both(probe, server, user)
    for cluster in ("", None, "x" * 128):
        for op in OPS:
            for name in (user, f"{user}x"):
                report = probe.fails(op, "LOOKUP", **account(name, "n3w-Pa55", cluster=cluster))
                assert "identity of the cluster is not known" in report["error"]
        for op in ("databases", "undatabases", "schemas"):
            for name in (f"{user}_d", f"{user}_x"):
                report = one(probe, op, wants(user, name, cluster=cluster))
                assert report["trouble"] == "LOOKUP" and not report["owned"] and not report["dropped"]
    assert server.logs_in(user, "s3cret-Pa55") and has_table(server, f"{user}_d")
    assert not {f"{user}_x"} & names(server) and not server.logs_in(f"{user}x", "n3w-Pa55")
    assert [r["dropped"] for r in each(probe, "undatabases", wants(user, f"{user}_d"))] == [True]
    probe.drop(**account(user))


def found(probe, user, cluster=CLUSTER):
    """The marks that a sweep reads, of this test: {(name, host)}."""
    report = probe.ask("marks", cluster=cluster)
    assert report["result"] == 0 and not report["more"], report
    assert report["count"] == len(report["marks"])
    return {(m["name"], m["host"], m["owner"], m["uid"]) for m in report["marks"]
            if m["name"].startswith(user)}


@pytest.mark.every_version("how accounts and databases are marked")
def test_marks_of_retained_accounts_are_not_listed(make_probe, server, user):
    """A sweep reads the marks of this cluster.  What an object left on purpose, a locked account or a
    retained database, is not in the list, until an object has it again."""
    probe = make_probe(server.target("db", **ALL))
    make_both(probe, server, user)
    of_object = (f"shop/{user}", "uid-1"), (f"shop/{user}", f"uid-{user}")
    both = {(user, "" if is_pg(server) else "%", *of_object[0]), (f"{user}_d", "", *of_object[1])}
    assert found(probe, user) == both and not found(probe, user, STAGING)
    assert not found(probe, user, CLUSTER[:-1]) and not found(probe, user, "5a7e%")
    probe.ask("lock", **account(user))  # as long as its databases are dropped
    assert found(probe, user) == both
    one(probe, "undatabases", wants(user, {"name": f"{user}_d", "keep": True}))
    assert {m[0] for m in found(probe, user)} == {user} and has_table(server, f"{user}_d")
    assert probe.ask("lock", **account(user, keep=True))["result"] == 0
    assert not found(probe, user) and not server.logs_in(user, "s3cret-Pa55")
    later = {"uid": "uid-2", "adopt": True}
    probe.sync(**account(user, **later))
    assert one(probe, "databases", wants(user, f"{user}_d", **later))["owned"]
    assert {(m[0], m[3]) for m in found(probe, user)} == {(user, "uid-2"), (f"{user}_d", "uid-2")}
    assert server.logs_in(user, "s3cret-Pa55")
    assert one(probe, "undatabases", wants(user, f"{user}_d", **later))["dropped"]
    probe.drop(**account(user, **later))
    assert not found(probe, user)


def test_manually_dropped_retained_database_has_no_mark(make_probe, server, user):
    """Retained, then dropped by a DBA: the object's end removes what is left of its mark."""
    probe = make_probe(server.target("db", **ALL))
    make_both(probe, server, user)
    server.sql(f"DROP DATABASE {user}_d")
    one(probe, "undatabases", wants(user, {"name": f"{user}_d", "keep": True}))
    assert {m[0] for m in found(probe, user)} == {user}
    probe.drop(**account(user))


@pytest.mark.every_version("how accounts and databases are marked")
def test_marks_are_listed_in_pages(make_probe, server, user):
    """More than one answer has: each mark once.  Marks of other forms are left out."""
    probe, many = make_probe(server.target("db", **ALL)), 1500
    if is_pg(server):
        mark = f'{{"steward":1,"cluster":"{STAGING}","owner":"shop/\' || n || \'","uid":"u","rights":[]}}'
        server.sql("DO $$DECLARE n int; BEGIN FOR n IN 1.." + f"{many} LOOP EXECUTE format('CREATE ROLE "
                   f"{user}_%s', n); EXECUTE format('COMMENT ON ROLE {user}_%s IS %L', n, '{mark}'); "
                   "END LOOP; END$$")
        server.sql(f"CREATE ROLE {user}_odd; COMMENT ON ROLE {user}_odd IS "
                   f"'{{\"steward\":1,\"cluster\":\"{STAGING}\",broken'")
    else:
        probe.sync(**account(user))
        rows = ",".join(f"('{user}_{n % 700}','10.{n}','shop/{n}','u','owned','','[]','{STAGING}')"
                        for n in range(1, many + 1))
        server.sql("INSERT INTO steward.accounts (user,host,owner,owner_uid,state,made,rights,cluster) "
                   f"VALUES {rows}")
    marks = found(probe, f"{user}_", STAGING)
    assert {m[2] for m in marks} == {f"shop/{n}" for n in range(1, many + 1)} and len(marks) == many
    if is_pg(server):
        server.sql("DO $$DECLARE r name; BEGIN FOR r IN SELECT rolname FROM pg_roles WHERE rolname LIKE "
                   f"'{user}\\_%' LOOP EXECUTE format('DROP ROLE %I', r); END LOOP; END$$")
    else:
        server.sql(f"DELETE FROM steward.accounts WHERE cluster = '{STAGING}'")
        probe.drop(**account(user))


def test_forged_database_mark_is_not_listed(make_probe, pg, user):
    """A tenant that owns a database could write any comment: the sweep does not read it."""
    probe = make_probe(pg.target("db", **ALL))
    mark = f'{{"steward":1,"cluster":"{CLUSTER}","owner":"shop/victim","uid":"u","rights":[]}}'
    pg.sql(f"CREATE ROLE {user}_tenant")
    pg.sql(f"CREATE DATABASE {user}_trap OWNER {user}_tenant")
    pg.sql(f"SET ROLE {user}_tenant; COMMENT ON DATABASE {user}_trap IS '{mark}'")
    assert not found(probe, user)
