/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the description of a credential plugin.  The rules are those of client-go. */
#include "kube/client/exec.h"

#include "base/base64.h"
#include "base/buf.h"

#include <ctype.h>

#define GROUP "client.authentication.k8s.io/"
#define WORDS_MAX 256
#define TEXT_MAX (1u << 20) /* of a variable, and of the CA */
#define HINT_MAX 300
#define EXTENSION "client.authentication.k8s.io/exec"

static void free_words(char **words)
{
    for (char **w = words; w && *w; w++)
        stw_wipe_free(*w); /* an argument may be a client's secret */
    free(words);
}

struct stw_exec *stw_exec_ref(struct stw_exec *e)
{
    if (e)
        atomic_fetch_add(&e->refs, 1);
    return e;
}

void stw_exec_unref(struct stw_exec *e)
{
    if (!e || atomic_fetch_sub(&e->refs, 1) > 1)
        return;
    free(e->who);
    free(e->command);
    free(e->api_version);
    free_words(e->args);
    free_words(e->env);
    free(e->cluster);
    free(e->hint);
    free(e);
}

static int fail_field(const struct stw_exec *e, const char *key, const char *why,
                      struct stw_error *err)
{
    return stw_fail(err, STW_ERR_INVALID, "%s: exec.%s %s", e->who, key, why);
}

/* A required string. */
static int take_text(const struct stw_exec *e, struct stw_json exec, const char *key, char **ret,
                     struct stw_error *err)
{
    struct stw_json v = stw_json_get(exec, key);
    if (stw_json_type(v) != STW_JSON_STRING || stw_json_size(v) == 0 || stw_json_has_nul(v))
        return fail_field(e, key, "must be a text that is not empty", err);
    *ret = stw_json_strdup(v);
    return *ret ? 0 : stw_fail_memory(err);
}

static int take_version(struct stw_exec *e, struct stw_json exec, struct stw_error *err)
{
    if (take_text(e, exec, "apiVersion", &e->api_version, err) != 0)
        return -1;
    if (stw_streq(e->api_version, GROUP "v1") || stw_streq(e->api_version, GROUP "v1beta1"))
        return 0;
    return fail_field(e, "apiVersion",
                      "must be " GROUP "v1 or v1beta1: get a newer plugin, and write the "
                      "kubeconfig again with the tool that made it",
                      err);
}

static int take_mode(struct stw_exec *e, struct stw_json exec, struct stw_error *err)
{
    static const char *const names[] = {
        [STW_EXEC_NEVER] = "Never",
        [STW_EXEC_IF_AVAILABLE] = "IfAvailable",
        [STW_EXEC_ALWAYS] = "Always",
    };
    struct stw_json v = stw_json_get(exec, "interactiveMode");
    if (!stw_json_there(v) && stw_streq(e->api_version, GROUP "v1beta1")) {
        e->mode = STW_EXEC_IF_AVAILABLE;
        return 0;
    }
    for (size_t i = 0; i < STW_COUNT(names); i++) {
        e->mode = (enum stw_exec_mode)i;
        if (stw_json_is(v, names[i]))
            return 0;
    }
    return fail_field(e, "interactiveMode", "must be Never, IfAvailable or Always", err);
}

/* A name without a slash is searched in $PATH; a relative path is relative to the kubeconfig. */
static int take_command(struct stw_exec *e, struct stw_json exec, const char *dir,
                        struct stw_error *err)
{
    if (take_text(e, exec, "command", &e->command, err) != 0)
        return -1;
    if (!strchr(e->command, '/') || e->command[0] == '/')
        return 0;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir ? dir : ".", e->command) < 0)
        return stw_fail_memory(err);
    free(e->command);
    e->command = path;
    return 0;
}

/* Space for `list` and one more in front. */
static char **make_words(const struct stw_exec *e, struct stw_json list, const char *key,
                         struct stw_error *err)
{
    if (stw_json_there(list) && stw_json_type(list) != STW_JSON_ARRAY) {
        (void)fail_field(e, key, "must be a list", err);
        return NULL;
    }
    if (stw_json_size(list) > WORDS_MAX) {
        (void)fail_field(e, key, "has more than 256 entries", err);
        return NULL;
    }
    char **words = calloc((size_t)stw_json_size(list) + 2, sizeof(*words));
    if (!words)
        (void)stw_fail_memory(err);
    return words;
}

static bool has_nul(struct stw_json v, const char *text)
{
    return strlen(text) != stw_json_size(v);
}

static int take_args(struct stw_exec *e, struct stw_json exec, struct stw_error *err)
{
    struct stw_json list = stw_json_get(exec, "args"), key, v;
    size_t n = 0;
    e->args = make_words(e, list, "args", err);
    if (!e->args)
        return -1;
    e->args[n] = strdup(e->command);
    if (!e->args[n++])
        return stw_fail_memory(err);
    stw_json_foreach (list, key, v) {
        e->args[n] = stw_json_strdup(v);
        if (!e->args[n] || has_nul(v, e->args[n]))
            return fail_field(e, "args", "must be a list of texts", err);
        n++;
    }
    return 0;
}

static int take_env(struct stw_exec *e, struct stw_json exec, struct stw_error *err)
{
    struct stw_json list = stw_json_get(exec, "env"), key, v;
    size_t n = 0;
    e->env = make_words(e, list, "env", err);
    if (!e->env)
        return -1;
    stw_json_foreach (list, key, v) {
        struct stw_buf pair = {.max = TEXT_MAX, .secret = true};
        struct stw_json name = stw_json_get(v, "name"), value = stw_json_get(v, "value");
        stw_json_str(name, &pair);
        bool bad = pair.len == 0 || memchr(pair.data, '=', pair.len);
        stw_buf_addc(&pair, '=');
        stw_json_str(value, &pair);
        bad |= pair.failed || memchr(stw_buf_str(&pair), '\0', pair.len) ||
               (stw_json_there(value) && stw_json_type(value) != STW_JSON_STRING);
        if (bad) {
            stw_buf_done(&pair);
            return fail_field(e, "env", "must be a list of {name, value}", err);
        }
        e->env[n] = stw_buf_take(&pair);
        if (!e->env[n++])
            return stw_fail_memory(err);
    }
    return 0;
}

/* It is printed: one line of text. */
static int take_hint(struct stw_exec *e, struct stw_json exec, struct stw_error *err)
{
    char hint[HINT_MAX];
    stw_json_cut(stw_json_get(exec, "installHint"), hint, sizeof(hint));
    for (char *c = hint; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
    e->hint = strdup(hint);
    return e->hint ? 0 : stw_fail_memory(err);
}

/* --- spec.cluster */

static void add_member(struct stw_buf *out, const char *key, const char *text)
{
    if (!text)
        return;
    stw_buf_addf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
    stw_buf_json_strz(out, text);
}

static void add_raw(struct stw_buf *out, const char *key, struct stw_json v)
{
    size_t len;
    if (!stw_json_there(v))
        return;
    const char *raw = stw_json_raw(v, &len);
    stw_buf_addf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
    stw_buf_add(out, raw, len);
}

static void add_ca(struct stw_buf *out, const char *pem)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(2 * TEXT_MAX);
    if (!pem)
        return;
    stw_base64_encode(pem, strlen(pem), &text);
    add_member(out, "certificate-authority-data", stw_buf_str(&text));
    out->failed |= text.failed;
}

static struct stw_json find_extension(struct stw_json cluster)
{
    struct stw_json key, v;
    stw_json_foreach (stw_json_get(cluster, "extensions"), key, v)
        if (stw_json_is(stw_json_get(v, "name"), EXTENSION))
            return stw_json_get(v, "extension");
    return STW_JSON_NONE;
}

static int take_cluster_info(struct stw_exec *e, struct stw_json exec,
                             const struct stw_exec_cluster *c, struct stw_error *err)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4 * TEXT_MAX);
    if (!stw_json_bool(stw_json_get(exec, "provideClusterInfo"), false))
        return 0;
    stw_buf_addc(&out, '{');
    add_member(&out, "server", c->server);
    add_member(&out, "tls-server-name", c->tls_server_name);
    if (c->insecure)
        stw_buf_addf(&out, "%s\"insecure-skip-tls-verify\":true", out.len > 1 ? "," : "");
    add_ca(&out, c->ca_pem);
    add_member(&out, "proxy-url", c->proxy_url);
    add_raw(&out, "disable-compression", stw_json_get(c->node, "disable-compression"));
    add_raw(&out, "config", find_extension(c->node));
    stw_buf_addc(&out, '}');
    e->cluster = stw_buf_take(&out);
    return e->cluster ? 0 : stw_fail_memory(err);
}

static int fill_exec(struct stw_exec *e, struct stw_json exec, const char *dir,
                     struct stw_error *err)
{
    if (stw_json_type(exec) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "%s: exec must be a map", e->who);
    if (take_version(e, exec, err) != 0 || take_mode(e, exec, err) != 0 ||
        take_command(e, exec, dir, err) != 0 || take_args(e, exec, err) != 0 ||
        take_env(e, exec, err) != 0)
        return -1;
    return take_hint(e, exec, err);
}

int stw_exec_parse(struct stw_json exec, const struct stw_exec_cluster *cluster, const char *who,
                   const char *dir, struct stw_exec **ret, struct stw_error *err)
{
    struct stw_exec *e = calloc(1, sizeof(*e));
    if (!e)
        return stw_fail_memory(err);
    atomic_init(&e->refs, 1);
    e->who = strdup(who);
    if (!e->who)
        (void)stw_fail_memory(err);
    if (!e->who || fill_exec(e, exec, dir, err) != 0 ||
        take_cluster_info(e, exec, cluster, err) != 0) {
        stw_exec_unref(e);
        return -1;
    }
    *ret = e;
    return 0;
}
