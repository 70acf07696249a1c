//! How large each type is: a message is moved a few times on its way.
//!
//! `cargo test -p acp-sdk --test vectors no_type_is_large -- --nocapture` prints the largest.

use crate::Suite;

/// In bytes; what is exchanged once a connection may be this large. A union is as large as its
/// largest variant, so that one large type makes others so.
const MOST: usize = 640;

pub(crate) fn no_type_is_large(suite: &Suite) {
    let mut types = suite.types.clone();
    types.sort_by_key(|ty| std::cmp::Reverse(ty.size));
    eprintln!("bytes  type");
    for ty in types.iter().take(20) {
        eprintln!("{:>5}  {}", ty.size, ty.name);
    }
    let large = types.iter().filter(|ty| ty.size > MOST);
    let large: Vec<_> = large.map(|ty| (ty.name, ty.size)).collect();
    assert!(large.is_empty(), "box a part of {large:?}");
}
