/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/secret/connection.h"

#include "base/base64.h"
#include "base/hex.h"
#include "base/util.h"

#include <assert.h>

#define DATA_MAX (900u << 10) /* a Secret has at most 1 MiB */
#define OPEN "{{"
#define CLOSE "}}"

enum { HOST, PORT, USER, PASSWORD, DATABASE, ENGINE, URI, JDBC_URL, CA, VALUES };

const char *const dbu_connection_names[] = {
    [HOST] = "host",         [PORT] = "port",         [USER] = "user",
    [PASSWORD] = "password", [DATABASE] = "database", [ENGINE] = "engine",
    [URI] = "uri",           [JDBC_URL] = "jdbcUrl",  [CA] = "ca",
    [VALUES] = NULL};
static_assert(STW_COUNT(dbu_connection_names) == VALUES + 1, "one name for each value, and NULL");

static int find_value(const char *name, size_t len)
{
    for (int i = 0; i < VALUES; i++)
        if (strlen(dbu_connection_names[i]) == len &&
            memcmp(dbu_connection_names[i], name, len) == 0)
            return i;
    return -1;
}

/* --- templates */

const char *dbu_connection_check_template(const char *text)
{
    for (const char *at = text; (at = strstr(at, OPEN));) {
        const char *end = strstr(at += strlen(OPEN), CLOSE);
        if (!end || find_value(at, (size_t)(end - at)) < 0)
            return "double braces must hold one of host, port, user, password, database, engine, "
                   "uri, jdbcUrl, ca, as in {{host}}";
        at = end + strlen(CLOSE);
    }
    return NULL;
}

/* --- values */

static void put_host(const struct dbu_connection_values *c, struct stw_buf *out)
{
    bool address = strchr(c->target->host, ':') != NULL;
    stw_buf_addf(out, "%s%s%s:%lld", address ? "[" : "", c->target->host, address ? "]" : "",
                 (long long)c->target->port);
}

static void put_uri(const struct dbu_connection_values *c, struct stw_buf *out)
{
    bool postgresql = c->target->engine == STW_ENGINE_POSTGRESQL;
    stw_buf_adds(out, postgresql ? "postgresql://" : "mysql://");
    stw_url_escape(c->user, out);
    if (*c->password) {
        stw_buf_addc(out, ':');
        stw_url_escape(c->password, out);
    }
    stw_buf_addc(out, '@');
    put_host(c, out);
    stw_buf_addc(out, '/');
    stw_url_escape(c->database, out);
}

static void put_jdbc_url(const struct dbu_connection_values *c, struct stw_buf *out)
{
    stw_buf_addf(out, "jdbc:%s://", stw_engine_name(c->target->engine));
    put_host(c, out);
    stw_buf_addc(out, '/');
    stw_url_escape(c->database, out);
    stw_buf_adds(out, "?user=");
    stw_url_escape(c->user, out);
    if (!*c->password)
        return;
    stw_buf_adds(out, "&password=");
    stw_url_escape(c->password, out);
}

static void put_value(const struct dbu_connection_values *c, int which, struct stw_buf *out)
{
    switch (which) {
    case HOST:
        stw_buf_adds(out, c->target->host);
        break;
    case PORT:
        stw_buf_addf(out, "%lld", (long long)c->target->port);
        break;
    case USER:
        stw_buf_adds(out, c->user);
        break;
    case PASSWORD:
        stw_buf_adds(out, c->password);
        break;
    case DATABASE:
        stw_buf_adds(out, c->database);
        break;
    case ENGINE:
        stw_buf_adds(out, stw_engine_name(c->target->engine));
        break;
    case URI:
        put_uri(c, out);
        break;
    case JDBC_URL:
        put_jdbc_url(c, out);
        break;
    default:
        stw_buf_adds(out, c->ca);
        break;
    }
}

static void put_template(const struct dbu_connection_values *c, const char *text,
                         struct stw_buf *out)
{
    for (const char *at; (at = strstr(text, OPEN));) {
        const char *name = at + strlen(OPEN), *end = strstr(name, CLOSE);
        int which = end ? find_value(name, (size_t)(end - name)) : -1;
        if (which < 0) {
            out->failed = true; /* the rules refuse it */
            return;
        }
        stw_buf_add(out, text, (size_t)(at - text));
        put_value(c, which, out);
        text = end + strlen(CLOSE);
    }
    stw_buf_adds(out, text);
}

/* --- the Secret */

/* The length of each value; DATA_MAX + 1 is "too long". */
static void measure_values(const struct dbu_connection_values *c, size_t ret[VALUES])
{
    for (int i = 0; i < VALUES; i++) {
        stw_autobuf struct stw_buf value = {.max = DATA_MAX, .secret = true};
        put_value(c, i, &value);
        ret[i] = value.failed ? DATA_MAX + 1 : value.len;
    }
}

/* SIZE_MAX: there is no such value; the rules refuse it. */
static size_t measure_template(const size_t of[VALUES], const char *text)
{
    size_t len = 0;
    for (const char *at; (at = strstr(text, OPEN));) {
        const char *name = at + strlen(OPEN), *end = strstr(name, CLOSE);
        int which = end ? find_value(name, (size_t)(end - name)) : -1;
        if (which < 0)
            return SIZE_MAX;
        len += (size_t)(at - text) + of[which];
        text = end + strlen(CLOSE);
    }
    return len + strlen(text);
}

struct measured {
    const char *at; /* the member of spec.connectionSecret; NULL: all values */
    size_t of[VALUES];
    size_t sum;
};

static int add_size(struct measured *m, const char *key, size_t len, struct stw_error *err)
{
    if (len == SIZE_MAX)
        return stw_fail(err, STW_ERR_INVALID, "%s[%s]: there is no such value", m->at, key);
    m->sum += strlen(key) + len;
    if (m->sum <= DATA_MAX)
        return 0;
    return stw_fail(err, STW_ERR_TOO_LARGE,
                    "%s[%s]: with this key the connection Secret would have more than %u bytes",
                    m->at, key, DATA_MAX);
}

/* Before anything is rendered: a short template may repeat a long password often. */
static int check_sizes(const struct dbu_connection_values *c,
                       const struct dbu_spec_connection *wanted, struct stw_error *err)
{
    struct measured m = {.at = "spec.connectionSecret"};
    struct stw_json key, value;
    measure_values(c, m.of);
    if (stw_json_size(wanted->keys) == 0 && stw_json_size(wanted->template) == 0) {
        for (int i = 0; i < VALUES; i++)
            if (add_size(&m, dbu_connection_names[i], m.of[i], err) != 0)
                return -1;
        return 0;
    }
    m.at = "spec.connectionSecret.keys";
    stw_json_foreach (wanted->keys, key, value) {
        stw_autofree char *name = stw_json_strdup(key), *of = stw_json_strdup(value);
        int which = of ? find_value(of, strlen(of)) : -1;
        if (!name || !of)
            return stw_fail_memory(err);
        if (add_size(&m, name, which < 0 ? SIZE_MAX : m.of[which], err) != 0)
            return -1;
    }
    m.at = "spec.connectionSecret.template";
    stw_json_foreach (wanted->template, key, value) {
        stw_autofree char *name = stw_json_strdup(key), *text = stw_json_strdup(value);
        if (!name || !text)
            return stw_fail_memory(err);
        if (add_size(&m, name, measure_template(m.of, text), err) != 0)
            return -1;
    }
    return 0;
}

static int add_encoded(json_t *data, const char *key, const struct stw_buf *value)
{
    stw_autobuf struct stw_buf text = {.max = 2 * DATA_MAX, .secret = true};
    stw_base64_encode(stw_buf_str(value), value->len, &text);
    return value->failed || text.failed ||
                   json_object_set_new(data, key, json_string(stw_buf_str(&text))) != 0
               ? -1
               : 0;
}

static int add_value(const struct dbu_connection_values *c, json_t *data, const char *key,
                     int which)
{
    stw_autobuf struct stw_buf value = {.max = DATA_MAX, .secret = true};
    put_value(c, which, &value);
    return add_encoded(data, key, &value);
}

static int add_template(const struct dbu_connection_values *c, json_t *data, const char *key,
                        const char *text)
{
    stw_autobuf struct stw_buf value = {.max = DATA_MAX, .secret = true};
    put_template(c, text, &value);
    return add_encoded(data, key, &value);
}

static int add_standard(const struct dbu_connection_values *c, json_t *data)
{
    for (int i = 0; i < VALUES; i++)
        if ((i != CA || *c->ca) && (i != PASSWORD || *c->password) &&
            add_value(c, data, i == CA ? "ca.crt" : dbu_connection_names[i], i) != 0)
            return -1;
    return 0;
}

static int add_wanted(const struct dbu_connection_values *c,
                      const struct dbu_spec_connection *wanted, json_t *data)
{
    struct stw_json key, value;
    stw_json_foreach (wanted->keys, key, value) {
        stw_autofree char *name = stw_json_strdup(key), *of = stw_json_strdup(value);
        int which = of ? find_value(of, strlen(of)) : -1;
        if (!name || which < 0 || add_value(c, data, name, which) != 0)
            return -1;
    }
    stw_json_foreach (wanted->template, key, value) {
        stw_autofree char *name = stw_json_strdup(key), *text = stw_json_strdup(value);
        if (!name || !text || add_template(c, data, name, text) != 0)
            return -1;
    }
    return 0;
}

json_t *dbu_connection_data(const struct dbu_connection_values *c,
                            const struct dbu_spec_connection *wanted, struct stw_error *err)
{
    bool standard = stw_json_size(wanted->keys) == 0 && stw_json_size(wanted->template) == 0;
    if (check_sizes(c, wanted, err) != 0)
        return NULL;
    json_t *data = json_object();
    if (data && (standard ? add_standard(c, data) : add_wanted(c, wanted, data)) == 0)
        return data;
    json_decref(data);
    (void)stw_fail_memory(err);
    return NULL;
}
