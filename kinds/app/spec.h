/* SPDX-License-Identifier: Apache-2.0
 *
 * App: runs an image in a given number of pods, with its configuration and a Service. */
#ifndef STW_KINDS_APP_SPEC_H
#define STW_KINDS_APP_SPEC_H

#include "kinds/app/schema.h"
#include "kinds/common/hours.h"
#include "kinds/common/ingress.h"
#include "schema/kind.h"

struct app_spec_config {
    const char *database_url; /* or NULL */
    struct {
        const char *name, *key;
    } database_url_ref; /* key of a Secret; NULL: none */
    const char *log_level;
    struct stw_json environment; /* map of strings */
};

struct app_spec_health {
    const char *path; /* NULL: no check */
    int64_t port;     /* 0: the app's port */
    int64_t initial_delay_s, period_s, timeout_s, failure_threshold;
    bool liveness;
};

struct app_spec_autoscaling {
    bool enabled;
    int64_t min, max;                  /* max 0: not given */
    int64_t cpu, memory;               /* percent of the requests; 0: not given */
    struct stw_json metrics, behavior; /* list of autoscaling/v2 MetricSpec; its Behavior */
};

struct app_spec {
    const char *image;
    int64_t replicas, port;
    struct app_spec_config config;
    struct stw_json resources; /* core/v1 ResourceRequirements */
    struct app_spec_health health;
    struct app_spec_autoscaling autoscaling;
    struct {
        const char *type; /* "ClusterIP", "NodePort", "LoadBalancer" */
        int64_t port;
        struct stw_json annotations;
    } service;
    struct stw_ingress ingress;
    struct {
        const char *gateway;     /* NULL: no HTTPRoute */
        const char *gateway_ns;  /* NULL: the App's namespace */
        const char *listener;    /* NULL: all of the Gateway */
        const char *host, *path; /* host may be NULL: those of the listener */
    } route;
    struct {
        bool enabled;
        const char *path;
        int64_t port;           /* 0: the app's port */
        int64_t interval_s;     /* 0: Prometheus' default */
        struct stw_json labels; /* of the PodMonitor */
    } metrics;
    struct stw_json image_pull_secrets; /* list of {name} */
    const char *service_account;        /* or NULL */
    const char *security_profile;       /* "Baseline", "Restricted"; NULL: the namespace decides */
    struct stw_json security_context;   /* core/v1 SecurityContext of the container */
    struct stw_json env;                /* list of core/v1 EnvVar */
    struct stw_json affinity, tolerations, spread; /* core/v1; absent: steward's defaults */
    int64_t grace_period_s;
    struct stw_json pod_template; /* core/v1 PodTemplateSpec, over what steward builds */
    struct {
        const char *type;                           /* "RollingUpdate", "Recreate" */
        struct stw_json max_surge, max_unavailable; /* integer or percentage; absent: the default */
        int64_t deadline_s, min_ready_s, history;
    } strategy;
    struct {
        bool enabled;
    } pdb;
    struct {
        bool enabled;
        int64_t min_interval_s;
        const char *time_zone;
        struct stw_json windows; /* as for struct stw_hours */
    } restart;
};

/* Adds what Pod Security forbids in the pods of this App. */
void app_check_security(const struct app_spec *app, struct stw_findings *f);

#define APP_CPU_TARGET 80

/* The CPU target in percent of the request: the spec's; 80 when the spec has no target and no metric
 * at all; else 0. */
int64_t app_cpu_target(const struct app_spec_autoscaling *a);
/* The metric is a percentage of what the pods request of this resource, as the two targets are. */
bool app_metric_is(struct stw_json metric, const char *resource);
/* The port of the metrics is one more port of the container. */
bool app_has_metrics_port(const struct app_spec *app);
/* A rollout ends the old pods before it starts new ones. */
bool app_recreates(const struct app_spec *app);
/* The members of spec.strategy that steward knows, ended by NULL. */
extern const char *const app_strategy_members[];
/* How many of `replicas` pods may be unavailable during a rollout. */
int64_t app_max_unavailable(const struct app_spec *app, int64_t replicas);

#endif
