// SPDX-License-Identifier: Apache-2.0

// The library that the CronJob controller uses, for tests that compare it with steward's engine:
// the same questions and answers as cron_probe.c.  Built in GOPATH mode from Debian's package
// golang-github-robfig-cron-dev.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron"
)

func answer(line string) string {
	fields := strings.Split(line, "\t")
	if len(fields) != 4 {
		return "!not a question"
	}
	zone, err := time.LoadLocation(fields[1])
	if err != nil {
		return "!unknown time zone"
	}
	schedule, err := cron.ParseStandard(fields[0])
	if err != nil {
		return "!" + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	after, _ := strconv.ParseInt(fields[2], 10, 64)
	count, _ := strconv.Atoi(fields[3])
	at := time.Unix(after, 0).In(zone)
	var times []string
	for i := 0; i < count; i++ {
		at = schedule.Next(at)
		if at.IsZero() {
			break
		}
		times = append(times, strconv.FormatInt(at.Unix(), 10))
	}
	return strings.Join(times, " ")
}

func main() {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprintln(out, answer(strings.TrimSuffix(line, "\n")))
	}
}
