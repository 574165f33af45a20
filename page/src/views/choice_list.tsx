// Entries with check boxes, for acts on several of them.

import { Line } from '../parts/text';

export interface Choice {
  code: string;
  title: string;
  note?: string;
}

interface ChoiceListProps {
  choices: Choice[];
  /** The chosen codes; null chooses all. */
  chosen: Set<string> | null;
  setChosen: (next: Set<string>) => void;
}

export function ChoiceList({ choices, chosen, setChosen }: ChoiceListProps) {
  const picked = chosen ?? new Set(choices.map((one) => one.code));
  const isAll = picked.size === choices.length;
  return (
    <>
      {choices.length > 1 && (
        <label class="choice small">
          <input type="checkbox" checked={isAll} onChange={() => setChosen(isAll ? new Set() : new Set(choices.map((one) => one.code)))} />
          All {choices.length}
        </label>
      )}
      <ul class="plain preview">
        {choices.map(({ code, title, note }) => (
          <li key={code}>
            <label class="choice">
              <input
                type="checkbox"
                checked={picked.has(code)}
                onChange={(event) => {
                  const next = new Set(picked);
                  if (event.currentTarget.checked) next.add(code);
                  else next.delete(code);
                  setChosen(next);
                }}
              />
              <span>
                <span class="code">{code}</span> <Line text={title} empty="(no title)" />
                {note && (
                  <span class="muted small">
                    {' '}
                    <Line text={note} />
                  </span>
                )}
              </span>
            </label>
          </li>
        ))}
      </ul>
    </>
  );
}
