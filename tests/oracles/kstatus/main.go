// SPDX-License-Identifier: Apache-2.0

// What kstatus says about objects with a status, as `kubectl wait`, Flux and Argo CD read it.  Reads one line for
// each, a whole object, and answers it with one: {"status": "Current", "message": TEXT} or
// {"error": TEXT}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type answer struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
}

func compute(line []byte) answer {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(line, &object.Object); err != nil { // integers stay integers
		return answer{Error: err.Error()}
	}
	result, err := status.Compute(object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Status: string(result.Status), Message: result.Message}
}

func main() {
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return
		}
		if err == nil {
			err = out.Encode(compute(line))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "kstatus:", err)
			os.Exit(1)
		}
	}
}
