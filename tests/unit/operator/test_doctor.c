/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `steward doctor` that need no cluster: differences between CRDs, NetworkPolicies
 * that block the webhook, the endpoints of the Service as newer and older servers report them (on
 * the scripted server), and the report. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "fake.h"
#include "operator/command.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct stw_operator own = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward", .version = "0"};

/* JSON with ' for ". */
static void scan(const char *text, struct stw_buf *json, struct stw_json_doc *doc)
{
    struct stw_error err = {0};
    *json = STW_BUF_INIT(4096);
    for (const char *p = text; *p; p++)
        stw_buf_addc(json, *p == '\'' ? '"' : *p);
    if (stw_json_scan(doc, stw_buf_str(json), json->len, &err) != 0)
        fail_msg("%s: %s", text, err.text);
}

static void test_crd_differences_are_found(void **state)
{
    static const struct {
        const char *ours, *theirs, *path; /* NULL: no difference */
    } rows[] = {
        {"{'a':1}", "{'a':1}", NULL},
        {"{'a':{'b':[1,{'c':true}]}}", "{'a':{'b':[1,{'c':true}]}}", NULL},
        {"{'a':1}", "{'a':1,'added':'by the server'}", NULL},
        {"{'a':1}", "{'a':2}", "a"},
        {"{'a':1}", "{}", "a"},
        {"{'a':{'b':[1,{'c':true}]}}", "{'a':{'b':[1,{'c':false}]}}", "a.b[1].c"},
        {"{'a':[1]}", "{'a':[1,2]}", "a"},
        {"{'a':[1]}", "{'a':{}}", "a"},
        {"{'a':{}}", "{'a':[]}", "a"},
        {"{'properties':{'x':{'type':'string'}}}",
         "{'properties':{'x':{'type':'string','nullable':true}}}", NULL},
        {"{'properties':{'x':{}}}", "{'properties':{'x':{},'newer':{}}}", "properties"},
        {"{'properties':{'x':{},'newer':{}}}", "{'properties':{'x':{}}}", "properties"},
        {"{'properties':{'x':{}}}", "{}", "properties"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf a, b, path = STW_BUF_INIT(4096);
        stw_autojson struct stw_json_doc ours = {0}, theirs = {0};
        scan(rows[i].ours, &a, &ours);
        scan(rows[i].theirs, &b, &theirs);
        bool same = doctor_covers(stw_json_root(&ours), stw_json_root(&theirs), &path);
        if (same != !rows[i].path)
            fail_msg("%s and %s", rows[i].ours, rows[i].theirs);
        if (!same) {
            char got[256];
            (void)snprintf(got, sizeof(got), "%.*s", (int)path.len, stw_buf_str(&path));
            assert_string_equal(got, rows[i].path);
        }
    }
}

#define POLICY(types, rules)                                                                       \
    "{'spec':{'podSelector':{'matchLabels':{'app':'steward'}}" types ",'ingress':" rules "}}"

static void test_network_policies_are_evaluated(void **state)
{
    static const struct {
        const char *policy;
        bool selects, admits;
    } rows[] = {
        {POLICY("", "[]"), true, false},
        {POLICY(",'policyTypes':['Egress']", "[]"), false, false},
        {POLICY(",'policyTypes':['Egress','Ingress']", "[{}]"), true, true},
        {POLICY("", "[{'ports':[{'port':9443}]}]"), true, true},
        {POLICY("", "[{'ports':[{'port':'webhook','protocol':'TCP'}]}]"), true, true},
        {POLICY("", "[{'ports':[{'port':'webhook','protocol':'UDP'}]}]"), true, false},
        {POLICY("", "[{'ports':[{'port':8443},{'port':9000,'endPort':9500}]}]"), true, true},
        {POLICY("", "[{'ports':[{'port':8443},{'port':9000,'endPort':9442}]}]"), true, false},
        {POLICY("", "[{'ports':[{'protocol':'TCP'}]}]"), true, true},
        {POLICY("", "[{'ports':[{'port':443}]}]"), true, false},
        {POLICY("", "[{'from':[{'ipBlock':{'cidr':'10.0.0.0/8'}}]}]"), true, true},
        {POLICY("", "[{'from':[{'namespaceSelector':{}}]}]"), true, false},
        {POLICY("", "[{'from':[{'namespaceSelector':{}}]},{'ports':[{'port':9443}]}]"), true, true},
        {"{'spec':{'podSelector':{}}}", true, false},
        {"{'spec':{'podSelector':{'matchLabels':{'app':'other'}},'ingress':[{}]}}", false, true},
        {"{'spec':{'podSelector':{'matchLabels':{'app':'steward','b':'c'}}}}", false, false},
    };
    stw_autobuf struct stw_buf text;
    stw_autojson struct stw_json_doc labels = {0};
    (void)state;
    scan("{'app':'steward','control-plane':'controller-manager'}", &text, &labels);
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf json;
        stw_autojson struct stw_json_doc doc = {0};
        scan(rows[i].policy, &json, &doc);
        struct stw_json policy = stw_json_root(&doc);
        if (doctor_policy_selects(policy, stw_json_root(&labels)) != rows[i].selects ||
            doctor_policy_admits(policy, "webhook", 9443) != rows[i].admits)
            fail_msg("%s", rows[i].policy);
    }
}

#define SERVICE "{'match':'GET /api/v1/namespaces/sys/services/svc$','body':{}},"
#define SLICES                                                                                     \
    "'match':'GET /apis/discovery.k8s.io/v1/namespaces/sys/endpointslices[?]limit=[0-9]+&"         \
    "labelSelector=kubernetes.io%2Fservice-name%3Dsvc"
#define ENDPOINTS "'match':'GET /api/v1/namespaces/sys/endpoints/svc$'"

static void service(const char *steps, const char *said)
{
    char out[1024] = "";
    struct doctor d = {.op = &own, .ns = "sys", .service = "svc", .service_ns = "sys"};
    d.remote = (struct stw_remote){.op = &own, .client = fake.client, .timeout_ms = 60000};
    d.report.op = &own;
    d.report.out = fmemopen(out, sizeof(out) - 1, "w");
    assert_non_null(d.report.out);
    fake_steps(&fake, steps);
    doctor_service(&d);
    doctor_refused(&d);
    (void)fclose(d.report.out);
    if (strncmp(out, said, strlen(said)) != 0)
        fail_msg("\"%s\", not \"%s\"", out, said);
    assert_int_equal(d.report.unchecked, strstr(said, "not checked") ? 1 : 0);
}

static void test_service_endpoints_are_checked(void **state)
{
    static const struct {
        const char *steps, *said;
    } rows[] = {
        /* Kubernetes 1.21 and later; a missing `ready` means true */
        {"[" SERVICE "{" SLICES "$','body':{'metadata':{'continue':'n'},'items':[{'endpoints':["
         "{'addresses':['10.0.0.1'],'conditions':{'ready':true}},"
         "{'addresses':['10.0.0.2'],'conditions':{'ready':false}},"
         "{'addresses':[],'conditions':{'ready':true}}]}]}},"
         "{" SLICES "&continue=n$','body':{'items':["
         "{'endpoints':[{'addresses':['10.0.0.3','10.0.0.4'],'conditions':{}}]},"
         "{'endpoints':null}]}}]",
         "ok    Service: 2 ready pods of sys/svc\n"},
        /* a dual-stack Service has a slice for each family */
        {"[" SERVICE "{" SLICES "','body':{'items':["
         "{'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1']}]},"
         "{'addressType':'IPv6','endpoints':[{'addresses':['fd00::1']},"
         "{'addresses':['fd00::2']}]}]}}]",
         "ok    Service: 2 ready pods of sys/svc\n"},
        {"[" SERVICE "{" SLICES "','body':{'items':[]}}]",
         "FAIL  Service: no pod of sys/svc is ready: "},
        {"[" SERVICE "{" SLICES "','status':403,'body':{'kind':'Status','code':403,"
         "'reason':'Forbidden','message':'not yours'}}]",
         "warn  not checked: this account may not read endpoints; the first refusal: not yours\n"},
        /* older servers do not have this API group */
        {"[" SERVICE "{" ENDPOINTS ",'body':{'subsets':[{'addresses':[{'ip':'10.0.0.1'}],"
         "'notReadyAddresses':[{'ip':'10.0.0.2'}]},{'addresses':[{'ip':'10.0.0.3'}]}]}}]",
         "ok    Service: 2 ready pods of sys/svc\n"},
        {"[" SERVICE "{" ENDPOINTS ",'status':404}]",
         "FAIL  Service: no pod of sys/svc is ready: "},
        {"[]", "FAIL  Service: sys/svc, which the webhooks name, is not there\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++)
        service(rows[i].steps, rows[i].said);
    /* where the server has EndpointSlices, Endpoints are not read */
    assert_int_equal(fake_count(&fake, "/endpoints/"), 2);
}

static void test_missing_server_features_are_listed(void **state)
{
    static const struct {
        int minor;
        const char *has, *not ;
    } rows[] = {{20, "policy/v1 (", "has all"},
                {22, "autoscaling/v2 (autoscalers are of autoscaling/v2beta2)", "policy"},
                {29, "the server lacks matchConditions", "; "},
                {37, "the server has all that", "lacks"}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char out[4096] = "";
        struct stw_checkup c = {.op = &own, .out = fmemopen(out, sizeof(out) - 1, "w")};
        assert_non_null(c.out);
        stw_checkup_begin(&c);
        doctor_features(&c, rows[i].minor);
        (void)stw_checkup_end(&c);
        (void)fclose(c.out);
        assert_non_null(strstr(out, rows[i].has));
        assert_null(strstr(out, rows[i].not ));
    }
}

static void report(bool json, unsigned unchecked, char *out, size_t size, int want)
{
    struct stw_checkup c = {.op = &own, .json = json};
    (void)memset(out, 0, size);
    c.out = fmemopen(out, size - 1, "w");
    assert_non_null(c.out);
    stw_checkup_begin(&c);
    stw_checkup_add(&c, STW_CHECK_OK, "clock", NULL, "it is %d s off", 1);
    stw_checkup_add(&c, STW_CHECK_WARN, "CRD", "do \"this\"", "an old one");
    c.unchecked = unchecked;
    if (want == STW_EXIT_REFUSED)
        stw_checkup_add(&c, STW_CHECK_FAIL, "leader", NULL, "nobody");
    assert_int_equal(stw_checkup_end(&c), want);
    (void)fclose(c.out);
}

static void test_doctor_reports_are_formatted(void **state)
{
    char out[1024];
    (void)state;
    report(false, 3, out, sizeof(out), STW_EXIT_REFUSED);
    assert_string_equal(out, "ok    clock: it is 1 s off\n"
                             "warn  CRD: an old one\n      -> do \"this\"\n"
                             "FAIL  leader: nobody\n"
                             "1 ok, 1 to look at, 1 failed, 3 not checked\n");
    report(false, 3, out, sizeof(out), STW_EXIT_USAGE);
    assert_non_null(strstr(out, "1 ok, 1 to look at, 0 failed, 3 not checked\n"));
    report(true, 0, out, sizeof(out), STW_EXIT_OK);
    assert_string_equal(
        out, "{\"checks\": [\n"
             "  {\"check\": \"clock\", \"verdict\": \"ok\", \"seen\": \"it is 1 s off\"},\n"
             "  {\"check\": \"CRD\", \"verdict\": \"warn\", \"seen\": \"an old one\", "
             "\"advice\": \"do \\\"this\\\"\"}\n"
             "], \"summary\": {\"ok\": 1, \"warn\": 1, \"fail\": 0, \"unchecked\": 0}}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crd_differences_are_found),
        cmocka_unit_test(test_network_policies_are_evaluated),
        cmocka_unit_test_setup_teardown(test_service_endpoints_are_checked, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test(test_missing_server_features_are_listed),
        cmocka_unit_test(test_doctor_reports_are_formatted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
