/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of a kind as const tables.  One row has everything static about a field; the CRD schema,
 * type and range checks, defaults, unknown-field warnings, decoding and the docs all use it. */
#ifndef STW_SCHEMA_FIELD_H
#define STW_SCHEMA_FIELD_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stw_field_type {
    STW_T_STRING,        /* decodes to const char * (NULL when absent) */
    STW_T_TEXT,          /* a string that may be long: decodes to struct stw_json, not copied */
    STW_T_INT,           /* int64_t */
    STW_T_BOOL,          /* bool */
    STW_T_OBJECT,        /* a nested struct; `fields` */
    STW_T_LIST,          /* struct stw_json; elements checked by `item` */
    STW_T_MAP,           /* struct stw_json; string keys, values checked by `item` */
    STW_T_QUANTITY,      /* string or int; struct stw_json */
    STW_T_INT_OR_STRING, /* such as 2 or "25%"; struct stw_json */
    STW_T_RAW, /* a core type that is passed on unchanged: struct stw_json.  `fields` describe and
                * check it; without them the schema preserves all members */
    STW_TYPES
};

/* A rule in CEL, for the CRD of Kubernetes 1.29 and later.  A C check with the same message stands
 * beside it.  A rule never refuses what the C check accepts; it may accept more. */
struct stw_cel {
    const char *rule; /* over `self`, the value of the row; NULL ends a list */
    const char *message;
};

struct stw_field {
    const char *name;         /* NULL ends a table */
    enum stw_field_type type; /* with `offset`, by STW_FIELD */
    const char *help;         /* description in the CRD and the docs: a sentence, units named */
    /* Default as JSON text; NULL: none.  Never an empty string: absence means the same, and an API
     * server 1.20 that was built with Go 1.18 or later treats it as null. */
    const char *def;
    bool required;
    bool has_range; /* min and max apply */
    bool computed; /* the default needs more than a constant: not in the schema, see default_more */
    bool rule_range;  /* the range is only for the schema: a rule of the kind reports violations */
    bool unique;      /* LIST: a set; the C check is a rule of the kind */
    bool immutable;   /* an UPDATE may not change it */
    int64_t min, max; /* value of an INT, bytes of a STRING or TEXT, entries of a LIST or MAP */
    const char *range_text; /* message when out of range; NULL: "must be between A and B" */
    const char *type_text; /* message when the JSON type is wrong, without the value, which may be a
                            * secret; NULL: "must be an object" and so on, with the value */
    const char *const *values;    /* enum, ended by NULL */
    const char *pattern;          /* ECMA 262, only for the schema */
    const char *format;           /* only for the schema: "int64", "date-time" */
    const char *const *list_keys; /* x-kubernetes-list-map-keys */
    const char *skip;             /* STRING: an optional prefix that decoding strips, such as "v" */
    /* STRING: what is wrong with a value, or what to warn about; NULL: nothing.  The text is a
     * constant.  For a value that is not in `values`, the text of `check` replaces the list of
     * supported values. */
    const char *(*check)(const char *value);
    const char *(*warn)(const char *value);
    const struct stw_cel *cel; /* what `check` refuses, in CEL; or NULL */
    int64_t cel_max; /* STRING, TEXT without a range: the most characters that C accepts; or 0 */
    const struct stw_field *fields; /* OBJECT, RAW */
    bool
        open; /* OBJECT, RAW with `fields`: other members are preserved too, and a warning names them */
    const struct stw_field *known; /* RAW without `fields`: types of all members that are known; a
                                    * warning names others */
    const struct stw_field *item;  /* LIST, MAP: one row; its name is "" */
    size_t offset;                 /* into the struct of the table */
};

/* Regular expressions for rules in CEL. */
#define STW_RE_SUBDOMAIN "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

/* Whether a member of a struct has this type of C. */
#define STW_MEMBER_IS(struct_, member, type)                                                       \
    _Generic(((struct_ *)0)->member, __typeof__(type) : 1, default : 0)
/* 0, or an error of the compiler: the member has not the type into which the field is decoded. */
#define STW_MEMBER_FITS(field, struct_, member)                                                    \
    (0 * sizeof(struct {                                                                           \
         _Static_assert((field) != STW_T_STRING || STW_MEMBER_IS(struct_, member, const char *),   \
                        "a field of STW_T_STRING needs a member of type const char *");            \
         _Static_assert((field) != STW_T_INT || STW_MEMBER_IS(struct_, member, int64_t),           \
                        "a field of STW_T_INT needs a member of type int64_t");                    \
         _Static_assert((field) != STW_T_BOOL || STW_MEMBER_IS(struct_, member, bool),             \
                        "a field of STW_T_BOOL needs a member of type bool");                      \
         _Static_assert((field) != STW_T_OBJECT ||                                                 \
                            !(STW_MEMBER_IS(struct_, member, const char *) ||                      \
                              STW_MEMBER_IS(struct_, member, int64_t) ||                           \
                              STW_MEMBER_IS(struct_, member, bool) ||                              \
                              STW_MEMBER_IS(struct_, member, struct stw_json)),                    \
                        "a field of STW_T_OBJECT needs a member that is a struct of its fields");  \
         _Static_assert((field) == STW_T_STRING || (field) == STW_T_INT ||                         \
                            (field) == STW_T_BOOL || (field) == STW_T_OBJECT ||                    \
                            STW_MEMBER_IS(struct_, member, struct stw_json),                       \
                        "a text, list, map, quantity or raw field needs a member of type struct "  \
                        "stw_json");                                                               \
         char unused;                                                                              \
     }))

/* In a row: the type of the field, and the member that gets the value; the range. */
#define STW_FIELD(field, struct_, member)                                                          \
    .type = (field), .offset = STW_MEMBER_FITS(field, struct_, member) + offsetof(struct_, member)
#define STW_RANGE(least, most) .has_range = true, .min = (least), .max = (most)

#endif
