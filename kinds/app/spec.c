/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/app/spec.h"

#include "base/util.h"
#include "kinds/app/spec_priv.h"
#include "kinds/common/ingress.h"
#include "kinds/common/schedule.h"
#include "schema/core.h"
#include "schema/names.h"
#include "schema/rows.h"

#define SECONDS_MAX 3600

/* --- config */

static const struct stw_field secret_ref_fields[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct stw_app_config, database_url_ref.name),
     .help = "Name of a Secret in the same namespace.",
     .required = true,
     STW_CHECK_SUBDOMAIN},
    {.name = "key",
     STW_FIELD(STW_T_STRING, struct stw_app_config, database_url_ref.key),
     .help = "Key in the Secret.",
     .required = true,
     STW_RANGE(1, 253),
     .check = stw_core_check_key,
     .cel = stw_core_cel_key},
    {0},
};

static const char *const log_levels[] = {"trace", "debug", "info", "warn", "error", NULL};

/* Without the value, which may hold a password. */
#define VALUE_TEXT "must be a string"
static const struct stw_field value_item = {
    .name = "", .type = STW_T_TEXT, .type_text = VALUE_TEXT};

static const struct stw_field config_fields[] = {
    {.name = "databaseUrl",
     STW_FIELD(STW_T_STRING, struct stw_app_config, database_url),
     .help = "Becomes DATABASE_URL: a URL such as postgres://host/db.  It is stored in a "
             "ConfigMap; a URL with a password belongs in a Secret, see databaseUrlSecretRef.",
     .type_text = VALUE_TEXT,
     .cel = stw_app_cel_url,
     .cel_max = STW_APP_URL_MAX},
    {.name = "databaseUrlSecretRef",
     .type = STW_T_OBJECT,
     .help = "Where DATABASE_URL comes from instead: a key in a Secret.",
     .fields = secret_ref_fields},
    {.name = "logLevel",
     STW_FIELD(STW_T_STRING, struct stw_app_config, log_level),
     .help = "Becomes LOG_LEVEL.",
     .def = "\"info\"",
     .values = log_levels},
    {.name = "environment",
     STW_FIELD(STW_T_MAP, struct stw_app_config, environment),
     .help = "More environment variables; at most 1000, and 921600 bytes with their names.",
     STW_RANGE(0, 1000),
     .item = &value_item},
    {0},
};

/* --- health, scaling, service */

static const struct stw_field health_fields[] = {
    {.name = "path",
     STW_FIELD(STW_T_STRING, struct stw_app_health, path),
     .help = "Path of the HTTP request; any status from 200 to 399 counts as healthy.",
     .required = true,
     STW_RANGE(1, 1024),
     .pattern = "^/",
     .check = stw_app_check_path,
     .cel = stw_app_cel_path},
    {.name = "port",
     STW_FIELD(STW_T_INT, struct stw_app_health, port),
     .help = "Port of the request; when absent, that of the app.",
     STW_RANGE(1, 65535),
     .format = "int32"},
    {.name = "initialDelaySeconds",
     STW_FIELD(STW_T_INT, struct stw_app_health, initial_delay_s),
     .help = "Seconds from the container's start to the first request.",
     .def = "0",
     STW_RANGE(0, SECONDS_MAX),
     .format = "int32"},
    {.name = "periodSeconds",
     STW_FIELD(STW_T_INT, struct stw_app_health, period_s),
     .help = "Seconds from one request to the next.",
     .def = "10",
     STW_RANGE(1, SECONDS_MAX),
     .format = "int32"},
    {.name = "timeoutSeconds",
     STW_FIELD(STW_T_INT, struct stw_app_health, timeout_s),
     .help = "Seconds that an answer may take; not more than periodSeconds.",
     .def = "1",
     STW_RANGE(1, SECONDS_MAX),
     .format = "int32"},
    {.name = "failureThreshold",
     STW_FIELD(STW_T_INT, struct stw_app_health, failure_threshold),
     .help = "Failed requests in a row after which a pod is taken out of the Service.",
     .def = "3",
     STW_RANGE(1, 1000),
     .format = "int32"},
    {.name = "liveness",
     STW_FIELD(STW_T_BOOL, struct stw_app_health, liveness),
     .help = "Whether a container that fails them is also restarted.",
     .def = "false"},
    {0},
};

static const struct stw_field autoscaling_fields[] = {
    {.name = "enabled",
     STW_FIELD(STW_T_BOOL, struct stw_app_autoscaling, enabled),
     .help = "Whether a HorizontalPodAutoscaler decides how many pods there are.",
     .def = "false"},
    {.name = "minReplicas",
     STW_FIELD(STW_T_INT, struct stw_app_autoscaling, min),
     .help = "Fewest pods.",
     .def = "1",
     STW_RANGE(1, STW_APP_REPLICAS_MAX),
     .format = "int32"},
    {.name = "maxReplicas",
     STW_FIELD(STW_T_INT, struct stw_app_autoscaling, max),
     .help = "Most pods; required when enabled.",
     STW_RANGE(1, STW_APP_REPLICAS_MAX),
     .format = "int32"},
    {.name = "targetCPUUtilizationPercentage",
     STW_FIELD(STW_T_INT, struct stw_app_autoscaling, cpu),
     .help = "Target of the average CPU use of the pods, in percent of their request; 80 when no "
             "target and no metric is given.",
     STW_RANGE(1, 1000),
     .format = "int32"},
    {.name = "targetMemoryUtilizationPercentage",
     STW_FIELD(STW_T_INT, struct stw_app_autoscaling, memory),
     .help = "Target of the average memory use of the pods, in percent of their request.",
     STW_RANGE(1, 1000),
     .format = "int32"},
    {.name = "metrics",
     STW_FIELD(STW_T_LIST, struct stw_app_autoscaling, metrics),
     .help = "More metrics, as in a HorizontalPodAutoscaler; the one that asks for the most pods "
             "decides; at most 20.",
     STW_RANGE(0, STW_APP_METRICS_MAX),
     .item = &stw_app_metric_item},
    {.name = "behavior",
     STW_FIELD(STW_T_RAW, struct stw_app_autoscaling, behavior),
     .help = "How fast the number of pods goes up and down, as in a HorizontalPodAutoscaler.",
     .fields = stw_app_behavior,
     .open = true},
    {0},
};

static const char *const service_types[] = {"ClusterIP", "NodePort", "LoadBalancer", NULL};

static const struct stw_field service_fields[] = {
    {.name = "type",
     STW_FIELD(STW_T_STRING, struct stw_app, service.type),
     .help = "Who reaches the Service: pods, also a port of every node, also a load balancer.",
     .def = "\"ClusterIP\"",
     .values = service_types},
    {.name = "port",
     STW_FIELD(STW_T_INT, struct stw_app, service.port),
     .help = "Port of the Service.",
     .def = "80",
     STW_RANGE(1, 65535),
     .format = "int32"},
    {.name = "annotations",
     STW_FIELD(STW_T_MAP, struct stw_app, service.annotations),
     .help = "Annotations of the Service, such as those that load balancers read; at most 500.",
     STW_RANGE(0, 500),
     .item = &stw_core_text_item},
    {0},
};

static const struct stw_field tls_fields[] = {
    STW_INGRESS_TLS_SECRET(struct stw_app),
    {0},
};

static const struct stw_field ingress_fields[] = {
    STW_INGRESS_HOST(struct stw_app),
    {.name = "path",
     STW_FIELD(STW_T_STRING, struct stw_app, ingress.path),
     .help = "Path of the requests and of all below it.",
     .def = "\"/\"",
     STW_RANGE(1, 1024),
     .pattern = "^/",
     .check = stw_app_check_path,
     .cel = stw_app_cel_path},
    STW_INGRESS_CLASS(struct stw_app),
    {.name = "tls", .type = STW_T_OBJECT, .help = "HTTPS for the host.", .fields = tls_fields},
    {0},
};

static const struct stw_field gateway_fields[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct stw_app, route.gateway),
     .help = "Name of the Gateway.",
     .required = true,
     STW_CHECK_SUBDOMAIN},
    {.name = "namespace",
     STW_FIELD(STW_T_STRING, struct stw_app, route.gateway_ns),
     .help = "Its namespace; when absent, that of the App. The Gateway decides which namespaces "
             "may have routes to it.",
     STW_CHECK_SUBDOMAIN},
    {.name = "sectionName",
     STW_FIELD(STW_T_STRING, struct stw_app, route.listener),
     .help = "Name of one listener of the Gateway; when absent, all that fit.",
     STW_CHECK_SUBDOMAIN},
    {0},
};

static const struct stw_field route_fields[] = {
    {.name = "gateway",
     .type = STW_T_OBJECT,
     .help = "The Gateway that sends the requests.",
     .required = true,
     .fields = gateway_fields},
    {.name = "host",
     STW_FIELD(STW_T_STRING, struct stw_app, route.host),
     .help = "Host name of the requests; its first part may be \"*\". When absent, those of the "
             "Gateway's listener.",
     .check = stw_ingress_check_host,
     .cel = stw_ingress_cel_host,
     .cel_max = 255},
    {.name = "path",
     STW_FIELD(STW_T_STRING, struct stw_app, route.path),
     .help = "Path of the requests and of all below it.",
     .def = "\"/\"",
     STW_RANGE(1, 1024),
     .pattern = "^/",
     .check = stw_app_check_path,
     .cel = stw_app_cel_path},
    {0},
};

static const struct stw_field metrics_fields[] = {
    {.name = "enabled",
     STW_FIELD(STW_T_BOOL, struct stw_app, metrics.enabled),
     .help = "Whether there is a PodMonitor, by which the Prometheus operator scrapes the pods.",
     .def = "false"},
    {.name = "path",
     STW_FIELD(STW_T_STRING, struct stw_app, metrics.path),
     .help = "Path of the metrics.",
     .def = "\"/metrics\"",
     STW_RANGE(1, 1024),
     .pattern = "^/",
     .check = stw_app_check_path,
     .cel = stw_app_cel_path},
    {.name = "port",
     STW_FIELD(STW_T_INT, struct stw_app, metrics.port),
     .help = "Port of the metrics in the container of the image; when absent, that of the app.",
     STW_RANGE(1, 65535),
     .format = "int32"},
    {.name = "intervalSeconds",
     STW_FIELD(STW_T_INT, struct stw_app, metrics.interval_s),
     .help = "Seconds between two scrapes; when absent, as Prometheus is configured.",
     STW_RANGE(1, 86400),
     .format = "int32"},
    {.name = "labels",
     STW_FIELD(STW_T_MAP, struct stw_app, metrics.labels),
     .help = "Labels of the PodMonitor, by which a Prometheus selects it; at most 50.",
     STW_RANGE(0, 50),
     .item = &stw_core_label_item},
    {0},
};

/* --- pods */

static const char *const strategy_types[] = {"RollingUpdate", STW_APP_RECREATE, NULL};

static const struct stw_field strategy_fields[] = {
    {.name = "type",
     STW_FIELD(STW_T_STRING, struct stw_app, strategy.type),
     .help = "Whether new pods replace the old ones step by step, or start when all old ones have "
             "ended; maxSurge and maxUnavailable are then ignored.",
     .def = "\"RollingUpdate\"",
     .values = strategy_types},
    {.name = "maxSurge",
     STW_FIELD(STW_T_INT_OR_STRING, struct stw_app, strategy.max_surge),
     .help = "How many pods more than wanted a rollout may have: a number, or a percentage.",
     .def = "\"" STW_APP_MAX_SURGE "\"",
     .pattern = "^[0-9]{1,6}%$"},
    {.name = "maxUnavailable",
     STW_FIELD(STW_T_INT_OR_STRING, struct stw_app, strategy.max_unavailable),
     .help = "How many of the pods may be missing in a rollout: a number, or a percentage.",
     .def = "0",
     .pattern = "^(100|[0-9]{1,2})%$"},
    {.name = "progressDeadlineSeconds",
     STW_FIELD(STW_T_INT, struct stw_app, strategy.deadline_s),
     .help = "Seconds without progress after which a rollout counts as failed.",
     .def = "600",
     STW_RANGE(1, 86400),
     .format = "int32"},
    {.name = "minReadySeconds",
     STW_FIELD(STW_T_INT, struct stw_app, strategy.min_ready_s),
     .help = "Seconds that a pod must be ready before it counts as available; less than "
             "progressDeadlineSeconds.",
     .def = "0",
     STW_RANGE(0, 86400),
     .format = "int32"},
    {.name = "revisionHistoryLimit",
     STW_FIELD(STW_T_INT, struct stw_app, strategy.history),
     .help = "How many old ReplicaSets are kept.",
     .def = "10",
     STW_RANGE(0, 100),
     .format = "int32"},
    {0},
};

static const struct stw_field pdb_fields[] = {
    {.name = "enabled",
     STW_FIELD(STW_T_BOOL, struct stw_app, pdb.enabled),
     .help =
         "Whether drains of nodes take one pod at a time; without effect when there is only one.",
     .def = "true"},
    {0},
};

static const struct stw_field restart_fields[] = {
    {.name = "enabled",
     STW_FIELD(STW_T_BOOL, struct stw_app, restart.enabled),
     .help = "Whether the pods are restarted when a Secret or ConfigMap that they read changes.",
     .def = "false"},
    {.name = "minIntervalSeconds",
     STW_FIELD(STW_T_INT, struct stw_app, restart.min_interval_s),
     .help = "Seconds between two of these restarts. While changes follow each other closely, the "
             "interval doubles with each restart, up to a day.",
     .def = "300",
     STW_RANGE(60, 86400),
     .format = "int32"},
    {.name = "timeZone",
     STW_FIELD(STW_T_STRING, struct stw_app, restart.time_zone),
     .help = "Time zone of the windows by its IANA name, such as Europe/Berlin.",
     .def = "\"Etc/UTC\"",
     STW_RANGE(1, STW_TIME_ZONE_MAX)},
    {.name = "windows",
     STW_FIELD(STW_T_LIST, struct stw_app, restart.windows),
     .help = "Times of the week in which these restarts may be made, in timeZone; at most 14. "
             "Always, if absent or empty.",
     STW_RANGE(0, STW_WINDOWS_MAX),
     .item = &stw_hours_window_item},
    {0},
};

static const char *const security_profiles[] = {STW_APP_BASELINE, STW_APP_RESTRICTED, NULL};

static const struct stw_field spec_fields[] = {
    STW_ROW_IMAGE(struct stw_app, image, "Image of the app."),
    {.name = "replicas",
     STW_FIELD(STW_T_INT, struct stw_app, replicas),
     .help = "How many pods there are; with autoscaling, how many there are at first.",
     .def = "1",
     STW_RANGE(0, STW_APP_REPLICAS_MAX),
     .format = "int32"},
    {.name = "port",
     STW_FIELD(STW_T_INT, struct stw_app, port),
     .help = "Port on which the app listens; the app gets it as the environment variable PORT.",
     .def = "8080",
     STW_RANGE(1, 65535),
     .format = "int32"},
    {.name = "config",
     STW_FIELD(STW_T_OBJECT, struct stw_app, config),
     .help = "Environment variables of the app; a change rolls the pods.",
     .fields = config_fields},
    {.name = "resources",
     STW_FIELD(STW_T_RAW, struct stw_app, resources),
     .help = "Resources of the container, as in a Pod.",
     .fields = stw_core_resources},
    {.name = "healthCheck",
     STW_FIELD(STW_T_OBJECT, struct stw_app, health),
     .help = "Readiness check by HTTP; when absent, a pod is ready once it runs.",
     .fields = health_fields},
    {.name = "autoscaling",
     STW_FIELD(STW_T_OBJECT, struct stw_app, autoscaling),
     .help = "Scales the number of pods with the load.",
     .fields = autoscaling_fields},
    {.name = "service",
     .type = STW_T_OBJECT,
     .help = "The Service of the pods.",
     .fields = service_fields},
    {.name = "ingress",
     .type = STW_T_OBJECT,
     .help = "An Ingress for the Service; when absent, there is none.",
     .fields = ingress_fields},
    {.name = "httpRoute",
     .type = STW_T_OBJECT,
     .help = "An HTTPRoute of the Gateway API for the Service; when absent, there is none.",
     .fields = route_fields},
    {.name = "metrics",
     .type = STW_T_OBJECT,
     .help = "Metrics of the app, for Prometheus.",
     .fields = metrics_fields},
    STW_ROW_PULL_SECRETS(struct stw_app, image_pull_secrets),
    {.name = "serviceAccountName",
     STW_FIELD(STW_T_STRING, struct stw_app, service_account),
     .help = "ServiceAccount of the pods, whose token they then get; when absent, they get none.",
     STW_CHECK_SUBDOMAIN},
    {.name = "securityProfile",
     STW_FIELD(STW_T_STRING, struct stw_app, security_profile),
     .help = "Pod Security Standard that sets the options that securityContext leaves out.  "
             "Restricted: not root, no capabilities, no privilege escalation, the runtime's "
             "seccomp profile.  Baseline: only the seccomp profile.  When absent: what the "
             "namespace enforces, else Baseline.",
     .values = security_profiles},
    {.name = "securityContext",
     STW_FIELD(STW_T_RAW, struct stw_app, security_context),
     .help = "Security options of the container, as in a Pod.  What is not in here is as "
             "securityProfile says.",
     .known = stw_core_security_context},
    {.name = "env",
     STW_FIELD(STW_T_LIST, struct stw_app, env),
     .help = "Environment variables as in a Pod, for those that come from somewhere; at most 200.",
     STW_RANGE(0, 200),
     .item = &stw_core_env,
     .list_keys = stw_core_env_keys},
    STW_ROW_AFFINITY(struct stw_app, affinity),
    STW_ROW_TOLERATIONS(struct stw_app, tolerations),
    {.name = "topologySpreadConstraints",
     STW_FIELD(STW_T_LIST, struct stw_app, spread),
     .help = "How the pods are spread, as in a Pod; a labelSelector that is absent is that of the "
             "app's pods.  When absent: over nodes and zones, as far as possible.",
     STW_RANGE(0, 20),
     .item = &stw_core_spread},
    {.name = "terminationGracePeriodSeconds",
     STW_FIELD(STW_T_INT, struct stw_app, grace_period_s),
     .help = "Seconds that a pod has to end by itself.",
     .def = "30",
     STW_RANGE(0, 86400),
     .format = "int64"},
    {.name = "podTemplate",
     STW_FIELD(STW_T_RAW, struct stw_app, pod_template),
     .help = "Labels, annotations and spec of the pods, as in a Deployment, merged over those that "
             "steward builds.  The container of the image is called \"app\"; other containers, "
             "volumes, probes and so on are added.  Fields that another field of the App sets must "
             "not be in here.",
     .known = stw_core_pod_template},
    {.name = "strategy",
     .type = STW_T_OBJECT,
     .help = "How a rollout replaces the pods.",
     .fields = strategy_fields},
    {.name = "pdb", .type = STW_T_OBJECT, .help = "The PodDisruptionBudget.", .fields = pdb_fields},
    {.name = "restartOnChange",
     .type = STW_T_OBJECT,
     .help = "Restarts after changes of the Secrets and ConfigMaps that the pods read.",
     .fields = restart_fields},
    {0},
};

/* --- status */

static const char *const phases[] = {"Pending", "Progressing", "Running",     "Degraded",
                                     "Failed",  "Paused",      "Terminating", NULL};

static const struct stw_field last_good_fields[] = {
    {.name = "image", .type = STW_T_STRING, .help = "Its image."},
    {.name = "configHash", .type = STW_T_STRING, .help = "Hash of its configuration."},
    {.name = "time", .type = STW_T_STRING, .format = "date-time", .help = "When it became ready."},
    {0},
};

static const struct stw_field inputs_fields[] = {
    {.name = "hash",
     .type = STW_T_STRING,
     .help = "Hash of the versions of the Secrets and ConfigMaps that the pods were started with; "
             "or unknown."},
    {.name = "namesHash", .type = STW_T_STRING, .help = "Hash of their names."},
    {.name = "restartHash",
     .type = STW_T_STRING,
     .help = "The hash at the latest restart; the pod template has it as an annotation."},
    {.name = "lastRestartTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "The latest restart because of a change."},
    {.name = "intervalSeconds",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Seconds from that restart to the next, at least."},
    {.name = "pending",
     .type = STW_T_BOOL,
     .help = "They have changed, and the restart waits for the interval or a window."},
    {.name = "restarting",
     .type = STW_T_BOOL,
     .help = "A restart is decided, and the Deployment may not have it yet."},
    {0},
};

static const struct stw_field status_fields[] = {
    {.name = "phase",
     .type = STW_T_STRING,
     .help = "The conditions in one word, for people.",
     .values = phases},
    {.name = "desiredReplicas",
     .type = STW_T_INT,
     .format = "int32",
     .help = "Desired number of pods: spec.replicas, or what the autoscaler says."},
    {.name = "replicas", .type = STW_T_INT, .format = "int32", .help = "Pods that there are."},
    {.name = "readyReplicas",
     .type = STW_T_INT,
     .format = "int32",
     .help = "Those that are ready."},
    {.name = "availableReplicas",
     .type = STW_T_INT,
     .format = "int32",
     .help = "Those that are available."},
    {.name = "updatedReplicas",
     .type = STW_T_INT,
     .format = "int32",
     .help = "Those of this generation."},
    {.name = "startReplicas",
     .type = STW_T_INT,
     .format = "int32",
     .help = "With autoscaling: the present value of spec.replicas."},
    {.name = "selector",
     .type = STW_T_STRING,
     .help = "Label selector of the pods, for autoscalers."},
    {.name = "configHash", .type = STW_T_STRING, .help = "Hash of the configuration."},
    {.name = "securityProfile",
     .type = STW_T_STRING,
     .help = "The security profile of the pods.",
     .values = security_profiles},
    {.name = "url", .type = STW_T_STRING, .help = "Where the app is, from within the cluster."},
    {.name = "ingressUrl", .type = STW_T_STRING, .help = "Where the Ingress serves the app."},
    {.name = "lastError",
     .type = STW_T_STRING,
     .help = "What prevents readiness; absent when nothing does."},
    {.name = "lastGood",
     .type = STW_T_OBJECT,
     .help = "What was ready last: to go back to.",
     .fields = last_good_fields},
    {.name = "inputs",
     .type = STW_T_OBJECT,
     .help = "What restartOnChange has seen.",
     .fields = inputs_fields},
    STW_ROW_REPAIRS,
    STW_ROW_LAST_REPAIR,
    STW_ROW_TEMPLATES,
    {0},
};

static const struct stw_column columns[] = {
    {.name = "Image", .type = "string", .json_path = ".spec.image"},
    {.name = "Desired", .type = "integer", .json_path = ".status.desiredReplicas"},
    {.name = "Available", .type = "integer", .json_path = ".status.availableReplicas"},
    {.name = "Phase", .type = "string", .json_path = ".status.phase"},
    STW_COLUMN_READY,
    STW_COLUMN_AGE,
    {0},
};

static const struct stw_scale scale = {.spec_replicas = ".spec.replicas",
                                       .status_replicas = ".status.replicas",
                                       .selector = ".status.selector"};

/* --- */

static const char *const short_names[] = {"mapp", NULL};

const struct stw_kind stw_kind_app = {
    .group = "mycompany.com",
    .version = "v1",
    .kind = "App",
    .plural = "apps",
    .namespaced = true,
    .singular = "app",
    .short_names = short_names,
    .help = "App runs an image in a number of pods with a configuration, behind a Service.",
    .spec = spec_fields,
    .spec_size = sizeof(struct stw_app),
    .status = status_fields,
    .cel = stw_app_cel,
    .columns = columns,
    .scale = &scale,
    .operations = STW_CREATE | STW_UPDATE,
    .dns1035_name = true,
    .name_max = 63,
    .validate = stw_app_validate,
};
