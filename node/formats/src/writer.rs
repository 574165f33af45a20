//! Writes neutral entries as files of a format.
//!
//! The bytes depend on the entries alone: an export of what klnode wrote and read again gives the
//! same files.

use crate::format::FileFormat;
use crate::neutral_entry::NeutralEntry;
use crate::output_file::{FileNames, OutputFile};
use crate::{decapod_writer, flux_drive, formicos, gsd, markdown_notes, wfc};
use std::io;

/// Why entries cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// klnode only reads the format.
    #[error("klnode reads the format {0} and does not write it.")]
    ReadOnly(FileFormat),
    /// A file could not be written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Writes entries in a format. `put` receives each file once.
///
/// # Errors
/// If klnode does not write the format, or `put` fails.
pub fn write(
    format: FileFormat,
    entries: &mut dyn Iterator<Item = NeutralEntry>,
    put: &mut dyn FnMut(OutputFile) -> io::Result<()>,
) -> Result<(), WriteError> {
    let mut names = FileNames::default();
    match format {
        FileFormat::FluxDrive => {
            for entry in entries {
                put(flux_drive::write(&entry, &mut names))?;
            }
        }
        FileFormat::Markdown => markdown_notes::write_all(entries, put)?,
        FileFormat::Gsd => {
            let mut writer = gsd::Writer::default();
            for entry in entries {
                put(writer.write(&entry, &mut names))?;
            }
            put(writer.index())?;
        }
        FileFormat::Wfc => wfc::write(entries).into_iter().try_for_each(put)?,
        FileFormat::Decapod => decapod_writer::write(entries).into_iter().try_for_each(put)?,
        FileFormat::Formicos => put(formicos::write(entries))?,
        other => return Err(WriteError::ReadOnly(other)),
    }
    Ok(())
}
