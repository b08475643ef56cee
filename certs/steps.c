/* SPDX-License-Identifier: Apache-2.0 */
#include "steps_priv.h"

#include "base/clock.h"
#include "base/util.h"
#include "inspect_priv.h"

#include <inttypes.h>
#include <stdio.h>

/* --- bundles */

struct bundle_entry {
    char *pem;
    int64_t not_before_us;
};
struct bundle {
    struct bundle_entry list[STW_BUNDLE_MAX_CERTS + 1];
    unsigned count;
};

static int compare_not_before(const void *a, const void *b)
{
    const struct bundle_entry *x = a, *y = b;
    if (x->not_before_us != y->not_before_us)
        return x->not_before_us < y->not_before_us ? -1 : 1;
    return strcmp(x->pem, y->pem);
}

/* Takes ownership of `pem`. */
static void bundle_push(struct bundle *b, char *pem, int64_t not_before_us)
{
    for (unsigned i = 0; i < b->count; i++) {
        if (stw_streq(b->list[i].pem, pem)) {
            free(pem);
            return;
        }
    }
    b->list[b->count++] = (struct bundle_entry){.pem = pem, .not_before_us = not_before_us};
    qsort(b->list, b->count, sizeof(b->list[0]), compare_not_before);
    if (b->count <= STW_BUNDLE_MAX_CERTS)
        return;
    free(b->list[0].pem);
    memmove(b->list, b->list + 1, --b->count * sizeof(b->list[0]));
}

static void bundle_add(struct bundle *b, X509 *cert, int64_t now_us)
{
    struct stw_cert_info info;
    if (!stw_x509_is_ca(cert) || stw_x509_check_times(cert, now_us, NULL) != 0 ||
        stw_x509_info(cert, &info, NULL) != 0)
        return;
    char *text = stw_ssl_cert_pem(cert);
    if (text)
        bundle_push(b, text, info.not_before_us);
}

static void bundle_read(struct bundle *b, const char *pem, int64_t now_us)
{
    stw_autocerts STACK_OF(X509) *certs = pem && *pem ? stw_ssl_certs("a bundle", pem, NULL) : NULL;
    for (int i = 0; certs && i < sk_X509_num(certs); i++)
        bundle_add(b, sk_X509_value(certs, i), now_us);
}

static void bundle_write(struct bundle *b, struct stw_buf *out)
{
    stw_buf_clear(out);
    for (unsigned i = 0; i < b->count; i++) {
        stw_buf_adds(out, b->list[i].pem);
        free(b->list[i].pem);
    }
    b->count = 0;
}

void stw_bundle_add(struct stw_buf *bundle, const char *pem, int64_t now_us)
{
    struct bundle b = {0};
    bundle_read(&b, bundle->len ? stw_buf_str(bundle) : NULL, now_us);
    bundle_read(&b, pem, now_us);
    bundle_write(&b, bundle);
}

/* --- facts */

static struct stw_rotation_ca examine_ca(X509 *cert, const char *key, int64_t now_us)
{
    struct stw_rotation_ca ca = {0};
    struct stw_cert_info info;
    if (!cert || !stw_x509_is_ca(cert) || stw_x509_check_times(cert, now_us, NULL) != 0 ||
        stw_x509_info(cert, &info, NULL) != 0)
        return ca;
    ca.cert = true;
    ca.key = key && stw_x509_check_key(cert, key, NULL) == 0;
    ca.not_before_us = info.not_before_us;
    ca.not_after_us = info.not_after_us;
    return ca;
}

static void examine_leaf(const struct stw_content *c, const struct stw_rotation_config *config,
                         X509 *ca, int64_t now_us, struct stw_rotation_facts *f)
{
    const char *pem = c->slot[STW_SLOT_TLS_CRT], *key = c->slot[STW_SLOT_TLS_KEY];
    stw_autocerts STACK_OF(X509) *chain = pem && key ? stw_ssl_certs("tls.crt", pem, NULL) : NULL;
    X509 *cert = chain ? sk_X509_value(chain, 0) : NULL;
    struct stw_cert_info info;
    if (!cert || stw_x509_check_key(cert, key, NULL) != 0 ||
        stw_x509_check_times(cert, now_us, NULL) != 0 || stw_x509_info(cert, &info, NULL) != 0)
        return;
    f->leaf.pair = true;
    f->leaf.not_before_us = info.not_before_us;
    f->leaf.not_after_us = info.not_after_us;
    f->leaf.covers = stw_x509_covers(cert, config->dns_names, config->ip_addresses);
    f->leaf.by_ca = f->ca.cert && stw_x509_signed_by(cert, ca);
}

static void examine_until(const char *until, struct stw_rotation_facts *f)
{
    f->rescued = !f->ca.cert && until && stw_streq(until, STW_UNTIL_OPEN);
    if (!until || stw_time_parse(until, &f->old_until_us) != 0)
        f->old_until_us = 0;
}

static X509 *slot_cert(const struct stw_content *c, enum stw_slot slot)
{
    return c->slot[slot] ? stw_ssl_cert(stw_slot_names[slot], c->slot[slot], NULL) : NULL;
}

void stw_rotation_examine(const struct stw_content *c, const struct stw_rotation_config *config,
                          int64_t now_us, struct stw_rotation_facts *facts, struct stw_buf *bundle)
{
    struct stw_rotation_facts f = {0};
    struct bundle b = {0};
    stw_autox509 X509 *ca = slot_cert(c, STW_SLOT_CA_CRT);
    stw_autox509 X509 *next = slot_cert(c, STW_SLOT_NEXT_CRT);
    f.ca = examine_ca(ca, c->slot[STW_SLOT_CA_KEY], now_us);
    f.next = examine_ca(next, c->slot[STW_SLOT_NEXT_KEY], now_us);
    examine_leaf(c, config, ca, now_us, &f);
    examine_until(c->slot[STW_SLOT_OLD_UNTIL], &f);
    bundle_read(&b, c->slot[STW_SLOT_OLD_CRT], now_us);
    f.old = b.count > 0;
    if (f.ca.cert)
        bundle_add(&b, ca, now_us);
    if (stw_rotation_signs(&f.next))
        bundle_add(&b, next, now_us);
    bundle_write(&b, bundle);
    *facts = f;
}

/* --- changes */

static int set_copy(struct stw_content *c, enum stw_slot slot, const char *text,
                    struct stw_error *err)
{
    char *copy = strdup(text);
    if (!copy)
        return stw_fail_memory(err);
    stw_content_set(c, slot, copy);
    return 0;
}

/* ca-old becomes its own certificates and `more`; empty when none of them is usable. */
static int keep_old(struct stw_content *c, const char *more, int64_t now_us, struct stw_error *err)
{
    struct stw_buf stw_autobuf old = STW_BUF_INIT(STW_BUNDLE_MAX_BYTES);
    stw_bundle_add(&old, c->slot[STW_SLOT_OLD_CRT], now_us);
    stw_bundle_add(&old, more, now_us);
    if (old.failed)
        return stw_fail(err, STW_ERR_TOO_LARGE, "the former CAs do not fit into the Secret");
    stw_content_set(c, STW_SLOT_OLD_CRT, NULL);
    return old.len > 0 ? set_copy(c, STW_SLOT_OLD_CRT, stw_buf_str(&old), err) : 0;
}

static int set_old_until(struct stw_content *c, const struct stw_rotation_config *config,
                         int64_t now_us, struct stw_error *err)
{
    char when[STW_TIME_LEN];
    if (!c->slot[STW_SLOT_OLD_CRT]) {
        stw_content_set(c, STW_SLOT_OLD_UNTIL, NULL);
        return 0;
    }
    stw_time_format(now_us + config->times.overlap_us, when);
    return set_copy(c, STW_SLOT_OLD_UNTIL, when, err);
}

/* The time in the name lets people distinguish the CAs; verifiers use the key identifiers. */
static int stage_next_ca(struct stw_content *c, const struct stw_rotation_config *config,
                         const char *found, int64_t now_us, struct stw_error *err)
{
    struct stw_pem_pair ca = {0};
    char name[STW_OPERATOR_NAME_MAX + 25];
    stw_format(name, sizeof(name), "%s-ca@%" PRId64, config->op->name, now_us / 1000000);
    if (found && (keep_old(c, found, now_us, err) != 0 ||
                  set_copy(c, STW_SLOT_OLD_UNTIL, STW_UNTIL_OPEN, err) != 0))
        return -1;
    if (stw_issue_ca(name, now_us, config->ca_days, &ca, err) != 0)
        return -1;
    stw_content_set(c, STW_SLOT_NEXT_CRT, stw_take(ca.cert));
    stw_content_set(c, STW_SLOT_NEXT_KEY, stw_take(ca.key));
    return 0;
}

static int issue_serving_leaf(struct stw_content *c, const struct stw_rotation_config *config,
                              int64_t now_us, struct stw_error *err)
{
    const struct stw_pem_pair ca = {.cert = c->slot[STW_SLOT_CA_CRT],
                                    .key = c->slot[STW_SLOT_CA_KEY]};
    struct stw_pem_pair leaf = {0};
    if (stw_issue_leaf(&ca, config->dns_names, config->ip_addresses, now_us, config->leaf_days,
                       &leaf, err) != 0)
        return -1;
    stw_content_set(c, STW_SLOT_TLS_CRT, stw_take(leaf.cert));
    stw_content_set(c, STW_SLOT_TLS_KEY, stw_take(leaf.key));
    return 0;
}

/* The former CA's key is dropped: it signs nothing any more. */
static int promote_next_ca(struct stw_content *c, const struct stw_rotation_config *config,
                           int64_t now_us, struct stw_error *err)
{
    if (keep_old(c, c->slot[STW_SLOT_CA_CRT], now_us, err) != 0)
        return -1;
    stw_content_move(c, STW_SLOT_NEXT_CRT, STW_SLOT_CA_CRT);
    stw_content_move(c, STW_SLOT_NEXT_KEY, STW_SLOT_CA_KEY);
    if (set_old_until(c, config, now_us, err) != 0)
        return -1;
    return issue_serving_leaf(c, config, now_us, err);
}

int stw_rotation_change(struct stw_content *c, enum stw_rotation_action action,
                        const struct stw_rotation_config *config, const char *found, int64_t now_us,
                        struct stw_error *err)
{
    switch (action) {
    case STW_ROTATION_STAGE:
        return stage_next_ca(c, config, found, now_us, err);
    case STW_ROTATION_ISSUE:
        return issue_serving_leaf(c, config, now_us, err);
    case STW_ROTATION_PROMOTE:
        return promote_next_ca(c, config, now_us, err);
    case STW_ROTATION_STAMP:
        return set_old_until(c, config, now_us, err);
    case STW_ROTATION_RETIRE:
        stw_content_set(c, STW_SLOT_OLD_CRT, NULL);
        stw_content_set(c, STW_SLOT_OLD_UNTIL, NULL);
        return 0;
    case STW_ROTATION_NONE:
    case STW_ROTATION_WRITE:
    case STW_ROTATION_ACTIONS:
        break;
    }
    return stw_fail(err, STW_ERR_INTERNAL, "action %d changes no Secret", (int)action);
}
