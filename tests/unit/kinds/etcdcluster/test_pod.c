/* SPDX-License-Identifier: Apache-2.0
 *
 * The wanted pods, claims, Services and budget of an EtcdCluster. */
#include "fixture.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/act/pod.h"
#include "kinds/etcdcluster/act/services.h"

#define V3516                                                                                      \
    {                                                                                              \
        3, 5, 16                                                                                   \
    }
#define V3423                                                                                      \
    {                                                                                              \
        3, 4, 23                                                                                   \
    }

/* "spec/containers/0"; numbers step into arrays. */
static const json_t *at(const json_t *tree, const char *path)
{
    while (tree && *path) {
        char part[64];
        size_t len = strcspn(path, "/");
        (void)snprintf(part, sizeof(part), "%.*s", (int)len, path);
        tree = json_is_array(tree) ? json_array_get(tree, (size_t)(part[0] - '0'))
                                   : json_object_get(tree, part);
        path += len + (path[len] == '/');
    }
    return tree;
}

static const char *text_at(const json_t *tree, const char *path)
{
    const char *text = json_string_value(at(tree, path));
    return text ? text : "";
}

static bool has_arg(const json_t *pod, const char *arg)
{
    const json_t *one;
    size_t i;
    json_array_foreach (at(pod, "spec/containers/0/args"), i, one)
        if (stw_streq(json_string_value(one), arg))
            return true;
    return false;
}

/* The effective value of a flag that is given more than once: the last one. */
static const char *last_arg(const json_t *pod, const char *flag)
{
    const char *last = "";
    const json_t *one;
    size_t i;
    json_array_foreach (at(pod, "spec/containers/0/args"), i, one)
        if (strncmp(json_string_value(one), flag, strlen(flag)) == 0)
            last = json_string_value(one);
    return last;
}

static json_t *pod_of(struct fixture *f, const struct ec_move *move)
{
    f->e->state.storage.durable = true;
    ec_hash_template(f->e);
    json_t *pod = ec_pod_manifest(f->e, move);
    assert_non_null(pod);
    return pod;
}

static const char *note(const json_t *pod, const char *name)
{
    const char *text = json_string_value(json_object_get(at(pod, "metadata/annotations"), name));
    return text ? text : "";
}

/* --- how members start (I6) */

static void test_seed_begins_a_new_cluster(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    assert_string_equal(note(pod, EC_INITIAL_STATE), "new");
    assert_string_equal(note(pod, EC_INITIAL_CLUSTER), "db-a=http://db-a.db.shop.svc:2380");
    assert_string_equal(text_at(pod, "metadata/labels/etcd_role"), "voter");
    assert_false(has_arg(pod, "--force-new-cluster"));
    fixture_done(&f);
}

static void test_joining_member_knows_all_members(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    fixture_member(&f, "db-a", 1);
    struct ec_member *joiner = fixture_member(&f, "db-b", 2);
    joiner->learner = true;
    const struct ec_move move = {.member = "db-b", .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    assert_string_equal(note(pod, EC_INITIAL_STATE), "existing");
    assert_string_equal(note(pod, EC_INITIAL_CLUSTER),
                        "db-a=http://db-a.db.shop.svc:2380,db-b=http://db-b.db.shop.svc:2380");
    assert_string_equal(text_at(pod, "metadata/labels/etcd_role"), "");
    fixture_done(&f);
}

/* Alone and "existing": etcd then starts with its data, or not at all. */
static void test_member_with_data_cannot_begin_a_new_cluster(void **state)
{
    struct fixture f;
    struct ec_pod_live live;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    stw_autojson struct stw_json_doc doc = {0};
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    fixture_member(&f, "db-a", 1);
    fixture_member(&f, "db-b", 2);
    const struct ec_move move = {.member = "db-b", .guarded = true, .version = V3423};
    json_auto_t *pod = pod_of(&f, &move);
    assert_string_equal(note(pod, EC_INITIAL_STATE), "existing");
    assert_string_equal(note(pod, EC_INITIAL_CLUSTER), "db-b=http://db-b.db.shop.svc:2380");
    assert_string_equal(text_at(pod, "spec/containers/0/image"), "quay.io/coreos/etcd:v3.4.23");

    /* And the watch reads back what was written. */
    (void)json_object_set_new(json_object_get(pod, "metadata"), "uid", json_string("p-1"));
    stw_autofree char *dump = json_dumps(pod, 0);
    assert_int_equal(stw_json_scan(&doc, dump, strlen(dump), NULL), 0);
    ec_watch_pods.project(NULL, stw_json_root(&doc), &text);
    assert_int_equal(ec_pod_read(stw_buf_str(&text), text.len, &live), 0);
    assert_true(live.guarded);
    assert_true(live.voter);
    assert_false(live.forced);
    assert_string_equal(live.version, "3.4.23");
    assert_string_equal(live.hash, f.e->template_hash);
    assert_string_equal(live.owner_uid, "u-1");
    assert_string_equal(live.cluster, "shop/db");
    fixture_done(&f);
}

/* Joining members get the survivor's database, not its log.  No client is routed to it until it
 * runs without the flag. */
static void test_survivor_starts_with_force_new_cluster(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\",\"options\":{\"snapshotCount\":5000}}", "");
    fixture_member(&f, "db-a", 1);
    const struct ec_move move = {
        .member = "db-a", .guarded = true, .forced = true, .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    assert_true(has_arg(pod, "--force-new-cluster"));
    assert_string_equal(last_arg(pod, "--snapshot-count="), "--snapshot-count=1");
    assert_string_equal(text_at(pod, "metadata/labels/etcd_role"), "");
    assert_string_equal(note(pod, EC_FORCED), "true");
    fixture_done(&f);
}

/* The first entries trigger a snapshot, which replaces the log entries that 3.6 cannot read. */
static void test_trimmed_log_ends_in_a_snapshot(void **state)
{
    struct fixture f;
    struct ec_pod_live live;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    stw_autojson struct stw_json_doc doc = {0};
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\",\"options\":{\"snapshotCount\":5000}}", "");
    fixture_member(&f, "db-a", 1);
    const struct ec_move move = {
        .member = "db-a", .guarded = true, .trimmed = true, .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    assert_false(has_arg(pod, "--force-new-cluster"));
    assert_string_equal(last_arg(pod, "--snapshot-count="), "--snapshot-count=1");
    assert_string_equal(text_at(pod, "metadata/labels/etcd_role"), "voter");
    assert_string_equal(note(pod, EC_HASH), f.e->template_hash);
    (void)json_object_set_new(json_object_get(pod, "metadata"), "uid", json_string("p-1"));
    stw_autofree char *dump = json_dumps(pod, 0);
    assert_int_equal(stw_json_scan(&doc, dump, strlen(dump), NULL), 0);
    ec_watch_pods.project(NULL, stw_json_root(&doc), &text);
    assert_int_equal(ec_pod_read(stw_buf_str(&text), text.len, &live), 0);
    assert_true(live.trimmed && !live.forced);
    fixture_done(&f);
}

/* --- fixed arguments (I11), and those of the spec */

static void test_arguments_keep_the_guards_of_etcd(void **state)
{
    static const char *const always[] = {
        "--name=db-a",
        "--strict-reconfig-check=true",
        "--pre-vote=true",
        "--experimental-initial-corrupt-check=true",
        "--initial-cluster-token=u-1",
        "--initial-cluster=$(INITIAL_CLUSTER)",
        "--initial-cluster-state=$(INITIAL_CLUSTER_STATE)",
        "--data-dir=/var/etcd/data",
        "--listen-client-urls=http://0.0.0.0:2379",
        "--advertise-client-urls=http://db-a.db.shop.svc.k.local:2379",
        "--quota-backend-bytes=4294967296",
        "--snapshot-count=5000",
        "--max-txn-ops=256",
    };
    struct fixture f;
    (void)state;
    fixture_init(&f,
                 "{\"version\":\"3.5.16\",\"pod\":{\"ClusterDomain\":\"k.local\"},\"options\":{"
                 "\"quotaBackendBytes\":\"4Gi\",\"snapshotCount\":5000,\"extraArgs\":{"
                 "\"max-txn-ops\":\"256\"}}}",
                 "");
    const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    for (size_t i = 0; i < STW_COUNT(always); i++)
        if (!has_arg(pod, always[i]))
            fail_msg("no argument %s", always[i]);
    assert_true(json_is_true(at(pod, "spec/securityContext/runAsNonRoot")));
    assert_int_equal(json_integer_value(at(pod, "spec/securityContext/fsGroup")), 65532);
    assert_string_equal(text_at(pod, "spec/hostname"), "db-a");
    assert_string_equal(text_at(pod, "spec/subdomain"), "db");
    assert_string_equal(text_at(pod, "spec/restartPolicy"), "Always");
    assert_string_equal(text_at(pod, "spec/volumes/0/persistentVolumeClaim/claimName"), "db-a");
    assert_string_equal(text_at(pod, "spec/topologySpreadConstraints/0/whenUnsatisfiable"),
                        "ScheduleAnyway");
    assert_string_equal(text_at(pod, "spec/containers/0/terminationMessagePolicy"),
                        "FallbackToLogsOnError");
    fixture_done(&f);
}

/* Each version gets its own option names, with the gates of the spec in one option. */
static void test_arguments_are_those_of_the_version(void **state)
{
    static const struct {
        struct stw_semver version;
        const char *has, *has_not;
    } cases[] = {
        {{3, 4, 23}, "--experimental-initial-corrupt-check=true", "--feature-gates=X=true"},
        {{3, 5, 24}, "--experimental-initial-corrupt-check=true", "--feature-gates=X=true"},
        {{3, 6, 0},
         "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true",
         "--experimental-initial-corrupt-check=true"},
        {{3, 7, 3},
         "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true",
         "--experimental-initial-corrupt-check=true"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f,
                     "{\"version\":\"3.6.16\",\"options\":{\"extraArgs\":{\"feature-gates\":"
                     "\"CompactHashCheck=true\"}}}",
                     "");
        const struct ec_move move = {.member = "db-a", .seed = true, .version = cases[i].version};
        json_auto_t *pod = pod_of(&f, &move);
        assert_true(has_arg(pod, cases[i].has));
        assert_false(has_arg(pod, cases[i].has_not));
        fixture_done(&f);
    }
}

/* /livez from 3.4.29 and 3.5.11 on; before, a TCP check.  Never /health, which fails while there is
 * no quorum. */
static void test_liveness_does_not_depend_on_the_quorum(void **state)
{
    static const struct {
        struct stw_semver version;
        bool livez;
    } cases[] = {
        {{3, 4, 23}, false}, {{3, 4, 29}, true}, {{3, 5, 10}, false},
        {{3, 5, 11}, true},  {{3, 6, 0}, true},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
        const struct ec_move move = {.member = "db-a", .seed = true, .version = cases[i].version};
        json_auto_t *pod = pod_of(&f, &move);
        const char *path = text_at(pod, "spec/containers/0/livenessProbe/httpGet/path");
        assert_string_equal(path, cases[i].livez ? "/livez" : "");
        assert_int_equal(at(pod, "spec/containers/0/livenessProbe/tcpSocket") != NULL,
                         !cases[i].livez);
        fixture_done(&f);
    }
}

/* The kubelet waits for as long as a database of the quota's size may be defragmented. */
static void test_liveness_waits_for_a_defragmentation(void **state)
{
    static const struct {
        const char *spec;
        int failures; /* each after 10 s */
    } cases[] = {
        {"{\"version\":\"3.5.16\"}", 18}, /* 2Gi */
        {"{\"version\":\"3.5.16\",\"options\":{\"quotaBackendBytes\":\"64Mi\"}}", 6},
        {"{\"version\":\"3.5.16\",\"options\":{\"quotaBackendBytes\":\"8Gi\"}}", 57},
        {"{\"version\":\"3.5.16\",\"options\":{\"quotaBackendBytes\":\"1E\"}}", 120},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f, cases[i].spec, "");
        const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
        json_auto_t *pod = pod_of(&f, &move);
        const json_t *n = at(pod, "spec/containers/0/livenessProbe/failureThreshold");
        assert_int_equal(json_integer_value(n), cases[i].failures);
        fixture_done(&f);
    }
}

/* A full database does not remove a member from the Service. */
static void test_full_database_stays_in_the_service(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    assert_string_equal(text_at(pod, "spec/containers/0/readinessProbe/httpGet/path"),
                        "/health?exclude=NOSPACE");
    fixture_done(&f);
}

/* The hash covers all fields whose change recreates pods, and nothing else. */
static void test_hash_covers_what_recreates_pods(void **state)
{
    static const struct {
        const char *spec;
        bool same;
    } cases[] = {
        {"{\"version\":\"3.5.16\"}", true},
        {"{\"version\":\"3.5.17\"}", true}, /* versions are handled separately */
        {"{\"version\":\"3.5.16\",\"size\":5}", true},
        {"{\"version\":\"3.5.16\",\"paused\":true}", true},
        {"{\"version\":\"3.5.16\",\"failover\":{\"unhealthySeconds\":100}}", true},
        {"{\"version\":\"3.5.16\",\"repository\":\"other/etcd\"}", false},
        {"{\"version\":\"3.5.16\",\"pod\":{\"labels\":{\"a\":\"b\"}}}", false},
        {"{\"version\":\"3.5.16\",\"pod\":{\"annotations\":{\"a\":\"b\"}}}", false},
        {"{\"version\":\"3.5.16\",\"pod\":{\"nodeSelector\":{\"a\":\"b\"}}}", false},
        {"{\"version\":\"3.5.16\",\"pod\":{\"etcdEnv\":[{\"name\":\"A\",\"value\":\"b\"}]}}",
         false},
        {"{\"version\":\"3.5.16\",\"options\":{\"snapshotCount\":5}}", false},
        {"{\"version\":\"3.5.16\",\"options\":{\"extraArgs\":{\"a\":\"b\"}}}", false},
        {"{\"version\":\"3.5.16\",\"pod\":{\"resources\":{\"requests\":{\"cpu\":\"1\"}}}}", false},
    };
    char first[40] = "", inputs[40] = "";
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f, cases[i].spec, "");
        ec_hash_template(f.e);
        if (i == 0) {
            (void)snprintf(first, sizeof(first), "%s", f.e->template_hash);
            (void)snprintf(inputs, sizeof(inputs), "%s", f.e->input_hash);
        }
        if (stw_streq(first, f.e->template_hash) != cases[i].same ||
            stw_streq(inputs, f.e->input_hash) != cases[i].same)
            fail_msg("%s", cases[i].spec);
        fixture_done(&f);
    }
}

/* A change of this value recreates every member of every EtcdCluster when steward is upgraded: is
 * it necessary? */
static void test_hash_outlives_an_upgrade(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    ec_hash_template(f.e);
    assert_string_equal(f.e->template_hash, "964346fe3d60782402f16538b14727d6");
    fixture_done(&f);
}

/* Another authority needs a new pod: etcd reads its CA bundle only when it starts. */
static void test_another_authority_recreates_pods(void **state)
{
    struct fixture f;
    char first[40], inputs[40];
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    ec_hash_template(f.e);
    (void)snprintf(first, sizeof(first), "%s", f.e->template_hash);
    (void)snprintf(inputs, sizeof(inputs), "%s", f.e->input_hash);
    (void)snprintf(f.e->tls.trust_hash, sizeof(f.e->tls.trust_hash), "abc");
    ec_hash_template(f.e);
    assert_string_not_equal(first, f.e->template_hash);
    assert_string_not_equal(inputs, f.e->input_hash);
    fixture_done(&f);
}

static void test_tls_arguments_need_client_certificates(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    f.e->tls.peer = f.e->tls.client = true;
    (void)snprintf(f.e->tls.peer_secret, sizeof(f.e->tls.peer_secret), "p");
    (void)snprintf(f.e->tls.server_secret, sizeof(f.e->tls.server_secret), "s");
    const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    assert_true(has_arg(pod, "--peer-client-cert-auth=true"));
    assert_true(has_arg(pod, "--client-cert-auth=true"));
    assert_true(has_arg(pod, "--listen-metrics-urls=http://0.0.0.0:2381"));
    assert_true(has_arg(pod, "--initial-advertise-peer-urls=https://db-a.db.shop.svc:2380"));
    assert_true(has_arg(pod, "--advertise-client-urls=https://db-a.db.shop.svc:2379"));
    assert_string_equal(text_at(pod, "spec/volumes/1/secret/secretName"), "p");
    assert_string_equal(text_at(pod, "spec/volumes/2/secret/secretName"), "s");
    assert_string_equal(text_at(pod, "spec/volumes/1/secret/items/1/key"), "peer.key");
    assert_string_equal(text_at(pod, "spec/volumes/1/secret/items/1/path"), "peer.key");

    f.e->tls.server_common = true; /* as cert-manager writes it: the same files */
    json_auto_t *other = pod_of(&f, &move);
    assert_string_equal(text_at(other, "spec/volumes/1/secret/items/2/key"), "peer-ca.crt");
    assert_string_equal(text_at(other, "spec/volumes/2/secret/items/0/key"), "tls.crt");
    assert_string_equal(text_at(other, "spec/volumes/2/secret/items/0/path"), "server.crt");
    assert_string_equal(text_at(other, "spec/volumes/2/secret/items/2/path"), "server-ca.crt");
    assert_true(json_equal(at(pod, "spec/containers/0/args"), at(other, "spec/containers/0/args")));
    assert_string_equal(note(pod, EC_INITIAL_CLUSTER), "db-a=https://db-a.db.shop.svc:2380");
    /* A Secret with other keys is a change of a user, not of a version of steward. */
    assert_string_not_equal(note(pod, EC_INPUTS), note(other, EC_INPUTS));
    assert_string_not_equal(note(pod, EC_HASH), note(other, EC_HASH));

    f.e->tls.own = true;
    f.e->tls.server_common = false;
    json_auto_t *own = pod_of(&f, &move);
    assert_null(at(own, "spec/volumes/1/secret/items"));
    fixture_done(&f);
}

/* --- the user's values take precedence; our labels cannot be overridden */

static void test_labels_of_steward_win(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(
        &f, "{\"version\":\"3.5.16\",\"pod\":{\"labels\":{\"team\":\"x\",\"app\":\"evil\"}}}", "");
    const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
    json_auto_t *pod = pod_of(&f, &move);
    assert_string_equal(text_at(pod, "metadata/labels/team"), "x");
    assert_string_equal(text_at(pod, "metadata/labels/app"), "etcd");
    assert_string_equal(text_at(pod, "metadata/labels/etcd_cluster"), "db");
    assert_string_equal(text_at(pod, "metadata/labels/etcd_node"), "db-a");
    fixture_done(&f);
}

/* What a given context does not say stays safe. */
static void test_security_context_stays_safe_where_nothing_is_said(void **state)
{
    static const struct {
        const char *given;
        bool not_root;
        const char *profile;
    } cases[] = {
        {"{\"runAsUser\":7}", true, "RuntimeDefault"},
        {"{\"runAsUser\":0}", false, "RuntimeDefault"},
        {"{\"runAsNonRoot\":false,\"seccompProfile\":{\"type\":\"Unconfined\"}}", false,
         "Unconfined"},
    };
    const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[512];
        stw_format(spec, sizeof(spec), "{\"version\":\"3.5.16\",\"pod\":{\"securityContext\":%s}}",
                   cases[i].given);
        fixture_init(&f, spec, "");
        json_auto_t *pod = pod_of(&f, &move);
        const json_t *context = at(pod, "spec/securityContext");
        assert_int_equal(json_is_true(json_object_get(context, "runAsNonRoot")), cases[i].not_root);
        assert_string_equal(text_at(context, "seccompProfile/type"), cases[i].profile);
        if (i == 0)
            assert_int_equal(json_integer_value(json_object_get(context, "runAsUser")), 7);
        fixture_done(&f);
    }
}

/* As the help of serviceAccountName says. */
static void test_token_is_mounted_only_of_an_account_that_is_named(void **state)
{
    static const struct {
        const char *spec, *name;
    } cases[] = {
        {"{\"version\":\"3.5.16\"}", NULL},
        {"{\"version\":\"3.5.16\",\"pod\":{\"serviceAccountName\":\"etcd\"}}", "etcd"},
    };
    const struct ec_move move = {.member = "db-a", .seed = true, .version = V3516};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f, cases[i].spec, "");
        json_auto_t *pod = pod_of(&f, &move);
        const json_t *mounted = at(pod, "spec/automountServiceAccountToken");
        assert_true(cases[i].name ? json_is_true(mounted) : json_is_false(mounted));
        if (cases[i].name)
            assert_string_equal(text_at(pod, "spec/serviceAccountName"), cases[i].name);
        else
            assert_null(at(pod, "spec/serviceAccountName"));
        fixture_done(&f);
    }
}

/* --- other objects */

static void test_claims_outlive_the_cluster(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\",\"storage\":{\"size\":\"3Gi\"}}", "");
    struct stw_error err = {0};
    f.e->spec.storage.medium = "Persistent";
    assert_int_equal(ec_latch_storage(f.e, &err), 0);
    assert_true(f.e->state.storage.durable);
    json_auto_t *kept = ec_claim_manifest(f.e, "db-a");
    assert_string_equal(text_at(kept, "spec/resources/requests/storage"), "3Gi");
    assert_null(at(kept, "metadata/ownerReferences"));
    assert_null(json_object_get(at(kept, "metadata/labels"), "app.kubernetes.io/instance"));
    assert_string_equal(text_at(kept, "metadata/labels/etcd_cluster"), "db");
    assert_string_equal(
        json_string_value(json_object_get(at(kept, "metadata/annotations"), EC_CLUSTER_UID)),
        "u-1");
    f.e->spec.volume_retention.when_deleted = "Delete";
    json_auto_t *gone = ec_claim_manifest(f.e, "db-a");
    assert_string_equal(text_at(gone, "metadata/ownerReferences/0/uid"), "u-1");
    fixture_done(&f);
}

/* A larger size is for new claims.  Pods are as before, and are not recreated for it. */
static void test_larger_size_is_for_new_claims(void **state)
{
    static const struct {
        const char *was, *spec, *size, *initial;
    } cases[] = {
        {"3Gi", "\"4Gi\"", "4Gi", "3Gi"},   {"3Gi", "4294967296", "4294967296", "3Gi"},
        {"", "\"9Gi\"", "9Gi", ""}, /* from before it was stored: the default */
        {"3Gi", "\"3072Mi\"", "3Gi", NULL}, {"3Gi", "\"2Gi\"", "3Gi", NULL},
        {"3Gi", "\"big\"", "3Gi", NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        struct stw_error err = {0};
        char spec[128], status[128], first[STW_HASH_LEN], inputs[STW_HASH_LEN];
        (void)snprintf(spec, sizeof(spec), "{\"version\":\"3.5.16\",\"storage\":{\"size\":%s}}",
                       cases[i].spec);
        (void)snprintf(status, sizeof(status),
                       "{\"storage\":{\"medium\":\"Persistent\",\"size\":\"%s\"}}", cases[i].was);
        fixture_init(&f, spec, status);
        ec_hash_template(f.e);
        memcpy(first, f.e->template_hash, sizeof(first));
        memcpy(inputs, f.e->input_hash, sizeof(inputs));
        assert_int_equal(ec_latch_storage(f.e, &err), 0);
        assert_string_equal(f.e->state.storage.size, cases[i].size);
        assert_int_equal(f.e->state.storage.grown, cases[i].initial != NULL);
        if (cases[i].initial)
            assert_string_equal(f.e->state.storage.initial_size, cases[i].initial);
        json_auto_t *claim = ec_claim_manifest(f.e, "db-a");
        assert_string_equal(text_at(claim, "spec/resources/requests/storage"),
                            *cases[i].size ? cases[i].size : "8Gi");
        ec_hash_template(f.e);
        assert_string_equal(f.e->template_hash, first);
        assert_string_equal(f.e->input_hash, inputs);
        json_auto_t *stored = json_object();
        struct ec_state again;
        ec_state_write(&f.e->state, stored);
        ec_state_read(stored, &again);
        assert_int_equal(again.storage.grown, f.e->state.storage.grown);
        assert_string_equal(again.storage.initial_size, f.e->state.storage.initial_size);
        fixture_done(&f);
    }
}

static void test_services_route_to_voters(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"version\":\"3.5.16\"}", "");
    json_auto_t *headless = ec_service_headless(f.e), *client = ec_service_client(f.e);
    assert_string_equal(text_at(headless, "metadata/name"), "db");
    assert_string_equal(text_at(headless, "spec/clusterIP"), "None");
    assert_true(json_is_true(at(headless, "spec/publishNotReadyAddresses")));
    assert_null(at(headless, "spec/selector/etcd_role"));
    assert_string_equal(text_at(client, "metadata/name"), "db-client");
    assert_string_equal(text_at(client, "spec/selector/etcd_role"), "voter");
    assert_int_equal(json_integer_value(at(client, "spec/ports/0/port")), 2379);
    fixture_done(&f);
}

/* The quorum of the voters plus the learners, regardless of spec.size. */
static void test_budget_keeps_the_quorum_of_voters(void **state)
{
    static const struct {
        int voters, learners, want;
    } cases[] = {{2, 0, 2}, {3, 0, 2}, {3, 1, 3}, {4, 0, 3}, {5, 0, 3}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f, "{\"version\":\"3.5.16\",\"size\":3}", "");
        for (int n = 0; n < cases[i].voters + cases[i].learners; n++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "db-%d", n);
            fixture_member(&f, name, (uint64_t)n + 1)->learner = n >= cases[i].voters;
        }
        json_auto_t *b = ec_budget(f.e, &stw_res_disruption_budget_v1);
        assert_int_equal(json_integer_value(at(b, "spec/minAvailable")), cases[i].want);
        fixture_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_liveness_waits_for_a_defragmentation),
        cmocka_unit_test(test_seed_begins_a_new_cluster),
        cmocka_unit_test(test_joining_member_knows_all_members),
        cmocka_unit_test(test_member_with_data_cannot_begin_a_new_cluster),
        cmocka_unit_test(test_survivor_starts_with_force_new_cluster),
        cmocka_unit_test(test_trimmed_log_ends_in_a_snapshot),
        cmocka_unit_test(test_arguments_keep_the_guards_of_etcd),
        cmocka_unit_test(test_arguments_are_those_of_the_version),
        cmocka_unit_test(test_liveness_does_not_depend_on_the_quorum),
        cmocka_unit_test(test_full_database_stays_in_the_service),
        cmocka_unit_test(test_hash_covers_what_recreates_pods),
        cmocka_unit_test(test_hash_outlives_an_upgrade),
        cmocka_unit_test(test_another_authority_recreates_pods),
        cmocka_unit_test(test_tls_arguments_need_client_certificates),
        cmocka_unit_test(test_labels_of_steward_win),
        cmocka_unit_test(test_security_context_stays_safe_where_nothing_is_said),
        cmocka_unit_test(test_token_is_mounted_only_of_an_account_that_is_named),
        cmocka_unit_test(test_claims_outlive_the_cluster),
        cmocka_unit_test(test_larger_size_is_for_new_claims),
        cmocka_unit_test(test_services_route_to_voters),
        cmocka_unit_test(test_budget_keeps_the_quorum_of_voters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
