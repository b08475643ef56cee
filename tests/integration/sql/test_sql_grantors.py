# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: rights are given and taken as the role that can: the owner, or the one that gave them."""

import pytest

from support import dbserver
from support.sqlprobe import account, grant


class Stage:
    """A database with a role that may pass rights on, and an admin as managed servers give one."""

    def __init__(self, pg, user):
        self.pg, self.user = pg, user
        self.shop, self.lead, self.limited = f"{user}_d", f"{user}_lead", f"{user}_admin"
        pg.sql(f"CREATE ROLE {self.limited} LOGIN CREATEROLE CREATEDB PASSWORD "
               f"'{dbserver.ADMIN_PASSWORD}'; CREATE ROLE {self.lead}; CREATE DATABASE {self.shop}")
        lead = f"TO {self.lead} WITH GRANT OPTION"
        self.sql(f"CREATE SCHEMA s; CREATE TABLE s.orders (n int, m int); CREATE SEQUENCE s.q; GRANT "
                 f"USAGE ON SCHEMA s {lead}; GRANT SELECT, UPDATE (m) ON s.orders {lead}; GRANT USAGE ON "
                 f"SEQUENCE s.q {lead}; GRANT CREATE ON DATABASE {self.shop} {lead}")

    def sql(self, text):
        """Runs statements in the database, as superuser."""
        return self.pg.sql(text, self.shop)

    def target(self, **more):
        """The entry of the target with that admin."""
        return self.pg.target("db", admin={"user": self.limited, "passwordFile": str(self.pg.admin_file)},
                              **more)

    def lead_gives(self):
        """Rights at all levels."""
        self.sql(f"SET ROLE {self.lead}; GRANT USAGE ON SCHEMA s TO {self.user}; GRANT SELECT, UPDATE (m) ON "
                 f"s.orders TO {self.user} WITH GRANT OPTION; GRANT USAGE ON SEQUENCE s.q TO {self.user}; "
                 f"GRANT CREATE ON DATABASE {self.shop} TO {self.user}")

    def has_of_lead(self, user):
        """Whether the account has one of them."""
        return self.sql(f"SELECT has_schema_privilege('{user}', 's', 'USAGE') OR has_table_privilege("
                        f"'{user}', 's.orders', 'SELECT') OR has_any_column_privilege('{user}', 's.orders', "
                        f"'UPDATE') OR has_sequence_privilege('{user}', 's.q', 'USAGE') OR "
                        f"has_database_privilege('{user}', '{self.shop}', 'CREATE')") == [["t"]]

    def memberships(self):
        """What that admin is a member of, besides what CREATEROLE gives from PostgreSQL 16 on."""
        return self.sql("SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE "
                        f"m.member = '{self.limited}'::regrole AND NOT (m.admin_option AND m.grantor = 10)")

    def reads(self, user, what):
        """Whether the account can."""
        return self.pg.run_client(f"SELECT * FROM {what}", check=False, user=user, password="s3cret-Pa55",
                                  database=self.shop, tcp=True).returncode == 0


@pytest.fixture
def stage(pg, user):
    """A stage, which goes with its server."""
    return Stage(pg, user)


@pytest.mark.every_version("grantors")
def test_exact_policy_revokes_rights_of_other_grantors(make_probe, stage, user):
    """Also from those to whom the account has passed them on."""
    probe = make_probe(stage.pg.target("db"))
    wanted = account(user, grants=[grant(stage.shop, "CONNECT")], policy="Exact")
    probe.sync(**wanted)
    probe.sync(**account(f"{user}x"))
    stage.lead_gives()
    stage.sql(f"SET ROLE {user}; GRANT SELECT ON s.orders TO {user}x")
    assert stage.has_of_lead(user) and stage.has_of_lead(f"{user}x")
    assert probe.sync(**wanted)["revoked"] >= 5
    assert not stage.has_of_lead(user) and not stage.has_of_lead(f"{user}x")
    report = probe.sync(**wanted)
    assert report["revoked"] == 0 and report["foreign"] == "", report


def test_many_foreign_grants_need_few_statements(make_probe, stage, user):
    """Their number is not the account's own: neither a statement nor a transaction may grow with it."""
    probe = make_probe(stage.pg.target("db"))
    stage.sql("CREATE TABLE s.own (i int)")
    stage.sql(f"""DO $$ BEGIN FOR i IN 1..5500 LOOP EXECUTE format('CREATE TABLE s.t%s (i int)', i);
        EXECUTE format('GRANT SELECT ON s.t%s TO {stage.lead} WITH GRANT OPTION', i);
        IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END $$""")
    wanted = account(user, grants=[grant(stage.shop, "SELECT", schema="s", table="own")])
    probe.sync(**account(user))
    stage.sql(f"""DO $$ BEGIN FOR i IN 1..5500 LOOP SET LOCAL ROLE {stage.lead};
        EXECUTE format('GRANT SELECT ON s.t%s TO {user}', i);
        IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END $$""")
    assert probe.sync(**wanted)["given"] == 1
    assert probe.sync(**wanted)["given"] == 0  # it is known, although the sample may lack it
    exact = {**wanted, "policy": "Exact"}
    report = probe.fails("sync", "FAILED", **exact)
    assert report["revoked"] >= 5000 and report["statements"] < 30, report
    last = probe.sync(**exact)
    assert report["revoked"] + last["revoked"] == 5500 and last["statements"] < 20, last
    assert probe.sync(**exact)["statements"] == 2


@pytest.mark.every_version("PostgreSQL 16 has one membership for each grantor")
def test_exact_policy_revokes_foreign_membership(make_probe, stage, user):
    """A membership counts once for each role that gave it."""
    probe = make_probe(stage.pg.target("db"))
    wanted = account(user, policy="Exact")
    probe.sync(**wanted)
    stage.sql(f"CREATE ROLE {user}_team; GRANT {user}_team TO {stage.lead} WITH ADMIN OPTION; SET ROLE "
              f"{stage.lead}; GRANT {user}_team TO {user}")
    assert probe.sync(**wanted)["revoked"] == 1
    assert not stage.sql(f"SELECT 1 FROM pg_auth_members WHERE member = '{user}'::regrole")


@pytest.mark.every_version("grantors")
def test_managed_policy_keeps_foreign_grants(make_probe, stage, user):
    """Only steward's own grant is taken, and the other one is told."""
    probe = make_probe(stage.pg.target("db"))
    probe.sync(**account(user, grants=[grant(stage.shop, "SELECT", schema="s", table="orders")]))
    stage.lead_gives()
    probe.sync(**account(user))
    assert stage.sql("SELECT DISTINCT pg_get_userbyid(x.grantor) FROM pg_class c, aclexplode(c.relacl) x "
                     f"WHERE c.relname = 'orders' AND x.grantee = '{user}'::regrole") == [[stage.lead]]
    assert "s.orders" in probe.sync(**account(user))["foreign"]


@pytest.mark.every_version("grantors")
def test_unrevokable_right_names_its_grantor(make_probe, stage, user):
    """Exact is not said to be done, and nothing is said to be revoked; so for the drop."""
    probe = make_probe(stage.target())
    wanted = account(user, policy="Exact")
    probe.sync(**wanted)
    stage.sql(f"GRANT {stage.limited} TO {stage.lead}")  # the admin cannot become a member of it
    stage.lead_gives()
    for _ in range(2):
        report = probe.fails("sync", "DENIED", **wanted)
        assert report["step"] == "REVOKE" and f'role "{stage.lead}"' in report["error"], report
        assert stage.shop in report["error"] and report["revoked"] == 0, report
        assert report["login_done"] and "s.orders" in report["foreign"], report
    report = probe.fails("drop", "DENIED", **wanted)
    assert f'role "{stage.lead}"' in report["error"] and "run REVOKE " in report["error"], report
    stage.sql(f"REVOKE {stage.limited} FROM {stage.lead}; GRANT {stage.lead} TO {stage.limited}")
    assert probe.sync(**wanted)["result"] == 0 and not stage.has_of_lead(user)
    stage.lead_gives()
    probe.drop(**wanted)
    assert not stage.pg.exists(user)


@pytest.mark.every_version("grantors")
def test_foreign_grants_do_not_block_a_drop(make_probe, stage, user):
    """Also by one who has a right on a column only."""
    probe = make_probe(stage.pg.target("db"))
    probe.sync(**account(user))
    stage.sql(f"CREATE TABLE s.t (c int); CREATE ROLE {user}_narrow; GRANT USAGE ON SCHEMA s TO "
              f"{user}_narrow; GRANT SELECT (c) ON s.t TO {user}_narrow "
              f"WITH GRANT OPTION; SET ROLE {user}_narrow; GRANT SELECT (c) ON s.t TO {user}")
    stage.lead_gives()
    probe.drop(**account(user))
    assert not stage.pg.exists(user)


def test_drop_with_many_column_grants_is_quick(make_probe, stage, user):
    """Its time is not that of the square of the columns."""
    probe = make_probe(stage.pg.target("db", statementTimeoutSeconds=2))
    probe.sync(**account(user))
    stage.sql(f"""DO $$ BEGIN FOR i IN 1..20 LOOP EXECUTE (SELECT format('CREATE TABLE public.t%s (%s)', i,
        string_agg(format('c%s bool', c), ',')) FROM generate_series(1, 1500) c);
        EXECUTE (SELECT format('GRANT SELECT (%s) ON public.t%s TO {user}',
        string_agg(format('c%s', c), ','), i) FROM generate_series(1, 1500) c); END LOOP; END $$""")
    probe.drop(**account(user))
    assert not stage.pg.exists(user)


@pytest.mark.every_version("what CREATEROLE may do")
def test_admin_without_superuser_grants_as_owner(make_probe, stage, user):
    """On what another account creates: at once, at the next check, and to a later reader."""
    probe = make_probe(stage.target(allowCreateDatabases=["*"]))
    owner, late, app = f"{user}o", f"{user}l", f"{user}_app"
    stage.shop = app
    own = {"owner": f"{user}/object"}  # a namespace whose heir this admin makes
    created = {**account(owner, **own), "databases": [{"name": app, "schemas": ["own"]}]}
    assert probe.ask("databases", **created)["result"] == 0
    probe.sync(**account(owner, **own, grants=[grant(app, "CONNECT"),
                                        grant(app, "USAGE", "CREATE", schema="public")]))
    assert probe.ask("schemas", **created)["result"] == 0
    login = [grant(app, "CONNECT"), grant(app, "USAGE", schema="public")]
    all_of_it = [*login, grant(app, "SELECT", schema="public", table="*"),
                 {**grant(app, "EXECUTE", schema="public"), "routine": "*"}]
    probe.sync(**account(user, grants=all_of_it))
    stage.sql(f"SET ROLE {owner}; CREATE TABLE public.orders (i serial); INSERT INTO public.orders DEFAULT "
              "VALUES; CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE ALL ON "
              "FUNCTION public.f() FROM PUBLIC")
    assert stage.reads(user, "public.orders")
    probe.sync(**account(user, grants=all_of_it))
    probe.sync(**account(late, grants=all_of_it))
    assert stage.reads(late, "public.orders") and stage.reads(late, "public.f()")
    one = grant(app, "SELECT", "UPDATE", schema="public", table="orders", option=True)
    probe.sync(**account(late, grants=[*login, one]))
    assert stage.sql(f"SELECT has_table_privilege('{late}', 'public.orders', 'UPDATE WITH GRANT OPTION'), "
                     f"has_function_privilege('{late}', 'public.f()', 'EXECUTE')") == [["t", "f"]]
    probe.sync(**account(user, grants=login))
    assert not stage.reads(user, "public.orders") and stage.reads(late, "public.orders")
    assert stage.memberships() == []
    probe.drop(**account(user))
    probe.drop(**account(late))
    probe.drop(**account(owner, **own))
    assert stage.memberships() == []


@pytest.mark.every_version("what CREATEROLE may do")
def test_foreign_owned_object_does_not_block_other_grants(make_probe, stage, user):
    """The condition names it."""
    probe = make_probe(stage.target())
    stage.pg.sql(f"ALTER DATABASE {stage.shop} OWNER TO {stage.limited}")
    stage.sql(f"GRANT CREATE ON SCHEMA public TO {stage.limited}; CREATE TABLE public.foreign_one (i int); "
              f"SET ROLE {stage.limited}; CREATE TABLE public.mine (i int)")
    wanted = account(user, grants=[grant(stage.shop, "CONNECT"),
                                   grant(stage.shop, "SELECT", schema="public", table="*")])
    report = probe.fails("sync", "DENIED", **wanted)
    assert "public.foreign_one" in report["error"] and "public.mine" not in report["error"], report
    assert report["login_done"] and stage.reads(user, "public.mine")
    stage.sql(f"ALTER TABLE public.foreign_one OWNER TO {stage.limited}")
    probe.sync(**wanted)
    assert stage.reads(user, "public.foreign_one")


@pytest.mark.every_version("before PostgreSQL 16 a membership lets others decide how the admin logs in")
def test_admin_leaves_the_account_role_after_schemas(make_probe, stage, user):
    """Nor of the role that gets them with the drop, and gives them to the next account."""
    probe = make_probe(stage.target(allowCreateDatabases=["*"]))
    own = {"owner": f"{user}/object"}  # a namespace whose heir this admin makes
    mine = {**account(user, **own), "databases": [{"name": f"{user}_app", "schemas": ["own"]}]}
    for _ in range(2):
        assert probe.ask("databases", **mine)["result"] == 0
        probe.sync(**account(user, **own))
        assert probe.ask("schemas", **mine)["result"] == 0
        assert stage.memberships() == []
        probe.drop(**account(user, **own))
        assert stage.memberships() == []
