//! The method table as text and as JSON.

use acp_codegen::Error;
use acp_schema::{Document, Kind, Method, Protocol};
use serde_json::json;

/// The table for people: aligned columns, one method a line.
pub(crate) fn table(document: &Document) -> Result<String, Error> {
    let protocol = Protocol::from_document(document)?;
    let head = ["METHOD", "SIDE", "PARAMS", "RESULT"].map(str::to_owned);
    let rows = std::iter::once(head)
        .chain(protocol.methods().map(row))
        .collect::<Vec<_>>();
    let mut widths = [0; 4];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// The table for programs: a list of objects.
pub(crate) fn json(document: &Document) -> Result<String, Error> {
    let protocol = Protocol::from_document(document)?;
    let methods = protocol.methods().map(|method| {
        let (params, result) = ends(method);
        json!({
            "method": method.name,
            "side": method.side.as_str(),
            "params": params,
            "result": result,
            "description": method.description,
        })
    });
    Ok(format!("{:#}\n", methods.collect::<serde_json::Value>()))
}

fn row(method: &Method) -> [String; 4] {
    let (params, result) = ends(method);
    let result = result.unwrap_or("(notification)");
    [
        method.name.clone(),
        method.side.to_string(),
        params.into(),
        result.into(),
    ]
}

fn ends(method: &Method) -> (&str, Option<&str>) {
    match &method.kind {
        Kind::Request { params, result } => (params, Some(result)),
        Kind::Notification { params } => (params, None),
    }
}
