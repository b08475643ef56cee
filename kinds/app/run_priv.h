/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an App.  Each file of the controller has a header of its own. */
#ifndef STW_KINDS_APP_RUN_PRIV_H
#define STW_KINDS_APP_RUN_PRIV_H

#include "base/hex.h"
#include "controller/child.h"
#include "controller/manifest.h"
#include "controller/object.h"
#include "controller/reconcile.h"
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
    struct app_spec spec;
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

#endif
