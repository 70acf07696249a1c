//! Content that goes from version 2 to the form of the server and back.

use acp_sdk::v2;
use serde_json::json;

use super::V2;
use crate::v2::content;

#[test]
fn content_comes_back_as_it_was() {
    for block in V2.values::<v2::ContentBlock>("ContentBlock") {
        let mut expected = block.clone();
        if let v2::ContentBlock::ResourceLink(link) = &mut expected {
            // Documented losses.
            link.icons = None;
            link.size = link.size.filter(|size| i64::try_from(*size).is_ok());
        }
        let kept = content::from_v2(&block).and_then(|block| content::to_v2(&block));
        assert_eq!(kept, Some(expected));
    }
}

#[test]
fn numbers_and_unknown_members_keep_their_text() {
    let text = r#"{"type":"_x","n":1.50e2,"more":{"_meta":null}}"#;
    let block: v2::ContentBlock = serde_json::from_str(text).unwrap();
    let kept = content::to_v2(&content::from_v2(&block).unwrap()).unwrap();
    assert_eq!(serde_json::to_string(&kept).unwrap(), text);
    let text = r#"{"type":"text","text":"a","_meta":{"n":1.50e2}}"#;
    let block: v2::ContentBlock = serde_json::from_str(text).unwrap();
    let kept = content::to_v2(&content::from_v2(&block).unwrap()).unwrap();
    assert_eq!(kept, block);
    assert_eq!(
        serde_json::to_value(&kept).unwrap(),
        json!({"type": "text", "text": "a",
        "_meta": {"n": 150.0}})
    );
}
