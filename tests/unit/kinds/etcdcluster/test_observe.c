/* SPDX-License-Identifier: Apache-2.0
 *
 * How pods and claims are read and judged, and what the status stores. */
#include "fixture.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/observe/observe.h"
#include "kinds/etcdcluster/plan/entries.h"

/* --- pods as the kubelet reports them */

#define POD(status)                                                                                \
    "{\"metadata\":{\"name\":\"db-a\",\"namespace\":\"shop\",\"uid\":\"p-1\",\"labels\":{"         \
    "\"etcd_cluster\":\"db\"},\"annotations\":{\"etcd.database.coreos.com/"                        \
    "initial-cluster\":\"db-a=u\",\"etcd.database.coreos.com/initial-cluster-state\":"             \
    "\"existing\"}},\"status\":" status "}"
#define CONTAINER(restarts, state, last)                                                           \
    "{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\",\"containerStatuses\":[{"                       \
    "\"restartCount\":" #restarts ",\"state\":{" state "},\"lastState\":{" last "}}]}"
#define REFUSED                                                                                    \
    "\"terminated\":{\"exitCode\":1,\"message\":\"x could not retrieve cluster information from "  \
    "the given URLs\"}"
#define FULL                                                                                       \
    "\"terminated\":{\"exitCode\":1,\"message\":\"write /var/etcd/data/member/snap/db: no space "  \
    "left on device\"}"
#define KILLED "\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\"}"
#define CRASHED "\"terminated\":{\"exitCode\":2,\"message\":\"panic\"}"

static void read_pod(const char *object, struct ec_pod_live *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    stw_autojson struct stw_json_doc doc = {0};
    assert_int_equal(stw_json_scan(&doc, object, strlen(object), NULL), 0);
    ec_watch_pods.project(NULL, stw_json_root(&doc), &text);
    assert_int_equal(ec_pod_read(stw_buf_str(&text), text.len, ret), 0);
}

static void test_pod_is_read_as_running_ended_or_in_trouble(void **state)
{
    static const struct {
        const char *pod;
        bool ran, ended, refused;
        enum ec_trouble trouble;
        const char *reason;
    } cases[] = {
        {POD("{\"phase\":\"Pending\"}"), false, false, false, EC_TROUBLE_NONE, ""},
        {POD(CONTAINER(0, "\"running\":{}", "")), true, false, false, EC_TROUBLE_NONE, ""},
        {POD("{\"phase\":\"Failed\"}"), false, true, false, EC_TROUBLE_NONE, ""},
        {POD("{\"phase\":\"Succeeded\"}"), false, true, false, EC_TROUBLE_NONE, ""},
        {POD(CONTAINER(0, "\"waiting\":{\"reason\":\"ImagePullBackOff\"}", "")), false, false,
         false, EC_TROUBLE_IMAGE, "ImagePullBackOff"},
        {POD(CONTAINER(0, "\"waiting\":{\"reason\":\"ErrImagePull\"}", "")), false, false, false,
         EC_TROUBLE_IMAGE, "ImagePullBackOff"},
        {POD(CONTAINER(0, "\"waiting\":{\"reason\":\"InvalidImageName\"}", "")), false, false,
         false, EC_TROUBLE_IMAGE, "InvalidImageName"},
        {POD(CONTAINER(0, "\"waiting\":{\"reason\":\"CreateContainerError\"}", "")), false, false,
         false, EC_TROUBLE_CRASH, "CreateContainerError"},
        {POD(CONTAINER(9, "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}", KILLED)), true, false,
         false, EC_TROUBLE_CRASH, "OOMKilled"},
        {POD(CONTAINER(0, "\"waiting\":{\"reason\":\"ContainerCreating\"}", "")), false, false,
         false, EC_TROUBLE_NONE, ""},
        /* A crash for another reason does not mean lost data, however often it happens. */
        {POD(CONTAINER(9, "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}", CRASHED)), true, false,
         false, EC_TROUBLE_CRASH, "CrashLoopBackOff"},
        /* Once may be a volume that was late. */
        {POD(CONTAINER(1, "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}", REFUSED)), true, false,
         false, EC_TROUBLE_CRASH, "CrashLoopBackOff"},
        {POD(CONTAINER(2, "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}", REFUSED)), true, false,
         true, EC_TROUBLE_CRASH, "CrashLoopBackOff"},
        {POD(CONTAINER(2, REFUSED, "")), true, false, true, EC_TROUBLE_NONE, ""},
        /* A learner that has joined with its third start; and one that has crashed since. */
        {POD(CONTAINER(2, "\"running\":{}", REFUSED)), true, false, false, EC_TROUBLE_NONE, ""},
        {POD(CONTAINER(2, CRASHED, REFUSED)), true, false, false, EC_TROUBLE_NONE, ""},
        {POD("{\"conditions\":[{\"type\":\"PodScheduled\",\"reason\":\"Unschedulable\",\"message\":"
             "\"0/1 nodes: Insufficient cpu\"}]}"),
         false, false, false, EC_TROUBLE_UNSCHEDULABLE, "Unschedulable"},
        {POD("{\"conditions\":[{\"type\":\"PodScheduled\",\"reason\":\"Unschedulable\",\"message\":"
             "\"pod has unbound immediate PersistentVolumeClaims\"}]}"),
         false, false, false, EC_TROUBLE_VOLUME, "VolumePending"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct ec_pod_live p;
        read_pod(cases[i].pod, &p);
        if (p.ran != cases[i].ran || p.ended != cases[i].ended || p.refused != cases[i].refused ||
            p.trouble != cases[i].trouble || !stw_streq(p.reason, cases[i].reason))
            fail_msg("%s: ran %d ended %d refused %d trouble %d %s", cases[i].pod, p.ran, p.ended,
                     p.refused, (int)p.trouble, p.reason);
        assert_true(p.guarded);
    }
}

#define READY(container, pod)                                                                      \
    POD("{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"            \
        "\"True\"}" pod "],\"containerStatuses\":[{\"ready\":" container                           \
        ",\"state\":{\"running\":{}}}]}")
#define CONDITION(status) ",{\"type\":\"Ready\",\"status\":\"" status "\"}"

/* When a node is lost, only the pod's condition changes; its containers stay ready. */
static void test_ready_is_the_condition_of_the_pod(void **state)
{
    static const struct {
        const char *pod;
        bool ready;
    } cases[] = {
        {READY("true", CONDITION("True")), true},
        {READY("true", CONDITION("False")), false},
        {READY("true", CONDITION("Unknown")), false},
        {READY("false", CONDITION("False")), false},
        {READY("true", ""), false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct ec_pod_live p;
        read_pod(cases[i].pod, &p);
        if (p.ready != cases[i].ready)
            fail_msg("%s: ready %d", cases[i].pod, p.ready);
    }
}

/* The message names causes that a user can fix. */
static void test_crash_names_a_cause_the_user_can_fix(void **state)
{
    static const struct {
        const char *pod, *want;
    } cases[] = {
        {POD(CONTAINER(2, "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}", REFUSED)),
         "data folder is empty"},
        {POD(CONTAINER(2, "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}", FULL)),
         "volume is full"},
        {POD(CONTAINER(2, "\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off\"}",
                       CRASHED)),
         "back-off"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ec_pod_live p;
        read_pod(cases[i].pod, &p);
        assert_non_null(strstr(p.text, cases[i].want));
    }
}

/* --- one member */

#define GUARDED .guarded = true

static void test_data_is_lost_only_if_it_was_there(void **state)
{
    static const struct {
        bool durable, started;
        struct ec_detail d;
        enum ec_data want;
    } cases[] = {
        /* It never existed: not lost. */
        {true, false, {.has_pod = false}, EC_DATA_NONE},
        {true, false, {.has_claim = true}, EC_DATA_THERE},
        {true, true, {.has_claim = true}, EC_DATA_THERE},
        {true, true, {.has_pod = true}, EC_DATA_LOST},
        {true, true, {.has_claim = true, .claim.going = true}, EC_DATA_LOST},
        /* An empty folder under a guarded pod; a joining member that has found no other yet is not
         * that. */
        {true,
         true,
         {.has_claim = true, .has_pod = true, .pod = {GUARDED, .refused = true}},
         EC_DATA_LOST},
        {true, true, {.has_claim = true, .has_pod = true, .pod = {.refused = true}}, EC_DATA_THERE},
        /* emptyDirs have the lifetime of their pods. */
        {false, true, {.has_pod = true}, EC_DATA_THERE},
        {false, true, {.has_pod = true, .pod.ended = true}, EC_DATA_LOST},
        {false, true, {.has_pod = false}, EC_DATA_LOST},
        {false, false, {.has_pod = false}, EC_DATA_NONE},
    };
    const struct ec_state none = {0};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        const struct ec_seen seen = {.state = &none, .durable = cases[i].durable, .now = 1000};
        struct ec_member m = {.name = "db-a", .listed = true, .started = cases[i].started};
        ec_judge_member(&seen, &cases[i].d, &m);
        if (m.data != cases[i].want)
            fail_msg("case %zu: %d", i, (int)m.data);
    }
}

/* A voter is healthy if a linearizable read succeeds, a learner if it responds; and only with the
 * right IDs of member and cluster. */
static void test_health_needs_the_right_member_and_cluster(void **state)
{
    static const struct {
        bool learner;
        struct stw_etcd_health h;
        bool healthy;
    } cases[] = {
        {false, {.answers = true, .linearizable = true, .member_id = 7, .cluster_id = 9}, true},
        {false, {.answers = true, .member_id = 7, .cluster_id = 9}, false},
        {true, {.answers = true, .member_id = 7, .cluster_id = 9}, true},
        {false, {.answers = true, .linearizable = true, .member_id = 8, .cluster_id = 9}, false},
        {false, {.answers = true, .linearizable = true, .member_id = 7, .cluster_id = 1}, false},
        {true, {.member_id = 7, .cluster_id = 9}, false},
    };
    const struct ec_state st = {.cluster_id = 9};
    const struct ec_seen seen = {.state = &st, .durable = true, .now = 1000};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct ec_member m = {.name = "db-a", .listed = true, .id = 7, .learner = cases[i].learner};
        const struct ec_detail d = {.asked = true, .health = cases[i].h};
        ec_judge_member(&seen, &d, &m);
        if (m.healthy != cases[i].healthy)
            fail_msg("case %zu", i);
        assert_int_equal(m.unhealthy_since, m.healthy ? 0 : 1000);
    }
}

/* A steward that has just started also knows how long a member has been down. */
static void test_time_of_an_outage_survives_a_restart_of_steward(void **state)
{
    struct ec_state st = {.cluster_id = 9, .member_count = 1};
    const struct ec_detail silent = {.asked = true};
    struct ec_member m = {.name = "db-a", .listed = true, .id = 7};
    (void)state;
    st.members[0] = (struct ec_remembered){.name = "db-a", .id = 7, .since = 400};
    const struct ec_seen seen = {.state = &st, .durable = true, .now = 1000};
    ec_judge_member(&seen, &silent, &m);
    assert_int_equal(m.unhealthy_since, 400);
    st.members[0].healthy = true; /* it was healthy then: it has just gone down */
    ec_judge_member(&seen, &silent, &m);
    assert_int_equal(m.unhealthy_since, 1000);
}

/* The status records, by member ID, who was promoted.  That a member has forgotten it follows from
 * its own status, once it has had the time to learn of the promotion. */
static void test_promotion_that_a_member_forgot_is_doubted(void **state)
{
    static const struct {
        struct ec_remembered was;
        bool learner, says, promoted, doubts;
    } cases[] = {
        {{.id = 7, .promoted = true, .since = 400}, false, false, true, false},
        {{.id = 7, .promoted = true, .since = 400}, false, true, true, true},
        {{.id = 7, .promoted = true, .since = 971}, false, true, true, false},
        {{.id = 7, .promoted = true, .since = 400}, true, true, true, false},
        {{.id = 7, .learner = true, .since = 400}, false, true, false, false},
        {{.id = 7, .learner = true, .since = 400}, true, true, false, false},
        {{.id = 8, .promoted = true, .since = 400}, true, true, false, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct ec_state st = {.cluster_id = 9, .member_count = 1};
        const struct ec_seen seen = {.state = &st, .durable = true, .now = 1000};
        const struct ec_detail d = {
            .asked = true,
            .health = {.answers = true, .member_id = 7, .cluster_id = 9, .learner = cases[i].says}};
        struct ec_member m = {.name = "db-a", .listed = true, .id = 7, .learner = cases[i].learner};
        st.members[0] = cases[i].was;
        (void)snprintf(st.members[0].name, EC_NAME_MAX, "db-a");
        ec_judge_member(&seen, &d, &m);
        if (m.promoted != cases[i].promoted || m.doubts != cases[i].doubts)
            fail_msg("case %zu: promoted %d doubts %d", i, m.promoted, m.doubts);
    }
}

/* The progress that the member reports. */
static void test_raft_progress_is_what_the_member_reports(void **state)
{
    const struct ec_state none = {0};
    const struct ec_seen seen = {.state = &none, .durable = true, .now = 1000};
    struct ec_detail d = {.asked = true,
                          .health = {.answers = true, .raft_term = 5, .raft_index = 99}};
    struct ec_member m = {.name = "db-a", .listed = true, .id = 7};
    (void)state;
    ec_judge_member(&seen, &d, &m);
    assert_int_equal(m.raft_term, 5);
    assert_int_equal(m.raft_index, 99);
}

/* As the kubelet reports it, of a pod that is not being deleted. */
static void test_deleted_pod_is_not_ready(void **state)
{
    const struct ec_state none = {0};
    const struct ec_seen seen = {.state = &none, .durable = true, .now = 1000};
    struct ec_detail d = {.has_pod = true, .pod = {.ready = true, .guarded = true}};
    struct ec_member m = {.name = "db-a"};
    (void)state;
    ec_judge_member(&seen, &d, &m);
    assert_true(m.pod_ready && m.pod_guarded);
    d.pod.going = true;
    ec_judge_member(&seen, &d, &m);
    assert_false(m.pod_ready);
}

/* The version of a member is what it reports, not what the image of its pod has; while it does not
 * respond, what it reported last. */
static void test_version_is_what_the_member_reports(void **state)
{
    struct ec_state st = {.cluster_id = 9, .member_count = 1};
    const struct ec_seen seen = {.state = &st, .durable = true, .now = 1000};
    struct ec_detail d = {
        .has_pod = true,
        .asked = true,
        .pod = {.version = "3.5.16"},
        .health = {.answers = true, .member_id = 7, .cluster_id = 9, .version = {3, 4, 23}}};
    struct ec_member m = {.name = "db-a", .listed = true, .id = 7};
    (void)state;
    st.members[0] = (struct ec_remembered){.name = "db-a", .id = 7, .version = "3.4.22"};
    ec_judge_member(&seen, &d, &m);
    assert_int_equal(stw_semver_compare(m.version, (struct stw_semver){3, 4, 23}), 0);
    assert_int_equal(stw_semver_compare(m.pod_version, (struct stw_semver){3, 5, 16}), 0);
    d.health.answers = false;
    ec_judge_member(&seen, &d, &m);
    assert_int_equal(stw_semver_compare(m.version, (struct stw_semver){3, 4, 22}), 0);
}

/* A member that was waiting with all others does not count as dead for that. */
static void test_waiting_in_an_outage_does_not_count_as_dead(void **state)
{
    struct ec_view v = {
        .count = 3, .members = {[0] = {.unhealthy_since = 100}, [2] = {.unhealthy_since = 900}}};
    (void)state;
    ec_forgive(&v, 0);
    assert_int_equal(v.members[0].unhealthy_since, 100);
    ec_forgive(&v, 500);
    assert_int_equal(v.members[0].unhealthy_since, 500);
    assert_int_equal(v.members[1].unhealthy_since, 0);
    assert_int_equal(v.members[2].unhealthy_since, 900);
}

static void test_end_of_an_outage_is_read_from_the_condition(void **state)
{
    static const struct {
        const char *type, *status;
        int64_t since;
    } rows[] = {
        {"QuorumLost", "False", 1704067200},
        {"QuorumLost", "True", 0},
        {"Available", "False", 0},
    };
    struct ec_state s;
    json_auto_t *none = json_object();
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        json_auto_t *status =
            json_pack("{s:[{s:s,s:s,s:s}]}", "conditions", "type", rows[i].type, "status",
                      rows[i].status, "lastTransitionTime", "2024-01-01T00:00:00Z");
        ec_state_read(status, &s);
        assert_int_equal(s.quorum_since, rows[i].since);
    }
    ec_state_read(none, &s);
    assert_int_equal(s.quorum_since, 0);
}

/* --- the sizes of volumes */

#define CLAIM(requested, status)                                                                   \
    "{\"metadata\":{\"namespace\":\"shop\",\"uid\":\"c-1\",\"labels\":{\"etcd_cluster\":\"db\"}}," \
    "\"spec\":{\"storageClassName\":\"fast\",\"resources\":{\"requests\":{\"storage\":" requested  \
    "}}},\"status\":" status "}"
#define BOUND(capacity, more)                                                                      \
    "{\"phase\":\"Bound\",\"capacity\":{\"storage\":\"" capacity "\"}" more "}"
#define SAYS(type, message)                                                                        \
    ",\"conditions\":[{\"type\":\"" type "\",\"status\":\"True\",\"message\":\"" message "\"}]"
#define STATE(state) ",\"allocatedResourceStatuses\":{\"storage\":\"" state "\"}"

static void read_claim(const char *object, struct ec_claim_live *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    stw_autojson struct stw_json_doc doc = {0};
    assert_int_equal(stw_json_scan(&doc, object, strlen(object), NULL), 0);
    ec_watch_claims.project(NULL, stw_json_root(&doc), &text);
    assert_int_equal(ec_claim_read(stw_buf_str(&text), text.len, ret), 0);
}

static void test_volumes_are_compared_with_the_wanted_size(void **state)
{
    static const struct {
        const char *claim;
        enum ec_volume volume;
        const char *resize;
        bool failed;
    } cases[] = {
        {CLAIM("\"8Gi\"", BOUND("8Gi", "")), EC_VOLUME_SMALL, "", false},
        {CLAIM("\"8Gi\"", BOUND("20Gi", "")), EC_VOLUME_SMALL, "", false},
        {CLAIM("\"9216Mi\"", BOUND("9Gi", "")), EC_VOLUME_FINE, "", false},
        {CLAIM("\"20Gi\"", BOUND("9Gi", "")), EC_VOLUME_FINE, "", false},
        {CLAIM("\"9Gi\"", BOUND("8Gi", "")), EC_VOLUME_GROWS, "", false},
        /* An API server that knows no expansion of claims that are not bound. */
        {CLAIM("\"8Gi\"", "{\"phase\":\"Pending\"}"), EC_VOLUME_FINE, "", false},
        {CLAIM("\"8Gi\"", "{\"phase\":\"Lost\"}"), EC_VOLUME_FINE, "", false},
        /* what a driver or the kubelet says */
        {CLAIM("\"9Gi\"", BOUND("8Gi", SAYS("Resizing", ""))), EC_VOLUME_GROWS,
         "the storage resizes it", false},
        {CLAIM("\"9Gi\"", BOUND("8Gi", SAYS("FileSystemResizePending", "wait"))), EC_VOLUME_GROWS,
         "the kubelet has yet to resize its file system: wait", false},
        {CLAIM("\"9Gi\"", BOUND("8Gi", STATE("NodeResizeInProgress"))), EC_VOLUME_GROWS,
         "the kubelet resizes its file system", false},
        {CLAIM("\"9Gi\"", BOUND("8Gi", STATE("ControllerResizeInfeasible"))), EC_VOLUME_GROWS,
         "the storage cannot resize it", true},
        {CLAIM("\"9Gi\"",
               BOUND("8Gi", SAYS("ControllerResizeError", "no space") STATE("NodeResizePending"))),
         EC_VOLUME_GROWS, "the storage cannot resize it: no space", true},
        /* nonsense */
        {CLAIM("8", BOUND("8Gi", "")), EC_VOLUME_FINE, "", false},
        {CLAIM("\"-\"", BOUND("", "")), EC_VOLUME_FINE, "", false},
        {CLAIM("\"9Gi\"", "{\"phase\":\"Bound\",\"conditions\":[1,{}],\"capacity\":[]}"),
         EC_VOLUME_FINE, "", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct ec_claim_live c;
        read_claim(cases[i].claim, &c);
        assert_string_equal(c.class, "fast");
        if (ec_judge_volume(&c, "9Gi") != cases[i].volume || c.resize_failed != cases[i].failed ||
            !stw_streq(c.resize, cases[i].resize))
            fail_msg("%s: %d \"%s\"", cases[i].claim, (int)ec_judge_volume(&c, "9Gi"), c.resize);
        c.going = true;
        assert_int_equal(ec_judge_volume(&c, "9Gi"), EC_VOLUME_FINE);
    }
}

/* A size that another client writes into the status expands nothing. */
static void test_volumes_grow_to_the_size_of_the_spec(void **state)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"\"storage\":{\"size\":\"4Gi\"}", "4Gi"},
        {"\"storage\":{\"size\":4294967296}", "4294967296"},
        {"\"size\":3", "8Gi"},
        {"\"pod\":{\"persistentVolumeClaimSpec\":{\"resources\":{\"requests\":{\"storage\":\"5Gi\"}"
         "}}}",
         "5Gi"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[256], wanted[64];
        (void)snprintf(spec, sizeof(spec), "{\"version\":\"3.5.16\",%s}", cases[i].spec);
        fixture_init(&f, spec, "{\"storage\":{\"medium\":\"Persistent\",\"size\":\"900Gi\"}}");
        ec_wanted_size(f.e, wanted);
        assert_string_equal(wanted, cases[i].want);
        fixture_done(&f);
    }
}

/* The annotation is for one size, however it is written. */
static void test_consent_is_for_one_size(void **state)
{
    static const struct {
        const char *annotation;
        bool agreed;
    } cases[] = {{"", false}, {"4Gi", true}, {"4096Mi", true}, {"5Gi", false}, {"true", false}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f, "{\"version\":\"3.5.16\",\"storage\":{\"size\":\"4Gi\"}}", "");
        (void)snprintf(f.e->replace_volumes, EC_NAME_MAX, "%s", cases[i].annotation);
        ec_judge_volumes(f.e);
        assert_int_equal(f.e->view.replace_volumes, cases[i].agreed);
        fixture_done(&f);
    }
}

/* --- the stored state */

#define STATUS                                                                                     \
    "{\"clusterID\":\"ff\",\"storage\":{\"medium\":\"Persistent\",\"class\":\"c\","                \
    "\"size\":\"1Gi\"},\"currentAction\":{\"kind\":\"ReplaceMember\",\"member\":\"db-x\",\"id\":"  \
    "\"7\",\"startTime\":\"2024-01-01T00:00:00Z\"},\"forceNewCluster\":{\"step\":"                 \
    "\"Start\",\"member\":\"db-y\"},\"failovers\":{\"total\":3,\"times\":["                        \
    "\"2024-01-01T00:00:00Z\"]},\"quorumLostTime\":\"2024-01-01T00:00:01Z\",\"lastRollTime\":"     \
    "\"2024-01-01T00:00:02Z\",\"currentVersion\":\"3.5.16\",\"oldestVersion\":\"3.4.23\"}"

static void test_times_of_a_clock_that_was_ahead_are_forgotten(void **state)
{
    const int64_t start = 1704067200;
    struct ec_state s;
    json_auto_t *status = json_loads(STATUS, 0, NULL);
    (void)state;
    ec_state_read(status, &s);
    s.members[0].since = s.quorum_since = start;
    s.member_count = 1;
    ec_state_forget_future(&s, start - 3000); /* set back by less: they count as before */
    assert_int_equal(s.action.start, start);
    assert_int_equal(s.last_rolled, start + 2);
    assert_int_equal(s.failover_count, 1);
    ec_state_forget_future(&s, start - 86400);
    assert_int_equal(s.action.start, start - 86400);
    assert_int_equal(s.last_rolled, 0);
    assert_int_equal(s.quorum_lost_since, 0);
    assert_int_equal(s.quorum_since, 0);
    assert_int_equal(s.members[0].since, 0);
    assert_int_equal(ec_state_failovers(&s, start - 86400), 0);
    assert_int_equal(s.failovers_total, 3);
}

static void test_state_is_written_and_read_back(void **state)
{
    struct ec_state s;
    json_auto_t *status = json_loads(STATUS, 0, NULL), *again = json_object();
    (void)state;
    assert_non_null(status);
    ec_state_read(status, &s);
    assert_int_equal(s.cluster_id, 255);
    assert_int_equal(s.action.kind, EC_REPLACE);
    assert_int_equal(s.action.id, 7);
    assert_int_equal(s.action.start, 1704067200);
    assert_int_equal(s.force_step, EC_FORCE_START);
    assert_int_equal(s.quorum_lost_since, 1704067201);
    assert_int_equal(s.last_rolled, 1704067202);
    assert_true(s.storage.latched && s.storage.durable);
    ec_state_write(&s, again);
    assert_true(json_equal(status, again));
}

/* Every intent is read back unchanged. */
static void test_each_intent_is_read_back(void **state)
{
    (void)state;
    for (int kind = EC_IDLE; kind < EC_KINDS; kind++) {
        struct ec_state s = {.cluster_id = kind == EC_SEED ? 0 : 5,
                             .action = {.kind = (enum ec_kind)kind, .start = 1704067200}};
        struct ec_state back;
        json_auto_t *status = json_object();
        (void)snprintf(s.action.member, EC_NAME_MAX, "%s", kind == EC_IDLE ? "" : "db-a");
        if (kind == EC_IDLE)
            s.action.start = 0;
        ec_state_write(&s, status);
        ec_state_read(status, &back);
        assert_int_equal(back.action.kind, kind);
        assert_true(ec_state_same(&s, &back));
    }
}

/* Nonsense in a status breaks nothing. */
static void test_invalid_status_is_ignored(void **state)
{
    static const char *const cases[] = {
        "{}",
        "{\"clusterID\":5}",
        "{\"clusterID\":\"zz\",\"currentAction\":\"x\",\"memberList\":\"y\",\"failovers\":[]}",
        "{\"clusterID\":\"ffffffffffffffffff\",\"memberList\":[1,null,{\"name\":7}],\"storage\":1}",
        "{\"currentAction\":{\"kind\":\"Dance\"},\"forceNewCluster\":{\"step\":\"Jump\"}}",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct ec_state s;
        json_auto_t *status = json_loads(cases[i], 0, NULL);
        ec_state_read(status, &s);
        assert_int_equal(s.cluster_id, 0);
        assert_int_equal(s.action.kind, EC_IDLE);
        assert_int_equal(s.force_step, EC_FORCE_NOT);
    }
}

static void test_failovers_are_counted_within_their_window(void **state)
{
    struct ec_state s = {0};
    (void)state;
    for (int i = 0; i < 15; i++)
        ec_state_count_failover(&s, 10000 + i);
    assert_int_equal(s.failovers_total, 15);
    assert_int_equal(ec_state_failovers(&s, 10020), EC_FAILOVERS_MAX);
    assert_int_equal(ec_state_failovers(&s, 10014 + EC_FAILOVER_WINDOW), 0);
    ec_state_count_failover(&s, 20000);
    assert_int_equal(s.failover_count, 1);
}

/* --- names */

static void test_fresh_names_are_random_and_valid(void **state)
{
    struct fixture f;
    char a[EC_NAME_MAX], b[EC_NAME_MAX];
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    ec_fresh_name(f.e, a);
    ec_fresh_name(f.e, b);
    assert_int_equal(strlen(a), strlen("db-") + 10);
    assert_int_equal(strncmp(a, "db-", 3), 0);
    assert_int_equal(strspn(a + 3, "bcdfghjklmnpqrstvwxz2456789"), 10);
    assert_string_not_equal(a, b);
    fixture_done(&f);
}

/* --- whether a member has ever run */

static bool note_never_ran(struct fixture *f)
{
    struct ec_state read;
    json_t *status = json_object();
    ec_note_never_ran(f->e);
    ec_state_write(&f->e->state, status);
    ec_state_read(status, &read);
    json_decref(status);
    assert_int_equal(read.never_ran, f->e->state.never_ran);
    return read.never_ran;
}

static void test_cluster_that_never_ran_is_known(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"size\":3,\"version\":\"3.5.16\"}", "");
    assert_true(note_never_ran(&f));
    struct ec_member *m = fixture_member(&f, "db-bbbbbbbbbb", 1);
    struct ec_detail *d = &f.e->details[0];
    m->answers = false;
    assert_true(note_never_ran(&f)); /* its pod has no image */
    d->pod.ran = true;
    assert_false(note_never_ran(&f));
    d->pod.ran = false; /* recreated */
    assert_false(note_never_ran(&f));
    f.e->state.never_ran = true;
    d->pod.ended = true;
    assert_false(note_never_ran(&f));
    d->pod.ended = false;
    f.e->state.never_ran = m->answers = true;
    assert_false(note_never_ran(&f));
    m->answers = false;
    f.e->state.never_ran = true;
    f.e->state.cluster_id = 1;
    assert_false(note_never_ran(&f));
    fixture_done(&f);
}

/* Not known of a cluster that is not new, or whose status is lost, or that has restored data. */
static void test_cluster_that_may_have_run_is_not_one_that_never_ran(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"size\":3,\"version\":\"3.5.16\"}",
                 "{\"storage\":{\"medium\":\"Persistent\"}}");
    assert_false(note_never_ran(&f));
    fixture_done(&f);
    fixture_init(&f, "{\"size\":3,\"version\":\"3.5.16\"}", "");
    fixture_member(&f, "db-bbbbbbbbbb", 1)->answers = false;
    assert_false(note_never_ran(&f));
    fixture_done(&f);
    fixture_init(&f, "{\"size\":3,\"version\":\"3.5.16\"}", "");
    (void)snprintf(f.e->restored, sizeof(f.e->restored), "db-bbbbbbbbbb");
    assert_false(note_never_ran(&f));
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_that_never_ran_is_known),
        cmocka_unit_test(test_cluster_that_may_have_run_is_not_one_that_never_ran),
        cmocka_unit_test(test_crash_names_a_cause_the_user_can_fix),
        cmocka_unit_test(test_pod_is_read_as_running_ended_or_in_trouble),
        cmocka_unit_test(test_ready_is_the_condition_of_the_pod),
        cmocka_unit_test(test_data_is_lost_only_if_it_was_there),
        cmocka_unit_test(test_health_needs_the_right_member_and_cluster),
        cmocka_unit_test(test_time_of_an_outage_survives_a_restart_of_steward),
        cmocka_unit_test(test_promotion_that_a_member_forgot_is_doubted),
        cmocka_unit_test(test_raft_progress_is_what_the_member_reports),
        cmocka_unit_test(test_deleted_pod_is_not_ready),
        cmocka_unit_test(test_version_is_what_the_member_reports),
        cmocka_unit_test(test_waiting_in_an_outage_does_not_count_as_dead),
        cmocka_unit_test(test_end_of_an_outage_is_read_from_the_condition),
        cmocka_unit_test(test_volumes_are_compared_with_the_wanted_size),
        cmocka_unit_test(test_volumes_grow_to_the_size_of_the_spec),
        cmocka_unit_test(test_consent_is_for_one_size),
        cmocka_unit_test(test_state_is_written_and_read_back),
        cmocka_unit_test(test_each_intent_is_read_back),
        cmocka_unit_test(test_invalid_status_is_ignored),
        cmocka_unit_test(test_times_of_a_clock_that_was_ahead_are_forgotten),
        cmocka_unit_test(test_failovers_are_counted_within_their_window),
        cmocka_unit_test(test_fresh_names_are_random_and_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
