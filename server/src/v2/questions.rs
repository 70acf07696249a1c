//! Questions to the user and their answers.

use acp_sdk::{Json, RequestId, v1, v2};

use super::{reread, tool_calls};

/// The title of a permission request whose tool call has neither a title nor a name.
const TITLE: &str = "Allow this tool call?";

/// Converts a permission request.
///
/// The title is that of the tool call, or else its name. `None` if there is no option to choose,
/// which version 2 does not allow.
pub(crate) fn permission(
    request: &v1::RequestPermissionRequest,
) -> Option<v2::RequestPermissionRequest> {
    let convert = |option: &v1::PermissionOption| {
        let kind = v2::PermissionOptionKind::from(option.kind.as_str());
        let id = option.option_id.as_str();
        let mut next = v2::PermissionOption::new(id, option.name.as_str(), kind);
        next.meta.clone_from(&option.meta);
        next
    };
    let options: Vec<_> = request.options.iter().map(convert).collect();
    if options.is_empty() {
        return None;
    }
    let call = &request.tool_call;
    let title = call.title.as_deref().or(call.name.as_deref());
    let session = request.session_id.as_str();
    let title = title.unwrap_or(TITLE);
    let mut next = v2::RequestPermissionRequest::new(session, title, options);
    let subject = v2::ToolCallPermissionSubject::new(tool_calls::update_to_v2(call));
    next.subject = Some(subject.into());
    next.meta.clone_from(&request.meta);
    Some(next)
}

/// Converts the answer to a permission request.
///
/// The `_meta` of the outcome `cancelled` is lost: version 1 has no place for it. An unknown
/// outcome stays one; it is no approval.
pub(crate) fn permission_answer(
    response: &v2::RequestPermissionResponse,
) -> v1::RequestPermissionResponse {
    let outcome: v1::RequestPermissionOutcome = match &response.outcome {
        v2::RequestPermissionOutcome::Cancelled(_) => v1::RequestPermissionOutcome::Cancelled,
        v2::RequestPermissionOutcome::Selected(selected) => {
            let mut next = v1::SelectedPermissionOutcome::new(selected.option_id.as_str());
            next.meta.clone_from(&selected.meta);
            next.into()
        }
        v2::RequestPermissionOutcome::Unknown(unknown) => {
            v1::RequestPermissionOutcome::Unknown(unknown.clone())
        }
        _ => v1::RequestPermissionOutcome::Cancelled,
    };
    let mut next = v1::RequestPermissionResponse::new(outcome);
    next.meta.clone_from(&response.meta);
    next
}

/// Converts an elicitation.
///
/// `None` if version 2 cannot express it: a field offers a choice among nothing, or is not valid, or
/// the question belongs to a request whose id is null.
pub(crate) fn elicitation(
    request: &v1::CreateElicitationRequest,
) -> Option<v2::CreateElicitationRequest> {
    let mode: v2::ElicitationMode = match &request.mode {
        v1::ElicitationMode::Form(form) => {
            let schema = form_schema(&form.requested_schema)?;
            v2::ElicitationFormMode::new(schema, scope(&form.scope)?).into()
        }
        v1::ElicitationMode::Url(url) => v2::ElicitationUrlMode::new(
            url.elicitation_id.as_str(),
            url.url.as_str(),
            scope(&url.scope)?,
        )
        .into(),
        v1::ElicitationMode::Unknown(unknown)
            if unknown.get("requestId").is_some_and(Json::is_null) =>
        {
            return None;
        }
        v1::ElicitationMode::Unknown(unknown) => v2::ElicitationMode::Unknown(unknown.clone()),
        _ => return None,
    };
    let mut next = v2::CreateElicitationRequest::new(request.message.as_str(), mode);
    next.meta.clone_from(&request.meta);
    Some(next)
}

fn scope(scope: &v1::ElicitationScope) -> Option<v2::ElicitationScope> {
    match scope {
        v1::ElicitationScope::Session(session) => {
            let mut next = v2::ElicitationSessionScope::new(session.session_id.as_str());
            let call = session.tool_call_id.as_ref();
            next.tool_call_id = call.map(|id| id.as_str().into());
            Some(next.into())
        }
        v1::ElicitationScope::Request(request) if request.request_id != RequestId::Null => {
            Some(v2::ElicitationRequestScope::new(request.request_id.clone()).into())
        }
        _ => None,
    }
}

fn form_schema(schema: &v1::ElicitationSchema) -> Option<v2::ElicitationSchema> {
    let field = |(name, field): (&str, &v1::ElicitationPropertySchema)| {
        let field: v2::ElicitationPropertySchema = reread(field)?;
        has_choices(&field).then(|| (name.to_owned(), field))
    };
    let fields: Option<acp_sdk::json::Map<_>> = schema
        .properties
        .iter()
        .map(field)
        .collect::<Option<Vec<_>>>()
        .map(|fields| fields.into_iter().collect());
    let kind = v2::ElicitationSchemaType::from(schema.type_.as_str());
    let mut next = v2::ElicitationSchema::new(kind, fields?);
    next.title.clone_from(&schema.title);
    next.required.clone_from(&schema.required);
    next.description.clone_from(&schema.description);
    next.meta.clone_from(&schema.meta);
    Some(next)
}

/// Returns whether a field with choices has at least one.
fn has_choices(field: &v2::ElicitationPropertySchema) -> bool {
    match field {
        v2::ElicitationPropertySchema::String(text) => {
            text.enum_.as_ref().is_none_or(|values| !values.is_empty())
                && text.one_of.as_ref().is_none_or(|values| !values.is_empty())
        }
        v2::ElicitationPropertySchema::Array(list) => match &list.items {
            v2::MultiSelectItems::String(items) => !items.enum_.is_empty(),
            v2::MultiSelectItems::Titled(items) => !items.any_of.is_empty(),
            _ => true,
        },
        _ => true,
    }
}

/// Converts the answer to an elicitation.
///
/// Values of forms that version 1 does not have, such as null and objects, are lost.
pub(crate) fn elicitation_answer(
    response: &v2::CreateElicitationResponse,
) -> v1::CreateElicitationResponse {
    let action = match &response.action {
        v2::ElicitationAction::Accept(accepted) => {
            let mut next = v1::ElicitationAcceptAction::new();
            let values = accepted.content.as_ref();
            next.content = values.map(|values| {
                let known = values
                    .iter()
                    .filter_map(|(name, one)| Some((name, value(one)?)));
                known.collect()
            });
            v1::ElicitationAction::Accept(next)
        }
        v2::ElicitationAction::Decline => v1::ElicitationAction::Decline,
        v2::ElicitationAction::Unknown(unknown) => v1::ElicitationAction::Unknown(unknown.clone()),
        // A variant of a later version of the types: no consent.
        _ => v1::ElicitationAction::Cancel,
    };
    let mut next = v1::CreateElicitationResponse::new(action);
    next.meta.clone_from(&response.meta);
    next
}

fn value(value: &v2::ElicitationContentValue) -> Option<v1::ElicitationContentValue> {
    Some(match value {
        v2::ElicitationContentValue::String(text) => {
            v1::ElicitationContentValue::String(text.clone())
        }
        v2::ElicitationContentValue::Integer(number) => {
            v1::ElicitationContentValue::Integer(*number)
        }
        v2::ElicitationContentValue::Number(number) => v1::ElicitationContentValue::Number(*number),
        v2::ElicitationContentValue::Boolean(value) => v1::ElicitationContentValue::Boolean(*value),
        v2::ElicitationContentValue::StringArray(texts) => {
            v1::ElicitationContentValue::StringArray(texts.clone())
        }
        _ => return None,
    })
}
