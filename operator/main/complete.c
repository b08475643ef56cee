/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion in kubectl, which calls kubectl_complete-NAME.  From the tables of commands and
 * options, as the scripts of shells are. */
#include "base/util.h"
#include "operator/command.h"
#include "operator/main/completion.h"
#include "operator/main/program.h"

#define WORDS_MAX 4096
#define HELP_MAX 4096

/* Directives of cobra, kubectl's library. */
enum { FILES = 0, NO_SPACE = 2, NO_FILES = 4, FOLDERS = 16 };

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static int end_with(int directive)
{
    printf(":%d\n", directive);
    return fflush(stdout) == 0 ? STW_EXIT_OK : STW_EXIT_REFUSED;
}

/* One line, to the first ';'. */
static void print_candidate(const struct stw_operator *op, const char *prefix, const char *word,
                            const char *help)
{
    stw_autobuf struct stw_buf own = STW_BUF_INIT(HELP_MAX);
    printf("%s%s", prefix, word);
    if (help) {
        putchar('\t');
        stw_operator_expand(op, help, &own);
        for (const char *c = stw_buf_str(&own); *c && *c != ';'; c++)
            putchar(*c == '\n' ? ' ' : *c);
    }
    putchar('\n');
}

/* `prefix` is "--output=" where the value is in the same word. */
static int complete_value(const struct stw_operator *op, const char *placeholder,
                          const char *prefix, const char *start)
{
    stw_autobuf struct stw_buf words = STW_BUF_INIT(WORDS_MAX);
    char *rest = NULL;
    switch (stw_shape_of(placeholder)) {
    case STW_SHAPE_FILE:
        return end_with(FILES);
    case STW_SHAPE_FOLDER:
        return end_with(FOLDERS);
    case STW_SHAPE_ANY:
        return end_with(NO_FILES);
    case STW_SHAPE_WORDS:
    case STW_SHAPE_KIND:
        break;
    }
    stw_shape_words(op, placeholder, &words);
    stw_autofree char *copy = strdup(stw_buf_str(&words));
    for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word;
         word = strtok_r(NULL, " ", &rest))
        if (begins(word, start))
            print_candidate(op, prefix, word, NULL);
    return end_with(NO_FILES);
}

static int complete_commands(const struct stw_operator *op, const char *start)
{
    for (const struct stw_command *const *c = stw_program_commands(); *c; c++)
        if (begins((*c)->name, start))
            print_candidate(op, "", (*c)->name, (*c)->summary);
    if (*start == '-' && begins("--help", start))
        print_candidate(op, "", "--help", NULL);
    return end_with(NO_FILES);
}

static const struct stw_command *find_command(const char *name)
{
    for (const struct stw_command *const *c = stw_program_commands(); *c; c++)
        if (stw_streq((*c)->name, name))
            return *c;
    return NULL;
}

/* "--output", "--output=te" or "-o"; NULL: not an option. */
static const struct stw_flag *find_option(const struct stw_flag *table, const char *word)
{
    for (const struct stw_flag *f = table; f->name; f++) {
        size_t len = strlen(f->name);
        if (f->letter && word[0] == '-' && word[1] == f->letter && word[2] == '\0')
            return f;
        if (begins(word, "--") && strncmp(word + 2, f->name, len) == 0 &&
            (word[2 + len] == '\0' || word[2 + len] == '='))
            return f;
    }
    return NULL;
}

static int complete_options(const struct stw_operator *op, const struct stw_flag *table,
                            const char *start)
{
    char word[128];
    bool takes_value = false;
    for (const struct stw_flag *f = table; f->name; f++) {
        stw_format(word, sizeof(word), "--%s%s", f->name, f->type == STW_FLAG_BOOL ? "" : "=");
        if (!begins(word, start))
            continue;
        print_candidate(op, "", word, f->help);
        takes_value |= f->type != STW_FLAG_BOOL;
    }
    if (begins("--help", start))
        print_candidate(op, "", "--help", NULL);
    return end_with(takes_value ? NO_FILES | NO_SPACE : NO_FILES);
}

static int complete_word(const struct stw_operator *op, const struct stw_command *c,
                         const char *before, const char *word)
{
    struct stw_flag table[STW_FLAGS_MAX];
    char prefix[128];
    const char *equals = *word == '-' ? strchr(word, '=') : NULL;
    stw_command_flags(op, c, table);
    const struct stw_flag *f = find_option(table, equals ? word : before);
    if (f && equals) {
        stw_format(prefix, sizeof(prefix), "--%s=", f->name);
        return complete_value(op, stw_placeholder_of(f), prefix, equals + 1);
    }
    if (f && f->type != STW_FLAG_BOOL && !strchr(before, '='))
        return complete_value(op, stw_placeholder_of(f), "", word);
    if (*word == '-')
        return complete_options(op, table, word);
    return complete_value(op, c->operands, "", word);
}

int stw_complete(const struct stw_operator *op, int count, char **words)
{
    const char *last = count > 0 ? words[count - 1] : "";
    if (count < 2)
        return complete_commands(op, last);
    const struct stw_command *c = find_command(words[0]);
    return c ? complete_word(op, c, count > 2 ? words[count - 2] : "", last) : end_with(NO_FILES);
}
