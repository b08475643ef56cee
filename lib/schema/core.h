/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of core/v1 that several kinds use unchanged. */
#ifndef STW_SCHEMA_CORE_H
#define STW_SCHEMA_CORE_H

#include "schema/field.h"
#include "schema/finding.h"

extern const struct stw_field stw_core_resources[]; /* ResourceRequirements: limits, requests */
extern const struct stw_field stw_core_pull_secret; /* LocalObjectReference, as `item` of a list */
extern const char *const stw_core_pull_secret_keys[]; /* its list_keys */

extern const struct stw_field stw_core_env;        /* EnvVar, as `item` of a list */
extern const char *const stw_core_env_keys[];      /* its list_keys */
extern const struct stw_field stw_core_label_item; /* the value of a label */
extern const struct stw_field stw_core_text_item;  /* a value of a map of strings */

/* Types of the members of objects that are passed on unchanged: rows for `known`, and `item`s of
 * lists. */
extern const struct stw_field stw_core_affinity[], stw_core_label_selector[],
    stw_core_security_context[], stw_core_pod_security_context[], stw_core_env_source[],
    stw_core_pod_template[];
extern const struct stw_field stw_core_toleration, stw_core_spread;

#define STW_CORE_ENV_NAME_TEXT                                                                     \
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', "  \
    "or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or "         \
    "'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
#define STW_CORE_ENV_NAME_MAX 253 /* as a key of a ConfigMap */
const char *stw_core_check_env_name(const char *name);
/* Bytes of name and value: MAX_ARG_STRLEN of Linux, 131072, without the '=' and the NUL at the end. */
#define STW_CORE_VARIABLE_MAX 131070
#define STW_CORE_VARIABLE_TEXT                                                                     \
    "must be at most 131070 bytes, name and value together, or no program starts with it"
/* Of strings, or absent. */
bool stw_core_variable_is_long(struct stw_json name, struct stw_json value);
/* `value` and `valueFrom` of a variable exclude each other, and it is not too long; `path` is the
 * path of the list. */
void stw_core_check_env(struct stw_json env, const char *path, struct stw_findings *f);

/* In a row: these checks, also in CEL. */
extern const struct stw_cel stw_cel_dns1123_subdomain[], stw_cel_image[];
#define STW_CHECK_SUBDOMAIN                                                                        \
    .check = stw_check_dns1123_subdomain, .cel = stw_cel_dns1123_subdomain, .cel_max = 253
#define STW_CHECK_IMAGE .check = stw_check_image, .cel = stw_cel_image, .cel_max = 1024

/* Checks a key of a Secret or a ConfigMap; for `check` of a field table row. */
const char *stw_core_check_key(const char *key);
extern const struct stw_cel stw_core_cel_key[], stw_core_cel_env_name[];

/* Rules of state in CEL: what stw_core_check_resources and stw_core_check_env refuse.  `has_` is
 * whether there is an object `obj` ("self.pod.resources"), `at_` its path.
 *
 * Before Kubernetes 1.34, the cost estimate counts each quantity as a string of 3 MB and ignores its
 * maxLength.  A rule over all entries therefore reads single characters, which cost the same in
 * every string.  Zeros with an exponent, such as 0e3, and quantities of more than 20 characters are
 * left to C.  Of what is finer than 1m, only fractions with that suffix are in them.  Requests are
 * compared with limits as quantities for the names that every node has, else as numbers. */
#define STW_CEL_INDEXES "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]"
#define STW_CEL_NONZERO "['1','2','3','4','5','6','7','8','9']"
#define STW_CEL_POSITIVE(x)                                                                        \
    "(type(" x ") == string ? !" x ".startsWith('-') && (size(" x ") > 20 || " STW_CEL_INDEXES     \
    ".exists(i, i < size(" x ") && " x ".charAt(i) in " STW_CEL_NONZERO ")) : " x " > 0)"
/* A digit other than 0 is one of the six after the point; a seventh would be rounded. */
#define STW_CEL_FINER(x)                                                                           \
    "(type(" x ") == string && " x ".endsWith('m') && " STW_CEL_INDEXES ".exists(i, i < size(" x   \
    ") && size(" x ") <= i + 8 && " x ".charAt(i) == '.' && "                                      \
    "[1,2,3,4,5,6].exists(j, i + j < size(" x ") && " x ".charAt(i + j) in " STW_CEL_NONZERO ")))"
#define STW_CEL_QUANTITY(x)                                                                        \
    "(type(" x ") == string ? quantity(" x ") : quantity('0').add(int(" x ")))"
#define STW_CEL_IS_QUANTITY(x) "(type(" x ") != string || isQuantity(" x "))"
#define STW_CEL_WITHIN(obj, k)                                                                     \
    "(!(" k " in " obj ".requests) || !(" k " in " obj ".limits) || "                              \
    "!" STW_CEL_IS_QUANTITY(                                                                       \
        obj ".requests[" k                                                                         \
            "]") " || "                                                                            \
                 "!" STW_CEL_IS_QUANTITY(                                                          \
                     obj ".limits[" k                                                              \
                         "]") " || "                                                               \
                              "!" STW_CEL_QUANTITY(                                                \
                                  obj ".requests[" k                                               \
                                      "]") ".isGreaterThan(" STW_CEL_QUANTITY(obj ".limits[" k     \
                                                                                  "]") "))"
#define STW_CEL_RESOURCES_OF(has_, obj, at_, list)                                                 \
    {                                                                                              \
        .at = at_ "." list,                                                                        \
        .type = STW_CEL_ENTRIES,                                                                   \
        .code = STW_INVALID,                                                                       \
        .message = "must be cpu, memory, ephemeral-storage, hugepages-<size> or a name with a "    \
                   "domain such as example.com/gpu",                                               \
        .rule = "!(" has_ ") || !has(" obj "." list ") || " obj "." list                           \
                ".all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || "                          \
                "k.startsWith('hugepages-') || k.contains('/'))",                                  \
    },                                                                                             \
        {                                                                                          \
            .at = at_ "." list,                                                                    \
            .type = STW_CEL_ENTRIES,                                                               \
            .code = STW_INVALID,                                                                   \
            .message = "must be greater than 0",                                                   \
            .rule = "!(" has_ ") || !has(" obj "." list ") || " obj "." list                       \
                    ".all(k, " STW_CEL_POSITIVE(obj "." list "[k]") ")",                           \
        },                                                                                         \
    {                                                                                              \
        .at = at_ "." list, .type = STW_CEL_ENTRIES, .code = STW_INVALID,                          \
        .message = "must not be finer than 1m",                                                    \
        .rule = "!(" has_ ") || !has(" obj "." list ") || " obj "." list                           \
                ".all(k, !" STW_CEL_FINER(obj "." list "[k]") ")",                                 \
    }
#define STW_CEL_RESOURCES(has_, obj, at_)                                                          \
    STW_CEL_RESOURCES_OF(has_, obj, at_, "limits"),                                                \
        STW_CEL_RESOURCES_OF(has_, obj, at_, "requests"),                                          \
        {                                                                                          \
            .at = at_ ".limits",                                                                   \
            .type = STW_CEL_ENTRIES,                                                               \
            .code = STW_INVALID,                                                                   \
            .message = "must be at least 4Mi, or no container starts",                             \
            .rule =                                                                                \
                "!(" has_ ") || !has(" obj ".limits) || !('memory' in " obj                        \
                ".limits) || !" STW_CEL_IS_QUANTITY(                                               \
                    obj                                                                            \
                    ".limits['memory']") " || !" STW_CEL_QUANTITY(obj                              \
                                                                  ".limits['memory']") ".isLessTh" \
                                                                                       "an("       \
                                                                                       "quantity(" \
                                                                                       "'4Mi'))",  \
        },                                                                                         \
    {                                                                                              \
        .at = at_ ".requests", .type = STW_CEL_ENTRIES, .code = STW_INVALID,                       \
        .message = "must be less than or equal to the limit",                                      \
        .rule =                                                                                    \
            "!(" has_ ") || !has(" obj ".requests) || !has(" obj                                   \
            ".limits) || (" STW_CEL_WITHIN(obj, "'cpu'") " && " STW_CEL_WITHIN(                    \
                obj,                                                                               \
                "'memory'") " && " STW_CEL_WITHIN(obj,                                             \
                                                  "'ephemeral-storage'") " && " obj                \
                                                                         ".requests.all(k, !(k "   \
                                                                         "in " obj                 \
                                                                         ".limits) || type(" obj   \
                                                                         ".requests[k]) != int "   \
                                                                         "|| type(" obj            \
                                                                         ".limits[k]) != int || "  \
                                                                         "int(" obj                \
                                                                         ".requests[k]) <= "       \
                                                                         "int(" obj                \
                                                                         ".limits[k])))",          \
    }
/* Keys of annotations or labels: what stw_core_check_annotations refuses, except their sizes. */
#define STW_CORE_KEY_TEXT                                                                          \
    "must be a name such as example.com/name: at most 63 letters, digits, '-', '_' and '.', with " \
    "a letter or digit at both ends, after an optional DNS subdomain and '/'"
#define STW_CEL_KEYS(has_, map, at_)                                                               \
    {                                                                                              \
        .at = (at_), .type = STW_CEL_ENTRIES, .code = STW_INVALID, .message = STW_CORE_KEY_TEXT,   \
        .rule = "!(" has_ ") || " map ".all(k, k.matches(r'^(" STW_RE_SUBDOMAIN                    \
                "/)?[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$'))",                                 \
    }
/* The values of labels. */
#define STW_CORE_LABEL_TEXT                                                                        \
    "must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
#define STW_CEL_LABELS(has_, map, at_)                                                             \
    STW_CEL_KEYS(has_, map, at_),                                                                  \
    {                                                                                              \
        .at = (at_), .type = STW_CEL_ENTRIES, .code = STW_INVALID, .message = STW_CORE_LABEL_TEXT, \
        .rule = "!(" has_ ") || " map ".all(k, size(" map "[k]) <= 63 && " map                     \
                "[k].matches(r'^([a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?)?$'))",                  \
    }
#define STW_CEL_ENV(has_, list, at_)                                                               \
    {                                                                                              \
        .at = (at_), .type = STW_CEL_ENTRIES, .code = STW_INVALID,                                 \
        .message = "valueFrom may not be specified when `value` is not empty",                     \
        .rule =                                                                                    \
            "!(" has_ ") || " list ".all(e, !has(e.valueFrom) || !has(e.value) || e.value == '')", \
    }

/* Rules beyond the table: known resource names, quantities above 0, requests within limits, memory
 * limits of at least 4Mi.  `path` is the path of `resources`. */
void stw_core_check_resources(struct stw_json resources, const char *path, struct stw_findings *f);

/* Annotations or labels of a child: the API server must accept the keys and, for labels, the
 * values.  The total size of annotations is limited.  `path` is the path of the map. */
void stw_core_check_annotations(struct stw_json annotations, const char *path,
                                struct stw_findings *f);
void stw_core_check_labels(struct stw_json labels, const char *path, struct stw_findings *f);

#endif
