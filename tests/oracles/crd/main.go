// SPDX-License-Identifier: Apache-2.0

// What an API server of one version says about definitions and about custom resources.  Each line of the
// standard input is a question in JSON, each line of the output its answer, a list of errors in JSON.
//
// A CustomResourceDefinition is judged as on its creation, with the estimated cost of its rules, and kept
// under its kind.  {"object": OBJECT} is the creation of an object of such a kind, and with "old" a change
// of it: unknown fields are dropped, defaults are set, a status that is a subresource is dropped or kept,
// then the schema and the rules are applied, as the server does it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/features"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// kind judges the objects of one definition.
type kind struct {
	schema    *schema.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
	hasStatus bool // as a subresource
}

type question struct {
	Kind   string                 `json:"kind"`
	Object map[string]interface{} `json:"object"`
	Old    map[string]interface{} `json:"old"`
}

func main() {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(
		apiextensions.SchemeGroupVersion)
	kinds := map[string]*kind{}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return
		}
		if err != nil {
			fail("cannot read a question", err)
		}
		answer, err := json.Marshal(answerTo(decoder, kinds, line))
		if err != nil {
			fail("cannot write an answer", err)
		}
		fmt.Println(string(answer))
	}
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func answerTo(decoder runtime.Decoder, kinds map[string]*kind, line []byte) []string {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		fail("not a question", err)
	}
	if asked.Kind == "CustomResourceDefinition" {
		return judgeDefinition(decoder, kinds, line)
	}
	name, _ := asked.Object["kind"].(string)
	if kinds[name] == nil {
		fail("no accepted definition", fmt.Errorf("of kind %q", name))
	}
	return texts(kinds[name].judge(asked.Object, asked.Old))
}

func judgeDefinition(decoder runtime.Decoder, kinds map[string]*kind, line []byte) []string {
	decoded, err := runtime.Decode(decoder, line)
	if err != nil {
		return []string{err.Error()}
	}
	crd := decoded.(*apiextensions.CustomResourceDefinition)
	errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd)
	if len(errs) == 0 {
		kinds[crd.Spec.Names.Kind] = newKind(crd)
	}
	return texts(errs)
}

func texts(errs field.ErrorList) []string {
	said := []string{}
	for _, err := range errs {
		said = append(said, err.Error())
	}
	return said
}

// newKind takes the schema of the first version.
func newKind(crd *apiextensions.CustomResourceDefinition) *kind {
	of, err := apiextensions.GetSchemaForVersion(crd, crd.Spec.Versions[0].Name)
	if err != nil {
		fail("no schema", err)
	}
	structural, err := schema.NewStructural(of.OpenAPIV3Schema)
	if err != nil {
		fail("not a structural schema", err)
	}
	validator, _, err := validation.NewSchemaValidator(of.OpenAPIV3Schema)
	if err != nil {
		fail("no validator", err)
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(crd, crd.Spec.Versions[0].Name)
	if err != nil {
		fail("no subresources", err)
	}
	return &kind{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit),
		subresources != nil && subresources.Status != nil}
}

// admit changes an object as the server does when it reads one.
func (k *kind) admit(object map[string]interface{}) {
	pruning.Prune(object, k.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.schema)
	defaulting.Default(object, k.schema)
}

func (k *kind) judge(object, old map[string]interface{}) field.ErrorList {
	var options []validation.ValidationOption
	var ofRules []cel.Option
	var before interface{}
	var errs field.ErrorList
	k.admit(object)
	if k.hasStatus {
		delete(object, "status")
	}
	if old == nil {
		errs = validation.ValidateCustomResource(nil, object, k.validator)
	} else {
		k.admit(old)
		before = old
		if status, has := old["status"]; k.hasStatus && has {
			object["status"] = status
		}
		if utilfeature.DefaultFeatureGate.Enabled(features.CRDValidationRatcheting) {
			both := common.NewCorrelatedObject(object, old, &model.Structural{Structural: k.schema})
			options = append(options, validation.WithRatcheting(both))
			ofRules = append(ofRules, cel.WithRatcheting(both))
		}
		errs = validation.ValidateCustomResourceUpdate(nil, object, old, k.validator, options...)
	}
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, k.schema, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, object)...)
	}
	// The server does not apply rules to an object with such errors.
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return errs
		}
	}
	if k.rules == nil {
		return errs
	}
	broken, _ := k.rules.Validate(context.Background(), nil, k.schema, object, before,
		celconfig.RuntimeCELCostBudget, ofRules...)
	return append(errs, broken...)
}
