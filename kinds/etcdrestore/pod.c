/* SPDX-License-Identifier: Apache-2.0
 *
 * The pod that fills the first member's volume.
 *
 * It fetches and verifies the snapshot with steward's own image.  Then it runs etcd's own tool from
 * etcd's image, because only that knows the format of a data folder. */
#include "base/util.h"
#include "controller/manifest.h"
#include "etcd/release.h"
#include "kinds/common/product.h"
#include "kinds/etcdbackup/access.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdrestore/run_priv.h"

#include <stdio.h>

#define USER 65532
#define DEADLINE_S 3600
#define FOLDER "/var/etcd"
#define SNAPSHOT FOLDER "/snapshot.db"

/* --- the future cluster */

int er_cluster_read(struct er *e)
{
    struct ec *c = &e->cluster;
    struct ec_spec *spec = &c->spec;
    if (stw_kind_decode(&stw_kind_etcdcluster, e->spec.template, e->arena, spec, &e->err) != 0)
        return -1;
    c->run = e->run;
    c->owner = (struct stw_owner){.kind = stw_kind_etcdcluster.kind,
                                  .ns = e->run->ns,
                                  .name = e->spec.cluster,
                                  .uid = e->object.uid};
    spec->version = spec->version ? spec->version : STW_ETCD_VERSION;
    spec->repository = spec->repository ? spec->repository : EC_REPOSITORY;
    spec->volume_retention.when_deleted = "Retain"; /* no cluster owns the claim yet */
    c->naming =
        (struct stw_naming){.app = EC_APP, .component = "member", .image = spec->repository};
    c->tls.peer = spec->tls.auto_.provider || spec->tls.static_.member.peer_secret;
    ec_size_text(spec->storage.size, c->state.storage.size);
    if (spec->storage.storage_class)
        stw_format(c->state.storage.class, sizeof(c->state.storage.class), "%s",
                   spec->storage.storage_class);
    return stw_semver_parse(spec->version, &c->version);
}

/* --- the pod */

void er_pod_name(const struct er *e, char out[EB_AGENT_NAME_MAX])
{
    const struct stw_owner owner = {.name = e->run->name, .uid = e->state.seed};
    eb_agent_name(&owner, "restore", out);
}

static void append_restore_arg(json_t *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void append_restore_arg(json_t *args, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)json_array_append_new(args, json_vsprintf(fmt, ap));
    va_end(ap);
}

static void s3_args(const struct er *e, const struct er_source *s, bool own_ca, json_t *args)
{
    const struct stw_reach *reach = stw_product_reach(e->run->env);
    if (reach)
        append_restore_arg(args, "--store-endpoints=%s", stw_reach_text(reach));
    append_restore_arg(args, "--s3=%s", s->path);
    append_restore_arg(args, "--s3-region=%s", s->s3.region ? s->s3.region : "us-east-1");
    if (s->s3.endpoint)
        append_restore_arg(args, "--s3-endpoint=%s", s->s3.endpoint);
    if (s->s3.force_path_style)
        append_restore_arg(args, "--s3-path-style");
    if (s->s3.aws_secret)
        append_restore_arg(args, "--credentials=/s3/credentials");
    if (own_ca)
        append_restore_arg(args, "--s3-ca=/s3/ca.crt");
}

static json_t *build_fetch_container(struct er *e, bool own_ca)
{
    const struct er_source *s = &e->source;
    json_t *mounts = json_pack("[o]", eb_agent_mount("data", FOLDER, false));
    json_t *args = json_pack("[s,s,s,s,s]", "snapshot", "fetch", "--output=json",
                             "--result=" EB_AGENT_RESULT, "--to=" SNAPSHOT);
    if (*s->sha256)
        append_restore_arg(args, "--sha256=%s", s->sha256);
    if (s->volume) {
        append_restore_arg(args, "--folder=/backup/%s", s->path);
        (void)json_array_append_new(mounts, eb_agent_mount("backup", "/backup", true));
    } else {
        s3_args(e, s, own_ca, args);
        if (s->s3.aws_secret)
            (void)json_array_append_new(mounts, eb_agent_mount("s3", "/s3", true));
    }
    return eb_agent_container(EB_AGENT_FETCH, e->agent_image, NULL, args, mounts);
}

/* Those of a member; otherwise without a limit of the memory, because it holds the whole database
 * there. */
static void set_restore_resources(const struct er *e, json_t *container)
{
    struct stw_json given = e->cluster.spec.pod.resources;
    if (stw_json_there(given))
        (void)json_object_set_new(container, "resources", stw_manifest_resources(given));
    else
        (void)json_object_del(json_object_get(container, "resources"), "limits");
}

static json_t *build_restore_container(struct er *e)
{
    const struct ec *c = &e->cluster;
    char version[STW_SEMVER_LEN], url[STW_ETCD_URL_MAX];
    bool has_utl = stw_etcd_has(c->version, STW_ETCD_UTL);
    json_t *args = json_pack("[s,s,s]", "snapshot", "restore", SNAPSHOT);
    stw_autofree char *image = NULL;
    stw_semver_text(c->version, version);
    ec_peer_url(c, e->state.seed, url);
    append_restore_arg(args, "--name=%s", e->state.seed);
    append_restore_arg(args, "--data-dir=" FOLDER "/data");
    append_restore_arg(args, "--initial-cluster=%s=%s", e->state.seed, url);
    append_restore_arg(args, "--initial-advertise-peer-urls=%s", url);
    append_restore_arg(args, "--initial-cluster-token=%s",
                       e->state.seed); /* determines the new cluster's ID */
    if (stw_etcd_has(c->version, STW_ETCD_BUMPS) && e->spec.bump_revision > 0) {
        append_restore_arg(args, "--bump-revision=%lld", (long long)e->spec.bump_revision);
        if (e->spec.mark_compacted)
            append_restore_arg(args, "--mark-compacted");
    }
    if (asprintf(&image, "%s:v%s", c->spec.repository, version) < 0)
        return NULL;
    json_t *made = eb_agent_container(EB_AGENT_RESTORE, image,
                                      json_pack("[s]", has_utl ? "etcdutl" : "etcdctl"), args,
                                      json_pack("[o]", eb_agent_mount("data", FOLDER, false)));
    set_restore_resources(e, made);
    (void)json_object_set_new(made, "env",
                              json_pack("[{s:s,s:s}]", "name", "ETCDCTL_API", "value", "3"));
    return made;
}

static int64_t user_of(const struct er *e)
{
    int64_t user = USER;
    (void)stw_json_int(stw_json_get(e->cluster.spec.pod.security_context, "runAsUser"), &user);
    return user > 0 ? user : USER;
}

static json_t *claim_volume(const char *name, const char *claim, bool read_only)
{
    return json_pack("{s:s,s:{s:s,s:b}}", "name", name, "persistentVolumeClaim", "claimName", claim,
                     "readOnly", read_only);
}

int er_secret_look(struct er *e, struct stw_error *err)
{
    const struct er_source *s = &e->source;
    struct eb_snapshot why = {0};
    if (s->volume || !s->s3.aws_secret ||
        eb_secret_has(e->run, s->s3.aws_secret, "ca.crt", &e->own_ca, &why) == 0)
        return 0;
    return stw_fail(err, STW_ERR_NOT_FOUND, "%s", why.err.text);
}

int er_pod_create(struct er *e, struct stw_error *err)
{
    static const struct stw_origin origins[] = {
        {"spec.containers[" EB_AGENT_RESTORE "].image", "spec.template.repository"},
        {"spec.containers[" EB_AGENT_RESTORE "].resources", "spec.template.pod.resources"},
        {"metadata", "spec.template.pod"},
        {"spec", "spec.template.pod"},
        {0},
    };
    const struct er_source *s = &e->source;
    char name[EB_AGENT_NAME_MAX];
    const struct stw_owner owner = {.kind = stw_kind_etcdrestore.kind,
                                    .ns = e->run->ns,
                                    .name = e->run->name,
                                    .uid = e->object.uid};
    json_t *volumes = json_pack("[o]", claim_volume("data", e->state.seed, false));
    if (s->volume)
        (void)json_array_append_new(volumes, claim_volume("backup", s->claim, true));
    else if (s->s3.aws_secret)
        (void)json_array_append_new(volumes, eb_agent_secret_volume("s3", s->s3.aws_secret));
    er_pod_name(e, name);
    const struct eb_agent agent = {
        .owner = &owner,
        .name = name,
        .app = "etcdrestore",
        .deadline_s = DEADLINE_S,
        .user = user_of(e),
        .init_containers = json_pack("[o]", build_fetch_container(e, e->own_ca)),
        .containers = json_pack("[o]", build_restore_container(e)),
        .volumes = volumes,
        .pod = &e->cluster.spec.pod, /* this pod decides where the volume is */
        .object = e->object.root,
        .origins = origins,
    };
    return eb_agent_create(e->run, &agent, err);
}
