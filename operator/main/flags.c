/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/flags.h"

#include "base/duration.h"
#include "base/json.h"
#include "base/util.h"
#include "base/visible.h"
#include "base/yaml/yaml.h"
#include "operator/command.h"
#include "operator/main/program.h"

#include <ctype.h>
#include <getopt.h>

#define FILE_MAX_BYTES (1u << 20)
#define LIST_MAX_BYTES (1u << 20)

enum { FIRST_VALUE = 256 }; /* getopt values of table rows: above all letters */

static void *find_member(const struct stw_flag *f, void *settings)
{
    return (char *)(f->extra ? *(void **)settings : settings) + f->offset;
}

static int set_string(const struct stw_flag *f, void *settings, const char *text,
                      struct stw_error *err)
{
    char **at = find_member(f, settings);
    stw_autobuf struct stw_buf joined = STW_BUF_INIT(LIST_MAX_BYTES);
    if (f->list && *at && **at)
        stw_buf_addf(&joined, "%s,", *at);
    stw_buf_adds(&joined, text);
    char *copy = joined.failed ? NULL : strdup(stw_buf_str(&joined));
    if (!copy)
        return joined.failed ? stw_fail(err, STW_ERR_INVALID, "the value is too long")
                             : stw_fail_memory(err);
    free(*at);
    *at = copy;
    return 0;
}

static int set_bool(const struct stw_flag *f, void *settings, const char *text,
                    struct stw_error *err)
{
    bool on = stw_streq(text, "true");
    if (!on && !stw_streq(text, "false"))
        return stw_fail(err, STW_ERR_INVALID, "\"%s\" is not true or false", text);
    *(bool *)find_member(f, settings) = on;
    return 0;
}

static int set_number(const struct stw_flag *f, void *settings, int64_t value, const char *text,
                      struct stw_error *err)
{
    bool any = f->min == 0 && f->max == 0;
    if (value < (any ? 0 : f->min) || value > (any ? INT64_MAX : f->max))
        return stw_fail(err, STW_ERR_INVALID, "\"%s\" is out of range", text);
    *(int64_t *)find_member(f, settings) = value;
    return 0;
}

static int set_value(const struct stw_flag *f, void *settings, const char *text,
                     struct stw_error *err)
{
    int64_t value;
    switch (f->type) {
    case STW_FLAG_STRING:
        return set_string(f, settings, text, err);
    case STW_FLAG_BOOL:
        return set_bool(f, settings, text, err);
    case STW_FLAG_INT:
        if (stw_parse_int(text, INT64_MIN, INT64_MAX, &value) != 0)
            return stw_fail(err, STW_ERR_INVALID, "\"%s\" is not a whole number", text);
        return set_number(f, settings, value, text, err);
    case STW_FLAG_DURATION:
        if (stw_duration_parse(text, &value) != 0)
            return stw_fail(err, STW_ERR_INVALID, "\"%s\" is not a duration such as 500ms or 10s",
                            text);
        return set_number(f, settings, value, text, err);
    }
    return -1;
}

static size_t table_size(const struct stw_flag *table)
{
    size_t n = 0;
    while (table[n].name)
        n++;
    return n;
}

/* The table for getopt. Letters take an argument, except for BOOL. */
static void getopt_tables(const struct stw_flag *table, struct option *options, char *letters)
{
    size_t n = table_size(table);
    char *l = letters;
    *l++ = ':'; /* report a missing argument as ':' */
    *l++ = 'h';
    for (size_t i = 0; i < n; i++) {
        options[i] = (struct option){
            .name = table[i].name,
            .has_arg = table[i].type == STW_FLAG_BOOL ? optional_argument : required_argument,
            .val = FIRST_VALUE + (int)i,
        };
        if (table[i].letter) {
            *l++ = table[i].letter;
            if (table[i].type != STW_FLAG_BOOL)
                *l++ = ':';
        }
    }
    options[n] = (struct option){.name = "help", .val = 'h'};
    options[n + 1] = (struct option){0};
    *l = '\0';
}

static const struct stw_flag *row_of(const struct stw_flag *table, int value)
{
    if (value >= FIRST_VALUE)
        return &table[value - FIRST_VALUE];
    for (const struct stw_flag *f = table; f->name; f++)
        if (f->letter && f->letter == value)
            return f;
    return NULL;
}

/* Parses argv and calls `fn` with each option and its text. Returns 1 on --help. */
typedef int row_fn(void *ctx, const struct stw_flag *f, const char *text, struct stw_error *err);
static int parse_options(const struct stw_flag *table, int argc, char **argv, row_fn *fn, void *ctx,
                         struct stw_error *err)
{
    struct option options[STW_FLAGS_MAX + 2];
    char letters[2 * STW_FLAGS_MAX + 3];
    if (table_size(table) > STW_FLAGS_MAX)
        return stw_fail(err, STW_ERR_INTERNAL, "too many options in a table");
    getopt_tables(table, options, letters);
    optind = 0;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        if (c == 'h')
            return 1;
        const struct stw_flag *f = row_of(table, c == ':' ? optopt : c);
        if (c == ':' && f)
            return stw_fail(err, STW_ERR_INVALID, "--%s needs a value: --%s=%s", f->name, f->name,
                            f->arg);
        if (!f && optopt && optopt < FIRST_VALUE)
            return stw_fail(err, STW_ERR_INVALID, "unknown option -%c", optopt);
        if (!f)
            return stw_fail(err, STW_ERR_INVALID, "unknown option %s", argv[optind - 1]);
        if (fn(ctx, f, optarg ? optarg : "true", err) < 0)
            return stw_error_wrap(err, "--%s", f->name);
    }
    return 0;
}

static int set_row(void *settings, const struct stw_flag *f, const char *text,
                   struct stw_error *err)
{
    return set_value(f, settings, text, err);
}

int stw_flags_parse(const struct stw_operator *op, const struct stw_flag *table, void *settings,
                    int argc, char **argv, int *ret_operands, struct stw_error *err)
{
    for (const struct stw_flag *f = table; f->name; f++) {
        stw_autobuf struct stw_buf def = STW_BUF_INIT(4096);
        stw_operator_expand(op, f->def ? f->def : "", &def);
        if (f->def && set_value(f, settings, stw_buf_str(&def), err) != 0)
            return stw_error_wrap(err, "default of --%s", f->name);
    }
    int r = parse_options(table, argc, argv, set_row, settings, err);
    if (r == 0)
        *ret_operands = optind;
    return r;
}

/* "metrics-bind-address" is metricsBindAddress in the file, like keys in Kubernetes. */
static bool is_key(const struct stw_flag *f, struct stw_json key)
{
    char camel[64];
    size_t n = 0;
    bool up = false;
    for (const char *p = f->name; *p && n < sizeof(camel) - 1; p++) {
        if (*p == '-') {
            up = true;
            continue;
        }
        camel[n++] = up ? (char)toupper((unsigned char)*p) : *p;
        up = false;
    }
    camel[n] = '\0';
    return stw_json_is(key, camel);
}

struct file {
    const struct stw_flag *table;
    void *settings;
    const char *path;
    struct stw_yaml_marks *marks;
    const char *const *elsewhere;
    bool given[STW_FLAGS_MAX]; /* on the command line: overrides the file */
    struct stw_error *err;
};

static int note_given(void *ctx, const struct stw_flag *f, const char *text, struct stw_error *err)
{
    (void)text;
    (void)err;
    struct file *file = ctx;
    file->given[f - file->table] = true;
    return 0;
}

bool stw_flags_given(const struct stw_flag *table, int argc, char **argv, const char *name)
{
    struct file file = {.table = table};
    bool given = false;
    if (parse_options(table, argc, argv, note_given, &file, NULL) < 0)
        return false;
    for (size_t i = 0; table[i].name; i++)
        given |= file.given[i] && stw_streq(table[i].name, name);
    return given;
}

/* "steward.yaml:4:1: logLevel: ..." */
static int fail_at(const struct file *file, const char *key)
{
    size_t line = 1, column = 1;
    (void)stw_yaml_marks_find(file->marks, key, &line, &column);
    return stw_error_wrap(file->err, "%s:%zu:%zu: %s", file->path, line, column, key);
}

/* A scalar, or a list of strings for an option with a comma-separated list. */
static int value_text(const struct stw_flag *f, struct stw_json value, struct stw_buf *out,
                      struct stw_error *err)
{
    size_t len;
    struct stw_json key, item;
    const char *raw;
    switch (stw_json_type(value)) {
    case STW_JSON_STRING:
        if (stw_json_has_nul(value))
            break;
        stw_json_str(value, out);
        return 0;
    case STW_JSON_INT:
    case STW_JSON_TRUE:
    case STW_JSON_FALSE:
        raw = stw_json_raw(value, &len);
        stw_buf_add(out, raw, len);
        return 0;
    case STW_JSON_ARRAY:
        if (f->type == STW_FLAG_STRING) {
            stw_json_foreach (value, key, item) {
                if (stw_json_type(item) != STW_JSON_STRING || stw_json_has_nul(item))
                    return stw_fail(err, STW_ERR_INVALID, "must be a list of strings");
                if (out->len)
                    stw_buf_addc(out, ',');
                stw_json_str(item, out);
            }
            return 0;
        }
        break;
    default:
        break;
    }
    return stw_fail(err, STW_ERR_INVALID, "must be a plain value (%s)",
                    f->arg ? f->arg : "true or false");
}

static int file_entry(struct file *file, struct stw_json key, struct stw_json value)
{
    char name[128];
    if (stw_json_strcpy(key, name, sizeof(name)) != 0)
        stw_format(name, sizeof(name), "(a long key)");
    for (const struct stw_flag *f = file->table; f->name; f++) {
        if (f->no_file || !is_key(f, key))
            continue;
        stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
        if (file->given[f - file->table] || !stw_json_there(value))
            return 0;
        if (value_text(f, value, &text, file->err) != 0 ||
            set_value(f, file->settings, stw_buf_str(&text), file->err) != 0)
            return fail_at(file, name);
        return 0;
    }
    for (const char *const *other = file->elsewhere; other && *other; other++)
        if (stw_json_is(key, *other))
            return 0;
    stw_fail(file->err, STW_ERR_INVALID,
             "unknown key; `%s run --help` lists the options, "
             "written here in camelCase",
             stw_program_name());
    return fail_at(file, name);
}

static int file_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct file *file = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    if (index > 0)
        return stw_fail(file->err, STW_ERR_INVALID, "%s:%zu: one document is enough", file->path,
                        line);
    if (stw_json_scan(&doc, json->data, json->len, file->err) != 0 ||
        stw_json_type(stw_json_root(&doc)) != STW_JSON_OBJECT)
        return stw_fail(file->err, STW_ERR_INVALID, "%s:%zu: must be a map of options", file->path,
                        line);
    struct stw_json key, value;
    stw_json_foreach (stw_json_root(&doc), key, value)
        if (file_entry(file, key, value) != 0)
            return -1;
    return 0;
}

int stw_flags_file(const struct stw_flag *table, void *settings, const char *path,
                   const char *const *elsewhere, int argc, char **argv, struct stw_error *err)
{
    stw_autofree char *text = NULL;
    size_t len;
    struct file file = {
        .table = table, .settings = settings, .path = path, .elsewhere = elsewhere, .err = err};
    if (parse_options(table, argc, argv, note_given, &file, err) < 0 ||
        stw_read_file(path, FILE_MAX_BYTES, &text, &len, err) != 0)
        return -1;
    struct stw_yaml_marks *marks = stw_yaml_marks_create();
    if (!marks)
        return stw_fail_memory(err);
    file.marks = marks;
    int r = stw_yaml_each_marked(path, text, len, file_document, &file, marks, err);
    stw_yaml_marks_destroy(marks);
    return r;
}

void stw_flags_done(const struct stw_flag *table, void *settings)
{
    for (const struct stw_flag *f = table; f->name; f++) {
        if (f->type != STW_FLAG_STRING)
            continue;
        char **at = find_member(f, settings);
        free(*at);
        *at = NULL;
    }
}

#define HELP_MAX (64 * 1024)
#define ERROR_MAX ((size_t)4 << 20) /* a value of the command line */

static void help_lines(const struct stw_operator *op, const char *text, FILE *out)
{
    stw_autobuf struct stw_buf own = STW_BUF_INIT(HELP_MAX);
    stw_operator_expand(op, text, &own);
    for (const char *p = stw_buf_str(&own); *p; p++) {
        fputc(*p, out);
        if (*p == '\n')
            fputs("        ", out);
    }
}

static void print_help(const struct stw_operator *op, const struct stw_flag *table, FILE *out)
{
    for (const struct stw_flag *f = table; f->name; f++) {
        if (f->letter)
            fprintf(out, "  -%c, --%s", f->letter, f->name);
        else
            fprintf(out, "  --%s", f->name);
        if (f->type == STW_FLAG_BOOL)
            fputs("[=true|false]", out);
        else
            fprintf(out, "=%s", f->arg);
        fputs("\n        ", out);
        help_lines(op, f->help, out);
        if (f->def) {
            fputs(" (default ", out);
            help_lines(op, *f->def ? f->def : "empty", out);
            fputc(')', out);
        }
        fputc('\n', out);
    }
    fputs("  -h, --help\n        this text\n", out);
}

int stw_usage_error(const char *command, const char *fmt, ...)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(ERROR_MAX);
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    stw_print_line(stderr, "%s %s: %s", stw_program_name(), command, stw_buf_str(&text));
    stw_print_line(stderr, "`%s %s --help` says how to call it.", stw_program_name(), command);
    return STW_EXIT_USAGE;
}

int stw_flags_start(const struct stw_operator *op, const struct stw_flag *table, const char *usage,
                    void *settings, int argc, char **argv, int *ret_operands)
{
    struct stw_error err = {0};
    int r = stw_flags_parse(op, table, settings, argc, argv, ret_operands, &err);
    if (r < 0)
        return stw_usage_error(argv[0], "%s", err.text);
    if (r == 0)
        return -1;
    stw_autobuf struct stw_buf own = STW_BUF_INIT(HELP_MAX);
    stw_operator_expand(op, usage, &own);
    stw_program_print(op, stw_buf_str(&own), stdout);
    fputs("\nOptions\n", stdout);
    print_help(op, table, stdout);
    return STW_EXIT_OK;
}

int stw_flags_output(const char *command, const char *output, bool *ret_json)
{
    bool json = stw_streq(output, "json");
    if (!json && !stw_streq(output, "text"))
        return stw_usage_error(command, "--output is text or json");
    *ret_json = json;
    return 0;
}
