/* SPDX-License-Identifier: Apache-2.0
 *
 * Which keys may wait for which server.  The pools of lib/sql are fakes that only count. */
#include "kinds/databaseuser/target/pools.h"

#include "base/fence.h"
#include "base/util.h"
#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct stw_pool {
    int refs;
    bool cancelled, resting;
    uint64_t full_ms;
};
static int pools_alive, pools_made, pokes, tidied;

int stw_pool_create(const struct stw_pool_config *config, struct stw_pool **ret,
                    struct stw_error *err)
{
    if (config->target->port == 1)
        return stw_fail(err, STW_ERR_INVALID, "no such engine");
    *ret = calloc(1, sizeof(**ret));
    (*ret)->refs = 1;
    pools_alive++;
    pools_made++;
    return 0;
}

struct stw_pool *stw_pool_ref(struct stw_pool *p)
{
    p->refs++;
    return p;
}

void stw_pool_unref(struct stw_pool *p)
{
    if (!p || --p->refs > 0)
        return;
    pools_alive--;
    free(p);
}

void stw_pool_cancel(struct stw_pool *p)
{
    p->cancelled = true;
}

void stw_pool_tidy(struct stw_pool *p)
{
    assert_true(p->refs > 1); /* referenced meanwhile */
    tidied++;
}

void stw_pool_rest(struct stw_pool *p, bool resting)
{
    p->resting = resting;
}

uint64_t stw_pool_full_ms(struct stw_pool *p)
{
    return p->full_ms;
}

void stw_pool_poke(struct stw_pool *p)
{
    (void)p;
    pokes++;
}

/* --- */

struct scene {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_metrics *metrics;
    struct dbu_pools *pools;
    struct stw_targets *targets;
    char woken[64]; /* keys, each followed by a blank */
    char recovered[64];
    bool unidentified; /* the identity of the cluster is not known */
};

static void note(char *words, size_t size, const char *word)
{
    size_t len = strlen(words);
    (void)snprintf(words + len, size - len, "%s ", word);
}

static void wake(void *ctx, const char *key)
{
    struct scene *s = ctx;
    note(s->woken, sizeof(s->woken), key);
}

static void recover(void *ctx, const char *target)
{
    struct scene *s = ctx;
    note(s->recovered, sizeof(s->recovered), target);
}

static struct stw_targets *targets_of(const char *list)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    struct stw_targets *t = NULL;
    assert_int_equal(stw_json_scan(&doc, list, strlen(list), NULL), 0);
    assert_int_equal(stw_targets_parse(stw_json_root(&doc), &t, &f), 0);
    return t;
}

#define T(name, port)                                                                              \
    "{\"name\":\"" name "\",\"engine\":\"mariadb\",\"host\":\"db\",\"port\":" port                 \
    ",\"admin\":{\"user\":\"root\",\"passwordFile\":\"/x\"}}"
#define TWO "[" T("one", "3306") "," T("two", "3307") "]"
#define FOUR "[" T("one", "3306") "," T("two", "3307") "," T("three", "3308") "," T("four", "1") "]"

static const char *name_cluster(void *ctx)
{
    const struct scene *s = ctx;
    return s->unidentified ? NULL : "cluster-uid";
}

static void begin(struct scene *s, const char *list)
{
    *s = (struct scene){.now = {1000}};
    s->clock = (struct stw_clock){&s->now, fake_monotonic, fake_wall};
    s->metrics = stw_metrics_create("steward");
    struct dbu_pools_config config = {.clock = &s->clock,
                                      .metrics = s->metrics,
                                      .workers = 4,
                                      .wake = wake,
                                      .recovered = recover,
                                      .cluster = name_cluster,
                                      .ctx = s};
    s->pools = dbu_pools_create(&config);
    s->targets = targets_of(list);
    pools_made = 0;
}

static void end(struct scene *s)
{
    dbu_pools_destroy(s->pools);
    stw_metrics_destroy(s->metrics);
    stw_targets_unref(s->targets);
    assert_int_equal(pools_alive, 0);
}

static enum dbu_pools_answer enter(struct scene *s, const char *target, const char *key,
                                   struct dbu_visit *v)
{
    struct stw_error err = {0};
    const struct stw_target *t = stw_targets_find(s->targets, target);
    assert_non_null(t);
    return dbu_pools_enter(s->pools, s->targets, t, key, v, &err);
}

#define IN(s, target, key, v) assert_int_equal(enter(s, target, key, v), DBU_POOLS_IN)
#define LATER(s, target, key)                                                                      \
    do {                                                                                           \
        struct dbu_visit none_;                                                                    \
        assert_int_equal(enter(s, target, key, &none_), DBU_POOLS_LATER);                          \
    } while (0)

/* A key that came by itself is not woken any more. */
static void test_key_that_came_by_itself_is_not_woken(void **state)
{
    struct scene s;
    struct dbu_visit v[5];
    (void)state;
    begin(&s, TWO);
    for (int i = 0; i < 3; i++)
        IN(&s, "one", "a", &v[i]);
    LATER(&s, "one", "n/b");
    LATER(&s, "one", "n/c");
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE); /* wakes b */
    IN(&s, "one", "n/c", &v[0]);
    LATER(&s, "one", "n/b");
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE);
    assert_string_equal(s.woken, "n/b n/b ");
    dbu_pools_leave(s.pools, &v[1], STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[2], STW_SQL_FINE);
    assert_string_equal(s.woken, "n/b n/b ");
    end(&s);
}

/* With two servers one worker is always free for the other; a key that is turned away is woken
 * later. */
static void test_one_worker_stays_free_for_other_servers(void **state)
{
    struct scene s;
    struct dbu_visit v[4], other;
    (void)state;
    begin(&s, TWO);
    for (int i = 0; i < 3; i++)
        IN(&s, "one", "a", &v[i]);
    LATER(&s, "one", "n/late");
    LATER(&s, "one", "n/late"); /* waits once */
    LATER(&s, "ONE", "n/later");
    IN(&s, "two", "b", &other);
    assert_int_equal(pools_made, 2);
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE);
    assert_string_equal(s.woken, "n/late ");
    IN(&s, "one", "n/late", &v[0]);
    dbu_pools_leave(s.pools, &v[1], STW_SQL_FINE);
    assert_string_equal(s.woken, "n/late n/later ");
    dbu_pools_leave(s.pools, &other, STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[2], STW_SQL_FINE);
    assert_string_equal(s.recovered, "");
    end(&s);
}

/* More keys inside than the connections can serve would only wait for each other. */
static void test_no_more_keys_than_connections_can_serve(void **state)
{
    struct scene s;
    struct dbu_visit v[2];
    (void)state;
    begin(&s, "[{\"name\":\"one\",\"engine\":\"mariadb\",\"host\":\"db\",\"maxConnections\":1,"
              "\"admin\":{\"user\":\"root\",\"passwordFile\":\"/x\"}}]");
    IN(&s, "one", "a", &v[0]);
    IN(&s, "one", "b", &v[1]);
    LATER(&s, "one", "c");
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[1], STW_SQL_FINE);
    end(&s);
}

static void test_single_server_gets_all_workers(void **state)
{
    struct scene s;
    struct dbu_visit v[4];
    (void)state;
    begin(&s, "[" T("one", "3306") "]");
    for (int i = 0; i < 4; i++)
        IN(&s, "one", "a", &v[i]);
    for (int i = 0; i < 4; i++)
        dbu_pools_leave(s.pools, &v[i], STW_SQL_FINE);
    end(&s);
}

/* A server that could not be used is tried by one key at a time until it responds; then its
 * recovery is reported, once. */
static void test_troubled_server_is_tried_by_one_key_at_a_time(void **state)
{
    struct scene s;
    struct dbu_visit v, w;
    (void)state;
    begin(&s, TWO);
    IN(&s, "one", "a", &v);
    assert_false(dbu_pools_troubled(s.pools, "one"));
    dbu_pools_leave(s.pools, &v, STW_SQL_CONNECT);
    assert_true(dbu_pools_troubled(s.pools, "One"));
    IN(&s, "one", "a", &v);
    LATER(&s, "one", "b");
    dbu_pools_leave(s.pools, &v, STW_SQL_BUSY); /* no information */
    assert_true(dbu_pools_troubled(s.pools, "one"));
    IN(&s, "one", "b", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_EXISTS); /* it answered */
    assert_false(dbu_pools_troubled(s.pools, "one"));
    assert_string_equal(s.recovered, "one ");
    IN(&s, "one", "a", &v);
    IN(&s, "one", "b", &w);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    dbu_pools_leave(s.pools, &w, STW_SQL_FINE);
    assert_string_equal(s.recovered, "one ");
    end(&s);
}

/* A server that only answers reads is not down: each run that reads would wake those that write, which
 * fail again. */
static void test_read_only_server_is_not_down(void **state)
{
    struct scene s;
    struct dbu_visit v;
    (void)state;
    begin(&s, TWO);
    for (int i = 0; i < 2; i++) {
        IN(&s, "one", "a", &v);
        dbu_pools_leave(s.pools, &v, STW_SQL_READ_ONLY);
        assert_true(dbu_pools_troubled(s.pools, "one"));
        assert_int_equal(dbu_pools_down_ms(s.pools, "one"), 0);
        IN(&s, "one", "b", &v);
        dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
        assert_string_equal(s.recovered, "");
    }
    IN(&s, "one", "a", &v); /* a failover */
    dbu_pools_leave(s.pools, &v, STW_SQL_CONNECT);
    IN(&s, "one", "a", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_READ_ONLY);
    assert_string_equal(s.recovered, "one ");
    end(&s);
}

static const char *read_metrics(struct scene *s, struct stw_buf *out)
{
    stw_buf_clear(out);
    stw_metrics_render(s->metrics, out);
    return stw_buf_str(out);
}

static void test_metric_says_whether_servers_can_be_used(void **state)
{
    struct scene s;
    struct dbu_visit v;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    (void)state;
    begin(&s, TWO);
    IN(&s, "one", "a", &v);
    assert_null(strstr(read_metrics(&s, &text), "_database_up{"));
    dbu_pools_leave(s.pools, &v, STW_SQL_DENIED);
    assert_non_null(strstr(read_metrics(&s, &text), "_database_up{target=\"one\"} 1"));
    IN(&s, "one", "a", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_AUTH);
    assert_non_null(strstr(read_metrics(&s, &text), "_database_up{target=\"one\"} 0"));
    s.now.ms += 5000;
    assert_int_equal(dbu_pools_down_ms(s.pools, "ONE"), 5001);
    IN(&s, "one", "a", &v);
    dbu_pools_pause(s.pools); /* the lease is lost while the visit is open */
    assert_true(v.pool->resting);
    dbu_pools_leave(s.pools, &v, STW_SQL_AUTH);
    assert_null(strstr(read_metrics(&s, &text), "_database_up{"));
    IN(&s, "one", "a", &v); /* it leads again */
    assert_false(v.pool->resting);
    dbu_pools_leave(s.pools, &v, STW_SQL_CIRCUIT_OPEN);
    assert_non_null(strstr(read_metrics(&s, &text), "_database_up{target=\"one\"} 0"));
    struct stw_targets *none = targets_of("[]");
    dbu_pools_prune(s.pools, none);
    stw_targets_unref(none);
    assert_null(strstr(read_metrics(&s, &text), "_database_up{"));
    end(&s);
}

/* Connections that are open may work, but there are no others: what uses them does not say that it is up. */
static void test_server_that_takes_no_login_is_down(void **state)
{
    struct scene s;
    struct dbu_visit v;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    (void)state;
    begin(&s, TWO);
    IN(&s, "one", "a", &v);
    struct stw_pool *pool = v.pool;
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    IN(&s, "one", "a", &v);
    pool->full_ms = 1; /* one login was refused */
    dbu_pools_leave(s.pools, &v, STW_SQL_BUSY);
    assert_non_null(strstr(read_metrics(&s, &text), "_database_up{target=\"one\"} 1"));
    static const enum stw_sql_trouble more[] = {STW_SQL_BUSY, STW_SQL_FINE, STW_SQL_BUSY};
    pool->full_ms = 15000;
    for (size_t i = 0; i < STW_COUNT(more); i++) {
        IN(&s, "one", "a", &v);
        dbu_pools_leave(s.pools, &v, more[i]);
        assert_non_null(strstr(read_metrics(&s, &text), "_database_up{target=\"one\"} 0"));
        assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_TROUBLED);
        assert_int_not_equal(dbu_pools_down_ms(s.pools, "one"), 0);
        assert_false(dbu_pools_troubled(s.pools, "one"));
        assert_string_equal(s.recovered, "");
    }
    pool->full_ms = 0;
    IN(&s, "one", "a", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    assert_non_null(strstr(read_metrics(&s, &text), "_database_up{target=\"one\"} 1"));
    assert_string_equal(s.recovered, "one ");
    end(&s);
}

/* A run that began before the lease was lost may still enter. */
static void test_run_of_a_former_leader_shows_nothing(void **state)
{
    struct scene s;
    struct dbu_visit v;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    struct stw_fence_epoch epoch = {.number = 7};
    (void)state;
    begin(&s, TWO);
    struct stw_fence *fence = stw_fence_create(&s.clock);
    assert_non_null(fence);
    stw_fence_open(fence, STW_FENCE_FOREVER, &epoch);
    struct stw_fence_ticket before = stw_fence_enter(stw_fence_take(fence));
    IN(&s, "one", "a", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    assert_non_null(strstr(read_metrics(&s, &text), "_database_up{"));
    stw_fence_close(fence);
    dbu_pools_pause(s.pools);
    IN(&s, "one", "a", &v);
    assert_true(v.pool->resting);
    dbu_pools_leave(s.pools, &v, STW_SQL_CONNECT);
    IN(&s, "two", "a", &v);
    assert_true(v.pool->resting);
    dbu_pools_leave(s.pools, &v, STW_SQL_CONNECT);
    assert_null(strstr(read_metrics(&s, &text), "_database_up{"));
    stw_fence_open(fence, STW_FENCE_FOREVER, &epoch);
    (void)stw_fence_enter(stw_fence_take(fence));
    IN(&s, "one", "a", &v);
    assert_false(v.pool->resting);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    assert_non_null(strstr(read_metrics(&s, &text), "_database_up{target=\"one\"} 1"));
    (void)stw_fence_enter(before);
    stw_fence_destroy(fence);
    end(&s);
}

static void test_objects_of_a_server_that_is_down_are_told_in_turns(void **state)
{
    struct scene s;
    struct dbu_visit v;
    (void)state;
    begin(&s, TWO);
    for (int i = 0; i < 2; i++) { /* from the first on, each time that it goes down */
        IN(&s, "one", "a", &v);
        dbu_pools_leave(s.pools, &v, STW_SQL_CONNECT);
        assert_int_equal(dbu_pools_tell(s.pools, "one", 5), 0);
        IN(&s, "one", "a", &v);
        dbu_pools_leave(s.pools, &v, STW_SQL_CIRCUIT_OPEN);
        assert_int_equal(dbu_pools_tell(s.pools, "one", 5), 5);
        IN(&s, "one", "a", &v);
        dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    }
    end(&s);
}

/* What is known of a server lasts for a while, and an answer of a former login does not count. */
static void test_what_is_known_of_a_server_lasts_for_a_while(void **state)
{
    struct scene s;
    struct dbu_visit v;
    (void)state;
    begin(&s, TWO);
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_NOT_YET);
    IN(&s, "one", "a", &v);
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_NOT_YET);
    dbu_pools_leave(s.pools, &v, STW_SQL_BUSY); /* no information */
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_NOT_YET);
    s.now.ms += DBU_POOLS_FRESH_MS;
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_UNSEEN);
    IN(&s, "one", "a", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_DENIED); /* it answered */
    assert_int_equal(dbu_pools_sight(s.pools, "ONE"), DBU_POOLS_ANSWERS);
    s.now.ms += DBU_POOLS_FRESH_MS - 1;
    IN(&s, "one", "a", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_CONNECT);
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_TROUBLED);
    assert_int_equal(dbu_pools_sight(s.pools, "two"), DBU_POOLS_UNSEEN);
    stw_targets_unref(s.targets);
    s.targets = targets_of("[" T("one", "3399") "]");
    IN(&s, "one", "a", &v);
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_UNSEEN);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_ANSWERS);
    s.now.ms += DBU_POOLS_FRESH_MS;
    assert_int_equal(dbu_pools_sight(s.pools, "one"), DBU_POOLS_UNSEEN);
    end(&s);
}

/* No key has left for a while: new ones may only wait, too, and get in one by one. */
static void test_one_more_enters_for_each_second_without_a_sign(void **state)
{
    struct scene s;
    struct dbu_visit v[3], late;
    (void)state;
    begin(&s, TWO);
    IN(&s, "one", "a/1", &v[0]);
    s.now.ms += 900;
    IN(&s, "one", "b/1", &v[1]);
    s.now.ms += 101;
    IN(&s, "one", "c/1", &v[2]);
    assert_true(v[2].suspicious);
    dbu_pools_leave(s.pools, &v[1], STW_SQL_FINE); /* a sign of life */
    IN(&s, "one", "b/1", &v[1]);
    assert_false(v[1].suspicious);
    dbu_pools_leave(s.pools, &v[1], STW_SQL_FINE);
    s.now.ms += 1001; /* one is inside already, for the second before */
    LATER(&s, "one", "d/1");
    s.now.ms += 1000;
    IN(&s, "one", "d/1", &late);
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[2], STW_SQL_FINE);
    dbu_pools_leave(s.pools, &late, STW_SQL_FINE);
    end(&s);
}

#define CONNECTIONS(count)                                                                         \
    "[{\"name\":\"one\",\"engine\":\"mariadb\",\"host\":\"db\",\"maxConnections\":" count          \
    ",\"admin\":{\"user\":\"root\",\"passwordFile\":\"/x\"}}]"

static void test_namespace_that_waits_long_leaves_connections_to_others(void **state)
{
    struct scene s;
    struct dbu_visit v[2], other;
    (void)state;
    begin(&s, CONNECTIONS("2"));
    IN(&s, "one", "a/1", &v[0]);
    s.now.ms += 1500;
    LATER(&s, "one", "a/2"); /* the server's slowness may be its own */
    IN(&s, "one", "b/1", &other);
    s.now.ms += 1000;
    LATER(&s, "one", "b/2");
    dbu_pools_leave(s.pools, &other, STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[0], STW_SQL_LOCKED);
    end(&s);
}

/* While no key leaves, none is woken: one of each namespace asks again, and the others later. */
static void test_one_of_each_namespace_asks_again_soon(void **state)
{
    struct scene s;
    struct dbu_visit v, in, more, late;
    (void)state;
    begin(&s, CONNECTIONS("8"));
    IN(&s, "one", "a/1", &v);
    s.now.ms += 1500;
    IN(&s, "one", "b/1", &in);
    assert_int_equal(enter(&s, "one", "b/2", &late), DBU_POOLS_LATER);
    assert_int_equal(late.again_ms, 1000);
    assert_int_equal(enter(&s, "one", "b/3", &late), DBU_POOLS_LATER);
    assert_int_equal(late.again_ms, 20000);
    assert_int_equal(enter(&s, "one", "c/1", &late), DBU_POOLS_LATER);
    assert_int_equal(late.again_ms, 1000);
    s.now.ms += 1000;
    IN(&s, "one", "c/1", &more);
    assert_int_equal(enter(&s, "one", "b/2", &late), DBU_POOLS_LATER);
    assert_int_equal(late.again_ms, 1000);
    dbu_pools_leave(s.pools, &v, STW_SQL_CONNECT); /* it does not answer: a visit that ends wakes */
    assert_int_equal(enter(&s, "one", "b/2", &late), DBU_POOLS_LATER);
    assert_int_equal(late.again_ms, 20000);
    dbu_pools_leave(s.pools, &in, STW_SQL_CONNECT);
    dbu_pools_leave(s.pools, &more, STW_SQL_CONNECT);
    end(&s);
}

/* However many servers are dead, they get at most half of the workers. */
static void test_dead_servers_get_at_most_half_of_the_workers(void **state)
{
    struct scene s;
    struct dbu_visit v[3];
    static const char *const names[] = {"one", "two", "three"};
    (void)state;
    begin(&s, FOUR);
    for (int i = 0; i < 3; i++) {
        IN(&s, names[i], "a", &v[i]);
        dbu_pools_leave(s.pools, &v[i], STW_SQL_CONNECT);
    }
    IN(&s, "one", "a", &v[0]);
    IN(&s, "two", "b", &v[1]);
    LATER(&s, "three", "c");
    dbu_pools_leave(s.pools, &v[0], STW_SQL_CIRCUIT_OPEN);
    IN(&s, "three", "c", &v[2]);
    dbu_pools_leave(s.pools, &v[1], STW_SQL_AUTH);
    dbu_pools_leave(s.pools, &v[2], STW_SQL_TLS);
    end(&s);
}

/* A changed login creates a new pool; keys inside the old one end there. */
static void test_changed_login_makes_a_new_pool(void **state)
{
    struct scene s;
    struct dbu_visit v, w;
    struct stw_pool *old;
    (void)state;
    begin(&s, TWO);
    IN(&s, "one", "a", &v);
    old = v.pool;
    IN(&s, "one", "a", &w);
    assert_ptr_equal(w.pool, old);
    dbu_pools_leave(s.pools, &w, STW_SQL_FINE);
    stw_targets_unref(s.targets);
    s.targets = targets_of("[" T("one", "3399") "]");
    IN(&s, "one", "a", &w);
    assert_ptr_not_equal(w.pool, old);
    assert_int_equal(pools_alive, 2);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    assert_int_equal(pools_alive, 1);
    dbu_pools_leave(s.pools, &w, STW_SQL_FINE);
    end(&s);
}

static void test_pools_of_removed_targets_end(void **state)
{
    struct scene s;
    struct dbu_visit v;
    (void)state;
    begin(&s, TWO);
    IN(&s, "one", "a", &v);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    IN(&s, "two", "a", &v);
    stw_targets_unref(s.targets);
    s.targets = targets_of("[]");
    dbu_pools_prune(s.pools, s.targets);
    assert_int_equal(pools_alive, 1); /* a key is inside */
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    dbu_pools_prune(s.pools, NULL);
    assert_int_equal(pools_alive, 0);
    end(&s);
}

static void test_unknown_target_is_refused_and_poke_is_harmless(void **state)
{
    struct scene s;
    struct dbu_visit v;
    (void)state;
    begin(&s, FOUR);
    assert_int_equal(enter(&s, "four", "a", &v), DBU_POOLS_FAILED);
    s.unidentified = true;
    assert_int_equal(enter(&s, "one", "a", &v), DBU_POOLS_FAILED);
    s.unidentified = false;
    IN(&s, "one", "a", &v);
    pokes = 0;
    dbu_pools_poke(s.pools, "ONE");
    dbu_pools_poke(s.pools, "unheard-of");
    assert_int_equal(pokes, 1);
    dbu_pools_cancel(s.pools);
    assert_true(v.pool->cancelled);
    dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    assert_int_equal(enter(&s, "one", "a", &v), DBU_POOLS_FAILED);
    end(&s);
}

/* Tidies all pools, and closes none. */
static void test_all_pools_are_tidied_and_none_is_closed(void **state)
{
    struct scene s;
    struct dbu_visit v;
    (void)state;
    begin(&s, TWO);
    tidied = 0;
    dbu_pools_tidy(s.pools);
    assert_int_equal(tidied, 0);
    for (size_t i = 0; i < 2; i++) {
        IN(&s, i ? "two" : "one", "a", &v);
        dbu_pools_leave(s.pools, &v, STW_SQL_FINE);
    }
    dbu_pools_tidy(s.pools);
    assert_int_equal(tidied, 2);
    assert_int_equal(pools_alive, 2);
    end(&s);
}

static void test_namespaces_are_woken_in_turns(void **state)
{
    struct scene s;
    struct dbu_visit v[3];
    (void)state;
    begin(&s, TWO);
    for (size_t i = 0; i < STW_COUNT(v); i++)
        IN(&s, "one", "a/in", &v[i]);
    LATER(&s, "one", "a/1");
    LATER(&s, "one", "a/2");
    LATER(&s, "one", "b/1");
    for (size_t i = 0; i < STW_COUNT(v); i++)
        dbu_pools_leave(s.pools, &v[i], STW_SQL_FINE);
    assert_string_equal(s.woken, "a/1 b/1 a/2 ");
    end(&s);
}

static void test_namespace_that_waits_for_locks_leaves_connections_to_others(void **state)
{
    struct scene s;
    struct dbu_visit first, v[2], other;
    (void)state;
    begin(&s, "[{\"name\":\"one\",\"engine\":\"mariadb\",\"host\":\"db\",\"port\":3306,"
              "\"maxConnections\":4,\"admin\":{\"user\":\"root\",\"passwordFile\":\"/x\"}}]");
    IN(&s, "one", "a/1", &first);
    dbu_pools_leave(s.pools, &first, STW_SQL_LOCKED);
    assert_false(dbu_pools_troubled(s.pools, "one"));
    IN(&s, "one", "a/1", &v[0]);
    IN(&s, "one", "a/2", &v[1]);
    LATER(&s, "one", "a/3");
    IN(&s, "one", "b/1", &other);
    dbu_pools_leave(s.pools, &other, STW_SQL_FINE);
    assert_string_equal(s.woken, ""); /* its place is not for "a" */
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE);
    assert_string_equal(s.woken, "a/3 ");
    dbu_pools_leave(s.pools, &v[1], STW_SQL_FINE);
    s.now.ms += 60000;
    IN(&s, "one", "a/1", &first);
    IN(&s, "one", "a/2", &v[0]);
    IN(&s, "one", "a/3", &v[1]);
    dbu_pools_leave(s.pools, &first, STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[0], STW_SQL_FINE);
    dbu_pools_leave(s.pools, &v[1], STW_SQL_FINE);
    dbu_pools_tidy(s.pools);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_namespaces_are_woken_in_turns),
        cmocka_unit_test(test_namespace_that_waits_for_locks_leaves_connections_to_others),
        cmocka_unit_test(test_one_worker_stays_free_for_other_servers),
        cmocka_unit_test(test_key_that_came_by_itself_is_not_woken),
        cmocka_unit_test(test_single_server_gets_all_workers),
        cmocka_unit_test(test_no_more_keys_than_connections_can_serve),
        cmocka_unit_test(test_troubled_server_is_tried_by_one_key_at_a_time),
        cmocka_unit_test(test_read_only_server_is_not_down),
        cmocka_unit_test(test_metric_says_whether_servers_can_be_used),
        cmocka_unit_test(test_server_that_takes_no_login_is_down),
        cmocka_unit_test(test_run_of_a_former_leader_shows_nothing),
        cmocka_unit_test(test_objects_of_a_server_that_is_down_are_told_in_turns),
        cmocka_unit_test(test_what_is_known_of_a_server_lasts_for_a_while),
        cmocka_unit_test(test_one_more_enters_for_each_second_without_a_sign),
        cmocka_unit_test(test_namespace_that_waits_long_leaves_connections_to_others),
        cmocka_unit_test(test_one_of_each_namespace_asks_again_soon),
        cmocka_unit_test(test_dead_servers_get_at_most_half_of_the_workers),
        cmocka_unit_test(test_changed_login_makes_a_new_pool),
        cmocka_unit_test(test_pools_of_removed_targets_end),
        cmocka_unit_test(test_unknown_target_is_refused_and_poke_is_harmless),
        cmocka_unit_test(test_all_pools_are_tidied_and_none_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
