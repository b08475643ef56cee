/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of `steward validate` for CI systems: JUnit and SARIF. */
#include "base/buf.h"
#include "base/hex.h"
#include "base/util.h"
#include "base/visible.h"
#include "operator/report/report.h"

#define TEXT_MAX (1u << 20)

static const char *get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t get_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static bool has_verdict(const json_t *object, const char *verdict)
{
    return stw_streq(get_text(object, "verdict"), verdict);
}

/* "team/web", or the file for what could not be read. */
static void format_name(const json_t *object, char *out, size_t size)
{
    const char *ns = get_text(object, "namespace"), *name = get_text(object, "name");
    if (*name)
        stw_format(out, size, "%s%s%s", ns, *ns ? "/" : "", name);
    else
        stw_format(out, size, "%s", has_verdict(object, "unreadable") ? "document" : "(no name)");
}

/* --- JUnit */

static void print_xml(FILE *out, const struct stw_buf *shown)
{
    for (const char *c = stw_buf_str(shown); *c; c++) {
        switch (*c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*c, out);
        }
    }
}

/* Most control characters cannot be written in XML 1.0 at all, and a CI system shows the text. */
static void print_text(FILE *out, const char *text)
{
    stw_autobuf struct stw_buf shown = STW_BUF_INIT(SIZE_MAX);
    stw_visible_add(&shown, text, strlen(text));
    print_xml(out, &shown);
}

static void print_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    print_text(out, value);
    fputc('"', out);
}

/* A line of the text of an element. */
static void print_place(FILE *out, const json_t *object, const json_t *error)
{
    stw_autobuf struct stw_buf file = STW_BUF_INIT(SIZE_MAX), shown = STW_BUF_INIT(SIZE_MAX);
    stw_report_file(get_text(object, "file"), &file);
    stw_visible_add_line(&shown, stw_buf_str(&file), file.len);
    print_xml(out, &shown);
    fprintf(out, ":%lld:%lld: ", (long long)get_number(error, "line"),
            (long long)get_number(error, "column"));
}

static void format_error(const json_t *error, char *out, size_t size)
{
    stw_format(out, size, "%s: %s", get_text(error, "field"), get_text(error, "message"));
}

static void print_failure(const json_t *object, FILE *out)
{
    const json_t *errors = json_object_get(object, "errors"), *error;
    size_t i;
    char text[8192];
    format_error(json_array_get(errors, 0), text, sizeof(text));
    fputs("      <failure", out);
    print_attribute(out, "message", text);
    print_attribute(out, "type", get_text(json_array_get(errors, 0), "reason"));
    fputc('>', out);
    json_array_foreach (errors, i, error) {
        format_error(error, text, sizeof(text));
        if (i > 0)
            fputc('\n', out);
        print_place(out, object, error);
        print_text(out, text);
    }
    fputs("</failure>\n", out);
}

static void print_warnings(const json_t *object, FILE *out)
{
    const json_t *warnings = json_object_get(object, "warnings"), *warning;
    size_t i;
    if (json_array_size(warnings) == 0)
        return;
    fputs("      <system-out>", out);
    json_array_foreach (warnings, i, warning) {
        fputs(i > 0 ? "\nwarning: " : "warning: ", out);
        print_text(out, json_string_value(warning));
    }
    fputs("</system-out>\n", out);
}

static void print_case(const struct stw_operator *op, const json_t *object, FILE *out)
{
    char name[600], title[1024];
    const char *source = get_text(object, "source"), *kind = get_text(object, "kind");
    format_name(object, name, sizeof(name));
    stw_format(title, sizeof(title), "%s%s%s", kind, *kind ? " " : "", name);
    fputs("    <testcase", out);
    print_attribute(out, "classname", *source ? source : get_text(object, "file"));
    print_attribute(out, "name", title);
    print_attribute(out, "file", get_text(object, "file"));
    fprintf(out, " line=\"%lld\">\n", (long long)get_number(object, "line"));
    if (has_verdict(object, "refused"))
        print_failure(object, out);
    if (has_verdict(object, "unreadable")) {
        fputs("      <error", out);
        print_attribute(out, "message", get_text(object, "error"));
        fputs("/>\n", out);
    }
    if (has_verdict(object, "passedOver"))
        fprintf(out, "      <skipped message=\"not a kind of %s's\"/>\n", op->name);
    print_warnings(object, out);
    fputs("    </testcase>\n", out);
}

struct junit {
    const struct stw_operator *op;
    FILE *out;
};

static void print_junit_object(void *ctx, const json_t *object)
{
    const struct junit *j = ctx;
    print_case(j->op, object, j->out);
}

void stw_report_junit(struct stw_report *r, FILE *out)
{
    char counts[160];
    stw_format(counts, sizeof(counts), "tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\"",
               r->count, r->refused, r->shown_unreadable, r->passed_over);
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites %s>\n  <testsuite name=\"%s validate\" %s>\n",
            counts, r->op->name, counts);
    stw_report_each(r, print_junit_object, &(struct junit){r->op, out});
    fputs("  </testsuite>\n</testsuites>\n", out);
}

/* --- SARIF 2.1.0 */

/* Where Helm's output was made from is more use than a line of a stream. */
static json_t *build_location(const json_t *object, const json_t *place)
{
    stw_autobuf struct stw_buf uri = STW_BUF_INIT(TEXT_MAX);
    const char *file = get_text(object, "file"), *source = get_text(object, "source");
    bool is_stream = stw_streq(file, "<stdin>") || !*file;
    json_int_t line = get_number(place, "line"), column = get_number(place, "column");
    if (is_stream)
        stw_url_escape_path(*source ? source : "stdin", &uri);
    else
        stw_buf_adds(&uri, get_text(object, "uri"));
    json_t *physical = json_pack("{s:{s:s}}", "artifactLocation", "uri", stw_buf_str(&uri));
    if (line > 0 && !(is_stream && *source))
        json_object_set_new(
            physical, "region",
            json_pack("{s:I, s:I}", "startLine", line, "startColumn", column > 0 ? column : 1));
    return json_pack("[{s:o}]", "physicalLocation", physical);
}

struct sarif {
    FILE *out;
    unsigned shown;
};

static void print_result(struct sarif *s, const json_t *object, const json_t *place,
                         const char *rule, const char *level, const char *text)
{
    json_auto_t *result =
        json_pack("{s:s, s:s, s:{s:o}, s:o}", "ruleId", rule, "level", level, "message", "text",
                  stw_report_text(text), "locations", build_location(object, place));
    fputs(s->shown++ ? ",\n        " : "\n        ", s->out);
    stw_report_print(result, 8, s->out);
}

static void print_results(void *ctx, const json_t *object)
{
    struct sarif *s = ctx;
    const json_t *one;
    size_t i;
    char name[600], text[10240], why[8192];
    format_name(object, name, sizeof(name));
    if (has_verdict(object, "unreadable"))
        print_result(s, object, object, "Unreadable", "error", get_text(object, "error"));
    json_array_foreach (json_object_get(object, "errors"), i, one) {
        format_error(one, why, sizeof(why));
        stw_format(text, sizeof(text), "%s %s: %s", get_text(object, "kind"), name, why);
        print_result(s, object, one, get_text(one, "reason"), "error", text);
    }
    json_array_foreach (json_object_get(object, "warnings"), i, one) {
        stw_format(text, sizeof(text), "%s %s: %s", get_text(object, "kind"), name,
                   json_string_value(one));
        print_result(s, object, object, "Warning", "warning", text);
    }
}

void stw_report_sarif(struct stw_report *r, FILE *out)
{
    static const char *const rules[][2] = {
        {"FieldValueRequired", "A required field is missing."},
        {"FieldValueInvalid", "A value is not valid."},
        {"FieldValueNotSupported", "A value is not one of those that are supported."},
        {"FieldValueForbidden", "A field is unknown, or may not be set or changed."},
        {"FieldValueDuplicate", "A value is there twice."},
        {"Unreadable", "A document could not be read."},
        {"Warning", "The object is accepted, with a warning."},
    };
    struct sarif s = {.out = out};
    json_t *known = json_array();
    for (size_t i = 0; i < STW_COUNT(rules); i++)
        json_array_append_new(known, json_pack("{s:s, s:{s:s}}", "id", rules[i][0],
                                               "shortDescription", "text", rules[i][1]));
    json_auto_t *tool = json_pack("{s:{s:s, s:s, s:o}}", "driver", "name", r->op->name, "version",
                                  r->op->version, "rules", known);
    fputs("{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
          "  \"version\": \"2.1.0\",\n  \"runs\": [\n    {\n      \"tool\": ",
          out);
    stw_report_print(tool, 6, out);
    fputs(",\n      \"columnKind\": \"unicodeCodePoints\",\n      \"results\": [", out);
    stw_report_each(r, print_results, &s);
    fputs(s.shown ? "\n      ]\n    }\n  ]\n}\n" : "]\n    }\n  ]\n}\n", out);
}
