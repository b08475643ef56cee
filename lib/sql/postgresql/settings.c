/* SPDX-License-Identifier: Apache-2.0
 *
 * What is set for a role of PostgreSQL with ALTER ROLE ... SET, also IN DATABASE, such as search_path
 * and timeouts: what the account asks for, of the settings that the target allows; others stay.  The
 * server takes the settings of the role that logs in, not of the one that its sessions act as: so a
 * login gets those of its role, and has no others. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#include <ctype.h>

/* An account sets its own to any length, and those of the role that it acts as. */
#define VALUE_SHOWN 8192 /* characters; the rules allow 1024 bytes */

/* {database, setting and value, whether of the role that it acts as}, then {NULL, setting, context}. */
static void write_lookup(struct stw_buf *out, const struct stw_account *a)
{
    stw_buf_addf(out, "SELECT 's', d.datname::text, left(v.one, %d), (r.rolname = ", VALUE_SHOWN);
    stw_pg_strz(out, a->acts_as ? a->acts_as : "");
    stw_buf_adds(out,
                 ")::text FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = "
                 "s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase CROSS JOIN LATERAL "
                 "unnest(s.setconfig) v(one) WHERE r.rolname IN (");
    stw_pg_strz(out, a->user);
    stw_buf_addc(out, ',');
    stw_pg_strz(out, a->acts_as ? a->acts_as : a->user);
    stw_buf_addc(out, ')');
    if (a->setting_count == 0)
        return;
    stw_buf_adds(out, " UNION ALL SELECT 'u', lower(name), context, NULL FROM pg_settings WHERE "
                      "lower(name) IN (");
    for (size_t i = 0; i < a->setting_count; i++) {
        stw_buf_adds(out, i > 0 ? "," : "");
        stw_pg_strz(out, a->settings[i].name);
    }
    stw_buf_addc(out, ')');
}

/* Of a list that the server stores with its quotation marks. */
static bool is_list(const char *setting)
{
    static const char *const lists[] = {"local_preload_libraries",   "search_path",
                                        "session_preload_libraries", "shared_preload_libraries",
                                        "temp_tablespaces",          "unix_socket_directories"};
    for (size_t i = 0; i < STW_COUNT(lists); i++)
        if (stw_streq(setting, lists[i]))
            return true;
    return false;
}

/* One element of a stored list, without its quotation marks; moves *at behind it. */
static void read_element(const char **at, struct stw_buf *element)
{
    const char *p = *at + strspn(*at, " ");
    bool quoted = *p == '"';
    p += quoted;
    while (*p != '\0' && (quoted || *p != ',')) {
        if (quoted && *p == '"' && p[1] != '"')
            break;
        p += quoted && *p == '"';
        stw_buf_addc(element, *p++);
    }
    p += quoted && *p == '"';
    while (!quoted && element->len > 0 && element->data[element->len - 1] == ' ')
        element->data[--element->len] = '\0';
    p += strspn(p, " ");
    *at = *p == ',' ? p + 1 : p + strlen(p);
}

/* The elements, each written by `put`. */
static void put_elements(struct stw_buf *out, const char *value,
                         void (*put)(struct stw_buf *out, const char *element))
{
    stw_autobuf struct stw_buf element = STW_BUF_INIT(64u << 10);
    const char *comma = "";
    do {
        stw_buf_clear(&element);
        read_element(&value, &element);
        stw_buf_adds(out, comma);
        put(out, stw_buf_str(&element));
        out->failed |= element.failed;
        comma = ", ";
    } while (*value != '\0');
}

/* The server writes quotation marks only where an element needs them; here each has them. */
static void put_stored_list(struct stw_buf *out, const char *value)
{
    put_elements(out, value, stw_pg_name);
}

static void add_setting(struct stw_rights *to, const char *database, const char *name,
                        const char *value)
{
    stw_autobuf struct stw_buf list = STW_BUF_INIT(256u << 10);
    if (is_list(name))
        put_stored_list(&list, value);
    to->failed |= list.failed;
    stw_rights_add(to, &(struct stw_right){.level = STW_LEVEL_DATABASE,
                                           .database = database,
                                           .name = name,
                                           .privilege = list.len > 0 ? stw_buf_str(&list) : value});
}

enum { KIND, DATABASE, SETTING, OF_ROLE, CELLS };

struct settings_look {
    const struct stw_account *account;
    struct stw_login *login;
    bool acts; /* the login acts as the wanted role */
};

static void read_setting(struct settings_look *k, const struct stw_cell *c)
{
    struct stw_login *l = k->login;
    bool wanted = c[OF_ROLE].data && stw_streq(c[OF_ROLE].data, "true");
    const char *equals = c[SETTING].data ? strchr(c[SETTING].data, '=') : NULL;
    if (!equals)
        return;
    stw_autofree char *name = strndup(c[SETTING].data, (size_t)(equals - c[SETTING].data));
    struct stw_rights *to = wanted ? &l->settings_wanted : &l->settings;
    if (!name) {
        to->failed = true;
        return;
    }
    for (char *at = name; *at; at++) /* DateStyle, TimeZone */
        *at = (char)tolower((unsigned char)*at);
    if (!stw_streq(name, "role") || (!wanted && c[DATABASE].data))
        add_setting(to, c[DATABASE].data, name, equals + 1);
    else if (!wanted)
        k->acts = stw_same(k->account->acts_as, equals + 1);
}

static int read_settings_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct settings_look *k = ctx;
    if (count < CELLS || !c[KIND].data)
        return -1;
    if (c[KIND].data[0] == 's')
        read_setting(k, c);
    else if (c[1].data && c[2].data && stw_streq(c[2].data, "user"))
        stw_rights_add(&k->login->settable,
                       &(struct stw_right){.level = STW_LEVEL_DATABASE, .name = c[1].data});
    return 0;
}

static bool is_settable(const struct stw_login *l, const char *name)
{
    for (size_t i = 0; i < l->settable.count; i++)
        if (stw_streq(l->settable.items[i].name, name))
            return true;
    return false;
}

/* steward may be a superuser, whose ALTER ROLE would be accepted for any setting.  A login does not wait
 * for its role to have them. */
static void want_settings(struct stw_login *l, const struct stw_account *a)
{
    struct stw_rights wanted = {0};
    const struct stw_rights *from = a->acts_as ? &l->settings_wanted : &l->settings;
    if (!a->settings)
        return;
    for (size_t i = 0; i < a->setting_count; i++) {
        const struct stw_setting *one = &a->settings[i];
        if (is_settable(l, one->name) && stw_target_allows_setting(a->target, one->name))
            add_setting(&wanted, one->database, one->name, one->value);
        else
            stw_format(l->setting_refused, sizeof(l->setting_refused), "%s", one->name);
    }
    for (size_t i = 0; i < from->count; i++)
        if (!stw_target_allows_setting(a->target, from->items[i].name))
            stw_rights_add(&wanted, &from->items[i]);
    stw_rights_inherit(&wanted, from);
    stw_rights_done(&l->settings_wanted);
    l->settings_wanted = wanted;
}

/* A password does not wait for settings: those that cannot be read are trouble of their own. */
int stw_pg_look_settings(struct stw_session *s, const struct stw_account *a, struct stw_login *l,
                         struct stw_fault *f)
{
    struct settings_look k = {.account = a, .login = l};
    stw_autoscript struct stw_script script = {0};
    if (!a->acts_as && !a->settings)
        return 0;
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    write_lookup(&st->text, a);
    if (stw_session_ask(s, st, read_settings_row, &k, f) != 0) {
        if (f->lost || !s->conn)
            return -1;
        *f = (struct stw_fault){0};
        l->settings_unread = true;
        return 0;
    }
    l->options_differ |= l->exists && a->acts_as && !k.acts;
    want_settings(l, a);
    stw_rights_sort(&l->settings_wanted);
    stw_rights_sort(&l->settings);
    return 0;
}

static void put_list(struct stw_buf *out, const char *value)
{
    put_elements(out, value, stw_pg_strz);
}

/* "extension.setting": both parts are names. */
static void put_setting(struct stw_buf *out, const char *name)
{
    for (const char *dot; (dot = strchr(name, '.')); name = dot + 1) {
        stw_autofree char *part = strndup(name, (size_t)(dot - name));
        out->failed |= !part;
        stw_pg_name(out, part ? part : "");
        stw_buf_addc(out, '.');
    }
    stw_pg_name(out, name);
}

static struct stw_buf *add_alter(const struct stw_account *a, const struct stw_right *setting,
                                 struct stw_script *s)
{
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_GRANT, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text, "ALTER ROLE ");
    stw_pg_name(&st->text, a->user);
    if (setting->database[0] != '\0') {
        stw_buf_adds(&st->text, " IN DATABASE ");
        stw_pg_name(&st->text, setting->database);
    }
    return &st->text;
}

static bool is_set(const struct stw_rights *settings, const struct stw_right *setting)
{
    for (size_t i = 0; i < settings->count; i++)
        if (stw_right_same_scope(&settings->items[i], setting))
            return true;
    return false;
}

void stw_pg_settings(const struct stw_account *a, const struct stw_login *l, struct stw_script *s)
{
    stw_autorights struct stw_rights missing = {0}, excess = {0};
    if ((!a->acts_as && !a->settings) || l->settings_unread)
        return;
    stw_rights_minus(&l->settings_wanted, &l->settings, &missing);
    stw_rights_minus(&l->settings, &l->settings_wanted, &excess);
    s->failed |= missing.failed || excess.failed;
    for (size_t i = 0; i < missing.count; i++) {
        const struct stw_right *one = &missing.items[i];
        struct stw_buf *out = add_alter(a, one, s);
        stw_buf_adds(out, " SET ");
        put_setting(out, one->name);
        stw_buf_adds(out, " = ");
        if (is_list(one->name))
            put_list(out, one->privilege);
        else
            stw_pg_strz(out, one->privilege);
    }
    for (size_t i = 0; i < excess.count; i++) {
        if (is_set(&l->settings_wanted, &excess.items[i]))
            continue;
        struct stw_buf *out = add_alter(a, &excess.items[i], s);
        stw_buf_adds(out, " RESET ");
        put_setting(out, excess.items[i].name);
    }
}
