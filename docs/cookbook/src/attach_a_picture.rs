use std::io;
use std::path::Path;

use acp_client::{Outcome, Session};
use acp_sdk::v1::{ContentBlock, ImageContent};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub async fn describe(
    session: &Session,
    picture: &Path,
) -> Result<Outcome, Box<dyn std::error::Error>> {
    let bytes = read(picture)?;
    let image = ImageContent::new(STANDARD.encode(bytes), "image/png");
    let prompt = vec![
        ContentBlock::from("What does this picture show?"),
        ContentBlock::Image(image),
    ];
    Ok(session.prompt(prompt).await?.outcome().await?)
}

fn read(picture: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(picture)
}
