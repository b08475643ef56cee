/* SPDX-License-Identifier: Apache-2.0
 *
 * Names shared by the program and the manifests that it prints, for stw_operator_text. */
#ifndef STW_OPERATOR_NAMES_H
#define STW_OPERATOR_NAMES_H

#define STW_DEFAULT_NAMESPACE "{operator}-system"
#define STW_DEPLOYMENT "{operator}-controller-manager"
#define STW_CONFIG_MAP "{operator}-config"
#define STW_CONFIG_KEY "{operator}.yaml"
#define STW_SERVICE_ACCOUNT "{operator}-controller-manager"
#define STW_ON_CALL "{operator}-on-call" /* ServiceAccount and Role for `top` */
#define STW_WEBHOOK_SERVICE "{operator}-webhook-service"
#define STW_METRICS_SERVICE "{operator}-metrics-service"
#define STW_UNINSTALL_MANAGER "{operator}-uninstall" /* field manager */

#endif
