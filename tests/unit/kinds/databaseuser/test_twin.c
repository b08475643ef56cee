/* SPDX-License-Identifier: Apache-2.0
 *
 * TwinAccounts: the login of the next run, in each state that the status, the Secret of the password
 * and the connection Secret can be in. */
#include "fixture.h"
#include "kinds/databaseuser/plan/rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct fixture f;

static int done(void **state)
{
    (void)state;
    fixture_done(&f);
    return 0;
}

#define KNOWN "0123456789abcdef" /* the fingerprint of the Secret's password */
#define PAST "2024-01-01T00:00:00Z"
#define SOON "2024-01-01T00:00:30Z"
#define NONE DBU_LOGIN_NONE
#define BASE DBU_LOGIN_BASE
#define A DBU_LOGIN_A
#define B DBU_LOGIN_B

struct row {
    const char *strategy;          /* NULL: no rotation */
    const char *login, *previous;  /* of the status; NULL: none */
    const char *end, *fingerprint; /* of the status */
    enum dbu_login told;           /* by the connection Secret, which is ahead; NONE: it is not */
    bool blocked, missing;         /* the connection Secret is another's; no password */
    enum dbu_login next, after;    /* expected: `next` and `previous` */
    bool begins, waits;
};

static const struct row rows[] = {
    /* created, settled, rotated to the other and back */
    {"TwinAccounts", NULL, NULL, "", "", NONE, false, false, A, NONE, false, false},
    {"TwinAccounts", "app_a", NULL, "", KNOWN, NONE, false, false, A, NONE, false, false},
    {"TwinAccounts", "app_a", NULL, "", "old", NONE, false, false, B, A, true, false},
    {"TwinAccounts", "app_b", NULL, "", "old", NONE, false, false, A, B, true, false},
    {"Auto", "app_a", NULL, "", "old", NONE, false, false, B, A, true, false},
    /* the overlap, its end, and a password that comes meanwhile */
    {"TwinAccounts", "app_b", "app_a", SOON, KNOWN, NONE, false, false, B, A, false, false},
    {"TwinAccounts", "app_b", "app_a", SOON, "old", NONE, false, false, B, A, false, true},
    {"TwinAccounts", "app_b", "app_a", PAST, "old", NONE, false, false, B, A, false, true},
    /* killed between the connection Secret and the status; then another password came */
    {"TwinAccounts", "app_a", NULL, "", "old", B, false, false, B, A, true, false},
    {"TwinAccounts", NULL, NULL, "", "", A, false, false, A, B, true, false},
    /* the same on the way back: only a new password had ended the others at once */
    {"InPlace", "app_a", NULL, "", "old", BASE, false, false, BASE, NONE, true, false},
    {"InPlace", "app_a", "app_b", SOON, "old", BASE, false, false, BASE, NONE, true, false},
    {NULL, "app_a", NULL, "", "old", BASE, false, false, BASE, NONE, true, false},
    {"InPlace", "app_a", NULL, "", KNOWN, BASE, false, false, BASE, A, true, false},
    {"DualPassword", "app_a", NULL, "", "old", BASE, false, false, BASE, A, true, false},
    {"InPlace", "app_a", NULL, "", "old", B, false, false, B, A, true, true},
    /* without a password, and where the connection Secret is another's */
    {"TwinAccounts", "app_a", NULL, "", "old", NONE, false, true, A, NONE, false, false},
    {"TwinAccounts", "app_a", NULL, "", "old", NONE, true, false, A, NONE, false, true},
    {"TwinAccounts", NULL, NULL, "", "", NONE, true, false, A, NONE, false, false},
    /* from one account, which the status has without a login */
    {"TwinAccounts", "", NULL, "", KNOWN, NONE, false, false, A, BASE, true, false},
    {"TwinAccounts", "", NULL, "", "old", NONE, false, false, A, BASE, true, false},
    {"TwinAccounts", "app", "app_a", SOON, KNOWN, NONE, false, false, BASE, A, false, true},
    {"TwinAccounts", "", NULL, SOON, KNOWN, NONE, false, false, BASE, NONE, false, true},
    /* and back; a new password with InPlace ends all others at once */
    {"InPlace", "app_b", NULL, "", KNOWN, NONE, false, false, BASE, B, true, false},
    {"InPlace", "app_b", "app_a", SOON, KNOWN, NONE, false, false, B, A, false, true},
    {"InPlace", "app_b", "app_a", SOON, "old", NONE, false, false, BASE, NONE, true, false},
    {NULL, "app_b", "app_a", SOON, "old", NONE, false, false, BASE, NONE, true, false},
    {NULL, "app", NULL, "", "old", NONE, false, false, BASE, NONE, false, false},
};

static void make(const struct row *r)
{
    char rotation[128] = "", spec[512], status[512];
    const char *account = r->login ? "\"account\":\"app@%\"," : "";
    if (r->strategy)
        (void)snprintf(rotation, sizeof(rotation),
                       ",\"rotation\":{\"strategy\":\"%s\",\"overlapSeconds\":60}", r->strategy);
    (void)snprintf(spec, sizeof(spec),
                   "{\"user\":\"app\",\"password\":{\"name\":\"app-db\"},\"connectionSecret\":"
                   "{\"name\":\"c\"}%s}",
                   rotation);
    (void)snprintf(status, sizeof(status),
                   "{%s\"login\":\"%s\",\"previousLogin\":\"%s\",\"rotation\":7,"
                   "\"oldPasswordValidUntil\":\"%s\",\"passwordFingerprint\":\"%s\"}",
                   account, r->login ? r->login : "", r->previous ? r->previous : "", r->end,
                   r->fingerprint);
    assert_int_equal(fixture_init(&f, spec, status), 0);
    if (!r->missing)
        fixture_secret(&f, "first-Passw0rd-1");
    fixture_view(&f);
    if (r->blocked)
        f.d.view.connection = DBU_CONNECTION_BLOCKED;
    if (r->told == NONE)
        return;
    f.d.view.connection = DBU_CONNECTION_OURS;
    f.d.view.there = f.d.view.as_named = true;
    f.d.view.named = r->told;
    f.d.view.named_rotation = 7;
    f.d.view.named_as_status = stw_streq(r->fingerprint, KNOWN);
}

static void test_logins_of_twins_take_turns(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        const struct dbu_turn *t = &f.d.twins.turn;
        make(r);
        dbu_twins_take(&f.d);
        if (t->next != r->next || t->previous != r->after || t->begins != r->begins ||
            t->waits != r->waits)
            fail_msg("row %zu: next %d, previous %d, begins %d, waits %d", i, (int)t->next,
                     (int)t->previous, t->begins, t->waits);
        bool changes = r->next != t->current;
        assert_int_equal(t->rotation, changes ? 8 : 7);
        fixture_done(&f);
    }
}

/* When the old login ends: a clock that was ahead does not make it valid for longer than one overlap,
 * and while no client can read the next one there is no end. */
static void test_old_login_ends_after_one_overlap(void **state)
{
    static const struct {
        const char *stored, *want;
        bool begins, published, retired;
    } ends[] = {
        {SOON, SOON, false, true, false},
        {"2029-01-01T00:00:00Z", "2024-01-01T00:01:01Z", false, true, false},
        {PAST, "2024-01-01T00:01:01Z", true, true, false},
        {PAST, PAST, false, true, false},
        {PAST, "", false, true, true},
        {SOON, "", false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(ends); i++) {
        char end[STW_TIME_LEN] = "";
        uint64_t in_ms;
        const struct row row = {.strategy = "TwinAccounts",
                                .login = "app_b",
                                .previous = "app_a",
                                .end = ends[i].stored,
                                .fingerprint = KNOWN};
        make(&row);
        struct dbu_view *v = &f.d.view;
        if (ends[i].begins)
            *v = (struct dbu_view){.strategy = DBU_TWINS,
                                   .publishes = true,
                                   .has_logins = true,
                                   .password = DBU_PASSWORD_KNOWN,
                                   .connection = DBU_CONNECTION_OURS,
                                   .there = true,
                                   .as_named = true,
                                   .login = A,
                                   .rotation = 6,
                                   .named = B,
                                   .named_rotation = 7,
                                   .overlap = true,
                                   .over = true};
        v->logins[B].outcome = ends[i].published ? DBU_AS_WANTED : DBU_NOT_ASKED;
        v->retired = ends[i].retired;
        dbu_twins_take(&f.d);
        assert_int_equal(dbu_rotation_end(&f.d, end, &in_ms), ends[i].want[0] != '\0');
        assert_string_equal(end, ends[i].want);
        fixture_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_logins_of_twins_take_turns, done),
        cmocka_unit_test_teardown(test_old_login_ends_after_one_overlap, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
