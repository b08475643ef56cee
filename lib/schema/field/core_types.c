/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of the members of core/v1 that kinds pass on unchanged.  For a wrong type in a child, the
 * API server returns a 500 with a message about patches; at admission the field can be named.
 * Each list has all members of its type in Kubernetes 1.37.  Others are accepted with a warning: a later
 * Kubernetes may know them.  ANY is a type that has no list: nothing in it is judged. */
#include "schema/core.h"

#define STRING(name_)                                                                              \
    {                                                                                              \
        .name = (name_), .type = STW_T_TEXT                                                        \
    }
#define INT(name_)                                                                                 \
    {                                                                                              \
        .name = (name_), .type = STW_T_INT                                                         \
    }
#define BOOL(name_)                                                                                \
    {                                                                                              \
        .name = (name_), .type = STW_T_BOOL                                                        \
    }
#define OBJECT(name_, rows)                                                                        \
    {                                                                                              \
        .name = (name_), .type = STW_T_RAW, .known = (rows)                                        \
    }
#define ANY(name_)                                                                                 \
    {                                                                                              \
        .name = (name_), .type = STW_T_RAW                                                         \
    }
#define PORT                                                                                       \
    {                                                                                              \
        .name = "port", .type = STW_T_INT_OR_STRING                                                \
    }
#define LIST(name_, item_)                                                                         \
    {                                                                                              \
        .name = (name_), .type = STW_T_LIST, .item = &(item_)                                      \
    }
#define STRINGS(name_) LIST(name_, stw_core_text_item)

const struct stw_field stw_core_label_item = {.name = "", .type = STW_T_TEXT, .cel_max = 63};
const struct stw_field stw_core_text_item = {.name = "", .type = STW_T_TEXT};
static const struct stw_field int_item = {.name = "", .type = STW_T_INT};

/* --- selectors */

static const struct stw_field requirement_rows[] = {
    STRING("key"), STRING("operator"), STRINGS("values"), {0}};
static const struct stw_field requirement = {
    .name = "", .type = STW_T_RAW, .known = requirement_rows};

const struct stw_field stw_core_label_selector[] = {
    {.name = "matchLabels", .type = STW_T_MAP, .item = &stw_core_text_item},
    LIST("matchExpressions", requirement),
    {0},
};

static const struct stw_field node_term_rows[] = {
    LIST("matchExpressions", requirement), LIST("matchFields", requirement), {0}};
static const struct stw_field node_term = {.name = "", .type = STW_T_RAW, .known = node_term_rows};
static const struct stw_field node_selector_rows[] = {LIST("nodeSelectorTerms", node_term), {0}};

/* --- scheduling */

static const struct stw_field preferred_node_rows[] = {
    INT("weight"), OBJECT("preference", node_term_rows), {0}};
static const struct stw_field preferred_node = {
    .name = "", .type = STW_T_RAW, .known = preferred_node_rows};

static const struct stw_field pod_term_rows[] = {
    OBJECT("labelSelector", stw_core_label_selector),
    OBJECT("namespaceSelector", stw_core_label_selector),
    STRINGS("namespaces"),
    STRING("topologyKey"),
    STRINGS("matchLabelKeys"),
    STRINGS("mismatchLabelKeys"),
    {0},
};
static const struct stw_field pod_term = {.name = "", .type = STW_T_RAW, .known = pod_term_rows};
static const struct stw_field preferred_pod_rows[] = {
    INT("weight"), OBJECT("podAffinityTerm", pod_term_rows), {0}};
static const struct stw_field preferred_pod = {
    .name = "", .type = STW_T_RAW, .known = preferred_pod_rows};

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static const struct stw_field node_affinity_rows[] = {
    OBJECT(REQUIRED, node_selector_rows), LIST(PREFERRED, preferred_node), {0}};
static const struct stw_field pod_affinity_rows[] = {
    LIST(REQUIRED, pod_term), LIST(PREFERRED, preferred_pod), {0}};

const struct stw_field stw_core_affinity[] = {
    OBJECT("nodeAffinity", node_affinity_rows),
    OBJECT("podAffinity", pod_affinity_rows),
    OBJECT("podAntiAffinity", pod_affinity_rows),
    {0},
};

static const struct stw_field toleration_rows[] = {
    STRING("key"),    STRING("operator"),       STRING("value"),
    STRING("effect"), INT("tolerationSeconds"), {0},
};
const struct stw_field stw_core_toleration = {
    .name = "", .type = STW_T_RAW, .known = toleration_rows};

static const struct stw_field spread_rows[] = {
    INT("maxSkew"),
    STRING("topologyKey"),
    STRING("whenUnsatisfiable"),
    OBJECT("labelSelector", stw_core_label_selector),
    INT("minDomains"),
    STRING("nodeAffinityPolicy"),
    STRING("nodeTaintsPolicy"),
    STRINGS("matchLabelKeys"),
    {0},
};
const struct stw_field stw_core_spread = {.name = "", .type = STW_T_RAW, .known = spread_rows};

/* --- security */

static const struct stw_field capabilities_rows[] = {STRINGS("add"), STRINGS("drop"), {0}};
static const struct stw_field se_linux_rows[] = {
    STRING("user"), STRING("role"), STRING("type"), STRING("level"), {0}};
static const struct stw_field windows_rows[] = {
    STRING("gmsaCredentialSpecName"),
    STRING("gmsaCredentialSpec"),
    STRING("runAsUserName"),
    BOOL("hostProcess"),
    {0},
};
static const struct stw_field profile_rows[] = {STRING("type"), STRING("localhostProfile"), {0}};

#define OF_BOTH                                                                                    \
    OBJECT("seLinuxOptions", se_linux_rows), OBJECT("windowsOptions", windows_rows),               \
        INT("runAsUser"), INT("runAsGroup"), BOOL("runAsNonRoot"),                                 \
        OBJECT("seccompProfile", profile_rows), OBJECT("appArmorProfile", profile_rows)

const struct stw_field stw_core_security_context[] = {
    OF_BOTH,
    OBJECT("capabilities", capabilities_rows),
    BOOL("privileged"),
    BOOL("readOnlyRootFilesystem"),
    BOOL("allowPrivilegeEscalation"),
    STRING("procMount"),
    {0},
};

static const struct stw_field sysctl_rows[] = {STRING("name"), STRING("value"), {0}};
static const struct stw_field sysctl = {.name = "", .type = STW_T_RAW, .known = sysctl_rows};

const struct stw_field stw_core_pod_security_context[] = {
    OF_BOTH,
    LIST("supplementalGroups", int_item),
    STRING("supplementalGroupsPolicy"),
    INT("fsGroup"),
    STRING("fsGroupChangePolicy"),
    LIST("sysctls", sysctl),
    STRING("seLinuxChangePolicy"),
    {0},
};

/* --- environment */

static const struct stw_field field_ref_rows[] = {STRING("apiVersion"), STRING("fieldPath"), {0}};
static const struct stw_field resource_ref_rows[] = {
    STRING("containerName"),
    STRING("resource"),
    {.name = "divisor", .type = STW_T_QUANTITY},
    {0},
};
static const struct stw_field key_ref_rows[] = {
    STRING("name"), STRING("key"), BOOL("optional"), {0}};
static const struct stw_field file_ref_rows[] = {
    STRING("volumeName"), STRING("path"), STRING("key"), BOOL("optional"), {0}};

const struct stw_field stw_core_env_source[] = {
    OBJECT("fieldRef", field_ref_rows),      OBJECT("resourceFieldRef", resource_ref_rows),
    OBJECT("configMapKeyRef", key_ref_rows), OBJECT("secretKeyRef", key_ref_rows),
    OBJECT("fileKeyRef", file_ref_rows),     {0},
};

static const struct stw_field env_fields[] = {
    {.name = "name",
     .type = STW_T_STRING,
     .help = "Name of the environment variable.",
     .required = true,
     .check = stw_core_check_env_name,
     .cel = stw_core_cel_env_name,
     .cel_max = STW_CORE_ENV_NAME_MAX},
    {.name = "value",
     .type = STW_T_TEXT,
     .help = "Its value.",
     .type_text = "must be a string"}, /* without the value, which may be a password */
    {.name = "valueFrom",
     .type = STW_T_RAW,
     .help = "Where its value comes from, as in a Pod.",
     .known = stw_core_env_source},
    {0},
};
const struct stw_field stw_core_env = {
    .name = "", .type = STW_T_RAW, .fields = env_fields, .open = true};

/* --- pods */

static const struct stw_field quantity_item = {.name = "", .type = STW_T_QUANTITY};
static const struct stw_field any_item = {.name = "", .type = STW_T_RAW};
static const struct stw_field resources_rows[] = {
    {.name = "limits", .type = STW_T_MAP, .item = &quantity_item},
    {.name = "requests", .type = STW_T_MAP, .item = &quantity_item},
    LIST("claims", any_item),
    {0},
};

#define FEW(name_, item_, most)                                                                    \
    {                                                                                              \
        .name = (name_), .type = STW_T_LIST, .item = &(item_), STW_RANGE(0, most)                  \
    }

static const struct stw_field port_rows[] = {INT("containerPort"), INT("hostPort"),
                                             STRING("hostIP"),     STRING("name"),
                                             STRING("protocol"),   {0}};
static const struct stw_field port = {.name = "", .type = STW_T_RAW, .known = port_rows};

static const struct stw_field local_ref_rows[] = {STRING("name"), BOOL("optional"), {0}};
static const struct stw_field env_from_rows[] = {
    STRING("prefix"),
    OBJECT("configMapRef", local_ref_rows),
    OBJECT("secretRef", local_ref_rows),
    {0},
};
static const struct stw_field env_from = {.name = "", .type = STW_T_RAW, .known = env_from_rows};

static const struct stw_field mount_rows[] = {
    STRING("name"),
    STRING("mountPath"),
    STRING("subPath"),
    STRING("subPathExpr"),
    BOOL("readOnly"),
    STRING("recursiveReadOnly"),
    STRING("mountPropagation"),
    STRINGS("bindMountOptions"),
    {0},
};
static const struct stw_field mount = {.name = "", .type = STW_T_RAW, .known = mount_rows};

static const struct stw_field http_rows[] = {
    STRING("path"),     PORT, STRING("host"), STRING("scheme"), LIST("httpHeaders", any_item),
    STRING("protocol"), {0}};
static const struct stw_field exec_rows[] = {STRINGS("command"), {0}};
static const struct stw_field tcp_rows[] = {PORT, STRING("host"), {0}};
static const struct stw_field grpc_rows[] = {INT("port"), STRING("service"), STRING("mode"), {0}};
static const struct stw_field probe_rows[] = {
    OBJECT("httpGet", http_rows),
    OBJECT("exec", exec_rows),
    OBJECT("tcpSocket", tcp_rows),
    OBJECT("grpc", grpc_rows),
    INT("initialDelaySeconds"),
    INT("periodSeconds"),
    INT("timeoutSeconds"),
    INT("failureThreshold"),
    INT("successThreshold"),
    INT("terminationGracePeriodSeconds"),
    {0},
};
static const struct stw_field sleep_rows[] = {INT("seconds"), {0}};
static const struct stw_field handler_rows[] = {
    OBJECT("httpGet", http_rows),
    OBJECT("exec", exec_rows),
    OBJECT("tcpSocket", tcp_rows),
    OBJECT("sleep", sleep_rows),
    {0},
};
static const struct stw_field lifecycle_rows[] = {
    OBJECT("postStart", handler_rows),
    OBJECT("preStop", handler_rows),
    STRING("stopSignal"),
    {0},
};

static const struct stw_field container_rows[] = {
    STRING("name"),
    STRING("image"),
    STRING("imagePullPolicy"),
    STRING("workingDir"),
    STRING("restartPolicy"),
    LIST("restartPolicyRules", any_item),
    LIST("resizePolicy", any_item),
    STRING("terminationMessagePath"),
    STRING("terminationMessagePolicy"),
    BOOL("stdin"),
    BOOL("stdinOnce"),
    BOOL("tty"),
    STRINGS("command"),
    STRINGS("args"),
    FEW("ports", port, 100),
    FEW("env", stw_core_env, 200),
    FEW("envFrom", env_from, 50),
    FEW("volumeMounts", mount, 100),
    FEW("volumeDevices", any_item, 100),
    OBJECT("resources", resources_rows),
    OBJECT("livenessProbe", probe_rows),
    OBJECT("readinessProbe", probe_rows),
    OBJECT("startupProbe", probe_rows),
    OBJECT("lifecycle", lifecycle_rows),
    OBJECT("securityContext", stw_core_security_context),
    {0},
};
static const struct stw_field container = {.name = "", .type = STW_T_RAW, .known = container_rows};

static const struct stw_field volume_rows[] = {
    STRING("name"),
    ANY("hostPath"),
    ANY("emptyDir"),
    ANY("gcePersistentDisk"),
    ANY("awsElasticBlockStore"),
    ANY("gitRepo"),
    ANY("secret"),
    ANY("nfs"),
    ANY("iscsi"),
    ANY("glusterfs"),
    ANY("persistentVolumeClaim"),
    ANY("rbd"),
    ANY("flexVolume"),
    ANY("cinder"),
    ANY("cephfs"),
    ANY("flocker"),
    ANY("downwardAPI"),
    ANY("fc"),
    ANY("azureFile"),
    ANY("configMap"),
    ANY("vsphereVolume"),
    ANY("quobyte"),
    ANY("azureDisk"),
    ANY("photonPersistentDisk"),
    ANY("projected"),
    ANY("portworxVolume"),
    ANY("scaleIO"),
    ANY("storageos"),
    ANY("csi"),
    ANY("ephemeral"),
    ANY("image"),
    {0},
};
static const struct stw_field volume = {.name = "", .type = STW_T_RAW, .known = volume_rows};

static const struct stw_field pod_rows[] = {
    FEW("containers", container, 20),
    FEW("initContainers", container, 20),
    FEW("volumes", volume, 100),
    {.name = "nodeSelector", .type = STW_T_MAP, .item = &stw_core_text_item},
    STRING("priorityClassName"),
    STRING("runtimeClassName"),
    STRING("schedulerName"),
    STRING("nodeName"),
    STRING("dnsPolicy"),
    BOOL("hostNetwork"),
    BOOL("hostPID"),
    BOOL("hostIPC"),
    BOOL("shareProcessNamespace"),
    BOOL("enableServiceLinks"),
    LIST("hostAliases", any_item),
    OBJECT("resources", resources_rows),
    OBJECT("securityContext", stw_core_pod_security_context),
    STRING("serviceAccountName"),
    STRING("serviceAccount"),
    BOOL("automountServiceAccountToken"),
    LIST("imagePullSecrets", any_item),
    OBJECT("affinity", stw_core_affinity),
    LIST("tolerations", stw_core_toleration),
    LIST("topologySpreadConstraints", stw_core_spread),
    INT("terminationGracePeriodSeconds"),
    LIST("ephemeralContainers", any_item),
    STRING("restartPolicy"),
    INT("activeDeadlineSeconds"),
    STRING("hostname"),
    STRING("hostnameOverride"),
    STRING("subdomain"),
    BOOL("setHostnameAsFQDN"),
    BOOL("hostUsers"),
    INT("priority"),
    STRING("preemptionPolicy"),
    ANY("dnsConfig"),
    LIST("readinessGates", any_item),
    LIST("schedulingGates", any_item),
    LIST("resourceClaims", any_item),
    LIST("evictionResponders", any_item),
    ANY("schedulingGroup"),
    ANY("workloadRef"), /* of 1.35, where schedulingGroup was not yet */
    {.name = "overhead", .type = STW_T_MAP, .item = &quantity_item},
    ANY("os"),
    {0},
};
static const struct stw_field template_metadata_rows[] = {
    {.name = "labels", .type = STW_T_MAP, .item = &stw_core_label_item},
    {.name = "annotations", .type = STW_T_MAP, .item = &stw_core_text_item},
    STRING("name"),
    STRING("generateName"),
    STRING("namespace"),
    STRING("selfLink"),
    STRING("uid"),
    STRING("resourceVersion"),
    INT("generation"),
    STRING("creationTimestamp"),
    STRING("deletionTimestamp"),
    INT("deletionGracePeriodSeconds"),
    LIST("ownerReferences", any_item),
    STRINGS("finalizers"),
    STRING("clusterName"),
    LIST("managedFields", any_item),
    {0},
};

const struct stw_field stw_core_pod_template[] = {
    OBJECT("metadata", template_metadata_rows), OBJECT("spec", pod_rows), {0}};
