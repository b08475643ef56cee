/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/plan/rotation.h"
#include "kinds/databaseuser/status/status.h"
#include "support/status_shape.h"

/* For the running test: the first run for an object, the next one, and the verdict. */
static struct fixture f, g;
static struct stw_verdict v;

/* Also checks that the status has no password. */
static void check_shape(const json_t *status)
{
    static const char *const order[] = {
        "Ready",      "Reconciling",  "Stalled",          "SecretResolved", "TargetReachable",
        "UserSynced", "GrantsSynced", "RotationComplete", "CleanupBlocked", NULL};
    check_conditions(status, order, 3);
    note_status("DatabaseUser", status, 3);
    stw_autofree char *all = json_dumps(status, 0);
    assert_null(strstr(all, "s3cret"));
}

static json_t *judge(struct fixture *one)
{
    json_t *status;
    fixture_view(one);
    dbu_judge(&one->d, &v, &status);
    assert_non_null(status);
    check_shape(status);
    return status;
}

/* A run whose input and result are still to be set. */
static void begin(struct fixture *one, const char *status)
{
    fixture_done(one);
    assert_int_equal(fixture_init(one, FIXTURE_SPEC, status), 0);
}

/* The run after one that ended with this status. */
static void follow(const json_t *status)
{
    stw_autofree char *written = json_dumps(status, 0);
    begin(&g, written);
}

static void be_well(struct fixture *one)
{
    fixture_secret(one, "s3cret-s3cret");
    fixture_report(one, STW_SQL_FINE, STW_SQL_STEP_CONNECT, NULL);
    one->d.report.owned = true;
    stw_buf_adds(&one->d.report.granted, "SELECT, INSERT ON shop.*\n");
}

static void all_well(void)
{
    begin(&f, "");
    be_well(&f);
}

static int done(void **state)
{
    (void)state;
    fixture_done(&g);
    fixture_done(&f);
    return 0;
}

static void test_created_account_is_ready(void **state)
{
    (void)state;
    all_well();
    f.d.report.created = true;
    json_auto_t *s = judge(&f);
    assert_int_equal(v.level, STW_LEVEL_FINE);
    assert_string_equal(text(condition(s, "Ready"), "reason"), "Succeeded");
    assert_string_equal(text(s, "account"), "app@%");
    assert_string_equal(text(s, "target"), "Main");
    assert_string_equal(text(s, "engine"), "mariadb");
    assert_string_equal(text(s, "serverVersion"), "10.11.6-MariaDB");
    assert_string_equal(text(s, "secretResourceVersion"), "77");
    assert_string_equal(text(s, "passwordFingerprint"), "0123456789abcdef");
    assert_string_equal(text(s, "ownershipMark"), "steward.accounts");
    assert_true(json_is_true(json_object_get(s, "owned")));
    assert_true(strlen(text(s, "lastRotationTime")) > 0);
    assert_true(strlen(text(s, "lastVerifiedTime")) > 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(s, "hosts"), 0)), "%");
    assert_string_equal(json_string_value(json_array_get(json_object_get(s, "currentGrants"), 0)),
                        "SELECT, INSERT ON shop.*");
    assert_null(json_object_get(s, "foreignGrants"));
}

/* A second run with nothing to do does not change the status, however late it comes. */
static void test_settled_object_keeps_its_status(void **state)
{
    (void)state;
    all_well();
    f.d.report.created = true;
    json_auto_t *first = judge(&f);
    follow(first);
    be_well(&g);
    g.now.ms += 3600 * 1000;
    json_auto_t *second = judge(&g);
    assert_true(json_equal(first, second));
    /* A change updates the times. */
    g.d.report.password_changed = true;
    json_auto_t *third = judge(&g);
    assert_string_not_equal(text(first, "lastVerifiedTime"), text(third, "lastVerifiedTime"));
    assert_string_not_equal(text(first, "lastRotationTime"), text(third, "lastRotationTime"));
}

/* A run set this password and was killed before it wrote the status: the next one counts as the
 * rotation, so that it is not due again. */
static void test_password_set_by_a_killed_run_has_a_time(void **state)
{
    static const char now[] = "2024-01-01T00:00:01Z", before[] = "2023-12-31T00:00:00Z";
    static const struct {
        const char *fingerprint; /* of the status */
        bool waits;
        enum stw_sql_trouble trouble;
        const char *want;
    } rows[] = {
        {"other", false, STW_SQL_FINE, now},
        {"other", false, STW_SQL_DENIED, now}, /* the grants failed */
        {"other", false, STW_SQL_CONNECT, before},
        {"other", true, STW_SQL_FINE, before}, /* not set yet */
        {"0123456789abcdef", false, STW_SQL_FINE, before},
        {"", false, STW_SQL_FINE, before},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char status[256];
        (void)snprintf(status, sizeof(status),
                       "{\"account\":\"app@%%\",\"passwordFingerprint\":\"%s\","
                       "\"lastRotationTime\":\"%s\"}",
                       rows[i].fingerprint, before);
        begin(&f, status);
        be_well(&f);
        fixture_report(&f, rows[i].trouble, STW_SQL_STEP_GRANT, "no right");
        f.d.report.login_done = rows[i].trouble != STW_SQL_CONNECT;
        f.d.report.password_waits = rows[i].waits;
        json_auto_t *s = judge(&f);
        assert_string_equal(text(s, "lastRotationTime"), rows[i].want);
    }
}

/* The time until the next check: within the interval of the spec, never much shorter, and
 * spread. */
static void test_resync_is_spread_within_its_interval(void **state)
{
    uint64_t seen = 0;
    bool varies = false;
    (void)state;
    for (uint64_t now = 0; now < 100; now++) {
        uint64_t ms = dbu_resync_ms("shop/app", 300, now);
        assert_in_range(ms, 240000, 300000);
        varies |= now > 0 && ms != seen;
        seen = ms;
    }
    assert_true(varies);
}

/* The conditions for the errors of a server. */
static void test_trouble_of_a_server_is_a_condition(void **state)
{
    static const struct {
        enum stw_sql_trouble trouble;
        enum stw_sql_step step;
        enum stw_level level;
        const char *type, *status, *reason;
    } rows[] = {
#define R(t, s, l) STW_SQL_##t, STW_SQL_STEP_##s, STW_LEVEL_##l
        {R(CONNECT, CONNECT, RETRYING), "TargetReachable", "False", "ConnectFailed"},
        {R(CONNECT, GRANT, RETRYING), "TargetReachable", "False", "ConnectFailed"},
        {R(CIRCUIT_OPEN, CONNECT, RETRYING), "TargetReachable", "False", "CircuitOpen"},
        {R(BUSY, CONNECT, RETRYING), "TargetReachable", "False", "ConnectFailed"},
        {R(AUTH, CONNECT, RETRYING), "TargetReachable", "False", "AuthFailed"},
        {R(TLS, CONNECT, RETRYING), "TargetReachable", "False", "TLSFailed"},
        {R(READ_ONLY, LOOKUP, RETRYING), "TargetReachable", "False", "ReadOnlyServer"},
        {R(FAILED, LOOKUP, RETRYING), "UserSynced", "Unknown", "LookupFailed"},
        {R(DENIED, LOOKUP, STALLED), "UserSynced", "Unknown", "LookupFailed"},
        {R(READ_ONLY, CREATE, RETRYING), "TargetReachable", "False", "ReadOnlyServer"},
        {R(LOOKUP, LOOKUP, RETRYING), "UserSynced", "Unknown", "LookupFailed"},
        {R(EXISTS, LOOKUP, STALLED), "UserSynced", "False", "AlreadyExists"},
        {R(NOT_OURS, LOOKUP, STALLED), "UserSynced", "False", "Conflict"},
        {R(POLICY, CREATE, STALLED), "UserSynced", "False", "PasswordPolicy"},
        {R(POLICY, ALTER, STALLED), "UserSynced", "False", "PasswordPolicy"},
        {R(NO_PLUGIN, CREATE, STALLED), "UserSynced", "False", "PluginNotLoaded"},
        {R(NO_PLUGIN, ALTER, STALLED), "UserSynced", "False", "PluginNotLoaded"},
        {R(DENIED, CREATE, STALLED), "UserSynced", "False", "CreateFailed"},
        {R(DENIED, ALTER, STALLED), "UserSynced", "False", "AlterFailed"},
        {R(DENIED, GRANT, STALLED), "GrantsSynced", "False", "NotAllowed"},
        {R(DENIED, REVOKE, STALLED), "GrantsSynced", "False", "NotAllowed"},
        {R(NO_OBJECT, GRANT, WAITING), "GrantsSynced", "False", "NoSuchObject"},
        {R(UNSUPPORTED, CREATE, STALLED), "UserSynced", "False", "CreateFailed"},
        {R(UNSUPPORTED, GRANT, STALLED), "GrantsSynced", "False", "GrantFailed"},
        {R(OWNS_OBJECTS, DROP, STALLED), "UserSynced", "False", "AlterFailed"},
        {R(FAILED, CREATE, RETRYING), "UserSynced", "False", "CreateFailed"},
        {R(FAILED, ALTER, RETRYING), "UserSynced", "False", "AlterFailed"},
        {R(FAILED, GRANT, RETRYING), "GrantsSynced", "False", "GrantFailed"},
        {R(FAILED, REVOKE, RETRYING), "GrantsSynced", "False", "RevokeFailed"},
#undef R
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        begin(&f, "");
        fixture_secret(&f, "s3cret-s3cret");
        fixture_report(&f, rows[i].trouble, rows[i].step, "what the server said");
        json_auto_t *s = judge(&f);
        const json_t *c = condition(s, rows[i].type);
        assert_int_equal(v.level, rows[i].level);
        assert_string_equal(text(c, "reason"), rows[i].reason);
        assert_string_equal(text(c, "status"), rows[i].status);
        assert_non_null(strstr(text(c, "message"), "what the server said"));
        assert_string_equal(text(condition(s, "Ready"), "status"), "False");
        assert_string_equal(text(condition(s, "Ready"), "reason"), rows[i].reason);
        if (v.level == STW_LEVEL_RETRYING)
            assert_true(v.err->code != STW_OK);
        else
            assert_true(v.again_ms > 0);
    }
}

/* What could not be checked is not reported, and a target is named once. */
static void test_unchecked_account_is_not_reported(void **state)
{
    static const char message[] =
        "target \"main\" (db:3306, account \"a\"): cannot connect: refused";
    (void)state;
    all_well();
    fixture_report(&f, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT, message);
    f.d.report.owned = false;
    json_auto_t *s = judge(&f);
    assert_string_equal(text(condition(s, "TargetReachable"), "message"), message);
    assert_string_equal(text(condition(s, "UserSynced"), "status"), "Unknown");
    assert_string_equal(text(condition(s, "UserSynced"), "reason"), "NotChecked");
    assert_null(json_object_get(s, "account"));
    assert_null(json_object_get(s, "lastVerifiedTime"));
    assert_null(json_object_get(s, "passwordFingerprint"));
}

/* An unreachable server does not remove anything from the status. */
static void test_unreachable_server_keeps_the_status(void **state)
{
    (void)state;
    all_well();
    f.d.report.created = true;
    json_auto_t *first = judge(&f);
    follow(first);
    fixture_secret(&g, "another-s3cret");
    fixture_report(&g, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT, "refused");
    json_auto_t *s = judge(&g);
    assert_string_equal(text(s, "account"), "app@%");
    assert_true(json_is_true(json_object_get(s, "owned")));
    assert_string_equal(text(condition(s, "UserSynced"), "status"), "True");
    assert_string_equal(text(s, "passwordFingerprint"), text(first, "passwordFingerprint"));
    assert_string_equal(text(s, "lastVerifiedTime"), text(first, "lastVerifiedTime"));
}

/* While the circuit is open nothing new is known: the previous message stays. */
static void test_circuit_keeps_the_cause(void **state)
{
    (void)state;
    begin(&f, "");
    fixture_secret(&f, "s3cret-s3cret");
    fixture_report(&f, STW_SQL_AUTH, STW_SQL_STEP_CONNECT, "refused the admin");
    json_auto_t *first = judge(&f);
    follow(first);
    fixture_secret(&g, "s3cret-s3cret");
    fixture_report(&g, STW_SQL_CIRCUIT_OPEN, STW_SQL_STEP_CONNECT, "not tried again for 7 s");
    json_auto_t *second = judge(&g);
    assert_string_equal(text(condition(second, "TargetReachable"), "reason"), "AuthFailed");
    assert_string_equal(text(condition(second, "TargetReachable"), "message"),
                        text(condition(first, "TargetReachable"), "message"));
}

static void test_secret_that_cannot_be_used_says_why(void **state)
{
    static const struct {
        enum dbu_secret_state secret;
        const char *reason, *words;
    } rows[] = {
        {DBU_SECRET_MISSING, "SecretNotFound",
         "Secret \"app-db\" not found; the account is created when it appears"},
        {DBU_SECRET_NO_KEY, "KeyNotFound", "no key \"password\""},
        {DBU_SECRET_EMPTY, "EmptyPassword", "is empty"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        begin(&f, "");
        f.d.secret.state = rows[i].secret;
        json_auto_t *s = judge(&f);
        assert_int_equal(v.level, STW_LEVEL_WAITING);
        assert_string_equal(text(condition(s, "SecretResolved"), "reason"), rows[i].reason);
        assert_string_equal(text(condition(s, "SecretResolved"), "status"), "False");
        assert_non_null(strstr(text(condition(s, "SecretResolved"), "message"), rows[i].words));
        assert_string_equal(text(condition(s, "Ready"), "status"), "False");
        assert_non_null(condition(s, "Reconciling"));
    }
}

/* If the account exists, the message states what happens to it, and the rights are kept. */
static void test_missing_secret_keeps_the_account(void **state)
{
    (void)state;
    begin(&f, "{\"account\":\"app@%\",\"hosts\":[\"%\"],\"owned\":true,"
              "\"passwordFingerprint\":\"ff\"}");
    f.d.secret.state = DBU_SECRET_MISSING;
    fixture_report(&f, STW_SQL_FINE, STW_SQL_STEP_CONNECT, NULL);
    f.d.report.owned = true;
    json_auto_t *s = judge(&f);
    assert_int_equal(v.level, STW_LEVEL_WAITING);
    assert_non_null(
        strstr(text(condition(s, "SecretResolved"), "message"), "keeps the password that it has"));
    assert_string_equal(text(condition(s, "UserSynced"), "status"), "True");
    assert_string_equal(text(s, "passwordFingerprint"), "ff");
}

/* D5: a finding, not a refusal. */
static void test_newline_of_a_password_is_a_finding(void **state)
{
    (void)state;
    all_well();
    f.d.secret.newline = true;
    json_auto_t *s = judge(&f);
    assert_int_equal(v.level, STW_LEVEL_FINE);
    assert_string_equal(text(condition(s, "SecretResolved"), "reason"), "PasswordHasNewline");
    assert_string_equal(text(condition(s, "SecretResolved"), "status"), "False");
    assert_non_null(strstr(text(condition(s, "SecretResolved"), "message"), "trimNewline"));
    assert_string_equal(text(condition(s, "Ready"), "status"), "True");
}

static void test_account_of_another_object_is_a_conflict(void **state)
{
    (void)state;
    begin(&f, "{\"owned\":true}");
    f.d.claim = DBU_CLAIM_TAKEN;
    (void)snprintf(f.d.holder, sizeof(f.d.holder), "shop/older");
    json_auto_t *s = judge(&f);
    assert_int_equal(v.level, STW_LEVEL_STALLED);
    assert_string_equal(text(condition(s, "UserSynced"), "reason"), "Conflict");
    assert_string_equal(text(condition(s, "Stalled"), "reason"), "Conflict");
    assert_non_null(strstr(text(condition(s, "UserSynced"), "message"), "shop/older"));
    assert_true(json_is_false(json_object_get(s, "owned")));
    f.d.claim = DBU_CLAIM_FULL;
    f.target.max_users = 7;
    json_auto_t *full = judge(&f);
    assert_string_equal(text(condition(full, "UserSynced"), "reason"), "QuotaExceeded");
}

static void test_missing_target_leaves_the_account(void **state)
{
    (void)state;
    begin(&f, "{\"account\":\"app@%\",\"hosts\":[\"%\"]}");
    f.d.target = NULL;
    json_auto_t *s = judge(&f);
    assert_int_equal(v.level, STW_LEVEL_WAITING);
    assert_string_equal(text(condition(s, "TargetReachable"), "reason"), "TargetNotFound");
    assert_non_null(strstr(text(condition(s, "TargetReachable"), "message"), "left as it is"));
    assert_string_equal(text(s, "account"), "app@%");
}

static void test_unsupported_engine_is_stalled(void **state)
{
    (void)state;
    begin(&f, "");
    (void)stw_fail(&f.d.target_err, STW_ERR_INVALID, "built without support for mariadb");
    json_auto_t *s = judge(&f);
    assert_int_equal(v.level, STW_LEVEL_STALLED);
    assert_string_equal(text(condition(s, "TargetReachable"), "reason"), "Unsupported");
}

static void test_failed_cleanup_says_why(void **state)
{
    static const struct {
        enum stw_sql_trouble trouble;
        enum stw_level level;
        const char *reason;
    } rows[] = {
        {STW_SQL_CONNECT, STW_LEVEL_RETRYING, "ServerUnreachable"},
        {STW_SQL_CIRCUIT_OPEN, STW_LEVEL_RETRYING, "ServerUnreachable"},
        {STW_SQL_LOCKED, STW_LEVEL_RETRYING, "StatementTimeout"},
        {STW_SQL_BUSY, STW_LEVEL_RETRYING, "ServerUnreachable"},
        {STW_SQL_AUTH, STW_LEVEL_RETRYING, "ServerUnreachable"},
        {STW_SQL_TLS, STW_LEVEL_RETRYING, "ServerUnreachable"},
        {STW_SQL_READ_ONLY, STW_LEVEL_RETRYING, "ServerUnreachable"},
        {STW_SQL_LOOKUP, STW_LEVEL_RETRYING, "ServerUnreachable"},
        {STW_SQL_EXISTS, STW_LEVEL_STALLED, "NotOurs"},
        {STW_SQL_NOT_OURS, STW_LEVEL_STALLED, "NotOurs"},
        {STW_SQL_OWNS_OBJECTS, STW_LEVEL_RETRYING, "OwnsObjects"},
        {STW_SQL_DENIED, STW_LEVEL_RETRYING, "DropFailed"},
        {STW_SQL_FAILED, STW_LEVEL_RETRYING, "DropFailed"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        json_t *status;
        begin(&f, "{\"account\":\"app@%\"}");
        fixture_report(&f, rows[i].trouble, STW_SQL_STEP_DROP, "what the server said");
        dbu_judge_cleanup(&f.d, &v, &status);
        json_auto_t *s = status;
        check_shape(s);
        assert_int_equal(v.level, rows[i].level);
        assert_string_equal(text(condition(s, "CleanupBlocked"), "reason"), rows[i].reason);
        assert_string_equal(text(condition(s, "CleanupBlocked"), "status"), "True");
        assert_non_null(strstr(text(condition(s, "CleanupBlocked"), "message"), "force-delete"));
        assert_string_equal(text(s, "account"), "app@%");
        if (v.level == STW_LEVEL_RETRYING)
            assert_true(v.err->code != STW_OK);
    }
}

#define ROTATING                                                                                   \
    "{\"user\":\"app\",\"password\":{\"name\":\"app-db\",\"key\":\"password\"},"                   \
    "\"rotation\":{\"strategy\":\"%s\",\"overlapSeconds\":60}}"

/* A run at 00:00:01, with a status that has this password and this end of an overlap. */
static struct dbu_step plan(const char *strategy, const char *fingerprint, const char *end)
{
    char spec[512], status[512];
    struct dbu_step step;
    (void)snprintf(spec, sizeof(spec), ROTATING, strategy);
    (void)snprintf(status, sizeof(status),
                   "{\"account\":\"app@%%\",\"passwordFingerprint\":\"%s\","
                   "\"oldPasswordValidUntil\":\"%s\"}",
                   fingerprint, end);
    fixture_done(&f);
    assert_int_equal(fixture_init(&f, spec, status), 0);
    be_well(&f);
    f.d.asked = false;
    fixture_view(&f);
    f.d.asked = f.d.view.finalizer = true;
    dbu_plan(&f.d.view, &step);
    assert_int_equal(step.act, DBU_SYNC);
    return step;
}

#define KNOWN "0123456789abcdef"
#define SOON "2024-01-01T00:00:30Z"
#define PAST "2024-01-01T00:00:00Z"

/* Only a new password of the Secret leaves the old one valid.  The end of the overlap ends that;
 * without an overlap it always ends, also when a run was killed before it wrote the end. */
static void test_old_password_ends_with_the_overlap(void **state)
{
    (void)state;
    assert_true(plan("DualPassword", "other", "").keep_old);
    assert_false(plan("DualPassword", KNOWN, "").keep_old);
    assert_false(plan("InPlace", "other", "").keep_old);
    assert_false(plan("DualPassword", KNOWN, "").discard_old);
    assert_false(plan("DualPassword", KNOWN, SOON).discard_old);
    assert_true(plan("DualPassword", KNOWN, PAST).discard_old);
    assert_true(plan("InPlace", KNOWN, SOON).discard_old);
    assert_true(plan("InPlace", KNOWN, "").discard_old);
    assert_true(plan("InPlace", "other", "").discard_old);
    assert_true(plan("DualPassword", "other", SOON).set_later);
    assert_true(plan("DualPassword", "other", PAST).set_later);
    assert_false(plan("DualPassword", "other", "").set_later);
    assert_false(plan("DualPassword", KNOWN, PAST).set_later);
    assert_false(plan("InPlace", "other", PAST).set_later);
    assert_false(plan("InPlace", KNOWN, "").old_stays);
}

/* What applications read counts while it is not the password of the Secret. */
static void test_published_password_counts_while_it_differs(void **state)
{
    static const struct {
        const char *strategy, *published, *want;
    } rows[] = {
        {"DualPassword", "first-s3cret", "first-s3cret"},
        {"DualPassword", "s3cret-s3cret", NULL},
        {"DualPassword", "", NULL},
        {"InPlace", "first-s3cret", NULL}, /* it ends at once */
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_account a = {.password = {.data = "s3cret-s3cret", .len = 13}};
        (void)plan(rows[i].strategy, "other", "");
        f.d.published = (struct stw_buf){.max = 1024, .secret = true};
        stw_buf_adds(&f.d.published, rows[i].published);
        dbu_desired_add_published(&f.d, &a);
        if (rows[i].want)
            assert_string_equal(a.published.data, rows[i].want);
        else
            assert_null(a.published.data);
    }
}

static void assert_end(const char *want)
{
    json_t *status;
    char end[STW_TIME_LEN] = "";
    uint64_t in_ms;
    fixture_view(&f);
    dbu_judge(&f.d, &v, &status);
    (void)dbu_rotation_end(&f.d, end, &in_ms);
    assert_string_equal(end, want);
    const char *stored = json_string_value(json_object_get(status, "oldPasswordValidUntil"));
    assert_string_equal(stored ? stored : "", want);
    json_decref(status);
}

/* A clock that was ahead, and a run that was killed after it set the password, do not change how
 * long the old one is valid. */
static void test_end_of_the_overlap_is_bounded(void **state)
{
    (void)state;
    (void)plan("DualPassword", KNOWN, SOON);
    f.d.report.old_valid = f.d.report.owned = true;
    assert_end(SOON);
    (void)plan("DualPassword", KNOWN, "2029-01-01T00:00:00Z");
    f.d.report.old_valid = true;
    assert_end("2024-01-01T00:01:01Z");
    (void)plan("DualPassword", "other",
               PAST); /* killed: the status has the end of the one before */
    f.d.report.old_valid = true;
    assert_end("2024-01-01T00:01:01Z");
    (void)plan("DualPassword", "other", PAST);
    fixture_report(&f, STW_SQL_DENIED, STW_SQL_STEP_GRANT, "no right");
    f.d.report.password_changed = true;
    assert_end("2024-01-01T00:01:01Z");
    (void)plan("DualPassword", KNOWN, PAST); /* discarded */
    assert_end("");
}

/* A new password is set by a run whose status has no end of an older one: the run before that removes
 * it, also if grants fail, and the next one comes at once. */
static void test_next_password_waits_for_the_removal_of_an_old_one(void **state)
{
    static const enum stw_sql_trouble troubles[] = {STW_SQL_FINE, STW_SQL_DENIED};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(troubles); i++) {
        (void)plan("DualPassword", "other", PAST);
        f.d.report.password_waits = f.d.report.password_next = f.d.report.owned = true;
        f.d.report.old_valid = true; /* the two change places */
        if (troubles[i] != STW_SQL_FINE)
            fixture_report(&f, troubles[i], STW_SQL_STEP_GRANT, "no right");
        assert_end("");
        json_auto_t *s = judge(&f);
        assert_string_equal(text(s, "passwordFingerprint"), "other");
        if (troubles[i] != STW_SQL_FINE)
            continue;
        assert_int_equal(v.again_ms, 1);
        assert_string_equal(text(condition(s, "RotationComplete"), "reason"), "NewPasswordWaits");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_created_account_is_ready, done),
        cmocka_unit_test_teardown(test_settled_object_keeps_its_status, done),
        cmocka_unit_test_teardown(test_password_set_by_a_killed_run_has_a_time, done),
        cmocka_unit_test_teardown(test_old_password_ends_with_the_overlap, done),
        cmocka_unit_test_teardown(test_published_password_counts_while_it_differs, done),
        cmocka_unit_test_teardown(test_end_of_the_overlap_is_bounded, done),
        cmocka_unit_test_teardown(test_next_password_waits_for_the_removal_of_an_old_one, done),
        cmocka_unit_test_teardown(test_resync_is_spread_within_its_interval, done),
        cmocka_unit_test_teardown(test_trouble_of_a_server_is_a_condition, done),
        cmocka_unit_test_teardown(test_unchecked_account_is_not_reported, done),
        cmocka_unit_test_teardown(test_unreachable_server_keeps_the_status, done),
        cmocka_unit_test_teardown(test_secret_that_cannot_be_used_says_why, done),
        cmocka_unit_test_teardown(test_circuit_keeps_the_cause, done),
        cmocka_unit_test_teardown(test_missing_secret_keeps_the_account, done),
        cmocka_unit_test_teardown(test_newline_of_a_password_is_a_finding, done),
        cmocka_unit_test_teardown(test_account_of_another_object_is_a_conflict, done),
        cmocka_unit_test_teardown(test_missing_target_leaves_the_account, done),
        cmocka_unit_test_teardown(test_unsupported_engine_is_stalled, done),
        cmocka_unit_test_teardown(test_failed_cleanup_says_why, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
