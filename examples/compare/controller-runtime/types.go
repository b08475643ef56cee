// SPDX-License-Identifier: Apache-2.0

// Redirect: a host name that an nginx of the namespace sends elsewhere.
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "example.org", Version: "v1"}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &Redirect{}, &RedirectList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

type RedirectSpec struct {
	// Host name whose requests are redirected.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// URL to which they are redirected.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=1024
	Target string `json:"target"`
	// Port of the Service.
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

type RedirectStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Redirect sends the requests for a host name elsewhere.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Redirect struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RedirectSpec   `json:"spec"`
	Status RedirectStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true
type RedirectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Redirect `json:"items"`
}
