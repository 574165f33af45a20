// Words of commands that people copy into a terminal. Names of peers and workspaces may hold any
// character, so a word is quoted unless it is plain.

export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
