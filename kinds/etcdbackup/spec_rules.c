/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on an EtcdBackup beyond its field table. */
#include "kinds/etcdbackup/spec_rules.h"
#include "base/util.h"
#include "kinds/common/schedule.h"
#include "kinds/etcdcluster/spec/rules.h"

#include <stdio.h>

#define INTERVAL_MIN 60

static const char then_made[] = "backups are made";

/* --- source */

static void check_endpoint(struct stw_json node, uint32_t index, int *https, struct stw_findings *f)
{
    char path[64], url[513];
    if (stw_json_strcpy(node, url, sizeof(url)) != 0 || !*url)
        return; /* the field table reports it */
    bool is_https = strncmp(url, "https://", 8) == 0;
    stw_format(path, sizeof(path), "spec.etcdEndpoints[%u]", index);
    eb_check_url(path, url, "https://host:2379", f);
    if (*https >= 0 && is_https != *https)
        stw_findings_add(f, path, STW_INVALID, NULL, "%s", EB_ONE_SCHEME);
    if (*https < 0)
        *https = is_https;
}

static void check_endpoints(const struct eb_spec *b, struct stw_findings *f)
{
    struct stw_json key, url;
    uint32_t index = 0;
    int https = -1; /* not known yet */
    stw_json_foreach (b->endpoints, key, url)
        check_endpoint(url, index++, &https, f);
    if (https == 1 && !b->client_tls_secret)
        stw_findings_add(f, "spec.clientTLSSecret", STW_REQUIRED, NULL, "%s", EB_NEEDS_CERTIFICATE);
}

static void check_source(const struct eb_spec *b, struct stw_findings *f)
{
    bool endpoints = stw_json_there(b->endpoints);
    if (endpoints && b->cluster)
        stw_findings_add(f, "spec.clusterRef", STW_FORBIDDEN, NULL, "%s", EB_ONE_SOURCE);
    else if (!endpoints && !b->cluster)
        stw_findings_add(f, "spec.clusterRef", STW_REQUIRED, NULL, "%s", EB_ONE_SOURCE);
    if (endpoints)
        check_endpoints(b, f);
}

static void advise_on_cluster(const struct stw_admission *a, const struct eb_spec *b,
                              struct stw_findings *f)
{
    char key[600];
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    if (a->quiet || f->error_count || !b->cluster || !l || !l->has || !a->ns)
        return;
    stw_format(key, sizeof(key), "%s/%s", a->ns, b->cluster);
    if (l->has(l->ctx, "etcdclusters", key) == 0)
        stw_findings_warn(f, "EtcdCluster \"%s\" not found; backups are made when it is there",
                          b->cluster);
}

/* --- schedule */

static bool by_clock(const struct eb_spec *b)
{
    return b->policy.interval_s != 0 || b->policy.schedule;
}

static void check_interval(const struct eb_spec *b, struct stw_findings *f)
{
    char value[24];
    int64_t n = b->policy.interval_s;
    stw_format(value, sizeof(value), "%lld", (long long)n);
    if (n != 0 && n < INTERVAL_MIN)
        stw_findings_add(f, "spec.backupPolicy.backupIntervalInSecond", STW_INVALID, value, "%s",
                         EB_INTERVAL_SHORT);
    else if (n > 315360000)
        stw_findings_add(f, "spec.backupPolicy.backupIntervalInSecond", STW_INVALID, value,
                         "must be at most 315360000");
    if (n != 0 && b->policy.schedule)
        stw_findings_add(f, "spec.backupPolicy.schedule", STW_FORBIDDEN, NULL, "%s",
                         EB_ONE_SCHEDULE);
}

static void check_keeping(const struct eb_spec *b, struct stw_findings *f)
{
    const struct {
        const char *path;
        int64_t value;
    } limits[] = {{"spec.backupPolicy.maxBackups", b->policy.max_backups},
                  {"spec.backupPolicy.maxAgeSeconds", b->policy.max_age_s}};
    for (size_t i = 0; i < STW_COUNT(limits); i++)
        if (limits[i].value > 0 && !by_clock(b))
            stw_findings_add(f, limits[i].path, STW_FORBIDDEN, NULL, "%s", EB_NEEDS_SCHEDULE);
}

static void check_policy(const struct stw_admission *a, const struct eb_spec *b,
                         struct stw_findings *f)
{
    check_interval(b, f);
    stw_check_schedule("spec.backupPolicy.schedule", b->policy.schedule, "backups", f);
    stw_check_time_zone(a, "spec.backupPolicy.timeZone", b->policy.time_zone, f);
    check_keeping(b, f);
    if (b->policy.suspend && !by_clock(b))
        stw_findings_warn(f,
                          "spec.backupPolicy.suspend: the one backup is made when this is false");
}

/* --- changes */

/* An object makes either one backup or many; an UPDATE cannot change which. */
static void check_period(const struct eb_spec *now, const struct eb_spec *old,
                         struct stw_findings *f)
{
    if (by_clock(now) == by_clock(old))
        return;
    bool interval = now->policy.interval_s != old->policy.interval_s;
    char was[32];
    stw_format(was, sizeof(was), "%lld", (long long)old->policy.interval_s);
    stw_findings_add(
        f, interval ? "spec.backupPolicy.backupIntervalInSecond" : "spec.backupPolicy.schedule",
        STW_FORBIDDEN, NULL, EB_IMMUTABLE " (was %s)",
        interval               ? was
        : old->policy.schedule ? "set"
                               : "not set");
}

static void check_changes(const struct stw_admission *a, const struct eb_spec *now,
                          const struct eb_spec *old, struct stw_findings *f)
{
    check_period(now, old, f);
    if (!by_clock(old))
        eb_check_same_store(a, f);
}

/* --- other objects that store to the same place */

static bool has_moved(const struct stw_admission *a, const char *place)
{
    stw_autobuf struct stw_buf was = STW_BUF_INIT(EB_PLACE_MAX);
    return !stw_json_there(a->old_object) || !eb_spec_place(a->old_object, a->ns, &was) ||
           !stw_streq(stw_buf_str(&was), place);
}

/* If two objects already shared a place before this rule, the controller lets the older one
 * continue. */
static void check_place(const struct stw_admission *a, const struct eb_spec *b,
                        struct stw_findings *f)
{
    stw_autobuf struct stw_buf place = STW_BUF_INIT(EB_PLACE_MAX);
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    char self[600], holder[512] = "";
    if (f->error_count || !l || !l->find || !a->ns || !eb_spec_place(a->object, a->ns, &place) ||
        !has_moved(a, stw_buf_str(&place)))
        return;
    stw_format(self, sizeof(self), "%s/%s", a->ns, a->name ? a->name : "");
    if (!l->find(l->ctx, "etcdbackups.place", stw_buf_str(&place), self, holder))
        return;
    size_t len = strlen(a->ns);
    const char *field = b->pvc.claim ? "spec.pvc.path" : "spec.s3.path";
    if (strncmp(holder, a->ns, len) == 0 && holder[len] == '/')
        stw_findings_add(f, field, STW_FORBIDDEN, NULL, "EtcdBackup \"%s\" stores there",
                         holder + len + 1);
    else
        stw_findings_add(f, field, STW_FORBIDDEN, NULL,
                         "an EtcdBackup of another namespace stores there");
}

/* --- pods */

static void check_pod(const struct stw_admission *a, const struct eb_spec *b,
                      struct stw_findings *f)
{
    const struct ec_spec holder = {.pod = b->pod};
    const struct ec_scene s = {
        .a = a, .at = "spec", .json = stw_json_get(a->object, "spec"), .now = &holder, .f = f};
    ec_check_agent_pod(&s);
    if (stw_same(b->storage_type, "S3") && stw_json_there(stw_json_get(s.json, "pod")))
        stw_findings_warn(f, "spec.pod is ignored when storageType is S3: no pod is needed");
}

/* --- all of it */

static const struct {
    const char *keys[4];
} secret_keys[] = {
    {{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt", NULL}},
    {{"username", "password", NULL}},
};

static void advise_on_request(const struct stw_admission *a, const struct eb_spec *b,
                              struct stw_findings *f)
{
    char annotation[STW_OWN_NAME_LEN];
    if (!a->env || !a->env->op || b->policy.schedule || b->policy.interval_s > 0)
        return;
    stw_operator_text(a->env->op, EB_AT, annotation);
    if (stw_json_there(stw_json_get(stw_json_path(a->object, "metadata.annotations"), annotation)))
        stw_findings_warn(f,
                          "annotation %s: ignored, because this object makes one backup only; "
                          "create another one",
                          annotation);
}

static void advise_on_etcdbackup(const struct stw_admission *a, const struct eb_spec *b,
                                 const struct eb_spec *old, struct stw_findings *f)
{
    if (b->verify && stw_streq(b->verify, "None"))
        stw_findings_warn(f,
                          "spec.verify None: it is not known whether such backups can be restored");
    eb_check_s3(a, &b->s3, old ? &old->s3 : NULL, then_made, f);
    advise_on_request(a, b, f);
    if (!old || !stw_same(b->client_tls_secret, old->client_tls_secret))
        ec_advise_on_certificate(a, b->client_tls_secret, secret_keys[0].keys, then_made, f);
    if (!old || !stw_same(b->auth_secret, old->auth_secret))
        ec_advise_on_secret(a, b->auth_secret, secret_keys[1].keys, then_made, f);
    if (!old)
        advise_on_cluster(a, b, f);
}

void eb_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                 struct stw_findings *f)
{
    const struct eb_spec *b = spec;
    check_source(b, f);
    if (b->storage_type)
        eb_check_store("storageType", b->storage_type, b->s3.path, b->pvc.claim, f);
    check_policy(a, b, f);
    check_pod(a, b, f);
    if (old_spec)
        check_changes(a, b, old_spec, f);
    check_place(a, b, f);
    advise_on_etcdbackup(a, b, old_spec, f);
}
