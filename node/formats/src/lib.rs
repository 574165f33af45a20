//! Reads and writes the knowledge files of other tools.
//!
//! A [`SourceCorpus`] is a file or a folder in one [`FileFormat`]. Reading it yields one [`NeutralEntry`] per
//! piece of knowledge, and one [`Problem`] per piece that cannot be read; a problem never ends the
//! reading. [`write()`] turns neutral entries back into files. The crate knows nothing of a node: the
//! command line sends the entries to the node's import route, so the node never opens a file that
//! its caller names.
//!
//! Memory is bounded: the readers hold one line, one section, one note or one JSON element at a
//! time ([`limits`]).

mod agent_instructions;
mod basic_memory;
mod claude_memory;
mod corpus;
mod corpus_error;
mod databases;
mod dates;
mod decapod;
mod decapod_writer;
mod detect;
mod digest;
mod earlier_export;
mod entry_collector;
mod flux_drive;
mod format;
mod formicos;
mod front_matter;
mod gsd;
mod gsd_conditions;
mod json_elements;
pub mod limits;
mod link_index;
mod markdown_markup;
mod markdown_notes;
mod mcp_memory;
mod mem0;
mod neutral_entry;
mod output_file;
mod sections;
mod source_file;
mod sqlite;
mod text_lines;
mod wfc;
mod writer;
mod yaml;

pub use corpus::SourceCorpus;
pub use corpus_error::CorpusError;
pub use dates::{day, millis};
pub use decapod::decapod_entry;
pub use digest::digest;
pub use earlier_export::EarlierNotes;
pub use format::FileFormat;
pub use link_index::{LinkIndex, LinkTarget, relation};
pub use neutral_entry::{
    ImportKey, NeutralEntry, Observed, Problem, Reading, Source, SourceCitation, SourceLink,
};
pub use output_file::OutputFile;
pub use source_file::SourceFile;
pub use writer::{WriteError, write};
