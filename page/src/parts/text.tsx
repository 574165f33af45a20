// Shows text of entries, titles and names, which may be hostile. Every string becomes a text node;
// no markup of the text is interpreted. Control characters that change the direction or hide
// letters are shown as their code.

import type { ComponentChildren } from 'preact';

const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
const MARKED = /`([^`\n]{1,200})`|(https?:\/\/[A-Za-z0-9\-._~:/?#@!$&*+,;=%]{1,400})|\*\*([^*\n]{1,200})\*\*/g;
/** A line of Markdown that begins an item of a list, a row of a table, a quotation or a heading. */
const STARTS_LINE = /^\s*(?:[-*+>|#]|\d{1,3}[.)]\s)|^ {4}|^\t/;
/** Shorter lines end where their author ended them. */
const WRAPPED_CHARACTERS_MIN = 60;
/** A heading of Markdown that stands alone. */
const HEADING = /^#{1,6} ([^\n]+)$/;
const SHOWN_CHARACTERS_MAX = 20_000;

function codePoint(control: string): string {
  return `U+${control.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The text with invisible controls shown as their code. */
function visible(text: string): ComponentChildren {
  if (!CONTROLS.test(text)) return text;
  CONTROLS.lastIndex = 0;
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(CONTROLS)) {
    parts.push(text.slice(end, match.index));
    parts.push(
      <span class="control" title="An invisible control character">
        {codePoint(match[0])}
      </span>,
    );
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}

/** A text for an attribute or a canvas, with invisible controls as their code. */
export function plainText(text: string): string {
  return text.replace(CONTROLS, codePoint);
}

/** One line of text, such as a title or a name. */
export function Line({ text, empty = '(empty)' }: { text: string | null | undefined; empty?: string }) {
  const clean = (text ?? '').slice(0, SHOWN_CHARACTERS_MAX);
  return clean.trim() === '' ? <span class="muted">{empty}</span> : <bdi class="line">{visible(clean)}</bdi>;
}

/** One line of text in which code, bold words and web addresses are marked. */
export function MarkedLine({ text, empty = '(empty)' }: { text: string | null | undefined; empty?: string }) {
  const clean = (text ?? '').slice(0, SHOWN_CHARACTERS_MAX);
  return clean.trim() === '' ? <span class="muted">{empty}</span> : <bdi class="line">{inline(clean)}</bdi>;
}

/** A link to an http address. The whole target is visible; other schemes stay plain text. */
export function ExternalLink({ target }: { target: string }) {
  if (!/^https?:\/\/[\x21-\x7e]+$/.test(target)) return <Line text={target} />;
  return (
    <a class="external" href={target} target="_blank" rel="noopener noreferrer nofollow">
      {target}
    </a>
  );
}

function inline(text: string): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(MARKED)) {
    parts.push(visible(text.slice(end, match.index)));
    if (match[1] !== undefined) parts.push(<code>{visible(match[1])}</code>);
    else if (match[2] !== undefined) parts.push(<ExternalLink target={match[2]} />);
    else parts.push(<strong>{visible(match[3]!)}</strong>);
    end = match.index + match[0].length;
  }
  parts.push(visible(text.slice(end)));
  return parts;
}

/** Joins the lines of a paragraph that was wrapped at a column, and keeps lists, tables and short lines. */
function unwrapped(paragraph: string): string {
  const lines = paragraph.split('\n');
  const joined = lines.map((line, index) => {
    const previous = lines[index - 1];
    if (previous === undefined) return line.trimEnd();
    const isWrapped = previous.length >= WRAPPED_CHARACTERS_MIN && !STARTS_LINE.test(line) && !previous.trimStart().startsWith('|');
    return isWrapped && line.trim() !== '' ? ` ${line.trim()}` : `\n${line.trimEnd()}`;
  });
  return joined.join('');
}

/** Splits a text at its code fences; every second part is the inside of a fence. */
function fenced(text: string): string[] {
  const parts: string[][] = [[]];
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) parts.push([]);
    else parts[parts.length - 1]!.push(line);
  }
  // A fence without an end is not one.
  if (parts.length % 2 === 0) {
    const rest = parts.pop()!;
    parts[parts.length - 1] = parts[parts.length - 1]!.concat('```', rest);
  }
  return parts.map((lines) => lines.join('\n'));
}

function block(text: string): ComponentChildren {
  const heading = HEADING.exec(text);
  return heading ? <p class="heading">{inline(heading[1]!)}</p> : <p>{inline(unwrapped(text))}</p>;
}

/**
 * A text of several paragraphs. Marks code, headings, bold words and web addresses, and nothing
 * else.
 */
export function Passages({ text, empty = 'This entry has no text.', charactersMax = SHOWN_CHARACTERS_MAX }: { text: string; empty?: string; charactersMax?: number }) {
  if (text.trim() === '') return <p class="muted">{empty}</p>;
  const shown = text.slice(0, charactersMax);
  return (
    <div class="passages" dir="auto">
      {fenced(shown).map((part, index) => {
        if (index % 2 === 1) return <pre>{visible(part)}</pre>;
        return part.split(/\n{2,}/).filter((paragraph) => paragraph.trim() !== '').map(block);
      })}
      {text.length > shown.length && <p class="muted">… {text.length - shown.length} more characters</p>}
    </div>
  );
}
