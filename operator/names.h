/* SPDX-License-Identifier: Apache-2.0
 *
 * Names shared by the program and the manifests that it prints. */
#ifndef STW_OPERATOR_NAMES_H
#define STW_OPERATOR_NAMES_H

#define STW_DEFAULT_NAMESPACE "steward-system"
#define STW_DEPLOYMENT "steward-controller-manager"
#define STW_CONFIG_MAP "steward-config"
#define STW_CONFIG_KEY "steward.yaml"
#define STW_SERVICE_ACCOUNT "steward-controller-manager"
#define STW_WEBHOOK_SERVICE "steward-webhook-service"
#define STW_METRICS_SERVICE "steward-metrics-service"

#endif
