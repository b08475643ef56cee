/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LABELS                                                                                     \
    "'app.kubernetes.io/name':'myweb','app.kubernetes.io/instance':'web',"                         \
    "'app.kubernetes.io/component':'web','app.kubernetes.io/part-of':'web',"                       \
    "'app.kubernetes.io/managed-by':'steward','app.kubernetes.io/version':'1.25'"
#define SELECTOR "{'app.kubernetes.io/name':'myweb','app.kubernetes.io/instance':'web'}"
#define METADATA                                                                                   \
    "{'name':'web','namespace':'shop','labels':{" LABELS "},'ownerReferences':[{"                  \
    "'apiVersion':'operator.k8s-summit.org/v1','kind':'MyWeb','name':'web','uid':'u-1',"           \
    "'controller':true,'blockOwnerDeletion':true}]}"

/* JSON with ' for ", which reads better in C. */
static json_t *tree(const char *text)
{
    stw_autofree char *copy = strdup(text);
    json_error_t err;
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_t *t = json_loads(copy, 0, &err);
    if (!t)
        fail_msg("%s at %d in %s", err.text, err.position, copy);
    return t;
}

static void expect(json_t *got, const char *want_text)
{
    json_auto_t *own = got, *want = tree(want_text);
    assert_non_null(own);
    if (json_equal(own, want))
        return;
    stw_autofree char *a = json_dumps(own, JSON_INDENT(1) | JSON_SORT_KEYS);
    stw_autofree char *b = json_dumps(want, JSON_INDENT(1) | JSON_SORT_KEYS);
    fail_msg("got %s\nwanted %s", a, b);
}

#define SPEC "{\"image\":\"nginx:1.25\",\"pageContentHtml\":\"<h1>\\u20ac</h1>\"}"

static void test_configmap_has_the_page(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(fixture_init(&f, SPEC, ""), 0);
    expect(myweb_configmap(&f.web), "{'apiVersion':'v1','kind':'ConfigMap','metadata':" METADATA
                                    ",'data':{'index.html':'<h1>\xe2\x82\xac</h1>'}}");
    fixture_done(&f);
}

static void test_empty_page_is_an_empty_file(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(fixture_init(&f, "{\"image\":\"nginx:1.25\"}", ""), 0);
    expect(myweb_configmap(&f.web), "{'apiVersion':'v1','kind':'ConfigMap','metadata':" METADATA
                                    ",'data':{'index.html':''}}");
    fixture_done(&f);
}

static const json_t *pod_of(const json_t *deployment)
{
    return json_object_get(json_object_get(json_object_get(deployment, "spec"), "template"),
                           "spec");
}

/* Without files the hash is that of the page, as before there were files. */
static void test_configmap_has_the_files(void **state)
{
    struct fixture f;
    char page[STW_HASH_LEN], one[STW_HASH_LEN];
    (void)state;
    assert_int_equal(fixture_init(&f, "{\"image\":\"nginx:1.25\",\"pageContentHtml\":\"p\"}", ""),
                     0);
    stw_hash_format(stw_hash_bytes("p", 1), page);
    assert_string_equal(f.web.content_hash, page);
    fixture_done(&f);
    assert_int_equal(fixture_init(&f,
                                  "{\"image\":\"nginx:1.25\",\"pageContentHtml\":\"p\","
                                  "\"files\":{\"b.css\":\"b\",\"a.js\":\"a\"},"
                                  "\"imagePullPolicy\":\"Never\"}",
                                  ""),
                     0);
    expect(myweb_configmap(&f.web), "{'apiVersion':'v1','kind':'ConfigMap','metadata':" METADATA
                                    ",'data':{'index.html':'p','a.js':'a','b.css':'b'}}");
    json_auto_t *d = myweb_deployment(&f.web);
    const json_t *c = json_array_get(json_object_get(pod_of(d), "containers"), 0);
    assert_string_equal(json_string_value(json_object_get(c, "imagePullPolicy")), "Never");
    (void)snprintf(one, sizeof(one), "%s", f.web.content_hash);
    assert_string_not_equal(one, page);
    fixture_done(&f);
    /* the order does not matter */
    assert_int_equal(fixture_init(&f,
                                  "{\"image\":\"nginx:1.25\",\"pageContentHtml\":\"p\","
                                  "\"files\":{\"a.js\":\"a\",\"b.css\":\"b\"}}",
                                  ""),
                     0);
    assert_string_equal(f.web.content_hash, one);
    fixture_done(&f);
}

static void test_deployment_of_a_small_spec(void **state)
{
    struct fixture f;
    char want[4000];
    (void)state;
    assert_int_equal(fixture_init(&f, SPEC, ""), 0);
    (void)snprintf(
        want, sizeof(want),
        "{'apiVersion':'apps/v1','kind':'Deployment','metadata':" METADATA ",'spec':{'replicas':1,"
        "'revisionHistoryLimit':3,'selector':{'matchLabels':" SELECTOR "},'template':{'metadata':{"
        "'labels':{" LABELS ",'app':'web'},'annotations':{'steward.dev/content-hash':'%s'}},"
        "'spec':{'automountServiceAccountToken':false,'containers':[{'name':'web',"
        "'image':'nginx:1.25','ports':[{'name':'http','containerPort':80,'protocol':'TCP'}],"
        "'resources':{'requests':{'cpu':'10m','memory':'16Mi'}},'volumeMounts':[{'name':'page',"
        "'mountPath':'/usr/share/nginx/html','readOnly':true}],'readinessProbe':{'tcpSocket':{"
        "'port':80}}}],'volumes':[{'name':'page','configMap':{'name':'web'}}]}}}}",
        f.web.content_hash);
    expect(myweb_deployment(&f.web), want);
    fixture_done(&f);
}

static void test_deployment_has_what_the_spec_asks_for(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(
        fixture_init(&f,
                     "{\"image\":\"reg.example/x@sha256:"
                     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
                     "\"replicas\":7,\"containerPort\":8080,\"mountPath\":\"/srv\","
                     "\"contentUpdate\":\"Live\","
                     "\"resources\":{\"limits\":{\"cpu\":1,\"memory\":\"1024Mi\"},"
                     "\"requests\":{\"cpu\":\"1000m\"}},"
                     "\"imagePullSecrets\":[{\"name\":\"a\"}],"
                     "\"securityContext\":{\"runAsUser\":1,\"privileged\":null}}",
                     ""),
        0);
    json_auto_t *d = myweb_deployment(&f.web);
    const json_t *spec = json_object_get(d, "spec");
    const json_t *c = json_array_get(json_object_get(pod_of(d), "containers"), 0);
    assert_int_equal(json_integer_value(json_object_get(spec, "replicas")), 7);
    expect(json_incref(json_object_get(c, "resources")),
           "{'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'1'}}");
    expect(json_incref(json_object_get(c, "securityContext")), "{'runAsUser':1}");
    expect(json_incref(json_object_get(c, "readinessProbe")), "{'tcpSocket':{'port':8080}}");
    expect(json_incref(json_object_get(pod_of(d), "imagePullSecrets")), "[{'name':'a'}]");
    /* Live: no annotation, so that another page causes no rollout; and a digest is not a version */
    const json_t *pod_metadata = json_object_get(json_object_get(spec, "template"), "metadata");
    assert_null(json_object_get(pod_metadata, "annotations"));
    assert_null(
        json_object_get(json_object_get(pod_metadata, "labels"), "app.kubernetes.io/version"));
    fixture_done(&f);
}

static void test_service_has_the_node_port(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(fixture_init(&f, "{\"image\":\"nginx:1.25\",\"containerPort\":81}", ""), 0);
    expect(myweb_service(&f.web),
           "{'apiVersion':'v1','kind':'Service','metadata':" METADATA
           ",'spec':{'type':'NodePort','selector':" SELECTOR
           ",'ports':[{'name':'http','port':80,'protocol':'TCP','targetPort':81}]}}");
    f.web.service_port = 30100;
    expect(myweb_service(&f.web),
           "{'apiVersion':'v1','kind':'Service','metadata':" METADATA
           ",'spec':{'type':'NodePort','selector':" SELECTOR
           ",'ports':[{'name':'http','port':80,'protocol':'TCP','targetPort':81,"
           "'nodePort':30100}]}}");
    fixture_done(&f);
}

static void test_service_without_a_node_port_and_its_ingress(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(fixture_init(&f,
                                  "{\"image\":\"nginx:1.25\",\"serviceType\":\"ClusterIP\","
                                  "\"ingress\":{\"host\":\"a.example.com\",\"className\":\"nginx\","
                                  "\"tls\":{\"secretName\":\"cert\"}}}",
                                  ""),
                     0);
    f.web.service_port = 30100;
    expect(myweb_service(&f.web),
           "{'apiVersion':'v1','kind':'Service','metadata':" METADATA
           ",'spec':{'type':'ClusterIP','selector':" SELECTOR
           ",'ports':[{'name':'http','port':80,'protocol':'TCP','targetPort':80}]}}");
    expect(myweb_ingress(&f.web),
           "{'apiVersion':'networking.k8s.io/v1','kind':'Ingress','metadata':" METADATA
           ",'spec':{'rules':[{'host':'a.example.com','http':{'paths':[{'path':'/',"
           "'pathType':'Prefix','backend':{'service':{'name':'web','port':{'name':'http'}}}}]}}],"
           "'ingressClassName':'nginx','tls':[{'hosts':['a.example.com'],'secretName':'cert'}]}}");
    fixture_done(&f);
}

/* Two MyWebs must never select each other's pods. */
static void test_selectors_of_two_mywebs_differ(void **state)
{
    struct fixture f;
    (void)state;
    assert_int_equal(fixture_init(&f, SPEC, ""), 0);
    json_auto_t *a = myweb_service(&f.web);
    f.web.owner.name = "other";
    json_auto_t *b = myweb_service(&f.web);
    assert_false(json_equal(json_object_get(json_object_get(a, "spec"), "selector"),
                            json_object_get(json_object_get(b, "spec"), "selector")));
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configmap_has_the_page),
        cmocka_unit_test(test_service_without_a_node_port_and_its_ingress),
        cmocka_unit_test(test_empty_page_is_an_empty_file),
        cmocka_unit_test(test_configmap_has_the_files),
        cmocka_unit_test(test_deployment_of_a_small_spec),
        cmocka_unit_test(test_deployment_has_what_the_spec_asks_for),
        cmocka_unit_test(test_service_has_the_node_port),
        cmocka_unit_test(test_selectors_of_two_mywebs_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
