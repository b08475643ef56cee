/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/reservation.h"

#include "base/buf.h"
#include "base/process/memory_budget.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SHARE ((size_t)16 << 20)
#define MIB(n) ((size_t)(n) << 20)

struct fixture {
    struct stw_reservations *r;
    struct stw_buf ready; /* ids, in the order in which they were told */
};

static void note_ready(void *ctx, const char *id)
{
    struct fixture *f = ctx;
    stw_buf_addf(&f->ready, "%s ", id);
}

static int begin(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    stw_memory_budget_set(0);
    stw_memory_budget_set_share(STW_SHARE_RECONCILES, SHARE);
    f->ready = STW_BUF_INIT(4096);
    f->r = stw_reservations_create(note_ready, f);
    *state = f;
    return f->r ? 0 : -1;
}

static int end(void **state)
{
    struct fixture *f = *state;
    stw_reservations_destroy(f->r);
    assert_int_equal(stw_share_facts(STW_SHARE_RECONCILES).used, 0);
    stw_buf_done(&f->ready);
    free(f);
    return 0;
}

static void assert_ready(struct fixture *f, const char *want)
{
    assert_string_equal(stw_buf_str(&f->ready), want);
    stw_buf_clear(&f->ready);
}

/* PREFIX0, PREFIX1 and so on. */
static const char *number(char id[32], const char *prefix, int i)
{
    stw_format(id, 32, "%s%d", prefix, i);
    return id;
}

static void take_many(struct fixture *f, const char *prefix, int count)
{
    char id[32];
    for (int i = 0; i < count; i++)
        (void)stw_reservations_take(f->r, number(id, prefix, i), MIB(9));
}

static void test_reservations_that_do_not_fit_wait_in_order(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stw_reservations_take(f->r, "a", MIB(10)), STW_RESERVED);
    assert_int_equal(stw_reservations_take(f->r, "b", MIB(10)), STW_RESERVE_WAITS);
    assert_int_equal(stw_reservations_take(f->r, "c", MIB(4)), STW_RESERVE_WAITS);  /* after b */
    assert_int_equal(stw_reservations_take(f->r, "b", MIB(10)), STW_RESERVE_WAITS); /* once */
    assert_int_equal(stw_reservations_waiting(f->r), 2);
    assert_ready(f, "");
    stw_reservations_end(f->r, "a");
    assert_ready(f, "b c ");
    assert_int_equal(stw_reservations_take(f->r, "b", MIB(10)), STW_RESERVED);
    assert_int_equal(stw_share_facts(STW_SHARE_RECONCILES).used, MIB(14));
    stw_reservations_end(f->r, "c"); /* the object was deleted: its run needed nothing */
    stw_reservations_end(f->r, "b");
    stw_reservations_end(f->r, "b");
}

static void test_reservation_above_the_share_fails_at_once(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stw_reservations_take(f->r, "a", SHARE + 1), STW_RESERVE_TOO_LARGE);
    assert_int_equal(stw_reservations_take(f->r, "b", SHARE), STW_RESERVED);
    stw_reservations_end(f->r, "b");
}

static void test_growing_reservation_waits_again(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stw_reservations_take(f->r, "a", MIB(8)), STW_RESERVED);
    assert_int_equal(stw_reservations_take(f->r, "b", MIB(10)), STW_RESERVE_WAITS);
    assert_int_equal(stw_reservations_take(f->r, "a", MIB(12)), STW_RESERVE_WAITS);
    assert_ready(f, "b ");
    stw_reservations_end(f->r, "a"); /* its run has ended: it still waits */
    stw_reservations_end(f->r, "b");
    assert_ready(f, "a ");
    stw_reservations_end(f->r, "a");
}

static void test_every_reservation_gets_its_turn(void **state)
{
    struct fixture *f = *state;
    char id[32];
    take_many(f, "", 138);
    for (int i = 0; i < 138; i++) {
        assert_int_equal(stw_reservations_take(f->r, number(id, "", i), MIB(9)), STW_RESERVED);
        assert_true(stw_share_facts(STW_SHARE_RECONCILES).used <= SHARE);
        stw_reservations_end(f->r, id);
    }
    assert_int_equal(stw_reservations_waiting(f->r), 0);
}

/* Its server is slow, and its users can make it slower. */
static void test_slow_namespace_leaves_a_quarter(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stw_reservations_take(f->r, "DatabaseUser slow/a", MIB(12)), STW_RESERVED);
    assert_int_equal(stw_reservations_take(f->r, "DatabaseUser slow/b", MIB(3)), STW_RESERVE_WAITS);
    assert_int_equal(stw_reservations_take(f->r, "DatabaseUser slow/c", MIB(12)),
                     STW_RESERVE_WAITS);
    assert_int_equal(stw_reservations_take(f->r, "MyWeb big/a", MIB(9)), STW_RESERVE_WAITS);
    for (int i = 0; i < 20; i++) { /* these go on, one after the other */
        assert_int_equal(stw_reservations_take(f->r, "MyWeb other/a", MIB(3)), STW_RESERVED);
        assert_int_equal(stw_reservations_take(f->r, "App third/a", MIB(2)), STW_RESERVE_WAITS);
        assert_ready(f, "");
        stw_reservations_end(f->r, "MyWeb other/a");
        assert_ready(f, "App third/a ");
        stw_reservations_end(f->r, "App third/a");
        assert_ready(f, "");
    }
    /* ... and hold up none that is larger when it is its turn. */
    assert_int_equal(stw_reservations_take(f->r, "MyWeb other/a", MIB(3)), STW_RESERVED);
    stw_reservations_end(f->r, "DatabaseUser slow/a");
    assert_ready(f, "MyWeb big/a DatabaseUser slow/b ");
    stw_reservations_end(f->r, "MyWeb other/a");
    stw_reservations_end(f->r, "DatabaseUser slow/b");
    assert_ready(f, "");
    stw_reservations_end(f->r, "MyWeb big/a");
    assert_ready(f, "DatabaseUser slow/c ");
    stw_reservations_end(f->r, "DatabaseUser slow/c");
}

/* Nothing overtakes one that needs more than three quarters: it would wait for ever. */
static void test_largest_reservation_is_not_overtaken(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stw_reservations_take(f->r, "MyWeb a/a", MIB(2)), STW_RESERVED);
    assert_int_equal(stw_reservations_take(f->r, "App large/a", MIB(15)), STW_RESERVE_WAITS);
    assert_int_equal(stw_reservations_take(f->r, "MyWeb b/a", MIB(1)), STW_RESERVE_WAITS);
    stw_reservations_end(f->r, "MyWeb a/a");
    assert_ready(f, "App large/a MyWeb b/a ");
    stw_reservations_end(f->r, "App large/a");
    stw_reservations_end(f->r, "MyWeb b/a");
}

/* One has very many; each of the others has a turn after each of its turns. */
static void test_reservations_alternate_between_namespaces(void **state)
{
    struct fixture *f = *state;
    char id[32];
    take_many(f, "MyWeb many/", 100);
    assert_int_equal(stw_reservations_take(f->r, "MyWeb few/a", MIB(9)), STW_RESERVE_WAITS);
    assert_int_equal(stw_reservations_take(f->r, "App few/b", MIB(9)), STW_RESERVE_WAITS);
    stw_reservations_end(f->r, "MyWeb many/0");
    assert_ready(f, "MyWeb few/a ");
    stw_reservations_end(f->r, "MyWeb few/a");
    assert_ready(f, "MyWeb many/1 ");
    assert_int_equal(stw_reservations_take(f->r, "MyWeb few/a", MIB(9)), STW_RESERVE_WAITS);
    assert_int_equal(stw_reservations_take(f->r, "MyWeb other/a", MIB(9)), STW_RESERVE_WAITS);
    stw_reservations_end(f->r, "MyWeb many/1");
    assert_ready(f, "App few/b ");
    stw_reservations_end(f->r, "App few/b");
    assert_ready(f, "MyWeb other/a ");
    stw_reservations_end(f->r, "MyWeb other/a");
    assert_ready(f, "MyWeb many/2 ");
    stw_reservations_end(f->r, "MyWeb many/2");
    assert_ready(f, "MyWeb few/a ");
    stw_reservations_end(f->r, "MyWeb few/a");
    assert_ready(f, "MyWeb many/3 ");
    for (int i = 3; i < 100; i++)
        stw_reservations_end(f->r, number(id, "MyWeb many/", i));
    assert_int_equal(stw_reservations_waiting(f->r), 0);
}

/* Each of three namespaces has something all the time, and may overtake alone. */
static void test_overtaking_reservations_leave_room_together(void **state)
{
    struct fixture *f = *state;
    char ids[6][16];
    for (int i = 0; i < 6; i++) {
        stw_format(ids[i], sizeof(ids[i]), "MyWeb t%d/o%d", i % 3, i);
        (void)stw_reservations_take(f->r, ids[i], MIB(4));
    }
    assert_int_equal(stw_reservations_take(f->r, "MyWeb victim/big", MIB(9)), STW_RESERVE_WAITS);
    for (int i = 0; i < 60 && !strstr(stw_buf_str(&f->ready), "victim"); i++) {
        stw_reservations_end(f->r, ids[i % 6]); /* those that wait are told before it comes again */
        (void)stw_reservations_take(f->r, ids[i % 6], MIB(4));
    }
    assert_non_null(strstr(stw_buf_str(&f->ready), "victim"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reservations_that_do_not_fit_wait_in_order, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_reservation_above_the_share_fails_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_growing_reservation_waits_again, begin, end),
        cmocka_unit_test_setup_teardown(test_every_reservation_gets_its_turn, begin, end),
        cmocka_unit_test_setup_teardown(test_reservations_alternate_between_namespaces, begin, end),
        cmocka_unit_test_setup_teardown(test_slow_namespace_leaves_a_quarter, begin, end),
        cmocka_unit_test_setup_teardown(test_largest_reservation_is_not_overtaken, begin, end),
        cmocka_unit_test_setup_teardown(test_overtaking_reservations_leave_room_together, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
