/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the replicas: through the API server's proxy of their pods, or one of them by its address.
 *
 * The API server's proxy removes Authorization, and a replica needs a token for its access review.
 * It never gets the credentials of the kubeconfig: it gets a token of a ServiceAccount that may read
 * /debug/state and /metrics and nothing else, and that is valid for ten minutes. */
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "controller/manager.h"
#include "operator/main/names.h"
#include "operator/top/top.h"
#include "webhook/access.h"

#include <math.h>

#define REQUEST_MS 5000
#define ANSWER_MAX ((size_t)8 << 20)
#define TOKEN_MAX ((size_t)16 << 10)
#define TOKEN_SECONDS 600
#define TOKEN_KEEP_MS 480000
#define PATH_MAX_BYTES 2048
#define METRICS_PORT 8443
#define PODS_MAX 500

static const struct stw_resource account = {"", "v1", "ServiceAccount", "serviceaccounts", true};

void stw_top_look_done(struct stw_top_look *look)
{
    for (uint32_t i = 0; i < look->count; i++)
        stw_answer_done(&look->replicas[i].state);
    *look = (struct stw_top_look){0};
}

/* --- opening */

static bool is_direct(const struct stw_top_options *o)
{
    return o->url && *o->url;
}

static bool has_token_file(const struct stw_top_options *o)
{
    return o->token_file && *o->token_file;
}

static char *copy_text(const char *text)
{
    return text && *text ? strdup(text) : NULL;
}

/* What a kubeconfig would have, for the address of one replica. */
static struct stw_kubeconfig *make_direct(const struct stw_top_options *o, struct stw_error *err)
{
    size_t len = 0;
    struct stw_kubeconfig *k = calloc(1, sizeof(*k));
    if (!k) {
        (void)stw_fail_memory(err);
        return NULL;
    }
    k->server = copy_text(o->url);
    k->source = strdup("--url");
    k->token_path = copy_text(o->token_file);
    k->tls_server_name = copy_text(o->server_name);
    for (size_t n = k->server ? strlen(k->server) : 0; n > 0 && k->server[n - 1] == '/'; n--)
        k->server[n - 1] = '\0';
    if (o->ca_file && *o->ca_file &&
        stw_read_file(o->ca_file, 1u << 20, &k->ca_pem, &len, err) != 0) {
        (void)stw_error_wrap(err, "--ca-file");
        stw_kubeconfig_destroy(k);
        return NULL;
    }
    return k;
}

int stw_top_open(struct stw_top_source *source, const struct stw_operator *op,
                 const struct stw_top_options *o, struct stw_error *err)
{
    source->own = *op;
    source->own.limits.response_bytes = ANSWER_MAX;
    source->op = &source->own;
    source->options = o;
    source->token = STW_BUF_INIT(2 * TOKEN_MAX);
    source->token.secret = true;
    source->remote.op = source->op;
    source->remote.timeout_ms = REQUEST_MS;
    if (!is_direct(o)) {
        int rc = stw_remote_open(&source->remote, o->kubeconfig, o->context, err);
        source->remote.timeout_ms = REQUEST_MS;
        return rc;
    }
    source->remote.kubeconfig = make_direct(o, err);
    return source->remote.kubeconfig ? stw_remote_connect(&source->remote, err) : -1;
}

void stw_top_close(struct stw_top_source *source)
{
    stw_remote_done(&source->remote);
    stw_buf_done(&source->token);
}

/* --- the token */

static int set_token(struct stw_top_source *source, const char *token, size_t len,
                     struct stw_error *err)
{
    stw_buf_clear(&source->token);
    for (size_t i = 0; i < len; i++)
        if (token[i] <= ' ' || token[i] > '~')
            len = 0;
    if (len == 0 || len > TOKEN_MAX)
        return stw_fail(err, STW_ERR_INVALID, "not a token");
    stw_buf_adds(&source->token, STW_PROXIED_AUTHORIZATION ": Bearer ");
    stw_buf_add(&source->token, token, len);
    return 0;
}

static int read_token_file(struct stw_top_source *source, struct stw_error *err)
{
    char *text = NULL;
    size_t len = 0;
    const char *path = source->options->token_file;
    if (stw_read_file(path, TOKEN_MAX, &text, &len, err) != 0)
        return stw_error_wrap(err, "--token-file");
    int rc = set_token(source, text, stw_bare_len(text, len), err);
    stw_wipe_free(text);
    return rc == 0 ? 0 : stw_error_wrap(err, "--token-file: %s", path);
}

/* Adds which rights are needed to an error about a missing one.  They must not be cut off. */
static int add_advice(const struct stw_top_source *source, struct stw_error *err)
{
    const struct stw_top_options *o = source->options;
    char role[STW_OWN_NAME_LEN], reason[200];
    if (err->code != STW_ERR_FORBIDDEN || err->http != 403)
        return -1;
    stw_operator_text(source->op, STW_ON_CALL, role);
    stw_format(reason, sizeof(reason), "%.199s", err->text);
    return stw_fail(err, STW_ERR_FORBIDDEN,
                    "%s; `top` needs the rights to list pods, to get pods/proxy, and to create "
                    "serviceaccounts/token of %.63s in namespace %.63s, which the Role %.63s of "
                    "config/on-call has",
                    reason, o->account, o->ns, role);
}

static int request_token(struct stw_top_source *source, struct stw_error *err)
{
    const struct stw_top_options *o = source->options;
    stw_autoanswer struct stw_answer answer = {0};
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES), token = STW_BUF_INIT(TOKEN_MAX);
    char body[160];
    token.secret = true;
    stw_resource_path(&account, o->ns, o->account, "token", &path);
    stw_format(body, sizeof(body),
               "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\",\"spec\":{"
               "\"expirationSeconds\":%d}}",
               TOKEN_SECONDS);
    struct stw_request req = {.method = "POST",
                              .path = stw_buf_str(&path),
                              .body = body,
                              .body_len = strlen(body),
                              .secret = true};
    if (stw_remote_do(&source->remote, &req, &answer, err) != 0) {
        (void)stw_error_wrap(err, "a token of ServiceAccount %s/%s", o->ns, o->account);
        if (err->code == STW_ERR_NOT_FOUND)
            return stw_error_wrap(err, "kubectl apply -k config/on-call creates it");
        return add_advice(source, err);
    }
    stw_json_str(stw_json_path(answer.root, "status.token"), &token);
    if (set_token(source, stw_buf_str(&token), token.failed ? 0 : token.len, err) != 0)
        return stw_error_wrap(err, "the API server's answer to a TokenRequest");
    source->token_until_ms = stw_now_ms(&stw_clock_system) + TOKEN_KEEP_MS;
    return 0;
}

static int renew_token(struct stw_top_source *source, struct stw_error *err)
{
    if (has_token_file(source->options))
        return read_token_file(source, err);
    if (source->token.len && stw_now_ms(&stw_clock_system) < source->token_until_ms)
        return 0;
    return request_token(source, err);
}

/* --- metrics */

static bool is_write(const char *labels, size_t len)
{
    static const char *const methods[] = {"method=\"POST\"", "method=\"PUT\"", "method=\"PATCH\"",
                                          "method=\"DELETE\""};
    for (size_t i = 0; i < STW_COUNT(methods); i++)
        if (memmem(labels, len, methods[i], strlen(methods[i])))
            return true;
    return false;
}

bool stw_top_count_writes(const char *metrics, double *ret)
{
    static const char name[] = "rest_client_requests_total{";
    bool found = false;
    double sum = 0;
    for (const char *line = metrics; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t len = strcspn(line, "\n");
        const char *end = memchr(line, '}', len);
        if (!end || strncmp(line, name, sizeof(name) - 1) != 0)
            continue;
        double value = strtod(end + 1, NULL);
        if (!isfinite(value) || value < 0)
            continue;
        found = true;
        sum += is_write(line, (size_t)(end - line)) ? value : 0;
    }
    *ret = sum;
    return found;
}

/* --- one replica */

/* Explains what the answer of a replica means. */
static int explain(struct stw_error *err)
{
    if (err->http == 404 && strstr(err->text, "not found; try"))
        return stw_error_wrap(err, "it serves no /debug/state");
    return -1;
}

static void read_writes(struct stw_top_source *source, struct stw_request *req,
                        struct stw_top_replica *r)
{
    struct stw_error ignored = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(ANSWER_MAX);
    if (stw_client_do(source->remote.client, req, &text, &ignored) == 0)
        r->counts_writes = stw_top_count_writes(stw_buf_str(&text), &r->writes);
}

/* `base` is the path before "/debug/state". */
static void read_replica(struct stw_top_source *source, const char *base, struct stw_top_replica *r)
{
    char path[PATH_MAX_BYTES];
    struct stw_request req = {.method = "GET",
                              .path = path,
                              .timeout_ms = REQUEST_MS,
                              .no_retry = true,
                              .header = source->token.len ? stw_buf_str(&source->token) : NULL};
    stw_format(path, sizeof(path), "%s/debug/state", base);
    if (stw_remote_do(&source->remote, &req, &r->state, &r->err) != 0) {
        stw_answer_done(&r->state);
        r->state.root = STW_JSON_NONE;
        if (r->err.http == 401) /* its ServiceAccount may have been created again */
            source->token_until_ms = 0;
        (void)explain(&r->err);
        return;
    }
    r->at_ms = stw_now_ms(&stw_clock_system);
    req.accept = "text/plain";
    stw_format(path, sizeof(path), "%s/metrics", base);
    read_writes(source, &req, r);
}

/* --- the pods */

/* The port of the metrics, or 0: it is not a pod of the program. */
static int64_t find_port(struct stw_json pod)
{
    struct stw_json key, container, port;
    int64_t number = 0;
    stw_json_foreach (stw_json_path(pod, "spec.containers"), key, container)
        stw_json_foreach (stw_json_get(container, "ports"), key, port)
            if (stw_json_is(stw_json_get(port, "name"), "metrics") &&
                stw_json_int(stw_json_get(port, "containerPort"), &number) == 0 && number > 0 &&
                number < 65536)
                return number;
    return 0;
}

static bool is_running(struct stw_json pod)
{
    return stw_json_is(stw_json_path(pod, "status.phase"), "Running") &&
           !stw_json_there(stw_json_path(pod, "metadata.deletionTimestamp"));
}

/* The API server's 403 is about the user's rights, which are missing for each replica. */
static bool lacks_right(const struct stw_error *err)
{
    return err->code == STW_ERR_FORBIDDEN && err->http == 403 && strstr(err->text, "pods/proxy");
}

static int read_pod(struct stw_top_source *source, struct stw_json pod, int64_t port,
                    struct stw_top_look *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    struct stw_top_replica *r = &ret->replicas[ret->count];
    char target[300];
    *r = (struct stw_top_replica){0};
    if (stw_json_strcpy(stw_json_path(pod, "metadata.name"), r->name, sizeof(r->name)) != 0)
        return 0;
    ret->count++;
    stw_format(target, sizeof(target), "https:%s:%d", r->name, (int)port);
    stw_resource_path(&stw_res_pod, source->options->ns, target, "proxy", &path);
    read_replica(source, stw_buf_str(&path), r);
    if (!lacks_right(&r->err))
        return 0;
    *err = r->err;
    return add_advice(source, err);
}

static int list_pods(struct stw_top_source *source, struct stw_answer *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    struct stw_request req = {.method = "GET"};
    stw_resource_path(&stw_res_pod, source->options->ns, NULL, NULL, &path);
    stw_buf_addf(&path, "?limit=%d&labelSelector=app.kubernetes.io%%2Fname%%3D%s", PODS_MAX,
                 source->op->name);
    req.path = stw_buf_str(&path);
    return stw_remote_do(&source->remote, &req, ret, err) == 0 ? 0 : add_advice(source, err);
}

static int look_at_pods(struct stw_top_source *source, struct stw_top_look *ret,
                        struct stw_error *err)
{
    stw_autoanswer struct stw_answer pods = {0};
    struct stw_json key, pod;
    if (list_pods(source, &pods, err) != 0)
        return -1;
    stw_json_foreach (stw_json_get(pods.root, "items"), key, pod) {
        int64_t port = find_port(pod);
        if (port == 0 || !is_running(pod))
            continue;
        if (ret->count == STW_TOP_REPLICAS_MAX) {
            ret->more++;
            continue;
        }
        if ((ret->count == 0 && renew_token(source, err) != 0) ||
            read_pod(source, pod, port, ret, err) != 0)
            return -1;
    }
    if (ret->count == 0)
        return stw_fail(
            err, STW_ERR_NOT_FOUND,
            "no pod in namespace %s runs, has the label app.kubernetes.io/name=%s and a "
            "port named metrics",
            source->options->ns, source->op->name);
    return 0;
}

int stw_top_look(struct stw_top_source *source, struct stw_top_look *ret, struct stw_error *err)
{
    stw_top_look_done(ret);
    if (!is_direct(source->options))
        return look_at_pods(source, ret, err);
    struct stw_top_replica *r = &ret->replicas[0];
    ret->count = 1;
    stw_format(r->name, sizeof(r->name), "%.253s", source->options->url);
    read_replica(source, "", r);
    return 0;
}
