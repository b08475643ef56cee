/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an EtcdCluster's own certificate authority, with a fake clock. */
#include "base/util.h"
#include "certs/issue.h"
#include "kinds/etcdcluster/tls/authority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define DAY_US (INT64_C(86400) * 1000000)
#define YEARS(n) ((n)*365 * DAY_US)
#define BEGAN (INT64_C(1704067200) * 1000000)

struct scene {
    struct ec_authority a;
    int64_t now_us;
    bool trusted;
    unsigned asked;
};

static bool trusted(void *ctx, const char *bundle)
{
    struct scene *s = ctx;
    s->asked++;
    assert_non_null(strstr(bundle, s->a.now.cert ? s->a.now.cert : s->a.previous));
    assert_non_null(strstr(bundle, s->a.next.cert));
    return s->trusted;
}

static void advance(struct scene *s, int want)
{
    struct stw_error err = {0};
    int rc = ec_authority_advance(&s->a, "etcd db", s->now_us, trusted, s, &err);
    if (rc != want)
        fail_msg("%d, not %d: %s", rc, want, err.text);
}

static bool in_bundle(const struct scene *s, const char *cert)
{
    return strstr(stw_buf_str(&s->a.bundle), cert) != NULL;
}

/* --- from the first authority to the second */

static void test_authority_is_followed_by_the_next_one(void **state)
{
    struct scene s = {.now_us = BEGAN};
    (void)state;
    advance(&s, 1);
    assert_true(in_bundle(&s, s.a.now.cert));
    stw_autofree char *first = strdup(s.a.now.cert), *both = NULL;
    advance(&s, 0);
    assert_int_equal(ec_authority_look(&s.a, s.now_us), (BEGAN + YEARS(9)) / 1000000);

    s.now_us = BEGAN + YEARS(9) - DAY_US;
    advance(&s, 0);
    s.now_us = BEGAN + YEARS(9) + DAY_US; /* less than a year is left */
    advance(&s, 1);
    assert_string_equal(s.a.now.cert, first);
    assert_non_null(s.a.next.key);
    assert_true(in_bundle(&s, first) && in_bundle(&s, s.a.next.cert));
    assert_int_equal(ec_authority_look(&s.a, s.now_us), s.now_us / 1000000 + 30);
    assert_int_equal(s.asked, 0);

    advance(&s, 0); /* a member still runs without it: the old one signs */
    assert_int_equal(s.asked, 1);
    assert_string_equal(s.a.now.cert, first);
    both = strdup(stw_buf_str(&s.a.bundle));
    s.trusted = true;
    advance(&s, 1);
    assert_string_not_equal(s.a.now.cert, first);
    assert_string_equal(s.a.previous, first);
    assert_null(s.a.next.cert);
    assert_string_equal(stw_buf_str(&s.a.bundle), both); /* no member has to restart for that */

    advance(&s, 0);
    assert_int_equal(ec_authority_look(&s.a, s.now_us), (BEGAN + YEARS(10)) / 1000000);
    s.now_us = BEGAN + YEARS(10) - DAY_US;
    advance(&s, 0);
    assert_true(in_bundle(&s, first));
    s.now_us = BEGAN + YEARS(10) + DAY_US; /* it has expired */
    advance(&s, 1);
    assert_null(s.a.previous);
    assert_false(in_bundle(&s, first));
    advance(&s, 0);
    ec_authority_done(&s.a);
}

/* --- after a long time without a run */

static void test_expired_authority_is_replaced(void **state)
{
    struct scene s = {.now_us = BEGAN};
    (void)state;
    advance(&s, 1);
    stw_autofree char *first = strdup(s.a.now.cert);
    s.now_us = BEGAN + YEARS(10) + DAY_US;
    advance(&s, 1);
    assert_string_not_equal(s.a.now.cert, first);
    assert_false(in_bundle(&s, first));
    advance(&s, 0);
    ec_authority_done(&s.a);
}

/* A successor that members already trust is better than a third one, whether all trust it or
 * not. */
static void test_expired_authority_is_followed_by_its_successor(void **state)
{
    struct scene s = {.now_us = BEGAN};
    (void)state;
    advance(&s, 1);
    s.now_us = BEGAN + YEARS(9) + DAY_US;
    advance(&s, 1);
    stw_autofree char *next = strdup(s.a.next.cert);
    s.now_us = BEGAN + YEARS(10) + DAY_US;
    advance(&s, 1);
    assert_string_equal(s.a.now.cert, next);
    assert_null(s.a.next.cert);
    assert_int_equal(s.asked, 0);
    ec_authority_done(&s.a);
}

/* --- a damaged Secret */

static void set(char **text, const char *to)
{
    free(*text);
    *text = to ? strdup(to) : NULL;
}

static void test_damaged_unused_authority_is_replaced(void **state)
{
    static const struct {
        const char *cert, *key; /* NULL: removed; "": unchanged */
    } cases[] = {{NULL, ""}, {"", NULL}, {"no certificate", ""}, {"", "no key"}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s = {.now_us = BEGAN};
        advance(&s, 1);
        if (!cases[i].cert || *cases[i].cert)
            set(&s.a.now.cert, cases[i].cert);
        if (!cases[i].key || *cases[i].key)
            set(&s.a.now.key, cases[i].key);
        advance(&s, 1);
        advance(&s, 0);
        set(&s.a.previous, "no certificate"); /* not kept */
        advance(&s, 1);
        assert_null(s.a.previous);
        ec_authority_done(&s.a);
    }
}

/* A valid certificate with its key, but not an authority. */
static void test_certificate_that_is_no_authority_is_replaced(void **state)
{
    static const char *const name[] = {"localhost", NULL};
    struct scene s = {.now_us = BEGAN};
    struct stw_pem_pair leaf = {0};
    struct stw_error err = {0};
    (void)state;
    advance(&s, 1);
    assert_int_equal(stw_issue_both(&s.a.now, name, NULL, BEGAN, 90, &leaf, &err), 0);
    set(&s.a.now.cert, leaf.cert);
    set(&s.a.now.key, leaf.key);
    advance(&s, 1);
    assert_string_not_equal(s.a.now.cert, leaf.cert);
    advance(&s, 0);
    stw_pem_pair_done(&leaf);
    ec_authority_done(&s.a);
}

static void test_damaged_successor_is_replaced(void **state)
{
    struct scene s = {.now_us = BEGAN, .trusted = true};
    (void)state;
    advance(&s, 1);
    s.now_us = BEGAN + YEARS(9) + DAY_US;
    advance(&s, 1);
    set(&s.a.next.key, "no key");
    advance(&s, 1); /* another one */
    assert_int_equal(s.asked, 0);
    advance(&s, 1);
    assert_int_equal(s.asked, 1);
    ec_authority_done(&s.a);
}

/* --- lost, while members run */

static void begin_in_use(struct scene *s, struct stw_pem_pair *leaf, struct ec_pem *in_use)
{
    static const char *const name[] = {"localhost", NULL};
    struct stw_error err = {0};
    *s = (struct scene){.now_us = BEGAN};
    *leaf = (struct stw_pem_pair){0};
    advance(s, 1);
    assert_int_equal(stw_issue_both(&s->a.now, name, NULL, BEGAN, 90, leaf, &err), 0);
    *in_use = (struct ec_pem){
        .cert = leaf->cert, .key = leaf->key, .ca = strdup(stw_buf_str(&s->a.bundle))};
    s->a.in_use = in_use;
    assert_false(ec_authority_lost(&s->a, BEGAN));
    advance(s, 0);
}

static void end_in_use(struct scene *s, struct stw_pem_pair *leaf, struct ec_pem *in_use)
{
    free(in_use->ca);
    stw_pem_pair_done(leaf);
    ec_authority_done(&s->a);
}

/* Another one signs only when all members trust it. */
static void test_lost_authority_in_use_is_replaced_when_all_trust_the_new_one(void **state)
{
    static const struct {
        const char *cert, *key; /* NULL: removed; "": unchanged */
    } cases[] = {{NULL, NULL}, {NULL, ""}, {"", NULL}, {"no certificate", ""}, {"", "no key"}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        struct stw_pem_pair leaf;
        struct ec_pem in_use;
        begin_in_use(&s, &leaf, &in_use);
        if (!cases[i].cert || *cases[i].cert)
            set(&s.a.now.cert, cases[i].cert);
        if (!cases[i].key || *cases[i].key)
            set(&s.a.now.key, cases[i].key);
        assert_true(ec_authority_lost(&s.a, BEGAN));
        advance(&s, 1);
        assert_null(s.a.now.cert);
        assert_null(s.a.now.key);
        assert_string_equal(s.a.previous, in_use.ca);
        assert_true(in_bundle(&s, in_use.ca) && in_bundle(&s, s.a.next.cert));
        assert_int_equal(ec_authority_look(&s.a, s.now_us), s.now_us / 1000000 + 30);
        stw_autofree char *both = strdup(stw_buf_str(&s.a.bundle));
        stw_autofree char *next = strdup(s.a.next.cert);
        set(&in_use.ca, both); /* their Secrets are written with it */
        assert_int_equal(s.asked, 0);
        advance(&s, 0);
        assert_int_equal(s.asked, 1);
        s.trusted = true;
        advance(&s, 1);
        assert_string_equal(s.a.now.cert, next);
        assert_null(s.a.next.cert);
        assert_string_equal(stw_buf_str(&s.a.bundle), both); /* no member has to restart again */
        assert_false(ec_authority_lost(&s.a, BEGAN));
        advance(&s, 0);
        end_in_use(&s, &leaf, &in_use);
    }
}

/* A successor is kept, but the lost one is still trusted, and none older instead. */
static void test_lost_authority_with_a_successor_stays_trusted(void **state)
{
    struct scene s;
    struct stw_pem_pair leaf, older = {0};
    struct ec_pem in_use;
    struct stw_error err = {0};
    (void)state;
    begin_in_use(&s, &leaf, &in_use);
    assert_int_equal(stw_issue_ca("older", BEGAN, 3650, &older, &err), 0);
    assert_int_equal(stw_issue_ca("next", BEGAN, 3650, &s.a.next, &err), 0);
    set(&s.a.previous, older.cert);
    set(&s.a.now.cert, NULL);
    set(&s.a.now.key, NULL);
    stw_autofree char *next = strdup(s.a.next.cert);
    advance(&s, 1);
    assert_string_equal(s.a.next.cert, next);
    assert_string_equal(s.a.previous, in_use.ca);
    advance(&s, 0);
    assert_int_equal(s.asked, 1);
    s.a.in_use = NULL; /* all their pods have been deleted */
    advance(&s, 1);
    assert_string_equal(s.a.now.cert, next);
    stw_pem_pair_done(&older);
    end_in_use(&s, &leaf, &in_use);
}

/* Its certificates are of no use any more: there is nothing to wait for. */
static void test_expired_authority_in_use_is_replaced_at_once(void **state)
{
    struct scene s;
    struct stw_pem_pair leaf;
    struct ec_pem in_use;
    (void)state;
    begin_in_use(&s, &leaf, &in_use);
    s.now_us = BEGAN + YEARS(10) + DAY_US;
    assert_false(ec_authority_lost(&s.a, s.now_us));
    advance(&s, 1);
    assert_non_null(s.a.now.cert);
    assert_null(s.a.next.cert);
    end_in_use(&s, &leaf, &in_use);
}

/* --- leaves */

static const char *const names[] = {"*.db.shop.svc", NULL};

static void test_certificate_is_good_only_for_its_names_time_and_authority(void **state)
{
    static const char *const others[] = {"*.other.shop.svc", NULL};
    struct stw_error err = {0};
    struct stw_pem_pair ca = {0}, other = {0}, leaf = {0};
    (void)state;
    assert_int_equal(stw_issue_ca("a", BEGAN, 3650, &ca, &err), 0);
    assert_int_equal(stw_issue_ca("b", BEGAN, 3650, &other, &err), 0);
    assert_int_equal(stw_issue_both(&ca, names, NULL, BEGAN, 90, &leaf, &err), 0);
    const struct ec_pem whole = {.cert = leaf.cert, .key = leaf.key, .ca = ca.cert};
    const struct {
        struct ec_pem p;
        const char *ca, *const *names;
        int days;
        bool good;
    } cases[] = {
        {whole, ca.cert, names, 0, true},
        {whole, ca.cert, names, 59, true},
        {whole, ca.cert, names, 61, false}, /* 30 days before its end */
        {whole, ca.cert, names, 91, false},
        {whole, other.cert, names, 0, false}, /* signed by another one */
        {whole, ca.cert, others, 0, false},
        {{.cert = leaf.cert, .key = ca.key, .ca = ca.cert}, ca.cert, names, 0, false},
        {{.cert = leaf.cert, .key = leaf.key}, ca.cert, names, 0, false},
        {{.key = leaf.key, .ca = ca.cert}, ca.cert, names, 0, false},
    };
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        if (ec_leaf_is_good(&cases[i].p, cases[i].ca, cases[i].names, INT64_C(30) * 86400,
                            BEGAN + cases[i].days * DAY_US) != cases[i].good)
            fail_msg("case %zu", i);
    stw_pem_pair_done(&ca);
    stw_pem_pair_done(&other);
    stw_pem_pair_done(&leaf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_authority_is_followed_by_the_next_one),
        cmocka_unit_test(test_expired_authority_is_replaced),
        cmocka_unit_test(test_expired_authority_is_followed_by_its_successor),
        cmocka_unit_test(test_damaged_unused_authority_is_replaced),
        cmocka_unit_test(test_certificate_that_is_no_authority_is_replaced),
        cmocka_unit_test(test_damaged_successor_is_replaced),
        cmocka_unit_test(test_lost_authority_in_use_is_replaced_when_all_trust_the_new_one),
        cmocka_unit_test(test_lost_authority_with_a_successor_stays_trusted),
        cmocka_unit_test(test_expired_authority_in_use_is_replaced_at_once),
        cmocka_unit_test(test_certificate_is_good_only_for_its_names_time_and_authority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
