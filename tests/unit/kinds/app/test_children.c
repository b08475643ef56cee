/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "kinds/app/deployment.h"
#include "kinds/app/replicas.h"

#include "base/util.h"
#include "kube/tree.h"

#define LABELS                                                                                     \
    "'app.kubernetes.io/name':'app','app.kubernetes.io/instance':'web',"                           \
    "'app.kubernetes.io/component':'app','app.kubernetes.io/part-of':'web',"                       \
    "'app.kubernetes.io/managed-by':'steward','app.kubernetes.io/version':'1.4','app':'web'"
#define SELECTOR "{'app.kubernetes.io/name':'app','app.kubernetes.io/instance':'web'}"
#define METADATA(name, more)                                                                       \
    "'metadata':{'name':'" name "','namespace':'shop','labels':{" LABELS                           \
    "},'ownerReferences':[{'apiVersion':'mycompany.com/v1','kind':'App','name':'web',"             \
    "'uid':'u-1','controller':true,'blockOwnerDeletion':true}]" more "}"

#define RESTRICTED                                                                                 \
    "'allowPrivilegeEscalation':false,'capabilities':{'drop':['ALL']},"                            \
    "'seccompProfile':{'type':'RuntimeDefault'}"

/* JSON with ' for ", which reads better in C. */
static void expect(const json_t *got, const char *want_text)
{
    stw_autofree char *copy = strdup(want_text);
    json_error_t err;
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_auto_t *want = json_loads(copy, 0, &err);
    if (!want)
        fail_msg("%s at %d in %s", err.text, err.position, copy);
    assert_non_null(got);
    if (json_equal(got, want))
        return;
    stw_autofree char *a = json_dumps(got, JSON_INDENT(1) | JSON_SORT_KEYS);
    stw_autofree char *b = json_dumps(want, JSON_INDENT(1) | JSON_SORT_KEYS);
    fail_msg("got %s\nwanted %s", a, b);
}

/* "spec.template.spec"; numbers step into arrays. */
static const json_t *at(const json_t *tree, const char *path)
{
    while (*path) {
        char part[64];
        size_t len = strcspn(path, ".");
        (void)snprintf(part, sizeof(part), "%.*s", (int)len, path);
        tree = json_is_array(tree) ? json_array_get(tree, (size_t)(part[0] - '0'))
                                   : json_object_get(tree, part);
        path += len + (path[len] == '.');
    }
    return tree;
}

#define CONTAINER "spec.template.spec.containers.0"

static void test_configmap_has_the_configuration(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f,
                 "{\"image\":\"shop:1.4\",\"config\":{\"databaseUrl\":\"a://b\",\"logLevel\":"
                 "\"warn\",\"environment\":{\"A\":\"\\u20ac\"}}}",
                 "");
    json_auto_t *c = app_configmap(&f.app);
    expect(c, "{'apiVersion':'v1','kind':'ConfigMap'," METADATA(
                  "web-config",
                  "") ",'data':{'A':'\xe2\x82\xac','LOG_LEVEL':'warn','DATABASE_URL':'a://b'}}");
    fixture_done(&f);
}

/* The hash depends on the content of the ConfigMap, and on nothing else. */
static void test_configuration_hash_depends_on_the_content_alone(void **state)
{
    static const struct {
        const char *config;
        bool same;
    } cases[] = {
        {"{\"environment\":{\"A\":\"1\",\"B\":\"2\"}}", true},
        {"{\"environment\":{\"B\":\"2\",\"A\":\"1\"},\"logLevel\":\"info\"}", true},
        {"{\"environment\":{\"A\":\"2\",\"B\":\"1\"}}", false},
        {"{\"environment\":{\"A\":\"1\",\"B\":\"2\"},\"logLevel\":\"warn\"}", false},
        {"{\"environment\":{\"A\":\"1\",\"B\":\"2\"},\"databaseUrl\":\"a://b\"}", false},
        {"{\"environment\":{\"A\":\"1\"}}", false},
    };
    char first[33] = "";
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "{\"image\":\"a:%zu\",\"config\":%s}", i,
                       cases[i].config);
        fixture_init(&f, spec, "");
        if (i == 0)
            memcpy(first, f.app.config_hash, sizeof(first));
        assert_int_equal(stw_streq(first, f.app.config_hash), cases[i].same);
        fixture_done(&f);
    }
}

static void test_deployment_of_a_small_spec(void **state)
{
    struct fixture f;
    char want[4000];
    (void)state;
    fixture_init(&f, "{\"image\":\"shop:1.4\",\"replicas\":2}", "");
    json_auto_t *d = app_deployment(&f.app);
    (void)snprintf(
        want, sizeof(want),
        "{'apiVersion':'apps/v1','kind':'Deployment'," METADATA(
            "web",
            "") ",'spec':{'replicas':2,'progressDeadlineSeconds':600,'selector':{'matchLabels'"
                ":" SELECTOR
                "},'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':'25%%',"
                "'maxUnavailable':0}},'template':{'metadata':{'labels':{" LABELS
                "},'annotations':{'mycompany.com/config-hash':'%s'}},'spec':{"
                "'automountServiceAccountToken':false,'terminationGracePeriodSeconds':30,"
                "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'kubernetes.io/hostname',"
                "'whenUnsatisfiable':'ScheduleAnyway','labelSelector':{'matchLabels':" SELECTOR
                "}},{'maxSkew':1,'topologyKey':'topology.kubernetes.io/zone','whenUnsatisfiable':"
                "'ScheduleAnyway','labelSelector':{'matchLabels':" SELECTOR "}}],"
                "'containers':[{'name':'app','image':'shop:1.4','env':[{'name':'PORT','value':'"
                "8080'}],"
                "'envFrom':[{'configMapRef':{'name':'web-config'}}],'ports':[{'name':'http',"
                "'containerPort':8080,'protocol':'TCP'}],'securityContext':{'seccompProfile':{"
                "'type':'RuntimeDefault'}}}]}}}}",
        f.app.config_hash);
    expect(d, want);
    fixture_done(&f);
}

static void test_deployment_has_what_the_spec_asks_for(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(
        &f,
        "{\"image\":\"shop:1.4\",\"port\":9000,\"serviceAccountName\":\"shop\","
        "\"resources\":{\"limits\":{\"cpu\":1,\"memory\":\"1024Mi\"}},"
        "\"imagePullSecrets\":[{\"name\":\"a\"}],\"tolerations\":[{\"key\":\"k\"}],"
        "\"affinity\":{\"nodeAffinity\":{\"a\":1,\"b\":null}},\"topologySpreadConstraints\":[],"
        "\"terminationGracePeriodSeconds\":5,"
        "\"securityContext\":{\"runAsNonRoot\":false,\"runAsUser\":0},"
        "\"strategy\":{\"maxSurge\":1.0,\"maxUnavailable\":\"10%\",\"progressDeadlineSeconds\":9},"
        "\"config\":{\"databaseUrlSecretRef\":{\"name\":\"db\",\"key\":\"url\"}},"
        "\"env\":[{\"name\":\"N\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"spec.nodeName\"}}},"
        "{\"name\":\"R\",\"valueFrom\":{\"resourceFieldRef\":{\"resource\":\"limits.cpu\"}}}],"
        "\"healthCheck\":{\"path\":\"/up\",\"port\":9001,\"initialDelaySeconds\":2,"
        "\"timeoutSeconds\":3,\"liveness\":true}}",
        "");
    json_auto_t *d = app_deployment(&f.app);
    const json_t *pod = at(d, "spec.template.spec"), *c = at(d, CONTAINER);
    static const char probe[] =
        "{'httpGet':{'path':'/up','port':9001,'scheme':'HTTP'},'initialDelaySeconds':2,"
        "'periodSeconds':10,'timeoutSeconds':3,'failureThreshold':3,'successThreshold':1}";
    assert_true(json_is_true(at(pod, "automountServiceAccountToken")));
    assert_string_equal(json_string_value(at(pod, "serviceAccountName")), "shop");
    assert_int_equal(json_integer_value(at(pod, "terminationGracePeriodSeconds")), 5);
    assert_null(at(pod, "topologySpreadConstraints"));
    expect(at(pod, "imagePullSecrets"), "[{'name':'a'}]");
    expect(at(pod, "tolerations"), "[{'key':'k'}]");
    expect(at(pod, "affinity"), "{'nodeAffinity':{'a':1}}");
    expect(at(c, "resources"), "{'limits':{'cpu':'1','memory':'1Gi'}}");
    expect(at(c, "securityContext"),
           "{'seccompProfile':{'type':'RuntimeDefault'},'runAsNonRoot':false,'runAsUser':0}");
    expect(at(c, "readinessProbe"), probe);
    expect(at(c, "livenessProbe"), probe);
    expect(at(c, "env"),
           "[{'name':'PORT','value':'9000'},{'name':'DATABASE_URL','valueFrom':{'secretKeyRef':{"
           "'name':'db','key':'url'}}},{'name':'N','valueFrom':{'fieldRef':{'apiVersion':'v1',"
           "'fieldPath':'spec.nodeName'}}},{'name':'R','valueFrom':{'resourceFieldRef':{"
           "'resource':'limits.cpu','divisor':'0'}}}]");
    expect(at(d, "spec.strategy.rollingUpdate"), "{'maxSurge':1,'maxUnavailable':'10%'}");
    assert_int_equal(json_integer_value(at(d, "spec.progressDeadlineSeconds")), 9);
    fixture_done(&f);
}

/* What the podTemplate has is merged over what steward builds. */
static void test_pod_template_is_merged_over_the_deployment(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(
        &f,
        "{\"image\":\"shop:1.4\",\"podTemplate\":{\"metadata\":{\"labels\":{\"team\":\"a\"},"
        "\"annotations\":{\"x/y\":\"z\"}},\"spec\":{\"nodeSelector\":{\"disk\":\"ssd\"},"
        "\"priorityClassName\":\"high\",\"hostNetwork\":null,"
        "\"volumes\":[{\"name\":\"v\",\"configMap\":{\"name\":\"c\"}},{\"name\":\"e\","
        "\"emptyDir\":{}}],"
        "\"initContainers\":[{\"name\":\"init\",\"image\":\"i:1\"}],"
        "\"containers\":[{\"name\":\"side\",\"image\":\"s:1\",\"ports\":[{\"containerPort\":53},{"
        "\"containerPort\":53,\"protocol\":\"UDP\"}],\"securityContext\":{\"runAsUser\":7},"
        "\"resources\":{\"limits\":{\"memory\":\"1024Mi\"}}},"
        "{\"name\":\"app\",\"command\":[\"/shop\"],\"args\":[\"-v\"],"
        "\"imagePullPolicy\":\"Always\",\"envFrom\":[{\"secretRef\":{\"name\":\"s\"}}],"
        "\"ports\":[{\"name\":\"admin\",\"containerPort\":9090}],"
        "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}],"
        "\"startupProbe\":{\"httpGet\":{\"path\":\"/\",\"port\":8080}}}]}}}",
        "");
    f.app.restricted = true;
    json_auto_t *d = app_deployment(&f.app);
    const json_t *template = at(d, "spec.template"), *pod = at(d, "spec.template.spec");
    const json_t *c = at(d, CONTAINER);
    assert_string_equal(json_string_value(at(template, "metadata.labels.team")), "a");
    assert_string_equal(json_string_value(at(template, "metadata.labels.app")), "web");
    assert_int_equal(json_object_size(at(template, "metadata.annotations")), 2);
    expect(at(pod, "nodeSelector"), "{'disk':'ssd'}");
    assert_string_equal(json_string_value(at(pod, "priorityClassName")), "high");
    assert_null(at(pod, "hostNetwork"));
    assert_int_equal(json_integer_value(at(pod, "terminationGracePeriodSeconds")), 30);
    expect(at(pod, "volumes"), "[{'name':'v','configMap':{'name':'c','defaultMode':420}},{'name':"
                               "'e','emptyDir':{}}]");
    assert_int_equal(json_array_size(at(pod, "containers")), 2);
    assert_string_equal(json_string_value(at(c, "image")), "shop:1.4");
    expect(at(c, "command"), "['/shop']");
    expect(at(c, "args"), "['-v']");
    assert_string_equal(json_string_value(at(c, "imagePullPolicy")), "Always");
    expect(at(c, "envFrom"), "[{'configMapRef':{'name':'web-config'}},{'secretRef':{'name':'s'}}]");
    expect(at(c, "ports"), "[{'name':'http','containerPort':8080,'protocol':'TCP'},{'name':'admin',"
                           "'containerPort':9090,'protocol':'TCP'}]");
    expect(at(c, "volumeMounts"), "[{'name':'v','mountPath':'/v'}]");
    expect(at(c, "startupProbe"), "{'httpGet':{'path':'/','port':8080,'scheme':'HTTP'}}");
    expect(at(c, "securityContext"), "{" RESTRICTED ",'runAsNonRoot':true}");
    /* Other containers get the security profile too. */
    expect(at(pod, "initContainers"), "[{'name':'init','image':'i:1','securityContext':{" RESTRICTED
                                      ",'runAsNonRoot':true}}]");
    expect(at(pod, "containers.1"),
           "{'name':'side','image':'s:1','ports':[{'containerPort':53,'protocol':'TCP'},{"
           "'containerPort':53,'protocol':'UDP'}],'resources':{'limits':{'memory':'1Gi'}},"
           "'securityContext':{" RESTRICTED ",'runAsNonRoot':true,'runAsUser':7}}");
    fixture_done(&f);
}

/* An empty podTemplate changes nothing. */
static void test_empty_pod_template_changes_nothing(void **state)
{
    struct fixture f, g;
    (void)state;
    fixture_init(&f, "{\"image\":\"shop:1.4\"}", "");
    fixture_init(&g,
                 "{\"image\":\"shop:1.4\",\"podTemplate\":{\"metadata\":{},\"spec\":{"
                 "\"containers\":[{\"name\":\"app\"}]}}}",
                 "");
    json_auto_t *d = app_deployment(&f.app), *e = app_deployment(&g.app);
    assert_true(json_equal(d, e));
    fixture_done(&f);
    fixture_done(&g);
}

static void test_deployment_has_the_strategy_of_the_spec(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f,
                 "{\"image\":\"shop:1.4\",\"strategy\":{\"type\":\"Recreate\",\"maxSurge\":2,"
                 "\"minReadySeconds\":5,\"revisionHistoryLimit\":0}}",
                 "");
    json_auto_t *d = app_deployment(&f.app);
    expect(at(d, "spec.strategy"), "{'type':'Recreate'}");
    assert_int_equal(json_integer_value(at(d, "spec.minReadySeconds")), 5);
    assert_int_equal(json_integer_value(at(d, "spec.revisionHistoryLimit")), 0);
    assert_true(json_is_integer(at(d, "spec.revisionHistoryLimit")));
    assert_int_equal(app_max_unavailable(&f.app.spec, 4), 4);
    fixture_done(&f);
}

/* A user's constraint without a labelSelector applies to our pods. */
static void test_spread_constraint_without_selector_is_for_our_pods(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f,
                 "{\"image\":\"shop:1.4\",\"topologySpreadConstraints\":[{\"maxSkew\":2},{"
                 "\"maxSkew\":3,\"labelSelector\":{\"x\":1}}]}",
                 "");
    json_auto_t *d = app_deployment(&f.app);
    expect(at(d, "spec.template.spec.topologySpreadConstraints"),
           "[{'maxSkew':2,'labelSelector':{'matchLabels':" SELECTOR
           "}},{'maxSkew':3,'labelSelector':{'x':1}}]");
    fixture_done(&f);
}

/* The options of the profile apply where the spec says nothing. */
static void test_security_profile_applies_where_the_spec_says_nothing(void **state)
{
    static const struct {
        bool restricted;
        const char *context, *want;
    } cases[] = {
        {false, "{}", "{'seccompProfile':{'type':'RuntimeDefault'}}"},
        {true, "{}", "{" RESTRICTED ",'runAsNonRoot':true}"},
        {true, "{\"runAsNonRoot\":false,\"runAsUser\":0}",
         "{" RESTRICTED ",'runAsNonRoot':false,'runAsUser':0}"},
        {true, "{\"privileged\":true}",
         "{'capabilities':{'drop':['ALL']},'seccompProfile':{'type':'RuntimeDefault'},"
         "'runAsNonRoot':true,'privileged':true}"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "{\"image\":\"shop:1.4\",\"securityContext\":%s}",
                       cases[i].context);
        fixture_init(&f, spec, "");
        f.app.restricted = cases[i].restricted;
        json_auto_t *d = app_deployment(&f.app);
        expect(at(at(d, CONTAINER), "securityContext"), cases[i].want);
        fixture_done(&f);
    }
}

/* N4: with an autoscaler, replicas are not applied. */
static void test_replicas_are_left_out_with_an_autoscaler(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f,
                 "{\"image\":\"shop:1.4\",\"replicas\":3,\"autoscaling\":{\"enabled\":true,"
                 "\"maxReplicas\":5}}",
                 "");
    json_auto_t *d = app_deployment(&f.app);
    assert_null(at(d, "spec.replicas"));
    f.app.children[APP_DEPLOYMENT].live.rollout.wanted = 4;
    assert_int_equal(app_wanted(&f.app), 4);
    f.app.spec.autoscaling.enabled = false;
    assert_int_equal(app_wanted(&f.app), 3);
    fixture_done(&f);
}

static void test_service_has_port_type_and_annotations(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f,
                 "{\"image\":\"shop:1.4\",\"port\":9000,\"service\":{\"type\":\"NodePort\","
                 "\"port\":81,\"annotations\":{\"a\":\"b\"}}}",
                 "");
    json_auto_t *s = app_service(&f.app);
    expect(s,
           "{'apiVersion':'v1','kind':'Service'," METADATA(
               "web", ",'annotations':{'a':'b'}") ",'spec':{'type':'NodePort','selector':" SELECTOR
                                                  ",'ports':[{'name':'http','port':81,'protocol':'"
                                                  "TCP','targetPort':9000}]}}");
    fixture_done(&f);
}

static void test_ingress_has_host_class_and_certificate(void **state)
{
#define RULE(host, path)                                                                           \
    "'rules':[{'host':'" host "','http':{'paths':[{'path':'" path "','pathType':'Prefix',"         \
    "'backend':{'service':{'name':'web','port':{'name':'http'}}}}]}}]"
#define INGRESS                                                                                    \
    "{'apiVersion':'networking.k8s.io/v1','kind':'Ingress'," METADATA("web", "") ",'spec':{"
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"{\"host\":\"shop.example.com\"}", INGRESS RULE("shop.example.com", "/") "}}"},
        {"{\"host\":\"*.example.com\",\"path\":\"/a\",\"className\":\"nginx\",\"tls\":{"
         "\"secretName\":\"cert\"}}",
         INGRESS RULE("*.example.com", "/a") ",'ingressClassName':'nginx','tls':[{'hosts':["
                                             "'*.example.com'],'secretName':'cert'}]}}"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "{\"image\":\"shop:1.4\",\"ingress\":%s}",
                       cases[i].spec);
        fixture_init(&f, spec, "");
        json_auto_t *made = app_ingress(&f.app);
        expect(made, cases[i].want);
        fixture_done(&f);
    }
}

static void test_route_leads_from_the_gateway_to_the_service(void **state)
{
#define TO_SERVICE(path)                                                                           \
    "'rules':[{'matches':[{'path':{'type':'PathPrefix','value':'" path "'}}],'backendRefs':[{"     \
    "'group':'','kind':'Service','name':'web','port':80,'weight':1}]}]"
#define ROUTE                                                                                      \
    "{'apiVersion':'gateway.networking.k8s.io/v1','kind':'HTTPRoute'," METADATA("web",             \
                                                                                "") ",'spec':{"
#define PARENT "'parentRefs':[{'group':'gateway.networking.k8s.io','kind':'Gateway','name':'gw'"
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"{\"gateway\":{\"name\":\"gw\"}}", ROUTE PARENT "}]," TO_SERVICE("/") "}}"},
        {"{\"gateway\":{\"name\":\"gw\",\"namespace\":\"infra\",\"sectionName\":\"https\"},"
         "\"host\":\"*.example.com\",\"path\":\"/a\"}",
         ROUTE PARENT
         ",'namespace':'infra','sectionName':'https'}],'hostnames':['*.example.com']," TO_SERVICE(
             "/a") "}}"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "{\"image\":\"shop:1.4\",\"httpRoute\":%s}",
                       cases[i].spec);
        fixture_init(&f, spec, "");
        json_auto_t *made = app_route(&f.app);
        expect(made, cases[i].want);
        fixture_done(&f);
    }
}

/* A port of its own is one more port of the container. */
static void test_monitor_of_another_port_adds_it_to_the_container(void **state)
{
#define MONITOR(endpoint)                                                                          \
    "{'apiVersion':'monitoring.coreos.com/v1','kind':'PodMonitor'," METADATA(                      \
        "web", "") ",'spec':{'selector':{'matchLabels':{'app.kubernetes.io/name':'app',"           \
                   "'app.kubernetes.io/instance':'web'}},'podMetricsEndpoints':[" endpoint "]}}"
    static const struct {
        const char *spec, *want;
        size_t ports;
    } cases[] = {
        {"{\"enabled\":true}", MONITOR("{'port':'http','path':'/metrics'}"), 1},
        {"{\"enabled\":true,\"port\":8080}", MONITOR("{'port':'http','path':'/metrics'}"), 1},
        {"{\"enabled\":true,\"port\":9113,\"path\":\"/m\",\"intervalSeconds\":30}",
         MONITOR("{'port':'metrics','path':'/m','interval':'30s'}"), 2},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "{\"image\":\"shop:1.4\",\"metrics\":%s}",
                       cases[i].spec);
        fixture_init(&f, spec, "");
        json_auto_t *made = app_monitor(&f.app), *deployment = app_deployment(&f.app);
        expect(made, cases[i].want);
        json_t *pod = json_object_get(
            json_object_get(json_object_get(deployment, "spec"), "template"), "spec");
        json_t *container = json_array_get(json_object_get(pod, "containers"), 0);
        assert_int_equal(json_array_size(json_object_get(container, "ports")), cases[i].ports);
        fixture_done(&f);
    }
}

static void test_budget_is_wanted_with_two_replicas_or_more(void **state)
{
    static const struct {
        const char *spec;
        bool wanted;
    } cases[] = {
        {"{\"image\":\"shop:1.4\"}", false},
        {"{\"image\":\"shop:1.4\",\"replicas\":0}", false},
        {"{\"image\":\"shop:1.4\",\"replicas\":2}", true},
        {"{\"image\":\"shop:1.4\",\"replicas\":2,\"pdb\":{\"enabled\":false}}", false},
        {"{\"image\":\"shop:1.4\",\"autoscaling\":{\"enabled\":true,\"maxReplicas\":2}}", true},
        {"{\"image\":\"shop:1.4\",\"replicas\":4,\"autoscaling\":{\"enabled\":true,"
         "\"maxReplicas\":1}}",
         false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        fixture_init(&f, cases[i].spec, "");
        assert_int_equal(app_wants_budget(&f.app.spec), cases[i].wanted);
        json_auto_t *b = app_budget(&f.app, &stw_res_disruption_budget_v1beta1, 26);
        expect(b, "{'apiVersion':'policy/v1beta1','kind':'PodDisruptionBudget'," METADATA(
                      "web", "") ",'spec':{'maxUnavailable':1,'selector':{'matchLabels':" SELECTOR
                                 "}}}");
        json_auto_t *newer = app_budget(&f.app, &stw_res_disruption_budget_v1, 27);
        assert_string_equal(
            stw_tree_text(json_object_get(newer, "spec"), "unhealthyPodEvictionPolicy"),
            "AlwaysAllow");
        fixture_done(&f);
    }
}

static void test_autoscaler_has_metrics_and_behavior(void **state)
{
#define CPU_METRIC                                                                                 \
    "{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{"                           \
    "\"type\":\"Utilization\",\"averageUtilization\":50}}}"
#define DEFAULT_BEHAVIOR                                                                           \
    "{'scaleUp':{'selectPolicy':'Max','stabilizationWindowSeconds':0,'policies':["                 \
    "{'type':'Pods','value':4,'periodSeconds':15},{'type':'Percent','value':100,"                  \
    "'periodSeconds':15}]},'scaleDown':{'selectPolicy':'Max','stabilizationWindowSeconds':300,"    \
    "'policies':["                                                                                 \
    "{'type':'Percent','value':100,'periodSeconds':15}]}}"
#define POD_METRIC                                                                                 \
    "{\"type\":\"Pods\",\"pods\":{\"metric\":{\"name\":\"rate\"},\"target\":{"                     \
    "\"type\":\"AverageValue\",\"averageValue\":\"10\"}}}"
#define METRIC(name, n)                                                                            \
    "{'type':'Resource','resource':{'name':'" name "','target':{'type':'Utilization',"             \
    "'averageUtilization':" n "}}}"
#define TARGET "'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"
    static const struct {
        const char *targets;
        const struct stw_resource *version;
        const char *want;
    } cases[] = {
        {"", &stw_res_autoscaler_v2, ",'metrics':[" METRIC("cpu", "80") "]"},
        {",\"targetCPUUtilizationPercentage\":50", &stw_res_autoscaler_v2beta2,
         ",'metrics':[" METRIC("cpu", "50") "],'behavior':" DEFAULT_BEHAVIOR},
        {",\"targetMemoryUtilizationPercentage\":60", &stw_res_autoscaler_v2,
         ",'metrics':[" METRIC("memory", "60") "]"},
        {",\"targetCPUUtilizationPercentage\":50,\"targetMemoryUtilizationPercentage\":60",
         &stw_res_autoscaler_v2, ",'metrics':[" METRIC("memory", "60") "," METRIC("cpu", "50") "]"},
        /* The metrics of the spec come before the CPU, and replace the default target. */
        {",\"metrics\":[" CPU_METRIC "," POD_METRIC "]", &stw_res_autoscaler_v2,
         ",'metrics':[" POD_METRIC "," CPU_METRIC "]"},
        {",\"behavior\":{\"scaleUp\":{\"selectPolicy\":\"Min\"}}", &stw_res_autoscaler_v2beta2,
         ",'metrics':[" METRIC("cpu", "80") "],'behavior':{'scaleUp':{'selectPolicy':'Min'}}"},
        {",\"targetMemoryUtilizationPercentage\":60,\"metrics\":[" POD_METRIC "]",
         &stw_res_autoscaler_v2, ",'metrics':[" METRIC("memory", "60") "," POD_METRIC "]"},
        {",\"behavior\":{\"scaleDown\":{\"selectPolicy\":\"Min\"}}", &stw_res_autoscaler_v2,
         ",'metrics':[" METRIC("cpu", "80") "],'behavior':{'scaleDown':{'selectPolicy':'Min'}}"},
        {",\"behavior\":{}", &stw_res_autoscaler_v2, ",'metrics':[" METRIC("cpu", "80") "]"},
        /* Quantities are as the server stores them: otherwise each start would find a drift. */
        {",\"metrics\":[{\"type\":\"External\",\"external\":{\"metric\":{\"name\":\"q\"},"
         "\"target\":{\"type\":\"AverageValue\",\"averageValue\":\"2000m\"}}},"
         "{\"type\":\"Object\",\"object\":{\"target\":{\"type\":\"Value\",\"value\":30}}}]",
         &stw_res_autoscaler_v2,
         ",'metrics':[{'type':'External','external':{'metric':{'name':'q'},"
         "'target':{'type':'AverageValue','averageValue':'2'}}},"
         "{'type':'Object','object':{'target':{'type':'Value','value':'30'}}}]"},
        {"", &stw_res_autoscaler_v1, ",'targetCPUUtilizationPercentage':80"},
        {",\"targetMemoryUtilizationPercentage\":60", &stw_res_autoscaler_v1, ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char spec[1024], want[2000];
        (void)snprintf(spec, sizeof(spec),
                       "{\"image\":\"shop:1.4\",\"autoscaling\":{\"enabled\":true,"
                       "\"minReplicas\":2,\"maxReplicas\":5%s}}",
                       cases[i].targets);
        (void)snprintf(want, sizeof(want),
                       "{'apiVersion':'autoscaling/%s','kind':'HorizontalPodAutoscaler'," METADATA(
                           "web", "") ",'spec':{" TARGET ",'minReplicas':2,'maxReplicas':5%s}}",
                       cases[i].version->version, cases[i].want);
        fixture_init(&f, spec, "");
        json_auto_t *h = app_autoscaler(&f.app, cases[i].version);
        expect(h, want);
        fixture_done(&f);
    }
}

/* A key with NUL cannot be in a tree; the same happens if there is no memory.  Each part of the spec is in
 * the Deployment, or there is none. */
static void test_no_part_is_left_out_silently(void **state)
{
    static const char *const parts[] = {
        "\"podTemplate\":{\"metadata\":{\"annotations\":{\"a\\u0000\":\"b\"}}}",
        "\"affinity\":{\"a\\u0000\":{}}",
        "\"tolerations\":[{\"a\\u0000\":\"b\"}]",
        "\"securityContext\":{\"a\\u0000\":\"b\"}",
        "\"resources\":{\"limits\":{\"a\\u0000\":\"1\"}}",
        "\"env\":[{\"name\":\"A\",\"a\\u0000\":\"b\"}]",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(parts); i++) {
        struct fixture f;
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "{\"image\":\"shop:1.4\",%s}", parts[i]);
        fixture_init(&f, spec, "");
        (void)stw_tree_whole(NULL);
        json_auto_t *made = stw_tree_whole(app_deployment(&f.app));
        if (made)
            fail_msg("%s", parts[i]);
        json_auto_t *other = stw_tree_whole(app_configmap(&f.app));
        assert_non_null(other);
        fixture_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configmap_has_the_configuration),
        cmocka_unit_test(test_configuration_hash_depends_on_the_content_alone),
        cmocka_unit_test(test_deployment_of_a_small_spec),
        cmocka_unit_test(test_deployment_has_what_the_spec_asks_for),
        cmocka_unit_test(test_pod_template_is_merged_over_the_deployment),
        cmocka_unit_test(test_empty_pod_template_changes_nothing),
        cmocka_unit_test(test_deployment_has_the_strategy_of_the_spec),
        cmocka_unit_test(test_spread_constraint_without_selector_is_for_our_pods),
        cmocka_unit_test(test_security_profile_applies_where_the_spec_says_nothing),
        cmocka_unit_test(test_replicas_are_left_out_with_an_autoscaler),
        cmocka_unit_test(test_service_has_port_type_and_annotations),
        cmocka_unit_test(test_ingress_has_host_class_and_certificate),
        cmocka_unit_test(test_budget_is_wanted_with_two_replicas_or_more),
        cmocka_unit_test(test_route_leads_from_the_gateway_to_the_service),
        cmocka_unit_test(test_monitor_of_another_port_adds_it_to_the_container),
        cmocka_unit_test(test_autoscaler_has_metrics_and_behavior),
        cmocka_unit_test(test_no_part_is_left_out_silently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
