/* SPDX-License-Identifier: Apache-2.0
 *
 * The first process of a pod: holds its namespaces and buries its orphans. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number)
{
    (void)number;
    _exit(0);
}

static void bury(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void)
{
    (void)signal(SIGTERM, end);
    (void)signal(SIGINT, end);
    (void)signal(SIGCHLD, bury);
    for (;;)
        (void)pause();
}
