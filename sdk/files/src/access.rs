//! Who may use the file that takes the place of another one: nobody who could not use the old one.

use std::ffi::OsStr;
use std::io;

use cap_std::fs::{Dir, File, Metadata};

#[cfg(not(unix))]
pub(super) use other::{Rights, give};
#[cfg(unix)]
pub(super) use unix::{Rights, give};

#[cfg(unix)]
mod unix {
    use cap_std::fs::{MetadataExt as _, Permissions, PermissionsExt as _};
    use rustix::fs::{Gid, Uid, fchown};

    use super::*;

    /// The rights on a file.
    #[derive(Debug)]
    pub(crate) struct Rights {
        mode: u32,
        owner: Uid,
        group: Gid,
        list: acl::List,
    }

    impl Rights {
        pub(crate) fn of(dir: &Dir, name: &OsStr, metadata: &Metadata) -> Self {
            Self {
                mode: metadata.mode(),
                owner: Uid::from_raw(metadata.uid()),
                group: Gid::from_raw(metadata.gid()),
                list: acl::List::of(dir, name),
            }
        }
    }

    /// Gives a file that only its owner may use, and that is empty, the rights of another one, or
    /// fewer.
    pub(crate) fn give(new: &File, rights: &Rights) -> io::Result<()> {
        let metadata = new.metadata()?;
        let mut mode = rights.mode & 0o777;
        let owner = Uid::from_raw(metadata.uid());
        if owner != rights.owner {
            // Only the superuser can. Otherwise the owner is the one who writes.
            let _ = fchown(new, Some(rights.owner), None);
        }
        let group = Gid::from_raw(metadata.gid());
        if group != rights.group && fchown(new, None, Some(rights.group)).is_err() {
            mode = for_another_group(mode);
        }
        if !rights.list.give(new)? {
            mode = for_another_group(mode);
        }
        new.set_permissions(Permissions::from_mode(mode))
    }

    /// Permission bits for a file whose group is another one. The members of either group may be
    /// among all others now, so both have what both had.
    pub(super) fn for_another_group(mode: u32) -> u32 {
        let both = (mode >> 3) & mode & 0o7;
        (mode & 0o700) | (both << 3) | both
    }

    #[cfg(target_os = "linux")]
    mod acl {
        use rustix::fs::{XattrFlags, fgetxattr, fgetxattr_query, fremovexattr, fsetxattr};
        use rustix::io::Errno;

        use super::*;
        use crate::read;

        /// The extended attribute of a file's access list. The group's permission bits are the
        /// list's mask where there is one, so that a copy of the bits alone would allow more.
        const NAME: &str = "system.posix_acl_access";

        #[derive(Debug)]
        pub(super) enum List {
            None,
            Some(Vec<u8>),
            /// The file cannot be read by the one who writes it.
            Unknown,
        }

        impl List {
            pub(super) fn of(dir: &Dir, name: &OsStr) -> Self {
                let Ok(file) = read::open(dir, name) else {
                    return Self::Unknown;
                };
                let length = match fgetxattr_query(&file, NAME) {
                    Ok(length) => length,
                    Err(Errno::NODATA | Errno::NOTSUP) => return Self::None,
                    Err(_) => return Self::Unknown,
                };
                // It is shorter than 64 KiB by the system's own limit.
                let mut list = vec![0; length];
                match fgetxattr(&file, NAME, &mut list[..]) {
                    Ok(length) => {
                        list.truncate(length);
                        Self::Some(list)
                    }
                    Err(_) => Self::Unknown,
                }
            }

            /// Gives a new file this list; `false` if it has none instead.
            pub(super) fn give(&self, new: &File) -> io::Result<bool> {
                if let Self::Some(list) = self
                    && fsetxattr(new, NAME, list, XattrFlags::empty()).is_ok()
                {
                    return Ok(true);
                }
                // The directory may have given it another one.
                match fremovexattr(new, NAME) {
                    Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(matches!(self, Self::None))
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod acl {
        use super::*;

        /// Access lists are not copied here.
        #[derive(Debug)]
        pub(super) struct List;

        impl List {
            pub(super) fn of(_: &Dir, _: &OsStr) -> Self {
                Self
            }

            pub(super) fn give(&self, _: &File) -> io::Result<bool> {
                Ok(true)
            }
        }
    }
}

#[cfg(not(unix))]
mod other {
    use super::*;

    /// A new file has the rights that its directory gives.
    #[derive(Debug)]
    pub(crate) struct Rights;

    impl Rights {
        pub(crate) fn of(_: &Dir, _: &OsStr, _: &Metadata) -> Self {
            Self
        }
    }

    pub(crate) fn give(_: &File, _: &Rights) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::unix::for_another_group;

    #[test]
    fn another_group_has_no_more_than_both() {
        assert_eq!(for_another_group(0o640), 0o600);
        assert_eq!(for_another_group(0o644), 0o644);
        assert_eq!(for_another_group(0o664), 0o644);
        // All but the group could read it, and its members are among the others now.
        assert_eq!(for_another_group(0o604), 0o600);
        assert_eq!(for_another_group(0o777), 0o777);
    }
}
