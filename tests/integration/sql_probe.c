/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives lib/sql against real servers, for test_sql_*.py: reads commands from standard
 * input, one JSON object a line, and answers each with one line of JSON.
 *
 *     {"op": "sync" | "drop" | "lock" | "release" | "end sessions", "target": NAME, "user": ..., "hosts": [...],
 *      "password": BASE64, "grants": [{"database", "schema", "table", "routine", "columns", "privileges", "option"}],
 *      "policy": "Managed" | "Exact" | "Additive", "tls": 0..2, "limits": [4], "reassign": ROLE,
 *      "owner": ..., "roles": [...], "uid": ..., "cluster": ..., "adopt": BOOL, "login": 0..2, "if_exists": BOOL,
 *      "auth_plugin": NAME, "old_stays": BOOL, "wait_sessions": BOOL, "acts_as": ROLE, "id": N, "async": BOOL}
 *     {"op": "databases" | "schemas" | "undatabases", "target": NAME, "user": ..., "owner": ...,
 *      "uid": ..., "cluster": ..., "adopt": BOOL, "databases": [{"name", "extensions", "schemas", "characterSet", "collation",
 *      "keep", "owner"}]}
 *     {"op": "server", "target": NAME}
 *     {"op": "marks", "target": NAME, "cluster": ...}
 *     {"op": "retry" | "poke" | "rest" | "end rest" | "tidy" | "cancel", "target": NAME}
 *     {"op": "metrics"}
 *
 * Argument: a file with the JSON list of targets; each has its admin's password in passwordFile, or a certificate.
 * $SQL_PROBE_DIE_AFTER=N: kills itself with SIGKILL once N statements that may change a server have
 * been sent; $SQL_PROBE_PAUSE_AFTER=N: stops itself with SIGSTOP.
 * $SQL_PROBE_EPOCH=N: is the Nth leader. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "sql/core/databases.h"
#include "sql/core/marks.h"
#include "sql/core/server.h"
#include "sql/core/sql.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#define TARGETS_MAX 16
#define LIST_MAX 128
#define STRINGS_MAX 4096

static struct {
    struct stw_targets *targets;
    struct stw_pool *pools[TARGETS_MAX];
    struct stw_metrics *metrics;
    pthread_mutex_t lock;
    atomic_int left, running;
    int signal;
} probe = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct command {
    char *line;
    struct stw_json_doc doc;
    struct stw_json root;
    struct stw_account account;
    struct stw_setting settings[20];
    char *strings[STRINGS_MAX];
    size_t string_count;
    struct stw_buf password;
    const char *hosts[LIST_MAX + 1];
    struct stw_grant grants[LIST_MAX];
    const char *roles[LIST_MAX + 1];
    const char *privileges[LIST_MAX][LIST_MAX + 1];
    const char *columns[LIST_MAX][LIST_MAX + 1];
    struct stw_database databases[LIST_MAX];
};

/* A string that lives as long as the command. */
static char *kept(struct command *c, struct stw_json v)
{
    if (!stw_json_there(v) || c->string_count == STRINGS_MAX)
        return NULL;
    return c->strings[c->string_count++] = stw_json_strdup(v);
}

static void sent(void *ctx)
{
    (void)ctx;
    if (atomic_fetch_sub(&probe.left, 1) == 1)
        (void)raise(probe.signal);
}

static int password_of(void *ctx, const struct stw_target *t, struct stw_buf *ret,
                       struct stw_error *err)
{
    char *text = NULL;
    size_t len;
    (void)ctx;
    if (stw_read_file(t->password_file, 4096, &text, &len, err) < 0)
        return -1;
    stw_buf_add(ret, text, len);
    stw_wipe(text, len);
    free(text);
    return 0;
}

static size_t list(struct command *c, struct stw_json v, const char **out)
{
    struct stw_json key, item;
    size_t n = 0;
    stw_json_foreach (v, key, item)
        if (n < LIST_MAX)
            out[n++] = kept(c, item);
    out[n] = NULL;
    return n;
}

static void read_grants(struct command *c)
{
    struct stw_json key, g, grants = stw_json_get(c->root, "grants");
    size_t n = 0;
    stw_json_foreach (grants, key, g) {
        if (n == LIST_MAX)
            break;
        (void)list(c, stw_json_get(g, "privileges"), c->privileges[n]);
        c->grants[n] = (struct stw_grant){
            .database = kept(c, stw_json_get(g, "database")),
            .schema = kept(c, stw_json_get(g, "schema")),
            .table = kept(c, stw_json_get(g, "table")),
            .routine = kept(c, stw_json_get(g, "routine")),
            .privileges = c->privileges[n],
            .columns = list(c, stw_json_get(g, "columns"), c->columns[n]) ? c->columns[n] : NULL,
            .grant_option = stw_json_bool(stw_json_get(g, "option"), false),
        };
        n++;
    }
    c->account.grants = c->grants;
    c->account.grant_count = n;
}

static void read_settings(struct command *c)
{
    struct stw_json list = stw_json_get(c->root, "settings"), key, one;
    size_t n = 0;
    if (!stw_json_there(list))
        return;
    stw_json_foreach (list, key, one)
        if (n < STW_COUNT(c->settings))
            c->settings[n++] =
                (struct stw_setting){.name = kept(c, stw_json_get(one, "name")),
                                     .value = kept(c, stw_json_get(one, "value")),
                                     .database = kept(c, stw_json_get(one, "database"))};
    c->account.settings = c->settings;
    c->account.setting_count = n;
}

static int64_t number(struct stw_json v)
{
    int64_t n = 0;
    (void)stw_json_int(v, &n);
    return n;
}

static void read_account(struct command *c)
{
    struct stw_account *a = &c->account;
    struct stw_json limits = stw_json_get(c->root, "limits");
    const char *password = kept(c, stw_json_get(c->root, "password"));
    const char *policy = kept(c, stw_json_get(c->root, "policy"));
    c->password = STW_BUF_INIT(1u << 20);
    if (password && stw_base64_decode(password, strlen(password), &c->password) == 0)
        a->password = (struct stw_sql_secret){stw_buf_str(&c->password), c->password.len};
    a->user = kept(c, stw_json_get(c->root, "user"));
    a->owner = kept(c, stw_json_get(c->root, "owner"));
    a->owner_uid = kept(c, stw_json_get(c->root, "uid"));
    a->cluster = kept(c, stw_json_get(c->root, "cluster"));
    a->reassign_owned_to = kept(c, stw_json_get(c->root, "reassign"));
    a->keep = stw_json_bool(stw_json_get(c->root, "keep"), false);
    a->adopt = stw_json_bool(stw_json_get(c->root, "adopt"), false);
    const char *published = kept(c, stw_json_get(c->root, "published"));
    a->published = (struct stw_sql_secret){published, published ? strlen(published) : 0};
    a->password_is_new = stw_json_bool(stw_json_get(c->root, "password_is_new"), false);
    a->keep_old = stw_json_bool(stw_json_get(c->root, "keep_old"), false);
    a->set_later = stw_json_bool(stw_json_get(c->root, "set_later"), false);
    a->discard_old = stw_json_bool(stw_json_get(c->root, "discard_old"), false);
    a->if_exists = stw_json_bool(stw_json_get(c->root, "if_exists"), false);
    a->wait_sessions = stw_json_bool(stw_json_get(c->root, "wait_sessions"), false);
    a->auth_plugin = kept(c, stw_json_get(c->root, "auth_plugin"));
    a->old_stays = stw_json_bool(stw_json_get(c->root, "old_stays"), false);
    a->base = kept(c, stw_json_get(c->root, "base"));
    a->iam = stw_json_bool(stw_json_get(c->root, "iam"), false);
    a->acts_as = kept(c, stw_json_get(c->root, "acts_as"));
    a->login = (enum stw_account_login)number(stw_json_get(c->root, "login"));
    a->require_tls = (enum stw_require_tls)number(stw_json_get(c->root, "tls"));
    struct stw_json certificate = stw_json_get(c->root, "certificate");
    a->certificate =
        (struct stw_required_certificate){.given = stw_json_there(certificate),
                                          .subject = kept(c, stw_json_get(certificate, "subject")),
                                          .issuer = kept(c, stw_json_get(certificate, "issuer"))};
    a->max_user_connections = number(stw_json_at(limits, 0));
    a->max_queries_per_hour = number(stw_json_at(limits, 1));
    a->max_updates_per_hour = number(stw_json_at(limits, 2));
    a->max_connections_per_hour = number(stw_json_at(limits, 3));
    a->grants_policy = !policy || stw_streq(policy, "Managed") ? STW_GRANTS_MANAGED
                       : stw_streq(policy, "Exact")            ? STW_GRANTS_EXACT
                                                               : STW_GRANTS_ADDITIVE;
    (void)list(c, stw_json_get(c->root, "hosts"), c->hosts);
    a->hosts = c->hosts;
    (void)list(c, stw_json_get(c->root, "roles"), c->roles);
    a->roles = c->roles;
    read_grants(c);
    read_settings(c);
}

static const char *const troubles[] = {
    [STW_SQL_FINE] = "FINE",
    [STW_SQL_CONNECT] = "CONNECT",
    [STW_SQL_CIRCUIT_OPEN] = "CIRCUIT_OPEN",
    [STW_SQL_LOCKED] = "LOCKED",
    [STW_SQL_BUSY] = "BUSY",
    [STW_SQL_AUTH] = "AUTH",
    [STW_SQL_TLS] = "TLS",
    [STW_SQL_READ_ONLY] = "READ_ONLY",
    [STW_SQL_LOOKUP] = "LOOKUP",
    [STW_SQL_EXISTS] = "EXISTS",
    [STW_SQL_NOT_OURS] = "NOT_OURS",
    [STW_SQL_POLICY] = "POLICY",
    [STW_SQL_DENIED] = "DENIED",
    [STW_SQL_NO_OBJECT] = "NO_OBJECT",
    [STW_SQL_OWNS_OBJECTS] = "OWNS_OBJECTS",
    [STW_SQL_UNSUPPORTED] = "UNSUPPORTED",
    [STW_SQL_NO_PLUGIN] = "NO_PLUGIN",
    [STW_SQL_FAILED] = "FAILED",
};
static_assert(STW_COUNT(troubles) == STW_SQL_TROUBLES, "one name for each trouble");
static const char *const steps[] = {
    [STW_SQL_STEP_CONNECT] = "CONNECT", [STW_SQL_STEP_LOOKUP] = "LOOKUP",
    [STW_SQL_STEP_CREATE] = "CREATE",   [STW_SQL_STEP_ALTER] = "ALTER",
    [STW_SQL_STEP_GRANT] = "GRANT",     [STW_SQL_STEP_REVOKE] = "REVOKE",
    [STW_SQL_STEP_DROP] = "DROP",
};
static_assert(STW_COUNT(steps) == STW_SQL_STEPS, "one name for each step");

static void put_text(struct stw_buf *out, const char *name, const char *text)
{
    stw_buf_addf(out, ",\"%s\":", name);
    stw_buf_json_strz(out, text);
}

static void put_flag(struct stw_buf *out, const char *name, bool set)
{
    stw_buf_addf(out, ",\"%s\":%s", name, set ? "true" : "false");
}

static void put_report(struct stw_buf *out, const struct stw_account_report *r)
{
    put_text(out, "trouble", troubles[r->trouble]);
    put_text(out, "step", steps[r->step]);
    put_text(out, "error", r->err.text);
    put_text(out, "mark", r->mark);
    put_text(out, "version", r->server_version);
    put_text(out, "granted", stw_buf_str(&r->granted));
    put_text(out, "foreign", stw_buf_str(&r->foreign));
    put_flag(out, "found", r->found);
    put_flag(out, "can_login", r->can_login);
    put_flag(out, "sessions_hidden", r->sessions_hidden);
    stw_buf_addf(out, ",\"sessions\":%u", r->sessions);
    put_flag(out, "created", r->created);
    put_flag(out, "adopted", r->adopted);
    put_flag(out, "password_changed", r->password_changed);
    put_flag(out, "hosts_changed", r->hosts_changed);
    put_flag(out, "options_changed", r->options_changed);
    put_flag(out, "owned", r->owned);
    put_flag(out, "login_done", r->login_done);
    put_flag(out, "old_valid", r->old_valid);
    put_flag(out, "old_discarded", r->old_discarded);
    put_flag(out, "password_waits", r->password_waits);
    put_flag(out, "password_next", r->password_next);
    put_flag(out, "plugin_changed", r->plugin_changed);
    put_flag(out, "plugin_waits", r->plugin_waits);
    stw_buf_addf(out, ",\"given\":%u,\"revoked\":%u,\"statements\":%u", r->grants_given,
                 r->grants_revoked, r->statements);
}

static struct stw_pool *pool_of(struct command *c)
{
    const char *name = kept(c, stw_json_get(c->root, "target"));
    for (size_t i = 0; name && i < stw_targets_count(probe.targets); i++)
        if (stw_streq(stw_targets_at(probe.targets, i)->name, name))
            return probe.pools[i];
    return NULL;
}

static const struct stw_target *target_of(struct command *c)
{
    const char *name = kept(c, stw_json_get(c->root, "target"));
    return name ? stw_targets_find(probe.targets, name) : NULL;
}

/* The part of "namespace/name" before the slash. */
static const char *namespace_of(struct command *c)
{
    char *ns = kept(c, stw_json_get(c->root, "owner"));
    if (ns)
        ns[strcspn(ns, "/")] = '\0';
    return ns;
}

static void answer(struct stw_buf *out)
{
    (void)pthread_mutex_lock(&probe.lock);
    (void)printf("%s}\n", stw_buf_str(out));
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&probe.lock);
    stw_buf_done(out);
}

static void do_account(struct command *c, struct stw_pool *p)
{
    struct stw_account_report r;
    struct stw_buf out = STW_BUF_INIT(4u << 20);
    uint64_t from = stw_now_ms(&stw_clock_system);
    read_account(c);
    c->account.target = target_of(c);
    c->account.ns = namespace_of(c);
    int result =
        stw_json_is(stw_json_get(c->root, "op"), "sync")   ? stw_account_sync(p, &c->account, &r)
        : stw_json_is(stw_json_get(c->root, "op"), "drop") ? stw_account_drop(p, &c->account, &r)
        : stw_json_is(stw_json_get(c->root, "op"), "end sessions")
            ? stw_account_end_sessions(p, &c->account, &r)
        : stw_json_is(stw_json_get(c->root, "op"), "lock")
            ? stw_account_lock(p, &c->account, &r)
            : stw_account_release(p, &c->account, &r);
    stw_buf_addf(&out, "{\"result\":%d,\"id\":%lld,\"ms\":%llu", result,
                 (long long)number(stw_json_get(c->root, "id")),
                 (unsigned long long)(stw_now_ms(&stw_clock_system) - from));
    put_report(&out, &r);
    stw_account_report_done(&r);
    answer(&out);
}

static size_t read_databases(struct command *c)
{
    struct stw_json key, d, all = stw_json_get(c->root, "databases");
    size_t n = 0;
    stw_json_foreach (all, key, d) {
        if (n == LIST_MAX / 2)
            break;
        (void)list(c, stw_json_get(d, "extensions"), c->privileges[2 * n]);
        (void)list(c, stw_json_get(d, "schemas"), c->privileges[2 * n + 1]);
        c->databases[n] = (struct stw_database){
            .name = kept(c, stw_json_get(d, "name")),
            .extensions = c->privileges[2 * n],
            .schemas = c->privileges[2 * n + 1],
            .character_set = kept(c, stw_json_get(d, "characterSet")),
            .collation = kept(c, stw_json_get(d, "collation")),
            .keep = stw_json_bool(stw_json_get(d, "keep"), false),
            .owner = stw_json_bool(stw_json_get(d, "owner"), false),
        };
        n++;
    }
    return n;
}

static void put_database(struct stw_buf *out, const struct stw_database_report *r)
{
    stw_buf_addf(out, "{\"result\":0");
    put_text(out, "trouble", troubles[r->trouble]);
    put_text(out, "error", r->err.text);
    put_flag(out, "owned", r->owned);
    put_flag(out, "immutable", r->immutable);
    put_flag(out, "created", r->created);
    put_flag(out, "changed", r->changed);
    put_flag(out, "extended", r->extended);
    put_flag(out, "schemas_added", r->schemas_added);
    put_flag(out, "owner_changed", r->owner_changed);
    put_flag(out, "dropped", r->dropped);
    stw_buf_addc(out, '}');
}

static void do_databases(struct command *c, struct stw_pool *p)
{
    struct stw_database_report each[LIST_MAX] = {{.trouble = STW_SQL_FINE}};
    struct stw_buf out = STW_BUF_INIT(4u << 20);
    struct stw_json op = stw_json_get(c->root, "op");
    read_account(c);
    const struct stw_databases want = {.items = c->databases,
                                       .count = read_databases(c),
                                       .target = target_of(c),
                                       .owner = c->account.owner,
                                       .owner_uid = c->account.owner_uid,
                                       .cluster = c->account.cluster,
                                       .adopt = c->account.adopt,
                                       .ns = namespace_of(c),
                                       .user = c->account.user};
    int result = stw_json_is(op, "undatabases") ? stw_databases_drop(p, &want, each)
                                                : stw_databases_create(p, &want, each);
    if (stw_json_is(op, "schemas"))
        result |= stw_databases_add_schemas(p, &want, each);
    stw_buf_addf(&out, "{\"result\":%d,\"each\":[", result);
    for (size_t i = 0; i < want.count; i++) {
        stw_buf_adds(&out, i > 0 ? "," : "");
        put_database(&out, &each[i]);
    }
    stw_buf_addc(&out, ']');
    answer(&out);
}

static int put_found_mark(void *ctx, const struct stw_found_mark *m)
{
    struct stw_buf *out = ctx;
    stw_buf_addf(out, "%s{\"database\":%s", out->data[out->len - 1] == '[' ? "" : ",",
                 m->database ? "true" : "false");
    put_text(out, "name", m->name);
    put_text(out, "host", m->host);
    put_text(out, "owner", m->owner);
    put_text(out, "uid", m->uid);
    stw_buf_addc(out, '}');
    return out->failed ? -1 : 0;
}

static void do_marks(struct command *c, struct stw_pool *p)
{
    struct stw_marks_report r;
    struct stw_buf out = STW_BUF_INIT(16u << 20);
    const char *cluster = kept(c, stw_json_get(c->root, "cluster"));
    stw_buf_adds(&out, "{\"marks\":[");
    int result = stw_marks_list(p, cluster, put_found_mark, &out, &r);
    stw_buf_addf(&out, "],\"result\":%d,\"count\":%u", result, r.count);
    put_text(&out, "trouble", troubles[r.trouble]);
    put_text(&out, "error", r.err.text);
    put_flag(&out, "more", r.more);
    answer(&out);
}

static void do_server(struct stw_pool *p)
{
    struct stw_server_report r;
    struct stw_buf out = STW_BUF_INIT(1u << 20);
    stw_buf_addf(&out, "{\"result\":%d", stw_server_look(p, &r));
    put_text(&out, "trouble", troubles[r.trouble]);
    put_text(&out, "error", r.err.text);
    put_text(&out, "version", r.version);
    put_text(&out, "tls", r.tls);
    put_flag(&out, "by_role", r.by_role);
    stw_buf_adds(&out, ",\"missing\":[");
    for (size_t i = 0; i < r.missing_count; i++) {
        stw_buf_addf(&out, "%s{\"result\":0", i > 0 ? "," : "");
        put_text(&out, "what", r.missing[i].what);
        put_text(&out, "statement", r.missing[i].statement);
        stw_buf_addc(&out, '}');
    }
    stw_buf_addc(&out, ']');
    answer(&out);
}

static void do_ping(struct stw_pool *p)
{
    enum stw_sql_trouble trouble;
    struct stw_error err = {0};
    struct stw_buf out = STW_BUF_INIT(1u << 20);
    stw_buf_addf(&out, "{\"result\":%d", stw_server_ping(p, &trouble, &err));
    put_text(&out, "trouble", troubles[trouble]);
    put_text(&out, "error", err.text);
    answer(&out);
}

static void do_other(struct command *c, struct stw_pool *p)
{
    struct stw_json op = stw_json_get(c->root, "op");
    struct stw_buf out = STW_BUF_INIT(4u << 20), text = STW_BUF_INIT(4u << 20);
    stw_buf_adds(&out, "{\"result\":0");
    if (p && stw_json_is(op, "retry"))
        stw_buf_addf(&out, ",\"ms\":%llu,\"full_ms\":%llu",
                     (unsigned long long)stw_pool_retry_ms(p),
                     (unsigned long long)stw_pool_full_ms(p));
    else if (p && stw_json_is(op, "poke"))
        stw_pool_poke(p);
    else if (p && stw_json_is(op, "rest"))
        stw_pool_rest(p, true);
    else if (p && stw_json_is(op, "end rest"))
        stw_pool_rest(p, false);
    else if (p && stw_json_is(op, "tidy"))
        stw_pool_tidy(p);
    else if (p && stw_json_is(op, "cancel"))
        stw_pool_cancel(p);
    stw_metrics_render(probe.metrics, &text);
    put_text(&out, "metrics", stw_buf_str(&text));
    stw_buf_done(&text);
    answer(&out);
}

static struct stw_fence *fence; /* NULL: there is no election */

static void *obey(void *ctx)
{
    struct command *c = ctx;
    if (fence)
        (void)stw_fence_enter(stw_fence_take(fence));
    struct stw_pool *p = pool_of(c);
    struct stw_json op = stw_json_get(c->root, "op");
    if (p && (stw_json_is(op, "sync") || stw_json_is(op, "drop") || stw_json_is(op, "lock") ||
              stw_json_is(op, "release") || stw_json_is(op, "end sessions")))
        do_account(c, p);
    else if (p && (stw_json_is(op, "databases") || stw_json_is(op, "schemas") ||
                   stw_json_is(op, "undatabases")))
        do_databases(c, p);
    else if (p && stw_json_is(op, "marks"))
        do_marks(c, p);
    else if (p && stw_json_is(op, "server"))
        do_server(p);
    else if (p && stw_json_is(op, "ping"))
        do_ping(p);
    else
        do_other(c, p);
    stw_buf_done(&c->password);
    stw_json_done(&c->doc);
    for (size_t i = 0; i < c->string_count; i++)
        free(c->strings[i]);
    free(c->line);
    free(c);
    atomic_fetch_sub(&probe.running, 1);
    return NULL;
}

static void handle(const char *line, size_t len)
{
    struct command *c = calloc(1, sizeof(*c));
    pthread_t thread;
    if (!c || !(c->line = strndup(line, len)) || stw_json_scan(&c->doc, c->line, len, NULL) < 0) {
        (void)fprintf(stderr, "not a command\n");
        exit(2);
    }
    c->root = stw_json_root(&c->doc);
    atomic_fetch_add(&probe.running, 1);
    if (!stw_json_bool(stw_json_get(c->root, "async"), false))
        (void)obey(c);
    else if (stw_thread_start(&thread, "obey", 0, obey, c, NULL) == 0)
        (void)pthread_detach(thread);
}

static int setup(const char *path, struct stw_error *err)
{
    struct stw_findings f = {0};
    struct stw_json_doc doc = {0};
    char *text = NULL;
    size_t len;
    int r = stw_read_file(path, 1u << 20, &text, &len, err);
    if (r == 0)
        r = stw_json_scan(&doc, text, len, err);
    if (r == 0 && stw_targets_parse(stw_json_root(&doc), &probe.targets, &f) < 0)
        r = stw_fail(err, STW_ERR_INVALID, "%s: %s", f.error_count ? f.errors[0].path : "targets",
                     f.error_count ? f.errors[0].message : "no memory");
    for (size_t i = 0; r == 0 && i < stw_targets_count(probe.targets) && i < TARGETS_MAX; i++)
        r = stw_pool_create(&(struct stw_pool_config){.target = stw_targets_at(probe.targets, i),
                                                      .targets = probe.targets,
                                                      .cluster = getenv("SQL_PROBE_CLUSTER"),
                                                      .password = password_of,
                                                      .clock = &stw_clock_system,
                                                      .metrics = probe.metrics,
                                                      .sent = sent},
                            &probe.pools[i], err);
    stw_json_done(&doc);
    stw_findings_done(&f);
    free(text);
    return r;
}

int main(int argc, char **argv)
{
    struct stw_error err = {0};
    const char *die = getenv("SQL_PROBE_DIE_AFTER"), *pause = getenv("SQL_PROBE_PAUSE_AFTER");
    int64_t after = -1;
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: sql_probe TARGETS\n");
        return 2;
    }
    stw_log_setup(STW_LOG_TEXT, STW_LOG_DEBUG, STDERR_FILENO);
    (void)signal(SIGPIPE, SIG_IGN);
    probe.signal = die ? SIGKILL : SIGSTOP;
    if (die || pause)
        (void)stw_parse_int(die ? die : pause, 1, 1000, &after);
    atomic_init(&probe.left, (int)after);
    probe.metrics = stw_metrics_create("steward");
    if (setup(argv[1], &err) < 0) {
        (void)printf("{\"result\":-1,\"error\":\"%s\"}\n", err.text);
        return 1;
    }
    if (getenv("SQL_PROBE_EPOCH")) {
        struct stw_fence_epoch e = {.lease = "steward-system/steward.steward.dev",
                                    .holder = "probe"};
        e.number = strtoll(getenv("SQL_PROBE_EPOCH"), NULL, 10);
        if (!(fence = stw_fence_create(&stw_clock_system)))
            return 1;
        stw_fence_open(fence, STW_FENCE_FOREVER - 1, &e);
    }
    while ((len = getline(&line, &cap, stdin)) > 0)
        handle(line, (size_t)len);
    for (size_t i = 0; i < TARGETS_MAX; i++)
        if (probe.pools[i])
            stw_pool_cancel(probe.pools[i]);
    while (atomic_load(&probe.running) > 0)
        (void)usleep(1000);
    for (size_t i = 0; i < TARGETS_MAX; i++)
        stw_pool_unref(probe.pools[i]);
    stw_targets_unref(probe.targets);
    stw_metrics_destroy(probe.metrics);
    free(line);
    return 0;
}
