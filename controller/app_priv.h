/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an App, between the files that share it: what its children should be
 * (app_children.c, app_deployment.c), who says how many pods there are (app_scale.c), what is wrong
 * with them (app_pods.c), what its status says (app_status.c), and the run itself (app.c). */
#ifndef STW_CONTROLLER_APP_PRIV_H
#define STW_CONTROLLER_APP_PRIV_H

#include "controller/child.h"
#include "controller/manifest.h"
#include "controller/object.h"
#include "controller/verdict.h"
#include "kinds/app.h"

enum {
    APP_CONFIGMAP,
    APP_DEPLOYMENT,
    APP_SERVICE,
    APP_BUDGET,     /* PodDisruptionBudget */
    APP_AUTOSCALER, /* HorizontalPodAutoscaler */
    APP_CHILDREN
};

#define APP_REASON_FOREIGN "ForeignAutoscaler"
#define APP_NAME "app" /* app.kubernetes.io/name, and the name of the container */

/* What keeps a pod from running well, as its status tells. */
struct app_trouble {
    bool found;
    bool passing;    /* it may just be starting */
    char reason[64]; /* "ImagePullBackOff", "CrashLoopBackOff", "OOMKilled", ... */
    char message[512];
    char template[64]; /* of the pod: its pod-template-hash */
    char created[STW_TIME_LEN];
};

struct app {
    struct stw_run *run;
    struct stw_object object;
    struct stw_owner owner;
    struct stw_arena *arena;
    struct stw_app spec;
    struct stw_naming naming;
    char config_name[300]; /* of the ConfigMap */
    char config_hash[33];
    struct stw_child children[APP_CHILDREN];
    json_t *desired[APP_CHILDREN];
    struct app_trouble trouble; /* of the pod that is worst off */
    char foreign[254];          /* somebody else's autoscaler of our Deployment; "" for none */
    bool begins; /* autoscaling does, with a Deployment that has our number for the time being */
};

/* --- children; each gives a new tree, or NULL without memory */
void app_hash_config(struct app *a);
json_t *app_configmap(const struct app *a);
json_t *app_deployment(const struct app *a); /* spec.replicas only if nobody else says it */
json_t *app_service(const struct app *a);
json_t *app_budget(const struct app *a, const struct stw_resource *r);
json_t *app_autoscaler(const struct app *a, const struct stw_resource *r);
bool app_wants_budget(const struct stw_app *spec);
json_t *app_metadata(const struct app *a, const char *name);
json_t *app_selector(const struct app *a);

/* --- how many pods */

/* Before the Deployment is applied: where somebody else shall say how many pods there are, or does
 * so no more, takes care that their number stays what it is.  False: the run is over, `result` says
 * how. */
bool app_hand_over(struct app *a, struct stw_result *result);
/* The number that we give: the one that is asked for, or that autoscaling begins with. */
int64_t app_number(const struct app *a);
/* By this status of now the pods that it begins with are there: app_hand_over shall run again. */
bool app_begun(const struct app *a, const json_t *status);
/* Somebody else says how many pods there are: our autoscaler, or a foreign one. */
bool app_is_scaled(const struct app *a);
/* How many pods there shall be now. */
int64_t app_wanted(const struct app *a);

/* --- pods */
extern const struct stw_watch app_watch_pods;
/* Reads a text of that watch.  -1: it is none. */
int app_trouble_read(const char *text, size_t len, struct app_trouble *ret);
void app_find_trouble(struct app *a);

/* --- status */
void app_judge(struct app *a, struct stw_verdict *verdict, json_t **ret_status);
/* The pods suffer from something that the status does not tell yet. */
bool app_trouble_is_new(const struct app *a);
/* A status of a pass that looked at nothing, with this phase. */
json_t *app_status_phase(json_t *status, const char *phase);
/* Whether the status told that this child was once as this generation wants it. */
bool app_was_applied(const struct app *a, int child);

#endif
