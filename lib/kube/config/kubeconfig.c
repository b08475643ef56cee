/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads kubeconfig text: the context, its cluster and its user.  The rules are those of client-go's
 * clientcmd: of several files the first that has a name wins, *-data overrides the path of a file,
 * and a tokenFile overrides a token. */
#include "base/base64.h"
#include "base/json.h"
#include "base/util.h"
#include "base/yaml/yaml.h"
#include "kube/client/exec.h"
#include "kube/client/impersonate_priv.h"
#include "kube/config/kubeconfig_file_priv.h"
#include "kube/config/kubeconfig_priv.h"

#include <stddef.h>
#include <stdio.h>
#include <strings.h>

enum how {
    TEXT,      /* as it is */
    DATA,      /* base64 */
    FILE_TEXT, /* a path, read unless the field is already set */
    PATH,      /* a path, made absolute */
};

struct config_field {
    const char *key;
    enum how how;
    size_t at;      /* of the char * that is set */
    size_t path_at; /* FILE_TEXT: of the char * that keeps the path; 0: none */
};

#define AT(member) offsetof(struct stw_kubeconfig, member)

static const struct config_field cluster_fields[] = {
    {"server", TEXT, AT(server), 0},
    {"certificate-authority-data", DATA, AT(ca_pem), 0},
    {"certificate-authority", FILE_TEXT, AT(ca_pem), AT(ca_path)},
    {"tls-server-name", TEXT, AT(tls_server_name), 0},
    {"proxy-url", TEXT, AT(proxy_url), 0},
    {NULL},
};

static const struct config_field user_fields[] = {
    {"client-certificate-data", DATA, AT(cert_pem), 0},
    {"client-certificate", FILE_TEXT, AT(cert_pem), AT(cert_path)},
    {"client-key-data", DATA, AT(key_pem), 0},
    {"client-key", FILE_TEXT, AT(key_pem), AT(key_path)},
    {"token", TEXT, AT(token), 0},
    {"tokenFile", PATH, AT(token_path), 0},
    {"username", TEXT, AT(username), 0},
    {"password", TEXT, AT(password), 0},
    {NULL},
};

static char **get_string_field(struct stw_kubeconfig *c, size_t at)
{
    return (char **)(void *)((char *)c + at);
}

/* --- the result */

void stw_kubeconfig_destroy(struct stw_kubeconfig *c)
{
    if (!c)
        return;
    free(c->server);
    free(c->ca_pem);
    free(c->ca_path);
    free(c->tls_server_name);
    free(c->proxy_url);
    free(c->cert_pem);
    stw_wipe_free(c->key_pem);
    free(c->cert_path);
    free(c->key_path);
    stw_wipe_free(c->token);
    free(c->token_path);
    free(c->username);
    stw_wipe_free(c->password);
    free(c->impersonation);
    stw_exec_unref(c->exec);
    free(c->ns);
    free(c->source);
    free(c);
}

static char *copy_config_string(const char *text, bool *failed)
{
    char *to = text ? strdup(text) : NULL;
    *failed = *failed || (text && !to);
    return to;
}

struct stw_kubeconfig *stw_kubeconfig_copy(const struct stw_kubeconfig *c)
{
    bool bad = false;
    struct stw_kubeconfig *to = calloc(1, sizeof(*to));
    if (!to)
        return NULL;
    *to = (struct stw_kubeconfig){
        .server = copy_config_string(c->server, &bad),
        .ca_pem = copy_config_string(c->ca_pem, &bad),
        .ca_path = copy_config_string(c->ca_path, &bad),
        .insecure = c->insecure,
        .tls_server_name = copy_config_string(c->tls_server_name, &bad),
        .proxy_url = copy_config_string(c->proxy_url, &bad),
        .cert_pem = copy_config_string(c->cert_pem, &bad),
        .key_pem = copy_config_string(c->key_pem, &bad),
        .cert_path = copy_config_string(c->cert_path, &bad),
        .key_path = copy_config_string(c->key_path, &bad),
        .token = copy_config_string(c->token, &bad),
        .token_path = copy_config_string(c->token_path, &bad),
        .username = copy_config_string(c->username, &bad),
        .password = copy_config_string(c->password, &bad),
        .impersonation = copy_config_string(c->impersonation, &bad),
        .exec = stw_exec_ref(c->exec),
        .ns = copy_config_string(c->ns, &bad),
        .source = copy_config_string(c->source, &bad),
    };
    if (!bad)
        return to;
    stw_kubeconfig_destroy(to);
    return NULL;
}

int stw_kubeconfig_check_server(struct stw_kubeconfig *c, struct stw_error *err)
{
    const char *s = c->server ? c->server : "";
    size_t scheme = strncasecmp(s, "https://", 8) == 0  ? 8
                    : strncasecmp(s, "http://", 7) == 0 ? 7
                                                        : 0;
    if (scheme == 0 || s[scheme] == '\0' || s[scheme] == '/' || strpbrk(s, " \t\r\n?#@"))
        return stw_fail(err, STW_ERR_INVALID,
                        "%s: server \"%.128s\" must be a URL such as https://10.0.0.1:6443",
                        c->source ? c->source : "kubeconfig", s);
    for (size_t len = strlen(s); c->server[len - 1] == '/'; len--)
        c->server[len - 1] = '\0';
    return 0;
}

/* --- one file */

static int take_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct stw_buf *out = ctx;
    (void)line;
    if (index == 0)
        stw_buf_add(out, json->data, json->len);
    return 0;
}

int stw_kubeconfig_file_init(struct stw_kubeconfig_file *f, const char *name, const char *text,
                             size_t len, const char *dir, struct stw_error *err)
{
    *f = (struct stw_kubeconfig_file){.json = STW_BUF_INIT(4 * STW_KUBECONFIG_MAX_BYTES)};
    f->json.secret = true;
    if (len > STW_KUBECONFIG_MAX_BYTES)
        return stw_fail(err, STW_ERR_TOO_LARGE, "%s: a kubeconfig is at most %u bytes", name,
                        STW_KUBECONFIG_MAX_BYTES);
    f->name = strdup(name);
    f->dir = dir ? strdup(dir) : NULL;
    if (!f->name || (dir && !f->dir))
        return stw_fail_memory(err);
    if (stw_yaml_each(name, text, len, take_document, &f->json, err) != 0)
        return -1;
    if (f->json.failed)
        return stw_fail(err, STW_ERR_TOO_LARGE, "%s: too large when its anchors are unfolded",
                        name);
    if (f->json.len == 0)
        return 0; /* an empty file is an empty config */
    if (stw_json_scan(&f->doc, f->json.data, f->json.len, err) < 0)
        return stw_error_wrap(err, "%s", name);
    return 0;
}

void stw_kubeconfig_file_done(struct stw_kubeconfig_file *f)
{
    stw_json_done(&f->doc);
    stw_buf_done(&f->json);
    free(f->name);
    free(f->dir);
    *f = (struct stw_kubeconfig_file){0};
}

static struct stw_json root_of(const struct stw_kubeconfig_file *f)
{
    return f->json.len > 0 ? stw_json_root(&f->doc) : STW_JSON_NONE;
}

/* --- fields */

static int read_path(const struct stw_kubeconfig_file *f, const char *key, char *path, char **ret,
                     struct stw_error *err)
{
    size_t len;
    if (stw_read_file(path, STW_KUBECONFIG_MAX_BYTES, ret, &len, err) < 0)
        return stw_error_wrap(err, "%s: %s", f->name, key);
    return 0;
}

static char *make_absolute_path(const struct stw_kubeconfig_file *f, const char *path)
{
    char *out = NULL;
    if (path[0] == '/' || !f->dir)
        return strdup(path);
    return asprintf(&out, "%s/%s", f->dir, path) < 0 ? NULL : out;
}

static int set_data(const struct stw_kubeconfig_file *f, const struct config_field *field,
                    struct stw_json v, struct stw_kubeconfig *c, struct stw_error *err)
{
    struct stw_buf plain = {.max = STW_KUBECONFIG_MAX_BYTES * 2, .secret = true};
    if (stw_base64_json(v, &plain) != 0 || memchr(stw_buf_str(&plain), '\0', plain.len)) {
        stw_buf_done(&plain);
        return stw_fail(err, STW_ERR_INVALID, "%s: %s is not the base64 of a PEM text", f->name,
                        field->key);
    }
    *get_string_field(c, field->at) = stw_buf_take(&plain);
    return *get_string_field(c, field->at) ? 0 : stw_fail_memory(err);
}

static int set_file(const struct stw_kubeconfig_file *f, const struct config_field *field,
                    char *path, struct stw_kubeconfig *c, struct stw_error *err)
{
    if (*get_string_field(c, field->at) || !f->dir)
        return 0;
    if (read_path(f, field->key, path, get_string_field(c, field->at), err) < 0)
        return -1;
    if (field->path_at > 0)
        *get_string_field(c, field->path_at) = strdup(path);
    return 0;
}

static int set_field(const struct stw_kubeconfig_file *f, const struct config_field *field,
                     struct stw_json v, struct stw_kubeconfig *c, struct stw_error *err)
{
    if (stw_json_type(v) <= STW_JSON_NULL)
        return 0;
    if (stw_json_type(v) != STW_JSON_STRING)
        return stw_fail(err, STW_ERR_INVALID, "%s: %s must be a string", f->name, field->key);
    if (stw_json_size(v) == 0)
        return 0;
    if (field->how == DATA)
        return set_data(f, field, v, c, err);
    if (stw_json_has_nul(v))
        return stw_fail(err, STW_ERR_INVALID, "%s: %s must not contain a NUL character", f->name,
                        field->key);
    stw_autofree char *text = stw_json_strdup(v);
    if (!text)
        return stw_fail_memory(err);
    if (field->how == TEXT) {
        *get_string_field(c, field->at) = stw_take(text);
        return 0;
    }
    stw_autofree char *path = make_absolute_path(f, text);
    if (!path)
        return stw_fail_memory(err);
    if (field->how == FILE_TEXT)
        return set_file(f, field, path, c, err);
    *get_string_field(c, field->at) = stw_take(path);
    return 0;
}

static int set_fields(const struct stw_kubeconfig_file *f, const struct config_field *fields,
                      struct stw_json from, struct stw_kubeconfig *c, struct stw_error *err)
{
    for (const struct config_field *field = fields; field->key; field++)
        if (set_field(f, field, stw_json_get(from, field->key), c, err) < 0)
            return -1;
    return 0;
}

/* --- the context, its cluster, its user */

struct files {
    const struct stw_kubeconfig_file *all;
    size_t count;
};

/* {"contexts": [{"name": "x", "context": {...}}]}: the element, and the file that has it. */
static struct stw_json find_named(struct files files, const char *list, const char *one,
                                  const char *name, const struct stw_kubeconfig_file **ret)
{
    for (size_t i = 0; i < files.count; i++) {
        struct stw_json key, v;
        stw_json_foreach (stw_json_get(root_of(&files.all[i]), list), key, v) {
            if (!stw_json_is(stw_json_get(v, "name"), name))
                continue;
            *ret = &files.all[i];
            return stw_json_get(v, one);
        }
    }
    return STW_JSON_NONE;
}

static int pick_context(struct files files, const char *wanted, char *out, size_t size,
                        struct stw_error *err)
{
    if (wanted && stw_format_whole(out, size, "%s", wanted) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the name of the context is too long");
    if (wanted)
        return 0;
    for (size_t i = 0; i < files.count; i++) {
        struct stw_json v = stw_json_get(root_of(&files.all[i]), "current-context");
        if (stw_json_size(v) > 0 && stw_json_strcpy(v, out, size) == 0)
            return 0;
    }
    return stw_fail(err, STW_ERR_INVALID,
                    "%s: current-context is not set: run `kubectl config use-context NAME`, or "
                    "name a context",
                    files.count > 0 ? files.all[0].name : "kubeconfig");
}

static int take_cluster(struct files files, const char *context, const char *name,
                        struct stw_kubeconfig *c, struct stw_json *ret, struct stw_error *err)
{
    const struct stw_kubeconfig_file *f = NULL;
    struct stw_json cluster = find_named(files, "clusters", "cluster", name, &f);
    if (!f || stw_json_type(cluster) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID,
                        "%s: context \"%s\" names cluster \"%s\", which is not there",
                        files.all[0].name, context, name);
    *ret = cluster;
    if (set_fields(f, cluster_fields, cluster, c, err) < 0)
        return -1;
    c->insecure = stw_json_bool(stw_json_get(cluster, "insecure-skip-tls-verify"), false);
    if (c->insecure && c->ca_pem)
        return stw_fail(err, STW_ERR_INVALID,
                        "%s: cluster \"%s\" has both a certificate-authority and "
                        "insecure-skip-tls-verify: remove one",
                        f->name, name);
    c->source = strdup(f->name);
    return stw_kubeconfig_check_server(c, err);
}

/* A static token wins over a plugin, as in client-go: the plugin is not run. */
static int take_exec(const struct stw_kubeconfig_file *f, struct stw_json exec, const char *user,
                     struct stw_json cluster, struct stw_kubeconfig *c, struct stw_error *err)
{
    char who[512];
    if (!stw_json_there(exec) || c->token || c->token_path || c->username)
        return 0;
    stw_format(who, sizeof(who), "%.200s: user \"%.128s\"", f->name, user);
    const struct stw_exec_cluster exec_cluster = {.server = c->server,
                                                  .tls_server_name = c->tls_server_name,
                                                  .ca_pem = c->ca_pem,
                                                  .proxy_url = c->proxy_url,
                                                  .insecure = c->insecure,
                                                  .node = cluster};
    return stw_exec_parse(exec, &exec_cluster, who, f->dir, &c->exec, err);
}

static int take_user(struct files files, const char *context, const char *name,
                     struct stw_json cluster, struct stw_kubeconfig *c, struct stw_error *err)
{
    const struct stw_kubeconfig_file *f = NULL;
    if (name[0] == '\0')
        return 0; /* anonymous */
    struct stw_json user = find_named(files, "users", "user", name, &f);
    if (!f)
        return stw_fail(err, STW_ERR_INVALID,
                        "%s: context \"%s\" names user \"%s\", which is not there",
                        files.all[0].name, context, name);
    if (stw_json_there(stw_json_get(user, "auth-provider")))
        return stw_fail(err, STW_ERR_INVALID,
                        "%s: user \"%s\" has auth-provider, which is not supported (client-go "
                        "dropped it too); " STW_KUBECONFIG_INSTEAD,
                        f->name, name);
    if (set_fields(f, user_fields, user, c, err) < 0)
        return -1;
    if (!c->cert_pem != !c->key_pem)
        return stw_fail(err, STW_ERR_INVALID,
                        "%s: user \"%s\" has only one of client-certificate and client-key: both "
                        "are needed",
                        f->name, name);
    if (stw_impersonation_parse(user, &c->impersonation, err) != 0)
        return stw_error_wrap(err, "%s: user \"%s\"", f->name, name);
    return take_exec(f, stw_json_get(user, "exec"), name, cluster, c, err);
}

static int resolve_context(struct files files, const char *wanted, struct stw_kubeconfig *c,
                           struct stw_error *err)
{
    char context[512], cluster[512] = "", user[512] = "", ns[254] = "";
    const struct stw_kubeconfig_file *f = NULL;
    if (pick_context(files, wanted, context, sizeof(context), err) < 0)
        return -1;
    struct stw_json v = find_named(files, "contexts", "context", context, &f);
    if (stw_json_type(v) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "%s: there is no context \"%s\"",
                        files.count > 0 ? files.all[0].name : "kubeconfig", context);
    (void)stw_json_strcpy(stw_json_get(v, "cluster"), cluster, sizeof(cluster));
    (void)stw_json_strcpy(stw_json_get(v, "user"), user, sizeof(user));
    (void)stw_json_strcpy(stw_json_get(v, "namespace"), ns, sizeof(ns));
    c->ns = ns[0] != '\0' ? strdup(ns) : NULL;
    struct stw_json found = STW_JSON_NONE;
    if (take_cluster(files, context, cluster, c, &found, err) < 0)
        return -1;
    return take_user(files, context, user, found, c, err);
}

int stw_kubeconfig_resolve(const struct stw_kubeconfig_file *files, size_t count,
                           const char *context, struct stw_kubeconfig **ret, struct stw_error *err)
{
    struct stw_kubeconfig *c = calloc(1, sizeof(*c));
    if (!c)
        return stw_fail_memory(err);
    if (resolve_context((struct files){files, count}, context, c, err) < 0) {
        stw_kubeconfig_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}

int stw_kubeconfig_parse(const char *name, const char *text, size_t len, const char *dir,
                         const char *context, struct stw_kubeconfig **ret, struct stw_error *err)
{
    struct stw_kubeconfig_file f;
    int r = stw_kubeconfig_file_init(&f, name, text, len, dir, err);
    if (r == 0)
        r = stw_kubeconfig_resolve(&f, 1, context, ret, err);
    stw_kubeconfig_file_done(&f);
    return r;
}
