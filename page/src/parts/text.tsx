// Shows text of entries, titles and names, which may be hostile. Every string becomes a text node;
// no markup of the text is interpreted. Control characters that change the direction or hide
// letters are shown as their code.

import type { ComponentChildren } from 'preact';

const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
const CODE_OR_LINK = /`([^`\n]{1,200})`|(https?:\/\/[A-Za-z0-9\-._~:/?#@!$&*+,;=%]{1,400})/g;
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

/** One line of text, such as a title or a name. */
export function Line({ text, empty = '(empty)' }: { text: string | null | undefined; empty?: string }) {
  const clean = (text ?? '').slice(0, SHOWN_CHARACTERS_MAX);
  return clean.trim() === '' ? <span class="muted">{empty}</span> : <bdi class="line">{visible(clean)}</bdi>;
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
  for (const match of text.matchAll(CODE_OR_LINK)) {
    parts.push(visible(text.slice(end, match.index)));
    parts.push(match[1] !== undefined ? <code>{visible(match[1])}</code> : <ExternalLink target={match[2]!} />);
    end = match.index + match[0].length;
  }
  parts.push(visible(text.slice(end)));
  return parts;
}

/** A text of several paragraphs. Marks code in backticks and web addresses, and nothing else. */
export function Passages({ text, empty = 'This entry has no text.', charactersMax = SHOWN_CHARACTERS_MAX }: { text: string; empty?: string; charactersMax?: number }) {
  if (text.trim() === '') return <p class="muted">{empty}</p>;
  const shown = text.slice(0, charactersMax);
  return (
    <div class="passages" dir="auto">
      {shown.split(/\n{2,}/).map((paragraph) => (
        <p>{inline(paragraph)}</p>
      ))}
      {text.length > shown.length && <p class="muted">… {text.length - shown.length} more characters</p>}
    </div>
  );
}
