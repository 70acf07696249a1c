//! A picture and a sound for prompts, made here: small files that every decoder reads.
//!
//! They are large enough for a model: services refuse pictures of one pixel and sounds without
//! samples, which is not the agent's fault.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// The width and height of the picture, in pixels.
const SIDE: u8 = 32;

/// Samples of the sound in a second, and how many there are: a quarter of a second.
const RATE: u32 = 8000;
const SAMPLES: u32 = RATE / 4;

/// Samples in a period of the sound: 400 Hz.
const PERIOD: u32 = 20;

/// Returns a PNG of a red disc on a blue gradient, in base64.
pub(super) fn png() -> String {
    let header = [
        &u32::from(SIDE).to_be_bytes()[..],
        &u32::from(SIDE).to_be_bytes(),
        // 8 bits for each of red, green and blue; the usual compression and filters, no interlacing.
        &[8, 2, 0, 0, 0],
    ]
    .concat();
    let file = [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(*b"IHDR", &header),
        chunk(*b"IDAT", &zlib(&pixels())),
        chunk(*b"IEND", &[]),
    ]
    .concat();
    BASE64.encode(file)
}

/// The rows of the picture, each after the byte that says that it is not filtered.
fn pixels() -> Vec<u8> {
    let distance = |at: u8| u32::from(at.abs_diff(SIDE / 2)).pow(2);
    let radius = u32::from(SIDE / 3).pow(2);
    let pixel = |x: u8, y: u8| match distance(x) + distance(y) < radius {
        true => [220, 40, 40],
        false => [0, 0, 128 + 4 * (y % 32)],
    };
    let row = |y: u8| std::iter::once(0).chain((0..SIDE).flat_map(move |x| pixel(x, y)));
    (0..SIDE).flat_map(row).collect()
}

/// A chunk of a PNG: its length, its name, its data and their checksum.
fn chunk(name: [u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [&name[..], data].concat();
    let length = u32::try_from(data.len()).unwrap_or_default();
    [
        &length.to_be_bytes()[..],
        &named,
        &crc(&named).to_be_bytes(),
    ]
    .concat()
}

/// A zlib stream of one block that is not compressed, which holds up to 65,535 bytes.
fn zlib(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap_or_default();
    let length = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    [&[0x78, 1, 1][..], &length, data, &adler(data).to_be_bytes()].concat()
}

/// The checksum of a PNG's chunk, CRC-32.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
        })
    })
}

/// The checksum of a zlib stream, Adler-32.
fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

/// Returns a wave file with a tone of 400 Hz, 16 bits and one channel, in base64.
pub(super) fn wav() -> String {
    // A triangle, which needs integers only.
    let sample = |at: u32| {
        let height = (at % PERIOD).abs_diff(PERIOD / 2);
        let height = i16::try_from(height).unwrap_or_default();
        (height * 2000 - 10_000).to_le_bytes()
    };
    let samples: Vec<u8> = (0..SAMPLES).flat_map(sample).collect();
    let length = u32::try_from(samples.len()).unwrap_or_default();
    let format = [
        // PCM, one channel.
        &[1, 0, 1, 0][..],
        &RATE.to_le_bytes(),
        &(2 * RATE).to_le_bytes(),
        // Bytes and bits of a sample.
        &[2, 0, 16, 0],
    ]
    .concat();
    let file = [
        b"RIFF",
        &(36 + length).to_le_bytes()[..],
        b"WAVEfmt ",
        &16_u32.to_le_bytes(),
        &format,
        b"data",
        &length.to_le_bytes(),
        &samples,
    ]
    .concat();
    BASE64.encode(file)
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

    fn decoded(base64: &str) -> Vec<u8> {
        BASE64.decode(base64).unwrap_or_default()
    }

    #[test]
    fn base64_has_whole_groups_and_its_own_letters() {
        for good in ["", "YQ==", "YR==", "AAEC", "cGFzc2VkDQo=", "a+/9"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["YQ", "YQ=", "AAE", "a===", "no bytes", "a_-9"] {
            assert!(!is_base64(bad), "{bad}");
        }
    }

    /// The examples of the checksums' specifications.
    #[test]
    fn checksums_are_those_of_the_formats() {
        assert_eq!(crc(b"IEND"), 0xae42_6082);
        assert_eq!(adler(b"Wikipedia"), 0x11e6_0398);
    }

    /// An agent that looks at the picture must find nothing wrong with it.
    #[test]
    fn the_picture_has_sound_chunks_and_all_its_pixels() {
        let png = decoded(&png());
        let (head, mut rest) = png.split_at(8);
        assert_eq!(head, b"\x89PNG\r\n\x1a\n");
        let mut names = Vec::new();
        let mut data = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let (chunk, after) = rest[4..].split_at(4 + length);
            let (sum, after) = after.split_at(4);
            assert_eq!(sum, crc(chunk).to_be_bytes(), "{chunk:?}");
            names.push(String::from_utf8(chunk[..4].to_vec()).unwrap());
            if chunk.starts_with(b"IDAT") {
                data = chunk[4..].to_vec();
            }
            rest = after;
        }
        assert_eq!(names, ["IHDR", "IDAT", "IEND"]);
        // Two bytes that are a multiple of 31, one final block, its length twice.
        assert_eq!(u16::from_be_bytes([data[0], data[1]]) % 31, 0);
        let length = u16::from_le_bytes([data[3], data[4]]);
        assert_eq!(
            (data[2], !length),
            (1, u16::from_le_bytes([data[5], data[6]]))
        );
        let pixels = &data[7..data.len() - 4];
        assert_eq!(pixels.len(), usize::from(length));
        let side = usize::from(SIDE);
        assert_eq!(pixels.len(), side * (1 + 3 * side));
        assert_eq!(data[data.len() - 4..], adler(pixels).to_be_bytes());
    }

    #[test]
    fn the_sound_has_as_many_bytes_as_it_says() {
        let wav = decoded(&wav());
        let number = |at: usize| u32::from_le_bytes(wav[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(
            [&wav[..4], &wav[8..16], &wav[36..40]].concat(),
            b"RIFFWAVEfmt data"
        );
        assert_eq!(number(4), wav.len() - 8);
        assert_eq!(number(40), wav.len() - 44);
        assert!(wav[44..].iter().any(|byte| *byte != 0));
    }
}
