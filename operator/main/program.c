/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/main/program.h"

#include "base/util.h"

#include <assert.h>
#include <ctype.h>

static char called[sizeof("kubectl ") + STW_OPERATOR_NAME_MAX] = "operator";
static bool completes;
static const struct stw_command *program_commands[STW_COMMANDS_MAX + 1];

void stw_program_set(const struct stw_operator *op, const char *argv0,
                     const struct stw_command *const *commands)
{
    static const char plugin[] = "kubectl-", completion[] = "kubectl_complete-";
    const char *slash = strrchr(argv0, '/'), *name = slash ? slash + 1 : argv0;
    bool is_plugin = strncmp(name, plugin, sizeof(plugin) - 1) == 0 &&
                     stw_streq(name + sizeof(plugin) - 1, op->name);
    completes = strncmp(name, completion, sizeof(completion) - 1) == 0 &&
                stw_streq(name + sizeof(completion) - 1, op->name);
    stw_format(called, sizeof(called), "%s%s", is_plugin ? "kubectl " : "", op->name);
    size_t n = 0;
    for (; commands[n]; n++) {
        assert(n < STW_COMMANDS_MAX);
        program_commands[n] = commands[n];
    }
    program_commands[n] = NULL;
}

const struct stw_command *const *stw_program_commands(void)
{
    return program_commands;
}

const char *stw_program_name(void)
{
    return called;
}

bool stw_program_completes(void)
{
    return completes;
}

static bool is_word_end(char c)
{
    return !isalnum((unsigned char)c) && c != '-' && c != '_';
}

/* Whether `text` begins with the name of a command; "COMMAND" stands for any. */
static bool is_command(const char *text)
{
    if (strncmp(text, "COMMAND", 7) == 0)
        return true;
    for (const struct stw_command *const *c = program_commands; *c; c++) {
        size_t len = strlen((*c)->name);
        if (strncmp(text, (*c)->name, len) == 0 && is_word_end(text[len]))
            return true;
    }
    return false;
}

void stw_program_print(const struct stw_operator *op, const char *text, FILE *out)
{
    const char *at = text, *found;
    size_t len = strlen(op->name);
    while ((found = strstr(at, op->name))) {
        const char *next = found + len;
        bool starts = found == text || is_word_end(found[-1]);
        (void)fwrite(at, 1, (size_t)(found - at), out);
        fputs(starts && *next == ' ' && is_command(next + 1) ? called : op->name, out);
        at = next;
    }
    fputs(at, out);
}
