/* SPDX-License-Identifier: Apache-2.0
 *
 * Which connections of a target stay.  The engine is a fake. */
#include "sql/target/pool_priv.h"
#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct stw_conn {
    char database[16];
};

static bool held_up; /* logins to the admin's database */
static bool dead;    /* the connections that were made */
static unsigned admins, opened;

static int load(struct stw_error *err)
{
    (void)err;
    return 0;
}

static struct stw_conn *open_fake(const struct stw_login_as *as, struct stw_fault *f)
{
    bool of_admin = strcmp(as->database, "admin") == 0;
    opened++;
    if (of_admin && held_up) {
        (void)stw_fault_set(f, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT, "no answer");
        f->timeout = true;
        return NULL;
    }
    struct stw_conn *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    stw_format(c->database, sizeof(c->database), "%s", as->database);
    admins += of_admin;
    return c;
}

static void close_fake(struct stw_conn *c)
{
    admins -= strcmp(c->database, "admin") == 0;
    free(c);
}

static bool is_alive(struct stw_conn *c)
{
    return c && !dead;
}

static bool free_nothing(struct stw_session *s)
{
    return s->conn != NULL;
}

static int give_password(void *ctx, const struct stw_target *t, struct stw_buf *out,
                         struct stw_error *err)
{
    (void)ctx;
    (void)t;
    (void)err;
    stw_buf_adds(out, "Pa55");
    return 0;
}

static const struct stw_engine_ops ops = {.load = load,
                                          .open = open_fake,
                                          .close = close_fake,
                                          .alive = is_alive,
                                          .free_logins = free_nothing};

struct scene {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_target target;
    struct stw_pool *pool;
};

static void begin(struct scene *s, int64_t connections, int64_t pings)
{
    held_up = dead = false;
    opened = 0;
    *s = (struct scene){.now = {.ms = 1000}};
    s->clock = (struct stw_clock){&s->now, fake_monotonic, fake_wall};
    s->target = (struct stw_target){.name = "db",
                                    .host = "db",
                                    .port = 5432,
                                    .admin_user = "admin",
                                    .admin_database = "admin",
                                    .password_file = "/proc/self/status",
                                    .max_connections = connections,
                                    .ping_seconds = pings};
    const struct stw_pool_config config = {
        .target = &s->target, .password = give_password, .clock = &s->clock};
    struct stw_error err = {0};
    assert_int_equal(stw_pool_make(&config, &ops, &s->pool, &err), 0);
}

static void end(struct scene *s)
{
    stw_pool_unref(s->pool);
    assert_int_equal(admins, 0);
}

static bool ping(struct scene *s)
{
    struct stw_fault f = {0};
    bool up = stw_pool_ping(s->pool, &f);
    if (!up)
        print_message("%s\n", f.err.text);
    return up;
}

static void visit(struct scene *s, const char *database)
{
    struct stw_fault f = {0};
    struct stw_conn *c = stw_pool_take(s->pool, database, &f);
    assert_non_null(c);
    s->now.ms++;
    stw_pool_put(s->pool, c, false);
}

static void test_standing_connection_keeps_its_slot(void **state)
{
    static const char *const databases[] = {"a", "b", "c", "d", "e", "a"};
    struct scene s;
    (void)state;
    for (int64_t most = 2; most <= 4; most++) {
        begin(&s, most, 15);
        assert_true(ping(&s));
        for (size_t i = 0; i < STW_COUNT(databases); i++) {
            visit(&s, databases[i]);
            assert_int_equal(admins, 1);
        }
        assert_true(ping(&s));
        assert_int_equal(admins, 1);
        end(&s);
    }
}

static void test_only_connection_serves_all_databases(void **state)
{
    struct scene s;
    (void)state;
    begin(&s, 1, 15);
    assert_true(ping(&s));
    visit(&s, "a");
    assert_int_equal(admins, 0);
    end(&s);
}

static void test_standing_connection_does_not_end_by_its_age(void **state)
{
    struct scene s;
    (void)state;
    begin(&s, 4, 15);
    assert_true(ping(&s));
    s.now.ms += 3600000;
    stw_pool_tidy(s.pool);
    visit(&s, "a");
    assert_int_equal(admins, 1);
    stw_pool_rest(s.pool, true);
    stw_pool_tidy(s.pool);
    assert_int_equal(admins, 0);
    end(&s);
    begin(&s, 4, 0); /* no ping would use it */
    visit(&s, NULL);
    s.now.ms += 3600000;
    stw_pool_tidy(s.pool);
    assert_int_equal(admins, 0);
    end(&s);
}

static void test_standing_connection_is_used_while_logins_block(void **state)
{
    struct scene s;
    bool held;
    (void)state;
    begin(&s, 4, 15);
    assert_true(ping(&s));
    held_up = true;
    assert_false(ping(&s));
    struct stw_conn *c = stw_pool_take_standing(s.pool, &held);
    assert_true(c && held);
    stw_pool_hold(s.pool);
    stw_pool_put(s.pool, c, false);
    assert_false(ping(&s)); /* which does not open the circuit again */
    assert_int_equal(stw_pool_retry_ms(s.pool), 0);
    assert_true(stw_pool_is_held(s.pool));
    opened = 0;
    visit(&s, NULL);
    visit(&s, NULL);
    assert_int_equal(opened, 0);
    held_up = false;
    assert_true(ping(&s));
    assert_false(stw_pool_is_held(s.pool));
    end(&s);
}

/* One whose server has gone stands no longer, and the next ping leaves another one. */
static void test_dead_connection_does_not_stand(void **state)
{
    struct scene s;
    (void)state;
    begin(&s, 4, 15);
    assert_true(ping(&s));
    assert_int_equal(admins, 1);
    dead = true;
    assert_true(ping(&s));
    dead = false;
    assert_int_equal(admins, 2);
    s.now.ms += 3600000;
    stw_pool_tidy(s.pool);
    assert_int_equal(admins, 1);
    end(&s);
}

static bool is_not_own(const void *own, const char *database)
{
    return strcmp(own, database) != 0;
}

/* What one caller has waited for no other waits for, until it is to be seen again. */
static void test_locked_database_is_known_for_some_seconds(void **state)
{
    struct scene s;
    (void)state;
    begin(&s, 2, 15);
    assert_false(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    stw_pool_note_locked(s.pool, "a");
    assert_true(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    assert_false(stw_pool_knows_locked(s.pool, is_not_own, "a"));
    s.now.ms += 9999;
    assert_true(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    s.now.ms += 1;
    assert_false(stw_pool_knows_locked(s.pool, is_not_own,
                                       "a")); /* who owns it does not look for the others */
    assert_false(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    assert_true(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    stw_pool_note_locked(s.pool, "a"); /* it still is */
    s.now.ms += 9999;
    assert_true(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    s.now.ms += 1;
    assert_false(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    stw_pool_forget_locked(s.pool, is_not_own, "a"); /* who owns it has read all others */
    assert_true(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    stw_pool_forget_locked(s.pool, is_not_own, "mine");
    assert_false(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    stw_pool_note_locked(s.pool, "a");
    stw_pool_forget_locked(s.pool, is_not_own, "mine"); /* another caller has just waited for it */
    assert_true(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    s.now.ms += 10000;
    assert_false(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    s.now.ms += 3000; /* who looked has not come so far */
    for (int i = 0; i < 2; i++)
        assert_false(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    end(&s);
}

/* Of more than are remembered the oldest is forgotten. */
static void test_locked_databases_are_bounded(void **state)
{
    struct scene s;
    char name[16];
    (void)state;
    begin(&s, 2, 15);
    for (int i = 0; i < 1000; i++) {
        stw_format(name, sizeof(name), "d%d", i % 9);
        stw_pool_note_locked(s.pool, name);
        s.now.ms++;
        assert_true(stw_pool_knows_locked(s.pool, is_not_own, "mine"));
    }
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standing_connection_keeps_its_slot),
        cmocka_unit_test(test_only_connection_serves_all_databases),
        cmocka_unit_test(test_standing_connection_does_not_end_by_its_age),
        cmocka_unit_test(test_standing_connection_is_used_while_logins_block),
        cmocka_unit_test(test_dead_connection_does_not_stand),
        cmocka_unit_test(test_locked_database_is_known_for_some_seconds),
        cmocka_unit_test(test_locked_databases_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
