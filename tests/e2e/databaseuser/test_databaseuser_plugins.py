# SPDX-License-Identifier: Apache-2.0
"""spec.authPlugin: the plugin that checks the password, chosen, refused, changed and repaired."""

import pytest
from support import databases, databaseuser as dbu
from support import dblogin, sampled, wait
from support.cluster import condition
from support.mariadb import quote

FIRST, SECOND, THIRD = "first-Passw0rd-1", "second-Passw0rd-2", "third-Passw0rd-3"
# Of each engine: one that is not the default, the default, and one that the server has not loaded.
NAMES = {"mysql": ("sha256_password", "caching_sha2_password", "mysql_native_password"),
         "mariadb": ("ed25519", "mysql_native_password", "parsec")}
SERVERS = [(databases.MySQL, sampled.newest("MYSQL"), ()),
           *((databases.MariaDB, line, ("--plugin-load-add=auth_ed25519",))
             for line in dict.fromkeys([sampled.newest("MARIADB"), sampled.oldest("MARIADB")]))]


@pytest.fixture(scope="module", params=SERVERS, ids=lambda s: f"{s[0].engine}-{s[1]}")
def server(request):
    """Each server in turn, with its plugins."""
    kind, line, flags = request.param
    if databases.missing(kind, line):
        pytest.skip(databases.missing(kind, line))
    one = kind(*flags, line=line)
    yield one
    one.close()


@pytest.fixture
def names(server):
    """See NAMES."""
    return NAMES[server.engine]


@pytest.fixture(scope="module")
def dbenv(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is the server, and allows its plugins."""
    yield from dbu.running_dbenv(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), server)


@pytest.fixture
def shop(dbenv, server, names, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    dbenv.write_targets(server.target("main", allowedAuthPlugins=list(names)))
    yield namespace
    dbenv.forget(namespace)


def plugin(server, user):
    """The plugin of the account; "" when there is none."""
    table, column = ("mysql.user", "plugin") if server.engine == "mysql" else \
        ("mysql.global_priv", "JSON_VALUE(Priv, '$.plugin')")
    rows = server.sql(f"SELECT {column} FROM {table} WHERE User={quote(user)}")
    return rows[0][0] if rows else ""


def set_plugin(server, user, name, password):
    """As an administrator."""
    how = f"WITH {name} BY {quote(password)}" if server.engine == "mysql" else \
        f"VIA {name} USING PASSWORD({quote(password)})"
    server.sql(f"ALTER USER {quote(user)}@'%' IDENTIFIED {how}")


def logs_in(server, cluster, shop):
    """Whether the login of the connection Secret works."""
    return server.login(*dblogin.connection(cluster, shop, "app-conn"))


def test_auth_plugin_is_set_changed_and_repaired(dbenv, server, shop, names):
    """The password stays the same through all of it."""
    other, default, _ = names
    dbenv.create("app", shop, FIRST, authPlugin=other, connectionSecret={"name": "app-conn"})
    assert plugin(server, "app") == other and logs_in(server, dbenv.cluster, shop)
    dbenv.patch("app", shop, authPlugin=default)
    wait.until("the other plugin", lambda: plugin(server, "app") == default)
    dbenv.wait_event("app", shop, "Updated", "plugin")
    assert logs_in(server, dbenv.cluster, shop)
    dbenv.wait_ready("app", shop)

    set_plugin(server, "app", other, FIRST)
    dbenv.poke("app", shop)
    wait.until("the repair", lambda: plugin(server, "app") == default)
    dbenv.wait_event("app", shop, "DriftRepaired", "plugin")
    set_plugin(server, "app", other, THIRD)
    dbenv.poke("app", shop)
    wait.until("the repair", lambda: plugin(server, "app") == default)
    assert logs_in(server, dbenv.cluster, shop) and not server.login("app", THIRD)

    # Without the field, an administrator decides.
    dbenv.patch("app", shop, authPlugin=None)
    dbenv.wait_ready("app", shop)
    set_plugin(server, "app", other, FIRST)
    dbenv.patch("app", shop, limits={"maxUserConnections": 7})
    dbenv.wait_ready("app", shop)
    assert plugin(server, "app") == other and logs_in(server, dbenv.cluster, shop)


def test_auth_plugin_outside_target_list_is_refused(dbenv, server, shop, names):
    """A tenant asks for a login that the administrator does not want; the account stays."""
    other, default, absent = names
    dbenv.write_targets(server.target("main", allowedAuthPlugins=[default]))
    dbenv.create("app", shop, FIRST, authPlugin=default)
    dbenv.patch("app", shop, authPlugin=other)
    stalled = dbenv.wait_condition("app", shop, "Stalled", "InvalidSpec")
    assert f'spec.authPlugin: Unsupported value: "{other}": supported values: "{default}"' \
        in stalled["message"]
    assert plugin(server, "app") == default and server.login("app", FIRST)
    dbenv.write_targets(server.target("main"))
    dbenv.patch("app", shop, authPlugin=absent)
    wait.until("the empty list", lambda: "allows no plugin" in condition(
        dbenv.get("app", shop), "Stalled")["message"])


def test_unloaded_auth_plugin_is_reported(dbenv, server, shop, names):
    """The reason and the name are said, and no password; another plugin ends it."""
    other, default, absent = names
    dbenv.cluster.apply([dbu.secret("app", shop, FIRST),
                         dbu.manifest("app", shop, authPlugin=absent)])
    said = dbenv.wait_condition("app", shop, "UserSynced", "PluginNotLoaded")["message"]
    assert f'"{absent}"' in said and "spec.authPlugin" in said and FIRST not in said
    assert condition(dbenv.get("app", shop), "Stalled")["status"] == "True"
    assert plugin(server, "app") == ""
    dbenv.patch("app", shop, authPlugin=other)
    dbenv.wait_ready("app", shop)
    assert plugin(server, "app") == other and server.login("app", FIRST)
    dbenv.patch("app", shop, authPlugin=absent)
    dbenv.wait_condition("app", shop, "UserSynced", "PluginNotLoaded")
    assert plugin(server, "app") == other and server.login("app", FIRST)
    dbenv.patch("app", shop, authPlugin=default)
    dbenv.wait_ready("app", shop)
    assert FIRST not in dbenv.steward.log_path.read_text("utf-8")


def test_plugin_change_in_rotation_keeps_both_credentials(dbenv, server, shop, names):
    """Two passwords on MySQL, two logins on MariaDB: both credentials work until the overlap ends."""
    other, default, _ = names
    dbenv.create("app", shop, FIRST, authPlugin=default, connectionSecret={"name": "app-conn"},
                 rotation={"overlapSeconds": 3600})
    before = dblogin.connection(dbenv.cluster, shop, "app-conn")
    dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    dbenv.wait_condition("app", shop, "RotationComplete", "Overlap")
    after = dblogin.connection(dbenv.cluster, shop, "app-conn")
    assert before[1] == FIRST and after[1] == SECOND
    dbenv.patch("app", shop, authPlugin=other)
    generation = dbenv.get("app", shop)["metadata"]["generation"]
    dbenv.wait_ready("app", shop)
    assert dbenv.get("app", shop)["status"]["observedGeneration"] >= generation
    assert server.login(*before) and server.login(*after)
    if server.engine == "mysql":
        assert plugin(server, "app") == default
        assert "plugin" in condition(dbenv.get("app", shop), "UserSynced")["message"]
    else:
        assert plugin(server, after[0]) == other
    dbenv.patch("app", shop, rotation={"overlapSeconds": 1})
    dbenv.wait_condition("app", shop, "RotationComplete", "Complete")
    wait.until("the plugin", lambda: plugin(server, after[0]) == other)
    assert server.login(*after) and not server.login(*before)
    # The next rotation begins with the new plugin.
    dbenv.patch("app", shop, rotation={"overlapSeconds": 3600})
    dbenv.cluster.apply(dbu.secret("app", shop, THIRD))
    dbenv.wait_condition("app", shop, "RotationComplete", "Overlap")
    last = dblogin.connection(dbenv.cluster, shop, "app-conn")
    assert last[1] == THIRD and server.login(*last) and server.login(*after)
    assert plugin(server, last[0]) == other
