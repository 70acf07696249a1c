//! Undo and redo of what turns changed in files.
