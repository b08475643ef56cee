/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives the API client against a real API server, for test_kube.py: reads commands from standard
 * input, one per line, and answers each with one line of JSON.
 *
 *     apply MANAGER FILE   server-side apply; {"same": the digests agree, "rv": ...}
 *     owned MANAGER FILE   of the live object: {"same": ..., "diff": "a, b"}
 *     count | keys | synced | problem
 *     version KEY          {"rv": ...} of the cache
 *     quit
 *
 * Arguments: RESOURCE (a plural of `known`, such as configmaps) and NAMESPACE of the cache. */
#include "base/json.h"
#include "base/log.h"
#include "base/util.h"
#include "kube/informer.h"
#include "kube/owned.h"

#include <stdio.h>

static const struct stw_operator probe_operator = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward", .version = "1.2.3"};

struct probe {
    struct stw_client *client;
    struct stw_informer *informer;
};

static const struct stw_resource *const known[] = {&stw_res_configmap,
                                                   &stw_res_service,
                                                   &stw_res_deployment,
                                                   &stw_res_secret,
                                                   &stw_res_disruption_budget_v1,
                                                   &stw_res_disruption_budget_v1beta1};

static const struct stw_resource *by_plural(const char *plural)
{
    for (size_t i = 0; i < STW_COUNT(known); i++)
        if (stw_streq(known[i]->plural, plural))
            return known[i];
    return NULL;
}

static bool is_of(struct stw_json object, const struct stw_resource *r)
{
    stw_autobuf struct stw_buf version = STW_BUF_INIT(256);
    stw_resource_api_version(r, &version);
    return stw_json_is(stw_json_get(object, "apiVersion"), stw_buf_str(&version)) &&
           stw_json_is(stw_json_get(object, "kind"), r->kind);
}

static const struct stw_resource *by_object(struct stw_json object)
{
    for (size_t i = 0; i < STW_COUNT(known); i++)
        if (is_of(object, known[i]))
            return known[i];
    return NULL;
}

static void keep_data(void *ctx, struct stw_json object, struct stw_buf *out)
{
    size_t len;
    const char *raw = stw_json_raw(stw_json_get(object, "data"), &len);
    (void)ctx;
    stw_buf_adds(out, "{\"data\":");
    stw_buf_add(out, raw ? raw : "null", raw ? len : 4);
    stw_buf_addc(out, '}');
}

static int fail(const struct stw_error *err)
{
    struct stw_buf text = STW_BUF_INIT(4096);
    stw_buf_json_strz(&text, err->text);
    (void)printf("{\"error\":%s,\"code\":\"%s\"}\n", stw_buf_str(&text), stw_err_name(err->code));
    stw_buf_done(&text);
    return -1;
}

/* Prints whether the digests of `desired` and of the live object agree. */
static int answer_owned(const char *manager, struct stw_json desired, const struct stw_buf *answer)
{
    char rv[STW_RV_LEN] = "";
    struct stw_error err = {0};
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf names = STW_BUF_INIT(4096), text = STW_BUF_INIT(8192);
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, &err) < 0)
        return fail(&err);
    struct stw_json live = stw_json_root(&doc);
    struct stw_hash a = stw_owned_desired(desired), b = stw_owned_live(live, manager, false);
    (void)stw_json_strcpy(stw_json_path(live, "metadata.resourceVersion"), rv, sizeof(rv));
    (void)stw_owned_diff(desired, live, 5, &names);
    stw_buf_json_strz(&text, stw_buf_str(&names));
    (void)printf("{\"same\":%s,\"diff\":%s,\"rv\":\"%s\"}\n",
                 a.hi == b.hi && a.lo == b.lo ? "true" : "false", stw_buf_str(&text), rv);
    return 0;
}

static int on_file(struct probe *p, const char *manager, const char *path, bool apply)
{
    size_t len;
    char ns[254] = "", name[254] = "";
    struct stw_error err = {0};
    stw_autofree char *file = NULL;
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    if (stw_read_file(path, 1u << 20, &file, &len, &err) < 0 ||
        stw_json_scan(&doc, file, len, &err) < 0)
        return fail(&err);
    struct stw_json desired = stw_json_root(&doc);
    const struct stw_resource *r = by_object(desired);
    (void)stw_json_strcpy(stw_json_path(desired, "metadata.namespace"), ns, sizeof(ns));
    (void)stw_json_strcpy(stw_json_path(desired, "metadata.name"), name, sizeof(name));
    json_auto_t *object = json_loads(file, 0, NULL);
    if (!r || !object)
        return fail(&(struct stw_error){.text = "not an object of a known kind"});
    int bad =
        apply ? stw_kube_apply(p->client, STW_PLACE(r, ns, name), object, manager, &answer, &err)
              : stw_kube_get(p->client, r, ns, name, &answer, &err);
    if (bad)
        return fail(&err);
    if (apply)
        stw_informer_saw(p->informer, &answer, NULL);
    return answer_owned(manager, desired, &answer);
}

static void print_keys(struct probe *p)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(64u << 20), json = STW_BUF_INIT(128u << 20);
    stw_informer_keys(p->informer, NULL, &keys);
    stw_buf_json_strz(&json, stw_buf_str(&keys));
    (void)printf("{\"keys\":%s}\n", stw_buf_str(&json));
}

static void print_version(struct probe *p, const char *key)
{
    char rv[STW_RV_LEN] = "";
    stw_autobuf struct stw_buf text = STW_BUF_INIT(16u << 20);
    (void)stw_informer_get(p->informer, key, &text, rv);
    (void)printf("{\"rv\":\"%s\",\"object\":%s}\n", rv, text.len > 0 ? text.data : "null");
}

static void print_problem(struct probe *p)
{
    char problem[512];
    stw_autobuf struct stw_buf json = STW_BUF_INIT(4096);
    stw_informer_problem(p->informer, problem, sizeof(problem));
    stw_buf_json_strz(&json, problem);
    (void)printf("{\"problem\":%s}\n", stw_buf_str(&json));
}

static bool obey(struct probe *p, char *line)
{
    char *word = strtok_r(line, " \n", &line), *a = strtok_r(NULL, " \n", &line),
         *b = strtok_r(NULL, " \n", &line);
    if (!word || stw_streq(word, "quit"))
        return false;
    if (stw_streq(word, "count"))
        (void)printf("{\"count\":%u}\n", stw_informer_count(p->informer));
    else if (stw_streq(word, "synced"))
        (void)printf("{\"synced\":%s}\n", stw_informer_synced(p->informer) ? "true" : "false");
    else if (stw_streq(word, "keys"))
        print_keys(p);
    else if (stw_streq(word, "problem"))
        print_problem(p);
    else if (stw_streq(word, "version") && a)
        print_version(p, a);
    else if (a && b)
        (void)on_file(p, a, b, stw_streq(word, "apply"));
    (void)fflush(stdout);
    return true;
}

static int run(struct probe *p, const char *resource, const char *ns, struct stw_error *err)
{
    const char *const namespaces[] = {ns, NULL};
    struct stw_kubeconfig *config = NULL;
    struct stw_informer_config informer = {.resource = by_plural(resource),
                                           .namespaces = namespaces,
                                           .page_size = 100,
                                           .project = keep_data};
    char line[4096];
    int r = stw_kubeconfig_load(NULL, NULL, &config, err);
    if (r == 0)
        r = stw_client_create(&probe_operator, config, &stw_clock_system, NULL, &p->client, err);
    stw_kubeconfig_destroy(config);
    if (r == 0)
        r = stw_informer_create(p->client, &informer, &stw_clock_system, NULL, &p->informer, err);
    if (r == 0)
        r = stw_informer_start(p->informer, err);
    while (r == 0 && fgets(line, sizeof(line), stdin) && obey(p, line))
        ;
    return r;
}

int main(int argc, char **argv)
{
    struct probe p = {0};
    struct stw_error err = {0};
    if (argc != 3 || !by_plural(argv[1])) {
        (void)fprintf(stderr, "usage: kube_probe RESOURCE NAMESPACE\n");
        return 2;
    }
    stw_log_setup(STW_LOG_TEXT, STW_LOG_DEBUG, STDERR_FILENO);
    int r = run(&p, argv[1], argv[2], &err);
    if (r < 0)
        (void)fail(&err);
    stw_informer_destroy(p.informer);
    stw_client_destroy(p.client);
    return r < 0;
}
