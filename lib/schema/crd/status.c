/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a status that all or several kinds have, for the schema. */
#include "schema/rows.h"
#include "schema/rule/kind_priv.h"

/* metav1.Condition, with the limits of its Go type. */
static const char *const condition_states[] = {"True", "False", "Unknown", NULL};

static const struct stw_field condition_fields[] = {
    {.name = "type",
     .type = STW_T_STRING,
     .help = "Type of the condition, in CamelCase.",
     .required = true,
     STW_RANGE(0, 316),
     .pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"},
    {.name = "status",
     .type = STW_T_STRING,
     .help = "True, False or Unknown.",
     .required = true,
     .values = condition_states},
    {.name = "observedGeneration",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Generation of the object that the condition describes.",
     STW_RANGE(0, INT64_MAX)},
    {.name = "lastTransitionTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the status last went from one value to another.",
     .required = true},
    {.name = "reason",
     .type = STW_T_STRING,
     .help = "Reason as one word, for programs.",
     .required = true,
     STW_RANGE(1, 1024),
     .pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
    {.name = "message",
     .type = STW_T_STRING,
     .help = "Reason as a sentence, for people.",
     .required = true,
     STW_RANGE(0, 32768)},
    {0},
};

static const struct stw_field condition = {
    .name = "", .type = STW_T_OBJECT, .fields = condition_fields};
static const char *const condition_keys[] = {"type", NULL};

static const struct stw_field retry_fields[] = {
    {.name = "count", .type = STW_T_INT, .format = "int64", .help = "Failed attempts in a row."},
    {.name = "nextTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the next attempt is due."},
    {.name = "lastError", .type = STW_T_STRING, .help = "Error of the last attempt."},
    {0},
};

const struct stw_field stw_status_common[] = {
    {.name = "observedGeneration",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Generation of the object that this status describes; -1: not looked at yet."},
    {.name = "conditions",
     .type = STW_T_LIST,
     .help = "Ready, Reconciling and Stalled, then those of the kind.",
     .item = &condition,
     .list_keys = condition_keys},
    {.name = "lastReconcileTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the status was last written."},
    {.name = "retry",
     .type = STW_T_OBJECT,
     .help = "The attempt to come, after one that failed.",
     .fields = retry_fields},
    {0},
};

const struct stw_field stw_repair_fields[] = {
    {.name = "time", .type = STW_T_STRING, .format = "date-time", .help = "When."},
    {.name = "object", .type = STW_T_STRING, .help = "What was repaired, such as Service/web."},
    {.name = "fields", .type = STW_T_STRING, .help = "Which of its fields had been changed."},
    {0},
};

static const struct stw_field template_fields[] = {
    {.name = "object",
     .type = STW_T_STRING,
     .help = "Whose template, such as Deployment/web.",
     .required = true},
    {.name = "hash", .type = STW_T_STRING, .help = "Hash of the template."},
    {.name = "storedHash",
     .type = STW_T_STRING,
     .help = "The same of what the API server stores, if it differs."},
    {.name = "waitingHash",
     .type = STW_T_STRING,
     .help = "Hash of the template that waits for the next rollout."},
    {.name = "inputsHash",
     .type = STW_T_STRING,
     .help = "Hash of what the template was made from, besides the version."},
    {0},
};
const struct stw_field stw_template_item = {.type = STW_T_OBJECT, .fields = template_fields};
const char *const stw_template_keys[] = {"object", NULL};
