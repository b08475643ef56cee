/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials and CA.  A ServiceAccount's token is replaced on disk before it expires.  A client
 * certificate and the CA of the API server may be replaced, too.  All files are checked each
 * minute, as in client-go. */
#include "base/base64.h"
#include "base/log.h"
#include "base/util.h"
#include "kube/client/client_priv.h"
#include "kube/client/exec.h"
#include "kube/config/kubeconfig_priv.h"

#include <sys/stat.h>

#define REFRESH_MS 60000
#define PLUGIN_PAUSE_MS 10000 /* for a plugin whose credentials have expired when it returns them */
#define TOKEN_MAX_BYTES (64u << 10)

static int read_token(struct stw_auth *a, struct stw_error *err)
{
    char *token = NULL;
    size_t len = 0;
    if (stw_read_file(a->config->token_path, TOKEN_MAX_BYTES, &token, &len, err) != 0)
        return -1;
    while (len > 0 && strchr(" \t\r\n", token[len - 1]))
        token[--len] = '\0';
    if (len == 0 || strpbrk(token, "\r\n")) {
        stw_wipe_free(token);
        return stw_fail(err, STW_ERR_INVALID, "%s: holds no token, which is one line of text",
                        a->config->token_path);
    }
    stw_wipe_free(a->token);
    a->token = token;
    return 0;
}

/* Modification time and inode: a ConfigMap's or Secret's file changes by a new inode through a
 * symlink. */
static int64_t stamp_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec + (int64_t)st.st_ino;
}

static void refresh_ca(struct stw_auth *a)
{
    char *pem = NULL;
    size_t len;
    struct stw_error err;
    int64_t stamp = a->config->ca_path ? stamp_of(a->config->ca_path) : 0;
    if (stamp == 0 || stamp == a->ca_stamp)
        return;
    if (stw_read_file(a->config->ca_path, STW_KUBECONFIG_MAX_BYTES, &pem, &len, &err) != 0 ||
        !strstr(pem, "-----BEGIN ")) {
        free(pem);
        return;
    }
    a->ca_stamp = stamp;
    free(a->config->ca_pem);
    a->config->ca_pem = pem;
    a->generation++;
}

static int read_pair(struct stw_auth *a, struct stw_error *err)
{
    char *cert = NULL, *key = NULL;
    size_t len;
    struct stw_kubeconfig *c = a->config;
    if (stw_read_file(c->cert_path, STW_KUBECONFIG_MAX_BYTES, &cert, &len, err) != 0)
        return -1;
    if (stw_read_file(c->key_path, STW_KUBECONFIG_MAX_BYTES, &key, &len, err) != 0) {
        free(cert);
        return -1;
    }
    if (!stw_auth_is_pair(cert, key)) {
        free(cert);
        stw_wipe_free(key);
        return stw_fail(err, STW_ERR_INVALID, "%s and %s do not match", c->cert_path, c->key_path);
    }
    free(c->cert_pem);
    stw_wipe_free(c->key_pem);
    c->cert_pem = cert;
    c->key_pem = key;
    a->generation++;
    return 0;
}

static void refresh_pair(struct stw_auth *a)
{
    struct stw_error err = {0};
    if (!a->config->cert_path || !a->config->key_path)
        return;
    int64_t cert = stamp_of(a->config->cert_path), key = stamp_of(a->config->key_path);
    if (cert == 0 || key == 0 || (cert == a->cert_stamp && key == a->key_stamp))
        return;
    if (read_pair(a, &err) != 0) {
        stw_log(STW_LOG_WARN, "cannot read the client certificate again, the old one stays in use",
                STW_STR("error", err.text));
        return;
    }
    a->cert_stamp = cert;
    a->key_stamp = key;
}

/* --- a credential plugin */

static void set_from_plugin(struct stw_auth *a, struct stw_exec_answer *answer)
{
    struct stw_kubeconfig *c = a->config;
    a->expires_us = answer->expires_us;
    stw_wipe_free(a->token);
    a->token = stw_take(answer->token);
    if (!answer->cert_pem)
        return;
    free(c->cert_pem);
    stw_wipe_free(c->key_pem);
    c->cert_pem = stw_take(answer->cert_pem);
    c->key_pem = stw_take(answer->key_pem);
    free(stw_take(c->cert_path)); /* instead of the kubeconfig's own */
    free(stw_take(c->key_path));
    a->generation++;
}

static int run_plugin(struct stw_auth *a, uint64_t now_ms, struct stw_error *err)
{
    struct stw_exec_answer answer;
    a->ran_ms = now_ms;
    if (stw_exec_run(a->config->exec, &answer, err) != 0)
        return -1;
    set_from_plugin(a, &answer);
    stw_exec_answer_done(&answer);
    return 0;
}

static void refresh_plugin(struct stw_auth *a, uint64_t now_ms, bool force)
{
    struct stw_error err = {0};
    bool expired =
        stw_wall_us(&stw_clock_system) >= a->expires_us && now_ms - a->ran_ms >= PLUGIN_PAUSE_MS;
    if (!a->config->exec || !(force || expired))
        return;
    if (run_plugin(a, now_ms, &err) != 0)
        stw_log(STW_LOG_WARN, "cannot log in again, the old credentials stay in use",
                STW_STR("error", err.text));
}

bool stw_auth_replaceable(const struct stw_auth *a)
{
    return a->config->token_path || a->config->cert_path || a->config->exec;
}

int stw_auth_init(struct stw_auth *a, const struct stw_kubeconfig *config, uint64_t now_ms,
                  struct stw_error *err)
{
    a->config = stw_kubeconfig_copy(config);
    if (!a->config)
        return stw_fail_memory(err);
    a->read_ms = now_ms;
    a->ca_stamp = config->ca_path ? stamp_of(config->ca_path) : 0;
    a->cert_stamp = config->cert_path ? stamp_of(config->cert_path) : 0;
    a->key_stamp = config->key_path ? stamp_of(config->key_path) : 0;
    if (config->exec)
        return run_plugin(a, now_ms, err);
    return config->token_path ? read_token(a, err) : 0;
}

void stw_auth_done(struct stw_auth *a)
{
    stw_kubeconfig_destroy(a->config);
    stw_wipe_free(a->token);
    *a = (struct stw_auth){0};
}

void stw_auth_refresh(struct stw_auth *a, uint64_t now_ms, bool force)
{
    struct stw_error err;
    refresh_plugin(a, now_ms, force);
    if (!force && now_ms - a->read_ms < REFRESH_MS)
        return;
    a->read_ms = now_ms;
    refresh_ca(a);
    refresh_pair(a);
    if (a->config->token_path && read_token(a, &err) != 0)
        stw_log(STW_LOG_WARN, "cannot read the token again, the old one stays in use",
                STW_STR("error", err.text));
}

void stw_auth_header(const struct stw_auth *a, struct stw_buf *out)
{
    const char *token = a->token ? a->token : a->config->token;
    if (token) {
        stw_buf_adds(out, "Authorization: Bearer ");
        stw_buf_adds(out, token);
    } else if (a->config->username) {
        struct stw_buf pair = STW_BUF_INIT(TOKEN_MAX_BYTES);
        pair.secret = true;
        stw_buf_adds(&pair, a->config->username);
        stw_buf_addc(&pair, ':');
        stw_buf_adds(&pair, a->config->password ? a->config->password : "");
        stw_buf_adds(out, "Authorization: Basic ");
        stw_base64_encode(pair.data, pair.len, out);
        stw_buf_done(&pair);
    }
}
