// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// +kubebuilder:webhook:path=/mutate-example-org-v1-redirect,mutating=true,failurePolicy=fail,sideEffects=None,groups=example.org,resources=redirects,verbs=create;update,versions=v1,name=mredirect.example.org,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-example-org-v1-redirect,mutating=false,failurePolicy=fail,sideEffects=None,groups=example.org,resources=redirects,verbs=create;update,versions=v1,name=vredirect.example.org,admissionReviewVersions=v1
type webhooks struct{}

func (w webhooks) setup(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &Redirect{}).WithDefaulter(w).WithValidator(w).Complete()
}

func (webhooks) Default(_ context.Context, redirect *Redirect) error {
	redirect.Spec.Port = redirect.port()
	return nil
}

func (webhooks) ValidateCreate(_ context.Context, redirect *Redirect) (admission.Warnings, error) {
	return nil, redirect.validate()
}

func (webhooks) ValidateUpdate(_ context.Context, _, redirect *Redirect) (admission.Warnings, error) {
	return nil, redirect.validate()
}

func (webhooks) ValidateDelete(context.Context, *Redirect) (admission.Warnings, error) {
	return nil, nil
}

func (redirect *Redirect) validate() error {
	var all field.ErrorList
	spec := field.NewPath("spec")
	if n := len(redirect.Spec.Host); n < 1 || n > 253 {
		all = append(all, field.Invalid(spec.Child("host"), redirect.Spec.Host, "must have 1 to 253 characters"))
	}
	if n := len(redirect.Spec.Target); n < 9 || n > 1024 {
		all = append(all, field.Invalid(spec.Child("target"), redirect.Spec.Target, "must have 9 to 1024 characters"))
	} else if !strings.HasPrefix(redirect.Spec.Target, "https://") {
		all = append(all, field.Invalid(spec.Child("target"), redirect.Spec.Target, "must begin with https://"))
	}
	if redirect.Spec.Port < 1 || redirect.Spec.Port > 65535 {
		all = append(all, field.Invalid(spec.Child("port"), redirect.Spec.Port, "must be 1 to 65535"))
	}
	if len(all) == 0 {
		return nil
	}
	kind := groupVersion.WithKind("Redirect").GroupKind()
	return apierrors.NewInvalid(kind, redirect.Name, all)
}
