/* SPDX-License-Identifier: Apache-2.0
 *
 * Databases of PostgreSQL.  A database is created under another name, is marked by its comment, and
 * then gets its name in the same transaction.  So one with the name has its mark, wherever a
 * creation is interrupted.  The admin stays its owner, since an owner could drop it and change its mark, unless
 * the object wants its account as the owner.  Then a mark of another object counts for nothing, and before the
 * end of the account the admin becomes the owner again. */
#include "sql/core/databases_priv.h"
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#include <stdio.h>

/* The same for each attempt, and another one for each object and name. */
static void name_new(const struct stw_databases *want, const struct stw_database *db,
                     char out[STW_PG_NAME_SIZE])
{
    struct stw_hash h = stw_hash_bytes(want->owner_uid, strlen(want->owner_uid));
    const struct stw_hash parts[] = {h, stw_hash_bytes(db->name, strlen(db->name))};
    h = stw_hash_bytes(parts, sizeof(parts));
    stw_format(out, STW_PG_NAME_SIZE, STW_DATABASE_NEW_PREFIX "%016llx%016llx",
               (unsigned long long)h.hi, (unsigned long long)h.lo);
}

/* The server truncates longer names without an error, so that two names would become one. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len < STW_PG_NAME_SIZE;
}

static int check_names(const struct stw_database *db, struct stw_fault *f)
{
    bool fit = is_name(db->name);
    for (const char *const *n = db->schemas; n && *n; n++)
        fit &= is_name(*n) && strncmp(*n, "pg_", 3) != 0;
    for (const char *const *n = db->extensions; n && *n; n++)
        fit &= is_name(*n);
    return fit ? 0
               : stw_fault_set(f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_LOOKUP,
                               "a name is empty, longer than 63 bytes, or the server's own");
}

enum { NEW, COMMENT, FOREIGN, SET, COLLATION, OF_ACCOUNT, CELLS };

/* Names of locales differ in case and hyphens only. */
#define LOCALE(column) "lower(replace(" column ",'-','')) <> lower(replace("

static void put_locale_differs(struct stw_buf *out, const char *collation)
{
    if (!collation) {
        stw_buf_adds(out, "'false'");
        return;
    }
    stw_buf_adds(out, "(" LOCALE("datcollate"));
    stw_pg_strz(out, collation);
    stw_buf_adds(out, ",'-','')) OR " LOCALE("datctype"));
    stw_pg_strz(out, collation);
    stw_buf_adds(out, ",'-','')))::text");
}

static void write_database_lookup(struct stw_buf *out, const struct stw_databases *want,
                                  const struct stw_database *db)
{
    char fresh[STW_PG_NAME_SIZE];
    name_new(want, db, fresh);
    stw_buf_adds(out, "SELECT (datname = ");
    stw_pg_strz(out, fresh);
    stw_buf_adds(out,
                 ")::text, left(shobj_description(d.oid, 'pg_database'), 1048577), (o.rolname <> "
                 "current_user AND NOT o.rolsuper AND o.rolname <> ");
    stw_pg_strz(out, want->user);
    stw_buf_adds(out, ")::text, ");
    if (db->character_set) {
        stw_buf_adds(out, "(encoding <> pg_char_to_encoding(");
        stw_pg_strz(out, db->character_set);
        stw_buf_adds(out, "))::text, ");
    } else {
        stw_buf_adds(out, "'false', ");
    }
    put_locale_differs(out, db->collation);
    stw_buf_adds(out, ", (o.rolname <> current_user AND o.rolname = ");
    stw_pg_strz(out, want->user);
    stw_buf_adds(
        out, ")::text FROM pg_database d JOIN pg_roles o ON o.oid = d.datdba WHERE datname IN (");
    stw_pg_strz(out, db->name);
    stw_buf_addc(out, ',');
    stw_pg_strz(out, fresh);
    stw_buf_addc(out, ')');
}

static bool is_true(const struct stw_cell *c)
{
    return c->data && stw_streq(c->data, "true");
}

static int read_database_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct stw_database_seen *seen = ctx;
    if (count < CELLS)
        return -1;
    if (is_true(&c[NEW])) {
        seen->unfinished = true;
        return 0;
    }
    seen->exists = true;
    seen->foreign = is_true(&c[FOREIGN]);
    seen->of_account = is_true(&c[OF_ACCOUNT]);
    seen->character_set_differs = is_true(&c[SET]);
    seen->collation_differs = is_true(&c[COLLATION]);
    return stw_mark_parse(c[COMMENT].data ? c[COMMENT].data : "", c[COMMENT].len, &seen->mark);
}

static int look_at_database(struct stw_session *s, const struct stw_databases *want,
                            const struct stw_database *db, struct stw_database_seen *seen,
                            struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    if (check_names(db, f) != 0)
        return -1;
    write_database_lookup(&st->text, want, db);
    return stw_session_ask(s, st, read_database_row, seen, f);
}

/* --- the database itself */

/* Statements on databases cannot be in a transaction. */
static struct stw_buf *add_alone(struct stw_script *s, enum stw_sql_step step)
{
    struct stw_statement *st = stw_script_add(s, step, NULL);
    st->alone = true;
    return &st->text;
}

/* A statement of the owner. */
static void write_as_owner(struct stw_script *s, enum stw_sql_step step, const struct stw_facts *k,
                           const struct stw_databases *want, bool of_account,
                           const struct stw_buf *text)
{
    const char *const roles[] = {of_account ? want->user : NULL, NULL};
    stw_pg_write_as_member(s, step, NULL, k, roles, false, text);
}

/* The admin must still get in. */
static void write_owner(struct stw_script *s, const struct stw_facts *k,
                        const struct stw_databases *want, const char *name, bool of_account)
{
    const char *admin = want->target->admin_user;
    struct stw_buf text = STW_BUF_INIT(4096);
    stw_buf_adds(&text, "ALTER DATABASE ");
    stw_pg_name(&text, name);
    stw_buf_adds(&text, " OWNER TO ");
    stw_pg_name(&text, of_account ? want->user : admin);
    write_as_owner(s, STW_SQL_STEP_ALTER, k, want, true, &text);
    stw_buf_clear(&text);
    stw_buf_adds(&text, "GRANT ALL ON DATABASE ");
    stw_pg_name(&text, name);
    stw_buf_adds(&text, " TO ");
    stw_pg_name(&text, admin);
    if (!k->superuser)
        write_as_owner(s, STW_SQL_STEP_ALTER, k, want, of_account, &text);
    stw_buf_done(&text);
}

int stw_pg_read_count(void *ctx, const struct stw_cell *c, unsigned count)
{
    unsigned *sessions = ctx;
    if (count < 1 || !c[0].data)
        return -1;
    *sessions = (unsigned)strtoul(c[0].data, NULL, 10);
    return 0;
}

/* What an owner can set that keeps the admin from working there. */
void stw_pg_write_open(struct stw_script *s, const struct stw_facts *k, const char *database)
{
    static const struct {
        const char *text;
        unsigned since;
    } settings[] = {{"ALLOW_CONNECTIONS true", 0},
                    {"RESET local_preload_libraries", 0},
                    {"RESET idle_session_timeout", 140000},
                    {"RESET transaction_timeout", 170000}};
    for (size_t i = 0; i < STW_COUNT(settings); i++) {
        if (k->number < settings[i].since)
            continue;
        struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_ALTER, NULL)->text;
        stw_buf_adds(out, "ALTER DATABASE ");
        stw_pg_name(out, database);
        stw_buf_addf(out, " %s", settings[i].text);
    }
}

/* Before the end: whatever the owner has set, the admin owns it again, and gets in. */
static void take_back(struct stw_script *s, const struct stw_facts *k,
                      const struct stw_databases *want, const char *name)
{
    write_owner(s, k, want, name, false);
    stw_pg_write_open(s, k, name);
}

static void put_comment(struct stw_script *s, const struct stw_facts *k,
                        const struct stw_databases *want, const char *name, bool of_account,
                        bool kept)
{
    static const struct stw_mark none = {0};
    static const struct stw_rights no_rights = {0};
    struct stw_buf json = STW_BUF_INIT(STW_MARK_MAX_BYTES);
    struct stw_buf text = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES), *out = &text;
    struct stw_mark_id id = stw_databases_mark_id(want);
    stw_mark_json(&none, &id, kept, &no_rights, &json);
    s->failed |= json.failed;
    stw_buf_adds(out, "COMMENT ON DATABASE ");
    stw_pg_name(out, name);
    stw_buf_adds(out, " IS ");
    stw_pg_strz(out, stw_buf_str(&json));
    write_as_owner(s, STW_SQL_STEP_CREATE, k, want, of_account, &text);
    stw_buf_done(&text);
    stw_buf_done(&json);
}

static void put_properties(struct stw_buf *out, const struct stw_facts *k,
                           const struct stw_database *db)
{
    /* template1 may have any encoding, and anybody's open session there would block this. */
    stw_buf_adds(out, " TEMPLATE template0");
    if (db->character_set) {
        stw_buf_adds(out, " ENCODING ");
        stw_pg_strz(out, db->character_set);
    }
    if (!db->collation)
        return;
    stw_buf_adds(out, " LC_COLLATE ");
    stw_pg_strz(out, db->collation);
    stw_buf_adds(out, " LC_CTYPE ");
    stw_pg_strz(out, db->collation);
    stw_buf_adds(out, k->number >= 150000 ? " LOCALE_PROVIDER libc" : "");
}

/* Others may not even connect, unless a grant lets them. */
static void write_create(const struct stw_facts *k, const struct stw_databases *want,
                         const struct stw_database *db, const struct stw_database_seen *seen,
                         struct stw_script *s)
{
    char fresh[STW_PG_NAME_SIZE];
    struct stw_buf *out = add_alone(s, STW_SQL_STEP_CREATE);
    (void)seen;
    name_new(want, db, fresh);
    stw_buf_adds(out, "CREATE DATABASE ");
    stw_pg_name(out, fresh);
    put_properties(out, k, db);
    put_comment(s, k, want, fresh, false, false);
    out = &stw_script_add(s, STW_SQL_STEP_CREATE, NULL)->text;
    stw_buf_adds(out, "REVOKE CONNECT, TEMPORARY ON DATABASE ");
    stw_pg_name(out, fresh);
    stw_buf_adds(out, " FROM PUBLIC");
    out = &stw_script_add(s, STW_SQL_STEP_CREATE, NULL)->text;
    stw_buf_adds(out, "ALTER DATABASE ");
    stw_pg_name(out, fresh);
    stw_buf_adds(out, " RENAME TO ");
    stw_pg_name(out, db->name);
}

static void write_mark(const struct stw_facts *k, const struct stw_databases *want,
                       const struct stw_database *db, const struct stw_database_seen *seen,
                       enum stw_mark_state state, struct stw_script *s)
{
    bool kept = state == STW_MARK_KEPT;
    if (kept && seen->of_account)
        take_back(s, k, want, db->name);
    put_comment(s, k, want, db->name, !kept && seen->of_account, kept);
}

static void write_clear(const struct stw_facts *k, const struct stw_databases *want,
                        const struct stw_database *db, struct stw_script *s)
{
    char fresh[STW_PG_NAME_SIZE];
    struct stw_buf *out = add_alone(s, STW_SQL_STEP_DROP);
    (void)k;
    name_new(want, db, fresh);
    stw_buf_adds(out, "DROP DATABASE IF EXISTS ");
    stw_pg_name(out, fresh);
}

static void write_drop(const struct stw_facts *k, const struct stw_databases *want,
                       const struct stw_database *db, const struct stw_database_seen *seen,
                       struct stw_script *s)
{
    if (!seen->exists)
        return;
    if (seen->of_account)
        take_back(s, k, want, db->name);
    struct stw_buf *out = add_alone(s, STW_SQL_STEP_DROP);
    stw_buf_adds(out, "DROP DATABASE ");
    stw_pg_name(out, db->name);
    stw_buf_adds(out, k->number >= 130000 ? " WITH (FORCE)" : "");
}

/* FORCE ends no session of a superuser, and of other accounts only with pg_signal_backend or membership. */
static int count_sessions(struct stw_session *s, const struct stw_database *db, unsigned *ret,
                          struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text,
                 "SELECT count(*)::text FROM pg_stat_activity WHERE usename <> current_user "
                 "AND datname = ");
    stw_pg_strz(&st->text, db->name);
    return stw_session_ask(s, st, stw_pg_read_count, ret, f);
}

/* --- extensions */

static void put_array(struct stw_buf *out, const char *const *names)
{
    const char *comma = "";
    stw_buf_adds(out, "unnest(ARRAY[");
    for (; *names; names++) {
        stw_buf_adds(out, comma);
        stw_pg_strz(out, *names);
        comma = ",";
    }
    stw_buf_adds(out, "]::text[]) WITH ORDINALITY x(name, nr)");
}

enum { NAME, KNOWN, TRUSTED, SCHEMA, EXTENSION_CELLS };
enum { EXTENSIONS_MAX = 64 };

struct database_extension {
    char name[STW_PG_NAME_SIZE];
    bool known, trusted, fixed_schema;
};

struct extension_list {
    struct database_extension items[EXTENSIONS_MAX];
    size_t count;
};

static int read_extension_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct extension_list *all = ctx;
    if (count < EXTENSION_CELLS || !c[NAME].data || all->count == EXTENSIONS_MAX)
        return -1;
    struct database_extension *e = &all->items[all->count++];
    stw_format(e->name, sizeof(e->name), "%s", c[NAME].data);
    e->known = is_true(&c[KNOWN]);
    e->trusted = is_true(&c[TRUSTED]);
    e->fixed_schema = c[SCHEMA].data != NULL;
    return 0;
}

/* Those that are missing. */
static int look_extensions(struct stw_session *s, const struct stw_database *db,
                           struct extension_list *all, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, db->name);
    stw_buf_addf(&st->text, "SELECT x.name, (v.name IS NOT NULL)::text, %s, v.schema::text FROM ",
                 s->facts.number >= 130000 ? "v.trusted::text" : "NULL");
    put_array(&st->text, db->extensions);
    stw_buf_adds(&st->text, " LEFT JOIN pg_available_extensions a ON a.name = x.name LEFT JOIN "
                            "pg_available_extension_versions v ON v.name = a.name AND v.version = "
                            "a.default_version WHERE NOT EXISTS (SELECT FROM pg_extension e WHERE "
                            "e.extname = x.name) ORDER BY x.nr");
    return stw_session_ask(s, st, read_extension_row, all, f);
}

static int check_extension(const struct stw_databases *want, const struct database_extension *e,
                           struct stw_fault *f)
{
    if (!stw_target_allows_extension(want->target, want->ns, e->name))
        return stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_ALTER,
                             "the extension \"%s\" is not in allowedExtensions of the target",
                             e->name);
    if (!e->known)
        return stw_fault_set(f, STW_SQL_NO_OBJECT, STW_SQL_STEP_ALTER,
                             "the server has no extension \"%s\"; its files must be installed",
                             e->name);
    return 0;
}

/* --- the script of an extension that is not trusted
 *
 * It runs with the rights of a superuser, and finds functions, operators, types and tables by names in
 * the schemas of its search path: its own, and those of the extensions that it requires.  The server's
 * own `trusted` extensions are made for databases of other accounts; for the others nothing may be in
 * those schemas that another account has made, can make, or has made in a transaction that is open. */

/* `path`: those schemas; `other`: the roles that could set a trap for the admin.  The role
 * pg_database_owner stands for the owner of the database. */
static void put_script_path(struct stw_buf *out, const struct database_extension *e)
{
    stw_buf_adds(out, "WITH v AS (SELECT v.schema, v.requires FROM pg_available_extensions a JOIN "
                      "pg_available_extension_versions v ON v.name = a.name AND v.version = "
                      "a.default_version WHERE a.name = ");
    stw_pg_strz(out, e->name);
    stw_buf_adds(out, "), path AS (SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_namespace "
                      "n, v WHERE n.nspname = coalesce(v.schema, 'public') OR n.oid IN (SELECT "
                      "x.extnamespace FROM pg_extension x WHERE x.extname = ANY (v.requires)))");
    stw_buf_adds(out, ", safe AS (SELECT oid, rolname FROM pg_roles WHERE rolsuper OR rolname = "
                      "current_user), other AS (SELECT oid, rolname FROM pg_roles WHERE oid NOT IN "
                      "(SELECT oid FROM safe) AND (rolname <> 'pg_database_owner' OR NOT EXISTS "
                      "(SELECT FROM pg_database d JOIN safe ON safe.oid = d.datdba WHERE d.datname "
                      "= current_database()))) ");
}

/* Who can make something there, then who has a transaction open: {what, role, schema}.  In this order,
 * since one that began before the right was taken away may still end. */
static void put_makers(struct stw_buf *out, const struct database_extension *e)
{
    put_script_path(out, e);
    stw_buf_adds(out, "SELECT * FROM (SELECT 'owner', other.rolname::text, path.nspname::text FROM "
                      "path JOIN other ON other.oid = path.nspowner");
    stw_buf_adds(out, " UNION ALL SELECT 'creator', coalesce(other.rolname, 'PUBLIC')::text, "
                      "path.nspname::text FROM path CROSS JOIN LATERAL aclexplode(path.nspacl) g "
                      "LEFT JOIN other ON other.oid = g.grantee WHERE g.privilege_type = 'CREATE' "
                      "AND (g.grantee = 0 OR other.oid IS NOT NULL)");
    stw_buf_adds(out, " UNION ALL SELECT 'open', coalesce(s.usename, '?')::text, '' FROM "
                      "pg_stat_activity s WHERE s.datname = current_database() AND s.backend_type "
                      "= 'client backend' AND s.pid <> pg_backend_pid() AND s.usesysid NOT IN "
                      "(SELECT oid FROM safe) AND coalesce(s.state, '') <> 'idle'");
    stw_buf_adds(out, " UNION ALL SELECT 'open', x.owner::text, '' FROM pg_prepared_xacts x WHERE "
                      "x.database = current_database() AND x.owner NOT IN (SELECT rolname FROM "
                      "safe)) found LIMIT 1");
}

static void put_objects(struct stw_buf *out, const struct database_extension *e)
{
    static const struct {
        const char *kind, *catalog, *schema, *owner;
    } made[] = {
        {"function", "pg_proc", "pronamespace", "proowner"},
        {"operator", "pg_operator", "oprnamespace", "oprowner"},
        {"relation", "pg_class", "relnamespace", "relowner"},
        {"type", "pg_type", "typnamespace", "typowner"},
    };
    put_script_path(out, e);
    stw_buf_adds(out, "SELECT * FROM (");
    for (size_t i = 0; i < STW_COUNT(made); i++)
        stw_buf_addf(out,
                     "%sSELECT '%s', other.rolname::text, path.nspname::text FROM path JOIN %s c "
                     "ON c.%s = path.oid JOIN other ON other.oid = c.%s",
                     i > 0 ? " UNION ALL " : "", made[i].kind, made[i].catalog, made[i].schema,
                     made[i].owner);
    stw_buf_adds(out, ") found LIMIT 1");
}

struct script_risk {
    char what[16], role[STW_PG_NAME_SIZE], schema[STW_PG_NAME_SIZE];
};

static int read_risk_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct script_risk *risk = ctx;
    if (count < 3 || !c[0].data || !c[1].data || !c[2].data)
        return -1;
    stw_format(risk->what, sizeof(risk->what), "%s", c[0].data);
    stw_format(risk->role, sizeof(risk->role), "%s", c[1].data);
    stw_format(risk->schema, sizeof(risk->schema), "%s", c[2].data);
    return 0;
}

static int refuse_script(const struct database_extension *e, const struct script_risk *risk,
                         struct stw_fault *f)
{
    if (stw_streq(risk->what, "open"))
        return stw_fault_set(f, STW_SQL_LOCKED, STW_SQL_STEP_ALTER,
                             "the extension \"%s\" waits: a session of the role \"%s\" in the "
                             "database has a transaction open, which may have made something that "
                             "its script would run",
                             e->name, risk->role);
    if (stw_streq(risk->what, "owner") || stw_streq(risk->what, "creator"))
        return stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_ALTER,
                             "the extension \"%s\" is not created while the role \"%s\" may "
                             "create objects in the schema \"%s\", which its script could run; "
                             "take CREATE on that schema away, or name the extension before",
                             e->name, risk->role, risk->schema);
    return stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_ALTER,
                         "the extension \"%s\" is not created while a %s of the role \"%s\" is in "
                         "the schema \"%s\", which its script could run; have it dropped, or name "
                         "the extension before",
                         e->name, risk->what, risk->role, risk->schema);
}

static int check_script(struct stw_session *s, const struct stw_database *db,
                        const struct database_extension *e, struct stw_fault *f)
{
    static void (*const questions[])(struct stw_buf *,
                                     const struct database_extension *) = {put_makers, put_objects};
    for (size_t i = 0; i < STW_COUNT(questions); i++) {
        stw_autoscript struct stw_script script = {0};
        struct script_risk risk = {0};
        struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, db->name);
        questions[i](&st->text, e);
        if (stw_session_ask(s, st, read_risk_row, &risk, f) != 0)
            return -1;
        if (*risk.what)
            return refuse_script(e, &risk, f);
    }
    return 0;
}

static int create_extension(struct stw_session *s, const struct stw_databases *want,
                            const struct stw_database *db, bool of_account,
                            const struct database_extension *e, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    const char *const roles[] = {of_account ? want->user : NULL, NULL};
    struct stw_buf text = STW_BUF_INIT(4096);
    stw_buf_adds(&text, "CREATE EXTENSION IF NOT EXISTS ");
    stw_pg_name(&text, e->name);
    stw_buf_adds(&text, e->fixed_schema ? "" : " SCHEMA public");
    stw_pg_write_as_member(&script, STW_SQL_STEP_ALTER, db->name, &s->facts, roles, false, &text);
    stw_buf_done(&text);
    if (stw_session_run(s, &script, f) == 0)
        return 0;
    if (stw_streq(f->state, "42704"))
        return stw_fault_set(f, STW_SQL_NO_OBJECT, STW_SQL_STEP_ALTER,
                             "the extension \"%s\" needs another one; name that before it",
                             e->name);
    (void)stw_error_wrap(&f->err, "extension \"%s\"", e->name);
    return -1;
}

static int create_extensions(struct stw_session *s, const struct stw_databases *want,
                             const struct stw_database *db, struct stw_database_report *r,
                             struct stw_fault *f)
{
    struct extension_list missing = {0};
    if (!db->extensions || !db->extensions[0])
        return 0;
    if (look_extensions(s, db, &missing, f) != 0)
        return -1;
    for (size_t i = 0; i < missing.count; i++) {
        const struct database_extension *e = &missing.items[i];
        if (check_extension(want, e, f) != 0 || (!e->trusted && check_script(s, db, e, f) != 0) ||
            create_extension(s, want, db, r->of_account, e, f) != 0)
            return -1;
        r->extended = true;
    }
    return 0;
}

/* --- schemas */

enum { SCHEMA_NAME, SCHEMA_OWNER, ROLE, SCHEMA_CELLS };

struct schema_look {
    const struct stw_databases *want;
    struct stw_script *script;
    const char *database;
    struct stw_fault *f;
    const struct stw_facts *facts;
};

/* The admin must be a member of the roles of both owners. */
static void write_schema(const struct schema_look *k, const char *verb, const char *name,
                         const char *to, const char *heir)
{
    const char *const roles[] = {k->want->user, heir, NULL};
    struct stw_buf text = STW_BUF_INIT(4096);
    stw_buf_adds(&text, verb);
    stw_pg_name(&text, name);
    stw_buf_adds(&text, to);
    stw_pg_name(&text, k->want->user);
    stw_pg_write_as_member(k->script, STW_SQL_STEP_CREATE, k->database, k->facts, roles,
                           STW_PG_REASSIGNS_NOTHING, &text);
    stw_buf_done(&text);
}

/* A schema of an account that was dropped goes to the next one: its namespace is the same.  The database has
 * the mark of this object, so that it is the same cluster too. */
static void judge_owner(const struct schema_look *k, const char *name, const char *owner)
{
    char heir[STW_PG_NAME_SIZE], former[STW_PG_NAME_SIZE];
    stw_pg_name_heir(k->want->cluster, k->want->ns, heir);
    stw_pg_name_former_heir(k->want->ns, former);
    if (stw_streq(owner, k->want->user))
        return;
    if (stw_streq(owner, heir) || stw_streq(owner, former)) {
        write_schema(k, "ALTER SCHEMA ", name, " OWNER TO ", owner);
    } else if (k->f->trouble == STW_SQL_FINE) {
        (void)stw_fault_set(k->f, STW_SQL_EXISTS, STW_SQL_STEP_CREATE,
                            "the schema \"%s\" exists and belongs to the role \"%s\"; have its "
                            "owner changed, or take it out of spec.databases",
                            name, owner);
    }
}

static int read_schema_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct schema_look *k = ctx;
    if (count < SCHEMA_CELLS || !c[SCHEMA_NAME].data)
        return -1;
    if (!is_true(&c[ROLE]))
        return 0; /* there is no account yet */
    if (c[SCHEMA_OWNER].data)
        judge_owner(k, c[SCHEMA_NAME].data, c[SCHEMA_OWNER].data);
    else
        write_schema(k, "CREATE SCHEMA ", c[SCHEMA_NAME].data, " AUTHORIZATION ", NULL);
    return 0;
}

static void write_schema_lookup(struct stw_buf *out, const struct stw_databases *want,
                                const struct stw_database *db)
{
    stw_buf_adds(out, "SELECT x.name, pg_get_userbyid(n.nspowner)::text, EXISTS (SELECT FROM "
                      "pg_roles WHERE rolname = ");
    stw_pg_strz(out, want->user);
    stw_buf_adds(out, ")::text FROM ");
    put_array(out, db->schemas);
    stw_buf_adds(out, " LEFT JOIN pg_namespace n ON n.nspname = x.name ORDER BY x.nr");
}

/* The database: {owned by the account, the account exists}. */
static int read_owner_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    bool *is = ctx;
    if (count < 2)
        return -1;
    is[0] = is_true(&c[0]);
    is[1] = is_true(&c[1]);
    return 0;
}

static int set_owner(struct stw_session *s, const struct stw_databases *want,
                     const struct stw_database *db, struct stw_database_report *r,
                     struct stw_fault *f)
{
    stw_autoscript struct stw_script query = {0}, script = {0};
    struct stw_statement *st;
    bool is[2] = {r->of_account};
    if (!db->owner && !r->of_account)
        return 0;
    st = stw_script_add(&query, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text, "SELECT (r.oid = d.datdba)::text, (r.oid IS NOT NULL)::text FROM "
                            "pg_database d LEFT JOIN pg_roles r ON r.rolname = ");
    stw_pg_strz(&st->text, want->user);
    stw_buf_adds(&st->text, " WHERE d.datname = ");
    stw_pg_strz(&st->text, db->name);
    if (stw_session_ask(s, st, read_owner_row, is, f) != 0)
        return -1;
    if (!is[1] || is[0] == db->owner)
        return 0;
    write_owner(&script, &s->facts, want, db->name, db->owner);
    r->owner_changed = stw_session_run(s, &script, f) == 0;
    return r->owner_changed ? 0 : -1;
}

static int add_schemas(struct stw_session *s, const struct stw_databases *want,
                       const struct stw_database *db, struct stw_database_report *r,
                       struct stw_fault *f)
{
    stw_autoscript struct stw_script query = {0}, script = {0};
    struct stw_fault conflict = {0};
    struct schema_look k = {want, &script, db->name, &conflict, &s->facts};
    if (set_owner(s, want, db, r, f) != 0)
        return -1;
    if (!db->schemas || !db->schemas[0])
        return 0;
    struct stw_statement *st = stw_script_add(&query, STW_SQL_STEP_LOOKUP, db->name);
    write_schema_lookup(&st->text, want, db);
    if (stw_session_ask(s, st, read_schema_row, &k, f) != 0 || stw_session_run(s, &script, f) != 0)
        return -1;
    r->schemas_added = script.count > 0;
    *f = conflict;
    return f->trouble == STW_SQL_FINE ? 0 : -1;
}

const struct stw_database_ops stw_pg_databases = {
    .look = look_at_database,
    .create = write_create,
    .mark = write_mark,
    .drop = write_drop,
    .count_sessions = count_sessions,
    .clear = write_clear,
    .extend = create_extensions,
    .add_schemas = add_schemas,
    .create_right = "CREATEDB, and to own the databases of allowCreateDatabases",
};
