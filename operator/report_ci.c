/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of `steward validate` for CI systems: JUnit and SARIF. */
#include "base/buf.h"
#include "base/hex.h"
#include "base/util.h"
#include "base/visible.h"
#include "operator/report.h"

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

static size_t count_verdict(const json_t *objects, const char *verdict)
{
    const json_t *object;
    size_t i, n = 0;
    json_array_foreach (objects, i, object)
        n += has_verdict(object, verdict);
    return n;
}

void stw_report_junit(const struct stw_operator *op, const json_t *objects, FILE *out)
{
    const json_t *object;
    char counts[160];
    size_t i;
    stw_format(counts, sizeof(counts),
               "tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\"",
               json_array_size(objects), count_verdict(objects, "refused"),
               count_verdict(objects, "unreadable"), count_verdict(objects, "passedOver"));
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites %s>\n  <testsuite name=\"%s validate\" %s>\n",
            counts, op->name, counts);
    json_array_foreach (objects, i, object)
        print_case(op, object, out);
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

static void add_result(json_t *results, const json_t *object, const json_t *place, const char *rule,
                       const char *level, const char *text)
{
    json_array_append_new(results, json_pack("{s:s, s:s, s:{s:o}, s:o}", "ruleId", rule, "level",
                                             level, "message", "text", stw_report_text(text),
                                             "locations", build_location(object, place)));
}

static void add_results(json_t *results, const json_t *object)
{
    const json_t *one;
    size_t i;
    char name[600], text[10240], why[8192];
    format_name(object, name, sizeof(name));
    if (has_verdict(object, "unreadable"))
        add_result(results, object, object, "Unreadable", "error", get_text(object, "error"));
    json_array_foreach (json_object_get(object, "errors"), i, one) {
        format_error(one, why, sizeof(why));
        stw_format(text, sizeof(text), "%s %s: %s", get_text(object, "kind"), name, why);
        add_result(results, object, one, get_text(one, "reason"), "error", text);
    }
    json_array_foreach (json_object_get(object, "warnings"), i, one) {
        stw_format(text, sizeof(text), "%s %s: %s", get_text(object, "kind"), name,
                   json_string_value(one));
        add_result(results, object, object, "Warning", "warning", text);
    }
}

void stw_report_sarif(const struct stw_operator *op, const json_t *objects, FILE *out)
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
    const json_t *object;
    size_t i;
    json_t *results = json_array(), *known = json_array();
    for (i = 0; i < STW_COUNT(rules); i++)
        json_array_append_new(known, json_pack("{s:s, s:{s:s}}", "id", rules[i][0],
                                               "shortDescription", "text", rules[i][1]));
    json_array_foreach (objects, i, object)
        add_results(results, object);
    json_auto_t *all =
        json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:s, s:o}]}", "$schema",
                  "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs",
                  "tool", "driver", "name", op->name, "version", op->version, "rules", known,
                  "columnKind", "unicodeCodePoints", "results", results);
    stw_report_print(all, out);
}
