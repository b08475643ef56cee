// SPDX-License-Identifier: Apache-2.0

use axum::{Json, Router, routing::post};
use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::PointerBuf};
use kube::core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
};

use crate::types::{PORT, Redirect};

type Answer = Json<AdmissionReview<DynamicObject>>;

pub fn router() -> Router {
    Router::new()
        .route("/mutate-example-org-v1-redirect", post(mutate))
        .route("/validate-example-org-v1-redirect", post(validate))
}

async fn mutate(Json(review): Json<AdmissionReview<Redirect>>) -> Answer {
    answer(review, |redirect, response| {
        if redirect.spec.port.is_some() {
            return response;
        }
        let path = PointerBuf::from_tokens(["spec", "port"]);
        let patch = Patch(vec![PatchOperation::Add(AddOperation { path, value: PORT.into() })]);
        response.with_patch(patch).unwrap_or_else(AdmissionResponse::invalid)
    })
}

async fn validate(Json(review): Json<AdmissionReview<Redirect>>) -> Answer {
    answer(review, |redirect, response| {
        let findings = redirect.spec.findings();
        if findings.is_empty() { response } else { response.deny(findings.join(", ")) }
    })
}

fn answer(
    review: AdmissionReview<Redirect>,
    judge: impl Fn(&Redirect, AdmissionResponse) -> AdmissionResponse,
) -> Answer {
    let request: AdmissionRequest<Redirect> = match review.try_into() {
        Ok(request) => request,
        Err(error) => return Json(AdmissionResponse::invalid(error).into_review()),
    };
    let response = AdmissionResponse::from(&request);
    let response = match &request.object {
        Some(redirect) => judge(redirect, response),
        None => response,
    };
    Json(response.into_review())
}
