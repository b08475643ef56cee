/* SPDX-License-Identifier: Apache-2.0
 *
 * The statements of PostgreSQL. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

static struct stw_buf *add_statement(struct stw_script *s, enum stw_sql_step step,
                                     const char *database)
{
    return &stw_script_add(s, step, database)->text;
}

static void put_options(struct stw_buf *out, const struct stw_account *a, bool create)
{
    long long limit = a->max_user_connections > 0 ? (long long)a->max_user_connections : -1;
    if (create || a->login != STW_LOGIN_KEEP)
        stw_buf_adds(out, a->login == STW_LOGIN_YES ? " LOGIN" : " NOLOGIN");
    stw_buf_addf(out, " CONNECTION LIMIT %lld", limit);
    if (!a->valid_until)
        return;
    stw_buf_adds(out, " VALID UNTIL ");
    stw_pg_strz(out, a->valid_until);
}

static void put_password(struct stw_buf *out, const struct stw_account *a,
                         const struct stw_verifier *v)
{
    if (a->iam) {
        stw_buf_adds(out, " PASSWORD NULL");
        return;
    }
    if (v->text.len == 0) /* PASSWORD '' would be PASSWORD NULL */
        out->failed = true;
    stw_buf_adds(out, " PASSWORD ");
    stw_pg_string(out, stw_buf_str(&v->text), v->text.len);
}

static void write_acts_as(struct stw_script *s, enum stw_sql_step step, const struct stw_account *a)
{
    if (!a->acts_as)
        return;
    struct stw_statement *st = stw_script_add(s, step, NULL);
    struct stw_buf *out = &st->text;
    st->own = step == STW_SQL_STEP_ALTER; /* the password does not wait for what else is set */
    stw_buf_adds(out, "ALTER ROLE ");
    stw_pg_name(out, a->user);
    stw_buf_adds(out, " SET role = ");
    stw_pg_strz(out, a->acts_as);
}

void stw_pg_create(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_verifier *v, struct stw_script *s)
{
    struct stw_buf *out = add_statement(s, STW_SQL_STEP_CREATE, NULL);
    (void)k;
    (void)l;
    stw_buf_adds(out, "CREATE ROLE ");
    stw_pg_name(out, a->user);
    put_options(out, a, true);
    put_password(out, a, v);
    write_acts_as(s, STW_SQL_STEP_CREATE, a);
}

void stw_pg_alter(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                  const struct stw_verifier *v, bool options, struct stw_script *s)
{
    struct stw_buf *out = add_statement(s, STW_SQL_STEP_ALTER, NULL);
    (void)k;
    (void)l;
    stw_buf_adds(out, "ALTER ROLE ");
    stw_pg_name(out, a->user);
    if (options)
        put_options(out, a, false);
    if (v)
        put_password(out, a, v);
    if (options)
        write_acts_as(s, STW_SQL_STEP_ALTER, a);
}

static void put_comment(struct stw_script *s, enum stw_sql_step step, const char *user,
                        const char *comment)
{
    struct stw_buf *out = add_statement(s, step, NULL);
    stw_buf_adds(out, "COMMENT ON ROLE ");
    stw_pg_name(out, user);
    stw_buf_adds(out, " IS ");
    if (comment)
        stw_pg_strz(out, comment);
    else
        stw_buf_adds(out, "NULL");
}

void stw_pg_mark(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 enum stw_mark_state state, const char *made, const struct stw_rights *rights,
                 struct stw_script *s)
{
    struct stw_buf json = STW_BUF_INIT(STW_MARK_MAX_BYTES);
    struct stw_mark_id id = stw_account_mark_id(a);
    (void)k;
    (void)made;
    stw_mark_json(&l->mark, &id, state == STW_MARK_KEPT, rights, &json);
    if (json.failed)
        s->failed = true;
    put_comment(s, l->exists ? STW_SQL_STEP_GRANT : STW_SQL_STEP_CREATE, a->user,
                stw_buf_str(&json));
    stw_buf_done(&json);
}

void stw_pg_unmark(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, struct stw_script *s)
{
    (void)k;
    if (l->exists)
        put_comment(s, STW_SQL_STEP_DROP, a->user, l->mark.comment);
}

static void put_object(struct stw_buf *out, const struct stw_right *r)
{
    bool sequence = stw_streq(r->privilege, "USAGE");
    if (r->level == STW_LEVEL_DATABASE) {
        stw_buf_adds(out, " ON DATABASE ");
        stw_pg_name(out, r->database);
        return;
    }
    if (r->level == STW_LEVEL_SCHEMA)
        stw_buf_adds(out, " ON SCHEMA ");
    else if (stw_pg_is_all_tables(r))
        stw_buf_addf(out, " ON ALL %s IN SCHEMA ", sequence ? "SEQUENCES" : "TABLES");
    else
        stw_buf_adds(out, sequence ? " ON SEQUENCE " : " ON TABLE ");
    stw_pg_name(out, r->schema);
    if (r->level < STW_LEVEL_TABLE || stw_pg_is_all_tables(r))
        return;
    stw_buf_addc(out, '.');
    stw_pg_name(out, r->name);
}

/* Whether a right of the same scope can be in one statement with `first`. */
static bool goes_with(const struct stw_right *first, const struct stw_right *r)
{
    return r->option == first->option && stw_pg_what(r) == stw_pg_what(first);
}

static void put_privileges(struct stw_buf *out, const struct stw_right *r, size_t count,
                           const struct stw_right *first)
{
    const char *comma = "";
    for (size_t i = 0; i < count; i++) {
        if (!goes_with(first, &r[i]))
            continue;
        stw_buf_addf(out, "%s%s", comma, r[i].privilege);
        if (r[i].level == STW_LEVEL_COLUMN) {
            stw_buf_adds(out, " (");
            stw_pg_name(out, r[i].column);
            stw_buf_addc(out, ')');
        }
        comma = ", ";
    }
}

/* For whom rights are given and taken. */
struct pg_writer {
    struct stw_script *s;
    const struct stw_facts *k;
    const struct stw_account *a;
    bool give;
};

static const char *database_of(const struct stw_right *r)
{
    return r->level == STW_LEVEL_DATABASE || r->level == STW_LEVEL_ROLE ? NULL : r->database;
}

static void put_verb(struct stw_buf *out, const struct pg_writer *w, const struct stw_right *first)
{
    stw_buf_adds(out, w->give ? "GRANT " : "REVOKE ");
    if (!w->give && first->option)
        stw_buf_adds(out,
                     first->level == STW_LEVEL_ROLE ? "ADMIN OPTION FOR " : "GRANT OPTION FOR ");
}

static void put_end(struct stw_buf *out, const struct pg_writer *w, const struct stw_right *first)
{
    stw_buf_adds(out, w->give ? " TO " : " FROM ");
    stw_pg_name(out, w->a->user);
    if (w->give && first->option)
        stw_buf_adds(out, " WITH GRANT OPTION");
    if (!w->give) /* also from those to whom the account has given it on */
        stw_buf_adds(out, " CASCADE");
}

static void put_statement(struct stw_buf *out, const struct pg_writer *w, const struct stw_right *r,
                          size_t count, const struct stw_right *first)
{
    put_verb(out, w, first);
    if (r->level == STW_LEVEL_ROLE) {
        stw_pg_name(out, r->name);
    } else {
        put_privileges(out, r, count, first);
        put_object(out, first);
    }
    put_end(out, w, first);
}

/* PostgreSQL 16 and later: a membership for each grantor. */
static void write_end_of_membership(const struct pg_writer *w, const struct stw_right *first)
{
    struct stw_buf body = STW_BUF_INIT(64u << 10);
    const struct stw_pg_around *around = stw_pg_around(w->s);
    stw_buf_addf(&body,
                 "DECLARE me name := current_user; o record; lent boolean; %sBEGIN %sFOR o IN "
                 "SELECT pg_get_userbyid(m.grantor) AS grantor, ",
                 around->declare, around->begin);
    stw_pg_put_grantor_role(&body, "m.grantor");
    stw_buf_adds(&body, " AS role FROM pg_auth_members m WHERE pg_get_userbyid(m.roleid) = ");
    stw_pg_strz(&body, first->name);
    stw_buf_adds(&body, " AND pg_get_userbyid(m.member) = ");
    stw_pg_strz(&body, w->a->user);
    stw_buf_adds(&body, " LOOP BEGIN ");
    stw_pg_put_become(&body, "o.role");
    stw_buf_addf(&body, "EXECUTE format('REVOKE %s%%I FROM %%I GRANTED BY %%I CASCADE', ",
                 first->option ? "ADMIN OPTION FOR " : "");
    stw_pg_strz(&body, first->name);
    stw_buf_adds(&body, ", ");
    stw_pg_strz(&body, w->a->user);
    stw_buf_adds(&body, ", o.grantor); ");
    stw_pg_put_return(&body, "o.role");
    stw_buf_adds(&body,
                 "EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN NULL; ");
    stw_pg_put_around(&body, w->s, "format('ROLE %I', o.grantor)");
    stw_buf_addf(&body, "END; END LOOP; %sEND", around->end);
    struct stw_statement *st = stw_script_add(w->s, STW_SQL_STEP_REVOKE, NULL);
    st->around = w->s->around_locks;
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&body);
}

/* One object after the other, each as the role that can. */
static void write_acl(const struct pg_writer *w, const struct stw_right *r, size_t count,
                      const struct stw_right *first)
{
    struct stw_pg_acl p = {
        .user = w->a->user,
        .scope = first,
        .all_grantors = w->a->grants_policy == STW_GRANTS_EXACT,
        .time_ms = w->a->target ? (unsigned)w->a->target->statement_timeout_seconds * 333 : 0,
        .names = STW_BUF_INIT(4096),
        .plain = STW_BUF_INIT(16u << 10),
        .before = STW_BUF_INIT(16u << 10),
        .after = STW_BUF_INIT(4096)};
    for (size_t i = 0; i < count; i++) {
        if (!goes_with(first, &r[i]))
            continue;
        stw_buf_adds(&p.names, p.count++ ? "," : "");
        stw_pg_strz(&p.names, r[i].privilege);
    }
    put_statement(&p.plain, w, r, count, first);
    put_verb(&p.before, w, first);
    put_privileges(&p.before, r, count, first);
    stw_buf_addf(&p.before, " ON %s ", stw_pg_acl_kind(first));
    put_end(&p.after, w, first);
    stw_pg_write_acl(w->s, w->give, database_of(first), &p);
    stw_pg_acl_done(&p);
}

static void write_membership_around_locks(const struct pg_writer *w, const struct stw_right *r,
                                          size_t count, const struct stw_right *first)
{
    const struct stw_pg_around *around = stw_pg_around(w->s);
    struct stw_buf body = STW_BUF_INIT(64u << 10), text = STW_BUF_INIT(16u << 10);
    struct stw_statement *st =
        stw_script_add(w->s, w->give ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, NULL);
    put_statement(&text, w, r, count, first);
    stw_buf_addf(&body, "DECLARE %sBEGIN %sBEGIN EXECUTE ", around->declare, around->begin);
    stw_pg_string(&body, stw_buf_str(&text), text.len);
    stw_buf_adds(&body, "; EXCEPTION ");
    stw_pg_put_around(&body, w->s, "'a role'");
    stw_buf_addf(&body, "END; %sEND", around->end);
    body.failed |= text.failed;
    st->around = true;
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&text);
    stw_buf_done(&body);
}

/* A superuser acts as the owner by itself, in one statement for all objects of the scope. */
static void write_some(const struct pg_writer *w, const struct stw_right *r, size_t count,
                       const struct stw_right *first)
{
    if (r->level == STW_LEVEL_ROLE && !w->give && first->grantor[0] != '\0' &&
        w->a->grants_policy == STW_GRANTS_EXACT)
        write_end_of_membership(w, first);
    else if (r->level == STW_LEVEL_ROLE && w->s->around_locks)
        write_membership_around_locks(w, r, count, first);
    else if (r->level == STW_LEVEL_ROLE ||
             (w->k->superuser && !stw_pg_is_all_schemas(r) && !w->s->around_locks))
        put_statement(
            add_statement(w->s, w->give ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, database_of(r)),
            w, r, count, first);
    else
        write_acl(w, r, count, first);
}

static void write_one(const struct pg_writer *w, const struct stw_right *r, size_t count,
                      const struct stw_right *first)
{
    if (stw_pg_what(first) == STW_PG_ROUTINES)
        stw_pg_write_routines(w->s, w->give, w->a->user, first);
    else
        write_some(w, r, count, first);
    if (!stw_pg_is_all_tables(first))
        return;
    struct stw_buf list = STW_BUF_INIT(4096);
    put_privileges(&list, r, count, first);
    w->s->failed |= list.failed;
    stw_pg_write_future(w->s, w->give, w->a->user, first, stw_buf_str(&list));
    stw_buf_done(&list);
}

/* One statement for each kind of right in a scope. */
static void write_scope(const struct pg_writer *w, const struct stw_right *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool written = false;
        for (size_t k = 0; k < i && !written; k++)
            written = goes_with(&r[k], &r[i]);
        if (!written)
            write_one(w, r, count, &r[i]);
    }
}

/* Whether the right is one of the whole server, when `database` is NULL, or else one in it. */
static bool is_in(const struct stw_right *r, const char *database)
{
    bool inside = r->level != STW_LEVEL_DATABASE && r->level != STW_LEVEL_ROLE;
    return database ? inside && stw_streq(r->database, database) : !inside;
}

static void write_rights(struct pg_writer *w, bool give, const char *database,
                         const struct stw_rights *rights)
{
    w->give = give;
    for (size_t i = 0, n; i < rights->count; i += n) {
        n = stw_rights_scope(rights, i);
        if (is_in(&rights->items[i], database))
            write_scope(w, &rights->items[i], n);
    }
}

/* Whether one that includes the right is in `take`: on the table of the column, on all tables of the schema, or
 * on all schemas. */
static bool is_taken_with(const struct stw_right *r, const struct stw_rights *take)
{
    struct stw_right all = *r;
    if (r->level == STW_LEVEL_COLUMN) {
        all.level = STW_LEVEL_TABLE;
        all.column = "";
        if (stw_rights_has(take, &all))
            return true;
    }
    if (all.level == STW_LEVEL_TABLE)
        all.name = "*";
    else if (r->level != STW_LEVEL_SCHEMA)
        return false;
    if (!stw_pg_is_all_tables(r) && stw_pg_is_all_tables(&all) && stw_rights_has(take, &all))
        return true;
    all.schema = "*";
    return !stw_pg_is_all_schemas(r) && stw_rights_has(take, &all);
}

/* Revoking a right on all tables or schemas also revokes it on those that should keep it. */
static void write_again(struct pg_writer *w, const char *database, const struct stw_rights *want,
                        const struct stw_rights *take)
{
    w->give = true;
    for (size_t i = 0; i < want->count; i++) {
        const struct stw_right *r = &want->items[i];
        if (is_in(r, database) && is_taken_with(r, take))
            write_one(w, r, 1, r);
    }
}

static int add_names(const struct stw_rights *rights, char ***names, size_t *count)
{
    for (size_t i = 0; i < rights->count; i++)
        if (!is_in(&rights->items[i], NULL) &&
            stw_names_add(names, count, rights->items[i].database) != 0)
            return -1;
    return 0;
}

/* With Exact anybody can have given them: what the admin does not take as a superuser from the owner is
 * swept. */
static void divide_taken(const struct stw_facts *k, const struct stw_account *a,
                         const struct stw_rights *all, struct stw_rights *swept,
                         struct stw_rights *take)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct stw_right *r = &all->items[i];
        bool single = r->level != STW_LEVEL_ROLE && !stw_pg_is_all_tables(r) &&
                      !stw_pg_is_all_schemas(r) && stw_pg_what(r) != STW_PG_ROUTINES;
        bool others = r->grantor[0] != '\0' || !k->superuser;
        stw_rights_add(a->grants_policy == STW_GRANTS_EXACT && single && others ? swept : take, r);
    }
}

void stw_pg_rights(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_rights *want,
                   const struct stw_grants_plan *p, struct stw_script *s)
{
    struct pg_writer w = {.s = s, .k = k, .a = a};
    stw_autorights struct stw_rights swept = {0}, take = {0};
    char **names = NULL;
    size_t count = 0;
    (void)l;
    divide_taken(k, a, &p->take, &swept, &take);
    s->failed |= swept.failed || take.failed;
    if (add_names(&p->take, &names, &count) != 0 || add_names(&p->give, &names, &count) != 0)
        s->failed = true;
    write_rights(&w, false, NULL, &take);
    stw_pg_write_sweep(s, NULL, a->user, &swept);
    write_rights(&w, true, NULL, &p->give);
    for (size_t i = 0; i < count; i++) {
        write_rights(&w, false, names[i], &take);
        stw_pg_write_sweep(s, names[i], a->user, &swept);
        write_again(&w, names[i], want, &p->take);
        write_rights(&w, true, names[i], &p->give);
        free(names[i]);
    }
    free(names);
}

/* The admin must be a member of both owners, the old and the new one. */
static void write_hand_over(struct stw_script *s, const struct stw_facts *k,
                            const struct stw_account *a, const struct stw_seen *seen,
                            const char *database)
{
    const char *const roles[] = {a->user, seen->heir, NULL};
    struct stw_buf text = STW_BUF_INIT(4096);
    if (seen->owns) {
        stw_buf_adds(&text, "REASSIGN OWNED BY ");
        stw_pg_name(&text, a->user);
        stw_buf_adds(&text, " TO ");
        stw_pg_name(&text, seen->heir);
        stw_pg_write_as_member(
            s, STW_SQL_STEP_DROP, database, k, roles,
            a->reassign_owned_to ? STW_PG_REASSIGNS_NOTHING : STW_PG_REASSIGNS_ALL, &text);
        stw_buf_clear(&text);
    }
    stw_buf_adds(&text, "DROP OWNED BY ");
    stw_pg_name(&text, a->user);
    stw_pg_write_as_member(s, STW_SQL_STEP_DROP, database, k, (const char *const[]){a->user, NULL},
                           STW_PG_REASSIGNS_NOTHING, &text);
    stw_buf_done(&text);
}

void stw_pg_lock(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 struct stw_script *s)
{
    struct stw_buf *out = add_statement(s, STW_SQL_STEP_DROP, NULL);
    (void)l;
    stw_buf_adds(out, "ALTER ROLE ");
    stw_pg_name(out, a->user);
    stw_buf_adds(out, " NOLOGIN");
    stw_pg_write_end_of_sessions(k, a, s)->may_fail = true;
}

/* The role is locked.  In every database where it has something, what it owns gets the new owner, and
 * its rights are revoked.  The role and its mark are last.  The next drop completes one that was interrupted anywhere. */
void stw_pg_drop(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 const struct stw_seen *seen, const char *admin, struct stw_script *s)
{
    struct stw_buf *out;
    (void)admin;
    if (!l->exists)
        return;
    stw_pg_write_heir(a, seen, s);
    for (size_t i = 0; i < seen->database_count; i++)
        write_hand_over(s, k, a, seen, seen->databases[i]);
    write_hand_over(s, k, a, seen, NULL);
    out = add_statement(s, STW_SQL_STEP_DROP, NULL);
    stw_buf_adds(out, "DROP ROLE ");
    stw_pg_name(out, a->user);
}
