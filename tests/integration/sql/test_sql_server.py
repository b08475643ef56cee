# SPDX-License-Identifier: Apache-2.0
"""What `steward doctor` asks a database server: version, TLS, and the rights that the admin lacks."""

import pytest

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
def test_statements_give_what_the_admin_lacks(make_probe, server, user):
    """Each missing right is named with a statement; after these statements none is missing, and accounts
    can be made."""
    target = server.target("db", admin=make_admin(server, f"low{user}"), allowCreateDatabases=["*"])
    probe = make_probe(target)
    report = probe.ask("server")
    assert report["result"] == 0 and report["version"] and not report["by_role"], report
    wanted = ({"CREATEROLE", "CREATEDB", "pg_signal_backend"} if is_pg(server) else
              {"CREATE USER", "CONNECTION", "SELECT ON mysql", "ALL PRIVILEGES ON steward"})
    for right in wanted:
        assert [m for m in report["missing"] if right in m["statement"]], (right, report)
    for missing in report["missing"]:
        server.sql(missing["statement"])
    again = make_probe(target)
    assert again.ask("server")["missing"] == []
    again.sync(**account(user))
    again.drop(**account(user))


@pytest.mark.every_version("names of rights, and the catalogues that show them")
def test_an_admin_lacks_nothing(make_probe, server):
    """The server's own superuser, over a connection with TLS and one without."""
    report = make_probe(server.target("db")).ask("server")
    assert report["result"] == 0 and report["missing"] == [] and report["tls"] == "TLSv1.3", report
    report = make_probe(server.target("db", tls={"mode": "Disable"})).ask("server")
    if is_pg(server):  # its pg_hba.conf takes no login without TLS
        assert report["trouble"] == "AUTH" and "pg_hba.conf" in report["error"], report
    else:
        assert report["trouble"] == "FINE" and report["tls"] == "", report


def test_what_keeps_doctor_from_asking(make_probe, server, tmp_path):
    """A wrong password, and a server that is not there."""
    wrong = tmp_path / "wrong"
    wrong.write_text("wr0ng-Pa55")
    admin = {**server.target("db")["admin"], "passwordFile": str(wrong)}
    report = make_probe(server.target("db", admin=admin)).ask("server")
    assert report["result"] == -1 and report["trouble"] == "AUTH" and "wr0ng" not in str(report)
    report = make_probe(server.target("db", port=9)).ask("server")
    assert report["result"] == -1 and report["trouble"] == "CONNECT"
