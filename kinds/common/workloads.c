/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/workloads.h"

const struct stw_resource stw_res_statefulset = {"apps", "v1", "StatefulSet", "statefulsets", true};
const struct stw_resource stw_res_daemonset = {"apps", "v1", "DaemonSet", "daemonsets", true};
