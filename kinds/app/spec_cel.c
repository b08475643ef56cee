/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of an App in CEL.  Each stands for a C rule in spec_rules.c or spec_template.c, and has
 * its message. */
#include "kinds/app/spec_priv.h"
#include "schema/core.h"
#include "schema/names.h"

const struct stw_cel stw_app_cel_url[] = {
    {"self.matches(r'^[a-zA-Z][-+.:a-zA-Z0-9]*://[^\\x00-\\x20\\x7f]+$')",
     "must be a URL such as postgres://host/db"},
    {0},
};

#define HAS_URL                                                                                    \
    "(has(self.config) && (has(self.config.databaseUrl) || "                                       \
    "has(self.config.databaseUrlSecretRef)))"
#define HAS_ENVIRONMENT "has(self.config) && has(self.config.environment)"

/* A variable that steward sets from `field`. */
#define OWN_VARIABLE(name, field)                                                                  \
    {                                                                                              \
        .at = "config.environment", .type = STW_CEL_ENTRIES, .code = STW_FORBIDDEN,                \
        .rule = "!(" HAS_ENVIRONMENT ") || !('" name "' in self.config.environment)",              \
        .message = name " is set by steward from spec." field,                                     \
    }
#define OWN_IN_ENV(name, field, when)                                                              \
    {                                                                                              \
        .at = "env", .type = STW_CEL_ENTRIES, .code = STW_INVALID,                                 \
        .rule = "!has(self.env) || !" when " || self.env.all(e, !has(e.name) || e.name != '" name  \
                "')",                                                                              \
        .message = name " is set by steward from spec." field,                                     \
    }

#define SCALES "has(self.autoscaling) && self.autoscaling.enabled"
#define HAS_POD "has(self.podTemplate) && has(self.podTemplate.spec)"
#define HAS_ENTRY(resources, name)                                                                 \
    "(has(" resources ") && ((has(" resources ".requests) && '" name "' in " resources             \
    ".requests) || (has(" resources ".limits) && '" name "' in " resources ".limits)))"
/* For the container, or for the whole pod. */
#define ASKS_FOR(name)                                                                             \
    "(" HAS_ENTRY("self.resources", name) " || (" HAS_POD " && " HAS_ENTRY(                        \
        "self.podTemplate.spec.resources", name) "))"
/* Of the CPU, 80 % is the target when none is given. */
#define HAS_METRICS                                                                                \
    "has(self.autoscaling) && has(self.autoscaling.metrics) && size(self.autoscaling.metrics) > 0"
#define TARGETS_CPU                                                                                \
    "(has(self.autoscaling.targetCPUUtilizationPercentage) || "                                    \
    "!(has(self.autoscaling.targetMemoryUtilizationPercentage) || " HAS_METRICS "))"
#define TARGETS_MEMORY "has(self.autoscaling.targetMemoryUtilizationPercentage)"

/* Metrics of an autoscaler. */
#define OF_METRICS(code_, condition, text)                                                         \
    {                                                                                              \
        .at = "autoscaling.metrics", .type = STW_CEL_ENTRIES, .code = (code_),                     \
        .rule = "!(" SCALES ") || !(" HAS_METRICS                                                  \
                ") || self.autoscaling.metrics.all(m, " condition ")",                             \
        .message = (text),                                                                         \
    }
/* Of each of the five types.  One rule for all: every rule of a field repeats those of its siblings. */
/* clang-format off */
#define OF_EACH_TYPE(condition) \
    condition("Resource", "resource") \
    " && " condition("ContainerResource", "containerResource") \
    " && " condition("Pods", "pods") \
    " && " condition("Object", "object") \
    " && " condition("External", "external")
#define SOURCE(type_, field) "(m.type != '" type_ "' || has(m." field "))"
#define NO_SOURCE(type_, field) "(m.type == '" type_ "' || !has(m." field "))"
#define TARGET(field, types) "(!has(m." field ") || m." field ".target.type in " types ")"
#define TARGETS \
    TARGET("resource", "['Utilization', 'AverageValue']") \
    " && " TARGET("containerResource", "['Utilization', 'AverageValue']") \
    " && " TARGET("pods", "['AverageValue']") \
    " && " TARGET("object", "['Value', 'AverageValue']") \
    " && " TARGET("external", "['Value', 'AverageValue']")
#define GIVES(field, type_, value) \
    "(!has(m." field ") || (m." field ".target.type == '" type_ "') == has(m." field ".target." value "))"
#define UTILIZATIONS \
    GIVES("resource", "Utilization", "averageUtilization") \
    " && " GIVES("containerResource", "Utilization", "averageUtilization")
#define VALUES \
    GIVES("object", "Value", "value") \
    " && " GIVES("external", "Value", "value")
#define AVERAGE(type_, field) GIVES(field, "AverageValue", "averageValue")
/* clang-format on */

/* maxSurge or maxUnavailable, which is a number or a percentage. */
#define ZERO(field) "string(self.strategy." field ").matches('^0+%?$')"
#define SHARE(field)                                                                               \
    {                                                                                              \
        .at = "strategy." field, .code = STW_INVALID,                                              \
        .rule =                                                                                    \
            "!has(self.strategy) || type(self.strategy." field ") != int || (self.strategy." field \
            " >= 0 && self.strategy." field " <= 2147483647)",                                     \
        .message = "must be 0 or more: a number, or a percentage such as \"25%\"",                 \
    }

/* --- podTemplate */

#define HAS_METADATA "has(self.podTemplate) && has(self.podTemplate.metadata)"

/* A member of the pod that another field of the App sets. */
#define OWN_OF_POD(name, field)                                                                    \
    {                                                                                              \
        .at = "podTemplate.spec." name, .code = STW_FORBIDDEN,                                     \
        .rule = "!(" HAS_POD ") || !has(self.podTemplate.spec." name ")",                          \
        .message = "is set by steward from spec." field,                                           \
    }
#define OF_CONTAINERS(list, code_, condition, text)                                                \
    {                                                                                              \
        .at = "podTemplate.spec." list, .type = STW_CEL_ENTRIES, .code = (code_),                  \
        .rule = "!(" HAS_POD ") || !has(self.podTemplate.spec." list ") || "                       \
                "self.podTemplate.spec." list ".all(c, " condition ")",                            \
        .message = (text),                                                                         \
    }
#define IS_OWN "(has(c.name) && c.name == 'app')"
#define OWN_OF_CONTAINER(name)                                                                     \
    OF_CONTAINERS("containers", STW_FORBIDDEN, "!" IS_OWN " || !has(c." name ")",                  \
                  name " is set by steward from spec." name)
#define NAMED(list)                                                                                \
    OF_CONTAINERS(list, STW_REQUIRED, "has(c.name) && c.name != ''", "name is required")

const struct stw_cel_rule stw_app_cel[] = {
    {.at = "config.databaseUrlSecretRef",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.config) || !has(self.config.databaseUrl) || "
             "!has(self.config.databaseUrlSecretRef)",
     .message = "set only one of databaseUrl, databaseUrlSecretRef"},
    {.at = "config.environment",
     .type = STW_CEL_ENTRIES,
     .code = STW_INVALID,
     .rule = "!(" HAS_ENVIRONMENT ") || self.config.environment.all(k, "
             "k.matches(r'^[-._a-zA-Z][-._a-zA-Z0-9]*$') && k != '.' && !k.startsWith('..'))",
     .message = STW_CORE_ENV_NAME_TEXT},
    OWN_VARIABLE("PORT", "port"),
    OWN_VARIABLE("LOG_LEVEL", "config.logLevel"),
    OWN_VARIABLE("DATABASE_URL", "config.databaseUrl"),
    STW_CEL_RESOURCES("has(self.resources)", "self.resources", "resources"),
    {.at = "healthCheck.timeoutSeconds",
     .code = STW_INVALID,
     .rule = "!has(self.healthCheck) || "
             "self.healthCheck.timeoutSeconds <= self.healthCheck.periodSeconds",
     .message = "must be less than or equal to periodSeconds"},
    {.at = "autoscaling.maxReplicas",
     .code = STW_REQUIRED,
     .rule = "!(" SCALES ") || has(self.autoscaling.maxReplicas)",
     .message = "autoscaling needs an upper bound"},
    {.at = "autoscaling.maxReplicas",
     .code = STW_INVALID,
     .rule = "!(" SCALES ") || !has(self.autoscaling.maxReplicas) || "
             "self.autoscaling.maxReplicas >= self.autoscaling.minReplicas",
     .message = "must be greater than or equal to minReplicas"},
    {.at = "resources",
     .type = STW_CEL_ENTRIES,
     .code = STW_REQUIRED,
     .rule = "!(" SCALES ") || !" TARGETS_CPU " || " ASKS_FOR("cpu"),
     .message = "CPU autoscaling needs a CPU request"},
    {.at = "resources",
     .type = STW_CEL_ENTRIES,
     .code = STW_REQUIRED,
     .rule = "!(" SCALES ") || !" TARGETS_MEMORY " || " ASKS_FOR("memory"),
     .message = "memory autoscaling needs a memory request"},
    OF_METRICS(STW_REQUIRED, OF_EACH_TYPE(SOURCE), "a metric needs the field of its type"),
    OF_METRICS(STW_FORBIDDEN, OF_EACH_TYPE(NO_SOURCE), "a metric has only the field of its type"),
    OF_METRICS(STW_INVALID, TARGETS, "target.type is not possible for a metric of this type"),
    OF_METRICS(STW_INVALID, UTILIZATIONS, "averageUtilization is for a target of type Utilization"),
    OF_METRICS(STW_INVALID, VALUES, "value is for a target of type Value"),
    OF_METRICS(STW_INVALID, OF_EACH_TYPE(AVERAGE),
               "averageValue is for a target of type AverageValue"),
    STW_CEL_KEYS("has(self.service) && has(self.service.annotations)", "self.service.annotations",
                 "service.annotations"),
    STW_CEL_LABELS("has(self.metrics) && has(self.metrics.labels)", "self.metrics.labels",
                   "metrics.labels"),
    {.at = "metrics.labels",
     .type = STW_CEL_ENTRIES,
     .code = STW_FORBIDDEN,
     .rule = "!has(self.metrics) || !has(self.metrics.labels) || self.metrics.labels.all(k, "
             "k != 'app' && !k.startsWith('app.kubernetes.io/'))",
     .message = "is set by steward"},
    OWN_IN_ENV("PORT", "port", "true"),
    OWN_IN_ENV("LOG_LEVEL", "config.logLevel", "true"),
    OWN_IN_ENV("DATABASE_URL", "config.databaseUrl", HAS_URL),
    {.at = "env",
     .type = STW_CEL_ENTRIES,
     .code = STW_INVALID,
     .rule = "!has(self.env) || !(" HAS_ENVIRONMENT
             ") || self.env.all(e, !has(e.name) || !(e.name in self.config.environment))",
     .message = "is set by steward from spec.config.environment"},
    STW_CEL_ENV("has(self.env)", "self.env", "env"),
    SHARE("maxSurge"),
    SHARE("maxUnavailable"),
    {.at = "strategy",
     .code = STW_INVALID,
     .rule = "!has(self.strategy) || self.strategy.type == 'Recreate' || "
             "!(" ZERO("maxSurge") " && " ZERO("maxUnavailable") ")",
     .message = "maxSurge and maxUnavailable must not both be 0"},
    {.at = "strategy.minReadySeconds",
     .code = STW_INVALID,
     .rule = "!has(self.strategy) || self.strategy.minReadySeconds == 0 || "
             "self.strategy.minReadySeconds < self.strategy.progressDeadlineSeconds",
     .message = "must be less than progressDeadlineSeconds"},
    {.at = "podTemplate.metadata.labels",
     .type = STW_CEL_ENTRIES,
     .code = STW_FORBIDDEN,
     .rule = "!(" HAS_METADATA ") || !has(self.podTemplate.metadata.labels) || "
             "self.podTemplate.metadata.labels.all(k, !(k in ['app', 'pod-template-hash', "
             "'app.kubernetes.io/name', 'app.kubernetes.io/instance', "
             "'app.kubernetes.io/component', 'app.kubernetes.io/part-of', "
             "'app.kubernetes.io/managed-by', 'app.kubernetes.io/version']))",
     .message = "is set by steward"},
    {.at = "podTemplate.metadata.annotations",
     .type = STW_CEL_ENTRIES,
     .code = STW_FORBIDDEN,
     .rule = "!(" HAS_METADATA ") || !has(self.podTemplate.metadata.annotations) || "
             "self.podTemplate.metadata.annotations.all(k, k != 'mycompany.com/config-hash' && "
             "!k.startsWith('container.apparmor.security.beta.kubernetes.io/') && "
             "!k.startsWith('seccomp.security.alpha.kubernetes.io/') && "
             "!k.startsWith('container.seccomp.security.alpha.kubernetes.io/'))",
     .message = "is set by steward; profiles are set in securityContext"},
    STW_CEL_LABELS(HAS_METADATA " && has(self.podTemplate.metadata.labels)",
                   "self.podTemplate.metadata.labels", "podTemplate.metadata.labels"),
    STW_CEL_KEYS(HAS_METADATA " && has(self.podTemplate.metadata.annotations)",
                 "self.podTemplate.metadata.annotations", "podTemplate.metadata.annotations"),
    OWN_OF_POD("serviceAccountName", "serviceAccountName"),
    OWN_OF_POD("serviceAccount", "serviceAccountName"),
    OWN_OF_POD("automountServiceAccountToken", "serviceAccountName"),
    OWN_OF_POD("imagePullSecrets", "imagePullSecrets"),
    OWN_OF_POD("affinity", "affinity"),
    OWN_OF_POD("tolerations", "tolerations"),
    OWN_OF_POD("topologySpreadConstraints", "topologySpreadConstraints"),
    OWN_OF_POD("terminationGracePeriodSeconds", "terminationGracePeriodSeconds"),
    {.at = "podTemplate.spec.ephemeralContainers",
     .code = STW_FORBIDDEN,
     .rule = "!(" HAS_POD ") || !has(self.podTemplate.spec.ephemeralContainers)",
     .message = "belong to pods, not to templates"},
    NAMED("containers"),
    NAMED("initContainers"),
    NAMED("volumes"),
    OWN_OF_CONTAINER("image"),
    OWN_OF_CONTAINER("resources"),
    OWN_OF_CONTAINER("securityContext"),
    OWN_OF_CONTAINER("env"),
    OF_CONTAINERS("containers", STW_FORBIDDEN,
                  "!" IS_OWN " || !has(self.healthCheck) || !has(c.readinessProbe)",
                  "readinessProbe is set by steward from spec.healthCheck"),
    OF_CONTAINERS("containers", STW_FORBIDDEN,
                  "!" IS_OWN " || !has(self.healthCheck) || !self.healthCheck.liveness || "
                  "!has(c.livenessProbe)",
                  "livenessProbe is set by steward from spec.healthCheck"),
    OF_CONTAINERS("containers", STW_FORBIDDEN,
                  "!" IS_OWN " || !has(c.ports) || c.ports.all(p, !(has(p.name) && p.name == "
                  "'http') && !(has(p.containerPort) && p.containerPort == self.port))",
                  "the port is set by steward from spec.port"),
    OF_CONTAINERS("containers", STW_FORBIDDEN,
                  "!" IS_OWN " || !has(c.ports) || !has(self.metrics) || !self.metrics.enabled || "
                  "!has(self.metrics.port) || self.metrics.port == self.port || c.ports.all(p, "
                  "!(has(p.name) && p.name == 'metrics') && !(has(p.containerPort) && "
                  "p.containerPort == self.metrics.port))",
                  "the port is set by steward from spec.metrics.port"),
    OF_CONTAINERS("containers", STW_REQUIRED, IS_OWN " || (has(c.image) && c.image != '')",
                  "image is required"),
    OF_CONTAINERS("initContainers", STW_FORBIDDEN, "!" IS_OWN,
                  "\"app\" is the name of a container"),
    OF_CONTAINERS("initContainers", STW_REQUIRED, IS_OWN " || (has(c.image) && c.image != '')",
                  "image is required"),
    {0},
};
