/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/myweb/spec.h"

#include "kinds/common/product.h"
#include "support/judge.h"

/* A valid object with some spec members. */
#define WEB(members)                                                                               \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{" members "}}"
#define GOOD "\"image\":\"nginx:1.22\",\"pageContentHtml\":\"<p>\""
#define SPEC(members) WEB(GOOD "," members)

struct one_port {
    const char *index, *port, *holder;
    char self[64];
};

static bool find_port(void *ctx, const char *index, const char *key, const char *self,
                      char *ret_holder)
{
    struct one_port *p = ctx;
    snprintf(p->self, sizeof(p->self), "%s", self);
    if (!stw_streq(index, p->index) || !stw_streq(key, p->port) || stw_streq(self, p->holder))
        return false;
    (void)snprintf(ret_holder, 512, "%s", p->holder);
    return true;
}

static void assert_create(const char *object, const char *want)
{
    assert_answer(&stw_kind_myweb, object, NULL, NULL, want);
}

static void fields_one_by_one(void **state)
{
    static const struct {
        const char *object, *want;
    } cases[] = {
        {WEB(GOOD), ""},
        /* image */
        {WEB("\"pageContentHtml\":\"x\""), "spec.image: Required value\n"},
        {WEB("\"image\":null,\"pageContentHtml\":\"x\""), "spec.image: Required value\n"},
        {WEB("\"image\":\"\",\"pageContentHtml\":\"x\""), "spec.image: Required value\n"},
        {WEB("\"image\":7,\"pageContentHtml\":\"x\""),
         "spec.image: Invalid value: 7: must be a string\n"},
        {WEB("\"image\":\"No Image\",\"pageContentHtml\":\"x\""),
         "spec.image: Invalid value: \"No Image\": not a valid image reference\n"},
        {WEB("\"image\":\"nginx\",\"pageContentHtml\":\"x\""),
         "W: image has no tag or uses \":latest\"; rollouts are not reproducible\n"},
        /* nodePortNumber */
        {SPEC("\"nodePortNumber\":0"), ""},
        {SPEC("\"nodePortNumber\":30085"), ""},
        {SPEC("\"serviceType\":\"ClusterIP\""), ""},
        {SPEC("\"serviceType\":\"ClusterIP\",\"nodePortNumber\":30001"),
         "spec.nodePortNumber: Forbidden: needs serviceType NodePort\n"},
        {SPEC("\"serviceType\":\"LoadBalancer\""),
         "spec.serviceType: Unsupported value: \"LoadBalancer\": supported values: \"NodePort\", "
         "\"ClusterIP\"\n"},
        {SPEC("\"ingress\":{\"host\":\"*.example.com\"}"), ""},
        {SPEC("\"ingress\":{}"), "spec.ingress.host: Required value\n"},
        {SPEC("\"ingress\":{\"host\":\"A.example.com\"}"),
         "spec.ingress.host: Invalid value: \"A.example.com\": must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
         "character\n"},
        {SPEC("\"nodePortNumber\":30086"),
         "W: node port 30086 may be given to a Service that asks for no specific port; 30000-30085 "
         "are kept for ports chosen by hand\n"},
        {SPEC("\"nodePortNumber\":80"), "spec.nodePortNumber: Invalid value: 80: must be 0 or "
                                        "between 30000 and 32767\n"},
        {SPEC("\"nodePortNumber\":-1"), "spec.nodePortNumber: Invalid value: -1: must be 0 or "
                                        "between 30000 and 32767\n"},
        {SPEC("\"nodePortNumber\":32768"), "spec.nodePortNumber: Invalid value: 32768: must be 0 "
                                           "or between 30000 and 32767\n"},
        {SPEC("\"nodePortNumber\":\"30001\""),
         "spec.nodePortNumber: Invalid value: \"30001\": must be an integer\n"},
        {SPEC("\"nodePortNumber\":30001.5"),
         "spec.nodePortNumber: Invalid value: 30001.5: must be an integer\n"},
        {SPEC("\"nodePortNumber\":30001.0"), ""}, /* the API server reads this as 30001 */
        {SPEC("\"nodePortNumber\":1e300"),
         "spec.nodePortNumber: Invalid value: 1e300: must be an integer\n"},
        /* files */
        {WEB(GOOD ",\"files\":{\"style.css\":\"a\",\"x_1-2.js\":\"\"}"), ""},
        {WEB(GOOD ",\"files\":{\"index.html\":\"a\"}"),
         "spec.files[index.html]: Forbidden: is set by steward from spec.pageContentHtml\n"},
        {WEB(GOOD ",\"files\":{\"a/b\":\"a\"}"),
         "spec.files[a/b]: Invalid value: must consist of letters, digits, '-', '_' and '.'\n"},
        {WEB(GOOD ",\"files\":{\"..data\":\"a\"}"),
         "spec.files[..data]: Invalid value: must not be '.' or begin with '..'\n"},
        {WEB(GOOD ",\"files\":{\"\":\"a\"}"),
         "spec.files[]: Invalid value: must have 1 to 253 characters\n"},
        {WEB(GOOD ",\"imagePullPolicy\":\"Never\""), ""},
        {WEB(GOOD ",\"imagePullPolicy\":\"Sometimes\""),
         "spec.imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
         "\"IfNotPresent\", \"Never\"\n"},
        /* pageContentHtml */
        {WEB("\"image\":\"nginx:1\""), "W: page is empty\n"},
        {WEB("\"image\":\"nginx:1\",\"pageContentHtml\":\"\""), "W: page is empty\n"},
        {WEB("\"image\":\"nginx:1\",\"pageContentHtml\":[]"),
         "spec.pageContentHtml: Invalid value: []: must be a string\nW: page is empty\n"},
        /* replicas, containerPort */
        {SPEC("\"replicas\":0"), ""},
        {SPEC("\"replicas\":100,\"containerPort\":65535"), ""},
        {SPEC("\"replicas\":\"abc\""),
         "spec.replicas: Invalid value: \"abc\": must be an integer\n"},
        {SPEC("\"replicas\":-1"), "spec.replicas: Invalid value: -1: must be between 0 and 100\n"},
        {SPEC("\"replicas\":101"),
         "spec.replicas: Invalid value: 101: must be between 0 and 100\n"},
        {SPEC("\"containerPort\":0"),
         "spec.containerPort: Invalid value: 0: must be between 1 and 65535\n"},
        {SPEC("\"containerPort\":true"),
         "spec.containerPort: Invalid value: true: must be an integer\n"},
        /* mountPath */
        {SPEC("\"mountPath\":\"/srv/www/\""), ""},
        {SPEC("\"mountPath\":\"/srv/..www\""), ""},
        {SPEC("\"mountPath\":\"html\""),
         "spec.mountPath: Invalid value: \"html\": must be an absolute path\n"},
        {SPEC("\"mountPath\":\"\""), "spec.mountPath: Invalid value: \"\": must not be empty\n"},
        {SPEC("\"mountPath\":\"/\""),
         "spec.mountPath: Invalid value: \"/\": must not be the root of the file system\n"},
        {SPEC("\"mountPath\":\"//.//\""),
         "spec.mountPath: Invalid value: \"//.//\": must not be the root of the file system\n"},
        {SPEC("\"mountPath\":\"/srv/../etc\""),
         "spec.mountPath: Invalid value: \"/srv/../etc\": must not contain '..'\n"},
        {SPEC("\"mountPath\":\"/srv/..\""),
         "spec.mountPath: Invalid value: \"/srv/..\": must not contain '..'\n"},
        {SPEC("\"mountPath\":\"/srv:x\""),
         "spec.mountPath: Invalid value: \"/srv:x\": must not contain ':'\n"},
        /* contentUpdate */
        {SPEC("\"contentUpdate\":\"Live\""), ""},
        {SPEC("\"contentUpdate\":\"Now\""), "spec.contentUpdate: Unsupported value: \"Now\": "
                                            "supported values: \"Roll\", \"Live\"\n"},
        {SPEC("\"contentUpdate\":{}"), "spec.contentUpdate: Invalid value: {}: must be a string\n"},
        /* imagePullSecrets */
        {SPEC("\"imagePullSecrets\":[{\"name\":\"a\"},{\"name\":\"b.c\"}]"), ""},
        {SPEC("\"imagePullSecrets\":[{\"name\":\"A\"}]"),
         "spec.imagePullSecrets[0].name: Invalid value: \"A\": must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
         "character\n"},
        {SPEC("\"imagePullSecrets\":[{\"name\":\"a\"},{}]"),
         "spec.imagePullSecrets[1].name: Required value\n"},
        {SPEC("\"imagePullSecrets\":[\"a\"]"),
         "spec.imagePullSecrets[0]: Invalid value: \"a\": must be an object\n"},
        {SPEC("\"imagePullSecrets\":[null]"),
         "spec.imagePullSecrets[0]: Invalid value: null: must be an object\n"},
        {SPEC("\"imagePullSecrets\":[{\"name\":\"a\"},{\"name\":\"a\"}]"),
         "spec.imagePullSecrets[1]: Duplicate value: {\"name\":\"a\"}\n"},
        {SPEC("\"imagePullSecrets\":{\"name\":\"a\"}"),
         "spec.imagePullSecrets: Invalid value: {\"name\":\"a\"}: must be a list\n"},
        {SPEC("\"imagePullSecrets\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]"),
         "spec.imagePullSecrets: Invalid value: "
         "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]: must be at most 20 entries\n"},
        /* securityContext */
        {SPEC("\"securityContext\":{\"runAsNonRoot\":true,\"anything\":[1]}"), ""},
        {SPEC("\"securityContext\":[]"),
         "spec.securityContext: Invalid value: []: must be an object\n"},
        /* unknown fields */
        {SPEC("\"replica\":3"), "W: unknown field \"spec.replica\"; did you mean \"replicas\"?\n"},
        {SPEC("\"imagePullSecrets\":[{\"name\":\"a\",\"key\":1}]"),
         "W: unknown field \"spec.imagePullSecrets[0].key\"\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_create(cases[i].object, cases[i].want);
}

static void resources(void **state)
{
    static const struct {
        const char *resources, *want;
    } cases[] = {
        {"{}", ""},
        {"{\"limits\":{\"cpu\":1,\"memory\":\"64Mi\"},\"requests\":{\"cpu\":\"1000m\"}}", ""},
        {"{\"limits\":{\"cpu\":\"1\"},\"requests\":{\"cpu\":\"1001m\"}}",
         "spec.resources.requests[cpu]: Invalid value: \"1001m\": must be less than or equal to "
         "cpu limit\n"},
        {"{\"limits\":{\"memory\":\"4Mi\"}}", ""},
        {"{\"limits\":{\"memory\":\"4M\"}}", "spec.resources.limits[memory]: Invalid value: "
                                             "\"4M\": must be at least 4Mi, or no container "
                                             "starts\n"},
        {"{\"requests\":{\"memory\":\"1Mi\"}}", ""}, /* a small request is harmless */
        {"{\"requests\":{\"cpu\":0}}",
         "spec.resources.requests[cpu]: Invalid value: 0: must be greater than 0\n"},
        {"{\"requests\":{\"cpu\":\"0.5m\"}}",
         "spec.resources.requests[cpu]: Invalid value: \"0.5m\": must not be finer than 1m\n"},
        {"{\"limits\":{\"cpu\":\"-1\"}}",
         "spec.resources.limits[cpu]: Invalid value: \"-1\": must be greater than 0\n"},
        {"{\"limits\":{\"cpu\":\"lots\"}}", "spec.resources.limits[cpu]: Invalid value: \"lots\": "
                                            "must be a quantity such as 100m, \"0.1\" or 64Mi\n"},
        {"{\"limits\":{\"cpu\":1.0}}", ""},
        {"{\"limits\":{\"cpu\":0.5}}",
         "spec.resources.limits[cpu]: Invalid value: 0.5: must be a quantity such as 100m, "
         "\"0.1\" or 64Mi\n"},
        {"{\"limits\":{\"cpu\":null}}", "spec.resources.limits[cpu]: Invalid value: null: must be "
                                        "a quantity such as 100m, \"0.1\" or 64Mi\n"},
        {"{\"limits\":{\"example.com/gpu\":2,\"ephemeral-storage\":\"1Gi\",\"hugepages-2Mi\":"
         "\"4Mi\"}}",
         ""},
        {"{\"limits\":{\"mem\":\"64Mi\"}}",
         "spec.resources.limits[mem]: Invalid value: \"64Mi\": must be cpu, memory, "
         "ephemeral-storage, hugepages-<size> or a name with a domain such as example.com/gpu\n"},
        {"{\"limits\":7,\"requests\":{\"cpu\":1}}",
         "spec.resources.limits: Invalid value: 7: must be an object\n"},
        {"[]", "spec.resources: Invalid value: []: must be an object\n"},
        {"{\"limit\":{}}", "W: unknown field \"spec.resources.limit\"; did you mean \"limits\"?\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autobuf struct stw_buf object = STW_BUF_INIT(4096);
        stw_buf_addf(&object, WEB(GOOD ",\"resources\":%s"), cases[i].resources);
        assert_create(stw_buf_str(&object), cases[i].want);
    }
}

static void everything_at_once(void **state)
{
    (void)state;
    assert_create("{\"metadata\":{\"name\":\"Web\"},\"spec\":{\"nodePortNumber\":80,\"replicas\":"
                  "\"three\",\"contentUpdate\":\"Now\",\"color\":1}}",
                  "metadata.name: Invalid value: \"Web\": must start with a letter and hold only "
                  "a-z, 0-9 and '-', because a Service gets this name\n"
                  "spec.image: Required value\n"
                  "spec.replicas: Invalid value: \"three\": must be an integer\n"
                  "spec.contentUpdate: Unsupported value: \"Now\": supported values: \"Roll\", "
                  "\"Live\"\n"
                  "spec.nodePortNumber: Invalid value: 80: must be 0 or between 30000 and 32767\n"
                  "W: unknown field \"spec.color\"\n"
                  "W: page is empty\n");
}

static char *page_of(size_t size)
{
    struct stw_buf b = STW_BUF_INIT(2 << 20);
    stw_buf_adds(&b, "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"image\":\"nginx:1\","
                     "\"pageContentHtml\":\"");
    char *at = stw_buf_reserve(&b, size);
    assert_non_null(at);
    memset(at, 'p', size);
    b.len += size;
    stw_buf_adds(&b, "\"}}");
    return stw_buf_take(&b);
}

static void page_sizes(void **state)
{
#define P10 "pppppppppp"
#define P79 P10 P10 P10 P10 P10 P10 P10 "ppppppppp"
    static const struct {
        size_t size;
        const char *want;
    } cases[] = {
        {1, ""},
        {204800, ""},
        {204801, "W: page has 204801 bytes: kubectl apply keeps a copy in an annotation, and "
                 "annotations hold at most 262144 bytes; use kubectl apply --server-side\n"},
        {921600, "W: page has 921600 bytes: kubectl apply keeps a copy in an annotation, and "
                 "annotations hold at most 262144 bytes; use kubectl apply --server-side\n"},
        {921601,
         "spec.pageContentHtml: Invalid value: \"" P79 "...\": must be at most 921600 bytes\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autofree char *object = page_of(cases[i].size);
        assert_create(object, cases[i].want);
    }
}

static void port_ranges(void **state)
{
    static const struct {
        int32_t min, max, port;
        const char *want;
    } cases[] = {
        {8000, 8999, 7999,
         "spec.nodePortNumber: Invalid value: 7999: must be 0 or between 8000 and 8999\n"},
        {8000, 8999, 8030, ""}, /* 1000 ports: a band of 31 */
        {8000, 8999, 8031,
         "W: node port 8031 may be given to a Service that asks for no specific port; 8000-8030 "
         "are "
         "kept for ports chosen by hand\n"},
        {30000, 30099, 30015, ""}, /* at least 16 */
        {30000, 30099, 30016,
         "W: node port 30016 may be given to a Service that asks for no specific port; 30000-30015 "
         "are kept for ports chosen by hand\n"},
        {1024, 32767, 1151, ""}, /* at most 128 */
        {1024, 32767, 1152,
         "W: node port 1152 may be given to a Service that asks for no specific port; 1024-1151 "
         "are "
         "kept for ports chosen by hand\n"},
        {30000, 30009, 30009, ""}, /* too few for a band */
        {30000, 30000, 30000, ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        const struct stw_product product = {.node_port_min = cases[i].min,
                                            .node_port_max = cases[i].max};
        const struct stw_env env = {.product = &product};
        stw_autobuf struct stw_buf object = STW_BUF_INIT(4096);
        stw_buf_addf(&object, SPEC("\"nodePortNumber\":%d"), cases[i].port);
        assert_answer(&stw_kind_myweb, stw_buf_str(&object), NULL, &env, cases[i].want);
    }
}

static void ports_of_others(void **state)
{
    struct one_port taken = {.index = "mywebs.nodePort", .port = "30001", .holder = "blog/home"};
    struct one_port in_use = {.index = "services.nodePort", .port = "30001", .holder = "blog/home"};
    struct one_port own = {.index = "services.nodePort", .port = "30001", .holder = "shop/web"};
    struct stw_lookup lookup = {.ctx = &taken, .find = find_port};
    struct stw_env env = {.lookup = &lookup};
    const char *object = SPEC("\"nodePortNumber\":30001");
    (void)state;
    assert_answer(&stw_kind_myweb, object, NULL, &env,
                  "spec.nodePortNumber: Forbidden: node port 30001 is taken by MyWeb blog/home\n");
    assert_string_equal(taken.self, "shop/web");
    assert_answer(&stw_kind_myweb, SPEC("\"nodePortNumber\":0"), NULL, &env, "");
    /* the conflict existed before this update */
    assert_answer(&stw_kind_myweb, SPEC("\"nodePortNumber\":30001,\"replicas\":2"), object, &env,
                  "W: spec.nodePortNumber: Forbidden: node port 30001 is taken by MyWeb blog/home; "
                  "not refused, because it has not changed\n");
    /* the conflict is new */
    assert_answer(&stw_kind_myweb, object, SPEC("\"nodePortNumber\":30002"), &env,
                  "spec.nodePortNumber: Forbidden: node port 30001 is taken by MyWeb blog/home\n");
    lookup.ctx = &in_use;
    assert_answer(&stw_kind_myweb, object, NULL, &env,
                  "W: node port 30001 is in use by Service blog/home\n");
    assert_answer(&stw_kind_myweb, object, object, &env, ""); /* the port did not change */
    lookup.ctx = &own;
    assert_answer(&stw_kind_myweb, object, NULL, &env, "");
}

static void defaults_are_few(void **state)
{
    (void)state;
    assert_defaults(&stw_kind_myweb, WEB("\"image\":\"nginx\""),
                    "/spec/nodePortNumber=0\n/spec/serviceType=\"NodePort\"\n/spec/replicas=1\n"
                    "/spec/containerPort=80\n/spec/mountPath=\"/usr/share/nginx/html\"\n"
                    "/spec/contentUpdate=\"Roll\"\n/spec/resources=" STW_MYWEB_RESOURCES "\n");
    assert_defaults(&stw_kind_myweb,
                    WEB("\"nodePortNumber\":\"x\",\"pageContentHtml\":1,\"replicas\":null,"
                        "\"containerPort\":[],\"mountPath\":{},\"contentUpdate\":false,"
                        "\"resources\":{\"limits\":{}}"),
                    "/spec/serviceType=\"NodePort\"\n/spec/replicas=1\n");
    assert_defaults(&stw_kind_myweb, "{}", "");
    assert_defaults(&stw_kind_myweb, "{\"spec\":null}", "");
    assert_defaults(&stw_kind_myweb, "{\"spec\":[]}", "");
    assert_defaults(&stw_kind_myweb, "[1]", "");
}

/* The API server takes it from the old object, and drops it from what is created. */
static void test_only_objects_that_are_being_deleted_get_no_defaults(void **state)
{
    static const char leaving[] =
        "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{}}";
    stw_autofree char *plain = defaults(&stw_kind_myweb, NULL, "{\"spec\":{}}");
    (void)state;
    assert_string_not_equal(plain, "");
    const struct {
        const char *old, *object, *want;
    } rows[] = {
        {NULL, leaving, plain},
        {"{\"spec\":{}}", leaving, plain},
        {leaving, leaving, ""},
        {leaving, "{\"spec\":{}}", ""},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autofree char *got = defaults(&stw_kind_myweb, rows[i].old, rows[i].object);
        assert_string_equal(got, rows[i].want);
    }
}

static int decode(struct stw_arena *arena, struct stw_json_doc *doc, const char *spec,
                  struct stw_myweb *web, struct stw_error *err)
{
    scan(doc, spec);
    return stw_kind_decode(&stw_kind_myweb, stw_json_root(doc), arena, web, err);
}

static void decoding(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    struct stw_myweb web;
    (void)state;
    assert_int_equal(decode(arena, &doc,
                            "{\"image\":\"n\\u0067inx\",\"nodePortNumber\":30001,\"replicas\":2.0,"
                            "\"pageContentHtml\":\"\\u003cp>\",\"contentUpdate\":\"Live\","
                            "\"securityContext\":{\"a\":1}}",
                            &web, &err),
                     0);
    assert_string_equal(web.image, "nginx");
    assert_int_equal(web.node_port, 30001);
    assert_int_equal(web.replicas, 2);
    assert_int_equal(web.container_port, 80);
    assert_string_equal(web.mount_path, "/usr/share/nginx/html");
    assert_string_equal(web.content_update, "Live");
    assert_int_equal(stw_json_size(web.page), 3);
    assert_int_equal(stw_json_type(web.security_context), STW_JSON_OBJECT);
    assert_int_equal(stw_json_type(web.resources), STW_JSON_ABSENT);
}

static void decoding_of_wrong_types(void **state)
{
    static const struct {
        const char *spec, *error;
    } cases[] = {
        {"{\"image\":\"a\",\"replicas\":\"2\",\"containerPort\":\"x\"}",
         "spec.replicas: Invalid value: \"2\": must be an integer"},
        {"[]", "spec: Invalid value: must be an object"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        stw_autoarena struct stw_arena *arena = stw_arena_create();
        struct stw_error err = {0};
        struct stw_myweb web;
        assert_int_equal(decode(arena, &doc, cases[i].spec, &web, &err), -1);
        assert_int_equal(err.code, STW_ERR_INVALID);
        assert_string_equal(err.text, cases[i].error);
        assert_int_equal(web.replicas, 1);
        assert_int_equal(web.container_port, 80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_one_by_one),
        cmocka_unit_test(resources),
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(page_sizes),
        cmocka_unit_test(port_ranges),
        cmocka_unit_test(ports_of_others),
        cmocka_unit_test(defaults_are_few),
        cmocka_unit_test(test_only_objects_that_are_being_deleted_get_no_defaults),
        cmocka_unit_test(decoding),
        cmocka_unit_test(decoding_of_wrong_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
