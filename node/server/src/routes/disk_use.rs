//! Measures the files of a home for the status of the node.

use klnode_api_types::DiskUse;
use klnode_home::Layout;
use klnode_store::free_bytes;
use std::path::Path;
use std::{fs, io};

/// The disk use of a home. The index has tens of files, so they are read on each request.
pub(super) fn disk_use(layout: &Layout) -> io::Result<DiskUse> {
    Ok(DiskUse {
        store_bytes: size_or_zero(fs::metadata(layout.store_file()).map(|store| store.len()))?,
        index_bytes: folder_bytes(&layout.index_folder())?,
        free_bytes: free_bytes(layout.home())?,
    })
}

/// The size of all files in a folder and its sub-folders.
fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let files = match fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) => return size_or_zero(Err(error)),
    };
    let mut bytes = 0;
    for file in files {
        let file = file?;
        bytes += match file.file_type()?.is_dir() {
            true => folder_bytes(&file.path())?,
            // The index may remove a file at any time.
            false => size_or_zero(file.metadata().map(|file| file.len()))?,
        };
    }
    Ok(bytes)
}

/// The size of a file, zero if there is none.
fn size_or_zero(size: io::Result<u64>) -> io::Result<u64> {
    match size {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        size => size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_use_counts_the_store_and_all_files_of_the_index() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        let seen = disk_use(&layout).unwrap();
        assert_eq!((seen.store_bytes, seen.index_bytes), (0, 0), "a new home has no files yet");
        fs::write(layout.store_file(), [0; 5]).unwrap();
        fs::create_dir_all(layout.index_folder().join("words")).unwrap();
        fs::write(layout.index_folder().join("vectors"), [0; 7]).unwrap();
        fs::write(layout.index_folder().join("words/segment"), [0; 11]).unwrap();
        let seen = disk_use(&layout).unwrap();
        assert_eq!((seen.store_bytes, seen.index_bytes), (5, 18));
        assert!(seen.free_bytes > 0);
    }
}
