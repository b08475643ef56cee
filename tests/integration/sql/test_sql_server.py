# SPDX-License-Identifier: Apache-2.0
"""What `steward doctor` asks a database server: version, TLS, and the rights that the admin lacks."""

import os

import pytest
from support import dbserver, postgres
from support.sqlprobe import account


def is_pg(server):
    return server.engine == "postgresql"


def make_admin(server, name):
    """An account that may log in, and nothing else."""
    password = server.admin_file.read_text("utf-8").strip()
    server.sql(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'" if is_pg(server) else
               f"CREATE USER {name}@'%' IDENTIFIED BY '{password}'")
    return {"user": name, "passwordFile": str(server.admin_file)}


@pytest.mark.every_version("names of rights, and the catalogues that show them")
def test_suggested_statements_give_missing_rights(make_probe, server, user):
    """Each missing right is named with a statement; after these statements none is missing, and accounts
    can be made."""
    target = server.target("db", admin=make_admin(server, f"low{user}"), allowCreateDatabases=["*"])
    probe = make_probe(target)
    report = probe.ask("server")
    assert report["result"] == 0 and report["version"] and not report["by_role"], report
    wanted = ({"CREATEROLE", "CREATEDB", "pg_signal_backend"} if is_pg(server) else
              {"CREATE USER", "CONNECTION", "SELECT ON mysql", "ALL PRIVILEGES ON steward", "PROCESS",
               *(["RELOAD"] if server.engine == "mariadb" else [])})
    for right in wanted:
        assert [m for m in report["missing"] if right in m["statement"]], (right, report)
    assert is_pg(server) == any("holds up all logins" in m["what"] for m in report["missing"]), report
    for missing in report["missing"]:
        server.sql(missing["statement"])
    again = make_probe(target)
    assert again.ask("server")["missing"] == []
    again.sync(**account(user))
    again.drop(**account(user))


@pytest.mark.every_version("names of rights, and the catalogues that show them")
def test_right_to_see_logins_of_sessions_is_named(make_probe, make_hosted, user):
    """Where performance_schema is on, it has to be readable."""
    server = make_hosted("--performance-schema=ON")
    target = server.target("db", admin=make_admin(server, f"low{user}"))
    missing = make_probe(target).ask("server")["missing"]
    assert [one for one in missing if "ON performance_schema.threads" in one["statement"]], missing
    for one in missing:
        server.sql(one["statement"])
    assert make_probe(target).ask("server")["missing"] == []


@pytest.mark.every_version("names of rights, and the catalogues that show them")
def test_superuser_admin_lacks_nothing(make_probe, server):
    """The server's own superuser, over a connection with TLS and one without."""
    report = make_probe(server.target("db")).ask("server")
    assert report["result"] == 0 and report["missing"] == [] and report["tls"] == "TLSv1.3", report
    report = make_probe(server.target("db", tls={"mode": "Disable"})).ask("server")
    if is_pg(server):  # its pg_hba.conf takes no login without TLS
        assert report["trouble"] == "AUTH" and "pg_hba.conf" in report["error"], report
    else:
        assert report["trouble"] == "FINE" and report["tls"] == "", report


def test_wrong_password_and_dead_server_are_reported(make_probe, server, tmp_path):
    """A wrong password, and a server that is not there."""
    wrong = tmp_path / "wrong"
    wrong.write_text("wr0ng-Pa55")
    admin = {**server.target("db")["admin"], "passwordFile": str(wrong)}
    report = make_probe(server.target("db", admin=admin)).ask("server")
    assert report["result"] == -1 and report["trouble"] == "AUTH" and "wr0ng" not in str(report)
    report = make_probe(server.target("db", port=9)).ask("server")
    assert report["result"] == -1 and report["trouble"] == "CONNECT"


def make_certified_admin(server):
    """An admin without a password; its certificate has to have its name."""
    name = postgres.CERTIFIED
    server.sql(f"CREATE ROLE {name} SUPERUSER LOGIN" if is_pg(server) else
               f"CREATE USER {name}@'%' REQUIRE SUBJECT '/CN={name}'; GRANT ALL ON *.* TO {name}@'%' WITH "
               "GRANT OPTION")
    return name


def drop_certified_admin(server):
    server.sql(f"DROP OWNED BY {postgres.CERTIFIED}; DROP ROLE {postgres.CERTIFIED}" if is_pg(server) else
               f"DROP USER {postgres.CERTIFIED}@'%'")


def make_admin_pair(server, folder, subject=f"/CN={postgres.CERTIFIED}", **more):
    """A certificate and a key of the server's CA, as admin of a target names them."""
    dbserver.make_pair(server.ca.parent, folder, subject=subject, **more)
    os.chmod(folder / "tls.key", 0o600)
    return {"user": postgres.CERTIFIED, "certificateFile": f"{folder}/tls.crt",
            "keyFile": f"{folder}/tls.key"}


@pytest.mark.every_version("the protocol of the login")
def test_admin_logs_in_with_a_certificate(make_probe, server, tmp_path, user):
    """Without a password; another certificate is refused, and the files are read again for each login."""
    make_certified_admin(server)
    admin = make_admin_pair(server, tmp_path / "pair")
    try:
        probe = make_probe(server.target("db", admin=admin))
        assert probe.ask("server")["result"] == 0
        probe.sync(**account(user))
        probe.drop(**account(user))
        make_admin_pair(server, tmp_path / "pair", subject="/CN=other")
        probe = make_probe(server.target("db", admin=admin))
        refused = probe.ask("server")
        assert refused["trouble"] == "AUTH" and postgres.CERTIFIED in refused["error"], refused
        assert probe.ask("server")["trouble"] == "CIRCUIT_OPEN"
        make_admin_pair(server, tmp_path / "pair")
        again = probe.ask("server")  # without a wait: the files are others
        assert again["result"] == 0 and again["tls"] == "TLSv1.3", again
        assert "PRIVATE" not in probe.heard()
    finally:
        drop_certified_admin(server)


@pytest.mark.every_version("the protocol of the login")
def test_admin_certificate_is_not_used_to_check_accounts(make_probe, pg, tmp_path, user):
    """An admin that may not read passwords compares one by a login.  With the admin's certificate, the
    server would let any password in, and a new one would not be set."""
    low = f"low{user}"
    pg.sql(f"CREATE ROLE {low} LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'; GRANT pg_signal_backend "
           f"TO {low}")
    admin = {**make_admin_pair(pg, tmp_path), "user": low, "passwordFile": str(pg.admin_file)}
    probe = make_probe(pg.target("db", admin=admin))
    probe.sync(**account(postgres.CERTIFIED))
    report = probe.sync(**account(postgres.CERTIFIED, "0ther-Pa55"), password_is_new=True)
    assert report["password_changed"], report
    probe.drop(**account(postgres.CERTIFIED))
    pg.sql(f"DROP OWNED BY {low} CASCADE; DROP ROLE {low}")


def test_bad_admin_certificate_names_the_file(make_probe, server, tmp_path):
    """The error names the file; the server is not asked."""
    good = make_admin_pair(server, tmp_path / "good")
    other = make_admin_pair(server, tmp_path / "other")
    stale = make_admin_pair(server, tmp_path / "stale", days=0)
    wide = make_admin_pair(server, tmp_path / "wide")
    os.chmod(wide["keyFile"], 0o644)
    (tmp_path / "text").write_text("not PEM")
    text = str(tmp_path / "text")
    cases = {"other": ({**good, "keyFile": other["keyFile"]},
                       f"{other['keyFile']} is not the key of {good['certificateFile']}"),
             "stale": (stale, f"{stale['certificateFile']} expired at 20"),
             "missing": ({**good, "keyFile": "/nowhere/tls.key"}, "cannot open /nowhere/tls.key"),
             "certificate": ({**good, "certificateFile": text}, f"{text} holds no certificate in PEM"),
             "key": ({**good, "keyFile": text}, f"{text} holds no private key in PEM")}
    if is_pg(server):
        cases["wide"] = (wide, f"{wide['keyFile']} has mode 0644")
    probe = make_probe(*(server.target(name, admin=admin) for name, (admin, _) in cases.items()))
    for name, (_, why) in cases.items():
        report = probe.ask("server", target=name)
        assert report["trouble"] == "AUTH" and f"the admin's certificate: {why}" in report["error"], report
    pipe = str(tmp_path / "pipe")  # to open it waits for ever
    os.mkfifo(pipe)
    more = {"key": {"admin": {**good, "keyFile": pipe}},
            "password": {"admin": {"user": "any", "passwordFile": pipe}},
            "ca": {"admin": good, "tls": {"mode": "VerifyFull", "caFile": pipe}}}
    probe = make_probe(*(server.target(name, **fields) for name, fields in more.items()))
    for name in more:
        report = probe.ask("server", target=name)
        assert report["trouble"] == "AUTH" and f"{pipe} is not a regular file" in report["error"], report
