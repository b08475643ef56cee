// SPDX-License-Identifier: Apache-2.0

// An API server's side of admission, with its own code: the defaults of the definitions of the kinds, its client of
// webhooks, its check of their answers, and the library that applies their patches.
//
//	admission URL CA-FILE DEFINITION...
//
// Reads one JSON object a line: {"mutate": PATH, "validate": PATH, "request": an AdmissionRequest}.  The objects get
// the defaults of their definition; the new one is patched as the answer of `mutate` says, and then goes to `validate`.
// Writes one JSON object a line: {"error": what an API server would not accept, "allowed", "message", "object":
// after the patch}.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"sigs.k8s.io/yaml"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	admissionrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"k8s.io/apiserver/pkg/util/webhook"
)

const deadline = 30 * time.Second

type question struct {
	Mutate   string
	Validate string
	Request  json.RawMessage
}

type answer struct {
	Error   string          `json:"error,omitempty"`
	Allowed bool            `json:"allowed"`
	Message string          `json:"message,omitempty"`
	Object  json.RawMessage `json:"object,omitempty"`
}

type server struct {
	clients webhook.ClientManager
	schemas map[string]*structuralschema.Structural // by kind
	url     string
	ca      []byte
}

func (s *server) addDefinition(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	internal := &apiextensions.JSONSchemaProps{}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, internal, nil); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	s.schemas[crd.Spec.Names.Kind], err = structuralschema.NewStructural(internal)
	return err
}

// defaulted is the object with the defaults of its definition.
func (s *server) defaulted(kind string, object []byte) ([]byte, error) {
	if len(object) == 0 {
		return object, nil
	}
	var tree map[string]any
	if err := json.Unmarshal(object, &tree); err != nil {
		return nil, err
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(tree, s.schemas[kind])
	defaulting.Default(tree, s.schemas[kind])
	return json.Marshal(tree)
}

func newServer(url, caFile string, definitions []string) (*server, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	versions := []schema.GroupVersion{admissionv1.SchemeGroupVersion}
	clients, err := webhook.NewClientManager(versions, admissionv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	info, err := webhook.NewDefaultAuthenticationInfoResolver("")
	if err != nil {
		return nil, err
	}
	clients.SetAuthenticationInfoResolver(info)
	clients.SetServiceResolver(webhook.NewDefaultServiceResolver())
	s := &server{clients, map[string]*structuralschema.Structural{}, url, ca}
	for _, file := range definitions {
		if err := s.addDefinition(file); err != nil {
			return nil, err
		}
	}
	return s, clients.Validate()
}

// ask calls one webhook, as the dispatchers of the API server do.
func (s *server) ask(path string, request *admissionv1.AdmissionRequest, mutating bool) (*admissionrequest.AdmissionResponse, error) {
	client, err := s.clients.HookClient(webhook.ClientConfig{Name: path, URL: s.url + path, CABundle: s.ca})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	response := &admissionv1.AdmissionReview{}
	err = client.Post().Body(&admissionv1.AdmissionReview{Request: request}).Do(ctx).Into(response)
	if err != nil {
		return nil, err
	}
	return admissionrequest.VerifyAdmissionResponse(request.UID, mutating, response)
}

// patched lets `mutate` default the object of the request.
func (s *server) patched(q question, request *admissionv1.AdmissionRequest) (*admissionrequest.AdmissionResponse, error) {
	result, err := s.ask(q.Mutate, request, true)
	if err != nil || !result.Allowed || len(result.Patch) == 0 {
		return result, err
	}
	patch, err := jsonpatch.DecodePatch(result.Patch)
	if err == nil {
		request.Object.Raw, err = patch.Apply(request.Object.Raw)
	}
	return result, err
}

func (s *server) judge(q question) (answer, error) {
	request := &admissionv1.AdmissionRequest{}
	if err := json.Unmarshal(q.Request, request); err != nil {
		return answer{}, err
	}
	request.UID = types.UID("5d1d4a4e-6c2f-4a7e-9d2b-1f0f3d6a2b11")
	var err error
	if request.Object.Raw, err = s.defaulted(request.Kind.Kind, request.Object.Raw); err != nil {
		return answer{}, err
	}
	if request.OldObject.Raw, err = s.defaulted(request.Kind.Kind, request.OldObject.Raw); err != nil {
		return answer{}, err
	}
	result, err := s.patched(q, request)
	if err == nil && result.Allowed {
		result, err = s.ask(q.Validate, request, false)
	}
	if err != nil {
		return answer{}, err
	}
	said := answer{Allowed: result.Allowed, Object: request.Object.Raw}
	if result.Result != nil {
		said.Message = result.Result.Message
	}
	return said, nil
}

func run() error {
	if len(os.Args) < 4 {
		return fmt.Errorf("usage: admission URL CA-FILE DEFINITION...")
	}
	s, err := newServer(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		q := question{}
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		said, err := s.judge(q)
		if err != nil {
			said.Error = err.Error()
		}
		if err := out.Encode(said); err != nil {
			return err
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
