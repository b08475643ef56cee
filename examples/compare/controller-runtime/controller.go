// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const fieldManager = "redirect-controller"

var managedBy = map[string]string{"app.kubernetes.io/managed-by": "redirect"}

// +kubebuilder:rbac:groups=example.org,resources=redirects,verbs=get;list;watch
// +kubebuilder:rbac:groups=example.org,resources=redirects/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch
type reconciler struct {
	client.Client
}

func (r *reconciler) setup(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Redirect{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var redirect Redirect
	if err := r.Get(ctx, req.NamespacedName, &redirect); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !redirect.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector removes the children
	}
	before := redirect.DeepCopy()
	configMapErr := r.syncConfigMap(ctx, &redirect)
	serviceErr := r.syncService(ctx, &redirect)
	redirect.setCondition("ConfigMapSynced", configMapErr)
	redirect.setCondition("ServiceSynced", serviceErr)
	err := errors.Join(configMapErr, serviceErr)
	redirect.setCondition("Ready", err)
	redirect.Status.ObservedGeneration = redirect.Generation
	if equality.Semantic.DeepEqual(before.Status, redirect.Status) {
		return ctrl.Result{}, err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	patchErr := r.Status().Patch(ctx, &redirect, patch, client.FieldOwner(fieldManager))
	if apierrors.IsConflict(patchErr) || apierrors.IsNotFound(patchErr) {
		return ctrl.Result{}, err // the watch reports the newer object
	}
	return ctrl.Result{}, errors.Join(err, patchErr)
}

func (r *reconciler) syncConfigMap(ctx context.Context, redirect *Redirect) error {
	data := map[string]string{"redirect.conf": fmt.Sprintf("server_name %s; return 301 %s;",
		redirect.Spec.Host, redirect.Spec.Target)}
	var live corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKeyFromObject(redirect), &live)
	if err == nil && redirect.owns(&live) && equality.Semantic.DeepDerivative(data, live.Data) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return r.Apply(ctx, corev1ac.ConfigMap(redirect.Name, redirect.Namespace).
		WithLabels(redirect.labels()).
		WithOwnerReferences(redirect.ownerReference()).
		WithData(data), client.FieldOwner(fieldManager), client.ForceOwnership)
}

func (r *reconciler) syncService(ctx context.Context, redirect *Redirect) error {
	port := corev1.ServicePort{Name: "http", Port: redirect.port(), Protocol: corev1.ProtocolTCP,
		TargetPort: intstr.FromInt32(80)}
	want := corev1.ServiceSpec{Selector: redirect.selector(), Ports: []corev1.ServicePort{port}}
	var live corev1.Service
	err := r.Get(ctx, client.ObjectKeyFromObject(redirect), &live)
	if err == nil && redirect.owns(&live) && equality.Semantic.DeepDerivative(want, live.Spec) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return r.Apply(ctx, corev1ac.Service(redirect.Name, redirect.Namespace).
		WithLabels(redirect.labels()).
		WithOwnerReferences(redirect.ownerReference()).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(want.Selector).
			WithPorts(corev1ac.ServicePort().WithName(port.Name).WithPort(port.Port).
				WithProtocol(port.Protocol).WithTargetPort(port.TargetPort))),
		client.FieldOwner(fieldManager), client.ForceOwnership)
}

func (redirect *Redirect) setCondition(kind string, err error) {
	condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Applied",
		ObservedGeneration: redirect.Generation}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", err.Error()
	}
	meta.SetStatusCondition(&redirect.Status.Conditions, condition)
}

func (redirect *Redirect) selector() map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":     "redirect",
		"app.kubernetes.io/instance": redirect.Name,
	}
}

func (redirect *Redirect) labels() map[string]string {
	labels := redirect.selector()
	labels["app.kubernetes.io/component"] = "web"
	for key, value := range managedBy {
		labels[key] = value
	}
	return labels
}

func (redirect *Redirect) ownerReference() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("Redirect").
		WithName(redirect.Name).WithUID(redirect.UID).
		WithController(true).WithBlockOwnerDeletion(true)
}

// owns reports whether the labels and the owner of a child are as they were applied.
func (redirect *Redirect) owns(child client.Object) bool {
	return metav1.IsControlledBy(child, redirect) &&
		equality.Semantic.DeepDerivative(redirect.labels(), child.GetLabels())
}

// port is the one of the Service, also of an object that was stored without the webhook.
func (redirect *Redirect) port() int32 {
	if redirect.Spec.Port == 0 {
		return 80
	}
	return redirect.Spec.Port
}
