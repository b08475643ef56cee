// SPDX-License-Identifier: Apache-2.0

//! Redirect: a host name that an nginx of the namespace sends elsewhere.

mod controller;
mod types;
mod webhook;

use std::{env, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use axum_server::tls_rustls::RustlsConfig;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().json().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "two TLS providers")?;
    let client = kube::Client::try_default().await?;
    let state = Arc::new(controller::Context::new(client.clone()));
    let (controller, store) = controller::run(client, state.clone());
    let ready = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz).with_state(store))
        .route("/metrics", get(metrics).with_state(state));
    let status = tokio::net::TcpListener::bind(address("STATUS_ADDRESS", 8080)?).await?;
    tokio::select! {
        () = controller => Ok(()),
        done = axum::serve(status, ready) => Ok(done?),
        done = admission() => done,
    }
}

/// Serves the webhooks; reads the certificate again every minute.
async fn admission() -> Result<(), Error> {
    let folder = PathBuf::from(env::var("WEBHOOK_CERT_PATH")?);
    let (cert, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    let tls = RustlsConfig::from_pem_file(&cert, &key).await?;
    let reloaded = tls.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(60)).await;
            if let Err(error) = reloaded.reload_from_pem_file(&cert, &key).await {
                tracing::warn!(%error, "cannot read the certificate again");
            }
        }
    });
    let address = address("WEBHOOK_ADDRESS", 9443)?;
    Ok(axum_server::bind_rustls(address, tls).serve(webhook::router().into_make_service()).await?)
}

fn address(name: &str, port: u16) -> Result<SocketAddr, Error> {
    Ok(match env::var(name) {
        Ok(text) => text.parse()?,
        Err(_) => SocketAddr::from(([0, 0, 0, 0], port)),
    })
}

async fn readyz(State(store): State<controller::Redirects>) -> (StatusCode, &'static str) {
    match tokio::time::timeout(Duration::from_millis(1), store.wait_until_ready()).await {
        Ok(Ok(())) => (StatusCode::OK, "ok"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the cache is being filled"),
    }
}

async fn metrics(State(state): State<Arc<controller::Context>>) -> Result<String, StatusCode> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &state.registry)
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(text)
}
