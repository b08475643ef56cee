/* SPDX-License-Identifier: Apache-2.0
 *
 * The life cycle of an EtcdCluster's certificate authority, and when its certificates are renewed.
 * No I/O; the time is passed in.
 *
 * A new authority is created before the old one expires.  `now` signs.  `next` is trusted already,
 * and signs once every member runs with it in its bundle.  `previous` is trusted until it expires.
 *
 * If `now` is lost while members run, `previous` is what they trust, and there is no `now` until all
 * of them trust `next`.  With a certificate of `next` they could not reach each other before.
 */
#include "kinds/etcdcluster/tls/authority.h"

#include "base/process/fault.h"
#include "base/util.h"

#define CA_DAYS 3650
#define CA_LEFT_DAYS 365 /* create the next one when fewer are left */
#define NEXT_S 30
#define BUNDLE_MAX (256u << 10)

void ec_pem_done(struct ec_pem *p)
{
    stw_wipe_free(p->key);
    stw_wipe_free(p->cert);
    stw_wipe_free(p->ca);
    *p = (struct ec_pem){0};
}

void ec_authority_done(struct ec_authority *a)
{
    stw_pem_pair_done(&a->now);
    stw_pem_pair_done(&a->next);
    free(stw_take(a->previous));
    stw_buf_done(&a->bundle);
}

int64_t ec_cert_end(const char *cert)
{
    struct stw_cert_info info;
    struct stw_error err = {0};
    return cert && stw_cert_info(cert, &info, &err) == 0 ? info.not_after_us / 1000000 : INT64_MAX;
}

static bool is_good(const struct stw_pem_pair *ca, int64_t now_us)
{
    struct stw_error why = {0};
    return ca->cert && ca->key && stw_ca_check(ca->cert, now_us, &why) == 0 &&
           stw_pair_check(ca->cert, ca->key, now_us, &why) == 0;
}

/* A certificate that cannot be parsed counts as expired. */
static bool has_ended(const char *cert, int64_t now_us)
{
    struct stw_cert_info info;
    struct stw_error err = {0};
    return stw_cert_info(cert, &info, &err) != 0 || info.not_after_us <= now_us;
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Sorted, so that the bundle does not depend on which authority signs: if only that changes, no
 * member has to restart. */
static void set_bundle(struct ec_authority *a)
{
    const char *all[] = {a->now.cert ? a->now.cert : "", a->next.cert ? a->next.cert : "",
                         a->previous ? a->previous : ""};
    qsort(all, STW_COUNT(all), sizeof(all[0]), by_text);
    stw_buf_done(&a->bundle);
    a->bundle = STW_BUF_INIT(BUNDLE_MAX);
    for (size_t i = 0; i < STW_COUNT(all); i++)
        stw_buf_adds(&a->bundle, all[i]);
}

/* --- steps */

static int issue_authority(const char *name, int64_t now_us, struct stw_pem_pair *ret,
                           struct stw_error *err)
{
    stw_pem_pair_done(ret);
    *ret = (struct stw_pem_pair){0};
    return stw_issue_ca(name, now_us, CA_DAYS, ret, err) == 0 ? 1 : -1;
}

static void promote_next_authority(struct ec_authority *a)
{
    stw_pem_pair_done(&a->now);
    a->now = a->next;
    a->next = (struct stw_pem_pair){0};
}

bool ec_authority_lost(const struct ec_authority *a, int64_t now_us)
{
    return !is_good(&a->now, now_us) && ec_cert_end(a->now.cert) > now_us / 1000000;
}

/* Keeps in `previous` what the members trust.  1: it did not, -1. */
static int keep_trusted(struct ec_authority *a, struct stw_error *err)
{
    const struct ec_pem *p = a->in_use;
    if (a->previous && stw_cert_signed_by(p->cert, a->previous))
        return 0;
    free(a->previous);
    a->previous = strdup(p->ca);
    return a->previous ? 1 : stw_fail_memory(err);
}

static int replace_lost_authority(struct ec_authority *a, const char *name, int64_t now_us,
                                  ec_trusted_fn *trusted, void *ctx, struct stw_error *err)
{
    int changed = keep_trusted(a, err);
    if (changed < 0)
        return -1;
    if (a->now.cert || a->now.key)
        changed = 1;
    stw_pem_pair_done(&a->now);
    a->now = (struct stw_pem_pair){0};
    if (!is_good(&a->next, now_us))
        return issue_authority(name, now_us, &a->next, err);
    if (changed)
        return 1;
    set_bundle(a);
    if (!trusted(ctx, stw_buf_str(&a->bundle)))
        return 0;
    promote_next_authority(a);
    return 1;
}

static int run_authority_step(struct ec_authority *a, const char *name, int64_t now_us,
                              ec_trusted_fn *trusted, void *ctx, struct stw_error *err)
{
    bool next = is_good(&a->next, now_us);
    if (a->in_use && ec_authority_lost(a, now_us))
        return replace_lost_authority(a, name, now_us, trusted, ctx, err);
    if (!is_good(&a->now, now_us)) {
        if (!next)
            return issue_authority(name, now_us, &a->now, err);
        promote_next_authority(a); /* too late to wait until all members trust it */
        return 1;
    }
    if (next) {
        set_bundle(a);
        if (!trusted(ctx, stw_buf_str(&a->bundle)))
            return 0;
        free(a->previous);
        a->previous = stw_take(a->now.cert);
        promote_next_authority(a);
        return 1;
    }
    if (ec_cert_end(a->now.cert) - now_us / 1000000 < CA_LEFT_DAYS * stw_day_s())
        return issue_authority(name, now_us, &a->next, err);
    if (!a->previous || !has_ended(a->previous, now_us))
        return 0;
    free(stw_take(a->previous));
    return 1;
}

int ec_authority_advance(struct ec_authority *a, const char *name, int64_t now_us,
                         ec_trusted_fn *trusted, void *ctx, struct stw_error *err)
{
    int rc = run_authority_step(a, name, now_us, trusted, ctx, err);
    if (rc >= 0)
        set_bundle(a);
    return rc;
}

/* During a change of authority, poll: the members have to trust the next one first. */
int64_t ec_authority_look(const struct ec_authority *a, int64_t now_us)
{
    int64_t end = ec_cert_end(a->now.cert), previous = ec_cert_end(a->previous);
    if (a->next.cert)
        return now_us / 1000000 + NEXT_S;
    return STW_MIN(end == INT64_MAX ? end : end - CA_LEFT_DAYS * stw_day_s(), previous);
}

/* --- leaves */

bool ec_leaf_is_good(const struct ec_pem *p, const char *ca, const char *const *names,
                     int64_t early_s, int64_t now_us)
{
    struct stw_error why = {0};
    return p->cert && p->key && p->ca && stw_pair_check(p->cert, p->key, now_us, &why) == 0 &&
           stw_cert_signed_by(p->cert, ca) && stw_cert_covers(p->cert, names, NULL) &&
           ec_cert_end(p->cert) - now_us / 1000000 >= early_s;
}
