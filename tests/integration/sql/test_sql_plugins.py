# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: the plugin that checks the password of an account."""

import base64
import hashlib
import subprocess

import pytest

from support import sampled
from support.mariadb import quote
from support.sqlprobe import account

ONE, TWO, THREE = "first-Passw0rd-1", "second-Passw0rd-2", "third-Passw0rd-3"
LOADED = {"10.11": ("ed25519",), "11.8": ("ed25519", "parsec")}


@pytest.fixture
def maria_loaded(make_mariadb, mariadb_line):
    """A MariaDB server with all plugins of its version that check passwords, and their names."""
    plugins = LOADED[mariadb_line]
    flags = [f"--plugin-load-add=auth_{plugin}" for plugin in plugins]
    return make_mariadb(*flags), (*plugins, "mysql_native_password")


def stored(server, user):
    """The plugin and the verifier of the account on the server."""
    if server.engine == "mysql":
        rows = server.sql(f"SELECT plugin, HEX(authentication_string) FROM mysql.user "
                          f"WHERE User={quote(user)}")
    else:
        rows = server.sql("SELECT JSON_VALUE(Priv, '$.plugin'), "
                          "HEX(JSON_VALUE(Priv, '$.authentication_string')) "
                          f"FROM mysql.global_priv WHERE User={quote(user)}")
    return rows[0][0], bytes.fromhex(rows[0][1])


def is_parsec_of(verifier, password):
    """Whether the salt and the iterations of the verifier give its key, by another implementation."""
    head, salt, key = verifier.decode().split(":")
    seed = hashlib.pbkdf2_hmac("sha512", password.encode(), base64.b64decode(salt),
                               1024 << int(head[1:]), 32)
    pem = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"],
                         input=bytes.fromhex("302e020100300506032b657004220420") + seed, check=True,
                         capture_output=True).stdout
    return base64.b64encode(pem[-32:]).decode().rstrip("=") == key


def works(server, user, password):
    """Whether the password logs in; the client of these machines has no parsec."""
    plugin, verifier = stored(server, user)
    if plugin == "parsec":
        return is_parsec_of(verifier, password)
    return server.logs_in(user, password)


def check_life(probe, server, user, plugin):
    """Creates an account with the plugin, changes its password, and repairs what others changed."""
    probe.sync(**account(user, ONE), auth_plugin=plugin)
    assert stored(server, user)[0] == plugin and works(server, user, ONE)
    assert probe.sync(**account(user, ONE), auth_plugin=plugin)["statements"] == 1
    report = probe.sync(**account(user, TWO), auth_plugin=plugin)
    assert report["password_changed"] and not report["plugin_changed"]
    assert stored(server, user)[0] == plugin
    assert works(server, user, TWO) and not works(server, user, ONE)
    assert probe.sync(**account(user, TWO), auth_plugin=plugin)["statements"] == 1
    probe.drop(**account(user))


@pytest.mark.every_version("statements and verifiers of plugins")
def test_mariadb_account_with_each_plugin(make_probe, maria_loaded, user):
    """Each plugin of a server of MariaDB."""
    server, plugins = maria_loaded
    probe = make_probe(server.target("db"))
    for plugin in plugins:
        check_life(probe, server, user, plugin)
    heard = probe.heard() + (server.folder / "general.log").read_text("utf-8", "replace")
    assert ONE not in heard and TWO not in heard


@pytest.mark.every_version("statements and verifiers of plugins")
def test_mysql_account_with_each_plugin(make_probe, mysql, user):
    """Each plugin of a server of MySQL that it has loaded."""
    probe = make_probe(mysql.target("db"))
    for plugin in ("caching_sha2_password", "sha256_password"):
        check_life(probe, mysql, user, plugin)


@pytest.mark.every_version("statements and verifiers of plugins")
def test_verifier_made_by_the_server_is_recognized(make_probe, maria_loaded, user):
    """A password that the server itself hashed, with a salt of its own, is not written again."""
    server, plugins = maria_loaded
    probe = make_probe(server.target("db"))
    for plugin in plugins:
        probe.sync(**account(user, ONE), auth_plugin=plugin)
        server.sql(f"ALTER USER {quote(user)}@'%' IDENTIFIED VIA {plugin} USING "
                   f"PASSWORD({quote(ONE)})")
        assert probe.sync(**account(user, ONE), auth_plugin=plugin)["statements"] == 1
        assert probe.sync(**account(user, TWO), auth_plugin=plugin)["password_changed"]
        probe.drop(**account(user))


@pytest.mark.every_version("statements and verifiers of plugins")
def test_mariadb_plugin_change_keeps_the_password(make_probe, maria_loaded, user):
    """The password stays, from each plugin to each other one; a way that another client added ends."""
    server, plugins = maria_loaded
    probe = make_probe(server.target("db"))
    probe.sync(**account(user, ONE))
    for plugin in (*plugins, *reversed(plugins)):
        report = probe.sync(**account(user, ONE), auth_plugin=plugin)
        assert not report["password_changed"]
        assert stored(server, user)[0] == plugin and works(server, user, ONE)
        server.sql(f"ALTER USER {quote(user)}@'%' IDENTIFIED VIA unix_socket OR {plugin} USING "
                   f"PASSWORD({quote(ONE)})")
        assert probe.sync(**account(user, ONE), auth_plugin=plugin)["plugin_changed"]
        assert "unix_socket" not in server.sql(f"SHOW CREATE USER {quote(user)}@'%'")[0][0]
        assert probe.sync(**account(user, ONE), auth_plugin=plugin)["statements"] == 1


@pytest.mark.every_version("statements and verifiers of plugins")
def test_mysql_plugin_change_keeps_the_password(make_probe, mysql, user):
    """The password stays, and what another client changed is repaired, with its password or not."""
    probe = make_probe(mysql.target("db"))
    probe.sync(**account(user, ONE))
    for plugin in ("sha256_password", "caching_sha2_password"):
        report = probe.sync(**account(user, ONE), auth_plugin=plugin)
        assert report["plugin_changed"] and not report["password_changed"]
        assert stored(mysql, user)[0] == plugin and mysql.logs_in(user, ONE)
    for password in (ONE, TWO):
        mysql.sql(f"ALTER USER {quote(user)}@'%' IDENTIFIED WITH sha256_password BY "
                  f"{quote(password)}")
        report = probe.sync(**account(user, ONE), auth_plugin="caching_sha2_password")
        assert report["plugin_changed"] and report["password_changed"] == (password == TWO)
        assert stored(mysql, user)[0] == "caching_sha2_password"
        assert mysql.logs_in(user, ONE) and not mysql.logs_in(user, TWO)


@pytest.mark.every_version("the numbers of the servers' errors")
def test_unloaded_plugin_is_reported(make_probe, hosted, user):
    """Neither made nor changed: the account stays as it is, and the trouble is not another one."""
    plugin = "mysql_native_password" if hosted.engine == "mysql" else "ed25519"
    probe = make_probe(hosted.target("db"))
    report = probe.fails("sync", "NO_PLUGIN", **account(user, ONE), auth_plugin=plugin)
    assert "plugin" in report["error"] and not hosted.accounts(user)
    probe.sync(**account(user, ONE))
    before = stored(hosted, user)
    for password in (ONE, TWO):
        report = probe.fails("sync", "NO_PLUGIN", **account(user, password), auth_plugin=plugin)
        assert "plugin" in report["error"] and password not in report["error"]
    assert stored(hosted, user) == before
    assert ONE not in probe.heard() and TWO not in probe.heard()


@pytest.mark.parametrize("plugin", [None, "ed25519", "mysql_native_password"])
def test_password_policy_applies_with_a_plugin(make_probe, make_mariadb, user, plugin):
    """The server checks what it is sent; a named plugin does not avoid its policy."""
    maria = make_mariadb("--plugin-load-add=auth_ed25519", "--plugin-load-add=simple_password_check")
    probe = make_probe(maria.target("db"))
    report = probe.fails("sync", "POLICY", **account(user, "short"), auth_plugin=plugin)
    assert "short" not in report["error"] and not maria.accounts(user)
    probe.sync(**account(user, "Long-3nough-Pass"), auth_plugin=plugin)
    assert maria.logs_in(user, "Long-3nough-Pass")
    report = probe.sync(**account(user, "Long-3nough-Pass"), auth_plugin=plugin)
    assert report["statements"] == 1


def test_mysql_plugin_change_waits_for_the_old_password(make_probe, mysql, user):
    """MySQL ends the old password together with its plugin, so the change waits for its end."""
    probe = make_probe(mysql.target("db"))
    new = {"auth_plugin": "sha256_password"}
    probe.sync(**account(user, ONE))
    probe.sync(**account(user, TWO), keep_old=True, old_stays=True)
    report = probe.sync(**account(user, TWO), old_stays=True, **new)
    assert report["plugin_waits"] and report["old_valid"] and report["statements"] == 1
    assert mysql.logs_in(user, ONE) and mysql.logs_in(user, TWO)
    # Neither a newer password nor the older one again is set meanwhile.
    for password in (THREE, ONE):
        report = probe.sync(**account(user, password), keep_old=True, old_stays=True, **new)
        assert report["password_waits"] and report["statements"] == 1
    report = probe.sync(**account(user, TWO), discard_old=True, **new)
    assert report["old_discarded"] and report["plugin_changed"] and not report["old_valid"]
    assert stored(mysql, user)[0] == "sha256_password"
    assert mysql.logs_in(user, TWO) and not mysql.logs_in(user, ONE)
    # With its new plugin it keeps an old password as before.
    report = probe.sync(**account(user, THREE), keep_old=True, old_stays=True, **new)
    assert report["password_changed"] and report["old_valid"]
    assert mysql.logs_in(user, TWO) and mysql.logs_in(user, THREE)


def test_plugin_repair_is_immediate(make_probe, mysql, user):
    """Another client replaced the password and its plugin: clients need the right one at once."""
    probe = make_probe(mysql.target("db"))
    old = {"auth_plugin": "caching_sha2_password", "old_stays": True}
    probe.sync(**account(user, ONE), **old)
    probe.sync(**account(user, TWO), keep_old=True, **old)
    mysql.sql(f"ALTER USER {quote(user)}@'%' IDENTIFIED WITH sha256_password BY {quote(THREE)}; "
              f"ALTER USER {quote(user)}@'%' IDENTIFIED BY {quote(THREE + 'x')} "
              "RETAIN CURRENT PASSWORD")
    report = probe.sync(**account(user, TWO), **old)
    assert report["password_changed"] and report["plugin_changed"] and not report["old_valid"]
    assert stored(mysql, user)[0] == "caching_sha2_password"
    assert mysql.logs_in(user, TWO) and not mysql.logs_in(user, THREE)


def test_mysql_plugin_and_password_change_together_is_refused(make_probe, mysql, user):
    """MySQL keeps no password of another plugin: nothing is changed, and it is said."""
    probe = make_probe(mysql.target("db"))
    probe.sync(**account(user, ONE))
    report = probe.fails("sync", "UNSUPPORTED", **account(user, TWO), keep_old=True, old_stays=True,
                         auth_plugin="sha256_password")
    assert "one after the other" in report["error"]
    assert mysql.logs_in(user, ONE) and not mysql.logs_in(user, TWO)
    probe.sync(**account(user, TWO), auth_plugin="sha256_password")
    assert mysql.logs_in(user, TWO) and not mysql.logs_in(user, ONE)


@pytest.mark.parametrize("die_after", [1, 2])
def test_kill_after_each_statement_is_completed(make_probe, mysql, user, die_after):
    """One of two hosts has the new plugin, or both: the next run ends the work."""
    hosts = ["%", "10.0.0.1"]
    make_probe(mysql.target("db")).sync(**account(user, ONE, hosts=hosts))
    dying = make_probe(mysql.target("db"), die_after=die_after)
    assert dying.ask("sync", **account(user, ONE, hosts=hosts),
                     auth_plugin="sha256_password") is None
    assert mysql.logs_in(user, ONE)
    report = make_probe(mysql.target("db")).sync(**account(user, ONE, hosts=hosts),
                                                 auth_plugin="sha256_password")
    assert report["plugin_changed"] == (die_after == 1)
    assert mysql.sql(f"SELECT DISTINCT plugin FROM mysql.user WHERE User={quote(user)}") == \
        [["sha256_password"]]


def test_adopted_account_gets_the_plugin(make_probe, mysql, user):
    """An account that is taken over gets the plugin, too."""
    mysql.sql(f"CREATE USER {quote(user)}@'%' IDENTIFIED WITH sha256_password BY {quote(ONE)}")
    probe = make_probe(mysql.target("db", allowAdoption=["*"]))
    report = probe.sync(**account(user, ONE, adopt=True), auth_plugin="caching_sha2_password")
    assert report["adopted"] and stored(mysql, user)[0] == "caching_sha2_password"
    assert mysql.logs_in(user, ONE)


def test_all_mariadb_lines_have_known_plugins():
    """The plugins of each line of MariaDB are known here."""
    assert set(LOADED) == set(sampled.lines("MARIADB"))
