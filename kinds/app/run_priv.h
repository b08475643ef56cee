/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the App controller: the desired children (children.c,
 * deployment.c, container.c, template.c), the number of replicas (replicas.c) and who sets it
 * (scale.c), the status (status.c) and the run itself (reconcile.c). */
#ifndef STW_KINDS_APP_RUN_PRIV_H
#define STW_KINDS_APP_RUN_PRIV_H

#include "base/hex.h"
#include "controller/child.h"
#include "controller/manifest.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "controller/verdict.h"
#include "kinds/app/inputs.h"
#include "kinds/app/spec.h"
#include "kinds/common/pod_trouble.h"

enum {
    APP_CONFIGMAP,
    APP_DEPLOYMENT,
    APP_SERVICE,
    APP_BUDGET,     /* PodDisruptionBudget */
    APP_AUTOSCALER, /* HorizontalPodAutoscaler */
    APP_INGRESS,
    APP_ROUTE,   /* HTTPRoute */
    APP_MONITOR, /* PodMonitor */
    APP_CHILDREN
};

#define APP_REASON_FOREIGN "ForeignAutoscaler"
#define APP_METRICS_PORT "metrics" /* the name of the port, when it is not the app's */
#define APP_NAME "app"             /* app.kubernetes.io/name, and the name of the container */

struct app {
    STW_SUBJECT;
    struct stw_app spec;
    struct stw_naming naming;
    char config_name[300]; /* of the ConfigMap */
    char config_hash[STW_HASH_LEN];
    struct app_inputs inputs, inputs_before; /* after this run, and by the status */
    bool in_window;                          /* of those in which restarts may be made */
    json_t *desired[APP_CHILDREN];
    struct stw_pod_trouble trouble; /* of the pod with the worst problem */
    char foreign[254];              /* another owner's autoscaler of our Deployment; "" for none */
    bool restricted; /* the pods have the security profile Restricted, else Baseline */
    int minor;       /* version of the server, when there is a budget */
    bool begins;     /* autoscaling is starting: for now the Deployment has our replicas */
};

/* --- children; each function returns a new tree, or NULL if out of memory */
void app_hash_config(struct app *a);
json_t *app_configmap(const struct app *a);
json_t *app_deployment(const struct app *a); /* without spec.replicas if an autoscaler sets it */
json_t *app_service(const struct app *a);
json_t *app_ingress(const struct app *a); /* only with a host */
json_t *app_route(const struct app *a);   /* only with a Gateway */
json_t *app_monitor(const struct app *a);
json_t *app_budget(const struct app *a, const struct stw_resource *r, int minor);
json_t *app_autoscaler(const struct app *a, const struct stw_resource *r);
json_t *app_container(const struct app *a);
/* Merges spec.podTemplate over the pod template of the Deployment. */
void app_merge_template(const struct app *a, json_t *template);
/* The options of the profile, and over them those of `given` (may be NULL; borrowed). */
json_t *app_security_context(const struct app *a, json_t *given);
/* Sets what the server would default in an entry of `env`. */
void app_own_defaults(json_t *entry);
bool app_wants_budget(const struct stw_app *spec);
json_t *app_metadata(const struct app *a, const char *name);
json_t *app_selector(const struct app *a);
json_t *app_labels(const struct app *a); /* of children and pods */

/* The Deployment as the server has it now; `doc` is a view of `text`.  -1: `err`. */
int app_read_deployment(struct app *a, struct stw_buf *text, struct stw_json_doc *doc,
                        struct stw_error *err);

/* --- the number of replicas */

/* Call before the Deployment is applied.  When an autoscaler starts or stops setting the number of
 * replicas, this keeps the current number.  False: the run is over, `result` has the outcome. */
bool app_hand_over(struct app *a, struct stw_result *result);
/* The number of replicas that autoscaling starts with. */
int64_t app_start_replicas(const struct stw_app *spec);
/* The number of replicas that we set: spec.replicas, or the start value for autoscaling. */
int64_t app_number(const struct app *a);
/* By this new status the replicas of the start value are available: app_hand_over must run
 * again. */
bool app_begun(const struct app *a, const json_t *status);
/* An autoscaler sets the number of replicas: ours or another owner's. */
bool app_is_scaled(const struct app *a);
/* The current target number of replicas. */
int64_t app_wanted(const struct app *a);

/* --- status */
void app_judge(struct app *a, struct stw_verdict *verdict, json_t **ret_status);
/* Sets the phase in a status of a run that checked nothing. */
json_t *app_status_phase(json_t *status, const char *phase);
const char *app_profile(const struct app *a); /* as in the spec */
/* Whether, by the old status, this child was once as this generation wants it. */
bool app_was_applied(const struct app *a, int child);

#endif
