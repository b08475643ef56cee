/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a credential plugin and reads its answer. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/process/process.h"
#include "kube/client/client_priv.h"
#include "kube/client/exec.h"

#include <sys/wait.h>

#define TIMEOUT_MS 60000
#define TIMEOUT_PERSON_MS 300000 /* a login with a browser */
#define OUTPUT_MAX (1u << 20)
#define INFO_MAX (128u << 10) /* the kernel's limit of one variable */
#define INFO_NAME "KUBERNETES_EXEC_INFO"

extern char **environ;

void stw_exec_answer_done(struct stw_exec_answer *a)
{
    stw_wipe_free(a->token);
    free(a->cert_pem);
    stw_wipe_free(a->key_pem);
    *a = (struct stw_exec_answer){0};
}

/* --- the environment */

static bool is_set_by(char *const *list, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    for (; *list; list++)
        if (strncmp(*list, entry, name) == 0)
            return true;
    return false;
}

static size_t count_words(char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

/* Ours, except for what the kubeconfig sets.  The strings are borrowed. */
static char **build_environment(const struct stw_exec *e, char *info)
{
    size_t n = 0, own = count_words(e->env);
    char **all = calloc(count_words(environ) + own + 2, sizeof(*all));
    if (!all)
        return NULL;
    for (char **at = environ; *at; at++)
        if (!is_set_by(e->env, *at) && strncmp(*at, INFO_NAME "=", sizeof(INFO_NAME)) != 0)
            all[n++] = *at;
    for (size_t i = 0; i < own; i++)
        if (!is_set_by(e->env + i + 1, e->env[i])) /* the last one holds */
            all[n++] = e->env[i];
    all[n] = info;
    return all;
}

static char *build_info(const struct stw_exec *e, bool interactive)
{
    struct stw_buf out = STW_BUF_INIT(INFO_MAX);
    stw_buf_adds(&out, INFO_NAME "={\"kind\":\"ExecCredential\",\"apiVersion\":");
    stw_buf_json_strz(&out, e->api_version);
    stw_buf_addf(&out, ",\"spec\":{\"interactive\":%s", interactive ? "true" : "false");
    if (e->cluster) {
        stw_buf_adds(&out, ",\"cluster\":");
        stw_buf_adds(&out, e->cluster);
    }
    stw_buf_adds(&out, "}}");
    char *text = stw_buf_take(&out);
    stw_buf_done(&out);
    return text;
}

/* --- running it */

static int fail_exec(const struct stw_exec *e, const char *why, struct stw_error *err)
{
    return stw_fail(err, STW_ERR_INVALID, "%s: the credential plugin %.128s %s", e->who, e->command,
                    why);
}

static int fail_missing(const struct stw_exec *e, struct stw_error *err)
{
    return stw_fail(err, STW_ERR_INVALID, "%s: the credential plugin %.128s is not installed%s%s",
                    e->who, e->command, *e->hint ? ": " : "", e->hint);
}

static int find_command(const struct stw_exec *e, char *out, size_t size, struct stw_error *err)
{
    if (!strchr(e->command, '/'))
        return stw_process_find(e->command, out, size) == 0 ? 0 : fail_missing(e, err);
    if (stw_format_whole(out, size, "%s", e->command) != 0 || access(out, F_OK) != 0)
        return fail_missing(e, err);
    return access(out, X_OK) == 0 ? 0 : fail_exec(e, "may not be executed", err);
}

static int check_status(const struct stw_exec *e, int status, struct stw_error *err)
{
    char text[128];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status))
        stw_format(text, sizeof(text), "was ended by signal %d", WTERMSIG(status));
    else
        stw_format(text, sizeof(text),
                   "failed with status %d; to see why, run it, or kubectl, by hand",
                   WEXITSTATUS(status));
    return fail_exec(e, text, err);
}

static int run_program(const struct stw_exec *e, const char *path, bool interactive,
                       struct stw_buf *out, struct stw_error *err)
{
    struct stw_error why = {0};
    int status = 0;
    stw_autofree char *info = build_info(e, interactive);
    stw_autofree char **env = info ? build_environment(e, info) : NULL;
    if (!env)
        return fail_exec(e, "the CA of the cluster is too large to be passed on", err);
    /* What it prints for people goes to a terminal only: anything else may be a log. */
    const struct stw_process p = {
        .path = path,
        .argv = e->args,
        .envp = env,
        .keep_stdin = interactive,
        .keep_stderr = isatty(STDERR_FILENO) == 1,
        .own_group = isatty(STDIN_FILENO) != 1 && isatty(STDERR_FILENO) != 1,
        .timeout_ms = e->timeout_ms ? e->timeout_ms
                      : interactive ? TIMEOUT_PERSON_MS
                                    : TIMEOUT_MS,
    };
    if (stw_process_run(&p, out, &status, &why) != 0) {
        (void)fail_exec(e, why.text, err);
        if (err && why.code == STW_ERR_TIMEOUT)
            err->code = STW_ERR_TIMEOUT;
        return -1;
    }
    return check_status(e, status, err);
}

/* --- its answer */

/* A header's value: no blanks, no control characters. */
static bool is_token(const char *token)
{
    for (const char *c = token; *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            return false;
    return *token != '\0';
}

static char *take_secret(struct stw_json status, const char *key)
{
    struct stw_json v = stw_json_get(status, key);
    return stw_json_size(v) > 0 ? stw_json_strdup(v) : NULL;
}

static int take_expiry(struct stw_json status, struct stw_exec_answer *ret)
{
    char text[64];
    struct stw_json v = stw_json_get(status, "expirationTimestamp");
    ret->expires_us = INT64_MAX;
    if (!stw_json_there(v))
        return 0;
    return stw_json_strcpy(v, text, sizeof(text)) == 0 &&
                   stw_time_parse(text, &ret->expires_us) == 0
               ? 0
               : -1;
}

/* NULL, or what is wrong.  Never a part of the text. */
static const char *read_answer(const struct stw_exec *e, struct stw_json root,
                               struct stw_exec_answer *ret)
{
    struct stw_json status = stw_json_get(root, "status");
    if (!stw_json_is(stw_json_get(root, "kind"), "ExecCredential"))
        return "printed something that is not an ExecCredential";
    if (!stw_json_is(stw_json_get(root, "apiVersion"), e->api_version))
        return "printed an ExecCredential of another apiVersion than the kubeconfig names";
    ret->token = take_secret(status, "token");
    ret->cert_pem = take_secret(status, "clientCertificateData");
    ret->key_pem = take_secret(status, "clientKeyData");
    if (!ret->token && !ret->cert_pem && !ret->key_pem)
        return "printed neither a token nor a client certificate";
    if (!ret->cert_pem != !ret->key_pem)
        return "printed only one of clientCertificateData and clientKeyData";
    if (ret->token && !is_token(ret->token))
        return "printed a token that cannot be sent in a header";
    if (ret->cert_pem && !stw_auth_is_pair(ret->cert_pem, ret->key_pem))
        return "printed a client certificate and a key that do not belong together";
    if (take_expiry(status, ret) != 0)
        return "printed an expirationTimestamp that is not a time";
    return NULL;
}

static int parse_answer(const struct stw_exec *e, const struct stw_buf *out,
                        struct stw_exec_answer *ret, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (out->len == 0)
        return fail_exec(e, "printed nothing", err);
    if (stw_json_scan(&doc, out->data, out->len, NULL) != 0)
        return fail_exec(e, "printed something that is not JSON", err);
    const char *wrong = read_answer(e, stw_json_root(&doc), ret);
    if (!wrong)
        return 0;
    stw_exec_answer_done(ret);
    return fail_exec(e, wrong, err);
}

int stw_exec_run(const struct stw_exec *e, struct stw_exec_answer *ret, struct stw_error *err)
{
    char path[4096];
    bool terminal = isatty(STDIN_FILENO) == 1;
    *ret = (struct stw_exec_answer){0};
    if (e->mode == STW_EXEC_ALWAYS && !terminal)
        return fail_exec(e, "asks questions (interactiveMode: Always), and there is no terminal",
                         err);
    if (find_command(e, path, sizeof(path), err) != 0)
        return -1;
    stw_autobuf struct stw_buf out = STW_BUF_INIT(OUTPUT_MAX);
    out.secret = true;
    if (run_program(e, path, terminal && e->mode != STW_EXEC_NEVER, &out, err) != 0)
        return -1;
    return parse_answer(e, &out, ret, err);
}
