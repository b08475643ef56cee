/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward new`: writes the repository of an operator that is built on libsteward. */
#include "cmd/new.h"

#include "base/util.h"
#include "base/visible.h"
#include "cmd/steward.h"
#include "operator/extension.h"
#include "operator/flags.h"
#include "schema/names.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROJECT_MAX 38 /* "PROJECT-validating-webhook-configuration" and others derive from it */
#define KIND_MAX 40
#define FILE_MAX (256u << 10)

static const char usage[] =
    "Usage: steward new PROJECT GROUP/VERSION/KIND [OPTIONS]\n\n"
    "Writes a new folder with the repository of an operator that is built on libsteward: one kind "
    "with its fields, rules and children, tests, manifests, a Dockerfile and a workflow.  It "
    "builds "
    "and passes its tests at once:\n\n"
    "  steward new greeter example.org/v1/Greeting\n"
    "  cd greeter && meson setup build && meson test -C build\n";

struct new_options {
    char *folder, *plural;
};

static const struct stw_flag flags[] = {
    {.name = "folder",
     .arg = "FOLDER",
     .offset = offsetof(struct new_options, folder),
     .help = "folder to create (default PROJECT)"},
    {.name = "plural",
     .arg = "NAME",
     .offset = offsetof(struct new_options, plural),
     .help = "plural of the kind in URLs and for kubectl, such as greetings (default: made of "
             "KIND)"},
    {0},
};

/* What the placeholders stand for. */
struct project {
    char project[PROJECT_MAX + 1], ident[PROJECT_MAX + 1];
    char group[254], version[64];
    char kind[KIND_MAX + 1], lower[KIND_MAX + 1], upper[KIND_MAX + 1], plural[64];
};

/* --- the names */

static bool is_project(const char *s)
{
    size_t len = strlen(s);
    return len <= PROJECT_MAX && islower((unsigned char)s[0]) &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0' && s[len - 1] != '-';
}

/* v1, v1alpha2, v2beta1 */
static bool is_version(const char *s)
{
    static const char digits[] = "0123456789";
    if (*s++ != 'v' || *s < '1' || *s > '9')
        return false;
    s += strspn(s, digits);
    if (strncmp(s, "alpha", 5) == 0)
        s += 5;
    else if (strncmp(s, "beta", 4) == 0)
        s += 4;
    else
        return *s == '\0';
    return *s >= '1' && *s <= '9' && s[strspn(s, digits)] == '\0';
}

static bool is_kind(const char *s)
{
    if (!isupper((unsigned char)s[0]) || strlen(s) > KIND_MAX)
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s))
            return false;
    return true;
}

/* A struct has this name, and functions begin with it: "stw_kind" is of the library. */
static bool is_keyword(const char *s)
{
    static const char *const words[] = {
        "auto",    "bool",  "break",    "case",   "char",     "const",    "continue",
        "default", "do",    "double",   "else",   "enum",     "extern",   "float",
        "for",     "goto",  "if",       "inline", "int",      "long",     "register",
        "return",  "short", "signed",   "sizeof", "static",   "struct",   "switch",
        "typedef", "union", "unsigned", "void",   "restrict", "volatile", "while",
        "true",    "false", "main",     "linux",  "unix",     "errno",    "stw"};
    for (size_t i = 0; i < STW_COUNT(words); i++)
        if (stw_streq(s, words[i]))
            return true;
    return false;
}

static bool ends_in(const char *s, const char *end)
{
    size_t len = strlen(s), n = strlen(end);
    return len >= n && stw_streq(s + len - n, end);
}

/* As an English speaker forms it, in most cases. */
static void form_plural(const char *one, char *out, size_t size)
{
    size_t len = strlen(one);
    char last = one[len - 1], before = len > 1 ? one[len - 2] : '\0';
    bool hisses =
        last == 's' || last == 'x' || last == 'z' || ends_in(one, "ch") || ends_in(one, "sh");
    if (last == 'y' && !strchr("aeiou", before))
        stw_format(out, size, "%.*sies", (int)(len - 1), one);
    else
        stw_format(out, size, "%s%s", one, hisses ? "es" : "s");
}

static void convert(const char *from, char *to, int (*one)(int))
{
    for (; *from; from++)
        *to++ = (char)one((unsigned char)*from);
    *to = '\0';
}

static int underscore(int c)
{
    return c == '-' ? '_' : c;
}

/* Its program has this name: what meson keeps for itself, and what the build folder already has. */
static bool is_target(const char *s)
{
    static const char *const names[] = {
        "all",       "benchmark",   "clean",      "coverage", "dist",  "distcheck", "install",
        "manifests", "reconfigure", "scan-build", "test",     "tests", "uninstall"};
    for (size_t i = 0; i < STW_COUNT(names); i++)
        if (stw_streq(s, names[i]))
            return true;
    return strncmp(s, "meson-", 6) == 0 || strncmp(s, "clean-", 6) == 0 ||
           strncmp(s, "coverage-", 9) == 0;
}

/* The end of a group that others own. */
static bool belongs_to(const char *group, const char *domain)
{
    size_t len = strlen(group), n = strlen(domain);
    return ends_in(group, domain) && (len == n || group[len - n - 1] == '.');
}

/* Splits "example.org/v1/Greeting". */
static int read_kind(const char *text, struct project *n)
{
    const char *slash = strchr(text, '/'), *second = slash ? strchr(slash + 1, '/') : NULL;
    if (!second || (size_t)(slash - text) >= sizeof(n->group) ||
        (size_t)(second - slash) > sizeof(n->version))
        return stw_usage_error("new",
                               "\"%s\" is not GROUP/VERSION/KIND, such as "
                               "example.org/v1/Greeting",
                               text);
    stw_format(n->group, sizeof(n->group), "%.*s", (int)(slash - text), text);
    stw_format(n->version, sizeof(n->version), "%.*s", (int)(second - slash - 1), slash + 1);
    if (!strchr(n->group, '.') || !stw_is_dns1123_subdomain(n->group))
        return stw_usage_error("new",
                               "group \"%s\": must be a domain that you own, such as "
                               "example.org",
                               n->group);
    if (strlen(n->group) > STW_OPERATOR_DOMAIN_MAX)
        return stw_usage_error("new", "group \"%s\": at most %d characters", n->group,
                               STW_OPERATOR_DOMAIN_MAX);
    if (belongs_to(n->group, "k8s.io") || belongs_to(n->group, "kubernetes.io"))
        return stw_usage_error("new", "group \"%s\": k8s.io and kubernetes.io belong to Kubernetes",
                               n->group);
    if (!is_version(n->version))
        return stw_usage_error("new", "version \"%s\": must be like v1, v1beta1 or v1alpha1",
                               n->version);
    if (!is_kind(second + 1))
        return stw_usage_error("new",
                               "kind \"%s\": must be in CamelCase with letters and digits, "
                               "at most %d",
                               second + 1, KIND_MAX);
    stw_format(n->kind, sizeof(n->kind), "%s", second + 1);
    return 0;
}

static int read_names(char **operands, const char *plural, struct project *n)
{
    if (!is_project(operands[0]))
        return stw_usage_error("new",
                               "project \"%s\": must start with a letter and hold only a-z, "
                               "0-9 and '-', at most %d",
                               operands[0], PROJECT_MAX);
    if (is_target(operands[0]))
        return stw_usage_error("new", "project \"%s\": is a target of meson; choose another",
                               operands[0]);
    stw_format(n->project, sizeof(n->project), "%s", operands[0]);
    convert(n->project, n->ident, underscore);
    int rc = read_kind(operands[1], n);
    if (rc != 0)
        return rc;
    convert(n->kind, n->lower, tolower);
    convert(n->kind, n->upper, toupper);
    if (is_keyword(n->lower))
        return stw_usage_error("new",
                               "kind \"%s\": \"%s\" is a word of C or libsteward; choose another",
                               n->kind, n->lower);
    if (plural && *plural)
        stw_format(n->plural, sizeof(n->plural), "%s", plural);
    else
        form_plural(n->lower, n->plural, sizeof(n->plural));
    return stw_is_dns1035_label(n->plural)
               ? 0
               : stw_usage_error("new", "plural \"%s\": must hold only a-z, 0-9 and '-'",
                                 n->plural);
}

/* --- the files */

static void fill(const char *text, const struct project *n, struct stw_buf *out)
{
    const struct {
        const char *mark, *value;
    } all[] = {{"@PROJECT@", n->project}, {"@IDENT@", n->ident},  {"@GROUP@", n->group},
               {"@VERSION@", n->version}, {"@KIND@", n->kind},    {"@LOWER@", n->lower},
               {"@UPPER@", n->upper},     {"@PLURAL@", n->plural}};
    while (*text) {
        size_t i = 0;
        while (i < STW_COUNT(all) && strncmp(text, all[i].mark, strlen(all[i].mark)) != 0)
            i++;
        if (i == STW_COUNT(all)) {
            stw_buf_addc(out, *text++);
            continue;
        }
        stw_buf_adds(out, all[i].value);
        text += strlen(all[i].mark);
    }
}

/* Where a template goes: files of the kind have its name. */
static void place_of(const char *name, const struct project *n, char *out, size_t size)
{
    if (stw_streq(name, "gitignore"))
        stw_format(out, size, ".gitignore");
    else if (stw_streq(name, "ci.yml"))
        stw_format(out, size, ".github/workflows/ci.yml");
    else if (stw_streq(name, "src/kind.c") || stw_streq(name, "src/kind.h"))
        stw_format(out, size, "src/%s.%c", n->lower, name[strlen(name) - 1]);
    else if (stw_streq(name, "tests/test_kind.c"))
        stw_format(out, size, "tests/test_%s.c", n->lower);
    else
        stw_format(out, size, "%s", name);
}

static bool is_script(const char *name)
{
    return stw_streq(name, "scripts/manifests") || stw_streq(name, "tests/cluster");
}

static int fail_errno(struct stw_error *err, const char *what, const char *path)
{
    return stw_fail(err, STW_ERR_INTERNAL, "cannot %s %s: %s", what, path, strerror(errno));
}

/* The folders above a file in `top`. */
static int make_folders(int top, char *path, struct stw_error *err)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(top, path, 0777) != 0 && errno != EEXIST)
            return fail_errno(err, "create", path);
        *slash = '/';
    }
    return 0;
}

static int write_file(int top, const struct stw_new_file *t, const struct project *n,
                      struct stw_error *err)
{
    char path[128];
    stw_autobuf struct stw_buf text = STW_BUF_INIT(FILE_MAX);
    place_of(t->name, n, path, sizeof(path));
    fill(t->text, n, &text);
    if (text.failed)
        return stw_fail_memory(err);
    if (make_folders(top, path, err) != 0)
        return -1;
    int fd = openat(top, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    is_script(t->name) ? 0777 : 0666);
    if (fd < 0)
        return fail_errno(err, "create", path);
    FILE *file = fdopen(fd, "w");
    if (!file) {
        (void)close(fd);
        return fail_errno(err, "open", path);
    }
    bool good = fwrite(stw_buf_str(&text), 1, text.len, file) == text.len;
    return fclose(file) == 0 && good ? 0 : fail_errno(err, "write", path);
}

static int write_files(const char *folder, const struct project *n, struct stw_error *err)
{
    int rc = 0, top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return fail_errno(err, "open", folder);
    for (const struct stw_new_file *t = stw_new_files; t->name && rc == 0; t++)
        rc = write_file(top, t, n, err);
    (void)close(top);
    return rc;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path);
}

/* Everything, or nothing. */
static int write_project(const char *folder, const struct project *n, struct stw_error *err)
{
    if (mkdir(folder, 0777) != 0)
        return errno == EEXIST
                   ? stw_fail(err, STW_ERR_EXISTS,
                              "%s exists; remove it, or name another with --folder", folder)
                   : fail_errno(err, "create", folder);
    if (write_files(folder, n, err) == 0)
        return 0;
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return -1;
}

static int create_project(const struct stw_call *call, void *settings, int count, char **operands)
{
    (void)call;
    const struct new_options *o = settings;
    struct project n = {0};
    struct stw_error err = {0};
    if (count != 2)
        return stw_usage_error("new", "needs a project and GROUP/VERSION/KIND");
    int rc = read_names(operands, o->plural, &n);
    if (rc != 0)
        return rc;
    const char *folder = o->folder && *o->folder ? o->folder : n.project;
    if (write_project(folder, &n, &err) != 0) {
        stw_print_line(stderr, "steward new: %s", err.text);
        return STW_EXIT_REFUSED;
    }
    stw_print_line(stdout, "wrote %s: an operator for %s of %s/%s.  Next:", folder, n.kind, n.group,
                   n.version);
    stw_print_line(stdout, "%s", "");
    stw_print_line(stdout, "  cd %s && meson setup build && meson test -C build", folder);
    printf("\nREADME.md says how it gets into a cluster.\n");
    return STW_EXIT_OK;
}

static int run_new(const struct stw_call *call)
{
    struct new_options o = {0};
    return stw_flags_run(call, &o, create_project);
}

const struct stw_command stw_command_new = {
    .name = "new",
    .summary = "write the repository of an operator of your own, built on libsteward",
    .usage = usage,
    .flags = flags,
    .run = run_new,
};
