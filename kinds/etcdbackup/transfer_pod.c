/* SPDX-License-Identifier: Apache-2.0
 *
 * Backups to a volume: only a pod can mount it, so a pod runs `steward snapshot save`. */
#include "kinds/etcdbackup/transfer_pod.h"

#include "base/util.h"
#include "kinds/common/pod.h"
#include "kinds/common/product.h"
#include "kinds/etcdbackup/access.h"
#include "kinds/etcdbackup/agent.h"
#include "kinds/etcdbackup/plan.h"
#include "kinds/etcdbackup/run.h"
#include "kinds/etcdbackup/runtime.h"
#include "kinds/etcdbackup/state.h"

#include <stdio.h>

#define DEADLINE_S 3600 /* where the policy sets no timeout */
#define SLACK_S 300     /* for reading back, and for the start of the pod */
#define USER 65532
#define NOTHING_TOLD "its agent ended without a result"

static struct stw_owner owner_of(const struct eb *e)
{
    return (struct stw_owner){.kind = stw_kind_etcdbackup.kind,
                              .ns = e->run->ns,
                              .name = e->run->name,
                              .uid = e->object.uid};
}

static void name_of(const struct eb *e, char out[EB_AGENT_NAME_MAX])
{
    struct stw_owner owner = owner_of(e);
    eb_agent_name(&owner, "backup", out);
}

enum eb_transfer eb_agent_look(struct eb *e)
{
    struct eb_agent_live *a = calloc(1, sizeof(*a));
    char name[EB_AGENT_NAME_MAX];
    enum eb_transfer what = EB_NO_TRANSFER;
    name_of(e, name);
    if (a && eb_agent_find(e->run, name, a) == 0 && stw_streq(a->owner_uid, e->object.uid)) {
        what = EB_TRANSFERS;
        stw_format(e->agent_uid, sizeof(e->agent_uid), "%s", a->uid);
        if (a->phase == EB_AGENT_STUCK) {
            stw_format(e->stuck, sizeof(e->stuck), "%s", a->reason);
            stw_format(e->waiting, sizeof(e->waiting), "pod \"%s\": %s", name, a->text);
        }
        e->agent_runs = a->runs;
        if (a->going) /* its result has been collected */
            e->agent_goes = true;
        else if (a->phase == EB_AGENT_SUCCEEDED || a->phase == EB_AGENT_FAILED)
            what = EB_TRANSFERRED;
    }
    if (what == EB_TRANSFERRED && eb_snapshot_read(a->message, strlen(a->message), &e->result) != 0)
        (void)eb_fault(&e->result, EB_SNAPSHOT_OTHER, "AgentFailed", "pod \"%s\": %.300s", name,
                       *a->text      ? a->text
                       : *a->message ? a->message
                                     : NOTHING_TOLD);
    free(a);
    return what;
}

void eb_agent_forget(struct eb *e)
{
    char name[EB_AGENT_NAME_MAX];
    struct stw_error err = {0};
    if (!*e->agent_uid || e->agent_goes)
        return;
    name_of(e, name);
    (void)eb_agent_delete(e->run, name, e->agent_uid, &err); /* else it goes with its owner */
}

/* --- creating the pod */

static void append_save_arg(json_t *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void append_save_arg(json_t *args, const char *fmt, ...)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(64 * 1024);
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    (void)json_array_append_new(args, json_string(stw_buf_str(&text)));
}

static void policy_args(const struct eb *e, json_t *args)
{
    const struct eb_spec *spec = &e->spec;
    if (spec->policy.timeout_s > 0)
        append_save_arg(args, "--timeout=%llds", (long long)spec->policy.timeout_s);
    if (stw_streq(spec->verify, "None"))
        append_save_arg(args, "--no-verify");
    if (e->clock.mode == EB_ONCE) {
        append_save_arg(args, "--exact");
        return;
    }
    if (spec->policy.max_backups > 0)
        append_save_arg(args, "--max-backups=%lld", (long long)spec->policy.max_backups);
    if (spec->policy.max_age_s > 0)
        append_save_arg(args, "--max-age=%llds", (long long)spec->policy.max_age_s);
    append_save_arg(args, "--owner=%s", e->object.uid);
    const char *uri = json_string_value(json_object_get(eb_state_verified(&e->state), "uri"));
    if (uri && strrchr(uri, '/'))
        append_save_arg(args, "--keep=%s", strrchr(uri, '/') + 1);
}

static json_t *build_save_arguments(const struct eb *e, const struct eb_source *source)
{
    stw_autobuf struct stw_buf urls = STW_BUF_INIT(64 * 1024);
    const struct stw_reach *reach = stw_product_reach(e->run->env);
    json_t *args =
        json_pack("[s,s,s,s]", "snapshot", "save", "--output=json", "--result=" EB_AGENT_RESULT);
    for (size_t i = 0; i < source->count; i++)
        stw_buf_addf(&urls, "%s%s", i ? "," : "", source->urls[i]);
    append_save_arg(args, "--endpoints=%s", stw_buf_str(&urls));
    append_save_arg(args, "--folder=/backup/%s", e->spec.pvc.path);
    if (reach) /* a cluster's own members are not addresses that a user chose */
        append_save_arg(args, "--store-endpoints=%s",
                        e->spec.cluster ? "*" : stw_reach_text(reach));
    if (*source->tls_secret) {
        append_save_arg(args, "--cacert=/tls/etcd-client-ca.crt");
        append_save_arg(args, "--cert=/tls/etcd-client.crt");
        append_save_arg(args, "--key=/tls/etcd-client.key");
    }
    if (e->spec.auth_secret)
        append_save_arg(args, "--user=/auth");
    policy_args(e, args);
    return args;
}

/* `items`: which keys become which files; NULL: each key a file. */
static void add_secret(json_t *volumes, json_t *mounts, const char *name, const char *secret,
                       json_t *items)
{
    char path[32];
    stw_format(path, sizeof(path), "/%s", name);
    json_t *volume = eb_agent_secret_volume(name, secret);
    if (items)
        (void)json_object_set_new(json_object_get(volume, "secret"), "items", items);
    (void)json_array_append_new(volumes, volume);
    (void)json_array_append_new(mounts, eb_agent_mount(name, path, true));
}

bool eb_agent_has_image(struct eb *e)
{
    if (*stw_product_agent_image(e->run->env))
        return true;
    e->stalled = "AgentImageMissing";
    stw_format(e->stalled_text, sizeof(e->stalled_text),
               "a backup onto a volume is made by a pod of steward's own image: start "
               "steward with --agent-image, or use S3");
    return false;
}

int eb_agent_prepare(struct eb *e, struct eb_snapshot *why)
{
    const char *image = stw_product_agent_image(e->run->env);
    struct eb_source source;
    bool common;
    if (!eb_agent_has_image(e))
        return -1;
    /* A pod whose Secret is missing would wait until its deadline. */
    if (eb_inputs_check(e, &common, why) != 0)
        return -1;
    if (eb_source_find(e->run, &e->spec, &source, why) != 0) {
        eb_source_done(&source);
        return -1;
    }
    json_t *mounts = json_array(), *volumes = json_array();
    (void)json_array_append_new(mounts, eb_agent_mount("backup", "/backup", false));
    (void)json_array_append_new(volumes,
                                json_pack("{s:s,s:{s:s}}", "name", "backup",
                                          "persistentVolumeClaim", "claimName", e->spec.pvc.claim));
    if (*source.tls_secret)
        add_secret(volumes, mounts, "tls", source.tls_secret,
                   common ? stw_pod_certificate_items("etcd-client", true) : NULL);
    if (e->spec.auth_secret)
        add_secret(volumes, mounts, "auth", e->spec.auth_secret, NULL);
    json_t *container = eb_agent_container(EB_AGENT_SNAPSHOT, image, NULL,
                                           build_save_arguments(e, &source), mounts);
    (void)json_object_set_new(container, "resources", eb_agent_resources(e->spec.pod.resources));
    e->containers = json_pack("[o]", container);
    e->volumes = volumes;
    eb_source_done(&source);
    return e->containers ? 0 : eb_fault_memory(why);
}

int eb_agent_start(struct eb *e, struct stw_error *err)
{
    static const struct stw_origin origins[] = {
        {"spec.containers[" EB_AGENT_SNAPSHOT "].resources", "spec.pod.resources"},
        {"metadata", "spec.pod"},
        {"spec", "spec.pod"},
        {0},
    };
    char name[EB_AGENT_NAME_MAX];
    struct stw_owner owner = owner_of(e);
    int64_t timeout = e->spec.policy.timeout_s;
    json_t *containers = stw_take(e->containers), *volumes = stw_take(e->volumes);
    name_of(e, name);
    const struct eb_agent agent = {
        .owner = &owner,
        .name = name,
        .app = "etcdbackup",
        .deadline_s = timeout > 0 ? 2 * timeout + SLACK_S : DEADLINE_S,
        .user = USER,
        .containers = containers,
        .volumes = volumes,
        .pod = &e->spec.pod,
        .object = e->object.root,
        .origins = origins,
    };
    return eb_agent_create(e->run, &agent, err);
}
