/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on an EtcdCluster beyond its field tables. */
#include "kinds/etcdcluster/spec/rules.h"
#include "base/util.h"
#include "schema/names.h"

#include <ctype.h>
#include <stdio.h>

#define NANO 1000000000
#define MIB ((stw_quantity)1024 * 1024 * NANO)
#define HEARTBEAT_MS 100 /* etcd's default */
#define ELECTION_MS 1000

/* --- size */

static void check_size(const struct ec_scene *s)
{
    int64_t size = s->now->size;
    bool durable = !stw_streq(s->now->storage.medium, "EmptyDir") &&
                   !stw_json_is(stw_json_path(s->status, "storage.medium"), "EmptyDir");
    if (size < 0 || size > EC_SIZE_MAX)
        ec_refuse_int(s, "size", size, "must be between 1 and %d", EC_SIZE_MAX);
    else if (size == 0 && !durable)
        ec_refuse_int(s, "size", size,
                      "0 (hibernate) needs persistent storage, or the data is lost");
    else if (size == 0 && s->old)
        ec_refuse_int(s, "size", size,
                      "0 (hibernate) is not supported in this version; the last member stays "
                      "until the cluster is deleted");
    else if (size == 0)
        ec_refuse_int(s, "size", size, "must be at least 1 when the cluster is made");
    else if (size % 2 == 0)
        stw_findings_warn(s->f, "even size %d tolerates no more failures than %d", (int)size,
                          (int)size - 1);
}

/* --- repository */

static void check_repository(const struct ec_scene *s)
{
    const char *text = s->now->repository, *slash = text ? strrchr(text, '/') : NULL;
    if (!text || !*text || strlen(text) > 1024)
        return;
    if (strchr(slash ? slash : text, ':') || strchr(text, '@'))
        ec_refuse_text(s, "repository", text, EC_TAGGED);
    else if (!stw_is_image(text))
        ec_refuse_text(s, "repository", text, EC_IMAGE_FORM);
}

/* --- TLS */

static const struct {
    const char *keys[4];
} secret_keys[] = {
    {{"peer.crt", "peer.key", "peer-ca.crt", NULL}},
    {{"server.crt", "server.key", "server-ca.crt", NULL}},
    {{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt", NULL}},
};

void ec_advise_on_secret(const struct stw_admission *a, const char *name, const char *const *keys,
                         const char *then, struct stw_findings *f)
{
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    if (a->quiet || f->error_count || !name || !a->ns || !l || !l->secret)
        return;
    for (; *keys; keys++) {
        struct stw_secret_facts facts = {0};
        if (l->secret(l->ctx, a->ns, name, *keys, &facts) != 0)
            return;
        if (!facts.secret_there) {
            stw_findings_warn(f, "Secret \"%s\" not found; %s when it appears", name, then);
            return;
        }
        if (!facts.key_there)
            stw_findings_warn(f, "Secret \"%s\" has no key \"%s\"; %s when it appears", name, *keys,
                              then);
    }
}

/* How many of these keys the Secret has; -1: that is not known. */
static int count_keys(const struct stw_admission *a, const char *name, const char *const *keys)
{
    const struct stw_lookup *l = a->env->lookup;
    int count = 0;
    for (; *keys; keys++) {
        struct stw_secret_facts facts = {0};
        if (l->secret(l->ctx, a->ns, name, *keys, &facts) != 0)
            return -1;
        count += facts.key_there;
    }
    return count;
}

/* As kinds/common/certificate.c reads it. */
void ec_advise_on_certificate(const struct stw_admission *a, const char *name,
                              const char *const *keys, const char *then, struct stw_findings *f)
{
    static const char *const common[] = {"tls.crt", "tls.key", "ca.crt", NULL};
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    if (a->quiet || f->error_count || !name || !a->ns || !l || !l->secret)
        return;
    int own = count_keys(a, name, keys), others = own == 3 ? 0 : count_keys(a, name, common);
    if (own < 0 || others < 0)
        return;
    bool is_common = others == 3 || (own == 0 && others > 0);
    ec_advise_on_secret(a, name, is_common ? common : keys, then, f);
}

static void advise_on_secrets(const struct ec_scene *s)
{
    const struct ec_spec *now = s->now, *old = s->old;
    const struct {
        const char *now, *old;
    } names[] = {
        {now->tls.static_.member.peer_secret, old ? old->tls.static_.member.peer_secret : NULL},
        {now->tls.static_.member.server_secret, old ? old->tls.static_.member.server_secret : NULL},
        {now->tls.static_.operator_secret, old ? old->tls.static_.operator_secret : NULL},
    };
    for (size_t i = 0; i < STW_COUNT(names); i++)
        if (!stw_same(names[i].now, names[i].old))
            ec_advise_on_certificate(s->a, names[i].now, secret_keys[i].keys, "the members start",
                                     s->f);
}

static bool has_static(const struct ec_spec *c)
{
    return c->tls.static_.member.peer_secret || c->tls.static_.member.server_secret ||
           c->tls.static_.operator_secret;
}

/* TLS between members, and TLS with clients. */
static bool peer_tls(const struct ec_spec *c)
{
    return c->tls.auto_.provider || c->tls.static_.member.peer_secret;
}
static bool client_tls(const struct ec_spec *c)
{
    return c->tls.auto_.provider || c->tls.static_.member.server_secret;
}

void ec_check_tls(const struct ec_scene *s)
{
    const struct ec_spec *now = s->now, *old = s->old;
    const char *server = now->tls.static_.member.server_secret;
    if (!server != !now->tls.static_.operator_secret)
        ec_require(s, server ? "TLS.static.operatorSecret" : "TLS.static.member.serverSecret",
                   EC_TOGETHER);
    if (has_static(now) && now->tls.auto_.provider)
        ec_forbid(s, "TLS.auto", EC_ONE_TLS);
    if (now->tls.auto_.provider && now->tls.auto_.validity_days >= 1 &&
        now->tls.auto_.renew_before_days >= now->tls.auto_.validity_days)
        ec_refuse_int(s, "TLS.auto.renewBeforeDays", now->tls.auto_.renew_before_days,
                      EC_RENEWAL_EARLY);
    if (old && (peer_tls(now) != peer_tls(old) || client_tls(now) != client_tls(old)))
        ec_forbid(s, "TLS", EC_TLS_STAYS);
    advise_on_secrets(s);
}

/* --- options */

/* A whole number, or the usual form of Go's durations: "1h30m". */
static bool is_retention(const char *text, bool duration)
{
    bool unit = true;
    if (!isdigit((unsigned char)*text))
        return false;
    while (*text) {
        text += strspn(text, "0123456789");
        unit = *text && strchr("hms", *text);
        if (*text && (!unit || !duration))
            return false;
        text += unit;
        if (*text && !isdigit((unsigned char)*text))
            return false;
    }
    return true;
}

static void check_compaction(const struct ec_scene *s)
{
    const char *retention = s->now->options.auto_compaction_retention;
    bool revision = stw_streq(s->now->options.auto_compaction_mode, "revision");
    if (!*retention || is_retention(retention, !revision))
        return;
    ec_refuse_text(s, "options.autoCompactionRetention", retention, "%s",
                   revision ? EC_RETENTION_REVISIONS : EC_RETENTION_DURATION);
}

static void check_quota(const struct ec_scene *s)
{
    stw_quantity quota;
    struct stw_json v = s->now->options.quota_backend_bytes;
    if (!stw_json_there(v) || stw_quantity_of(v, &quota) != 0)
        return;
    if (quota < 64 * MIB)
        ec_refuse_node(s, "options.quotaBackendBytes", v, EC_QUOTA_SMALL);
    else if (quota > 8192 * MIB)
        stw_findings_warn(s->f, "%s is above etcd's suggested maximum of 8Gi",
                          ec_path(s, "options.quotaBackendBytes").text);
}

static void check_election(const struct ec_scene *s)
{
    int64_t heartbeat = s->now->options.heartbeat_interval_ms;
    int64_t election = s->now->options.election_timeout_ms;
    heartbeat = heartbeat ? heartbeat : HEARTBEAT_MS;
    election = election ? election : ELECTION_MS;
    if (heartbeat > 0 && heartbeat <= 10000 && election > 0 && election < 5 * heartbeat)
        ec_refuse_int(s, "options.electionTimeoutMs", election, EC_ELECTION_SHORT);
}

/* Options whose names depend on the version. */
static void check_extra_arg(const struct ec_scene *s, const char *path, const char *name,
                            struct stw_json value)
{
    static const char gate[] = "InitialCorruptCheck";
    struct stw_semver v = {0};
    stw_autofree char *text = stw_streq(name, STW_ETCD_GATES) ? stw_json_strdup(value) : NULL;
    if (text && strstr(text, gate))
        ec_forbid(s, path, "%s " EC_BY_OPERATOR, gate);
    if (strncmp(name, "experimental-", 13) == 0 && s->now->version &&
        stw_semver_parse(s->now->version, &v) == 0 && stw_etcd_has(v, STW_ETCD_NO_EXPERIMENTS))
        ec_forbid(s, path,
                  "etcd %u.%u has no options that begin with experimental-, and would not start; "
                  "see `etcd --help` for its name, or for its gate in " STW_ETCD_GATES,
                  v.major, v.minor);
}

static void check_extra_args(const struct ec_scene *s)
{
    char name[256], path[320];
    const char *use;
    struct stw_json key, value;
    stw_json_foreach (s->now->options.extra_args, key, value) {
        if (stw_findings_spent(s->f))
            return;
        if (stw_json_strcpy(key, name, sizeof(name)) != 0 || !*name ||
            name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")]) {
            ec_refuse_node(s, "options.extraArgs", key, EC_ARG_FORM);
            continue;
        }
        stw_format(path, sizeof(path), "options.extraArgs[%s]", name);
        if (name[0] == '-')
            ec_refuse_node(s, path, key, EC_ARG_DASHES);
        else if (ec_option_reserved(name, &use))
            ec_forbid_option(s, path, name, use);
        else
            check_extra_arg(s, path, name, value);
    }
}

static void check_options(const struct ec_scene *s)
{
    check_quota(s);
    check_compaction(s);
    check_election(s);
    check_extra_args(s);
}

/* --- all of it */

void ec_check(const struct ec_scene *s)
{
    check_size(s);
    ec_check_version(s);
    check_repository(s);
    ec_check_pod(s);
    ec_check_storage(s);
    check_options(s);
    ec_check_tls(s);
    ec_check_maintenance(s);
}

static bool has_condition(struct stw_json status, const char *type)
{
    struct stw_json key, c;
    stw_json_foreach (stw_json_get(status, "conditions"), key, c)
        if (stw_json_is(stw_json_get(c, "type"), type))
            return stw_json_is(stw_json_get(c, "status"), "True");
    return false;
}

/* Warns that the annotation which gives up the data of lost members has no effect with a quorum. */
static void advise_on_force(const struct stw_admission *a, struct stw_json status,
                            struct stw_findings *f)
{
    struct stw_json now =
        stw_json_get(stw_json_path(a->object, "metadata.annotations"), EC_FORCE_NEW_CLUSTER);
    struct stw_json old =
        stw_json_get(stw_json_path(a->old_object, "metadata.annotations"), EC_FORCE_NEW_CLUSTER);
    if (!stw_json_there(now) || (stw_json_there(old) && stw_json_equal(now, old)))
        return;
    if (!has_condition(status, "QuorumLost"))
        stw_findings_warn(f, "annotation " EC_FORCE_NEW_CLUSTER " ignored: cluster has quorum");
}

void ec_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                 struct stw_findings *f)
{
    struct ec_scene s = {.a = a, .at = "spec", .now = spec, .old = old_spec, .f = f};
    s.json = stw_json_get(a->object, "spec");
    s.status = stw_json_get(a->operation == STW_UPDATE ? a->old_object : a->object, "status");
    /* A spec without a version is judged with the one that becomes its default. */
    struct ec_spec now = *s.now, old = s.old ? *s.old : now;
    char version[STW_SEMVER_LEN + 1];
    if (s.old && stw_json_strcpy(ec_version_of_status(s.status), version, sizeof(version)) == 0) {
        if (!stw_json_there(stw_json_get(s.json, "version")))
            now.version = version;
        if (!stw_json_there(stw_json_path(a->old_object, "spec.version")))
            old.version = version;
        s.now = &now;
        s.old = &old;
    }
    ec_check(&s);
    advise_on_force(a, s.status, f);
}

void ec_advise_delete(const struct stw_admission *a, struct stw_findings *f)
{
    struct stw_json status = stw_json_get(a->old_object, "status");
    struct stw_json when = stw_json_path(a->old_object, "spec.volumeRetention.whenDeleted");
    bool verified = stw_json_bool(stw_json_path(status, "lastBackup.verified"), false);
    bool fleeting = stw_json_is(stw_json_path(status, "storage.medium"), "EmptyDir");
    if (verified || (!fleeting && !stw_json_is(when, "Delete")))
        return;
    stw_findings_warn(
        f, "%s: the data goes with the cluster, and there is no verified backup of it",
        fleeting ? "storage.medium is EmptyDir" : "volumeRetention.whenDeleted is Delete");
}
