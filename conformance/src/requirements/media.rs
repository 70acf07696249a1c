//! A picture and a sound for prompts: small files that every decoder reads.
//!
//! They are large enough for a model: services refuse pictures of one pixel and sounds without
//! samples, which is not the agent's fault.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// A PNG of 32 by 32 pixels: a red disc on a blue gradient.
const PICTURE: &[u8] = include_bytes!("media/picture.png");

/// A wave file of a quarter of a second: a tone of 400 Hz, 8000 samples a second of 16 bits, one channel.
const TONE: &[u8] = include_bytes!("media/tone.wav");

/// Returns a PNG in base64.
pub(super) fn png() -> String {
    BASE64.encode(PICTURE)
}

/// Returns a wave file in base64.
pub(super) fn wav() -> String {
    BASE64.encode(TONE)
}

/// Base64 with padding, as RFC 4648 has it. Bits behind the last byte may be set.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Returns whether a text is base64.
pub(super) fn is_base64(text: &str) -> bool {
    BASE64.decode(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_whole_groups_and_its_own_letters() {
        for good in ["", "YQ==", "YR==", "AAEC", "cGFzc2VkDQo=", "a+/9"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["YQ", "YQ=", "AAE", "a===", "no bytes", "a_-9"] {
            assert!(!is_base64(bad), "{bad}");
        }
    }

    /// A tool that changes line ends or cuts files off changes these.
    #[test]
    fn the_picture_and_the_sound_are_whole() {
        assert_eq!(&PICTURE[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&PICTURE[PICTURE.len() - 8..], b"IEND\xae\x42\x60\x82");
        let number = |at: usize| u32::from_le_bytes(TONE[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(
            [&TONE[..4], &TONE[8..16], &TONE[36..40]].concat(),
            b"RIFFWAVEfmt data"
        );
        assert_eq!([number(4), number(40)], [TONE.len() - 8, TONE.len() - 44]);
    }
}
