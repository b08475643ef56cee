/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward completion`: scripts with which shells complete commands, options and values. They are
 * made from the tables of commands and options. */
#include "operator/main/completion.h"

#include "base/buf.h"
#include "base/util.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/main/program.h"
#include "schema/kind.h"

#define OUTPUT_MAX (1u << 20)
#define WORDS_MAX 4096

static const char usage[] =
    "Usage: {operator} completion bash|zsh|fish\n\n"
    "Prints a script with which the shell completes the commands, options and values of "
    "{operator}.\n"
    "`meson install` puts it where the shell finds it.  For this session only:\n\n"
    "  source <({operator} completion bash)\n"
    "  source <({operator} completion zsh)\n"
    "  {operator} completion fish | source\n";

static const struct stw_flag flags[] = {{0}};

/* --- what a value or an operand may be */

enum stw_shape stw_shape_of(const char *placeholder)
{
    if (!placeholder)
        return STW_SHAPE_ANY;
    if (strchr(placeholder, '|'))
        return STW_SHAPE_WORDS;
    if (strncmp(placeholder, "KIND", 4) == 0) /* "KIND,...": its first */
        return STW_SHAPE_KIND;
    if (stw_streq(placeholder, "FILE"))
        return STW_SHAPE_FILE;
    return strncmp(placeholder, "FOLDER", 6) == 0 ? STW_SHAPE_FOLDER : STW_SHAPE_ANY;
}

const char *stw_placeholder_of(const struct stw_flag *f)
{
    return f->type == STW_FLAG_BOOL ? "true|false" : f->arg;
}

void stw_shape_words(const struct stw_operator *op, const char *placeholder, struct stw_buf *out)
{
    if (stw_shape_of(placeholder) == STW_SHAPE_KIND) {
        for (size_t i = 0; op->kinds[i]; i++)
            stw_buf_addf(out, "%s%s", i ? " " : "", op->kinds[i]->plural);
        return;
    }
    for (const char *p = placeholder; p && *p; p++)
        stw_buf_addc(out, *p == '|' ? ' ' : *p);
}

static void add_command_names(struct stw_buf *out)
{
    for (const struct stw_command *const *c = stw_program_commands(); *c; c++)
        stw_buf_addf(out, "%s ", (*c)->name);
}

/* --- bash */

static void add_bash_values(const struct stw_operator *op, const char *placeholder,
                            struct stw_buf *out)
{
    switch (stw_shape_of(placeholder)) {
    case STW_SHAPE_WORDS:
    case STW_SHAPE_KIND:
        stw_buf_adds(out, "words='");
        stw_shape_words(op, placeholder, out);
        stw_buf_adds(out, "'");
        break;
    case STW_SHAPE_FILE:
        stw_buf_adds(out, "files=-f");
        break;
    case STW_SHAPE_FOLDER:
        stw_buf_adds(out, "files=-d");
        break;
    case STW_SHAPE_ANY:
        stw_buf_adds(out, "return");
        break;
    }
}

/* One branch for the value of an option. */
static void add_bash_option(const struct stw_operator *op, const struct stw_command *c,
                            const struct stw_flag *f, struct stw_buf *out)
{
    stw_buf_addf(out, "    '%s --%s='", c->name, f->name);
    if (f->type != STW_FLAG_BOOL)
        stw_buf_addf(out, " | '%s --%s'", c->name, f->name);
    if (f->letter && f->type != STW_FLAG_BOOL)
        stw_buf_addf(out, " | '%s -%c'", c->name, f->letter);
    stw_buf_adds(out, ") ");
    add_bash_values(op, stw_placeholder_of(f), out);
    stw_buf_adds(out, " ;;\n");
}

static void add_bash_command(const struct stw_operator *op, const struct stw_command *c,
                             struct stw_buf *out)
{
    struct stw_flag table[STW_FLAGS_MAX];
    stw_command_flags(op, c, table);
    for (const struct stw_flag *f = table; f->name; f++)
        add_bash_option(op, c, f, out);
    stw_buf_addf(out, "    '%s '*)\n        words='", c->name);
    for (const struct stw_flag *f = table; f->name; f++)
        stw_buf_addf(out, "--%s%s ", f->name, f->type == STW_FLAG_BOOL ? "" : "=");
    stw_buf_adds(out, "--help'\n");
    if (c->operands) {
        stw_buf_adds(out, "        [[ $cur == -* ]] || ");
        add_bash_values(op, c->operands, out);
        stw_buf_addc(out, '\n');
    }
    stw_buf_adds(out, "        ;;\n");
}

/* bash splits "--role=webhook" into three words, unless COMP_WORDBREAKS lacks "=". */
static void print_bash(const struct stw_operator *op, struct stw_buf *out)
{
    const struct stw_command *const *all = stw_program_commands();
    stw_buf_adds(out, "# shellcheck shell=bash\n"
                      "# Written by \"{operator} completion bash\".\n"
                      "_{operator}() {\n"
                      "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                      "    local option='' prefix='' words='' files=''\n"
                      "    if ((COMP_CWORD == 1)); then\n"
                      "        mapfile -t COMPREPLY < <(compgen -W '");
    add_command_names(out);
    stw_buf_adds(out, "help --help --version' -- \"$cur\")\n"
                      "        return\n"
                      "    elif [[ $cur == = ]]; then\n"
                      "        option=$prev= cur=''\n"
                      "    elif [[ $prev == = ]]; then\n"
                      "        option=${COMP_WORDS[COMP_CWORD - 2]}=\n"
                      "    elif [[ $cur == -*=* ]]; then\n"
                      "        option=${cur%%=*}= prefix=${cur%%=*}= cur=${cur#*=}\n"
                      "    elif [[ $prev == -* ]]; then\n"
                      "        option=$prev\n"
                      "    fi\n"
                      "    COMPREPLY=()\n"
                      "    case \"${COMP_WORDS[1]} $option\" in\n");
    for (const struct stw_command *const *c = all; *c; c++)
        add_bash_command(op, *c, out);
    stw_buf_adds(out, "    esac\n"
                      "    if [[ -n $files ]]; then\n"
                      "        compopt -o filenames 2>/dev/null\n"
                      "        mapfile -t COMPREPLY < <(compgen \"$files\" -- \"$cur\")\n"
                      "    else\n"
                      "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                      "        [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null\n"
                      "    fi\n"
                      "    COMPREPLY=(\"${COMPREPLY[@]/#/$prefix}\")\n"
                      "}\n"
                      "complete -F _{operator} {operator}\n");
}

/* --- zsh and fish, which show descriptions */

/* For single quotes. The characters of `special` get a backslash. */
static void add_quoted(const char *text, size_t len, const char *special, struct stw_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr(special, text[i]))
            stw_buf_addf(out, "\\%c", text[i]);
        else if (text[i] == '\'')
            stw_buf_adds(out, "'\\''");
        else
            stw_buf_addc(out, text[i] == '\n' ? ' ' : text[i]);
    }
}

/* The first part of a help text. */
static void add_description(const char *help, const char *special, struct stw_buf *out)
{
    add_quoted(help, strcspn(help, ";"), special, out);
}

/* "message:action" of _arguments */
static void add_zsh_values(const struct stw_operator *op, const char *placeholder,
                           struct stw_buf *out)
{
    stw_autobuf struct stw_buf words = STW_BUF_INIT(WORDS_MAX);
    add_quoted(placeholder, strlen(placeholder), ":\\", out);
    stw_buf_addc(out, ':');
    switch (stw_shape_of(placeholder)) {
    case STW_SHAPE_WORDS:
    case STW_SHAPE_KIND:
        stw_shape_words(op, placeholder, &words);
        stw_buf_addc(out, '(');
        add_quoted(stw_buf_str(&words), words.len, ":\\", out);
        stw_buf_addc(out, ')');
        break;
    case STW_SHAPE_FILE:
        stw_buf_adds(out, "_files");
        break;
    case STW_SHAPE_FOLDER:
        stw_buf_adds(out, "_files -/");
        break;
    case STW_SHAPE_ANY:
        stw_buf_addc(out, ' '); /* a value is necessary, and not known */
        break;
    }
}

static void add_zsh_option(const struct stw_operator *op, const struct stw_flag *f,
                           struct stw_buf *out)
{
    bool is_bool = f->type == STW_FLAG_BOOL;
    stw_buf_adds(out, " \\\n            ");
    if (f->letter)
        stw_buf_addf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", f->letter, f->name, f->letter,
                     is_bool ? "" : "+", f->name, is_bool ? "" : "=");
    else
        stw_buf_addf(out, "'--%s%s[", f->name, is_bool ? "=-" : "=");
    add_description(f->help, "[]\\", out);
    stw_buf_addc(out, ']');
    if (!is_bool || !f->letter) {
        stw_buf_adds(out, is_bool ? "::" : ":");
        add_zsh_values(op, stw_placeholder_of(f), out);
    }
    stw_buf_addc(out, '\'');
}

static void add_zsh_command(const struct stw_operator *op, const struct stw_command *c,
                            struct stw_buf *out)
{
    struct stw_flag table[STW_FLAGS_MAX];
    stw_command_flags(op, c, table);
    stw_buf_addf(out, "    %s)\n        _arguments", c->name);
    for (const struct stw_flag *f = table; f->name; f++)
        add_zsh_option(op, f, out);
    stw_buf_adds(out, " \\\n            '(-h --help)'{-h,--help}'[options]'");
    if (c->operands) {
        stw_buf_adds(out, " \\\n            '*:");
        add_zsh_values(op, c->operands, out);
        stw_buf_addc(out, '\'');
    }
    stw_buf_adds(out, "\n        ;;\n");
}

/* The file is sourced, or its text is the body of the function _steward in a folder of fpath. */
static void print_zsh(const struct stw_operator *op, struct stw_buf *out)
{
    const struct stw_command *const *all = stw_program_commands();
    stw_buf_adds(out, "#compdef {operator}\n"
                      "# Written by \"{operator} completion zsh\".\n"
                      "compdef _{operator} {operator}\n"
                      "_{operator}() {\n"
                      "    local -a commands\n"
                      "    local command=$words[2]\n"
                      "    commands=(\n");
    for (const struct stw_command *const *c = all; *c; c++) {
        stw_buf_addf(out, "        '%s:", (*c)->name);
        add_description((*c)->summary, "\\", out);
        stw_buf_adds(out, "'\n");
    }
    stw_buf_adds(out, "    )\n"
                      "    if ((CURRENT == 2)); then\n"
                      "        _describe command commands\n"
                      "        return\n"
                      "    fi\n"
                      "    shift words\n"
                      "    ((CURRENT--))\n"
                      "    case $command in\n");
    for (const struct stw_command *const *c = all; *c; c++)
        add_zsh_command(op, *c, out);
    stw_buf_adds(out, "    esac\n"
                      "}\n"
                      "if [[ $funcstack[1] == _{operator} ]]; then\n"
                      "    _{operator} \"$@\"\n"
                      "fi\n");
}

/* The options -a, -x, -r and -F of fish's `complete`. */
static void add_fish_values(const struct stw_operator *op, const char *placeholder,
                            struct stw_buf *out)
{
    switch (stw_shape_of(placeholder)) {
    case STW_SHAPE_WORDS:
    case STW_SHAPE_KIND:
        stw_buf_adds(out, " -x -a '");
        stw_shape_words(op, placeholder, out);
        stw_buf_addc(out, '\'');
        break;
    case STW_SHAPE_FILE:
    case STW_SHAPE_FOLDER:
        stw_buf_adds(out, " -r -F");
        break;
    case STW_SHAPE_ANY:
        stw_buf_adds(out, " -x");
        break;
    }
}

static void add_fish_option(const struct stw_operator *op, const struct stw_command *c,
                            const struct stw_flag *f, struct stw_buf *out)
{
    stw_buf_addf(out, "complete -c {operator} -n '__fish_seen_subcommand_from %s' -l %s", c->name,
                 f->name);
    if (f->letter)
        stw_buf_addf(out, " -s %c", f->letter);
    if (f->type != STW_FLAG_BOOL)
        add_fish_values(op, f->arg, out);
    stw_buf_adds(out, " -d '");
    add_description(f->help, "'\\", out);
    stw_buf_adds(out, "'\n");
}

static void add_fish_command(const struct stw_operator *op, const struct stw_command *c,
                             struct stw_buf *out)
{
    struct stw_flag table[STW_FLAGS_MAX];
    stw_command_flags(op, c, table);
    stw_buf_addf(out, "complete -c {operator} -n __fish_use_subcommand -a %s -d '", c->name);
    add_description(c->summary, "'\\", out);
    stw_buf_adds(out, "'\n");
    for (const struct stw_flag *f = table; f->name; f++)
        add_fish_option(op, c, f, out);
    if (c->operands) {
        stw_buf_addf(out, "complete -c {operator} -n '__fish_seen_subcommand_from %s'", c->name);
        add_fish_values(op, c->operands, out);
        stw_buf_addc(out, '\n');
    }
}

static void print_fish(const struct stw_operator *op, struct stw_buf *out)
{
    const struct stw_command *const *all = stw_program_commands();
    stw_buf_adds(out, "# Written by \"{operator} completion fish\".\n"
                      "complete -c {operator} -f\n"
                      "complete -c {operator} -s h -l help -d 'options'\n"
                      "complete -c {operator} -n __fish_use_subcommand -l version -d 'version'\n");
    for (const struct stw_command *const *c = all; *c; c++)
        add_fish_command(op, *c, out);
}

/* --- the command */

static int print_completion(const struct stw_operator *op, const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(const struct stw_operator *op, struct stw_buf *out);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    stw_autobuf struct stw_buf marked = STW_BUF_INIT(OUTPUT_MAX), out = marked;
    for (size_t i = 0; i < STW_COUNT(shells); i++) {
        if (!stw_streq(shells[i].name, shell))
            continue;
        shells[i].print(op, &marked);
        stw_operator_expand(op, stw_buf_str(&marked), &out);
        if (marked.failed || out.failed)
            return stw_usage_error("completion", "out of memory");
        (void)fwrite(stw_buf_str(&out), 1, out.len, stdout);
        return fflush(stdout) == 0 ? STW_EXIT_OK : STW_EXIT_REFUSED;
    }
    return stw_usage_error("completion", "for which shell? bash, zsh or fish");
}

static int run_completion(const struct stw_call *call, void *settings, int count, char **operands)
{
    (void)settings;
    return print_completion(call->op, count == 1 ? operands[0] : "");
}

static int start_completion(const struct stw_call *call)
{
    return stw_flags_run(call, NULL, run_completion);
}

const struct stw_command stw_command_completion = {
    .name = "completion",
    .summary = "a script for bash, zsh or fish that completes commands and options",
    .usage = usage,
    .operands = "bash|zsh|fish",
    .flags = flags,
    .run = start_completion,
};
