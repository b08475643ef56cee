/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of EtcdRestore that neither its schema nor CEL can state. */
#include "kinds/etcdrestore/spec.h"

#include "base/arena.h"
#include "base/util.h"
#include "kinds/etcdbackup/spec_rules.h"
#include "kinds/etcdcluster/spec/rules.h"
#include "schema/names.h"

#include <stdio.h>

const char *er_check_cluster_name(const char *name)
{
    if (strlen(name) > EC_CLUSTER_NAME_MAX)
        return ER_NAME_LONG;
    return stw_is_dns1035_label(name) ? NULL : ER_NAME_FORM;
}

const char *er_check_uri(const char *uri)
{
    return strncmp(uri, "s3://", 5) == 0 || strncmp(uri, "pvc://", 6) == 0 ? NULL : ER_URI_FORM;
}

static void check_source(const struct er_spec *r, struct stw_findings *f)
{
    const struct {
        const char *path;
        bool there;
    } sources[] = {
        {"spec.s3", r->s3.path}, {"spec.pvc", r->pvc.claim}, {"spec.backupRef", r->backup.name}};
    size_t count = 0;
    for (size_t i = 0; i < STW_COUNT(sources); i++)
        if (sources[i].there && count++ > 0)
            stw_findings_add(f, sources[i].path, STW_FORBIDDEN, NULL, "%s", ER_ONE_SOURCE);
    if (count == 0 && !r->storage_type)
        stw_findings_add(f, "spec.backupRef", STW_REQUIRED, NULL, "%s", ER_ONE_SOURCE);
    else if (count <= 1 && r->storage_type && !r->backup.name)
        eb_check_store("backupStorageType", r->storage_type, r->s3.path, r->pvc.claim, f);
}

/* Members of a restored cluster take their identity from the data on their volume. */
static void check_template(const struct stw_admission *a, const struct er_spec *r,
                           struct stw_findings *f)
{
    struct ec_spec c = {0};
    struct ec_scene s = {.a = a, .at = "spec.template", .json = r->template, .now = &c, .f = f};
    struct stw_semver v;
    struct stw_arena arena;
    stw_arena_init(&arena);
    (void)stw_fields_decode(ec_spec_fields, r->template, &arena, &c);
    ec_check(&s);
    if (c.storage.medium && stw_streq(c.storage.medium, "EmptyDir"))
        ec_forbid(&s, "storage.medium", "%s", ER_NEEDS_VOLUME);
    if ((r->bump_revision > 0 || r->mark_compacted) && c.version &&
        stw_semver_parse(c.version, &v) == 0 && !stw_etcd_has(v, STW_ETCD_BUMPS))
        stw_findings_warn(f, "etcd before 3.5.10 can neither raise revisions nor mark them "
                             "compacted: clients that watch must be restarted");
    stw_arena_done(&arena);
}

static void advise_on_volumes(const struct er_spec *r, struct stw_findings *f)
{
    if (r->keep_old_volumes_s > 0)
        stw_findings_warn(f, "spec.keepOldVolumesSeconds is ignored: in mode New no volume becomes "
                             "an old one");
}

static int has_cluster(const struct stw_admission *a, const char *name)
{
    char key[600];
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    if (!l || !l->has || !a->ns || !name)
        return -1;
    stw_format(key, sizeof(key), "%s/%s", a->ns, name);
    return l->has(l->ctx, "etcdclusters", key);
}

static void check_cluster(const struct stw_admission *a, const struct er_spec *r,
                          struct stw_findings *f)
{
    if (!r->cluster || a->operation != STW_CREATE)
        return;
    int there = has_cluster(a, r->cluster);
    if (there == 0 && !stw_json_there(r->template))
        stw_findings_add(f, "spec.template", STW_REQUIRED, NULL,
                         "no EtcdCluster \"%s\" to copy; give template", r->cluster);
    else if (there == 1 && !a->quiet)
        stw_findings_warn(f,
                          "EtcdCluster \"%s\" exists and is not touched: nothing is restored "
                          "until it is deleted",
                          r->cluster);
    struct stw_json name = stw_json_path(a->object, "metadata.name");
    if (stw_json_there(name) && !stw_json_is(name, r->cluster))
        stw_findings_warn(
            f,
            "metadata.name differs from spec.etcdCluster.name; the cluster gets the latter name");
}

static void advise_on_backup(const struct stw_admission *a, const struct er_spec *r,
                             struct stw_findings *f)
{
    char key[600];
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    if (a->quiet || f->error_count || !r->backup.name || !l || !l->has || !a->ns)
        return;
    stw_format(key, sizeof(key), "%s/%s", a->ns, r->backup.name);
    if (l->has(l->ctx, "etcdbackups", key) == 0)
        stw_findings_warn(f, "EtcdBackup \"%s\" not found; the restore begins when it is there",
                          r->backup.name);
}

void er_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                 struct stw_findings *f)
{
    const struct er_spec *r = spec, *old = old_spec;
    check_source(r, f);
    if (stw_json_there(r->template))
        check_template(a, r, f);
    check_cluster(a, r, f);
    advise_on_volumes(r, f);
    eb_check_s3(a, &r->s3, old ? &old->s3 : NULL, "the restore begins", f);
    if (old)
        eb_check_same_store(a, f);
    else
        advise_on_backup(a, r, f);
}
