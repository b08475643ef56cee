/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem that is reported for a pod, from the status that the kubelet and the scheduler
 * write. */
#include "kinds/common/pod_trouble.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define OF_WEB                                                                                     \
    "'name':'web-1','namespace':'shop','labels':{'pod-template-hash':'84ff888c79'},"               \
    "'ownerReferences':[{'apiVersion':'apps/"                                                      \
    "v1','kind':'ReplicaSet','name':'web-84ff888c79','uid':'u','controller':true}"                 \
    "]"
#define HEAD "{'metadata':{" OF_WEB "},'status':{"
#define PULLS                                                                                      \
    "'status':{'containerStatuses':[{'name':'app','state':{'waiting':{'reason':'ErrImagePull'}}}]" \
    "}"
#define POD(status) HEAD status "}}"
#define CONTAINER(members)                                                                         \
    POD("'phase':'Running','containerStatuses':[{'name':'app','image':'shop:1'," members "}]")
#define STATE(state) CONTAINER("'ready':false,'state':{" state "}")
#define WAITING(reason, message) STATE("'waiting':{'reason':'" reason "','message':'" message "'}")

static void with_quotes(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
}

/* "reason: message", with "?" before it if it may pass; "" if nothing is cached of the pod. */
static void read_pod(const char *pod, char *out, size_t size)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1 << 20);
    stw_autofree char *copy = strdup(pod);
    struct stw_error err = {0};
    struct stw_pod_trouble t;
    with_quotes(copy);
    if (stw_json_scan(&doc, copy, strlen(copy), &err) != 0)
        fail_msg("%s in %s", err.text, copy);
    stw_watch_pod_troubles.project(NULL, stw_json_root(&doc), &text);
    out[0] = '\0';
    if (text.len == 0)
        return;
    assert_int_equal(stw_pod_trouble_read(stw_buf_str(&text), text.len, &t), 0);
    assert_true(t.found);
    (void)snprintf(out, size, "%s%s: %s", t.passing ? "?" : "", t.reason, t.message);
}

static void test_pod_errors_are_classified(void **state)
{
    static const struct {
        const char *pod, *want;
    } cases[] = {
        /* healthy, or starting */
        {POD("'phase':'Pending'"), ""},
        {WAITING("ContainerCreating", ""), ""},
        {WAITING("PodInitializing", ""), ""},
        {CONTAINER("'ready':true,'state':{'running':{}}"), ""},
        {CONTAINER("'ready':true,'restartCount':3,'state':{'running':{}},'lastState':{"
                   "'terminated':{'exitCode':1}}"),
         ""},
        {CONTAINER("'ready':false,'state':{'running':{}}"),
         "?NotReady: container app of pod web-1 runs but is not ready"},
        /* images */
        {WAITING("ErrImagePull", "rpc error: long"),
         "ImagePullBackOff: container app of pod web-1: cannot pull image \"shop:1\""},
        {WAITING("ImagePullBackOff", "Back-off"),
         "ImagePullBackOff: container app of pod web-1: cannot pull image \"shop:1\""},
        {WAITING("InvalidImageName", "no"), "InvalidImageName: container app of pod web-1: no"},
        /* crashes: the same message whether it waits, runs for a moment or has just ended */
        {CONTAINER("'ready':false,'state':{'waiting':{'reason':'CrashLoopBackOff'}},"
                   "'lastState':{'terminated':{'exitCode':2,'reason':'Error'}}"),
         "CrashLoopBackOff: container app of pod web-1 ends again and again, with exit code 2"},
        {CONTAINER("'ready':false,'restartCount':1,'state':{'running':{}},'lastState':{"
                   "'terminated':{'exitCode':2,'reason':'Error'}}"),
         "CrashLoopBackOff: container app of pod web-1 ends again and again, with exit code 2"},
        {STATE("'terminated':{'exitCode':2,'reason':'Error'}"),
         "CrashLoopBackOff: container app of pod web-1 ends again and again, with exit code 2"},
        {STATE("'terminated':{'exitCode':0,'reason':'Completed'}"),
         "CrashLoopBackOff: container app of pod web-1 ends again and again, with exit code 0"},
        {CONTAINER("'ready':false,'state':{'waiting':{'reason':'CrashLoopBackOff'}},"
                   "'lastState':{'terminated':{'exitCode':137,'reason':'OOMKilled'}}"),
         "OOMKilled: container app of pod web-1 was killed because it used more memory than its "
         "limit"},
        {STATE("'terminated':{'exitCode':137,'reason':'OOMKilled'}"),
         "OOMKilled: container app of pod web-1 was killed because it used more memory than its "
         "limit"},
        /* configuration */
        {WAITING("CreateContainerConfigError", "secret \\\"db\\\" not found"),
         "SecretNotFound: container app of pod web-1: secret \"db\" not found"},
        {WAITING("CreateContainerConfigError", "couldn not x"),
         "CreateContainerConfigError: container app of pod web-1: couldn not x"},
        {WAITING("CreateContainerConfigError", "configmap \\\"x\\\" not found"),
         "CreateContainerConfigError: container app of pod web-1: configmap \"x\" not found"},
        {WAITING("RunContainerError", ""),
         "RunContainerError: container app of pod web-1: RunContainerError"},
        /* the scheduler */
        {POD("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
             "'Unschedulable','message':'0/3 nodes'}]"),
         "Unschedulable: pod web-1 cannot be scheduled: 0/3 nodes"},
        /* init containers, which other clients may add */
        {POD("'initContainerStatuses':[{'name':'init','state':{'terminated':{'exitCode':0}}}]"),
         ""},
        {POD("'initContainerStatuses':[{'name':'init','ready':false,'state':{'running':{}}}]"), ""},
        {POD("'initContainerStatuses':[{'name':'init','state':{'terminated':{'exitCode':1}}}],"
             "'containerStatuses':[{'name':'app','state':{'waiting':{'reason':"
             "'PodInitializing'}}}]"),
         "CrashLoopBackOff: container init of pod web-1 ends again and again, with exit code 1"},
        /* the first container that fails, rather than one which only starts */
        {POD("'containerStatuses':[{'name':'a','ready':false,'state':{'running':{}}},{'name':'b',"
             "'image':'x','state':{'waiting':{'reason':'ErrImagePull'}}},{'name':'c','state':{"
             "'waiting':{'reason':'RunContainerError'}}}]"),
         "ImagePullBackOff: container b of pod web-1: cannot pull image \"x\""},
        /* pods that are already being replaced */
        {POD("'phase':'Failed','reason':'Evicted','containerStatuses':[{'name':'app','state':{"
             "'terminated':{'exitCode':1}}}]"),
         ""},
        {"{'metadata':{" OF_WEB ",'deletionTimestamp':'x'}," PULLS "}", ""},
        /* of no Deployment */
        {"{'metadata':{'name':'web-1','namespace':'shop'}," PULLS "}", ""},
        {"{'metadata':{'name':'web-1','namespace':'shop','labels':{'pod-template-hash':'a'},"
         "'ownerReferences':[{'apiVersion':'apps/"
         "v1','kind':'ReplicaSet','name':'a','uid':'u','controller':true}]}," PULLS "}",
         ""},
        {"{'metadata':{'name':'web-1','namespace':'shop','labels':{'pod-template-hash':'a'},"
         "'ownerReferences':[{'apiVersion':'apps/"
         "v1','kind':'ReplicaSet','name':'web-b','uid':'u','controller':true}]}"
         "," PULLS "}",
         ""},
        {"{'metadata':{'name':'web-1','namespace':'shop','labels':{'pod-template-hash':'a'},"
         "'ownerReferences':[{'apiVersion':'other.example.org/"
         "v1','kind':'ReplicaSet','name':'web-a',"
         "'uid':'u','controller':true}]}," PULLS "}",
         ""},
        {"{'metadata':{'name':'web-1','namespace':'shop','labels':{'pod-template-hash':'a'},"
         "'ownerReferences':[{'apiVersion':'batch/"
         "v1','kind':'Job','name':'web-a','uid':'u','controller':true}]}," PULLS "}",
         ""},
        /* a status of unexpected shape */
        {POD("'containerStatuses':{'a':1},'conditions':'x'"), ""},
        {POD("'containerStatuses':[1,{'state':[]},{'state':{'waiting':7}}]"), ""},
    };
    char got[1024];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autofree char *want = strdup(cases[i].want);
        read_pod(cases[i].pod, got, sizeof(got));
        if (!stw_streq(got, want))
            fail_msg("case %zu: got <%s>\nwanted <%s>", i, got, want);
    }
}

/* The template of a pod, and its creation time. */
static void test_pod_template_hash_is_read(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1 << 20);
    struct stw_error err = {0};
    struct stw_pod_trouble t;
    char pod[] = "{'metadata':{" OF_WEB ",'creationTimestamp':'2026-01-01T00:00:00Z'}," PULLS "}";
    (void)state;
    with_quotes(pod);
    assert_int_equal(stw_json_scan(&doc, pod, strlen(pod), &err), 0);
    stw_watch_pod_troubles.project(NULL, stw_json_root(&doc), &text);
    assert_int_equal(stw_pod_trouble_read(stw_buf_str(&text), text.len, &t), 0);
    assert_string_equal(t.template, "84ff888c79");
    assert_string_equal(t.created, "2026-01-01T00:00:00Z");
}

static void test_pods_are_indexed_by_owner(void **state)
{
    static const char text[] = "{\"d\":\"shop/web\",\"r\":\"x\",\"m\":\"y\"}";
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(4096);
    (void)state;
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), 0);
    stw_watch_pod_troubles.index(NULL, stw_json_root(&doc), &keys);
    assert_string_equal(stw_buf_str(&keys), "deployment:shop/web\n");
}

/* Foreign messages are truncated, and stay valid UTF-8. */
static void test_long_pod_messages_are_truncated(void **state)
{
    stw_autobuf struct stw_buf pod = STW_BUF_INIT(1 << 20);
    char got[1024];
    (void)state;
    stw_buf_adds(&pod, HEAD "'containerStatuses':[{'name':'app','state':{'waiting':{'reason':'X',"
                            "'message':'a");
    for (int i = 0; i < 1000; i++)
        stw_buf_adds(&pod, "\xe2\x82\xac");
    stw_buf_adds(&pod, "'}}}]}}");
    read_pod(stw_buf_str(&pod), got, sizeof(got));
    assert_true(strlen(got) < 400);
    assert_non_null(strstr(got, "a\xe2\x82\xac"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pod_errors_are_classified),
        cmocka_unit_test(test_pod_template_hash_is_read),
        cmocka_unit_test(test_pods_are_indexed_by_owner),
        cmocka_unit_test(test_long_pod_messages_are_truncated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
