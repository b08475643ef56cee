/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates of an EtcdCluster: which Secrets have them, whether they are valid, the client for
 * the members that uses them, and the check that members serve the right certificate. */
#include "kinds/etcdcluster/tls/tls.h"

#include "base/process/fault.h"
#include "base/util.h"
#include "certs/issue.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/observe/probe.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"
#include "kinds/etcdcluster/tls/authority.h"
#include "kinds/etcdcluster/tls/secrets.h"
#include "kinds/etcdcluster/tls/tls_state.h"

#include <stdio.h>
#include <strings.h>

#define TIMEOUT_MS 4000
#define EXPIRING_DAYS 30
#define STALE_S 600 /* kubelets update a Secret in its pods within two minutes */

/* --- which Secrets */

static void copy_secret_name(char out[300], const char *name)
{
    stw_format(out, 300, "%s", name ? name : "");
}

static void set_own(struct ec *e)
{
    struct ec_tls *t = &e->tls;
    const char *name = e->owner.name;
    t->own = t->peer = t->client = true;
    stw_format(t->ca_secret, sizeof(t->ca_secret), "%s-ca", name);
    stw_format(t->peer_secret, sizeof(t->peer_secret), "%s-peer-tls", name);
    stw_format(t->server_secret, sizeof(t->server_secret), "%s-server-tls", name);
    stw_format(t->operator_secret, sizeof(t->operator_secret), "%s-client-tls", name);
}

static void set_wanted(struct ec *e)
{
    struct ec_tls *t = &e->tls;
    *t = (struct ec_tls){0};
    if (e->spec.tls.auto_.provider) {
        set_own(e);
        return;
    }
    copy_secret_name(t->peer_secret, e->spec.tls.static_.member.peer_secret);
    copy_secret_name(t->server_secret, e->spec.tls.static_.member.server_secret);
    copy_secret_name(t->operator_secret, e->spec.tls.static_.operator_secret);
    t->peer = *t->peer_secret;
    t->client = *t->server_secret;
}

/* --- checking them */

static void set_tls_failed(struct ec_tls *t)
{
    ec_tls_set_state(t, EC_TLS_FAILED, "%.380s", t->err.text);
}

/* tell_end reports an expired certificate; this only checks that certificate and key match. */
static bool has_matching_pair(struct ec *e, const struct ec_pem *p, const char *name)
{
    struct stw_cert_info info;
    struct stw_error err = {0};
    int64_t when = stw_wall_us(e->run->clock);
    if (stw_cert_info(p->cert, &info, &err) == 0 && info.not_after_us < when)
        when = info.not_after_us - 1000000;
    if (stw_pair_check(p->cert, p->key, when, &err) == 0)
        return true;
    ec_tls_set_state(&e->tls, EC_TLS_BAD, "Secret \"%s\": %.300s", name, err.text);
    return false;
}

static bool holds_names(struct ec *e, const struct ec_pem *p, const char *name)
{
    char host[STW_ETCD_URL_MAX], member[EC_NAME_MAX];
    stw_format(member, sizeof(member), "%.52s-bcdfghjklm", e->owner.name);
    ec_host(e, member, host);
    const char *const names[] = {host, NULL};
    if (stw_cert_covers(p->cert, names, NULL))
        return true;
    ec_tls_set_state(
        &e->tls, EC_TLS_SAN,
        "the certificate in Secret \"%s\" does not hold the name *.%s.%s.svc, which the members "
        "have",
        name, e->owner.name, e->owner.ns);
    return false;
}

static void take_end(struct ec_tls *t, const struct ec_pem *p)
{
    struct stw_cert_info info;
    struct stw_error err = {0};
    if (stw_cert_info(p->cert, &info, &err) != 0)
        return;
    int64_t end = info.not_after_us / 1000000;
    if (t->not_after == 0 || end < t->not_after)
        t->not_after = end;
}

/* False: e->tls has the reason.  The caller owns `ret` in any case. */
static bool look_at(struct ec *e, const char *name, const char *prefix, struct ec_pem *ret)
{
    struct stw_error why = {0};
    int rc = ec_secret_read(e, name, prefix, ret, &why);
    if (rc < 0) {
        e->tls.err = why;
        set_tls_failed(&e->tls);
        return false;
    }
    if (rc == 0) {
        ec_tls_set_state(&e->tls, EC_TLS_MISSING, "Secret \"%s\" does not exist", name);
        return false;
    }
    if (!ret->cert) {
        ec_tls_set_state(&e->tls, why.code == STW_ERR_NOT_FOUND ? EC_TLS_MISSING : EC_TLS_BAD,
                         "%.390s", why.text);
        return false;
    }
    take_end(&e->tls, ret);
    return has_matching_pair(e, ret, name);
}

static bool look_at_member(struct ec *e, const char *name, const char *prefix, bool *ret_common)
{
    struct ec_pem p = {0};
    struct stw_cert_info info;
    struct stw_error err = {0};
    bool good = look_at(e, name, prefix, &p) && holds_names(e, &p, name);
    *ret_common = p.common;
    if (good)
        ec_tls_trust(&e->tls, p.ca);
    if (good && stw_cert_info(p.cert, &info, &err) == 0)
        stw_format(e->tls.served, sizeof(e->tls.served), "%s", info.fingerprint);
    ec_pem_done(&p);
    return good;
}

static int replace_client(struct ec *e, struct ec_kept *kept, const struct ec_pem *p)
{
    struct stw_etcd_config config = {.op = e->run->op, .timeout_ms = TIMEOUT_MS};
    if (p)
        config.tls = (struct stw_etcd_tls){.ca = p->ca, .cert = p->cert, .key = p->key};
    if (ec_runtime_use(e->runtime, kept, &config, &e->tls.err) == 0)
        return 0;
    set_tls_failed(&e->tls);
    return -1;
}

static bool look_at_ours(struct ec *e, struct ec_kept *kept)
{
    struct ec_pem p = {0};
    bool good =
        look_at(e, e->tls.operator_secret, "etcd-client", &p) && replace_client(e, kept, &p) == 0;
    ec_pem_done(&p);
    return good;
}

static bool check_certificates(struct ec *e, struct ec_kept *kept)
{
    struct ec_tls *t = &e->tls;
    t->state = EC_TLS_READY;
    t->look_again = INT64_MAX; /* the watch of Secrets wakes us */
    if (t->own && ec_secrets_ensure(e, &t->err) != 0) {
        if (t->state != EC_TLS_LOST)
            set_tls_failed(t);
        return false;
    }
    if (t->peer && !look_at_member(e, t->peer_secret, "peer", &t->peer_common))
        return false;
    if (t->client)
        return look_at_member(e, t->server_secret, "server", &t->server_common) &&
               look_at_ours(e, kept);
    return replace_client(e, kept, NULL) == 0;
}

/* --- expiry of certificates */

static void tell_end(struct ec *e)
{
    struct ec_tls *t = &e->tls;
    char when[STW_TIME_LEN];
    int64_t now = stw_wall_us(e->run->clock) / 1000000;
    int64_t early =
        t->own ? STW_MIN(EXPIRING_DAYS, e->spec.tls.auto_.renew_before_days) - 1 : EXPIRING_DAYS;
    if (t->state != EC_TLS_READY)
        return;
    stw_time_format(t->not_after * 1000000, when);
    if (t->not_after <= now)
        ec_tls_set_state(t, EC_TLS_EXPIRED, "a certificate ended at %s", when);
    else if (t->not_after - now < early * stw_day_s())
        ec_tls_set_state(t, EC_TLS_EXPIRING, "a certificate ends at %s", when);
    else
        ec_tls_set_state(t, EC_TLS_READY, "all certificates are good until %s at least", when);
}

/* --- what is kept between runs */

static int use_plain_client(struct ec *e, struct ec_kept *kept)
{
    if (!kept->etcd && replace_client(e, kept, NULL) != 0)
        return -1;
    e->etcd = kept->etcd;
    return 0;
}

static bool is_kept_current(const struct ec *e, const struct ec_kept *kept, const char *versions)
{
    int64_t now = stw_wall_us(e->run->clock) / 1000000;
    return kept->etcd && stw_streq(kept->secret_versions, versions) && now < kept->tls.look_again;
}

static void save_checked_tls(struct ec *e, struct ec_kept *kept, const char *versions)
{
    int64_t now = stw_wall_us(e->run->clock) / 1000000;
    e->tls.changed_at = stw_streq(e->tls.served, kept->tls.served) ? kept->tls.changed_at : now;
    stw_format(kept->secret_versions, sizeof(kept->secret_versions), "%s", versions);
    kept->tls = e->tls;
}

/* While Secrets are broken, members are queried with the previous client, if there is one.  Without
 * an authority none is started: once no pod runs, another authority can be created. */
static int prepare_tls_client(struct ec *e, struct ec_kept *kept)
{
    char versions[sizeof(kept->secret_versions)];
    ec_secrets_versions(e, versions, sizeof(versions));
    if (is_kept_current(e, kept, versions)) {
        e->tls = kept->tls;
    } else if (check_certificates(e, kept)) {
        save_checked_tls(e, kept, versions);
    } else {
        stw_format(e->tls.trust_hash, sizeof(e->tls.trust_hash), "%s", kept->tls.trust_hash);
        e->tls.peer_common = kept->tls.peer_common;
        e->tls.server_common = kept->tls.server_common;
        e->etcd = kept->etcd;
        bool usable = kept->etcd && *kept->tls.trust_hash && e->tls.state != EC_TLS_LOST;
        return usable ? 0 : -1;
    }
    e->etcd = kept->etcd;
    tell_end(e);
    return 0;
}

int ec_tls_prepare(struct ec *e)
{
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    set_wanted(e);
    if (!kept) {
        (void)stw_fail_memory(&e->tls.err);
        set_tls_failed(&e->tls);
        return -1;
    }
    if (!e->tls.peer && !e->tls.client)
        return use_plain_client(e, kept);
    int rc = prepare_tls_client(e, kept);
    ec_runtime_report_end(e->runtime, e->run, kept, e->tls.not_after);
    return rc;
}

/* --- what members serve */

static bool is_proven(const struct ec *e, const struct ec_kept *kept, size_t i)
{
    for (size_t n = 0; n < EC_MEMBERS_MAX; n++)
        if (stw_streq(kept->proven[n].uid, e->details[i].pod.uid))
            return stw_streq(kept->proven[n].fingerprint, e->tls.served);
    return false;
}

static bool is_there(const struct ec *e, const char *uid)
{
    for (size_t i = 0; *uid && i < e->view.count; i++)
        if (stw_streq(uid, e->details[i].pod.uid))
            return true;
    return false;
}

/* The slot of this pod, else an unused one or that of a pod that is gone. */
static size_t place_for(const struct ec *e, const struct ec_kept *kept, const char *uid)
{
    size_t unused = EC_MEMBERS_MAX;
    for (size_t n = 0; n < EC_MEMBERS_MAX; n++) {
        if (stw_streq(kept->proven[n].uid, uid))
            return n;
        if (unused == EC_MEMBERS_MAX && !is_there(e, kept->proven[n].uid))
            unused = n;
    }
    return unused;
}

static void note_proof(const struct ec *e, struct ec_kept *kept, size_t i)
{
    const char *uid = e->details[i].pod.uid;
    size_t at = place_for(e, kept, uid);
    if (at == EC_MEMBERS_MAX)
        return;
    stw_format(kept->proven[at].uid, sizeof(kept->proven[at].uid), "%s", uid);
    stw_format(kept->proven[at].fingerprint, sizeof(kept->proven[at].fingerprint), "%s",
               e->tls.served);
}

static bool serves_it(const struct ec *e, size_t i)
{
    char host[STW_ETCD_URL_MAX], shown[65];
    ec_host(e, e->view.members[i].name, host);
    return ec_probe(e->details[i].pod.ip, e->tls.client ? EC_CLIENT_PORT : EC_PEER_PORT, host,
                    shown) == 0 &&
           strcasecmp(shown, e->tls.served) == 0;
}

void ec_tls_prove(struct ec *e)
{
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    int64_t now = stw_wall_us(e->run->clock) / 1000000;
    if (!kept || !*e->tls.served || e->tls.state == EC_TLS_NONE)
        return;
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (!m->listed || !m->answers || is_proven(e, kept, i))
            continue;
        if (serves_it(e, i)) {
            note_proof(e, kept, i);
            continue;
        }
        e->details[i].stale = now - e->tls.changed_at > STALE_S;
        if (e->tls.state == EC_TLS_READY)
            ec_tls_set_state(&e->tls, EC_TLS_OLD,
                             "member %s does not serve the newest certificate yet", m->name);
    }
}
