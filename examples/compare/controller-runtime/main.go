// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

type options struct {
	webhook, certs, metrics, health string
	workers                         int
	leaderElect                     bool
}

func main() {
	var o options
	flag.StringVar(&o.webhook, "webhook-bind-address", ":9443", "where admission is served")
	flag.StringVar(&o.certs, "webhook-cert-path", "", "folder with tls.crt and tls.key")
	flag.StringVar(&o.metrics, "metrics-bind-address", ":8080", "where /metrics is served")
	flag.StringVar(&o.health, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	flag.IntVar(&o.workers, "workers", 4, "reconciles at the same time")
	flag.BoolVar(&o.leaderElect, "leader-elect", false, "only one of several replicas reconciles")
	flag.Parse() // also --kubeconfig, of controller-runtime
	ctrl.SetLogger(zap.New(zap.UseDevMode(false)))
	if err := run(o); err != nil {
		ctrl.Log.Error(err, "cannot run")
		os.Exit(1)
	}
}

func run(o options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(o.webhook)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme() // only the types in use, not all of client-go
	if err := errors.Join(corev1.AddToScheme(scheme), addToScheme(scheme)); err != nil {
		return err
	}
	children := cache.ByObject{Label: labels.SelectorFromSet(managedBy)}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: children,
				&corev1.Service{}:   children,
			},
		},
		WebhookServer:           webhook.NewServer(webhook.Options{Host: host, Port: number, CertDir: o.certs}),
		Metrics:                 metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:  o.health,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        "redirect.example.org",
		LeaderElectionNamespace: os.Getenv("POD_NAMESPACE"),
	})
	if err != nil {
		return err
	}
	if err := (&reconciler{mgr.GetClient()}).setup(mgr, o.workers); err != nil {
		return err
	}
	if err := (webhooks{}).setup(mgr); err != nil {
		return err
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
		mgr.AddReadyzCheck("cache", synced(mgr)),
	); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// synced fails until every informer has its first list.
func synced(mgr ctrl.Manager) healthz.Checker {
	return func(req *http.Request) error {
		for _, kind := range []client.Object{&Redirect{}, &corev1.ConfigMap{}, &corev1.Service{}} {
			informer, err := mgr.GetCache().GetInformer(req.Context(), kind, cache.BlockUntilSynced(false))
			if err != nil {
				return err
			}
			if !informer.HasSynced() {
				return errors.New("the cache is being filled")
			}
		}
		return nil
	}
}
