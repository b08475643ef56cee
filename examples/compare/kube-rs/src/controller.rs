// SPDX-License-Identifier: Apache-2.0

use std::{
    collections::BTreeMap,
    future::{Future, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Service, ServicePort, ServiceSpec},
    apimachinery::pkg::{
        apis::meta::v1::{Condition, Time},
        util::intstr::IntOrString,
    },
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ObjectMeta, PartialObjectMeta, Patch, PatchParams},
    runtime::{
        Controller, WatchStreamExt,
        controller::{Action, Config},
        predicates, reflector,
        reflector::Store,
        watcher,
    },
};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram, histogram::exponential_buckets},
    registry::Registry,
};
use serde_json::json;

use crate::types::{Redirect, RedirectStatus};

const FIELD_MANAGER: &str = "redirect-controller";
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "redirect");

pub type Redirects = Store<Redirect>;

pub struct Context {
    client: Client,
    pub registry: Registry,
    reconciles: Counter,
    failures: Counter,
    seconds: Histogram,
}

impl Context {
    pub fn new(client: Client) -> Self {
        let mut registry = Registry::with_prefix("redirect");
        let (reconciles, failures) = (Counter::default(), Counter::default());
        let seconds = Histogram::new(exponential_buckets(0.001, 4.0, 8));
        registry.register("reconciles", "Reconciles", reconciles.clone());
        registry.register("reconcile_failures", "Reconciles that failed", failures.clone());
        registry.register("reconcile_duration_seconds", "Duration of reconciles", seconds.clone());
        Self { client, registry, reconciles, failures, seconds }
    }
}

/// The controller, to be awaited, and its store.
///
/// Of the children only the metadata is watched, and nothing is kept: server-side apply compares.
pub fn run(client: Client, context: Arc<Context>) -> (impl Future<Output = ()>, Redirects) {
    let (store, writer) = reflector::store();
    let redirects = watcher(Api::<Redirect>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|redirect| redirect.managed_fields_mut().clear())
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    let children = watcher::Config::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
    let configmaps = watcher(Api::<PartialObjectMeta<ConfigMap>>::all(client.clone()), children.clone())
        .default_backoff()
        .touched_objects();
    let services = watcher(Api::<PartialObjectMeta<Service>>::all(client), children)
        .default_backoff()
        .touched_objects();
    let controller = Controller::for_stream(redirects, store.clone())
        // The events of children that it has just applied become one reconcile.
        .with_config(Config::default().concurrency(4).debounce(Duration::from_millis(100)))
        .owns_stream(configmaps)
        .owns_stream(services)
        .shutdown_on_signal()
        .run(reconcile, on_error, context)
        .for_each(|_| ready(()));
    (controller, store)
}

fn on_error(redirect: Arc<Redirect>, error: &kube::Error, context: Arc<Context>) -> Action {
    context.failures.inc();
    tracing::warn!(name = redirect.name_any(), %error, "reconcile failed");
    Action::requeue(Duration::from_secs(5))
}

async fn reconcile(redirect: Arc<Redirect>, context: Arc<Context>) -> Result<Action, kube::Error> {
    context.reconciles.inc();
    let begin = Instant::now();
    let done = sync(&redirect, &context.client).await;
    context.seconds.observe(begin.elapsed().as_secs_f64());
    done.map(|()| Action::await_change())
}

async fn sync(redirect: &Redirect, client: &Client) -> Result<(), kube::Error> {
    if redirect.metadata.deletion_timestamp.is_some() {
        return Ok(()); // the garbage collector removes the children
    }
    let (namespace, name) = (redirect.namespace().unwrap_or_default(), redirect.name_any());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let configmap = Patch::Apply(configmap(redirect));
    let configmap = Api::<ConfigMap>::namespaced(client.clone(), &namespace).patch(&name, &params, &configmap).await.map(|_| ());
    let service = Patch::Apply(service(redirect));
    let service = Api::<Service>::namespaced(client.clone(), &namespace).patch(&name, &params, &service).await.map(|_| ());
    let status = RedirectStatus {
        observed_generation: redirect.metadata.generation,
        conditions: vec![
            condition(redirect, "ConfigMapSynced", &configmap),
            condition(redirect, "ServiceSynced", &service),
            condition(redirect, "Ready", if configmap.is_err() { &configmap } else { &service }),
        ],
    };
    if redirect.status.as_ref() != Some(&status) {
        let patch = json!({
            "apiVersion": Redirect::api_version(&()), "kind": Redirect::kind(&()), "status": status,
        });
        let redirects = Api::<Redirect>::namespaced(client.clone(), &namespace);
        match redirects.patch_status(&name, &params, &Patch::Apply(patch)).await {
            Err(kube::Error::Api(gone)) if gone.code == 404 => (),
            done => drop(done?),
        }
    }
    configmap.and(service)
}

fn condition(redirect: &Redirect, kind: &str, done: &Result<(), kube::Error>) -> Condition {
    let (status, reason, message) = match done {
        Ok(()) => ("True", "Applied", String::new()),
        Err(error) => ("False", "Failed", error.to_string()),
    };
    let before = redirect.status.iter().flat_map(|s| &s.conditions).find(|c| c.type_ == kind && c.status == status);
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: redirect.metadata.generation,
        last_transition_time: before.map_or_else(|| Time(Timestamp::now()), |c| c.last_transition_time.clone()),
    }
}

fn configmap(redirect: &Redirect) -> ConfigMap {
    let text = format!("server_name {}; return 301 {};", redirect.spec.host, redirect.spec.target);
    ConfigMap {
        metadata: metadata(redirect),
        data: Some(BTreeMap::from([("redirect.conf".to_owned(), text)])),
        ..Default::default()
    }
}

fn service(redirect: &Redirect) -> Service {
    let port = ServicePort {
        name: Some("http".to_owned()),
        port: redirect.spec.port(),
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::Int(80)),
        ..Default::default()
    };
    Service {
        metadata: metadata(redirect),
        spec: Some(ServiceSpec { selector: Some(selector(redirect)), ports: Some(vec![port]), ..Default::default() }),
        ..Default::default()
    }
}

fn metadata(redirect: &Redirect) -> ObjectMeta {
    let mut labels = selector(redirect);
    labels.insert("app.kubernetes.io/component".to_owned(), "web".to_owned());
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    ObjectMeta {
        name: redirect.metadata.name.clone(),
        namespace: redirect.metadata.namespace.clone(),
        labels: Some(labels),
        owner_references: redirect.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..Default::default()
    }
}

fn selector(redirect: &Redirect) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "redirect".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), redirect.name_any()),
    ])
}
