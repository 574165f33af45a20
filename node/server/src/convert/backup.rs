//! The summary of a backup, from its manifest.

use klnode_api_types::transfer::BackupContents;
use klnode_store::backup::BackupManifest;

/// The summary of a backup, as the API sends it.
pub fn summary(manifest: BackupManifest) -> BackupContents {
    let BackupManifest {
        node,
        store,
        created,
        klnode,
        schema,
        head,
        entries,
        forgotten,
        records,
        has_key,
        store_bytes,
        store_digest,
    } = manifest;
    BackupContents {
        node,
        store,
        created,
        klnode,
        schema,
        head,
        entries,
        forgotten,
        records,
        has_key,
        store_bytes,
        store_digest,
    }
}
