//! Paths that somebody would try who wants out.

use crate::playground::Playground;

/// A small generator of numbers, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // Splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<'a, T: AsRef<str>>(&mut self, from: &'a [T]) -> &'a str {
        from[self.below(from.len())].as_ref()
    }
}

/// Names that exist in the playground, most of them in several places.
const NAMES: &[&str] = &[
    "a", "b", "c", "sub", "swap", "file", "link", "secret", "new", "pipe", "in", "out", "extra",
    "up", "abs", "alias", "round", "dangling", "loop", "across", "away", "deep", "FILE", "Secret",
];

/// Where files are at times, and links to the outside at others.
const FILES: &[&str] = &[
    "file",
    "swap",
    "a/file",
    "a/b/file",
    "sub/file",
    "sub/secret",
    "sub/new",
    "away/file",
    "new",
    "away/sub/secret",
    "a/b/up/secret",
    "a/b/new",
    "link",
    "round/file",
    "sub/up/file",
    "a/link",
    "abs/file",
    "across/b/file",
    "out/secret",
    "alias/../swap",
    "sub/../sub/./file",
    "a/b/../../new",
    "../in/sub/file",
    "../in/a/b/c",
    "sub",
    "a/b",
    "away/sub",
    "a/new/../new",
    "sub/new/x/y",
];

/// Names that mean something else than they say.
const ODD: &[&str] = &[
    "",
    ".",
    "...",
    "..\\..\\out",
    "with\0nul",
    "\u{fc}",
    "u\u{308}",
    "\u{2028}",
    "\u{202e}terces",
    " ",
    "a b",
    "~",
    "$HOME",
    "%2e%2e",
    "*",
    "-rf",
    "\n",
    "\u{ff0e}\u{ff0e}",
    "secret ",
    "secret.",
];

pub(crate) struct Paths {
    starts: Vec<String>,
    random: Random,
}

impl Paths {
    pub(crate) fn new(playground: &Playground, random: Random) -> Self {
        let named = |name: &str| playground.path(name).to_str().unwrap().to_owned();
        let real = playground.path("").canonicalize().unwrap().join("in");
        let mut starts = vec!["/".to_owned(), "/proc/self/cwd".to_owned()];
        starts.push(format!("/proc/self/root{}", named("in")));
        starts.push(format!("//{}", named("in")));
        starts.push(real.to_str().unwrap().to_owned());
        // Most of them begin in a root: the others are refused at once.
        for name in ["out", "door", "doors/in", "inside", ""] {
            starts.push(named(name));
        }
        for name in ["in", "alias", "extra"] {
            starts.extend([named(name), named(name), named(name), named(name)]);
        }
        Self { starts, random }
    }

    /// Returns a number to choose something by.
    pub(crate) fn random(&mut self) -> u64 {
        self.random.next()
    }

    pub(crate) fn next(&mut self) -> String {
        let random = &mut self.random;
        let mut path = random.pick(&self.starts).to_owned();
        if random.below(2) == 0 {
            path.push('/');
            path.push_str(random.pick(FILES));
            if random.below(4) > 0 {
                return path;
            }
        }
        for _ in 0..random.below(6) {
            path.push('/');
            match random.below(40) {
                0..7 => path.push_str(".."),
                7..11 => path.push('.'),
                11 => path.push_str(random.pick(ODD)),
                12 => path.push_str(&"../".repeat(random.below(80))),
                13 => path.push_str(&"sub/../".repeat(random.below(30))),
                _ => path.push_str(random.pick(NAMES)),
            }
        }
        match random.below(400) {
            0 => path.push_str(&format!("/{}", "x".repeat(random.below(400)))),
            1 => path.push_str(&"/x".repeat(random.below(40))),
            2 => path.push_str(&"/deep".repeat(900)),
            3 => drop(path.remove(0)),
            4..10 => path.push('/'),
            _ => {}
        }
        path
    }
}
