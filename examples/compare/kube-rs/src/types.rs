// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const PORT: i32 = 80;

/// Redirect sends the requests for a host name elsewhere.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Redirect", namespaced, status = "RedirectStatus")]
#[kube(printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
pub struct RedirectSpec {
    /// Host name whose requests are redirected.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// URL to which they are redirected.
    #[schemars(length(min = 9, max = 1024))]
    pub target: String,
    /// Port of the Service.
    #[schemars(range(min = 1, max = 65535))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedirectStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl RedirectSpec {
    pub fn port(&self) -> i32 {
        self.port.unwrap_or(PORT)
    }

    /// What is wrong with it, all at once.
    pub fn findings(&self) -> Vec<String> {
        let mut all = vec![];
        if !(1..=253).contains(&self.host.chars().count()) {
            all.push("spec.host: must have 1 to 253 characters".to_owned());
        }
        if !(9..=1024).contains(&self.target.chars().count()) {
            all.push("spec.target: must have 9 to 1024 characters".to_owned());
        } else if !self.target.starts_with("https://") {
            all.push("spec.target: must begin with https://".to_owned());
        }
        if !(1..=65535).contains(&self.port()) {
            all.push("spec.port: must be 1 to 65535".to_owned());
        }
        all
    }
}
