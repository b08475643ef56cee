/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/app/spec.h"

#include "kinds/kinds.h"
#include "support/judge.h"

/* A valid object with some spec members. */
#define APP(members)                                                                               \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{" members "}}"
#define RESOURCES                                                                                  \
    "\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"},\"limits\":{\"memory\":"   \
    "\"64Mi\"}}"
#define GOOD "\"image\":\"shop:1.4\"," RESOURCES
#define SPEC(members) APP(GOOD "," members)
#define CONFIG(members) SPEC("\"config\":{" members "}")
#define SCALED(members) SPEC("\"autoscaling\":{\"enabled\":true," members "}")

#define NAME_TEXT                                                                                  \
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', "  \
    "or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or "         \
    "'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"

struct row {
    const char *object, *want;
};

static void assert_create(const char *object, const char *want)
{
    assert_answer(&stw_kind_app, object, NULL, NULL, want);
}

static void assert_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_create(rows[i].object, rows[i].want);
}

static void simple_fields(void **state)
{
    static const struct row rows[] = {
        {APP(GOOD), ""},
        /* image */
        {APP(RESOURCES), "spec.image: Required value\n"},
        {APP("\"image\":\"No Image\"," RESOURCES),
         "spec.image: Invalid value: \"No Image\": not a valid image reference\n"},
        {APP("\"image\":\"shop\"," RESOURCES),
         "W: image has no tag or uses \":latest\"; rollouts are not reproducible\n"},
        /* replicas */
        {SPEC("\"replicas\":0"), ""},
        {SPEC("\"replicas\":1000"), ""},
        {SPEC("\"replicas\":1001"),
         "spec.replicas: Invalid value: 1001: must be between 0 and 1000\n"},
        {SPEC("\"replicas\":-1"), "spec.replicas: Invalid value: -1: must be between 0 and 1000\n"},
        {SPEC("\"replicas\":\"two\""),
         "spec.replicas: Invalid value: \"two\": must be an integer\n"},
        /* port */
        {SPEC("\"port\":1024"), ""},
        {SPEC("\"port\":65536"), "spec.port: Invalid value: 65536: must be between 1 and 65535\n"},
        {SPEC("\"port\":0"), "spec.port: Invalid value: 0: must be between 1 and 65535\n"},
        {SPEC("\"port\":80"), ""},
        {SPEC("\"port\":1023,\"securityProfile\":\"Restricted\""),
         "W: port 1023 is below 1024, where a container that does not run "
         "as root may not be able to listen\n"},
        /* service */
        {SPEC("\"service\":{\"type\":\"LoadBalancer\",\"port\":443}"), ""},
        {SPEC("\"service\":{\"type\":\"ExternalName\"}"),
         "spec.service.type: Unsupported value: \"ExternalName\": supported values: "
         "\"ClusterIP\", \"NodePort\", \"LoadBalancer\"\n"},
        {SPEC("\"service\":{\"port\":0}"),
         "spec.service.port: Invalid value: 0: must be between 1 and 65535\n"},
        {SPEC("\"service\":{\"annotations\":{\"example.com/a\":\"b\",\"c\":\"\"}}"), ""},
        {SPEC("\"service\":{\"annotations\":{\"a b\":\"\"}}"),
         "spec.service.annotations[a b]: Invalid value: \"a b\": must be a name such as "
         "example.com/name: at most 63 letters, digits, '-', '_' and '.', with a letter or digit "
         "at both ends, after an optional DNS subdomain and '/'\n"},
        {SPEC("\"service\":{\"annotations\":{\"a\":1}}"),
         "spec.service.annotations[a]: Invalid value: 1: must be a string\n"},
        /* ingress */
        {SPEC("\"ingress\":{\"host\":\"*.example.com\",\"className\":\"nginx\",\"tls\":{"
              "\"secretName\":\"cert\"}}"),
         ""},
        {SPEC("\"ingress\":{\"path\":\"a\",\"tls\":{}}"),
         "spec.ingress.host: Required value\n"
         "spec.ingress.path: Invalid value: \"a\": must start with '/'\n"
         "spec.ingress.tls.secretName: Required value\n"},
        {SPEC("\"ingress\":{\"host\":\"*.*.example.com\"}"),
         "spec.ingress.host: Invalid value: \"*.*.example.com\": must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
         "character\n"},
        /* core types that are passed on */
        {SPEC("\"imagePullSecrets\":[{\"name\":\"a\"}],\"serviceAccountName\":\"shop\","
              "\"securityContext\":{\"x\":1},\"affinity\":{\"x\":1},\"tolerations\":[{\"x\":1}],"
              "\"topologySpreadConstraints\":[{\"x\":1}],\"terminationGracePeriodSeconds\":0"),
         ""},
        {SPEC("\"serviceAccountName\":\"Shop\""),
         "spec.serviceAccountName: Invalid value: \"Shop\": must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
         "character\n"},
        {SPEC("\"tolerations\":[1]"), "spec.tolerations[0]: Invalid value: 1: must be an object\n"},
        /* types of core/v1 */
        {SPEC("\"tolerations\":[{\"key\":\"a\",\"tolerationSeconds\":\"60\"}]"),
         "spec.tolerations[0].tolerationSeconds: Invalid value: \"60\": must be an integer\n"},
        {SPEC("\"securityContext\":{\"runAsUser\":\"1000\",\"privileged\":\"no\",\"capabilities\":{"
              "\"add\":\"NET_RAW\"}}"),
         "spec.securityContext.runAsUser: Invalid value: \"1000\": must be an integer\n"
         "spec.securityContext.capabilities.add: Invalid value: \"NET_RAW\": must be a list\n"
         "spec.securityContext.privileged: Invalid value: \"no\": must be a boolean\n"},
        {SPEC("\"affinity\":{\"podAntiAffinity\":{"
              "\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
              "\"topologyKey\":7,\"labelSelector\":{\"matchLabels\":{\"a\":1}}}]}}"),
         "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
         "labelSelector.matchLabels[a]: Invalid value: 1: must be a string\n"
         "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
         "topologyKey: Invalid value: 7: must be a string\n"},
        {SPEC("\"topologySpreadConstraints\":[{\"maxSkew\":\"1\"}]"),
         "spec.topologySpreadConstraints[0].maxSkew: Invalid value: \"1\": must be an integer\n"},
        {SPEC("\"env\":[{\"name\":\"A\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s\",\"key\":1}}"
              "}]"),
         "spec.env[0].valueFrom.secretKeyRef.key: Invalid value: 1: must be a string\n"},
        {SPEC("\"terminationGracePeriodSeconds\":-1"),
         "spec.terminationGracePeriodSeconds: Invalid value: -1: must be between 0 and 86400\n"},
        {SPEC("\"pdb\":{\"enabled\":false}"), ""},
        {SPEC("\"pdb\":{\"enabled\":1}"),
         "spec.pdb.enabled: Invalid value: 1: must be a boolean\n"},
        {SPEC("\"prometheus\":{\"enabled\":true}"), "W: unknown field \"spec.prometheus\"\n"},
        {SPEC("\"restartOnChange\":{\"enabled\":true,\"windows\":[{\"days\":[\"Sat\"],"
              "\"start\":\"22:00\",\"end\":\"02:00\"}]}"),
         ""},
        {SPEC("\"restartOnChange\":{\"minIntervalSeconds\":59,\"timeZone\":\"Local\",\"windows\":[{"
              "\"start\":\"10:00\",\"end\":\"10:00\"}]}"),
         "spec.restartOnChange.minIntervalSeconds: Invalid value: 59: must be between 60 and "
         "86400\n"
         "spec.restartOnChange.timeZone: Invalid value: \"Local\": unknown time zone\n"
         "spec.restartOnChange.windows[0].end: Invalid value: must differ from start (10:00)\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void configuration(void **state)
{
    static const struct row rows[] = {
        {CONFIG("\"databaseUrl\":\"postgres://db/shop\""), ""},
        {CONFIG("\"databaseUrl\":\"jdbc:mysql://db:3306/shop\""), ""},
        {CONFIG("\"databaseUrl\":\"postgres://app@db/shop\""), ""},
        {CONFIG("\"databaseUrl\":\"postgres://app:@db/shop\""), ""},
        {CONFIG("\"databaseUrl\":\"postgres://db/shop?x=a:b@c\""), ""},
        {CONFIG("\"databaseUrl\":\"db.example.com\""),
         "spec.config.databaseUrl: Invalid value: must be a URL such as postgres://host/db\n"},
        {CONFIG("\"databaseUrl\":\"\""),
         "spec.config.databaseUrl: Invalid value: must be a URL such as postgres://host/db\n"},
        {CONFIG("\"databaseUrl\":\"://db\""),
         "spec.config.databaseUrl: Invalid value: must be a URL such as postgres://host/db\n"},
        {CONFIG("\"databaseUrl\":\"postgres://\""),
         "spec.config.databaseUrl: Invalid value: must be a URL such as postgres://host/db\n"},
        /* a password causes a warning, and is never shown */
        {CONFIG("\"databaseUrl\":\"postgres://app:secret@db/shop\""),
         "W: spec.config.databaseUrl: credentials end up in a ConfigMap; use "
         "databaseUrlSecretRef\n"},
        {CONFIG("\"databaseUrl\":\"jdbc:mysql://db/shop?user=a&Password=secret\""),
         "W: spec.config.databaseUrl: credentials end up in a ConfigMap; use "
         "databaseUrlSecretRef\n"},
        {CONFIG("\"databaseUrl\":\"app:secret@db\""),
         "spec.config.databaseUrl: Invalid value: must be a URL such as postgres://host/db\n"},
        /* databaseUrlSecretRef */
        {CONFIG("\"databaseUrlSecretRef\":{\"name\":\"db\",\"key\":\"url\"}"), ""},
        {CONFIG("\"databaseUrl\":\"a://b\",\"databaseUrlSecretRef\":{\"name\":\"db\",\"key\":"
                "\"url\"}"),
         "spec.config.databaseUrlSecretRef: Forbidden: set only one of databaseUrl, "
         "databaseUrlSecretRef\n"},
        {CONFIG("\"databaseUrlSecretRef\":{}"),
         "spec.config.databaseUrlSecretRef.name: Required value\n"
         "spec.config.databaseUrlSecretRef.key: Required value\n"},
        {CONFIG("\"databaseUrlSecretRef\":{\"name\":\"db\",\"key\":\"..url\"}"),
         "spec.config.databaseUrlSecretRef.key: Invalid value: \"..url\": must not be '.' or begin "
         "with '..'\n"},
        {CONFIG("\"databaseUrlSecretRef\":{\"name\":\"Db\",\"key\":\"a b\"}"),
         "spec.config.databaseUrlSecretRef.name: Invalid value: \"Db\": must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
         "character\n"
         "spec.config.databaseUrlSecretRef.key: Invalid value: \"a b\": must consist of letters, "
         "digits, '-', '_' and '.'\n"},
        /* logLevel */
        {CONFIG("\"logLevel\":\"trace\""), ""},
        {CONFIG("\"logLevel\":\"INFO\""),
         "spec.config.logLevel: Unsupported value: \"INFO\": supported values: \"trace\", "
         "\"debug\", \"info\", \"warn\", \"error\"\n"},
        /* environment */
        {CONFIG("\"environment\":{\"A\":\"1\",\"a.b-c_D\":\"\",\"_\":\"x\"}"), ""},
        {CONFIG("\"environment\":{\"1A\":\"x\"}"),
         "spec.config.environment[1A]: Invalid value: \"1A\": " NAME_TEXT "\n"},
        {CONFIG("\"environment\":{\"\":\"x\"}"),
         "spec.config.environment[]: Invalid value: \"\": " NAME_TEXT "\n"},
        {CONFIG("\"environment\":{\"A B\":\"x\"}"),
         "spec.config.environment[A B]: Invalid value: \"A B\": " NAME_TEXT "\n"},
        {CONFIG("\"environment\":{\".\":\"x\"}"),
         "spec.config.environment[.]: Invalid value: \".\": must not be '.'\n"},
        {CONFIG("\"environment\":{\"..\":\"x\"}"),
         "spec.config.environment[..]: Invalid value: \"..\": must not be '..'\n"},
        {CONFIG("\"environment\":{\"..a\":\"x\"}"),
         "spec.config.environment[..a]: Invalid value: \"..a\": must not start with '..'\n"},
        /* Without the value, which may be a password. */
        {CONFIG("\"environment\":{\"A\":1}"),
         "spec.config.environment[A]: Invalid value: must be a string\n"},
        {CONFIG("\"environment\":{\"A\":\"secret\\u0000\"}"),
         "spec.config.environment[A]: Invalid value: must not contain a NUL character\n"},
        {CONFIG("\"databaseUrl\":\"postgres://app:secret\\u0000@db/shop\""),
         "spec.config.databaseUrl: Invalid value: must not contain a NUL character\n"},
        {CONFIG("\"databaseUrl\":[\"postgres://app:secret@db/shop\"]"),
         "spec.config.databaseUrl: Invalid value: must be a string\n"},
        {CONFIG("\"environment\":{\"DATABASE_URL\":\"x\",\"LOG_LEVEL\":\"x\",\"PORT\":\"x\"}"),
         "spec.config.environment[DATABASE_URL]: Forbidden: is set by steward from "
         "spec.config.databaseUrl\n"
         "spec.config.environment[LOG_LEVEL]: Forbidden: is set by steward from "
         "spec.config.logLevel\n"
         "spec.config.environment[PORT]: Forbidden: is set by steward from spec.port\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

/* `count` variables of `size` bytes each, their names of one byte included. */
static void assert_environment(size_t count, size_t size, const char *want)
{
    stw_autobuf struct stw_buf b = STW_BUF_INIT(2 << 20);
    stw_buf_adds(&b, "{\"metadata\":{\"name\":\"web\"},\"spec\":{" GOOD ",\"config\":{"
                     "\"environment\":{");
    for (size_t i = 0; i < count; i++) {
        stw_buf_addf(&b, "%s\"%c\":\"", i ? "," : "", (char)('A' + i));
        char *at = stw_buf_reserve(&b, size - 1);
        assert_non_null(at);
        memset(at, 'x', size - 1);
        b.len += size - 1;
        stw_buf_addc(&b, '"');
    }
    stw_buf_adds(&b, "}}}}");
    assert_create(stw_buf_str(&b), want);
}

static void environment_in_total(void **state)
{
    (void)state;
    assert_environment(9, 102400, "");
    assert_environment(9, 102401,
                       "spec.config.environment: Invalid value: must be at most 921600 bytes in "
                       "total\n");
}

/* What is only passed on has the limits of everything that steward does not know. */
static void passed_on_in_bounds(void **state)
{
    stw_autobuf struct stw_buf b = STW_BUF_INIT(1 << 20);
    (void)state;
    stw_buf_adds(&b, "{\"metadata\":{\"name\":\"web\"},\"spec\":{" GOOD
                     ",\"env\":[{\"name\":\"A\",\"later\":[0");
    for (int i = 0; i < 4096; i++)
        stw_buf_adds(&b, ",0");
    stw_buf_adds(&b, "]}]}}");
    struct question q;
    ask(&q, &stw_kind_app, stw_buf_str(&b), NULL, NULL);
    stw_autofree char *got = answer(&q.a);
    ask_done(&q);
    assert_non_null(strstr(got, "spec.env[0][later]: Invalid value: "));
    assert_non_null(strstr(got, "must be at most 4096 values\n"));
}

/* Linux takes 128 KiB with the '=' and the end. */
static void one_variable(void **state)
{
    (void)state;
    assert_environment(1, 131070, "");
    assert_environment(1, 131071,
                       "spec.config.environment[A]: Invalid value: must be at most 131072 bytes "
                       "with its name, or no program starts with it\n");
}

static void env(void **state)
{
    static const struct row rows[] = {
        {SPEC("\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"valueFrom\":{\"x\":1}},"
              "{\"name\":\"C\"}]"),
         ""},
        {SPEC("\"env\":[{\"value\":\"1\"}]"), "spec.env[0].name: Required value\n"},
        {SPEC("\"env\":[{\"name\":\"1A\"}]"),
         "spec.env[0].name: Invalid value: \"1A\": " NAME_TEXT "\n"},
        {SPEC("\"env\":[{\"name\":\"A\",\"value\":1}]"),
         "spec.env[0].value: Invalid value: must be a string\n"},
        {SPEC("\"env\":[{\"name\":\"A\",\"value\":\"secret\\u0000\"}]"),
         "spec.env[0].value: Invalid value: must not contain a NUL character\n"},
        {SPEC("\"env\":[{\"name\":\"A\",\"later\\u0000\":1}]"),
         "spec.env[0]: Invalid value: must not have a key with a NUL character\n"},
        {SPEC("\"env\":[{\"name\":\"A\"},{\"name\":\"A\",\"value\":\"1\"}]"),
         "spec.env[1]: Duplicate value: {\"name\":\"A\",\"value\":\"1\"}\n"},
        {SPEC("\"env\":[{\"name\":\"A\",\"value\":\"1\",\"valueFrom\":{\"x\":1}}]"),
         "spec.env[0].valueFrom: Invalid value: may not be specified when `value` is not empty\n"},
        {SPEC("\"env\":[{\"name\":\"A\",\"valueForm\":1}]"),
         "W: unknown field \"spec.env[0].valueForm\", which is passed on unchanged; did you mean "
         "\"valueFrom\"?\n"},
        /* variables that steward sets */
        {SPEC("\"env\":[{\"name\":\"PORT\",\"value\":\"1\"},{\"name\":\"LOG_LEVEL\"}]"),
         "spec.env[0].name: Duplicate value: \"PORT\": is set by steward from spec.port\n"
         "spec.env[1].name: Duplicate value: \"LOG_LEVEL\": is set by steward from "
         "spec.config.logLevel\n"},
        {SPEC("\"env\":[{\"name\":\"DATABASE_URL\",\"value\":\"x\"}]"), ""}, /* steward does not */
        {SPEC("\"config\":{\"databaseUrl\":\"a://b\",\"environment\":{\"A\":\"1\"}},\"env\":[{"
              "\"name\":\"DATABASE_URL\"},{\"name\":\"A\"}]"),
         "spec.env[0].name: Duplicate value: \"DATABASE_URL\": is set by steward from "
         "spec.config.databaseUrl\n"
         "spec.env[1].name: Duplicate value: \"A\": is set by steward from "
         "spec.config.environment\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void resources(void **state)
{
#define WITH(resources) APP("\"image\":\"shop:1\",\"resources\":" resources)
    static const struct row rows[] = {
        {WITH("{\"limits\":{\"cpu\":\"500m\"},\"requests\":{\"cpu\":\"1\"}}"),
         "spec.resources.requests[cpu]: Invalid value: \"1\": must be less than or equal to cpu "
         "limit\n"},
        {WITH("{\"limits\":{\"memory\":\"64Mi\"},\"requests\":{\"memory\":\"65Mi\"}}"),
         "spec.resources.requests[memory]: Invalid value: \"65Mi\": must be less than or equal to "
         "memory limit\n"},
        {WITH("{\"limits\":{\"memory\":\"4095Ki\"}}"),
         "spec.resources.limits[memory]: Invalid value: \"4095Ki\": must be at least 4Mi, or no "
         "container starts\n"},
        {WITH("{\"requests\":{\"cpu\":0}}"),
         "spec.resources.requests[cpu]: Invalid value: 0: must be greater than 0\n"},
        {WITH("{\"requests\":{\"cpu\":\"a lot\"}}"),
         "spec.resources.requests[cpu]: Invalid value: \"a lot\": must be a quantity such as 100m, "
         "\"0.1\" or 64Mi\n"},
        {APP("\"image\":\"shop:1\""), "W: no resources are requested or limited: a node short of "
                                      "memory ends such pods first (BestEffort)\n"},
        {WITH("{\"limits\":{}}"), "W: no resources are requested or limited: a node short of "
                                  "memory ends such pods first (BestEffort)\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void health_check(void **state)
{
#define HEALTH(members) SPEC("\"healthCheck\":{" members "}")
    static const struct row rows[] = {
        {HEALTH("\"path\":\"/\",\"port\":9000,\"periodSeconds\":5,\"timeoutSeconds\":5,"
                "\"initialDelaySeconds\":0,\"failureThreshold\":1,\"liveness\":true"),
         ""},
        {HEALTH("\"port\":9000"), "spec.healthCheck.path: Required value\n"},
        {HEALTH("\"path\":\"healthz\""),
         "spec.healthCheck.path: Invalid value: \"healthz\": must start with '/'\n"},
        {HEALTH("\"path\":\"/a b\""), "spec.healthCheck.path: Invalid value: \"/a b\": must not "
                                      "hold blanks or control characters\n"},
        {HEALTH("\"path\":\"/\",\"timeoutSeconds\":11"),
         "spec.healthCheck.timeoutSeconds: Invalid value: 11: must be less than or equal to "
         "periodSeconds\n"},
        {HEALTH("\"path\":\"/\",\"timeoutSeconds\":0"),
         "spec.healthCheck.timeoutSeconds: Invalid value: 0: must be between 1 and 3600\n"},
        {HEALTH("\"path\":\"/\",\"port\":70000"),
         "spec.healthCheck.port: Invalid value: 70000: must be between 1 and 65535\n"},
        {HEALTH("\"path\":\"/\",\"initialDelaySeconds\":-1"),
         "spec.healthCheck.initialDelaySeconds: Invalid value: -1: must be between 0 and 3600\n"},
        {HEALTH("\"path\":\"/\",\"failureThreshold\":0"),
         "spec.healthCheck.failureThreshold: Invalid value: 0: must be between 1 and 1000\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void autoscaling(void **state)
{
    static const struct row rows[] = {
        {SCALED("\"maxReplicas\":3"), ""},
        {SCALED("\"minReplicas\":3,\"maxReplicas\":3"), ""},
        {SPEC("\"autoscaling\":{\"minReplicas\":3}"), ""}, /* off */
        {SCALED("\"minReplicas\":2"),
         "spec.autoscaling.maxReplicas: Required value: autoscaling needs an upper bound\n"},
        {SCALED("\"minReplicas\":3,\"maxReplicas\":2"),
         "spec.autoscaling.maxReplicas: Invalid value: 2: must be greater than or equal to "
         "minReplicas\n"},
        {SCALED("\"maxReplicas\":1001"),
         "spec.autoscaling.maxReplicas: Invalid value: 1001: must be between 1 and 1000\n"},
        {SCALED("\"minReplicas\":0,\"maxReplicas\":2"),
         "spec.autoscaling.minReplicas: Invalid value: 0: must be between 1 and 1000\n"},
        {SCALED("\"maxReplicas\":2,\"targetCPUUtilizationPercentage\":0"),
         "spec.autoscaling.targetCPUUtilizationPercentage: Invalid value: 0: must be between 1 and "
         "1000\n"},
        {SCALED("\"maxReplicas\":2,\"targetMemoryUtilizationPercentage\":1001"),
         "spec.autoscaling.targetMemoryUtilizationPercentage: Invalid value: 1001: must be between "
         "1 and 1000\n"},
        /* requests of the whole pod */
        {APP("\"image\":\"a:1\",\"podTemplate\":{\"spec\":{\"resources\":{\"requests\":{"
             "\"cpu\":\"100m\"}}}},\"autoscaling\":{\"enabled\":true,\"maxReplicas\":2}"),
         ""},
        {APP("\"image\":\"a:1\",\"podTemplate\":{\"spec\":{\"resources\":{\"requests\":{"
             "\"cpu\":0}}}}"),
         "spec.podTemplate.spec.resources.requests[cpu]: Invalid value: 0: must be greater than "
         "0\n"},
        {APP("\"image\":\"a:1\",\"resources\":{\"requests\":{\"memory\":\"8Mi\"}},"
             "\"autoscaling\":{\"enabled\":true,\"maxReplicas\":2}"),
         "spec.resources.requests[cpu]: Required value: CPU autoscaling needs a CPU request\n"},
        {APP("\"image\":\"a:1\",\"resources\":{\"limits\":{\"cpu\":1}},\"autoscaling\":{"
             "\"enabled\":true,\"maxReplicas\":2}"),
         ""}, /* a limit implies a request */
        {APP("\"image\":\"a:1\",\"resources\":{\"requests\":{\"memory\":\"8Mi\"}},\"autoscaling\":{"
             "\"enabled\":true,\"maxReplicas\":2,\"targetMemoryUtilizationPercentage\":70}"),
         ""}, /* by memory alone */
        {APP("\"image\":\"a:1\",\"resources\":{\"requests\":{\"cpu\":1}},\"autoscaling\":{"
             "\"enabled\":true,\"maxReplicas\":2,\"targetMemoryUtilizationPercentage\":70}"),
         "spec.resources.requests[memory]: Required value: memory autoscaling needs a memory "
         "request\n"},
        {SPEC("\"replicas\":3,\"autoscaling\":{\"enabled\":true,\"maxReplicas\":5}"),
         "W: replicas is only the start value while autoscaling is enabled\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
    /* The warning comes once, not with each update. */
    assert_answer(&stw_kind_app,
                  SPEC("\"replicas\":3,\"port\":9000,\"autoscaling\":{\"enabled\":true,"
                       "\"maxReplicas\":5}"),
                  SPEC("\"replicas\":3,\"autoscaling\":{\"enabled\":true,\"maxReplicas\":5}"), NULL,
                  "");
}

#define METRICS(list) SCALED("\"maxReplicas\":3,\"metrics\":[" list "]")
#define BEHAVIOR(members) SCALED("\"maxReplicas\":3,\"behavior\":{" members "}")
#define CPU(target)                                                                                \
    "{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{" target "}}}"
#define OF(type, field, members, target)                                                           \
    "{\"type\":\"" type "\",\"" field "\":{" members ",\"target\":{" target "}}}"
#define RATE "\"metric\":{\"name\":\"rate\"}"
#define HALF "\"type\":\"Utilization\",\"averageUtilization\":50"
#define TEN "\"type\":\"AverageValue\",\"averageValue\":\"10\""
#define AT_METRIC "spec.autoscaling.metrics[0]."

static void metrics(void **state)
{
    static const struct row rows[] = {
        {METRICS(""), ""},
        {METRICS(CPU(HALF)), ""},
        {METRICS(OF("Pods", "pods", RATE, TEN)), ""},
        {METRICS(OF("ContainerResource", "containerResource",
                    "\"name\":\"cpu\",\"container\":\"app\"", HALF)),
         ""},
        {METRICS(OF("Object", "object",
                    "\"describedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Service\","
                    "\"name\":\"web\"}," RATE,
                    "\"type\":\"Value\",\"value\":\"2k\"")),
         ""},
        {METRICS(OF("External", "external", RATE, TEN)), ""},
        {METRICS(OF("Custom", "pods", RATE, TEN)),
         AT_METRIC "type: Unsupported value: \"Custom\": supported values: \"Resource\", "
                   "\"ContainerResource\", \"Pods\", \"Object\", \"External\"\n" AT_METRIC
                   "pods: Forbidden: is only for a metric of type Pods\n"},
        {METRICS("{\"type\":\"Pods\"}"),
         AT_METRIC "pods: Required value: the metric's type is Pods\n"},
        {METRICS(OF("External", "pods", RATE, TEN)),
         AT_METRIC "pods: Forbidden: is only for a metric of type Pods\n" AT_METRIC
                   "external: Required value: the metric's type is External\n"},
        {METRICS("{\"type\":\"Pods\",\"pods\":{" RATE "}}"),
         AT_METRIC "pods.target: Required value\n"},
        {METRICS(OF("Pods", "pods", RATE, HALF)), AT_METRIC
         "pods.target.type: Invalid value: \"Utilization\": not possible for a metric of type "
         "Pods\n"},
        {METRICS(OF("Pods", "pods", RATE, "\"type\":\"AverageValue\"")),
         AT_METRIC "pods.target.averageValue: Required value: the target's type is AverageValue\n"},
        {METRICS(OF("Pods", "pods", RATE, TEN ",\"value\":3")),
         AT_METRIC "pods.target.value: Forbidden: is only for a target of type Value\n"},
        {METRICS(OF("Pods", "pods", RATE, "\"type\":\"AverageValue\",\"averageValue\":\"-1\"")),
         AT_METRIC "pods.target.averageValue: Invalid value: \"-1\": must be greater than 0\n"},
        {METRICS(CPU("\"type\":\"Utilization\",\"averageUtilization\":0")), AT_METRIC
         "resource.target.averageUtilization: Invalid value: 0: must be greater than 0\n"},
        {METRICS(CPU(HALF) "," CPU(HALF)),
         "spec.autoscaling.metrics[1].resource.name: Duplicate value: \"cpu\": there is one target "
         "of cpu; targetCPUUtilizationPercentage also sets it\n"},
        {SCALED(
             "\"maxReplicas\":3,\"targetCPUUtilizationPercentage\":70,\"metrics\":[" CPU(HALF) "]"),
         AT_METRIC "resource.name: Duplicate value: \"cpu\": there is one target of cpu; "
                   "targetCPUUtilizationPercentage also sets it\n"},
        {APP("\"image\":\"a:1\",\"resources\":{\"requests\":{\"memory\":\"8Mi\"}},"
             "\"autoscaling\":{\"enabled\":true,\"maxReplicas\":3,\"metrics\":[" CPU(HALF) "]}"),
         "spec.resources.requests[cpu]: Required value: CPU autoscaling needs a CPU request\n"},
        {APP("\"image\":\"a:1\",\"resources\":{\"requests\":{\"memory\":\"8Mi\"}},"
             "\"autoscaling\":{\"enabled\":true,\"maxReplicas\":3,\"metrics\":[" OF(
                 "Pods", "pods", RATE, TEN) "]}"),
         ""}, /* the default target of the CPU is not set besides */
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void behavior(void **state)
{
#define DOWN "spec.autoscaling.behavior.scaleDown."
    static const struct row rows[] = {
        {BEHAVIOR(""), ""},
        {BEHAVIOR("\"scaleUp\":{\"tolerance\":\"0.05\"},\"scaleDown\":{\"tolerance\":0}"), ""},
        /* what a later Kubernetes may know */
        {BEHAVIOR("\"scaleUp\":{\"later\":{\"a\":[1]}}"),
         "W: unknown field \"spec.autoscaling.behavior.scaleUp.later\", which is passed on "
         "unchanged\n"},
        {BEHAVIOR("\"scaleUp\":{\"later\\u0000\":1}"),
         "spec.autoscaling.behavior.scaleUp: Invalid value: must not have a key with a NUL "
         "character\n"},
        {BEHAVIOR("\"later\\u0000\":{}"),
         "spec.autoscaling.behavior: Invalid value: must not have a key with a NUL character\n"},
        {BEHAVIOR("\"scaleUp\":{\"selectPolicy\":\"Disabled\"},\"scaleDown\":{"
                  "\"stabilizationWindowSeconds\":0,\"policies\":[{\"type\":\"Percent\","
                  "\"value\":10,\"periodSeconds\":60}]}"),
         ""},
        {BEHAVIOR("\"scaleDown\":{\"stabilizationWindowSeconds\":3601}"),
         DOWN "stabilizationWindowSeconds: Invalid value: 3601: must be between 0 and 3600\n"},
        {BEHAVIOR("\"scaleDown\":{\"selectPolicy\":\"None\"}"),
         DOWN "selectPolicy: Unsupported value: \"None\": supported values: \"Max\", \"Min\", "
              "\"Disabled\"\n"},
        {BEHAVIOR("\"scaleDown\":{\"policies\":[]}"),
         DOWN "policies: Invalid value: []: must not be empty\n"},
        {BEHAVIOR("\"scaleDown\":{\"policies\":[{\"type\":\"Pods\",\"value\":0,"
                  "\"periodSeconds\":1801}]}"),
         DOWN "policies[0].value: Invalid value: 0: must be greater than 0\n" DOWN
              "policies[0].periodSeconds: Invalid value: 1801: must be between 1 and 1800\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void metrics_and_route(void **state)
{
    static const struct row rows[] = {
        {SPEC("\"metrics\":{\"enabled\":true,\"labels\":{\"release\":\"prom\"}}"), ""},
        {SPEC("\"metrics\":{\"port\":0}"),
         "spec.metrics.port: Invalid value: 0: must be between 1 and 65535\n"},
        {SPEC("\"metrics\":{\"path\":\"metrics\"}"),
         "spec.metrics.path: Invalid value: \"metrics\": must start with '/'\n"},
        {SPEC("\"metrics\":{\"intervalSeconds\":0}"),
         "spec.metrics.intervalSeconds: Invalid value: 0: must be between 1 and 86400\n"},
        {SPEC("\"metrics\":{\"labels\":{\"app.kubernetes.io/name\":\"x\"}}"),
         "spec.metrics.labels[app.kubernetes.io/name]: Forbidden: is set by steward\n"},
        {SPEC("\"metrics\":{\"enabled\":true,\"port\":9113},\"podTemplate\":{\"spec\":{"
              "\"containers\":[{\"name\":\"app\",\"ports\":[{\"containerPort\":9113}]}]}}"),
         "spec.podTemplate.spec.containers[0].ports[0]: Forbidden: is set by steward from "
         "spec.metrics.port\n"},
        {SPEC("\"httpRoute\":{\"gateway\":{\"name\":\"gw\"}}"), ""},
        {SPEC("\"httpRoute\":{\"host\":\"a.example.com\"}"),
         "spec.httpRoute.gateway: Required value\n"},
        {SPEC("\"httpRoute\":{\"gateway\":{\"name\":\"gw\"},\"path\":\"a\"}"),
         "spec.httpRoute.path: Invalid value: \"a\": must start with '/'\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

/* Elements that follow are compared with it by name. */
static void template_elements_without_name(void **state)
{
#define ELEMENTS(list, first)                                                                      \
    SPEC("\"podTemplate\":{\"spec\":{\"" list "\":[" first ",{\"name\":\"b\",\"image\":\"b:1\"}]}" \
         "}")
#define NAME_REQUIRED(list) "spec.podTemplate.spec." list "[0].name: Required value\n"
    static const struct row rows[] = {
        {ELEMENTS("containers", "{\"image\":\"a:1\"}"), NAME_REQUIRED("containers")},
        {ELEMENTS("containers", "{\"image\":\"a:1\",\"name\":null}"), NAME_REQUIRED("containers")},
        {ELEMENTS("initContainers", "{\"image\":\"a:1\"}"), NAME_REQUIRED("initContainers")},
        {ELEMENTS("volumes", "{\"emptyDir\":{}}"), NAME_REQUIRED("volumes")},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void strategy(void **state)
{
#define ROLL(members) SPEC("\"strategy\":{" members "}")
#define SHAPE "must be 0 or more: a number, or a percentage such as \"25%\"\n"
    static const struct row rows[] = {
        {ROLL("\"maxSurge\":\"150%\",\"maxUnavailable\":0"), ""},
        {ROLL("\"maxSurge\":0,\"maxUnavailable\":\"100%\""), ""},
        {ROLL("\"maxSurge\":1.0,\"maxUnavailable\":1"), ""},
        {ROLL("\"maxSurge\":0,\"maxUnavailable\":\"0%\""),
         "spec.strategy: Invalid value: maxSurge and "
         "maxUnavailable must not both be 0\n"},
        {ROLL("\"maxSurge\":0"), "spec.strategy: Invalid value: maxSurge and "
                                 "maxUnavailable must not both be 0\n"},
        {ROLL("\"maxSurge\":-1"), "spec.strategy.maxSurge: Invalid value: -1: " SHAPE},
        {ROLL("\"maxSurge\":\"1\""), "spec.strategy.maxSurge: Invalid value: \"1\": " SHAPE},
        {ROLL("\"maxSurge\":\"-0%\""), "spec.strategy.maxSurge: Invalid value: \"-0%\": " SHAPE},
        {ROLL("\"maxSurge\":\"%\""), "spec.strategy.maxSurge: Invalid value: \"%\": " SHAPE},
        {ROLL("\"maxSurge\":0.5"), "spec.strategy.maxSurge: Invalid value: 0.5: must be an "
                                   "integer or a string\n"},
        {ROLL("\"maxUnavailable\":\"-1%\""),
         "spec.strategy.maxUnavailable: Invalid value: \"-1%\": " SHAPE},
        {ROLL("\"maxUnavailable\":\"101%\""), "spec.strategy.maxUnavailable: Invalid value: "
                                              "\"101%\": must not be greater than 100%\n"},
        {ROLL("\"type\":\"Recreate\",\"maxSurge\":0"), ""},
        {ROLL("\"type\":\"OnDelete\""), "spec.strategy.type: Unsupported value: \"OnDelete\": "
                                        "supported values: \"RollingUpdate\", "
                                        "\"Recreate\"\n"},
        {ROLL("\"minReadySeconds\":599,\"revisionHistoryLimit\":0"), ""},
        {ROLL("\"minReadySeconds\":600"), "spec.strategy.minReadySeconds: Invalid value: 600: must "
                                          "be less than progressDeadlineSeconds\n"},
        {ROLL("\"revisionHistoryLimit\":101"),
         "spec.strategy.revisionHistoryLimit: Invalid value: 101: must be between 0 and 100\n"},
        {ROLL("\"progressDeadlineSeconds\":0"),
         "spec.strategy.progressDeadlineSeconds: Invalid value: 0: must be between 1 and 86400\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void how_many_may_be_missing(void **state)
{
    static const struct {
        const char *surge, *unavailable;
        int64_t replicas, want;
    } cases[] = {
        {"\"25%\"", "0", 4, 0},  {"\"25%\"", "1", 4, 1},
        {"1", "\"25%\"", 7, 1},  {"\"0%\"", "\"10%\"", 5, 1}, /* both come to 0 */
        {"1", "\"100%\"", 5, 5},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autoarena struct stw_arena *arena = stw_arena_create();
        stw_autojson struct stw_json_doc doc = {0};
        char text[128];
        struct stw_app app;
        snprintf(text, sizeof(text),
                 "{\"image\":\"a\",\"strategy\":{\"maxSurge\":%s,\"maxUnavailable\":%s}}",
                 cases[i].surge, cases[i].unavailable);
        scan(&doc, text);
        assert_int_equal(stw_kind_decode(&stw_kind_app, stw_json_root(&doc), arena, &app, NULL), 0);
        assert_int_equal(stw_app_max_unavailable(&app, cases[i].replicas), cases[i].want);
    }
}

static void test_defaults(void **state)
{
    (void)state;
    assert_defaults(&stw_kind_app, APP("\"image\":\"a:1\""),
                    "/spec/replicas=1\n/spec/port=8080\n"
                    "/spec/terminationGracePeriodSeconds=30\n");
    assert_defaults(
        &stw_kind_app,
        APP("\"image\":\"a:1\",\"replicas\":2,\"port\":1,\"terminationGracePeriodSeconds\":1,"
            "\"config\":{},\"healthCheck\":{\"path\":\"/\"},\"autoscaling\":{\"enabled\":true},"
            "\"service\":{},\"strategy\":{},\"pdb\":{}"),
        "/spec/config/logLevel=\"info\"\n/spec/healthCheck/initialDelaySeconds=0\n"
        "/spec/healthCheck/periodSeconds=10\n/spec/healthCheck/timeoutSeconds=1\n"
        "/spec/healthCheck/failureThreshold=3\n/spec/healthCheck/liveness=false\n"
        "/spec/autoscaling/minReplicas=1\n/spec/service/type=\"ClusterIP\"\n"
        "/spec/service/port=80\n/spec/strategy/type=\"RollingUpdate\"\n/spec/strategy/"
        "maxSurge=\"25%\"\n"
        "/spec/strategy/maxUnavailable=0\n/spec/strategy/progressDeadlineSeconds=600\n"
        "/spec/strategy/minReadySeconds=0\n/spec/strategy/revisionHistoryLimit=10\n"
        "/spec/pdb/enabled=true\n");
    /* The target of the CPU is not stored: it would remain when another one is given. */
    assert_defaults(&stw_kind_app,
                    APP("\"replicas\":1,\"port\":1,\"terminationGracePeriodSeconds\":1,"
                        "\"autoscaling\":{\"enabled\":true,\"minReplicas\":1,\"maxReplicas\":5}"),
                    "");
    assert_defaults(&stw_kind_app,
                    APP("\"replicas\":1,\"port\":1,\"terminationGracePeriodSeconds\":1,"
                        "\"autoscaling\":{}"),
                    "/spec/autoscaling/enabled=false\n/spec/autoscaling/minReplicas=1\n");
}

static void ratcheting(void **state)
{
    (void)state;
    /* An unchanged invalid value does not block another change. */
    assert_answer(&stw_kind_app, CONFIG("\"environment\":{\"1A\":\"x\",\"B\":\"2\"}"),
                  CONFIG("\"environment\":{\"1A\":\"x\"}"), NULL,
                  "W: spec.config.environment[1A]: Invalid value: \"1A\": " NAME_TEXT
                  "; not refused, because it has not changed\n");
    assert_answer(&stw_kind_app, CONFIG("\"environment\":{\"1A\":\"y\"}"),
                  CONFIG("\"environment\":{\"1A\":\"x\"}"), NULL,
                  "spec.config.environment[1A]: Invalid value: \"1A\": " NAME_TEXT "\n");
}

static void names(void **state)
{
    (void)state;
    assert_create("{\"metadata\":{\"name\":\"1web\"},\"spec\":{" GOOD "}}",
                  "metadata.name: Invalid value: \"1web\": must start with a letter and hold only "
                  "a-z, 0-9 and '-', because a Service gets this name\n");
    assert_create(
        "{\"metadata\":{\"name\":\"a12345678901234567890123456789012345678901234567890"
        "1234567890123\"},\"spec\":{" GOOD "}}",
        "metadata.name: Invalid value: "
        "\"a123456789012345678901234567890123456789012345678901234567890123\": must be at "
        "most 63 characters\n");
}

/* --- lookups */

struct world {
    const char *plural, *key; /* exists */
    struct stw_secret_facts facts;
};

static int has(void *ctx, const char *plural, const char *key)
{
    const struct world *w = ctx;
    return stw_streq(plural, w->plural) && stw_streq(key, w->key);
}

static int look_at(void *ctx, const char *ns, const char *name, const char *key,
                   struct stw_secret_facts *ret)
{
    const struct world *w = ctx;
    assert_string_equal(ns, "shop");
    assert_string_equal(name, "db");
    assert_string_equal(key, "url");
    *ret = w->facts;
    return 0;
}

static void assert_in(struct world *w, const struct stw_kind *kind, const char *object,
                      const char *old, const char *want)
{
    struct stw_lookup lookup = {.ctx = w, .has = has, .secret = look_at};
    struct stw_env world = {.lookup = &lookup};
    assert_answer(kind, object, old, &world, want);
}

static void one_name_for_two_kinds(void **state)
{
    struct world w = {.plural = "mywebs", .key = "shop/web"};
    (void)state;
    assert_in(
        &w, &stw_kind_app, APP(GOOD), NULL,
        "W: MyWeb \"web\" in this namespace has a Deployment and a Service of the same names; "
        "the younger of the two gets none (NameConflict)\n");
    assert_in(&w, &stw_kind_app, SPEC("\"port\":9000"), APP(GOOD), ""); /* only on CREATE */
    w.key = "shop/other";
    assert_in(&w, &stw_kind_app, APP(GOOD), NULL, "");
    w = (struct world){.plural = "apps", .key = "shop/web"};
    assert_in(&w, stw_kind_find("operator.k8s-summit.org", "v1", "MyWeb"),
              APP("\"image\":\"nginx:1\",\"pageContentHtml\":\"x\""), NULL,
              "W: App \"web\" in this namespace has a Deployment and a Service of the same names; "
              "the younger of the two gets none (NameConflict)\n");
}

static void the_secret(void **state)
{
#define REF CONFIG("\"databaseUrlSecretRef\":{\"name\":\"db\",\"key\":\"url\"}")
    struct world w = {.plural = "", .key = ""};
    (void)state;
    assert_in(&w, &stw_kind_app, REF, NULL,
              "W: Secret \"db\" not found; the pods start when it appears\n");
    w.facts.secret_there = true;
    assert_in(&w, &stw_kind_app, REF, NULL,
              "W: Secret \"db\" has no key \"url\"; the pods start when it appears\n");
    /* A lookup costs a request: skipped for an unchanged reference. */
    assert_in(&w, &stw_kind_app, REF, REF, "");
    assert_in(&w, &stw_kind_app, REF, APP(GOOD),
              "W: Secret \"db\" has no key \"url\"; the pods start when it appears\n");
    w.facts.key_there = true;
    assert_in(&w, &stw_kind_app, REF, NULL, "");
}

/* --- Pod Security */

static bool enforces(void *ctx, const char *index, const char *key, const char *self,
                     char *ret_holder)
{
    const struct world *w = ctx;
    (void)self, (void)ret_holder;
    return stw_streq(index, "namespaces.enforce") && stw_streq(key, w->key);
}

/* `level`: "privileged/shop", the label of namespace "shop". */
static void assert_in_namespace(const char *level, const char *object, const char *old,
                                const char *want)
{
    struct world w = {.key = level};
    struct stw_lookup lookup = {.ctx = &w, .find = enforces};
    struct stw_env env = {.lookup = &lookup};
    assert_answer(&stw_kind_app, object, old, &env, want);
}

#define BEYOND_TEXT                                                                                \
    "is beyond the Baseline Pod Security Standard; allowed only in a namespace with the label "    \
    "pod-security.kubernetes.io/enforce: privileged"
#define BEYOND BEYOND_TEXT "\n"
#define CONTEXT(members) SPEC("\"securityContext\":{" members "}")

/* A tenant who may create Apps, but no pods, asks for the node. */
static void beyond_baseline(void **state)
{
    static const struct row rows[] = {
        {CONTEXT("\"runAsUser\":0,\"capabilities\":{\"add\":[\"NET_BIND_SERVICE\",\"CHOWN\"]}"),
         ""},
        {CONTEXT("\"privileged\":false,\"procMount\":\"Default\",\"seccompProfile\":{\"type\":"
                 "\"Localhost\"},\"seLinuxOptions\":{\"type\":\"container_t\",\"level\":\"s0\"}"),
         ""},
        {CONTEXT("\"privileged\":true"), "spec.securityContext.privileged: Forbidden: " BEYOND},
        {CONTEXT("\"capabilities\":{\"add\":[\"CHOWN\",\"SYS_ADMIN\"]}"),
         "spec.securityContext.capabilities.add[1]: Forbidden: " BEYOND},
        {CONTEXT("\"capabilities\":{\"add\":[\"ALL\"]}"),
         "spec.securityContext.capabilities.add[0]: Forbidden: " BEYOND},
        {CONTEXT("\"procMount\":\"Unmasked\""),
         "spec.securityContext.procMount: Forbidden: " BEYOND},
        {CONTEXT("\"seccompProfile\":{\"type\":\"Unconfined\"}"),
         "spec.securityContext.seccompProfile.type: Forbidden: " BEYOND},
        {CONTEXT("\"appArmorProfile\":{\"type\":\"Unconfined\"}"),
         "spec.securityContext.appArmorProfile.type: Forbidden: " BEYOND},
        {CONTEXT("\"seLinuxOptions\":{\"type\":\"spc_t\",\"user\":\"u\"}"),
         "spec.securityContext.seLinuxOptions.type: Forbidden: " BEYOND
         "spec.securityContext.seLinuxOptions.user: Forbidden: " BEYOND},
        {CONTEXT("\"windowsOptions\":{\"hostProcess\":true}"),
         "spec.securityContext.windowsOptions.hostProcess: Forbidden: " BEYOND},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        assert_in_namespace("", rows[i].object, NULL, rows[i].want);
        assert_in_namespace("baseline/shop", rows[i].object, NULL, rows[i].want);
        assert_in_namespace("privileged/shop", rows[i].object, NULL, "");
        assert_create(rows[i].object, ""); /* no namespace is known */
    }
    /* Another namespace's label permits nothing here. */
    assert_in_namespace("privileged/shop2", rows[2].object, NULL, rows[2].want);
    /* What is stored may be changed otherwise. */
    assert_in_namespace("", CONTEXT("\"privileged\":true},\"replicas\":2,\"pdb\":{"),
                        CONTEXT("\"privileged\":true"),
                        "W: spec.securityContext.privileged: Forbidden: " BEYOND_TEXT
                        "; not refused, because it has not changed\n");
}

#define POD(members) SPEC("\"podTemplate\":{\"spec\":{" members "}}")
#define OWN(members) POD("\"containers\":[{\"name\":\"app\"," members "}]")
#define SIDE(members) POD("\"containers\":[{\"name\":\"side\",\"image\":\"s:1\"," members "}]")
#define AT "spec.podTemplate.spec."

/* The same tenant tries it with a podTemplate. */
static void pods_beyond_baseline(void **state)
{
    static const struct row rows[] = {
        {POD("\"hostNetwork\":true,\"hostPID\":true,\"hostIPC\":true"),
         AT "hostNetwork: Forbidden: " BEYOND AT "hostPID: Forbidden: " BEYOND AT
            "hostIPC: Forbidden: " BEYOND},
        {POD("\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"b\",\"hostPath\":{"
             "\"path\":\"/\"}}]"),
         AT "volumes[1].hostPath: Forbidden: " BEYOND},
        {SIDE("\"securityContext\":{\"privileged\":true}"),
         AT "containers[0].securityContext.privileged: Forbidden: " BEYOND},
        {POD("\"initContainers\":[{\"name\":\"i\",\"image\":\"i:1\",\"securityContext\":{"
             "\"capabilities\":{\"add\":[\"SYS_ADMIN\"]}}}]"),
         AT "initContainers[0].securityContext.capabilities.add[0]: Forbidden: " BEYOND},
        {SIDE("\"ports\":[{\"containerPort\":1,\"hostPort\":22}]"),
         AT "containers[0].ports[0].hostPort: Forbidden: " BEYOND},
        {SIDE("\"livenessProbe\":{\"httpGet\":{\"host\":\"169.254.169.254\",\"port\":80}}"),
         AT "containers[0].livenessProbe.httpGet.host: Forbidden: " BEYOND},
        {OWN("\"lifecycle\":{\"preStop\":{\"tcpSocket\":{\"host\":\"10.0.0.1\",\"port\":1}}}"),
         AT "containers[0].lifecycle.preStop.tcpSocket.host: Forbidden: " BEYOND},
        {POD("\"securityContext\":{\"seccompProfile\":{\"type\":\"Unconfined\"},\"sysctls\":[{"
             "\"name\":\"net.ipv4.tcp_syncookies\",\"value\":\"1\"},{\"name\":"
             "\"kernel.msgmax\",\"value\":\"1\"}]}"),
         AT "securityContext.seccompProfile.type: Forbidden: " BEYOND AT
            "securityContext.sysctls[1].name: Forbidden: " BEYOND},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        assert_in_namespace("", rows[i].object, NULL, rows[i].want);
        assert_in_namespace("privileged/shop", rows[i].object, NULL, "");
    }
}

static void pod_template(void **state)
{
#define FROM(field) ": Forbidden: is set by steward from spec." field "\n"
    static const struct row rows[] = {
        {SPEC("\"podTemplate\":{}"), ""},
        {OWN("\"command\":[\"a\"],\"args\":[\"b\"],\"imagePullPolicy\":\"Always\",\"envFrom\":[{"
             "\"secretRef\":{\"name\":\"s\"}}],\"readinessProbe\":{\"exec\":{\"command\":[\"x\"]}"
             "}"),
         ""},
        {SIDE("\"restartPolicy\":\"Always\""), ""},
        {SPEC("\"podTemplate\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}}"),
         "spec.podTemplate.kind: Forbidden: only metadata and spec can be set\n"
         "spec.podTemplate.metadata.name: Forbidden: only labels and annotations can be set\n"},
        {SPEC("\"podTemplate\":{\"metadata\":{\"labels\":{\"app\":\"x\",\"a "
              "b\":\"\"},\"annotations\":{"
              "\"mycompany.com/config-hash\":\"x\","
              "\"container.apparmor.security.beta.kubernetes.io/app\":\"unconfined\"}}}"),
         "spec.podTemplate.metadata.labels[app]: Forbidden: is set by steward\n"
         "spec.podTemplate.metadata.labels[a b]: Invalid value: \"a b\": must be a name such as "
         "example.com/name: at most 63 letters, digits, '-', '_' and '.', with a letter or digit "
         "at both ends, after an optional DNS subdomain and '/'\n"
         "spec.podTemplate.metadata.annotations[mycompany.com/config-hash]: Forbidden: is set by "
         "steward; profiles are set in securityContext\n"
         "spec.podTemplate.metadata.annotations[container.apparmor.security.beta.kubernetes.io/"
         "app]: Forbidden: is set by steward; profiles are set in securityContext\n"},
        {POD("\"serviceAccountName\":\"admin\",\"serviceAccount\":\"admin\","
             "\"automountServiceAccountToken\":true,\"affinity\":{}"),
         AT "serviceAccountName" FROM("serviceAccountName") AT
         "serviceAccount" FROM("serviceAccountName") AT
         "automountServiceAccountToken" FROM("serviceAccountName") AT "affinity" FROM("affinity")},
        {OWN("\"image\":\"x\",\"resources\":{},\"securityContext\":{},\"env\":[]"),
         AT "containers[0].image" FROM("image") AT "containers[0].resources" FROM("resources") AT
         "containers[0].securityContext" FROM("securityContext") AT
         "containers[0].env" FROM("env")},
        {OWN("\"ports\":[{\"containerPort\":8080},{\"containerPort\":1,\"name\":\"http\"},{"
             "\"containerPort\":2}]"),
         AT "containers[0].ports[0]" FROM("port") AT "containers[0].ports[1]" FROM("port")},
        {SPEC("\"healthCheck\":{\"path\":\"/\"},\"podTemplate\":{\"spec\":{\"containers\":[{"
              "\"name\":\"app\",\"readinessProbe\":{},\"livenessProbe\":{}}]}}"),
         AT "containers[0].readinessProbe" FROM("healthCheck")},
        {POD("\"containers\":[{\"name\":\"a\"},{\"image\":\"b\"},{\"name\":\"a\",\"image\":\"c\"}"
             "]"),
         AT "containers[1].name: Required value\n" AT
            "containers[2].name: Duplicate value: \"a\"\n" AT
            "containers[0].image: Required value\n"},
        {POD("\"initContainers\":[{\"name\":\"app\",\"image\":\"a\"}],\"ephemeralContainers\":[]"),
         AT "ephemeralContainers: Forbidden: belong to pods, not to templates\n" AT
            "initContainers[0]: Forbidden: \"app\" is the name of a container\n"},
        {POD("\"hostNetwork\":\"true\",\"containers\":[{\"name\":\"app\",\"command\":\"x\"}]"),
         AT "containers[0].command: Invalid value: \"x\": must be a list\n" AT
            "hostNetwork: Invalid value: \"true\": must be a boolean\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void security_profile(void **state)
{
    (void)state;
    assert_create(SPEC("\"securityProfile\":\"Baseline\""), "");
    assert_create(SPEC("\"securityProfile\":\"Privileged\""),
                  "spec.securityProfile: Unsupported value: \"Privileged\": supported values: "
                  "\"Baseline\", \"Restricted\"\n");
    assert_in_namespace("restricted/shop", SPEC("\"securityProfile\":\"Restricted\""), NULL, "");
    assert_in_namespace("restricted/shop", SPEC("\"securityProfile\":\"Baseline\""), NULL,
                        "W: the namespace enforces the restricted Pod Security Standard; "
                        "securityProfile Baseline has no effect\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_fields),
        cmocka_unit_test(configuration),
        cmocka_unit_test(environment_in_total),
        cmocka_unit_test(one_variable),
        cmocka_unit_test(passed_on_in_bounds),
        cmocka_unit_test(env),
        cmocka_unit_test(resources),
        cmocka_unit_test(health_check),
        cmocka_unit_test(autoscaling),
        cmocka_unit_test(metrics),
        cmocka_unit_test(behavior),
        cmocka_unit_test(metrics_and_route),
        cmocka_unit_test(template_elements_without_name),
        cmocka_unit_test(strategy),
        cmocka_unit_test(how_many_may_be_missing),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(ratcheting),
        cmocka_unit_test(names),
        cmocka_unit_test(one_name_for_two_kinds),
        cmocka_unit_test(the_secret),
        cmocka_unit_test(beyond_baseline),
        cmocka_unit_test(pods_beyond_baseline),
        cmocka_unit_test(pod_template),
        cmocka_unit_test(security_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
