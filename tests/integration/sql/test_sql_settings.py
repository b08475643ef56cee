# SPDX-License-Identifier: Apache-2.0
"""Settings of accounts of PostgreSQL: what the object asks for, and none that a tenant could not set."""

import pytest

from support import dbserver
from support.sqlprobe import account

PASSWORD = "s3cret-Pa55"
KEEP = 1  # STW_LOGIN_KEEP
ALLOWED = ["search_path", "statement_timeout", "lock_timeout", "work_mem", "timezone"]


def setting(name, value, database=None):
    """One entry of settings."""
    return {"name": name, "value": value, "database": database}


def stored(pg, role):
    """What the server has: {(database, name): value}."""
    rows = pg.sql("SELECT coalesce(d.datname, ''), unnest(setconfig) FROM pg_db_role_setting s LEFT JOIN "
                  f"pg_database d ON d.oid = s.setdatabase WHERE setrole = '{role}'::regrole")
    return {(row[0], row[1].split("=")[0]): row[1].split("=", 1)[1] for row in rows
            if not row[1].startswith("role=")}


@pytest.mark.every_version("pg_db_role_setting and how it stores lists")
def test_settings_are_set_and_repaired(make_probe, pg, user):
    """Those of a DBA that the target does not allow stay; the allowed ones that are not asked for go."""
    probe = make_probe(pg.target("db", allowedSettings=ALLOWED))
    pg.sql(f"CREATE DATABASE {user}_d")
    odd = 'a"b,c \\ d\'e'
    wanted = account(user, settings=[
        setting("search_path", f'App,user , "{odd.replace(chr(34), chr(34) * 2)}"'),
        setting("statement_timeout", "5s"), setting("lock_timeout", "3s", f"{user}_d"),
        setting("timezone", "Europe/Berlin"), setting("work_mem", "8MB")])
    assert probe.sync(**wanted)["created"]
    shown = pg.run_client("SHOW search_path; SHOW statement_timeout; SHOW lock_timeout; SHOW timezone; "
                          "SHOW work_mem", user=user, password=PASSWORD, database=f"{user}_d", tcp=True).stdout
    assert shown.splitlines() == [f'"App", "user", "{odd.replace(chr(34), chr(34) * 2)}"', "5s", "3s",
                                  "Europe/Berlin", "8MB"]
    before = stored(pg, user)
    report = probe.sync(**wanted)
    assert report["statements"] == 2 and not report["options_changed"]  # two lookups

    pg.sql(f"ALTER ROLE {user} SET statement_timeout = 0; ALTER ROLE {user} RESET search_path; ALTER ROLE "
           f"{user} SET log_statement = 'all'; ALTER ROLE {user} SET lock_timeout = '9s'")
    assert probe.sync(**wanted)["options_changed"]
    assert stored(pg, user) == before | {("", "log_statement"): "all"}
    assert not probe.sync(**wanted)["options_changed"]

    pg.sql(f"ALTER ROLE {user} SET lock_timeout = '9s'")
    assert not probe.sync(**account(user))["options_changed"]  # they are not named at all
    assert probe.sync(**account(user, settings=[]))["options_changed"]
    assert stored(pg, user) == {("", "log_statement"): "all"}


@pytest.mark.every_version("contexts of settings")
def test_superuser_only_setting_is_never_set(make_probe, pg, user):
    """A careless list of the target, and an admin that is a superuser, whose ALTER ROLE the server takes."""
    attacks = ["zero_damaged_pages", "temp_file_limit", "dynamic_library_path", "track_activities",
               "no_such_setting"]
    probe = make_probe(pg.target("db", allowedSettings=[*attacks, "work_mem"]))
    pg.sql(f"CREATE ROLE {user}_other; ALTER ROLE {user}_other SET zero_damaged_pages = on")  # it would be taken
    for attack in attacks:
        report = probe.fails("sync", "DENIED", **account(
            user, settings=[setting(attack, "on"), setting("work_mem", "8MB")]))
        assert f'"{attack}" is not set' in report["error"] and report["login_done"], report
    assert stored(pg, user) == {("", "work_mem"): "8MB"}
    # Not in the list of the target; steward's own rules refuse these before.
    for attack in ("role", "session_preload_libraries", "log_statement", "search_path"):
        probe.fails("sync", "DENIED", **account(user, settings=[setting(attack, "x")]))
    assert stored(pg, user) == {}
    pg.sql(f"DROP ROLE {user}_other")


def test_huge_setting_does_not_block_password_or_drop(make_probe, pg, user):
    """An account sets its own search_path to any length.  It is not read as a whole, and is repaired."""
    probe = make_probe(pg.target("db", allowedSettings=ALLOWED))
    wanted = {"settings": [setting("work_mem", "8MB")]}
    probe.sync(**account(user, **wanted))
    # ALTER ROLE takes seconds for that.
    pg.sql("UPDATE pg_db_role_setting SET setconfig = setconfig || ('search_path=' || repeat('a', 70 << 20)) "
           f"WHERE setrole = '{user}'::regrole")
    report = probe.sync(**account(user, "n3w-Pa55word", **wanted))
    assert report["password_changed"] and report["options_changed"], report
    assert stored(pg, user) == {("", "work_mem"): "8MB"}
    probe.drop(**account(user, **wanted))


def test_unreadable_settings_do_not_block_the_password(make_probe, pg, user):
    """The server may refuse or fail to unpack them."""
    pg.sql(f"CREATE ROLE low{user} LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'")
    probe = make_probe(pg.target("db", allowedSettings=ALLOWED, admin={
        "user": f"low{user}", "passwordFile": str(pg.admin_file)}))
    wanted = {"settings": [setting("work_mem", "8MB")]}
    probe.sync(**account(user, **wanted))
    pg.sql("REVOKE SELECT ON pg_db_role_setting FROM PUBLIC")
    try:
        report = probe.fails("sync", "DENIED", **account(user, "n3w-Pa55word", **wanted))
        assert report["password_changed"] and "cannot be read" in report["error"]
        probe.drop(**account(user, **wanted))
    finally:
        pg.sql("GRANT SELECT ON pg_db_role_setting TO PUBLIC")
    pg.sql(f"DROP ROLE low{user}")


def test_refused_setting_is_reported(make_probe, pg, user):
    """A value that is not valid and a database that does not exist; all else is done."""
    probe = make_probe(pg.target("db", allowedSettings=ALLOWED))
    for bad in (setting("work_mem", "eight'; DROP ROLE x"), setting("work_mem", "8MB", f"{user}_none")):
        for _ in range(2):
            report = probe.fails("sync", "DENIED", **account(user, settings=[
                bad, setting("statement_timeout", "5s")]))
            assert f'ALTER ROLE "{user}"' in report["error"] and report["login_done"], report
        assert stored(pg, user) == {("", "statement_timeout"): "5s"}


def test_settings_apply_to_both_logins(make_probe, pg, user):
    """From the role that they act as."""
    probe = make_probe(pg.target("db", allowedSettings=ALLOWED))
    for value in ("app, public", "other"):
        probe.sync(**account(user, login=KEEP, settings=[setting("search_path", value)]))
        for twin in (f"{user}_a", f"{user}_b"):
            probe.sync(**account(twin, acts_as=user, owner=f"shop/{user}"))
            assert stored(pg, twin) == {("", "search_path"): value}
    # A login does not wait for its role.
    probe.sync(**account(f"{user}_a", acts_as=user, owner=f"shop/{user}",
                         settings=[setting("search_path", "third")]))
    assert stored(pg, f"{user}_a") == {("", "search_path"): "third"}
    for role in (f"{user}_a", f"{user}_b"):
        probe.drop(**account(role, owner=f"shop/{user}"))
    probe.drop(**account(user))
