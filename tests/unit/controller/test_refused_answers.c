/* SPDX-License-Identifier: Apache-2.0
 *
 * Reconciles whose answers find no room in STW_SHARE_ANSWERS, which others keep in use: a manager with a
 * kind whose run reads one large answer of the API server, or keeps one of a database, on the scripted
 * server. */
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "controller/manager/manager_priv.h"
#include "controller/reconcile.h"
#include "fake.h"
#include "kube/secret.h"
#include "schema/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

#define MIB(n) ((size_t)(n) << 20)

struct thing {
    const char *text;
};

struct thing_run {
    STW_SUBJECT;
    struct thing spec;
};

/* --- the reconciler */

static atomic_uint refused, done;
static int (*read_answer)(struct stw_run *run, struct stw_error *err);

static void reconcile(struct stw_subject *s, struct stw_result *result)
{
    struct stw_error err = {0};
    if (read_answer(s->run, &err) != 0) {
        atomic_fetch_add(&refused, 1);
        result->outcome = STW_RUN_FAILED;
        result->err = err;
        result->after_ms = 3600000;
        return;
    }
    atomic_fetch_add(&done, 1);
}

static int read_from_api_server(struct stw_run *run, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(MIB(4));
    const struct stw_request req = {.method = "GET", .path = "/large"};
    return stw_client_do(run->client, &req, &text, err);
}

static int keep_from_database(struct stw_run *run, struct stw_error *err)
{
    struct stw_kept one = {0}, other = {0};
    bool fits = true;
    (void)run;
    for (size_t bytes = MIB(1) / 2; fits && bytes <= MIB(5) / 2; bytes += MIB(1) / 2)
        fits = stw_kept_set(&one, bytes) && stw_kept_set(&other, bytes);
    stw_kept_done(&one);
    stw_kept_done(&other);
    return fits ? 0 : stw_fail(err, STW_ERR_UNAVAILABLE, "there is no memory now");
}

/* What was said of a Secret, once each. */
static char too_large[512], waiting[512];
static atomic_uint told_too_large, told_waiting;

static void note_once(const struct stw_error *err, char *text, atomic_uint *told)
{
    unsigned none = 0;
    if (!atomic_compare_exchange_strong(told, &none, 1))
        return;
    (void)snprintf(text, 512, "%s", err->text);
    atomic_store(told, 2);
}

/* Keeps what it has reserved until another run has had to wait. */
static int read_secret(struct stw_run *run, struct stw_error *err)
{
    stw_autosecret struct stw_secret s = {0};
    if (stw_run_get_secret(run, "big", NULL, &s, err) == 0)
        return 0;
    if (err->code == STW_ERR_UNAVAILABLE)
        note_once(err, waiting, &told_waiting);
    if (err->code != STW_ERR_TOO_LARGE)
        return -1;
    note_once(err, too_large, &told_too_large);
    wait_until(atomic_load(&told_waiting) == 2);
    return -1;
}

/* --- its kind */

static const struct stw_field fields[] = {
    {.name = "text", STW_FIELD(STW_T_STRING, struct thing, text), .help = "Text."},
    {0},
};
static const struct stw_field status[] = {STW_ROW_REPAIRS, STW_ROW_LAST_REPAIR, {0}};
static const struct stw_column columns[] = {STW_COLUMN_READY, {0}};
static const struct stw_kind kind = {.group = "things.example",
                                     .version = "v1",
                                     .kind = "Thing",
                                     .plural = "things",
                                     .namespaced = true,
                                     .singular = "thing",
                                     .help = "A text.",
                                     .spec = fields,
                                     .spec_size = sizeof(struct thing),
                                     .status = status,
                                     .columns = columns,
                                     .operations = STW_CREATE | STW_UPDATE};
static const struct stw_controller controller = {
    STW_CONTROLLER_OF("thing", kind), STW_OWN_WATCH(kind), STW_RUN_STATE(struct thing_run, spec),
    .reconcile = reconcile};
static const struct stw_operator op = {
    .name = "things",
    .domain = "things.example",
    .metric_prefix = "things",
    .version = "1.0.0",
    .kinds = (const struct stw_kind *const[]){&kind, NULL},
    .controllers = (const struct stw_controller *const[]){&controller, NULL},
};

#define THING(ns)                                                                                  \
    "{'metadata':{'name':'a','namespace':'" ns "','uid':'u-" ns "','generation':1,"                \
    "'resourceVersion':'5'},'spec':{'text':'t'}}"
static const char steps[] =
    "[{'match':'GET /apis/things.example/v1/things.*watch=','times':0,'then':'stall'},"
    "{'match':'GET /apis/things.example/v1/things','times':0,'body':{'metadata':{"
    "'resourceVersion':'5'},'items':[" THING("a") "," THING("b") "," THING(
        "c") "]}},"
             "{'match':'GET /api/v1/namespaces/.*/secrets/big','times':0,'stream':["
             "{'repeat':'x','bytes':4300000}]},"
             "{'match':'GET /large','times':0,'stream':[{'repeat':'x','bytes':1500000}]},"
             "{'match':'POST /apis/coordination','times':0,'status':201,'body':{'metadata':{"
             "'resourceVersion':'9'}}},"
             "{'match':'PUT "
             "/apis/coordination','times':0,'body':{'metadata':{'resourceVersion':'9'}}}]";

/* --- */

static void each_gets_its_turn(int (*reads)(struct stw_run *run, struct stw_error *err))
{
    struct stw_error err = {0};
    struct stw_manager *m = NULL;
    struct stw_client *client = fake_client_of(&fake, &op, NULL, NULL);
    const struct stw_manager_config config = {.op = &op,
                                              .client = client,
                                              .clock = &stw_clock_system,
                                              .leader_elect = true,
                                              .lease_ns = "system",
                                              .identity = "me"};
    size_t most = stw_share_limit(STW_SHARE_RECONCILES);
    read_answer = reads;
    atomic_store(&refused, 0);
    atomic_store(&done, 0);
    fake_steps(&fake, steps);
    if (stw_manager_create(&config, &m, &err) != 0 || stw_manager_start(m, &err) != 0)
        fail_msg("%s", err.text);
    wait_until(atomic_load(&done) == 3);
    assert_int_equal(atomic_load(&refused), 3); /* once each: then with memory of their own */
    wait_until(stw_share_facts(STW_SHARE_RECONCILES).used == 0);
    assert_true(stw_share_facts(STW_SHARE_RECONCILES).peak <= most);
    stw_manager_destroy(m);
    stw_client_destroy(client);
}

/* Many small ones have all of the share, all the time. */
static void test_large_api_server_answer_gets_its_turn(void **state)
{
    (void)state;
    stw_share_add(STW_SHARE_ANSWERS, MIB(8));
    each_gets_its_turn(read_from_api_server);
    stw_share_give_back(STW_SHARE_ANSWERS, MIB(8));
}

/* Those of one namespace have slow servers, and keep what they have. */
static void test_large_database_answer_gets_its_turn(void **state)
{
    struct stw_kept slow = {0};
    (void)state;
    assert_true(stw_kept_set(&slow, MIB(6)));
    each_gets_its_turn(keep_from_database);
    stw_kept_done(&slow);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
}

static void test_oversized_secret_is_named_with_the_limit(void **state)
{
    struct stw_error err = {0};
    struct stw_manager *m = NULL;
    struct stw_client *client = fake_client_of(&fake, &op, NULL, NULL);
    const struct stw_manager_config config = {.op = &op,
                                              .client = client,
                                              .clock = &stw_clock_system,
                                              .leader_elect = true,
                                              .lease_ns = "system",
                                              .identity = "me"};
    (void)state;
    read_answer = read_secret;
    fake_steps(&fake, steps);
    if (stw_manager_create(&config, &m, &err) != 0 || stw_manager_start(m, &err) != 0)
        fail_msg("%s", err.text);
    wait_until(atomic_load(&told_too_large) == 2 && atomic_load(&told_waiting) == 2);
    stw_manager_destroy(m);
    stw_client_destroy(client);
    assert_non_null(
        strstr(too_large, "Secret \"big\" is too large: at most 4194304 bytes of JSON are read"));
    assert_string_equal(
        waiting,
        "Secret \"big\" has more than 65536 bytes as JSON, and waits for 12 MiB of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_large_api_server_answer_gets_its_turn, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_oversized_secret_is_named_with_the_limit, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_large_database_answer_gets_its_turn, fake_set_up,
                                        fake_tear_down),
    };
    stw_memory_budget_set(MIB(128));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
